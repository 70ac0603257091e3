"""The bounds of one audit beside the claim."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.report.figures.theme import FIRST_TONE, TRUE_COLOUR, WARNING_TONE, told

_LOOKS = (
    ("claimed", TRUE_COLOUR, "line-ew-open", 18),
    ("measured", WARNING_TONE, "triangle-up", 11),
    ("exact", FIRST_TONE, "circle-open", 11),
)


def audited_figure(table: pd.DataFrame, label: str) -> go.Figure:
    """Draw delta at each epsilon: claimed, measured from below, and exact where it is known.

    Parameters
    ----------
    table : DataFrame
        Columns bound, at_epsilon, claimed, measured and exact.
    label : str
        Of the mechanism.
    """
    rows = table[table["bound"] == "delta"]
    figure = go.Figure()
    for name, colour, symbol, size in _LOOKS:
        known = rows[rows[name].notna()]
        if known.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=known["at_epsilon"], y=known[name].astype(float), mode="markers", name=name,
                marker={
                    "color": colour, "symbol": symbol, "size": size,
                    "line": {"width": 2, "color": colour},
                },
                hovertext=told(
                    "at epsilon {}: delta {}",
                    (known["at_epsilon"], 3), (known[name].astype(float), 3),
                ),
                hovertemplate="%{hovertext}<extra>" + name + "</extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(title="epsilon", type="log")
    figure.update_yaxes(title=f"{label}: delta that is left", rangemode="tozero")
    return figure.update_layout(
        overwrite=True,
        height=360, margin={"l": 10, "r": 10, "t": 20, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
    )  # fmt: skip
