"""Figures as a notebook shows them: Plotly's data, and beside it an image for static pages."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio

from dpviz.core.number_text import decades, numeral, per_cent, round_ticks
from dpviz.report.figures.drawing import SCREEN, Drawing
from dpviz.report.figures.theme import TRUE_COLOUR

PLOTLY, IMAGE = "application/vnd.plotly.v1+json", "image/svg+xml"
_DASHES = {
    "dot": (2.0, 3.0),
    "dash": (7.0, 4.0),
    "longdash": (10.0, 4.0),
    "dashdot": (7.0, 3.0, 2.0, 3.0),
}
_MARKS = {"square": "square", "circle-open": "ring", "square-open": "frame"}
_LEFT, _RIGHT, _TOP, _BOTTOM, _LINE = 70.0, 14.0, 34.0, 46.0, 18.0
_NEAREST = 44.0  # pixels between ticks
_Box = Mapping[str, tuple[float, float]]  # pixels of both ends of the plots, across and up


class Shown(go.Figure):  # type: ignore[misc]
    """A figure that carries an image of its own, drawn without a script, a browser or a host."""

    @classmethod
    def of(cls, figure: go.Figure) -> Shown:
        """Return the same figure as one of these: to make it anew checks all of it once more."""
        figure.__class__ = cls
        assert isinstance(figure, cls)
        return figure

    def _ipython_display_(self) -> None:
        """Show it as plotly does, unless it shows its data: then what is below is shown."""
        if "plotly_mimetype" in str(pio.renderers.default):
            raise NotImplementedError
        super()._ipython_display_()

    def _repr_mimebundle_(self, *given: Any, **more: Any) -> dict[str, Any]:
        """Return Plotly's data and the image; no script, which static pages leave out."""
        bundle = dict(super()._repr_mimebundle_(*given, **more) or {})
        # a front end that knows Plotly's data needs no script; a page without one shows the image
        if PLOTLY in bundle:
            bundle.pop("text/html", None)
        return bundle | {IMAGE: drawn(self).svg()}


def _plain(words: object) -> str:
    """Return words of Plotly without their marks."""
    return unescape(re.sub(r"<[^>]*>", " ", str(words or ""))).strip()


