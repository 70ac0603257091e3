"""Symmetric noise matrices: i.i.d. upper triangle, mirrored."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws


@lru_cache(maxsize=32)
def _mirror(d: int) -> NDArray[np.intp]:
    """Return, for each entry (i, j), where its value sits in the packed upper triangle."""
    index = np.zeros((d, d), dtype=np.intp)
    index[np.triu_indices(d)] = np.arange(d * (d + 1) // 2)
    index = np.maximum(index, index.T)
    index.flags.writeable = False  # cached, so nobody may change it
    return index


@lru_cache(maxsize=32)
def _goe_scale(d: int) -> FloatArray:
    """Return the standard deviations of the packed upper triangle of a GOE of scale 1."""
    rows, columns = np.triu_indices(d)
    scale = np.where(rows == columns, 1.0, math.sqrt(0.5))
    scale.flags.writeable = False
    return scale


def _packed(d: int) -> int:
    if d < 1:
        raise InvalidSetting("d", "at least 1", d)
    return d * (d + 1) // 2


def _unpack(packed: FloatArray, d: int) -> FloatArray:
    # One gather writes both triangles: cheaper than filling one and adding the transpose.
    return packed.take(_mirror(d), axis=1)


def symmetric(draws: Draws, d: int) -> FloatArray:
    """Return symmetric matrices whose upper triangle is i.i.d. N(0, 1).

    Parameters
    ----------
    draws : Draws
    d : int
        At least 1.

    Returns
    -------
    ndarray of shape (size, d, d)
        Diagonal and off-diagonal entries all have variance 1.
    """
    return _unpack(draws.normal(_packed(d)), d)


def goe(draws: Draws, d: int) -> FloatArray:
    """Return Gaussian orthogonal ensemble matrices of scale 1.

    The law is isotropic in the Frobenius inner product, so it does not change
    under rotation.

    Parameters
    ----------
    draws : Draws
    d : int
        At least 1.

    Returns
    -------
    ndarray of shape (size, d, d)
        Symmetric; diagonal N(0, 1), off-diagonal N(0, 1/2).
    """
    packed = draws.normal(_packed(d))
    packed *= _goe_scale(d)
    return _unpack(packed, d)


def symmetric_laplace(draws: Draws, d: int) -> FloatArray:
    """Return symmetric matrices whose upper triangle is i.i.d. Laplace of scale 1.

    Parameters
    ----------
    draws : Draws
    d : int
        At least 1.

    Returns
    -------
    ndarray of shape (size, d, d)
        Every entry has mean 0, mean absolute value 1 and variance 2.
    """
    pair = draws.exponential(2, _packed(d))
    # The difference of two standard exponentials is Lap(1).
    return _unpack(pair[:, 0] - pair[:, 1], d)
