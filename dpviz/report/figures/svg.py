"""SVG as image elements, for pages strip SVG elements: marks, thumbnails, curves without a script.

`svg_curves` is what is known without a draw, shown before Plotly has loaded: its lines stretch with
the page, its texts are HTML of the page's own font and keep their size at any width.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import decades, decimals, numeral, parseable, round_ticks
from dpviz.core.release import Verdict
from dpviz.mechanisms import Mechanism
from dpviz.report.figures.theme import TRUE_COLOUR, Panel, colour_of
from dpviz.report.tables.portrait import Portrait


def source(svg: str) -> str:
    """Return an SVG as the address of an image."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def image(svg: str, words: str, style: str) -> str:
    """Return an SVG as an image element.

    Parameters
    ----------
    svg : str
    words : str
        What the picture says, for those who do not see it.
    style : str
        Of the element, in CSS.
    """
    return f'<img src="{source(svg)}" alt="{escape(words)}" style="{style}">'


IN_COLOUR = "#2a7fd0"


def picture(svg: str, words: str, width: int, height: int | None = None) -> str:
    """Return an SVG as an image element, which pages that strip SVG elements show too."""
    return (
        f'<img src="{source(svg)}" width="{width}" height="{height or width}" '
        f'alt="{escape(words)}">'
    )


def hundred(count: int, words: str, size: int = 120) -> str:
    """Return ten by ten circles, so many of them filled, as an image element.

    Parameters
    ----------
    count : int
        From 0 to 100.
    words : str
        What the picture says, for those who do not see it.
    size : int
        Pixels of each side.
    """
    cells = "".join(
        f'<circle cx="{5 + 10 * (index % 10)}" cy="{5 + 10 * (index // 10)}" r="3.6" '
        f'fill="{IN_COLOUR if index < count else "none"}" '
        f'stroke="{IN_COLOUR if index < count else "#8a93a0"}"/>'
        for index in range(100)
    )
    svg = f'<svg viewBox="0 0 100 100" xmlns="http://www.w3.org/2000/svg">{cells}</svg>'
    return picture(svg, words, size)


# Thumbnails ---------------------------------------------------------------------------------------

_TEXT = 'font-family="sans-serif" font-size="12" fill="#7F7F7F"'


def _image(width: int, height: int, inside: Sequence[str], words: str) -> str:
    return image(_svg(width, height, "".join(inside)), words, "max-width:100%;height:auto")


def _svg(width: int, height: int, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{inside}</svg>'
    )


