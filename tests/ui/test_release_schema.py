"""A release on the page: one rule with the command line, and no path but the upload's."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.datasets.source import Source
from dpviz.releasing import making
from dpviz.releasing.ledger import Ledger, ledger_folder, ledger_named
from dpviz.releasing.schema import Column, Schema
from tests.ui.driver import (
    PAGES,
    QUICK,
    ROOT,
    change,
    errors,
    found,
    go,
    keys,
    nodes,
    press,
    start,
    upload,
)
from tests.ui.test_release_page import _send as send

pytestmark = pytest.mark.long

# What Explore refuses or reads in its own way: decimal commas, a column of texts, a code for
# "missing", a line with too few cells and one with too many.
STRANGE = "id;age;height;group\n" + "".join(
    f"{j};{20 + j};1,{50 + j};{'ab'[j % 2]}\n" for j in range(30)
)
STRANGE += "30;-999;1,5;a\n31;44\n32;yes;1.75;b;more;cells\n\n"
SCHEMA = Schema(
    (Column("age", 0, 120, 45, (-999.0,)), Column("height", 1, 2.5)), delimiter=";", decimal=","
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPVIZ_LEDGERS", str(tmp_path))
    return tmp_path


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Return the integer moments that releases are made of."""
    seen: list[np.ndarray] = []
    real = making.released

    def watched(moment: np.ndarray, *given: Any) -> Any:
        seen.append(moment)
        return real(moment, *given)

    monkeypatch.setattr(making, "released", watched)
    return seen


def _uploaded(text: str, name: str = "strange.csv") -> AppTest:
    return upload(start("release", **QUICK), name, text.encode())


def _loaded(at: AppTest, schema: Schema) -> AppTest:
    file = ("schema.json", schema.to_text().encode(), "application/json")
    found(at, "schema.file").set_value(file)
    return at.run()


def _filled(at: AppTest, **more: str) -> AppTest:
    """Return the page after both steps to a release, or after the one that went wrong."""
    ledger = Ledger(ledger_named("mine"))
    if not ledger.path.exists():
        ledger.create(Budget(5.0, 1e-4), Relation.REPLACE)
        at = change(at.run(), "release.ledger", "mine")
        at = change(at, "schema.person", "open")
    for name, value in {"row_bound": "40", "delta": "1e-6", **more}.items():
        found(at, f"release.{name}").set_value(value)
    at = press(at, "release.look")
    return send(at) if "release.send" in keys(at) else at


def _edited(at: AppTest, rows: dict[int, dict[str, Any]], added: Any = ()) -> AppTest:
    (key,) = [node.key for node in at.data_editor if node.key.startswith("schema.editor")]
    at.session_state[key] = {"edited_rows": rows, "added_rows": list(added), "deleted_rows": []}
    return at.run()


def _released() -> dict[str, Any]:
    """Return the release that was made last."""
    path = list(Ledger(ledger_named("mine")).kept().values())[-1]
    made = json.loads(path.read_text())
    assert isinstance(made, dict)
    return made


