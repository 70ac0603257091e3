"""What a card says of a mechanism, and how cards are grouped, asked and sorted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dpviz.accounting.accounting import Spent
from dpviz.core.number_text import percent
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Aim, Status, Verdict
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._weighing import Weighing
from dpviz.report.sentences.phrases import account_words

GUARANTEES = {
    "pure": "pure epsilon",
    "approximate": "epsilon and delta",
    "none": "no guarantee",
}

CANNOT_RUN, NO_PROMISE = "cannot run here", "No promise: to compare with"


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
        return self.spent.cost.brief

    @property
    def free(self) -> str:
        """What post-processing can gain of its releases at no epsilon; empty where nothing."""
        gains = [
            words
            for gained, words in (
                (isinstance(self.mechanism, Weighing), "features can be weighed"),
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


GROUPS = {
    "The promise holds": 5,
    "The promise holds, but with more noise than needed": 2,
    "The promise fails or is unproven": 99,
    NO_PROMISE: 0,
    CANNOT_RUN.capitalize(): 0,
}
"""Headings of the list, and how many rows each shows before it is unfolded."""

MUCH = 0.8
QUESTIONS: dict[str, Callable[[MechanismCard, float], bool]] = {
    "Promise holds": lambda card, kept: group_of(card) == "The promise holds",
    "No delta": lambda card, kept: card.mechanism.info.guarantee == "pure",
    "Releases a matrix": lambda card, kept: card.mechanism.info.release == "matrix",
    "Releases directions": lambda card, kept: card.mechanism.info.release == "subspace",
    "Releases a table": lambda card, kept: card.mechanism.info.release == "data",
    f"Keeps {percent(MUCH)} or more": lambda card, kept: kept >= MUCH,
}
"""What may be asked of a mechanism, given the share of the structure that it keeps."""


def group_of(card: MechanismCard) -> str:
    """Return the heading under which a mechanism is listed."""
    holds, loose, fails, none, cannot = GROUPS
    if card.status is None:
        return cannot
    verdict = card.status.verdict
    if verdict.fails:
        return fails
    if not verdict.counts:
        return none
    return loose if verdict is Verdict.LOOSE else holds


def answering(
    found: Sequence[MechanismCard], kept: Mapping[str, float], asked: Sequence[str]
) -> list[MechanismCard]:
    """Return the cards that answer every question asked, those that keep most first.

    Parameters
    ----------
    found : sequence of MechanismCard
    kept : mapping of str to float
        Mean recovery by key; a mechanism that has not run has none.
    asked : sequence of str
        Of `QUESTIONS`.
    """

    def share(card: MechanismCard) -> float:
        return kept.get(card.mechanism.key, -math.inf)

    chosen = [card for card in found if all(QUESTIONS[one](card, share(card)) for one in asked)]
    return sorted(chosen, key=lambda card: (-share(card), card.mechanism.info.order))


def best_of(
    found: Sequence[MechanismCard], kept: Mapping[str, float], *, pure: bool = False
) -> MechanismCard | None:
    """Return the card that keeps most among those whose promise holds, if one has run."""
    holding = [card for card in found if card.status is not None and card.status.verdict.counts]
    ran = [card for card in answering(holding, kept, ["No delta"] * pure)]
    return ran[0] if ran and ran[0].mechanism.key in kept else None


def answer(found: Sequence[MechanismCard], kept: Mapping[str, float]) -> str:
    """Return which mechanism keeps most among those whose promise holds, with and without delta."""
    best, pure = best_of(found, kept), best_of(found, kept, pure=True)
    if best is None:
        return "No mechanism whose promise holds can run here."
    said = f"**{best.mechanism.info.label}** keeps most: **{percent(kept[best.mechanism.key])}**."
    if pure is not None and pure is not best:
        share = percent(kept[pure.mechanism.key])
        said += f" With no delta, **{pure.mechanism.info.label}** keeps **{share}**."
    kinds = Counter(map(group_of, found))
    holds, loose, fails, *_ = (kinds[name] for name in GROUPS)
    return f"{said} {holds + loose} of {holds + loose + fails} promises hold."
