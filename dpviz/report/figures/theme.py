"""Colours, markers and names that all figures share."""

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

if TYPE_CHECKING:  # Comparison figures use these colours without Plotly.
    import plotly.graph_objects as go
    from plotly.graph_objects import Figure as Figure

# A mechanism has the same colour everywhere; `Info.highlight` is its position in this list. The
# first six are shown by default; the last two are for unequal precision. Every colour has a
# contrast of at least 3 : 1 on both backgrounds of the light and of the dark theme. A search chose
# the colours: readers with usual sight or one of the three common deficiencies can distinguish any
# two of them, and grey. tests/unit/test_palette.py computes contrast and distance.
HIGHLIGHTS = (
    "#218FFF", "#9A8F00", "#BB168F", "#5842FD", "#4D6E4D", "#F2006E", "#C66EB0", "#846300",
)  # fmt: skip
BROUGHT = ("#009048", "#7860A8", "#A86060")
"""Colours of custom mechanisms. Not every reader can distinguish further colours from the list
above, so lines in these colours are dashed too."""
GREY = "#7F7F7F"
"""Colour of all other mechanisms, which are thin lines with a name beside each line."""

TRUE_COLOUR = GREY
MARKERS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "triangle-down", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# Put the legend below the axis title at every width. If its position depended on the plot, it would
# cover the title of a low plot. The x axes need Plotly's automargin for this.
BELOW = {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0}

# These colours are for charts without mechanisms and labels: of an attack, a formula, two tables.
FIRST_TONE, SECOND_TONE, WARNING_TONE = "#0072B2", "#009E73", "#D55E00"


@dataclass(frozen=True)
class Panel:
    """Name, colour, marker and dash of one mechanism variant.

    Attributes
    ----------
    key : str
        Text of the variant, as tables show it.
    label : str
    status : str
        The verdict in words, with its mark.
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
        """Whether the variant has its own colour; others are thin lines with direct labels."""
        return self.colour != GREY

    @property
    def width(self) -> float:
        """Line width in pixels."""
        return 2.0 if self.highlighted else 1.0


def panels(results: Sequence[Result]) -> list[Panel]:
    """Return each result's panel; marker and dash distinguish panels of the same colour."""
    return _panels([(result.mechanism, result.status) for result in results])