class _Axis:
    """Where values lie: pixels from an end of the picture."""

    def __init__(self, said: Mapping[str, Any], start: float, end: float) -> None:
        self.said, self.start, self.end = said, start, end
        self.log = said.get("type") == "log"
        self.names: list[Any] = list(said.get("categoryarray") or ())
        self.low, self.high = math.inf, -math.inf

    def see(self, values: Iterable[Any]) -> None:
        """Take values into account where no range is said."""
        for value in values:
            if isinstance(value, str) and value not in self.names:
                self.names.append(value)
            found = self.number(value)
            if found is not None:
                self.low, self.high = min(self.low, found), max(self.high, found)

    def number(self, value: Any) -> float | None:
        """Return a value as the axis counts; None where it has no place."""
        if isinstance(value, str):
            return float(self.names.index(value)) if value in self.names else None
        if value is None or not math.isfinite(value) or (self.log and value <= 0):
            return None
        return math.log10(value) if self.log else float(value)

    def settle(self) -> None:
        """Fix both ends."""
        said = self.said.get("range")
        if said is not None and all(isinstance(end, int | float) for end in said):
            self.low, self.high = map(float, said)
        elif self.names:
            self.low, self.high = -0.5, len(self.names) - 0.5
        # nothing was seen on it
        elif self.low > self.high:
            self.low, self.high = 0.0, 1.0
        else:
            # one value alone stands in the middle
            room = 0.04 * (self.high - self.low) or 0.5
            self.low, self.high = self.low - room, self.high + room
        if self.said.get("autorange") == "reversed":
            self.low, self.high = self.high, self.low

    def at(self, value: Any) -> float | None:
        """Return the pixel of a value; None where it lies outside."""
        found = self.number(value)
        share = None if found is None else (found - self.low) / (self.high - self.low)
        # a little beyond is drawn on the rim: an end may be rounded
        if share is None or not -0.02 <= share <= 1.02:
            return None
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Return pixel and words of each tick, as many as there is room for."""
        low, high = sorted((self.low, self.high))
        values: Sequence[Any] = self.names
        if self.said.get("tickvals") is not None:
            values = _listed(self.said["tickvals"])
        elif not self.names:
            found = decades(low, high, 6) if self.log else []
            # less than two decades in sight have round steps between them in their place
            values = found if len(found) > 1 else round_ticks(low, high)
            if self.log and len(found) < 2:
                values = [10**one for one in values]
        texts = self.said.get("ticktext")
        shares = "%" in str(self.said.get("tickformat") or "")
        words = [
            value if isinstance(value, str) else
            per_cent(numeral(100 * value, 4)) if shares else numeral(value, 4)
            for value in values
        ] if texts is None else [_plain(text) for text in _listed(texts)]  # fmt: skip
        placed = [
            (at, word) for value, word in zip(values, words, strict=False)
            if (at := self.at(value)) is not None
        ]  # fmt: skip
        step = max(1, math.ceil(len(placed) * _NEAREST / (abs(self.end - self.start) + 1)))
        return placed if self.names else placed[::step]


def drawn(figure: go.Figure) -> Drawing:
    """Return a figure of scatter and bar traces as a still picture.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    """
    said = figure.to_plotly_json()
    layout = said.get("layout", {})
    traces = [one for one in said["data"] if one.get("visible", True) is True]
    title = _plain((layout.get("title") or {}).get("text"))
    picture = Drawing(SCREEN, title or "A figure of dpviz")
    top = _TOP + _LINE * bool(title)
    below = float(layout.get("height") or 420) * 0.9
    box = {"x": (_left_of(layout, traces), SCREEN.width - _RIGHT), "y": (below, top)}
    axes = _axes(layout, traces, box)
    for name, axis in axes.items():
        _ruled(picture, axes, name, axis)
    for shape in layout.get("shapes") or ():
        _shaped(picture, axes, shape, box)
    for trace in traces:
        x, y = _of(axes, trace)
        _traced(picture, trace, x, y)
    for note in layout.get("annotations") or ():
        _noted(picture, axes, note, box)
    if title:
        picture.text(_LEFT, _LINE, title)
    line = _keyed(picture, layout, traces, below + _BOTTOM)
    picture.height = line + _LINE / 2
    return picture


def _left_of(layout: Mapping[str, Any], traces: Sequence[Mapping[str, Any]]) -> float:
    """Return where the plots start: right of the longest name on the upright axes."""
    sides = [one.get("y") for one in traces]
    sides += [axis.get("ticktext") for name, axis in layout.items() if name.startswith("yaxis")]
    names = [len(_plain(one)) for side in sides for one in _listed(side) if isinstance(one, str)]
    return min(200.0, max(_LEFT, 12 + 6.3 * max(names, default=0)))


def _noted(picture: Drawing, axes: Mapping[str, _Axis], note: Mapping[str, Any], box: _Box) -> None:
    """Write an annotation, unless it would leave the picture: then the key says it."""
    x, y = (_ref(axes, a, str(note.get(f"{a}ref", a)), note.get(a), box) for a in "xy")
    if x is None or y is None:
        return
    anchor = {"left": "start", "right": "end"}.get(str(note.get("xanchor")), "middle")
    words = _plain(note.get("text"))
    if anchor != "start" or x + 6 * len(words) < SCREEN.width:
        picture.text(x, y - 3, words, anchor)


def _keyed(
    picture: Drawing, layout: Mapping[str, Any], traces: Sequence[Mapping[str, Any]], line: float
) -> float:
    """Draw the key from a line on; return the last line."""
    named = [
        one for one in traces if one.get("name") and one.get("showlegend", True)
    ] if layout.get("showlegend", len(traces) > 1) else []  # fmt: skip
    # a name that comes again has one place, as it looks at first
    keys = {str(one["name"]): one for one in reversed(named)}
    left = _LEFT
    for name, trace in reversed(keys.items()):
        wide = 26.0 + 7.0 * len(_plain(name))
        if left + wide > SCREEN.width and left > _LEFT:
            left, line = _LEFT, line + _LINE
        picture.stroke([(left, line - 4), (left + 16, line - 4)], _colour(trace), 2.5, _dash(trace))
        picture.text(left + 21, line, _plain(name))
        left += wide
    return line


def _axes(
    layout: Mapping[str, Any], traces: Sequence[Mapping[str, Any]], box: _Box
) -> dict[str, _Axis]:
    """Return the axes that traces use, each with its ends fixed."""
    axes: dict[str, _Axis] = {}
    for trace in traces:
        for kind in "xy":
            name = str(trace.get(f"{kind}axis") or kind)
            told = layout.get(f"{kind}axis{name[1:]}") or {}
            first, last = told.get("domain") or (0.0, 1.0)
            start, end = box[kind]
            ends = (start + first * (end - start), start + last * (end - start))
            _see(axes.setdefault(name, _Axis(told, *ends)), trace, kind)
    _match(axes)
    return axes


def _see(axis: _Axis, trace: Mapping[str, Any], kind: str) -> None:
    """Let an axis reach over what a trace has along it: values, errors, a bar's foot."""
    values = _listed(trace.get(kind))
    axis.see(values)
    error = trace.get(f"error_{kind}") or {}
    more = zip(values, _listed(error.get("array")), strict=False)
    axis.see(value + up for value, up in more if not isinstance(value, str))
    if trace["type"] == "bar" and (trace.get("orientation") == "h") == (kind == "x"):
        axis.see([0.0])


