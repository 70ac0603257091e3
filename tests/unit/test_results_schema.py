"""The published schema of every answer: up to date, complete, and valid for real answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import dpviz
from dpviz.extend.testing import Finding
from dpviz.studies.check import Checked
from tests.unit.test_questions import answer
from tools import payload

PUBLISHED = json.loads(payload.ANSWERS.read_text(encoding="utf-8"))
"""Questions whose answers have a schema of their own."""


def faults(question: str, answer: Any) -> list[str]:
    """Return the parts of an answer that the schema forbids."""
    schema = {"$ref": f"#/$defs/{question}", "$defs": PUBLISHED["$defs"]}
    return [f"{error.json_path}: {error.message}" for error in _each(schema, answer)]


def _each(schema: dict[str, Any], answer: Any) -> list[Any]:
    return list(Draft202012Validator(schema).iter_errors(answer))


def read(answer: dpviz.studies.Answer) -> Any:
    """Return an answer in the form read from its JSON."""
    return json.loads(answer.to_json())


def test_the_schema_is_as_its_command_writes_it() -> None:
    Draft202012Validator.check_schema(PUBLISHED)
    assert payload.ANSWERS.read_text(encoding="utf-8") == payload.answers()


@pytest.mark.parametrize("question", ["claims", "audit", "decide", "predict"])
def test_answers_of_now_keep_to_it(question: str) -> None:
    assert faults(question, read(answer(question))) == []


def test_a_check_keeps_to_it() -> None:
    finding = Finding("mine", "bytes", asks="the same", mend="seed it", seen="others")
    assert faults("check", read(Checked((finding,)))) == []


def test_lists_ledgers_and_releases_keep_to_it(tmp_path: Path) -> None:
    pytest.importorskip("opendp")
    book = tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(3, 1e-5), purpose="a test")
    out, card = tmp_path / "release.json", tmp_path / "card.json"
    options: dict[str, Any] = {"ledger": book, "row_bound": 60, "delta": 1e-6}
    functions: dict[str, Callable[[], Any]] = {
        "list_datasets": dpviz.list_datasets,
        "list_mechanisms": dpviz.list_mechanisms,
        "release": lambda: dpviz.release("digits", out=out, **options),
        "ledger": lambda: dpviz.ledger(book),
        "card": lambda: dpviz.card(out, ledger=book),
        "verify": lambda: dpviz.verify(card, out, book),
        "reproduce": dpviz.reproduce,
        "rerun": lambda: dpviz.rerun(
            dpviz.predict("iris", mechanisms="gaussian").save(tmp_path / "kept.json")
        ),
    }
    for question, ask in functions.items():
        answer = ask()
        if question == "card":
            card.write_text(answer.to_json(), encoding="utf-8")
        assert faults(question, read(answer)) == [], question


def test_an_answer_of_another_shape_is_refused() -> None:
    good = read(answer("compare"))
    for change in (
        lambda found: found.pop("skipped"),
        lambda found: found.update(more=1),
        lambda found: found["settings"].update(epsilon="one"),
        lambda found: found["results"][0]["metrics"]["recovery"].pop("se"),
    ):
        bad = deepcopy(good)
        change(bad)
        assert len(faults("compare", bad)) == 1
