"""One metric along one axis: bands, single draws, frontier, prediction, theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    scatter,
    standing,
    stretches,
    symbols,
    told,
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
    figure = go.Figure()
    write = percent if shares else partial(numeral, digits=3)  # the measure, under the pointer
    tables = _Tables(bands, predicted, draws, bound, other, before)
    named, kinds = _add_variants(figure, panels, tables, other_name, beyond, write)
    if marks is not None:
        _add_marks(figure, marks, panels)
    if best is not None and not best.empty:
        _add_best(figure, best)
    _add_kinds(figure, kinds)
    for lines_of, ending in ((limits, ""), (scalings, " (scaling only)")):
        if lines_of is not None:
            _add_lines(figure, lines_of, ending, write, log_y=log_y)
    figure.update_layout(overwrite=True, **standing(now, log=log_x))
    x, y = _spans(figure, now, log_x=log_x, log_y=log_y)
    figure.layout.xaxis.update(automargin=True, **_axis(x_title, x, log=log_x))
    figure.layout.yaxis.update(automargin=True, **_axis(y_title, y, log=log_y))
    if shares and not log_y:
        figure.update_yaxes(**SHARES)
    # right of the last point, in the share of the plot that `_spans` leaves
    last = x[1] - _NAMES * (x[1] - x[0])
    ends = [
        (one.key, f"{one.label} {write(at)}" if math.isfinite(at) else one.label, one.colour, end)
        for one, end, at in _ends(named, tables, now, log_x=log_x, log_y=log_y)
    ]
    add_names(figure, ends, y, _set_size(figure), left=last)
    return _filled(figure, 0.0) if pointed else figure


@dataclass(frozen=True)
class _Tables:
    """What is drawn of each variant, as `tradeoff_figure` takes it."""

    bands: pd.DataFrame
    predicted: pd.DataFrame | None
    draws: pd.DataFrame | None
    bound: pd.DataFrame | None
    other: pd.DataFrame | None
    before: pd.DataFrame | None


def _add_variants(
    figure: go.Figure,
    panels: Sequence[Panel],
    tables: _Tables,
    other_name: str,
    beyond: float,
    write: Write,
) -> tuple[list[Panel], _Kinds]:
    """Add every line of each variant; return who has a mean to be named, and the kinds of line."""
    kinds: _Kinds = {}
    named = []
    # what has a colour is drawn last, on top
    ranked = sorted(enumerate(panels), key=lambda one: (one[1].highlighted, -one[0]))
    for number, panel in ranked:
        look = _Look(panel, panel.highlighted or len(panels) <= FEW, number, write)
        part, predicted = _of(tables.bands, panel), _of(tables.predicted, panel)
        if part is not None:
            _add_band(figure, part, look, beyond)
        _add_draws(figure, _of(tables.draws, panel), look, kinds)
        if predicted is not None:
            _add_predicted(figure, predicted, look, kinds, alone=part is None)
        if part is not None or predicted is not None:
            named.append(panel)
        for table, column, dash, words in (
            (tables.bound, "value", "longdash", _BOUND),
            (tables.other, "mean", "dashdot", other_name),
            (tables.before, "mean", "solid", _BEFORE),
        ):
            _add_second(figure, _of(table, panel), column, look, kinds, dash, words)
    return named, kinds


def _add_kinds(figure: go.Figure, kinds: _Kinds) -> None:
    """Add an entry of the legend for each kind of line, without a line."""
    for words, style_of in kinds.items():
        figure.add_trace(
            scatter(x=[None], y=[None], mode="lines", name=words, line=style_of, hoverinfo="skip")
        )


_Span = tuple[float, float]
"""Ends of an axis, in logarithms where it is logarithmic."""

_Kinds = dict[str, dict[str, object]]
"""Styles of line that a legend explains, by their words; filled as they are drawn."""


def _of(table: pd.DataFrame | None, panel: Panel) -> pd.DataFrame | None:
    """Return the rows of one variant, or None where there are none."""
    if table is None or table.empty:
        return None
    part = table[table["mechanism"] == panel.key]
    return None if part.empty else part


def _add_second(
    figure: go.Figure,
    line: pd.DataFrame | None,
    column: str,
    look: _Look,
    kinds: _Kinds,
    dash: str,
    words: str,
) -> None:
    """Add a line beside the mean of one variant: its bound, the same on another table or before."""
    if line is None:
        return
    thin = words == _BEFORE
    width = 0.8 if thin else 1.5
    kinds[words] = {"color": TRUE_COLOUR, "width": width, "dash": dash}
    panel = look.panel
    figure.add_trace(
        scatter(
            x=line["x"], y=line[column], mode="lines+markers" if column == "mean" else "lines",
            marker={"symbol": "x-thin-open" if thin else f"{panel.marker}-open",
                    "size": 5 if thin else 7},
            name=panel.label, legendgroup=panel.key, showlegend=False,
            line={"color": panel.colour, "width": width, "dash": dash},
            hovertext=_points(line["x"], line[column], look.write),
            hovertemplate=f"%{{hovertext}}<extra>{panel.label}, {words}</extra>",
        )
    )  # fmt: skip


def _add_best(figure: go.Figure, best: pd.DataFrame) -> None:
    """Add a ring round each point of the frontier."""
    figure.add_trace(
        scatter(
            x=best["x"], y=best["mean"], mode="markers", name="best whose claim holds",
            marker={"symbol": "circle-open", "size": 15, "color": TRUE_COLOUR,
                    "line": {"width": 2}},
            hoverinfo="skip",
        )
    )  # fmt: skip


def _spans(figure: go.Figure, now: float, *, log_x: bool, log_y: bool) -> tuple[_Span, _Span]:
    """Return what both axes span: all that is drawn, and the current setting."""
    x = _span(figure, "x", log=log_x, room=(0.02, 0.0))
    at = _places([now], log_x)[0]
    if math.isfinite(at):
        # the current setting stays in sight, also where nothing was drawn there
        x = min(x[0], at), max(x[1], at)
    x = x[0], x[1] + (x[1] - x[0]) * _NAMES / (1 - _NAMES)
    return x, _span(figure, "y", log=log_y, room=(0.05, 0.05))


def with_ranges(figure: go.Figure) -> go.Figure:
    """Return a copy with every range filled: a file has no script that fills one."""
    return _filled(go.Figure(figure), _BAND)


def _filled(figure: go.Figure, opacity: float) -> go.Figure:
    for trace in figure.select_traces({"fill": "toself"}):
        colour, _, _ = trace.fillcolor.rpartition(",")
        trace.fillcolor = f"{colour}, {opacity})"
    return figure


def _axis(title: str, span: _Span, *, log: bool) -> dict[str, Any]:
    """Return an axis with its ends and its ticks."""
    return log_axis(title, *span) if log else {"title": title, "type": "linear", "range": [*span]}


def _ends(
    named: Sequence[Panel], tables: _Tables, now: float, *, log_x: bool, log_y: bool
) -> Iterator[tuple[Panel, float, float]]:
    """Yield where the line of each variant ends and its height at the current setting.

    Those with a colour come first. Where lines meet, names stand in the order that they have now.
    """
    found = []
    for panel in reversed(named):
        part, column = _of(tables.bands, panel), "mean"
        if part is None:
            part, column = _of(tables.predicted, panel), "value"
        if part is None:
            continue
        heights = part[column].to_numpy(float)
        (end,) = _places([heights[-1]], log_y)
        xs, at = _places(part["x"], log_x), _places([now], log_x)[0]
        inside = math.isfinite(at) and xs[0] <= at <= xs[-1]
        found.append((panel, end, float(np.interp(at, xs, heights)) if inside else math.nan))
    span = max((abs(end) for _, end, _ in found if math.isfinite(end)), default=1.0)
    ranks = {panel.key: rank for rank, (panel, _, _) in enumerate(sorted(found, key=_now))}
    for panel, end, at in found:
        if math.isfinite(end):
            yield panel, round(end, 2) - 1e-6 * span * ranks[panel.key], at


def _now(one: tuple[Panel, float, float]) -> float:
    """Return what sorts lines by their height at the current setting, the highest first."""
    return -one[2] if math.isfinite(one[2]) else math.inf


def _set_size(figure: go.Figure) -> int:
    """Give a figure room for its legend; return the plot's height."""
    legend = _legend_height(figure)
    plot = max(_LOWEST, HEIGHT - _AROUND - legend)
    figure.update_layout(
        overwrite=True,
        height=plot + _AROUND + legend,
        margin={"l": 10, "r": 16, "t": 30, "b": 10},
        legend=BELOW | {"maxheight": 1},  # on a phone all of it is seen, without a bar of its own
        hovermode="closest",
        clickmode="event+select",
        dragmode="pan",
        # what pages/ui/highlight.js goes by: the others fade, the range of one line is filled
        meta={"highlight": "group", "band": _BAND},
    )
    return plot


