"""Figures of the noise allocation: recovery, noise along directions, accounting and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral, per_cent, percent
from dpviz.report.figures.axes import add_names, frame, log_axis
from dpviz.report.figures.theme import SHARES, TRUE_COLOUR, Panel, curve, told, wrapped

_HEIGHT = 480  # Figures with names beside their lines are this many pixels high.
PRICE_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def _layout(figure: go.Figure, height: int) -> go.Figure:
    # Put the legend above the plot, because long direction names would overlap it below the plot.
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1.04, "x": 0}
    return figure.update_layout(frame(height, top=20, legend=legend), overwrite=True)


def _short(name: str) -> str:
    """Shorten a direction's name to at most two lines, for the space below its tick."""
    lines = wrapped(name, 12).split("<br>")
    parts = [line if len(line) <= 12 else line[:11] + "…" for line in lines[:2]]
    return "<br>".join(parts) + "…" * (len(lines) > 2)


def _name_ends(
    figure: go.Figure, panels: Sequence[Panel], ends: dict[str, float], left: float | None = None
) -> None:
    """Set the range of the y axis, and write each line's name beside an end of the line."""
    stds = np.log10([float(std) for trace in figure.data for std in trace.y] or [1.0])
    low, high = float(stds.min()), float(stds.max())
    room = max(0.05 * (high - low), 0.1)
    span = (low - room, high + room)
    figure.update_yaxes(**log_axis("noise standard deviation", *span))
    names = [
        (panel.key, panel.label, panel.colour, math.log10(ends[panel.key]))
        for panel in panels
        if panel.key in ends
    ]
    add_names(figure, names, span, _HEIGHT - 100, left=left)


LOWEST = -0.2
"""Least recovery drawn. The axis is fixed, so that only bars and marks move."""


def payoff_figure(table: pd.DataFrame, panels: Sequence[Panel]) -> go.Figure:
    """Draw recovery with an allocation and with equal shares, with the best mechanism on top.

    Parameters
    ----------
    table : DataFrame
        Table with `dpviz.studies.precision.GAIN_COLUMNS`; variants without recovery are left out.
    panels : sequence of Panel
        Variants to draw.
    """
    figure = go.Figure()
    by_key = {panel.key: panel for panel in panels}
    rows = table.dropna(subset=["recovery"])
    rows = rows[rows["mechanism"].isin(by_key)].sort_values("recovery", kind="stable")
    for number, row in enumerate(rows.to_dict("records")):
        panel, now = by_key[row["mechanism"]], float(row["recovery"])
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
            x=0, y=number, xshift=6, yshift=8, xanchor="left", yanchor="bottom", showarrow=False,
            text=f"{wrapped(panel.label, 24)}  <b>{percent(now)}</b>{gain}", align="left",
            font={"size": 15, "color": panel.colour},
        )  # fmt: skip
    for x in (0.0, 1.0):
        figure.add_shape(
            type="line", xref="x", x0=x, x1=x, yref="y domain", y0=0, y1=1, layer="below",
            line={"color": TRUE_COLOUR, "width": 1, "dash": "dash"},
        )  # fmt: skip
    figure.update_xaxes(title="structure kept", range=[LOWEST - 0.08, 1.05], dtick=0.2, **SHARES)
    figure.update_yaxes(visible=False, range=[-0.5, len(rows) - 0.35])
    return _layout(figure, 80 + 64 * max(len(rows), 2))


def stds_figure(
    table: pd.DataFrame, panels: Sequence[Panel], names: Sequence[str], directions: Sequence[int]
) -> go.Figure:
    """Draw the noise standard deviation along each direction, on a log axis.

    Parameters
    ----------
    table : DataFrame
        `dpviz.studies.precision.NOISE_COLUMNS`.
    panels : sequence of Panel
    names : sequence of str
        Names of the d directions.
    directions : sequence of int
        Low-noise directions of the allocation, from 1; they are shaded.
    """
    figure = go.Figure()
    ends = {}
    for direction in directions:
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
    # Leave space for names beside the ends of lines, so that no name lies on a line.
    figure.update_xaxes(
        showgrid=False, automargin=True, range=[0.4, 1.25 * len(names) + 0.6], **ticks
    )
    _name_ends(figure, panels, ends, len(names) + 0.5)
    return _layout(figure, _HEIGHT)


def accounts_figure(table: pd.DataFrame, panels: Sequence[Panel]) -> go.Figure:
    """Draw the noise that each accounting method requires at the same budget, on a log axis.

    Parameters
    ----------
    table : DataFrame
        Table with columns mechanism, std, spent: the noise of one diagonal entry under the uniform
        allocation, and the actual privacy loss epsilon.
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
        std, loss = float(row["std"].iloc[0]), row["spent"].iloc[0]
        note = "" if pd.isna(loss) else f"  spends {numeral(loss)}"
        inward = "middle right" if std <= middle else "middle left"
        figure.add_trace(
            go.Scatter(
                x=[std], y=[number], mode="markers+text", text=[f"{numeral(std)}{note}"],
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
