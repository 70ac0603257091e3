"""The Papers page: introduce, run, stop, go on, and keep results for the next visit."""

from __future__ import annotations

import base64
import html
import importlib
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.papers import experiment, experiments
from dpviz.papers import run as running
from dpviz.papers.experiment import Effort
from dpviz.papers.measurements import Mean
from dpviz.papers.report import PAPERS, heading, runs
from dpviz.papers.run import absent_data, work
from dpviz.papers.said import Stated
from dpviz.papers.shipped import shipped
from dpviz.report.figures.reproduction import table_exhibit
from dpviz.simulation.store import Store, default_folder
from pages.ui import reproduction_cache
from pages.ui.page_options import OPENING
from tests.ui.driver import (
    QUICK,
    change,
    commands,
    errors,
    go,
    keys,
    nodes,
    one_sentence,
    press,
    start,
)

shipping = importlib.import_module("dpviz.papers.shipped")  # the name is a function too


OTHER = "jiang_theorem5"  # not the first, which links leave out; its exhibit is a chart
DONE = 2  # parts before the stop
ROW = (Stated(1.0, 0.1), Mean.near(2.0, 0.1, 100))
GENERATED = "jiang_table1"  # needs no data and a few seconds


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reproduction_cache.results_store.clear()
    yield
    reproduction_cache.results_store.clear()


def open_at(key: str) -> AppTest:
    return start("papers", **QUICK, experiment=key)


def words(at: AppTest) -> str:
    return "\n".join(box.value for box in [*at.markdown, *at.caption, *at.info])


def drawn_text(at: AppTest) -> str:
    """Return what the page draws as markup: exhibits, tables of claims, squares."""
    return html.unescape("\n".join(node.proto.body for node in at.get("html")))


def drawn_at_last(at: AppTest) -> set[str]:
    """Return the charts of a finished run."""
    return {
        node.key
        for node in nodes(at)
        if node.type == "plotly_chart" and node.key.endswith(".final")
    }


def test_experiments_are_introduced_with_what_the_paper_reports() -> None:
    # The first of each paper: what holds of all of them is tested without a page.
    papers: dict[str, str] = {}
    for key, item in experiments().items():
        papers.setdefault(item.info.paper, key)
    assert len(papers) == 4
    at = open_at(GENERATED)
    for key in papers.values():
        item = experiment(key)
        change(at, "papers.experiment", heading(item))
        assert errors(at) == []
        assert item.info.about in words(at)
        for caution in item.info.cautions:
            assert caution in words(at)
        assert at.session_state["papers"]["experiment"] == key


def test_the_first_visit_shows_answers_numbers_and_figures_without_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: object, part: object, shared: object, seed: int) -> object:
        raise AssertionError("nothing may run at a first visit")

    item = experiment(GENERATED)
    ready = shipped(item)
    assert ready is not None
    monkeypatch.setattr(type(item), "run", refuse)
    at = open_at(GENERATED)
    assert errors(at) == []
    for paper in PAPERS.values():
        assert paper.sentence in words(at)
    assert ready.made.date in words(at)
    assert "has changed since" not in words(at)
    assert drawn_at_last(at)
    shown = drawn_text(at)
    for claim in ready.claims:
        assert claim.item in shown
        assert claim.reason in shown
    run = next(button for button in at.button if button.key == "papers.run")
    assert run.label == "Run it again here"


def test_results_of_other_code_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "code_digest", lambda experiment: "other")
    assert "The experiment's code has changed since." in words(open_at(GENERATED))


def test_where_nothing_ships_the_page_says_what_the_paper_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shipping, "file_of", lambda key, folder=None: tmp_path / key)
    at = open_at(GENERATED)
    assert errors(at) == []
    assert "Nothing has been measured yet" in words(at)
    run = next(button for button in at.button if button.key == "papers.run")
    assert run.label == "Run"


@pytest.mark.parametrize("key", [GENERATED, OTHER])
def test_a_run_shows_the_figure_and_the_lines_and_is_there_at_the_next_visit(key: str) -> None:
    at = open_at(key)
    assert "papers.run" in keys(at)
    press(at, "papers.run")
    assert errors(at) == []
    assert "papers.run" not in keys(at)
    assert "papers.stop" not in keys(at)
    assert drawn_at_last(at)
    assert "reproduced" in drawn_text(at)
    assert f"dpviz reproduce {key} --quick" in "\n".join(commands(at))
    again = open_at(key)  # another session, the same machine
    assert "papers.run" not in keys(again)
    assert drawn_at_last(again) == drawn_at_last(at)
    go(at, "claims")
    go(at, "papers")
    assert drawn_at_last(at)


