"""Lesson 2: one release is one draw."""

from __future__ import annotations

from functools import cache

from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import percent
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons import measures
from dpviz.lessons.cast import plain
from dpviz.lessons.lesson import Lesson, Question, Step

OPENS = Settings(table="digits", epsilon=0.3, delta=1e-6, k=2, trials=20, mechanisms=(plain().key,))


@cache
def _draws() -> FloatArray:
    return measures.recovery(OPENS, plain().key)


LESSON = Lesson(
    number=2,
    title="Luck",
    question="Is one good picture proof?",
    opens=OPENS,
    numbers={
        "epsilon": lambda: format_number(OPENS.epsilon),
        "draws": lambda: str(OPENS.trials),
        "first": lambda: percent(float(_draws()[0])),
        "low": lambda: percent(float(_draws().min())),
        "high": lambda: percent(float(_draws().max())),
    },
    steps=(
        Step(
            title="Look",
            say="The picture is one release at epsilon {epsilon}, which recovers {first}; the "
            "number below it is the mean of {draws}.",
            view={"measures": ("picture", "recovery"), "draw": 1},
        ),
        Step(
            title="Bet, then draw again",
            say="Nobody but the noise has changed between two releases of the same table.",
            view={"measures": ("picture", "distance", "recovery")},
            control="draws",
            move={"play_draws": True},
            moved="Show {draws} draws, one after the other",
            question=Question(
                "A single release looks good. Is that proof that the setting is good?",
                ("Yes: it is what the mechanism gives", "No: it may be luck"),
                1,
                (
                    "it is one draw of the noise, and another looks different.",
                    "judge a setting by many draws, never by one.",
                ),
            ),
            why="The {draws} releases recover between {low} and {high}: the dots show every draw, "
            "and a report should too.",
        ),
    ),
)
