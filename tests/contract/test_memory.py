"""No mechanism takes more memory than it predicts before it starts."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest

from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.mechanisms import all_mechanisms
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.cells import memory_of, plan
from dpviz.simulation.compare import run_cell
from dpviz.simulation.simulate import Cell

D = 200
# The exact K-norm sampler allows 100 features, but is slow there, so test fewer features.
FEWER = {"knorm": 40, "spherical_knorm": 40, "pure_funnel[noise=knorm]": 40,
         "clipped_pure": 40}  # fmt: skip
# Allow 3 MB besides matrices: samplers use tables, and caches remain between calls.
BESIDE = 3e6


@cache
def prepared(rows: int, d: int = D) -> Prepared:
    table = np.random.default_rng(0).normal(size=(rows, d))
    table_of = prepare(Table("t", table, tuple(f"c{i}" for i in range(d))), Settings())
    _ = table_of.reference.span, table_of.moment.span
    return table_of


def cell_of(key: str, trials: int, d: int | None = None) -> Cell:
    # Use an epsilon below 1, because every mechanism states a claim there.
    settings = Settings(mechanisms=(key,), trials=trials, epsilon=0.5, delta=1e-6)
    (cell,) = plan(prepared(250, d or FEWER.get(key, D)), settings).cells
    return cell


def taken(cell: Cell) -> float:
    tracemalloc.start()
    try:
        run_cell(cell, prepared(250, cell.problem.d))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted({*all_mechanisms(), *FEWER}))
@pytest.mark.parametrize("trials", [1, 6])
def test_what_is_said_is_not_below_what_is_taken(key: str, trials: int) -> None:
    cell = cell_of(key, trials)
    assert taken(cell) <= memory_of(cell, prepared(250, cell.problem.d)) + BESIDE


@pytest.mark.slow
@pytest.mark.parametrize("key", ["knorm", "clipped_pure"])
def test_many_draws_of_few_features_are_made_in_blocks(key: str) -> None:
    """At d 12, 300 repetitions in blocks take memory for 6.5 matrices each; without blocks, 60."""
    cell = cell_of(key, 300, 12)
    assert taken(cell) <= memory_of(cell, prepared(250, 12)) + BESIDE


def test_what_is_said_is_of_the_right_size() -> None:
    """Control: a tenth of the predicted memory is exceeded."""
    for key in ("gaussian", "data_gaussian"):
        cell = cell_of(key, 6)
        assert taken(cell) > memory_of(cell, prepared(250, cell.problem.d)) / 10
