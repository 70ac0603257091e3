"""Charts of one metric along one axis: bands, single releases, frontier, prediction, theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import numeral, percent
from dpviz.report.figures.axes import LINE, add_names, frame, log_axis
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

FEW = 8  # With more lines, only coloured lines have a band and a legend entry.
HEIGHT = 510  # A chart with space for names is this many pixels high.
_PLOT = HEIGHT - 129  # The plot inside the chart is this many pixels high.
_NAMES = 0.24  # Names beside the lines take this share of the plot width.
_PREDICTED = "predicted analytically"
_BOUND = "Davis-Kahan bound"
_BEFORE = "as released, before post-processing"
_BAND = 0.13  # The band of the line under the pointer has this opacity.
_GREY_DASHES = ("dash", "longdashdot")

Write = Callable[[float], str]
"""Function that formats a value of a measure."""


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
        Variants in legend order; coloured variants lie on top.
    x_title, y_title : str
    log_x, log_y : bool
    now : float
        The current setting on the x axis.
    shares : bool
        Whether to write the metric in per cent.
    limits : DataFrame, optional
        Table with `dpviz.report.tables.curves.LINE_COLUMNS`, for a random subspace and exact PCA.
    predicted : DataFrame, optional
        Table with `dpviz.report.tables.comparison.PREDICTION_COLUMNS`: dotted lines, dashed if the
        claim fails.
    best : DataFrame, optional
        The frontier as rows of ``bands``, drawn as ringed points.
    marks : DataFrame, optional
        Table with columns mechanism, component, epsilon: a component is found from this epsilon on.
    draws : DataFrame, optional
        Table with `dpviz.report.tables.curves.DRAW_COLUMNS`, drawn as thin lines.
    bound : DataFrame, optional
        Table with `dpviz.report.tables.curves.BOUND_COLUMNS`: the Davis-Kahan bound.
    scalings : DataFrame, optional
        Table with `dpviz.report.tables.curves.LINE_COLUMNS`: orders of growth, constant unknown.
    other : DataFrame, optional
        Bands of a second table, drawn with dashes and dots, open markers and no range.
    other_name : str
    before : DataFrame, optional
        Bands of the same releases without post-processing: thin lines with crosses, no range.
    beyond : float
        Value of x from which on means are dashed, because the people are not in the table. Means
        are also dashed if the claim fails, by the verdict of each point.
    pointed : bool
        Whether a script fills only the range of the line under the pointer. The page shows
        `line_key` below, for pages on which names beside lines have no space.
    """
    write = percent if shares else partial(numeral, digits=3)  # This formats hover texts.
    traces: list[_Trace] = []
    kinds: dict[str, _Trace] = {}  # The legend needs the style of each kind of line.
    names: list[tuple[Panel, pd.DataFrame, str]] = []
    # Draw coloured lines last, so that they lie above grey lines.
    for number, panel in sorted(enumerate(panels), key=lambda one: (one[1].highlighted, -one[0])):
        whole = panel.highlighted or len(panels) <= FEW
        part, prediction = _of(bands, panel), _of(predicted, panel)
        if part is not None:
            band = _band(part, panel, write, beyond, whole=whole)
            traces += [{"legendrank": number} | trace for trace in band]
            names.append((panel, part, "mean"))
        if (lines := _of(draws, panel)) is not None:
            kinds["single simulated releases"] = {"color": TRUE_COLOUR, "width": 0.7}
            traces.append(_draws(lines, panel))
        if prediction is not None:
            kinds[_PREDICTED] = {"color": TRUE_COLOUR, "width": 1.5, "dash": "dot"}
            band = _prediction(prediction, panel, write, alone=part is None, whole=whole)
            traces += [{"legendrank": number} | trace for trace in band]
            if part is None:
                names.append((panel, prediction, "value"))
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
                "name": "best mechanism whose claim holds",
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
    # Lines end here and names are drawn beyond. Rounding keeps the last tick.
    right = round(x[1] - _NAMES * (x[1] - x[0]), 9)
    layout: dict[str, Any] = {
        "xaxis": {"automargin": True, **_axis(x_title, (x[0], right), log=log_x), "range": [*x]},
        "yaxis": {"automargin": True, **_axis(y_title, y, log=log_y)},
        # The marks at the bottom have their own axis, so that they remain there at any scale.
        "yaxis2": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        **standing(now, log=log_x),
        **frame(HEIGHT, top=30, right=16),
        "legend": BELOW | {"maxheight": 1},  # This avoids a scroll bar in a phone's legend.
        "hovermode": "closest",
        "clickmode": "event+select",
        "dragmode": "pan",
        # pages/ui/highlight.js reads this entry to fade other lines and to fill one line's band.
        "meta": {"highlight": "group", "band": _BAND},
    }
    if shares and not log_y:
        layout["yaxis"] |= SHARES
    unlisted = {"showlegend": False} if pointed else {}  # The page draws the legend itself.
    listed = [trace | (unlisted if "legendgroup" in trace else {}) for trace in traces]
    figure = go.Figure([{"type": "scatter", **trace} for trace in listed], layout)
    full = named_in_full(panels)
    ends = _ends(names, now, write, log_x=log_x, log_y=log_y, full=full)
    add_names(figure, ends, y, _PLOT, left=right, rows=1 + full, leads=True)
    return _with_opacity(figure, 0.0) if pointed else figure


