"""One metric along one axis: bands, single draws, frontier, prediction, theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import decades, numeral, percent, power_text
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
)

SIZE = 12
_LETTER, _LINE = 5.8, 16  # pixels of a letter on average, and of a line of text
_CELL = 3  # pixels of a cell of the raster that knows what is where
_STEP = 5  # points of a line from one that is tried to the next
_GAP = 5  # pixels between a line and its name
_BESIDE = 9  # pixels round a name in which other lines are counted
_APART = 40.0  # pixels from which lines have parted
# What weighs against a place: a cell of a line below it, one of a name, a pixel of `_APART` missed.
_ON_A_LINE, _TAKEN, _MET = 50.0, 1e4, 8.0


@dataclass(frozen=True)
class Plot:
    """A plot as names see it.

    Attributes
    ----------
    x, y : tuple of float
        Ends of the axes, in logarithms where they are logarithmic.
    logs : tuple of bool
        Whether x and y are.
    wide, high : int
        Pixels of the plot at its least. On a wider page names take a smaller share and stay clear.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    logs: tuple[bool, bool]
    wide: int
    high: int

    def pixels(self, trace: go.Scatter) -> tuple[FloatArray, FloatArray]:
        """Return where the points of a trace lie, from the left and from the foot."""
        ends = ((self.x, self.wide, trace.x), (self.y, self.high, trace.y))
        found = []
        for ((low, top), size, values), log in zip(ends, self.logs, strict=True):
            at = np.asarray(values, dtype=float)
            if log:
                # what has no logarithm has no place, and is left out as a gap
                at = np.log10(at, where=at > 0, out=np.full_like(at, np.nan))
            found.append((at - low) / (top - low) * size)
        return found[0], found[1]

    def value(self, across: float, up: float) -> tuple[float, float]:
        """Return what a note's coordinates are at a pixel: logarithms on such an axis."""
        x, y = self.x, self.y
        return (
            x[0] + across / self.wide * (x[1] - x[0]),
            y[0] + up / self.high * (y[1] - y[0]),
        )


