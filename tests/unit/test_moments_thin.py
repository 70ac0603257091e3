"""A table of few rows and many columns: its exact results need no d x d matrix."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from dpviz.core.arrays import FloatArray
from dpviz.core.eigen import residual_norms
from dpviz.core.moments import SecondMoment
from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.preparation.bounding import prepare
from dpviz.preparation.prepared import Measured
from dpviz.simulation.compare import compare
from dpviz.studies.compare import Compared

N, D, K = 6, 400, 3
EXACT = ("random_projection", "non_private", "noisy_power_exact")


def table(n: int, d: int) -> Table:
    rows = np.random.default_rng(1).normal(size=(n, d)) * np.linspace(3, 1, d)
    return Table("wide", rows, tuple(f"c{i}" for i in range(d)))


def settings(**more: Any) -> Settings:
    return Settings(k=K, trials=4, mechanisms=EXACT, **more)


@pytest.fixture(scope="module")
def both() -> tuple[SecondMoment, SecondMoment]:
    """Return one moment in two forms: as its root and as its matrix."""
    root = np.random.default_rng(2).normal(size=(N, D)) / 10
    return SecondMoment.of_root(root, N), SecondMoment(root.T @ root, N)


def test_a_root_and_its_matrix_say_the_same(both: tuple[SecondMoment, SecondMoment]) -> None:
    thin, full = both
    assert (thin.d, thin.n) == (full.d, full.n) == (D, N)
    largest = full.eigenvalues[0]
    np.testing.assert_allclose(thin.eigenvalues, full.eigenvalues, atol=1e-13 * largest)
    np.testing.assert_allclose(thin.top(N), full.top(N), atol=1e-9)
    assert thin.total == pytest.approx(full.total, rel=1e-13)
    V = np.linalg.qr(np.random.default_rng(3).normal(size=(2, D, K))).Q
    np.testing.assert_allclose(thin.times(V), full.times(V), atol=1e-13)
    np.testing.assert_allclose(thin.A, full.A, atol=1e-15)
    weights = np.array([[3.0, -1.0, 0.5], [0.0, 0.0, 0.0]])
    ours, theirs = (residual_norms(*each.span, V, weights) for each in both)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert ours[1] == pytest.approx(largest)


def test_more_components_than_rows_are_orthonormal(both: tuple[SecondMoment, SecondMoment]) -> None:
    thin, _ = both
    for k in (N, N + 1, D):
        V = thin.top(k)
        assert V.shape == (D, k)
        np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(
        (thin.eigenvectors * thin.eigenvalues) @ thin.eigenvectors.T, thin.A, atol=1e-13
    )


def measures(prepared: Measured) -> dict[str, dict[str, FloatArray]]:
    return {r.mechanism.key: r.metrics for r in compare(prepared, settings()).results}


def test_every_measure_is_that_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = table(N, D)
    thin = prepare(wide, settings(row_bound="20"))
    monkeypatch.setattr("dpviz.preparation.passes.is_thin", lambda rows, d: False)
    full = prepare(wide, settings(row_bound="20"))
    assert thin.moment.root is not None
    assert full.moment.root is None
    assert thin.bounded_rows == full.bounded_rows > 0  # Clipping changes the exact moment.
    ours, theirs = measures(thin), measures(full)
    assert ours.keys() == theirs.keys() == set(EXACT)
    for key, metrics in theirs.items():
        assert ours[key].keys() == metrics.keys()
        for name, values in metrics.items():
            np.testing.assert_allclose(ours[key][name], values, rtol=1e-7, atol=1e-9)


def test_what_is_exact_takes_no_matrix() -> None:
    """Memory stays below a fifth of one d x d matrix of 72 MB; it was once several times 72 MB."""
    d = 3_000
    wide = table(5, d)
    tracemalloc.start()
    try:
        comparison = compare(prepare(wide, settings()), settings())
        Compared.of(comparison).to_json()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * d**2 / 5
