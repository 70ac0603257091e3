"""Limiting laws of large noise matrices.

For large d the eigenvalues of rotation-invariant or i.i.d. symmetric noise converge to a fixed law.
The R-transform of this law alone determines the effect of the noise on any matrix. Three laws cover
every additive mechanism of dpviz; each is a semicircle, or a sum of free Poisson jumps, or both.

Edges and thresholds are stated for the limit. A prediction at a given d is better with
`FreeNoise.matched`: the law of the same kind that has the first cumulants of the finite matrix.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.sampling.nuclear import square_means

_DIFFERENCE_CRITICAL = math.sqrt(math.sqrt(5) - 2)
# This end of the noise spectrum, in units of a, is the value of K at its critical point.
_DIFFERENCE_EDGE = math.sqrt((11 + 5 * math.sqrt(5)) / 2)


@dataclass(frozen=True)
class FreeNoise(ABC):
    """The limiting law of a noise matrix, by its R-transform.

    ``R(g) = shift + variance * g + sum over jumps of rate * size/(1 - size * g)``: a constant, a
    semicircle and free Poisson parts. Every such law is freely infinitely divisible, which
    predictions require.
    """

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the semicircular part, in squared units of A."""

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Pairs (rate, size) of the free Poisson parts, with sizes in units of A."""
        return ()

    @property
    def shift(self) -> float:
        """Constant that the noise adds to every eigenvalue."""
        return 0.0

    @property
    @abstractmethod
    def edges(self) -> tuple[float, float]:
        """Limits of the noise's own spectrum."""

    @property
    @abstractmethod
    def visible_above(self) -> float:
        """Eigenvalue above which a single component of A can be seen at all: 1/g*.

        K'(g*) = 0. Below this value the noise's top eigenvector is, for large d, orthogonal to the
        component (Benaych-Georges and Nadakuditi 2011).
        """

    @property
    def matched(self) -> FreeNoise:
        """The law with the cumulants of the finite matrix; by default the limiting law."""
        return self

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a positive factor."""

    @property
    def mean(self) -> float:
        """Mean eigenvalue of the noise."""
        return self.shift + sum(rate * size for rate, size in self.jumps)

    @property
    def spread(self) -> float:
        """Standard deviation of the noise's eigenvalues."""
        return math.sqrt(self.variance + sum(rate * size**2 for rate, size in self.jumps))

    def r_transform(self, g: FloatArray | float) -> FloatArray:
        """Return R(g), elementwise, away from its poles."""
        g = np.asarray(g, dtype=float)
        value = self.shift + self.variance * g
        for rate, size in self.jumps:
            value = value + rate * size / (1 - size * g)
        return value

    def k_transform(self, g: FloatArray | float) -> FloatArray:
        """Return K(g) = R(g) + 1/g: the inverse of the noise's resolvent."""
        g = np.asarray(g, dtype=float)
        value: FloatArray = self.r_transform(g) + 1 / g
        return value

    def k_slope(self, g: FloatArray | float) -> FloatArray:
        """Return K'(g), elementwise."""
        g = np.asarray(g, dtype=float)
        slope = self.variance - 1 / g**2
        for rate, size in self.jumps:
            slope = slope + rate * size**2 / (1 - size * g) ** 2
        return slope

    def lone_overlap(self, eigenvalue: FloatArray | float) -> FloatArray:
        """Return E <v_hat, v>^2 of a single component and the top noisy eigenvector.

        Parameters
        ----------
        eigenvalue : float or ndarray
            Eigenvalue of the component; all other eigenvalues of A are taken as 0.

        Returns
        -------
        ndarray
            -K'(1/theta)/theta^2 above the threshold, 0 below it.

        Source
        ------
        Benaych-Georges and Nadakuditi 2011, Theorem 2.2.
        """
        theta = np.asarray(eigenvalue, dtype=float)
        visible = theta > self.visible_above
        safe = np.where(visible, theta, 2 * self.visible_above)
        overlap: FloatArray = np.where(visible, -self.k_slope(1 / safe) / safe**2, 0.0)
        return overlap


