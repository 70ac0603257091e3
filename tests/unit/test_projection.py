"""The 2-D maps: alignment only rotates inside the released space."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.report.tables.projection import coordinates, procrustes


def frame(seed: int, d: int, k: int) -> FloatArray:
    q: FloatArray = np.linalg.qr(generator(seed, "frame").standard_normal((d, k)))[0]
    return q


@given(st.integers(0, 10**6), st.integers(2, 8), st.data())
def test_procrustes_agrees_with_scipy(seed: int, d: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, d))
    one, two = frame(seed, d, k), frame(seed + 1, d, k)
    turn = procrustes(one, two)
    np.testing.assert_allclose(turn.T @ turn, np.eye(k), atol=1e-12)
    expected, _ = orthogonal_procrustes(one, two)
    np.testing.assert_allclose(
        np.linalg.norm(one @ turn - two), np.linalg.norm(one @ expected - two), atol=1e-10
    )


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_aligned_pictures_do_not_depend_on_the_basis(seed: int, k: int) -> None:
    rows = generator(seed, "rows").standard_normal((9, 6))
    estimate, true, inside = frame(seed, 6, k), frame(seed + 1, 6, k), frame(seed + 2, k, k)
    one = coordinates(rows, estimate, true, "aligned")
    two = coordinates(rows, estimate @ inside, true, "aligned")
    assert one.shape == (9, min(k, 2))
    np.testing.assert_allclose(one, two, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_the_true_space_is_drawn_as_it_is(seed: int, k: int) -> None:
    rows, true = generator(seed, "rows").standard_normal((9, 6)), frame(seed, 6, k)
    expected = (rows @ true)[:, :2]
    flips = np.where(np.arange(k) % 2, -1.0, 1.0)
    for axes in ("aligned", "raw"):
        np.testing.assert_allclose(
            coordinates(rows, true * flips, true, axes), expected, atol=1e-12
        )
