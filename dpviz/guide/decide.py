"""The card that answers a stakeholder's questions.

What must survive, whether a delta is acceptable and what is handed out lead to the least epsilon of
each mechanism whose claim holds at that answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dpviz.guide.needed import goal_of
from dpviz.guide.questions import Answers
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.prepare.prepared import Measured
from dpviz.settings import Settings
from dpviz.targets.goal import Goal
from dpviz.targets.least import Target, least, predicted_crossing
from dpviz.values.problem import EPSILON_RANGE, Budget
from dpviz.values.release import Verdict

DRAWS = 64
"""Most draws at each epsilon tried: an answer comes within seconds, and says how wide it is."""

_GOOD = (Verdict.HOLDS, Verdict.LOOSE)


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
    """Yield the mechanisms that could answer, before any of them is asked."""
    for cls in all_mechanisms().values():
        mechanism = cls()
        info = mechanism.info
        if info.guarantee == "none" or info.needs_rows or mechanism.follows_allocation:
            continue  # shaped noise with equal shares repeats its plain twin
        if info.release == "data":
            continue
        yield mechanism


def why_left_out(
    mechanism: Mechanism, measured: Measured, settings: Settings, answers: Answers
) -> str | None:
    """Return why a mechanism cannot be on the card, or None if it is to be asked."""
    if answers.delta_allowed == "no" and mechanism.info.guarantee != "pure":
        return "it needs a delta"
    if answers.hand_out != "directions" and not mechanism.releases_variances:
        return "it releases directions and no variances"
    problem, budget = measured.problem(settings), measured.budget(settings)
    for epsilon in (1.0, 0.1):
        now = Budget(epsilon, budget.delta)
        if mechanism.why_not(problem, now, rows=measured.has_rows) is None:
            status = mechanism.status(problem, now)
            if status.verdict is Verdict.APPROXIMATE:
                return status.words
    return None


def offer_of(
    measured: Measured, settings: Settings, answers: Answers, mechanism: Mechanism
) -> Offer | LeftOut:
    """Return one mechanism's answer, or why it has none.

    Raises
    ------
    InvalidSetting
        If the goal makes no sense for the table.
    """
    goal = goal_of(measured, settings.k, answers.recovery)
    goal.check(measured.problem(settings))
    reason = why_left_out(mechanism, measured, settings, answers)
    if reason is not None:
        return LeftOut(mechanism, reason)
    target = least(measured, settings, mechanism, goal, most_draws=DRAWS)
    reason = _fails(target)
    if reason is not None:
        return LeftOut(mechanism, reason)
    return Offer(target, _people(measured, settings, target, goal))


def card_of(
    measured: Measured, settings: Settings, answers: Answers, found: Iterable[Offer | LeftOut]
) -> Card:
    """Return the card of the answers of all mechanisms."""
    listed = list(found)
    offers = sorted(
        (item for item in listed if isinstance(item, Offer)), key=lambda offer: offer.epsilon
    )
    chosen = settings
    if offers:
        chosen = replace(
            settings,
            epsilon=rounded_up(offers[0].epsilon),
            delta=measured.budget(settings).delta,  # said, so that later defaults change nothing
            mechanisms=tuple(offer.mechanism.text for offer in offers[:3]),
        )
    left_out = tuple(item for item in listed if isinstance(item, LeftOut))
    return Card(measured, chosen, answers, tuple(offers), left_out)


def card(measured: Measured, settings: Settings, answers: Answers) -> Card:
    """Return the card for a prepared table or a plan."""
    found = [offer_of(measured, settings, answers, one) for one in candidates()]
    return card_of(measured, settings, answers, found)


def rounded_up(epsilon: float) -> float:
    """Return an epsilon with three digits that is at least the one given."""
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return min(float(f"{math.ceil(epsilon / step - 1e-9) * step:.3g}"), EPSILON_RANGE[1])


def _fails(target: Target) -> str | None:
    """Return why a target is no offer, or None."""
    if target.reason is not None:
        return target.reason
    if target.never or target.high is None:
        return "no epsilon that it takes is enough"
    if not target.monotone:
        return "there is no single least epsilon"
    if target.status is None or target.status.verdict not in _GOOD:
        words = "its claim is not known" if target.status is None else target.status.words
        return f"{words} at the epsilon that it would need"
    return None


def _people(measured: Measured, settings: Settings, target: Target, goal: Goal) -> float | None:
    """Return how many people are predicted to reach the goal at half the predicted epsilon."""
    if target.predicted is None or math.isinf(target.predicted):
        return None
    halved = max(target.predicted / 2, EPSILON_RANGE[0])
    asked = replace(settings, epsilon=halved, delta=measured.budget(settings).delta)
    found = predicted_crossing(measured, asked, target.mechanism, goal, "n")
    return found if found is not None and math.isfinite(found) else None
