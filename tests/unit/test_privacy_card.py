"""The privacy card of a release, and the faults that `dpviz release verify` finds."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.files import PACKAGE
from dpviz.core.number_text import numeral
from dpviz.releasing.schema import Schema
from dpviz.report.privacy_card import of_million, to_html
from dpviz.studies.card import WITHHELD, suspicions

DATA = PACKAGE.parent / "data"
TABLE, SCHEMA = DATA / "example.csv", DATA / "example-schema.json"
SAID = {
    "title": "Apples & <pears>",
    "controller": "A farm",
    "purpose": "a report",
    "recipients": "all",
}


def _released(folder: Path, times: int = 1) -> tuple[Path, Path]:
    """Return the file of the last of some releases, and their ledger."""
    ledger = folder / "mine.jsonl"
    dpviz.ledger(ledger, limit=(3, 1e-5))
    for number in range(1, times + 1):
        out = folder / f"release-{number}.json"
        dpviz.release(
            TABLE, schema=SCHEMA, ledger=ledger, out=out, row_bound=60, epsilon=0.5, delta=1e-7
        )
    return out, ledger


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two releases of one ledger, and the card of the second release."""
    folder = tmp_path_factory.mktemp("made")
    release, ledger = _released(folder, times=2)
    words = [f"--{name}={value}" for name, value in SAID.items()]
    out = str(folder / "card.json")
    assert (
        main(["release", "card", str(release), "--ledger", str(ledger), *words, "--out", out]) == 0
    )
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def _problems(folder: Path) -> list[str]:
    names = ("card.json", "release-2.json", "mine.jsonl")
    return dpviz.verify(*(folder / name for name in names)).problems


def _changed(path: Path, *where: str | int, value: Any) -> None:
    content = place = json.loads(path.read_text())
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("unit",), ""), (("declared",), {}), (("proved",), 1.5), (("proved", "epsilon"), 10**400),
        (("noise", "law"), 3), (("components", 0), "x"), (("matrix",), "x"), (("settings",), "x"),
        (("ledger",), {}), (("versions",), {}), (("picture",), []), (("assumed_public",), 7),
    ],
    ids=lambda one: repr(one)[:20],
)  # fmt: skip
def test_a_release_that_was_changed_is_one_sentence(
    folder: Path, where: tuple[str | int, ...], value: Any
) -> None:
    _changed(folder / "release-2.json", *where, value=value)
    message = "release-2.json is not a release of this version of dpviz."
    with pytest.raises(DpvizError) as caught:
        dpviz.card(folder / "release-2.json")
    assert str(caught.value) == message
    wrong = _problems(folder)
    assert message in wrong or any("was changed: it is not the file" in one for one in wrong)


def test_a_card_whose_assumptions_are_none_differs(folder: Path) -> None:
    _changed(folder / "card.json", "assumptions", 0, value="x")
    assert "assumptions" in _problems(folder)[-1]


