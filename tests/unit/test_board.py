"""The board's payload: the numbers of every other page, the order of columns, what travels."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import summarise
from dpviz.core.settings import Settings
from dpviz.datasets import Table, load
from dpviz.datasets.table import WORKING_VIEW
from dpviz.mechanisms import featured, parse_variants
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.report.figures.board import assets, board_html, shown
from dpviz.report.tables import board, scrub
from dpviz.report.tables.frame import PICTURE_POINTS
from dpviz.report.tables.payload import Frame
from dpviz.report.tables.projection import marks_of, packed
from dpviz.simulation.compare import Comparison, compare
from dpviz.studies.board import (
    Board,
    board_file,
    publishable_payload,
    report,
    snapshot,
    steps,
)

BASE = Settings(table="wine", mechanisms=featured(), trials=7)


def prepared(settings: Settings = BASE) -> Prepared:
    return prepare(load(settings.table), settings)


def made(settings: Settings = BASE) -> tuple[Prepared, Comparison]:
    ready = prepared(settings)
    return ready, compare(ready, settings)


def floats(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind).astype(float)


def snapshots(
    ready: Prepared, settings: Settings, epsilons: list[float], workers: int = 1
) -> list[Frame]:
    *_, found = steps(ready, settings, epsilons, workers=workers)
    return found


def at(ready: Prepared, settings: Settings, epsilon: float, workers: int = 1) -> Frame:
    (found,) = snapshots(ready, settings, [epsilon], workers)
    return found


def whole(settings: Settings = BASE, count: int = 4) -> dict[str, Any]:
    ready = prepared(settings)
    epsilons = scrub.frame_epsilons(count, settings.epsilon)
    frames = [at(ready, settings, epsilon) for epsilon in epsilons]
    columns = shown(parse_variants(settings.mechanisms))
    return board.payload(ready, settings, columns, epsilons, frames)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
def test_a_frame_holds_the_numbers_of_every_other_page(epsilon: float) -> None:
    settings = replace(BASE, epsilon=epsilon)
    ready, comparison = made(settings)
    assert comparison.results
    full = snapshot(comparison)
    # What is computed for the path alone is the same to the last digit.
    assert at(ready, BASE, epsilon) == full
    assert at(ready, BASE, epsilon, workers=2) == full
    for result in comparison.results:
        cell = full["cells"][result.mechanism.text]
        summary = summarise(result.metrics["recovery"])
        wanted = [summary.mean, summary.low, summary.high, summary.se]
        np.testing.assert_allclose(cell["recovery"], wanted, rtol=1e-5)
        np.testing.assert_allclose(
            cell["distances"], result.metrics["projection_distance"], rtol=1e-3
        )
        assert cell["status"]["verdict"] == str(result.status.verdict)
        values = result.captured_each if result.eigenvalues is None else result.eigenvalues
        lines = floats(cell["spectrum"]["lines"], "<f4").reshape(3, -1)
        np.testing.assert_allclose(lines[0], np.median(values, axis=0), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(lines[1], values.min(axis=0), rtol=1e-6, atol=1e-9)


def test_the_picture_is_that_of_the_rows() -> None:
    ready, comparison = made()
    payload = whole()
    rows, _ = ready.picture(PICTURE_POINTS)
    true = ready.reference.eigenvectors[:, : BASE.k]
    unit = payload["limits"]["scale"] / 32767
    drawn = floats(payload["truth"]["picture"], "<i2").reshape(-1, 2) * unit
    np.testing.assert_allclose(drawn, rows @ true, atol=unit)
    assert (np.abs(drawn) <= payload["limits"]["picture"]).all()
    # Turned within the released space, which keeps every row's length in it.
    frame = snapshot(comparison)
    for result in comparison.results:
        text = frame["cells"][result.mechanism.text]["picture"]
        placed = floats(text, "<i2").reshape(-1, 2) * unit
        lengths = np.linalg.norm(rows @ result.components[0], axis=1)
        np.testing.assert_allclose(np.linalg.norm(placed, axis=1), lengths, atol=2 * unit)


def test_a_label_stands_in_a_picture_as_its_own_character_or_a_letter_of_it() -> None:
    assert marks_of(["setosa", "versicolor", "virginica"]) == ["S", "V", "I"]
    assert marks_of([str(digit) for digit in range(10)]) == [*"0123456789"]
    assert marks_of(["class 1", "class 2"]) == ["1", "2"]
    for kinds in (["<=50K", ">50K"], ["a", "A", "aa", "aA"], [str(one) for one in range(12)]):
        marks = marks_of(kinds)
        assert marks is not None
        assert len(set(marks)) == len(kinds)
    assert marks_of([str(one) for one in range(13)]) is None  # grey, and one is picked


def test_columns_stand_by_claim_and_recovery() -> None:
    settings = replace(BASE, table="digits", trials=3)
    ready = prepared(settings)
    frame = at(ready, settings, scrub.ORDERED_AT)
    order = scrub.ordered(parse_variants(settings.mechanisms), frame)
    groups = [
        frame["cells"][m.text]["status"]["verdict"] in ("refuted", "out_of_scope") for m in order
    ]
    assert groups == sorted(groups)
    assert {False, True} == set(groups), "or the order is not tried"
    for group in set(groups):
        kept = [
            frame["cells"][m.text]["recovery"][0]
            for m, g in zip(order, groups, strict=True)
            if g == group
        ]
        assert kept == sorted(kept, reverse=True)


def own_table() -> Table:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 4)) * [3.0, 2.0, 1.0, 0.5]
    return Table("own", rows, ("a", "b", "c", "d"))


def payload_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="payload" type="application/json">(.*?)</script>', page, re.S)
    assert found is not None
    return dict(json.loads(found[1]))


def all_floats(node: Any) -> Iterator[float]:
    """Return every number of a payload."""
    if isinstance(node, dict):
        for value in node.values():
            yield from all_floats(value)
    elif isinstance(node, list):
        for value in node:
            yield from all_floats(value)
    elif isinstance(node, (int, float)):
        yield float(node)


def all_texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from all_texts(value)
    elif isinstance(node, str):
        yield node


def leaks(page: str, ready: Prepared, settings: Settings) -> set[str]:
    """Return what of a table's own is found in a page."""
    payload, found = payload_in(page), set()
    rows, index = ready.picture(PICTURE_POINTS)
    texts = [text for text in all_texts(payload) if len(text) > 20]
    true = ready.reference.eigenvectors[:, : settings.k]
    scale = float(np.linalg.norm(rows, axis=1).max())
    if packed(np.round(rows @ true / scale * 32767), "<i2") in texts:
        found.add("rows")
    for cell in payload["frames"][0]["cells"].values():
        if cell["picture"]:
            found.add("rows in a released space")
        if cell["recovery"] or cell["distances"] or cell["texts"]["found"]:
            found.add("quality")
        if cell["texts"]["recovery"] or cell["texts"]["said"] or cell["texts"]["aim"]:
            found.add("quality in words")
        if cell["spectrum"]["lines"]:
            found.add("spectra")
    assert ready.table.labels is not None
    names = np.unique(ready.table.labels, return_inverse=True)[1][index]
    if packed(names, "u1") in texts:
        found.add("labels of rows")
    numbers = np.array(list(all_floats(payload)))
    # to the six digits that are written
    for value in ready.reference.eigenvalues:
        if np.isclose(numbers, value, rtol=1e-5, atol=0).any():
            found.add("eigenvalues")
    if payload["predicted"] or payload["least"] or payload["chance"]["share"]:
        found.add("predictions")
    return found


