"""Options of single pages that the core does not have, such as how results are shown."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.core.params import Declared, choice, integer, number, text
from dpviz.core.settings import Settings
from dpviz.lessons.languages import names
from dpviz.lessons.questions import Answers
from dpviz.mechanisms import featured
from dpviz.papers import experiments
from dpviz.simulation.tasks import Task


@dataclass(frozen=True)
class ExploreView(Declared):
    """How the Explore page shows its results."""

    spectrum: str = choice(
        "log",
        {"log": "symmetric log", "linear": "linear"},
        label="Eigenvalue axis",
        help="Symmetric log is linear near zero, and logarithmic for larger absolute values.",
        examples=("linear",),
    )
    axes: str = choice(
        "aligned",
        {"aligned": "turned to match the true axes", "raw": "as released"},
        label="Axes of the projection",
        help="A subspace does not determine its axes. Turned axes make charts comparable but hide "
        "rotation inside the subspace.",
        examples=("raw",),
    )
    draw: int = integer(
        1,
        1,
        1_000_000,
        label="Release shown",
        help="Number of the simulated release that the projection shows. The distance charts show "
        "all releases.",
        examples=(2,),
    )
    charts: str = choice(
        "board",
        {"board": "the board", "all": "every chart, with captions and numbers"},
        label="Charts",
        help="Charts that Explore shows below the mechanisms.",
        examples=("all",),
    )
    stage: str = choice(
        "no",
        {"no": "on the page", "yes": "in full screen, for a lecture hall"},
        label="Present",
        help="Show three columns in full screen, with one control.",
        examples=("yes",),
    )


@dataclass(frozen=True)
class ClaimsView(Declared):
    """Open part of the Claims page: all promises, or the part that a mechanism's card opens."""

    part: str = choice(
        "verdicts",
        {
            "verdicts": "All promises",
            "audit": "Run an audit",
            "refutations": "Refutations",
            "attacker": "Attacker's view",
            "person": "Move one person's row",
            "exploring": "Not protected",
        },
        label="Part of the page",
        help="The part of the page that is shown.",
        examples=("refutations",),
    )
    exhibit: str = choice(
        "support",
        {
            "support": "Moving support",
            "direction": "Bare direction",
            "delta": "True delta",
            "code": "Public code",
            "chain": "Gibbs chain",
        },
        label="Exhibit",
        help="The refutation that is shown.",
        examples=("chain",),
    )


OPENING = "mvg_table4"
"""First experiment of the Papers page: a table whose numbers can be compared directly."""


@dataclass(frozen=True)
class PapersView(Declared):
    """Experiment that the Papers page shows, and the amount of work."""

    experiment: str = choice(
        OPENING,
        {
            key: f"{item.info.paper}, {item.info.place}: {item.info.title}"
            for key, item in experiments().items()
        },
        label="Experiment",
        help="A table, a figure or theorems of one of the four papers.",
        examples=(list(experiments())[-1],),
    )
    claim: str = text(
        "",
        label="Claim",
        help="Claim that is listed first in the experiment.",
        url="claim",
        examples=("jiang-1",),
    )
    effort: str = choice(
        "quick",
        {"quick": "few runs", "full": "as many runs as the paper"},
        label="Runs",
        help="Few runs take seconds; the paper's number of runs takes minutes. A stopped run "
        "continues where it stopped.",
        examples=("full",),
    )


@dataclass(frozen=True)
class GuideView(Declared):
    """Lesson and step that the Guide shows."""

    lesson: int = integer(
        1,
        1,
        99,
        label="Lesson",
        help="Number of the lesson.",
        examples=(4,),
    )
    step: int = integer(
        1,
        1,
        99,
        label="Step",
        help="Step of the lesson.",
        examples=(2,),
    )
    bet: float = number(
        0,
        0,
        1_000,
        label="Bet",
        help="Number of the chosen answer, from 1, or the epsilon of a flag. The value 0 means no "
        "choice yet.",
        examples=(2, 0.35),
    )
    moved: str = choice(
        "no",
        {"no": "not yet", "yes": "revealed", "more": "moved to the extreme"},
        label="Move",
        help="Whether the step's result was revealed.",
        examples=("yes",),
    )
    present: str = choice(
        "no",
        {"no": "beside the menu", "yes": "large, without menu"},
        label="Present",
        help="Show only the lesson, one and a half times as large, for a lecture hall.",
        examples=("yes",),
    )
    language: str = choice(
        "en",
        names(),
        label="Language",
        help="Language of the lessons.",
        url="language",
        examples=("de",),
    )
    room: str = text(
        "",
        label="Key of the room",
        help="Anyone with this key controls the room that dpviz class opened, and its projector.",
        url="room",
        examples=("a1b2c3",),
    )


VIEWS: dict[str, type[Declared]] = {
    "explore": ExploreView,
    "claims": ClaimsView,
    "papers": PapersView,
    "tasks": Task,
    "guide": GuideView,
    "decide": Answers,
}
"""Options of pages by their key in the session; links carry all options."""


def page_defaults() -> Settings:
    """Return the first settings of the dashboard: few releases, the featured mechanisms."""
    return Settings(mechanisms=featured(), trials=20)
