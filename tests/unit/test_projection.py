"""The 2-D pictures: alignment turns inside the space and no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.report.tables.projection import PICTURE_COLUMNS, coordinates, picture_table, procrustes
from dpviz.simulation.compare import Result, compare


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
    released, true, inside = frame(seed, 6, k), frame(seed + 1, 6, k), frame(seed + 2, k, k)
    one = coordinates(rows, released, true, "aligned")
    two = coordinates(rows, released @ inside, true, "aligned")
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


@pytest.fixture(scope="module")
def results() -> list[Result]:
    settings = Settings(table="iris", trials=3, mechanisms=("gaussian", "ppca"), k=2)
    return list(compare(load_prepared(settings), settings).results)


@pytest.mark.parametrize("axes", ["aligned", "raw"])
def test_picture_table(results: list[Result], axes: str) -> None:
    prepared = load_prepared(Settings(table="iris"))
    table = picture_table(prepared, results, 1, axes, 60)
    assert tuple(table.columns) == PICTURE_COLUMNS
    assert table.groupby("mechanism", sort=False).size().to_dict() == {
        "": 60,
        "gaussian": 60,
        "ppca": 60,
    }
    assert set(table["label"]) == {"setosa", "versicolor", "virginica"}
    exact = table[table["mechanism"] == ""]
    rows, _ = prepared.picture(60)
    np.testing.assert_allclose(
        exact[["x", "y"]].to_numpy(), rows @ prepared.reference.eigenvectors[:, :2], atol=1e-12
    )
    # Every point of a unit ball stays within it.
    assert np.hypot(table["x"], table["y"]).max() <= 1 + 1e-12


def test_one_component_is_a_strip() -> None:
    settings = Settings(table="wine", trials=2, mechanisms=("laplace",), k=1)
    prepared = load_prepared(settings)
    made = list(compare(prepared, settings).results)
    table = picture_table(prepared, made, 0, "aligned", 50)
    heights = table["y"].to_numpy().reshape(2, 50)
    np.testing.assert_array_equal(heights[0], heights[1])  # the same point at the same height
    assert np.abs(heights).max() <= 1
    again = picture_table(prepared, made, 0, "aligned", 50)
    assert table.equals(again)


def test_a_table_without_labels_is_one_group() -> None:
    settings = Settings(table="spiked", trials=1, mechanisms=("gaussian",))
    prepared = load_prepared(settings)
    table = picture_table(prepared, list(compare(prepared, settings).results), 0, "raw", 20)
    assert set(table["label"]) == {"all"}
