"""Cards that describe mechanisms, and how they are grouped, filtered and sorted."""

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

CANNOT_RUN, NO_PROMISE = "cannot run here", "No promise: for comparison only"


@dataclass(frozen=True)
class StatusLine:
    """A verdict under one neighbouring relation or both."""

    relation: str
    mark: str
    words: str
    evidence: str


@dataclass(frozen=True)
class MechanismCard:
    """A card on one mechanism in one setting.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism with its default parameters.
    budget : Budget
    status : Status or None
        Status under the setting's neighbouring relation; None if the mechanism cannot run.
    spent : Spent or None
    statuses : tuple of StatusLine
        Status under every neighbouring relation, in one line if all agree.
    account : str
        Claimed and actual privacy loss, or the reason why the mechanism cannot run.
    aim : str
        Aim of the mechanism in this setting; empty if it aims at the components of A.
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
        """The actual epsilon of a release, or a dash if no epsilon is known."""
        if self.spent is None or math.isinf(self.spent.epsilon):
            return "–"
        return self.spent.cost.brief

    @property
    def free(self) -> str:
        """Gains from post-processing a release, which cost no budget; empty if there are none."""
        gains = [
            words
            for applies, words in (
                (isinstance(self.mechanism, Weighing), "features can be weighted"),
                (self.mechanism.info.release == "matrix", "variances corrected"),
            )
            if applies and self.mechanism.info.guarantee != "none"
        ]
        return f"free: {', '.join(gains)}" if gains else ""

    @property
    def psd(self) -> str:
        """A note on matrices that are always positive semi-definite."""
        return " · eigenvalues are never negative" if self.mechanism.info.psd else ""


def cards(problem: Problem, budget: Budget) -> list[MechanismCard]:
    """Return the cards of all mechanisms in one setting."""
    return [_card(cls(), problem, budget) for cls in all_mechanisms().values()]


def _card(mechanism: Mechanism, problem: Problem, budget: Budget) -> MechanismCard:
    loss: Spent | None = None
    statuses: dict[Relation, Status | str] = {}
    for relation in Relation:
        there = replace(problem, relation=relation)
        reason = mechanism.why_not(there, budget)
        if reason is not None:
            statuses[relation] = reason
            continue
        account = mechanism.spent(there, budget)
        statuses[relation] = mechanism.judged(there, budget, account)
        # Show verdicts under both neighbouring relations, but the loss only under the setting's.
        if relation is problem.relation:
            loss = account
    here = statuses[problem.relation]
    if isinstance(here, str):
        return MechanismCard(
            mechanism, budget, None, None, _lines(statuses), f"cannot run here: {here}", ""
        )
    words = account_words(mechanism.claim(problem, budget), loss)
    aim = mechanism.aims_at(problem, budget)
    # The page is about components, so name the aim of a mechanism only if it is not components.
    own = "" if aim is Aim.COMPONENTS else f"aims at {aim}"
    return MechanismCard(mechanism, budget, here, loss, _lines(statuses), words, own)


def _lines(statuses: Mapping[Relation, Status | str]) -> tuple[StatusLine, ...]:
    """Return one line for each neighbouring relation, or one line for both if they agree."""
    lines = [_line(str(relation), status) for relation, status in statuses.items()]
    # Most verdicts agree under both relations, and a card has space for few lines.
    if len(set(statuses.values())) == 1:
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
"""Headings of the list, and how many rows each heading shows before a user unfolds it."""

MUCH = 0.8
QUESTIONS: dict[str, Callable[[MechanismCard, float], bool]] = {
    "Promise holds": lambda card, share: group_of(card) == "The promise holds",
    "No delta": lambda card, share: card.mechanism.info.guarantee == "pure",
    "Releases a matrix": lambda card, share: card.mechanism.info.release == "matrix",
    "Releases directions": lambda card, share: card.mechanism.info.release == "subspace",
    "Releases a table": lambda card, share: card.mechanism.info.release == "data",
    f"Keeps {percent(MUCH)} or more": lambda card, share: share >= MUCH,
}
"""Filters for mechanisms, given the card and the recovery of a mechanism."""


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
    cards: Sequence[MechanismCard], shares: Mapping[str, float], questions: Sequence[str]
) -> list[MechanismCard]:
    """Return the cards that pass every chosen filter, sorted by recovery, the highest first.

    Parameters
    ----------
    cards : sequence of MechanismCard
    shares : mapping of str to float
        Mean recovery by mechanism key; mechanisms that have not run are absent.
    questions : sequence of str
        Keys of `QUESTIONS`.
    """

    def share(card: MechanismCard) -> float:
        return shares.get(card.mechanism.key, -math.inf)

    hits = [card for card in cards if all(QUESTIONS[one](card, share(card)) for one in questions)]
    return sorted(hits, key=lambda card: (-share(card), card.mechanism.info.order))


def best_of(
    cards: Sequence[MechanismCard], shares: Mapping[str, float], *, pure: bool = False
) -> MechanismCard | None:
    """Return the card with the highest recovery among promises that hold, or None."""
    holding = [card for card in cards if card.status is not None and card.status.verdict.counts]
    ran = [card for card in answering(holding, shares, ["No delta"] * pure)]
    return ran[0] if ran and ran[0].mechanism.key in shares else None


def answer(cards: Sequence[MechanismCard], shares: Mapping[str, float]) -> str:
    """Return which mechanism whose promise holds keeps most, with delta and without delta."""
    best, pure = best_of(cards, shares), best_of(cards, shares, pure=True)
    if best is None:
        return "No mechanism whose promise holds can run at this setting."
    text = (
        f"**{best.mechanism.info.label}** keeps the most structure: "
        f"**{percent(shares[best.mechanism.key])}**."
    )
    if pure is not None and pure is not best:
        label, share = pure.mechanism.info.label, percent(shares[pure.mechanism.key])
        text += f" With no delta, **{label}** keeps **{share}**."
    kinds = Counter(map(group_of, cards))
    holds, loose, fails, *_ = (kinds[name] for name in GROUPS)
    kept = f"{holds} hold, {loose} hold loosely and {fails} fail or are unproven"
    return f"{text} Of {holds + loose + fails} promises, {kept}."
