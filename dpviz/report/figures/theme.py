"""Colours, markers and names that every figure shares."""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpviz.core.number_text import decades, numeral, per_cent
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import VERDICT_WORDS, Status, Verdict
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.simulation.compare import Result

if TYPE_CHECKING:  # a board needs colours and no Plotly
    import plotly.graph_objects as go
    from plotly.graph_objects import Figure as Figure

# A mechanism has one colour wherever it stands; its place among them is `Info.highlight`. The first
# six are shown before a user chooses, the last two come with unequal precision. Every one has a
# contrast of at least 3 : 1 on both grounds of the light and of the dark theme. A search
# chose them: readers with usual sight or one of the three common deficiencies can distinguish any
# two, and the grey. tests/unit/test_palette.py computes contrast and distance.
HIGHLIGHTS = (
    "#218FFF", "#9A8F00", "#BB168F", "#5842FD", "#4D6E4D", "#F2006E", "#C66EB0", "#846300",
)  # fmt: skip
BROUGHT = ("#009048", "#7860A8", "#A86060")
"""Colours of mechanisms that others bring. No further colour is told from all of the above by every
reader, so their lines are dashed too."""
GREY = "#7F7F7F"
"""Every other mechanism, drawn thin and named beside its line."""

TRUE_COLOUR = GREY
MARKERS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "triangle-down", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# A legend below the axis title at every width: a place in shares of the plot lies on the title
# where the plot is low. It asks for x axes with automargin.
BELOW = {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0}

# What is neither a mechanism nor a label: an attack, a formula, two worlds.
FIRST_TONE, SECOND_TONE, WARNING_TONE = "#0072B2", "#009E73", "#D55E00"


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

    @property
    def highlighted(self) -> bool:
        """Whether it has a colour of its own; the others are drawn thin, with direct labels."""
        return self.colour != GREY

    @property
    def width(self) -> float:
        """Pixels of its line."""
        return 2.0 if self.highlighted else 1.0


def panels(results: Sequence[Result]) -> list[Panel]:
    """Return how each result is shown; marker and dash tell those of one colour apart."""
    return _panels([(result.mechanism, result.status) for result in results])


