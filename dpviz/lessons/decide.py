"""The card that answers a stakeholder's questions.

What must survive, whether a delta is acceptable and what is handed out lead to the least epsilon of
each mechanism whose claim holds at that answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dpviz.core.metrics import chance_share
from dpviz.core.number_text import numeral, towards
from dpviz.core.problem import EPSILON_RANGE, Budget
from dpviz.core.release import Status, Verdict
from dpviz.core.settings import Settings
from dpviz.lessons.questions import Answers
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.preparation.prepared import Measured
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Predicted, Target, about, least, predicted_crossing

DRAWS = 32
"""Most draws at an epsilon that is tried at first; more follow where they narrow the answer."""

SEARCHED = 5
"""Mechanisms with the least epsilons that are searched and shown; others are named with theirs."""

_GOOD = (Verdict.HOLDS, Verdict.LOOSE)
_NEVER = "no epsilon that it takes is enough"


@dataclass(frozen=True)
class Offer:
    """One mechanism's answer.

    Attributes
    ----------
    target : Target
        The least epsilon, with its interval and the claim's status there.
    people : float or None
        How many people are predicted to reach the same at half the epsilon; None where there is
        no prediction.
    """

    target: Target
    people: float | None

    @property
    def mechanism(self) -> Mechanism:
        """Who offers."""
        return self.target.mechanism

    @property
    def epsilon(self) -> float:
        """The epsilon at which the goal is shown to be reached."""
        assert self.target.high is not None
        return self.target.high

    @property
    def pure(self) -> bool:
        """Whether the claim does without a delta."""
        return self.mechanism.info.guarantee == "pure"


@dataclass(frozen=True)
class LeftOut:
    """A mechanism that is not offered, and why."""

    mechanism: Mechanism
    reason: str


@dataclass(frozen=True)
class Card:
    """The answer.

    Attributes
    ----------
    measured : Measured
    settings : Settings
        Those of the best offer: what the command and the link reproduce.
    answers : Answers
    offers : tuple of Offer
        The least epsilon first.
    left_out : tuple of LeftOut
    """

    measured: Measured
    settings: Settings
    answers: Answers
    offers: tuple[Offer, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def best(self) -> Offer | None:
        """The offer with the least epsilon."""
        return self.offers[0] if self.offers else None

    @property
    def assumed_public(self) -> tuple[str, ...]:
        """What the answer takes for public, or shows beside the release."""
        shown = () if self.best is None else self.best.mechanism.assumed_public
        return (*self.measured.assumed_public, *shown)

    @property
    def best_pure(self) -> Offer | None:
        """The best of those that do without a delta."""
        return next((offer for offer in self.offers if offer.pure), None)


def candidates() -> Iterator[Mechanism]:
    """Yield every mechanism that makes a claim; each is offered or left out with a reason.

    One whose draws take long enters as its quicker variant, where it has one.
    """
    for cls in all_mechanisms().values():
        mechanism = cls().quicker
        if mechanism.info.guarantee != "none":
            yield mechanism


def why_left_out(
    mechanism: Mechanism, measured: Measured, settings: Settings, answers: Answers
) -> str | None:
    """Return why a mechanism cannot be on the card, or None if it is to be asked."""
    if answers.shows_rows:
        return "no promise covers a picture of the people"
    if answers.delta_allowed == "no" and mechanism.info.guarantee != "pure":
        return "it needs a delta"
    if answers.hand_out != "directions" and not mechanism.releases_variances:
        what = "noisy rows" if mechanism.info.release == "data" else "directions"
        return f"it releases {what} and no variances"
    # a page waits for the card
    if not mechanism.quick:
        return "its draws take too long to search among here; `dpviz least` does"
    problem, budget = measured.problem(settings), measured.budget(settings)
    # a usual epsilon and a small one, as some run at one of them alone
    for epsilon in (1.0, 0.1):
        now = Budget(epsilon, budget.delta)
        if mechanism.why_not(problem, now, rows=measured.serves(mechanism)) is None:
            status = mechanism.status(problem, now)
            if status.verdict is Verdict.APPROXIMATE:
                return status.words
    return None


def look_at(
    measured: Measured, settings: Settings, answers: Answers, mechanism: Mechanism
) -> Predicted | LeftOut:
    """Return about what one mechanism needs, by prediction or a few draws, or why it is left out.

    Raises
    ------
    InvalidSetting
        If the goal makes no sense for the table.
    """
    goal = _goal(measured, settings, answers, mechanism)
    if isinstance(goal, LeftOut):
        return goal
    found = about(measured, settings, mechanism, goal)
    if found.value is None:
        last = Budget(EPSILON_RANGE[1], measured.budget(settings).delta)
        reason = mechanism.why_not(
            measured.problem(settings), last, rows=measured.serves(mechanism)
        )
        return LeftOut(mechanism, reason or "the preparation's shares leave nothing for it")
    if math.isinf(found.value):
        return LeftOut(mechanism, _NEVER)
    reason = _not_good(found.status)
    return found if reason is None else LeftOut(mechanism, reason)


def offer_of(
    measured: Measured, settings: Settings, answers: Answers, mechanism: Mechanism
) -> Offer | LeftOut:
    """Return one mechanism's answer, searched by tests, or why it has none.

    Raises
    ------
    InvalidSetting
        As in `look_at`.
    """
    goal = _goal(measured, settings, answers, mechanism)
    if isinstance(goal, LeftOut):
        return goal
    target = least(measured, settings, mechanism, goal, most_draws=DRAWS)
    reason = _fails(target)
    if reason is not None:
        return LeftOut(mechanism, reason)
    return Offer(target, _people(measured, settings, target, goal))


def _goal(
    measured: Measured, settings: Settings, answers: Answers, mechanism: Mechanism
) -> Goal | LeftOut:
    """Return what the answers ask of a mechanism, or why it is left out before it is tried."""
    goal = Goal.of_recovery(answers.recovery, chance_share(measured.reference, settings.k))
    goal.check(measured.problem(settings))
    reason = why_left_out(mechanism, measured, settings, answers)
    return goal if reason is None else LeftOut(mechanism, reason)


LOOK, SEARCH = "look", "search"
Found = dict[tuple[str, str], Predicted | Offer | LeftOut]
"""What is known of a question so far, by `NextStep.key`."""


@dataclass(frozen=True)
class NextStep:
    """The next piece of work on a card.

    Attributes
    ----------
    stage : {"look", "search"}
        Every mechanism gets a first look; those that need the least are searched.
    mechanism : Mechanism
    place, total : int
        Which of this stage, from 0, and of how many.
    """

    stage: str
    mechanism: Mechanism
    place: int
    total: int

    @property
    def key(self) -> tuple[str, str]:
        """What names the step among those of one question."""
        return self.stage, self.mechanism.text

    @property
    def words(self) -> str:
        """What is being done."""
        doing = "A first look at" if self.stage == LOOK else "Searching"
        return f"{doing} {self.mechanism.label}, {self.place + 1} of {self.total}"

    def run(
        self, measured: Measured, settings: Settings, answers: Answers
    ) -> Predicted | Offer | LeftOut:
        """Return what the step finds."""
        act = look_at if self.stage == LOOK else offer_of
        return act(measured, settings, answers, self.mechanism)


def next_step(found: Found) -> NextStep | None:
    """Return what is to be done next for a card, or None where all is known."""
    for stage, mechanisms in ((LOOK, list(candidates())), (SEARCH, _worth_searching(found))):
        for place, mechanism in enumerate(mechanisms):
            step = NextStep(stage, mechanism, place, len(mechanisms))
            if step.key not in found:
                return step
    return None


def _worth_searching(found: Found) -> list[Mechanism]:
    """Return the mechanisms that a card shows: the least epsilon, and the least without a delta."""
    looks = sorted(
        (look for look in found.values() if isinstance(look, Predicted)), key=Predicted.order
    )
    pure = [look for look in looks if look.mechanism.info.guarantee == "pure"]
    # who allows no delta sees one offer at least
    chosen = [*looks[:SEARCHED], *pure[:1]]
    return list(dict.fromkeys(look.mechanism for look in chosen))


def card_of(measured: Measured, settings: Settings, answers: Answers, found: Found) -> Card:
    """Return the card of what all steps found."""
    offers, left_out = [], []
    for mechanism in candidates():
        look, searched = (found.get((stage, mechanism.text)) for stage in (LOOK, SEARCH))
        last = look if searched is None else searched
        if isinstance(last, Offer):
            offers.append(last)
        elif isinstance(last, LeftOut):
            left_out.append(last)
        elif isinstance(last, Predicted) and last.value is not None:
            more = f"it needs a larger epsilon, about {numeral(last.value)}"
            left_out.append(LeftOut(mechanism, more))
    # by the estimate: intervals of two searches end where their draws happened to
    offers.sort(key=lambda offer: offer.target.estimate)
    chosen = settings
    if offers:
        chosen = replace(
            settings,
            epsilon=rounded_up(offers[0].epsilon),
            delta=measured.budget(settings).delta,  # said, so that later defaults change nothing
            mechanisms=tuple(offer.mechanism.text for offer in offers[:3]),
        )
    return Card(measured, chosen, answers, tuple(offers), tuple(left_out))


def card(
    measured: Measured,
    settings: Settings,
    answers: Answers,
    tell: Callable[[NextStep], None] = lambda step: None,
) -> Card:
    """Return the card for a prepared table or a plan.

    Parameters
    ----------
    measured, settings, answers
    tell : callable
        Told each step before it is done.
    """
    found: Found = {}
    while (step := next_step(found)) is not None:
        tell(step)
        found[step.key] = step.run(measured, settings, answers)
    return card_of(measured, settings, answers, found)


def rounded_up(epsilon: float) -> float:
    """Return an epsilon with three digits that is at least the one given."""
    # three digits, upwards: the goal must still be reached at what is said
    return min(towards(epsilon, 3, 1), EPSILON_RANGE[1])


def _fails(target: Target) -> str | None:
    """Return why a target is no offer, or None."""
    if target.reason is not None:
        return target.reason
    if target.never or target.high is None:
        return _NEVER
    if not target.monotone:
        return "there is no single least epsilon"
    return _not_good(target.status)


def _not_good(status: Status | None) -> str | None:
    """Return why a claim is none to rely on, or None."""
    if status is not None and status.verdict in _GOOD:
        return None
    words = "its claim is not known" if status is None else status.words
    return f"{words} at the epsilon that it would need"


def _people(measured: Measured, settings: Settings, target: Target, goal: Goal) -> float | None:
    """Return how many people are predicted to reach the goal at half the predicted epsilon."""
    if target.predicted is None or math.isinf(target.predicted):
        return None
    # predicted beside predicted: both may be off, and off alike
    halved = max(target.predicted / 2, EPSILON_RANGE[0])
    asked = replace(settings, epsilon=halved, delta=measured.budget(settings).delta)
    found = predicted_crossing(measured, asked, target.mechanism, goal, "n")
    return found if found is not None and math.isfinite(found) else None
