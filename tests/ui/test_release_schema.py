"""A release on the page follows the command line's rule, and uses only the upload's path."""

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

# Explore refuses this input or reads it differently: decimal commas, a text column, a code for
# "missing", one line with too few cells and one line with too many.
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
    """Return the integer moments from which releases are made."""
    seen_moments: list[np.ndarray] = []
    real = making.released

    def watched(moment: np.ndarray, *given: Any) -> Any:
        seen_moments.append(moment)
        return real(moment, *given)

    monkeypatch.setattr(making, "released", watched)
    return seen_moments


def _uploaded(text: str, name: str = "strange.csv") -> AppTest:
    return upload(start("release", **QUICK), name, text.encode())


def _loaded(at: AppTest, schema: Schema) -> AppTest:
    file = ("schema.json", schema.to_text().encode(), "application/json")
    found(at, "schema.file").set_value(file)
    return at.run()


def _filled(at: AppTest, **more: str) -> AppTest:
    """Return the page after both steps to a release, or after the step that failed."""
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
    """Return the latest release."""
    path = list(Ledger(ledger_named("mine")).kept().values())[-1]
    content = json.loads(path.read_text())
    assert isinstance(content, dict)
    return content


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
    assert main(words) == 0  # The ledger identifies a table by the bytes of its file.
    command = json.loads((folder / "out.json").read_text())
    first, second = moments
    assert (first == second).all()
    assert page["n"] == 34
    for release in (page, command):
        for keys_of in ("made", "matrix", "eigenvalues", "components", "ledger"):
            del release[keys_of]
    assert page == command


def test_a_schema_is_filled_in_kept_and_said(folder: Path) -> None:
    at = _uploaded(STRANGE)
    assert errors(at) == []  # The page accepts even uploads that Explore refuses.
    assert [found(at, f"schema.{name}").value for name in ("delimiter", "decimal", "header")] == [
        ";", ",", True,
    ]  # fmt: skip
    at = _filled(at)
    (message,) = errors(at)
    assert "must say whether it was known before anybody looked" in message
    at = change(at, "schema.origin", "known")
    at = press(at, "release.look")
    message, *_ = errors(at)
    assert "low of 'id' is missing" in message
    age = {"low": 0, "high": 120, "missing": "-999, 0"}
    at = _edited(at, {0: {"use": False}, 1: age, 2: {"low": 2, "high": 1}})
    assert "must be below high" in errors(at)[0]
    at = _edited(at, {0: {"use": False}, 1: age, 2: {"low": 1, "high": 2}})
    assert errors(at) == []
    at = go(go(at, "claims"), "release")  # Declarations survive a visit to another page.
    assert errors(at) == []
    at = _filled(at)
    assert errors(at) == []
    facts = _released()["declared"]
    assert facts["columns"] == ["age", "height"]
    assert facts["missing"] == [[-999.0, 0.0], []]
    assert facts["typical"] == [60.0, 1.5]
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
    )  # The new table has none of the declarations of the first table.
    assert found(at, "schema.origin").value is None
    assert found(at, "schema.delimiter").value == ","


