"""Numbers behind the Claims page: what fails, by how much, and what an attacker gains.

Every table is recomputed from the mechanisms themselves. They are found by what they say of
themselves, never by name, so that a changed mechanism changes its exhibit.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import ive

from dpviz.attack import (
    Curve,
    EmpiricalCurve,
    bounded_curve,
    curve,
    empirical_curve,
    posterior_bound,
    posterior_curve,
)
from dpviz.datasets import Table
from dpviz.errors import InvalidSetting
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.moments import FloatArray, SecondMoment
from dpviz.prepare import prepare
from dpviz.privacy.accounting import GaussianPart, Spent
from dpviz.privacy.audit import DEFAULT_D, DEFAULT_TRIALS, Audit, default_budget
from dpviz.privacy.audit.bounds import lower_limit, upper_limit
from dpviz.privacy.audit.exact import one_sided
from dpviz.privacy.gaussian import delta_of
from dpviz.problem import Budget, Domain, Problem, Relation
from dpviz.release import Status, Verdict
from dpviz.sampling.bingham import stiefel_bingham
from dpviz.seeding import Draws, generator
from dpviz.settings import Settings

CLAIM_COLUMNS = (
    "mechanism", "claim", "relation", "status", "claimed_epsilon", "spent_epsilon",
    "claimed_delta", "true_delta", "evidence", "command",
)  # fmt: skip
SUPPORT_COLUMNS = ("epsilon", "draws", "outside", "share", "low", "high", "exact")
CONE_COLUMNS = ("mechanism", "table", "half_trace", "radius", "outside")
TURNING_COLUMNS = ("table", "draw", "first", "second", "angle")
DELTA_COLUMNS = ("mechanism", "relation", "epsilon", "true_delta", "claimed_delta")
SPENDING_COLUMNS = ("mechanism", "claimed", "spent", "ratio", "exact", "status")
GIBBS_COLUMNS = ("start", "sweep", "mean", "low", "high", "exact")
MEAN_COLUMNS = ("feature", "sum_of_known", "published_mean", "recovered", "true")
BOUND_COLUMNS = ("table", "largest_known", "published_bound")
ATTACK_COLUMNS = ("alpha", "beta", "posterior")

CANNOT_RUN = "cannot run here"
STATUSES = (
    *(Status(verdict, "").marked for verdict in Verdict),
    Status(Verdict.REFUTED, "", settled=False).marked,
    CANNOT_RUN,
)
"""Every status that the claims table can show."""

WITH, WITHOUT = "with the row", "row zeroed"
FROM_MODE, FROM_UNIFORM = "the best subspace", "a random subspace"

EPSILONS: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
"""At which demonstrations run, and between which a reader chooses."""

LIMIT_CONFIDENCE = 0.99
"""Of each Clopper-Pearson interval and each band of chain means, by itself."""

ATTACK_LEVELS: FloatArray = np.union1d(np.geomspace(1e-6, 1.0, 121), np.linspace(0.0, 1.0, 201))
"""False alarms at which the attacker is drawn: close together near 0, where alarms say most."""
ATTACK_LEVELS.setflags(write=False)

# The noise of a demonstration is measured in units of 1/n, so n itself shows nowhere.
_N = 100
_DELTA_EPSILONS = np.geomspace(0.1, 20.0, 25)
_ROUNDING = 1e-6

# The Gibbs exhibit: variances of three features, of 100 people.
_VARIANCES = (0.5, 0.3, 0.1)
_NORMAL_99 = 2.5758293035489004


# Which mechanism stands for what -----------------------------------------------


def _first(found: Iterable[Mechanism], what: str) -> Mechanism:
    for mechanism in found:
        return mechanism
    raise LookupError(f"no mechanism is {what}")


def moving_cone() -> AdditiveMechanism:
    """Return the mechanism with one-sided noise that claims pure epsilon."""
    found = _first(
        (m for m in _all() if m.info.guarantee == "pure" and one_sided(m)),
        "one-sided under a pure claim",
    )
    assert isinstance(found, AdditiveMechanism)
    return found


def repaired_cone() -> AdditiveMechanism:
    """Return the mechanism of the same family whose noise has no support that moves."""
    broken = moving_cone().info
    found = _first(
        (
            m
            for m in _all()
            if (m.info.family, m.info.guarantee) == (broken.family, broken.guarantee)
            and isinstance(m, AdditiveMechanism)
            and not m.info.psd
        ),
        "two-sided in the family",
    )
    assert isinstance(found, AdditiveMechanism)
    return found


def bare_directions() -> Mechanism:
    """Return the mechanism that noises rows only, with a pure claim that is false."""
    problem, budget = _problem(2, Relation.REPLACE), Budget(1.0)
    return _first(
        (
            m
            for m in _all()
            if (m.info.guarantee, m.info.release) == ("pure", "data")
            and m.status(problem, budget).verdict is Verdict.REFUTED
        ),
        "a refuted release of rows",
    )


def _all() -> list[Mechanism]:
    return [cls() for cls in all_mechanisms().values()]


def _problem(d: int, relation: Relation) -> Problem:
    return Problem(_N, d, 1, relation, Domain.ball(d))


# Claims ---------------------------------------------------------------------------


def claims_now(problem: Problem, budget: Budget) -> pd.DataFrame:
    """Return what every mechanism promises and spends in one setting.

    Returns
    -------
    DataFrame
        `CLAIM_COLUMNS`. Missing numbers are None: no claim, or no epsilon that describes the
        release, or a mechanism that cannot run, whose reason is in the evidence.
    """
    rows = [_claim_row(mechanism, problem, budget) for mechanism in _all()]
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))


def _claim_row(mechanism: Mechanism, problem: Problem, budget: Budget) -> dict[str, object]:
    reason = mechanism.unable(problem, budget)
    claim = mechanism.claim(problem, budget)
    if reason is None:
        spent = mechanism.spent(problem, budget)
        status = mechanism.judged(problem, budget, spent)
        words, evidence = status.marked, status.evidence
    else:
        spent, words, evidence = None, CANNOT_RUN, f"Cannot run here: {reason}."
    finite = spent is not None and math.isfinite(spent.epsilon)
    return {
        "mechanism": mechanism.label,
        "claim": "no claim" if claim is None else _guarantee_words(mechanism),
        "relation": str(problem.relation),
        "status": words,
        "claimed_epsilon": None if claim is None else claim.epsilon,
        "spent_epsilon": spent.epsilon if spent is not None and finite else None,
        "claimed_delta": None if claim is None else claim.delta,
        "true_delta": spent.delta_at_epsilon if spent is not None and finite else None,
        "evidence": evidence,
        "command": audit_command(mechanism, problem, budget),
    }


def _guarantee_words(mechanism: Mechanism) -> str:
    pure = mechanism.info.guarantee == "pure"
    return "pure epsilon" if pure else "epsilon and delta"


def audit_command(
    mechanism: Mechanism,
    problem: Problem,
    budget: Budget,
    *,
    d: int = DEFAULT_D,
    trials: int = DEFAULT_TRIALS,
    seed: int = 0,
) -> str:
    """Return the command that audits a mechanism at a budget, on made-up tables.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
        Its relation and k are asked for; its n and d are not, since worst cases are made up.
    budget : Budget
    d, trials, seed : int
        Of the audit.
    """
    words = ["python", "-m", "dpviz", "audit", mechanism.text, "--epsilon", f"{budget.epsilon:g}"]
    if mechanism.info.guarantee == "approximate" and budget.delta > 0:
        words += ["--delta", f"{budget.delta:g}"]
    if d != DEFAULT_D:
        words += ["--dimension", str(d)]
    if trials != DEFAULT_TRIALS:
        words += ["--trials", str(trials)]
    if seed != 0:
        words += ["--seed", str(seed)]
    words += ["--k", str(min(problem.k, d - 1)), "--relation", str(problem.relation)]
    return shlex.join(words)


def filtered(claims: pd.DataFrame, status: str | None) -> pd.DataFrame:
    """Return the rows of `claims_now` with a status, or all of them."""
    return claims if status is None else claims[claims["status"] == status]


def spending_table(problem: Problem, budget: Budget) -> pd.DataFrame:
    """Return the epsilon that each mechanism claims beside the one it spends.

    Returns
    -------
    DataFrame
        `SPENDING_COLUMNS`, the largest overspending first; spent is NaN where no epsilon
        describes the release, and those come before all others.
    """
    rows = []
    for mechanism in _all():
        claim = mechanism.claim(problem, budget)
        if claim is None or mechanism.unable(problem, budget) is not None:
            continue
        spent = mechanism.spent(problem, budget)
        known = spent is not None and math.isfinite(spent.epsilon)
        epsilon = spent.epsilon if spent is not None and known else math.nan
        rows.append(
            {
                "mechanism": mechanism.label,
                "claimed": claim.epsilon,
                "spent": epsilon,
                "ratio": epsilon / claim.epsilon,
                "exact": spent is not None and spent.exact,
                "status": str(mechanism.status(problem, budget).verdict),
            }
        )
    table = pd.DataFrame(rows, columns=list(SPENDING_COLUMNS))
    return table.sort_values("ratio", ascending=False, na_position="first", ignore_index=True)


# The cone that moves -----------------------------------------------------------


def support_table(d: int, epsilon: float, seed: int, trials: int = 1_000) -> pd.DataFrame:
    """Return how often a neighbour's release falls where the table's can never fall.

    The row e_1 is zeroed, and the release counts as outside when subtracting the full table's
    moment leaves a negative eigenvalue: what any observer can compute.

    Parameters
    ----------
    d : int
        At least 2.
    epsilon : float
        Added to `EPSILONS`.
    seed, trials : int

    Returns
    -------
    DataFrame
        `SUPPORT_COLUMNS`, one row per epsilon, ascending. ``low`` and ``high`` are Clopper-Pearson
        limits at `LIMIT_CONFIDENCE`; ``exact`` is 1 - exp(-1/(2 n c)) at the mechanism's scale c,
        from 1/(v'W^-1 v) = c chi-square with two degrees of freedom.
    """
    mechanism, problem = moving_cone(), _problem(d, Relation.ZERO_OUT)
    draws = Draws.batch(generator(seed, "refutations", "support", d), trials)
    noise = mechanism.standard_noise(problem, draws)
    row = np.zeros((d, d))
    row[0, 0] = 1 / _N
    rest = (1 - LIMIT_CONFIDENCE) / 2
    rows = []
    for value in sorted({*EPSILONS, epsilon}):
        scale = mechanism.calibrate(problem, Budget(value)).scale
        lowest = np.linalg.eigvalsh(scale * noise - row)[:, 0]
        outside = int((lowest < 0).sum())
        rows.append(
            {
                "epsilon": value,
                "draws": trials,
                "outside": outside,
                "share": outside / trials,
                "low": float(lower_limit(outside, trials, rest)),
                "high": float(upper_limit(outside, trials, rest)),
                "exact": -math.expm1(-1 / (2 * _N * scale)),
            }
        )
    return pd.DataFrame(rows, columns=list(SUPPORT_COLUMNS))


def cone_table(epsilon: float, seed: int, size: int = 150) -> pd.DataFrame:
    """Return releases at d = 2 as points: half the trace, and the radius around it.

    A symmetric 2 x 2 matrix is positive semi-definite exactly when its radius
    sqrt(((D11 - D22)/2)^2 + D12^2) is at most half its trace, so the legal releases fill a cone.

    Parameters
    ----------
    epsilon : float
    seed : int
    size : int
        Draws for each table and mechanism.

    Returns
    -------
    DataFrame
        `CONE_COLUMNS`: release less the full table's moment, in units of 1/n, for the published
        mechanism and its repair. ``outside`` marks releases that the full table can never make;
        the repair has none, because its noise reaches every symmetric matrix.
    """
    problem = _problem(2, Relation.ZERO_OUT)
    row = np.diag([1.0, 0.0])
    found = []
    for mechanism in (moving_cone(), repaired_cone()):
        scale = mechanism.calibrate(problem, Budget(epsilon)).scale * _N
        for table, change in ((WITH, 0.0), (WITHOUT, 1.0)):
            label = f"{mechanism.key} {table}"
            draws = Draws.batch(generator(seed, "refutations", "cone", label), size)
            seen = scale * mechanism.standard_noise(problem, draws) - change * row
            half = (seen[:, 0, 0] + seen[:, 1, 1]) / 2
            radius = np.hypot((seen[:, 0, 0] - seen[:, 1, 1]) / 2, seen[:, 0, 1])
            impossible = one_sided(mechanism) and table == WITHOUT
            found.append(
                pd.DataFrame(
                    {
                        "mechanism": mechanism.label,
                        "table": table,
                        "half_trace": half,
                        "radius": radius,
                        "outside": (radius > half) & impossible,
                    }
                )
            )
    return pd.concat(found, ignore_index=True)[list(CONE_COLUMNS)]


# The direction that turns ------------------------------------------------------

_OTHERS = np.array([[0.8, 0.0], [0.0, 0.9]])
_PERSON = np.array([1.0, 0.0])


def turning_rows() -> pd.DataFrame:
    """Return the two tables of the exhibit: three people, two features, one row changed."""
    rows = np.vstack([_OTHERS, _PERSON, 0 * _PERSON])
    people = ["first", "second", f"third, {WITH}", f"third, {WITHOUT}"]
    return pd.DataFrame({"person": people, "feature 1": rows[:, 0], "feature 2": rows[:, 1]})


def turning_table(epsilon: float, seed: int, draws: int = 3) -> pd.DataFrame:
    """Return the first direction that the mechanism publishes for either table.

    Parameters
    ----------
    epsilon : float
    seed : int
    draws : int
        Releases of each table.

    Returns
    -------
    DataFrame
        `TURNING_COLUMNS`; ``angle`` is in degrees from the first feature. The squares of the
        columns are (1.64, 0.81) with the row and (0.64, 0.81) with it zeroed, so the first
        direction turns from one feature to the other, whatever noise the scores carry.
    """
    mechanism = bare_directions()
    problem = Problem(3, 2, 1, Relation.REPLACE, Domain.ball(2))
    calibration = mechanism.calibrate(problem, Budget(epsilon))
    found = []
    for table, person in ((WITH, _PERSON), (WITHOUT, 0 * _PERSON)):
        rows = np.vstack([_OTHERS, person])
        data = SecondMoment(rows.T @ rows / len(rows), len(rows), rows)
        streams = Draws.trials(seed, f"refutations turning {table}", range(draws))
        frames = mechanism.release_many(data, calibration, streams).components[:, :, 0]
        for number, (first, second) in enumerate(frames, start=1):
            angle = math.degrees(math.atan2(abs(second), abs(first)))
            found.append((table, number, first, second, angle))
    return pd.DataFrame(found, columns=list(TURNING_COLUMNS))


# Delta at large epsilon ----------------------------------------------------------


def delta_table(delta: float) -> pd.DataFrame:
    """Return the true delta of Gaussian releases that give more than they claim.

    Parameters
    ----------
    delta : float
        Claimed, above 0 and below 1.

    Returns
    -------
    DataFrame
        `DELTA_COLUMNS`, under both relations, on a grid of epsilon from 0.1 to 20, for every
        mechanism that is one Gaussian query and whose exact delta exceeds its claim at the least,
        the middle or the largest of them.
    """
    if not (0 < delta < 1):
        raise InvalidSetting("delta", "above 0 and below 1", delta, "--delta")
    found = []
    grid = _DELTA_EPSILONS.tolist()
    for mechanism in _all():
        if mechanism.info.guarantee != "approximate":
            continue
        few = _true_deltas(mechanism, delta, (grid[0], grid[len(grid) // 2], grid[-1]))
        if any(true > delta * (1 + _ROUNDING) for *_, true in few):
            found += [
                (mechanism.label, relation, epsilon, true, delta)
                for relation, epsilon, true in _true_deltas(mechanism, delta, grid)
            ]
    return pd.DataFrame(found, columns=list(DELTA_COLUMNS))


def _true_deltas(
    mechanism: Mechanism, delta: float, epsilons: Iterable[float]
) -> list[tuple[str, float, float]]:
    """Return (relation, epsilon, exact delta) where the release is one Gaussian query."""
    found = []
    for relation, epsilon in product(Relation, epsilons):
        problem, budget = _problem(DEFAULT_D, relation), Budget(epsilon, delta)
        if mechanism.unable(problem, budget) is not None:
            continue
        parts = mechanism.calibrate(problem, budget).parts
        if len(parts) == 1 and isinstance(parts[0], GaussianPart):
            found.append((str(relation), epsilon, delta_of(epsilon, parts[0].mu)))
    return found


# Chains that converge --------------------------------------------------------------


def gibbs_table(epsilon: float, seed: int, chains: int = 2_000, sweeps: int = 8) -> pd.DataFrame:
    """Return the mean score of Gibbs chains after each sweep, beside the exact mean.

    At d = 3, k = 2 the chain's law is known: the score of V is tr B - z'Bz with z the direction
    that V leaves out, so z has the Bingham law of -B.

    Parameters
    ----------
    epsilon : float
        Of the exponential mechanism under replace, for 100 people with variances .5, .3, .1.
    seed : int
    chains : int
        Even ones start at the best subspace, odd ones at a random one; at least 4.
    sweeps : int

    Returns
    -------
    DataFrame
        `GIBBS_COLUMNS`. Scores are shares of the best one; ``low`` and ``high`` are normal limits
        of the mean at `LIMIT_CONFIDENCE`.
    """
    if chains < 4:
        raise InvalidSetting("chains", "at least 4", chains)
    values = _N * epsilon / 2 * np.array(_VARIANCES)
    draws = Draws.batch(generator(seed, "refutations", "gibbs"), chains)
    drawn = stiefel_bingham(values, 2, draws, sweeps)
    best = float(values[:2].sum())
    exact = (float(values.sum()) - left_out_mean(values)) / best
    found = []
    for start, chosen in ((FROM_MODE, drawn.from_mode), (FROM_UNIFORM, ~drawn.from_mode)):
        for sweep, scores in enumerate(drawn.trace[:, chosen] / best):
            mean = float(scores.mean())
            reach = _NORMAL_99 * float(scores.std(ddof=1)) / math.sqrt(len(scores))
            found.append((start, sweep, mean, mean - reach, mean + reach, exact))
    return pd.DataFrame(found, columns=list(GIBBS_COLUMNS))


def left_out_mean(values: FloatArray) -> float:
    """Return E z'Bz for z on the sphere with density ~ exp(-z'Bz), by quadrature.

    Parameters
    ----------
    values : ndarray of shape (3,)
        Eigenvalues of B; differences up to some thousands.

    Notes
    -----
    At height h along the axis of the least eigenvalue c, with m and s the mean and half the
    difference of the other two, z'Bz is c h^2 + (1 - h^2)(m + s cos t) for a uniform angle t,
    weighted by exp(-(1 - h^2) s cos t): Bessel functions I0 and I1 of (1 - h^2) s.
    """
    c, b, a = np.sort(values)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    # t^2 rather than t below the pole: there lies the mass of a concentrated law
    t, width = (nodes + 1) / 2, weights / 2
    shrunk = t**2 * (2 - t**2)  # 1 - h^2 at h = 1 - t^2
    m, s = (a + b) / 2 - c, (a - b) / 2
    inner = ive(0, s * shrunk)
    mass = width * 2 * t * np.exp((s - m) * shrunk) * inner
    turned = s * ive(1, s * shrunk) / inner
    return float(c + (mass * shrunk * (m - turned)).sum() / mass.sum())


# The attacker ------------------------------------------------------------------


def attacker_curve(mechanism: Mechanism, problem: Problem, budget: Budget) -> Curve:
    """Return the trade-off of a membership test at `ATTACK_LEVELS`."""
    return curve(mechanism, problem, budget, ATTACK_LEVELS)


def limit_of(prior: float, spent: Spent | None) -> float | None:
    """Return the belief that the epsilon spent would allow without delta, if there is one."""
    if spent is None or not math.isfinite(spent.epsilon):
        return None
    return posterior_bound(prior, spent.epsilon)


def attack_table(seen: Curve, prior: float) -> pd.DataFrame:
    """Return a membership test's errors and what an alarm at each level leaves believed.

    Returns
    -------
    DataFrame
        `ATTACK_COLUMNS`.
    """
    return pd.DataFrame(
        {"alpha": seen.alpha, "beta": seen.beta, "posterior": posterior_curve(prior, seen)}
    )[list(ATTACK_COLUMNS)]


def exhibited(problem: Problem, budget: Budget) -> Mechanism:
    """Return the mechanism whose attacker is shown first: the first with an exact curve.

    Under a budget without delta that is the first that runs and makes a claim.
    """
    claiming = [
        m
        for m in _all()
        if m.info.guarantee != "none"
        and m.info.featured
        and m.unable(problem, budget) is None
        and m.spent(problem, budget) is not None
    ]
    exact = [m for m in claiming if curve(m, problem, budget).exact]
    return _first([*exact, *claiming, *_all()], "there")


def claimed_curve(claim: Budget) -> Curve:
    """Return the lowest trade-off that a claim allows."""
    return bounded_curve(claim, ATTACK_LEVELS)


def attack_seen_table(measured: EmpiricalCurve) -> pd.DataFrame:
    """Return an attack's trade-off with its band as a table."""
    return pd.DataFrame(
        {
            "alpha": measured.alpha,
            "beta": measured.beta,
            "low": measured.low,
            "high": measured.high,
        }
    )


