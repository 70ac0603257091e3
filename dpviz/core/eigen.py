"""Eigendecompositions of releases, each as small as its result permits.

Small matrices go to LAPACK in one batch. Large matrices are reduced to tridiagonal form once: all
eigenvalues come from the tridiagonal matrix in d^2 steps, and only the leading eigenvectors are
transformed back. A spectral norm takes some tens of matrix-vector products (Lanczos).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal, lapack

from dpviz.core.arrays import FloatArray

BATCHED_BELOW = 150
"""Dimension from which one matrix at a time was measured to be faster than a batched call."""

LANCZOS_FROM = 300
"""Dimension from which a spectral norm by Lanczos was measured to beat all eigenvalues."""

_LANCZOS_STEPS = 400
_ACCURACY = 1e-11  # The spectral norm may have this relative error.


def top_eigen(matrices: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Return all eigenvalues and the k leading eigenvectors of symmetric matrices.

    Parameters
    ----------
    matrices : ndarray of shape (size, d, d)
        Symmetric matrices; only the lower triangles are read.
    k : int
        Number of eigenvectors, from 1 to d.

    Returns
    -------
    values : ndarray of shape (size, d), descending
    vectors : ndarray of shape (size, d, k)
        Orthonormal columns, in the order of the eigenvalues; their signs are arbitrary.
    """
    size, d = matrices.shape[0], matrices.shape[-1]
    if d < BATCHED_BELOW or 3 * k > d:
        values, vectors = np.linalg.eigh(matrices)
        return values[..., ::-1], vectors[..., ::-1][..., :k]
    spectra, leading = np.empty((size, d)), np.empty((size, d, k))
    for index, matrix in enumerate(matrices):
        spectra[index], leading[index] = _one(matrix, k)
    return spectra, leading


