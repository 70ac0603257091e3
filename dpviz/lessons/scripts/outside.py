"""Lesson 8: what the promise does not cover."""

from __future__ import annotations

from dpviz.auditing.leaking import leak
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons.lesson import Lesson, Question, Step

OPENS = Settings(table="iris", epsilon=0.1, k=1)


def _listed(values: FloatArray) -> str:
    return ", ".join(numeral(value, 3) for value in values)


LESSON = Lesson(
    number=8,
    title="What the promise does not cover",
    question="Which steps before the release leak?",
    opens=OPENS,
    numbers={
        "epsilon": lambda: format_number(OPENS.epsilon),
        "people": lambda: str(len(leak().rows)),
        "recovered": lambda: _listed(leak().recovered),
        "true": lambda: _listed(leak().rows[-1]),
        "with": lambda: numeral(leak().bound_with, 3),
        "without": lambda: numeral(leak().bound_without, 3),
        "declared": lambda: numeral(leak().declared_bound, 3),
    },
    steps=(
        Step(
            title="Look",
            say="A small table with one row far out; before any noise is added somebody subtracts "
            "the mean and divides by the longest row.",
            scene="leak",
            view={"declared": False},
        ),
        Step(
            title="Bet, then compute",
            say="The attacker knows everybody but the last person, and the mean is printed.",
            scene="leak",
            control="mean",
            move={"shown": "mean"},
            moved="Take the others' sum from {people} times the mean",
            question=Question(
                "Epsilon is {epsilon}. What does the printed mean give away?",
                ("Nothing, epsilon protects it", "A rough idea", "The whole row"),
                2,
                (
                    "epsilon covers the release and not the mean; the row is {recovered}.",
                    "the whole of it, the row is {recovered}.",
                    "the row is {recovered}.",
                ),
            ),
            why="{people} times the mean is the sum of all rows; less the others: {recovered}. "
            "The row: {true}. There was no noise on the mean.",
        ),
        Step(
            title="Bet, then compare",
            say="Next the longest row is printed as the row bound.",
            scene="leak",
            control="bound",
            move={"shown": "bound"},
            moved="Show the bound with and without her",
            question=Question(
                "Which steps before the release leak?",
                (
                    "Only the mean",
                    "Only the bound",
                    "Everything that is taken from the data: mean, bound, scales, k",
                ),
                2,
                (
                    "the bound does too, {with} with her and {without} without.",
                    "the mean does too, it gave her row away.",
                    "whatever is computed from the rows and printed is a release.",
                ),
            ),
            why="The bound is {with} with her and {without} without: it tells whether she is in.",
        ),
        Step(
            title="Declare instead",
            say="A bound that is declared beforehand, {declared} here, is the same with and "
            "without her and says nothing about anybody.",
            scene="leak",
            control="declared",
            view={"declared": True, "shown": "bound"},
        ),
    ),
)
