"""Colours, markers and names that every figure shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.mechanisms import Mechanism
from dpviz.problem import Budget, Problem
from dpviz.release import VERDICT_MARKS, VERDICT_WORDS, Verdict
from dpviz.sweeps import Result

# One hue per family, after Okabe and Ito 2008: told apart by readers with any
# common colour blindness, and readable on white and on near-black.
FAMILY_COLOURS = {
    "gaussian": "#0072B2",
    "laplace": "#E69F00",
    "wishart": "#D55E00",
    "subspace": "#009E73",
    "directional": "#CC79A7",
    "iterative": "#56B4E9",
    "data": "#8C6BB1",
    "baseline": "#7F7F7F",
}
TRUE_COLOUR = "#7F7F7F"
MARKERS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "triangle-down", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# Ten hues for labels; beyond ten, colours repeat with other markers.
LABEL_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9",
    "#D55E00", "#8C6BB1", "#B8A800", "#7F7F7F", "#6B4C3B",
)  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """How one variant is shown.

    Attributes
    ----------
    key : str
        Text of the variant, as in tables.
    label : str
    status : str
        The verdict in words, with a mark.
    colour, marker, dash : str
    """

    key: str
    label: str
    status: str
    colour: str
    marker: str
    dash: str


def panels(results: Sequence[Result]) -> list[Panel]:
    """Return how each result is shown: colour by family, marker and dash within it."""
    return _panels([(result.mechanism, result.status.verdict) for result in results])


def panels_of(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return how each variant is shown before it has run."""
    return _panels(
        [(mechanism, mechanism.status(problem, budget).verdict) for mechanism in mechanisms]
    )


def _panels(shown: Sequence[tuple[Mechanism, Verdict]]) -> list[Panel]:
    seen: dict[str, int] = {}
    found = []
    for mechanism, verdict in shown:
        family = mechanism.info.family
        place = seen.get(family, 0)
        seen[family] = place + 1
        found.append(
            Panel(
                key=mechanism.text,
                label=mechanism.label,
                status=f"{VERDICT_MARKS[verdict]} {VERDICT_WORDS[verdict]}".strip(),
                colour=FAMILY_COLOURS[family],
                marker=MARKERS[place % len(MARKERS)],
                dash=DASHES[place % len(DASHES)],
            )
        )
    return found


@dataclass(frozen=True)
class SymmetricLog:
    """An axis that is linear near zero and logarithmic beyond, on both sides.

    Maps v to asinh(v/threshold). Nothing is cut off: noise a thousand times
    the signal and negative eigenvalues stay on one axis.
    """

    threshold: float

    def forward(self, value: float) -> float:
        """Return the position of a value."""
        return math.asinh(value / self.threshold)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Return (position, text) of ticks: zero and powers of ten in range."""
        top = max(abs(low), abs(high), self.threshold)
        first = math.ceil(math.log10(self.threshold))
        last = math.floor(math.log10(top))
        step = max(1, math.ceil((last - first + 1) / 3))
        powers = [10.0**e for e in range(first, last + 1, step)]
        values = [-v for v in reversed(powers) if -v >= low] + [0.0]
        values += [v for v in powers if v <= high]
        marks = [(self.forward(v), "0" if v == 0 else f"{v:g}") for v in values]
        near = 0.08 * (self.forward(high) - self.forward(low))  # its text would touch the zero's
        return [(at, text) for at, text in marks if at == 0 or abs(at) > near]
