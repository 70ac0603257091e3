"""Theoretical results from papers, to compare with measurements: bounds and noise growth.

Each function states whether its constant is proved or only the scaling is known. Scalings are
plotted as slopes, never as values to be met. Formulas are for rows in the unit ball; noise scales
grow with R^2 on other domains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.mechanisms._base import Mechanism
from dpviz.sampling.limits import SemiCircle
from dpviz.simulation.predict import FOUND, direction_overlaps


def _open_unit(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InvalidSetting(name, "above 0 and below 1", value)


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidSetting(name, "a positive number", value)


# From which epsilon a component is found -----------------------------------


def found_at(
    mechanism: Mechanism, problem: Problem, delta: float, eigenvalues: FloatArray, most: int
) -> FloatArray:
    """Return the epsilon from which each of the first components is predicted to be found.

    A component is found if its release is turned by less than 45 degrees
    (`dpviz.simulation.predict.direction_overlaps`), whatever else the spectrum holds.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
    delta : float
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of A, in squared row-norm bounds, descending.
    most : int
        Number of components.

    Returns
    -------
    ndarray of shape (most,)
        Epsilons, interpolated between the points of a grid from 0.01 to 100, 12 per decade. The
        result is the grid's low end if the component is found on the whole grid, and infinite if it
        is not found at the high end.
    """
    grid = np.geomspace(0.01, 100, 49)
    overlaps = np.zeros((len(grid), most))
    for place, epsilon in enumerate(grid):
        budget = Budget(float(epsilon), delta)
        if mechanism.why_not(problem, budget) is not None:
            continue  # Where a mechanism cannot run, it finds no component.
        noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
        if noise is None:
            raise CannotRun(mechanism.text, "the large-d limit of its noise spectrum is not known")
        overlaps[place] = direction_overlaps(eigenvalues, noise, most)
    epsilons = np.full(most, math.inf)
    for component, along in enumerate(overlaps.T):
        hidden = np.flatnonzero(along < FOUND)
        last = int(hidden[-1]) if len(hidden) else -1
        if last == len(grid) - 1:
            continue
        if last < 0:
            epsilons[component] = grid[0]
            continue
        share = (FOUND - along[last]) / (along[last + 1] - along[last])
        epsilons[component] = grid[last] * (grid[last + 1] / grid[last]) ** share
    return epsilons


# Bounds on errors of subspaces ---------------------------------------------


def davis_kahan(k: int, noise_norm: float, gap: float) -> float | None:
    """Return the bound on ||VV' - V^V^'||_F, or None if the theorem does not apply.

    ``2 sqrt(k) ||W||_2/gap`` if ``gap >= 2 ||W||_2``. The bound is proved, constant included.

    Parameters
    ----------
    k : int
    noise_norm : float
        Spectral norm of any symmetric noise.
    gap : float
        lambda_k - lambda_(k+1).

    Source
    ------
    Jiang et al. 2016, Theorem 6; the conclusion holds for any symmetric noise.
    """
    if not gap > 0 or gap < 2 * noise_norm:
        return None
    return 2 * math.sqrt(k) * noise_norm / gap


# Bounds on eigenvalues of Wishart noise ------------------------------------


def wishart_tail(d: int, m: float, c: float, eta: float) -> float:
    """Return a value that the top eigenvalue of W_d(m, c I) exceeds with probability at most eta.

    ``(m + sqrt(2 m t (d + 2)) + 2 t d) c`` with ``t = ln(d/eta)``. The value is proved, constant
    included, and loose: the eigenvalue is near 4 d c at m = d + 1.

    Source
    ------
    Zhu 2012, as used in Jiang et al. 2016, with r = tr C/||C|| = d.
    """
    _open_unit("eta", eta)
    t = math.log(d / eta)
    return (m + math.sqrt(2 * m * t * (d + 2)) + 2 * t * d) * c


def wishart_sample_size(
    d: int, epsilon: float, rho: float, eta: float, gap: float, *, reading: str = "paper"
) -> float:
    """Return an n that makes |<v^_1, v_1>| >= rho with probability 1 - eta.

    The size is for the published Wishart mechanism on the ball under replace. It is proved,
    constant included.

    Parameters
    ----------
    d : int
    epsilon, eta : float
    rho : float
        Required overlap, at least 1/sqrt(2) and below 1.
    gap : float
        lambda_1 - lambda_2 of A.
    reading : {"paper", "ours"}
        "paper" is the paper's Theorem 7; "ours" corrects its proof, which drops a square root. From
        ``2 - 2 rho^2 <= (2 ||W||/gap)^2`` the noise may be as large as ``gap sqrt((1 - rho^2)/2)``.
        The paper allows ``gap (1 - rho^2)``, which is never larger for rho >= 1/sqrt(2). So "ours"
        gives the smaller n, and either n is enough.

    Source
    ------
    Jiang et al. 2016, Theorem 7.
    """
    return _noise_sample_size(d, 3 / (2 * epsilon), rho, eta, gap, reading)


def wishart_difference_sample_size(
    d: int,
    epsilon: float,
    rho: float,
    eta: float,
    gap: float,
    *,
    relation: Relation = Relation.REPLACE,
    reading: str = "ours",
) -> float:
    """Return the n of `wishart_sample_size` for `wishart_difference`.

    Its norm is the larger of two Wishart norms: ``-W2 <= W1 - W2 <= W1``, so each of the two may
    fail with eta/2. Proved, constant included. See `wishart_sample_size` for parameters.
    """
    _positive("epsilon", epsilon)
    scale = (1.0 if relation is Relation.REPLACE else 0.5) / epsilon
    return _noise_sample_size(d, scale, rho, eta / 2, gap, reading)


def _noise_sample_size(
    d: int, scale: float, rho: float, eta: float, gap: float, reading: str
) -> float:
    """Return the n at which W_d(d + 1, scale/n I) stays within the noise that Theorem 6 allows."""
    _open_unit("eta", eta)
    _positive("scale", scale)
    _positive("gap", gap)
    if not math.sqrt(0.5) <= rho < 1:
        raise InvalidSetting("rho", "from 0.7071 to below 1", rho)
    if reading not in ("paper", "ours"):
        raise InvalidSetting("reading", "paper or ours", reading)
    short = 1 - rho**2
    limit = gap * (short if reading == "paper" else math.sqrt(short / 2))
    return wishart_tail(d, d + 1, scale, eta) / limit


# Sample sizes from theorems ------------------------------------------------


def ppca_sample_size(
    d: int, epsilon: float, rho: float, eta: float, first: float, second: float
) -> float:
    """Return an n at which `ppca` with k = 1 has |<v^_1, v_1>| >= rho, probability 1 - eta.

    The size is proved, constant included, for exact sampling under replace.

    Parameters
    ----------
    first, second : float
        lambda_1 > lambda_2 of A.

    Source
    ------
    Chaudhuri, Sarwate and Sinha 2013, Theorem 3; Jiang et al. 2016, Theorem 8.
    """
    for name, value in (("eta", eta), ("rho", rho)):
        _open_unit(name, value)
    _positive("epsilon", epsilon)
    gap = first - second
    _positive("gap", gap)
    logs = math.log(1 / eta) / d + math.log(4 * first / ((1 - rho**2) * gap))
    return d / (epsilon * (1 - rho) * gap) * logs


def pure_lower_sample_size(d: int, epsilon: float, rho: float, gap: float) -> float | None:
    """Return an n below which no pure epsilon-DP method reaches rho on every table, or None.

    None if the theorem does not apply: d <= 2, gap above 1/2, or ``rho < 1 - (1 - phi)/16`` with
    ``1 - phi = exp(-2 (ln 8 + ln(1 + e^d))/(d - 2))``. The constant is **our reading** of a line
    that is garbled in print; plot it as such.

    Source
    ------
    Chaudhuri, Sarwate and Sinha 2013, Theorem 4.
    """
    _positive("epsilon", epsilon)
    _positive("gap", gap)
    _open_unit("rho", rho)
    if d <= 2 or gap > 0.5:
        return None
    slack = math.exp(-2 * (math.log(8) + float(np.logaddexp(0, d))) / (d - 2))
    if rho < 1 - slack / 16:
        return None
    base = d / (epsilon * gap)
    return max(base, math.sqrt(slack / 80) * base / math.sqrt(1 - rho))


def mod_sulq_scaling(d: int, epsilon: float, delta: float) -> float:
    """Return d^1.5 sqrt(ln(d/delta))/epsilon: **scaling only** of the n that MOD-SULQ needs.

    Source
    ------
    Chaudhuri, Sarwate and Sinha 2013, Theorem 5.
    """
    _positive("epsilon", epsilon)
    _open_unit("delta", delta)
    return d * math.sqrt(d * math.log(d / delta)) / epsilon


def low_rank_error_scaling(d: int, n: int, epsilon: float, next_eigenvalue: float) -> float:
    """Return lambda_(k+1) + d ln d/(n epsilon): **scaling only** of ||A - A^_k||_2.

    Source
    ------
    Jiang et al. 2016, Theorem 9, for the published Wishart mechanism.
    """
    _positive("epsilon", epsilon)
    return next_eigenvalue + d * math.log(d) / (n * epsilon)


def pure_error_floor_scaling(d: int, n: int, epsilon: float) -> float:
    """Return d/(n epsilon): **scaling only** of the least error of any pure epsilon-DP release.

    Source
    ------
    Jiang et al. 2016, Theorem 10.
    """
    _positive("epsilon", epsilon)
    return d / (n * epsilon)


def wishart_over_laplace_scaling(d: int) -> float:
    """Return sqrt(d): **scaling only** of the ratio of Laplace noise to Wishart noise.

    Theorem 5 as printed requires a sensitivity ratio of sqrt(d ln d). The paper's own rates give
    sqrt(d)/ln d and, without the logarithm that measurement does not show, sqrt(d).

    Source
    ------
    Jiang et al. 2016, Theorem 5 and Table 1.
    """
    return math.sqrt(d)


def noise_edge(s: float, d: int) -> float:
    """Return 2 s sqrt(d): the large-d spectral norm of i.i.d. noise of off-diagonal std s."""
    return SemiCircle(s, d).edges[1]


# --- growth of the noise --------------------------------------------------------------------------


@dataclass(frozen=True)
class StatedGrowth:
    """A paper's statement on how the noise's spectral norm grows with d.

    Attributes
    ----------
    label : str
        The statement as printed, without n and epsilon.
    exponent : float
        Power of d, without logarithms.
    logarithm : float
        Power of ln d, which measurement does not show for the Wishart.
    """

    label: str
    exponent: float
    logarithm: float

    def of(self, d: float) -> float:
        """Return the stated growth at d (**scaling only**)."""
        return math.pow(d, self.exponent) * math.pow(math.log(d), self.logarithm)

    def power_over(self, dimensions: Sequence[float]) -> float:
        """Return the power of d that fits the stated growth itself.

        Over a finite range a logarithm looks like a power. Compare a measured power with the fitted
        power.
        """
        return fitted_power(dimensions, [self.of(d) for d in dimensions])[0]


# Table 1 of Jiang et al. 2016 states how the error of each mechanism grows with d.
JIANG_TABLE_1 = {
    "Laplace": StatedGrowth("d sqrt(d)", 1.5, 0.0),
    "SULQ": StatedGrowth("d sqrt(d ln d)", 1.5, 0.5),
    "Wishart": StatedGrowth("d ln d", 1.0, 1.0),
    "Analyze Gauss": StatedGrowth("sqrt(d)", 0.5, 0.0),
}


def fitted_power(
    dimensions: Sequence[float], values: Sequence[float], errors: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return the least-squares slope of log value in log d, and its standard error.

    Parameters
    ----------
    dimensions, values : sequence of float
        Positive numbers, with at least two different dimensions.
    errors : sequence of float, optional
        Standard errors of the values; by default unknown.

    Notes
    -----
    All dimensions have equal weight. With precision weights, the largest dimension would decide
    alone, because its norms hardly vary.
    """
    x = np.log(np.asarray(dimensions, dtype=float))
    means = np.asarray(values, dtype=float)
    deviation = x - x.mean()
    leverage = deviation / (deviation @ deviation)
    power = float(leverage @ np.log(means))
    if errors is None:
        return power, 0.0
    relative = np.asarray(errors, dtype=float) / means
    return power, float(np.sqrt(np.sum((leverage * relative) ** 2)))
