"""CSV files keep foreign text as text: no cell is a formula, and every cell reads back."""

from __future__ import annotations

import ast
import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpviz.cli import main
from dpviz.core.allocation import Allocation
from dpviz.core.files import (
    csv_text,
    guarded,
    unguarded,
)
from dpviz.datasets import read_bounds, read_thetas
from dpviz.studies.precision import shares_file

ROOT = Path(__file__).resolve().parents[2]
FORMULAS = (
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", "＝1", '=HYPERLINK("x","y")',
    "=cmd|' /C calc'!A1", "\t", "''=1",
)  # fmt: skip


def is_run(cell: str) -> bool:
    """Return whether a spreadsheet may run a cell, after skipping characters at its start."""
    return cell.strip("\t\r\n ")[:1] in set("=+-@＝＋－＠") and bool(cell.strip())


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_would_run_is_guarded(text: str) -> None:
    assert not is_run(guarded(text))
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


TEXTS = st.text(st.sampled_from("=+-@'\t\r\n ＝a1\",;"), max_size=6)


@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS.filter(bool))
def test_no_cell_of_a_file_is_run_and_all_come_back(cells: list[str], name: str) -> None:
    table = pd.DataFrame({name: cells, "value": np.arange(len(cells)) - 1.5})
    header, *rows = list(csv.reader(io.StringIO(csv_text(table), newline="")))
    assert not any(is_run(row[0]) for row in [header, *rows] if row)
    assert unguarded(header[0]) == name
    assert [unguarded(row[0]) for row in rows] == cells
    assert [float(row[1]) for row in rows] == table["value"].tolist()


def test_pandas_alone_would_write_a_formula() -> None:
    """Control: without the guard, pandas writes a formula."""
    assert is_run(pd.DataFrame({"a": ["=1+1"]}).to_csv(index=False).splitlines()[1])


@pytest.mark.slow
def test_every_csv_goes_this_way() -> None:
    writes = {"to_csv", "write_csv", "to_excel"}
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("dpviz", "pages")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if any(name in (text := path.read_text(encoding="utf-8")) for name in writes)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in writes
    ]
    assert {line.partition(":")[0] for line in places} == {"dpviz/core/files.py"}


def test_a_sweep_keeps_the_name_of_a_file_as_text(tmp_path: Path) -> None:
    table = tmp_path / "=1+1.csv"
    rows = np.random.default_rng(0).normal(size=(30, 3))
    pd.DataFrame(rows, columns=["=a", "-b", "c"]).to_csv(table, index=False)
    out = tmp_path / "curve.csv"
    words = [
        "sweep",
        str(table),
        "--over",
        "epsilon",
        "--values",
        "1,2",
        "--trials",
        "2",
        "--name",
        "=1+1.csv",
    ]
    assert main([*words, "--mechanism", "gaussian", "--out", str(out), "--cache", "none"]) == 0
    with out.open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    assert lines
    assert not [cell for line in lines for cell in line if is_run(cell) and not _number(cell)]
    assert {unguarded(line[0]) for line in lines} == {"=1+1.csv"}


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_files_of_bounds_and_shares_come_back(tmp_path: Path) -> None:
    names = ["=a", "-b", "c"]
    text = shares_file(Allocation("uniform"), names, [0.2, 0.3, 0.5])
    (tmp_path / "shares.csv").write_text(text, encoding="utf-8")
    assert not [line for line in text.splitlines() if is_run(line)]
    assert read_thetas(tmp_path / "shares.csv") == dict(zip(names, [0.2, 0.3, 0.5], strict=True))
    bounds = pd.DataFrame({"feature": names, "low": -1.0, "high": [1.0, 2.0, 3.0]})
    (tmp_path / "bounds.csv").write_text(csv_text(bounds), encoding="utf-8")
    assert list(read_bounds(tmp_path / "bounds.csv")) == names
