"""Mechanisms side by side as Plotly figures, for notebooks and the documentation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.core.metrics import Metric
from dpviz.core.number_text import percent
from dpviz.report.figures.axes import frame
from dpviz.report.figures.theme import (
    TRUE_COLOUR,
    Panel,
    SymmetricLog,
    faded,
    to_scale,
    told,
    wrapped,
)
from dpviz.report.tables.board import linear_up_to
from dpviz.report.tables.projection import LABEL_COLOURS
from dpviz.simulation.picture.scree import TWO_SIDED, Scree

_ACROSS = 3  # A row holds at most this many panels.
_TALL = 250  # One row of panels is this many pixels high.
_MOST_TRUE = 20.0  # The axis ends at this many times the largest true eigenvalue.


def _grid(titles: Sequence[str], *, square: bool = False) -> tuple[go.Figure, int]:
    across = min(_ACROSS, max(len(titles), 1))
    down = math.ceil(max(len(titles), 1) / across)
    figure = make_subplots(
        rows=down, cols=across, subplot_titles=list(titles),
        shared_xaxes="all", shared_yaxes="all",
        horizontal_spacing=0.04, vertical_spacing=0.26 / down if down > 1 else 0,
    )  # fmt: skip
    legend = {"orientation": "h", "yanchor": "top", "y": -0.12 / down - 0.04, "x": 0}
    height = (_TALL + 60 * square) * down + 90
    figure.update_layout(frame(height, left=50, top=70, bottom=40, legend=legend), overwrite=True)
    figure.update_annotations(font_size=12)
    return figure, across


def _place(number: int, across: int) -> dict[str, int]:
    return {"row": number // across + 1, "col": number % across + 1}


def _titles(panels: Sequence[Panel]) -> list[str]:
    # Break titles into short lines, because a phone shows three panels side by side.
    words = [(panel.label, panel.status) for panel in panels]
    return ["<br>".join(wrapped(text, 20) for text in pair if text) for pair in words]


def spectra(
    table: pd.DataFrame,
    panels: Sequence[Panel],
    edges: Mapping[str, tuple[float, float]],
    thresholds: Mapping[str, float],
) -> go.Figure:
    """Draw noisy eigenvalues, as median and range, against the true eigenvalues.

    Parameters
    ----------
    table : DataFrame
        Table with `dpviz.report.tables.comparison.SPECTRUM_COLUMNS`, in squared row-norm bounds.
    panels : sequence of Panel
    edges : mapping of str to (float, float)
        Lower and upper limit of the noise's own spectrum, by variant, if known.
    thresholds : mapping of str to float
        Variance below which noise hides a single component, by variant.

    Returns
    -------
    Figure
        One panel per variant, on a symmetric logarithmic axis, which is linear up to the median of
        the positive true eigenvalues.
    """
    figure, across = _grid(_titles(panels))
    true = table["true"].to_numpy(dtype=float)
    positive = true[true > 0]
    axis = SymmetricLog(linear_up_to(true))
    most = _MOST_TRUE * float(positive.max())
    high = min(max(float(table["high"].max()), float(positive.max())), most)
    low = max(min(float(table["low"].min()), 0.0), -most)

    names: set[str] = set()
    for number, panel in enumerate(panels):
        part, place = table[table["mechanism"] == panel.key], _place(number, across)
        for trace in _eigenvalues(part, panel, axis, first=number == 0):
            figure.add_trace(trace, **place)
        edge = edges[panel.key][1] if panel.key in edges else None
        levels = (("noise edge", edge, "dot"), ("threshold", thresholds.get(panel.key), "dash"))
        for name, level, dash in levels:
            if level is None or level > most:
                continue
            new = name not in names
            names.add(name)
            figure.add_trace(
                go.Scatter(
                    x=[0.5, len(part) + 0.5], y=[axis.forward(level)] * 2, mode="lines",
                    line={"color": TRUE_COLOUR, "dash": dash, "width": 1.5}, name=name,
                    legendgroup=name, showlegend=new, hoverinfo="skip",
                ),
                **place,
            )  # fmt: skip
    ticks = axis.ticks(low, high)
    figure.update_yaxes(
        tickvals=[position for position, _ in ticks], ticktext=[text for _, text in ticks],
        range=[axis.forward(low) - 0.1, axis.forward(high) + 0.2],
    )  # fmt: skip
    figure.update_yaxes(title="eigenvalue", col=1)
    return figure


def _eigenvalues(part: pd.DataFrame, panel: Panel, axis: SymmetricLog, *, first: bool) -> list[Any]:
    """Return one variant's true values, and the range and median of its simulated releases."""

    def at(values: pd.Series) -> list[float]:
        return [axis.forward(float(value)) for value in values]

    released = bool(part["released"].all())
    true = go.Bar(
        x=part["component"], y=at(part["true"]), marker_color="rgba(127,127,127,0.45)",
        name="true", legendgroup="true", showlegend=first,
        hovertext=told("{}", (part["true"], 3)),
        hovertemplate="component %{x}: %{hovertext}<extra>true</extra>",
    )  # fmt: skip
    band = go.Scatter(
        x=[*part["component"], *part["component"][::-1]],
        y=[*at(part["high"]), *at(part["low"][::-1])], fill="toself",
        fillcolor=faded(panel.colour, 0.25), line_width=0, hoverinfo="skip",
        name="range of the simulated releases", legendgroup="range", showlegend=first,
    )  # fmt: skip
    median = go.Scatter(
        x=part["component"], y=at(part["median"]), mode="lines",
        line={"color": panel.colour, "width": 2, "dash": "solid" if released else "dot"},
        name="released, median", legendgroup="released", showlegend=first,
        hovertext=told("{}", (part["median"], 3)),
        hovertemplate="component %{x}: %{hovertext}<extra>"
        + ("released" if released else "captured variance, not released") + "</extra>",
    )  # fmt: skip
    return [true, band, median]


