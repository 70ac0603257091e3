"""A stakeholder's questions: what can be answered, and the plan that guessed numbers describe."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.core.number_text import per_cent
from dpviz.core.params import Declared, choice, integer, number, text

LEVELS = ("50", "75", "90", "95")
"""Recoveries that can be asked for, in per cent."""

STAGES = ("ceiling", "card")
"""One release under a ceiling, and the card of every mechanism."""


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
    ceiling: float = number(
        3.0,
        # a suspicion of 1 in 100 is where it starts: no release keeps it below
        1.1,
        99.0,
        label="A suspicion that is right 1 time in 100 may become right at most ... times in 100",
        help="What a release may make of a suspicion against one person, whatever else is known; "
        "epsilon follows from it.",
        slider=(1.1, 99.0),
        examples=(10.0,),
    )
    survive: str = choice(
        "90",
        {level: per_cent(str(level)) for level in LEVELS},
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
            "drawn": "also points drawn from these",
            "picture": "also a picture of the people",
        },
        label="What is handed out?",
        help="Directions say what varies together; the variances need a released matrix, and "
        "points drawn from it are nobody's; a picture of the people shows their rows, which no "
        "promise covers.",
        url="hand_out",
        examples=("variances",),
    )
    pictured: str = choice(
        "no",
        {"no": "no", "yes": "yes"},
        label="With a picture of counts, which may be shown",
        help="People in cells along the components, under the same epsilon: less is left for the "
        "components.",
        url="pictured",
        examples=("yes",),
    )
    prior: float = number(
        1.0,
        0.1,
        99.0,
        label="What a guesser believed before, %",
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
        STAGES[0],
        label="Question shown",
        help="What the page shows: ceiling, or card for every mechanism.",
        url="ask",
        # a link to a stage that is gone opens the first and is no error
        check=lambda value: value if value in STAGES else STAGES[0],
        examples=("card",),
    )

    @property
    def shows_rows(self) -> bool:
        """Whether people's own rows would be handed out: no promise covers that."""
        return self.hand_out == "picture"

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
