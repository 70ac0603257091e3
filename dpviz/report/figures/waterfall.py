"""What each step of a private preparation costs, as a waterfall of recovery."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import percent
from dpviz.report.figures.theme import FIRST_TONE, SECOND_TONE, WARNING_TONE

_KEPT, _LOST, _GAINED = FIRST_TONE, WARNING_TONE, SECOND_TONE


def waterfall(table: pd.DataFrame, *, height: int = 360) -> go.Figure:
    """Return the figure.

    Parameters
    ----------
    table : DataFrame
        Columns step, recovery, low, high, change: of `dpviz.simulation.waterfall.waterfall_table`.
    height : int
        Pixels.
    """
    recovery = table["recovery"].tolist()
    steps = [
        f"{step}<br>{percent(value)}" for step, value in zip(table["step"], recovery, strict=True)
    ]
    figure = go.Figure()
    figure.add_bar(
        x=steps[:1],
        y=recovery[:1],
        marker_color=_KEPT,
        hovertemplate=f"%{{x}}: recovery {percent(recovery[0])}<extra></extra>",
    )
    changes = table["change"].tolist()[1:]
    colours = [_LOST if change < 0 else _GAINED for change in changes]
    figure.add_bar(
        x=steps[1:],
        y=changes,
        base=recovery[:-1],
        # an outline, so that a small change is seen as well
        marker={"color": colours, "line": {"color": colours, "width": 3}},
        hovertext=[
            f"{'+' if change > 0 else ''}{percent(change)}, recovery {percent(after)}"
            for change, after in zip(changes, recovery[1:], strict=True)
        ],
        hovertemplate="%{x}: %{hovertext}<extra></extra>",
    )
    figure.add_scatter(
        x=steps,
        y=recovery,
        mode="markers",
        marker={"color": "#7F7F7F", "size": 7},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": (table["high"] - table["recovery"]).tolist(),
            "arrayminus": (table["recovery"] - table["low"]).tolist(),
            "color": "#7F7F7F",
            "thickness": 1,
        },
        hoverinfo="skip",
    )
    low, high = min(0.0, float(table["low"].min())), max(1.0, float(table["high"].max()))
    figure.update_layout(
        overwrite=True,
        barmode="overlay",
        showlegend=False,
        height=height,
        margin={"l": 60, "r": 10, "t": 20, "b": 40},
        yaxis={"title": "recovery", "range": [low - 0.02, high + 0.1], "tickformat": ".0%"},
        xaxis={"title": ""},
    )
    return figure