def test_the_page_and_the_command_read_a_table_by_one_rule(
    folder: Path, moments: list[np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    at = _loaded(_uploaded(STRANGE), SCHEMA)
    assert errors(at) == []
    at = _filled(at)
    assert errors(at) == []
    page = _released()
    table, schema = folder / "strange.csv", folder / "schema.json"
    table.write_text(STRANGE)
    SCHEMA.write(schema)
    words = ["release", str(table), "--schema", str(schema), "--row-bound", "40", "--delta", "1e-6"]
    words += ["--ledger", str(folder / "mine.jsonl"), "--out", str(folder / "out.json")]
    assert main(words) == 0  # the same bytes: the same table to the ledger
    command = json.loads((folder / "out.json").read_text())
    first, second = moments
    assert (first == second).all()
    assert page["n"] == 34
    for made in (page, command):
        for drawn in ("made", "matrix", "eigenvalues", "components", "ledger"):
            del made[drawn]
    assert page == command


def test_a_schema_is_filled_in_kept_and_said(folder: Path) -> None:
    at = _uploaded(STRANGE)
    assert errors(at) == []  # whatever Explore thinks of the file
    assert [found(at, f"schema.{name}").value for name in ("delimiter", "decimal", "header")] == [
        ";", ",", True,
    ]  # fmt: skip
    at = _filled(at)
    (said,) = errors(at)
    assert "must say whether it was known before anybody looked" in said
    at = change(at, "schema.origin", "known")
    at = press(at, "release.look")
    said, *_ = errors(at)
    assert "low of 'id' is missing" in said
    age = {"low": 0, "high": 120, "missing": "-999, 0"}
    at = _edited(at, {0: {"use": False}, 1: age, 2: {"low": 2, "high": 1}})
    assert "must be below its high" in errors(at)[0]
    at = _edited(at, {0: {"use": False}, 1: age, 2: {"low": 1, "high": 2}})
    assert errors(at) == []
    at = go(go(at, "claims"), "release")  # what was declared is still there
    assert errors(at) == []
    at = _filled(at)
    assert errors(at) == []
    declared = _released()["declared"]
    assert declared["columns"] == ["age", "height"]
    assert declared["missing"] == [[-999.0, 0.0], []]
    assert declared["typical"] == [60.0, 1.5]
    assert not any("TAKEN" in words for words in _released()["assumed_public"])


def test_bounds_from_the_table_are_marked_until_somebody_declares_them(folder: Path) -> None:
    at = press(_uploaded(STRANGE), "schema.fill")
    assert errors(at) == []
    assert found(at, "schema.origin").value == "taken"
    at = _filled(at)
    assert errors(at) == []
    assert any("TAKEN FROM THE TABLE" in words for words in _released()["assumed_public"])
    at = change(at, "schema.origin", "known")
    at = _filled(at)
    assert errors(at) == []
    assert not any("TAKEN" in words for words in _released()["assumed_public"])
    at = upload(
        at, "other.csv", b"a,b\n1,2\n3,4\n"
    )  # another table: nothing declared is carried on
    assert found(at, "schema.origin").value is None
    assert found(at, "schema.delimiter").value == ","


def test_a_file_that_cannot_be_guessed_is_declared_by_hand(folder: Path) -> None:
    at = _uploaded("1\n2\n3\n", "one.csv")
    (said,) = errors(at)
    assert "shows one column only" in said
    at = change(at, "schema.header", False)
    at = _edited(at, {}, [{"name": "a", "low": 0, "high": 9}, {"name": "b", "low": 0, "high": 9}])
    at = change(at, "schema.origin", "known")
    at = _filled(at)
    assert _released()["n"] == 3


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return every name of a file that is opened or asked for, as far as a canary is in it."""
    seen: list[str] = []

    def watch(target: Any, name: str) -> None:
        real = getattr(target, name)

        def watched(path: Any, *given: Any, **named: Any) -> Any:
            if "canary" in str(path):
                seen.append(str(path))
            return real(path, *given, **named)

        monkeypatch.setattr(target, name, watched)

    for name in ("stat", "lstat", "open", "listdir", "scandir", "access"):
        watch(os, name)
    monkeypatch.setattr("builtins.open", _opener(open, seen))
    monkeypatch.setattr("io.open", _opener(open, seen))
    real = Source.__init__

    def made(self: Source, given: Any, name: str) -> None:
        if isinstance(given, str | Path) and "canary" in str(given):
            seen.append(str(given))
        real(self, given, name)

    monkeypatch.setattr(Source, "__init__", made)
    return seen


def _opener(real: Any, seen: list[str]) -> Any:
    def watched(path: Any, *given: Any, **named: Any) -> Any:
        if "canary" in str(path):
            seen.append(str(path))
        return real(path, *given, **named)

    return watched


def test_the_watch_sees_a_file(touched: list[str], tmp_path: Path) -> None:
    path = tmp_path / "canary.csv"
    for act in (path.is_file, path.exists, lambda: os.path.exists(path), lambda: Source(path, "")):
        touched.clear()
        act()
        assert touched
    touched.clear()
    with pytest.raises(FileNotFoundError):
        path.read_text()
    assert touched


@pytest.mark.parametrize("page", PAGES)
def test_no_text_field_reaches_a_file(
    page: str, touched: list[str], folder: Path, tmp_path: Path
) -> None:
    """Each is given the path of a table of bounds, which each reader of files would take."""
    path = tmp_path / "canary.csv"
    path.write_text("feature,low,high\na,0,1\nb,0,1\n")
    for made in (False, True) if page == "release" else (False,):
        if made:
            Ledger(ledger_named("mine")).create(Budget(5.0, 1e-4), Relation.REPLACE)
        touched.clear()
        _fill_with(path, page, touched, least=8 - 3 * made if page == "release" else 0)


def _fill_with(path: Path, page: str, touched: list[str], least: int) -> None:
    at = start(page, **QUICK, domain="box", bounds="0:8", row_bound="9")
    texts = [node for node in nodes(at) if node.type in ("text_input", "text_area")]
    fields = {node.key.split("~")[0]: node.value for node in texts}
    for key, before in fields.items():
        for written in (str(path), f"plan:n=100,spectrum={path}"):
            at = change(at, key, written)
            assert not at.exception, key
            for button in {"release.look", "release.new.make"} & set(keys(at)):
                press(at, button)
                assert not at.exception, key
            assert touched == [], key
        found(at, key).set_value(before)  # the run of the next field takes it back
    assert len(fields) >= least


# The only calls of pages with the name of a file, or with what finds a file by a name: each with
# what it is given. A new one is to be seen in a review.
TAKES_A_FILE = {
    "Path", "open", "load", "read_raw", "read_bounds", "read_thetas", "load_prepared",
    "load_measured", "with_bounds_read", "table_input", "Ledger", "Store",
}  # fmt: skip
CALLS = {
    "Path(__file__)",
    "Path(st.__file__)",  # that of Streamlit
    "Path(tempfile.mkdtemp(prefix='dpviz-'))",
    "Store(default_folder())",
    "Store(Path(tempfile.mkdtemp(prefix='dpviz-')))",
    "datasets.read_raw(_file, name=name, decimal=decimal, encoding=encoding, sheet=sheet, "
    "cells=datasets.UPLOADED_CELLS)",  # an upload
    "datasets.load(key)",  # one of the built-in tables, by the only caller
    "read_thetas(file, name=file.name)",  # an upload
    "load_measured(chosen)",  # a plan made of numbers
    "Ledger(ledger_named(name))",  # in the folder of ledgers, see below
}


def test_pages_hand_no_text_to_what_opens_files() -> None:
    seen = set()
    for path in sorted((ROOT / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rpartition(".")[2]
                if called in TAKES_A_FILE and (node.args or node.keywords):
                    seen.add(ast.unparse(node))
    assert {call for call in seen if not call.startswith("loading.load(")} - CALLS == set()


@given(st.text(max_size=80) | st.sampled_from(["..", ".", "../x", "a/b", "a\\b", "a\0", "/etc/x"]))
def test_a_ledgers_name_leads_nowhere_else(name: str) -> None:
    try:
        path = ledger_named(name)
    except InvalidSetting:
        return
    assert path.parent == ledger_folder()
    assert path.name == f"{name}.jsonl"
    assert name.isascii()


def test_the_page_asks_how_many_rows_one_person_has(
    folder: Path, moments: list[np.ndarray]
) -> None:
    rows = "".join(f"{a};{who};{b}\n" for who, a, b in [("p", 1, 0), ("p", 1, 1), ("q", 0, 1)] * 4)
    at = _loaded(
        _uploaded("a;who;b\n" + rows),
        Schema((Column("a", -1, 1, 0), Column("who", 0, 1), Column("b", -1, 1, 0)), delimiter=";"),
    )
    ledger = Ledger(ledger_named("persons"))
    ledger.create(Budget(5.0, 1e-4), Relation.REPLACE, unit=Unit.PERSON)
    at = change(at.run(), "release.ledger", "persons")
    for name, value in {"row_bound": "2", "delta": "1e-6", "k": "1"}.items():
        found(at, f"release.{name}").set_value(value)
    (said,) = errors(press(at, "release.look"))
    assert "at most how many rows one person has must be answered" in said
    assert any("protects one ROW" in text.value for text in at.markdown)
    at = change(at, "schema.person", "open")  # nobody knows
    (said,) = errors(press(at, "release.look"))
    assert "adds up releases under the relation replace, one person at a time" in said
    at = change(at, "schema.person", "column")
    assert list(at.session_state["schema.now"]["use"]) == [False, True, True]
    at = change(at, "schema.person.name", "who")
    # the person is no feature, and the column that was proposed for it is one again
    assert list(at.session_state["schema.now"]["use"]) == [True, False, True]
    assert "who" not in at.selectbox(key="schema.label").options
    at = change(at, "schema.rows_a_person", 2)
    assert any("a person with all of at most 2 rows" in text.value for text in at.markdown)
    at = send(press(at, "release.look"))
    assert errors(at) == []
    made = json.loads(ledger.kept()[1].read_text())
    assert made["unit"] == {"protected": "person", "rows": 2, "person": "who"}
    (moment,) = moments
    bits = made["noise"]["grid_bits"]
    # two rows of p and two of q: (1, 0), (1, 1), (0, 1), (0, 1), over a row bound of 2
    assert (moment == np.array([[2, 1], [1, 3]]) * 4 ** (bits - 1)).all()
    # the form of a new ledger, which was drawn before anybody was declared, follows
    at = change(at, "release.ledger", "a new ledger ...")
    new = [found(at, f"release.new.{name}").value for name in ("unit", "rows_a_person")]
    assert new == ["person", "auto"]
    at = change(at, "schema.person", "some")
    at = change(at, "schema.rows_a_person", 3)
    assert found(at, "release.new.rows_a_person").value == "3"
