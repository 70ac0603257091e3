"""A stakeholder's questions and the card that answers them.

What must survive, whether a delta is acceptable and what is handed out lead to the least epsilon of
each mechanism whose claim holds at that answer; what is spent there leads to the risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.base.arrays import FloatArray
from dpviz.base.params import Declared, choice, integer, number, text
from dpviz.base.seeding import generator
from dpviz.claims.attack import excess_probability, posterior, posterior_bound
from dpviz.claims.worlds import Worlds, both_worlds
from dpviz.errors import DpvizError
from dpviz.guide.cast import plain
from dpviz.guide.needed import goal_of
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.prepare.bounding import Prepared
from dpviz.prepare.prepared import Measured
from dpviz.privacy import accounting
from dpviz.privacy.accounting import Spent
from dpviz.run.cells import Cell, evaluate
from dpviz.settings import Settings
from dpviz.targets.goal import Goal
from dpviz.targets.least import Target, least, predicted_crossing
from dpviz.tidy.projection import coordinates
from dpviz.values.parts import ApproximatePart, Part, PurePart
from dpviz.values.problem import EPSILON_RANGE, Budget, Problem
from dpviz.values.release import Verdict

LEVELS = ("50", "75", "90", "95")
"""Recoveries that can be asked for, in per cent."""

STAGES = ("about", "survive", "delta", "hand_out", "card")
"""The questions in order, and the card."""

DRAWS = 64
"""Most draws at each epsilon tried: an answer comes within seconds, and says how wide it is."""

_GOOD = (Verdict.HOLDS, Verdict.LOOSE)
_POINTS = 300


@dataclass(frozen=True)
class Answers(Declared):
    """What a stakeholder answered; each travels in a link."""

    source: str = choice(
        "table",
        {"table": "a table", "plan": "no data yet: numbers I guess"},
        label="What is it about?",
        help="The table chosen above, or a plan: no data is needed for an answer.",
        url="about",
        examples=("plan",),
    )
    people: int = integer(
        10_000,
        10,
        10**9,
        label="People",
        help="How many rows the table will have.",
        url="people",
        examples=(500, 20_000),
    )
    features: int = integer(
        20,
        2,
        1_000,
        label="Features",
        help="How many numbers are known about each person.",
        url="features",
        examples=(5, 100),
    )
    shape: str = choice(
        "some",
        {
            "strong": "a few directions hold nearly everything",
            "some": "some directions hold most",
            "flat": "many directions hold a little",
        },
        label="Guessed structure",
        help="How fast the variances of the components fall.",
        examples=("strong",),
    )
    survive: str = choice(
        "90",
        {level: f"{level} %" for level in LEVELS},
        label="How much of the structure must survive?",
        help="Recovery: 0 is a random picture, 100 % the exact one.",
        examples=("50",),
    )
    delta_allowed: str = choice(
        "yes",
        {"yes": "yes, a tiny one", "no": "no, never"},
        label="Is a delta acceptable?",
        help="A small probability beyond which the promise may bend; mechanisms without one need a "
        "larger epsilon.",
        url="with_delta",
        examples=("no",),
    )
    hand_out: str = choice(
        "directions",
        {
            "directions": "the directions",
            "variances": "the directions and their variances",
            "picture": "also a picture of the people",
        },
        label="What is handed out?",
        help="Directions say what varies together; the variances need a released matrix; a picture "
        "of the rows is not protected by any of this.",
        url="hand_out",
        examples=("variances",),
    )
    prior: float = number(
        1.0,
        0.1,
        99.0,
        label="Believed before, %",
        help="How likely an attacker thinks it that a given person is in the table.",
        slider=(0.1, 99.0),
        examples=(50.0,),
    )
    releases: int = integer(
        1,
        1,
        100,
        label="Releases of the same people",
        help="Every further release of the same people adds to the risk.",
        slider=(1, 100),
        examples=(12,),
    )
    shown: str = text(
        "about",
        label="Question shown",
        help="Which question the page shows: about, survive, delta, hand_out or card.",
        url="ask",
        check=lambda value: value if value in STAGES else STAGES[0],
        examples=("card",),
    )

    @property
    def recovery(self) -> float:
        """The recovery asked for, from 0 to 1."""
        return int(self.survive) / 100


_SPECTRA = {
    "strong": "exponential:d={d},rate=1,total=0.5",
    "some": "power:d={d},exponent=1.5,total=0.5",
    "flat": "power:d={d},exponent=0.5,total=0.5",
}


def plan_text(answers: Answers) -> str:
    """Return the plan that guessed numbers describe, as the table of settings."""
    spectrum = _SPECTRA[answers.shape].format(d=answers.features)
    return f"plan:n={answers.people},spectrum={spectrum}"


# The picture of a recovery -------------------------------------------------------


def example_table(measured: Measured, settings: Settings, recovery: float) -> pd.DataFrame:
    """Return what the first two directions show at a recovery, for a picture.

    One release at the epsilon that is predicted to give the recovery; for a plan the points are
    made up from its spectrum.

    Returns
    -------
    DataFrame
        Columns x, y and label, one row a point.
    """
    k = max(2, settings.k) if measured.d > 2 else 2
    chosen = replace(settings, k=min(k, measured.d - 1) if measured.d > 2 else 1)
    true = measured.reference.eigenvectors[:, : chosen.k]
    frame = true if recovery >= 1 else _released(measured, chosen, recovery)
    rows, labels = _rows(measured)
    drawn = coordinates(rows, frame, true, "aligned")
    across = drawn[:, 1] if drawn.shape[1] > 1 else np.zeros(len(drawn))
    return pd.DataFrame({"x": drawn[:, 0], "y": across, "label": labels})


def _released(measured: Measured, settings: Settings, recovery: float) -> FloatArray:
    """Return the frame whose recovery is nearest to the one asked for, of a few draws."""
    goal = goal_of(measured, settings.k, recovery)
    found = predicted_crossing(measured, settings, plain(), goal)
    epsilon = EPSILON_RANGE[1] if found is None or math.isinf(found) else found
    chosen = replace(settings, epsilon=min(max(epsilon, EPSILON_RANGE[0]), EPSILON_RANGE[1]))
    budget = measured.budget(chosen)
    if budget.delta == 0:
        budget = Budget(budget.epsilon, 1e-6)
    cell = Cell(plain(), measured.problem(chosen), budget, chosen.seed, range(20))
    outcome = evaluate(cell, measured)
    shares = goal.measure.compute(outcome)
    assert shares is not None
    frames: FloatArray = outcome.release.components
    nearest: FloatArray = frames[int(np.abs(shares - goal.value).argmin())]
    return nearest


def _rows(measured: Measured) -> tuple[FloatArray, list[str]]:
    if isinstance(measured, Prepared):
        rows, index = measured.picture(_POINTS)
        labels = measured.table.labels
        kinds = ["" for _ in index] if labels is None else [str(labels[i]) for i in index]
        return rows, kinds
    rng = generator(0, "guide", "decide", "plan")
    spread = np.sqrt(measured.moment.eigenvalues)
    made: FloatArray = rng.normal(size=(_POINTS, measured.d)) * spread
    return made @ measured.moment.eigenvectors.T, ["" for _ in range(_POINTS)]


# The card -------------------------------------------------------------------------


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


# Risk -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Risk:
    """What an attacker gains from an offer, after all releases.

    Attributes
    ----------
    spent : Spent
        Of all releases together.
    worlds : Worlds
        Rates of a balanced guesser.
    heard : float
        Belief after that guesser says "in".
    most : float
        The most that any release can make of the prior, but for what delta allows.
    beyond : float
        At most how likely a release passes ``most``'s odds by more than a factor of two.
    """

    spent: Spent
    worlds: Worlds
    heard: float
    most: float
    beyond: float


def risk(found: Card, offer: Offer) -> Risk:
    """Return the risk of an offer under the answers' prior and number of releases."""
    answers, measured = found.answers, found.measured
    budget = Budget(offer.epsilon, measured.budget(found.settings).delta)
    spent = together(offer.mechanism, measured.problem(found.settings), budget, answers.releases)
    prior = answers.prior / 100
    worlds = both_worlds(spent)
    return Risk(
        spent=spent,
        worlds=worlds,
        heard=posterior(prior, worlds.out, 1 - worlds.within),
        most=posterior_bound(prior, spent.epsilon),
        beyond=excess_probability(spent.epsilon, spent.delta, math.log(2)),
    )


def together(mechanism: Mechanism, problem: Problem, budget: Budget, releases: int) -> Spent:
    """Return what several releases of the same people cost together.

    By composing what each says it does; where a mechanism has an account of its own, by
    composing that. Both bound the cost, and the smaller is returned.

    Raises
    ------
    DpvizError
        If no epsilon describes the release.
    """
    one = mechanism.spent(problem, budget)
    if one is None or not math.isfinite(one.epsilon):
        raise DpvizError(f"No epsilon describes a release by {mechanism.label}.")
    if releases == 1:
        return one
    part: Part = (
        PurePart(one.epsilon, one.source)
        if one.delta == 0
        else ApproximatePart(one.epsilon, one.delta, one.source)
    )
    at = replace(budget, delta=max(budget.delta, releases * one.delta))
    found = [accounting.spent((part,) * releases, at)]
    said = mechanism.calibrate(problem, budget).parts
    if said:
        found.append(accounting.spent(said * releases, budget))
    return min(found, key=lambda spent: spent.epsilon)
