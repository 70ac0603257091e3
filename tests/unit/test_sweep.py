"""Sweeps: the grid, its table, what is kept on disk, and interruptions."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
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

from dpviz import datasets
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics import offered
from dpviz.core.problem import default_delta
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.passes import Subsample, _keys
from dpviz.preparation.prepared import Measured
from dpviz.simulation import store
from dpviz.simulation import sweep as sweeping
from dpviz.simulation.axes import AXES, parse_values
from dpviz.simulation.compare import TABLE_COLUMNS, compare
from dpviz.simulation.jobs import Pool, Progress
from dpviz.simulation.simulate import Cell
from dpviz.simulation.store import Keys, Store, default_folder, source_digest
from dpviz.simulation.sweep import SKIPPED_COLUMNS, Sweep, checked, sweep

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


def test_the_table_is_the_product_of_the_axes_in_a_documented_order() -> None:
    over = {"k": [2, 1], "epsilon": [10.0, 0.5], "n": [100, 150], "delta": [1e-3, 1e-5, 1e-3]}
    found = sweep("iris", over, SETTINGS)
    assert tuple(found.table.columns) == TABLE_COLUMNS
    cells = found.table[["n", "k", "epsilon", "delta", "mechanism"]].drop_duplicates()
    expected = [
        (n, k, epsilon, delta, mechanism)
        for n in (100, 150)
        for k in (2, 1)
        for epsilon in (10.0, 0.5)
        for delta in (1e-3, 1e-5)
        for mechanism in ("gaussian", "laplace")
    ]
    assert list(cells.itertuples(index=False, name=None)) == expected
    # every metric of a matrix release, 4 trials
    assert len(found.table) == len(expected) * len(offered(picture=False)) * 4
    assert set(found.table["table"]) == {"iris"}
    assert set(found.table["relation"]) == {"replace"}
    assert (found.computed, found.reused) == (len(expected), 0)
    assert found.skipped.empty
    assert tuple(found.skipped.columns) == SKIPPED_COLUMNS


def test_one_cell_is_what_compare_says() -> None:
    found = sweep(iris(), {"epsilon": [1.0]}, SETTINGS)
    pd.testing.assert_frame_equal(
        found.table, compare(iris(), SETTINGS).table(), check_dtype=False, check_exact=True
    )


def test_one_draw_runs_along_epsilon_and_trials_are_independent() -> None:
    found = sweep(iris(), {"epsilon": [0.1, 1.0, 10.0]}, SETTINGS)
    noise = np.array(
        [values(found, "noise_spectral", epsilon=e, mechanism="laplace") for e in (0.1, 1.0, 10.0)]
    )
    # Laplace noise scales as 1/epsilon, so the same draw gives exactly proportional noise.
    assert_allclose(noise[0], 10 * noise[1], rtol=1e-9)
    assert_allclose(noise[1], 10 * noise[2], rtol=1e-9)
    assert len(set(noise[0])) == SETTINGS.trials
    other = sweep(iris(), {"epsilon": [0.1]}, replace(SETTINGS, seed=4))
    assert not np.isclose(values(other, "noise_spectral", mechanism="laplace"), noise[0]).any()


def test_the_default_delta_follows_n() -> None:
    found = sweep("iris", {"n": [100, 10_000]}, replace(SETTINGS, delta=None))
    deltas = found.table[["n", "delta"]].drop_duplicates().to_numpy()
    assert_allclose(deltas, [[n, default_delta(n)] for n in (100, 10_000)])


# n -------------------------------------------------------------------------------------------


def test_more_people_keep_the_moment_and_shrink_the_noise() -> None:
    found = sweep(iris(), {"n": [150, 1_500]}, SETTINGS)
    for mechanism in ("gaussian", "laplace"):
        few = values(found, "noise_frobenius", n=150, mechanism=mechanism)
        many = values(found, "noise_frobenius", n=1_500, mechanism=mechanism)
        assert_allclose(few, 10 * many, rtol=1e-9)
    larger = iris().with_n(10**9, 0)
    assert larger.n == 10**9
    assert larger.moment.A is iris().moment.A
    assert not larger.has_rows


def test_fewer_people_are_a_subsample_held_against_the_whole_table() -> None:
    prepared = iris()
    chosen = Subsample(7, 150, 40).chosen(0, 150)
    part = prepared.with_n(40, 7, with_rows=True)
    rows = prepared.moment_with_rows.rows[chosen]
    assert_allclose(part.moment.A, rows.T @ rows / 40, atol=1e-15)
    assert_array_equal(part.moment_with_rows.rows, rows)
    assert part.reference is prepared.reference
    assert part.row_bound == prepared.row_bound
    assert prepared.with_n(150, 7).moment is prepared.moment
    # Exact PCA of a part is not the PCA of the whole, and no noise is involved.
    settings = replace(SETTINGS, mechanisms=("non_private",), trials=1, k=1)
    found = sweep(prepared, {"n": [40, 150]}, settings)
    shares = values(found, "captured_share")
    assert shares[0] < 1 - 1e-6
    assert shares[1] == pytest.approx(1, abs=1e-12)


@given(st.integers(0, 1000), st.integers(1, 400), st.data())
def test_subsamples_are_nested_and_the_same_block_by_block(
    seed: int, total: int, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, total))
    fewer = data.draw(st.integers(1, n))
    cut = data.draw(st.integers(0, total))
    sample = Subsample(seed, total, n)
    chosen = sample.chosen(0, total)
    assert chosen.sum() == n
    assert not (Subsample(seed, total, fewer).chosen(0, total) & ~chosen).any()
    assert_array_equal(np.append(sample.chosen(0, cut), sample.chosen(cut, total)), chosen)
    order = np.argsort(_keys(seed, 0, total), kind="stable")
    assert_array_equal(np.sort(order[:n]), np.flatnonzero(chosen))


def test_equal_keys_go_to_the_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = np.array([5, 3, 5, 5, 1, 5], dtype=np.uint64)
    monkeypatch.setattr(
        "dpviz.preparation.passes._keys", lambda seed, start, stop: tied[start:stop]
    )
    sample = Subsample(0, 6, 4)
    assert_array_equal(sample.chosen(0, 6), [True, True, True, False, True, False])
    assert_array_equal(sample.chosen(2, 5), [True, False, True])


def test_a_subsample_is_uniform() -> None:
    # Each row is in a quarter of the samples: over 2000 seeds a count has standard deviation
    # sqrt(2000 / 4 * 3 / 4) = 19.4; 7 of them over 20 rows have a false alarm of 5e-11.
    counts = np.zeros(20)
    for seed in range(2_000):
        counts += Subsample(seed, 20, 5).chosen(0, 20)
    assert np.abs(counts - 500).max() < 7 * 19.4
    # negative control: a sample that prefers early rows is seen
    assert np.abs(np.arange(20.0) * 50 - 500).max() > 7 * 19.4


@pytest.mark.parametrize("n", [0, 11])
def test_a_subsample_has_one_to_all_rows(n: int) -> None:
    with pytest.raises(InvalidSetting, match="n must be a whole number from 1 to 10"):
        Subsample(0, 10, n)


# Row bound -----------------------------------------------------------------------------------


def test_a_row_bound_is_reported_in_units_of_the_base() -> None:
    half = iris().row_bound / 2
    found = sweep(iris(), {"row_bound": ["max", f"{half!r}"]}, SETTINGS)
    bounds = found.table["row_bound"].unique()
    assert_allclose(bounds, [2 * half, half])
    for mechanism in ("gaussian", "laplace"):
        for metric in ("noise_spectral", "noise_frobenius"):
            whole = values(found, metric, row_bound=2 * half, mechanism=mechanism)
            # The noise is the same in units of R^2, so a quarter in those of the base.
            assert_allclose(
                values(found, metric, row_bound=half, mechanism=mechanism), whole / 4, rtol=1e-9
            )


def test_the_reference_of_a_row_bound_is_the_table_before_bounding() -> None:
    settings = replace(SETTINGS, mechanisms=("non_private",), trials=1)
    found = sweep(iris(), {"row_bound": ["max", "quantile:0.2"]}, settings)
    short = iris().rebound("quantile:0.2")
    assert isinstance(short, Prepared)
    scale = (short.row_bound / iris().row_bound) ** 2
    assert_allclose(short.reference.A * scale, iris().reference.A, atol=1e-14)
    top = short.moment.eigenvectors[:, :2]
    share = np.trace(top.T @ iris().reference.A @ top) / iris().reference.eigenvalues[:2].sum()
    assert share < 1 - 1e-9
    shares = values(found, "captured_share")
    assert_allclose(shares, [1, share], rtol=1e-12)
    kept = top @ np.diag(short.moment.eigenvalues[:2]) @ top.T * scale
    error = np.abs(np.linalg.eigvalsh(iris().reference.A - kept)).max()
    assert values(found, "low_rank_error")[1] == pytest.approx(error, rel=1e-9)


def test_bounds_that_come_to_the_same_are_one() -> None:
    found = sweep(iris(), {"row_bound": ["max", "quantile:1", "max"]}, SETTINGS)
    assert found.table["row_bound"].nunique() == 1
    assert found.computed == 2


def test_a_box_has_no_row_bound_to_vary() -> None:
    with pytest.raises(InvalidSetting, match="varied on a ball"):
        sweep("iris", {"row_bound": ["max"]}, replace(SETTINGS, domain="box"))


# Cells that cannot run -----------------------------------------------------------------------


def test_cells_that_cannot_run_are_listed_with_their_reason() -> None:
    found = sweep("iris", {"delta": [0.0, 1e-3]}, SETTINGS)
    assert len(found.skipped) == 1
    row = found.skipped.iloc[0]
    assert (row["mechanism"], row["delta"]) == ("gaussian", 0.0)
    assert row["reason"] == "it needs a delta above 0; got 0"
    assert np.isfinite(found.table["value"]).all()


def test_a_named_mechanism_that_runs_nowhere_is_an_error() -> None:
    with pytest.raises(CannotRun, match="gaussian cannot run: it needs a delta above 0"):
        sweep("iris", {"delta": [0.0]}, SETTINGS)


def test_mechanisms_that_need_rows_get_them_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, set[bool]] = {}
    parts_of = sweeping.parts_of

    def watched(cell: Cell, measured: Measured) -> Any:
        seen.setdefault(cell.mechanism.key, set()).add(measured.moment.rows is not None)
        return parts_of(cell, measured)

    monkeypatch.setattr(sweeping, "parts_of", watched)
    settings = replace(SETTINGS, mechanisms=("laplace_output", "gaussian"), epsilon=5)
    over = {"n": [100, 150, 200], "row_bound": ["max", "quantile:0.9"]}
    found = sweep(iris(), over, settings)
    assert seen == {"laplace_output": {True}, "gaussian": {False}}
    # All but the larger table, which has no rows.
    assert found.skipped["n"].tolist() == [200, 200]
    assert set(found.skipped["reason"]) == {
        "it needs the rows themselves, and only their second moment is at hand"
    }
    whole = compare(iris(), replace(settings, mechanisms=("laplace_output",))).table()
    assert_array_equal(
        values(found, "captured_share", n=150, mechanism="laplace_output")[:4],
        whole[whole["metric"] == "captured_share"]["value"],
    )


# Values --------------------------------------------------------------------------------------


def test_values_are_read_and_ranges_are_spaced_on_a_logarithmic_scale() -> None:
    assert parse_values("epsilon", "0.1, 1,10") == [0.1, 1.0, 10.0]
    assert parse_values("epsilon", "0.01:100:5") == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert parse_values("n", "100:1e4:3,7") == [100, 1_000, 10_000, 7]
    assert parse_values("k", "1:4:10") == [1, 2, 3, 4]
    assert parse_values("delta", "0,auto,1e-9:1e-5:2") == [0.0, None, 1e-9, 1e-5]
    assert parse_values("row_bound", "max,quantile:0.90,1:4:3") == [
        "max", "quantile:0.9", "1", "2", "4",
    ]  # fmt: skip


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


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"k": [1, 5]}, "k must be a whole number from 1 to 4; got '5'"),
        ({"epsilon": [-1.0]}, "epsilon must be a number from"),
        ({"epsilon": []}, "epsilon must be given at least one value"),
        ({"seed": [1]}, "over must be one of"),
    ],
)
def test_bad_axes_are_one_sentence(over: dict[str, list[Any]], words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        sweep(iris(), over, SETTINGS)


def test_unknown_metrics_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="metrics must be among recovery"):
        sweep(iris(), {"epsilon": [1]}, SETTINGS, metrics=["accuracy"])


def test_every_axis_is_a_setting_or_n() -> None:
    assert list(AXES) == ["epsilon", "delta", "k", "n", "row_bound"]


# The schema ----------------------------------------------------------------------------------


def test_the_schema_is_checked() -> None:
    table = sweep(iris(), {"epsilon": [1]}, SETTINGS).table

    def spoiled(**column: Any) -> pd.DataFrame:
        return table.assign(**column)

    checked(table, TABLE_COLUMNS)
    for bad, words in (
        (table.drop(columns="trial"), "columns must be"),
        (spoiled(value=np.nan), "must be finite"),
        (spoiled(value=np.inf), "must be finite"),
        (spoiled(delta=1.0), "out of its range"),
        (spoiled(epsilon=0.0), "out of its range"),
        (spoiled(n=1), "out of its range"),
        (spoiled(trial=0), "repeats a cell"),
    ):
        with pytest.raises(ValueError, match=words):
            checked(bad, TABLE_COLUMNS)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_writing_gives_every_digit_back(ending: str, tmp_path: Path) -> None:
    found = sweep(iris(), {"epsilon": [0.3, 1]}, SETTINGS)
    path = tmp_path / f"out{ending}"
    found.write(path)
    if ending == ".csv":
        # As texts first, since how exactly a parser reads numbers is not what is tested.
        back = pd.read_csv(path, dtype=str)
        for name, kind in found.table.dtypes.items():
            if kind == "float64":
                back[name] = [float(text) for text in back[name]]
        back = back.astype(found.table.dtypes)
    else:
        back = pd.read_parquet(path)
    pd.testing.assert_frame_equal(back, found.table, check_exact=True)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["out.txt", "out", "missing/out.csv"])
def test_where_nothing_can_be_written_is_one_sentence(name: str, tmp_path: Path) -> None:
    found = sweep(iris(), {"epsilon": [1]}, replace(SETTINGS, trials=1))
    with pytest.raises(InvalidSetting, match="out must be") as caught:
        found.write(tmp_path / name)
    assert caught.value.flag == "--out"


# What workers get ----------------------------------------------------------------------------


def test_a_worker_gets_moments_and_not_the_table() -> None:
    prepared = prepare(datasets.load("digits"), Settings(table="digits"))
    light = prepared.light()
    sent = pickle.dumps(light)
    # A and its two factors, for the moment, which is the reference too: 2 d^2 numbers.
    assert len(sent) < 3 * 8 * prepared.d**2 + 20_000
    back = pickle.loads(sent)
    assert_array_equal(back.moment.A, prepared.moment.A)
    with pytest.raises(ValueError, match="read-only"):
        back.moment.A[0, 0] = 1
    with pytest.raises(RuntimeError, match="ask serves first"):
        _ = light.moment_with_rows
    assert prepared.light(with_rows=True).has_rows


def test_a_backend_that_gives_results_at_once_gets_a_few_cells_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from joblib._parallel_backends import ThreadingBackend

    monkeypatch.setattr(ThreadingBackend, "supports_return_generator", False)
    over = {"epsilon": np.geomspace(0.1, 10, 7).tolist()}
    seen: list[int] = []
    found = sweep(
        iris(),
        over,
        SETTINGS,
        pool=Pool(2, "threading"),
        progress=lambda progress: seen.append(progress.done),
    )
    assert seen == list(range(15))
    pd.testing.assert_frame_equal(found.table, sweep(iris(), over, SETTINGS).table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((0, "loky", None), "workers must be a whole number from 1 to 1024; got '0'"),
        ((1, "abacus", None), "backend must be one of dask, loky"),
        ((1, "dask", None), "scheduler must be given with --backend dask"),
        ((1, "loky", "tcp://x:1"), "and only then; got 'tcp: //x:1'"),
    ],
)
def test_bad_pools_are_one_sentence(options: tuple[int, str, str | None], words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        Pool(*options)


# What is kept --------------------------------------------------------------------------------

OVER = {"epsilon": [0.1, 0.3, 1.0, 3.0, 10.0], "k": [1, 2, 3]}
CELLS = 30


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return a list to which every evaluated cell is added."""
    seen: list[tuple[Any, ...]] = []
    parts_of = sweeping.parts_of

    def counted(cell: Cell, measured: Measured) -> Any:
        seen.append((cell.mechanism.text, cell.budget, cell.problem.k))
        return parts_of(cell, measured)

    monkeypatch.setattr(sweeping, "parts_of", counted)
    return seen


