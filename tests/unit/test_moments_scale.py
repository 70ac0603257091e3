"""Moments of tables larger than memory: the same numbers, in batches."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from numpy.testing import assert_allclose

from dpviz import datasets
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidTable
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets.batches import _BATCH_ROWS, FileBatches
from dpviz.mechanisms.laplace_output import LaplaceOutput
from dpviz.preparation.bounding import BoundedTable, Prepared, prepare, prepare_batches
from dpviz.preparation.load import load_prepared
from dpviz.preparation.passes import FAR_ROWS
from dpviz.simulation.compare import compare
from dpviz.studies.compare import Compared

OPTIONS = (
    Settings(),
    Settings(row_bound="2.5"),
    Settings(row_bound="quantile:1"),
    Settings(scale="standardize"),
    Settings(scale="standardize", row_bound="1.9"),
    Settings(center="none"),
    Settings(center="none", row_bound="4"),
    Settings(center="midpoint"),
    Settings(domain="box"),
    Settings(domain="box", center="none"),
)


def rows_of(n: int, d: int, seed: int = 0) -> FloatArray:
    rng = generator(seed, "scale", n, d)
    spread = np.geomspace(2, 0.2, d)
    return rng.standard_normal((n, d)) * spread + np.arange(d)


def written(folder: Path, columns: dict[str, Any], ending: str = ".parquet") -> Path:
    path = folder / f"table{ending}"
    table = pa.table(columns)
    if ending == ".parquet":
        parquet.write_table(table, path, row_group_size=5_000)
    else:
        text = table.to_pandas().to_csv(index=False)
        if ending == ".csv":
            path.write_text(text)
        else:
            path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def named(rows: FloatArray) -> dict[str, FloatArray]:
    return {f"x{j}": rows[:, j] for j in range(rows.shape[1])}


def assert_same(batched: BoundedTable, whole: Prepared, tolerance: float = 1e-12) -> None:
    """Compare with the in-memory path; the tolerance is relative to the largest entry."""
    for name in ("moment", "reference"):
        expected = getattr(whole, name)
        assert_allclose(
            getattr(batched, name).A, expected.A, rtol=0, atol=tolerance * np.abs(expected.A).max()
        )
    assert batched.row_bound == pytest.approx(whole.row_bound, rel=tolerance)
    for name in ("n", "columns", "domain", "bounded_rows", "assumed_public", "name"):
        assert getattr(batched, name) == getattr(whole, name), name


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("settings", OPTIONS, ids=lambda s: " ".join(s.texts().values()) or "-")
def test_a_file_gives_the_numbers_of_the_table(
    settings: Settings, ending: str, tmp_path: Path
) -> None:
    path = written(tmp_path, named(rows_of(20_000 if ending == ".parquet" else 2_000, 4)), ending)
    whole = prepare(datasets.load(str(path)), settings)
    from_file = prepare_batches(path, settings)
    assert_same(from_file, whole)
    assert from_file.notes == whole.notes
    n = whole.n // 3
    assert_allclose(from_file.with_n(n, 5).moment.A, whole.with_n(n, 5).moment.A, atol=1e-12)
    if settings.domain == "ball":
        assert_same(from_file.rebound("1.7"), whole.rebound("1.7"))


def test_bounds_from_a_file_clip_in_batches(tmp_path: Path) -> None:
    path = written(tmp_path, named(rows_of(9_000, 3)))
    bounds = {"x0": (-1.0, 2.0), "x1": (0.0, 2.0), "x2": (1.0, 3.0)}
    for settings in (
        Settings(domain="box", bounds=bounds),
        Settings(center="midpoint", bounds=bounds),
    ):
        whole = prepare(datasets.load(str(path)), settings)
        from_file = prepare_batches(path, settings)
        assert_same(from_file, whole)
    assert whole.bounded_rows == 0


def test_columns_and_rows_are_chosen_as_in_memory(tmp_path: Path) -> None:
    rows = rows_of(12_000, 3)
    gap = rows[:, 1].copy()
    gap[[3, 7_000, 11_999]] = np.nan
    columns = {
        "real": rows[:, 0],
        "gaps": gap,
        "same": np.full(12_000, 1e8 / 3),
        "small": rows[:, 2].astype(np.float32),
        "count": np.arange(12_000) % 17,
        "truth": rows[:, 0] > 0,
        "money": [Decimal(i % 7) / 4 for i in range(12_000)],
        "word": [f"w{i % 3}" for i in range(12_000)],
        "kind": ["a", "b", None] * 4_000,
    }
    path = written(tmp_path, columns)
    for settings in (Settings(), Settings(label="kind"), Settings(center="none", label="count")):
        table = datasets.load(str(path), datasets.ReadOptions(label=settings.label))
        whole = prepare(table, settings)
        from_file = prepare_batches(path, settings)
        assert_same(from_file, whole)
        lost = 12_000 - whole.n
        assert f"{lost} rows of 12000 without a value were left out." in from_file.notes
        assert "same" not in from_file.columns
        assert any("'word'" in note for note in from_file.notes)


# One pass ------------------------------------------------------------------------------------


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the passes made over the rows."""
    passes: list[str] = []
    blocks = FileBatches.blocks

    def counted(self: FileBatches) -> Any:
        passes.append("pass")
        return blocks(self)

    monkeypatch.setattr(FileBatches, "blocks", counted)
    return passes


