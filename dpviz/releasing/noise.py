"""Discrete noise by OpenDP, the one vetted sampler this project uses for a real release.

The second moment's upper triangle is a vector of whole numbers. Its diagonal is multiplied by 70
and the rest by 99, so that one scale of noise serves both: a symmetric matrix D has

    70^2 sum_i D_ii^2 + 99^2 sum_(i<j) D_ij^2 <= (99^2 / 2) ||D||_F^2,

and ||vv' - ww'||_F is at most sqrt 2 (replace) or 1 (zero-out) times the largest squared row. In
that norm the noise is the Gaussian orthogonal ensemble up to .005 %. OpenDP draws discrete Gaussian
noise (Canonne, Kamath & Steinke 2020) or discrete Laplace noise with entropy from the system.

Gaussian noise is calibrated by the exact profile, which `dpviz.accounting.gaussian` proves for
discrete noise of such a scale, and that pair is claimed; OpenDP's own privacy map, which goes by
zero-concentrated privacy and proves 5 to 9 % more of epsilon, stands beside it. Where the map
proves more, at a large epsilon or on a coarse grid, and for Laplace noise, the map is claimed.

Other whole numbers may be released before the moment, as the sum of rows for a private mean or how
many of them count, or after it, as the counts of a picture: what comes later may depend on what was
shown. Each takes a share of squared mu (of epsilon, for Laplace noise). Adaptive Gaussian
mechanisms compose exactly, mu^2 adds up, so all of them together cost what the moment alone would
at a sensitivity of D/sqrt(1 - shares). Rounded noise is post-processing of them, and discrete noise
is within tau(s) of it a coordinate, one answer after the other: the corollary of
`dpviz.accounting.gaussian` holds with all coordinates counted. Rhos and pure epsilons add up by
themselves.
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
    """OpenDP is not installed."""


class Law(StrEnum):
    """The discrete noise of a release."""

    NORMAL = "discrete Gaussian"
    LAPLACE = "discrete Laplace"


@dataclass(frozen=True)
class Side:
    """Whole numbers that are released beside the moment, before it or after it.

    Attributes
    ----------
    name : str
    share : float
        Of squared mu, or of epsilon for Laplace noise; above 0.
    sensitivity : int
        In the norm of the law (l2 or l1), rounded up.
    entries : int
        How many numbers.
    scale : float
        Of the noise; 0 until it is calibrated.
    """

    name: str
    share: float
    sensitivity: int
    entries: int
    scale: float = 0.0


@dataclass(frozen=True)
class Noise:
    """Discrete noise on the weighted upper triangle, and what it is proved to cost.

    Attributes
    ----------
    law : Law
    scale : float
        In weighted whole numbers.
    sensitivity : int
        l2 (Gaussian) or l1 (Laplace) length of the largest change, rounded up.
    proved : Budget
        What is claimed: the lesser of two proofs.
    source : str
        What proves it, in a phrase.
    mapped : Budget
        What OpenDP's privacy map proves of the same noise.
    rho : float
        The zCDP parameter, proved by the map; for Laplace noise what its epsilon implies.
    sides : tuple of Side
        What is released beside the moment; all that is proved holds for everything together.
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
        """Return what is released beside the moment under a name, or None."""
        return next((side for side in self.sides if side.name == name), None)

    def added(self, scale: float, values: list[int]) -> list[int]:
        """Return whole numbers with noise of this law: drawn here, once, for a release."""
        return drawn(self.law, scale, values)


BY_MAP = "privacy map of OpenDP for discrete noise on whole numbers"
BY_THEOREM = (
    "exact Gaussian profile of rounded noise, of which discrete noise is within .02017/s^2 + "
    ".0062/s^4 in total variation a coordinate (theorem in dpviz.accounting.gaussian)"
)


def opendp() -> Any:
    """Return OpenDP's prelude.

    Raises
    ------
    NoOpenDP
        If it is not installed.
    """
    try:
        prelude = import_module("opendp.prelude")
    except ImportError:
        raise NoOpenDP(f"{NO_OPENDP}.") from None
    prelude.enable_features("contrib")
    return prelude


def opendp_version() -> str:
    """Return the version of OpenDP that draws."""
    opendp()
    return installed("opendp")


@cache
def installed(name: str) -> str:
    """Return the version of a package, which reading through all that it states gives."""
    return version(name)