def _match(axes: Mapping[str, _Axis]) -> None:
    """Fix the ends of all axes; one that matches another has the other's."""
    pairs = [(axis, axes.get(str(axis.said.get("matches")))) for axis in axes.values()]
    for axis, other in pairs:
        if other is not None:
            other.low, other.high = min(axis.low, other.low), max(axis.high, other.high)
    for axis, other in pairs:
        if other is None or other is axis:
            axis.settle()
    for axis, other in pairs:
        if other is not None and other is not axis:
            axis.said = {"range": other.said.get("range"), **axis.said}
            axis.log = axis.log or other.log
            axis.low, axis.high = other.low, other.high


def _listed(values: Any) -> list[Any]:
    """Return values as they are; Plotly packs numbers as bytes."""
    if isinstance(values, Mapping):
        packed = np.frombuffer(base64.b64decode(values["bdata"]), np.dtype(values["dtype"]))
        return list(packed.tolist())
    return [] if values is None else np.asarray(values, dtype=object).tolist()


def _of(axes: Mapping[str, _Axis], trace: Mapping[str, Any]) -> tuple[_Axis, _Axis]:
    return axes[str(trace.get("xaxis") or "x")], axes[str(trace.get("yaxis") or "y")]


def _ruled(picture: Drawing, axes: Mapping[str, _Axis], name: str, axis: _Axis) -> None:
    """Draw an axis, its ticks and its title."""
    if axis.said.get("visible") is False:
        return
    across = name[0] == "x"
    other = axes.get(str(axis.said.get("anchor") or ""), axes.get("y" if across else "x"))
    if other is None:
        return
    foot, far = other.start, other.end
    ends = (
        [(axis.start, foot), (axis.end, foot)] if across else [(foot, axis.start), (foot, axis.end)]
    )
    picture.stroke(ends, TRUE_COLOUR, 1.0)
    if axis.said.get("showticklabels", True):
        for at, words in axis.ticks():
            ruled = [(at, foot), (at, far)] if across else [(foot, at), (far, at)]
            picture.stroke(ruled, TRUE_COLOUR, 0.5, (), 0.3)
            if across:
                picture.text(at, foot + 14, words, "middle")
            else:
                picture.text(foot - 5, at + 4, words, "end")
    title = _plain((axis.said.get("title") or {}).get("text"))
    if title and across:
        picture.text((axis.start + axis.end) / 2, foot + 29, title, "middle")
    elif title:
        picture.text(4, axis.end - 8, title)


def _ref(axes: Mapping[str, _Axis], kind: str, ref: str, value: Any, box: _Box) -> float | None:
    """Return the pixel of a place that is said in an axis, in its domain, or of the paper."""
    axis = axes.get(ref.partition(" ")[0])
    if ref == "paper" or "domain" in ref:
        ends = box[kind]
        if axis is not None:
            ends = (axis.start, axis.end)
        return None if value is None else ends[0] + float(value) * (ends[1] - ends[0])
    if axis is None or value is None:
        return None
    # an annotation on a logarithmic axis is said in powers, a shape in values: see _shaped
    return axis.at(10**value if axis.log and not isinstance(value, str) else value)


def _shaped(
    picture: Drawing, axes: Mapping[str, _Axis], shape: Mapping[str, Any], box: _Box
) -> None:
    """Draw a line; what is filled is left out."""
    if shape.get("type") != "line":
        return
    points = []
    for end in "01":
        place = []
        for kind in "xy":
            ref, value = str(shape.get(f"{kind}ref", kind)), shape.get(f"{kind}{end}")
            axis = axes.get(ref)
            place.append(axis.at(value) if axis is not None else _ref(axes, kind, ref, value, box))
        if place[0] is None or place[1] is None:
            return
        points.append((place[0], place[1]))
    line = shape.get("line") or {}
    dash = _DASHES.get(str(line.get("dash")), ())
    picture.stroke(
        points, str(line.get("color") or TRUE_COLOUR), float(line.get("width") or 1), dash
    )


