"""Subspace distance and principal angles over the draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral
from dpviz.report.figures.theme import TRUE_COLOUR, Panel, wrapped

_ROW, _TALL_ROW, _GAP, _TOP, _BOTTOM = 30, 36, 70, 56, 30  # pixels


def distance_figure(
    table: pd.DataFrame, panels: Sequence[Panel], *, farthest: float, chance: float
) -> go.Figure:
    """Draw every draw's distance, and below it its principal angles.

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
        One trace of draws and one of angles per colour, and one of medians:
        a browser draws few long traces sooner than many short ones.
    """
    rows = len(panels)
    colours = list(dict.fromkeys(panel.colour for panel in panels))
    draws = {colour: _Points() for colour in colours}
    angles = {colour: _Points() for colour in colours}
    medians = _Points()
    parts = dict(iter(table.groupby("mechanism", sort=False)))
    for number, panel in enumerate(panels):
        height, part = rows - 1 - number, parts[panel.key]
        values = part.loc[part["angle"] == 1, "projection_distance"].to_numpy()
        draws[panel.colour].add(panel, values, height + _spread(len(values)))
        medians.add(panel, np.array([np.median(values)]), np.array([float(height)]))
        count = int(part["angle"].max())
        degrees = part["degrees"].to_numpy().reshape(-1, count)
        low, middle, high = np.quantile(degrees, [0.025, 0.5, 0.975], axis=0)
        lanes = height + (np.linspace(0.25, -0.25, count) if count > 1 else np.zeros(1))
        angles[panel.colour].add(panel, middle, lanes, low, high)

    traces = [points.draws() for points in draws.values()]
    traces.append(medians.medians())
    traces += [points.angles(colour) for colour, points in angles.items()]
    return go.Figure(data=traces, layout=_layout(panels, farthest, chance))


class _Points:
    """The points of several panels, gathered into one trace."""

    def __init__(self) -> None:
        self.x: list[float] = []
        self.y: list[float] = []
        self.colours: list[str] = []
        self.symbols: list[str] = []
        self.notes: list[tuple[str, int, str]] = []
        self.below: list[float] = []
        self.above: list[float] = []

    def add(
        self,
        panel: Panel,
        x: np.ndarray,
        y: np.ndarray,
        low: np.ndarray | None = None,
        high: np.ndarray | None = None,
    ) -> None:
        """Add one panel's points, each with its place among them, from 1."""
        self.x += np.round(x, 4).tolist()
        self.y += np.round(y, 3).tolist()
        self.colours += [panel.colour] * len(x)
        self.symbols += [panel.marker] * len(x)
        self.notes += [
            (panel.label, place, numeral(value, 3)) for place, value in enumerate(x.tolist(), 1)
        ]
        if low is not None and high is not None:
            self.below += np.round(x - low, 4).tolist()
            self.above += np.round(high - x, 4).tolist()

    def _trace(self, name: str, axes: str, marker: dict[str, Any], hover: str) -> dict[str, Any]:
        return {
            "type": "scatter", "mode": "markers", "name": name, "showlegend": False,
            "x": self.x, "y": self.y, "xaxis": f"x{axes}", "yaxis": f"y{axes}",
            "marker": marker, "customdata": self.notes,
            "hovertemplate": f"{hover}<extra>%{{customdata[0]}}</extra>",
        }  # fmt: skip

    def draws(self) -> dict[str, Any]:
        """Return the trace of single draws."""
        marker = {"color": self.colours, "symbol": self.symbols, "size": 5, "opacity": 0.55}
        return self._trace("draws", "", marker, "draw %{customdata[1]}: %{customdata[2]}")

    def medians(self) -> dict[str, Any]:
        """Return the trace of the bars at the medians."""
        marker = {"color": self.colours, "symbol": "line-ns-open", "size": 18, "line": {"width": 3}}
        return self._trace("medians", "", marker, "median %{customdata[2]}")

    def angles(self, colour: str) -> dict[str, Any]:
        """Return the trace of median angles with their ranges, these in one colour."""
        trace = self._trace(
            "angles", "2", {"color": self.colours, "symbol": self.symbols, "size": 8},
            "angle %{customdata[1]}: median %{customdata[2]}",
        )  # fmt: skip
        trace["error_x"] = {
            "type": "data", "array": self.above, "arrayminus": self.below,
            "thickness": 1.5, "width": 3, "color": colour,
        }  # fmt: skip
        return trace


def _layout(panels: Sequence[Panel], farthest: float, chance: float) -> dict[str, Any]:
    """Return the layout: two rows of equal height with a title above each."""
    rows = len(panels)
    labels = [wrapped(panel.label) for panel in panels]
    row = _TALL_ROW if any("<br>" in label for label in labels) else _ROW
    plot = max(rows * row, 80)  # pixels of each half
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
        "height": inner + _TOP + _BOTTOM,
        "meta": {"highlight": "point"},  # what pages/ui/highlight.js goes by
        "margin": {"l": 10, "r": 10, "t": _TOP, "b": _BOTTOM},
        "xaxis": {"range": [-0.02 * farthest, farthest * 1.04], "anchor": "y"},
        "xaxis2": {"range": [-2, 93], "dtick": 15, "anchor": "y2"},
        "yaxis": {**heights, "domain": [upper, 1], "anchor": "x", "automargin": True},
        "yaxis2": {**heights, "domain": [0, lower], "anchor": "x2", "automargin": True},
        "annotations": [
            {**title, "y": 1, "text": "Projection distance of each draw", "yshift": 20},
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
    """Return fixed offsets that keep points of one row apart."""
    # Golden-ratio steps: even, without order, and the same every time.
    return ((np.arange(count) * 0.6180339887) % 1 - 0.5) * 0.5
