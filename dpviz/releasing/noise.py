"""Discrete noise by OpenDP, the only vetted sampler that this project uses for real releases.

The second moment's upper triangle is a vector of whole numbers. Its diagonal is multiplied by 70
and the other entries by 99, so that one noise scale fits all entries. A symmetric matrix D has

    70^2 sum_i D_ii^2 + 99^2 sum_(i<j) D_ij^2 <= (99^2 / 2) ||D||_F^2,

and ||vv' - ww'||_F is at most sqrt 2 (replace) or 1 (zero-out) times the largest squared row. In
the norm of these weights the noise is the Gaussian orthogonal ensemble up to .005 %. OpenDP samples
discrete Gaussian noise (Canonne, Kamath & Steinke 2020) or discrete Laplace noise with entropy from
the system.

Gaussian noise is calibrated by the exact profile, which `dpviz.accounting.gaussian` proves for
discrete noise of this scale. The release claims that epsilon and delta. OpenDP's own privacy map
uses zero-concentrated privacy and proves 5 to 9 % more of epsilon; the release states it too. If
the map proves more, at a large epsilon or on a coarse grid, and for Laplace noise, it is claimed.

Other whole numbers may be released before the moment (the sum of rows for a private mean, or the
number of used rows) or after the moment (the counts of a map). Later releases may depend on earlier
ones. Each release uses a share of squared mu (of epsilon, for Laplace noise). Adaptive Gaussian
mechanisms compose exactly: mu^2 adds up. So all releases together cost what the moment alone would
at a sensitivity of D/sqrt(1 - shares). Rounded noise is their post-processing, and discrete noise
is within tau(s) of rounded noise a coordinate, one answer after the other: the corollary of
`dpviz.accounting.gaussian` holds with all coordinates counted. Rhos and pure epsilons add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from dpviz.accounting.composition import epsilon_of_rho, rho_meeting, rho_of_pure
from dpviz.accounting.gaussian import least_scale, proved_epsilon
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.core.platform import NO_OPENDP
from dpviz.core.problem import EPSILON_RANGE, Budget, Relation
from dpviz.releasing.grid import DIAGONAL_WEIGHT, OTHER_WEIGHT, IntArray


class NoOpenDP(DpvizError):
    """Raised if OpenDP is not installed."""


class Law(StrEnum):
    """The distribution of a release's discrete noise."""

    NORMAL = "discrete Gaussian"
    LAPLACE = "discrete Laplace"


@dataclass(frozen=True)
class Side:
    """A query with whole-number answers, released in addition to the moment, before or after it.

    Attributes
    ----------
    name : str
    share : float
        Share of squared mu, or of epsilon for Laplace noise; above 0.
    sensitivity : int
        Sensitivity in the norm of the noise distribution (l2 or l1), rounded up.
    entries : int
        Number of answers.
    scale : float
        Scale of the noise; 0 before calibration.
    """

    name: str
    share: float
    sensitivity: int
    entries: int
    scale: float = 0.0


@dataclass(frozen=True)
class Noise:
    """Discrete noise on the weighted upper triangle, and its proved privacy cost.

    Attributes
    ----------
    law : Law
    scale : float
        Scale of the noise, in weighted whole numbers.
    sensitivity : int
        Length of the largest change in l2 (Gaussian) or l1 (Laplace) norm, rounded up.
    proved : Budget
        The claimed budget: the lesser of two proofs.
    source : str
        Name of the proof, in a phrase.
    mapped : Budget
        Budget that OpenDP's privacy map proves for the same noise.
    rho : float
        The zCDP parameter that the map proves; for Laplace noise, the value that epsilon implies.
    sides : tuple of Side
        Queries released in addition to the moment; all proofs cover the whole release.
    """

    law: Law
    scale: float
    sensitivity: int
    proved: Budget
    source: str
    mapped: Budget
    rho: float
    sides: tuple[Side, ...] = ()

    def side(self, name: str) -> Side | None:
        """Return the additional query of the given name, or None."""
        return next((side for side in self.sides if side.name == name), None)

    def added(self, scale: float, values: list[int]) -> list[int]:
        """Return whole numbers with noise from this distribution, sampled once for a release."""
        return drawn(self.law, scale, values)