def test_a_file_that_cannot_be_guessed_is_declared_by_hand(folder: Path) -> None:
    at = _uploaded("1\n2\n3\n", "one.csv")
    (message,) = errors(at)
    assert "shows one column only" in message
    at = change(at, "schema.header", False)
    at = _edited(at, {}, [{"name": "a", "low": 0, "high": 9}, {"name": "b", "low": 0, "high": 9}])
    at = change(at, "schema.origin", "known")
    at = _filled(at)
    assert _released()["n"] == 3


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return every opened or requested file name that contains a canary."""
    paths: list[str] = []

    def watch(target: Any, name: str) -> None:
        real = getattr(target, name)

        def watched(path: Any, *given: Any, **named: Any) -> Any:
            if "canary" in str(path):
                paths.append(str(path))
            return real(path, *given, **named)

        monkeypatch.setattr(target, name, watched)

    for name in ("stat", "lstat", "open", "listdir", "scandir", "access"):
        watch(os, name)
    monkeypatch.setattr("builtins.open", _opener(open, paths))
    monkeypatch.setattr("io.open", _opener(open, paths))
    real = Source.__init__

    def made(self: Source, given: Any, name: str) -> None:
        if isinstance(given, str | Path) and "canary" in str(given):
            paths.append(str(given))
        real(self, given, name)

    monkeypatch.setattr(Source, "__init__", made)
    return paths


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
    """Text fields get the path of a table of bounds, which every reader of files would accept."""
    path = tmp_path / "canary.csv"
    path.write_text("feature,low,high\na,0,1\nb,0,1\n")
    for has_release in (False, True) if page == "release" else (False,):
        if has_release:
            Ledger(ledger_named("mine")).create(Budget(5.0, 1e-4), Relation.REPLACE)
        touched.clear()
        _fill_with(path, page, touched, least=8 - 3 * has_release if page == "release" else 0)


def _fill_with(path: Path, page: str, touched: list[str], least: int) -> None:
    at = start(page, **QUICK, domain="box", bounds="0:8", row_bound="9")
    texts = [node for node in nodes(at) if node.type in ("text_input", "text_area")]
    fields = {node.key.split("~")[0]: node.value for node in texts}
    for key, before in fields.items():
        for text in (str(path), f"plan:n=100,spectrum={path}"):
            at = change(at, key, text)
            assert not at.exception, key
            for button in {"release.look", "release.new.make"} & set(keys(at)):
                press(at, button)
                assert not at.exception, key
            assert touched == [], key
        found(at, key).set_value(before)  # The next run restores the field's value.
    assert len(fields) >= least


# Each call on a page that takes a file name, or finds a file by a name, is listed with its
# arguments, so that a new call needs a review.
TAKES_A_FILE = {
    "Path", "open", "load", "read_raw", "read_bounds", "read_thetas", "load_prepared",
    "load_measured", "with_bounds_read", "table_input", "Ledger", "Store",
}  # fmt: skip
CALLS = {
    "Path(__file__)",
    "Path(st.__file__)",  # This is the folder of Streamlit itself.
    "Path(tempfile.mkdtemp(prefix='dpviz-'))",
    "Store(default_folder())",
    "Store(Path(tempfile.mkdtemp(prefix='dpviz-')))",
    "datasets.read_raw(_file, name=name, reading=ReadOptions(**dict(zip(_OF_THE_FILE, reading, "
    "strict=True))), cells=datasets.UPLOADED_CELLS)",  # This reads the bytes of an upload.
    "datasets.load(key)",  # This reads a built-in table.
    "read_thetas(file, name=file.name)",  # This reads the bytes of an upload.
    "load_measured(of_plan)",  # The plan consists of numbers, not of file names.
    "Ledger(ledger_named(name))",  # This opens only files in the ledgers' folder.
}


def test_pages_hand_no_text_to_what_opens_files() -> None:
    calls = set()
    for path in sorted((ROOT / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in TAKES_A_FILE and (node.args or node.keywords):
                    calls.add(ast.unparse(node))
    assert {call for call in calls if not call.startswith("loading.load(")} - CALLS == set()


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
    (message,) = errors(press(at, "release.look"))
    assert "State how many rows one person can have" in message
    assert any("protects one ROW" in text.value for text in at.markdown)
    at = change(at, "schema.person", "open")  # The rows per person are now unknown.
    (message,) = errors(press(at, "release.look"))
    assert "adds up the loss of one person under replace neighbours" in message
    at = change(at, "schema.person", "column")
    assert list(at.session_state["schema.now"]["use"]) == [False, True, True]
    at = change(at, "schema.person.name", "who")
    # The column that names the person is not a feature; the column proposed first is one again.
    assert list(at.session_state["schema.now"]["use"]) == [True, False, True]
    assert "who" not in at.selectbox(key="schema.label").options
    at = change(at, "schema.rows_a_person", 2)
    assert any("a person with all of at most 2 rows" in text.value for text in at.markdown)
    at = send(press(at, "release.look"))
    assert errors(at) == []
    content = json.loads(ledger.kept()[1].read_text())
    assert content["unit"] == {"protected": "person", "rows": 2, "person": "who"}
    (moment,) = moments
    bits = content["noise"]["grid_bits"]
    # Persons p and q have the rows (1, 0), (1, 1), (0, 1), (0, 1), with a row-norm bound of 2.
    assert (moment == np.array([[2, 1], [1, 3]]) * 4 ** (bits - 1)).all()
    # The form for a new ledger follows the declaration, although the form appeared first.
    at = change(at, "release.ledger", "a new ledger ...")
    new = [found(at, f"release.new.{name}").value for name in ("unit", "rows_a_person")]
    assert new == ["person", "auto"]
    at = change(at, "schema.person", "some")
    at = change(at, "schema.rows_a_person", 3)
    assert found(at, "release.new.rows_a_person").value == "3"
