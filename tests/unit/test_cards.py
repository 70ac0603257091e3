"""Cards of mechanisms: what they say, and how they are filtered and sorted."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest

from dpviz.accounting.accounting import Spent
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.report.sentences.cards import (
    CANNOT_RUN,
    FILTERS,
    GUARANTEES,
    SORTS,
    MechanismCard,
    cards,
    chosen_cards,
)

PROBLEM = Problem(1_797, 61, 2, Relation.REPLACE, Domain.ball(61))
BUDGET = Budget(1.0, 1e-4)


@pytest.fixture(scope="module")
def found() -> list[MechanismCard]:
    return cards(PROBLEM, BUDGET)


def test_there_is_one_card_for_each_mechanism(found: list[MechanismCard]) -> None:
    assert [card.mechanism.key for card in found] == list(all_mechanisms())
    for card in found:
        assert card.guarantee in GUARANTEES.values()
        assert card.account
        assert not card.account.endswith(".")  # the page ends the sentence
        assert card.mechanism.info.advice
        for line in card.statuses:
            assert line.evidence.endswith(".")


def test_a_card_says_what_holds_under_each_relation(found: list[MechanismCard]) -> None:
    by_key = {card.mechanism.key: card for card in found}
    gauss = by_key["analyze_gauss"]
    assert gauss.status.verdict is Verdict.OUT_OF_SCOPE
    assert [line.relation for line in gauss.statuses] == ["replace", "zero-out"]
    assert gauss.statuses[0].words == "fails outside its scope"
    assert gauss.statuses[1].words != "fails outside its scope"
    exact = by_key["gaussian"]
    assert len(exact.statuses) in (1, 2)
    assert exact.spent is not None
    assert exact.spent.epsilon == pytest.approx(1, rel=1e-6)
    assert by_key["wishart"].spent is None
    assert "no epsilon is known" in by_key["wishart"].account or "no claim" in (
        by_key["wishart"].account
    )


def test_a_card_accounts_once_under_each_relation(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[str, Relation]] = Counter()
    mechanism = all_mechanisms()["gaussian"]
    spent = mechanism.spent

    def counted(self: Mechanism, problem: Problem, budget: Budget) -> Spent | None:
        asked[self.key, problem.relation] += 1
        return spent(self, problem, budget)  # type: ignore[arg-type]

    monkeypatch.setattr(mechanism, "spent", counted)
    cards(PROBLEM, BUDGET)
    assert asked == {("gaussian", relation): 1 for relation in Relation}


def test_a_promise_that_is_not_proved_is_not_called_false() -> None:
    problem = Problem(1_000, 3, 1, Relation.REPLACE, Domain.ball(3))
    (card,) = [c for c in cards(problem, Budget(3.0, 1e-9)) if c.mechanism.key == "noisy_power"]
    assert card.status is not None
    assert card.status.verdict is Verdict.UNPROVEN
    line = card.statuses[0]
    assert (line.mark, line.words) == ("?", "not proved for this release")
    assert "proves nothing of the last frame" in line.evidence


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
def test_each_filter_divides_the_cards(found: list[MechanismCard], name: str) -> None:
    groups = [chosen_cards(found, {name: value}, "kind") for value in FILTERS[name]]
    keys = [card.mechanism.key for group in groups for card in group]
    assert sorted(keys) == sorted(all_mechanisms())


def test_filters_combine(found: list[MechanismCard]) -> None:
    picked = {"guarantee": "pure epsilon", "release": "matrix", "semi-definite": "not always"}
    keys = {card.mechanism.key for card in chosen_cards(found, picked, "kind")}
    assert {"laplace", "wishart_difference", "directional_wishart_difference"} <= keys
    assert "wishart" not in keys
    assert chosen_cards(found, {"release": "subspace", "semi-definite": "always"}, "name") == []


def test_sorts(found: list[MechanismCard]) -> None:
    assert [card.mechanism.key for card in chosen_cards(found, {}, "kind")] == list(
        all_mechanisms()
    )
    names = [card.mechanism.info.label.lower() for card in chosen_cards(found, {}, "name")]
    assert names == sorted(names)
    spends = [
        (float(f"{card.spent.epsilon:.3g}") if card.spent else math.inf, card.mechanism.info.order)
        for card in chosen_cards(found, {}, "spent epsilon")
    ]
    # of those that read alike the order is that of their kinds
    assert all(first < second for first, second in pairwise(spends))
    assert spends[0] < (1, 0)
    assert set(SORTS) == {"kind", "name", "spent epsilon"}