def test_a_card_fits_its_release_and_its_ledger(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _problems(made) == []
    files = [str(made / name) for name in ("card.json", "release-2.json", "mine.jsonl")]
    assert main(["release", "verify", *files]) == 0
    assert "fit together" in capsys.readouterr().out
    files[1] = str(made / "release-1.json")
    assert main(["release", "verify", *files]) == 1
    assert (
        "release-1.json differs from the file that card.json describes" in capsys.readouterr().out
    )


def test_a_card_says_what_the_release_proves(made: Path) -> None:
    card = json.loads((made / "card.json").read_text())
    release = json.loads((made / "release-2.json").read_text())
    assert card["claim"]["epsilon"] == release["proved"]["epsilon"]
    assert card["claim"]["odds_more_than_doubled"] == pytest.approx(2e-7)
    assert card["kinds"] == {
        "claim": "upper bound", "ledger": "upper bound", "use.recovery": "prediction"
    }  # fmt: skip
    assert card["ledger"]["number"] == 2
    assert card["ledger"]["epsilon"] == pytest.approx(1.0)
    assert card["ledger"]["limit"] == {"epsilon": 3, "delta": 1e-5}
    assert card["unit"] == {
        "protected": "row", "rows": 1, "person": None, "neighbours": "replace"
    }  # fmt: skip
    what = [one["what"] for one in card["assumptions"]]
    count = len(release["assumed_public"])
    assert what[:count] == release["assumed_public"]
    # The card lists, with their numbers, the points that the privacy officer must confirm.
    schema = Schema.read(SCHEMA)
    first = schema.used[0]
    low, high, typical = (numeral(x, 6) for x in (first.low, first.high, first.stand_in))
    limits, stand_in, center, bound, digest = what[count:]
    assert limits.startswith(f"limits: {first.name} {low} to {high}, ")
    assert stand_in.startswith(f"typical values, which replace missing cells: {first.name} ")
    assert center.startswith(f"centre: {first.name} {typical}, ")
    assert (bound, digest) == ("row-norm bound: 60", f"schema digest: {schema.digest}")
    assert all(escape(one) in (made / "card.html").read_text(encoding="utf-8") for one in what)
    assert card["unconfirmed"] == list(range(1, len(card["assumptions"]) + 1))
    assert {name: card[name] for name in SAID} == SAID


def test_a_card_says_first_what_all_releases_of_its_ledger_are_together(tmp_path: Path) -> None:
    """A card starts with the risk of all releases of its ledger together, not the last alone."""
    ledger, out = tmp_path / "mine.jsonl", tmp_path / "out.json"
    dpviz.ledger(ledger, limit=(10, 1e-4))
    options = {"schema": SCHEMA, "ledger": ledger, "row_bound": 60, "epsilon": 1.0, "delta": 1e-7}
    for number in range(1, 11):
        dpviz.release(TABLE, out=out if number == 10 else None, **options)
    card = dpviz.card(out, ledger=ledger)
    message = (
        "After all 10 releases of this ledger together: a suspicion that is right 1 time in 100 may"
    )
    assert card.summary().startswith(message)
    (large,) = re.findall("<strong>(.*?)</strong>", card.to_html())
    assert large.startswith(message)
    assert "at most 100 times in 100" in large
    assert "Hardly protection" in card.to_html()
    assert "stamp look" in card.to_html()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda f: _changed(f / "release-2.json", "k", value=1), "is not the file that"),
        (
            lambda f: _changed(f / "card.json", "claim", "epsilon", value=0.1),
            "contradicts its release",
        ),
        (lambda f: _changed(f / "card.json", "unit", "protected", value="person"), "unit"),
        (lambda f: _changed(f / "card.json", "use", "recovery", value=1.0), "use"),
        (lambda f: _changed(f / "card.json", "assumptions", 0, "what", value=""), "assumptions"),
        (lambda f: _changed(f / "card.json", "not_covered", value={}), "not_covered"),
        (lambda f: _changed(f / "card.json", "more", value=1), "more"),
        (lambda f: _changed(f / "card.json", "kinds", value={}), "kinds"),
        (lambda f: _changed(f / "card.json", "ledger", "number", value=1), "number"),
        (lambda f: _changed(f / "card.json", "ledger", "limit", "epsilon", value=9), "limit"),
        (
            lambda f: _changed(f / "card.json", "ledger", value=None),
            "does not refer to this ledger",
        ),
        (lambda f: _changed(f / "card.json", "status", value="PLAN"), "is a PLAN: nothing was"),
        (lambda f: _cut(f / "mine.jsonl"), "it was truncated"),
        (lambda f: _other_ledger(f), "another ledger"),
    ],
)
def test_what_was_changed_is_found(folder: Path, harm: Callable[[Path], object], said: str) -> None:
    harm(folder)
    problems = _problems(folder)
    assert any(said in problem for problem in problems), problems


def _cut(ledger: Path) -> None:
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-1]))


