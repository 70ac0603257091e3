"""The sentences: verdicts, captions and notes, from results alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpviz.attack import Curve
from dpviz.mechanisms import Mechanism
from dpviz.metrics import METRICS, Summary, chance_distance, farthest_distance, optimum
from dpviz.privacy.accounting import Spent
from dpviz.privacy.audit import Audit, AuditVerdict
from dpviz.problem import Budget
from dpviz.refutations import CANNOT_RUN
from dpviz.release import VERDICT_WORDS, Verdict
from dpviz.reproduce import Agreement, Reproduction
from dpviz.settings import join_words
from dpviz.sweeps import Comparison, Result

# Mechanisms whose noise follows the precision allocation.
DIRECTIONAL_FAMILY = "directional"

# Two means count as different when they are this many standard errors apart;
# a normal difference exceeds that by chance about once in 370 comparisons.
_SEPARATED = 3.0


def percent(share: float) -> str:
    """Return a share as text, with more digits near 0 and 1."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1 %"
    if 0 < value < 1 or 99 < value < 100:
        return f"{value:.1f} %"
    return f"{value:.0f} %"


def budget_words(budget: Budget) -> str:
    """Return a budget in words, with delta only where it is above 0."""
    if budget.delta == 0:
        return f"epsilon {budget.epsilon:.4g}"
    return f"epsilon {budget.epsilon:.4g} and delta {budget.delta:.2g}"


def separated(first: Summary, second: Summary) -> bool:
    """Return whether the draws tell two means apart."""
    if math.isnan(first.se) or math.isnan(second.se):
        return False
    return abs(first.mean - second.mean) > _SEPARATED * math.hypot(first.se, second.se)


def competing(results: Sequence[Result]) -> list[Result]:
    """Return the results that make a claim which is not false, best first."""
    kept = [r for r in results if r.status.verdict not in (Verdict.REFUTED, Verdict.BASELINE)]
    return sorted(kept, key=lambda r: -r.metrics["captured_share"].mean())


def verdict(comparison: Comparison) -> str:
    """Return the sentences on top of the page: what is lost, and by which mechanism."""
    k, budget = comparison.problem.k, comparison.budget
    ranked = competing(comparison.results)
    refuted = [r for r in comparison.results if r.status.verdict is Verdict.REFUTED]
    if not comparison.results:
        start = "None of the chosen mechanisms can run at this setting; why is said below."
    elif not ranked:
        start = "None of the chosen mechanisms makes a claim that holds here."
    else:
        best = ranked[0]
        share = best.summaries["captured_share"]
        noun = "component" if k == 1 else f"{k} components"
        explained = "one component can explain" if k == 1 else f"{noun} can explain"
        start = (
            f"At {budget_words(budget)}, {best.mechanism.label} keeps {percent(share.mean)} of "
            f"the variance that {explained}"
        )
        ties = [r for r in ranked[1:] if not separated(share, r.summaries["captured_share"])]
        others = [r for r in ranked[1:] if r not in ties]
        if ties:
            names = join_words(r.mechanism.label for r in ties)
            start += f"; these draws cannot tell it from {names}"
        if others:
            following = others[0].summaries["captured_share"].mean
            start += f"; next comes {others[0].mechanism.label} with {percent(following)}"
        start += "."
        pure = [r for r in ranked if r.mechanism.info.guarantee == "pure"]
        if pure and best.mechanism.info.guarantee != "pure" and pure[0] not in others[:1]:
            kept = pure[0].summaries["captured_share"].mean
            start += f" With no delta at all, {pure[0].mechanism.label} keeps {percent(kept)}."
    for settled, words in ((True, "false"), (False, "not proved")):
        left_out = [r for r in refuted if r.status.settled is settled]
        if left_out:
            names = join_words(r.mechanism.label for r in left_out)
            verb = "is" if len(left_out) == 1 else "are"
            start += (
                f" {names} {verb} not counted: what {_owners(left_out)} papers promise is {words} "
                "here."
            )
    return start


def _owners(results: Sequence[Result]) -> str:
    return "its" if len(results) == 1 else "their"


