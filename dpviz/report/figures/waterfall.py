"""What each step of a private preparation costs: losses from 100 %, with their noise."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import percent
from dpviz.report.figures.theme import FIRST_TONE, SECOND_TONE, SHARES, WARNING_TONE

_NOISE, _LOST, _GAINED = FIRST_TONE, WARNING_TONE, SECOND_TONE


def waterfall(table: pd.DataFrame, *, height: int = 360) -> go.Figure:
    """Return the figure.

    Parameters
    ----------
    table : DataFrame
        Columns step, recovery, se, change: of `dpviz.studies.waterfall.BARS`.
    height : int
        Pixels.
    """
    recovery = table["recovery"].tolist()
    steps = [
        f"{step}<br>{percent(value)}" for step, value in zip(table["step"], recovery, strict=True)
    ]
    # Every bar hangs where the one before ended, the first one at what the exact components keep.
    starts = [1.0, *recovery[:-1]]
    changes = [recovery[0] - 1.0, *table["change"].tolist()[1:]]
    colours = [_NOISE, *(_GAINED if change > 0 else _LOST for change in changes[1:])]
    figure = go.Figure()
    figure.add_bar(
        x=steps,
        y=changes,
        base=starts,
        # an outline, so that a small change is seen as well
        marker={"color": colours, "line": {"color": colours, "width": 3}},
        hovertext=[
            f"{'+' if change > 0 else ''}{percent(change)}, recovery {percent(after)}"
            for change, after in zip(changes, recovery, strict=True)
        ],
        hovertemplate="%{x}: %{hovertext}<extra></extra>",
    )
    reach = (2 * table["se"]).fillna(0.0)
    figure.add_scatter(
        x=steps,
        y=recovery,
        mode="markers",
        marker={"color": "#7F7F7F", "size": 7},
        error_y={"type": "data", "array": reach.tolist(), "color": "#7F7F7F", "thickness": 1.5},
        hoverinfo="skip",
    )
    low, high = (table["recovery"] - reach).min(), max(1.0, (table["recovery"] + reach).max())
    room = 0.08 * max(high - low, 0.02)
    figure.update_layout(
        overwrite=True,
        barmode="overlay",
        showlegend=False,
        height=height,
        margin={"l": 60, "r": 10, "t": 20, "b": 10},
        yaxis={"title": "recovery", "range": [low - room, high + room], **SHARES},
        xaxis={"title": ""},
    )
    return figure
