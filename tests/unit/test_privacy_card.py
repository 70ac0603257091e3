"""The privacy card of a release, and what `dpviz verify` finds."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from python_calamine import CalamineWorkbook

import dpviz
from dpviz.cli import main
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.files import PACKAGE
from dpviz.releasing.schema import Column, Schema
from dpviz.report.figures.drawing import biplot_picture, loadings_picture, variances_picture
from dpviz.report.privacy_card import of_million, suspicion_words, to_html, use_words
from dpviz.studies.card import WITHHELD, counted, suspicions, workbook

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


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (6e-7, "1 of 1,600,000"), (2e-7, "1 of 5,000,000"), (1e-9, "1 of 1,000,000,000"),
        (1e-6, "1 of 1,000,000"), (3.2e-6, "4 of 1,000,000"), (0.012345, "12,345 of 1,000,000"),
    ],
)  # fmt: skip
def test_a_small_share_is_never_said_smaller_than_it_is(share: float, words: str) -> None:
    assert of_million(share) == words
    some, many = (int(count.replace(",", "")) for count in words.split(" of "))
    assert share * (1 - 1e-9) <= some / many


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two releases of one ledger, and the card of the second."""
    folder = tmp_path_factory.mktemp("made")
    release, ledger = _released(folder, times=2)
    words = [f"--{name}={value}" for name, value in SAID.items()]
    out = str(folder / "card.json")
    assert main(["card", str(release), "--ledger", str(ledger), *words, "--out", out]) == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def _problems(folder: Path) -> list[str]:
    names = ("card.json", "release-2.json", "mine.jsonl")
    return dpviz.verify(*(folder / name for name in names)).problems


def _changed(path: Path, *where: str | int, value: Any) -> None:
    found = place = json.loads(path.read_text())
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    path.write_text(json.dumps(found))


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
    said = "release-2.json is no release of this version of dpviz."
    with pytest.raises(DpvizError) as caught:
        dpviz.card(folder / "release-2.json")
    assert str(caught.value) == said
    assert _problems(folder) == [said]


def test_a_card_whose_assumptions_are_none_differs(folder: Path) -> None:
    _changed(folder / "card.json", "assumptions", 0, value="x")
    assert "assumptions" in _problems(folder)[0]


