"""Random symmetric matrices: Wishart by Bartlett's decomposition, and the Gaussian ensemble."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import gammaincinv

from dpviz.core import eigen
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws


def _check(d: int, df: float) -> None:
    if d < 1:
        raise InvalidSetting("d", "at least 1", d)
    if not (math.isfinite(df) and df >= d):
        raise InvalidSetting("df", f"a finite number of at least d = {d}", df)


@lru_cache(maxsize=32)
def _halved_freedoms(d: int, df: float) -> FloatArray:
    """Return half the degrees of freedom of Bartlett's d diagonal chi-squares."""
    halves: FloatArray = 0.5 * (df - np.arange(d, dtype=np.float64))
    halves.flags.writeable = False  # Callers share this cached array, so nobody may change it.
    return halves


def _factor(diagonal: FloatArray, below: FloatArray) -> FloatArray:
    """Return lower triangular matrices from their diagonal and the numbers below it by rows."""
    size, d = diagonal.shape
    factor = np.zeros((size, d, d))
    for row in range(1, d):
        start = row * (row - 1) // 2
        factor[:, row, :row] = below[:, start : start + row]
    factor.reshape(size, d * d)[:, :: d + 1] = diagonal
    return factor


def _gram(factor: FloatArray) -> FloatArray:
    if factor.shape[-1] < eigen.BATCHED_BELOW:
        gram: FloatArray = factor @ factor.transpose(0, 2, 1)
        return gram
    # LAPACK multiplies an upper triangular matrix by its transpose in a sixth of the usual work.
    # Reversing both axes turns a lower triangle into an upper one.
    grams = np.empty_like(factor)
    for index, lower in enumerate(factor):
        upper, _ = lapack.dlauum(np.array(lower[::-1, ::-1], order="F"), lower=0, overwrite_c=1)
        half = np.triu(upper)
        half += np.triu(half, 1).T
        grams[index] = half[::-1, ::-1]
    return grams


def wishart(draws: Draws, d: int, df: float) -> FloatArray:
    """Return samples of the Wishart law W_d(df, I), whose mean is df I.

    Parameters
    ----------
    draws : Draws
    d : int
        Number of features, at least 1.
    df : float
        Degrees of freedom, real, at least d.

    Returns
    -------
    ndarray of shape (size, d, d)
        Symmetric positive definite matrices.

    Raises
    ------
    InvalidSetting
        If d < 1 or df < d.

    Source
    ------
    Bartlett 1933: W = L L' with L lower triangular, N(0, 1) below the diagonal
    and L_ii^2 ~ chi^2 with df - i degrees of freedom, i = 0, .., d - 1.
    """
    return wishart_of(*wishart_numbers(draws, d, df))


def wishart_numbers(draws: Draws, d: int, df: float) -> tuple[FloatArray, FloatArray]:
    """Return the random numbers of `wishart`, so that matrices can be built later together.

    Parameters and errors are as in `wishart`; the shapes are (size, d) and (size, d(d - 1)/2).
    """
    _check(d, df)
    halves = _halved_freedoms(d, df)
    gammas = np.empty((draws.size, d))
    if draws.shared:
        gammas[...] = draws.generators[0].standard_gamma(halves, size=(draws.size, d))
    else:
        for row, rng in zip(gammas, draws.generators, strict=True):
            row[...] = rng.standard_gamma(halves)
    return gammas, draws.normal(d * (d - 1) // 2)


def wishart_of(gammas: FloatArray, normals: FloatArray) -> FloatArray:
    """Return the matrices for `wishart_numbers`, shape (size, d, d)."""
    return _gram(_factor(np.sqrt(2.0 * gammas), normals))


def bartlett_factor(draws: Draws, d: int, df: float) -> FloatArray:
    """Return L with L L' ~ W_d(df, I), smooth in df on one random stream.

    The chi-squares come from uniforms by the inverse distribution function, and the normals do not
    depend on df. So on one stream, two close values of df give two close matrices.

    Parameters
    ----------
    draws : Draws
    d : int
        Number of features, at least 1.
    df : float
        Degrees of freedom, real, at least d.

    Returns
    -------
    ndarray of shape (size, d, d)
        Lower triangular matrices with positive diagonal.

    Raises
    ------
    InvalidSetting
        If d < 1 or df < d.
    """
    _check(d, df)
    # Use the centre of a uniform number's 2^-53 cell, because the centre is never exactly 0.
    uniforms = draws.uniform(d) + 2.0**-54
    diagonal = np.sqrt(2.0 * gammaincinv(_halved_freedoms(d, df), uniforms))
    return _factor(diagonal, draws.normal(d * (d - 1) // 2))


def wishart_from_uniforms(draws: Draws, d: int, df: float) -> FloatArray:
    """Return L L' for `bartlett_factor`'s L: W_d(df, I), smooth in df.

    Parameters and errors are as in `bartlett_factor`; the result has shape (size, d, d).
    """
    return _gram(bartlett_factor(draws, d, df))


# Symmetric noise matrices: i.i.d. upper triangle, mirrored --------------------------------------


@lru_cache(maxsize=32)
def _mirror(d: int) -> NDArray[np.intp]:
    """Return the position of each entry (i, j) in the packed upper triangle."""
    index = np.zeros((d, d), dtype=np.intp)
    index[np.triu_indices(d)] = np.arange(d * (d + 1) // 2)
    index = np.maximum(index, index.T)
    index.flags.writeable = False  # Callers share this cached array, so nobody may change it.
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


def _unpack(entries: FloatArray, d: int) -> FloatArray:
    # Copy the numbers into both triangles in one step, which is faster than adding the transpose.
    return entries.take(_mirror(d), axis=1)


def symmetric(draws: Draws, d: int) -> FloatArray:
    """Return symmetric matrices whose upper triangle is i.i.d. N(0, 1).

    Parameters
    ----------
    draws : Draws
    d : int
        Number of features, at least 1.

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
        Number of features, at least 1.

    Returns
    -------
    ndarray of shape (size, d, d)
        Symmetric matrices; diagonal N(0, 1), off-diagonal N(0, 1/2).
    """
    entries = draws.normal(_packed(d))
    entries *= _goe_scale(d)
    return _unpack(entries, d)


def symmetric_laplace(draws: Draws, d: int) -> FloatArray:
    """Return symmetric matrices whose upper triangle is i.i.d. Laplace of scale 1.

    Parameters
    ----------
    draws : Draws
    d : int
        Number of features, at least 1.

    Returns
    -------
    ndarray of shape (size, d, d)
        Every entry has mean 0, mean absolute value 1 and variance 2.
    """
    pair = draws.exponential(2, _packed(d))
    # The difference of two standard exponential variables has the law Lap(1).
    return _unpack(pair[:, 0] - pair[:, 1], d)
