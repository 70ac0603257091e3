"""Where the precision goes: noise along each direction, ellipses, and budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral, per_cent, percent
from dpviz.report.figures.theme import SHARES, TRUE_COLOUR, Panel, to_scale, told, wrapped

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


def _label_ends(
    figure: go.Figure, panels: Sequence[Panel], ends: dict[str, float], side: str
) -> None:
    """Write the names of lines above one of their ends; lines that run together share one.

    Parameters
    ----------
    figure : Figure
        With a log y axis.
    panels : sequence of Panel
    ends : dict of str to float
        Height of each line's end, by variant.
    side : {"left", "right"}
        Which end: the one from which the lines fall, or either if they are level.
    """
    named = {panel.key: panel for panel in panels}
    order = sorted(ends, key=lambda key: ends[key])
    if not order:
        return
    room = 0.075 * max(math.log10(ends[order[-1]] / ends[order[0]]), 1.0)
    groups: list[list[str]] = []
    for key in order:
        if groups and math.log10(ends[key] / ends[groups[-1][0]]) < room / 3:
            groups[-1].append(key)
        else:
            groups.append([key])
    height = -math.inf
    for group in groups:
        first = named[group[0]]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        height = max(math.log10(ends[group[-1]]), height + room)  # never on another name
        figure.add_annotation(
            x=1 if side == "right" else 0, xref="x domain", xanchor=side, y=height,
            yanchor="bottom", text=f"{first.label}{more}", showarrow=False,
            font={"color": first.colour, "size": 12},
        )  # fmt: skip


def payoff_figure(table: pd.DataFrame, panels: Sequence[Panel]) -> go.Figure:
    """Draw recovery with an allocation beside that with equal shares.

    Parameters
    ----------
    table : DataFrame
        `dpviz.report.tables.precision.GAIN_COLUMNS`; a variant without recovery has no row.
    panels : sequence of Panel
    """
    figure = go.Figure()
    labels = []
    shown = table.dropna(subset=["recovery"])
    found = dict(zip(shown["mechanism"], zip(shown["uniform"], shown["recovery"], strict=True),
                     strict=True))  # fmt: skip
    for number, panel in enumerate(reversed([p for p in panels if p.key in found])):
        before, now = map(float, found[panel.key])
        labels.append((number, wrapped(panel.label)))
        figure.add_trace(
            go.Scatter(
                x=[before, now], y=[number, number], mode="lines+markers+text", showlegend=False,
                line={"color": panel.colour, "width": panel.width + 1},
                marker={"symbol": [f"{panel.marker}-open", panel.marker], "size": 12},
                text=["", percent(now)], textfont={"size": 13, "color": panel.colour},
                cliponaxis=False,
                textposition=_beside(now),
                hovertext=[
                    f"{percent(before)} with equal shares", f"{percent(now)} with these shares"
                ],
                hovertemplate="%{hovertext}<extra>" + panel.label + "</extra>",
            )
        )  # fmt: skip
    # a number below 0 stands left of its mark, and not on the names
    below = shown["recovery"][shown["recovery"] < 0]
    low = min([-0.18, *shown["uniform"] - 0.08, *below - 0.3])
    for x, words in ((0.0, "chance"), (1.0, "exact PCA")):
        figure.add_shape(
            type="line", xref="x", x0=x, x1=x, yref="y domain", y0=0, y1=1,
            line={"color": TRUE_COLOUR, "width": 1, "dash": "dash"},
        )  # fmt: skip
        figure.add_annotation(
            x=x, y=1, yref="paper", yanchor="bottom", text=words, showarrow=False,
            font={"size": 12}, xanchor="right" if x else "center",
        )  # fmt: skip
    figure.update_xaxes(title="recovery", range=[low, 1.05], **SHARES)
    figure.update_yaxes(
        tickvals=[number for number, _ in labels], ticktext=[label for _, label in labels],
        showgrid=False, range=[-0.6, len(labels) - 0.3], automargin=True,
    )  # fmt: skip
    return _layout(figure, 90 + 44 * max(len(labels), 3))


def _beside(recovery: float) -> str:
    """Return where a number stands beside its mark: clear of the lines at chance and at all."""
    if recovery < 0 or recovery > 0.9:
        return "top left"
    return "top right" if recovery < 0.1 else "top center"


def stds_figure(
    table: pd.DataFrame, panels: Sequence[Panel], names: Sequence[str], chosen: Sequence[int]
) -> go.Figure:
    """Draw the noise standard deviation along each direction, on a log axis.

    Parameters
    ----------
    table : DataFrame
        `dpviz.report.tables.precision.NOISE_COLUMNS`.
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
        showgrid=False, automargin=True, range=[0.4, 1.2 * len(names) + 0.6], **ticks
    )
    _label_ends(figure, panels, ends, "right")
    figure.update_yaxes(
        title="noise standard deviation", type="log", exponentformat="none", dtick=1
    )
    return _layout(figure, 480)


def ellipses_figure(
    table: pd.DataFrame, panels: Sequence[Panel], first: str, second: str
) -> go.Figure:
    """Draw each mechanism's noise ellipse in two directions, scaled to the smallest circle.

    Parameters
    ----------
    table : DataFrame
        Columns mechanism, first, second: standard deviations along the two.
    panels : sequence of Panel
    first, second : str
        Names of the two directions.
    """
    angle = np.linspace(0, 2 * np.pi, 121)
    figure = go.Figure()
    for panel in panels:
        row = table[table["mechanism"] == panel.key]
        if row.empty:
            continue
        a, b = float(row["first"].iloc[0]), float(row["second"].iloc[0])
        figure.add_trace(
            go.Scatter(
                x=a * np.cos(angle), y=b * np.sin(angle), mode="lines", name=panel.label,
                line={"color": panel.colour, "dash": panel.dash, "width": 2},
                hovertemplate=f"{first}: {numeral(a, 3)}, {second}: {numeral(b, 3)}<extra>"
                f"{panel.label}</extra>",
            )
        )  # fmt: skip
    # The same limits on both axes, so that a circle is a circle and a thin ellipse has room.
    shown = table[table["mechanism"].isin([panel.key for panel in panels])]
    most = 1.1 * float(shown[["first", "second"]].to_numpy().max()) if len(shown) else 1.0
    axis = {"range": [-most, most], "zeroline": True, "nticks": 6}
    figure.update_xaxes(title=f"noise along {first}", **axis)
    figure.update_yaxes(title=f"noise along {second}", **axis)
    return to_scale(_layout(figure, 460))


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
        `dpviz.report.tables.precision.PRICE_COLUMNS`.
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
            go.Scatter(
                x=part["share"], y=part["std"], mode="lines", name=panel.label,
                line={"color": panel.colour, "dash": panel.dash, "width": 2},
                hovertext=told("share {}: {}", (part["share"], 2), (part["std"], 3)),
                hovertemplate="%{hovertext}<extra>" + panel.label + "</extra>",
            )
        )  # fmt: skip
    _label_ends(figure, panels, ends, "left")
    figure.update_xaxes(
        title="share of the precision", type="log", tickvals=PRICE_TICKS,
        range=[math.log10(PRICE_TICKS[0]) - 0.4, 0],
        ticktext=[per_cent(numeral(100 * share, 6)) for share in PRICE_TICKS],
    )  # fmt: skip
    figure.update_yaxes(
        title="noise standard deviation", type="log", exponentformat="none", dtick=1
    )
    return _layout(figure, 480)