@dataclass(frozen=True)
class _Look:
    """How one line is drawn.

    Attributes
    ----------
    panel : Panel
    whole : bool
        Whether it has its range and a place in the legend.
    rank : int
        Place in the legend.
    write : callable
        How its numbers are written under the pointer.
    """

    panel: Panel
    whole: bool
    rank: int
    write: Write

    @property
    def name(self) -> str:
        return f"{self.panel.label} · {self.panel.status}".removesuffix(" · ")


def _points(xs: pd.Series, ys: pd.Series, write: Write) -> list[str]:
    """Return what stands under the pointer at each point of a line."""
    return [f"{numeral(x, 4)}: {write(y)}" for x, y in zip(xs, ys, strict=True)]


def _add_band(figure: go.Figure, part: pd.DataFrame, look: _Look, beyond: float) -> None:
    """Add range and mean of one variant.

    The mean is dashed from ``beyond`` on, and wherever the claim fails at either end of a line;
    a point where it fails is an open marker, and says so.
    """
    panel = look.panel
    if look.whole:
        figure.add_trace(
            scatter(
                x=[*part["x"], *part["x"][::-1]], y=[*part["high"], *part["low"][::-1]],
                fill="toself", fillcolor=faded(look.panel.colour, _BAND), line={"width": 0},
                hoverinfo="skip", showlegend=False, legendgroup=panel.key, mode="lines",
            )
        )  # fmt: skip
    for number, (line, dash) in enumerate(stretches(part, "solid", beyond=beyond)):
        said = line[["mechanism", "low", "high", "draws"]].assign(
            low=line["low"].map(look.write),
            high=line["high"].map(look.write),
            words=verdict_words(line["verdict"]),
        )
        figure.add_trace(
            scatter(
                x=line["x"], y=line["mean"], name=look.name, legendrank=look.rank,
                legendgroup=panel.key, mode="lines+markers",
                showlegend=number == 0 and look.whole,
                line={"color": look.panel.colour, "width": look.panel.width, "dash": dash},
                marker={"symbol": symbols(line["verdict"], panel.marker),
                        "size": 7 if panel.highlighted else 4},
                selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
                customdata=said.to_numpy(),
                hovertext=_points(line["x"], line["mean"], look.write),
                hovertemplate="%{hovertext} (%{customdata[1]} to %{customdata[2]}, "
                f"%{{customdata[3]}} draws), %{{customdata[4]}}<extra>{panel.label}</extra>",
            )
        )  # fmt: skip


