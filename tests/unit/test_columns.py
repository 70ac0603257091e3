"""A column declared once, in a test on one answer, appears wherever its table does."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import pandas as pd
import pytest

import dpviz
from dpviz.studies.columns import Column
from dpviz.studies.compare import Compared
from dpviz.studies.options import asking_functions
from pages.ui import parts
from tools import payload


def test_a_column_of_one_line_is_seen_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = Column(
        "runs", "Runs made", lambda side: len(side.result.angles), type=int, help="Of it."
    )
    monkeypatch.setattr(Compared, "columns", (*Compared.columns, column))
    comparison = dpviz.compare("iris", mechanisms="gaussian", k=2, trials=3)
    assert comparison.table()["runs"].tolist() == [3]
    assert comparison.data()["results"][0]["runs"] == 3
    shape = json.loads(payload.answers())["$defs"]["Compared"]["properties"]["results"]["items"]
    assert shape["properties"]["runs"] == {"type": "integer", "description": "Of it."}
    assert "runs" in shape["required"]
    head, row = comparison.printed().splitlines()[-2:]
    assert row.split()[head.split().index("runs")] == "3"
    comparison.write(tmp_path / "table.csv")
    assert pd.read_csv(tmp_path / "table.csv")["runs"].tolist() == [3]
    comparison.paper(tmp_path / "paper")
    lines = (tmp_path / "paper" / "table.tex").read_text(encoding="utf-8").splitlines()
    head, row = (next(line for line in lines if word in line) for word in ("Claim", "Gaussian"))
    assert row.split(" & ")[head.split(" & ").index("Runs made")] == "$3$"
    grid, columns = parts.grid(comparison.all_columns(), comparison.results)
    assert (grid["runs"].tolist(), columns["runs"]["label"]) == ([3], "Runs made")
    assert columns["projection_distance"]["label"] == "Projection distance ↓"


FILES = {"Filed", "Released", "Draft", "Reproduced", "Swept", "Verified"}
"""Answers that have a file of their own, or a long table whose columns they declare."""


def test_every_answer_is_a_dataclass_with_columns() -> None:
    kinds = [get_type_hints(function)["return"] for function in asking_functions().values()]
    answers = {one for kind in kinds for one in get_args(kind) or [kind]}
    assert [one.__name__ for one in answers if not is_dataclass(one)] == []
    assert {one.__name__ for one in answers if not one.columns} == FILES


def test_a_number_that_no_mechanism_has_leaves_a_column_of_numbers() -> None:
    answer = dpviz.least("iris", recovery=0.9, k=1, mechanisms="gaussian", most_draws=16)
    assert answer.table()["predicted"].dtype == float
    assert answer.data()["answers"][0]["predicted"] is None
