"""Sentences of the Claims page."""

from __future__ import annotations

import math

import pandas as pd

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import loss_beyond
from dpviz.auditing import Audit, AuditVerdict
from dpviz.auditing.attack import Curve, check_prior, excess_probability
from dpviz.auditing.blackbox import BlackBox
from dpviz.core.number_text import decimals, numeral, per_cent, percent
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.release import Verdict
from dpviz.report.sentences.phrases import (
    BELIEVED,
    belief,
    belief_words,
    budget_words,
    capital,
    join_words,
)


def sentence(
    claim: Budget | None,
    spent: Spent | None,
    prior: float = 0.5,
    relation: Relation = Relation.REPLACE,
    unit: Unit = Unit.ROW,
) -> str:
    """Return one plain sentence on what a release lets an attacker learn about one row or person.

    Parameters
    ----------
    claim : Budget or None
        What is promised.
    spent : Spent or None
        What holds; None where no epsilon describes the release.
    prior : float
        The attacker's belief, before.
    relation : Relation
    unit : Unit
        Which, and whose, neighbours are told apart.
    """
    check_prior(prior)
    if spent is None or not math.isfinite(spent.epsilon):
        promise = "" if claim is None else " whatever its claim,"
        return (
            f"A belief of {belief(prior)} {BELIEVED[relation, unit]} can become certain after this "
            "release:"
            f"{promise} no epsilon limits what it gives away."
        )
    if spent.epsilon == 0 and spent.delta == 0:
        return (
            "An attacker learns nothing about anybody from this release, because it does not "
            "depend on the data."
        )
    known = capital(belief_words(prior, spent, relation, unit))
    start = f"{known}, whoever knows every other row"
    if spent.delta == 0:
        return f"{start}."
    return f"{start}, but for rare releases: {beyond_words(spent)}."


def beyond_words(spent: Spent) -> str:
    """Return how likely a release exceeds the epsilon spent; delta is not that probability."""
    # with an exact Gaussian profile the chance itself is known, and no bound is needed
    if spent.mu is not None and spent.exact and math.isfinite(spent.mu):
        often = loss_beyond(spent.epsilon, spent.mu)
        times = f", {decimals(often / spent.delta, 0)} times delta" if spent.delta > 0 else ""
        return (
            f"a loss beyond epsilon {numeral(spent.epsilon, 3)} comes up with probability "
            f"{numeral(often)}{times}, mostly little beyond"
        )
    limit = excess_probability(spent.epsilon, spent.delta, 1.0)
    return (
        f"a loss beyond epsilon {numeral(spent.epsilon, 3)} + t comes up with probability at most "
        f"{numeral(spent.delta)}/(1 - e^-t), which is {numeral(limit)} for t = 1"
    )


def headline(claims: pd.DataFrame) -> str:
    """Return how many claims do not hold here, and how many are not proved.

    Parameters
    ----------
    claims : DataFrame
        `dpviz.auditing.table.claims_now`.
    """
    made = claims[claims["claimed_epsilon"].notna() & (claims["verdict"] != "")]
    failing = [Verdict(verdict) for verdict in made["verdict"] if Verdict(verdict).fails]
    if not failing:
        return f"All {len(made)} do."
    # nothing known breaks what nobody has proved
    open_ = failing.count(Verdict.UNPROVEN)
    said = f"{len(failing) - open_} of {len(made)} do not"
    return f"{said}, {open_} {'is' if open_ == 1 else 'are'} not proved." if open_ else f"{said}."


