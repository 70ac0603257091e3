"""Gain and harm by epsilon: structure kept, a guesser's gain, and the range between both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.core.entries import OTHER
from dpviz.core.number_text import numeral
from dpviz.report.figures.theme import TRUE_COLOUR
from dpviz.report.tables.projection import LABEL_COLOURS, marks_of, places_shown

GAIN, HARM, ROOM = "#2a7fd0", "#d03a3a", "#21796e"
_RISKS = (1, 10, 50, 90, 99)
_MOST = 10  # loadings


def room_figure(table: pd.DataFrame, least: float | None, most: float, goal: float) -> go.Figure:
    """Draw the structure kept above a guesser's gain, along one logarithmic axis.

    Parameters
    ----------
    table : DataFrame
        Table with columns epsilon, low and mean (shares kept) and after (the risk bound, of 1).
    least : float or None
        The least epsilon that is enough, or None.
    most : float
        The largest acceptable epsilon.
    goal : float
        The required recovery.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.15)
    x, low, mean = table["epsilon"], 100 * table["low"], 100 * table["mean"]
    band = {"mode": "lines", "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=x, y=low.clip(0), line={"color": GAIN, "width": 1.2}, row=1, col=1, **band)
    figure.add_scatter(
        x=x, y=mean.clip(0), line={"color": GAIN, "width": 3}, fill="tonexty",
        fillcolor="rgba(42, 127, 208, .18)", row=1, col=1, **band,
    )  # fmt: skip
    # Plot odds instead of risks, so that risks of 1 in 100 and of 50 in 100 are both visible.
    harm = table["after"] / (1 - table["after"])
    figure.add_scatter(x=x, y=harm, line={"color": HARM, "width": 3}, row=2, col=1, **band)
    ends = (float(x.iloc[0]), float(x.iloc[-1]))
    first, last = sorted((min(max(least or ends[1], ends[0]), ends[1]), min(most, ends[1])))
    enough = least is not None and least <= most
    for row in (1, 2):
        figure.add_vrect(
            first, last, fillcolor=ROOM if enough else HARM, opacity=0.16, line_width=0,
            row=row, col=1,
        )  # fmt: skip
        if least is not None and least <= ends[1]:
            figure.add_vline(least, line_width=2, line_color=TRUE_COLOUR, row=row, col=1)
    dash = {"line_dash": "dot", "line_width": 1.5, "line_color": TRUE_COLOUR}
    figure.add_hline(100 * goal, row=1, col=1, **dash)
    # At most, the odds grow by the factor e to the epsilon from the start of their line.
    figure.add_hline(float(harm.iloc[0]) * math.exp(most - ends[0]), row=2, col=1, **dash)
    text = "no ε fits"
    if enough and least:
        text = f"ε that fits: {numeral(least, 3)} to {numeral(most, 3)}"
    # Put the titles above the axes, because a phone has no space beside the axes.
    for words, axis, shift, colour in (
        (f"<b>{text}</b>", "y", 22, ROOM if enough else HARM),
        ("structure kept, %: mean and 95 % line", "y", 2, None),
        ("a suspicion of 1 in 100 becomes at most", "y2", 2, None),
    ):
        figure.add_annotation(
            text=words, x=0, y=1, xref="paper", yref=f"{axis} domain", xanchor="left",
            yanchor="bottom", yshift=shift, showarrow=False, font={"size": 15, "color": colour},
        )  # fmt: skip
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2, 5]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[numeral(one, 2) for one in ticks])
    figure.update_xaxes(title="← more private      epsilon      more accurate →", row=2, col=1)
    figure.update_yaxes(range=[0, 103], tickvals=[0, 50, round(100 * goal)], row=1, col=1)
    figure.update_yaxes(
        type="log", tickvals=[one / (100 - one) for one in _RISKS],
        ticktext=[str(one) for one in _RISKS], row=2, col=1,
    )  # fmt: skip
    figure.update_layout(
        height=330, margin={"l": 34, "r": 14, "t": 50, "b": 46}, font={"size": 15}, dragmode=False
    )
    return figure


def map_figure(picture: Mapping[str, Any], *, small: bool = False) -> go.Figure:
    """Draw a publishable map: its points stand for people, but no point is a person.

    Parameters
    ----------
    picture : mapping
        The ``picture`` entry of a privacy card.
    small : bool
        Whether to draw a small map without a legend.
    """
    figure, (x, y, kinds) = go.Figure(), places_shown(picture)
    labels = picture["labels"]
    # Letters distinguish the classes for readers who cannot see colours. With more than twelve
    # classes, or without classes, all points are grey.
    classes = [label for label in labels if label != OTHER]
    marks = marks_of(classes)
    for kind in sorted({*kinds.tolist()}):
        name = labels[kind] if labels and kind >= 0 else ""
        look: dict[str, Any] = {
            "mode": "markers", "showlegend": name in ("", OTHER),
            "name": name or "noise hides the label",
            "marker": {"color": TRUE_COLOUR if labels else GAIN, "size": 7,
                       "symbol": {"": "circle-open", OTHER: "x-thin-open"}.get(name, "circle")},
        }  # fmt: skip
        if marks and name in classes:
            mark = marks[classes.index(name)]
            look = {
                "mode": "text", "text": mark, "showlegend": mark != name,
                "name": f"{mark}: {name[:18]}",
                "textfont": {"color": LABEL_COLOURS[kind % len(LABEL_COLOURS)], "size": 15},
            }  # fmt: skip
        mine = kinds == kind
        figure.add_scatter(x=x[mine], y=y[mine], hoverinfo="skip", **look)
    figure.update_xaxes(range=[-1.04, 1.04], visible=False)
    figure.update_yaxes(range=[-1.04, 1.04], visible=False)
    box = {"xref": "paper", "yref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 1}
    figure.add_shape(type="rect", line={"color": TRUE_COLOUR, "width": 1}, **box)
    high = 140 if small else 290
    figure.update_layout(
        height=high, margin={"l": 4, "r": 4, "t": 4, "b": 4 if small else 40}, dragmode=False,
        font={"size": 15},
        showlegend=not small and bool(labels),
        legend={"orientation": "h", "y": -0.04, "yanchor": "top", "itemsizing": "constant"},
    )  # fmt: skip
    return figure


def loadings_figure(use: Mapping[str, Any]) -> go.Figure:
    """Draw the largest loadings of component 1 with bars; hollow marks could be 0.

    Parameters
    ----------
    use : mapping
        Entries features, loadings and bars of a privacy card.
    """
    vector, bars = np.array(use["loadings"][0]), np.array(use["bars"][0])
    # Use a stable sort, so that features with equal loadings keep the column order.
    places = np.argsort(-np.abs(vector), kind="stable")[:_MOST][::-1]
    marks = ["circle" if abs(vector[at]) > bars[at] else "circle-open" for at in places]
    figure = go.Figure(
        go.Scatter(
            x=vector[places], y=[use["features"][at][:24] for at in places], mode="markers",
            error_x={"array": bars[places], "width": 0}, hoverinfo="skip",
            marker={"symbol": marks, "size": 9, "color": GAIN},
        )
    )  # fmt: skip
    figure.update_xaxes(range=[-1.08, 1.08])
    figure.update_layout(
        height=60 + 30 * len(places), margin={"l": 8, "r": 8, "t": 8, "b": 30}, font={"size": 15},
        dragmode=False,
    )  # fmt: skip
    return figure