def measures(table: pd.DataFrame, panels: Sequence[Panel], metric: Metric) -> go.Figure:
    """Draw mean and range of one metric for each variant.

    Parameters
    ----------
    table : DataFrame
        `dpviz.report.tables.comparison.MEASURE_COLUMNS`.
    panels : sequence of Panel
    metric : Metric
    """
    figure = go.Figure()
    for panel in panels:
        part = table[table["mechanism"] == panel.key]
        figure.add_trace(
            _inside(
                panel, part["mean"], part["low"], part["high"], panel.colour, panel.marker,
                hovertext=told("mean {}", (part["mean"], 4)),
                hovertemplate="%{hovertext}<extra>" + f"{panel.label}: {panel.status}</extra>",
            )
        )  # fmt: skip
    unit = f", {metric.unit}" if metric.unit else ""
    figure.update_xaxes(
        title=f"{metric.label}{unit}: mean and 95 % of the simulated releases", rangemode="tozero"
    )
    return _set_height(figure, len(panels))


def _inside(
    panel: Panel, middle: pd.Series, low: pd.Series, high: pd.Series, colour: str, symbol: str,
    **under: Any,
) -> go.Scatter:  # fmt: skip
    """Return one variant's point with its range, and hover text."""
    return go.Scatter(
        x=middle, y=[wrapped(panel.label)] * len(middle), mode="markers",
        marker={"color": colour, "symbol": symbol, "size": 11},
        error_x={
            "type": "data", "symmetric": False, "array": (high - middle).fillna(0.0),
            "arrayminus": (middle - low).fillna(0.0),
        },
        name=panel.label, showlegend=False, **under,
    )  # fmt: skip


def targets_figure(table: pd.DataFrame, panels: Sequence[Panel], what: str) -> go.Figure:
    """Draw each answer as a point in the interval that contains it, on a log axis.

    Parameters
    ----------
    table : DataFrame
        Answers of `dpviz.studies.least.Needed`. Answers that are not ranked are grey crosses;
        mechanisms without an answer have a line but no point.
    panels : sequence of Panel
    what : {"epsilon", "n"}
    """
    figure = go.Figure()
    for panel in panels:
        part = table[(table["mechanism"] == panel.key) & table["least"].notna()]
        counts = bool(part["counts"].all())
        middle = part["least"].astype(float)
        low, high = part["low"].astype(float), part["high"].astype(float)
        look = (panel.colour, "circle") if counts else (TRUE_COLOUR, "x")
        figure.add_trace(
            _inside(
                panel, middle, low, high, *look,
                customdata=part["status"], hovertext=told("{}", (middle, 3)),
                hovertemplate="%{hovertext}: %{customdata}<extra>" + panel.label + "</extra>",
            )
        )  # fmt: skip
    words = "people" if what == "n" else "epsilon"
    figure.update_xaxes(title=f"least {words}; grey cross: the claim does not count", type="log")
    figure.update_yaxes(
        type="category", categoryorder="array",
        categoryarray=[wrapped(panel.label) for panel in panels],
    )  # fmt: skip
    return _set_height(figure, len(panels))


