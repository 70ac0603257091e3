"""Lesson 7: more people buy the same as a larger epsilon."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial

from dpviz.core.number_text import decimals, numeral, percent, thousands
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons.cast import pure
from dpviz.lessons.lesson import Lesson, Question, Step
from dpviz.lessons.needed import GOAL, people_needed
from dpviz.lessons.questions import Answers, plan_text
from dpviz.preparation.load import load_measured

ANSWERS = Answers(source="plan", people=10_000, features=50, survive=decimals(100 * GOAL, 0))
OPENS = Settings(
    table=plan_text(ANSWERS),
    epsilon=1.0,
    delta=1e-6,
    k=2,
    mechanisms=(pure().key,),
)
HALVED = OPENS.epsilon / 2
FACTORS = (1.0, math.sqrt(2), 2.0, 4.0)


@cache
def needed(epsilon: float) -> float:
    """Return how many people the goal needs."""
    return people_needed(replace(OPENS, epsilon=epsilon), pure())


def _factor(place: int) -> str:
    return numeral(FACTORS[place])


@cache
def right() -> int:
    """Return the factor nearest to what halving epsilon asks for."""
    ratio = needed(HALVED) / needed(OPENS.epsilon)
    return min(range(len(FACTORS)), key=lambda i: abs(math.log(FACTORS[i] / ratio)))


LESSON = Lesson(
    number=7,
    title="People",
    question="What buys the same as a larger epsilon?",
    opens=OPENS,
    answers=ANSWERS,
    numbers={
        "d": lambda: str(load_measured(OPENS).d),
        "goal": lambda: percent(GOAL),
        "opens": lambda: format_number(OPENS.epsilon),
        "halved": lambda: format_number(HALVED),
        "needed": lambda: thousands(needed(OPENS.epsilon)),
        "then": lambda: thousands(needed(HALVED)),
        "ratio": lambda: numeral(needed(HALVED) / needed(OPENS.epsilon), 3),
        "mechanism": lambda: pure().label,
        **{f"times_{i}": partial(_factor, i) for i in range(4)},
    },
    steps=(
        Step(
            title="Look",
            say="A plan, no data: with {d} features and the {mechanism}, {goal} recovery at "
            "epsilon {opens} needs {needed} people.",
            scene="people",
        ),
        Step(
            title="Bet, then halve epsilon",
            say="The noise is divided by the number of people.",
            scene="people",
            control="epsilon",
            move={"epsilon": HALVED},
            moved="Halve epsilon to {halved}",
            question=Question(
                "How many times as many people does half the epsilon ask for?",
                ("{times_0} times", "{times_1} times", "{times_2} times", "{times_3} times"),
                right,
                ("it takes {ratio} times as many.",),
            ),
            why="From {needed} to {then} people: noise falls with the number of people as it does "
            "with epsilon, so twice the people buy the same as twice the epsilon.",
        ),
    ),
)