def _other_ledger(folder: Path) -> None:
    for path in folder.glob("mine.jsonl*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    again = folder / "again"
    again.mkdir()
    _released(again)
    for path in again.glob("mine.jsonl*"):
        shutil.move(path, folder / path.name)


def test_somebody_confirms_what_is_assumed(made: Path, tmp_path: Path) -> None:
    sources = tmp_path / "sources.json"
    sources.write_text(json.dumps({"1": ["the yearly report", "A. Example"]}))
    for source_map in (sources, {1: ("the yearly report", "A. Example")}):
        card = dpviz.card(made / "release-2.json", sources=source_map).data()
        assert card["assumptions"][0]["confirmed_by"] == "A. Example"
        assert 1 not in card["unconfirmed"]
    for wrong in ({0: ("a", "b")}, {99: ("a", "b")}, {1: "a"}, {1: ("two\nlines", "b")}):
        with pytest.raises(InvalidSetting):
            dpviz.card(made / "release-2.json", sources=wrong)
    sources.write_text('{"1": ["a", "b"], "1": ["c", "d"]}')
    with pytest.raises(InvalidSetting, match="'1' twice"):
        dpviz.card(made / "release-2.json", sources=sources)
    sources.write_text("no JSON")
    with pytest.raises(InvalidSetting, match="sources must be pairs of source and name"):
        dpviz.card(made / "release-2.json", sources=sources)


def test_counts_of_cells_are_in_the_copy_for_the_file_alone(made: Path, tmp_path: Path) -> None:
    release, ledger = made / "release-2.json", made / "mine.jsonl"
    public = dpviz.card(release, ledger=ledger)
    card = dpviz.card(release, ledger=ledger, table=TABLE, schema=SCHEMA)
    assert public.data()["withheld"] == list(WITHHELD)
    assert not set(WITHHELD) & set(public.data())
    assert card.data()["data"]["rows"] == 120
    cells = card.data()["data"]
    assert sum(cells["filled_by_column"].values()) == cells["cells_filled"] > 0
    assert "filled_by_column" not in json.dumps(public.data())
    assert "file copy only" in card.to_html()
    assert "file copy only" not in public.to_html()
    with pytest.raises(DpvizError, match="both the table and its schema"):
        dpviz.card(release, table=TABLE)
    other = tmp_path / "other.csv"
    other.write_text(TABLE.read_text() + "1,1,1,1,1\n")
    with pytest.raises(DpvizError, match=r"mine\.jsonl is about a different table"):
        dpviz.card(release, ledger=ledger, table=other, schema=SCHEMA)
    schema = Schema.read(SCHEMA)
    with pytest.raises(DpvizError, match="with a different schema"):
        dpviz.card(release, table=TABLE, schema=Schema(schema.columns[:-1]))


def test_a_card_of_another_ledger_is_not_made(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    dpviz.ledger(other, limit=(3, 1e-5))
    with pytest.raises(DpvizError, match=r"other\.jsonl has no record of this release"):
        dpviz.card(made / "release-2.json", ledger=other)


def test_the_page_shows_nothing_as_markup_and_what_is_open(made: Path) -> None:
    card = json.loads((made / "card.json").read_text())
    page = to_html(card)
    assert (made / "card.html").read_text(encoding="utf-8") == page
    assert escape(SAID["title"]) in page
    assert "<pears>" not in page
    assert page.count("? not said") == 2 * len(card["assumptions"]) + 1
    assert "? This release protects one ROW." in page
    assert "<script" not in page
    high = card | {"ledger": card["ledger"] | {"suspicions": suspicions(9.5)}}
    assert "Hardly protection" in to_html(high)
    assert "Hardly protection" not in page


@pytest.mark.parametrize(
    ("share", "words"),
    [(6e-7, "1 of 1,600,000"), (2e-7, "1 of 5,000,000"), (1e-6, "1 of 1,000,000"),
     (3.2e-6, "4 of 1,000,000")],
)  # fmt: skip
def test_a_small_share_is_never_said_smaller_than_it_is(share: float, words: str) -> None:
    assert of_million(share) == words
