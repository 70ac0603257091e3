"""A second query in fewer dimensions, shared by the two funnels.

First the second moment of unit rows is released with noise. B holds its leading m eigenvectors, a
function of that release alone. The second query sees rows inside B: z = B'u/|B'u| (zero stays
zero). These are unit vectors again, so one person moves their second moment M2 by no more than
before. The noise of M2 has m dimensions instead of d. Both queries estimate the same directions.
They are averaged with weights by their noise, and the top k components are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import block_rows
from dpviz.core.moments import SecondMoment
from dpviz.mechanisms._clipped import unit_rows
from dpviz.mechanisms._directional import symmetrised

GUESS = 0.25
"""Guessed size of a component of rows of length one. The second query has the number of dimensions
at which the edge of its noise has this size."""
_NEAR = 1 << 15  # Maximum number of numbers in a block, so that it fits the processor's cache.
_LEAST_SHARE = 0.2  # Least share of squared length that is assumed to lie inside the basis.


def dimensions(d: int, k: int, fitting: float) -> int:
    """Return m, the dimensions of the second query, from k + 4 to half of the features."""
    least = min(k + 4, d - 1)
    return int(min(max(round(fitting), least), max(d // 2, least)))


def top(matrices: FloatArray, count: int) -> FloatArray:
    """Return the leading eigenvectors of symmetric matrices, shape (..., d, count)."""
    vectors: FloatArray = np.linalg.eigh(matrices)[1][..., ::-1][..., :count]
    return vectors


def looked_again(
    data: SecondMoment, first: FloatArray, noise: FloatArray, stds: tuple[float, float], k: int
) -> FloatArray:
    """Return the components of each repetition after the second query, shape (size, d, k).

    Parameters
    ----------
    data : SecondMoment
        The moment, whose rows, of any length, are read once, in blocks.
    first : ndarray of shape (size, d, d)
        The first release.
    noise : ndarray of shape (size, m, m)
        Noise added to the second query.
    stds : (float, float)
        Standard deviation of each query's noise along a direction.
    k : int
    """
    base = top(first, noise.shape[-1])
    carried = base.transpose(0, 2, 1) @ first @ base
    (second,) = moments_inside(data, [base])
    components: FloatArray = base @ top(averaged(carried, second + noise, stds)[0], k)
    return components


def averaged(
    carried: FloatArray, look: FloatArray, stds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the average of both queries inside a basis, and its variance along any direction.

    Parameters
    ----------
    carried, look : ndarray of shape (size, m, m)
        The first query inside the basis, and the second query, both with noise.
    stds : (float, float)
        The same parameter as in `looked_again`.

    Returns
    -------
    matrices : ndarray of shape (size, m, m)
    variances : ndarray of shape (size,)
    """
    # Rows of length 1 have trace 1, so this trace is their share of squared length in the basis.
    inside = np.clip(np.trace(carried, axis1=1, axis2=2), _LEAST_SHARE, 1.0)
    firsts, second = np.square(stds[0] / inside), stds[1] ** 2
    share = second / (firsts + second)
    both = (share / inside)[:, None, None] * carried
    both += (1 - share)[:, None, None] * look
    return both, share**2 * firsts + (1 - share) ** 2 * second


def moments_inside(data: SecondMoment, bases: Sequence[NDArray[Any]]) -> list[FloatArray]:
    """Return the second moments of unit rows projected to bases, in one pass over the rows.

    With few rows, several repetitions are computed at once, which does not change their bytes.

    Parameters
    ----------
    data : SecondMoment
    bases : sequence of ndarrays of shape (size, d, m), or of int, shape (m,)
        Bases, each with its own size and m; or the features to keep, with a size of 1.

    Returns
    -------
    list of ndarrays of shape (size, m, m)
    """
    counts = [(len(base) if base.ndim == 3 else 1, base.shape[-1]) for base in bases]
    moments = [np.zeros((size, m, m)) for size, m in counts]
    most = min(data.n, block_rows(data.d))
    for _, unit in data.blocks(unit_rows) if bases else ():
        for base, moment in zip(bases, moments, strict=True):
            m = base.shape[-1]
            step = max(_NEAR // (most * m), 1)
            for start in range(0, len(moment), step):
                part = base[start : start + step]
                inside = unit @ part if base.ndim == 3 else unit.take(base, axis=1)[None]
                short = unit_rows(inside.reshape(-1, m)).reshape(inside.shape)
                moment[start : start + step] += short.transpose(0, 2, 1) @ short
    return [symmetrised(moment / data.n) for moment in moments]
