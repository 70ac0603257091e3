"""Pictures of two lessons: people needed along epsilon, and what a mean and a bound give away."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.auditing.leaking import Leak
from dpviz.core.number_text import numeral, thousands
from dpviz.report.figures.theme import FIRST_TONE, SECOND_TONE, TRUE_COLOUR, WARNING_TONE, to_scale

_HEIGHT = 420


def _layout(figure: go.Figure, larger: float) -> go.Figure:
    figure.update_layout(
        height=_HEIGHT * larger,
        margin={"l": 10, "r": 10, "t": 20, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        hovermode="closest",
        font={"size": 14 * larger},
    )
    return figure


def needed_figure(table: pd.DataFrame, now: tuple[float, float], larger: float = 1.0) -> go.Figure:
    """Draw the people needed along epsilon.

    Parameters
    ----------
    table : DataFrame
        `dpviz.lessons.needed.NEEDED_COLUMNS`.
    now : (float, float)
        The epsilon chosen and the people needed there.
    larger : float
        How many times as large as beside other things, for a lecture hall.
    """
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=table["epsilon"], y=table["people"], mode="lines", showlegend=False,
            line={"color": FIRST_TONE, "width": 3},
            hovertext=[
                f"epsilon {numeral(epsilon, 3)}: {thousands(people)} people"
                for epsilon, people in zip(table["epsilon"], table["people"], strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=[now[0]], y=[now[1]], mode="markers+text", showlegend=False, cliponaxis=False,
            marker={"color": WARNING_TONE, "size": 14},
            text=[f"{thousands(now[1])} people"], textposition="top right",
            textfont={"size": 16 * larger},
            hoverinfo="skip",
        )
    )  # fmt: skip
    figure.add_vline(x=now[0], line={"color": TRUE_COLOUR, "width": 1, "dash": "dot"})
    figure.update_xaxes(title="epsilon", type="log", dtick=1)  # no ticks between, too small
    figure.update_yaxes(title="people needed", type="log", dtick=1, tickformat=",")
    return _layout(figure, larger)


def leak_figure(leak: Leak, shown: str, declared: bool, larger: float = 1.0) -> go.Figure:
    """Draw a small table, its mean, and the row bound with and without its last row.

    Parameters
    ----------
    leak : Leak
    shown : str
        ``mean``, ``bound``, or empty for the rows alone.
    declared : bool
        Whether the bound is the declared one instead of those of the data.
    larger : float
        As in `needed_figure`.
    """
    rows = leak.rows[:, leak.axes]
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=rows[:-1, 0], y=rows[:-1, 1], mode="markers", name="known to the attacker",
            marker={"color": TRUE_COLOUR, "size": 11},
        )
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=rows[-1:, 0], y=rows[-1:, 1], mode="markers", name="her row",
            marker={"color": FIRST_TONE, "size": 14},
        )
    )  # fmt: skip
    if shown == "mean":
        mean, found = leak.mean[leak.axes], leak.recovered[leak.axes]
        figure.add_trace(
            go.Scatter(
                x=[mean[0]], y=[mean[1]], mode="markers", name="printed mean",
                marker={"color": SECOND_TONE, "size": 13, "symbol": "cross"},
            )
        )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=[found[0]], y=[found[1]], mode="markers", name="computed from the mean",
                marker={
                    "color": "rgba(0, 0, 0, 0)", "size": 24, "symbol": "circle",
                    "line": {"color": WARNING_TONE, "width": 3},
                },
            )
        )  # fmt: skip
    if shown == "bound":
        bounds = (
            (("declared: the same with and without her", leak.declared_bound, "solid"),)
            if declared
            else (
                ("row bound with her", leak.bound_with, "solid"),
                ("row bound without her", leak.bound_without, "dash"),
            )
        )
        turn = np.linspace(0, np.pi / 2, 100)
        for name, bound, dash in bounds:
            figure.add_trace(
                go.Scatter(
                    x=bound * np.cos(turn), y=bound * np.sin(turn), mode="lines", name=name,
                    line={"color": WARNING_TONE, "width": 3, "dash": dash},
                    hoverinfo="name",
                )
            )  # fmt: skip
    names = [leak.features[axis] for axis in leak.axes]
    reach = 1.08 * (leak.declared_bound if declared else leak.bound_with)
    figure.update_xaxes(title=names[0], range=[0, reach])
    figure.update_yaxes(title=names[1], range=[0, reach if shown == "bound" else 0.45 * reach])
    return to_scale(_layout(figure, larger))  # a bound on the length is a circle
