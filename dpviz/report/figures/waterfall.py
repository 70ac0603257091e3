"""Chart of the cost of each step of a private preparation: losses from 100 %, with noise."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import percent
from dpviz.report.figures.axes import frame
from dpviz.report.figures.theme import FIRST_TONE, SECOND_TONE, SHARES, WARNING_TONE

_NOISE, _LOST, _GAINED = FIRST_TONE, WARNING_TONE, SECOND_TONE


def waterfall(table: pd.DataFrame, *, height: int = 360) -> go.Figure:
    """Return a waterfall chart of the steps.

    Parameters
    ----------
    table : DataFrame
        Table with `dpviz.studies.waterfall.BARS`: columns step, recovery, se and change.
    height : int
        Pixels.
    """
    recovery = table["recovery"].tolist()
    steps = [
        f"{step}<br>{percent(value)}" for step, value in zip(table["step"], recovery, strict=True)
    ]
    # Each bar starts where the previous bar ends, the first at the recovery without privacy.
    starts = [1.0, *recovery[:-1]]
    changes = [recovery[0] - 1.0, *table["change"].tolist()[1:]]
    colours = [_NOISE, *(_GAINED if change > 0 else _LOST for change in changes[1:])]
    figure = go.Figure()
    figure.add_bar(
        y=steps,
        x=changes,
        base=starts,
        orientation="h",  # Horizontal bars keep the names readable on a phone.
        # An outline makes bars of small changes visible.
        marker={"color": colours, "line": {"color": colours, "width": 3}},
        hovertext=[
            f"{'+' if change > 0 else ''}{percent(change)}, recovery {percent(after)}"
            for change, after in zip(changes, recovery, strict=True)
        ],
        hovertemplate="%{y}: %{hovertext}<extra></extra>",
    )
    reach = (2 * table["se"]).fillna(0.0)
    figure.add_scatter(
        y=steps,
        x=recovery,
        mode="markers",
        marker={"color": "#7F7F7F", "size": 7},
        error_x={"type": "data", "array": reach.tolist(), "color": "#7F7F7F", "thickness": 1.5},
        hoverinfo="skip",
    )
    low, high = (table["recovery"] - reach).min(), max(1.0, (table["recovery"] + reach).max())
    room = 0.08 * max(high - low, 0.02)
    figure.update_layout(
        frame(height, left=60, top=20),
        overwrite=True,
        barmode="overlay",
        showlegend=False,
        xaxis={"title": "recovery", "range": [low - room, high + room], **SHARES},
        yaxis={"title": "", "autorange": "reversed", "automargin": True},
    )
    return figure
