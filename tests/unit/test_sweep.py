"""Sweeps: the grid, its table, the results stored on disk, and interruptions."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import dpviz
from dpviz import datasets
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.passes import Subsample, _keys
from dpviz.preparation.prepared import Measured
from dpviz.simulation import compare as comparing
from dpviz.simulation.axes import parse_values
from dpviz.simulation.jobs import Progress
from dpviz.simulation.simulate import Cell
from dpviz.simulation.store import Store, default_folder
from dpviz.simulation.sweep import Sweep, sweep

SETTINGS = Settings(table="iris", delta=1e-3, trials=4, seed=3, mechanisms=("gaussian", "laplace"))


@cache
def iris() -> Prepared:
    return prepare(datasets.load("iris"), SETTINGS)


def values(found: Sweep, metric: str, **where: Any) -> np.ndarray:
    table = found.table[found.table["metric"] == metric]
    for name, value in where.items():
        table = (
            table[np.isclose(table[name], value)]
            if name != "mechanism"
            else table[table[name] == value]
        )
    return table["value"].to_numpy()


# The table -----------------------------------------------------------------------------------


def test_one_draw_runs_along_epsilon_and_trials_are_independent() -> None:
    answer = sweep(iris(), {"epsilon": [0.1, 1.0, 10.0]}, SETTINGS)
    noise = np.array(
        [values(answer, "noise_spectral", epsilon=e, mechanism="laplace") for e in (0.1, 1.0, 10.0)]
    )
    # Laplace noise scales as 1/epsilon, so equal random numbers give exactly proportional noise.
    assert_allclose(noise[0], 10 * noise[1], rtol=1e-9)
    assert_allclose(noise[1], 10 * noise[2], rtol=1e-9)
    assert len(set(noise[0])) == SETTINGS.trials
    other = sweep(iris(), {"epsilon": [0.1]}, replace(SETTINGS, seed=4))
    assert not np.isclose(values(other, "noise_spectral", mechanism="laplace"), noise[0]).any()


# n -------------------------------------------------------------------------------------------


def test_fewer_people_are_a_subsample_held_against_the_whole_table() -> None:
    table = iris()
    places = Subsample(7, 150, 40).chosen(0, 150)
    part = table.with_n(40, 7, with_rows=True)
    rows = table.moment_with_rows.rows[places]
    assert_allclose(part.moment.A, rows.T @ rows / 40, atol=1e-15)
    assert_array_equal(part.moment_with_rows.rows, rows)
    assert part.reference is table.reference
    assert part.row_bound == table.row_bound
    assert table.with_n(150, 7).moment is table.moment
    # Even without noise, PCA of a sample of rows differs from PCA of all rows.
    settings = replace(SETTINGS, mechanisms=("non_private",), trials=1, k=1)
    answer = sweep(table, {"n": [40, 150]}, settings)
    shares = values(answer, "captured_share")
    assert shares[0] < 1 - 1e-6
    assert shares[1] == pytest.approx(1, abs=1e-12)


@given(st.integers(0, 1000), st.integers(1, 400), st.data())
def test_subsamples_are_nested_and_the_same_block_by_block(
    seed: int, total: int, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, total))
    fewer = data.draw(st.integers(1, n))
    middle = data.draw(st.integers(0, total))
    sample = Subsample(seed, total, n)
    places = sample.chosen(0, total)
    assert places.sum() == n
    assert not (Subsample(seed, total, fewer).chosen(0, total) & ~places).any()
    assert_array_equal(np.append(sample.chosen(0, middle), sample.chosen(middle, total)), places)
    order = np.argsort(_keys(seed, 0, total), kind="stable")
    assert_array_equal(np.sort(order[:n]), np.flatnonzero(places))


def test_a_subsample_is_uniform() -> None:
    # A quarter of the samples contain each row: over 2,000 seeds a count has standard deviation
    # sqrt(2000 / 4 * 3 / 4) = 19.4. Seven deviations over 20 rows have a false alarm of 5e-11.
    counts = np.zeros(20)
    for seed in range(2_000):
        counts += Subsample(seed, 20, 5).chosen(0, 20)
    assert np.abs(counts - 500).max() < 7 * 19.4
    # Control: the test detects a sampling that prefers early rows.
    assert np.abs(np.arange(20.0) * 50 - 500).max() > 7 * 19.4


# Row bound -----------------------------------------------------------------------------------


# Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "text", "words"),
    [
        ("trials", "1", "over must be one of epsilon, delta, k, n, row_bound; got 'trials'"),
        ("epsilon", "1,x", "a number from 0.0001 to 1e6; got 'x'"),
        ("epsilon", "1,,2", "got ''"),
        ("epsilon", "nan", "got 'nan'"),
        ("k", "1.5", "a whole number from 1"),
        ("n", "1", "a whole number from 2 to 1e15; got '1'"),
        ("delta", "1", "below 1"),
        ("row_bound", "quantile:2", "max, a number from 1e-100"),
        ("epsilon", "0:1:3", "low:high:count"),
        ("epsilon", "1:2:1", "a count of 2 to 1000; got '1:2:1'"),
        ("epsilon", "2:1:3", "low < high"),
        ("n", "a:b:c", "low:high:count"),
    ],
)
def test_bad_values_are_one_sentence(axis: str, text: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        parse_values(axis, text)


# Stored results ------------------------------------------------------------------------------

OVER = {"epsilon": [0.1, 0.3, 1.0, 3.0, 10.0], "k": [1, 2, 3]}
CELLS = 30


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return a list to which every evaluated setting is added."""
    cells: list[tuple[Any, ...]] = []
    parts_of = comparing.parts_of

    def counted(cell: Cell, measured: Measured) -> Any:
        cells.append((cell.mechanism.text, cell.budget, cell.problem.k))
        return parts_of(cell, measured)

    monkeypatch.setattr(comparing, "parts_of", counted)
    return cells