@dataclass(frozen=True)
class MatchedNoise(FreeNoise):
    """A limiting law in which a finite matrix's cumulants replace the law's own.

    Attributes
    ----------
    law : FreeNoise
        The limiting law, for edges and thresholds.
    semicircle : float
        Variance of the semicircular part.
    parts : tuple of (float, float)
        Rate and size of each free Poisson part.
    """

    law: FreeNoise
    semicircle: float
    parts: tuple[tuple[float, float], ...]

    @property
    def variance(self) -> float:
        """Variance of the semicircular part."""
        return self.semicircle

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Pairs (rate, size) of the free Poisson parts."""
        return self.parts

    @property
    def shift(self) -> float:
        """The limit's constant."""
        return self.law.shift

    @property
    def edges(self) -> tuple[float, float]:
        """The limit's edges."""
        return self.law.edges

    @property
    def visible_above(self) -> float:
        """The limit's threshold."""
        return self.law.visible_above

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a positive factor."""
        parts = tuple((rate, size * factor) for rate, size in self.parts)
        return replace(
            self,
            law=self.law.scaled(factor),
            semicircle=self.semicircle * factor**2,
            parts=parts,
        )


@dataclass(frozen=True)
class SemiCircle(FreeNoise):
    """Symmetric noise with i.i.d. entries, or a GOE.

    Attributes
    ----------
    std : float
        Standard deviation of one off-diagonal entry, in units of A.
    d : int
        Dimension.
    diagonal : float
        Variance of a diagonal entry over the variance of another entry: 1 for i.i.d. entries, 2 for
        a GOE.
    tails : (float, float)
        Fourth and sixth cumulant of an entry, in units of its standard deviation: 0 and 0 for a
        normal, 3 and 30 for a Laplace.
    """

    std: float
    d: int
    diagonal: float = 1.0
    tails: tuple[float, float] = (0.0, 0.0)

    @property
    def matched(self) -> FreeNoise:
        """The law with the finite matrix's second moment and the tails of its entries.

        An entry's cumulants of order 4 and 6 add d times themselves to the free cumulants. A pair
        of free Poisson parts of sizes +-b has both cumulants if ``b^2`` is the sixth cumulant over
        the fourth.
        """
        total = self.std**2 * (self.d - 1 + self.diagonal)
        fourth, sixth = self.tails
        if fourth == 0:
            return MatchedNoise(self, total, ())
        ratio = sixth / fourth
        size, rate = math.sqrt(ratio) * self.std, self.d * fourth / (2 * ratio**2)
        jumps = ((rate, size), (rate, -size))
        return MatchedNoise(self, total - 2 * rate * size**2, jumps)

    @property
    def variance(self) -> float:
        """Variance of the semicircular part."""
        return self.std**2 * self.d

    @property
    def edges(self) -> tuple[float, float]:
        """The semicircle's edges, 2 s sqrt(d) on either side."""
        edge = 2 * math.sqrt(self.d) * self.std
        return -edge, edge

    @property
    def visible_above(self) -> float:
        """The threshold, s sqrt(d)."""
        return math.sqrt(self.d) * self.std

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a positive factor."""
        return replace(self, std=self.std * factor)


@dataclass(frozen=True)
class WishartDifferenceLaw(FreeNoise):
    """W1 - W2 with independent W_d(d + 1, c I), for large d.

    Attributes
    ----------
    a : float
        Scale d c of the law, in units of A.
    d : float
        Dimension of the matrices; infinite for the limit itself.
    """

    a: float
    d: float = math.inf

    @property
    def matched(self) -> FreeNoise:
        """The law with the exact variance 2 c^2 (d + 1)^2: a is (d + 1) c."""
        a = self.a * (1 + 1 / self.d)
        return MatchedNoise(self, 0.0, ((1.0, a), (1.0, -a)))

    @property
    def variance(self) -> float:
        """Variance of the semicircular part: none."""
        return 0.0

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Two free Poisson parts, one upwards and one downwards, both of rate 1."""
        return (1.0, self.a), (1.0, -self.a)

    @property
    def edges(self) -> tuple[float, float]:
        """The edges, 3.3302 a on either side."""
        edge = _DIFFERENCE_EDGE * self.a
        return -edge, edge

    @property
    def visible_above(self) -> float:
        """The threshold, 2.0582 a."""
        return self.a / _DIFFERENCE_CRITICAL

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a positive factor."""
        return replace(self, a=self.a * factor)


@dataclass(frozen=True)
class NuclearLaw(FreeNoise):
    """Noise with density proportional to exp(-||M||_nuc/s), for large d: Ullman's law of order 1.

    The law's density is arccosh(a/|x|)/(pi a): a mixture of arcsine laws on [-t, t] with t uniform
    up to a. So its Cauchy transform is arcsin(a/z)/a, and K(g) = a/sin(a g).

    Attributes
    ----------
    a : float
        The edge, (pi/2) d s, in units of A.
    d : float
        Dimension of the matrices; infinite for the limit itself.
    """

    a: float
    d: float = math.inf

    @property
    def matched(self) -> FreeNoise:
        """Two free Poisson parts with the law's 2nd and 4th free cumulant, a^2/6 and 7 a^4/360.

        The law itself is not freely infinitely divisible, as predictions require. The sixth
        cumulant of these parts is 11 % above the law's 31 a^6/15120. At finite d the second
        cumulant is exact.
        """
        if math.isinf(self.d):
            return MatchedNoise(self, 0.0, self.jumps)
        d = round(self.d)
        factor = math.sqrt(6 * square_means(d)[0] / d) / (math.pi / 2 * d)
        parts = tuple((rate, size * factor) for rate, size in self.jumps)
        return MatchedNoise(self, 0.0, parts)

    @property
    def variance(self) -> float:
        """Variance of the semicircular part: none."""
        return 0.0

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """Jumps of `matched`: rate 5/7 and size a sqrt(7/60), upwards and downwards."""
        size = self.a * math.sqrt(7 / 60)
        return (5 / 7, size), (5 / 7, -size)

    @property
    def edges(self) -> tuple[float, float]:
        """The edges, plus and minus a."""
        return -self.a, self.a

    @property
    def visible_above(self) -> float:
        """The threshold, 2 a/pi."""
        return 2 * self.a / math.pi

    def r_transform(self, g: FloatArray | float) -> FloatArray:
        """Return a/sin(a g) - 1/g, elementwise, for |a g| below pi."""
        g = np.asarray(g, dtype=float)
        value: FloatArray = self.a / np.sin(self.a * g) - 1 / g
        return value

    def k_slope(self, g: FloatArray | float) -> FloatArray:
        """Return K'(g) = -a^2 cos(a g)/sin(a g)^2, elementwise."""
        turn = self.a * np.asarray(g, dtype=float)
        value: FloatArray = -(self.a**2) * np.cos(turn) / np.sin(turn) ** 2
        return value

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a positive factor."""
        return replace(self, a=self.a * factor)


@dataclass(frozen=True)
class MarchenkoPasturLaw(FreeNoise):
    """W_d(m, c I) plus a constant times the identity.

    Attributes
    ----------
    m : float
        Degrees of freedom, at least d.
    c : float
        Scale, in units of A.
    d : int
        Dimension.
    offset : float
        The shift of the diagonal, such as -m c if the mean is subtracted.
    """

    m: float
    c: float
    d: int
    offset: float = 0.0

    @property
    def matched(self) -> FreeNoise:
        """The law with the exact mean m c and variance m (d + 1) c^2."""
        return MatchedNoise(self, 0.0, ((self.m / (self.d + 1), (self.d + 1) * self.c),))

    @property
    def variance(self) -> float:
        """Variance of the semicircular part: none."""
        return 0.0

    @property
    def jumps(self) -> tuple[tuple[float, float], ...]:
        """One free Poisson part of rate m/d and size d c."""
        return ((self.m / self.d, self.d * self.c),)

    @property
    def shift(self) -> float:
        """The constant added to every eigenvalue."""
        return self.offset

    @property
    def edges(self) -> tuple[float, float]:
        """The Marchenko-Pastur edges, (sqrt m -+ sqrt d)^2 c, plus the offset."""
        near = (math.sqrt(self.m) - math.sqrt(self.d)) ** 2
        far = (math.sqrt(self.m) + math.sqrt(self.d)) ** 2
        return near * self.c + self.offset, far * self.c + self.offset

    @property
    def visible_above(self) -> float:
        """The threshold, c (d + sqrt(m d))."""
        return self.c * (self.d + math.sqrt(self.m * self.d))

    def scaled(self, factor: float) -> Self:
        """Return the law of the noise times a positive factor."""
        return replace(self, c=self.c * factor, offset=self.offset * factor)
