"""Cards of mechanisms: what they say, and how they are filtered and sorted."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from dpviz.cards import CANNOT_RUN, FILTERS, GUARANTEES, SORTS, Card, cards, chosen_cards
from dpviz.mechanisms import all_mechanisms
from dpviz.problem import Budget, Domain, Problem, Relation
from dpviz.release import Verdict

PROBLEM = Problem(1_797, 61, 2, Relation.REPLACE, Domain.ball(61))
BUDGET = Budget(1.0, 1e-4)


@pytest.fixture(scope="module")
def found() -> list[Card]:
    return cards(PROBLEM, BUDGET)


def test_there_is_one_card_for_each_mechanism(found: list[Card]) -> None:
    assert [card.mechanism.key for card in found] == list(all_mechanisms())
    for card in found:
        assert card.guarantee in GUARANTEES.values()
        assert card.account
        assert not card.account.endswith(".")  # the page ends the sentence
        assert card.mechanism.info.advice
        for line in card.statuses:
            assert line.evidence.endswith(".")


def test_a_card_says_what_holds_under_each_relation(found: list[Card]) -> None:
    by_key = {card.mechanism.key: card for card in found}
    gauss = by_key["analyze_gauss"]
    assert gauss.status.verdict is Verdict.REFUTED
    assert [line.relation for line in gauss.statuses] == ["replace", "zero-out"]
    assert gauss.statuses[0].words == "claim is false"
    assert gauss.statuses[1].words != "claim is false"
    exact = by_key["gaussian"]
    assert len(exact.statuses) in (1, 2)
    assert exact.spent is not None
    assert exact.spent.epsilon == pytest.approx(1, rel=1e-6)
    assert by_key["wishart"].spent is None
    assert "no epsilon is known" in by_key["wishart"].account or "no claim" in (
        by_key["wishart"].account
    )


def test_what_cannot_run_says_so_and_spends_nothing() -> None:
    pure = cards(PROBLEM, Budget(1.0))
    blocked = [card for card in pure if card.account.startswith("cannot run here")]
    assert {card.mechanism.info.guarantee for card in blocked} >= {"approximate"}
    for card in blocked:
        assert card.spent is None
        assert card.status is None
        assert card.statuses[0].words == CANNOT_RUN
    keys = {card.mechanism.key for card in blocked}
    assert {c.mechanism.key for c in chosen_cards(pure, {"status": CANNOT_RUN}, "name")} == keys
    assert "wishart_difference" not in keys


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_divides_the_cards(found: list[Card], name: str) -> None:
    groups = [chosen_cards(found, {name: value}, "kind") for value in FILTERS[name]]
    keys = [card.mechanism.key for group in groups for card in group]
    assert sorted(keys) == sorted(all_mechanisms())


def test_filters_combine(found: list[Card]) -> None:
    picked = {"guarantee": "pure", "release": "matrix", "semi-definite": "not always"}
    keys = {card.mechanism.key for card in chosen_cards(found, picked, "kind")}
    assert {"laplace", "wishart_difference", "directional_wishart_difference"} <= keys
    assert "wishart" not in keys
    assert chosen_cards(found, {"release": "subspace", "semi-definite": "always"}, "name") == []


def test_sorts(found: list[Card]) -> None:
    assert [card.mechanism.key for card in chosen_cards(found, {}, "kind")] == list(
        all_mechanisms()
    )
    names = [card.mechanism.info.label.lower() for card in chosen_cards(found, {}, "name")]
    assert names == sorted(names)
    spends = [
        card.spent.epsilon if card.spent else math.inf
        for card in chosen_cards(found, {}, "spent epsilon")
    ]
    assert all(first <= second for first, second in pairwise(spends))
    assert spends[0] < 1
    assert set(SORTS) == {"kind", "name", "spent epsilon"}
