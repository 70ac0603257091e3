"""What a mechanism's account says: delta against epsilon, and what repeating costs."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.report.figures.theme import told

_DASHES = {"exact": "solid", "zCDP": "dash", "basic": "dot"}


def repeated_figure(table: pd.DataFrame) -> go.Figure:
    """Return epsilon for all releases together, one line for each way to add up.

    Parameters
    ----------
    table : DataFrame
        Columns releases, account, epsilon: of `AccountView.repeated_table`.
    """
    figure = go.Figure()
    for name, part in table.groupby("account", sort=False):
        figure.add_scatter(
            x=part["releases"],
            y=part["epsilon"],
            mode="lines+markers",
            name=str(name),
            line={"dash": _DASHES[str(name)]},
            hovertext=told("{} releases: epsilon {}", (part["releases"], 6), (part["epsilon"], 3)),
            hovertemplate="%{hovertext}<extra>" + str(name) + "</extra>",
        )
    figure.update_layout(
        overwrite=True,
        height=300,
        margin={"l": 60, "r": 10, "t": 10, "b": 40},
        xaxis={
            "title": "releases of the same table",
            "type": "log",
            "tickvals": sorted(set(table["releases"].tolist())),
        },
        yaxis={"title": "epsilon of all together", "type": "log", "exponentformat": "power"},
        legend={"orientation": "h", "y": 1.15},
    )
    return figure


def curve_figure(table: pd.DataFrame) -> go.Figure:
    """Return delta against epsilon.

    Parameters
    ----------
    table : DataFrame
        Columns epsilon, delta: of `AccountView.curve_table`.
    """
    seen = table[table["delta"] > 1e-12]
    figure = go.Figure()
    figure.add_scatter(
        x=seen["epsilon"],
        y=seen["delta"],
        mode="lines",
        hovertext=told("epsilon {}: delta {}", (seen["epsilon"], 3), (seen["delta"], 3)),
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.update_layout(
        overwrite=True,
        height=300,
        margin={"l": 60, "r": 10, "t": 10, "b": 40},
        xaxis={"title": "epsilon"},
        # a letter for a power, such as the µ of 100µ, is nobody's delta
        yaxis={"title": "delta", "type": "log", "exponentformat": "power"},
        showlegend=False,
    )
    return figure