def _one(matrix: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Return all eigenvalues, descending, and the leading k eigenvectors of one large matrix."""
    d = len(matrix)
    length, _ = lapack.dsytrd_lwork(d, lower=1)
    reduced, diagonal, beside, tau, wrong = lapack.dsytrd(
        np.array(matrix, order="F"), lower=1, lwork=int(length), overwrite_a=1
    )
    # Root-free QR finds all eigenvalues of a tridiagonal matrix in d^2 steps, without vectors.
    values, unfinished = lapack.dsterf(diagonal, beside)
    if wrong or unfinished:
        return _whole(matrix, k)
    try:
        top = eigh_tridiagonal(diagonal, beside, select="i", select_range=(d - k, d - 1))[1]
    except np.linalg.LinAlgError:
        return _whole(matrix, k)
    # LAPACK stores the reflectors below the first subdiagonal; they keep the first coordinate.
    vectors: FloatArray = np.array(top[:, ::-1], dtype=np.float64, order="F")
    turned, _, wrong = lapack.dormqr(
        "L", "N", np.asfortranarray(reduced[1:, :-1]), tau, np.asfortranarray(vectors[1:]), 64 * k
    )
    if wrong:
        return _whole(matrix, k)
    vectors[1:] = turned
    return values[::-1], vectors


def _whole(matrix: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1][:, :k]


def spectral_norms(matrices: FloatArray) -> FloatArray:
    """Return the spectral norm of each symmetric matrix, shape (size,).

    The relative error is at most 1e-9; large matrices use `largest_in_size`.
    """
    d = matrices.shape[-1]
    if d < LANCZOS_FROM:
        norms: FloatArray = np.abs(np.linalg.eigvalsh(matrices)).max(axis=-1)
        return norms
    sizes = np.empty(len(matrices))
    for index, matrix in enumerate(matrices):
        norm = largest_in_size(matrix.__matmul__, d)
        sizes[index] = np.abs(np.linalg.eigvalsh(matrix)).max() if norm is None else norm
    return sizes


def residual_norms(
    values: FloatArray, basis: FloatArray, vectors: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return ||A - V diag(w) V'|| for each V and w, given the eigendecomposition of A.

    Parameters
    ----------
    values : ndarray of shape (r,)
    basis : ndarray of shape (d, r)
        Eigenvalues and eigenvectors of A; zero eigenvalues may be missing.
    vectors : ndarray of shape (size, d, k)
    weights : ndarray of shape (size, k)

    Returns
    -------
    ndarray of shape (size,)
        Spectral norms. In the eigenbasis the matrix is diagonal minus rank k, so a product with a
        vector costs d k.
    """
    d = len(values)
    if d < len(basis):
        return np.array(
            [_residual_of_few(values, basis, V, w) for V, w in zip(vectors, weights, strict=True)]
        )
    turned = basis.T @ vectors
    if d < BATCHED_BELOW:
        whole = np.diag(values) - (turned * weights[:, None, :]) @ turned.transpose(0, 2, 1)
        norms: FloatArray = np.abs(np.linalg.eigvalsh(whole)).max(axis=-1)
        return norms
    residuals = np.empty(len(vectors))
    for index, (V, w) in enumerate(zip(turned, weights, strict=True)):

        def product(x: FloatArray, V: FloatArray = V, w: FloatArray = w) -> FloatArray:
            moved: FloatArray = values * x - V @ (w * (V.T @ x))
            return moved

        norm = largest_in_size(product, d)
        if norm is None:
            whole = np.diag(values) - (V * w) @ V.T
            norm = float(np.abs(np.linalg.eigvalsh(whole)).max())
        residuals[index] = norm
    return residuals


def _residual_of_few(values: FloatArray, basis: FloatArray, V: FloatArray, w: FloatArray) -> float:
    """Return ||U diag(values) U' - V diag(w) V'||, in the space that U and V span together."""
    # Outside the space that both matrices span, the difference is 0, so the norm is the same.
    both = np.concatenate([basis, V], axis=1)
    frame = np.linalg.qr(both).Q
    inside = frame.T @ both
    weights = np.concatenate([values, -w])
    return float(np.abs(np.linalg.eigvalsh((inside * weights) @ inside.T)).max())


def largest_in_size(product: Callable[[FloatArray], FloatArray], d: int) -> float | None:
    """Return the largest absolute eigenvalue of a symmetric operator, or None if too slow.

    Parameters
    ----------
    product : callable
        A function that maps a vector of shape (d,) to its image.
    d : int

    Notes
    -----
    Lanczos with full reorthogonalisation from a fixed start. A Ritz value with residual r and the
    gap g to the other Ritz values on its side is off by at most r^2/g (Kaniel, Paige and Saad), so
    the process ends once r^2/g is below 1e-11 of the norm at each end of the spectrum that can hold
    the largest.
    """
    start = np.cos(np.arange(d, dtype=np.float64) * 1.618) + 0.5 * np.sin(np.arange(d) ** 2.0)
    basis = np.empty((min(d, _LANCZOS_STEPS), d))
    diagonal, beside = np.empty(len(basis)), np.empty(len(basis))
    basis[0] = start / math.sqrt(float(start @ start))
    for step in range(len(basis)):
        image = product(basis[step])
        diagonal[step] = image @ basis[step]
        # Orthogonalise twice, which is enough for full precision.
        for _ in range(2):
            image = image - basis[: step + 1].T @ (basis[: step + 1] @ image)
        length = beside[step] = math.sqrt(float(image @ image))
        last = step + 1 == len(basis)
        norm = float(np.abs(diagonal[: step + 1]).max() + 2 * beside[: step + 1].max())
        if length <= 1e-14 * norm or (step >= 11 and step % 6 == 5) or last:
            largest = _settled(diagonal[: step + 1], beside[: step + 1], d)
            if largest is not None:
                return largest
        if last or length <= 1e-14 * norm:
            return None
        basis[step + 1] = image / length
    return None


def _settled(diagonal: FloatArray, beside: FloatArray, d: int) -> float | None:
    """Return the tridiagonal matrix's norm if the residual bound shows convergence, else None."""
    if len(diagonal) == 1:
        return float(abs(diagonal[0])) if beside[0] == 0 else None
    values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
    residuals = np.abs(beside[-1] * vectors[-1])
    norm = float(np.abs(values).max())
    if len(diagonal) == d:
        return norm
    for end, next_to in ((0, 1), (-1, -2)):
        if abs(values[end]) + residuals[end] < norm * (1 - 1e-3):
            continue  # This end of the spectrum has a smaller eigenvalue.
        # Use no gap below the residual: the division then gives the residual itself.
        gap = max(abs(values[end] - values[next_to]) - residuals[next_to], residuals[end], 1e-300)
        if min(residuals[end], residuals[end] ** 2 / gap) > _ACCURACY * norm:
            return None
    return norm
