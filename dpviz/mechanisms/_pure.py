"""Two laws of symmetric noise whose privacy loss is at most the nuclear norm of a shift."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dpviz.accounting.sensitivity import nuclear
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Problem
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism
from dpviz.mechanisms._clipped import on_the_sphere
from dpviz.sampling.ensembles import wishart, wishart_numbers, wishart_of
from dpviz.sampling.limits import NuclearLaw, WishartDifferenceLaw
from dpviz.sampling.nuclear import LARGEST_D, direction_std, nuclear_noise, tables_memory

IntArray = NDArray[np.intp]


class PureLaw(StrEnum):
    """Noise whose log density ratio is at most the nuclear norm of a shift.

    ``WISHART`` is W1 - W2 with independent W_d(d + 1, I/2); the proof is in
    `dpviz.mechanisms.wishart_difference`. ``KNORM`` has density proportional to exp(-||N||_nuc).
    K-norm noise has less spread but takes longer to sample: 0.09 s at 61 features and n 2,000.
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
        # The variance along w is d + 1. Each of W1 and W2 adds a variance of (d + 1)/2 to it.
        return direction_std(d) if self is PureLaw.KNORM else math.sqrt(d + 1)

    def edge(self, d: int) -> float:
        """Return the edge of the noise's spectrum for large d."""
        if self is PureLaw.KNORM:
            return NuclearLaw(math.pi / 2 * d).edges[1]
        return WishartDifferenceLaw(d / 2).edges[1]


def _half_difference(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return W1 - W2 with W_d(d + 1, I/2), from 2 W1 and 2 W2; overwrite ``first``.

    In this unit a shift of nuclear norm s has privacy loss at most s.
    """
    first -= second
    first /= 2
    return first


def wishart_differences(
    singles: list[Draws], dimensions: IntArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the repetitions that have m dimensions, with their noise by `PureLaw.WISHART`.

    Numbers are sampled by repetition, as repetitions may share a stream; matrices are built
    together.

    Parameters
    ----------
    singles : list of Draws
        Random streams, each of one repetition.
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
"""Labels for a parameter that chooses a law."""

AUTO = "auto"
LAW_CHOICES = {AUTO: "K-norm up to 64 features, else the difference of two Wisharts"} | LAWS
_MOST_AUTO = 64  # Largest number of features whose sampling is quick enough (.09 s at d = 61).


def law_for(noise: str, d: int) -> PureLaw:
    """Return the law named ``noise`` at d features; ``auto`` is K-norm up to 64 features."""
    if noise == AUTO:
        return PureLaw.KNORM if d <= _MOST_AUTO else PureLaw.WISHART
    return PureLaw(noise)


def wide(problem: Problem, epsilon: float) -> float:
    """Return tau sqrt(d): the size of the noise in all features, for rows of length one.

    tau is the edge of the noise's spectrum over sqrt(2), as in `dpviz.mechanisms.clipped_pure`.
    """
    reach = nuclear(on_the_sphere(problem)) / epsilon
    return law_for(AUTO, problem.d).edge(problem.d) * reach / math.sqrt(2) * math.sqrt(problem.d)


class PureNoise(Mechanism):
    """A mechanism that adds noise of a `PureLaw`."""

    @abstractmethod
    def law(self, d: int) -> PureLaw:
        """Return the law of the noise at d features."""

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return the reason why d is too large for the noise's sampler, or None."""
        if self.law(problem.d) is PureLaw.KNORM and problem.d > LARGEST_D:
            return f"its K-norm noise takes at most {LARGEST_D} features; got {problem.d}"
        return super().limits(problem, budget)

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return the approximate peak bytes of a batch, with the sampler's tables."""
        tables = tables_memory(problem.d) if self.law(problem.d) is PureLaw.KNORM else 0.0
        return super().memory(problem, draws, thin=thin) + tables


@dataclass(frozen=True)
class ChosenNoise(PureNoise):
    """A mechanism whose parameter ``noise`` chooses its noise from `LAW_CHOICES`."""

    noise: str

    def law(self, d: int) -> PureLaw:
        """Return the law of the noise at d features."""
        return law_for(self.noise, d)

    @property
    def quick(self) -> bool:
        """Whether the noise is the difference of two Wisharts for every number of features."""
        return self.law(1) is PureLaw.WISHART

    @property
    def quicker(self) -> Mechanism:
        """The variant whose noise is the difference of two Wisharts, with a tenth more noise."""
        return replace(self, noise=PureLaw.WISHART)
