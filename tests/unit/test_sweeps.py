"""Cells, plans, comparisons and the tables made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics import METRICS, offered
from dpviz.core.problem import Budget
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.preparation.bounding import BoundedTable, prepare
from dpviz.preparation.load import load_prepared
from dpviz.report.tables.comparison import (
    ANGLE_COLUMNS,
    SPECTRUM_COLUMNS,
    distance_table,
    spectrum_table,
)
from dpviz.simulation import cells, simulate
from dpviz.simulation.cells import evaluate, plan
from dpviz.simulation.compare import TABLE_COLUMNS, Comparison, compare, joined, run_cell
from dpviz.simulation.simulate import Cell

SETTINGS = Settings(
    table="iris", k=2, trials=6, seed=4, mechanisms=("gaussian", "ppca[sweeps=5]", "non_private")
)


@cache
def prepared() -> BoundedTable:
    return load_prepared(Settings(table="iris"))


@cache
def comparison() -> Comparison:
    return compare(prepared(), SETTINGS)


def cell_of(text: str, trials: range, seed: int = 4) -> Cell:
    problem, budget = prepared().problem(SETTINGS), prepared().budget(SETTINGS)
    return Cell(parse_variant(text), problem, budget, seed, trials)


@pytest.mark.parametrize("text", SETTINGS.mechanisms)
def test_chunks_of_trials_join_without_a_seam(text: str) -> None:
    whole = run_cell(cell_of(text, range(6)), prepared())
    parts = [run_cell(cell_of(text, part), prepared()) for part in (range(2), range(2, 6))]
    together = joined(parts)
    assert together.status == whole.status
    for name in ("eigenvalues", "captured_each", "angles", "components", "trace"):
        left, right = getattr(together, name), getattr(whole, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert left.tobytes() == right.tobytes(), name
    for key in whole.metrics:
        assert together.metrics[key].tobytes() == whole.metrics[key].tobytes()
    assert together.diagnostics == whole.diagnostics
    assert joined([whole]) is whole


def test_seeds_and_trials_matter_and_nothing_else() -> None:
    first = evaluate(cell_of("gaussian", range(3)), prepared()).release.raw
    again = evaluate(cell_of("gaussian", range(3)), prepared()).release.raw
    other = evaluate(cell_of("gaussian", range(3), seed=5), prepared()).release.raw
    assert first.tobytes() == again.tobytes()
    assert not (first == other).any()


def test_only_the_metrics_asked_for_are_computed() -> None:
    result = run_cell(cell_of("gaussian", range(2)), prepared(), ["noise_spectral"])
    assert set(result.metrics) == {"noise_spectral"}


def test_a_cell_that_cannot_run_raises() -> None:
    cell = cell_of("ppca", range(2))
    with pytest.raises(CannotRun, match="ppca cannot run: it releases a subspace"):
        evaluate(replace(cell, problem=replace(cell.problem, k=4)), prepared())


def test_plan_keeps_the_order_asked_for() -> None:
    chosen = plan(prepared(), SETTINGS)
    assert [cell.mechanism.text for cell in chosen.cells] == list(SETTINGS.mechanisms)
    assert chosen.skipped == ()
    assert all(cell.trials == range(6) for cell in chosen.cells)


def test_unnamed_mechanisms_are_skipped_with_a_reason_and_named_ones_raise() -> None:
    no_delta = Settings(table="iris", delta=0.0)
    chosen = plan(prepared(), no_delta)
    skipped = {item.mechanism: item.reason for item in chosen.skipped}
    needy = {key for key, c in all_mechanisms().items() if c.info.guarantee == "approximate"}
    assert needy <= set(skipped)
    assert all("delta" in skipped[key] for key in needy)
    assert {cell.mechanism.key for cell in chosen.cells} | set(skipped) == set(all_mechanisms())
    named = replace(no_delta, mechanisms=("gaussian",))
    with pytest.raises(CannotRun, match="gaussian cannot run: it needs a delta above 0; got 0"):
        plan(prepared(), named)
    assert [item.mechanism for item in plan(prepared(), named, strict=False).skipped] == [
        "gaussian"
    ]


def test_k_equal_to_d_runs_matrices_and_skips_subspaces() -> None:
    chosen = plan(prepared(), Settings(table="iris", k=4))
    ran = {cell.mechanism.key for cell in chosen.cells}
    assert "gaussian" in ran
    assert not {key for key, c in all_mechanisms().items() if c.info.release == "subspace"} & ran
    with pytest.raises(InvalidSetting, match="k must be a whole number from 1 to 4"):
        plan(prepared(), Settings(table="iris", k=5))


def test_repeated_variants_run_once() -> None:
    twice = replace(
        SETTINGS,
        mechanisms=("gaussian", "gaussian", "kapralov_talwar", "kapralov_talwar[value_share=0.3]"),
    )
    assert [cell.mechanism.text for cell in plan(prepared(), twice).cells] == [
        "gaussian",
        "kapralov_talwar",
    ]


def test_compare_equals_running_the_plan_and_reports_progress() -> None:
    calls: list[tuple[int, int, str]] = []
    made = compare(prepared(), SETTINGS, lambda *call: calls.append(call))
    assert calls == [(i, 3, text) for i, text in enumerate(SETTINGS.mechanisms)]
    ran = [run_cell(cell, prepared()) for cell in plan(prepared(), SETTINGS).cells]
    for one, two in zip(made.results, ran, strict=True):
        assert one.components.tobytes() == two.components.tobytes()


def test_one_draw_serves_every_epsilon() -> None:
    """Scale mechanisms move smoothly: the noise at half the budget is a multiple."""
    errors = []
    for epsilon in (1.0, 0.5):
        problem, budget = prepared().problem(SETTINGS), prepared().budget(SETTINGS)
        cell = Cell(
            parse_variant("laplace"), problem, replace(budget, epsilon=epsilon), 4, range(3)
        )
        outcome = evaluate(cell, prepared())
        assert outcome.release.matrix is not None
        errors.append(outcome.release.matrix - prepared().moment.A)
    np.testing.assert_allclose(errors[1], 2 * errors[0], rtol=1e-9, atol=1e-14)


def test_tidy_table() -> None:
    table = comparison().table()
    assert tuple(table.columns) == TABLE_COLUMNS
    subspace = sum(metric.needs == "subspace" for metric in METRICS.values())
    assert len(table) == 6 * (2 * len(offered(picture=False)) + subspace)
    assert set(table["mechanism"]) == set(SETTINGS.mechanisms)
    assert not table["value"].isna().any()
    for column, value in (("table", "iris"), ("k", 2), ("n", 150), ("relation", "replace")):
        assert set(table[column]) == {value}
    one = table[(table["mechanism"] == "gaussian") & (table["metric"] == "captured_share")]
    np.testing.assert_array_equal(one["trial"], range(6))
    np.testing.assert_array_equal(one["value"], comparison().results[0].metrics["captured_share"])


def test_spectrum_table() -> None:
    table = spectrum_table(prepared(), comparison().results)
    assert tuple(table.columns) == SPECTRUM_COLUMNS
    counts = table.groupby("mechanism", sort=False).size()
    assert counts.to_dict() == {"gaussian": 4, "ppca[sweeps=5]": 2, "non_private": 4}
    assert (table["low"] <= table["median"]).all()
    assert (table["median"] <= table["high"]).all()
    exact = table[table["mechanism"] == "non_private"]
    np.testing.assert_allclose(exact["median"], exact["true"], rtol=1e-14)
    assert set(table.loc[~table["released"], "mechanism"]) == {"ppca[sweeps=5]"}


def test_distance_table() -> None:
    table = distance_table(comparison().results)
    assert tuple(table.columns) == ANGLE_COLUMNS
    assert len(table) == 3 * 6 * 2
    assert table["degrees"].between(0, 90).all()
    wide = table.pivot_table(index=["mechanism", "trial"], columns="angle", values="degrees")
    assert (wide[1] <= wide[2]).all()
    # sqrt(2) times the norm of the sines is the distance.
    sines = np.sin(np.radians(wide.to_numpy()))
    distance = table.groupby(["mechanism", "trial"])["projection_distance"].first()
    np.testing.assert_allclose(
        np.sqrt(2) * np.linalg.norm(sines, axis=1), distance.to_numpy(), atol=1e-12
    )


def test_tables_of_nothing_keep_their_columns() -> None:
    assert tuple(spectrum_table(prepared(), []).columns) == SPECTRUM_COLUMNS
    assert tuple(distance_table([]).columns) == ANGLE_COLUMNS
    empty = Comparison(plan(prepared(), SETTINGS), ()).table()
    assert tuple(empty.columns) == TABLE_COLUMNS
    assert isinstance(empty, pd.DataFrame)


def test_summary_table_agrees_with_json() -> None:
    rows = comparison().summary_table().set_index("mechanism")
    printed = comparison().to_json()
    json.dumps(printed, allow_nan=False)
    for result in printed["results"]:
        row = rows.loc[result["mechanism"]]
        assert row["status"] == result["status"]
        for key, summary in result["metrics"].items():
            assert row[key] == summary["mean"]
            assert row[f"{key}_low"] == summary["low"]
            assert row[f"{key}_high"] == summary["high"]


def test_large_matrices_taken_a_few_at_a_time_are_the_same_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = generator(0, "few-at-a-time").standard_normal((300, 160))
    prepared = prepare(Table("wide", wide, tuple(f"x{i}" for i in range(160))), Settings())
    settings = Settings(mechanisms=("gaussian", "wishart_difference"), trials=5)
    for cell in plan(prepared, settings).cells:
        monkeypatch.setattr(cells, "_BLOCK_ENTRIES", 10**9)
        whole = run_cell(cell, prepared)
        monkeypatch.setattr(cells, "_BLOCK_ENTRIES", 2 * 160**2)
        taken = run_cell(cell, prepared)
        assert taken.components.tobytes() == whole.components.tobytes()
        assert list(taken.metrics) == list(whole.metrics)
        for key, values in whole.metrics.items():
            assert taken.metrics[key].tobytes() == values.tobytes(), key


@pytest.mark.parametrize("text", ["gaussian", "laplace", "wishart_difference"])
def test_one_draw_of_noise_serves_every_epsilon(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = prepared().problem(SETTINGS)
    found = {}
    for entries in (0, 1 << 18):
        monkeypatch.setattr(simulate, "_SHARED_ENTRIES", entries)
        simulate._standard_noise.cache_clear()
        for epsilon in (0.1, 1.0, 7.0):
            cell = Cell(parse_variant(text), problem, Budget(epsilon, 1e-6), 4, range(6))
            release = evaluate(cell, prepared()).release
            found[entries, epsilon] = (release.raw.tobytes(), release.components.tobytes())
    assert simulate._standard_noise.cache_info().misses == 1
    assert simulate._standard_noise.cache_info().hits == 2
    for epsilon in (0.1, 1.0, 7.0):
        assert found[0, epsilon] == found[1 << 18, epsilon]