def _label(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {_TEXT} text-anchor="{anchor}">{escape(words)}</text>'


def thumbnail(portrait: Portrait, mechanism: Mechanism) -> str:
    """Return how far a mechanism turns the first direction, as the address of a small image.

    From 0 to 90 degrees for every mechanism, with a line at the median; see `angle_words`.

    Parameters
    ----------
    portrait : Portrait
    mechanism : Mechanism
    """
    width, tall = _THUMBNAIL
    at = width * portrait.median / 90
    inside = _bars(portrait.angles, 0, width, tall, colour_of(mechanism)) + (
        f'<path d="M0 {tall}H{width}M{at:.1f} 0V{tall}" stroke="{TRUE_COLOUR}"/>'
    )
    return source(_svg(width, tall, inside))


def angle_words(portrait: Portrait) -> str:
    """Return what a thumbnail shows, in words."""
    return f"median {decimals(portrait.median, 0)}° from the true direction"


def noise_image(portrait: Portrait, mechanism: Mechanism) -> str:
    """Return the eigenvalues of a mechanism's noise as a histogram with an axis of its own.

    Parameters
    ----------
    portrait : Portrait
        Of a mechanism that releases a matrix.
    mechanism : Mechanism
    """
    assert portrait.noise is not None
    width, tall, wide, size = 300, 44, 292, numeral(portrait.reach)
    middle = 4 + wide / 2
    inside = [
        _bars(portrait.noise, 4, wide, tall, colour_of(mechanism)),
        f'<path d="M4 {tall}h{wide}" stroke="{TRUE_COLOUR}"/>',
        f'<path d="M{middle} 0v{tall}" stroke="{TRUE_COLOUR}" stroke-dasharray="2 3"/>',
        _label(4, tall + 13, f"-{size}"),
        _label(middle, tall + 13, "noise 0", "middle"),
        _label(4 + wide, tall + 13, size, "end"),
    ]
    words = f"Eigenvalues of its noise, from -{size} to {size}, rows of length 1"
    return _image(width, tall + 17, inside, words)


_THUMBNAIL = (240, 30)  # pixels


def _bars(heights: FloatArray, left: float, wide: float, tall: float, colour: str) -> str:
    """Return the bars of a histogram that stands on a height, as one path."""
    step = wide / len(heights)
    drawn = [
        f"M{left + step * place:.1f} {tall}v{-height * (tall - 4):.1f}h{step - 1:.1f}V{tall}"
        for place, height in enumerate(heights.tolist())
        if height > 0
    ]
    return f'<path d="{"".join(drawn)}" fill="{colour}"/>'


# Curves without a script --------------------------------------------------------------------------

HEIGHT = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 12, 30, 112  # pixels round the plot, about those of Plotly's
_DOTTED, _DASHED, _LIMIT = "1.5 3", "9 6", "9 6"


def svg_curves(
    predicted: pd.DataFrame | None,
    limits: pd.DataFrame | None,
    panels: Sequence[Panel],
    *,
    across: Sequence[float],
    x_title: str,
    y_title: str,
    log_x: bool,
    log_y: bool,
    now: float,
    words: str,
    shares: bool = False,
) -> str:
    """Return predictions and limits as HTML without a script.

    Parameters
    ----------
    predicted : DataFrame or None
        `dpviz.report.tables.comparison.PREDICTION_COLUMNS`: dotted, dashed where the claim fails.
    limits : DataFrame or None
        `dpviz.report.tables.curves.LINE_COLUMNS`: dashed grey lines with their names.
    panels : sequence of Panel
        Those with a colour lie on top.
    across : sequence of float
        What the axis spans, also where nothing is known yet.
    x_title, y_title : str
    log_x, log_y : bool
    now : float
        Where the current setting stands.
    words : str
        What the picture says, for those who do not see it.
    shares : bool
        Whether what is measured is written in per cent.
    """
    lines = _lines(predicted, limits, panels)
    x = _Axis.over([*across, now, *(v for line in lines for v in line.x)], log=log_x, room=0.02)
    y = _Axis.over([v for line in lines for v in line.y], log=log_y, room=0.05)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000" '
        f'preserveAspectRatio="none">{_drawn(lines, x, y, now, shares=shares)}</svg>'
    )
    texts = _on_axes(x, y, now, shares=shares) + _named(lines, y) + _titles(x_title, y_title)
    frame = f"left:{_LEFT}px;right:{_RIGHT}px;top:{_TOP}px;bottom:{_BOTTOM}px"
    return (
        f'<div class="still" data-predicted="{sum(not line.name for line in lines)}" '
        f'style="position:relative;height:{HEIGHT}px">'
        f'<div style="position:absolute;{frame}">'
        f"{image(svg, words, 'position:absolute;width:100%;height:100%')}"
        f'<div aria-hidden="true">{texts}</div></div></div>'
    )


def _drawn(lines: Sequence[_Line], x: _Axis, y: _Axis, now: float, *, shares: bool) -> str:
    """Return the curves, where the current setting stands, and a grid line at each tick."""
    inside = [line.drawn(x, y) for line in lines]
    if x.holds(now):
        at = f"{1000 * x.at(now):.1f}"
        inside.append(f'<line x1="{at}" x2="{at}" y1="0" y2="1000" {_stroke(TRUE_COLOUR)}/>')
    for height, _ in y.ticks(shares=shares):
        at = f"{1000 - 1000 * height:.1f}"
        grid = f'{_stroke(TRUE_COLOUR)} opacity=".25"'
        inside.append(f'<line x1="0" x2="1000" y1="{at}" y2="{at}" {grid}/>')
    return "".join(inside)


def _on_axes(x: _Axis, y: _Axis, now: float, *, shares: bool) -> str:
    """Return the words at the ticks, and at the current setting."""
    said = []
    if x.holds(now):
        said.append(_text(f"left:{100 * x.at(now):.2f}%;top:-20px", "now", "-50% 0"))
    for at, tick in x.ticks():
        said.append(_text(f"left:{100 * at:.2f}%;top:100%;padding-top:4px", tick, "-50% 0"))
    for at, tick in y.ticks(shares=shares):
        said.append(_text(f"right:100%;bottom:{100 * at:.2f}%;padding-right:6px", tick, "0 50%"))
    return "".join(said)


def _named(lines: Sequence[_Line], y: _Axis) -> str:
    """Return the names of limits, at their right ends."""
    return "".join(
        _text(f"right:8px;bottom:{100 * y.at(line.y[-1]):.2f}%", line.name, "0 0")
        for line in lines
        if line.name and y.holds(line.y[-1])
    )