def epsilon_note(epsilon: float) -> str | None:
    """Return what a very small or large epsilon means, or None between."""
    if epsilon < 0.1:
        return (
            "Below 0.1 the promise is very strong: on most tables the noise hides everything "
            "but the largest structure."
        )
    if epsilon > 5:
        odds = math.exp(min(epsilon, 700))
        words = f"{odds:,.0f}" if odds < 1e6 else f"{odds:.1e}"
        return (
            f"Above 5 the promise is weak: what one person's row adds to the odds of any guess "
            f"about them can reach a factor of {words}."
        )
    return None


def spectrum_caption(comparison: Comparison) -> str:
    """Return what the eigenspectrum shows: how many true components clear the noise."""
    eigenvalues = comparison.prepared.reference.eigenvalues
    parts = []
    for result in comparison.results:
        threshold = _visible_above(result.mechanism, comparison)
        if threshold is not None:
            visible = int((eigenvalues > threshold).sum())
            parts.append(f"{result.mechanism.label} {visible}")
    if not parts:
        return (
            "None of the chosen mechanisms releases a noisy matrix; bars show the variance along "
            "each released direction, which is not itself released."
        )
    return (
        f"True components large enough to show through the noise, out of {len(eigenvalues)}: "
        f"{', '.join(parts)}. The noise hides the direction of a smaller one."
    )


def _visible_above(mechanism: Mechanism, comparison: Comparison) -> float | None:
    """Return the eigenvalue below which a component drowns, or None where no law is known."""
    calibration = mechanism.calibrate(comparison.problem, comparison.budget)
    noise = mechanism.free_noise(calibration)
    return None if noise is None else noise.visible_above


def distance_caption(comparison: Comparison) -> str:
    """Return what the subspace distances show."""
    ranked = competing(comparison.results)
    d, k = comparison.problem.d, comparison.problem.k
    if k == d:
        return "With k = d every subspace is the whole space, so all distances are zero."
    worst, chance = farthest_distance(d, k), chance_distance(d, k)
    if not ranked:
        return f"0 is the true subspace, {worst:.2f} the farthest, {chance:.2f} pure chance."
    near = min(ranked, key=lambda r: r.metrics["projection_distance"].mean())
    value = near.metrics["projection_distance"].mean()
    return (
        f"{near.mechanism.label} comes closest, at {value:.2f} on average. 0 is the true subspace, "
        f"{chance:.2f} is what a random one reaches, {worst:.2f} the farthest possible."
    )


def projection_caption(comparison: Comparison) -> str:
    """Return what the 2-D pictures show and what they hide."""
    ranked = competing(comparison.results)
    if comparison.problem.k == 1:
        hidden = "Each strip shows the rows along the released direction, its sign matched."
    else:
        hidden = (
            "Each picture is turned to match the true axes as well as it can be, which hides "
            "rotation inside the released space."
        )
    if not ranked:
        return hidden
    drowned = [r for r in ranked if np.median(r.angles[:, -1]) > math.radians(75)]
    if not drowned:
        return f"In every chosen mechanism the structure survives the noise. {hidden}"
    names = join_words(r.mechanism.label for r in drowned)
    return (
        f"Half the draws of {names} turn a released direction by more than 75 degrees: "
        f"such a picture shows mostly chance. {hidden}"
    )


def facts(comparison: Comparison) -> str:
    """Return one line that says what is analysed."""
    prepared, problem = comparison.prepared, comparison.problem
    bound = (
        f"features between public bounds, rows within sqrt(d) = {prepared.row_bound:.4g}"
        if prepared.domain.kind == "box"
        else f"row norms up to R = {prepared.row_bound:.4g}"
    )
    left_out = percent(loss_share(comparison))
    return (
        f"{prepared.name}: {problem.n:,} people (rows), {problem.d} features; {bound}. Even "
        f"without privacy, {problem.k} of {problem.d} directions leave out {left_out} of the "
        "variance."
    )


