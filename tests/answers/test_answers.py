"""Answers to questions, and first views of pages, equal the stored files."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from tests.answers.kept import FOLDER, NAMES, VERSIONS, made_by, text_of
from tests.answers.writing import same
from tests.ui.conftest import _kept_as_on_a_server, _own_cache_folder  # noqa: F401
from tools import payload

PUBLISHED = json.loads(payload.ANSWERS.read_text("utf-8"))


@pytest.fixture(autouse=True)
def _no_data_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPVIZ_DATA", raising=False)


def follows_the_schema(study: str, text: str) -> None:
    """Fail if an answer does not follow docs/results.schema.json."""
    if study in PUBLISHED["$defs"]:
        schema = {"$ref": f"#/$defs/{study}", "$defs": PUBLISHED["$defs"]}
        Draft202012Validator(schema).validate(json.loads(text))


# These answers take up to half a minute each, so quick test runs use smaller tables instead.
LONG = ("decide-digits", "decide-planted", "decide-waveform40", "least-digits")
BY_TIER = [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in NAMES]


@pytest.mark.parametrize("name", BY_TIER)
def test_answer_is_the_kept_one(name: str) -> None:
    was = (FOLDER / f"{name}.txt").read_text("utf-8")
    now = text_of(name, follows_the_schema)
    if VERSIONS.read_text("utf-8") == made_by():
        assert now == was, f"python -m tests.answers --update {name} writes it"
    # Compare fewer digits here: library versions and processors change the last digits.
    assert same(was, now)


def test_every_kept_file_has_its_question() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*NAMES, "versions"}


@pytest.mark.parametrize(
    ("was", "now"),
    [("a 1.0", "a 1.00002"), ("a 1 b 2", "b 1 a 2"), ("1 2", "1 2 3"), ("n -1", "n 1")],
)
def test_a_difference_is_seen(was: str, now: str) -> None:
    assert not same(was, now)


def test_the_last_digits_are_not() -> None:
    assert same("a 0.123456781 x1e-07", "a 0.123456789 x1e-07")
