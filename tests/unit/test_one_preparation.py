"""One program prepares rows: in memory, in batches, for the estimator, and on the grid.

All numbers are whole multiples of 1/4, and all lengths of long rows are powers of two. So floats
are exact, and four moments must agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import UNIT, FromData, Private, Public
from dpviz.core.problem import Budget, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets.batches import FileBatches
from dpviz.datasets.table import Table
from dpviz.preparation.bounding import prepare, prepare_batches
from dpviz.preparation.draws import run
from dpviz.preparation.passes import Batched, InMemory
from dpviz.preparation.steps import PrivateSteps, preparation, private_steps
from dpviz.preparation.transform import Transform
from dpviz.releasing.declared import FitOptions, public_part
from dpviz.releasing.grid import quantised, second_moment, transform_of
from dpviz.releasing.making import declare
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.schema import Column, Schema

N, BITS = 1024, 20
NAMES = ("a", "b", "c", "d")
CENTER = np.array([1.0, 2.0, -1.0, 0.25])
EXACT = Transform(CENTER - 8, CENTER + 8, CENTER, np.full(4, 1.0), 4.0)
STEPS = np.array(
    [
        [1, 1, 1, 1],  # inside
        [-2, 0.5, 0, 1],
        [0, 0, 0, 0],
        [4, 0, 0, 0],  # This row lies exactly on the bound.
        [4, -4, 4, 4],  # This row has length 8, so it is clipped.
        [0, 8, 0, 0],
        [40, 0, 0, 0],  # Bounds limit this row, then it is clipped.
        [9, -100, 50, 8.5],
    ]
)


def rows_of(seed: int = 0) -> FloatArray:
    """Return 1,024 rows, which is more than one block of a file."""
    rng = generator(seed, "one preparation")
    signs = rng.choice([-1.0, 1.0], size=(N, 1))
    rows: FloatArray = CENTER + signs * STEPS[rng.integers(0, len(STEPS), N)]
    return rows


def in_memory(rows: FloatArray, how: Transform, folder: Path) -> FloatArray:
    return InMemory(Table("exact", rows, NAMES)).moments(how, inside=False)[0].A


def in_batches(rows: FloatArray, how: Transform, folder: Path) -> FloatArray:
    path = folder / "exact.parquet"
    pd.DataFrame(rows, columns=list(NAMES)).to_parquet(path)
    everywhere = replace(how, keep=np.ones(4, dtype=bool))
    return Batched(FileBatches(path), about_zero=False).moments(everywhere, inside=False)[0].A


def behind_nothing_paid(rows: FloatArray, how: Transform, folder: Path) -> FloatArray:
    plan = preparation(PrivateSteps(()), N, 4, Relation.REPLACE, Budget(1.0, 1e-6), pure=False)
    moments: FloatArray = run(rows, how, plan, Draws.trials(0, "x", range(1))).moments[0]
    return moments


def on_the_grid(rows: FloatArray, how: Transform, folder: Path) -> FloatArray:
    unit = replace(how, scale=how.scale * how.row_bound, row_bound=1.0)
    moment: FloatArray = second_moment(quantised(rows, unit, BITS), BITS) / 4.0**BITS / N
    return moment


WAYS: tuple[Callable[[FloatArray, Transform, Path], FloatArray], ...] = (
    in_memory,
    in_batches,
    behind_nothing_paid,
    on_the_grid,
)


def by_hand(rows: FloatArray) -> FloatArray:
    """Return the moment, computed by a plain loop from the four settings."""
    total = np.zeros((4, 4))
    for row in rows:
        clipped_row = [min(max(x, low), high) for x, low, high in zip(row, EXACT.low, EXACT.high)]  # noqa: B905
        z = np.array(clipped_row) - CENTER
        total += np.outer(z, z) / max(float(np.sqrt(z @ z)), 4.0) ** 2
    return total / N


def test_four_ways_to_one_moment(tmp_path: Path) -> None:
    rows = rows_of()
    expected = by_hand(rows)
    for way in WAYS:
        np.testing.assert_array_equal(way(rows, EXACT, tmp_path), expected, way.__name__)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "planted",
    [
        replace(EXACT, high=EXACT.high + 0.25),
        replace(EXACT, low=np.full(4, -np.inf), high=np.full(4, np.inf)),
        replace(EXACT, center=CENTER + 2.0**-10),
        replace(EXACT, row_bound=4.0 + 2.0**-10),
    ],
)
def test_a_planted_difference_is_seen(
    way: Callable[[FloatArray, Transform, Path], FloatArray], planted: Transform, tmp_path: Path
) -> None:
    rows = rows_of()
    assert not np.array_equal(way(rows, planted, tmp_path), by_hand(rows))


LIMITS = {name: (low, high) for name, low, high in zip(NAMES, EXACT.low, EXACT.high, strict=True)}
SCHEMA = Schema(tuple(Column(name, *sides) for name, sides in LIMITS.items()))


def test_a_preparation_is_one_object_wherever_it_is_stated(tmp_path: Path) -> None:
    """In memory, in batches, by the estimator and on a release's grid, the moment is the same."""
    rows = np.clip(rows_of(), EXACT.low, EXACT.high)
    settings = Settings(center="midpoint", row_bound="4", bounds=LIMITS)
    path = tmp_path / "exact.parquet"
    pd.DataFrame(rows, columns=list(NAMES)).to_parquet(path)
    whole = prepare(Table("exact", rows, NAMES), settings)
    np.testing.assert_array_equal(whole.moment.A, by_hand(rows))
    np.testing.assert_array_equal(prepare_batches(path, settings).moment.A, by_hand(rows))

    estimator = FitOptions(center="midpoint", row_bound=4, bounds=LIMITS).entries
    assert estimator == settings.entries
    how, _ = public_part(estimator, None, 4, None, NAMES)
    np.testing.assert_array_equal(in_memory(rows, how, tmp_path), by_hand(rows))

    options = ReleaseOptions(center="midpoint", row_bound="4", delta=1e-6)
    statement = declare(options, SCHEMA)
    assert (statement.bounds, statement.row_bound) == (settings.entries.bounds, estimator.row_bound)
    exact = second_moment(quantised(rows, transform_of(statement), BITS), BITS) / 4.0**BITS / N
    np.testing.assert_array_equal(exact, by_hand(rows))