BY_MAP = "privacy map of OpenDP for discrete noise on whole numbers"
BY_THEOREM = (
    "exact Gaussian profile of rounded noise, of which discrete noise is within .02017/s^2 + "
    ".0062/s^4 in total variation a coordinate (theorem in dpviz.accounting.gaussian)"
)


def opendp() -> Any:
    """Return the module ``prelude`` of OpenDP.

    Raises
    ------
    NoOpenDP
        If OpenDP is not installed.
    """
    try:
        prelude = import_module("opendp.prelude")
    except ImportError:
        raise NoOpenDP(f"{NO_OPENDP}.") from None
    prelude.enable_features("contrib")
    return prelude


def opendp_version() -> str:
    """Return the version of OpenDP that is used."""
    opendp()
    return installed("opendp")


@cache
def installed(name: str) -> str:
    """Return the version of a package; cached, because a look-up reads all metadata."""
    return version(name)


def sensitivity_l2(relation: Relation, bits: int) -> int:
    """Return the largest change of the weighted upper triangle in l2 norm, rounded up.

    Parameters
    ----------
    relation : Relation
    bits : int
        Number of bits of the grid; squared rows are at most 4^bits.
    """
    if relation is Relation.REPLACE:
        return OTHER_WEIGHT << (2 * bits)
    square = (OTHER_WEIGHT * OTHER_WEIGHT) << (4 * bits)  # Twice the square of the sensitivity.
    # The root is taken in whole numbers and rounded up, because a double could be too small.
    return math.isqrt(-(-square // 2) - 1) + 1


def sensitivity_l1(relation: Relation, d: int, bits: int) -> int:
    """Return the largest change of the plain upper triangle in l1 norm, rounded up.

    Zero-out: (d + 1)/2. Replace: the lesser of d/sqrt 2 + 1 and sqrt((d^2 + 3d)/2).
    `dpviz.accounting.sensitivity.l1_upper` proves both bounds.
    """
    unit = 1 << (2 * bits)
    if relation is Relation.ZERO_OUT:
        return -(-(d + 1) * unit // 2)
    first = math.isqrt(d * d * unit * unit // 2) + 1 + unit
    second = math.isqrt((d * d + 3 * d) * unit * unit // 2) + 1
    return min(first, second)


MEAN = "mean"
"""Name of the query for the sum of rows."""


def mean_side(
    law: Law, relation: Relation, d: int, bits: int, rows: int = 1, *, share: float
) -> Side:
    """Return the query for the sum of rows of length at most 2^bits, times 99 2^bits.

    One row moves the sum by at most 2 2^bits (replace) or 2^bits (zero-out) in l2 norm, and by at
    most sqrt d times as much in l1. The factor makes this noise as fine as the moment's.
    """
    length = rows * (OTHER_WEIGHT << (2 * bits)) * (2 if relation is Relation.REPLACE else 1)
    if law is Law.LAPLACE:
        # The l1 norm is at most sqrt d times the l2 norm. The result is rounded up too.
        length = math.isqrt(d * length * length - 1) + 1
    return Side(MEAN, share, length, d)


COUNT, COUNT_SHARE = "rows that are used", 0.04
"""Name and share of the query for the number of used rows, if a person's rows are limited to m."""


def count_side(bits: int, rows: int) -> Side:
    """Return the query for the number of used rows, times 99 4^bits.

    One row moves the number by at most 1. The noise of the number is as fine as the moment's.
    """
    return Side(COUNT, COUNT_SHARE, rows * (OTHER_WEIGHT << (2 * bits)), 1)


def released_count(count: int, noise: Noise, n: int, bits: int) -> int:
    """Return the noisy number, at least 1, of used rows; the noise is sampled once.

    Parameters
    ----------
    count : int
        Exact number of used rows.
    noise : Noise
        Noise with a query for the count.
    n, bits : int
    """
    side = noise.side(COUNT)
    assert side is not None
    weight = OTHER_WEIGHT << (2 * bits)
    (noisy,) = drawn(noise.law, side.scale, [count * weight])
    # The count is at least 1, because later steps divide by it, and at most the public n.
    return min(max((noisy + weight // 2) // weight, 1), n)


def released_mean(total: IntArray, noise: Noise, n: int, bits: int) -> FloatArray:
    """Return the private mean of rows, in units of the rows; the noise is sampled here, once.

    Parameters
    ----------
    total : ndarray of shape (d,), int64
        Sum of the whole-number rows.
    noise : Noise
        Noise with a query for the mean.
    n : int
        Number of rows, or the noisy number of used rows.
    bits : int
    """
    side = noise.side(MEAN)
    assert side is not None
    weight = OTHER_WEIGHT << bits
    noisy = drawn(noise.law, side.scale, [int(value) * weight for value in total])
    return np.asarray(noisy, dtype=np.float64) / (weight * 2.0**bits * n)


def calibrated(
    law: Law,
    budget: Budget,
    relation: Relation,
    d: int,
    bits: int,
    rows: int = 1,
    sides: Sequence[Side] = (),
) -> Noise:
    """Return the least noise that provably meets the budget.

    A person with up to m rows changes the moment by at most m times as much as one row does,
    because the rows change one after the other, in either norm. So the claim for persons holds at m
    times the sensitivity, and every proof uses the sensitivity alone.

    Parameters
    ----------
    law : Law
    budget : Budget
        Budget of the release. A delta of 0 needs Laplace noise; Gaussian noise a delta above 0.
    relation : Relation
    d : int
    bits : int
    rows : int
        Maximum number of rows that change together: the rows of one person.
    sides : sequence of Side
        Queries in addition to the moment, under the same budget.

    Raises
    ------
    NoOpenDP
        If OpenDP is not installed.
    CannotRun
        If the noise distribution cannot meet a budget without delta.
    """
    # Fractions are exact. A sum of doubles could leave a remainder where there is none.
    taken = sum((Fraction(side.share) for side in sides), Fraction(0))
    if not (0 <= taken < 1 and all(side.share > 0 for side in sides)):
        raise InvalidSetting("shares", "above 0, with a sum below 1", float(taken))
    if law is Law.LAPLACE:
        return _laplace(budget, rows * sensitivity_l1(relation, d, bits), sides, 1 - taken)
    if budget.delta == 0:
        raise CannotRun(str(law), "this noise needs a delta above 0; got 0")
    opendp()
    own = rows * sensitivity_l2(relation, bits)
    # With this larger sensitivity, the moment alone would cost as much as all queries together.
    sensitivity = math.isqrt(math.ceil(own * own / (1 - taken)) - 1) + 1 if sides else own
    entries = d * (d + 1) // 2 + sum(side.entries for side in sides)
    rho = rho_meeting(budget.epsilon, budget.delta)
    by_map = sensitivity / math.sqrt(2 * rho)
    # OpenDP's privacy map rounds up, so the formula's scale may be too small in its last digits.
    while _mapped(by_map, sensitivity, budget.delta)[0] > budget.epsilon:
        by_map *= 1 + 1e-9
    by_theorem = least_scale(budget, sensitivity, entries)
    scale = by_map if by_theorem is None else min(by_map, by_theorem)
    mapped, proved_rho = _mapped(scale, sensitivity, budget.delta)
    proved, source = mapped, BY_MAP
    exact = proved_epsilon(budget, scale, sensitivity, entries)
    if exact is not None and exact < mapped:
        proved, source = exact, BY_THEOREM
    delta = budget.delta
    # `Budget` has a least epsilon, so a smaller proven epsilon is raised to it.
    proved, mapped = (max(one, EPSILON_RANGE[0]) for one in (proved, mapped))
    return Noise(
        law,
        scale,
        sensitivity,
        Budget(proved, delta),
        source,
        Budget(mapped, delta),
        proved_rho,
        tuple(replace(side, scale=_beside(side, scale, sensitivity)) for side in sides),
    )


def _beside(side: Side, scale: float, whole: int) -> float:
    """Return the least scale found at which a query uses at most its share of squared mu.

    The scale is at least the moment's, whose distance from rounded noise then bounds its own.
    """
    found = max(scale, side.sensitivity * scale / whole / math.sqrt(side.share))
    while (
        Fraction(side.sensitivity * side.sensitivity) * Fraction(scale) ** 2
        > Fraction(side.share) * whole * whole * Fraction(found) ** 2
    ):
        found = math.nextafter(found, math.inf)
    return found


@lru_cache(maxsize=256)  # Cached, because each release calls it twice with public numbers.
def _mapped(scale: float, sensitivity: int, delta: float) -> tuple[float, float]:
    """Return the epsilon at delta, and the rho, that OpenDP's map proves for Gaussian noise."""
    measurement = _measurement(Law.NORMAL, scale)
    rho = float(measurement.map(float(sensitivity)))
    curve = opendp().c.make_zCDP_to_approxDP(measurement).map(float(sensitivity))
    return max(float(curve.epsilon(delta)), epsilon_of_rho(rho, delta)), rho


def _laplace(budget: Budget, own: int, sides: Sequence[Side], left: Fraction) -> Noise:
    scale, epsilon = _pure(float(left * Fraction(budget.epsilon)), own)
    found = []
    for side in sides:
        beside, more = _pure(side.share * budget.epsilon, side.sensitivity)
        found.append(replace(side, scale=beside))
        # The sum is rounded, so the next double is used, which is never below the true sum.
        epsilon = math.nextafter(epsilon + more, math.inf)
    if epsilon > budget.epsilon:  # Only the rounding of the sum can make it exceed the budget.
        return _laplace(Budget(budget.epsilon * (1 - 1e-15)), own, sides, left)
    claimed = Budget(max(epsilon, EPSILON_RANGE[0]))
    rho = rho_of_pure(epsilon)
    return Noise(Law.LAPLACE, scale, own, claimed, BY_MAP, claimed, rho, tuple(found))


def _pure(wanted: float, sensitivity: int) -> tuple[float, float]:
    """Return the least scale whose map proves at most epsilon ``wanted``, and this epsilon."""
    scale = sensitivity / wanted
    while True:
        epsilon = float(_measurement(Law.LAPLACE, scale).map(sensitivity))
        if epsilon <= wanted:
            return scale, epsilon
        # The product alone may round to the same scale, so the scale also moves to the next double.
        scale = math.nextafter(scale * (1 + 1e-15), math.inf)


def _measurement(law: Law, scale: float) -> Any:
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law is Law.LAPLACE:
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)


def drawn(law: Law, scale: float, values: list[int]) -> list[int]:
    """Return whole numbers with discrete noise, sampled once with the system's entropy."""
    noisy: list[int] = _measurement(law, scale)(values)
    return noisy


def released(moment: IntArray, noise: Noise, n: int, bits: int) -> FloatArray:
    """Return the private estimate of A = X'X/n, in units of the squared row-norm bound.

    Parameters
    ----------
    moment : ndarray of shape (d, d), int64
        Matrix X'X in whole numbers.
    noise : Noise
    n : int
        Number of rows, or the noisy number of used rows.
    bits : int

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric matrix. The noise is sampled here, once, with the system's entropy.
    """
    d = len(moment)
    weights = _weights(noise.law, d)
    rows, columns = np.triu_indices(d)
    weighted = (moment * weights)[rows, columns]
    noisy = drawn(noise.law, noise.scale, [int(value) for value in weighted])
    # From here on all numbers are released ones, so doubles are safe to use.
    estimate = np.zeros((d, d))
    estimate[rows, columns] = np.asarray(noisy, dtype=np.float64)
    estimate /= weights * (n * 4.0**bits)
    estimate[columns, rows] = estimate[rows, columns]
    return estimate


def off_diagonal_std(law: Law, scale: float, n: int, bits: int) -> float:
    """Return the off-diagonal standard deviation of the noise, in squared row-norm bounds.

    A discrete Laplace distribution is at most as wide as the continuous distribution.
    """
    weight, spread = (1, math.sqrt(2)) if law is Law.LAPLACE else (OTHER_WEIGHT, 1.0)
    return spread * scale / (weight * n * 4.0**bits)


def _weights(law: Law, d: int) -> IntArray:
    if law is Law.LAPLACE:
        return np.ones((d, d), dtype=np.int64)
    # The weights have 64 bits, because sums that are multiplied by them become large.
    weights = np.full((d, d), OTHER_WEIGHT, dtype=np.int64)
    np.fill_diagonal(weights, DIAGONAL_WEIGHT)
    return weights