def test_many_rows_equally_far_out_take_a_second_pass(tmp_path: Path, folds: list[str]) -> None:
    # Three times as many rows are longest as can be stored: an omitted row may be longest.
    rows = rows_of(20_000, 3)
    rows[-3 * FAR_ROWS :] = [50.0, 50.0, 50.0]
    path = written(tmp_path, named(rows))
    from_file = prepare_batches(path, Settings())
    assert len(folds) == 3
    assert_same(from_file, prepare(datasets.load(str(path)), Settings()))


@pytest.mark.parametrize("order", ["sorted", "reversed", "outlier first"])
def test_the_order_of_rows_does_not_matter(order: str, tmp_path: Path) -> None:
    rows = rows_of(30_000, 3)
    rows = rows[np.argsort(rows[:, 0])]
    if order == "reversed":
        rows = rows[::-1]
    elif order == "outlier first":
        rows[0] = [1e6, -1e6, 1e6]
    path = written(tmp_path, named(rows))
    assert_same(prepare_batches(path, Settings()), prepare(datasets.load(str(path)), Settings()))


# Stability -----------------------------------------------------------------------------------


def exact_moment(rows: FloatArray, center: FloatArray) -> tuple[FloatArray, float]:
    """Return A and R about a center, in extended precision."""
    deviations = rows.astype(np.longdouble) - center
    R = np.sqrt((deviations**2).sum(axis=1)).max()
    unit_rows = deviations / R
    A = np.array([[(unit_rows[:, i] * unit_rows[:, j]).sum() for j in range(3)] for i in range(3)])
    return (A / len(rows)).astype(float), float(R)


