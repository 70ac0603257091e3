"""Preparation: every option, its assumed public facts, and rows that stay in the domain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from dpviz.accounting.sensitivity import (
    frobenius,
    l1_entries,
    l1_upper,
    l2_upper,
    nuclear,
    spectral,
)
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.problem import Relation, default_delta
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.passes import RowsDigest
from dpviz.simulation.cells import plan
from dpviz.simulation.compare import run_cell


def table_of(rows: Any, name: str = "made", **more: Any) -> Table:
    array = np.array(rows, dtype=float)
    return Table(name, array, tuple(f"x{j}" for j in range(array.shape[1])), **more)


def random_table(n: int = 200, d: int = 4, seed: int = 0) -> Table:
    rng = generator(seed, "table", n, d)
    return table_of(rng.standard_normal((n, d)) * np.geomspace(3, 0.5, d) + np.arange(d))


def bounded(prepared: Prepared) -> FloatArray:
    rows = prepared.moment_with_rows.rows
    assert rows is not None
    return rows


def moment_of(rows: FloatArray) -> FloatArray:
    return rows.T @ rows / len(rows)


# Ball ----------------------------------------------------------------------------------------


def test_defaults_centre_and_divide_by_the_longest_row() -> None:
    table = random_table()
    result = prepare(table, Settings())
    deviations = table.rows - table.rows.mean(axis=0)
    longest = np.linalg.norm(deviations, axis=1).max()
    assert result.row_bound == pytest.approx(longest, rel=1e-14)
    assert_allclose(result.moment.A, moment_of(deviations / longest), rtol=0, atol=1e-15)
    assert result.reference is result.moment
    assert result.bounded_rows == 0
    assert result.notes == ()
    assert (result.n, result.d) == (200, 4)
    assert result.domain.kind == "ball"


def test_what_is_assumed_public_is_listed() -> None:
    table = random_table()
    assert prepare(table, Settings()).assumed_public == (
        "the number of rows n and the features' names",
        "the feature means",
        "the row-norm bound R (largest row norm)",
    )
    cautious = Settings(center="none", row_bound="50")
    assert prepare(table, cautious).assumed_public == (
        "the number of rows n and the features' names",
    )
    careless = Settings(scale="standardize", row_bound="quantile:0.9")
    assert prepare(table, careless).assumed_public[1:] == (
        "the feature means",
        "the feature scales (standard deviations)",
        "the row-norm bound R (a quantile of the row norms)",
    )
    with_labels = table_of(table.rows, assumed_public=("the labels",))
    assert "the labels" in prepare(with_labels, Settings()).assumed_public
    box = prepare(table, Settings(domain="box")).assumed_public
    assert box[1:] == ("the feature bounds (smallest and largest value of each feature)",)
    with_bounds = table_of(table.rows, bounds=np.array([[-90.0, 90.0]] * 4))
    assert prepare(with_bounds, Settings(domain="box", bounds="known")).assumed_public == (
        "the number of rows n and the features' names",
    )


@pytest.mark.parametrize("center", ["mean", "midpoint", "none"])
def test_centring(center: str) -> None:
    table = random_table()
    low, high = table.rows.min(axis=0), table.rows.max(axis=0)
    expected = {"mean": table.rows.mean(axis=0), "midpoint": (low + high) / 2, "none": 0 * low}
    result = prepare(table, Settings(center=center))
    assert_allclose(result.transform.center, expected[center], atol=1e-14)


def test_standardising_divides_by_the_population_deviation() -> None:
    table = random_table()
    result = prepare(table, Settings(scale="standardize", row_bound="4"))
    z_scores = (table.rows - table.rows.mean(axis=0)) / table.rows.std(axis=0)
    # Summing in a different order changes means by a few units in the last digit.
    assert_allclose(result.transform.unbounded(table.rows), z_scores / 4, rtol=0, atol=1e-14)
    assert_allclose(np.diag(result.reference.A), 1 / 16, rtol=1e-12)


def test_a_row_bound_shortens_longer_rows_and_keeps_their_direction() -> None:
    table = table_of([[3.0, 4.0], [0.3, 0.4], [-6.0, 8.0], [0.0, 2.0]])
    result = prepare(table, Settings(center="none", row_bound="2"))
    assert result.row_bound == 2
    assert result.bounded_rows == 2
    assert_allclose(bounded(result), [[0.6, 0.8], [0.15, 0.2], [-0.6, 0.8], [0.0, 1.0]], atol=1e-15)
    assert_allclose(result.reference.A, moment_of(table.rows / 2), atol=1e-15)
    assert_allclose(result.moment.A, moment_of(bounded(result)), atol=1e-15)
    assert result.notes == ("2 of 4 rows (50\u00a0%) were scaled down to the row-norm bound.",)


@pytest.mark.parametrize("level", [0.25, 0.9, 1.0])
def test_quantile_row_bound(level: float) -> None:
    table = random_table()
    norms = np.linalg.norm(table.rows - table.rows.mean(axis=0), axis=1)
    result = prepare(table, Settings(row_bound=f"quantile:{level}"))
    assert result.row_bound == pytest.approx(np.quantile(norms, level), rel=1e-14)
    above = (norms > np.quantile(norms, level) * (1 + 1e-12)).sum()
    assert result.bounded_rows == above


def test_zero_rows_stay_zero() -> None:
    result = prepare(table_of([[0, 0], [1, 2], [3, 1], [0, 0]]), Settings(center="none"))
    assert_allclose(bounded(result)[[0, 3]], 0)
    assert np.isfinite(result.moment.A).all()


# Box -----------------------------------------------------------------------------------------


def test_a_box_maps_the_bounds_to_one() -> None:
    table = random_table()
    result = prepare(table, Settings(domain="box"))
    rows = bounded(result)
    assert_allclose(rows.min(axis=0), -1)
    assert_allclose(rows.max(axis=0), 1)
    assert result.row_bound == math.sqrt(4)
    assert result.domain.half_widths == (1.0,) * 4
    assert result.bounded_rows == 0


def test_bounds_from_a_file_clip() -> None:
    table = table_of([[0.0, 0.0], [10.0, 5.0], [4.0, -3.0]])
    bounds = {"x0": (0.0, 8.0), "x1": (-4.0, 4.0), "other": (0.0, 1.0)}
    result = prepare(table, Settings(domain="box", bounds=bounds))
    assert_allclose(bounded(result), [[-1, 0], [1, 1], [0, -0.75]])
    assert result.bounded_rows == 1
    assert result.notes == ("1 of 3 rows (33\u00a0%) were clipped to the box.",)
    assert result.assumed_public == ("the number of rows n and the features' names",)
    assert_allclose(result.reference.A, moment_of(np.array([[-1, 0], [1.5, 1.25], [0, -0.75]])))


def test_a_box_without_centring_is_symmetric_around_zero() -> None:
    table = table_of([[1.0, -5.0], [3.0, 2.0]])
    result = prepare(table, Settings(domain="box", center="none"))
    assert_allclose(result.transform.scale, [3, 5])
    assert_allclose(bounded(result), [[1 / 3, -1], [1, 0.4]])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(domain="box", bounds="known"), "this table has no known bounds"),
        (Settings(domain="box", bounds="a.csv"), "max, known, private, LOW:HIGH or a file"),
        (Settings(domain="box", bounds={"x0": (0.0, 1.0)}), "'x1' has no bounds"),
        (Settings(domain="box", bounds={"x0": (0.0, 1.0), "x1": (2.0, 1.0)}), "low below high"),
        (
            Settings(domain="box", bounds={"x0": (0.0, math.inf), "x1": (0.0, 2.0)}),
            "low below high",
        ),
        (Settings(center="none", row_bound="quantile:0.5"), "above 0 and finite"),
        (Settings(center="none", row_bound="1e-100"), "within a factor"),
        # On such large rows, the square of the noise would overflow.
        (Settings(row_bound="private:0.8", bounds="-1e+100:1e+100"), "within a factor 1e50 of"),
    ],
)
def test_bad_bounds_are_one_sentence(settings: Settings, words: str) -> None:
    table = table_of([[0, 0], [0, 0], [0, 0], [7.123, 3.456], [1, 1]])
    with pytest.raises(InvalidSetting) as caught:
        prepare(table, settings)
    assert words in str(caught.value)
    assert "7.123" not in str(caught.value)
    assert caught.value.flag in ("--bounds", "--row-bound")


def test_rows_far_shorter_than_their_bound_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="within a factor"):
        prepare(table_of([[1e-9, 0], [0, 1e-9]]), Settings(center="none", row_bound="1e+100"))


# Columns -------------------------------------------------------------------------------------


def test_constant_columns_are_left_out() -> None:
    table = table_of([[1, 5, 2, 0], [1, 6, 2, 1], [1, 7, 2, 0]])
    result = prepare(table, Settings())
    assert result.columns == ("x1", "x3")
    assert result.d == 2
    assert result.notes == ("2 constant columns were left out; 2 features remain.",)
    assert "which columns are constant" in result.assumed_public
    one = prepare(table_of([[1, 5, 0], [1, 6, 1]]), Settings())
    assert one.notes == ("1 constant column was left out; 2 features remain.",)


@pytest.mark.parametrize("scale", ["none", "standardize"])
@pytest.mark.parametrize("value", [1e200, -1e308, 1e-250])
def test_numbers_whose_squares_overflow_or_vanish_are_refused(value: float, scale: str) -> None:
    with pytest.raises(InvalidTable, match=r"Change the unit of column 'x1'") as caught:
        prepare(table_of([[1, 0], [2, value], [4, 0]]), Settings(scale=scale))
    assert f"{value:g}" not in str(caught.value)


# Laws ----------------------------------------------------------------------------------------

CELLS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1e-9, 1e50, -1e50])
TABLES = hnp.arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(2, 4)), elements=CELLS)
OPTIONS = st.fixed_dictionaries(
    {
        "center": st.sampled_from([None, "midpoint", "none"]),
        "scale": st.sampled_from(["none", "standardize"]),
        "row_bound": st.sampled_from(["max", "quantile:0.6", "quantile:1", "3.5"]),
        "domain": st.sampled_from(["ball", "box"]),
    }
)


@given(TABLES, OPTIONS)
def test_rows_are_always_inside_the_domain(rows: FloatArray, options: dict[str, Any]) -> None:
    try:
        result = prepare(table_of(rows), Settings(**options))
    except (InvalidTable, InvalidSetting):
        return  # The rule may fail: for a constant column, or a quantile of zero.
    inside = bounded(result)
    if result.domain.kind == "box":
        assert np.abs(inside).max() <= 1
    else:
        # The rounding of a quotient and of a norm of 4 numbers is a few parts in 1e16.
        assert np.linalg.norm(inside, axis=1).max() <= 1 + 1e-15
    assert np.isfinite(result.reference.A).all()
    assert_allclose(result.moment.A, moment_of(inside), rtol=0, atol=1e-14)
    assert result.reference.total > 0
    assert 0 <= result.bounded_rows <= len(rows)
    assert (result.reference is result.moment) == (result.bounded_rows == 0)


@given(TABLES, OPTIONS)
def test_bounded_rows_are_a_fixed_point(rows: FloatArray, options: dict[str, Any]) -> None:
    try:
        result = prepare(table_of(rows), Settings(**options))
        again = table_of(bounded(result))
        box = {f"x{j}": (-1.0, 1.0) for j in range(result.d)}
        settings = (
            Settings(domain="box", bounds=box)
            if result.domain.kind == "box"
            else Settings(center="none", row_bound="1")
        )
        second = prepare(again, settings)
    except (InvalidTable, InvalidSetting):
        return  # The settings may leave no table, or only equal rows.
    assert second.bounded_rows == 0
    if second.d == result.d:
        assert_allclose(second.moment.A, result.moment.A, rtol=0, atol=1e-14)


def test_a_million_rows_in_blocks_equal_one_shot() -> None:
    rows = generator(3, "million").standard_normal((1_000_000, 3)) + np.array([0, 5, -2])
    result = prepare(table_of(rows), Settings(scale="standardize", row_bound="quantile:0.95"))
    z_scores = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    norms = np.linalg.norm(z_scores, axis=1)
    bound = np.quantile(norms, 0.95)
    assert result.row_bound == pytest.approx(bound, rel=1e-12)
    assert result.bounded_rows == (norms > bound * (1 + 1e-12)).sum()
    clipped_rows = z_scores / np.maximum(norms, bound)[:, None]
    assert_allclose(result.moment.A, moment_of(clipped_rows), rtol=1e-11, atol=1e-13)
    assert_allclose(result.reference.A, moment_of(z_scores / bound), rtol=1e-11, atol=1e-13)


def test_the_picture_is_a_fixed_sample_in_table_order() -> None:
    result = prepare(random_table(300), Settings())
    rows, index = result.picture(40)
    again, same = result.picture(40)
    assert rows.shape == (40, 4)
    assert (np.diff(index) > 0).all()
    np.testing.assert_array_equal(index, same)
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_array_equal(rows, bounded(result)[index])
    everything, index = result.picture(10_000)
    assert len(everything) == 300
    np.testing.assert_array_equal(index, np.arange(300))


def test_problem_and_budget() -> None:
    result = prepare(random_table(), Settings())
    problem = result.problem(Settings(k=3, relation="zero-out"))
    assert (problem.n, problem.d, problem.k) == (200, 4, 3)
    assert problem.relation is Relation.ZERO_OUT
    assert result.budget(Settings()).delta == default_delta(200)
    assert result.budget(Settings(delta=0.0)).delta == 0
    with pytest.raises(InvalidSetting, match="k must be a whole number from 1 to 4; got '5'"):
        result.problem(Settings(k=5))


# No bound ------------------------------------------------------------------------------------


def test_without_a_bound_rows_stay_as_long_as_they_come() -> None:
    """Without a bound, rows stay in table units and no row-norm bound is assumed public."""
    rows = random_table().rows.copy()
    rows[3] *= 1_000
    table = table_of(rows)
    result = prepare(table, Settings(row_bound="none"))
    expected = table.rows - table.rows.mean(axis=0)
    np.testing.assert_allclose(bounded(result), expected, rtol=1e-12)
    assert not result.domain.bounded
    assert result.row_bound == 1
    assert result.moment is result.reference
    assert not any("row-norm bound" in item for item in result.assumed_public)
    # Control: with a row-norm bound, the list of public assumptions names the bound.
    assert any("row-norm bound" in item for item in prepare(table, Settings()).assumed_public)
    again = result.rebound("max")
    assert again.domain.bounded
    np.testing.assert_allclose(again.moment.A * again.row_bound**2, result.moment.A, rtol=1e-9)


def test_a_sensitivity_without_a_bound_is_infinite() -> None:
    problem = prepare(random_table(), Settings(row_bound="none")).problem(Settings())
    for reach in (frobenius, nuclear, l2_upper, l1_upper, l1_entries, spectral):
        assert reach(problem) == math.inf
    assert problem.domain.radius == math.inf


def test_a_paid_mean_goes_without_a_row_bound() -> None:
    """With a private mean, each release's rows are centred and not clipped."""
    settings = Settings(
        row_bound="none", center="private", bounds="-20:20", epsilon=1e5, trials=3,
        mechanisms=("spherical", "gaussian"),
    )  # fmt: skip
    table = prepare(random_table(), settings)
    setting = plan(table, settings, strict=False)
    (cell,), (left,) = setting.cells, setting.skipped
    assert "row-norm bound" in left.reason
    assert run_cell(cell, table).metrics["recovery"].min() > 0.9


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_digest_of_rows_depends_on_every_cell_and_place_and_on_no_cut(a: int, b: int) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 3))
    whole = digest_of([rows])
    assert digest_of(np.split(rows, sorted((a, b)))) == whole
    other = rows.copy()
    if a < 40 and b < 40 and a != b:
        other[[a, b]] = rows[[b, a]]
        assert digest_of([other]) != whole
        other = rows.copy()
        other[a, b % 3] = np.nextafter(rows[a, b % 3], 9.0)
        assert digest_of([other]) != whole
    assert digest_of([rows[:, ::-1]]) != whole
    assert (
        digest_of([rows * 0.0]) == digest_of([np.zeros((40, 3))]) != digest_of([np.zeros((39, 3))])
    )


def digest_of(blocks: Sequence[FloatArray]) -> tuple[int, int]:
    """Return digest and count of rows that come in blocks, half of them added and half merged."""
    digest = RowsDigest()
    for number, block in enumerate(blocks):
        if number % 2 == 0 and len(block):
            digest.add(block, 0)
        elif len(block):
            part = RowsDigest()
            part.add(block, 0)
            digest.merge(part)
    return digest.value, digest.rows