def _colour(trace: Mapping[str, Any]) -> str:
    for part in ("line", "marker"):
        colour = (trace.get(part) or {}).get("color")
        if isinstance(colour, str) and not colour.startswith("rgba(0,0,0,0"):
            return colour
    return str(trace.get("fillcolor") or TRUE_COLOUR)


def _dash(trace: Mapping[str, Any]) -> tuple[float, ...]:
    return _DASHES.get(str((trace.get("line") or {}).get("dash")), ())


def _traced(picture: Drawing, trace: Mapping[str, Any], x: _Axis, y: _Axis) -> None:
    """Draw the values of one trace: bars, or whiskers, lines and marks in this order."""
    values = [_listed(trace.get(kind)) for kind in "xy"]
    if not values[0]:
        values[0] = list(range(len(values[1])))
    points = [(x.at(u), y.at(v)) for u, v in zip(*values, strict=False)]
    if trace["type"] == "bar":
        _bars(picture, trace, points, x, y)
        return
    for kind in "xy":
        _whiskers(picture, trace, kind, values["xy".index(kind)], points, x if kind == "x" else y)
    mode = str(trace.get("mode") or ("lines+markers" if len(points) < 20 else "lines"))
    if "lines" in mode:
        _lines(picture, trace, points)
    if "markers" in mode:
        _marks(picture, trace, points)
    if "text" in mode and not isinstance(trace.get("text"), str):
        for (u, v), text in zip(points, _listed(trace.get("text")), strict=False):
            if u is not None and v is not None:
                picture.text(u + 4, v - 4, _plain(text))


_Points = Sequence[tuple[float | None, float | None]]  # pixels; None where a value is missing


def _bars(picture: Drawing, trace: Mapping[str, Any], points: _Points, x: _Axis, y: _Axis) -> None:
    flat = trace.get("orientation") == "h"
    along, foot = (y, x.at(0.0)) if flat else (x, y.at(0.0))
    # a bar's foot may lie outside, or have no logarithm: it then stands on the axis
    foot = (x.start if flat else y.start) if foot is None else foot
    wide = 0.7 * abs((along.end - along.start) / (along.high - along.low))  # of a step of 1
    for u, v in points:
        if u is not None and v is not None:
            ends = [(foot, v), (u, v)] if flat else [(u, foot), (u, v)]
            picture.stroke(ends, _colour(trace), wide, (), 0.8)


def _whiskers(
    picture: Drawing,
    trace: Mapping[str, Any],
    kind: str,
    values: Sequence[Any],
    points: _Points,
    axis: _Axis,
) -> None:
    error = trace.get(f"error_{kind}") or {}
    ups = _listed(error.get("array"))
    downs = _listed(error.get("arrayminus")) or ups
    for (u, v), here, up, down in zip(points, values, ups, downs, strict=False):
        still = v if kind == "x" else u
        first, last = axis.at(here - down), axis.at(here + up)
        if still is None or first is None or last is None:
            continue
        ends = [(first, still), (last, still)] if kind == "x" else [(still, first), (still, last)]
        picture.stroke(ends, _colour(trace), 1.5, (), float(trace.get("opacity") or 1))


def _lines(picture: Drawing, trace: Mapping[str, Any], points: _Points) -> None:
    """Draw a line through the points, broken where one is missing."""
    width = (trace.get("line") or {}).get("width")
    if width == 0:
        return
    stretch: list[tuple[float, float]] = []
    # a gap at the end, so that the last stretch is drawn too
    for u, v in [*points, (None, None)]:
        if u is not None and v is not None:
            stretch.append((u, v))
        elif stretch:
            opacity = float(trace.get("opacity") or 1)
            picture.stroke(stretch, _colour(trace), float(width or 2), _dash(trace), opacity)
            stretch = []


def _marks(picture: Drawing, trace: Mapping[str, Any], points: _Points) -> None:
    marker = trace.get("marker") or {}
    size, given = marker.get("size"), marker.get("color")
    radius = float(size) / 2 if isinstance(size, int | float) else 3.0
    colours = [given] * len(points) if isinstance(given, str | None) else _listed(given)
    mark = _MARKS.get(str(marker.get("symbol")), "disc")
    for (u, v), own in zip(points, colours, strict=False):
        if u is not None and v is not None:
            # numbers stand on a scale of colours, which an image of one colour leaves out
            colour = own if isinstance(own, str) and own else _colour(trace)
            picture.mark(u, v, radius, colour, mark)
