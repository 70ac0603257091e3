"""Choices for the question of what can be published safely, and plans with guessed numbers."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.core.number_text import per_cent
from dpviz.core.params import Declared, choice, integer, number

LEVELS = ("50", "75", "90", "95")
"""Recovery levels to choose from, in per cent."""


@dataclass(frozen=True)
class Answers(Declared):
    """A decision maker's choices; each choice is part of a link."""

    source: str = choice(
        "table",
        {"table": "a table", "plan": "no data yet: I enter guessed numbers"},
        label="What is it about?",
        help="The table chosen above, or a plan with guessed numbers, which needs no data.",
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
            "strong": "a few directions hold nearly all variance",
            "some": "some directions hold most of the variance",
            "flat": "many directions hold a little variance each",
        },
        label="Guessed structure",
        help="How fast the variances of the components fall.",
        examples=("strong",),
    )
    hand_out: str = choice(
        "map",
        {
            "map": "components and a map of counts",
            "directions": "components alone",
            "picture": "a picture of the people",
        },
        label="What is published",
        help="Components show which features vary together, each component with its variance. The "
        "map shows noisy counts of people along two components and uses most of the budget. A "
        "picture of the people shows their own rows, which no privacy promise covers.",
        url="hand_out",
        examples=("directions",),
    )
    survive: str = choice(
        "90",
        {level: per_cent(level) for level in LEVELS},
        label="Structure to keep",
        help="Recovery: 0% is a random result, 100% the exact result. At least 95% of releases "
        "must keep the chosen share.",
        examples=("50",),
    )
    ceiling: float = number(
        3.0,
        # A suspicion starts at 1 %, so no release makes the risk smaller.
        1.1,
        99.0,
        label="Highest acceptable risk, in 100",
        help="Before the release, a suspicion is right 1 time in 100. After the release, at most "
        "this many suspicions in 100 are right. A larger number means less protection.",
        slider=(1.1, 99.0),
        examples=(10.0,),
    )
    delta_allowed: str = choice(
        "yes",
        {"yes": "yes, a tiny delta", "no": "no, never"},
        label="Is a delta acceptable?",
        help="Extra probability allowed beyond epsilon, far below 1 in the number of rows. Without "
        "a delta, a larger epsilon is needed.",
        url="with_delta",
        examples=("no",),
    )

    @property
    def shows_rows(self) -> bool:
        """Whether people's own rows would be published, which no privacy promise covers."""
        return self.hand_out == "picture"

    @property
    def recovery(self) -> float:
        """The recovery that the decision maker requests, from 0 to 1."""
        return int(self.survive) / 100


_SPECTRA = {
    "strong": "exponential:d={d},rate=1,total=0.5",
    "some": "power:d={d},exponent=1.5,total=0.5",
    "flat": "power:d={d},exponent=0.5,total=0.5",
}


def plan_text(answers: Answers) -> str:
    """Return the plan of the guessed numbers, as text for the setting ``table``."""
    spectrum = _SPECTRA[answers.shape].format(d=answers.features)
    return f"plan:n={answers.people},spectrum={spectrum}"