def files(folder: Path) -> list[Path]:
    """Return the whole cells."""
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
    found = sweep(iris(), OVER, SETTINGS, store=Store(tmp_path))
    assert found.reused == stops[-1]
    assert len(evaluated) == len(set(evaluated)) == CELLS
    fresh = sweep(iris(), OVER, SETTINGS)
    pd.testing.assert_frame_equal(found.table, fresh.table, check_exact=True)


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


def test_a_file_under_another_key_is_not_taken(tmp_path: Path) -> None:
    keep = Store(tmp_path)
    keep.put("aa11", {"noise": np.ones(2)})
    (tmp_path / "aa" / "aa11.cell").rename(tmp_path / "aa" / "aa22.cell")
    assert keep.get("aa22") is None
    assert keep.get("aa11") is None


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: object, target: object) -> None:
        raise KeyboardInterrupt

    keep = Store(tmp_path)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        keep.put("aa11", {"noise": np.ones(2)})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def variations() -> Iterator[tuple[str, Measured, Cell, tuple[str, ...]]]:
    def cell_of(settings: Settings, measured: Measured) -> Cell:
        mechanism = parse_variant(settings.mechanisms[0])
        problem, budget = measured.problem(settings), measured.budget(settings)
        return Cell(mechanism, problem, budget, settings.seed, range(settings.trials))

    base, measured = SETTINGS, iris().light()
    yield "base", measured, cell_of(base, measured), ("captured_share",)
    yield "metrics", measured, cell_of(base, measured), ("captured_total",)
    for name, value in (
        ("epsilon", 2.0),
        ("delta", 1e-4),
        ("k", 1),
        ("relation", "zero-out"),
        ("seed", 9),
        ("trials", 5),
        ("allocation", "binary:1:0.5"),
        ("mechanisms", ("ppca[sweeps=7]",)),
    ):
        changed = replace(base, **{name: value})
        yield name, measured, cell_of(changed, measured), ("captured_share",)
    for name, other in (
        ("n", iris().with_n(151, 0)),
        ("subsample", iris().with_n(149, 0)),
        ("row bound", iris().rebound("3").light()),
        ("data", prepare(datasets.load("wine"), base).light()),
    ):
        yield name, other, cell_of(base, other), ("captured_share",)


