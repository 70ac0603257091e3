"""Views marked publishable read files as a release does; no other views have the mark."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.errors import DpvizError
from dpviz.core.seeding import generator
from dpviz.releasing.schema import Column, Schema

N = 300
ROWS = generator(0, "tests", "publishable").normal(size=(N, 3)).round(2).tolist()
COLUMNS = tuple(Column(name, -4.0, 4.0, 0.5) for name in "abc")
SCHEMA = Schema((*COLUMNS, Column("group", use=False)), label="group", categories=("x", "y"))
CELLS = ("", "abc", "1e200", "1,5", '"', "-999", "nan")
"""Cells of one person, which must not change how other cells are read."""


def own(folder: Path, cell: str | None = None) -> Path:
    """Write a file with one given cell, and a schema beside the file; return the file's path."""
    lines = [[*map(str, row), "xy"[i % 2]] for i, row in enumerate(ROWS)]
    if cell is not None:
        lines[7][1] = cell
    path = folder / "own.csv"
    path.write_text("\n".join([",".join("abc") + ",group", *map(",".join, lines)]) + "\n")
    SCHEMA.write(folder / "schema.json")
    return path


def run(*words: Any) -> tuple[int, str]:
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = main([str(word) for word in words])
    return code, output.getvalue()


def shape(found: Any) -> Any:
    """Return the structure of a payload, with every number that is not random."""
    if isinstance(found, dict):
        keys = ("picture", "noise")
        return {key: "drawn" if key in keys and at else shape(at) for key, at in found.items()}
    return [shape(one) for one in found] if isinstance(found, list) else found


def published(path: Path, *more: Any) -> dict[str, Any]:
    code, text = run("published", path, "--mechanism", "gaussian", "--epsilon", 4, "--format",
                     "json", *more)  # fmt: skip
    assert code == 0, text
    data: dict[str, Any] = json.loads(text)
    return data


def test_an_own_file_without_a_schema_is_not_called_publishable(tmp_path: Path) -> None:
    path = own(tmp_path, "")
    data = published(path)
    assert data["publishable"] is False
    assert data["n"] == N - 1  # These are the rows that Explore reads.
    answer = dpviz.published(path, mechanisms="gaussian", epsilon=4)
    for text in (data["reading"], answer.summary()):
        assert "Not to be published" in text
        assert "dpviz schema" in text
        assert "--schema" in text
    figure = answer.figure("published").to_json()
    assert "do not publish this chart" in figure
    assert "published: points" not in figure
    out = tmp_path / "board.html"
    for more in ((), ("--report",)):
        assert run("board", path, "--mechanism", "gaussian", "--out", out, *more)[0] == 0
        words = re.sub(r"(?s)<script.*?</script>", "", out.read_text())
        assert "Not to be published" in words
        assert not re.search(r"\d published pictures?", words)


def test_no_cell_changes_what_is_published_but_through_the_noise(tmp_path: Path) -> None:
    schema = ("--schema", tmp_path / "schema.json")
    whole = published(own(tmp_path), *schema)
    assert whole["publishable"] is True
    assert (whole["n"], whole["columns"], whole["labels"]) == (N, list("abc"), ["x", "y", "other"])
    assert not any("mean" in said or "max" in said for said in whole["assumed_public"])
    for cell in CELLS:
        assert shape(published(own(tmp_path, cell), *schema)) == shape(whole), cell
    constant = own(tmp_path)
    constant.write_text("a,b,c,group\n" + "1,NA,2,x\n" * N)
    assert shape(published(constant, *schema)) == shape(whole)


def test_a_board_under_a_schema_is_publishable_whatever_a_cell_holds(tmp_path: Path) -> None:
    out, pages = tmp_path / "board.html", []
    for cell in (None, *CELLS[:3]):
        own(tmp_path, cell)
        code, text = run("board", tmp_path / "own.csv", "--schema", tmp_path / "schema.json",
                         "--mechanism", "gaussian", "--out", out)  # fmt: skip
        assert code == 0, text
        page = out.read_text()
        words = re.sub(r"(?s)<script.*?</script>", "", page)
        assert "1 published picture" in words
        assert "Not to be published" not in words
        (payload,) = re.findall(r'<script id="payload" type="application/json">(.*?)</script>',
                                page)  # fmt: skip
        keys = ("table", "labels", "limits", "publishable")
        pages.append({key: json.loads(payload)[key] for key in keys})
    assert pages == [pages[0]] * len(pages)
    assert (pages[0]["table"]["n"], pages[0]["publishable"]) == (N, True)


def test_what_the_rows_would_decide_is_refused_beside_a_schema(tmp_path: Path) -> None:
    path, schema = own(tmp_path), tmp_path / "schema.json"
    for more in ({"scale": "standardize"}, {"row_bound": "quantile:0.9"}, {"center": "mean"},
                 {"label": "group"}, {"leave_out": "a"}):  # fmt: skip
        with pytest.raises(DpvizError, match="schema"):
            dpviz.published(path, schema=schema, **more)  # type: ignore[arg-type]
    Schema(COLUMNS, from_data=True).write(schema)
    with pytest.raises(DpvizError, match="taken from the data, not private"):
        dpviz.published(path, schema=schema)


def test_rows_too_many_of_a_person_count_as_nobody(tmp_path: Path) -> None:
    path, schema = tmp_path / "p.csv", tmp_path / "s.json"
    lines = [f"p{i // 3},{','.join(map(str, row))}" for i, row in enumerate(ROWS)]
    path.write_text("\n".join(["who,a,b,c", *lines]) + "\n")
    Schema((Column("who", use=False), *COLUMNS), rows_a_person=2, person="who").write(schema)
    answer = dpviz.published(path, schema=schema, mechanisms="gaussian", epsilon=4)
    assert answer.data()["n"] == N
    rows = answer.prepared.table.rows
    nobody = ~rows.any(axis=1)  # Removed rows become zero, so the row order stays the same.
    assert np.flatnonzero(nobody).tolist() == list(range(2, N, 3))
    assert answer.settings.rows_a_person == 2


def test_pictures_and_boards_are_entered_in_a_ledger(tmp_path: Path) -> None:
    path, schema, book = own(tmp_path), tmp_path / "schema.json", tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(9, 1e-3))
    words = ("--schema", schema, "--ledger", book, "--mechanism", "gaussian", "--epsilon", 4,
             "--relation", "replace")  # fmt: skip
    assert run("published", path, *words)[0] == 0
    assert run("board", path, *words, "--out", tmp_path / "b.html")[0] == 0
    spends = dpviz.ledger(book).data()["spends"]
    assert [round(one["epsilon"], 6) for one in spends] == [4, 4]
    assert all(one["mechanism"].startswith("gaussian") for one in spends)
    out = tmp_path / "c.html"
    code, text = run("board", path, *words, "--out", out)
    assert code != 0
    assert "would pass its limit" in text
    assert not out.exists()
    with pytest.raises(DpvizError, match="schema"):
        dpviz.published(path, ledger=book)
