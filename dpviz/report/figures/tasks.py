"""Charts of learning from releases: a score against epsilon, with bands and floors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.core.number_text import decimals, numeral, per_cent
from dpviz.report.figures.axes import frame
from dpviz.report.figures.theme import (
    BELOW,
    GREY,
    SHARES,
    TRUE_COLOUR,
    Panel,
    faded,
    scatter,
    standing,
    stretches,
    symbols,
    told,
    verdict_words,
    wrapped,
)
from dpviz.simulation.tasks.learners import Score

COMPARED = 8  # With more mechanisms, panels omit the mean lines of the other ones.
_ACROSS = 2  # A row has two panels, even on a phone.
_FLOOR_DASHES = ("dash", "dot", "longdashdot")
_PANEL, _AROUND, _LEAST = 172, 84, 420  # Pixels: a row of panels, all margins, the least height.


def task_figure(
    bands: pd.DataFrame,
    panels: Sequence[Panel],
    *,
    score: Score,
    epsilons: Sequence[float],
    now: float,
) -> go.Figure:
    """Draw mean and band of a score, with a panel for each variant and one scale for all.

    Each panel also shows the floors and, as thin lines, the means of the other variants.

    Parameters
    ----------
    bands : DataFrame
        Table with `dpviz.simulation.tasks.TASK_BAND_COLUMNS`; floors have no epsilon.
    panels : sequence of Panel
        Variants in drawing order.
    score : Score
    epsilons : sequence of float
        All values of the axis, including values that are not measured yet.
    now : float
        The current epsilon.
    """
    # Draw a panel even before its variant is measured, so that panels never move later.
    rows = max(1, math.ceil(len(panels) / _ACROSS))
    across = min(epsilons), max(epsilons)
    if across[0] == across[1]:
        across = across[0] / 2, across[1] * 2
    # Use plain dictionaries, because Plotly would check the whole figure at every addition.
    layout = deepcopy(_grid(rows, min(_ACROSS, max(1, len(panels)))))
    names = _names(layout, panels)
    _set_axes(layout, _range(bands, score), score, epsilons, across, rows)
    mark = _mark(now, len(panels)) if across[0] <= now <= across[1] else _NO_MARK
    layout |= frame(max(_LEAST, _PANEL * rows + _AROUND)) | {
        "legend": BELOW | {"traceorder": "normal"},
        "annotations": [*names, *mark["annotations"]],
        "shapes": mark["shapes"],
        "hovermode": "closest",
        "meta": {"highlight": "group"},  # pages/ui/highlight.js reads this entry.
    }
    return go.Figure(_traces(bands, panels, score, across), layout)


_Ends = tuple[float, float]
_Trace = dict[str, Any]
_NO_MARK: dict[str, Any] = {"shapes": [], "annotations": []}


@cache
def _grid(rows: int, columns: int) -> dict[str, Any]:
    """Return the shared axes of a grid of panels."""
    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_xaxes="all",
        shared_yaxes="all",
        horizontal_spacing=0.06,
        vertical_spacing=0.11 / rows,
    )
    axes: dict[str, Any] = figure.layout.to_plotly_json()
    return {name: axis for name, axis in axes.items() if name.startswith(("xaxis", "yaxis"))}


def _traces(
    bands: pd.DataFrame, panels: Sequence[Panel], score: Score, across: _Ends
) -> list[_Trace]:
    """Return the floors, the other variants' means and the own band of each panel."""
    parts = {
        panel.key: bands[bands["mechanism"] == panel.key].sort_values("epsilon") for panel in panels
    }
    floors = bands[bands["epsilon"].isna()]
    traces: list[_Trace] = []
    for number, panel in enumerate(panels or (None,)):
        inside = _floors(floors, across, score, legend=number == 0)
        if panel is not None:
            if len(panels) <= COMPARED:
                inside += [
                    _behind(parts[other.key], other)
                    for other in panels
                    if other.key != panel.key and not parts[other.key].empty
                ]
            if not parts[panel.key].empty:
                inside += _band(parts[panel.key], panel, score)
        axis = number + 1 if number else ""
        traces += [trace | {"xaxis": f"x{axis}", "yaxis": f"y{axis}"} for trace in inside]
    return traces


def _set_axes(
    layout: dict[str, Any], limits: _Ends, score: Score, epsilons: Sequence[float], across: _Ends,
    rows: int,
) -> None:  # fmt: skip
    """Give all panels the same axes, with titles at the bottom and at the first panel."""
    ticks = sorted(epsilons)
    foot = layout[f"yaxis{(rows - 1) * _ACROSS + 1 if rows > 1 else ''}"]["domain"]
    for name, axis in layout.items():
        axis["automargin"] = True
        if name.startswith("x"):
            axis |= {
                "type": "log",
                "tickvals": ticks,
                "ticktext": [numeral(value, 3) for value in ticks],
                "range": [math.log10(across[0]) - 0.03, math.log10(across[1]) + 0.03],
            }
            if layout[name.replace("x", "y", 1)]["domain"] == foot:
                axis["title"] = {"text": "Epsilon"}
        else:
            axis |= {"range": [*limits], "nticks": 5}
            if score.key == "accuracy" and axis.get("showticklabels", True):
                axis |= SHARES
    layout["yaxis"]["title"] = {"text": _title(score)}


