"""What a card says of a mechanism, and how cards are filtered and sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.narrative import account_words
from dpviz.privacy.accounting import Spent
from dpviz.problem import Budget, Problem, Relation
from dpviz.release import VERDICT_MARKS, VERDICT_WORDS, Status, Verdict

GUARANTEES = {
    "pure": "pure epsilon",
    "approximate": "epsilon and delta",
    "none": "no guarantee",
}


@dataclass(frozen=True)
class StatusLine:
    """A verdict under one or both relations."""

    relation: str
    mark: str
    words: str
    evidence: str


@dataclass(frozen=True)
class Card:
    """One mechanism in one setting.

    Attributes
    ----------
    mechanism : Mechanism
        With default parameters.
    budget : Budget
    status : Status
        Under the relation of the setting.
    spent : Spent or None
    statuses : tuple of StatusLine
        Under every relation; one line where they agree.
    account : str
        Claimed beside spent, or why it cannot run.
    """

    mechanism: Mechanism
    budget: Budget
    status: Status
    spent: Spent | None
    statuses: tuple[StatusLine, ...]
    account: str

    @property
    def guarantee(self) -> str:
        """The kind of guarantee, in words."""
        return GUARANTEES[self.mechanism.info.guarantee]

    @property
    def psd(self) -> str:
        """Said of matrices that are always positive semi-definite."""
        return " · never a negative eigenvalue" if self.mechanism.info.psd else ""


def cards(problem: Problem, budget: Budget) -> list[Card]:
    """Return the card of every mechanism in one setting."""
    return [_card(cls(), problem, budget) for cls in all_mechanisms().values()]


def _card(mechanism: Mechanism, problem: Problem, budget: Budget) -> Card:
    reason = mechanism.unable(problem, budget)
    statuses = {
        relation: mechanism.status(replace(problem, relation=relation), budget)
        for relation in Relation
    }
    spent = None if reason else mechanism.spent(problem, budget)
    words = (
        f"cannot run here: {reason}"
        if reason
        else account_words(mechanism.claim(problem, budget), spent)
    )
    return Card(
        mechanism,
        budget,
        statuses[problem.relation],
        spent,
        _lines(statuses),
        words,
    )


def _lines(statuses: Mapping[Relation, Status]) -> tuple[StatusLine, ...]:
    """Return one line for each relation, or one for both where they say the same."""
    found = list(statuses.items())
    if len({status for _, status in found}) == 1:
        found = [(found[0][0], found[0][1])]
        names = ["both relations"]
    else:
        names = [str(relation) for relation, _ in found]
    return tuple(
        StatusLine(
            name, VERDICT_MARKS[status.verdict], VERDICT_WORDS[status.verdict], status.evidence
        )
        for name, (_, status) in zip(names, found, strict=True)
    )


FILTERS: dict[str, tuple[str, ...]] = {
    "guarantee": tuple(GUARANTEES),
    "release": ("matrix", "subspace", "data"),
    "semi-definite": ("always", "not always"),
    "status": tuple(str(verdict) for verdict in Verdict),
}

_PROPERTIES: dict[str, Callable[[Card], str]] = {
    "guarantee": lambda card: card.mechanism.info.guarantee,
    "release": lambda card: card.mechanism.info.release,
    "semi-definite": lambda card: "always" if card.mechanism.info.psd else "not always",
    "status": lambda card: str(card.status.verdict),
}

SORTS: dict[str, Callable[[Card], tuple[float, str]]] = {
    "kind": lambda card: (card.mechanism.info.slot, ""),
    "name": lambda card: (0, card.mechanism.info.label.lower()),
    "spent epsilon": lambda card: (card.spent.epsilon if card.spent else math.inf, ""),
}


def chosen_cards(found: Sequence[Card], picked: Mapping[str, str], order: str) -> list[Card]:
    """Return the cards that have every picked property, in an order of `SORTS`."""
    kept = [
        card
        for card in found
        if all(_PROPERTIES[name](card) == value for name, value in picked.items())
    ]
    return sorted(kept, key=SORTS[order])
