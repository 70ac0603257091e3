"""Numbers for the Claims page: the failing claims, the size of each failure, an attacker's gain.

Every table is recomputed from the mechanisms themselves, so a change of a mechanism also changes
its exhibit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import ive

from dpviz.accounting.gaussian import delta_of
from dpviz.auditing import DEFAULT_D
from dpviz.auditing.attack import ATTACK_LEVELS
from dpviz.auditing.bounds import lower_limit, upper_limit
from dpviz.auditing.table import every_mechanism
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.datasets.builtin.school import the_class
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.mechanisms.laplace_output import LaplaceOutput
from dpviz.mechanisms.ppca import Ppca
from dpviz.mechanisms.wishart import Wishart
from dpviz.mechanisms.wishart_difference import WishartDifference
from dpviz.preparation.bounding import prepare
from dpviz.sampling.stiefel import stiefel_bingham
from dpviz.simulation.simulate import Named, Trials, simulate

SUPPORT_COLUMNS = ("epsilon", "draws", "outside", "share", "low", "high", "exact")
CONE_COLUMNS = ("mechanism", "table", "half_trace", "radius", "outside")
TURNING_COLUMNS = ("table", "draw", "first", "second", "angle")
DELTA_COLUMNS = ("mechanism", "relation", "epsilon", "true_delta", "claimed_delta")
GIBBS_COLUMNS = ("start", "sweep", "mean", "low", "high", "exact")

WITH, WITHOUT = "with the row", "row zeroed"
FROM_MODE, FROM_UNIFORM = "the best subspace", "a random subspace"

EPSILONS: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
"""Values of epsilon at which demonstrations run and among which a reader chooses."""

DELTA = 1e-5
"""Delta of exhibits that need a delta, if the setting has none."""

LIMIT_CONFIDENCE = 0.99
"""Confidence of each single Clopper-Pearson interval and band of chain means."""
ATTACK_LEVELS.setflags(write=False)

# The noise of a demonstration is in units of 1/n, so no result depends on n.
_N = 100
_DELTA_EPSILONS = np.geomspace(0.1, 20.0, 25)
_ROUNDING = 1e-6

# The exhibit on Gibbs sampling uses these variances of three features of 100 people.
_VARIANCES = (0.5, 0.3, 0.1)
_NORMAL_99 = 2.5758293035489004


def moving_cone() -> AdditiveMechanism:
    """Return the mechanism with one-sided noise that claims pure epsilon."""
    return Wishart()


def repaired_cone() -> AdditiveMechanism:
    """Return the mechanism of the same family whose noise has full support."""
    return WishartDifference()


def bare_directions() -> Mechanism:
    """Return the mechanism that adds noise to rows only, whose pure claim is false."""
    return LaplaceOutput()


def drawn_by_a_chain() -> Mechanism:
    """Return the mechanism whose subspaces a Gibbs chain may sample."""
    return Ppca()


def _problem(d: int, relation: Relation) -> Problem:
    return Problem(_N, d, 1, relation, Domain.ball(d))


# One-sided noise fails, because its smallest value moves with the data. ---------------------------


def support_table(d: int, epsilon: float, seed: int, trials: int = 1_000) -> pd.DataFrame:
    """Return how often a neighbour's release is impossible for the table itself.

    The row e_1 is zeroed. The release counts as outside if subtracting the full table's moment
    leaves a negative eigenvalue. Any observer can compute this test.

    Parameters
    ----------
    d : int
        Number of features, at least 2.
    epsilon : float
        A value of epsilon that is added to `EPSILONS`.
    seed, trials : int

    Returns
    -------
    DataFrame
        `SUPPORT_COLUMNS`, one row per epsilon, ascending. ``low`` and ``high`` are Clopper-Pearson
        limits at `LIMIT_CONFIDENCE`; ``exact`` is `impossible_share`.
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
                "exact": impossible_share(value),
            }
        )
    return pd.DataFrame(rows, columns=list(SUPPORT_COLUMNS))


def impossible_share(epsilon: float) -> float:
    """Return the probability that a zeroed table's release is impossible for the full table.

    The probability is 1 - exp(-1/(2 n c)) at the mechanism's scale c in every dimension, because
    1/(v'W^-1 v) is c times a chi-square with two degrees of freedom.
    """
    scale = moving_cone().calibrate(_problem(2, Relation.ZERO_OUT), Budget(epsilon)).scale
    return -math.expm1(-1 / (2 * _N * scale))