def _titles(x_title: str, y_title: str) -> str:
    """Return the titles of both axes."""
    turned = "writing-mode:vertical-rl;rotate:180deg;font-size:14px"
    return _text("left:50%;top:100%;padding-top:24px;font-size:14px", x_title, "-50% 0") + _text(
        f"right:100%;top:50%;margin-right:44px;{turned}", y_title, "0 50%"
    )


def _text(place: str, words: str, moved: str) -> str:
    style = f"position:absolute;white-space:nowrap;font-size:12px;{place};translate:{moved}"
    return f'<span style="{style}">{escape(words)}</span>'


def _stroke(colour: str, width: float = 1.0) -> str:
    # Without this a stretched picture has strokes of another width across than down.
    return (
        f'fill="none" stroke="{colour}" stroke-width="{parseable(width, 6)}" '
        'vector-effect="non-scaling-stroke"'
    )


class _Axis:
    """Where values lie between the ends of an axis, as shares of its length."""

    def __init__(self, low: float, high: float, *, log: bool) -> None:
        self.low, self.high, self.log = low, high, log

    @classmethod
    def over(cls, values: Iterable[float], *, log: bool, room: float) -> _Axis:
        """Return an axis over values, with a share of it as room at each end."""
        ends = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        low, high = (min(ends), max(ends)) if ends else (1.0, 10.0) if log else (0.0, 1.0)
        if log:
            low, high = math.log10(low), math.log10(high)
        wide = (high - low) or 1.0
        return cls(low - room * wide, high + room * wide, log=log)

    def holds(self, value: float) -> bool:
        """Return whether a value lies on the axis."""
        if not math.isfinite(value) or (self.log and value <= 0):
            return False
        return 0 <= self.at(value) <= 1

    def at(self, value: float) -> float:
        """Return the place of a value that lies on the axis."""
        placed = math.log10(value) if self.log else value
        return (placed - self.low) / (self.high - self.low)

    def ticks(self, *, shares: bool = False) -> list[tuple[float, str]]:
        """Return place and text of each tick; on a plain axis in per cent where asked."""
        if self.log:
            return [(self.at(v), numeral(v, 6)) for v in decades(self.low, self.high, 6)]
        return [
            (self.at(v), f"{numeral(100 * v, 6)}%" if shares else numeral(v, 6))
            for v in round_ticks(self.low, self.high)
        ]


class _Line:
    """One line of the picture, in stretches of one dash."""

    def __init__(
        self, x: Sequence[float], y: Sequence[float], fails: Sequence[bool], style: str, name: str
    ) -> None:
        self.x, self.y, self.fails, self.style, self.name = x, y, fails, style, name

    def drawn(self, x: _Axis, y: _Axis) -> str:
        """Return its SVG: a piece is dashed where the claim fails at either end."""
        found = []
        for i in range(len(self.x) - 1):
            ends = [(self.x[j], self.y[j]) for j in (i, i + 1)]
            if not all(x.holds(u) and y.holds(v) for u, v in ends):
                continue
            at = " ".join(f"{1000 * x.at(u):.1f},{1000 - 1000 * y.at(v):.1f}" for u, v in ends)
            fails = self.fails[i] or self.fails[i + 1]
            dash = _LIMIT if self.name else _DASHED if fails else _DOTTED
            found.append(f'<polyline points="{at}" {self.style} stroke-dasharray="{dash}"/>')
        return "".join(found)


def _lines(
    predicted: pd.DataFrame | None, limits: pd.DataFrame | None, panels: Sequence[Panel]
) -> list[_Line]:
    lines = []
    for label, part in limits.groupby("label", sort=False) if limits is not None else ():
        rows = np.asarray(part[["x", "value"]], dtype=float)
        lines.append(
            _Line(rows[:, 0].tolist(), rows[:, 1].tolist(), [False] * len(rows),
                  _stroke(TRUE_COLOUR), str(label))
        )  # fmt: skip
    for panel in sorted(panels, key=lambda one: one.highlighted):
        if predicted is None:
            break
        part = predicted[predicted["mechanism"] == panel.key]
        fails = [Verdict(verdict).fails for verdict in part["verdict"]]
        style = _stroke(panel.colour, min(panel.width, 1.5))
        if fails:
            lines.append(_Line(part["x"].tolist(), part["value"].tolist(), fails, style, ""))
    return lines