def support_caption(table: pd.DataFrame, epsilon: float, d: int) -> str:
    """Return how often a release betrays its table, counted beside exact."""
    row = table[table["epsilon"] == epsilon].iloc[0]
    share, low, high, exact = (
        decimals(100 * row[name], 1) for name in ("share", "low", "high", "exact")
    )
    return (
        f"At a claimed epsilon of {numeral(epsilon, 6)} and d = {d}, {int(row['outside']):,} of "
        f"{int(row['draws']):,} releases betrayed their table: {per_cent(share)} (99 % "
        f"interval {low} to {per_cent(high)}), exactly "
        f"{per_cent(exact)} in every dimension. No larger epsilon covers them."
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
    same = (
        "the same in every draw"
        if spread < 1e-6
        else f"within {numeral(spread)} degrees over draws"
    )
    return (
        f"{label}: one person's row turns the published direction by "
        f"{decimals(abs(angles[1] - angles[0]), 0)} degrees, {same}. Noise on the scores does not "
        "touch it."
    )


def mask_caption(table: pd.DataFrame) -> str:
    """Return what the mirrored mask publishes."""
    off = float((table["read_off"] - table["exact"]).abs().max())
    size = float(table["exact"].abs().max())
    # within the rounding of the table's own numbers
    exactly = "to the last digit" if off <= 1e-12 * size else f"to within {numeral(off, 1)}"
    return (
        "MOD-SULQ adds symmetric noise. One public implementation fills the lower half of the "
        "noise from the data's upper half instead of the noise's: below the diagonal the release "
        f"is then twice the table's own entry, and all {len(table)} are read off {exactly}, at "
        "any epsilon."
    )


def sampler_caption(table: pd.DataFrame) -> str:
    """Return what the two libraries draw, beside the law."""
    exact, theirs = float(table["mean"].iloc[0]), float(table["mean"].iloc[-1])
    libraries = table.iloc[2:-1]
    seen = join_words(
        f"{row['sampler']} {decimals(row['mean'], 3)} (standard error {decimals(row['se'], 4)}, "
        f"{row['measured']})"
        for row in libraries.to_dict("records")
    )
    return (
        f"The mean of u_1^2 under the density exp(8 u_1^2) on the sphere is {decimals(exact, 3)}. "
        "Measured: "
        f"{seen}. Their acceptance test divides by a factor that it should multiply by, which "
        f"leads to {decimals(theirs, 3)}: a sharper law, so more is spent than is claimed."
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
        where = f"from about epsilon {numeral(start)} on"
        # the first that was drawn is no place where anything begins
        if start == part["epsilon"].iloc[0]:
            where = "at every epsilon drawn"
        parts.append(
            f"{mechanism} under {relation} exceeds delta {numeral(claimed)} {where} and reaches "
            f"{numeral(last['true_delta'])} at {numeral(last['epsilon'], 3)}"
        )
    return (
        f"{'; '.join(parts)}. Replacing a row moves A by sqrt(2) where the proof has 1, and the "
        "classical scale is proved for epsilon below 1 only."
    )


def gibbs_caption(table: pd.DataFrame) -> str:
    """Return how far chains are from the exact mean at their start and at their end."""
    exact = float(table["exact"].iloc[0])
    # both starts, after the last sweep
    ends = table[table["sweep"] == table["sweep"].max()]
    first = (table[table["sweep"] == 0]["mean"] - exact).abs().max()
    inside = ((ends["low"] <= exact) & (exact <= ends["high"])).all()
    told = "cannot be told from it" if inside else "still differ from it"
    return (
        f"Chains from opposite starts begin up to {numeral(first)} from the exact mean of "
        f"{decimals(exact, 4)} "
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
    kind = Kind.MEASUREMENT if exact else Kind.UPPER_BOUND
    # the point nearest to one false alarm in twenty, the usual level of a test
    row = table.iloc[(table["alpha"] - 0.05).abs().argmin()]
    return (
        f"A test that sounds for {percent(row['alpha'])} of absent people sounds for "
        f"{Quantity(1 - row['beta'], kind).percent()} of those present; its alarm lifts a belief "
        f"of {percent(prior)} to {Quantity(row['posterior'], kind).percent()}."
    )


def mean_leak_caption(table: pd.DataFrame) -> str:
    """Return what the example of the mean shows, from `dpviz.auditing.exhibits.mean_leak_table`."""
    worst = float((table["recovered"] - table["true"]).abs().max())
    same = "exactly" if worst < 1e-9 else f"within {numeral(worst)}"
    return f"n times the published mean, less the sum of the known rows, is the last row {same}."


def bound_leak_caption(table: pd.DataFrame) -> str:
    """Return what the example of the row bound shows."""
    bounds, known = table["published_bound"].tolist(), float(table["largest_known"].iloc[0])
    return (
        f"A published bound of {decimals(bounds[0], 1)} is above the longest known row, "
        f"{decimals(known, 1)}: the "
        f"last person is in, and their row has just that length. Without them it is "
        f"{decimals(bounds[1], 1)}. An observer is never wrong."
    )


_AUDIT_WORDS = {
    AuditVerdict.REFUTED: "✗ Refuted: the claim is false",
    AuditVerdict.CONSISTENT: "Consistent: nothing seen contradicts the claim, which proves nothing",
    AuditVerdict.TIGHT: "✓ Tight: the claim is proved, and spends nearly all of what it promises",
}


def audit_verdict(found: Audit) -> str:
    """Return the verdict of an audit and its bounds beside the claim, in words."""
    claim = "nothing claimed" if found.claim is None else f"claimed {budget_words(found.claim)}"
    verdict = _AUDIT_WORDS[found.verdict] if found.claim is not None else "No claim to judge"
    at = (
        ""
        if found.claim is None or found.claim.delta == 0
        else f" at delta {numeral(found.claim.delta)}"
    )
    # at the claimed delta: a bound on epsilon means nothing without the delta beside it
    least = numeral(found.epsilon_lower, 3)
    words = f"{verdict}. {claim.capitalize()}; found epsilon at least {least}{at}"
    if found.delta_lower > 0:
        where = numeral(found.at_epsilon, 3)
        words += f", and delta at least {numeral(found.delta_lower)} at epsilon {where}"
    return f"{words}."


def black_box_words(found: BlackBox) -> list[str]:
    """Return what the audit of a function says beside the audit of one pair of tables."""
    claim, hidden, fit = found.audit.budget, found.hidden, found.fit
    claimed = numeral(claim.epsilon, 3)
    if math.isfinite(found.sees):
        sees = f"would see an epsilon of {numeral(found.sees, 3)} where {claimed} is claimed"
    else:
        sees = f"are too few to refute an epsilon of {claimed}, whatever the function does"
    tried = join_words(str(d) for d in found.dimensions)
    of = "" if fit.normal else ", though the scores are not normal"
    return [
        f"Power: so many draws {sees}, by the most telling event there can be.",
        f"Tables of {tried} features were tried, and those of {found.audit.problem.d} tell most.",
        f"{hidden.runs:,} runs with hidden rows: {hidden.right:,} of {hidden.guesses:,} guesses "
        f"are right, which takes an epsilon of at least {numeral(hidden.epsilon_lower, 3)}.",
        f"A normal fit to the scores{of}: epsilon {numeral(fit.epsilon, 3)} at delta "
        f"{numeral(fit.delta)}. It is no bound.",
    ]