PRIVATE = replace(BASE, mechanisms=("spherical", "gaussian", "wishart"), trials=2, epsilon=3.0)


def private_table() -> Prepared:
    shipped = load("wine")
    return prepare(replace(shipped, name="own", public=False), PRIVATE)


@pytest.mark.parametrize("kind", ["board", "report", "notebook"])
def test_a_file_of_a_table_that_is_not_public_holds_noisy_pictures_alone(kind: str) -> None:
    ready = private_table()

    def page(working_view: bool) -> str:
        if kind == "board":
            return board_file(ready, PRIVATE, working_view=working_view)
        if kind == "notebook":
            shown = Board(ready, PRIVATE, None, working_view=working_view)._repr_html_()
            return html.unescape(shown)
        found = compare(ready, PRIVATE)
        return report(found, command="", link="", working_view=working_view)

    working = page(True)
    planted = leaks(working, ready, PRIVATE)
    assert {"rows", "eigenvalues", "quality", "spectra", "labels of rows"} <= planted
    plain = page(False)
    assert leaks(plain, ready, PRIVATE) == set()
    assert "recovers" not in plain.partition("</style>")[2].partition("<script")[0]
    payload = payload_in(plain)
    # in no order that follows from the rows, as theirs does
    named = [column["label"] for column in payload["columns"]]
    assert named == sorted(named)
    assert named != [column["label"] for column in payload_in(working)["columns"]]
    (frame,) = payload["frames"]
    assert frame["epsilon"] == PRIVATE.epsilon
    shown = {key for key, cell in frame["cells"].items() if cell["published"]}
    assert shown == {"spherical", "gaussian"}  # a broken claim publishes nothing
    assert "2 noisy pictures, each at epsilon 3," in plain
    for cell in frame["cells"].values():  # what each is worth, from what is released
        words = " ".join((cell["published"] or {"said": ["noise: shape off by at most"]})["said"])
        assert "noise: shape off by at most" in words
    assert "together at most epsilon 6," in plain


