"""Axes that all Plotly figures share, and names at the ends of lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpviz.core.number_text import decades, log_ticks, numeral, power_text

if TYPE_CHECKING:  # print.py uses `apart` of this file without Plotly.
    import plotly.graph_objects as go

LINE = 20
"""Height of a line of text in pixels."""
LEAD = 30
"""Pixels between lines and their names; thin lines connect names with their lines."""


def frame(
    height: float, *, left: int = 10, top: int = 40, right: int = 10, bottom: int = 10, **more: Any
) -> dict[str, Any]:
    """Return a figure's layout: height and margins in pixels, and further properties."""
    margin = {"l": left, "r": right, "t": top, "b": bottom}
    return {"height": height, "margin": margin, **more}


def log_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """Return a logarithmic axis between two powers of ten, with exponents large enough to read.

    Parameters
    ----------
    title : str
    low, high : float
        Exponents of ten, as Plotly expects them.
    """
    wide = high - low > 2.5
    ticks = decades(low, high, 8) if wide else log_ticks(low, high)
    texts = [power_text(tick) if wide else numeral(tick, 6) for tick in ticks]
    return {
        "title": title, "type": "log", "range": [low, high], "tickvals": ticks, "ticktext": texts,
    }  # fmt: skip


def apart(
    heights: Sequence[float], step: float, low: float = -math.inf, high: float = math.inf
) -> list[float]:
    """Return positions near the heights, at least a step apart, within the ends if possible."""
    order = np.argsort(heights, kind="stable")
    steps = step * np.arange(len(order))
    heights_in_order = np.array(heights, dtype=float)[order]
    # Each label moves at least a step above the one below. Then all move down by the mean shift.
    places = np.maximum.accumulate(heights_in_order - steps) + steps
    places -= np.mean(places - heights_in_order) if len(places) else 0.0
    # Labels move down below the upper end of the axis, then up above its lower end.
    places = np.minimum.accumulate((np.minimum(places, high) - steps)[::-1])[::-1] + steps
    places = np.maximum.accumulate(np.maximum(places, low) - steps) + steps
    result = np.empty_like(places)
    result[order] = places
    return [float(place) for place in result]


def add_names(
    figure: go.Figure,
    ends: Sequence[tuple[str, str, str, float]],
    span: tuple[float, float],
    tall: float,
    *,
    left: float | None = None,
    rows: int = 1,
    leads: bool = False,
) -> None:
    """Write each name beside the end of its line; move names apart if they would overlap.

    Parameters
    ----------
    figure : Figure
    ends : sequence of (str, str, str, float)
        Key, name, colour and height of each line, in order of priority. The plot names as many
        lines as fit; the legend names the others.
    span : (float, float)
        Ends of the y axis. On a logarithmic axis, these ends and the heights are exponents of ten.
    tall : float
        Height of the plot in pixels.
    left : float, optional
        Position of the left edge of names on the x axis; by default the left edge of the plot.
    rows : int
        Number of text lines in each name.
    leads : bool
        Whether a thin line leads to a name that was moved away from the end of its line.
    """
    high = rows * LINE
    step = high * (span[1] - span[0]) / tall
    lines = ends[: int(tall / high)]
    places = apart([end[3] for end in lines], step, span[0] + step / 2, span[1] - step / 2)
    for (key, name, colour, end), place in zip(lines, places, strict=True):
        at: dict[str, Any] = {"y": place, "showarrow": False, "xshift": LEAD if leads else 6}
        if leads and abs(place - end) > step / 2:
            down = high * (end - place) / step
            at = {"y": end, "ax": LEAD, "ay": down, "arrowhead": 0, "arrowwidth": 1, "standoff": 9}
        figure.add_annotation(
            text=name, name=f"name:{key}", font={"color": colour, "size": 15}, arrowcolor=colour,
            x=0 if left is None else left, xref="x domain" if left is None else "x", align="left",
            xanchor="left", yanchor="middle", borderpad=0, captureevents=True, **at,
        )  # fmt: skip
