"""What may be shown to anybody is read as a release is read; else nobody says that it may."""

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
"""One person's cell, that may change how no other is read."""


def own(folder: Path, cell: str | None = None) -> Path:
    """Return a file of one's own, with one cell as given, and a schema beside it."""
    lines = [[*map(str, row), "xy"[i % 2]] for i, row in enumerate(ROWS)]
    if cell is not None:
        lines[7][1] = cell
    path = folder / "own.csv"
    path.write_text("\n".join([",".join("abc") + ",group", *map(",".join, lines)]) + "\n")
    SCHEMA.write(folder / "schema.json")
    return path


def run(*words: Any) -> tuple[int, str]:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main([str(word) for word in words])
    return code, said.getvalue()


def shape(found: Any) -> Any:
    """Return keys, lengths and types, and every number that is not drawn."""
    if isinstance(found, dict):
        drawn = ("picture", "noise")
        return {key: "drawn" if key in drawn and at else shape(at) for key, at in found.items()}
    return [shape(one) for one in found] if isinstance(found, list) else found


def published(path: Path, *more: Any) -> dict[str, Any]:
    code, said = run("published", path, "--mechanism", "gaussian", "--epsilon", 4, "--format",
                     "json", *more)  # fmt: skip
    assert code == 0, said
    found: dict[str, Any] = json.loads(said)
    return found


def test_an_own_file_without_a_schema_is_not_called_publishable(tmp_path: Path) -> None:
    path = own(tmp_path, "")
    found = published(path)
    assert found["publishable"] is False
    assert found["n"] == N - 1  # as it is explored
    answer = dpviz.published(path, mechanisms="gaussian", epsilon=4)
    for said in (found["reading"], answer.summary()):
        assert "Not to be published" in said
        assert "dpviz schema" in said
        assert "--schema" in said
    figure = answer.figure("published").to_json()
    assert "not to be published" in figure
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
        code, said = run("board", tmp_path / "own.csv", "--schema", tmp_path / "schema.json",
                         "--mechanism", "gaussian", "--out", out)  # fmt: skip
        assert code == 0, said
        page = out.read_text()
        words = re.sub(r"(?s)<script.*?</script>", "", page)
        assert "1 published picture" in words
        assert "Not to be published" not in words
        (payload,) = re.findall(r'<script id="payload" type="application/json">(.*?)</script>',
                                page)  # fmt: skip
        kept = ("table", "labels", "limits", "publishable")
        pages.append({key: json.loads(payload)[key] for key in kept})
    assert pages == [pages[0]] * len(pages)
    assert (pages[0]["table"]["n"], pages[0]["publishable"]) == (N, True)


def test_what_the_rows_would_decide_is_refused_beside_a_schema(tmp_path: Path) -> None:
    path, schema = own(tmp_path), tmp_path / "schema.json"
    for more in ({"scale": "standardize"}, {"row_bound": "quantile:0.9"}, {"center": "mean"},
                 {"label": "group"}, {"leave_out": "a"}):  # fmt: skip
        with pytest.raises(DpvizError, match="beside a schema"):
            dpviz.published(path, schema=schema, **more)  # type: ignore[arg-type]
    Schema(COLUMNS, from_data=True).write(schema)
    with pytest.raises(DpvizError, match="taken from the data, not private"):
        dpviz.published(path, schema=schema)


def test_rows_too_many_of_a_person_count_as_nobody(tmp_path: Path) -> None:
    path, schema = tmp_path / "p.csv", tmp_path / "s.json"
    lines = [f"p{i // 3},{','.join(map(str, row))}" for i, row in enumerate(ROWS)]
    path.write_text("\n".join(["who,a,b,c", *lines]) + "\n")
    Schema((Column("who", use=False), *COLUMNS), rows_a_person=2, person="who").write(schema)
    found = dpviz.published(path, schema=schema, mechanisms="gaussian", epsilon=4)
    assert found.data()["n"] == N
    rows = found.prepared.table.rows
    nobody = ~rows.any(axis=1)  # in their places, for mechanisms that read rows in order
    assert np.flatnonzero(nobody).tolist() == list(range(2, N, 3))
    assert found.settings.rows_a_person == 2


def test_pictures_and_boards_are_entered_in_a_ledger(tmp_path: Path) -> None:
    path, schema, book = own(tmp_path), tmp_path / "schema.json", tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(9, 1e-3))
    asked = ("--schema", schema, "--ledger", book, "--mechanism", "gaussian", "--epsilon", 4,
             "--relation", "replace")  # fmt: skip
    assert run("published", path, *asked)[0] == 0
    assert run("board", path, *asked, "--out", tmp_path / "b.html")[0] == 0
    spends = dpviz.ledger(book).data()["spends"]
    assert [round(one["epsilon"], 6) for one in spends] == [4, 4]
    assert all(one["mechanism"].startswith("gaussian") for one in spends)
    out = tmp_path / "c.html"
    code, said = run("board", path, *asked, "--out", out)
    assert code != 0
    assert "would pass its limit" in said
    assert not out.exists()
    with pytest.raises(DpvizError, match="schema"):
        dpviz.published(path, ledger=book)
