"""Where the precision goes: noise along each direction, ellipses, and budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral, per_cent, percent
from dpviz.report.figures.axes import add_names, log_axis
from dpviz.report.figures.theme import SHARES, TRUE_COLOUR, Panel, curve, told, wrapped

_HEIGHT = 480  # pixels of a figure whose lines have names
PRICE_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def _layout(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        overwrite=True,
        height=height,
        margin={"l": 10, "r": 10, "t": 20, "b": 10},
        # Above the plot: below it, long names of directions would run into it.
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.04, "x": 0},
    )
    return figure


def _short(name: str) -> str:
    """Return a direction's name short enough to stand under its tick, in at most two lines."""
    lines = wrapped(name, 12).split("<br>")
    kept = [line if len(line) <= 12 else line[:11] + "…" for line in lines[:2]]
    return "<br>".join(kept) + "…" * (len(lines) > 2)


def _name_ends(
    figure: go.Figure, panels: Sequence[Panel], ends: dict[str, float], left: float | None = None
) -> None:
    """Give the y axis its ends, and write the names of lines beside one end of each."""
    stds = np.log10([float(std) for trace in figure.data for std in trace.y] or [1.0])
    low, high = float(stds.min()), float(stds.max())
    room = max(0.05 * (high - low), 0.1)
    span = (low - room, high + room)
    figure.update_yaxes(**log_axis("noise standard deviation", *span))
    named = [
        (panel.key, panel.label, panel.colour, math.log10(ends[panel.key]))
        for panel in panels
        if panel.key in ends
    ]
    add_names(figure, named, span, _HEIGHT - 100, left=left)


LOWEST = -0.2
"""Left end of the axis of what is kept: it never moves, so that only bars and marks do."""


def payoff_figure(table: pd.DataFrame, panels: Sequence[Panel]) -> go.Figure:
    """Draw recovery with an allocation beside that with equal shares, the best on top.

    Parameters
    ----------
    table : DataFrame
        `dpviz.studies.precision.GAIN_COLUMNS`; a variant without recovery has no row.
    panels : sequence of Panel
        Of those that are drawn.
    """
    figure = go.Figure()
    known = {panel.key: panel for panel in panels}
    shown = table.dropna(subset=["recovery"])
    shown = shown[shown["mechanism"].isin(known)].sort_values("recovery", kind="stable")
    for number, row in enumerate(shown.to_dict("records")):
        panel, now = known[row["mechanism"]], float(row["recovery"])
        before = now if pd.isna(row["uniform"]) else float(row["uniform"])
        points = round(100 * now) - round(100 * before)
        gain = f"  {points:+d} points" if points else ""
        figure.add_trace(
            go.Scatter(
                x=[max(before, LOWEST), max(now, LOWEST)], y=[number, number],
                mode="lines+markers", showlegend=False, cliponaxis=False,
                line={"color": panel.colour, "width": panel.width + 2},
                marker={"symbol": [f"{panel.marker}-open", panel.marker], "size": 13},
                hovertext=[
                    f"{percent(before)} with equal shares", f"{percent(now)} with these shares"
                ],
                hovertemplate="%{hovertext}<extra>" + panel.label + "</extra>",
            )
        )  # fmt: skip
        figure.add_shape(
            type="line", x0=max(row["low"], LOWEST), x1=max(row["high"], LOWEST),
            y0=number - 0.2, y1=number - 0.2, line={"color": panel.colour, "width": 1.5},
        )  # fmt: skip
        figure.add_annotation(
            x=LOWEST, y=number + 0.36, xanchor="left", showarrow=False, align="left",
            text=f"{panel.label}  <b>{percent(now)}</b>{gain}",
            font={"size": 15, "color": panel.colour},
        )  # fmt: skip
    for x in (0.0, 1.0):
        figure.add_shape(
            type="line", xref="x", x0=x, x1=x, yref="y domain", y0=0, y1=1, layer="below",
            line={"color": TRUE_COLOUR, "width": 1, "dash": "dash"},
        )  # fmt: skip
    figure.update_xaxes(title="structure kept", range=[LOWEST, 1.05], **SHARES)
    figure.update_yaxes(visible=False, range=[-0.5, len(shown) - 0.35])
    return _layout(figure, 80 + 64 * max(len(shown), 2))