def test_whatever_changes_the_numbers_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {name: Keys(data).key(cell, metrics) for name, data, cell, metrics in variations()}
    assert len(set(keys.values())) == len(keys) == 14
    again = {name: Keys(data).key(cell, metrics) for name, data, cell, metrics in variations()}
    assert again == keys
    monkeypatch.setattr(store, "source_digest", lambda: "another")
    changed = {name: Keys(data).key(cell, metrics) for name, data, cell, metrics in variations()}
    assert not set(changed.values()) & set(keys.values())


def test_the_rows_are_in_the_key_of_a_mechanism_that_reads_them() -> None:
    # Two tables of one second moment: the rows and a rotation among them.
    rows = iris().moment_with_rows.rows
    turned = rows.copy()
    turned[[0, 1]] = turned[[1, 0]]
    measured = iris().light(with_rows=True)
    other = replace(measured, moment=type(measured.moment)(measured.moment.A, 150, turned))
    for text, differ in (("laplace_output", True), ("gaussian", False)):
        problem, budget = measured.problem(SETTINGS), measured.budget(SETTINGS)
        cell = Cell(parse_variant(text), problem, budget, 0, range(2))
        assert (Keys(measured).key(cell, ()) != Keys(other).key(cell, ())) is differ


def test_the_source_digest_is_of_what_makes_numbers() -> None:
    assert source_digest() == source_digest()
    assert len(source_digest()) == 32