def panels_of(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return how each variant is shown before it has run."""
    return _panels([(mechanism, mechanism.status(problem, budget)) for mechanism in mechanisms])


def panels_unjudged(mechanisms: Sequence[Mechanism]) -> list[Panel]:
    """Return how each variant is shown before its claim has been judged: without a status."""
    return _panels([(mechanism, None) for mechanism in mechanisms])


_ROUND = math.lcm(len(MARKERS), len(DASHES))


def _panels(shown: Sequence[tuple[Mechanism, Status | None]]) -> list[Panel]:
    seen: Counter[str] = Counter()
    found = []
    for mechanism, status in shown:
        colour = colour_of(mechanism)
        place = seen[colour] + (not mechanism.ours)
        seen[colour] += 1
        found.append(
            Panel(
                key=mechanism.text,
                label=mechanism.label,
                status="" if status is None else status.marked,
                colour=colour,
                marker=MARKERS[place % len(MARKERS)],
                # once round all pairs that this gives, the next round is one dash further
                dash=DASHES[(place + place // _ROUND) % len(DASHES)],
            )
        )
    return found


def colour_of(mechanism: Mechanism | type[Mechanism]) -> str:
    """Return the colour of a mechanism, the same wherever it stands."""
    if not mechanism.ours:
        brought = [key for key, cls in all_mechanisms().items() if not cls.ours]
        known = mechanism.key in brought
        # an object in a notebook is on no list: its name decides
        place = brought.index(mechanism.key) if known else sum(mechanism.key.encode())
        return BROUGHT[place % len(BROUGHT)]
    place = mechanism.info.highlight
    return HIGHLIGHTS[(place - 1) % len(HIGHLIGHTS)] if place else GREY


def colour_of_key(key: str) -> str:
    """Return the colour of the mechanism with a key, and the grey where no mechanism has it."""
    known = all_mechanisms()
    return colour_of(known[key]) if key in known else GREY


def scatter(**properties: Any) -> dict[str, Any]:
    """Return a trace for `plotly.graph_objects.Figure.add_trace`, which checks it.

    A `plotly.graph_objects.Scatter` is checked and built twice: by itself and by the figure.
    """
    return {"type": "scatter", **properties}


def to_scale(figure: go.Figure) -> go.Figure:
    """Make a unit as long across as up in every plot of a figure; all axes have their ranges."""
    figure.update_xaxes(constrain="domain", matches=None)
    figure.update_yaxes(constrain="domain", matches=None)
    for axis in figure.select_yaxes():
        axis.scaleanchor = axis.anchor or "x"
    return figure


SHARES: dict[str, Any] = {
    "tickformat": "~%",
    # from 0 on by tenths, as a narrow axis has them
    "labelalias": {
        f"{share}%".replace("-", "−"): per_cent(share)
        for share in (numeral(n / 10, 4) for n in (*range(-1000, 0, 10), *range(1001)))
    },
}
"""Of an axis of shares: its ticks written as sentences write them, with a space."""


def standing(now: float, *, log: bool) -> dict[str, list[dict[str, Any]]]:
    """Return what marks where the present setting stands: a thin grey line, and "now" over it.

    To be handed to `plotly.graph_objects.Figure.update_layout`: `add_vline` looks at every axis
    and every shape of the figure first.

    Parameters
    ----------
    now : float
        A place on the x axis, in the axis's own units.
    log : bool
        Whether the axis is logarithmic.
    """
    line = {
        "type": "line", "xref": "x", "x0": now, "x1": now, "yref": "y domain", "y0": 0, "y1": 1,
        "line": {"color": TRUE_COLOUR, "width": 1},
    }  # fmt: skip
    word = {
        # On a logarithmic axis Plotly takes the logarithm, for annotations alone.
        "x": math.log10(now) if log and now > 0 else now, "y": 1, "yref": "paper",
        "text": "now", "showarrow": False, "yanchor": "bottom", "font": {"size": 12},
    }  # fmt: skip
    return {"shapes": [line], "annotations": [word]}


def faded(colour: str, alpha: float) -> str:
    """Return a colour with transparency, as charts take it."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"


def wrapped(text: str, width: int = 22) -> str:
    """Return a text for an axis or a legend in lines of at most so many letters where it can be."""
    return "<br>".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


def told(words: str, *columns: tuple[Iterable[float], int]) -> list[str]:
    """Return what stands under the pointer at each point, in a chart's ``hovertext``.

    A chart's own formats write 0.000600 for 6e-4.

    Parameters
    ----------
    words : str
        With one pair of braces for each column.
    columns : (iterable of float, int)
        Numbers, one for each point, and how many digits they have.
    """
    texts = [[numeral(value, digits) for value in values] for values, digits in columns]
    return [words.format(*row) for row in zip(*texts, strict=True)]


def curve(
    x: Any, y: Any, words: str, name: str, *, digits: tuple[int, int] = (3, 3), **look: Any
) -> dict[str, Any]:
    """Return a line through points, each with its numbers under the pointer.

    Parameters
    ----------
    x, y : sequence of float
    words : str
        As `told` takes them, for x and y.
    name : str
        Of the line, in the legend and under the pointer.
    digits : (int, int)
        Of x and of y.
    **look
        Further properties of the trace, in place of those here too.
    """
    return {
        "type": "scatter", "x": x, "y": y, "mode": "lines", "name": name,
        "hovertext": told(words, (x, digits[0]), (y, digits[1])),
        "hovertemplate": f"%{{hovertext}}<extra>{name}</extra>", **look,
    }  # fmt: skip


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
        powers = decades(math.log10(self.threshold), math.log10(top), 3)
        values = [-v for v in reversed(powers) if -v >= low] + [0.0]
        values += [v for v in powers if v <= high]
        marks = [(self.forward(v), "0" if v == 0 else numeral(v, 6)) for v in values]
        near = 0.08 * (self.forward(high) - self.forward(low))  # its text would touch the zero's
        return [(at, text) for at, text in marks if at == 0 or abs(at) > near]


def figure_of(data: Any) -> Figure:
    """Return the figure whose JSON data this is."""
    from plotly.io import from_json

    return from_json(json.dumps(data))


def stretches(
    part: pd.DataFrame, plain: str, *, x: str = "x", beyond: float = math.inf
) -> list[tuple[pd.DataFrame, str]]:
    """Return the rows of each stretch of one dash, neighbours sharing the point between them.

    Parameters
    ----------
    part : DataFrame
        Rows of one curve in order, with a column verdict: a line is dashed where the claim fails
        at either end of it.
    plain : str
        Dash of the other lines.
    x : str
        Column of the axis.
    beyond : float
        From here on lines are dashed in any case.
    """
    fails = [Verdict(verdict).fails for verdict in part["verdict"]]
    if len(part) < 2:
        return [(part, "dash" if any(fails) else plain)]
    lines = [
        "dash" if fails[i] or fails[i + 1] or part[x].iloc[i] >= beyond else plain
        for i in range(len(part) - 1)
    ]
    found, start = [], 0
    for i in range(1, len(lines) + 1):
        if i == len(lines) or lines[i] != lines[start]:
            found.append((part.iloc[start : i + 1], lines[start]))
            start = i
    return found


def symbols(verdicts: Iterable[str], marker: str) -> list[str]:
    """Return the marker of each point: open where the claim fails."""
    return [f"{marker}-open" if Verdict(verdict).fails else marker for verdict in verdicts]


def verdict_words(verdicts: Iterable[str]) -> list[str]:
    """Return what is said of the claim at each point."""
    return [VERDICT_WORDS[Verdict(verdict)] for verdict in verdicts]
