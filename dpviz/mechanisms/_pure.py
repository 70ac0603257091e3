"""Symmetric noise under which a shift of nuclear norm s loses at most s: two laws, one unit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Problem
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism
from dpviz.sampling.ensembles import wishart, wishart_numbers, wishart_of
from dpviz.sampling.limits import NuclearLaw, WishartDifferenceLaw
from dpviz.sampling.nuclear import LARGEST_D, direction_std, nuclear_noise, tables_memory

IntArray = NDArray[np.intp]


class PureLaw(StrEnum):
    """Noise whose log density ratio is at most the nuclear norm of a shift.

    ``WISHART`` is W1 - W2 with independent W_d(d + 1, I/2); the proof stands with
    `dpviz.mechanisms.wishart_difference`. ``KNORM`` has density proportional to exp(-||N||_nuc),
    less spread, and takes longer to draw: `benchmarks/draws.py` measures both.
    """

    WISHART = "wishart"
    KNORM = "knorm"

    def draw(self, draws: Draws, d: int) -> FloatArray:
        """Return noise of shape (size, d, d)."""
        if self is PureLaw.KNORM:
            return nuclear_noise(draws, d)
        return _half_difference(wishart(draws, d, d + 1), wishart(draws, d, d + 1))

    def direction_std(self, d: int) -> float:
        """Return the standard deviation of w'Nw, the same for every unit w."""
        # a chi-square of d + 1 over 2 on each side: variance (d + 1)/2, twice
        return direction_std(d) if self is PureLaw.KNORM else math.sqrt(d + 1)

    def edge(self, d: int) -> float:
        """Return where its spectrum ends for large d."""
        if self is PureLaw.KNORM:
            return NuclearLaw(math.pi / 2 * d).edges[1]
        return WishartDifferenceLaw(d / 2).edges[1]


def _half_difference(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the difference of W_d(d + 1, I/2), from twice each, in place of the first.

    In this unit a nuclear norm of s loses at most s.
    """
    first -= second
    first /= 2
    return first


def wishart_differences(
    singles: list[Draws], dimensions: IntArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield which draws have m dimensions, and their noise as `PureLaw.WISHART` draws it.

    Numbers are taken draw by draw, as draws may share a stream; matrices are made together.

    Parameters
    ----------
    singles : list of Draws
        Of one draw each.
    dimensions : ndarray of shape (len(singles),)
    """
    sides: list[list[tuple[FloatArray, FloatArray]]] = [[], []]
    for one, m in zip(singles, dimensions.tolist(), strict=True):
        for side in sides:
            side.append(wishart_numbers(one, m, m + 1))
    for m in np.unique(dimensions):
        which = np.flatnonzero(dimensions == m)
        first, second = (
            wishart_of(*map(np.concatenate, zip(*[side[i] for i in which], strict=True)))
            for side in sides
        )
        yield which, _half_difference(first, second)


LAWS = {
    str(PureLaw.WISHART): "Difference of two Wisharts",
    str(PureLaw.KNORM): "K-norm of the nuclear norm",
}
"""Labels, for a parameter that chooses one."""

AUTO = "auto"
_MOST_AUTO = 64  # features: beyond, a draw takes too long to wait for (benchmarks/draws.py)


def law_for(noise: str, d: int) -> PureLaw:
    """Return the law that a name stands for at d features: ``auto`` is K-norm up to 64."""
    if noise == AUTO:
        return PureLaw.KNORM if d <= _MOST_AUTO else PureLaw.WISHART
    return PureLaw(noise)


class PureNoise(Mechanism):
    """A mechanism that adds such noise."""

    @abstractmethod
    def law(self, d: int) -> PureLaw:
        """Return the law of its noise at d features."""

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return the number of features up to which its noise is drawn."""
        if self.law(problem.d) is PureLaw.KNORM and problem.d > LARGEST_D:
            return f"its K-norm noise takes at most {LARGEST_D} features; got {problem.d}"
        return super().limits(problem, budget)

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return about the most bytes of so many draws, with the tables that draws are made by."""
        tables = tables_memory(problem.d) if self.law(problem.d) is PureLaw.KNORM else 0.0
        return super().memory(problem, draws, thin=thin) + tables