def add_names(figure: go.Figure, names: Sequence[tuple[str, str, str]], plot: Plot) -> None:
    """Write each name beside its line, where nothing lies below it and other lines are far.

    Parameters
    ----------
    figure : Figure
        Its traces are what names keep clear of. The lines of a variant are those of its legend
        group.
    names : sequence of (str, str, str)
        Key, name and colour of each, the first to be placed first.
    plot : Plot
    """
    drawn: dict[str, list[tuple[str, _Path]]] = {}
    everything = np.zeros((plot.wide // _CELL + 1, plot.high // _CELL + 1))
    for trace in figure.data:
        if "lines" in (trace.mode or "") and trace.fill is None and trace.yaxis in (None, "y"):
            path = _path(*plot.pixels(trace))
            drawn.setdefault(trace.legendgroup or "", []).append((trace.name, path))
            _mark(everything, path)
    notes = []
    for key, name, colour in names:
        own = np.zeros_like(everything)
        group = drawn.get(key, [])
        for _, path in group:
            _mark(own, path)
        # The mean is drawn first, in pieces of one name: a name is not beside its prediction.
        lines = [path for called, path in group if called == group[0][0]]
        # lines of other variants: of its own a name may lie near
        others = [
            np.stack(rest[0][1], axis=1) for other, rest in drawn.items() if rest and other != key
        ]
        found = _best(lines, name, colour, everything, own, others, plot)
        if found is None:
            continue
        (across, up), (right, above), box = found
        # a name that was placed is there for those that follow
        everything[box] += _TAKEN
        x, y = plot.value(across, up)
        notes.append(
            {
                "text": name, "name": f"name:{key}", "showarrow": False, "align": "left",
                "x": x, "xanchor": ("right", "center", "left")[right + 1],
                "xshift": _GAP * right, "y": y, "yanchor": "bottom" if above > 0 else "top",
                "yshift": _GAP * above / 2, "borderpad": 0, "captureevents": True,
                "font": {"color": colour, "size": SIZE},
            }
        )  # fmt: skip
    figure.update_layout(overwrite=True, annotations=[*figure.layout.annotations, *notes])


_Path = tuple[FloatArray, FloatArray]
_Box = tuple[slice, slice]


def _path(across: FloatArray, up: FloatArray) -> _Path:
    """Return points along a line, no farther apart than a cell; gaps are left out."""
    step = np.hypot(np.diff(across), np.diff(up)) / _CELL
    pieces = [
        np.linspace((across[i], up[i]), (across[i + 1], up[i + 1]), int(step[i]) + 2)
        for i in np.flatnonzero(np.isfinite(step))
    ]
    points = np.concatenate(pieces) if pieces else np.stack([across, up], axis=1)
    kept = points[np.isfinite(points).all(axis=1)]
    return kept[:, 0], kept[:, 1]


def _mark(raster: FloatArray, path: _Path) -> None:
    cells = [np.asarray(at // _CELL, dtype=int) for at in path]
    inside = np.logical_and.reduce(
        [(c >= 0) & (c < size) for c, size in zip(cells, raster.shape, strict=True)]
    )
    raster[cells[0][inside], cells[1][inside]] = 1.0


def _best(
    lines: list[_Path],
    name: str,
    colour: str,
    everything: FloatArray,
    own: FloatArray,
    others: Sequence[FloatArray],
    plot: Plot,
) -> tuple[tuple[float, float], tuple[int, int], _Box] | None:
    """Return the point, the side of it and the cells of the best place for a name, if any.

    One without a colour of its own has none where it would lie on a line.
    """
    wide, high = _LETTER * len(name), _LINE
    # summed once, so that each of many boxes takes four numbers
    below, beside = _sums(everything), _sums(np.minimum(everything, 1.0) - own)
    most = _ON_A_LINE * (1 if colour == GREY else _TAKEN)
    best, least = None, math.inf
    # one point in some, each with six sides: enough places, and few to weigh
    for path in lines:
        points = np.stack(path, axis=1)[::_STEP]
        for point, met in zip(points.tolist(), _met(points, others).tolist(), strict=True):
            for right, above in ((-1, 1), (1, -1), (1, 1), (-1, -1), (0, 1), (0, -1)):
                left = point[0] + right * _GAP + (right - 1) * wide / 2
                foot = point[1] + above * _GAP / 2 - (high if above < 0 else 0)
                if left < 0 or foot < 0 or left + wide > plot.wide or foot + high > plot.high:
                    continue
                box = _box(left, foot, wide, high, 0)
                under = _ON_A_LINE * _within(below, box)
                near = _within(beside, _box(left, foot, wide, high, _BESIDE))
                if under < most and under + near + _MET * met < least:
                    best, least = (point, (right, above), box), under + near + _MET * met
    return best


def _met(points: FloatArray, others: Sequence[FloatArray]) -> FloatArray:
    """Return how near other lines are to each point of a line, summed over them."""
    found = np.zeros(len(points))
    for other in others:
        far = np.hypot(*(points[:, None, :] - other[None, ::_STEP, :]).transpose(2, 0, 1))
        found += np.maximum(0.0, _APART - far.min(axis=1, initial=_APART))
    return found


def _box(left: float, foot: float, wide: float, high: float, ring: int) -> _Box:
    return (
        slice(max(0, int((left - ring) // _CELL)), int((left + wide + ring) // _CELL) + 1),
        slice(max(0, int((foot - ring) // _CELL)), int((foot + high + ring) // _CELL) + 1),
    )


def _sums(raster: FloatArray) -> FloatArray:
    """Return sums over all cells left of and below each: any box is four of them."""
    return np.pad(raster, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)


def _within(sums: FloatArray, box: _Box) -> float:
    (left, right), (foot, top) = (
        (min(s.start, size - 1), min(s.stop, size - 1))
        for s, size in zip(box, sums.shape, strict=True)
    )
    return float(sums[right, top] - sums[left, top] - sums[right, foot] + sums[left, foot])


FEW = 8  # of more lines only those with a colour have a range and a place in the legend
HEIGHT = 560  # pixels of the chart, where its names have room
_AROUND, _ENTRY = 100, 29  # pixels above and below a plot, and of a row of its legend
_LOWEST = 300  # pixels of a plot, however long its legend
NARROWEST = 850  # pixels of a plot whose lines have names
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
    # axes and names last: they keep clear of all that is drawn
    x, y = _spans(figure, now, log_x=log_x, log_y=log_y)
    _set_axis(figure.layout.xaxis, x_title, x, log=log_x)
    _set_axis(figure.layout.yaxis, y_title, y, log=log_y)
    if shares and not log_y:
        figure.update_yaxes(**SHARES)
    plot = Plot(x, y, (log_x, log_y), NARROWEST, _set_size(figure))
    add_names(figure, [(one.key, one.label, one.colour) for one in reversed(named)], plot)
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
    x = _span(figure, "x", log=log_x, room=(0.02, 0.01))
    at = _places([now], log_x)[0]
    if math.isfinite(at):
        # the current setting stays in sight, also where nothing was drawn there
        x = min(x[0], at), max(x[1], at)
    return x, _span(figure, "y", log=log_y, room=(0.05, 0.05))


def with_ranges(figure: go.Figure) -> go.Figure:
    """Return a copy with every range filled: a file has no script that fills one."""
    return _filled(go.Figure(figure), _BAND)


def _filled(figure: go.Figure, opacity: float) -> go.Figure:
    for trace in figure.select_traces({"fill": "toself"}):
        colour, _, _ = trace.fillcolor.rpartition(",")
        trace.fillcolor = f"{colour}, {opacity})"
    return figure


def _set_axis(axis: Any, title: str, span: _Span, *, log: bool) -> None:
    """Give an axis its ends and its ticks."""
    axis.update(
        title=title, type="log" if log else "linear", exponentformat="power", automargin=True,
        range=[*span],
    )  # fmt: skip
    few = decades(*span, 8) if log else []
    if len(few) > 1:  # Plotly's own digits between decades are too small to read
        axis.update(tickvals=few, ticktext=[power_text(tick) for tick in few])


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
