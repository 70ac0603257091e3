"""The Papers page: introduce, run, stop, continue, and store results for the next visit."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.papers import experiment, experiments
from dpviz.papers.experiment import Effort
from dpviz.papers.report import PAPERS
from dpviz.papers.run import absent_data, work
from dpviz.papers.shipped import shipped
from dpviz.simulation.store import Store, default_folder
from pages.ui import ask as asking
from tests.ui.driver import (
    QUICK,
    commands,
    errors,
    found,
    go,
    keys,
    nodes,
    one_sentence,
    press,
    start,
)

pytestmark = pytest.mark.long

BUTTON = "ask.run.Running"
OTHER = "jiang_theorem5"  # This experiment has a chart. Links omit only the first one.
DONE = 2  # The run stops after two parts of the experiment.
GENERATED = "jiang_table1"  # This experiment needs no data, only a few seconds.


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asking._disk.clear(), asking.clear()
    yield
    asking._disk.clear(), asking.clear()


def open_at(key: str) -> AppTest:
    return start("papers", **QUICK, experiment=key)


def words(at: AppTest) -> str:
    return "\n".join(box.value for box in [*at.markdown, *at.caption, *at.info])


def drawn_text(at: AppTest) -> str:
    """Return the page's markup: exhibits, tables of claims, squares."""
    return html.unescape("\n".join(node.proto.body for node in at.get("html")))


def drawn_at_last(at: AppTest) -> set[str]:
    """Return the charts of a finished run."""
    return {
        node.key
        for node in nodes(at)
        if node.type == "plotly_chart" and node.key.endswith(".final")
    }


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
    text = drawn_text(at)
    assert all(claim.item in text and claim.reason in text for claim in ready.claims)
    assert found(at, BUTTON).label == "Run it"
    assert re.search(r"In the paper, \*\*.+\*\* is lowest with .+ still the lowest", words(at))
    press(at, "page.next")
    assert "**Not reproduced:** " in words(at)


@pytest.mark.parametrize("key", [GENERATED, OTHER])
def test_a_run_shows_the_figure_and_the_lines_and_is_there_at_the_next_visit(key: str) -> None:
    at = open_at(key)
    assert BUTTON in keys(at)
    press(at, BUTTON)
    assert errors(at) == []
    assert BUTTON not in keys(at)
    assert drawn_at_last(at)
    assert "reproduced" in drawn_text(at)
    assert f"dpviz reproduce {key} --quick" in "\n".join(commands(at))
    again = open_at(key)  # Open another session on the same machine.
    assert BUTTON not in keys(again)
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
    button = next(node for node in at.button if node.key == BUTTON)
    assert button.label.startswith("Go on (")
    assert drawn_at_last(at)  # The page shows the finished parts.
    assert "not yet measured" in drawn_text(at)
    ran: list[str] = []
    original = type(item).run

    def counting(self: object, part: object, shared: object, seed: int) -> object:
        ran.append(repr(part))
        return original(self, part, shared, seed)  # type: ignore[arg-type]

    monkeypatch.setattr(type(item), "run", counting)
    press(at, BUTTON)
    assert len(ran) == total - DONE
    assert BUTTON not in keys(at)


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


def test_every_claim_is_a_square_that_opens_it_and_counts_once() -> None:
    at = open_at(OTHER)
    assert errors(at) == []
    text = drawn_text(at)
    for item in experiments().values():
        for statement in item.said:
            assert f"{statement.place}: {statement.says}: " in text
            assert f"papers?v=1&experiment={item.key}&claim={statement.key}" in text
    squares = re.findall(r'<a class="dp-mark dp-m\d( here)?" href="([^"]+)"', text)
    outlines = {address for here, address in squares if here}
    urls = [f"papers?v=1&experiment={OTHER}&claim={said.key}" for said in experiments()[OTHER].said]
    assert outlines == {*urls}
    last = start("papers", **QUICK, experiment=OTHER, claim=experiments()[OTHER].said[-1].key)
    assert (
        re.findall(r'<a class="dp-mark dp-m\d here" href="([^"]+)"', drawn_text(last)) == urls[-1:]
    )
    first_row = drawn_text(last).split("<tbody>")[-1].split("</tr>")[0]
    assert 'class="dp-here"' in first_row
    # The numbers in the answer are the sums of the bars in the chart.
    numbers = [int(number) for number in re.findall(r"\*\*(\d+)\*\*", words(at))[:5]]
    assert numbers[0] == sum(numbers[1:])
    bars = re.findall(r'dp-m(\d)" style="flex:0 0 [\d.]+%" title="[^"]+">(\d+)<', text)
    sums = [sum(int(count) for kind, count in bars if kind == str(place)) for place in range(4)]
    assert sums == numbers[1:]
