"""Lesson 4: the published Wishart mechanism gives people away."""

from __future__ import annotations

import math

from dpviz.auditing.exhibits import support_table
from dpviz.core.number_text import numeral, percent
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons.cast import published, pure
from dpviz.lessons.lesson import Lesson, Question, Step

OPENS = Settings(
    table="iris", epsilon=1.0, relation="zero-out", k=1, mechanisms=(published().key, pure().key)
)
LEAST, MOST = 0.1, 10.0


def betrayed(epsilon: float) -> str:
    """Return the share of releases without a person that cannot be releases with her."""
    table = support_table(2, epsilon, OPENS.seed, trials=1)
    row = table.loc[table["epsilon"] == epsilon]
    return percent(float(row["exact"].iloc[0]))


LESSON = Lesson(
    number=4,
    title="Wishart gives people away",
    question="Is a mechanism private because its paper says so?",
    opens=OPENS,
    numbers={
        "opens": lambda: format_number(OPENS.epsilon),
        "least": lambda: format_number(LEAST),
        "most": lambda: format_number(MOST),
        "now": lambda: betrayed(OPENS.epsilon),
        "tiny": lambda: betrayed(LEAST),
        "large": lambda: betrayed(MOST),
        "odds": lambda: numeral(math.exp(OPENS.epsilon)),
        "published": lambda: published().label,
        "repaired": lambda: pure().label,
    },
    steps=(
        Step(
            title="Look",
            say="{published} noise can only add: the table with her can release what lies in the "
            "shaded cone, and nothing else.",
            scene="person",
            view={"mechanisms": (published().key,), "picture": "cone"},
        ),
        Step(
            title="Bet, then move epsilon",
            say="Crosses are releases without her that fall outside: {now} of them at epsilon "
            "{opens}, and each one proves that she is not in.",
            scene="person",
            control="epsilon",
            move={"epsilon": LEAST},
            moved="Move epsilon to {least}, then try {most}",
            question=Question(
                "Does a tiny epsilon mend it?",
                ("Yes, enough noise hides everybody", "No, some releases still give her away"),
                1,
                (
                    "at {least} there still are {tiny} crosses.",
                    "still {tiny} at {least}, and {large} at {most}.",
                ),
            ),
            why="A promise of epsilon means that no release may be possible with one table and "
            "impossible with its neighbour; here the share is {tiny}, {now} and {large} at "
            "{least}, {opens} and {most}.",
        ),
        Step(
            title="Bet, then swap the noise",
            say="The claim fails because the noise has an edge that moves with the data.",
            scene="person",
            changes={"epsilon": OPENS.epsilon},
            control="mechanism",
            move={"mechanisms": (pure().key,)},
            moved="Swap in the {repaired}",
            question=Question(
                "What would mend it?",
                ("The same noise, a hundredfold", "Noise that can reach every matrix"),
                1,
                (
                    "a larger cone still has an edge.",
                    "where everything is possible for both tables, nothing is proof.",
                ),
            ),
            why="The difference of two such matrices has no edge: every release can come from "
            "either table, and odds change by at most a factor of {odds} at epsilon {opens}.",
        ),
    ),
)
