"""The array type of the core, an eigenvector's sign, and the nearest numbers on a simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def fix_signs(vectors: FloatArray) -> FloatArray:
    """Return vectors with the largest entry of each column made positive.

    Parameters
    ----------
    vectors : ndarray of shape (..., d, k)
    """
    largest = np.abs(vectors).argmax(axis=-2, keepdims=True)
    signs = np.sign(np.take_along_axis(vectors, largest, axis=-2))
    # a column of zeros keeps its sign
    signs[signs == 0] = 1
    fixed: FloatArray = vectors * signs
    return fixed


def on_the_simplex(values: FloatArray, most: FloatArray) -> FloatArray:
    """Return the nearest values that are at least 0 and sum to at most ``most``, per repetition.

    Parameters
    ----------
    values : ndarray of shape (size, d)
    most : ndarray of shape (size,)
        May be infinite.
    """
    projected: FloatArray = np.maximum(values, 0.0)
    for row, value, bound in zip(projected, values, most, strict=True):
        if row.sum() <= bound:
            continue
        # One number is taken from all, so that what is left above zero sums to the bound. Below the
        # largest, for a bound is lost beside a value that is 1e16 times as large.
        below = value - value.max()
        order = np.sort(below)[::-1]
        over = (np.cumsum(order) - bound) / np.arange(1, len(order) + 1)
        taken = over[np.flatnonzero(order >= over)[-1]]
        row[:] = np.maximum(below - taken, 0.0)
    return projected
