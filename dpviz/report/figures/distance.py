"""Subspace distances and principal angles of simulated releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral
from dpviz.report.figures.axes import frame
from dpviz.report.figures.theme import TRUE_COLOUR, Panel, wrapped

_ROW, _TALL_ROW, _GAP, _TOP, _BOTTOM = 30, 36, 70, 56, 30  # pixels


def distance_figure(
    table: pd.DataFrame, panels: Sequence[Panel], *, farthest: float, chance: float
) -> go.Figure:
    """Draw the distance of every simulated release and, below, its principal angles.

    Parameters
    ----------
    table : DataFrame
        `dpviz.report.tables.comparison.ANGLE_COLUMNS`.
    panels : sequence of Panel
    farthest : float
        Largest possible projection distance.
    chance : float
        Root mean squared distance of a uniformly random subspace.

    Returns
    -------
    Figure
        Each colour has one trace of releases, one of angles and one of medians, because a browser
        draws few long traces faster than many short traces.
    """
    # Points by the kind and colour of their Plotly trace, in the order of the panels.
    points: dict[str, dict[str, list[pd.DataFrame]]] = {"draws": {}, "medians": {}, "angles": {}}
    parts = dict(iter(table.groupby("mechanism", sort=False)))
    for number, panel in enumerate(panels):
        height, part = len(panels) - 1 - number, parts[panel.key]
        values = part.loc[part["angle"] == 1, "projection_distance"].to_numpy()
        half = np.array([np.median(values)])
        count = int(part["angle"].max())
        degrees = part["degrees"].to_numpy().reshape(-1, count)
        low, middle, high = np.quantile(degrees, [0.025, 0.5, 0.975], axis=0)
        lanes = height + (np.linspace(0.25, -0.25, count) if count > 1 else np.zeros(1))
        for kind, x, y, below, above in (
            ("draws", values, height + _spread(len(values)), 0.0, 0.0),
            ("medians", half, np.array([float(height)]), 0.0, 0.0),
            ("angles", middle, lanes, middle - low, high - middle),
        ):
            colour = "" if kind == "medians" else panel.colour
            numbers = pd.DataFrame({"x": x, "y": y, "below": below, "above": above})
            numbers = numbers.round({"x": 4, "y": 3, "below": 4, "above": 4})
            notes = [(panel.label, at, numeral(value, 3)) for at, value in enumerate(x, start=1)]
            rows = numbers.assign(
                colour=panel.colour, marker=panel.marker, note=pd.Series(notes, dtype=object)
            )
            points[kind].setdefault(colour, []).append(rows)
    traces = [
        _trace(kind, colour, pd.concat(parts))
        for kind, by_colour in points.items()
        for colour, parts in by_colour.items()
    ]
    return go.Figure(data=traces, layout=_layout(panels, farthest, chance))


_LOOKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "draws": ("", {"size": 5, "opacity": 0.55}, "draw %{customdata[1]}: %{customdata[2]}"),
    "medians": (
        "", {"symbol": "line-ns-open", "size": 18, "line": {"width": 3}}, "median %{customdata[2]}",
    ),
    "angles": ("2", {"size": 8}, "angle %{customdata[1]}: median %{customdata[2]}"),
}  # fmt: skip
"""Axes, appearance and hover text of each kind of points."""


def _trace(kind: str, colour: str, points: pd.DataFrame) -> dict[str, Any]:
    axes, look, hover = _LOOKS[kind]
    of = {name: column.tolist() for name, column in points.items()}
    ranges = {
        "type": "data", "array": of["above"], "arrayminus": of["below"],
        "thickness": 1.5, "width": 3, "color": colour,
    }  # fmt: skip
    return {
        "type": "scatter", "mode": "markers", "name": kind, "showlegend": False,
        "x": of["x"], "y": of["y"], "xaxis": f"x{axes}", "yaxis": f"y{axes}",
        "marker": {"color": of["colour"], "symbol": of["marker"], **look},
        "customdata": of["note"], "hovertemplate": f"{hover}<extra>%{{customdata[0]}}</extra>",
        **({"error_x": ranges} if kind == "angles" else {}),
    }  # fmt: skip


def _layout(panels: Sequence[Panel], farthest: float, chance: float) -> dict[str, Any]:
    """Return the layout: two rows of equal height with a title above each."""
    rows = len(panels)
    labels = [wrapped(panel.label) for panel in panels]
    row = _TALL_ROW if any("<br>" in label for label in labels) else _ROW
    plot = max(rows * row, 80)  # Height in pixels of each of the two rows of charts.
    inner = 2 * plot + _GAP
    upper, lower = (plot + _GAP) / inner, plot / inner
    heights: dict[str, Any] = {
        "tickvals": list(range(rows - 1, -1, -1)),
        "ticktext": labels,
        "range": [-0.6, rows - 0.4], "showgrid": False, "zeroline": False,
    }  # fmt: skip
    title: dict[str, Any] = {
        "x": 0.5, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom",
        "showarrow": False, "font": {"size": 15},
    }  # fmt: skip
    return {
        **frame(inner + _TOP + _BOTTOM, top=_TOP, bottom=_BOTTOM),
        "meta": {"highlight": "point"},  # The script pages/ui/highlight.js reads this value.
        "xaxis": {"range": [-0.02 * farthest, farthest * 1.04], "anchor": "y"},
        "xaxis2": {"range": [-2, 93], "dtick": 15, "anchor": "y2"},
        "yaxis": {**heights, "domain": [upper, 1], "anchor": "x", "automargin": True},
        "yaxis2": {**heights, "domain": [0, lower], "anchor": "x2", "automargin": True},
        "annotations": [
            {**title, "y": 1, "text": "Projection distance of simulated releases", "yshift": 20},
            {**title, "y": lower, "text": "Principal angles, degrees", "yshift": 4},
            {
                "text": "chance", "x": chance, "xref": "x", "y": 1, "yref": "y domain",
                "xanchor": "right", "yanchor": "bottom", "showarrow": False, "font": {"size": 12},
            },
        ],
        "shapes": [
            {
                "type": "line", "xref": "x", "yref": "y domain", "x0": chance, "x1": chance,
                "y0": 0, "y1": 1, "line": {"color": TRUE_COLOUR, "dash": "dash"},
            }
        ],
    }  # fmt: skip


def _spread(count: int) -> np.ndarray:
    """Return fixed offsets that keep the points of one row apart."""
    # Steps of the golden ratio spread evenly, look random, and are always the same.
    return ((np.arange(count) * 0.6180339887) % 1 - 0.5) * 0.5
