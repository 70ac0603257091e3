"""The Explore payload: the same numbers as other pages, the order of columns, the data sent."""

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
    *_, last = steps(ready, settings, epsilons, workers=workers)
    return last


def at(ready: Prepared, settings: Settings, epsilon: float, workers: int = 1) -> Frame:
    (one,) = snapshots(ready, settings, [epsilon], workers)
    return one


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
    # Frames computed for the slider only are exactly equal to the full computation's frames.
    assert at(ready, BASE, epsilon) == full
    assert at(ready, BASE, epsilon, workers=2) == full
    for result in comparison.results:
        cell = full["cells"][result.mechanism.text]
        summary = summarise(result.metrics["recovery"])
        numbers = [summary.mean, summary.low, summary.high, summary.se]
        np.testing.assert_allclose(cell["recovery"], numbers, rtol=1e-5)
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
    points = floats(payload["truth"]["picture"], "<i2").reshape(-1, 2) * unit
    np.testing.assert_allclose(points, rows @ true, atol=unit)
    assert (np.abs(points) <= payload["limits"]["picture"]).all()
    # Released points are only rotated within the released subspace, so every row keeps its length.
    frame = snapshot(comparison)
    for result in comparison.results:
        text = frame["cells"][result.mechanism.text]["picture"]
        places = floats(text, "<i2").reshape(-1, 2) * unit
        lengths = np.linalg.norm(rows @ result.components[0], axis=1)
        np.testing.assert_allclose(np.linalg.norm(places, axis=1), lengths, atol=2 * unit)


def test_a_label_stands_in_a_picture_as_its_own_character_or_a_letter_of_it() -> None:
    assert marks_of(["setosa", "versicolor", "virginica"]) == ["S", "V", "I"]
    assert marks_of([str(digit) for digit in range(10)]) == [*"0123456789"]
    assert marks_of(["class 1", "class 2"]) == ["1", "2"]
    for kinds in (["<=50K", ">50K"], ["a", "A", "aa", "aA"], [str(one) for one in range(12)]):
        marks = marks_of(kinds)
        assert marks is not None
        assert len(set(marks)) == len(kinds)
    assert marks_of([str(one) for one in range(13)]) is None  # There are fewer marks than 13.


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
        recoveries = [
            frame["cells"][m.text]["recovery"][0]
            for m, g in zip(order, groups, strict=True)
            if g == group
        ]
        assert recoveries == sorted(recoveries, reverse=True)


def own_table() -> Table:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 4)) * [3.0, 2.0, 1.0, 0.5]
    return Table("own", rows, ("a", "b", "c", "d"))


def payload_in(page: str) -> dict[str, Any]:
    match = re.search(r'<script id="payload" type="application/json">(.*?)</script>', page, re.S)
    assert match is not None
    return dict(json.loads(match[1]))


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
    """Return the private data of a table that a page holds."""
    payload, leaks_in_page = payload_in(page), set()
    rows, index = ready.picture(PICTURE_POINTS)
    texts = [text for text in all_texts(payload) if len(text) > 20]
    true = ready.reference.eigenvectors[:, : settings.k]
    scale = float(np.linalg.norm(rows, axis=1).max())
    if packed(np.round(rows @ true / scale * 32767), "<i2") in texts:
        leaks_in_page.add("rows")
    for cell in payload["frames"][0]["cells"].values():
        if cell["picture"]:
            leaks_in_page.add("rows in a released space")
        if cell["recovery"] or cell["distances"] or cell["texts"]["found"]:
            leaks_in_page.add("quality")
        if cell["texts"]["recovery"] or cell["texts"]["said"] or cell["texts"]["aim"]:
            leaks_in_page.add("quality in words")
        if cell["spectrum"]["lines"]:
            leaks_in_page.add("spectra")
    assert ready.table.labels is not None
    names = np.unique(ready.table.labels, return_inverse=True)[1][index]
    if packed(names, "u1") in texts:
        leaks_in_page.add("labels of rows")
    numbers = np.array(list(all_floats(payload)))
    # Compare only six digits, because the page writes no more digits.
    for value in ready.reference.eigenvalues:
        if np.isclose(numbers, value, rtol=1e-5, atol=0).any():
            leaks_in_page.add("eigenvalues")
    if payload["predicted"] or payload["least"] or payload["chance"]["share"]:
        leaks_in_page.add("predictions")
    return leaks_in_page


PRIVATE = replace(BASE, mechanisms=("spherical", "gaussian", "wishart"), trials=2, epsilon=3.0)


def private_table() -> Prepared:
    wine = load("wine")
    return prepare(replace(wine, name="own", public=False), PRIVATE)


@pytest.mark.parametrize("kind", ["board", "report", "notebook"])
def test_a_file_of_a_table_that_is_not_public_holds_noisy_pictures_alone(kind: str) -> None:
    ready = private_table()

    def page(working_view: bool) -> str:
        if kind == "board":
            return board_file(ready, PRIVATE, working_view=working_view)
        if kind == "notebook":
            markup = Board(ready, PRIVATE, None, working_view=working_view)._repr_html_()
            return html.unescape(markup)
        comparison = compare(ready, PRIVATE)
        return report(comparison, command="", link="", working_view=working_view)

    working = page(True)
    leaks_there = leaks(working, ready, PRIVATE)
    assert {"rows", "eigenvalues", "quality", "spectra", "labels of rows"} <= leaks_there
    plain = page(False)
    assert leaks(plain, ready, PRIVATE) == set()
    assert "recovers" not in plain.partition("</style>")[2].partition("<script")[0]
    payload = payload_in(plain)
    # The column order here does not depend on the data rows; in the working view it does.
    labels = [column["label"] for column in payload["columns"]]
    assert labels == sorted(labels)
    assert labels != [column["label"] for column in payload_in(working)["columns"]]
    (frame,) = payload["frames"]
    assert frame["epsilon"] == PRIVATE.epsilon
    keys = {key for key, cell in frame["cells"].items() if cell["published"]}
    assert keys == {"spherical", "gaussian"}  # No release is published for a false claim.
    assert "2 noisy pictures, each at epsilon 3," in plain
    for cell in frame["cells"].values():  # The text states each release's quality.
        words = " ".join(
            (cell["published"] or {"said": ["noise changes the shape by at most"]})["said"]
        )
        assert "noise changes the shape by at most" in words
    assert "together at most epsilon 6," in plain


