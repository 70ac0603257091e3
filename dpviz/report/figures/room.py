"""Gain and harm along epsilon: what a release keeps, what a guesser gains, the room between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.core.number_text import numeral
from dpviz.report.figures.theme import MARKERS, TRUE_COLOUR
from dpviz.report.tables.projection import LABEL_COLOURS, places_shown

GAIN, HARM, ROOM = "#2a7fd0", "#d03a3a", "#21796e"
_RISKS = (1, 3, 10, 25, 50, 99)
_MOST = 10  # loadings


def room_figure(table: pd.DataFrame, least: float | None, most: float, wanted: float) -> go.Figure:
    """Draw what is kept above what a guesser gains, along one logarithmic axis.

    Parameters
    ----------
    table : DataFrame
        Columns epsilon, low and mean (of 1) and after (the bound, of 1).
    least : float or None
        The least epsilon that is enough; None where none is.
    most : float
        The largest epsilon that is acceptable.
    wanted : float
        The recovery that is asked for.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1)
    x, low, mean = table["epsilon"], 100 * table["low"], 100 * table["mean"]
    band = {"mode": "lines", "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=x, y=low.clip(0), line={"color": GAIN, "width": 1.2}, row=1, col=1, **band)
    figure.add_scatter(
        x=x, y=mean.clip(0), line={"color": GAIN, "width": 3}, fill="tonexty",
        fillcolor="rgba(42, 127, 208, .18)", row=1, col=1, **band,
    )  # fmt: skip
    # odds, so that a risk of 1 and one of 50 in 100 are both seen
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
            figure.add_vline(least, line_width=2, row=row, col=1)
    dash = {"line_dash": "dot", "line_width": 1.5}
    figure.add_hline(100 * wanted, row=1, col=1, **dash)
    # from where the curve begins odds grow by e to the epsilon
    figure.add_hline(float(harm.iloc[0]) * math.exp(most - ends[0]), row=2, col=1, **dash)
    said = f"room: ε {numeral(least, 3)} to {numeral(most, 3)}" if enough and least else "no room"
    figure.add_annotation(
        text=f"<b>{said}</b>", x=0, y=1, xref="paper", yref="paper", xanchor="left",
        yanchor="bottom", yshift=4, showarrow=False,
        font={"size": 15, "color": ROOM if enough else HARM},
    )  # fmt: skip
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2, 5]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[numeral(one, 2) for one in ticks])
    figure.update_xaxes(title="← more private      epsilon      more accurate →", row=2, col=1)
    figure.update_yaxes(
        title="structure kept, %<br>mean, and 95 of 100", range=[0, 103],
        tickvals=[0, 50, round(100 * wanted), 100], row=1, col=1,
    )  # fmt: skip
    figure.update_yaxes(
        title="1 suspicion in 100<br>becomes at most", type="log",
        tickvals=[one / (100 - one) for one in _RISKS], ticktext=[str(one) for one in _RISKS],
        row=2, col=1,
    )  # fmt: skip
    figure.update_layout(
        height=350, margin={"l": 70, "r": 14, "t": 34, "b": 46}, font={"size": 15}, dragmode=False
    )
    return figure


def map_figure(shown: Mapping[str, Any], *, small: bool = False) -> go.Figure:
    """Draw a map that may be published: points that stand for people, none of whom is one.

    Parameters
    ----------
    shown : mapping
        What a card holds of its picture.
    small : bool
        Whether it stands among others, without a key.
    """
    figure, (x, y, kinds) = go.Figure(), places_shown(shown)
    # the label's own letters where they are few, else a shape: colour alone tells nobody apart
    spelled = 0 < max((len(label) for label in shown["labels"]), default=0) <= 2
    for kind in sorted({*kinds.tolist()}):
        mine = kinds == kind
        known = bool(shown["labels"]) and kind >= 0
        colour = LABEL_COLOURS[kind % len(LABEL_COLOURS)] if known else TRUE_COLOUR
        look: dict[str, Any] = {
            "mode": "markers",
            "marker": {
                "color": colour if shown["labels"] else GAIN, "size": 4 if small else 7,
                "symbol": MARKERS[kind % len(MARKERS)] if known else "circle-open",
            },
        }  # fmt: skip
        if known and spelled:
            font = {"color": colour, "size": 7 if small else 13}
            look = {"mode": "text", "text": shown["labels"][kind], "textfont": font}
        figure.add_scatter(
            x=x[mine], y=y[mine], hoverinfo="skip", showlegend=not (known and spelled),
            name=shown["labels"][kind][:18] if known else "noise hides the label", **look,
        )  # fmt: skip
    frame = {"range": [-1, 1], "showticklabels": False, "mirror": True, "showline": True}
    figure.update_xaxes(**frame)
    figure.update_yaxes(**frame)
    high = 110 if small else 430
    figure.update_layout(
        height=high, margin={"l": 4, "r": 4, "t": 4, "b": 4 if small else 40}, dragmode=False,
        font={"size": 15},
        showlegend=not small and bool(shown["labels"]),
        legend={"orientation": "h", "y": -0.04, "yanchor": "top", "itemsizing": "constant"},
    )  # fmt: skip
    return figure


def loadings_figure(use: Mapping[str, Any]) -> go.Figure:
    """Draw the largest loadings of component 1 with their bars; hollow: it could be 0.

    Parameters
    ----------
    use : mapping
        Keys features, loadings and bars, as a card holds them.
    """
    vector, bars = np.array(use["loadings"][0]), np.array(use["bars"][0])
    # stable, so that equal loadings keep the order of the columns
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
