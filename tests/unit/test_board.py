"""The board's payload: the numbers of every other page, the order of columns, what travels."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.cli import main
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics import METRICS, chance_share, summarise
from dpviz.core.number_text import percent
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.datasets import Table, load
from dpviz.datasets.table import WORKING_VIEW
from dpviz.lessons.lesson import State
from dpviz.lessons.scene import board_scene
from dpviz.mechanisms import featured, parse_variants
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.preparation.load import load_measured
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.board import assets, board_html, shown
from dpviz.report.figures.boardfile import board_file, full_payload, publishable_payload
from dpviz.report.figures.handout import report_page
from dpviz.report.sentences.explore import least_words, verdict
from dpviz.report.tables import board, scrub
from dpviz.report.tables.frame import FRAME_METRICS, PICTURE_POINTS, frame_of, recovery_words
from dpviz.report.tables.projection import LABEL_COLOURS, LABEL_SHAPES, coordinates, packed
from dpviz.simulation.cells import CellTrials, parts_of
from dpviz.simulation.compare import Comparison, Result, compare, run_cell
from dpviz.simulation.predict import predict
from dpviz.simulation.simulate import Cell
from dpviz.studies.board import Board

BASE = Settings(table="wine", mechanisms=featured(), trials=7)
WHOLE_ROWS = replace(BASE, mechanisms=("gaussian", "wishart_difference", "wishart"))


def prepared(settings: Settings = BASE) -> Prepared:
    return prepare(load(settings.table), settings)


def made(settings: Settings = BASE) -> tuple[Prepared, Comparison]:
    ready = prepared(settings)
    return ready, compare(ready, settings)


def floats(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind).astype(float)


def whole(settings: Settings = BASE, count: int = 4) -> dict[str, Any]:
    ready = prepared(settings)
    epsilons = scrub.frame_epsilons(count, settings.epsilon)
    frames = [scrub.compute(ready, settings, epsilon) for epsilon in epsilons]
    columns = shown(parse_variants(settings.mechanisms))
    return board.payload(ready, settings, columns, epsilons, frames)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
def test_a_frame_holds_the_numbers_of_every_other_page(epsilon: float) -> None:
    settings = replace(BASE, epsilon=epsilon)
    ready, comparison = made(settings)
    assert comparison.results
    full = frame_of(comparison, ready)
    # What is computed for the path alone is the same to the last digit.
    assert scrub.compute(ready, BASE, epsilon) == full
    assert scrub.compute(ready, BASE, epsilon, workers=2) == full
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


def test_frames_together_are_frames_alone_and_frames_of_the_first_draws() -> None:
    ready, comparison = made()
    few = replace(BASE, trials=3)
    epsilons = [0.3, BASE.epsilon, 4.0]
    together = scrub.compute_each(ready, few, epsilons, workers=2)
    assert together == [scrub.compute(ready, few, epsilon) for epsilon in epsilons]
    assert together[1] == frame_of(comparison, ready, draws=3)
    assert [frame["draws"] for frame in together] == [3, 3, 3]
    assert frame_of(comparison, ready)["draws"] == BASE.trials
    assert together[1] != frame_of(comparison, ready)  # the control


def test_another_seed_is_another_frame() -> None:
    ready = prepared()  # the control of the equalities above
    one = scrub.compute(ready, BASE, 1.0)
    other = scrub.compute(ready, replace(BASE, seed=1), 1.0)
    for key, cell in one["cells"].items():
        assert cell["distances"] != other["cells"][key]["distances"]


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
    frame = frame_of(comparison, ready)
    for result in comparison.results:
        text = frame["cells"][result.mechanism.text]["picture"]
        placed = floats(text, "<i2").reshape(-1, 2) * unit
        lengths = np.linalg.norm(rows @ result.components[0], axis=1)
        np.testing.assert_allclose(np.linalg.norm(placed, axis=1), lengths, atol=2 * unit)


@pytest.mark.parametrize(("draw", "axes"), [(0, "raw"), (4, "aligned"), (6, "raw")])
def test_a_picture_is_that_of_the_draw_and_axes_asked_for(draw: int, axes: str) -> None:
    ready, comparison = made()
    rows, _ = ready.picture(PICTURE_POINTS)
    true = ready.reference.eigenvectors[:, : BASE.k]
    unit = whole()["limits"]["scale"] / 32767
    cells = frame_of(comparison, ready, draw=draw, axes=axes)["cells"]
    usual = frame_of(comparison, ready)["cells"]
    for result in comparison.results:
        drawn = floats(cells[result.mechanism.text]["picture"], "<i2").reshape(-1, 2) * unit
        wanted = coordinates(rows, result.components[draw], true, axes)
        np.testing.assert_allclose(drawn, wanted, atol=unit)
    assert any(cells[key]["picture"] != usual[key]["picture"] for key in cells)


def test_no_two_of_thirty_labels_are_drawn_alike() -> None:
    palette = whole(count=2)["palette"]
    colours, names = palette["labels"], palette["shapes"]
    assert (tuple(colours), tuple(names)) == (LABEL_COLOURS, LABEL_SHAPES)
    looks = {(colours[i % len(colours)], names[i % len(names)]) for i in range(30)}
    assert len(looks) == 30


def test_the_truth_and_its_axes_do_not_move_with_epsilon() -> None:
    one, other = whole(), whole(replace(BASE, epsilon=0.1))
    for part in ("truth", "limits", "chance", "labels", "table"):
        assert one[part] == other[part]
    assert one["frames"] != other["frames"]


def test_epsilons_are_round_and_hold_the_current_one() -> None:
    steps = scrub.frame_epsilons()
    assert 20 <= len(steps) <= 26
    assert (steps[0], steps[-1]) == scrub.PLAY
    assert 1.0 in steps
    ratios = np.diff(np.log10(steps))
    assert (ratios > 0.09).all()
    assert (ratios < 0.12).all()
    assert scrub.frame_epsilons(None, 1.7) == sorted([*steps, 1.7])
    # Carried on towards an epsilon outside, and no farther than a slider goes.
    assert scrub.frame_epsilons(None, 20.0) == [*steps, 12.5, 16.0, 20.0]
    assert scrub.frame_epsilons(None, 0.03) == [0.03, 0.032, 0.04, *steps]
    assert scrub.frame_epsilons(None, 1e4)[-2:] == [100.0, 1e4]
    few = scrub.frame_epsilons(5)
    assert len(few) == 5
    assert set(few) <= set(steps)
    assert (few[0], few[-1]) == scrub.PLAY
    assert scrub.outwards([0.1, 0.5, 1.0, 2.0, 10.0], 1.0) == [1.0, 0.5, 2.0, 0.1, 10.0]
    assert scrub.frames_affordable(0.01) is None
    assert scrub.frames_affordable(1.0, 8.0) == 8
    assert scrub.frames_affordable(100.0, 8.0) == 4


def test_columns_stand_by_claim_and_recovery() -> None:
    settings = replace(BASE, table="digits", trials=3)
    ready = prepared(settings)
    frame = scrub.compute(ready, settings, scrub.ORDERED_AT)
    order = scrub.ordered(parse_variants(settings.mechanisms), frame)
    verdicts = [frame["cells"][m.text]["status"]["verdict"] for m in order]
    groups = [
        ["holds", "loose"].count(v) * 1 or {"approximate": 2, "unproven": 3}.get(v, 4)
        for v in verdicts
    ]
    assert groups == sorted(groups)
    assert {1, 2, 4} <= set(groups), "or the order is not tried"
    for group in set(groups):
        kept = [
            frame["cells"][m.text]["recovery"][0]
            for m, g in zip(order, groups, strict=True)
            if g == group
        ]
        assert kept == sorted(kept, reverse=True)


def test_what_cannot_run_says_why() -> None:
    settings = replace(BASE, mechanisms=("wishart_approx", "gaussian"))
    ready = prepared(settings)
    frame = scrub.compute(ready, settings, 2.0)
    assert set(frame["cells"]) == {"gaussian"}
    assert "below 1" in frame["skipped"]["wishart_approx"]
    assert set(scrub.compute(ready, settings, 0.5)["cells"]) == {"gaussian", "wishart_approx"}


def test_the_whole_space_has_no_recovery() -> None:
    settings = replace(BASE, table="iris", k=4, mechanisms=("gaussian", "ppca"))
    payload = whole(settings, 2)
    for frame in payload["frames"]:
        assert frame["cells"]["gaussian"]["recovery"] is None
        assert "ppca" in frame["skipped"]
    assert scrub.predicted(prepared(settings), settings, [1.0]) == {}
    nothing = {"approximate": None, "pure": None, "elsewhere": None}
    assert scrub.least_epsilons(prepared(settings), settings) == nothing


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
def test_a_file_of_a_table_that_is_not_public_holds_published_pictures_alone(kind: str) -> None:
    ready = private_table()

    def page(working_view: bool) -> str:
        if kind == "board":
            return board_file(ready, PRIVATE, working_view=working_view)
        if kind == "notebook":
            shown = Board(ready, PRIVATE, None, working_view=working_view)._repr_html_()
            return html.unescape(shown)
        found = compare(ready, PRIVATE)
        return report_page(found, command="", link="", working_view=working_view)

    planted = leaks(page(True), ready, PRIVATE)
    assert {"rows", "eigenvalues", "quality", "spectra", "labels of rows"} <= planted
    plain = page(False)
    assert leaks(plain, ready, PRIVATE) == set()
    assert "recovers" not in plain.partition("</style>")[2].partition("<script")[0]
    payload = payload_in(plain)
    (frame,) = payload["frames"]
    assert frame["epsilon"] == PRIVATE.epsilon
    shown = {key for key, cell in frame["cells"].items() if cell["published"]}
    assert shown == {"spherical", "gaussian"}  # a broken claim publishes nothing
    assert "2 published pictures, each at epsilon 3," in plain
    for cell in frame["cells"].values():  # what each is worth, from what is released
        words = " ".join((cell["published"] or {"said": ["expected: shape off by"]})["said"])
        assert "expected: shape off by" in words
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
    usual = scrub.compute(ready, PRIVATE, PRIVATE.epsilon)["cells"]["gaussian"]["published"]
    assert len({*places, usual["places"]}) == 3
    again = scrub.compute(ready, PRIVATE, PRIVATE.epsilon)["cells"]["gaussian"]["published"]
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
    page = report_page(compare(ready, settings), command="", link="", working_view=True)
    assert WORKING_VIEW in page
    few = replace(settings, mechanisms=("gaussian",))
    assert WORKING_VIEW in board_file(ready, few, working_view=True)
    assert WORKING_VIEW not in report_page(compare(prepared(), settings), command="", link="")
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
    cells = frame_of(comparison, ready)["cells"]
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
    published = frame_of(compare(ready, settings), ready)["cells"]["gaussian"]["published"]
    assert published is not None
    assert published["codes"] is None


def test_published_points_flow_with_epsilon() -> None:
    """The same noise with another scale: neighbouring epsilons of one grid are near pictures."""
    settings = replace(BASE, mechanisms=("gaussian",), trials=2)
    ready = prepared()

    def at(epsilon: float) -> np.ndarray:
        (comparison,) = scrub.compared(ready, settings, [epsilon])
        published = frame_of(comparison, ready)["cells"]["gaussian"]["published"]
        assert published is not None
        places = floats(published["places"], "<i2").reshape(-1, 2) / 32767
        return places * published["reach"]

    near = np.median(np.linalg.norm(at(6.0) - at(6.02), axis=1))
    other = np.median(np.linalg.norm(at(6.0) - at(6.02)[::-1], axis=1))
    assert near < other / 10


def test_one_component_is_drawn_as_a_strip() -> None:
    payload = whole(replace(BASE, k=1), 2)
    count = len(floats(payload["truth"]["heights"], "<f4"))
    assert len(floats(payload["truth"]["picture"], "<i2")) == count
    for frame in payload["frames"]:
        for cell in frame["cells"].values():
            assert len(floats(cell["picture"], "<i2")) == count


def test_prediction_is_the_predictors() -> None:
    ready = prepared()
    line = scrub.predicted(ready, BASE, [0.5, 2.0])
    assert "gaussian" in line
    assert "ppca" not in line  # a subspace has no law of its noise
    (mechanism,) = parse_variants(("gaussian",))
    here = replace(BASE, epsilon=2.0)
    noise = mechanism.free_noise(mechanism.calibrate(ready.problem(here), ready.budget(here)))
    assert noise is not None
    share = predict(ready.moment.eigenvalues, BASE.k, noise).captured_share
    chance = chance_share(ready.reference, BASE.k)
    expected = (share - chance) / (1 - chance)
    assert line["gaussian"][1] == (
        pytest.approx(expected, rel=1e-5), percent(expected), recovery_words(expected),
    )  # fmt: skip


def test_the_least_epsilon_counts_claims_that_hold_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "all_mechanisms", dict)  # who is off the board is the next test's
    # Alone, a mechanism whose claim fails at the answer gives none; with one that holds, that one.
    settings = replace(BASE, table="digits", mechanisms=("analyze_gauss",))
    ready = prepared(settings)
    (mechanism,) = parse_variants(settings.mechanisms)
    found = scrub.least_epsilons(ready, settings)["approximate"]
    if found is not None:
        there = replace(settings, epsilon=found["epsilon"])
        verdict = mechanism.status(ready.problem(there), ready.budget(there)).verdict
        assert verdict in (Verdict.HOLDS, Verdict.LOOSE)
    hard = scrub.least_epsilons(ready, settings, 0.999)["approximate"]
    assert hard is None, "reached only where the claim has failed"
    both = replace(settings, mechanisms=("analyze_gauss", "gaussian", "wishart_difference"))
    answer = scrub.least_epsilons(ready, both, 0.999)
    assert answer["approximate"] is not None
    assert answer["approximate"]["key"] == "gaussian"
    assert answer["pure"] is not None
    assert answer["pure"]["key"] == "wishart_difference"
    assert answer["pure"]["epsilon"] > answer["approximate"]["epsilon"]


@pytest.mark.slow
def test_a_mechanism_off_the_board_is_named_where_it_needs_far_less() -> None:
    """On wine what screens features needs a tenth of the epsilon."""
    ready = prepared()
    found = scrub.least_epsilons(ready, WHOLE_ROWS)
    here, there = found["approximate"], found["elsewhere"]
    assert here is not None
    assert there is not None
    assert here["key"] == "gaussian"
    assert there["key"] == "screened_wishart_difference"
    assert there["epsilon"] < here["epsilon"] / 5
    said = least_words(found)
    assert said is not None
    assert said.startswith("90\u00a0% from about ε 2.6 (Gaussian, exact), without delta from ")
    assert said.endswith(", not on the board from 0.18 (Screened Wishart difference)")
    # On the board it is one of the others, and nothing else needs far less.
    with_it = replace(BASE, mechanisms=(*WHOLE_ROWS.mechanisms, there["key"]))
    found = scrub.least_epsilons(ready, with_it)
    assert found["approximate"] == there
    assert found["elsewhere"] is None


def test_what_is_off_the_board_costs_one_look_where_it_needs_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[str] = []

    def counted(cell: Cell, seen: Measured, most: int) -> Iterator[CellTrials]:
        looks.append(cell.mechanism.key)
        return parts_of(cell, seen, most)

    monkeypatch.setattr("dpviz.simulation.least.parts_of", counted)
    scrub.least_epsilons(prepared(), WHOLE_ROWS)
    assert looks.count("kapralov_talwar") == 1
    assert looks.count("gaussian") == 0  # it has a law
    assert 1 < looks.count("spherical") < 12


def test_nothing_is_said_where_nothing_recovers_so_much() -> None:
    assert least_words({"approximate": None, "pure": None, "elsewhere": None}) is None
    alone = {"key": "spherical", "label": "Spherical", "epsilon": 0.25}
    said = least_words({"approximate": None, "pure": None, "elsewhere": alone})
    assert said == "90\u00a0%, not on the board from about ε 0.25 (Spherical)"
    both = least_words({"approximate": alone, "pure": alone, "elsewhere": None})
    assert both == "90\u00a0%, without delta too, from about ε 0.25 (Spherical)"


@pytest.mark.parametrize(
    ("recovery", "words"),
    [(-0.02, "mere chance"), (0.0999, "mere chance"), (0.1, "partly"), (0.4999, "partly"),
     (0.5, "usable"), (0.8999, "usable"), (0.9, "nearly all"), (1.0, "nearly all")],
)  # fmt: skip
def test_recovery_in_words(recovery: float, words: str) -> None:
    assert recovery_words(recovery) == words


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


def test_the_page_that_draws_it_writes_no_number() -> None:
    """Not even a share: whatever is read comes as text, so that no second rule can differ."""
    writers = re.compile(r"\.to(Fixed|Precision|Exponential|LocaleString)\b|\bIntl\.")
    assert writers.search("value.toFixed(1)")  # the control
    assert writers.findall(assets().js) == []
    for words in ("mere chance", "partly", "usable", "nearly all"):
        assert f'"{words}"' not in assets().js
    for known in Verdict:  # nor does it judge one
        assert f'"{known}"' not in assets().js


def test_with_nothing_to_recover_no_claim_is_said_to_fail() -> None:
    ready, comparison = made(replace(BASE, k=13, mechanisms=("gaussian",)))
    found = frame_of(comparison, ready)
    assert found["cells"]["gaussian"]["status"]["counts"]
    assert "there is nothing to recover" in found["answer"]["recovery"]


@pytest.mark.parametrize(
    ("recovery", "text"),
    [
        (-0.02, "-2\u00a0%"),
        (0.0004, "< 0.1\u00a0%"),
        (0.126, "13\u00a0%"),
        (0.99999, "> 99.9\u00a0%"),
        (1.0, "100\u00a0%"),
    ],
)
def test_a_recovery_is_written_alike_on_the_board_and_in_the_sentence(
    recovery: float, text: str
) -> None:
    settings = replace(BASE, mechanisms=("gaussian",))
    ready, comparison = made(settings)
    (result,) = comparison.results
    shares = np.full(BASE.trials, recovery)
    same = replace(result, metrics=result.metrics | {"recovery": shares, "captured_share": shares})
    found = replace(comparison, results=(same,))
    cell = frame_of(found, ready)["cells"]["gaussian"]
    assert cell["texts"]["recovery"] == text
    assert f" {text} of what 2 components can show" in verdict(found)
    assert dict(cell["texts"]["found"])["Recovers"].startswith(f"{text} (")


def test_epsilons_and_marks_come_with_their_texts() -> None:
    payload = whole(replace(BASE, epsilon=0.2))
    assert payload["texts"][payload["epsilons"].index(0.2)] == "0.2"
    assert payload["ticks"][0] == (0.05, "0.05", False)
    assert payload["ticks"][-1] == (10.0, "10", True)
    assert payload["beyond"] == ((0.025, "0.025"), (20.0, "20"))
    ends = whole(replace(BASE, epsilon=0.01))["beyond"]
    assert ends == (None, (20.0, "20"))
    for axis in payload["limits"]["spectrum"].values():
        assert axis["marks"][0] == (0.0, "0")
        for mark, text in axis["marks"][1:]:
            assert float(text) == mark
            assert axis["linear"] <= mark <= axis["high"]


def test_labels_that_are_numbers_come_with_the_texts_of_their_ends() -> None:
    labels = np.linspace(-24.0, 3.14159, 178)
    table = replace(load("wine"), labels=labels, label_name="balance")
    ready = prepare(table, BASE)
    columns = shown(parse_variants(BASE.mechanisms))
    payload = board.payload(ready, BASE, columns, [1.0], [scrub.compute(ready, BASE, 1.0)])
    assert payload["labels"]["ends"] == ("-24", "3.14")


def test_both_lines_of_the_noise_are_those_of_its_law() -> None:
    """Theory, sections 9 and 14.1: 2 s sqrt(d) and half of it; 3.3302 a and 2.0582 a."""
    settings = replace(BASE, mechanisms=("gaussian", "wishart_difference", "ppca"))
    ready = prepared(settings)
    cells = scrub.compute(ready, settings, 1.0)["cells"]
    (_, edge), threshold = cells["gaussian"]["edges"], cells["gaussian"]["threshold"]
    assert threshold == pytest.approx(edge / 2, rel=1e-5)
    (_, edge), threshold = (cells["wishart_difference"][key] for key in ("edges", "threshold"))
    assert threshold == pytest.approx(edge * 2.0582 / 3.3302, rel=1e-4)
    assert cells["ppca"]["edges"] is None
    assert cells["ppca"]["threshold"] is None


def test_payload_is_small_enough_to_send() -> None:
    settings = replace(BASE, table="digits", trials=20)
    ready = prepared(settings)
    frame = scrub.compute(ready, settings, 1.0)
    published = [cell.pop("published") for cell in frame["cells"].values()]

    def sent(what: object) -> int:  # as pages.ui.frames sends it
        return len(json.dumps(what, separators=(",", ":"), ensure_ascii=False).encode())

    assert sent(frame) < 25_000, "24 of them are half a megabyte"
    assert max(map(sent, published)) < 2_200, "a picture beside it"


def test_a_file_and_a_lesson_draw_each_mechanism_once_at_each_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, float, tuple[str, ...]]] = []

    def counted(cell: Cell, seen: Measured, metrics: Iterable[str] = tuple(METRICS)) -> Result:
        if cell.picture is None:  # one more draw of each is published
            asked.append((cell.mechanism.key, cell.budget.epsilon, tuple(metrics)))
        return run_cell(cell, seen, metrics)

    for place in ("dpviz.report.tables.scrub.run_cell", "dpviz.simulation.compare.run_cell"):
        monkeypatch.setattr(place, counted)
    few = replace(BASE, trials=3, mechanisms=("gaussian", "ppca"), epsilon=0.7)
    ready = prepared(few)
    made = full_payload(ready, few)
    assert len(asked) == len(set(asked)) == 2 * len(made["epsilons"])
    assert {metrics for *_, metrics in asked} == {FRAME_METRICS}
    assert made["draws"] == scrub.draws(compare(ready, few), ready)

    asked.clear()
    columns = shown(parse_variants(few.mechanisms))
    for epsilons, drawn in ([0.1, 0.7], 2), ([0.1, 3.0], 3):  # with its own epsilon, and without
        scene = board_scene(State(few, {}), epsilons, columns, redraw=True)
        assert len(asked) == len(set(asked)) == 2 * drawn
        assert [frame["epsilon"] for frame in scene["payload"]["frames"]] == epsilons
        assert scene["draws"] == made["draws"]
        asked.clear()


def test_a_file_refuses_what_cannot_run_before_anything_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def undrawn(*given: object) -> object:
        raise AssertionError("nothing is drawn")

    for place in ("scrub", "frame"):
        monkeypatch.setattr(f"dpviz.report.tables.{place}.run_cell", undrawn)
    whole_space = replace(BASE, k=13, mechanisms=("gaussian", "ppca"))
    with pytest.raises(CannotRun, match="it releases a subspace"):
        full_payload(prepared(whole_space), whole_space)


# Whole eigenspectra ------------------------------------------------------------


def eigenspectra(found: Comparison, *, linear: bool = False) -> dict[str, Any]:
    columns = shown([result.mechanism for result in found.results])
    return dict(board.spectra(found, columns, {"gaussian": [0.5, 0.1]}, linear=linear))


def drawn_of(payload: dict[str, Any], key: str) -> np.ndarray:
    """Return medians, least and largest values of one mechanism."""
    return floats(payload["frames"][0]["cells"][key]["spectrum"]["lines"], "<f4").reshape(3, -1)


@pytest.mark.parametrize("linear", [False, True])
def test_whole_spectra_hold_every_component_within_shared_axes(linear: bool) -> None:
    _, found = made()
    payload = eigenspectra(found, linear=linear)
    axis = payload["limits"]["spectrum"]["all"]
    assert axis["count"] == found.problem.d
    assert (axis["linear"] is None) is linear
    assert axis["marks"][0] == (0.0, "0")
    assert all(axis["low"] <= mark <= axis["high"] for mark, _ in axis["marks"])
    assert 2 < len(axis["marks"]) < 30
    negative = False
    for result in found.results:
        values = result.captured_each if result.eigenvalues is None else result.eigenvalues
        median, least, most = drawn_of(payload, result.mechanism.text)
        np.testing.assert_allclose(median, np.median(values, axis=0), rtol=1e-6, atol=1e-9)
        assert axis["low"] <= least.min() * (1 - 1e-6)
        assert most.max() <= axis["high"] * (1 + 1e-6)
        negative = negative or bool(least.min() < 0)
    assert negative  # so the lower end was seen
    cells = payload["frames"][0]["cells"]
    assert floats(cells["gaussian"]["predicted"], "<f4").tolist() == pytest.approx([0.5, 0.1])
    assert "predicted" not in cells["ppca"]


def test_one_loud_mechanism_does_not_press_the_others_flat() -> None:
    _, found = made(replace(BASE, mechanisms=("gaussian", "wishart_difference", "ppca")))

    def times(factors: tuple[float, ...]) -> float:
        louder = tuple(
            replace(
                result,
                captured_each=result.captured_each * factor,
                eigenvalues=None if result.eigenvalues is None else result.eigenvalues * factor,
                edges=None,
            )
            for result, factor in zip(found.results, factors, strict=True)
        )
        axis = eigenspectra(replace(found, results=louder))["limits"]["spectrum"]["all"]
        return float(axis["high"])

    assert times((1e12, 1, 1)) == pytest.approx(times((0, 1, 1)))
    # Where every mechanism is that loud, the quietest sets the scale and none is lost.
    assert times((1e12, 1e12, 1e12)) > 1e9


def test_a_plan_has_spectra_and_no_pictures() -> None:
    settings = Settings(
        table="plan:n=1e4,spectrum=power:d=12,exponent=1,total=0.5",
        mechanisms=("gaussian", "ppca"), trials=3,
    )  # fmt: skip
    found = compare(load_measured(settings), settings)
    payload = eigenspectra(found)
    assert drawn_of(payload, "gaussian").shape == (3, 12)
    assert payload["truth"]["picture"] == payload["frames"][0]["cells"]["gaussian"]["picture"] == ""
    assert payload["labels"]["codes"] is payload["ribbon"] is None


def test_a_comparison_has_a_board_that_a_notebook_shows_in_a_frame() -> None:
    options = {"k": 2, "trials": 3, "mechanisms": ["gaussian", "laplace"], "seed": 4}
    found = dpviz.compare("wine", **options)
    board = found.board()
    assert board.to_json() == dpviz.board("wine", **options).to_json()
    shown = board._repr_html_()
    assert shown.startswith("<iframe ")
    assert html.unescape(shown.partition('srcdoc="')[2].partition('" style=')[0]) == board.html()
    assert 'sandbox="allow-scripts"' in shown  # it can neither read nor leave the notebook
    assert dpviz.compare("wine", k=2, trials=2).board().settings.mechanisms == featured()