def cone_table(epsilon: float, seed: int, size: int = 150) -> pd.DataFrame:
    """Return releases at d = 2 as points: half the trace, and the radius around it.

    A symmetric 2 x 2 matrix is positive semi-definite exactly when its radius
    sqrt(((D11 - D22)/2)^2 + D12^2) is at most half its trace, so the legal releases fill a cone.

    Parameters
    ----------
    epsilon : float
    seed : int
    size : int
        Number of releases of each table by each mechanism.

    Returns
    -------
    DataFrame
        `CONE_COLUMNS`: release minus the full table's moment, in units of 1/n, for the published
        mechanism and its repair. ``outside`` marks releases that the full table can never make; the
        repair has none, because its noise reaches every symmetric matrix.
    """
    problem = _problem(2, Relation.ZERO_OUT)
    row = np.diag([1.0, 0.0])
    tables = []
    for mechanism in (moving_cone(), repaired_cone()):
        scale = mechanism.calibrate(problem, Budget(epsilon)).scale * _N
        for table, change in ((WITH, 0.0), (WITHOUT, 1.0)):
            label = f"{mechanism.key} {table}"
            draws = Draws.batch(generator(seed, "refutations", "cone", label), size)
            noise = scale * mechanism.standard_noise(problem, draws) - change * row
            half = (noise[:, 0, 0] + noise[:, 1, 1]) / 2
            radius = np.hypot((noise[:, 0, 0] - noise[:, 1, 1]) / 2, noise[:, 0, 1])
            impossible = mechanism.dominates_input and table == WITHOUT
            tables.append(
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
    return pd.concat(tables, ignore_index=True)[list(CONE_COLUMNS)]


# Noise on rows alone fails, because the leading direction turns. ----------------------------------

_OTHERS = np.array([[0.8, 0.0], [0.0, 0.9]])
_PERSON = np.array([1.0, 0.0])


def turning_rows() -> pd.DataFrame:
    """Return the two tables of the exhibit: three people, two features, one row zeroed."""
    rows = np.vstack([_OTHERS, _PERSON, 0 * _PERSON])
    people = ["first", "second", f"third, {WITH}", f"third, {WITHOUT}"]
    return pd.DataFrame({"person": people, "feature 1": rows[:, 0], "feature 2": rows[:, 1]})


def turning_table(epsilon: float, seed: int) -> pd.DataFrame:
    """Return the first direction that the mechanism publishes for either table.

    Parameters
    ----------
    epsilon : float
    seed : int

    Returns
    -------
    DataFrame
        `TURNING_COLUMNS`, for three releases of each table; ``angle`` is in degrees from the first
        feature. The squares of the columns are (1.64, 0.81) with the row and (0.64, 0.81) with the
        row zeroed. So the first direction turns from one feature to the other, whatever noise is
        added to the scores.
    """
    mechanism = bare_directions()
    problem = Problem(3, 2, 1, Relation.REPLACE, Domain.ball(2))
    calibration = mechanism.calibrate(problem, Budget(epsilon))
    records = []
    for table, person in ((WITH, _PERSON), (WITHOUT, 0 * _PERSON)):
        rows = np.vstack([_OTHERS, person])
        data = SecondMoment(rows.T @ rows / len(rows), len(rows), rows)
        streams = Named(seed, f"refutations turning {table}", range(3))
        (frames,) = simulate(
            [Trials(mechanism, calibration, data, streams)], lambda _, release: release.components
        )
        for number, (first, second) in enumerate(frames[:, :, 0], start=1):
            angle = math.degrees(math.atan2(abs(second), abs(first)))
            records.append((table, number, first, second, angle))
    return pd.DataFrame(records, columns=list(TURNING_COLUMNS))


# Delta at large epsilon ----------------------------------------------------------


def delta_table(delta: float) -> pd.DataFrame:
    """Return the true delta of Gaussian mechanisms that exceed their claimed delta.

    Parameters
    ----------
    delta : float
        Claimed delta, above 0 and below 1.

    Returns
    -------
    DataFrame
        `DELTA_COLUMNS`, under both relations, on a grid of epsilon from 0.1 to 20. The table lists
        every mechanism that is one Gaussian query and whose exact delta exceeds its claim at the
        least, the middle or the largest epsilon.
    """
    if not (0 < delta < 1):
        raise InvalidSetting("delta", "above 0 and below 1", delta, "--delta")
    rows = []
    grid = _DELTA_EPSILONS.tolist()
    for mechanism in every_mechanism():
        if mechanism.info.guarantee != "approximate":
            continue
        few = _true_deltas(mechanism, delta, (grid[0], grid[len(grid) // 2], grid[-1]))
        if any(true > delta * (1 + _ROUNDING) for *_, true in few):
            rows += [
                (mechanism.label, relation, epsilon, true, delta)
                for relation, epsilon, true in _true_deltas(mechanism, delta, grid)
            ]
    return pd.DataFrame(rows, columns=list(DELTA_COLUMNS))


def _true_deltas(
    mechanism: Mechanism, delta: float, epsilons: Iterable[float]
) -> list[tuple[str, float, float]]:
    """Return (relation, epsilon, exact delta) if the release is one Gaussian query."""
    deltas = []
    for relation, epsilon in product(Relation, epsilons):
        problem, budget = _problem(DEFAULT_D, relation), Budget(epsilon, delta)
        if mechanism.why_not(problem, budget) is not None:
            continue
        parts = mechanism.calibrate(problem, budget).parts
        if len(parts) == 1 and isinstance(parts[0], GaussianPart):
            deltas.append((str(relation), epsilon, delta_of(epsilon, parts[0].mu)))
    return deltas


# Convergence of Gibbs chains -------------------------------------------------------


def gibbs_table(epsilon: float, seed: int, chains: int = 2_000) -> pd.DataFrame:
    """Return the mean score of Gibbs chains after each of eight sweeps, beside the exact mean.

    At d = 3, k = 2 the chain's law is known. The score of V is tr B - z'Bz, with z the direction
    that V leaves out, so z has the Bingham law of -B.

    Parameters
    ----------
    epsilon : float
        Epsilon of the exponential mechanism under replace, for 100 people with variances .5, .3,
        .1.
    seed : int
    chains : int
        At least 4. Even-numbered chains start at the best subspace, the others at random.

    Returns
    -------
    DataFrame
        `GIBBS_COLUMNS`. Scores are shares of the best score; ``low`` and ``high`` are normal limits
        of the mean at `LIMIT_CONFIDENCE`.
    """
    if chains < 4:
        raise InvalidSetting("chains", "at least 4", chains)
    values = _N * epsilon / 2 * np.array(_VARIANCES)
    draws = Draws.batch(generator(seed, "refutations", "gibbs"), chains)
    sample = stiefel_bingham(values, 2, draws, 8)
    best = float(values[:2].sum())
    exact = (float(values.sum()) - left_out_mean(values)) / best
    rows = []
    for start, mask in ((FROM_MODE, sample.from_mode), (FROM_UNIFORM, ~sample.from_mode)):
        for sweep, scores in enumerate(sample.trace[:, mask] / best):
            mean = float(scores.mean())
            reach = _NORMAL_99 * float(scores.std(ddof=1)) / math.sqrt(len(scores))
            rows.append((start, sweep, mean, mean - reach, mean + reach, exact))
    return pd.DataFrame(rows, columns=list(GIBBS_COLUMNS))


def left_out_mean(values: FloatArray) -> float:
    """Return E z'Bz for z on the sphere with density ~ exp(-z'Bz), by quadrature.

    Parameters
    ----------
    values : ndarray of shape (3,)
        Eigenvalues of B, with differences up to some thousands.

    Notes
    -----
    At height h along the axis of the least eigenvalue c, let m and s be the mean and half the
    difference of the other two eigenvalues. Then z'Bz is c h^2 + (1 - h^2)(m + s cos t) for a
    uniform angle t, weighted by exp(-(1 - h^2) s cos t). The integrals are Bessel functions I0 and
    I1 of (1 - h^2) s.
    """
    c, b, a = np.sort(values)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    # Integrate over t with h = 1 - t^2: nodes are then dense at the pole, where probability may be.
    t, width = (nodes + 1) / 2, weights / 2
    shrunk = t**2 * (2 - t**2)  # This is 1 - h^2, because h = 1 - t^2.
    m, s = (a + b) / 2 - c, (a - b) / 2
    inner = ive(0, s * shrunk)
    mass = width * 2 * t * np.exp((s - m) * shrunk) * inner
    bessel_term = s * ive(1, s * shrunk) / inner
    return float(c + (mass * shrunk * (m - bessel_term)).sum() / mass.sum())


# Exploring reveals a row: means and bounds of synthetic tables with one row left out. -------------

MEAN_COLUMNS = ("feature", "sum_of_known", "published_mean", "recovered", "true")
BOUND_COLUMNS = ("table", "largest_known", "published_bound")

# Use thirty synthetic pupils; the attacker knows all rows except the last one.
_FEATURES, _PEOPLE = the_class()


def _published(rows: FloatArray, center: str) -> tuple[FloatArray, float]:
    """Return the mean and the row-norm bound that preparing a table makes public."""
    settings = replace(Settings(), center=center, row_bound="max", scale="none", domain="ball")
    table = prepare(Table("invented class", rows.copy(), _FEATURES), settings)
    return table.transform.center, table.row_bound


def mean_leak_table() -> pd.DataFrame:
    """Return how the mean of a table reveals the last row to someone who knows the others.

    Returns
    -------
    DataFrame
        `MEAN_COLUMNS`: n times the published mean minus the sum of the known rows is the last row.
    """
    mean, _ = _published(_PEOPLE, "mean")
    sum_of_others = _PEOPLE[:-1].sum(axis=0)
    recovered_row = len(_PEOPLE) * mean - sum_of_others
    return pd.DataFrame(
        {
            "feature": _FEATURES,
            "sum_of_known": sum_of_others,
            "published_mean": mean,
            "recovered": recovered_row,
            "true": _PEOPLE[-1],
        }
    )[list(MEAN_COLUMNS)]


def bound_leak_table() -> pd.DataFrame:
    """Return how a row-norm bound from the data reveals whether the last person is present.

    Returns
    -------
    DataFrame
        `BOUND_COLUMNS`: with the person, the bound is the length of their row. With the row zeroed,
        the bound is the longest known length. An observer who knows that length is never wrong.
    """
    longest_other = float(np.linalg.norm(_PEOPLE[:-1], axis=1).max())
    neighbour = _PEOPLE.copy()
    neighbour[-1] = 0.0
    rows = [
        (table, longest_other, _published(people, "none")[1])
        for table, people in ((WITH, _PEOPLE), (WITHOUT, neighbour))
    ]
    return pd.DataFrame(rows, columns=list(BOUND_COLUMNS))


DECLARED = {"homework": 6.0, "sport": 6.0, "phone": 16.0}
"""The largest value of each feature that somebody could declare beforehand."""


@dataclass(frozen=True, eq=False)
class Leak:
    """A table, its published facts, and the private values that these facts reveal.

    Attributes
    ----------
    features : tuple of str
    rows : ndarray of shape (people, features)
        A synthetic table, whose last row the attacker does not know.
    axes : list of int
        The two features that the chart shows.
    mean, recovered : ndarray of shape (features,)
        The published mean, and the last row as computed from the mean and the other rows.
    bound_with, bound_without : float
        The largest row norm with the last row, and with the last row zeroed.
    declared_bound : float
        The largest row norm that the declared limits allow.
    """

    features: tuple[str, ...]
    rows: FloatArray
    axes: list[int]
    mean: FloatArray
    recovered: FloatArray
    bound_with: float
    bound_without: float
    declared_bound: float


def leak() -> Leak:
    """Compute the private values that a published mean and row-norm bound reveal."""
    means, bounds = mean_leak_table(), bound_leak_table()["published_bound"]
    return Leak(
        features=_FEATURES,
        rows=_PEOPLE.copy(),
        axes=[2, 0],
        mean=means["published_mean"].to_numpy(),
        recovered=means["recovered"].to_numpy(),
        bound_with=float(bounds.iloc[0]),
        bound_without=float(bounds.iloc[1]),
        declared_bound=float(np.linalg.norm([DECLARED[name] for name in _FEATURES])),
    )
