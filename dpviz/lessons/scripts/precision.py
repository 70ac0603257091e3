"""Lesson 5: where the noise goes, and who may choose."""

from __future__ import annotations

from dataclasses import replace

from dpviz.core.number_text import percent
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons import measures
from dpviz.lessons.cast import shaped
from dpviz.lessons.lesson import Lesson, Question, Step

FAVOURED, WRONG = "1,2", "3,4"
LOW, HIGH = 0.1, 0.8


def _favouring(features: str, share: float) -> str:
    return f"binary:{features}:{format_number(share)}"


OPENS = Settings(
    table="planted",
    domain="box",
    bounds="known",
    epsilon=0.1,
    delta=1e-6,
    k=2,
    trials=20,
    mechanisms=(shaped().key,),
    allocation=_favouring(FAVOURED, LOW),
)


def recovered(features: str, share: float) -> str:
    """Return the mean recovery with a share of the precision on some features."""
    chosen = replace(OPENS, allocation=_favouring(features, share))
    return percent(max(0.0, float(measures.recovery(chosen, shaped().key).mean())))


LESSON = Lesson(
    number=5,
    title="Where the noise goes",
    question="Can noise be put where it does not hurt?",
    opens=OPENS,
    numbers={
        "epsilon": lambda: format_number(OPENS.epsilon),
        "d": lambda: str(measures.people(OPENS)[1]),
        "low": lambda: percent(LOW),
        "high": lambda: percent(HIGH),
        "equal": lambda: recovered(FAVOURED, LOW),
        "favoured": lambda: recovered(FAVOURED, HIGH),
        "wrong": lambda: recovered(WRONG, HIGH),
    },
    steps=(
        Step(
            title="Look",
            say="Two of {d} features vary; with equal shares they get {low} of the precision and "
            "{equal} of the structure is recovered at epsilon {epsilon}.",
            view={"measures": ("picture", "spectrum", "recovery")},
        ),
        Step(
            title="Bet, then move the precision",
            say="The same privacy can be bought with little noise here and much there.",
            control="precision",
            move={"allocation": _favouring(FAVOURED, HIGH)},
            moved="Give the two features {high}",
            question=Question(
                "The two features get {high} of the precision. What happens to recovery?",
                ("Nothing: the privacy is the same", "It rises a little", "It rises to nearly all"),
                2,
                (
                    "privacy stays the same and recovery goes from {equal} to {favoured}.",
                    "more than that, from {equal} to {favoured}.",
                    "from {equal} to {favoured}.",
                ),
            ),
            why="On a box the precision is a sum that may be divided freely; on a ball it may not, "
            "and directions do not pay.",
        ),
        Step(
            title="Bet, then favour the wrong ones",
            say="The choice is a belief about the data, made before it is seen.",
            control="precision",
            move={"allocation": _favouring(WRONG, HIGH)},
            moved="Favour two features that hardly vary",
            question=Question(
                "What does a wrong belief cost?",
                ("A little", "About half", "All of it"),
                2,
                ("recovery falls to {wrong}.",),
            ),
            why="The features that matter now get nearly all of the noise.",
        ),
        Step(
            title="Bet once more",
            say="It would be safe to favour what the data itself shows to vary.",
            control="precision",
            question=Question(
                "Why not look at the data and choose?",
                ("It costs time", "The choice itself tells something about the people"),
                1,
                (
                    "time is not the trouble, the choice is published with the release.",
                    "a choice made from the data is one more release and has to be paid for.",
                ),
            ),
            why="Choose from public knowledge, or buy the directions with a part of the budget.",
        ),
    ),
)
