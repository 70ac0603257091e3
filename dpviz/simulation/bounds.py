"""What papers state, beside what is measured: bounds, growth of the noise.

A function says of itself whether its constant is proved or whether it gives a
scaling only. Scalings are drawn as slopes, never as values to be met. Formulas
are for rows in the unit ball; noise scales grow with R^2 on other domains.
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


# Where a component appears -------------------------------------------------


def found_at(
    mechanism: Mechanism, problem: Problem, delta: float, eigenvalues: FloatArray, most: int
) -> FloatArray:
    """Return the epsilon from which on each of the first components is found, as predicted.

    Found: released turned by less than 45 degrees (`dpviz.simulation.predict.direction_overlaps`),
    whatever else the spectrum holds.

    Parameters
    ----------
    mechanism : Mechanism
    problem : Problem
    delta : float
    eigenvalues : ndarray of shape (d,)
        Of A, in squared row bounds, descending.
    most : int
        How many components.

    Returns
    -------
    ndarray of shape (most,)
        Interpolated between the points of a grid from 0.01 to 100, 12 to a decade; the grid's low
        end where it is found from there on, infinite where it is not found at its high end.
    """
    grid = np.geomspace(0.01, 100, 49)
    overlaps = np.zeros((len(grid), most))
    for place, epsilon in enumerate(grid):
        budget = Budget(float(epsilon), delta)
        if mechanism.why_not(problem, budget) is not None:
            continue  # outside its own range a mechanism shows nothing
        noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
        if noise is None:
            raise CannotRun(mechanism.text, "its noise has no limiting law on A")
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


# Subspaces -----------------------------------------------------------------


def davis_kahan(k: int, noise_norm: float, gap: float) -> float | None:
    """Return the bound on ||VV' - V^V^'||_F, or None where the theorem is silent.

    ``2 sqrt(k) ||W||_2/gap`` if ``gap >= 2 ||W||_2``. Proved, constant included.

    Parameters
    ----------
    k : int
    noise_norm : float
        Spectral norm of any symmetric noise.
    gap : float
        lambda_k - lambda_(k+1).

    Source
    ------
    Jiang et al. 2016, Theorem 6; the conclusion is true for any symmetric noise.
    """
    if not gap > 0 or gap < 2 * noise_norm:
        return None
    return 2 * math.sqrt(k) * noise_norm / gap


# Wishart noise -------------------------------------------------------------


def wishart_tail(d: int, m: float, c: float, eta: float) -> float:
    """Return what the top eigenvalue of W_d(m, c I) exceeds with probability at most eta.

    ``(m + sqrt(2 m t (d + 2)) + 2 t d) c`` with ``t = ln(d/eta)``. Proved,
    constant included, and loose: the eigenvalue is near 4 d c at m = d + 1.

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

    For the published Wishart mechanism, ball, replace. Proved, constant
    included.

    Parameters
    ----------
    d : int
    epsilon, eta : float
    rho : float
        At least 1/sqrt(2) and below 1.
    gap : float
        lambda_1 - lambda_2 of A.
    reading : {"paper", "ours"}
        The paper's Theorem 7, or ours: its proof drops a square root. From
        ``2 - 2 rho^2 <= (2 ||W||/gap)^2`` the noise may be as large as
        ``gap sqrt((1 - rho^2)/2)`` where the paper allows ``gap (1 - rho^2)``,
        which is never larger for rho >= 1/sqrt(2); so ours is the smaller n,
        and both are enough.

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
    """Return the same for `wishart_difference`: its norm is the larger of two Wishart norms.

    ``-W2 <= W1 - W2 <= W1``, so each of the two may fail with eta/2. Proved,
    constant included. Parameters are those of `wishart_sample_size`.
    """
    _positive("epsilon", epsilon)
    scale = (1.0 if relation is Relation.REPLACE else 0.5) / epsilon
    return _noise_sample_size(d, scale, rho, eta / 2, gap, reading)


def _noise_sample_size(
    d: int, scale: float, rho: float, eta: float, gap: float, reading: str
) -> float:
    """Return the n at which W_d(d + 1, scale/n I) stays within what Theorem 6 allows."""
    _open_unit("eta", eta)
    _positive("scale", scale)
    _positive("gap", gap)
    if not math.sqrt(0.5) <= rho < 1:
        raise InvalidSetting("rho", "from 0.7071 to below 1", rho)
    if reading not in ("paper", "ours"):
        raise InvalidSetting("reading", "paper or ours", reading)
    short = 1 - rho**2
    allowed = gap * (short if reading == "paper" else math.sqrt(short / 2))
    return wishart_tail(d, d + 1, scale, eta) / allowed


# Other sample sizes --------------------------------------------------------


def ppca_sample_size(
    d: int, epsilon: float, rho: float, eta: float, first: float, second: float
) -> float:
    """Return an n at which `ppca` with k = 1 has |<v^_1, v_1>| >= rho, probability 1 - eta.

    Proved, constant included, for exact draws under replace.

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

    None where the theorem is silent: d <= 2, gap above 1/2, or
    ``rho < 1 - (1 - phi)/16`` with ``1 - phi = exp(-2 (ln 8 + ln(1 + e^d))/(d - 2))``.
    The constant is **our reading** of a line that is garbled in print; draw it
    as such.

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
    """Return d^1.5 sqrt(ln(d/delta))/epsilon: **scaling only** of the n MOD-SULQ needs.

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
    """Return sqrt(d): **scaling only** of how much less noise Wishart adds than Laplace.

    Theorem 5 as printed asks for a sensitivity ratio of sqrt(d ln d); the
    paper's own rates give sqrt(d)/ln d, and without the logarithm that
    measurement does not show, sqrt(d).

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
    """The growth in d of the noise's spectral norm that a paper states.

    Attributes
    ----------
    label : str
        As printed, without n and epsilon.
    exponent : float
        The power of d, logarithms left out.
    logarithm : float
        The power of ln d; measurement shows none for the Wishart.
    """

    label: str
    exponent: float
    logarithm: float

    def of(self, d: float) -> float:
        """Return the stated growth at d, **scaling only**."""
        return math.pow(d, self.exponent) * math.pow(math.log(d), self.logarithm)

    def power_over(self, dimensions: Sequence[float]) -> float:
        """Return the power of d that a fit finds for the stated growth itself.

        Over a finite range a logarithm looks like a power; this is what a
        measured power is to be compared with.
        """
        return fitted_power(dimensions, [self.of(d) for d in dimensions])[0]


# Jiang et al. 2016, Table 1: the papers' own statements, for the mechanism of that name.
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
        Positive; at least two different dimensions.
    errors : sequence of float, optional
        Standard errors of the values; default none.

    Notes
    -----
    Dimensions count alike in the fit: with weights by precision the largest,
    whose norms hardly vary, would decide alone.
    """
    x = np.log(np.asarray(dimensions, dtype=float))
    means = np.asarray(values, dtype=float)
    centred = x - x.mean()
    leverage = centred / (centred @ centred)
    power = float(leverage @ np.log(means))
    if errors is None:
        return power, 0.0
    relative = np.asarray(errors, dtype=float) / means
    return power, float(np.sqrt(np.sum((leverage * relative) ** 2)))
