"""A second query in fewer dimensions, shared by the two funnels.

First the second moment of unit rows is released with noise. B holds its leading m eigenvectors,
a function of that release alone. Then rows are seen inside B: z = B'u/|B'u| (zero stays zero), unit
vectors again, so one person moves their second moment M2 by no more than before, while its noise
has m dimensions in place of d. Both looks estimate the same directions; they are averaged by their
noise, and the top k are taken.
"""

from __future__ import annotations

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import InBlocks
from dpviz.mechanisms._clipped import unit_rows
from dpviz.mechanisms._directional import symmetrised

GUESS = 0.25
"""Size that a component is guessed to have, of rows of length one: the second look has as many
dimensions as leave its noise's edge at that."""
_NEAR = 1 << 15  # numbers at once: what the processor keeps near
_LEAST_SHARE = 0.2  # of the rows' squared length that is taken to lie inside B


def dimensions(d: int, k: int, fitting: float) -> int:
    """Return m, the dimensions of the second query, from k + 4 to half of the features."""
    least = min(k + 4, d - 1)
    return int(min(max(round(fitting), least), max(d // 2, least)))


def top(matrices: FloatArray, count: int) -> FloatArray:
    """Return the leading eigenvectors of symmetric matrices, shape (..., d, count)."""
    vectors: FloatArray = np.linalg.eigh(matrices)[1][..., ::-1][..., :count]
    return vectors


def looked_again(
    rows: FloatArray,
    first: FloatArray,
    second_noise: FloatArray,
    stds: tuple[float, float],
    k: int,
) -> FloatArray:
    """Return the components of each repetition after the second query, shape (size, d, k).

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Of any length: they are passed over once, in blocks.
    first : ndarray of shape (size, d, d)
        The first release.
    second_noise : ndarray of shape (size, m, m)
    stds : (float, float)
        Of the noise of each look along a direction.
    k : int
    """
    base = top(first, second_noise.shape[-1])
    carried = base.transpose(0, 2, 1) @ first @ base
    components: FloatArray = base @ top(averaged(rows, base, carried, second_noise, stds)[0], k)
    return components


def averaged(
    rows: FloatArray,
    base: FloatArray,
    carried: FloatArray,
    second_noise: FloatArray,
    stds: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Return the average of both queries inside a basis, and its variance along a direction.

    Parameters
    ----------
    rows, second_noise, stds
        As of `looked_again`.
    base : ndarray of shape (size, d, m)
    carried : ndarray of shape (size, m, m)
        The first look inside the basis.

    Returns
    -------
    matrices : ndarray of shape (size, m, m)
    variances : ndarray of shape (size,)
    """
    # the share of squared length inside B; the second look has trace 1, what is carried has this
    inside = np.clip(np.trace(carried, axis1=1, axis2=2), _LEAST_SHARE, 1.0)
    firsts, second = np.square(stds[0] / inside), stds[1] ** 2
    share = second / (firsts + second)
    both = (share / inside)[:, None, None] * carried
    both += (1 - share)[:, None, None] * (moments_inside(rows, base) + second_noise)
    return both, share**2 * firsts + (1 - share) ** 2 * second


def moments_inside(rows: FloatArray, bases: FloatArray) -> FloatArray:
    """Return the second moment of unit rows projected to each basis, shape (size, m, m).

    With few rows many draws are made at once; the bytes of a draw do not depend on that.
    """
    n, m = len(rows), bases.shape[-1]
    step = max(_NEAR // (n * m), 1)
    moments = np.zeros((len(bases), m, m))
    for _, unit in InBlocks(rows, unit_rows).blocks():
        for start in range(0, len(bases), step):
            inside = unit @ bases[start : start + step]
            short = unit_rows(inside.reshape(-1, m)).reshape(inside.shape)
            moments[start : start + step] += short.transpose(0, 2, 1) @ short
    return symmetrised(moments / n)