def _add_predicted(
    figure: go.Figure, part: pd.DataFrame, look: _Look, kinds: _Kinds, *, alone: bool
) -> None:
    """Add the prediction of one variant: dotted, and dashed where its claim fails.

    Beside its drawn curve it says nothing under the pointer: it would keep it from the points that
    are clicked.
    """
    kinds[_PREDICTED] = {"color": TRUE_COLOUR, "width": 1.5, "dash": "dot"}
    words = f"%{{hovertext}}, %{{text}}<extra>{look.panel.label}, {_PREDICTED}</extra>"
    for number, (line, dash) in enumerate(stretches(part, "dot")):
        under = {
            "text": verdict_words(line["verdict"]), "hovertemplate": words,
            "hovertext": _points(line["x"], line["value"], look.write),
        }  # fmt: skip
        said = under if alone else {"hoverinfo": "skip"}
        figure.add_trace(
            scatter(
                x=line["x"], y=line["value"], mode="lines", legendrank=look.rank,
                name=look.name if alone else look.panel.label, legendgroup=look.panel.key,
                showlegend=alone and look.whole and number == 0,
                line={"color": look.panel.colour, "width": min(look.panel.width, 1.5),
                      "dash": dash},
                **said,
            )
        )  # fmt: skip


def _span(figure: go.Figure, of: str, *, log: bool, room: tuple[float, float]) -> _Span:
    """Return what an axis spans: all that is drawn on it, with shares of that as room."""
    values = [
        place
        for trace in figure.data
        if trace.yaxis in (None, "y") and trace[of] is not None
        for place in _places(trace[of], log)
        if math.isfinite(place)
    ]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    wide = (high - low) or 1.0
    return low - room[0] * wide, high + room[1] * wide