def test_each_entry_is_public_from_the_data_or_private_with_a_share() -> None:
    private = Settings(
        relation="zero-out", bounds="private", center="private", scale="private",
        row_bound="private:0.8", count="private", mean_share=0.2,
    )  # fmt: skip
    entries = private.entries
    assert entries.center == Private(0.2)
    assert entries.row_bound == Private(0.1, 0.8)
    same = FitOptions(
        center="private", scale="private", row_bound="private:0.8", bounds="private",
        count="private", shares={"mean": 0.2},
    ).entries  # fmt: skip
    assert same == entries
    assert PrivateSteps.of(same) == private_steps(private)
    one = Settings(center="mean", scale="standardize", row_bound="quantile:0.9").entries
    words = [one.center, one.scale, one.row_bound]
    assert words == [FromData(), FromData(), FromData(0.9)]
    assert one.bounds == Public()  # No result uses the bounds of the columns.
    mean = declare(ReleaseOptions(center="private", rows="unit", delta=1e-6), SCHEMA)
    assert mean.center == Private(0.1, tuple(CENTER.tolist()))
    assert mean.row_bound == Public(UNIT)


def test_a_row_is_prepared_by_itself() -> None:
    """A row too large for a double does not change the other rows."""
    rows = rows_of()
    huge = rows.copy()
    huge[::7] = [1e308, -1e308, 1e308, 3.0]
    never = np.full(4, np.inf)
    tiny = Transform(-never, never, CENTER, np.full(4, 2.0**-30))
    with np.errstate(over="ignore"):
        inside, alone = tiny.inside(huge), tiny.inside(rows)
    others = np.arange(N) % 7 > 0
    np.testing.assert_array_equal(inside[others], alone[others])
    assert np.isfinite(inside).all()
    assert np.sqrt(np.square(inside).sum(axis=1)).max() <= 1 + 1e-15