def named_in_full(panels: Sequence[Panel]) -> bool:
    """Return whether every name beside a line has space for the verdict on its claim."""
    return 2 * LINE * len(panels) <= _PLOT


def line_key(panels: Sequence[Panel]) -> str:
    """Return the legend for narrow pages, and for pages whose names do not state verdicts."""
    style = "display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: 15px"
    entries = [
        f'<span><b style="color: {panel.colour}; filter: brightness(var(--dpviz-lift, 1))">━</b> '
        f"{escape(_name(panel))}</span>"
        for panel in panels
        if panel.highlighted or len(panels) <= FEW
    ]
    narrow = "@media (min-width: 991px) {.dpviz-key {display: none !important}}"
    hidden = f"<style>{narrow}</style>" if named_in_full(panels) else ""
    return f'{hidden}<div class="dpviz-key" style="{style}">{"".join(entries)}</div>'


_Trace = dict[str, Any]
_Span = tuple[float, float]
"""Ends of an axis, as logarithms if the axis is logarithmic."""


def with_ranges(figure: go.Figure) -> go.Figure:
    """Return a copy in which every range is filled, because a file has no script for that."""
    return _with_opacity(go.Figure(figure), _BAND)


def _with_opacity(figure: go.Figure, opacity: float) -> go.Figure:
    for trace in figure.select_traces({"fill": "toself"}):
        colour, _, _ = trace.fillcolor.rpartition(",")
        trace.fillcolor = f"{colour}, {opacity})"
    return figure


def _of(table: pd.DataFrame | None, panel: Panel) -> pd.DataFrame | None:
    """Return the rows of one variant, or None if there are none."""
    if table is None or table.empty:
        return None
    part = table[table["mechanism"] == panel.key]
    return None if part.empty else part


def _under(line: pd.DataFrame, column: str, write: Write, words: str) -> _Trace:
    """Return the hover text of each point of a line."""
    pairs = zip(line["x"], line[column], strict=True)
    return {
        "hovertext": [f"{numeral(x, 4)}: {write(y)}" for x, y in pairs],
        "hovertemplate": f"%{{hovertext}}{words}",
    }


def _band(
    part: pd.DataFrame, panel: Panel, write: Write, beyond: float, *, whole: bool
) -> list[_Trace]:
    """Return range and mean of one variant.

    The mean is dashed from ``beyond`` on, and in segments with a failing claim at either end. A
    point with a failing claim has an open marker, and its hover text says so.
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
    words = f" (%{{customdata[1]}} to %{{customdata[2]}}, %{{customdata[3]}} simulated releases), %{{customdata[4]}}<extra>{panel.label}</extra>"  # noqa: E501
    for number, (line, dash) in enumerate(stretches(part, "solid", beyond=beyond)):
        texts = line[["mechanism", "low", "high", "draws"]].assign(
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
                "customdata": texts.to_numpy(), **_under(line, "mean", write, words),
            }
        )  # fmt: skip
    return traces


def _name(panel: Panel) -> str:
    return f"{panel.label} · {panel.status}".removesuffix(" · ")


def _prediction(
    part: pd.DataFrame, panel: Panel, write: Write, *, alone: bool, whole: bool
) -> list[_Trace]:
    """Return the predicted curve of one variant: dotted, and dashed if the claim fails.

    Beside a simulated curve, the predicted curve has no hover text, so that it blocks no click on
    points.
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
    """Return a line beside the mean: a bound, another table's mean or the mean as released."""
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
    """Return one variant's single releases as one trace with breaks between trials."""
    # Use one Plotly trace with gaps, because many traces are slow to render.
    parts = [line for _, line in lines.groupby("trial")]
    return {
        "x": [x for line in parts for x in (*line["x"], None)],
        "y": [y for line in parts for y in (*line["value"], None)],
        "mode": "lines", "legendgroup": panel.key, "showlegend": False, "hoverinfo": "skip",
        "line": {"color": faded(panel.colour, 0.45), "width": 0.7}, "name": f"{panel.label}, draws",
    }  # fmt: skip