def account_words(claimed: Budget | None, spent: Spent | None) -> str:
    """Return what a mechanism claims and what it spends, as one phrase."""
    if claimed is None:
        return "no claim"
    claim = f"claims {budget_words(claimed)}"
    if spent is None:
        return f"{claim}; no epsilon is known for what it spends"
    most = "" if spent.exact else "at most "
    words = f"{claim}; spends {most}epsilon {spent.epsilon:.3g}"
    if spent.delta_at_epsilon is not None and claimed.delta > 0:
        truth = spent.delta_at_epsilon
        delta = f"{most}delta {truth:.2g}" if truth > 0 else "delta below 1e-300"
        words += f", or {delta} at the claimed epsilon"
    return words


def convergence(result: Result) -> str | None:
    """Return what the chains of an approximate sampler show, or None for exact draws."""
    found = result.diagnostics
    if not found:
        return None
    sweeps = f"{found['gibbs_sweeps']:.0f} Gibbs sweeps"
    if "start_gap_last" not in found:
        return (
            f"{result.mechanism.label}: {sweeps}; fewer than four draws, too few to compare starts."
        )
    words = (
        f"{result.mechanism.label}: half the chains start at the exact components, half at random "
        f"ones. Their mean scores differ by {abs(found['start_gap_first']):.1f} standard errors at "
        f"the start and by {abs(found['start_gap_last']):.1f} after {sweeps}"
    )
    if "split_rhat" in found:
        words += f"; split R-hat {found['split_rhat']:.2f}"
    close = abs(found["start_gap_last"]) < _SEPARATED
    return words + (
        ". The start no longer shows." if close else ". The start still shows: use more sweeps."
    )


def loss_share(comparison: Comparison) -> float:
    """Return the variance the best k components leave out, as a share of the total."""
    reference = comparison.prepared.reference
    return 1 - optimum(reference, comparison.problem.k) / reference.total


def _gains(comparison: Comparison, uniform: Comparison) -> list[tuple[Result, Result]]:
    """Return (with the allocation, with equal shares) of every result that follows it."""
    before = {result.mechanism.text: result for result in uniform.results}
    pairs = [
        (result, before[result.mechanism.text])
        for result in comparison.results
        if result.mechanism.info.family == DIRECTIONAL_FAMILY
        and result.mechanism.text in before
        and result.mechanism.text == result.mechanism.key  # not a control variant
    ]
    return sorted(pairs, key=lambda pair: -pair[0].metrics["captured_share"].mean())


def precision_verdict(comparison: Comparison, uniform: Comparison) -> str:
    """Return whether the allocation was worth it, from the draws."""
    pairs = _gains(comparison, uniform)
    if not pairs:
        return "None of the mechanisms that follow an allocation can run here."
    if comparison.problem.allocation.strategy == "uniform":
        return (
            "The precision is shared equally, so shaped noise is isotropic. Favour some directions "
            "in the sidebar and see where the noise goes."
        )
    now, before = pairs[0]
    share, old = now.summaries["captured_share"], before.summaries["captured_share"]
    start = (
        f"With this allocation {now.mechanism.label} keeps {percent(share.mean)} of what "
        f"{comparison.problem.k} components can explain"
    )
    if not separated(share, old):
        return (
            f"{start}; these draws cannot tell that from the {percent(old.mean)} of equal shares."
        )
    if share.mean > old.mean:
        return f"{start}, against {percent(old.mean)} with equal shares: it pays here."
    return (
        f"{start}, and {percent(old.mean)} with equal shares: here the allocation loses more on "
        "the other directions than it gains on its own."
    )


def domain_caption(comparison: Comparison) -> str:
    """Return what the domain means for shaped noise."""
    if comparison.prepared.domain.kind == "box":
        allocation = comparison.problem.allocation
        d, chosen = comparison.problem.d, allocation.chosen
        words = (
            "On the box precision is a linear budget: what one direction gets, the others lose, "
            "and noise on q of d directions can fall by up to d/q"
        )
        if chosen:
            times = d * allocation.tau / len(chosen)
            rest = d * (1 - allocation.tau) / (d - len(chosen))
            words += (
                f". Here the {len(chosen)} favoured directions have their noise divided by "
                f"{times:.3g}, and the other {d - len(chosen)} theirs multiplied by {1 / rest:.3g}"
            )
        return words + "."
    return (
        "On the ball any direction may carry a whole row, so no shape of noise beats the isotropic "
        "one. What can still help here is the weighted estimate, which trusts the allocation to "
        "say where the variance is. Choose the box under Preparation to see directions pay."
    )


