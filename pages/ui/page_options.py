"""Options of single pages that are not the core's: how a thing is shown."""

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
        help="Symmetric log is linear near zero and logarithmic beyond, on both sides.",
        examples=("linear",),
    )
    axes: str = choice(
        "aligned",
        {"aligned": "turned to match the true axes", "raw": "as released"},
        label="Axes of the picture",
        help="A subspace has no axes of its own; turning them makes pictures comparable and hides "
        "rotation inside the space.",
        examples=("raw",),
    )
    draw: int = integer(
        1,
        1,
        1_000_000,
        label="Draw shown",
        help="Which of the draws the picture shows; the others are in the distances above.",
        examples=(2,),
    )
    charts: str = choice(
        "board",
        {"board": "the board", "all": "every chart, with captions and numbers"},
        label="Charts",
        help="What Explore shows below the board.",
        examples=("all",),
    )
    stage: str = choice(
        "no",
        {"no": "on its page", "yes": "on a stage, for a hall"},
        label="Present",
        help="Three columns as large as the screen, and one control.",
        examples=("yes",),
    )


@dataclass(frozen=True)
class ClaimsView(Declared):
    """What of the Claims page is open: all promises, or what one of its cards opens."""

    part: str = choice(
        "verdicts",
        {
            "verdicts": "All promises",
            "audit": "Audit it now",
            "refutations": "Refutations",
            "attacker": "Attacker's view",
            "person": "Drag one person",
            "exploring": "Not protected",
        },
        label="What to look at",
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
"""The exhibit that the Papers page opens on: a table whose numbers can be set side by side."""


@dataclass(frozen=True)
class PapersView(Declared):
    """Which experiment the Papers page shows, and how much work it does."""

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
        help="The claim of the experiment that stands first.",
        url="claim",
        examples=("jiang-1",),
    )
    effort: str = choice(
        "quick",
        {"quick": "few runs", "full": "as many as the paper"},
        label="Runs",
        help="Few runs take seconds; the paper's own number takes minutes. A stopped run goes on "
        "where it was.",
        examples=("full",),
    )


@dataclass(frozen=True)
class GuideView(Declared):
    """Which step of which lesson the Guide shows."""

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
        help="Which option of the step's question was bet on, from 1, or the epsilon of a flag; 0 "
        "while no bet is placed.",
        examples=(2, 0.35),
    )
    moved: str = choice(
        "no",
        {"no": "not yet", "yes": "revealed", "more": "to the extreme"},
        label="Move",
        help="Whether the step's move was made.",
        examples=("yes",),
    )
    present: str = choice(
        "no",
        {"no": "beside the menu", "yes": "large, without menu"},
        label="Present",
        help="Half as large again and nothing around it, for a lecture hall.",
        examples=("yes",),
    )
    language: str = choice(
        "en",
        names(),
        label="Language",
        help="What lessons are written in.",
        url="language",
        examples=("de",),
    )
    room: str = text(
        "",
        label="Key of the room",
        help="Whoever has it steers the room that dpviz class opened, with the projector.",
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
"""Options of pages by where the session holds them; all of them travel in links."""


def page_defaults() -> Settings:
    """Return what the dashboard starts with: few draws, the featured mechanisms."""
    return Settings(mechanisms=featured(), trials=20)
