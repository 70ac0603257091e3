"""No mechanism takes more memory than it says before it starts."""

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
# Exact draws of the K-norm are offered up to 100 features, and take long there.
FEWER = {"knorm": 40, "spherical_knorm": 40, "pure_funnel[noise=knorm]": 40,
         "clipped_pure": 40}  # fmt: skip
# Bytes of what is no matrix: samplers' tables, what is kept from one call to the next.
BESIDE = 3e6


@cache
def prepared(rows: int, d: int = D) -> Prepared:
    table = np.random.default_rng(0).normal(size=(rows, d))
    found = prepare(Table("t", table, tuple(f"c{i}" for i in range(d))), Settings())
    _ = found.reference.span, found.moment.span
    return found


def cell_of(key: str, trials: int, d: int | None = None) -> Cell:
    # below 1, where every mechanism is stated
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
    """300 draws at d 12: without blocks they take 60 matrices each, and not 6.5."""
    cell = cell_of(key, 300, 12)
    assert taken(cell) <= memory_of(cell, prepared(250, 12)) + BESIDE


def test_what_is_said_is_of_the_right_size() -> None:
    """The control: a tenth of it would be too little, so the test above is no empty one."""
    for key in ("gaussian", "data_gaussian"):
        cell = cell_of(key, 6)
        assert taken(cell) > memory_of(cell, prepared(250, cell.problem.d)) / 10
