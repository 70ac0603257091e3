"""Noise on the rows themselves, and the second moment of noisy rows.

For n rows X with i.i.d. noise N(0, S) on each, the Gram matrix of the noisy
rows depends on X through X'X alone. With C any matrix of min(n, d) rows and
C'C = X'X, X = Q C for a Q with orthonormal columns; Q'E and the part of the
noise E orthogonal to Q are independent, so

    (X + E)'(X + E)  has the law of  (C + E1)'(C + E1) + S^1/2 W S^1/2

with E1 of min(n, d) noise rows and W ~ W_d(n - d, I), absent for n <= d.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._directional import Directions, symmetrised
from dpviz.sampling.ensembles import wishart

_BLOCK = 1 << 20  # noise entries drawn at a time, so that memory does not grow with n


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Standard Gaussian noise on n rows, reduced to what their Gram matrix needs.

    Attributes
    ----------
    head : ndarray of shape (size, min(n, d), d)
        Noise within the span of the rows.
    tail : ndarray of shape (size, d, d) or None
        Gram matrix of the noise outside it; None for n <= d.
    """

    head: FloatArray
    tail: FloatArray | None

    @classmethod
    def draw(cls, draws: Draws, n: int, d: int) -> RowNoise:
        """Return the noise of each draw."""
        head = draws.normal(min(n, d), d)
        outside = n - d
        # no more rows than features: all of the noise lies in their span
        if outside <= 0:
            return cls(head, None)
        if outside >= d:
            return cls(head, wishart(draws, d, outside))
        # fewer rows outside than features: the Wishart is singular, and a product is quicker
        rest = draws.normal(outside, d)
        return cls(head, symmetrised(rest.transpose(0, 2, 1) @ rest))


def noisy_moments(
    data: SecondMoment, n: int, noise: RowNoise, directions: Directions, variances: FloatArray
) -> FloatArray:
    """Return (X + E)'(X + E)/n in the coordinates of the directions, shape (size, d, d).

    Parameters
    ----------
    data : SecondMoment
    n : int
        Rows the release stands for.
    noise : RowNoise
    directions : Directions
    variances : ndarray of shape (m, d)
        Of the noise on a row along each direction.
    """
    count = noise.head.shape[1]
    lengths = np.sqrt(n * np.maximum(data.eigenvalues[:count], 0.0))
    # C, with C'C = X'X: the head's noise is added to it as to rows
    root = (lengths[:, None] * data.eigenvectors.T[:count])[None]
    if directions.bases is not None:
        root = root @ directions.bases
    std = np.sqrt(variances)
    head = noise.head * std[:, None, :]
    head += root
    moments = head.transpose(0, 2, 1) @ head
    if noise.tail is not None:
        moments += noise.tail * (std[:, :, None] * std[:, None, :])
    means: FloatArray = symmetrised(moments) / n
    return means


def debiased(
    moments: FloatArray, calibration: Calibration, directions: Directions, variances: FloatArray
) -> Release:
    """Return the release whose estimate subtracts the known noise covariance.

    ``raw`` is the moment of the noisy rows as it is.
    """
    raw = symmetrised(directions.leave(moments))
    # E[E'E]/n = S, diagonal in the coordinates of the directions
    estimate = moments - variances[:, :, None] * np.eye(moments.shape[-1])
    matrices = symmetrised(directions.leave(estimate))
    return Release.of_matrices(matrices, calibration.problem.k, raw=raw)


def noisy_rows(
    rows: FloatArray, noise: FloatArray, directions: Directions, variances: FloatArray
) -> FloatArray:
    """Return X + E for standard normal noise, shaped by the directions.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    noise : ndarray of shape (size, n, d)
        Standard normal; it is used up.
    directions : Directions
    variances : ndarray of shape (m, d)
        Of the noise on a row along each direction.
    """
    noise *= np.sqrt(variances)[:, None, :]
    if directions.bases is not None:
        noise = noise @ directions.bases.transpose(0, 2, 1)
    noise += rows
    return noise


def moment_of(rows: FloatArray) -> SecondMoment:
    """Return the second moment of rows, with the rows."""
    A = rows.T @ rows / len(rows)
    return SecondMoment((A + A.T) / 2, len(rows), rows)


def laplace_rows(rows: FloatArray, draws: Draws) -> FloatArray:
    """Return i.i.d. Lap(1) noise on each cell, shape (size, n, d).

    The same stream gives the noise whose moments `laplace_moments` returns.
    """
    noise = np.empty((draws.size, *rows.shape))
    for index, single in enumerate(draws.single()):
        for start, stop, part in _laplace_blocks(rows.shape, single):
            noise[index, start:stop] = part
    return noise


def _laplace_blocks(shape: tuple[int, ...], single: Draws) -> Iterator[tuple[int, int, FloatArray]]:
    """Yield start, stop and Lap(1) noise of each block of rows of one draw.

    The noise is overwritten by the next block's: fresh memory takes longer than the numbers in it.
    """
    n, d = shape
    block = max(1, _BLOCK // d)
    (rng,) = single.generators
    room = np.empty(2 * min(block, n) * d)
    for start in range(0, n, block):
        stop = min(start + block, n)
        pair = room[: 2 * (stop - start) * d].reshape(2, stop - start, d)
        rng.standard_exponential(out=pair)
        pair[0] -= pair[1]  # the difference of two standard exponentials
        yield start, stop, pair[0]


def laplace_moments(rows: FloatArray, scale: float, draws: Draws) -> FloatArray:
    """Return (X + L)'(X + L)/n of rows X and i.i.d. Lap(scale) noise L, shape (size, d, d).

    One draw and one block of rows at a time, so memory does not grow with n.
    """
    n, d = rows.shape
    moments = np.zeros((draws.size, d, d))
    for moment, single in zip(moments, draws.single(), strict=True):
        for start, stop, noise in _laplace_blocks(rows.shape, single):
            noise *= scale
            noise += rows[start:stop]
            moment += noise.T @ noise
    means: FloatArray = symmetrised(moments) / n
    return means
