"""Subspace distance and principal angles over the draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.figures.theme import TRUE_COLOUR, Panel


def distance_figure(
    table: pd.DataFrame, panels: Sequence[Panel], *, farthest: float, chance: float
) -> go.Figure:
    """Draw every draw's distance, and below it its principal angles.

    Parameters
    ----------
    table : DataFrame
        `dpviz.sweeps.ANGLE_COLUMNS`.
    panels : sequence of Panel
    farthest : float
        Largest possible projection distance.
    chance : float
        Root mean squared distance of a uniformly random subspace.
    """
    figure = make_subplots(
        rows=2,
        cols=1,
        shared_yaxes=True,
        vertical_spacing=0.16 if len(panels) > 4 else 0.24,
        subplot_titles=("Projection distance of each draw", "Principal angles, degrees"),
    )
    rows = len(panels)
    for number, panel in enumerate(panels):
        height = rows - 1 - number
        part = table[table["mechanism"] == panel.key]
        first = part[part["angle"] == 1]
        values = first["projection_distance"].to_numpy()
        marker = {"color": panel.colour, "symbol": panel.marker}
        figure.add_trace(
            go.Scatter(
                x=values, y=height + _spread(len(values)), mode="markers", name=panel.label,
                marker={**marker, "size": 5, "opacity": 0.55}, showlegend=False,
                hovertemplate="%{x:.3f}<extra>" + panel.label + "</extra>",
            ),
            row=1, col=1,
        )  # fmt: skip
        middle = [float(np.median(values))]
        figure.add_trace(
            go.Scatter(
                x=middle, y=[height], mode="markers", name=f"{panel.label}, median",
                marker={"color": panel.colour, "symbol": "line-ns-open", "size": 18,
                        "line": {"width": 3}},
                showlegend=False, hovertemplate="median %{x:.3f}<extra></extra>",
            ),
            row=1, col=1,
        )  # fmt: skip
        angles = part.groupby("angle")["degrees"].quantile(np.array([0.025, 0.5, 0.975])).unstack()
        lows, middles, highs = (angles[q].to_numpy() for q in (0.025, 0.5, 0.975))
        lanes = height + np.linspace(0.25, -0.25, len(angles)) if len(angles) > 1 else [height]
        figure.add_trace(
            go.Scatter(
                x=middles, y=lanes, mode="markers", name=f"{panel.label}, angles",
                marker={**marker, "size": 8}, showlegend=False,
                error_x={"type": "data", "array": highs - middles, "arrayminus": middles - lows,
                         "thickness": 1.5, "width": 3, "color": panel.colour},
                customdata=angles.index.to_numpy(),
                hovertemplate="angle %{customdata}: median %{x:.1f}<extra>" + panel.label
                + "</extra>",
            ),
            row=2, col=1,
        )  # fmt: skip
    names = [panel.label for panel in panels]
    for row in (1, 2):
        figure.update_yaxes(
            tickvals=list(range(rows - 1, -1, -1)), ticktext=names, range=[-0.6, rows - 0.4],
            showgrid=False, zeroline=False, row=row, col=1,
        )  # fmt: skip
    figure.update_xaxes(range=[-0.02 * farthest, farthest * 1.04], row=1, col=1)
    figure.update_xaxes(range=[-2, 93], dtick=15, row=2, col=1)
    figure.add_vline(
        x=chance, line={"color": TRUE_COLOUR, "dash": "dash"}, row=1, col=1,
        annotation={"text": "chance", "font": {"size": 11}}, annotation_position="bottom left",
    )  # fmt: skip
    figure.update_layout(
        height=150 + 2 * max(rows * 30, 80), margin={"l": 10, "r": 10, "t": 40, "b": 30}
    )
    return figure


def _spread(count: int) -> np.ndarray:
    """Return fixed offsets that keep points of one row apart."""
    # Golden-ratio steps: even, without order, and the same every time.
    return ((np.arange(count) * 0.6180339887) % 1 - 0.5) * 0.5