def _names(layout: Mapping[str, Any], panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Return the name of each panel, above its left end."""
    names = []
    for number, panel in enumerate(panels):
        axis = number + 1 if number else ""
        names.append(
            {
                "text": _panel_name(panel), "name": f"name:{panel.key}", "showarrow": False,
                "font": {"size": 13, "color": panel.colour}, "align": "left",
                "x": layout[f"xaxis{axis}"]["domain"][0], "xref": "paper", "xanchor": "left",
                "y": layout[f"yaxis{axis}"]["domain"][1], "yref": "paper", "yanchor": "bottom",
            }
        )  # fmt: skip
    return names


def _mark(now: float, panels: int) -> dict[str, Any]:
    """Return a line at the current setting for each panel, with a label in the first panel."""
    mark = standing(now, log=True)
    axes = ["", *range(2, panels + 1)][:panels]  # Plotly omits the number of the first axes.
    lines = [
        line | {"xref": f"x{axis}", "yref": f"y{axis} domain"}
        for line in mark["shapes"]
        for axis in axes
    ]
    for word in mark["annotations"]:  # Put the text inside the panel; its name is above.
        word.update(yref="y domain", yanchor="top", xanchor="left")
    return {"shapes": lines, "annotations": mark["annotations"]}


def _panel_name(panel: Panel) -> str:
    """Return a panel's name with the mark of its claim, or with the verdict in words."""
    mark, _, _ = panel.status.partition(" ")
    return wrapped(f"{panel.label} {panel.status if mark.isalpha() else mark}", 26)


def _title(score: Score) -> str:
    unit = "<br>in standard deviations of the label" if score.key == "rmse" else ""
    return f"{score.label}{unit}"


def _range(bands: pd.DataFrame, score: Score) -> tuple[float, float]:
    """Return the limits of the score axis: the drawn range and a margin, in possible scores."""
    if bands.empty:
        return (score.low, score.high) if math.isfinite(score.high) else (0.0, 1.0)
    low, high = float(bands["low"].min()), float(bands["high"].max())
    room = 0.06 * max(high - low, 0.05)
    return max(low - room, score.low - 0.02), min(high + room, score.high + 0.02)


def _floors(floors: pd.DataFrame, across: _Ends, score: Score, *, legend: bool) -> list[_Trace]:
    """Return the floors as grey lines, with their bands as hover text."""
    lines = []
    for number, floor in enumerate(floors.to_dict("records")):
        mean = float(floor["mean"])
        text = f"{_text(mean, score)} ({_text(floor['low'], score)} to "
        lines.append(
            scatter(
                x=list(across), y=[mean, mean], mode="lines", name=floor["mechanism"],
                showlegend=legend,
                line={"color": TRUE_COLOUR, "width": 1.5,
                      "dash": _FLOOR_DASHES[number % len(_FLOOR_DASHES)]},
                hovertemplate=f"{text}{_text(floor['high'], score)}, {floor['rounds']} rounds)"
                f"<extra>{floor['mechanism']}</extra>",
            )
        )  # fmt: skip
    return lines


def _behind(part: pd.DataFrame, panel: Panel) -> _Trace:
    """Return the mean of another variant as a thin line."""
    return scatter(
        x=part["epsilon"], y=part["mean"], mode="lines", hoverinfo="skip", showlegend=False,
        line={"color": faded(GREY, 0.45), "width": 1}, legendgroup=panel.key,
    )  # fmt: skip


def _band(part: pd.DataFrame, panel: Panel, score: Score) -> list[_Trace]:
    """Return band and mean of one variant.

    The mean is dashed, with open points, at every epsilon at which the claim fails.
    """
    colour = panel.colour
    traces = [
        scatter(
            x=[*part["epsilon"], *part["epsilon"][::-1]], y=[*part["high"], *part["low"][::-1]],
            fill="toself", fillcolor=faded(colour, 0.16), line={"width": 0},
            hoverinfo="skip", showlegend=False, legendgroup=panel.key, mode="lines",
        )
    ]  # fmt: skip
    for line, dash in stretches(part, "solid", x="epsilon"):
        words = verdict_words(line["verdict"])
        scores = [
            [_text(row["mean"], score), _text(row["low"], score), _text(row["high"], score),
             row["rounds"], text]
            for row, text in zip(line.to_dict("records"), words, strict=True)
        ]  # fmt: skip
        traces.append(
            scatter(
                x=line["epsilon"], y=line["mean"], name=f"{panel.label} · {panel.status}",
                legendgroup=panel.key, mode="lines+markers", showlegend=False,
                line={"color": colour, "width": 2, "dash": dash},
                marker={"symbol": symbols(line["verdict"], "circle"), "size": 7},
                customdata=scores,
                hovertext=told("epsilon {}", (line["epsilon"], 3)),
                hovertemplate="%{hovertext}: %{customdata[0]} (%{customdata[1]} to "
                "%{customdata[2]}, %{customdata[3]} rounds), %{customdata[4]}<extra>"
                + panel.label + "</extra>",
            )
        )  # fmt: skip
    return traces


def _text(value: float, score: Score) -> str:
    return per_cent(decimals(100 * value, 1)) if score.key == "accuracy" else numeral(value, 3)