def test_the_noise_of_a_published_file_is_nobodys_to_draw_again() -> None:
    """The seed of the setting would give the noise away, and pictures of two epsilons the counts.

    The control is the working view, whose noise is that of its seed.
    """
    ready, places = private_table(), []
    for settings in (PRIVATE, PRIVATE):
        made = publishable_payload(ready, settings)
        (frame,) = made["frames"]
        assert made["epsilons"] == [PRIVATE.epsilon]
        places.append(frame["cells"]["gaussian"]["published"]["places"])
    usual = at(ready, PRIVATE, PRIVATE.epsilon)["cells"]["gaussian"]["published"]
    assert len({*places, usual["places"]}) == 3
    again = at(ready, PRIVATE, PRIVATE.epsilon)["cells"]["gaussian"]["published"]
    assert again == usual


def test_the_flag_and_the_card_of_a_table_that_is_not_public(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mechanisms": "gaussian", "trials": 2, "k": 2}
    frame = pd.DataFrame(own_table().rows, columns=list("abcd"))
    found = dpviz.board(frame, **options)
    found.write(tmp_path / "board.html")
    payload = payload_in((tmp_path / "board.html").read_text())
    assert payload["truth"]["picture"] == ""
    with pytest.raises(InvalidSetting, match="working view"):
        found.report(card="90")
    working = dpviz.board(frame, working_view=True, **options)
    working.write(tmp_path / "working.html")
    page = (tmp_path / "working.html").read_text()
    assert payload_in(page)["truth"]["picture"] != ""
    assert "--working-view" in page
    file = tmp_path / "own.csv"
    frame.to_csv(file, index=False)
    words = ["board", str(file), "--mechanism", "gaussian", "--trials", "2"]
    for flags, rows in (([], False), (["--working-view"], True)):
        assert main([*words, *flags, "--out", str(tmp_path / "by_command.html")]) == 0
        made = payload_in((tmp_path / "by_command.html").read_text())
        assert bool(made["truth"]["picture"]) is rows


def test_rows_that_are_not_public_carry_a_ribbon() -> None:
    """A table that is handed in is nobody's to see; built-in ones are everybody's."""
    settings = replace(BASE, trials=2)
    assert whole(settings, 2)["ribbon"] is None
    ready = prepare(own_table(), settings)
    page = report(compare(ready, settings), command="", link="", working_view=True)
    assert WORKING_VIEW in page
    few = replace(settings, mechanisms=("gaussian",))
    assert WORKING_VIEW in board_file(ready, few, working_view=True)
    assert WORKING_VIEW not in report(compare(prepared(), settings), command="", link="")
    # nor is one made public by what is done to it on the way
    kept = own_table().select(["a", "b"]).noting(["read"])
    assert prepare(kept, settings).table.ribbon == WORKING_VIEW


def test_a_figure_of_rows_carries_the_ribbon_into_its_image() -> None:
    own = dpviz.compare(own_table().rows, mechanisms=["gaussian"], trials=2).figure("projection")
    assert WORKING_VIEW in [note.text for note in own.layout.annotations]
    wine = dpviz.compare("wine", mechanisms=["gaussian"], trials=2).figure("projection")
    assert WORKING_VIEW not in [note.text for note in wine.layout.annotations]


def test_a_published_picture_is_in_the_payload_of_every_claim_that_holds() -> None:
    settings = replace(BASE, epsilon=5.0, mechanisms=("gaussian", "ppca", "wishart"), trials=2)
    ready = prepared()
    comparison = compare(ready, settings)
    cells = snapshot(comparison)["cells"]
    assert cells["wishart"]["published"] is None  # a broken claim publishes nothing
    for key in ("gaussian", "ppca"):
        published = cells[key]["published"]
        assert published is not None
        assert len(floats(published["places"], "<i2")) == 2 * PICTURE_POINTS
        assert published["codes"] is not None
        codes = floats(published["codes"], "u1")
        assert set(codes.tolist()) <= {0, 1, 2, 255}
        bars, texts = published["scree"]
        pairs = floats(bars, "<i2").reshape(-1, 2) / 32767
        assert ((pairs > 0) & (pairs <= 1)).all()
        assert len(texts) == len(pairs)
        told = dict(cells[key]["texts"]["found"])
        assert told["Published"].endswith("never printed")
    seen = {key: cells[key]["published"]["scree"] for key in ("gaussian", "ppca")}
    assert seen["gaussian"][1]  # from its matrix
    assert seen["ppca"] == ("", [])  # 178 people are too few to buy it


def test_labels_of_an_upload_are_not_published() -> None:
    settings = replace(BASE, epsilon=5.0, mechanisms=("gaussian",), trials=2)
    own = replace(load("wine"), public=False)
    ready = prepare(own, settings)
    published = snapshot(compare(ready, settings))["cells"]["gaussian"]["published"]
    assert published is not None
    assert published["codes"] is None


def test_the_page_needs_nothing_else_and_no_text_escapes_it() -> None:
    payload = whole(count=2)
    payload["table"]["name"] = "</script><script>alert(1)</script><!--"
    page = board_html(payload, title="A <b> title", note="& note")
    assert page.count("<script>") == 1
    assert "alert(1)</script>" not in page
    assert "A &lt;b&gt; title" in page
    assert "&amp; note" in page
    for text in (page, assets().js, assets().css):
        assert "http://" not in text
        assert "https://" not in text
        assert "@import" not in text
        assert "url(" not in text
    start = page.index('type="application/json">') + len('type="application/json">')
    again = json.loads(page[start : page.index("</script>", start)])
    assert again == json.loads(json.dumps(payload))


def test_payload_is_small_enough_to_send() -> None:
    settings = replace(BASE, table="digits", trials=20)
    ready = prepared(settings)
    frame = at(ready, settings, 1.0)
    published = [cell.pop("published") for cell in frame["cells"].values()]

    def sent(what: object) -> int:  # as pages.ui.board sends it
        return len(json.dumps(what, separators=(",", ":"), ensure_ascii=False).encode())

    assert sent(frame) < 25_000, "24 of them are half a megabyte"
    assert max(map(sent, published)) < 2_200, "a picture beside it"
