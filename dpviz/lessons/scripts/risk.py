"""Lesson 6: what an attacker may come to believe about one person."""

from __future__ import annotations

from functools import cache

from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import posterior_bound
from dpviz.auditing.worlds import both_worlds
from dpviz.core.number_text import decimals, numeral, percent
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons.cast import plain, pure
from dpviz.lessons.lesson import Lesson, Question, Step

OPENS = Settings(
    table="iris",
    epsilon=1.0,
    delta=1e-5,
    relation="zero-out",
    k=1,
    mechanisms=(pure().key, plain().key),
)
LEAST, MOST = 0.1, 5.0
PRIOR = 0.01


@cache
def _worlds(epsilon: float) -> tuple[str, str]:
    """Return the rates of a balanced guesser against a release that spends all of epsilon."""
    seen = both_worlds(Spent(epsilon, 0.0, True, "pure"))
    return decimals(100 * seen.out, 0), decimals(100 * seen.within, 0)


def believed(prior: float, epsilon: float) -> str:
    """Return the highest belief that pure epsilon allows, in per cent to two digits."""
    return f"{numeral(100 * posterior_bound(prior, epsilon))} %"


LESSON = Lesson(
    number=6,
    title="Risk",
    question="What does epsilon mean for one person?",
    opens=OPENS,
    numbers={
        "opens": lambda: format_number(OPENS.epsilon),
        "least": lambda: format_number(LEAST),
        "most": lambda: format_number(MOST),
        "prior": lambda: percent(PRIOR),
        "after": lambda: believed(PRIOR, OPENS.epsilon),
        "half": lambda: percent(0.5),
        "certain": lambda: percent(1.0),
        "within": lambda: _worlds(OPENS.epsilon)[1],
        "out": lambda: _worlds(OPENS.epsilon)[0],
        "out_least": lambda: _worlds(LEAST)[0],
        "within_least": lambda: _worlds(LEAST)[1],
        "out_most": lambda: _worlds(MOST)[0],
        "within_most": lambda: _worlds(MOST)[1],
        "hundred": lambda: str(100),
    },
    steps=(
        Step(
            title="Look",
            say="One cloud is what is released with her row, the other without it; an attacker "
            "who knows everybody else sees one dot and guesses.",
            scene="person",
            view={"mechanisms": (pure().key, plain().key), "picture": "her"},
        ),
        Step(
            title="Move epsilon",
            say="At {opens} a balanced guesser says she is in for at most {out} of {hundred} "
            "releases without her and {within} with her.",
            scene="person",
            control="epsilon",
            move={"epsilon": MOST},
            moved="Move epsilon to {most}, then to {least}",
            question=Question(
                "At which epsilon can the clouds be told apart?",
                ("epsilon {least}", "epsilon {opens}", "epsilon {most}"),
                2,
                (
                    "at {least} the rates are {out_least} and {within_least}, nearly a coin.",
                    "at {opens} the rates are {out} and {within}, better than a coin and far from "
                    "sure.",
                    "at {most} they reach {out_most} and {within_most}.",
                ),
            ),
            why="Wherever she stands, no guesser gets beyond {out_least} against {within_least} at "
            "{least}, {out} against {within} at {opens}, and {out_most} against {within_most} of "
            "{hundred} at {most}.",
        ),
        Step(
            title="Drag her",
            say="Drag her row to the middle and to the rim: the promise is for the worst place.",
            scene="person",
            changes={"epsilon": OPENS.epsilon},
            control="row",
            question=Question(
                "Where is she easiest to find?",
                ("In the middle, among the others", "At the rim, far from zero"),
                1,
                (
                    "in the middle her row changes next to nothing, and the clouds agree.",
                    "the longer her row, the farther the clouds lie apart.",
                ),
            ),
            why="The row bound limits how far out anybody may be, which is why longer rows are "
            "scaled down first.",
        ),
        Step(
            title="Bet on a belief",
            say="Before the release an attacker believes with {prior} that she is in the table.",
            scene="person",
            question=Question(
                "At epsilon {opens}, what is the most that the release can make of it?",
                ("{prior}", "{after}", "{half}", "{certain}"),
                1,
                (
                    "a release may teach something, up to {after}.",
                    "{after} at most.",
                    "far less, {after} at most.",
                    "never, {after} at most.",
                ),
            ),
            why="Epsilon multiplies the odds, and odds that start small stay small.",
        ),
    ),
)