def panels_of(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return the panel of each variant before the variant has run."""
    return _panels([(mechanism, mechanism.status(problem, budget)) for mechanism in mechanisms])


def panels_unjudged(mechanisms: Sequence[Mechanism]) -> list[Panel]:
    """Return the panel, without status, of each variant whose claim is not yet judged."""
    return _panels([(mechanism, None) for mechanism in mechanisms])


_ROUND = math.lcm(len(MARKERS), len(DASHES))


def _panels(variants: Sequence[tuple[Mechanism, Status | None]]) -> list[Panel]:
    uses: Counter[str] = Counter()
    panels = []
    for mechanism, status in variants:
        colour = colour_of(mechanism)
        place = uses[colour] + (not mechanism.ours)
        uses[colour] += 1
        panels.append(
            Panel(
                key=mechanism.text,
                label=mechanism.label,
                status="" if status is None else status.marked,
                colour=colour,
                marker=MARKERS[place % len(MARKERS)],
                # After all pairs of marker and dash are used, shift the dash to get new pairs.
                dash=DASHES[(place + place // _ROUND) % len(DASHES)],
            )
        )
    return panels


def colour_of(mechanism: Mechanism | type[Mechanism]) -> str:
    """Return a mechanism's colour, which is the same everywhere."""
    if not mechanism.ours:
        brought = [key for key, cls in all_mechanisms().items() if not cls.ours]
        is_brought = mechanism.key in brought
        # The list has no mechanisms from notebooks, so their names determine their colours.
        place = brought.index(mechanism.key) if is_brought else sum(mechanism.key.encode())
        return BROUGHT[place % len(BROUGHT)]
    place = mechanism.info.highlight
    return HIGHLIGHTS[(place - 1) % len(HIGHLIGHTS)] if place else GREY


def colour_of_key(key: str) -> str:
    """Return the colour of the mechanism with a key, or grey if there is none."""
    mechanisms = all_mechanisms()
    return colour_of(mechanisms[key]) if key in mechanisms else GREY


def scatter(**properties: Any) -> dict[str, Any]:
    """Return a trace for `plotly.graph_objects.Figure.add_trace`, which checks it.

    A `plotly.graph_objects.Scatter` is checked and built twice: by itself and by the figure.
    """
    return {"type": "scatter", **properties}


def to_scale(figure: go.Figure) -> go.Figure:
    """Give both axes of every plot in a figure the same scale; all axes must have ranges."""
    figure.update_xaxes(constrain="domain", matches=None)
    figure.update_yaxes(constrain="domain", matches=None)
    for axis in figure.select_yaxes():
        axis.scaleanchor = axis.anchor or "x"
    return figure


SHARES: dict[str, Any] = {
    "tickformat": "~%",
    # An axis of shares starts at 0 with ticks at tenths, which fit even a narrow axis.
    "labelalias": {
        f"{share}%".replace("-", "−"): per_cent(share)
        for share in (numeral(n / 10, 4) for n in (*range(-1000, 0, 10), *range(1001)))
    },
}
"""Settings of an axis of shares, whose ticks have a space before %, as in sentences."""


def standing(now: float, *, log: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the mark of the current setting: a thin grey line with the text "now" above.

    Pass the mark to `plotly.graph_objects.Figure.update_layout`, because `add_vline` would inspect
    every axis and every shape of the figure first.

    Parameters
    ----------
    now : float
        Position on the x axis, in the axis's own units.
    log : bool
        Whether the axis is logarithmic.
    """
    line = {
        "type": "line", "xref": "x", "x0": now, "x1": now, "yref": "y domain", "y0": 0, "y1": 1,
        "line": {"color": TRUE_COLOUR, "width": 1},
    }  # fmt: skip
    word = {
        # On a logarithmic axis Plotly expects logarithms for annotations, but not for shapes.
        "x": math.log10(now) if log and now > 0 else now, "y": 1, "yref": "paper",
        "text": "now", "showarrow": False, "yanchor": "bottom", "font": {"size": 12},
    }  # fmt: skip
    return {"shapes": [line], "annotations": [word]}


def faded(colour: str, alpha: float) -> str:
    """Return a colour with transparency in the form that Plotly expects."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"


def wrapped(text: str, width: int = 22) -> str:
    """Break a text for an axis or a legend between words into lines of ``width`` letters."""
    return "<br>".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


def told(words: str, *columns: tuple[Iterable[float], int]) -> list[str]:
    """Return the hover texts of all points, for a chart's ``hovertext``.

    Plotly's own formats would write 0.000600 for 6e-4.

    Parameters
    ----------
    words : str
        Template of the text, with one pair of braces for each column.
    columns : (iterable of float, int)
        Numbers, one for each point, and the number of digits to write.
    """
    texts = [[numeral(value, digits) for value in values] for values, digits in columns]
    return [words.format(*row) for row in zip(*texts, strict=True)]


def curve(
    x: Any, y: Any, words: str, name: str, *, digits: tuple[int, int] = (3, 3), **look: Any
) -> dict[str, Any]:
    """Return a line through points, with each point's numbers as hover text.

    Parameters
    ----------
    x, y : sequence of float
    words : str
        Template for x and y, as in `told`.
    name : str
        Name of the line, in the legend and the hover text.
    digits : (int, int)
        Digits of x and of y.
    **look
        Further properties of the trace, which override the properties set here.
    """
    return {
        "type": "scatter", "x": x, "y": y, "mode": "lines", "name": name,
        "hovertext": told(words, (x, digits[0]), (y, digits[1])),
        "hovertemplate": f"%{{hovertext}}<extra>{name}</extra>", **look,
    }  # fmt: skip


@dataclass(frozen=True)
class SymmetricLog:
    """An axis that is linear near zero and logarithmic farther out, on both sides.

    The axis maps v to asinh(v/threshold). Nothing is cut off: noise a thousand times the signal and
    negative eigenvalues are visible on one axis.
    """

    threshold: float

    def forward(self, value: float) -> float:
        """Return the position of a value on the axis."""
        return math.asinh(value / self.threshold)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Return (position, text) of the ticks: zero and powers of ten within the range."""
        top = max(abs(low), abs(high), self.threshold)
        powers = decades(math.log10(self.threshold), math.log10(top), 3)
        values = [-v for v in reversed(powers) if -v >= low] + [0.0]
        values += [v for v in powers if v <= high]
        marks = [(self.forward(v), "0" if v == 0 else numeral(v, 6)) for v in values]
        near = 0.08 * (self.forward(high) - self.forward(low))
        return [(at, text) for at, text in marks if at == 0 or abs(at) > near]


def figure_of(data: Any) -> Figure:
    """Return the Plotly figure that JSON data describes."""
    from plotly.io import from_json

    return from_json(json.dumps(data))


def stretches(
    part: pd.DataFrame, plain: str, *, x: str = "x", beyond: float = math.inf
) -> list[tuple[pd.DataFrame, str]]:
    """Split a curve into parts of one dash style; neighbouring parts share a point.

    Parameters
    ----------
    part : DataFrame
        Rows of one curve in order, with a column verdict. A segment is dashed if the claim fails at
        either end.
    plain : str
        Dash style of all other segments.
    x : str
        Column of the x axis.
    beyond : float
        Value of x from which on all segments are dashed.
    """
    fails = [Verdict(verdict).fails for verdict in part["verdict"]]
    if len(part) < 2:
        return [(part, "dash" if any(fails) else plain)]
    lines = [
        "dash" if fails[i] or fails[i + 1] or part[x].iloc[i] >= beyond else plain
        for i in range(len(part) - 1)
    ]
    parts, start = [], 0
    for i in range(1, len(lines) + 1):
        if i == len(lines) or lines[i] != lines[start]:
            parts.append((part.iloc[start : i + 1], lines[start]))
            start = i
    return parts


def symbols(verdicts: Iterable[str], marker: str) -> list[str]:
    """Return the marker of each point, which is open if the claim fails there."""
    return [f"{marker}-open" if Verdict(verdict).fails else marker for verdict in verdicts]


def verdict_words(verdicts: Iterable[str]) -> list[str]:
    """Return the verdict on the claim at each point, in words."""
    return [VERDICT_WORDS[Verdict(verdict)] for verdict in verdicts]