def test_a_stopped_run_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    item = experiment(GENERATED)
    with closing(work(item, Effort.QUICK, store=Store(default_folder()))) as steps:
        for step in steps:
            if step.progress.done == DONE:
                break
    total = step.progress.total
    at = open_at(GENERATED)
    button = next(node for node in at.button if node.key == "papers.run")
    assert button.label == f"Go on ({DONE} of {total} parts done)"
    assert drawn_at_last(at)  # what is there is drawn
    assert "not yet measured" in drawn_text(at)
    ran: list[str] = []
    original = type(item).run

    def counting(self: object, part: object, shared: object, seed: int) -> object:
        ran.append(repr(part))
        return original(self, part, shared, seed)  # type: ignore[arg-type]

    monkeypatch.setattr(type(item), "run", counting)
    press(at, "papers.run")
    assert len(ran) == total - DONE
    assert "papers.run" not in keys(at)


def test_absent_data_is_named_and_nothing_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DPVIZ_DATA", raising=False)
    needy = [key for key, item in experiments().items() if item.data()]
    assert needy, "some experiments read remote data"
    key = needy[0]
    at = open_at(key)
    absent = absent_data(experiment(key))
    assert absent == experiment(key).data()
    sentences = [box.value for box in at.info]
    for name in absent:
        assert f"papers.fetch.{name}" in keys(at)
        assert any(one_sentence(text) for text in sentences)
    assert "Without measurement" in drawn_text(at)


def test_a_failed_download_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    key = next(key for key, item in experiments().items() if item.data())
    name = experiment(key).data()[0]
    monkeypatch.setenv("DPVIZ_DATA", "http://127.0.0.1:9")  # the port of nobody
    at = press(open_at(key), f"papers.fetch.{name}")
    assert len(errors(at)) == 1
    assert one_sentence(errors(at)[0])


def test_the_paper_is_read_in_printing_order_and_every_claim_is_a_link() -> None:
    at = open_at(OTHER)
    change(at, "papers.view", "Read the paper with us")
    assert errors(at) == []
    shown = drawn_text(at)
    for item in experiments().values():
        for said in item.said:
            assert f"{said.place}: {said.says}: " in shown
            assert f"papers?v=1&experiment={item.key}" in shown
    assert at.query_params["view"] == "reading"


def test_an_exhibit_stands_printed_left_and_measured_right() -> None:
    for key in ("mvg_table4", "chaudhuri_figure1", "xu_figure1"):
        at = open_at(key)
        shown = drawn_text(at)
        assert shown.index("The paper: ") < shown.index("We, on the same ax")
        assert shown.count("data:image/svg+xml") == 3  # the third holds both, for a phone


def test_the_page_opens_on_an_exhibit_and_cuts_no_name() -> None:
    at = start("papers", **QUICK)
    shown = drawn_text(at)
    assert at.session_state["papers"]["experiment"] == OPENING
    assert "The paper: Table 4, Delta-rho<" in shown
    pictures = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", shown)
    left, right, _ = (base64.b64decode(picture).decode() for picture in pictures)
    for row in ("Random guess", "Exponential mechanism (PPCA)", "JL transform (Blocki et al.)"):
        assert row in left
        assert row in right
    long = ("A name of more than sixty letters, which takes three lines of the table", *ROW)
    drawn = table_exhibit([long, ("Short", *ROW)], "Table 0")
    lines = base64.b64decode(re.findall(r"base64,([^\"]+)", drawn)[0]).decode()
    assert all(word in lines for word in long[0].split())
    assert "…" not in lines


def test_what_would_yield_the_printed_figures_is_one_sentence_and_a_line_a_row() -> None:
    at = open_at("mvg_table4")
    known = shipped(experiment("mvg_table4"))
    assert known is not None
    told = runs(known)
    assert told[0].startswith("What was run? ")
    shown = words(at)
    for line in told:
        assert line in shown


def test_effort_and_experiment_travel_in_the_link() -> None:
    at = open_at(OTHER)
    change(at, "papers.effort", "as many as the paper")
    assert at.query_params["effort"] == "full"
    assert at.query_params["experiment"] == OTHER
    go(at, "explore")
    go(at, "papers")
    assert at.session_state["papers"] == {"view": "exhibits", "experiment": OTHER, "effort": "full"}
