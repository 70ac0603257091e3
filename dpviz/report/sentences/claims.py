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
    loss: Spent | None,
    prior: float = 0.5,
    relation: Relation = Relation.REPLACE,
    unit: Unit = Unit.ROW,
) -> str:
    """Return one plain sentence on what a release reveals about one row or person.

    Parameters
    ----------
    claim : Budget or None
        Privacy loss that the mechanism promises.
    loss : Spent or None
        Actual privacy loss; None if no epsilon describes the release.
    prior : float
        The attacker's belief before the release.
    relation : Relation
    unit : Unit
        Neighbouring relation, and the protected unit.
    """
    check_prior(prior)
    if loss is None or not math.isfinite(loss.epsilon):
        promise = "" if claim is None else ", whatever the mechanism claims"
        return (
            f"After this release, a belief of {belief(prior)} {BELIEVED[relation, unit]} can "
            f"become certain. No epsilon limits what the release reveals{promise}."
        )
    if loss.epsilon == 0 and loss.delta == 0:
        return (
            "An attacker learns nothing about anybody from this release, because it does not "
            "depend on the data."
        )
    belief_text = capital(belief_words(prior, loss, relation, unit))
    start = f"{belief_text}, even for an attacker who knows every other row"
    if loss.delta == 0:
        return f"{start}."
    return f"{start}, except in rare releases: {beyond_words(loss)}."


def beyond_words(loss: Spent) -> str:
    """Return how likely a release exceeds the actual epsilon, a probability other than delta."""
    # An exact Gaussian profile gives the probability itself, so no bound is needed.
    if loss.mu is not None and loss.exact and math.isfinite(loss.mu):
        often = loss_beyond(loss.epsilon, loss.mu)
        times = f", {decimals(often / loss.delta, 0)} times delta" if loss.delta > 0 else ""
        return (
            f"the loss exceeds epsilon {numeral(loss.epsilon, 3)} with probability "
            f"{numeral(often)}{times}, mostly by only a little"
        )
    limit = excess_probability(loss.epsilon, loss.delta, 1.0)
    return (
        f"the loss exceeds epsilon {numeral(loss.epsilon, 3)} + t with probability at most "
        f"{numeral(loss.delta)}/(1 - e^-t), which is {numeral(limit)} for t = 1"
    )


def headline(claims: pd.DataFrame) -> str:
    """Return how many claims do not hold here, and how many are not proved.

    Parameters
    ----------
    claims : DataFrame
        `dpviz.auditing.table.claims_now`.
    """
    judged_claims = claims[claims["claimed_epsilon"].notna() & (claims["verdict"] != "")]
    failing = [Verdict(verdict) for verdict in judged_claims["verdict"] if Verdict(verdict).fails]
    if not failing:
        return f"All {len(judged_claims)} do."
    # Count unproved claims separately from failed ones, because no attack on them is known.
    open_ = failing.count(Verdict.UNPROVEN)
    text = f"{len(failing) - open_} of {len(judged_claims)} do not"
    return f"{text}, {open_} {'is' if open_ == 1 else 'are'} not proved." if open_ else f"{text}."


def support_caption(table: pd.DataFrame, epsilon: float, d: int) -> str:
    """Return how often releases reveal their table, as counted and as computed exactly."""
    row = table[table["epsilon"] == epsilon].iloc[0]
    share, low, high, exact = (
        decimals(100 * row[name], 1) for name in ("share", "low", "high", "exact")
    )
    return (
        f"At a claimed epsilon of {numeral(epsilon, 6)} with {d} features, {int(row['outside']):,} "
        f"of {int(row['draws']):,} releases revealed their table. The measured share is "
        f"{per_cent(share)} (99 % interval {low} to {per_cent(high)}); the exact share is "
        f"{per_cent(exact)} for every number of features. No epsilon, however large, covers these "
        "releases."
    )


def cone_caption(table: pd.DataFrame) -> str:
    """Return the caption of the cone chart."""
    broken, repair = list(dict.fromkeys(table["mechanism"]))
    part = table[(table["mechanism"] == broken) & (table["table"] != table["table"].iloc[0])]
    return (
        f"The noise of {broken} has no negative eigenvalue, so every release lies in a cone above "
        f"its table. The cone moves with the table: {int(part['outside'].sum())} of {len(part)} "
        "releases of the neighbour (crosses) are impossible for the full table. The noise of "
        f"{repair} has eigenvalues of both signs, so no release is impossible for either table."
    )


