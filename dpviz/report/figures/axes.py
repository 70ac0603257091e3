"""Axes and the names at the ends of lines, as every Plotly figure has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpviz.core.number_text import decades, log_ticks, numeral, power_text

if TYPE_CHECKING:  # what prints takes `apart`, and no Plotly
    import plotly.graph_objects as go

LINE = 20
"""Pixels of a line of text."""


def log_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """Return a logarithmic axis between two powers of ten; no superscript is too small to read.

    Parameters
    ----------
    title : str
    low, high : float
        The powers, as Plotly takes them.
    """
    few = decades(low, high, 8)
    ticks = few if len(few) > 2 else log_ticks(low, high)
    texts = [power_text(tick) if len(few) > 2 else numeral(tick, 6) for tick in ticks]
    return {
        "title": title, "type": "log", "range": [low, high], "tickvals": ticks, "ticktext": texts,
    }  # fmt: skip


def apart(
    heights: Sequence[float], step: float, low: float = -math.inf, high: float = math.inf
) -> list[float]:
    """Return places near heights, no two closer than a step, between two ends where they fit."""
    order = np.argsort(heights, kind="stable")
    steps = step * np.arange(len(order))
    wanted = np.array(heights, dtype=float)[order]
    # each at least a step above the one below, then all down by what that moved them in the mean
    places = np.maximum.accumulate(wanted - steps) + steps
    places -= np.mean(places - wanted) if len(places) else 0.0
    # from the upper end down, and from the lower end up
    places = np.minimum.accumulate((np.minimum(places, high) - steps)[::-1])[::-1] + steps
    places = np.maximum.accumulate(np.maximum(places, low) - steps) + steps
    found = np.empty_like(places)
    found[order] = places
    return [float(place) for place in found]


def add_names(
    figure: go.Figure,
    ends: Sequence[tuple[str, str, str, float]],
    span: tuple[float, float],
    tall: float,
    *,
    left: float | None = None,
) -> None:
    """Write each name beside the end of its line, nudged apart.

    Parameters
    ----------
    figure : Figure
    ends : sequence of (str, str, str, float)
        Key, name, colour and height of each, the first to be named first: the plot has room for so
        many, and the legend has the others.
    span : (float, float)
        Ends of the y axis; a logarithmic one is in powers of ten, and so are heights.
    tall : float
        Pixels of the plot.
    left : float, optional
        Place on the x axis of the left edge of names; of the right edge of the plot if none.
    """
    step = LINE * (span[1] - span[0]) / tall
    named = ends[: int(tall / LINE)]
    places = apart([end[3] for end in named], step, span[0] + step / 2, span[1] - step / 2)
    for (key, name, colour, _), place in zip(named, places, strict=True):
        figure.add_annotation(
            text=name, name=f"name:{key}", showarrow=False, font={"color": colour, "size": 15},
            x=0 if left is None else left, xref="x domain" if left is None else "x",
            xanchor="left", xshift=6, y=place, yanchor="middle", borderpad=0, captureevents=True,
        )  # fmt: skip