def attack_seen(found: Audit) -> EmpiricalCurve:
    """Return the trade-off that an audit's own attack reached, on draws it was not chosen on."""
    return empirical_curve(found.measured.first, found.measured.second)


def audited_budget(mechanism: Mechanism, epsilon: float, budget: Budget) -> Budget:
    """Return what to audit at another epsilon: the setting's delta, where one is claimed."""
    if mechanism.info.guarantee == "approximate" and budget.delta > 0:
        return Budget(epsilon, budget.delta)
    return default_budget(mechanism, epsilon)


# What exploring gives away -----------------------------------------------------------

# Six invented people; the attacker knows all rows but the last.
_PEOPLE = np.array(
    [
        [34.0, 2.1, 3.0],
        [51.0, 3.4, 7.0],
        [29.0, 1.8, 2.0],
        [45.0, 2.9, 9.0],
        [38.0, 2.5, 4.0],
        [62.0, 9.7, 24.0],
    ]
)
_FEATURES = ("age", "income", "visits")


def _published(rows: FloatArray, center: str) -> tuple[FloatArray, float]:
    """Return the mean and the row bound that preparing a table makes public."""
    settings = replace(Settings(), center=center, row_bound="max", scale="none", domain="ball")
    prepared = prepare(Table("invented people", rows.copy(), _FEATURES), settings)
    return prepared.transform.center, prepared.row_bound