def turning_caption(table: pd.DataFrame, label: str) -> str:
    """Return how far the published direction turns if one row changes."""
    angles = table.groupby("table", sort=False)["angle"].mean().to_list()
    spread = table.groupby("table", sort=False)["angle"].agg(lambda x: x.max() - x.min()).max()
    same = (
        "the same angle in every simulated release"
        if spread < 1e-6
        else f"constant to within {numeral(spread)} degrees in all simulated releases"
    )
    return (
        f"{label}: one person's row turns the published direction by "
        f"{decimals(abs(angles[1] - angles[0]), 0)} degrees, {same}. Noise on the scores does not "
        "change this angle."
    )


def mask_caption(table: pd.DataFrame) -> str:
    """Return what the mirrored mask would publish."""
    off = float((table["read_off"] - table["exact"]).abs().max())
    size = float(table["exact"].abs().max())
    # Treat smaller differences as none, because they come from rounding.
    exactly = "to the last digit" if off <= 1e-12 * size else f"to within {numeral(off, 1)}"
    return (
        "MOD-SULQ adds symmetric noise. One public implementation fills the lower half of the "
        "noise from the data's upper half instead of from the noise. Below the diagonal, each "
        f"released entry is then twice the table's entry. An attacker reads all {len(table)} "
        f"entries {exactly}, at any epsilon."
    )


def sampler_caption(table: pd.DataFrame) -> str:
    """Return how the samples of two libraries compare with the proved distribution."""
    exact, theirs = float(table["mean"].iloc[0]), float(table["mean"].iloc[-1])
    libraries = table.iloc[2:-1]
    means = join_words(
        f"{row['sampler']} {decimals(row['mean'], 3)} (standard error {decimals(row['se'], 4)}, "
        f"{row['measured']})"
        for row in libraries.to_dict("records")
    )
    return (
        f"The mean of u_1^2 under the density exp(8 u_1^2) on the sphere is {decimals(exact, 3)}. "
        f"Measured: {means}. The libraries' acceptance test divides by a factor instead of "
        f"multiplying by it, which leads to a mean of {decimals(theirs, 3)}. The resulting "
        "distribution is sharper, so its privacy loss exceeds the claim."
    )


def delta_caption(table: pd.DataFrame) -> str:
    """Return how far the true delta exceeds the claimed delta."""
    limit = float(table["claimed_delta"].iloc[0])
    parts = []
    for (mechanism, relation), part in table.groupby(["mechanism", "relation"], sort=False):
        above = part[part["true_delta"] > limit]
        if above.empty:
            parts.append(f"{mechanism} under {relation} keeps its claim at every epsilon")
            continue
        last, start = part.iloc[-1], above["epsilon"].iloc[0]
        where = f"from about epsilon {numeral(start)} upward"
        # If the excess is there at the chart's first epsilon, it may begin before this epsilon.
        if start == part["epsilon"].iloc[0]:
            where = "at every epsilon in the chart"
        parts.append(
            f"{mechanism} under {relation} exceeds delta {numeral(limit)} {where} and reaches "
            f"{numeral(last['true_delta'])} at {numeral(last['epsilon'], 3)}"
        )
    return (
        f"{'; '.join(parts)}. Replacing a row can move the matrix A by sqrt(2), but the proof "
        "assumes 1. The noise scale is proved only for epsilon below 1."
    )


def gibbs_caption(table: pd.DataFrame) -> str:
    """Return how far Markov chains are from the exact mean at their start and at their end."""
    exact = float(table["exact"].iloc[0])
    # These are the mean scores of chains from both starts, after the last sweep.
    ends = table[table["sweep"] == table["sweep"].max()]
    first = (table[table["sweep"] == 0]["mean"] - exact).abs().max()
    inside = ((ends["low"] <= exact) & (exact <= ends["high"])).all()
    result = "cannot be distinguished from this mean" if inside else "still differ from this mean"
    return (
        f"Chains from opposite starts begin up to {numeral(first)} from the exact mean of "
        f"{decimals(exact, 4)} and after {int(ends['sweep'].iloc[0])} sweeps {result} (99 % bars). "
        "The exact distribution is private, but nothing is proved about a finite chain. The "
        "mechanism's status is therefore approximate."
    )


