"""The Claims page: the table, the audit, the exhibits and the attacker follow the setting."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.auditing import audit, default_budget, exhibits
from dpviz.auditing.table import claims_now
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.report.figures.shelves import shelves_html
from pages.ui import board
from tests.ui.driver import (
    QUICK,
    change,
    commands,
    each_part,
    errors,
    go,
    keys,
    nodes,
    notices,
    press,
    show,
    shown_value,
    start,
)

CHARTS = {
    "support": {"claims.support", "claims.cone"},
    "direction": {"claims.turning"},
    "delta": {"claims.delta"},
    "chain": {"claims.gibbs"},
    "attacker": {"claims.attack", "claims.posterior"},
}
"""Charts of each part and exhibit that has any."""
POWERS = '"exponentformat":"power"'
GRIDS = {
    "direction": ["The rows of both tables", "The published direction of each draw"],
    "code": [
        "Off-diagonal entries of a made-up table, as read off the release",
        "Mean of the first coordinate squared, by each sampler",
    ],
    "exploring": ["Row recovered from the mean", "Row bound of both tables"],
}
"""What each grid says to a screen reader."""
HEADINGS = {
    "support": "a support that moves with the data",
    "direction": "the direction itself is published",
    "delta": "The true delta of classical Gaussian noise",
    "code": "Found in public code: a mask that mirrors the data",
    "chain": "A Gibbs chain beside the exact law",
    "exploring": "What exploring does not protect",
}
"""How a part begins of which the row that chooses it says less."""


def shelves(at: AppTest) -> str:
    """Return the shelves as they are sent."""
    (sent,) = [node for node in nodes(at) if node.key == "claims.shelves"]
    return str(json.loads(sent.proto.json))


def shelf(at: AppTest, name: str) -> list[str]:
    """Return the keys of what stands on a shelf."""
    drawn = re.findall(r'data-shelf="([a-z-]+)">(.*?)</section>', shelves(at), re.DOTALL)
    return re.findall(r'data-opens="(.*?)"', dict(drawn).get(name, ""))


def leads(at: AppTest, key: str) -> list[dict[str, str]]:
    """Return what the evidence of a mechanism leads to."""
    evidence = shelves(at).split(f'id="claim-{key}"')[1].split("dp-evidence")[0]
    return [
        dict(re.findall(r'data-(\w+)="(.*?)"', tag)) for tag in re.findall("<button .*?>", evidence)
        if "dp-go" in tag
    ]  # fmt: skip


def charts(at: AppTest) -> dict[str, Any]:
    """Return the charts by key."""
    return {node.key: node for node in nodes(at) if node.type == "plotly_chart"}


def grids(at: AppTest) -> list[str]:
    """Return what each grid says to a screen reader."""
    return [frame.proto.alt for frame in at.dataframe]


def place(part: dict[str, str]) -> str:
    """Return the name of a part, or of the exhibit in it."""
    return part["exhibit"] if part["part"] == "refutations" else part["part"]


def words(at: AppTest) -> str:
    """Return everything written on the page."""
    return "\n".join(box.value for box in [*at.markdown, *at.caption])


def test_every_part_is_drawn_and_nothing_of_the_others() -> None:
    at = start("claims", **QUICK)
    said = at.title[0].value
    assert re.fullmatch(r"Which promises hold\? \d of \d\d do not(, \d is not proved)?\.", said)
    seen = []
    for part in each_part(at, "claims"):
        shown = place(part)
        seen.append(shown)
        assert errors(at) == []
        assert at.title[0].value == said  # stands above every part
        assert ("claims.back" in keys(at)) == (shown != "verdicts")
        assert set(charts(at)) == CHARTS.get(shown, set())
        # superscripts of an axis are too small to read
        assert not [key for key, chart in charts(at).items() if POWERS in chart.proto.spec]
        assert grids(at) == GRIDS.get(shown, [])
        assert HEADINGS.get(shown, "") in "".join(box.value for box in at.header)
        assert len(at.header) == (2 if shown == "code" else shown in HEADINGS)
        person = [node for node in nodes(at) if node.key == "claims.person"]
        assert bool(person) == (shown == "person")
    assert {*CHARTS, *GRIDS, *HEADINGS} | {"verdicts", "audit", "person"} == set(seen)


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
    press(again, "claims.back")
    assert len(shelf(again, "broken")) == 4


def test_a_part_that_is_not_there_is_said_and_the_verdicts_are_shown() -> None:
    at = start("claims", **QUICK, part="#nonsense", exhibit="<img>")
    assert [said.split(" must be one of ")[0] for said in notices(at)] == [
        "In the link, part", "In the link, exhibit",
    ]  # fmt: skip
    assert shelf(at, "hold")


@pytest.mark.parametrize(
    ("link", "drawn"), [("risk", {"claims.attack", "claims.posterior"}), ("recovery", set())]
)
def test_an_answer_of_the_board_opens_its_part(
    monkeypatch: pytest.MonkeyPatch, link: str, drawn: set[str]
) -> None:
    ask = board.asked_page

    def pressed() -> str | None:
        board._linked()
        return ask()

    monkeypatch.setattr(board, "_sent", lambda name: link)
    monkeypatch.setattr(board, "asked_page", pressed)
    at = start(**QUICK, part="audit")
    assert at.title[0].value.startswith("Which promises hold?")
    assert set(charts(at)) == drawn


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("refutations", "claims.d", 7),
        ("audit", "claims.audit.dimension", 7),
        ("audit", "claims.audit.trials", "1,000"),
        ("attacker", "claims.attack.prior", 20),
    ],
)
def test_what_a_part_holds_survives_the_others(part: str, key: str, value: object) -> None:
    at = start("claims", **QUICK)
    chosen = {"part": part, "exhibit": "support"}
    show(at, "claims", chosen)
    change(at, key, value)
    show(at, "claims", chosen | {"part": "person"})
    assert key not in keys(at)
    show(at, "claims", chosen)
    assert shown_value(at, key) == value
    assert errors(at) == []


def test_every_mechanism_stands_on_one_shelf_with_its_evidence_and_where_it_leads() -> None:
    at = start("claims", **QUICK)
    names = ("hold", "spend-less", "broken", "not-judged")
    stand = [key for name in names for key in shelf(at, name)]
    assert sorted(stand) == sorted(all_mechanisms())
    problem, budget = Problem(150, 4, 2, Relation.REPLACE, Domain.ball(4)), Budget(1.0, 4e-5)
    assert shelf(at, "broken") == [
        row["key"] for row in claims_now(problem, budget).to_dict("records")
        if row["verdict"] and Verdict(row["verdict"]).fails
    ]  # fmt: skip
    assert shelves(at).count("<svg") == len(shelf(at, "broken"))
    open_ = sum(row == Verdict.UNPROVEN for row in claims_now(problem, budget)["verdict"])
    assert open_  # nothing known breaks it, so it is not said to be broken
    assert f" {len(shelf(at, 'broken')) - open_} of " in at.title[0].value
    assert at.title[0].value.endswith(f"do not, {open_} is not proved.")
    assert "broken<small>or not proved here" in shelves(at)
    for key in all_mechanisms():
        assert {"part": "audit", "mechanism": key} in leads(at, key)
    broken = exhibits.moving_cone().key
    assert {"part": "refutations", "exhibit": "support"} in leads(at, broken)
    assert at.session_state["claims"]["part"] == "verdicts"


def test_names_on_the_line_of_spending_lie_beside_each_other() -> None:
    problem = Problem(1797, 61, 2, Relation.REPLACE, Domain.ball(61))
    for epsilon in (0.05, 1.0):
        claims = claims_now(problem, Budget(epsilon, 0.01 if epsilon < 1 else 3e-7))
        html = shelves_html(claims, {}, {})
        places = re.findall(r'class="dp-pin"[^>]*data-level="(\d)" style="--x: ([\d.]+);', html)
        less = (claims["verdict"] == Verdict.LOOSE).sum()
        assert len(places) + html.count("<small>spends 0</small>") == less
        assert len(set(places)) == len(places) > 0


def test_the_shelves_follow_the_relation_in_the_sidebar() -> None:
    at = start("claims", table="digits", trials="5")
    assert "analyze_gauss" in shelf(at, "broken")
    assert "4.6e-6, promised 3e-7" in shelves(at)
    change(at, "view.relation", "zero out one person")
    assert "analyze_gauss" not in shelf(at, "broken")
    assert "One row zeroed" in words(at)


@pytest.mark.parametrize(
    "query", [{"delta": "0"}, {"epsilon": "0.0001"}, {"epsilon": "1000000"}, {"k": "4"},
              {"domain": "box"}, {"delta": "1e-300"}]
)  # fmt: skip
def test_extreme_settings_are_drawn(query: dict[str, str]) -> None:
    at = start("claims", **(QUICK | query))
    for part in each_part(at, "claims"):
        assert errors(at) == [], part
        assert set(charts(at)) == CHARTS.get(place(part), set())


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
    assert "cannot see" in words(at)
    assert "claims.audit.curve" in charts(at)
    command = [text for text in commands(at) if "dpviz audit" in text]
    assert command == [
        f"python -m dpviz audit {mechanism.key} --epsilon 1 --dimension 2 --trials 1000 --k 1 "
        "--relation replace"
    ]
    # Another question: the old answer goes, and comes back with its question.
    change(at, "view.epsilon.slider", 2.0)
    assert direct.evidence not in words(at)
    change(at, "view.epsilon.slider", 1.0)
    assert direct.evidence in words(at)


def test_an_audit_that_cannot_run_says_why_in_one_sentence() -> None:
    at = start("claims", **QUICK)
    known = all_mechanisms()
    (cannot,) = [key for key in shelf(at, "not-judged") if known[key].info.guarantee != "none"]
    show(at, "claims", {"part": "audit", "exhibit": "support"})
    change(at, "claims.audit.mechanism", all_mechanisms()[cannot].info.label)
    press(at, "claims.audit.run")
    assert len(errors(at)) == 1
    assert "cannot run" in errors(at)[0]


def test_the_exhibits_follow_the_one_epsilon() -> None:
    at = start("claims", **QUICK, part="refutations")
    assert "At a claimed epsilon of 1 and d = 5" in words(at)
    assert "exactly 28.3\u00a0% in every dimension" in words(at)
    change(at, "view.epsilon.slider", 2.0)
    change(at, "claims.d", 12)
    assert "At a claimed epsilon of 2 and d = 12" in words(at)
    assert "exactly 48.7\u00a0% in every dimension" in words(at)
    show(at, "claims", {"part": "refutations", "exhibit": "direction"})
    assert [key for key in keys(at) if "epsilon" in key] == [
        "view.epsilon.slider", "view.epsilon.box",
    ]  # fmt: skip
    assert "turns the published direction by 90 degrees, the same in every draw" in words(at)


def test_the_attacker_follows_mechanism_prior_and_budget() -> None:
    at = start("claims", **QUICK, part="attacker")
    change(at, "claims.attack.mechanism", parse_variant("wishart_difference").label)
    # e/(1 + e), and with a prior of a fifth e/(4 + e)
    assert "becomes at most 73.2\u00a0%" in words(at)
    risk = "Of 100 guesses who is in, after {}: {}"  # in the words of Explore
    assert risk.format("Wishart difference", "73 right, 27 wrong.") in words(at)
    change(at, "claims.attack.prior", 20)
    assert "A belief of 20\u00a0%" in words(at)
    assert "becomes at most 40.5\u00a0%" in words(at)
    change(at, "claims.attack.mechanism", parse_variant("gaussian").label)
    limit = "after anything at ε 1 without δ at most 73 right"
    # Phi(mu/2) where delta(1) = 1e-6: mu = 0.2367
    assert risk.format("Gaussian, exact", "55 right, 45 wrong; ") + limit in words(at)
    change(at, "claims.attack.mechanism", exhibits.moving_cone().label)
    assert "no epsilon limits what it gives away" in words(at)
    assert "Of 100 guesses" not in words(at)


def test_leaks_and_the_list_of_what_is_public_are_shown() -> None:
    at = start("claims", **QUICK, part="exploring")
    tables = [frame.value for frame in at.dataframe if "recovered" in frame.value.columns]
    assert tables[0]["recovered"].tolist() == pytest.approx(tables[0]["true"].tolist())
    assert "the row bound R" in words(at)
    # Without a table of one's own there is nothing to list, and the examples stay.
    at = start("claims", table="upload", part="exploring")
    assert any("recovered" in frame.value.columns for frame in at.dataframe)
    assert "the row bound R" not in words(at)
