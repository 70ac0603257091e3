"""Colours, markers and names that every figure shares."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.mechanisms import Mechanism, all_mechanisms, featured
from dpviz.run.cells import Result
from dpviz.values.problem import Budget, Problem
from dpviz.values.release import Status

# One hue per family, in three steps of lightness that its members take in turn. Every one has a
# contrast of at least 3 : 1 on the pages' light and dark grounds. Found by a search: the first
# colours of any two families differ by 16 or more in CIELAB, and colours of different families by
# 7 or more, also for readers with protanopia or deuteranopia (Machado et al. 2009).
# tests/unit/test_figures.py computes all of it.
FAMILY_SHADES = {
    "gaussian": ("#4C92FF", "#0077E3", "#005DB5"),
    "laplace": ("#BC885F", "#81532D", "#9E6D45"),
    "wishart": ("#B46300", "#8F4D00", "#DB7B02"),
    "subspace": ("#336849", "#699F7C", "#4D8362"),
    "directional": ("#CC76B8", "#903F80", "#AD5A9C"),
    "iterative": ("#316284", "#6B98BC", "#4E7C9F"),
    "data": ("#6B70C1", "#898CDF", "#4F57A4"),
    "baseline": ("#939393", "#5E5E5E", "#787878"),
}
FAMILY_COLOURS = {family: shades[0] for family, shades in FAMILY_SHADES.items()}
# What is shown before a user chooses, in the order of its slots.
HIGHLIGHTS = ("#785A2D", "#4B5A87", "#8700FF", "#E15AF0", "#F0690F", "#2DA596")
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
    hue : str
        The family's own colour, for what members of a family share; empty for ``colour``.
    """

    key: str
    label: str
    status: str
    colour: str
    marker: str
    dash: str
    hue: str = ""

    @property
    def family_colour(self) -> str:
        """The colour of the family."""
        return self.hue or self.colour


def panels(results: Sequence[Result]) -> list[Panel]:
    """Return how each result is shown: hue by family; lightness, marker and dash within it."""
    return _panels([(result.mechanism, result.status) for result in results])


def panels_of(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return how each variant is shown before it has run."""
    return _panels([(mechanism, mechanism.status(problem, budget)) for mechanism in mechanisms])


def _panels(shown: Sequence[tuple[Mechanism, Status]]) -> list[Panel]:
    seen: Counter[str] = Counter()
    variants: Counter[str] = Counter()
    found = []
    for mechanism, status in shown:
        family = mechanism.info.family
        # Variants step the other way than members, so that the two do not meet in one shade.
        place, step = seen[family], _rank(mechanism.key) - variants[mechanism.key]
        seen[family] += 1
        variants[mechanism.key] += 1
        shades = FAMILY_SHADES[family]
        found.append(
            Panel(
                key=mechanism.text,
                label=mechanism.label,
                status=status.marked,
                colour=shades[step % len(shades)],
                marker=MARKERS[place % len(MARKERS)],
                dash=DASHES[place % len(DASHES)],
                hue=FAMILY_COLOURS[family],
            )
        )
    return found


def _rank(key: str) -> int:
    """Return a mechanism's place in its whole family, whoever else is shown."""
    known = all_mechanisms()
    family = [other for other, cls in known.items() if cls.info.family == known[key].info.family]
    return family.index(key)


def colour_of(mechanism: Mechanism) -> str:
    """Return the colour of a mechanism, the same wherever it stands."""
    known = featured()
    if mechanism.key in known:
        return HIGHLIGHTS[known.index(mechanism.key) % len(HIGHLIGHTS)]
    shades = FAMILY_SHADES[mechanism.info.family]
    return shades[_rank(mechanism.key) % len(shades)]


def wrapped(text: str, width: int = 22) -> str:
    """Return a text for an axis or a legend in lines of at most so many letters where it can be."""
    return "<br>".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


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