def attack_caption(curve: Curve) -> str:
    """Return how to read a trade-off curve."""
    how = "An attacker can reach this curve" if curve.exact else "No attacker gets below this curve"
    return (
        f"{how} ({curve.source}). The closer the curve is to the lower left corner, the surer the "
        "attacker. On the dashed line the release reveals nothing."
    )


def posterior_caption(table: pd.DataFrame, prior: float, exact: bool) -> str:
    """Return the belief after an alarm of a careful membership test."""
    kind = Kind.MEASUREMENT if exact else Kind.UPPER_BOUND
    # Use the point nearest to one false alarm in twenty, which is a usual level for tests.
    row = table.iloc[(table["alpha"] - 0.05).abs().argmin()]
    return (
        f"A test that raises a false alarm for {percent(row['alpha'])} of absent people raises "
        f"an alarm for {Quantity(1 - row['beta'], kind).percent()} of present people. An alarm "
        f"lifts a belief of {percent(prior)} to {Quantity(row['posterior'], kind).percent()}."
    )


def mean_leak_caption(table: pd.DataFrame) -> str:
    """Return what the example of the mean shows, from `dpviz.auditing.exhibits.mean_leak_table`."""
    worst = float((table["recovered"] - table["true"]).abs().max())
    same = "exactly" if worst < 1e-9 else f"within {numeral(worst)}"
    return f"The published mean times the row count, minus the known rows, is the last row {same}."


def bound_leak_caption(table: pd.DataFrame) -> str:
    """Return what the example of the row-norm bound shows."""
    bounds, largest = table["published_bound"].tolist(), float(table["largest_known"].iloc[0])
    return (
        f"A published bound of {decimals(bounds[0], 1)} is above the longest known row, "
        f"{decimals(largest, 1)}. So the last person is in the table, with a row as long as the "
        f"bound. Without this person the bound is {decimals(bounds[1], 1)}. An observer of the "
        "bound is never wrong about this person."
    )


_AUDIT_WORDS = {
    AuditVerdict.REFUTED: "✗ Refuted: the claim is false",
    AuditVerdict.CONSISTENT: (
        "Consistent: no simulated release contradicts the claim, but this does not prove the claim"
    ),
    AuditVerdict.TIGHT: (
        "✓ Tight: the claim is proved, and the actual privacy loss is nearly as large as claimed"
    ),
}


def audit_verdict(audit: Audit) -> str:
    """Return the verdict of an audit, and its bounds with the claim, in words."""
    claim = "nothing claimed" if audit.claim is None else f"claimed {budget_words(audit.claim)}"
    verdict = _AUDIT_WORDS[audit.verdict] if audit.claim is not None else "No claim to judge"
    at = (
        ""
        if audit.claim is None or audit.claim.delta == 0
        else f" at delta {numeral(audit.claim.delta)}"
    )
    # Name the claimed delta, because a bound on epsilon means nothing without its delta.
    least = numeral(audit.epsilon_lower, 3)
    words = f"{verdict}. {claim.capitalize()}; the attack shows an epsilon of at least {least}{at}"
    if audit.delta_lower > 0:
        where = numeral(audit.at_epsilon, 3)
        words += f", and a delta of at least {numeral(audit.delta_lower)} at epsilon {where}"
    return f"{words}."


def black_box_words(answer: BlackBox) -> list[str]:
    """Return what the audit of a function adds to the audit of one pair of tables."""
    claim, hidden, fit = answer.audit.budget, answer.hidden, answer.fit
    level = numeral(claim.epsilon, 3)
    if math.isfinite(answer.sees):
        sees = f"would detect an epsilon of {numeral(answer.sees, 3)} if {level} is claimed"
    else:
        sees = f"are too few to refute an epsilon of {level}, whatever the function does"
    sizes = join_words(str(d) for d in answer.dimensions)
    of = "" if fit.normal else ", which are not normal,"
    return [
        f"Power: this number of simulated releases {sees}, with the most revealing event possible.",
        f"We tried tables of {sizes} features; tables of {answer.audit.problem.d} features reveal "
        "most.",
        f"In {hidden.runs:,} runs the attack guesses which planted rows are in the table: "
        f"{hidden.right:,} of {hidden.guesses:,} guesses are right. This many right guesses are "
        f"possible only if epsilon is at least {numeral(hidden.epsilon_lower, 3)}.",
        f"A normal fit to the scores{of} gives epsilon {numeral(fit.epsilon, 3)} at delta "
        f"{numeral(fit.delta)}. This fit is an estimate, not a bound.",
    ]
