"""Pictures of a paper's experiment: measured curves, and reported beside measured numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.base.number_text import numeral
from dpviz.figures.theme import (
    DASHES,
    FIRST_TONE,
    GREY,
    MARKERS,
    TRUE_COLOUR,
    colour_of_key,
    scatter,
    told,
)
from dpviz.reproduce import Chart, Line
from dpviz.tidy.labels import LABEL_COLOURS
from dpviz.tidy.ticks import log_ticks

_COLUMNS = 3
_PANEL_HEIGHT = 300
_ROW_HEIGHT, _HEAD_HEIGHT = 36, 44
_LABEL_LETTERS = 26


_COUNTS_STYLE = """
.dp-counts { border-collapse: collapse; font-size: 15px; width: 100%; }
.dp-counts th, .dp-counts td {
  text-align: right; padding: 3px 10px; border-bottom: 1px solid #8886; font-weight: 400;
}
.dp-counts thead th { font-size: 14px; vertical-align: bottom; }
.dp-counts th:first-child { text-align: left; padding-left: 0; }
@media (max-width: 640px) {
  .dp-counts th, .dp-counts td { padding: 3px 5px; }
  .dp-counts thead .long { display: none; }
}
"""


def counts_html(words: Sequence[str], rows: Mapping[str, Sequence[int]]) -> str:
    """Return how many claims of each paper have each answer, as a table.

    Parameters
    ----------
    words : sequence of str
        A mark and a word for each answer; a phone shows the mark alone.
    rows : mapping of str to sequence of int
        Of each paper, a count for each answer.
    """
    heads = ""
    for one in words:
        mark, _, rest = one.partition(" ")
        heads += (
            f'<th scope="col" aria-label="{escape(rest)}" title="{escape(rest)}">{escape(mark)} '
            f'<span class="long">{escape(rest)}</span></th>'
        )
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{count or '–'}</td>" for count in counts)
        + "</tr>"
        for name, counts in rows.items()
    )
    return (
        f"<style>{_COUNTS_STYLE}</style><table class='dp-counts'>"
        f"<thead><tr><th scope='col'>Paper</th>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def chart_panels(points: pd.DataFrame, chart: Chart) -> list[str]:
    """Return the panels of a chart that have points, in the order measured."""
    return list(dict.fromkeys(_drawn(points, chart)["panel"]))


def chart_figure(
    points: pd.DataFrame, chart: Chart, panels: Sequence[str] | None = None
) -> go.Figure:
    """Draw one quantity along x, a panel per data set, with the interval of each mean.

    Parameters
    ----------
    points : DataFrame
        `dpviz.reproduce.Measurements.table`.
    chart : Chart
    panels : sequence of str, optional
        Default `chart_panels`.
    """
    wanted = _drawn(points, chart)
    panels = chart_panels(points, chart) if panels is None else panels
    wide = max(1, min(_COLUMNS, len(panels)))
    rows = max(1, math.ceil(len(panels) / wide))
    figure = make_subplots(
        rows=rows,
        cols=wide,
        subplot_titles=panels,
        vertical_spacing=min(0.2, 0.22 / rows + 0.02),
        horizontal_spacing=0.08,
    )
    # A chart that compares no mechanisms, but settings or formulas, has the labels' colours.
    plain = [colour_of_key(series.key) == GREY for series in chart.series]
    colours = [
        LABEL_COLOURS[number % len(LABEL_COLOURS)] if all(plain) else colour_of_key(series.key)
        for number, series in enumerate(chart.series)
    ]
    # Marker and dash tell those of one colour apart.
    places = [
        number if all(plain) else colours[:number].count(colour)
        for number, colour in enumerate(colours)
    ]
    named: set[str] = set()
    for place, panel in enumerate(panels):
        here = wanted[wanted["panel"] == panel]
        cell = {"row": place // wide + 1, "col": place % wide + 1}
        for series, colour, among in zip(chart.series, colours, places, strict=True):
            line = here[here["series"] == series.name].sort_values("x")
            if not line.empty:
                figure.add_trace(
                    _curve(line, series.name, (colour, among), series.name not in named), **cell
                )
                named.add(series.name)
        limits = wanted if chart.share_y else here
        figure.update_xaxes(title_text=chart.x_label, **_axis(here["x"], chart.log_x), **cell)
        bars = pd.concat([limits["mean"], limits["mean_low"], limits["mean_high"]])
        figure.update_yaxes(**_axis(bars.dropna(), chart.log_y, fixed=chart.share_y), **cell)
    # a column of its own axis titles costs width: the first of each row says it for all
    figure.update_yaxes(title_text=chart.y_label, col=1)
    figure.update_layout(
        height=_PANEL_HEIGHT * rows + 110,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        legend={"orientation": "h", "yanchor": "top", "y": -75 / (_PANEL_HEIGHT * rows), "x": 0},
        hovermode="closest",
    )
    return figure


def _drawn(points: pd.DataFrame, chart: Chart) -> pd.DataFrame:
    return points[(points["quantity"] == chart.quantity) & points["x"].notna()]


def _curve(line: pd.DataFrame, name: str, look: tuple[str, int], legend: bool) -> dict[str, Any]:
    colour, place = look
    above = (line["mean_high"] - line["mean"]).fillna(0.0)
    return scatter(
        x=line["x"],
        y=line["mean"],
        error_y={
            "type": "data",
            "array": above,
            "arrayminus": (line["mean"] - line["mean_low"]).fillna(0.0),
            "thickness": 1.2,
            "width": 3,
        },
        mode="lines+markers",
        name=name,
        legendgroup=name,
        showlegend=legend,
        line={
            "color": colour,
            "dash": DASHES[place % len(DASHES)],
            "width": 2,
        },
        marker={"symbol": MARKERS[place % len(MARKERS)], "size": 7},
        hovertext=told("{}: {}", (line["x"], 4), (line["mean"], 4)),
        hovertemplate="%{hovertext}<extra>" + name + "</extra>",
    )


def _axis(values: pd.Series, log: bool, fixed: bool = False) -> dict[str, Any]:
    """Return the kind, limits and ticks of an axis that shows these values."""
    shown = values[values > 0] if log else values
    if shown.empty:
        return {"type": "linear"}
    low, high = float(shown.min()), float(shown.max())
    if not log:
        room = 0.05 * (high - low)
        return {"type": "linear"} | ({"range": [low - room, high + room]} if fixed else {})
    first, last = math.log10(low), math.log10(high)
    room = 0.05 * max(last - first, 0.2)
    ticks = log_ticks(first - room, last + room)
    return {
        "type": "log",
        "range": [first - room, last + room],
        "tickvals": ticks,
        "ticktext": [numeral(tick, 6) for tick in ticks],
    }


def lines_figure(lines: Sequence[Line]) -> go.Figure | None:
    """Draw measured numbers as multiples of the reported ones, a row each.

    Parameters
    ----------
    lines : sequence of Line
        Those with a positive reported and measured number are drawn.

    Returns
    -------
    Figure or None
        None where there is no such line.
    """
    shown = [
        (line, line.stated, line.mean)
        for line in lines
        if line.stated and line.mean and line.stated.value > 0 and line.mean.value > 0
    ]
    if not shown:
        return None
    panels = list(dict.fromkeys(line.panel for line, _, _ in shown))
    counts = [sum(line.panel == panel for line, _, _ in shown) for panel in panels]
    height = _ROW_HEIGHT * len(shown) + _HEAD_HEIGHT * len(panels) + 110
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        shared_xaxes=True,
        row_heights=counts,
        subplot_titles=panels,
        vertical_spacing=min(_HEAD_HEIGHT / height, 0.9 / max(len(panels) - 1, 1)),
    )
    ends: list[float] = []  # of all bars
    for row, panel in enumerate(panels, start=1):
        here = [item for item in shown if item[0].panel == panel]
        names = [_wrapped(line.item) for line, _, _ in here]
        ratios = [mean.value / stated.value for _, stated, mean in here]
        halves = [
            0.0 if math.isnan(mean.high) else (mean.high - mean.value) / stated.value
            for _, stated, mean in here
        ]
        below = [_below(ratio, half) for ratio, half in zip(ratios, halves, strict=True)]
        errors = [stated.error / stated.value for _, stated, _ in here]
        for at, half in (*zip(ratios, halves, strict=True), *((1.0, error) for error in errors)):
            ends += [at - _below(at, half), at + half]
        reported = scatter(
            x=[1.0] * len(here),
            y=names,
            error_x={
                "type": "data",
                "array": errors,
                "thickness": 1.2,
                "color": TRUE_COLOUR,
            },
            mode="markers",
            name="reported",
            legendgroup="reported",
            showlegend=row == 1,
            marker={"symbol": "circle-open", "size": 11, "color": TRUE_COLOUR},
            customdata=[line.reported for line, _, _ in here],
            hovertemplate="%{customdata}<extra>reported</extra>",
        )
        measured = scatter(
            x=ratios,
            y=names,
            error_x={
                "type": "data",
                "array": halves,
                "arrayminus": below,
                "thickness": 1.2,
            },
            mode="markers",
            name="measured",
            legendgroup="measured",
            showlegend=row == 1,
            marker={"size": 9, "color": FIRST_TONE},
            customdata=[line.measured for line, _, _ in here],
            hovertemplate="%{customdata}<extra>measured</extra>",
        )
        figure.add_traces([reported, measured], rows=row, cols=1)
    figure.update_xaxes(**_axis(pd.Series(ends), log=True))
    figure.update_xaxes(title_text="multiple of the reported number", row=len(panels), col=1)
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0 + 30 / height, "x": 0},
    )
    return figure


def _below(at: float, half: float) -> float:
    """Return how far a bar goes down: at zero it would have no end on a logarithmic axis."""
    return min(half, 0.99 * at)


def _wrapped(text: str) -> str:
    """Return a label in lines short enough for a phone."""
    return "<br>".join(textwrap.wrap(text, _LABEL_LETTERS))
