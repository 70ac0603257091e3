"""The variances of a publishable scree plot: from a released matrix, or added with noise.

A released matrix has variances: noise is removed from its eigenvalues, which is post-processing and
costs no privacy. For directions alone, noisy variances are added as in `dpviz.preparation.steps`,
which has the sensitivities: rows are clipped at a radius that is found first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of, shortened
from dpviz.core.seeding import Draws
from dpviz.preparation.draws import radius_at
from dpviz.preparation.steps import RADIUS_COUNTS, VARIANCE, Preparation
from dpviz.sampling.limits import FreeNoise

MOST_BARS = 15
"""Maximum number of bars of a released matrix."""

TWO_SIDED = 1.96
"""Half width of a 95 % error bar, in standard deviations."""

_CLEAR = 3.0  # The total must exceed this many standard deviations of its noise.


@dataclass(frozen=True, eq=False)
class Scree:
    """Variances with the error that noise causes.

    Attributes
    ----------
    variances, std : ndarray of shape (m,)
        In squared units of the rows; for a matrix, only leading variances that its noise does not
        hide.
    total, total_std : float
        Total of all directions, at least the sum of ``variances``.
    level : float
        Level below which noise hides variances; 0 if the variances were added.
    radius : float
        Radius at which rows were clipped; infinite without clipping.
    """

    variances: FloatArray
    std: FloatArray
    total: float
    total_std: float
    level: float = 0.0
    radius: float = math.inf

    @property
    def clear(self) -> bool:
        """Whether the total clearly exceeds its noise, so that shares of it are meaningful."""
        return self.total > _CLEAR * self.total_std

    @property
    def shares(self) -> FloatArray:
        """Shares of the total."""
        ratios: FloatArray = self.variances / (self.total or 1.0)
        return ratios

    @property
    def errors(self) -> FloatArray:
        """Approximate standard deviation of each share, from the deviations of its two numbers."""
        relative: FloatArray = np.hypot(self.std, self.shares * self.total_std) / (
            self.total or 1.0
        )
        return relative


def of_matrix(eigenvalues: FloatArray, law: FreeNoise) -> Scree:
    """Return the variances visible in a released matrix.

    A single component theta is seen at K(1/theta) + u'Eu + .... For rotation-invariant noise, the
    standard deviation is sqrt(2/d) times the spread of the noise's eigenvalues and the root of the
    overlap w = dK(1/theta)/dtheta. Solving for theta divides this by w. The trace of such noise has
    the standard deviation sqrt(2) times the spread.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Released eigenvalues, descending.
    law : FreeNoise
        Law of the noise on the eigenvalues.
    """
    visible = int((eigenvalues[:MOST_BARS] > law.edges[1]).sum())
    theta = debiased(eigenvalues[:visible], law)
    overlap = np.maximum(law.lone_overlap(theta), 1e-3)
    std = math.sqrt(2 / len(eigenvalues)) * law.spread / np.sqrt(overlap)
    total = max(float(eigenvalues.sum()) - len(eigenvalues) * law.mean, float(theta.sum()))
    return Scree(theta, std, total, math.sqrt(2) * law.spread, law.visible_above)


def debiased(eigenvalues: FloatArray, law: FreeNoise) -> FloatArray:
    """Return the true variances of components with these eigenvalues; the threshold if hidden.

    Parameters
    ----------
    eigenvalues : ndarray
        Released.
    law : FreeNoise
    """
    threshold = law.visible_above
    low = np.full(eigenvalues.shape, threshold)
    high = np.maximum(eigenvalues - law.edges[0], threshold)
    for _ in range(60):  # Bisection works, because K(1/theta) rises from the edge on.
        middle = (low + high) / 2
        below = law.k_transform(1 / middle) < eigenvalues
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(eigenvalues > law.edges[1], high, threshold)


def standard_numbers(draws: Draws, directions: int, *, pure: bool) -> FloatArray:
    """Return standard noise for a scree along the directions: radius, variances, rest."""
    if pure:
        radius, pairs = draws.uniform(1), draws.exponential(2, directions + 1)
        return np.concatenate([radius, pairs[:, 0] - pairs[:, 1]], axis=1)
    return draws.normal(RADIUS_COUNTS + directions + 1)


def bought(
    rows: FloatArray,
    directions: FloatArray,
    plan: Preparation,
    numbers: FloatArray,
    bound: float = math.inf,
) -> Scree:
    """Return a scree with noisy variances along released directions, by a plan.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    directions : ndarray of shape (d, k)
        Released directions, orthonormal.
    plan : Preparation
    numbers : ndarray
        A sample of `standard_numbers`.
    bound : float
        Public bound on the length of a row.
    """
    counts = len(numbers) - directions.shape[1] - 1
    lengths = lengths_of(rows)
    radius = min(float(radius_at(np.sort(lengths), plan, numbers[None, :counts])[0]), bound)
    short = shortened(rows, radius)
    along = np.square(short @ directions).mean(axis=0)
    whole = float(np.einsum("ij,ij->", short, short)) / len(short)
    exact = np.append(along, whole - along.sum())
    noisy = (exact + plan.noises[VARIANCE] * numbers[counts:] / plan.n) * radius**2
    std = (math.sqrt(2) if plan.pure else 1.0) * plan.noises[VARIANCE] / plan.n * radius**2
    variances = np.maximum(noisy[:-1], 0.0)
    total = max(float(noisy.sum()), float(variances.sum()))
    wide = std * math.sqrt(len(noisy))
    return Scree(variances, np.full(len(variances), std), total, wide, radius=radius)
