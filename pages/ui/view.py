"""Options of single pages that are not the core's: how a thing is shown."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.mechanisms import featured
from dpviz.params import Declared, choice, integer
from dpviz.settings import Settings


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


def page_defaults() -> Settings:
    """Return what the dashboard starts with: few draws, the featured mechanisms."""
    return Settings(mechanisms=featured(), trials=20)
