"""One metric along one axis: bands, frontier, prediction, marks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dpviz.figures.theme import TRUE_COLOUR, Panel

HIGHLIGHTED = 8  # more lines than this cannot be told apart; the rest are grey


def _faded(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"


def tradeoff_figure(
    bands: pd.DataFrame,
    panels: Sequence[Panel],
    *,
    x_title: str,
    y_title: str,
    log_x: bool,
    log_y: bool,
    now: float,
    floor: float | None = None,
    ceiling: float | None = None,
    predicted: pd.DataFrame | None = None,
    best: pd.DataFrame | None = None,
    marks: pd.DataFrame | None = None,
    other: pd.DataFrame | None = None,
    other_name: str = "",
) -> go.Figure:
    """Draw mean and range of a metric for each variant.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.curves.BAND_COLUMNS`.
    panels : sequence of Panel
        In the order of the legend.
    x_title, y_title : str
    log_x, log_y : bool
    now : float
        Where the current setting stands.
    floor, ceiling : float, optional
        A random subspace and exact PCA.
    predicted : DataFrame, optional
        `dpviz.curves.PREDICTION_COLUMNS`: dotted lines.
    best : DataFrame, optional
        The frontier, rows of bands: ringed points.
    marks : DataFrame, optional
        Columns mechanism, component, epsilon: where components appear.
    other : DataFrame, optional
        Bands of a second table: dashed, without range.
    other_name : str
    """
    figure = go.Figure()
    for number, panel in enumerate(panels):
        colour = panel.colour if number < HIGHLIGHTED else TRUE_COLOUR
        part = bands[bands["mechanism"] == panel.key]
        if not part.empty:
            figure.add_trace(
                go.Scatter(
                    x=[*part["x"], *part["x"][::-1]], y=[*part["high"], *part["low"][::-1]],
                    fill="toself", fillcolor=_faded(colour, 0.13), line={"width": 0},
                    hoverinfo="skip", showlegend=False, legendgroup=panel.key, mode="lines",
                )
            )  # fmt: skip
            figure.add_trace(
                go.Scatter(
                    x=part["x"], y=part["mean"], name=f"{panel.label} · {panel.status}",
                    legendgroup=panel.key, mode="lines+markers",
                    line={"color": colour, "width": 2, "dash": panel.dash},
                    marker={"symbol": panel.marker, "size": 7},
                    customdata=part[["mechanism", "low", "high", "draws"]].to_numpy(),
                    hovertemplate="%{x:.4g}: %{y:.3g} (%{customdata[1]:.3g} to "
                    "%{customdata[2]:.3g}, %{customdata[3]} draws)<extra>"
                    + panel.label + "</extra>",
                )
            )  # fmt: skip
        for table, dash, words in (
            (predicted, "dot", "predicted"),
            (other, "dash", other_name),
        ):
            if table is None:
                continue
            line = table[table["mechanism"] == panel.key]
            if line.empty:
                continue
            figure.add_trace(
                go.Scatter(
                    x=line["x"], y=line["value" if "value" in line else "mean"], mode="lines",
                    name=f"{panel.label}, {words}", legendgroup=panel.key,
                    showlegend=part.empty, line={"color": colour, "width": 1.5, "dash": dash},
                    hovertemplate="%{x:.4g}: %{y:.3g}<extra>" + f"{panel.label}, {words}</extra>",
                )
            )  # fmt: skip
        if marks is not None:
            shown = marks[marks["mechanism"] == panel.key]
            if not shown.empty:
                figure.add_trace(
                    go.Scatter(
                        x=shown["epsilon"], y=[0.0 if not log_y else bands["mean"].min()]
                        * len(shown), mode="markers+text", legendgroup=panel.key,
                        text=[str(component) for component in shown["component"]],
                        textposition="top center", showlegend=False,
                        marker={"symbol": "arrow-up", "size": 10, "color": colour},
                        hovertemplate="component %{text} appears at epsilon %{x:.3g}<extra>"
                        + panel.label + "</extra>",
                    )
                )  # fmt: skip
    if best is not None and not best.empty:
        figure.add_trace(
            go.Scatter(
                x=best["x"], y=best["mean"], mode="markers", name="best whose claim holds",
                marker={"symbol": "circle-open", "size": 15, "color": TRUE_COLOUR,
                        "line": {"width": 2}},
                hoverinfo="skip",
            )
        )  # fmt: skip
    for value, words in ((floor, "random subspace"), (ceiling, "without privacy")):
        if value is not None:
            figure.add_hline(
                y=value, line={"color": TRUE_COLOUR, "dash": "dash", "width": 1},
                annotation={"text": words, "font": {"size": 11}},
                annotation_position="bottom right",
            )  # fmt: skip
    figure.add_vline(x=now, line={"color": TRUE_COLOUR, "width": 1})
    figure.add_annotation(
        # On a logarithmic axis Plotly takes the logarithm, for annotations alone.
        x=math.log10(now) if log_x and now > 0 else now, y=1, yref="paper", text="now",
        showarrow=False, yanchor="bottom", font={"size": 11},
    )  # fmt: skip
    figure.update_xaxes(title=x_title, type="log" if log_x else "linear", exponentformat="power")
    figure.update_yaxes(title=y_title, type="log" if log_y else "linear")
    figure.update_layout(
        height=560,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        legend={"orientation": "h", "yanchor": "top", "y": -0.16, "x": 0},
        hovermode="closest",
    )
    return figure
