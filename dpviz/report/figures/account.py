"""Figures of privacy accounting: delta against epsilon, and the cost of repeated releases."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.report.figures.theme import curve

_DASHES = {"exact": "solid", "zCDP": "dash", "basic": "dot"}
_LAYOUT = {"height": 300, "margin": {"l": 60, "r": 10, "t": 10, "b": 40}}


def repeated_figure(table: pd.DataFrame) -> go.Figure:
    """Plot total epsilon against the number of releases, one line per accounting method.

    Parameters
    ----------
    table : DataFrame
        Table from `AccountView.repeated_table`, with columns releases, account and epsilon.
    """
    figure = go.Figure(
        [
            curve(
                part["releases"], part["epsilon"], "{} releases: epsilon {}", str(name),
                digits=(6, 3), mode="lines+markers", line={"dash": _DASHES[str(name)]},
            )
            for name, part in table.groupby("account", sort=False)
        ],
        _LAYOUT,
    )  # fmt: skip
    counts = sorted(set(table["releases"].tolist()))
    figure.update_xaxes(title="releases of the same table", type="log", tickvals=counts)
    figure.update_yaxes(title="epsilon of all together", type="log", exponentformat="power")
    return figure.update_layout(overwrite=True, legend={"orientation": "h", "y": 1.15})


def curve_figure(table: pd.DataFrame) -> go.Figure:
    """Plot delta against epsilon.

    Parameters
    ----------
    table : DataFrame
        Table from `AccountView.curve_table`, with columns epsilon and delta.
    """
    visible = table[table["delta"] > 1e-12]
    trace = curve(visible["epsilon"], visible["delta"], "epsilon {}: delta {}", "")
    figure = go.Figure(trace, _LAYOUT | {"showlegend": False, "xaxis": {"title": "epsilon"}})
    # The axis has powers of ten, because readers do not understand a delta such as 100µ.
    return figure.update_yaxes(title="delta", type="log", exponentformat="power")
