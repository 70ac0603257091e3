"""Names beside the ends of lines, in a margin of their own: none on another, none on a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

LINE = 16  # pixels of a line of text of the size below
SIZE = 12
LEADER = 26  # pixels between the plot and the names, for the lines that lead to them
_LETTER = 6.6  # pixels of a letter, on average: widths of names are rounded up


def apart(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Return heights in the same order, as near those wanted as no two overlap.

    Those in each other's way form a block about the middle of what they want, inside the limits
    where it fits.

    Parameters
    ----------
    wanted : sequence of float
        From the lowest to the highest, middles.
    sizes : sequence of float
        What each takes up.
    low, high : float
        Limits of all of them.
    """

    def lower(block: list[int]) -> float:
        size = sum(sizes[i] for i in block)
        middle = sum(wanted[i] for i in block) / len(block)
        return max(low, min(middle - size / 2, high - size))

    blocks: list[list[int]] = []
    for number in range(len(wanted)):
        blocks.append([number])
        while len(blocks) > 1 and lower(blocks[-1]) < lower(blocks[-2]) + sum(
            sizes[i] for i in blocks[-2]
        ):
            last = blocks.pop()
            blocks[-1] += last
    found = []
    for block in blocks:
        edge = lower(block)
        for number in block:
            found.append(edge + sizes[number] / 2)
            edge += sizes[number]
    return found


@dataclass(frozen=True)
class Ending:
    """The right end of a line that is to be named.

    Attributes
    ----------
    key, name : str
        Of its variant, and as it is written.
    colour : str
    x : float
        Where it ends, in shares of the plot.
    y : float
        Likewise.
    height : float
        Mean height of the line: decides among lines that end alike.
    """

    key: str
    name: str
    colour: str
    x: float
    y: float
    height: float


def margin(names: Sequence[str]) -> int:
    """Return how many pixels right of the plot names and their leaders take."""
    longest = max((len(name) for name in names), default=0)
    return LEADER + 6 + math.ceil(_LETTER * longest) if longest else 10


def cut(names: Sequence[str]) -> int:
    """Return how much of `margin` can be cut off: what is left holds half the last tick's text."""
    return max(0, margin(names) - 16)


def add_names(figure: go.Figure, endings: Sequence[Ending], plot: float) -> None:
    """Write names right of the plot, each joined to the end of its line.

    Parameters
    ----------
    figure : Figure
        Its margin on the right is `margin` of the names; nothing is drawn there.
    endings : sequence of Ending
    plot : float
        Least height of the plot in pixels.
    """
    line = LINE / plot
    ordered = sorted(endings, key=lambda end: (round(end.y / line), end.height))
    places = apart([end.y for end in ordered], [line] * len(ordered), 0.0, 1.0)
    shapes, notes = [], []
    for end, place in zip(ordered, places, strict=True):
        stroke = {"color": end.colour, "width": 1}
        shared = {"type": "line", "xref": "paper", "yref": "paper", "layer": "below"}
        shapes.append(
            shared | {"xsizemode": "pixel", "xanchor": 1, "x0": 2, "x1": LEADER - 4,
                      "y0": end.y, "y1": place, "line": stroke, "name": "leader"}
        )  # fmt: skip
        if end.x < 0.97:  # it ends early
            dotted = stroke | {"dash": "dot"}
            shapes.append(
                shared | {"x0": end.x, "x1": 1, "y0": end.y, "y1": end.y, "line": dotted,
                          "opacity": 0.5, "name": "leader"}
            )  # fmt: skip
        notes.append(
            {
                "text": end.name, "name": f"name:{end.key}", "showarrow": False, "align": "left",
                "xref": "paper", "x": 1, "xanchor": "left", "xshift": LEADER, "borderpad": 0,
                "yref": "paper", "y": place, "yanchor": "middle", "captureevents": True,
                "font": {"color": end.colour, "size": SIZE},
            }
        )  # fmt: skip
    figure.update_layout(
        overwrite=True,
        shapes=[*figure.layout.shapes, *shapes],
        annotations=[*figure.layout.annotations, *notes],
    )
