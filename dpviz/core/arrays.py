"""The array type of the core, and the sign that makes an eigenvector one vector."""

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
    signs[signs == 0] = 1
    fixed: FloatArray = vectors * signs
    return fixed
