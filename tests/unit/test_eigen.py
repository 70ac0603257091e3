"""Reduced decompositions agree with full ones to far better than 1e-9."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpviz.core import eigen
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.ensembles import wishart


def symmetric(name: str, d: int, size: int = 2) -> np.ndarray:
    rng = generator(0, "eigen", name, d)
    if name == "noise":
        raw = rng.standard_normal((size, d, d))
    elif name == "spiked":
        spikes = np.diag(np.concatenate([[3.0, 3.0, 1.0, 0.9], np.full(d - 4, 0.01)]))
        raw = spikes + 1e-4 * rng.standard_normal((size, d, d))
    elif name == "ties":
        Q = np.linalg.qr(rng.standard_normal((d, d))).Q
        raw = np.repeat((Q * np.repeat([2.0, 1.0], [d // 2, d - d // 2])) @ Q.T, 1, axis=0)[None]
        raw = np.repeat(raw, size, axis=0)
    elif name == "balanced":  # Both ends of the spectrum have equal eigenvalues.
        half = rng.standard_normal((size, d // 2, d // 2))
        half = half + half.transpose(0, 2, 1)
        raw = np.zeros((size, d, d))
        raw[:, : d // 2, : d // 2] = half
        raw[:, d - d // 2 :, d - d // 2 :] = -half
    else:
        raw = np.zeros((size, d, d))
    return (raw + raw.transpose(0, 2, 1)) / 2


NAMES = ("noise", "spiked", "ties", "balanced", "zero")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("d", [20, 151, 310])
@pytest.mark.parametrize("k", [1, 5])
def test_values_and_leading_vectors_are_those_of_eigh(name: str, d: int, k: int) -> None:
    matrices = symmetric(name, d)
    values, vectors = eigen.top_eigen(matrices, k)
    size = max(1e-300, float(np.abs(matrices).max())) * d
    np.testing.assert_allclose(values[:, ::-1], np.linalg.eigvalsh(matrices), atol=1e-13 * size)
    assert (np.diff(values, axis=1) <= 0).all()
    gram = vectors.transpose(0, 2, 1) @ vectors
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(k), gram.shape), atol=1e-10)
    # Test eigenvectors by their equation: with equal eigenvalues they are not unique.
    np.testing.assert_allclose(matrices @ vectors, vectors * values[:, None, :k], atol=1e-12 * size)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("d", [20, 310, 420])
def test_norms_are_those_of_all_eigenvalues(name: str, d: int) -> None:
    matrices = symmetric(name, d)
    expected = np.abs(np.linalg.eigvalsh(matrices)).max(axis=1)
    np.testing.assert_allclose(eigen.spectral_norms(matrices), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("d", [20, 200])
def test_residual_norms_are_those_of_the_difference(d: int) -> None:
    A = symmetric("spiked", d)[0] + 2 * np.eye(d)
    values, basis = np.linalg.eigh(A)
    top, V = eigen.top_eigen(A + 0.3 * symmetric("noise", d, 3), 4)
    whole = A - (V * top[:, None, :4]) @ V.transpose(0, 2, 1)
    expected = np.abs(np.linalg.eigvalsh(whole)).max(axis=1)
    norms = eigen.residual_norms(values, basis, V, top[:, :4])
    np.testing.assert_allclose(norms, expected, rtol=1e-9)


def test_only_lower_triangles_are_read() -> None:
    for d in (20, 200):
        matrix = symmetric("noise", d, 1)
        wrong = matrix.copy()
        wrong[:, *np.triu_indices(d, 1)] = 7.0
        before = wrong.copy()
        for one, two in zip(eigen.top_eigen(matrix, 3), eigen.top_eigen(wrong, 3), strict=True):
            np.testing.assert_allclose(np.abs(one), np.abs(two), atol=1e-12)
        np.testing.assert_array_equal(wrong, before)


@pytest.mark.parametrize("df", [170.0, 400.5])
def test_large_wisharts_are_the_product_of_the_same_factor(
    df: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn() -> np.ndarray:
        return wishart(Draws.trials(0, "w", range(2)), 160, df)

    fast = drawn()
    np.testing.assert_array_equal(fast, fast.transpose(0, 2, 1))
    monkeypatch.setattr(eigen, "BATCHED_BELOW", 10**9)
    np.testing.assert_allclose(fast, drawn(), rtol=1e-12, atol=1e-10)


def test_each_matrix_has_its_own_bytes_whatever_the_batch() -> None:
    matrices = symmetric("noise", 200, 3)
    functions: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
        lambda m: eigen.top_eigen(m, 2)[1],
        eigen.spectral_norms,
    )
    for function in functions:
        together = function(matrices)
        for index in range(3):
            alone = function(matrices[index : index + 1])
            assert alone.tobytes() == together[index : index + 1].tobytes()