def noise_caption(table: pd.DataFrame, comparison: Comparison) -> str:
    """Return how unequal the noise is over the directions."""
    if table.empty:
        return "None of these mechanisms has a known noise along each direction here."
    spread = table.groupby("mechanism")["std"].agg(lambda std: std.max() / std.min())
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    most = str(spread.idxmax())
    if spread.max() < 1 + 1e-9:
        return "All directions have the same noise: the shares are equal."
    return (
        f"{labels[most]} puts {spread.max():.3g} times as much noise on its worst direction as on "
        "its best. Shaded: the favoured directions."
    )


def accounts_caption(table: pd.DataFrame, comparison: Comparison) -> str:
    """Return how far the loosest account lies from the tightest."""
    labels = {r.mechanism.text: r.mechanism.label for r in comparison.results}
    ordered = table.sort_values("std")
    least, most = ordered.iloc[0], ordered.iloc[-1]
    factor = most["std"] / least["std"]
    return (
        f"At {budget_words(comparison.budget)} {labels[str(most['mechanism'])]} asks for "
        f"{factor:.3g} times the noise of {labels[str(least['mechanism'])]} (equal shares): that "
        "is the distance between the loosest account here and the tightest, not a price of "
        "privacy."
    )


def curve_caption(
    bands: pd.DataFrame,
    best: pd.DataFrame,
    axis: str,
    metric: str,
    mechanisms: Sequence[Mechanism],
) -> str:
    """Return which variant is best along an axis, and where that changes."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    name = METRICS[metric].label
    if bands.empty:
        return f"None of the chosen mechanisms has a {name}."
    if best.empty:
        return f"Mean {name} along {axis}: nowhere do these draws single out one mechanism."
    runs: list[tuple[str, float]] = []
    for mechanism, x in zip(best["mechanism"], best["x"], strict=True):
        if not runs or runs[-1][0] != mechanism:
            runs.append((str(mechanism), float(x)))
    if len(runs) == 1:
        return (
            f"Among claims that hold, {labels[runs[0][0]]} has the best {name} wherever draws "
            "can tell."
        )
    words = [f"{labels[mechanism]} from {axis} {x:.3g}" for mechanism, x in runs]
    return f"Best {name} among claims that hold: {', '.join(words)}."


def row_bound_caption(bands: pd.DataFrame, mechanisms: Sequence[Mechanism]) -> str:
    """Return what clipping harder gains and costs."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    parts = []
    for mechanism, table in bands.groupby("mechanism", sort=False):
        top = table.iloc[int(table["mean"].to_numpy().argmax())]
        last = table.iloc[int(table["x"].to_numpy().argmax())]
        if str(mechanism) in labels and top["x"] < last["x"]:
            parts.append(
                f"{labels[str(mechanism)]} does best at R = {top['x']:.3g} ({top['mean']:.3g} "
                f"against {last['mean']:.3g} at the largest norm)"
            )
    start = (
        "A smaller bound scales long rows down, which loses signal (bias), and lowers the noise by "
        "its square. "
    )
    if not parts:
        return start + "Here no mechanism gains from clipping harder than the largest norm."
    return start + "; ".join(parts) + ". Choosing the bound by this curve uses the data."


def claims_verdict(claims: pd.DataFrame) -> str:
    """Return how many claims are false here, from `dpviz.refutations.claims_now`."""
    made = claims[claims["claimed_epsilon"].notna() & (claims["status"] != CANNOT_RUN)]
    words = VERDICT_WORDS[Verdict.REFUTED]
    false = made[made["status"].str.endswith(words)]
    start = f"Of {len(made)} privacy claims, {len(false)} are false at this setting"
    if false.empty:
        return f"Of {len(made)} privacy claims, none is known to be false at this setting."
    return f"{start}: {join_words(false['mechanism'])}."