def _legend_height(figure: go.Figure) -> int:
    """Return pixels of the legend below a plot as narrow as names are shown beside."""
    rows, across = 1, 0
    for trace in figure.data:
        if trace.showlegend is not False and trace.name:
            wide = 50 + 7 * len(trace.name)
            rows, across = (rows, across + wide) if across + wide <= NARROWEST else (rows + 1, wide)
    return _ENTRY * rows


def _places(values: Iterable[float | None], log: bool) -> list[float]:
    """Return where values lie on an axis; NaN where they do not."""
    known = [math.nan if value is None else float(value) for value in values]
    return [math.log10(v) if v > 0 else math.nan for v in known] if log else known


def _add_draws(figure: go.Figure, lines: pd.DataFrame | None, look: _Look, kinds: _Kinds) -> None:
    """Add the single draws of one variant as one trace, with gaps between trials."""
    if lines is None:
        return
    kinds["single draws"] = {"color": TRUE_COLOUR, "width": 0.7}
    x: list[float | None] = []
    y: list[float | None] = []
    # one trace for all draws: many traces are slow to paint, and a gap parts them as well
    for _, line in lines.groupby("trial"):
        x += [*line["x"], None]
        y += [*line["value"], None]
    figure.add_trace(
        scatter(
            x=x, y=y, mode="lines", legendgroup=look.panel.key, showlegend=False,
            hoverinfo="skip", line={"color": faded(look.panel.colour, 0.45), "width": 0.7},
            name=f"{look.panel.label}, draws",
        )
    )  # fmt: skip


def _add_marks(figure: go.Figure, marks: pd.DataFrame, panels: Sequence[Panel]) -> None:
    """Add a row of triangles on the axis: from where on each component is found."""
    for panel in panels:
        shown = marks[marks["mechanism"] == panel.key]
        if shown.empty:
            continue
        colour = panel.colour
        figure.add_trace(
            scatter(
                # On an axis of its own, so that marks stay at the foot at any scale.
                x=shown["epsilon"], y=[0.0] * len(shown), yaxis="y2", mode="markers",
                legendgroup=panel.key, name=f"{panel.label}, components", showlegend=False,
                customdata=shown[["component"]].to_numpy(), cliponaxis=False,
                marker={"symbol": "triangle-up", "size": 10, "color": colour},
                hovertext=told("{}", (shown["epsilon"], 3)),
                hovertemplate="component %{customdata[0]} found from epsilon %{hovertext} on<extra>"
                + panel.label + "</extra>",
            )
        )  # fmt: skip
    if not marks.empty:
        figure.add_trace(
            scatter(
                x=[None], y=[None], mode="markers", name="component found from here",
                marker={"symbol": "triangle-up", "size": 10, "color": TRUE_COLOUR},
                hoverinfo="skip",
            )
        )  # fmt: skip
    figure.update_layout(
        overwrite=True,
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )


def _add_lines(
    figure: go.Figure, table: pd.DataFrame, words: str, write: Write, *, log_y: bool
) -> None:
    """Add grey reference lines, named in the legend."""
    for number, (label, line) in enumerate(table.groupby("label", sort=False)):
        shown = line[line["value"] > 0] if log_y else line
        if shown.empty:
            continue
        figure.add_trace(
            scatter(
                x=shown["x"], y=shown["value"], mode="lines", name=f"{label}{words}",
                line={"color": TRUE_COLOUR, "width": 1 if not words else 2,
                      "dash": _GREY_DASHES[number % 2] if not words else "dashdot"},
                hovertext=_points(shown["x"], shown["value"], write),
                hovertemplate=f"%{{hovertext}}<extra>{label}{words}</extra>",
            )
        )  # fmt: skip
