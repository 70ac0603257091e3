"""Lesson 1: noise turns the plane until the picture is chance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from dpviz.core.number_text import percent
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons import measures
from dpviz.lessons.cast import plain
from dpviz.lessons.lesson import Lesson, Question, Step

OPENS = Settings(table="digits", epsilon=3.0, delta=1e-6, k=2, trials=20, mechanisms=(plain().key,))
LEAST = 0.03
CLASS = 0
BETS = (1.0, 0.3, 0.03)


def _at(epsilon: float) -> Settings:
    return replace(OPENS, epsilon=epsilon)


def _sorted(epsilon: float) -> float:
    return measures.sorted_apart(_at(epsilon), plain().key, CLASS)


@cache
def merging() -> int:
    """Return the first bet at which half of what sets the zeros apart is lost."""
    exact = measures.sorted_exactly(OPENS, CLASS)
    half = (exact + measures.sorted_by_chance(OPENS, CLASS)) / 2
    return next((i for i, epsilon in enumerate(BETS) if _sorted(epsilon) < half), len(BETS) - 1)


def _recovered(epsilon: float) -> str:
    return percent(float(measures.recovery(_at(epsilon), plain().key).mean()))


LESSON = Lesson(
    number=1,
    title="Blur",
    question="What does a smaller epsilon do to a picture?",
    opens=OPENS,
    numbers={
        "n": lambda: f"{measures.people(OPENS)[0]:,}",
        "dots": lambda: str(measures.dots(OPENS)),
        "opens": lambda: format_number(OPENS.epsilon),
        "least": lambda: format_number(LEAST),
        "first": lambda: format_number(BETS[0]),
        "second": lambda: format_number(BETS[1]),
        "third": lambda: format_number(BETS[2]),
        "merging": lambda: format_number(BETS[merging()]),
        "exact": lambda: percent(measures.sorted_exactly(OPENS, CLASS)),
        "there": lambda: percent(_sorted(BETS[merging()])),
        "chance": lambda: percent(measures.sorted_by_chance(OPENS, CLASS)),
        "before": lambda: _recovered(OPENS.epsilon),
        "after": lambda: _recovered(LEAST),
    },
    steps=(
        Step(
            title="Look",
            say="The dots are {dots} of {n} written digits, placed by exact PCA and by a private "
            "release at epsilon {opens}.",
            view={"measures": ("picture", "recovery")},
        ),
        Step(
            title="Bet, then move epsilon",
            say="Epsilon limits how much one person's row may change what is released; a smaller "
            "one needs more noise.",
            control="epsilon",
            move={"epsilon": LEAST},
            moved="Move epsilon down to {least}",
            question=Question(
                "At about which epsilon do the zeros merge with the rest?",
                ("epsilon {first}", "epsilon {second}", "epsilon {third}"),
                merging,
                ("half of what sets the zeros apart is lost at {merging}.",),
            ),
            why="At epsilon {merging} a straight line sorts {there} of the zeros from the rest, "
            "against {exact} in the exact picture and {chance} in a random one.",
        ),
        Step(
            title="What is left",
            say="Recovery fell from {before} to {after}: the smaller epsilon, the less the "
            "released plane knows of the people in the table.",
        ),
    ),
)
