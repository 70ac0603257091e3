"""The array type of the core, the sign of eigenvectors, and projection onto a simplex."""

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
    # If a column is all zeros, use the sign 1, so that the column does not change.
    signs[signs == 0] = 1
    fixed: FloatArray = vectors * signs
    return fixed


def on_the_simplex(values: FloatArray, most: FloatArray) -> FloatArray:
    """Return the nearest values that are at least 0 and sum to at most ``most``, per repetition.

    Parameters
    ----------
    values : ndarray of shape (size, d)
    most : ndarray of shape (size,)
        Upper bound of each sum, which may be infinite.
    """
    projected: FloatArray = np.maximum(values, 0.0)
    for row, value, bound in zip(projected, values, most, strict=True):
        if row.sum() <= bound:
            continue
        # Subtract one number from all values, so that the positive results sum to the bound. First
        # subtract the largest value: rounding loses a bound beside a value 1e16 times as large.
        below = value - value.max()
        order = np.sort(below)[::-1]
        over = (np.cumsum(order) - bound) / np.arange(1, len(order) + 1)
        taken = over[np.flatnonzero(order >= over)[-1]]
        row[:] = np.maximum(below - taken, 0.0)
    return projected
