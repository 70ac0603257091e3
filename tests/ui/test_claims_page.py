"""The Claims page: the table, audit, exhibits and attacker follow the settings."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.auditing import audit, default_budget, exhibits
from dpviz.core.problem import Relation
from dpviz.mechanisms import all_mechanisms, parse_variant
from pages.ui import board
from tests.ui.driver import (
    QUICK,
    change,
    commands,
    each_part,
    errors,
    found,
    go,
    nodes,
    notices,
    press,
    show,
    start,
)

pytestmark = pytest.mark.long

CHARTS = {
    "support": {"claims.support", "claims.cone"},
    "direction": {"claims.turning"},
    "delta": {"claims.delta"},
    "chain": {"claims.gibbs"},
    "attacker": {"claims.attack", "claims.posterior"},
}
"""Charts by part, and by exhibit if an exhibit has charts."""
POWERS = '"exponentformat":"power"'
GRIDS = {
    "direction": ["The rows of both tables", "The published direction of each release"],
    "code": [
        "Off-diagonal entries of a synthetic table, as read from the release",
        "Mean of the first coordinate squared, by each sampler",
    ],
    "exploring": ["Row recovered from the mean", "Row-norm bound of both tables"],
}
"""Description of each grid for screen readers."""
HEADINGS = {
    "support": "a support that moves with the data",
    "direction": "the direction itself is published",
    "delta": "The true delta of classical Gaussian noise",
    "code": "Found in public code: a mask that mirrors the data",
    "chain": "A Gibbs chain compared with the exact law",
    "exploring": "What exploring does not protect",
}
"""Headings of the parts that the row above the parts describes less fully."""


def shelves(at: AppTest) -> str:
    """Return the shelves of mechanisms as the page sends them."""
    (element,) = [node for node in nodes(at) if node.key == "claims.shelves"]
    return str(json.loads(element.proto.json))


def shelf(at: AppTest, name: str) -> list[str]:
    """Return the keys of the mechanisms on a shelf."""
    sections = re.findall(r'data-shelf="([a-z-]+)">(.*?)</section>', shelves(at), re.DOTALL)
    return re.findall(r'data-opens="(.*?)"', dict(sections).get(name, ""))


def charts(at: AppTest) -> dict[str, Any]:
    """Return the charts of the page by key."""
    return {node.key: node for node in nodes(at) if node.type == "plotly_chart"}


def grids(at: AppTest) -> list[str]:
    """Return the descriptions of grids for screen readers."""
    return [frame.proto.alt for frame in at.dataframe]


def place(part: dict[str, str]) -> str:
    """Return the name of a part, or of the part's exhibit."""
    return part["exhibit"] if part["part"] == "refutations" else part["part"]


def words(at: AppTest) -> str:
    """Return all texts on the page."""
    return "\n".join(box.value for box in [*at.markdown, *at.caption])


def test_every_part_is_drawn_and_nothing_of_the_others() -> None:
    at = start("claims", **QUICK)
    assert re.search(r"^\d of \d\d do not(, \d is not proved)?\.$", words(at), re.MULTILINE)
    parts = []
    for part in each_part(at, "claims"):
        part_here = place(part)
        parts.append(part_here)
        assert errors(at) == []
        assert at.title[0].value.startswith("Do the mechanisms keep")
        assert (found(at, "page.next").label == "All promises") == (part_here != "verdicts")
        assert set(charts(at)) == CHARTS.get(part_here, set())
        # No axis of a chart may have superscripts, because they are too small to read.
        assert not [key for key, chart in charts(at).items() if POWERS in chart.proto.spec]
        assert grids(at) == GRIDS.get(part_here, [])
        assert HEADINGS.get(part_here, "") in "".join(box.value for box in at.header)
        assert len(at.header) == (2 if part_here == "code" else part_here in HEADINGS)
        person = [node for node in nodes(at) if node.key == "claims.person"]
        assert bool(person) == (part_here == "person")
    assert {*CHARTS, *GRIDS, *HEADINGS} | {"verdicts", "audit", "person"} == set(parts)