def test_the_noise_of_a_published_file_is_nobodys_to_draw_again() -> None:
    """Published noise never repeats: equal seeds would reveal the noise, two epsilons the counts.

    The control is the working view, in which the noise follows the seed.
    """
    ready, places = private_table(), []
    for settings in (PRIVATE, PRIVATE):
        payload = publishable_payload(ready, settings)
        (frame,) = payload["frames"]
        assert payload["epsilons"] == [PRIVATE.epsilon]
        places.append(frame["cells"]["gaussian"]["published"]["places"])
    usual = at(ready, PRIVATE, PRIVATE.epsilon)["cells"]["gaussian"]["published"]
    assert len({*places, usual["places"]}) == 3
    again = at(ready, PRIVATE, PRIVATE.epsilon)["cells"]["gaussian"]["published"]
    assert again == usual


def test_the_flag_and_the_card_of_a_table_that_is_not_public(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mechanisms": "gaussian", "trials": 2, "k": 2}
    frame = pd.DataFrame(own_table().rows, columns=list("abcd"))
    view = dpviz.board(frame, **options)
    view.write(tmp_path / "board.html")
    payload = payload_in((tmp_path / "board.html").read_text())
    assert payload["truth"]["picture"] == ""
    with pytest.raises(InvalidSetting, match="working view"):
        view.report(card="90")
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
        content = payload_in((tmp_path / "by_command.html").read_text())
        assert bool(content["truth"]["picture"]) is rows


def test_rows_that_are_not_public_carry_a_ribbon() -> None:
    """A table from the user is marked as a working view; built-in tables are public."""
    settings = replace(BASE, trials=2)
    assert whole(settings, 2)["ribbon"] is None
    ready = prepare(own_table(), settings)
    page = report(compare(ready, settings), command="", link="", working_view=True)
    assert WORKING_VIEW in page
    few = replace(settings, mechanisms=("gaussian",))
    assert WORKING_VIEW in board_file(ready, few, working_view=True)
    assert WORKING_VIEW not in report(compare(prepared(), settings), command="", link="")
    # Processing a private table does not make it public, so the warning stays.
    table = own_table().select(["a", "b"]).noting(["read"])
    assert prepare(table, settings).table.ribbon == WORKING_VIEW


def test_a_figure_of_rows_carries_the_ribbon_into_its_image() -> None:
    answer = dpviz.compare(own_table().rows, mechanisms=["gaussian"], trials=2).figure("projection")
    assert WORKING_VIEW in [note.text for note in answer.layout.annotations]
    wine = dpviz.compare("wine", mechanisms=["gaussian"], trials=2).figure("projection")
    assert WORKING_VIEW not in [note.text for note in wine.layout.annotations]


def test_a_published_picture_is_in_the_payload_of_every_claim_that_holds() -> None:
    settings = replace(BASE, epsilon=5.0, mechanisms=("gaussian", "ppca", "wishart"), trials=2)
    ready = prepared()
    comparison = compare(ready, settings)
    cells = snapshot(comparison)["cells"]
    assert cells["wishart"]["published"] is None  # No release is published for a false claim.
    for key in ("gaussian", "ppca"):
        publication = cells[key]["published"]
        assert publication is not None
        assert len(floats(publication["places"], "<i2")) == 2 * PICTURE_POINTS
        assert publication["codes"] is not None
        codes = floats(publication["codes"], "u1")
        assert set(codes.tolist()) <= {0, 1, 2, 255}
        bars, texts = publication["scree"]
        pairs = floats(bars, "<i2").reshape(-1, 2) / 32767
        assert ((pairs > 0) & (pairs <= 1)).all()
        assert len(texts) == len(pairs)
        words = dict(cells[key]["texts"]["found"])
        assert words["Published"].endswith("never printed")
    scree = {key: cells[key]["published"]["scree"] for key in ("gaussian", "ppca")}
    assert scree["gaussian"][1]  # Its scree plot uses the released matrix.
    assert scree["ppca"] == ("", [])  # 178 people are too few for a scree plot.


def test_labels_of_an_upload_are_not_published() -> None:
    settings = replace(BASE, epsilon=5.0, mechanisms=("gaussian",), trials=2)
    wine = replace(load("wine"), public=False)
    ready = prepare(wine, settings)
    publication = snapshot(compare(ready, settings))["cells"]["gaussian"]["published"]
    assert publication is not None
    assert publication["codes"] is None


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
    publications = [cell.pop("published") for cell in frame["cells"].values()]

    def sent(what: object) -> int:  # This function counts the bytes that pages.ui.board sends.
        return len(json.dumps(what, separators=(",", ":"), ensure_ascii=False).encode())

    assert sent(frame) < 25_000, "24 of them are half a megabyte"
    assert max(map(sent, publications)) < 2_200, "a picture beside it"
