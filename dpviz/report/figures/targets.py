"""What each mechanism needs for a goal: the least epsilon, or the fewest people."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dpviz.report.figures.theme import TRUE_COLOUR, Panel, told, wrapped


def targets_figure(table: pd.DataFrame, panels: Sequence[Panel], what: str) -> go.Figure:
    """Draw each answer as a point inside the interval that holds it, on a log axis.

    Parameters
    ----------
    table : DataFrame
        `dpviz.studies.least.TARGET_COLUMNS`. Answers that do not count are grey crosses;
        mechanisms without an answer have a line but no point.
    panels : sequence of Panel
    what : {"epsilon", "n"}
    """
    figure = go.Figure()
    for panel in panels:
        part = table[(table["mechanism"] == panel.key) & table["least"].notna()]
        counts = bool(part["counts"].all())
        middle = part["least"].astype(float)
        low, high = part["low"].astype(float), part["high"].astype(float)
        figure.add_trace(
            go.Scatter(
                x=middle, y=[wrapped(panel.label)] * len(part), mode="markers", showlegend=False,
                marker={
                    "color": panel.colour if counts else TRUE_COLOUR,
                    "symbol": "circle" if counts else "x", "size": 11,
                },
                error_x={
                    "type": "data", "symmetric": False, "array": (high - middle).fillna(0.0),
                    "arrayminus": (middle - low).fillna(0.0),
                },
                name=panel.label, customdata=part["status"],
                hovertext=told("{}", (middle, 3)),
                hovertemplate="%{hovertext}: %{customdata}<extra>" + panel.label + "</extra>",
            )
        )  # fmt: skip
    words = "people" if what == "n" else "epsilon"
    figure.update_xaxes(title=f"least {words}; grey cross: its claim does not count", type="log")
    figure.update_yaxes(
        autorange="reversed", automargin=True, tickfont={"size": 12}, type="category",
        categoryorder="array", categoryarray=[wrapped(panel.label) for panel in panels],
    )  # fmt: skip
    return figure.update_layout(
        overwrite=True,
        height=130 + 34 * max(len(panels), 2),
        margin={"l": 10, "r": 10, "t": 20, "b": 10},
    )