def _marks(marks: pd.DataFrame, panels: Sequence[Panel]) -> list[_Trace]:
    """Return triangles on the axis at the epsilons from which components are found."""
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
                "hovertemplate": "component %{customdata[0]} is found from epsilon %{hovertext} up"
                f"<extra>{panel.label}</extra>",
            }
        )  # fmt: skip
    if traces:
        traces.append(
            {
                "x": [None], "y": [None], "mode": "markers",
                "name": "component is found from here upward",
                "marker": {"symbol": "triangle-up", "size": 10, "color": TRUE_COLOUR},
                "hoverinfo": "skip",
            }
        )  # fmt: skip
    return traces


def _references(table: pd.DataFrame, words: str, write: Write, *, log_y: bool) -> list[_Trace]:
    """Return grey reference lines, named in the legend."""
    traces: list[_Trace] = []
    for number, (label, line) in enumerate(table.groupby("label", sort=False)):
        visible = line[line["value"] > 0] if log_y else line
        if not visible.empty:
            dash = "dashdot" if words else _GREY_DASHES[number % 2]
            traces.append(
                {
                    "x": visible["x"], "y": visible["value"], "mode": "lines",
                    "name": f"{label}{words}",
                    "line": {"color": TRUE_COLOUR, "width": 2 if words else 1, "dash": dash},
                    **_under(visible, "value", write, f"<extra>{label}{words}</extra>"),
                }
            )  # fmt: skip
    return traces


def _spans(
    traces: Sequence[_Trace], now: float, *, log_x: bool, log_y: bool
) -> tuple[_Span, _Span]:
    """Return the ranges of both axes: all lines and the current setting, with a margin."""
    curves = [trace for trace in traces if "yaxis" not in trace]
    x = [place for trace in curves for place in _places(trace["x"], log_x)]
    y = [place for trace in curves for place in _places(trace["y"], log_y)]
    ends = []
    for places in (x, y):
        numbers = [place for place in places if math.isfinite(place)] or [0.0, 1.0]
        ends.append((min(numbers), max(numbers)))
    (start, end), (low, high) = ends
    start -= 0.02 * ((end - start) or 1.0)
    (at,) = _places([now], log_x)
    if math.isfinite(at):
        # Extend the axis to the current setting, even if no line has a point there.
        start, end = min(start, at), max(end, at)
    room = 0.05 * ((high - low) or 1.0)
    return (start, end + (end - start) * _NAMES / (1 - _NAMES)), (low - room, high + room)


def _axis(title: str, span: _Span, *, log: bool) -> dict[str, Any]:
    """Return an axis with its ends and its ticks."""
    return log_axis(title, *span) if log else {"title": title, "type": "linear", "range": [*span]}


def _ends(
    lines: Sequence[tuple[Panel, pd.DataFrame, str]],
    now: float,
    write: Write,
    *,
    log_x: bool,
    log_y: bool,
    full: bool,
) -> list[tuple[str, str, str, float]]:
    """Return key, name with its value at the current setting, colour and end of each line.

    Coloured lines come first. Where lines meet, names have the order of the current setting. A
    complete name has the verdict in a separate line.
    """
    ends = []
    (at,) = _places([now], log_x)
    for panel, part, column in reversed(lines):
        heights, xs = part[column].to_numpy(float), _places(part["x"], log_x)
        (end,) = _places([heights[-1]], log_y)
        if math.isfinite(end):
            inside = math.isfinite(at) and xs[0] <= at <= xs[-1]
            ends.append((panel, end, float(np.interp(at, xs, heights)) if inside else -math.inf))
    span = max((abs(end) for _, end, _ in ends), default=1.0)
    ranks = sorted(range(len(ends)), key=lambda place: -ends[place][2])
    return [
        (
            panel.key,
            f"{panel.label} {write(height) if math.isfinite(height) else ''}".strip()
            + f"<br>{panel.status}" * full,
            panel.colour,
            round(end, 2) - 1e-6 * span * ranks.index(place),
        )
        for place, (panel, end, height) in enumerate(ends)
    ]


def _places(values: Iterable[float | None], log: bool) -> list[float]:
    """Return the positions of values on an axis, or NaN for values without a position."""
    numbers = [math.nan if value is None else float(value) for value in values]
    return [math.log10(v) if v > 0 else math.nan for v in numbers] if log else numbers