def stds_figure(
    table: pd.DataFrame, panels: Sequence[Panel], names: Sequence[str], chosen: Sequence[int]
) -> go.Figure:
    """Draw the noise standard deviation along each direction, on a log axis.

    Parameters
    ----------
    table : DataFrame
        `dpviz.studies.precision.NOISE_COLUMNS`.
    panels : sequence of Panel
    names : sequence of str
        Of the d directions.
    chosen : sequence of int
        Directions that the allocation favours, from 1; they are shaded.
    """
    figure = go.Figure()
    ends = {}
    for direction in chosen:
        figure.add_vrect(
            x0=direction - 0.5, x1=direction + 0.5, fillcolor=TRUE_COLOUR, opacity=0.15,
            line_width=0,
        )  # fmt: skip
    few = len(names) <= 40
    for panel in panels:
        part = table[table["mechanism"] == panel.key]
        if part.empty:
            continue
        ends[panel.key] = float(part["std"].iloc[-1])
        figure.add_trace(
            go.Scatter(
                x=part["direction"], y=part["std"], name=panel.label,
                mode="lines+markers" if few else "lines",
                line={"color": panel.colour, "dash": panel.dash, "width": 2, "shape": "hvh"},
                marker={"symbol": panel.marker, "size": 7},
                hovertext=told("{}", (part["std"], 3)),
                hovertemplate="%{customdata}: %{hovertext}<extra>" + panel.label + "</extra>",
                customdata=[names[number - 1] for number in part["direction"]],
            )
        )  # fmt: skip
    ticks = (
        {"tickvals": list(range(1, len(names) + 1)), "ticktext": [_short(name) for name in names]}
        if few
        else {}
    )
    # Room for the names beside the lines' ends, rather than on the lines.
    figure.update_xaxes(
        showgrid=False, automargin=True, range=[0.4, 1.25 * len(names) + 0.6], **ticks
    )
    _name_ends(figure, panels, ends, len(names) + 0.5)
    return _layout(figure, _HEIGHT)


def accounts_figure(table: pd.DataFrame, panels: Sequence[Panel]) -> go.Figure:
    """Draw how much noise each account asks for at the same budget, on a log axis.

    Parameters
    ----------
    table : DataFrame
        Columns mechanism, std, spent: the noise of one diagonal entry under the
        uniform allocation, and the epsilon it really spends.
    panels : sequence of Panel
    """
    figure = go.Figure()
    labels = []
    low, high = float(table["std"].min()), float(table["std"].max())
    middle, decades = math.sqrt(low * high), max(math.log10(high / low), 0.5)
    for number, panel in enumerate(reversed(panels)):
        row = table[table["mechanism"] == panel.key]
        if row.empty:
            continue
        labels.append((number, wrapped(panel.label)))
        std, spent = float(row["std"].iloc[0]), row["spent"].iloc[0]
        said = "" if pd.isna(spent) else f"  spends {numeral(spent)}"
        inward = "middle right" if std <= middle else "middle left"  # a phone has no room outside
        figure.add_trace(
            go.Scatter(
                x=[std], y=[number], mode="markers+text", text=[f"{numeral(std)}{said}"],
                textposition=inward, showlegend=False, cliponaxis=False,
                marker={"color": panel.colour, "symbol": panel.marker, "size": 12},
                hovertemplate=f"{numeral(std, 3)}<extra>{panel.label}</extra>",
            )
        )  # fmt: skip
    margin = 0.12 * decades
    figure.update_xaxes(
        type="log",
        title="noise of a diagonal entry",
        range=[math.log10(low) - margin, max(math.log10(low) + decades, math.log10(high)) + margin],
        exponentformat="none",
        dtick=max(1, round(decades / 6)),
    )
    figure.update_yaxes(
        tickvals=[number for number, _ in labels], ticktext=[label for _, label in labels],
        showgrid=False, range=[-0.6, len(panels) - 0.4], automargin=True,
    )  # fmt: skip
    return _layout(figure, 120 + 44 * max(len(panels), 3))


def prices_figure(table: pd.DataFrame, panels: Sequence[Panel]) -> go.Figure:
    """Draw the noise along one direction against its share of the precision.

    Parameters
    ----------
    table : DataFrame
        `dpviz.studies.precision.PRICE_COLUMNS`.
    panels : sequence of Panel
    """
    figure = go.Figure()
    ends = {}
    for panel in panels:
        part = table[table["mechanism"] == panel.key]
        if part.empty:
            continue
        ends[panel.key] = float(part["std"].iloc[0])
        figure.add_trace(
            curve(
                part["share"], part["std"], "share {}: {}", panel.label, digits=(2, 3),
                line={"color": panel.colour, "dash": panel.dash, "width": 2},
            )
        )  # fmt: skip
    figure.update_xaxes(
        title="share of the precision", type="log", tickvals=PRICE_TICKS,
        range=[math.log10(PRICE_TICKS[0]) - 0.5, 0],
        ticktext=[per_cent(numeral(100 * share, 6)) for share in PRICE_TICKS],
    )  # fmt: skip
    _name_ends(figure, panels, ends)
    return _layout(figure, _HEIGHT)