def test_a_card_fits_its_release_and_its_ledger(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _problems(made) == []
    files = [str(made / name) for name in ("card.json", "release-2.json", "mine.jsonl")]
    assert main(["verify", *files]) == 0
    assert "fit together" in capsys.readouterr().out
    files[1] = str(made / "release-1.json")
    assert main(["verify", *files]) == 1
    assert "release-1.json is not the file that card.json is about" in capsys.readouterr().out


def test_a_card_says_what_the_release_proves(made: Path) -> None:
    card = json.loads((made / "card.json").read_text())
    release = json.loads((made / "release-2.json").read_text())
    assert card["claim"]["epsilon"] == release["proved"]["epsilon"]
    assert card["claim"]["odds_more_than_doubled"] == pytest.approx(2e-7)
    assert card["ledger"]["number"] == 2
    assert card["ledger"]["epsilon"] == pytest.approx(1.0)
    assert card["ledger"]["limit"] == {"epsilon": 3, "delta": 1e-5}
    assert card["unit"] == {
        "protected": "row", "rows": 1, "person": None, "neighbours": "replace"
    }  # fmt: skip
    assert [one["what"] for one in card["assumptions"]] == release["assumed_public"]
    assert card["unconfirmed"] == list(range(1, len(card["assumptions"]) + 1))
    assert {name: card[name] for name in SAID} == SAID


def test_the_purpose_and_who_asked_go_from_the_ledger_to_the_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book, out, filed = (tmp_path / name for name in ("mine.jsonl", "release.json", "card.json"))
    ledger = dpviz.ledger(book, limit=(3, 1e-5), purpose="annual report").ledger
    words = [
        "release", str(TABLE), "--schema", str(SCHEMA), "--ledger", str(book), "--row-bound", "60",
        "--epsilon", "0.5", "--delta", "1e-7", "--by", "A. Example",
    ]  # fmt: skip
    assert main([*words, "--purpose", "a war", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "pays for 'annual report', and this release is for 'a war'; nothing" in said
    assert ledger.read().spends == ()
    assert main([*words, "--purpose", "Annual report", "--out", str(tmp_path / "as-said")]) == 0
    assert main([*words, "--out", str(out)]) == 0  # who says nothing means the ledger's
    stated = {"purpose": "annual report", "by": "A. Example"}
    assert {key: json.loads(out.read_text())[key] for key in stated} == stated
    (_, spend) = ledger.read().spends
    assert (spend.stated_purpose, spend.by) == ("annual report", "A. Example")
    card = dpviz.card(out, ledger=book)
    assert {key: card.data()[key] for key in stated} == stated
    assert "released by: A. Example" in card.to_html()
    filed.write_text(card.to_json())
    assert dpviz.verify(filed, out, book).problems == []
    _changed(filed, "by", value="B. Example")
    assert "by" in dpviz.verify(filed, out, book).problems[0]
    with pytest.raises(DpvizError, match="was made for 'annual report'"):
        dpviz.card(out, purpose="another")


def test_the_pictures_of_a_release_are_drawn_from_what_its_card_reads() -> None:
    use: dict[str, Any] = {
        "features": ["a", "b", "c & d"], "loadings": [[0.8, 0.6, 0], [-0.6, 0.8, 0.01]],
        "bars": [[0.1, 0.1, 0.1], [0.2, 0.2, 0.2]], "variances": [6.0, 3.0, 1.0],
        "total_variance": 10.0, "readable_components": 2, "variance_bar": 0.4, "noise_edge": 2.0,
    }  # fmt: skip
    found = biplot_picture(use)
    assert found is not None
    svg = found.svg()
    assert all(f">{name}<" in svg for name in ("a", "b", "c &amp; d", "component 1: 60\u00a0%"))
    # two ends are told from 0, and the third one is hollow at the middle of both axes
    assert svg.count('fill="#1f5fa8"') == 2
    assert svg.count('fill="#ffffff"') == 1
    places = [tuple(map(float, p)) for p in re.findall(r'<circle cx="(.*?)" cy="(.*?)" r', svg)]
    (x0, y0), (x1, y1) = places[0], places[1]
    assert (x0 - places[2][0]) / (x1 - places[2][0]) == pytest.approx(0.8 / 0.6, rel=0.02)
    assert y0 > y1  # downwards
    assert found.pdf().startswith(b"%PDF-1.4")
    with Image.open(BytesIO(found.png(2))) as drawn:
        assert drawn.size == (2 * found.look.width, 2 * found.height)
        colours = {colour for _, colour in drawn.getcolors(1 << 20) or ()}
    assert {(255, 255, 255), (0x1F, 0x5F, 0xA8)} <= colours
    assert "nobody&#x27;s row" in svg
    scree = variances_picture(use).svg()
    # as high as they are large: 60, 30 and 10 of 100, and the edge at 20; the third one is grey
    heights = [
        float(start) - float(end)
        for start, end in re.findall(
            r'points="[\d.]+,([\d.]+) [\d.]+,([\d.]+)"[^>]*width="16"', scree
        )
    ]
    assert np.array(heights) / heights[0] == pytest.approx(np.array([6, 3, 1]) / 6, abs=0.01)
    assert scree.count('stroke="#1f5fa8"') == 2
    assert all(f">{words}<" in scree for words in ("60 ± 4", "30 ± 4", "noise edge 20"))
    assert ">10 ± 4<" not in scree
    # two as high as each other are no directions by themselves, and both are above the noise
    level = use | {"variances": [5.0, 4.5, 0.5], "readable_components": 0}
    assert variances_picture(level).svg().count('stroke="#1f5fa8"') == 2
    assert "±" not in variances_picture(level).svg()
    use["readable_components"] = 1
    assert biplot_picture(use) is None
    assert loadings_picture(use).svg().count("<circle") == 6


def test_a_release_is_a_workbook_too(made: Path) -> None:
    card = json.loads((made / "card.json").read_text())
    card["use"]["features"][0] = "=1+1"  # no formula
    book = CalamineWorkbook.from_filelike(BytesIO(workbook(card)))
    assert book.sheet_names == ["loadings", "variances", "claim"]
    (header, first, *rest) = book.get_sheet_by_name("loadings").to_python()
    assert header == ["feature", "component 1", "± 1", "component 2", "± 2"]
    assert first[0] == "=1+1"
    assert first[1] == pytest.approx(card["use"]["loadings"][0][0])
    assert len(rest) == card["d"] - 1
    claim = dict(row[:2] for row in book.get_sheet_by_name("claim").to_python())
    assert claim["epsilon"] == pytest.approx(card["claim"]["epsilon"])


def test_a_suspicion_is_rounded_to_the_unkind_side() -> None:
    (first, *_) = suspicions(1.1)
    assert first["after"] == pytest.approx(0.0295, abs=1e-4)
    assert suspicion_words(first) == (
        "A suspicion that is right 1 time in 100 may become right at most 3 times in 100."
    )


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda f: _changed(f / "release-2.json", "k", value=1), "is not the file that"),
        (lambda f: _changed(f / "card.json", "claim", "epsilon", value=0.1), "than its release"),
        (lambda f: _changed(f / "card.json", "unit", "protected", value="person"), "unit"),
        (lambda f: _changed(f / "card.json", "use", "recovery", value=1.0), "use"),
        (lambda f: _changed(f / "card.json", "assumptions", 0, "what", value=""), "assumptions"),
        (lambda f: _changed(f / "card.json", "not_covered", value={}), "not_covered"),
        (lambda f: _changed(f / "card.json", "more", value=1), "more"),
        (lambda f: _changed(f / "card.json", "ledger", "number", value=1), "number"),
        (lambda f: _changed(f / "card.json", "ledger", "limit", "epsilon", value=9), "limit"),
        (lambda f: _changed(f / "card.json", "ledger", value=None), "names no ledger"),
        (lambda f: _changed(f / "card.json", "status", value="PLAN"), "is a PLAN: nothing was"),
        (lambda f: _cut(f / "mine.jsonl"), "it was cut"),
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


def test_what_is_no_card_is_one_sentence(folder: Path) -> None:
    for text in ("", "[]", "{}", '{"dpviz_card": 2}'):
        (folder / "card.json").write_text(text)
        with pytest.raises(DpvizError, match=r"card\.json is no card of this version of dpviz"):
            _problems(folder)
    with pytest.raises(DpvizError, match="cannot be read"):
        dpviz.verify(folder / "gone.json", folder / "release-2.json", folder / "mine.jsonl")


def test_somebody_confirms_what_is_assumed(made: Path, tmp_path: Path) -> None:
    sources = tmp_path / "sources.json"
    sources.write_text(json.dumps({"1": ["the yearly report", "A. Example"]}))
    for given in (sources, {1: ("the yearly report", "A. Example")}):
        card = dpviz.card(made / "release-2.json", sources=given).data()
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
    kept = dpviz.card(release, ledger=ledger, table=TABLE, schema=SCHEMA)
    assert public.data()["withheld"] == list(WITHHELD)
    assert not set(WITHHELD) & set(public.data())
    assert kept.data()["data"]["rows"] == 120
    assert "file copy only" in kept.to_html()
    assert "file copy only" not in public.to_html()
    with pytest.raises(DpvizError, match="both the table and its schema"):
        dpviz.card(release, table=TABLE)
    other = tmp_path / "other.csv"
    other.write_text(TABLE.read_text() + "1,1,1,1,1\n")
    with pytest.raises(DpvizError, match=r"mine\.jsonl is about another table than this one"):
        dpviz.card(release, ledger=ledger, table=other, schema=SCHEMA)
    schema = Schema.read(SCHEMA)
    with pytest.raises(DpvizError, match="under another schema"):
        dpviz.card(release, table=TABLE, schema=Schema(schema.columns[:-1]))


def test_cells_are_counted_as_a_release_uses_them() -> None:
    schema = Schema((Column("a", 0, 1, missing=(-9,)), Column("b", 0, 1)))
    block = np.array([[0.5, 0.5], [-9, 2], [np.nan, np.inf], [-1, 0.2]])
    assert counted([block], schema) == {
        "rows": 4, "rows_changed": 3, "cells_filled": 3, "cells_cut": 2
    }  # fmt: skip


def test_a_card_of_another_ledger_is_not_made(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    dpviz.ledger(other, limit=(3, 1e-5))
    with pytest.raises(DpvizError, match=r"other\.jsonl did not pay for this release"):
        dpviz.card(made / "release-2.json", ledger=other)


def test_a_card_says_that_features_were_scaled_and_that_one_row_is_one(tmp_path: Path) -> None:
    ledger, out, schema = (tmp_path / name for name in ("mine.jsonl", "out.json", "schema.json"))
    said = Schema.from_text(SCHEMA.read_text(encoding="utf-8"), "the schema")
    schema.write_text(replace(said, rows_a_person=1).to_text(), encoding="utf-8")
    dpviz.ledger(ledger, limit=(3, 1e-5), unit="person")
    asked = {"row_bound": 60, "epsilon": 0.5, "delta": 1e-7, "scale": "limits"}
    dpviz.release(TABLE, schema=schema, ledger=ledger, out=out, **asked)
    page = to_html(json.loads(dpviz.card(out, ledger=ledger).to_json()))
    assert "features are divided by half the width of their limits, rows are cut" in page
    assert "A person</b>, who is said to have at most one row." in page
    assert "that nobody has more than one row<" in page
    use = {"recovery": None, "readable_components": 1, "features": ["a", "b"]}
    assert use_words(use, 1).endswith("The component can be told from noise.")


def test_the_page_shows_nothing_as_markup_and_what_is_open(made: Path) -> None:
    card = json.loads((made / "card.json").read_text())
    page = to_html(card)
    assert (made / "card.html").read_text(encoding="utf-8") == page
    assert escape(SAID["title"]) in page
    assert "<pears>" not in page
    assert page.count("? not said") == 2 * len(card["assumptions"]) + 1  # by whom
    assert "? Protects one ROW." in page
    assert "<script" not in page
    high = card | {"claim": card["claim"] | {"suspicions": suspicions(9.5)}}
    assert "Hardly protection" in to_html(high)
    assert "Hardly protection" not in page
