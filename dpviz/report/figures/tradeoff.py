"""One metric along one axis: bands, single draws, frontier, prediction, theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral, percent
from dpviz.report.figures.axes import add_names, log_axis
from dpviz.report.figures.theme import (
    BELOW,
    SHARES,
    TRUE_COLOUR,
    Panel,
    faded,
    standing,
    stretches,
    symbols,
    verdict_words,
)

FEW = 8  # of more lines only those with a colour have a range and a place in the legend
HEIGHT = 560  # pixels of the chart, where its names have room
_AROUND, _ENTRY = 100, 29  # pixels above and below a plot, and of a row of its legend
_LOWEST = 300  # pixels of a plot, however long its legend
NARROWEST = 850  # pixels of a plot whose lines have names beside
_NAMES = 0.2  # of a plot's width, for the names right of their lines
_PREDICTED = "predicted without a draw"
_BOUND = "Davis-Kahan bound"
_BEFORE = "as released, before post-processing"
_BAND = 0.13  # opacity of the range of the line under the pointer
_GREY_DASHES = ("dash", "longdashdot")

Write = Callable[[float], str]
"""How a measure is written."""


def tradeoff_figure(
    bands: pd.DataFrame,
    panels: Sequence[Panel],
    *,
    x_title: str,
    y_title: str,
    log_x: bool,
    log_y: bool,
    now: float,
    shares: bool = False,
    limits: pd.DataFrame | None = None,
    predicted: pd.DataFrame | None = None,
    best: pd.DataFrame | None = None,
    marks: pd.DataFrame | None = None,
    draws: pd.DataFrame | None = None,
    bound: pd.DataFrame | None = None,
    scalings: pd.DataFrame | None = None,
    other: pd.DataFrame | None = None,
    other_name: str = "",
    before: pd.DataFrame | None = None,
    beyond: float = math.inf,
    pointed: bool = False,
) -> go.Figure:
    """Draw mean and range of a metric for each variant.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.report.tables.curves.BAND_COLUMNS`.
    panels : sequence of Panel
        In the order of the legend; those with a colour lie on top.
    x_title, y_title : str
    log_x, log_y : bool
    now : float
        Where the current setting stands.
    shares : bool
        Whether what is measured is written in per cent.
    limits : DataFrame, optional
        `dpviz.report.tables.curves.LINE_COLUMNS`: a random subspace and exact PCA.
    predicted : DataFrame, optional
        `dpviz.report.tables.comparison.PREDICTION_COLUMNS`: dotted lines, dashed where the claim
        fails.
    best : DataFrame, optional
        The frontier, rows of bands: ringed points.
    marks : DataFrame, optional
        Columns mechanism, component, epsilon: from where on components are found.
    draws : DataFrame, optional
        `dpviz.report.tables.curves.DRAW_COLUMNS`: thin lines.
    bound : DataFrame, optional
        `dpviz.report.tables.curves.BOUND_COLUMNS`: the Davis-Kahan bound.
    scalings : DataFrame, optional
        `dpviz.report.tables.curves.LINE_COLUMNS`: orders of growth, constant unknown.
    other : DataFrame, optional
        Bands of a second table: dashes and dots, with open markers and no range.
    other_name : str
    before : DataFrame, optional
        Bands of the same releases without post-processing: thin lines with crosses, no range.
    beyond : float
        From here on means are dashed: people who are not in the table. They are dashed as well
        where a claim fails, by the verdict of each point.
    pointed : bool
        Whether a script fills the range of the line under the pointer, and no other is filled.
    """
    write = percent if shares else partial(numeral, digits=3)  # the measure, under the pointer
    traces: list[_Trace] = []
    kinds: dict[str, _Trace] = {}  # styles of line that the legend explains, by their words
    named: list[tuple[Panel, pd.DataFrame, str]] = []
    # what has a colour is drawn last, on top
    for number, panel in sorted(enumerate(panels), key=lambda one: (one[1].highlighted, -one[0])):
        whole = panel.highlighted or len(panels) <= FEW
        part, expected = _of(bands, panel), _of(predicted, panel)
        if part is not None:
            found = _band(part, panel, write, beyond, whole=whole)
            traces += [{"legendrank": number} | trace for trace in found]
            named.append((panel, part, "mean"))
        if (lines := _of(draws, panel)) is not None:
            kinds["single draws"] = {"color": TRUE_COLOUR, "width": 0.7}
            traces.append(_draws(lines, panel))
        if expected is not None:
            kinds[_PREDICTED] = {"color": TRUE_COLOUR, "width": 1.5, "dash": "dot"}
            found = _predicted(expected, panel, write, alone=part is None, whole=whole)
            traces += [{"legendrank": number} | trace for trace in found]
            if part is None:
                named.append((panel, expected, "value"))
        for table, column, dash, words in (
            (bound, "value", "longdash", _BOUND),
            (other, "mean", "dashdot", other_name),
            (before, "mean", "solid", _BEFORE),
        ):
            if (line := _of(table, panel)) is not None:
                traces.append(_second(line, column, panel, write, dash, words))
                style = traces[-1]["line"]
                kinds[words] = style | {"color": TRUE_COLOUR}
    if marks is not None:
        traces += _marks(marks, panels)
    if best is not None and not best.empty:
        traces.append(
            {
                "x": best["x"], "y": best["mean"], "mode": "markers", "hoverinfo": "skip",
                "name": "best whose claim holds",
                "marker": {"symbol": "circle-open", "size": 15, "color": TRUE_COLOUR,
                           "line": {"width": 2}},
            }
        )  # fmt: skip
    traces += [
        {"x": [None], "y": [None], "mode": "lines", "name": words, "line": style,
         "hoverinfo": "skip"}
        for words, style in kinds.items()
    ]  # fmt: skip
    for lines_of, ending in ((limits, ""), (scalings, " (scaling only)")):
        if lines_of is not None:
            traces += _references(lines_of, ending, write, log_y=log_y)
    x, y = _spans(traces, now, log_x=log_x, log_y=log_y)
    legend = _legend_height(traces)
    plot = max(_LOWEST, HEIGHT - _AROUND - legend)
    layout: dict[str, Any] = {
        "xaxis": {"automargin": True, **_axis(x_title, x, log=log_x)},
        "yaxis": {"automargin": True, **_axis(y_title, y, log=log_y)},
        # of marks, so that they stay at the foot at any scale
        "yaxis2": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        **standing(now, log=log_x),
        "height": plot + _AROUND + legend,
        "margin": {"l": 10, "r": 16, "t": 30, "b": 10},
        "legend": BELOW | {"maxheight": 1},  # on a phone all of it is seen, without a bar
        "hovermode": "closest",
        "clickmode": "event+select",
        "dragmode": "pan",
        # what pages/ui/highlight.js goes by: the others fade, the range of one line is filled
        "meta": {"highlight": "group", "band": _BAND},
    }
    if shares and not log_y:
        layout["yaxis"] |= SHARES
    figure = go.Figure([{"type": "scatter", **trace} for trace in traces], layout)
    # right of the last point, in the share of the plot that `_spans` leaves
    add_names(
        figure, _ends(named, now, write, log_x=log_x, log_y=log_y), y, plot,
        left=x[1] - _NAMES * (x[1] - x[0]),
    )  # fmt: skip
    return _filled(figure, 0.0) if pointed else figure


_Trace = dict[str, Any]
_Span = tuple[float, float]
"""Ends of an axis, in logarithms where it is logarithmic."""


def with_ranges(figure: go.Figure) -> go.Figure:
    """Return a copy with every range filled: a file has no script that fills one."""
    return _filled(go.Figure(figure), _BAND)


def _filled(figure: go.Figure, opacity: float) -> go.Figure:
    for trace in figure.select_traces({"fill": "toself"}):
        colour, _, _ = trace.fillcolor.rpartition(",")
        trace.fillcolor = f"{colour}, {opacity})"
    return figure


def _of(table: pd.DataFrame | None, panel: Panel) -> pd.DataFrame | None:
    """Return the rows of one variant, or None where there are none."""
    if table is None or table.empty:
        return None
    part = table[table["mechanism"] == panel.key]
    return None if part.empty else part


def _under(line: pd.DataFrame, column: str, write: Write, words: str) -> _Trace:
    """Return what stands under the pointer at each point of a line."""
    pairs = zip(line["x"], line[column], strict=True)
    return {
        "hovertext": [f"{numeral(x, 4)}: {write(y)}" for x, y in pairs],
        "hovertemplate": f"%{{hovertext}}{words}",
    }


def _band(
    part: pd.DataFrame, panel: Panel, write: Write, beyond: float, *, whole: bool
) -> list[_Trace]:
    """Return range and mean of one variant.

    The mean is dashed from ``beyond`` on, and wherever the claim fails at either end of a line;
    a point where it fails is an open marker, and says so.
    """
    traces: list[_Trace] = []
    if whole:
        traces.append(
            {
                "x": [*part["x"], *part["x"][::-1]], "y": [*part["high"], *part["low"][::-1]],
                "fill": "toself", "fillcolor": faded(panel.colour, _BAND), "line": {"width": 0},
                "hoverinfo": "skip", "showlegend": False, "legendgroup": panel.key,
                "mode": "lines",
            }
        )  # fmt: skip
    words = f" (%{{customdata[1]}} to %{{customdata[2]}}, %{{customdata[3]}} draws), %{{customdata[4]}}<extra>{panel.label}</extra>"  # noqa: E501
    for number, (line, dash) in enumerate(stretches(part, "solid", beyond=beyond)):
        said = line[["mechanism", "low", "high", "draws"]].assign(
            low=line["low"].map(write),
            high=line["high"].map(write),
            words=verdict_words(line["verdict"]),
        )
        traces.append(
            {
                "x": line["x"], "y": line["mean"], "name": _name(panel), "mode": "lines+markers",
                "legendgroup": panel.key, "showlegend": number == 0 and whole,
                "line": {"color": panel.colour, "width": panel.width, "dash": dash},
                "marker": {"symbol": symbols(line["verdict"], panel.marker),
                           "size": 7 if panel.highlighted else 4},
                "selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}},
                "customdata": said.to_numpy(), **_under(line, "mean", write, words),
            }
        )  # fmt: skip
    return traces


def _name(panel: Panel) -> str:
    return f"{panel.label} · {panel.status}".removesuffix(" · ")


def _predicted(
    part: pd.DataFrame, panel: Panel, write: Write, *, alone: bool, whole: bool
) -> list[_Trace]:
    """Return the prediction of one variant: dotted, and dashed where its claim fails.

    Beside its drawn curve it says nothing under the pointer: it would keep it from the points that
    are clicked.
    """
    words = f", %{{text}}<extra>{panel.label}, {_PREDICTED}</extra>"
    return [
        {
            "x": line["x"], "y": line["value"], "mode": "lines", "legendgroup": panel.key,
            "name": _name(panel) if alone else panel.label,
            "showlegend": alone and whole and number == 0,
            "line": {"color": panel.colour, "width": min(panel.width, 1.5), "dash": dash},
            **({"text": verdict_words(line["verdict"]), **_under(line, "value", write, words)}
               if alone else {"hoverinfo": "skip"}),
        }
        for number, (line, dash) in enumerate(stretches(part, "dot"))
    ]  # fmt: skip


def _second(
    line: pd.DataFrame, column: str, panel: Panel, write: Write, dash: str, words: str
) -> _Trace:
    """Return a line beside the mean: its bound, the same on another table or before."""
    thin = words == _BEFORE
    return {
        "x": line["x"], "y": line[column], "name": panel.label, "legendgroup": panel.key,
        "mode": "lines+markers" if column == "mean" else "lines", "showlegend": False,
        "marker": {"symbol": "x-thin-open" if thin else f"{panel.marker}-open",
                   "size": 5 if thin else 7},
        "line": {"color": panel.colour, "width": 0.8 if thin else 1.5, "dash": dash},
        **_under(line, column, write, f"<extra>{panel.label}, {words}</extra>"),
    }  # fmt: skip


def _draws(lines: pd.DataFrame, panel: Panel) -> _Trace:
    """Return the single draws of one variant as one trace, with gaps between trials."""
    # many traces are slow to paint, and a gap parts the lines as well
    parts = [line for _, line in lines.groupby("trial")]
    return {
        "x": [x for line in parts for x in (*line["x"], None)],
        "y": [y for line in parts for y in (*line["value"], None)],
        "mode": "lines", "legendgroup": panel.key, "showlegend": False, "hoverinfo": "skip",
        "line": {"color": faded(panel.colour, 0.45), "width": 0.7}, "name": f"{panel.label}, draws",
    }  # fmt: skip


def _marks(marks: pd.DataFrame, panels: Sequence[Panel]) -> list[_Trace]:
    """Return a row of triangles on the axis: from where on each component is found."""
    traces: list[_Trace] = []
    for panel in panels:
        if (part := _of(marks, panel)) is None:
            continue
        traces.append(
            {
                "x": part["epsilon"], "y": [0.0] * len(part), "yaxis": "y2", "mode": "markers",
                "legendgroup": panel.key, "name": f"{panel.label}, components",
                "showlegend": False, "customdata": part[["component"]].to_numpy(),
                "cliponaxis": False,
                "marker": {"symbol": "triangle-up", "size": 10, "color": panel.colour},
                "hovertext": [numeral(epsilon, 3) for epsilon in part["epsilon"]],
                "hovertemplate": "component %{customdata[0]} found from epsilon %{hovertext} on"
                f"<extra>{panel.label}</extra>",
            }
        )  # fmt: skip
    if traces:
        traces.append(
            {
                "x": [None], "y": [None], "mode": "markers", "name": "component found from here",
                "marker": {"symbol": "triangle-up", "size": 10, "color": TRUE_COLOUR},
                "hoverinfo": "skip",
            }
        )  # fmt: skip
    return traces


def _references(table: pd.DataFrame, words: str, write: Write, *, log_y: bool) -> list[_Trace]:
    """Return grey reference lines, named in the legend."""
    traces: list[_Trace] = []
    for number, (label, line) in enumerate(table.groupby("label", sort=False)):
        shown = line[line["value"] > 0] if log_y else line
        if not shown.empty:
            dash = "dashdot" if words else _GREY_DASHES[number % 2]
            traces.append(
                {
                    "x": shown["x"], "y": shown["value"], "mode": "lines",
                    "name": f"{label}{words}",
                    "line": {"color": TRUE_COLOUR, "width": 2 if words else 1, "dash": dash},
                    **_under(shown, "value", write, f"<extra>{label}{words}</extra>"),
                }
            )  # fmt: skip
    return traces


def _spans(
    traces: Sequence[_Trace], now: float, *, log_x: bool, log_y: bool
) -> tuple[_Span, _Span]:
    """Return what both axes span: all that is drawn and the current setting, with room."""
    shown = [trace for trace in traces if "yaxis" not in trace]
    x = [place for trace in shown for place in _places(trace["x"], log_x)]
    y = [place for trace in shown for place in _places(trace["y"], log_y)]
    ends = []
    for places in (x, y):
        known = [place for place in places if math.isfinite(place)] or [0.0, 1.0]
        ends.append((min(known), max(known)))
    (left, right), (low, high) = ends
    left -= 0.02 * ((right - left) or 1.0)
    (at,) = _places([now], log_x)
    if math.isfinite(at):
        # the current setting stays in sight, also where nothing was drawn there
        left, right = min(left, at), max(right, at)
    room = 0.05 * ((high - low) or 1.0)
    return (left, right + (right - left) * _NAMES / (1 - _NAMES)), (low - room, high + room)


def _axis(title: str, span: _Span, *, log: bool) -> dict[str, Any]:
    """Return an axis with its ends and its ticks."""
    return log_axis(title, *span) if log else {"title": title, "type": "linear", "range": [*span]}


def _ends(
    named: Sequence[tuple[Panel, pd.DataFrame, str]],
    now: float,
    write: Write,
    *,
    log_x: bool,
    log_y: bool,
) -> list[tuple[str, str, str, float]]:
    """Return key, name with its value at the current setting, colour and end of each line.

    Those with a colour come first. Where lines meet, names stand in the order that they have now.
    """
    found = []
    (at,) = _places([now], log_x)
    for panel, part, column in reversed(named):
        heights, xs = part[column].to_numpy(float), _places(part["x"], log_x)
        (end,) = _places([heights[-1]], log_y)
        if math.isfinite(end):
            inside = math.isfinite(at) and xs[0] <= at <= xs[-1]
            found.append((panel, end, float(np.interp(at, xs, heights)) if inside else -math.inf))
    span = max((abs(end) for _, end, _ in found), default=1.0)
    ranks = sorted(range(len(found)), key=lambda place: -found[place][2])
    return [
        (
            panel.key,
            f"{panel.label} {write(height)}" if math.isfinite(height) else panel.label,
            panel.colour,
            round(end, 2) - 1e-6 * span * ranks.index(place),
        )
        for place, (panel, end, height) in enumerate(found)
    ]


def _legend_height(traces: Sequence[_Trace]) -> int:
    """Return pixels of the legend below a plot as narrow as names are shown beside."""
    rows, across = 1, 0
    for trace in traces:
        if trace.get("showlegend", True) and trace.get("name"):
            wide = 50 + 7 * len(trace["name"])
            rows, across = (rows, across + wide) if across + wide <= NARROWEST else (rows + 1, wide)
    return _ENTRY * rows


def _places(values: Iterable[float | None], log: bool) -> list[float]:
    """Return where values lie on an axis; NaN where they do not."""
    known = [math.nan if value is None else float(value) for value in values]
    return [math.log10(v) if v > 0 else math.nan for v in known] if log else known
