"""Post-processing without privacy loss: its effects and its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpviz.core.arrays import on_the_simplex
from dpviz.core.seeding import generator
from dpviz.core.settings import FREE, Settings
from dpviz.datasets import load
from dpviz.datasets.table import Table
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.cells import cell_at
from dpviz.simulation.compare import Result, run_cell
from dpviz.simulation.simulate import Cell

SETTINGS = Settings(epsilon=0.3, delta=1e-6, trials=12, post=FREE)


@pytest.fixture(scope="module")
def wine() -> Prepared:
    return prepare(load("wine"), SETTINGS)


def cell_of(prepared: Prepared, text: str, settings: Settings = SETTINGS) -> Cell:
    cell = cell_at(prepared, settings, parse_variant(text), range(settings.trials))
    assert isinstance(cell, Cell)
    return cell


def both(prepared: Prepared, text: str, settings: Settings = SETTINGS) -> tuple[Result, Result]:
    cell = cell_of(prepared, text, settings)
    return run_cell(cell, prepared), run_cell(replace(cell, free=False), prepared)


def test_by_hand() -> None:
    values = np.array([[-1.0, 0.2, 0.5], [0.0, 0.0, 2.0], [0.5, 0.75, 1.0], [-3.0, -2.0, -1.0]])
    result = on_the_simplex(values, np.array([1.0, 1.0, 1.5, 1.0]))
    expected = [[0.0, 0.2, 0.5], [0.0, 0.0, 1.0], [0.25, 0.5, 0.75], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(result, expected, atol=1e-15)
    # Test noise so large that rounding loses the bound, and a bound of zero.
    vast = np.array([[-3e30, 1e30, 2e30], [-1.0, 0.5, 0.5]])
    far = on_the_simplex(vast, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(far, [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    free = on_the_simplex(values, np.full(4, np.inf))
    np.testing.assert_array_equal(free, np.maximum(values, 0))


@given(
    arrays(np.float64, 5, elements=st.floats(-10, 10)),
    arrays(np.float64, 5, elements=st.floats(0, 10)),
    st.floats(0.01, 20),
)
def test_it_is_the_nearest(values: np.ndarray, other: np.ndarray, most: float) -> None:
    """The projection on a convex set forms no acute angle with any other point of the set."""
    result = on_the_simplex(values[None], np.array([most]))[0]
    assert (result >= 0).all()
    assert result.sum() <= most * (1 + 1e-12)
    inside = other * min(1.0, most / max(float(other.sum()), 1e-300))
    assert float((values - result) @ (inside - result)) <= 1e-9


@pytest.mark.parametrize("key", sorted(all_mechanisms()))
def test_no_matrix_is_farther_from_what_was_seen(wine: Prepared, key: str) -> None:
    cell = cell_at(wine, SETTINGS, parse_variant(key), range(2))
    if isinstance(cell, str) or cell.mechanism.info.release == "subspace":
        return
    after, before = both(wine, key)
    if "noise_frobenius" not in before.metrics:
        return
    worse = after.metrics["noise_frobenius"] - before.metrics["noise_frobenius"]
    assert (worse <= 1e-12 * before.metrics["noise_frobenius"]).all()
    assert (after.metrics["negative_eigenvalues"] == 0).all()


def test_a_bound_that_does_not_hold_would_lead_away() -> None:
    """A nearly exact matrix gets worse if it is reduced to a trace below the true trace."""
    values = np.array([[0.1, 0.3, 0.6]])
    noisy = values + np.array([[0.001, -0.001, 0.0005]])
    result = on_the_simplex(noisy, np.array([0.5]))
    assert np.linalg.norm(result - values) > 10 * np.linalg.norm(noisy - values)


@pytest.mark.parametrize("key", ["spherical", "gaussian", "spherical_knorm", "clipped_gaussian"])
def test_directions_are_those_of_the_variant_that_weighs(wine: Prepared, key: str) -> None:
    after, before = both(wine, key)
    variant = run_cell(
        cell_of(wine, f"{key}[weigh=features]", replace(SETTINGS, post="none")), wine
    )
    np.testing.assert_array_equal(after.components, variant.components)
    assert not np.allclose(after.components, before.components)


@pytest.mark.parametrize("key", ["laplace", "wishart_exact", "separate_covariance", "funnel"])
def test_what_has_no_noise_along_directions_keeps_its_directions(wine: Prepared, key: str) -> None:
    after, before = both(wine, key)
    np.testing.assert_array_equal(after.components, before.components)


@pytest.mark.parametrize("key", ["gaussian", "clipped_gaussian", "ppca", "funnel"])
def test_it_costs_nothing_and_keeps_what_was_released(wine: Prepared, key: str) -> None:
    after, before = both(wine, key)
    assert (after.spent, after.claimed, after.status) == (
        before.spent, before.claimed, before.status,
    )  # fmt: skip
    assert before.before is None
    assert after.before is not None
    assert after.before.keys() == before.metrics.keys()
    for name, values in before.metrics.items():
        np.testing.assert_array_equal(after.before[name], values)


def test_behind_a_paid_preparation_only_negative_variances_go() -> None:
    rows = generator(0, "lunch").standard_normal((300, 5)) * [5.0, 1.0, 1.0, 1.0, 1.0]
    settings = replace(SETTINGS, row_bound="private:0.9", k=1)
    private = prepare(Table("t", rows, tuple("abcde")), settings)
    after, before = both(private, "gaussian", settings)
    np.testing.assert_array_equal(after.components, before.components)
    assert (after.metrics["negative_eigenvalues"] == 0).all()
    assert (before.metrics["negative_eigenvalues"] > 0).any()
