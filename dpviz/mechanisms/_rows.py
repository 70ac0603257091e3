"""Noise on the rows themselves, and the second moment of noisy rows.

For n rows X with i.i.d. noise N(0, S) on each, the Gram matrix of the noisy rows depends on X
through X'X alone. Let C be any matrix of min(n, d) rows with C'C = X'X. Then X = Q C for a Q with
orthonormal columns. Q'E and the part of the noise E orthogonal to Q are independent, so

    (X + E)'(X + E)  has the law of  (C + E1)'(C + E1) + S^1/2 W S^1/2

with E1 of min(n, d) noise rows and W ~ W_d(n - d, I), absent for n <= d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import of_size, symmetric_mean
from dpviz.core.moments import SecondMoment
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._directional import Directions, symmetrised
from dpviz.sampling.ensembles import wishart

_BLOCK = 1 << 20  # Maximum number of noise entries in a block: memory does not grow with n.


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Standard Gaussian noise on n rows, reduced to the parts that the Gram matrix needs.

    Attributes
    ----------
    head : ndarray of shape (size, min(n, d), d)
        Noise within the span of the rows.
    tail : ndarray of shape (size, d, d) or None
        Gram matrix of the noise outside this span; None for n <= d.
    """

    head: FloatArray
    tail: FloatArray | None

    @classmethod
    def draw(cls, draws: Draws, n: int, d: int) -> RowNoise:
        """Return the noise of each repetition."""
        head = draws.normal(min(n, d), d)
        outside = n - d
        # With at most as many rows as features, no noise lies outside the features' span.
        if outside <= 0:
            return cls(head, None)
        if outside >= d:
            return cls(head, wishart(draws, d, outside))
        # If n - d is below d, the Wishart matrix is singular, and this product is quicker.
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
        Number of rows represented.
    noise : RowNoise
    directions : Directions
    variances : ndarray of shape (m, d)
        Variances of the noise on a row along each direction.
    """
    count = noise.head.shape[1]
    lengths = np.sqrt(n * np.maximum(data.eigenvalues[:count], 0.0))
    # C'C equals X'X, so C stands for the rows, and the head of the noise is added to C.
    root = (lengths[:, None] * data.eigenvectors.T[:count])[None]
    if directions.bases is not None:
        root = root @ directions.bases
    std = np.sqrt(variances)
    head = noise.head * std[:, None, :]
    head += root
    moments = head.transpose(0, 2, 1) @ head
    if noise.tail is not None:
        moments += noise.tail * (std[:, :, None] * std[:, None, :])
    return np.asarray(symmetrised(moments) / n)


def debiased(
    moments: FloatArray, calibration: Calibration, directions: Directions, variances: FloatArray
) -> Release:
    """Return the release whose estimate subtracts the known noise covariance.

    The field ``raw`` is the moment before this subtraction.
    """
    raw = symmetrised(directions.leave(moments))
    # Noise on rows adds its covariance S to the moment. S is diagonal along the directions.
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
        Standard normal noise; the array is overwritten.
    directions : Directions
    variances : ndarray of shape (m, d)
        Variances of the noise on a row along each direction.
    """
    noise *= np.sqrt(variances)[:, None, :]
    if directions.bases is not None:
        noise = noise @ directions.bases.transpose(0, 2, 1)
    noise += rows
    return noise


def moment_of(rows: FloatArray) -> SecondMoment:
    """Return the second moment of rows, stored with the rows."""
    return SecondMoment(symmetric_mean(rows.T @ rows, len(rows)), len(rows), rows)


def laplace_rows(rows: FloatArray, draws: Draws) -> FloatArray:
    """Return i.i.d. Lap(1) noise on each cell, shape (size, n, d).

    The same stream gives the noise that `laplace_moments` uses.
    """
    n, d = rows.shape
    noise, step = np.empty((draws.size, n, d)), _laplace_step(n, d)
    room = np.empty(2 * step * d)
    for start in range(0, n, step):
        for part, single in zip(noise[:, start : start + step], draws.single(), strict=True):
            part[...] = _laplace(single, part, room)
    return noise


def laplace_moments(
    data: SecondMoment, scale: float, draws: Draws, along: FloatArray | None = None
) -> FloatArray:
    """Return (X + L)'(X + L)/n of rows X and i.i.d. Lap(scale) noise L, shape (size, d, d).

    The rows are processed one block at a time, in one pass, so memory does not grow with n.

    Parameters
    ----------
    data : SecondMoment
    scale : float
    draws : Draws
    along : ndarray of shape (features, d), optional
        Factor by which the rows are multiplied to give X.
    """
    d = data.d if along is None else along.shape[1]
    moments, singles, step = np.zeros((draws.size, d, d)), draws.single(), _laplace_step(data.n, d)
    blocks = (block if along is None else block @ along for _, block in data.blocks())
    room = np.empty(2 * step * d)
    for rows in of_size(blocks, step):
        for moment, single in zip(moments, singles, strict=True):
            noise = _laplace(single, rows, room)
            noise *= scale
            noise += rows
            moment += noise.T @ noise
    return np.asarray(symmetrised(moments) / data.n)


def _laplace_step(n: int, d: int) -> int:
    """Return how many of n rows of d cells get their noise at a time."""
    return min(n, max(1, _BLOCK // d))


def _laplace(single: Draws, like: FloatArray, room: FloatArray) -> FloatArray:
    """Return Lap(1) noise for each cell, in reused memory, because fresh memory takes longer."""
    (rng,) = single.generators
    pair = room[: 2 * like.size].reshape(2, *like.shape)
    rng.standard_exponential(out=pair)
    pair[0] -= pair[1]  # The difference of two standard exponentials has a Laplace law.
    noise: FloatArray = pair[0]
    return noise