def support_caption(table: pd.DataFrame, epsilon: float, d: int) -> str:
    """Return how often a release betrays its table, counted beside exact."""
    row = table[table["epsilon"] == epsilon].iloc[0]
    return (
        f"At a claimed epsilon of {epsilon:g} and d = {d}, {int(row['outside']):,} of "
        f"{int(row['draws']):,} releases betrayed their table: {100 * row['share']:.1f} % (99 % "
        f"interval {100 * row['low']:.1f} to {100 * row['high']:.1f} %), exactly "
        f"{100 * row['exact']:.1f} % in every dimension. No larger epsilon covers them."
    )


def cone_caption(table: pd.DataFrame) -> str:
    """Return what the picture of the cone shows."""
    broken, repaired = list(dict.fromkeys(table["mechanism"]))
    part = table[(table["mechanism"] == broken) & (table["table"] != table["table"].iloc[0])]
    return (
        f"{broken}: noise is never negative, so every release lies in a cone above its table, and "
        f"the cone moves with the table: {int(part['outside'].sum())} of {len(part)} of the "
        f"neighbour's releases (crosses) are impossible for the full table. {repaired}: both signs "
        "of noise occur, there is no cone, and no release is impossible for either table."
    )


def turning_caption(table: pd.DataFrame, label: str) -> str:
    """Return how far the published direction turns."""
    angles = table.groupby("table", sort=False)["angle"].mean().to_list()
    spread = table.groupby("table", sort=False)["angle"].agg(lambda x: x.max() - x.min()).max()
    same = "the same in every draw" if spread < 1e-6 else f"within {spread:.2g} degrees over draws"
    return (
        f"{label}: one person's row turns the published direction by "
        f"{abs(angles[1] - angles[0]):.0f} degrees, {same}. Noise on the scores does not touch it."
    )


def delta_caption(table: pd.DataFrame) -> str:
    """Return how far the true delta exceeds the claimed one."""
    claimed = float(table["claimed_delta"].iloc[0])
    parts = []
    for (mechanism, relation), part in table.groupby(["mechanism", "relation"], sort=False):
        above = part[part["true_delta"] > claimed]
        if above.empty:
            parts.append(f"{mechanism} under {relation} keeps its claim throughout")
            continue
        last, start = part.iloc[-1], above["epsilon"].iloc[0]
        where = f"from about epsilon {start:.2g} on"
        if start == part["epsilon"].iloc[0]:
            where = "at every epsilon drawn"
        parts.append(
            f"{mechanism} under {relation} exceeds delta {claimed:.2g} {where} and reaches "
            f"{last['true_delta']:.2g} at {last['epsilon']:.3g}"
        )
    return (
        f"{'; '.join(parts)}. Replacing a row moves A by sqrt(2) where the proof has 1, and the "
        "classical scale is proved for epsilon below 1 only."
    )


def spending_caption(table: pd.DataFrame) -> str:
    """Return who spends more than claimed, and who far less."""
    over = table[(table["ratio"] > 1 + 1e-6) | table["spent"].isna()]
    positive, nothing = table[table["spent"] > 0], table[table["spent"] == 0]
    words = (
        f"More than claimed: {join_words(over['mechanism'])}. "
        if len(over)
        else "No mechanism spends more than it claims here. "
    )
    if len(nothing):
        verb = "spends" if len(nothing) == 1 else "spend"
        words += (
            f"{join_words(nothing['mechanism'])} {verb} epsilon 0: so much noise that delta alone "
            "covers the release. "
        )
    if len(positive) and positive["ratio"].iloc[-1] < 0.99:
        low = positive.iloc[-1]
        words += (
            f"{low['mechanism']} spends {low['spent']:.2g} of {low['claimed']:g}: noise that buys "
            "privacy nobody asked for."
        )
    return words.strip()


def gibbs_caption(table: pd.DataFrame) -> str:
    """Return how far chains are from the exact mean at their start and at their end."""
    exact = float(table["exact"].iloc[0])
    ends = table[table["sweep"] == table["sweep"].max()]
    first = (table[table["sweep"] == 0]["mean"] - exact).abs().max()
    inside = ((ends["low"] <= exact) & (exact <= ends["high"])).all()
    told = "cannot be told from it" if inside else "still differ from it"
    return (
        f"Chains from opposite starts begin up to {first:.2g} from the exact mean of {exact:.4f} "
        f"and after {int(ends['sweep'].iloc[0])} sweeps {told} (99 % bars). The law is private; "
        "what a finite chain adds has no proof, so the status says approximate."
    )