def test_a_part_travels_in_the_address_and_survives_a_change_of_page() -> None:
    at = start("claims", **QUICK)
    assert "part" not in at.query_params
    show(at, "claims", {"part": "refutations", "exhibit": "chain"})
    go(go(at, "mechanisms"), "claims")
    assert set(charts(at)) == {"claims.gibbs"}
    link = dict(at.query_params)
    assert "refutations" in link["part"]
    assert "chain" in link["exhibit"]
    again = start("claims", **link)
    assert notices(again) == []
    assert set(charts(again)) == {"claims.gibbs"}
    press(again, "page.next")
    assert len(shelf(again, "broken")) == 4


@pytest.mark.parametrize(
    ("link", "drawn"), [("risk", {"claims.attack", "claims.posterior"}), ("recovery", set())]
)
def test_an_answer_of_the_board_opens_its_part(
    monkeypatch: pytest.MonkeyPatch, link: str, drawn: set[str]
) -> None:
    ask = board.asked_page

    def pressed() -> str | None:
        board._on_link()
        return ask()

    monkeypatch.setattr(board, "_message", lambda name: link)
    monkeypatch.setattr(board, "asked_page", pressed)
    at = start(**QUICK, part="audit")
    assert at.title[0].value.startswith("Do the mechanisms keep")
    assert set(charts(at)) == drawn


def test_the_audit_waits_for_its_button_and_says_what_the_core_says() -> None:
    at = start("claims", **QUICK, part="audit")
    change(at, "claims.audit.trials", "1,000")
    change(at, "claims.audit.dimension", 2)
    assert "claims.audit.curve" not in charts(at)
    press(at, "claims.audit.run")
    mechanism = exhibits.moving_cone()
    direct = audit(
        mechanism, default_budget(mechanism, 1.0), d=2, k=1, relation=Relation.REPLACE, trials=1_000
    )
    assert "✗ Refuted: the claim is false" in words(at)
    assert direct.evidence in words(at)
    assert "no number of simulated releases proves a claim" in words(at)
    assert "claims.audit.curve" in charts(at)
    command = [text for text in commands(at) if "dpviz audit" in text]
    assert command == [
        f"python -m dpviz audit {mechanism.key} --epsilon 1 --dimension 2 --trials 1000 --k 1 "
        "--relation replace"
    ]
    # A new question hides the old answer; a return to the old question shows the answer again.
    change(at, "view.epsilon.slider", 2.0)
    assert direct.evidence not in words(at)
    change(at, "view.epsilon.slider", 1.0)
    assert direct.evidence in words(at)


def test_an_audit_that_cannot_run_says_why_in_one_sentence() -> None:
    at = start("claims", **QUICK)
    mechanisms = all_mechanisms()
    (cannot,) = [key for key in shelf(at, "not-judged") if mechanisms[key].info.guarantee != "none"]
    show(at, "claims", {"part": "audit", "exhibit": "support"})
    change(at, "claims.audit.mechanism", all_mechanisms()[cannot].info.label)
    press(at, "claims.audit.run")
    assert len(errors(at)) == 1
    assert "cannot run" in errors(at)[0]


def test_the_attacker_follows_mechanism_prior_and_budget() -> None:
    at = start("claims", **QUICK, part="attacker")
    change(at, "claims.attack.mechanism", parse_variant("wishart_difference").label)
    # The expected value is e/(1 + e), or e/(4 + e) with a prior probability of one fifth.
    assert "becomes at most 73.2\u00a0%" in words(at)
    risk = "Of 100 guesses which of two values a row has, after {}: {}"
    assert risk.format("Wishart difference", "at most 74 right, whatever the mechanism.") in words(
        at
    )
    change(at, "claims.attack.prior", 20)
    assert "A belief of 20\u00a0%" in words(at)
    assert "becomes at most 40.5\u00a0%" in words(at)
    change(at, "claims.attack.mechanism", parse_variant("gaussian").label)
    limit = "after any release at ε 1 without δ: at most 74 right, possibly far fewer"
    # The expected value is Phi(mu/2), with mu = 0.2367 because delta(1) = 1e-6.
    assert risk.format("Gaussian, exact", "55 right, 45 wrong; ") + limit in words(at)
    change(at, "claims.attack.mechanism", exhibits.moving_cone().label)
    assert "No epsilon limits what the release reveals" in words(at)
    assert "Of 100 guesses" not in words(at)
