"""What a card says of a mechanism, and how cards are filtered and sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dpviz.accounting.accounting import Spent
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import VERDICT_WORDS, Aim, Status
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._weighing import can_weigh
from dpviz.report.sentences.phrases import account_words

GUARANTEES = {
    "pure": "pure epsilon",
    "approximate": "epsilon and delta",
    "none": "no guarantee",
}

CANNOT_RUN = "cannot run here"


@dataclass(frozen=True)
class StatusLine:
    """A verdict under one or both relations."""

    relation: str
    mark: str
    words: str
    evidence: str


@dataclass(frozen=True)
class MechanismCard:
    """One mechanism in one setting.

    Attributes
    ----------
    mechanism : Mechanism
        With default parameters.
    budget : Budget
    status : Status or None
        Under the relation of the setting; None where it cannot run.
    spent : Spent or None
    statuses : tuple of StatusLine
        Under every relation; one line where they agree.
    account : str
        Claimed beside spent, or why it cannot run.
    aim : str
        What it aims at in this setting, where that is not the components of A; else empty.
    """

    mechanism: Mechanism
    budget: Budget
    status: Status | None
    spent: Spent | None
    statuses: tuple[StatusLine, ...]
    account: str
    aim: str

    @property
    def guarantee(self) -> str:
        """The kind of guarantee, in words."""
        return GUARANTEES[self.mechanism.info.guarantee]

    @property
    def spends(self) -> str:
        """The epsilon of a release; a dash where none is known."""
        if self.spent is None or math.isinf(self.spent.epsilon):
            return "–"
        return f"{'' if self.spent.exact else '≤ '}{numeral(self.spent.epsilon, 3)}"

    @property
    def free(self) -> str:
        """What post-processing can gain of its releases at no epsilon; empty where nothing."""
        gains = [
            words
            for gained, words in (
                (can_weigh(self.mechanism), "features can be weighed"),
                (self.mechanism.info.release == "matrix", "variances mended"),
            )
            if gained and self.mechanism.info.guarantee != "none"
        ]
        return f"free: {', '.join(gains)}" if gains else ""

    @property
    def psd(self) -> str:
        """Said of matrices that are always positive semi-definite."""
        return " · never a negative eigenvalue" if self.mechanism.info.psd else ""


def cards(problem: Problem, budget: Budget) -> list[MechanismCard]:
    """Return the card of every mechanism in one setting."""
    return [_card(cls(), problem, budget) for cls in all_mechanisms().values()]


def _card(mechanism: Mechanism, problem: Problem, budget: Budget) -> MechanismCard:
    spent: Spent | None = None
    found: dict[Relation, Status | str] = {}
    for relation in Relation:
        there = replace(problem, relation=relation)
        reason = mechanism.why_not(there, budget)
        if reason is not None:
            found[relation] = reason
            continue
        account = mechanism.spent(there, budget)
        found[relation] = mechanism.judged(there, budget, account)
        # verdicts are told under both relations, what is spent under the setting's alone
        if relation is problem.relation:
            spent = account
    here = found[problem.relation]
    if isinstance(here, str):
        return MechanismCard(
            mechanism, budget, None, None, _lines(found), f"cannot run here: {here}", ""
        )
    words = account_words(mechanism.claim(problem, budget), spent)
    aim = mechanism.aims_at(problem, budget)
    # components are what this page is about; an aim is said where it is another
    own = "" if aim is Aim.COMPONENTS else f"aims at {aim}"
    return MechanismCard(mechanism, budget, here, spent, _lines(found), words, own)


def _lines(found: Mapping[Relation, Status | str]) -> tuple[StatusLine, ...]:
    """Return one line for each relation, or one for both where they say the same."""
    lines = [_line(str(relation), status) for relation, status in found.items()]
    # most claims are judged alike under both, and a card has room for few lines
    if len(set(found.values())) == 1:
        return (replace(lines[0], relation="both relations"),)
    return tuple(lines)


def _line(relation: str, status: Status | str) -> StatusLine:
    if isinstance(status, str):
        return StatusLine(relation, "–", CANNOT_RUN, f"{status}.")
    return StatusLine(relation, status.mark, status.words, status.evidence)


# in the words of the rows that they pick
FILTERS: dict[str, tuple[str, ...]] = {
    "guarantee": tuple(GUARANTEES.values()),
    "release": ("matrix", "subspace", "data"),
    "semi-definite": ("always", "not always"),
    "status": (*VERDICT_WORDS.values(), CANNOT_RUN),
}

_PROPERTIES: dict[str, Callable[[MechanismCard], str]] = {
    "guarantee": lambda card: card.guarantee,
    "release": lambda card: card.mechanism.info.release,
    "semi-definite": lambda card: "always" if card.mechanism.info.psd else "not always",
    "status": lambda card: CANNOT_RUN if card.status is None else card.status.words,
}

SORTS: dict[str, Callable[[MechanismCard], tuple[float, str]]] = {
    "kind": lambda card: (card.mechanism.info.order, ""),
    "name": lambda card: (0, card.mechanism.info.label.lower()),
    # by the digits that are shown: what an account's last one is orders nothing
    "spent epsilon": lambda card: (
        float(f"{card.spent.epsilon:.3g}") if card.spent else math.inf,
        "",
    ),
}


def chosen_cards(
    found: Sequence[MechanismCard], picked: Mapping[str, str], order: str
) -> list[MechanismCard]:
    """Return the cards that have every picked property, in an order of `SORTS`."""
    kept = [
        card
        for card in found
        if all(_PROPERTIES[name](card) == value for name, value in picked.items())
    ]
    return sorted(kept, key=SORTS[order])