def attack_caption(seen: Curve) -> str:
    """Return how to read a trade-off curve."""
    how = "An attacker reaches this curve" if seen.exact else "No attacker gets below this curve"
    return (
        f"{how} ({seen.source}). The closer to the lower left corner, the surer the attacker; on "
        "the dashed line the release says nothing."
    )


def posterior_caption(table: pd.DataFrame, prior: float, exact: bool) -> str:
    """Return what an alarm of a careful test leaves believed."""
    most = "" if exact else "at most "
    row = table.iloc[(table["alpha"] - 0.05).abs().argmin()]
    return (
        f"A test that sounds for {percent(row['alpha'])} of absent people sounds for "
        f"{most}{percent(1 - row['beta'])} of those present; its alarm lifts a belief of "
        f"{percent(prior)} to {most}{percent(row['posterior'])}."
    )


def mean_leak_caption(table: pd.DataFrame) -> str:
    """Return what the example of the mean shows, from `dpviz.refutations.mean_leak_table`."""
    worst = float((table["recovered"] - table["true"]).abs().max())
    same = "exactly" if worst < 1e-9 else f"within {worst:.2g}"
    return (
        "Six times the published mean, less the sum of the five known rows, is the last row "
        f"{same}."
    )


def bound_leak_caption(table: pd.DataFrame) -> str:
    """Return what the example of the row bound shows."""
    bounds, known = table["published_bound"].tolist(), float(table["largest_known"].iloc[0])
    return (
        f"A published bound of {bounds[0]:.1f} is above the longest known row, {known:.1f}: the "
        f"last person is in, and their row has just that length. Without them it is "
        f"{bounds[1]:.1f}. An observer is never wrong."
    )


_AUDIT_WORDS = {
    AuditVerdict.REFUTED: "✗ Refuted: the claim is false",
    AuditVerdict.CONSISTENT: "Consistent: nothing seen contradicts the claim, which proves nothing",
    AuditVerdict.TIGHT: "✓ Tight: what is seen comes close to the whole claim",
}


def audit_verdict(found: Audit) -> str:
    """Return the verdict of an audit and its bounds beside the claim, in words."""
    claim = "nothing claimed" if found.claim is None else f"claimed {budget_words(found.claim)}"
    verdict = _AUDIT_WORDS[found.verdict] if found.claim is not None else "No claim to judge"
    at = "" if found.claim is None or found.claim.delta == 0 else f" at delta {found.claim.delta:g}"
    words = f"{verdict}. {claim.capitalize()}; found epsilon at least {found.epsilon_lower:.3g}{at}"
    if found.delta_lower > 0:
        words += f", and delta at least {found.delta_lower:.2g} at epsilon {found.at_epsilon:.3g}"
    return f"{words}."


def reproduction_sentence(found: Reproduction) -> str:
    """Return how many of a paper's numbers and statements were met."""
    counts = Counter(line.agreement for line in found.lines)
    told = sum(counts.values()) - counts[Agreement.ADDED]
    said = [f"**{counts[Agreement.AGREES]} agree**", f"**{counts[Agreement.DIFFERS]} differ**"]
    if counts[Agreement.ABSENT]:
        said.append(f"{counts[Agreement.ABSENT]} wait for data")
    if counts[Agreement.NOT_MEASURED]:
        said.append(f"{counts[Agreement.NOT_MEASURED]} cannot be redone from the paper")
    subject = "1 number or statement" if told == 1 else f"{told} numbers and statements"
    return f"Of {subject} in the paper, {', '.join(said[:-1])} and {said[-1]}."


def time_words(done: int, total: int, left: float | None) -> str:
    """Return how far a run is and how long it will take."""
    so_far = f"{done} of {total} parts"
    return so_far if left is None else f"{so_far}, about {duration(left)} left"


def duration(seconds: float) -> str:
    """Return a length of time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
