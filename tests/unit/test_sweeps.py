"""Settings, plans, comparisons and the tables made from them."""

from __future__ import annotations

from functools import cache

import pytest

from dpviz.core.problem import Budget
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import BoundedTable, prepare
from dpviz.preparation.load import load_prepared
from dpviz.simulation import cells, simulate
from dpviz.simulation.cells import evaluate, plan
from dpviz.simulation.compare import Comparison, compare, joined, run_cell
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
        one, right = getattr(together, name), getattr(whole, name)
        assert (one is None) == (right is None)
        if one is not None:
            assert one.tobytes() == right.tobytes(), name
    for key in whole.metrics:
        assert together.metrics[key].tobytes() == whole.metrics[key].tobytes()
    assert together.diagnostics == whole.diagnostics
    assert joined([whole]) is whole


def test_compare_equals_running_the_plan_and_reports_progress() -> None:
    calls: list[tuple[int, int, str]] = []
    result = compare(prepared(), SETTINGS, lambda *call: calls.append(call))
    assert calls == [(i, 3, text) for i, text in enumerate(SETTINGS.mechanisms)]
    ran = [run_cell(cell, prepared()) for cell in plan(prepared(), SETTINGS).cells]
    for one, two in zip(result.results, ran, strict=True):
        assert one.components.tobytes() == two.components.tobytes()


def test_large_matrices_taken_a_few_at_a_time_are_the_same_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = generator(0, "few-at-a-time").standard_normal((300, 160))
    table = prepare(Table("wide", wide, tuple(f"x{i}" for i in range(160))), Settings())
    settings = Settings(mechanisms=("gaussian", "wishart_difference"), trials=5)
    for cell in plan(table, settings).cells:
        monkeypatch.setattr(cells, "_BLOCK_ENTRIES", 10**9)
        whole = run_cell(cell, table)
        monkeypatch.setattr(cells, "_BLOCK_ENTRIES", 2 * 160**2)
        result = run_cell(cell, table)
        assert result.components.tobytes() == whole.components.tobytes()
        assert list(result.metrics) == list(whole.metrics)
        for key, values in whole.metrics.items():
            assert result.metrics[key].tobytes() == values.tobytes(), key


@pytest.mark.parametrize("text", ["gaussian", "laplace", "wishart_difference"])
def test_one_draw_of_noise_serves_every_epsilon(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = prepared().problem(SETTINGS)
    releases = {}
    for entries in (0, 1 << 18):
        monkeypatch.setattr(simulate, "_SHARED_ENTRIES", entries)
        simulate._standard_noise.cache_clear()
        for epsilon in (0.1, 1.0, 7.0):
            cell = Cell(parse_variant(text), problem, Budget(epsilon, 1e-6), 4, range(6))
            release = evaluate(cell, prepared()).release
            releases[entries, epsilon] = (release.raw.tobytes(), release.components.tobytes())
    assert simulate._standard_noise.cache_info().misses == 1
    assert simulate._standard_noise.cache_info().hits == 2
    for epsilon in (0.1, 1.0, 7.0):
        assert releases[0, epsilon] == releases[1 << 18, epsilon]