def test_the_folder_stays_below_its_cap_and_forgets_the_oldest(tmp_path: Path) -> None:
    keep = Store(tmp_path, cap=3_000)
    for number in range(6):
        keep.put(f"{number:02d}ab", {"noise": np.full(100, float(number))})
        os.utime(tmp_path / f"{number:02d}" / f"{number:02d}ab.cell", (number, number))
    assert keep.get("00ab") is not None  # used just now
    keep.prune()
    sizes = [path.stat().st_size for path in files(tmp_path)]
    assert sum(sizes) <= 3_000 < sum(sizes) + max(sizes)
    kept = [path.stem for path in files(tmp_path)]
    assert kept == ["00ab", "04ab", "05ab"]
    assert_array_equal(keep.get("05ab")["noise"], np.full(100, 5.0))


def test_the_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "dpviz" / "cells"
    Store(default_folder())
    assert default_folder().stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidSetting, match="cache must be a folder that can be written, or none"):
        Store(tmp_path / "file" / "cells")


def test_progress_counts_and_looks_ahead(tmp_path: Path) -> None:
    seen: list[Progress] = []
    sweep(iris(), {"epsilon": [1]}, SETTINGS, store=Store(tmp_path))
    sweep(iris(), {"epsilon": [1, 2]}, SETTINGS, store=Store(tmp_path), progress=seen.append)
    assert [(p.done, p.total, p.reused) for p in seen] == [(2, 4, 2), (3, 4, 2), (4, 4, 2)]
    assert seen[0].left is None
    assert seen[1].left == pytest.approx(seen[1].seconds)
    assert seen[2].left == 0
