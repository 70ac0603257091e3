"""A check by an officer without the ledger's other files still detects any edited byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.core.errors import DpvizError
from dpviz.core.files import PACKAGE

DATA = PACKAGE.parent / "data"
SAID = {"title": "Apples", "controller": "A farm", "purpose": "a report", "recipients": "all"}
FILES = ("release.json", "card.json", "card.html", "mine.jsonl")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only a ledger of two releases, the second release and its card."""
    home, desk = (tmp_path_factory.mktemp(name) for name in ("home", "desk"))
    book, out = home / "mine.jsonl", home / "release.json"
    dpviz.ledger(book, limit=(3, 1e-5))
    options = {"row_bound": 60, "epsilon": 0.5, "delta": 1e-7, "by": "A. Example"}
    for path in (None, out):
        dpviz.release(
            DATA / "example.csv", schema=DATA / "example-schema.json", ledger=book, out=path,
            **options,
        )  # fmt: skip
    dpviz.card(out, ledger=book, **SAID).write_card(home / "card.json")
    for name in FILES:
        shutil.copy(home / name, desk / name)
    return desk


@pytest.fixture
def folder(desk: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(desk, tmp_path / "desk"))


def _edits(found: Any) -> Iterator[Any]:
    """Yield copies of JSON data with one change: a leaf, a name, an order, one item less."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield {k: v for k, v in found.items() if k != key}
            yield {(f"{k}_" if k == key else k): v for k, v in found.items()}
            yield from ({**found, key: changed} for changed in _edits(value))
        yield {**found, "more": 1}
    elif isinstance(found, list):
        yield [*found, 0]
        if found[::-1] != found:
            yield found[::-1]
        for at in range(min(len(found), 3)):
            yield from ([*found[:at], changed, *found[at + 1 :]] for changed in _edits(found[at]))
    elif isinstance(found, bool) or found is None:
        yield from (not found, 1)
    elif isinstance(found, str):
        yield from (f"{found}x", 3)
    else:
        yield from (found * 1.25 + 0.5, str(found), None)


def _accepted(folder: Path, name: str, contents: Iterator[bytes]) -> list[bytes]:
    """Return the edited contents of a file that a check of either card copy accepts."""
    before, accepts, edits = (folder / name).read_bytes(), [], 0
    card = "card.html" if name == "card.html" else "card.json"
    for content in contents:
        if content == before:
            continue
        edits += 1
        (folder / name).write_bytes(content)
        try:
            problems = dpviz.verify(
                folder / card, folder / "release.json", folder / "mine.jsonl"
            ).problems
        except DpvizError as error:  # A file that is not a card gives one sentence.
            problems = [str(error)]
        if not problems:
            accepts.append(content)
    (folder / name).write_bytes(before)
    assert edits > 100
    return accepts


def test_what_nobody_changed_fits(folder: Path) -> None:
    for card in ("card.json", "card.html"):
        files = folder / card, folder / "release.json", folder / "mine.jsonl"
        assert dpviz.verify(*files).problems == []
    assert dpviz.ledger(folder / "mine.jsonl").verify([folder / "release.json"]) == []


@pytest.mark.parametrize("name", ["release.json", "card.json"])
def test_no_changed_entry_is_taken(folder: Path, name: str) -> None:
    content = json.loads((folder / name).read_text())
    edits = (f"{json.dumps(edit, indent=1)}\n".encode() for edit in _edits(content))
    assert _accepted(folder, name, edits) == []


@pytest.mark.parametrize("name", FILES)
def test_no_changed_byte_is_taken(folder: Path, name: str) -> None:
    """In each file, none of 120 changed bytes at random places is accepted."""
    before = (folder / name).read_bytes()
    random = np.random.default_rng(50)

    def edits() -> Iterator[bytes]:
        for at in random.choice(len(before), 120, replace=False).tolist():
            other = (before[at] + int(random.integers(1, 256))) % 256
            yield before[:at] + bytes([other]) + before[at + 1 :]

    assert _accepted(folder, name, edits()) == []


def test_a_page_that_is_printed_carries_its_own_digest(folder: Path) -> None:
    """A change of the page itself is detected even without a ledger that records the page."""
    page = folder / "card.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("Apples", "Pears"), encoding="utf-8")
    report = dpviz.verify(page, folder / "release.json", folder / "mine.jsonl").problems
    assert "card.html was changed: the digest in the page belongs to a different page." in report
    # Verification also checks the HTML page beside the card.
    report = dpviz.verify(folder / "card.json", folder / "release.json", folder / "mine.jsonl")
    assert any(problem.startswith("card.html was changed") for problem in report.problems)


def test_a_kept_release_that_was_deleted_is_missed(tmp_path: Path) -> None:
    book = tmp_path / "mine.jsonl"
    dpviz.ledger(book, limit=(3, 1e-5))
    schema = DATA / "example-schema.json"
    for _ in range(2):
        dpviz.release(
            DATA / "example.csv", schema=schema, ledger=book, row_bound=60, epsilon=0.5, delta=1e-7
        )
    record = dpviz.ledger(book)
    assert record.verify() == []
    first, second = (record.ledger.kept()[number] for number in (1, 2))
    copy = shutil.copy(second, tmp_path / "copy.json")
    second.unlink()
    assert record.verify() == [
        "the release of spend 2 was written, but its file beside mine.jsonl was deleted."
    ]
    assert record.verify([copy]) == []  # A copy of the file in another folder is valid.
    first.unlink()
    first.parent.rmdir()
    assert len(record.verify()) == 2