def files(folder: Path) -> list[Path]:
    """Return the stored results that are complete."""
    return sorted(folder.rglob("*.cell"))


def test_a_second_run_computes_nothing(tmp_path: Path, evaluated: list[Any]) -> None:
    keep = Store(tmp_path)
    first = sweep(iris(), OVER, SETTINGS, store=keep)
    again = sweep(iris(), OVER, SETTINGS, store=keep)
    assert len(evaluated) == CELLS == len(files(tmp_path))
    assert (first.computed, first.reused) == (CELLS, 0)
    assert (again.computed, again.reused) == (0, CELLS)
    pd.testing.assert_frame_equal(first.table, again.table, check_exact=True)


def test_interrupted_ten_times_nothing_is_lost_or_repeated(
    tmp_path: Path, evaluated: list[Any]
) -> None:
    rng = generator(11, "interrupt")
    stops = np.sort(rng.choice(np.arange(1, CELLS), size=10, replace=False))
    for stop in stops:

        def interrupt(progress: Progress, stop: int = int(stop)) -> None:
            if progress.done == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sweep(iris(), OVER, SETTINGS, store=Store(tmp_path), progress=interrupt)
        assert len(files(tmp_path)) == stop == len(evaluated)
    answer = sweep(iris(), OVER, SETTINGS, store=Store(tmp_path))
    assert answer.reused == stops[-1]
    assert len(evaluated) == len(set(evaluated)) == CELLS
    fresh = sweep(iris(), OVER, SETTINGS)
    pd.testing.assert_frame_equal(answer.table, fresh.table, check_exact=True)


def spoil_truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def spoil_flip(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


def spoil_empty(content: bytes) -> bytes:
    return b""


def spoil_foreign(content: bytes) -> bytes:
    return b"a,b\n1,2\n"


@pytest.mark.parametrize("spoil", [spoil_truncate, spoil_flip, spoil_empty, spoil_foreign])
def test_a_spoiled_file_is_computed_again(spoil: Any, tmp_path: Path) -> None:
    keep = Store(tmp_path)
    first = sweep(iris(), {"epsilon": [0.1, 1]}, SETTINGS, store=keep)
    path = files(tmp_path)[1]
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    again = sweep(iris(), {"epsilon": [0.1, 1]}, SETTINGS, store=keep)
    assert (again.computed, again.reused) == (1, 3)
    assert path.read_bytes() == whole
    pd.testing.assert_frame_equal(first.table, again.table, check_exact=True)


def test_the_folder_stays_below_its_cap_and_forgets_the_oldest(tmp_path: Path) -> None:
    keep = Store(tmp_path, cap=3_000)
    for number in range(6):
        keep.put(f"{number:02d}ab", {"noise": np.full(100, float(number))})
        os.utime(tmp_path / f"{number:02d}" / f"{number:02d}ab.cell", (number, number))
    assert keep.get("00ab") is not None  # Reading this entry makes it the last used.
    keep.prune()
    sizes = [path.stat().st_size for path in files(tmp_path)]
    assert sum(sizes) <= 3_000 < sum(sizes) + max(sizes)
    stems = [path.stem for path in files(tmp_path)]
    assert stems == ["00ab", "04ab", "05ab"]
    assert_array_equal(keep.get("05ab")["noise"], np.full(100, 5.0))


def test_the_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "dpviz" / "cells"
    Store(default_folder())
    assert default_folder().stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("x")
    with pytest.raises(
        InvalidSetting, match="cache must be a folder that dpviz can write, or none"
    ):
        Store(tmp_path / "file" / "cells")


@pytest.mark.parametrize("post", ["none", "free"])
def test_a_sweep_measures_what_a_comparison_does(post: str) -> None:
    options = {"mechanisms": ["gaussian", "wishart"], "k": 2, "trials": 3, "post": post}
    comparison = dpviz.compare("wine", epsilon=1, **options).table()
    answer = dpviz.sweep("wine", over="epsilon", values="1", **options).table()
    means = answer[answer["metric"] == "recovery"].groupby("mechanism")["value"].mean()
    expected = comparison.set_index("mechanism")["recovery"]
    assert means.to_dict() == pytest.approx(expected.to_dict())
