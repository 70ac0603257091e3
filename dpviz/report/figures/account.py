"""What a mechanism's account says: delta against epsilon, and what repeating costs."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dpviz.report.figures.theme import curve

_DASHES = {"exact": "solid", "zCDP": "dash", "basic": "dot"}
_LAYOUT = {"height": 300, "margin": {"l": 60, "r": 10, "t": 10, "b": 40}}


def repeated_figure(table: pd.DataFrame) -> go.Figure:
    """Return epsilon for all releases together, one line for each way to add up.

    Parameters
    ----------
    table : DataFrame
        Columns releases, account, epsilon: of `AccountView.repeated_table`.
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
    """Return delta against epsilon.

    Parameters
    ----------
    table : DataFrame
        Columns epsilon, delta: of `AccountView.curve_table`.
    """
    seen = table[table["delta"] > 1e-12]
    trace = curve(seen["epsilon"], seen["delta"], "epsilon {}: delta {}", "")
    figure = go.Figure(trace, _LAYOUT | {"showlegend": False, "xaxis": {"title": "epsilon"}})
    # a letter for a power, such as the µ of 100µ, is nobody's delta
    return figure.update_yaxes(title="delta", type="log", exponentformat="power")