def sensitivity_l2(relation: Relation, bits: int) -> int:
    """Return the largest change of the weighted upper triangle in l2 norm, rounded up.

    Parameters
    ----------
    relation : Relation
    bits : int
        Of the grid; squared rows are at most 4^bits.
    """
    if relation is Relation.REPLACE:
        return OTHER_WEIGHT << (2 * bits)
    square = (OTHER_WEIGHT * OTHER_WEIGHT) << (4 * bits)  # twice the square
    # a square root in whole numbers, rounded up: no double is asked
    return math.isqrt(-(-square // 2) - 1) + 1


def sensitivity_l1(relation: Relation, d: int, bits: int) -> int:
    """Return the largest change of the plain upper triangle in l1 norm, rounded up.

    Zero-out: (d + 1)/2. Replace: the lesser of d/sqrt 2 + 1 and sqrt((d^2 + 3d)/2); both are
    proved in `dpviz.accounting.sensitivity.l1_upper`.
    """
    unit = 1 << (2 * bits)
    if relation is Relation.ZERO_OUT:
        return -(-(d + 1) * unit // 2)
    first = math.isqrt(d * d * unit * unit // 2) + 1 + unit
    second = math.isqrt((d * d + 3 * d) * unit * unit // 2) + 1
    return min(first, second)


MEAN = "mean"
"""Name of the sum of rows among what is released beside the moment."""


def mean_side(
    law: Law, relation: Relation, d: int, bits: int, rows: int = 1, *, share: float
) -> Side:
    """Return the sum of rows of length at most 2^bits, times 99 2^bits, as a query.

    One row moves the sum by at most 2 2^bits (replace) or 2^bits (zero-out) in l2 norm, and by
    sqrt d times as much in l1. The factor makes its noise as fine as that of the moment.
    """
    length = rows * (OTHER_WEIGHT << (2 * bits)) * (2 if relation is Relation.REPLACE else 1)
    if law is Law.LAPLACE:
        # l1 is at most sqrt d times l2; rounded up as well
        length = math.isqrt(d * length * length - 1) + 1
    return Side(MEAN, share, length, d)


COUNT, COUNT_SHARE = "rows that count", 0.04
"""Name and share of what tells how many rows count, where those of one person are cut to m."""


def count_side(bits: int, rows: int) -> Side:
    """Return how many rows count, times 99 4^bits, as a query: one row moves it by at most 1.

    Its noise is as fine as that of the moment.
    """
    return Side(COUNT, COUNT_SHARE, rows * (OTHER_WEIGHT << (2 * bits)), 1)


def released_count(count: int, noise: Noise, n: int, bits: int) -> int:
    """Return about how many of n rows count, at least 1; the noise is drawn here, once.

    Parameters
    ----------
    count : int
        How many do.
    noise : Noise
        With a side for the count.
    n, bits : int
    """
    side = noise.side(COUNT)
    assert side is not None
    weight = OTHER_WEIGHT << (2 * bits)
    (noisy,) = drawn(noise.law, side.scale, [count * weight])
    # rounded to a count; 0 would be divided by, and more than n, which is public, cannot be
    return min(max((noisy + weight // 2) // weight, 1), n)


def released_mean(total: IntArray, noise: Noise, n: int, bits: int) -> FloatArray:
    """Return the private mean of rows, in their unit; the noise is drawn here, once.

    Parameters
    ----------
    total : ndarray of shape (d,), int64
        Sum of the whole-number rows.
    noise : Noise
        With a side for the mean.
    n : int
        Of the rows, or about as many as count.
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
    """Return the least noise that is proved to meet the budget.

    A person with up to m rows changes the moment by at most m times what one row does: it is
    changed one row after the other, in either norm, so the claim holds for persons at m times the
    sensitivity, and every proof goes by the sensitivity alone.

    Parameters
    ----------
    law : Law
    budget : Budget
        A delta of 0 needs Laplace noise; Gaussian noise a delta above 0.
    relation : Relation
    d : int
    bits : int
    rows : int
        Most rows that change together: those of one person.
    sides : sequence of Side
        What is released beside the moment under the same budget.

    Raises
    ------
    NoOpenDP
        If OpenDP is not installed.
    CannotRun
        If the law cannot meet a budget without delta.
    """
    # fractions, as doubles could add up to room that is not there
    taken = sum((Fraction(side.share) for side in sides), Fraction(0))
    if not (0 <= taken < 1 and all(side.share > 0 for side in sides)):
        raise InvalidSetting("shares", "above 0 and together below 1", float(taken))
    if law is Law.LAPLACE:
        return _laplace(budget, rows * sensitivity_l1(relation, d, bits), sides, 1 - taken)
    if budget.delta == 0:
        raise CannotRun(str(law), "it needs a delta above 0; got 0")
    opendp()
    own = rows * sensitivity_l2(relation, bits)
    # the moment alone at this sensitivity costs what all of them do together
    sensitivity = math.isqrt(math.ceil(own * own / (1 - taken)) - 1) + 1 if sides else own
    entries = d * (d + 1) // 2 + sum(side.entries for side in sides)
    rho = rho_meeting(budget.epsilon, budget.delta)
    by_map = sensitivity / math.sqrt(2 * rho)
    # the map rounds against us, so the formula's scale may fall short by its last digits
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
    # a budget has a least epsilon, and what is proved below it is claimed as the least
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
    """Return the least scale found at which a query costs at most its share of squared mu.

    It is never below the moment's, whose distance from rounded noise then bounds its own.
    """
    found = max(scale, side.sensitivity * scale / whole / math.sqrt(side.share))
    while (
        Fraction(side.sensitivity * side.sensitivity) * Fraction(scale) ** 2
        > Fraction(side.share) * whole * whole * Fraction(found) ** 2
    ):
        found = math.nextafter(found, math.inf)
    return found


@lru_cache(maxsize=256)  # of public numbers alone, and asked twice for each release
def _mapped(scale: float, sensitivity: int, delta: float) -> tuple[float, float]:
    """Return what OpenDP's map proves of Gaussian noise: epsilon at delta, and rho."""
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
        # a sum of doubles is rounded: the next one above is never below the truth
        epsilon = math.nextafter(epsilon + more, math.inf)
    if epsilon > budget.epsilon:  # by the last digits of a sum
        return _laplace(Budget(budget.epsilon * (1 - 1e-15)), own, sides, left)
    claimed = Budget(max(epsilon, EPSILON_RANGE[0]))
    rho = rho_of_pure(epsilon)
    return Noise(Law.LAPLACE, scale, own, claimed, BY_MAP, claimed, rho, tuple(found))


def _pure(wanted: float, sensitivity: int) -> tuple[float, float]:
    """Return the least scale whose map proves at most the epsilon wanted, and what it proves."""
    scale = sensitivity / wanted
    while True:
        epsilon = float(_measurement(Law.LAPLACE, scale).map(sensitivity))
        if epsilon <= wanted:
            return scale, epsilon
        # the factor alone may round back to where it was
        scale = math.nextafter(scale * (1 + 1e-15), math.inf)


def _measurement(law: Law, scale: float) -> Any:
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law is Law.LAPLACE:
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)


def drawn(law: Law, scale: float, values: list[int]) -> list[int]:
    """Return whole numbers with discrete noise, drawn here, once, with the system's entropy."""
    noisy: list[int] = _measurement(law, scale)(values)
    return noisy


def released(moment: IntArray, noise: Noise, n: int, bits: int) -> FloatArray:
    """Return the private estimate of A = X'X/n in units of the squared row bound.

    Parameters
    ----------
    moment : ndarray of shape (d, d), int64
        X'X in whole numbers.
    noise : Noise
    n : int
        Of the rows, or about as many as count.
    bits : int

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric. The noise is drawn here, once, with the system's entropy.
    """
    d = len(moment)
    weights = _weights(noise.law, d)
    rows, columns = np.triu_indices(d)
    weighted = (moment * weights)[rows, columns]
    noisy = drawn(noise.law, noise.scale, [int(value) for value in weighted])
    # from here on only released numbers: doubles are harmless
    estimate = np.zeros((d, d))
    estimate[rows, columns] = np.asarray(noisy, dtype=np.float64)
    estimate /= weights * (n * 4.0**bits)
    estimate[columns, rows] = estimate[rows, columns]
    return estimate


def off_diagonal_std(law: Law, scale: float, n: int, bits: int) -> float:
    """Return the standard deviation of the noise off the diagonal, in squared row bounds.

    A discrete Laplace is at most as wide as the continuous one.
    """
    weight, spread = (1, math.sqrt(2)) if law is Law.LAPLACE else (OTHER_WEIGHT, 1.0)
    return spread * scale / (weight * n * 4.0**bits)


def _weights(law: Law, d: int) -> IntArray:
    if law is Law.LAPLACE:
        return np.ones((d, d), dtype=np.int64)
    # 64 bits: weights multiply sums of whole numbers
    weights = np.full((d, d), OTHER_WEIGHT, dtype=np.int64)
    np.fill_diagonal(weights, DIAGONAL_WEIGHT)
    return weights
