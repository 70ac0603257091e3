"""Lesson 3: components drown one after the other."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons import measures
from dpviz.lessons.cast import plain
from dpviz.lessons.lesson import Lesson, Question, Step
from dpviz.report.tables.board import FIRST_COMPONENTS

OPENS = Settings(
    table="digits", epsilon=10.0, delta=1e-6, k=2, trials=20, mechanisms=(plain().key,)
)
ASKED, LEAST = 1.0, 0.1


@cache
def _found(epsilon: float) -> int:
    return measures.found(replace(OPENS, epsilon=epsilon), plain())


@cache
def _naive() -> int:
    return measures.above_lone_threshold(replace(OPENS, epsilon=ASKED), plain())


@cache
def bets() -> tuple[int, ...]:
    """Return the counts that can be bet on, ascending: the least epsilon's, the true one, ..."""
    return tuple(sorted({_found(LEAST), _found(ASKED), _naive(), measures.people(OPENS)[1]}))


def _bet(place: int) -> str:
    return str(bets()[place])


def right() -> int:
    """Return the bet that is right."""
    return bets().index(_found(ASKED))


LESSON = Lesson(
    number=3,
    title="Drowning",
    question="How many components survive?",
    opens=OPENS,
    numbers={
        "opens": lambda: format_number(OPENS.epsilon),
        "asked": lambda: format_number(ASKED),
        "least": lambda: format_number(LEAST),
        "d": lambda: str(measures.people(OPENS)[1]),
        "drawn": lambda: str(min(FIRST_COMPONENTS, measures.people(OPENS)[1])),
        "many": lambda: str(_found(OPENS.epsilon)),
        "found": lambda: str(_found(ASKED)),
        "few": lambda: str(_found(LEAST)),
        "naive": lambda: str(_naive()),
        **{f"bet_{i}": partial(_bet, i) for i in range(4)},
    },
    steps=(
        Step(
            title="Look",
            say="Grey are the true variances of the first {drawn} of {d} components, coloured the "
            "released ones; noise alone reaches the dotted line, and at epsilon {opens} the "
            "largest {many} are found.",
            view={"measures": ("spectrum", "recovery")},
        ),
        Step(
            title="Bet, then move epsilon",
            say="Lower epsilon means more noise, and both lines rise.",
            control="epsilon",
            move={"epsilon": LEAST},
            moved="Move epsilon from {opens} to {least}",
            question=Question(
                "How many of the {d} are still found at epsilon {asked}?",
                (
                    "{bet_0} components",
                    "{bet_1} components",
                    "{bet_2} components",
                    "{bet_3} components",
                ),
                right,
                ("{found} are predicted to turn by less than half a right angle.",),
            ),
            why="At epsilon {asked} {naive} variances lie above the dashed threshold, enough to be "
            "seen alone, but those of similar size mix: {found} directions are found, and {few} "
            "at {least}.",
        ),
    ),
)