def _set_height(figure: go.Figure, count: int) -> go.Figure:
    """Set a figure's height to one line per variant, with the first variant on top."""
    figure.update_yaxes(autorange="reversed", automargin=True, tickfont={"size": 12})
    return figure.update_layout(frame(130 + 38 * max(count, 2)), overwrite=True)


def screes(by_key: Mapping[str, Scree], panels: Sequence[Panel]) -> go.Figure:
    """Draw the published shares of the variance with 95 % bars.

    Parameters
    ----------
    by_key : mapping of str to Scree
        Scree plots by variant; if noise hides the variances, the panel is empty.
    panels : sequence of Panel
    """
    figure, across = _grid(_titles(panels))
    for number, panel in enumerate(panels):
        scree = by_key.get(panel.key)
        if scree is None or not scree.clear:
            continue
        components = list(range(1, len(scree.shares) + 1))
        figure.add_trace(
            go.Bar(
                x=components, y=scree.shares, name=panel.label, showlegend=False,
                marker_color=faded(panel.colour, 0.6),
                error_y={"array": TWO_SIDED * scree.errors, "thickness": 1.5},
                hovertext=[percent(float(share)) for share in scree.shares],
                hovertemplate="component %{x}: %{hovertext}<extra></extra>",
            ),
            **_place(number, across),
        )  # fmt: skip
    shares = [0, 0.25, 0.5, 0.75, 1]
    figure.update_yaxes(range=[0, 1], tickvals=shares, ticktext=[percent(each) for each in shares])
    figure.update_yaxes(title="share of the variance", col=1)
    figure.update_xaxes(dtick=1, title="component")
    return figure


def pictures(
    table: pd.DataFrame,
    panels: Sequence[Panel],
    *,
    strip: bool = False,
    ribbon: str | None = None,
    exact: bool = True,
) -> go.Figure:
    """Draw the 2-D projection of each variant after the exact projection, all with one scale.

    Parameters
    ----------
    table : DataFrame
        Table with `dpviz.report.tables.projection.PICTURE_COLUMNS`; the exact one is named "".
    panels : sequence of Panel
    strip : bool
        Whether heights only keep points apart, because there is one component.
    ribbon : str, optional
        Text above the plots, which exported images include.
    exact : bool
        Whether to draw the exact projection.
    """
    figure, across = _grid(["exact"] * exact + _titles(panels), square=True)
    kinds = list(dict.fromkeys(table["label"]))
    for number, key in enumerate([""] * exact + [panel.key for panel in panels]):
        part = table[table["mechanism"] == key]
        for which, kind in enumerate(kinds):
            points = part[part["label"] == kind]
            colour = LABEL_COLOURS[which % len(LABEL_COLOURS)]
            figure.add_trace(
                go.Scatter(
                    x=points["x"], y=points["y"], mode="markers", name=str(kind),
                    legendgroup=str(kind), showlegend=number == 0 and len(kinds) > 1,
                    marker={"color": colour, "size": 4, "opacity": 0.7}, hoverinfo="skip",
                ),
                **_place(number, across),
            )  # fmt: skip
    if ribbon is not None:
        figure.add_annotation(
            text=ribbon, xref="paper", yref="paper", x=0, y=1, yshift=48, showarrow=False,
            xanchor="left", yanchor="bottom", font={"size": 13},
        )  # fmt: skip
    wide, up = (1.05 * float(table[axis].abs().max() or 1.0) for axis in ("x", "y"))
    if not strip:
        wide = up = max(wide, up)
    figure.update_xaxes(showticklabels=False, zeroline=False, range=[-wide, wide])
    figure.update_yaxes(showticklabels=False, zeroline=False, range=[-up, up])
    return figure if strip else to_scale(figure)