def mean_leak_table() -> pd.DataFrame:
    """Return how the mean of a table gives the last row away to who knows the others.

    Returns
    -------
    DataFrame
        `MEAN_COLUMNS`: n times the published mean less the sum of the known rows is the last row.
    """
    mean, _ = _published(_PEOPLE, "mean")
    known = _PEOPLE[:-1].sum(axis=0)
    recovered = len(_PEOPLE) * mean - known
    return pd.DataFrame(
        {
            "feature": _FEATURES,
            "sum_of_known": known,
            "published_mean": mean,
            "recovered": recovered,
            "true": _PEOPLE[-1],
        }
    )[list(MEAN_COLUMNS)]


def bound_leak_table() -> pd.DataFrame:
    """Return how a row bound taken from the data tells whether the last person is in it.

    Returns
    -------
    DataFrame
        `BOUND_COLUMNS`: with the person the bound is the length of their row; with the row zeroed
        it is the longest known one. An observer who knows that one is never wrong.
    """
    known = float(np.linalg.norm(_PEOPLE[:-1], axis=1).max())
    zeroed = _PEOPLE.copy()
    zeroed[-1] = 0.0
    rows = [
        (table, known, _published(people, "none")[1])
        for table, people in ((WITH, _PEOPLE), (WITHOUT, zeroed))
    ]
    return pd.DataFrame(rows, columns=list(BOUND_COLUMNS))