@pytest.mark.parametrize("far", [1e8, 1e12])
def test_ill_conditioned_data_against_extended_precision(far: float, tmp_path: Path) -> None:
    """Moments match extended precision: mean 1e8, unit variance, last direction a thousandth."""
    if np.finfo(np.longdouble).eps > 2e-19:
        pytest.skip("this machine has no extended precision to compare with")
    rng = generator(2, "ill")
    rows = rng.standard_normal((60_000, 3)) * [1, 0.1, 1e-3] + [far, -far, far / 3]
    path = written(tmp_path, named(rows))
    from_file = prepare_batches(path, Settings())
    in_memory = prepare(datasets.load(str(path)), Settings())
    mean = rows.astype(np.longdouble).mean(axis=0).astype(float)
    for table in (from_file, in_memory):
        center = table.transform.center
        assert (np.abs(center - mean) <= np.spacing(np.abs(mean))).all()
        A, R = exact_moment(rows, center)
        # Differences of stored numbers are exact or round once, by 2^-53. The entries of a block's
        # product round by at most 2^-53 sqrt(A_ii A_jj) times the root of its length, 2^8.
        size = np.sqrt(np.outer(np.diag(A), np.diag(A)))
        assert (np.abs(table.moment.A - A) <= 1e-12 * size).all()
        assert table.row_bound == pytest.approx(R, rel=1e-12)
        assert_allclose(table.moment.eigenvalues, np.linalg.eigvalsh(A)[::-1], rtol=1e-9)
    # Control: the textbook formula for the variance loses all digits here.
    naive = (rows.T @ rows / len(rows) - np.outer(rows.mean(axis=0), rows.mean(axis=0))) / R**2
    assert (np.abs(naive - A) > 1e-3 * size).any()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        path = written(tmp_path, named(rows_of(n, 20)))
        tracemalloc.start()
        try:
            prepare_batches(path, Settings(row_bound="2.5"))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1_000)
    short, long = peak(200_000), peak(800_000)
    # Storing all rows would take 96 MB more memory; allow one batch of rows, as NumPy counts it.
    assert long - short < _BATCH_ROWS * 20 * 8


# Uses of moments -----------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dpviz.datasets.files.TEXT_BYTES", 10_000)
    return written(tmp_path, named(rows_of(2_000, 4)) | {"word": ["w"] * 2_000})


def test_a_large_file_needs_no_rows(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(table=str(large), trials=2, delta=1e-6)
    table = load_prepared(settings)
    assert not isinstance(table, Prepared)
    comparison = compare(table, settings)
    assert comparison.prepared.name == "table"
    assert not [item for item in comparison.skipped if "rows themselves" in item.reason]
    assert Compared.of(comparison).data()["dataset"]["n"] == 2_000
    monkeypatch.setattr(LaplaceOutput, "passes", 0)  # Imitate a mechanism that needs all rows.
    with pytest.raises(CannotRun, match="laplace_output cannot run: it needs the rows themselves"):
        compare(table, replace(settings, mechanisms=("laplace_output",)))


def late_text(path: Path) -> None:
    lines = ["a,b", *("1.5,2" for _ in range(2_100_000)), "31337.25,word"]
    path.write_text("\n".join(lines))


def uneven(path: Path) -> None:
    path.write_text("a,b\n1,2\n31337.25\n3,4\n")


def infinite(path: Path) -> None:
    path.write_text("a,b\n1,2\n31337.25,inf\n3,4\n")


def absurd(path: Path) -> None:
    path.write_text("a,b\n1,2\n31337.25,1e150\n3,4\n")


def damaged(path: Path) -> None:
    path.write_bytes(b"PAR1" + b"31337.25" * 10)


def one_column(path: Path) -> None:
    path.write_text("a,b\n1,x\n31337.25,y\n")


def no_rows(path: Path) -> None:
    path.write_text("a,b\n1,\n,2\n")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (late_text, "column 2 of t.csv starts with numbers and later holds text"),
        (uneven, "line 3 has 1 and the first line has 2"),
        (infinite, "column 'b' of t.csv holds an infinite number or one beyond 1e100 in row 2"),
        (absurd, "column 'b' of t.csv holds an infinite number"),
        (damaged, "starts like a Parquet file but cannot be read as one"),
        (one_column, "must have at least 2 numeric columns; it has 1"),
        (no_rows, "must have at least 2 rows; it has none"),
    ],
)
def test_bad_files_are_one_sentence(
    write: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    write(path)
    with pytest.raises(InvalidTable, match=words) as caught:
        prepare_batches(path, Settings())
    assert "31337" not in str(caught.value)
    assert "\n" not in str(caught.value)
