"""A chart that needs no script: what is known without a draw, shown before Plotly has loaded.

Lines are an SVG that stretches with the page, inside an image element, for pages strip SVG
elements; texts are HTML of the page's own font, so that they keep their size at any width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import pandas as pd

from dpviz.core.number_text import decades, numeral, round_ticks
from dpviz.core.release import Verdict
from dpviz.report.figures.svg import image
from dpviz.report.figures.theme import TRUE_COLOUR, Panel

HEIGHT = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 12, 30, 112  # pixels round the plot, about those of Plotly's
_DOTTED, _DASHED, _LIMIT = "1.5 3", "9 6", "9 6"


def still_curves(
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
    inside = [line.drawn(x, y) for line in lines]
    spots = [x.at(now)] if x.holds(now) else []
    inside += [
        f'<line x1="{1000 * at:.1f}" x2="{1000 * at:.1f}" y1="0" y2="1000" {_stroke(TRUE_COLOUR)}/>'
        for at in spots
    ]
    said = [_text(f"left:{100 * at:.2f}%;top:-20px", "now", "-50% 0") for at in spots]
    for at, tick in x.ticks():
        said.append(_text(f"left:{100 * at:.2f}%;top:100%;padding-top:4px", tick, "-50% 0"))
    for at, tick in y.ticks(shares=shares):
        inside.append(
            f'<line x1="0" x2="1000" y1="{1000 - 1000 * at:.1f}" y2="{1000 - 1000 * at:.1f}" '
            f'{_stroke(TRUE_COLOUR)} opacity=".25"/>'
        )
        said.append(_text(f"right:100%;bottom:{100 * at:.2f}%;padding-right:6px", tick, "0 50%"))
    for line in lines:
        if line.name and y.holds(line.y[-1]):
            height = 100 * y.at(line.y[-1])
            said.append(_text(f"right:8px;bottom:{height:.2f}%", line.name, "0 0"))
    said.append(_text("left:50%;top:100%;padding-top:24px;font-size:14px", x_title, "-50% 0"))
    turned = "writing-mode:vertical-rl;rotate:180deg;font-size:14px"
    said.append(_text(f"right:100%;top:50%;margin-right:44px;{turned}", y_title, "0 50%"))
    foretold = sum(not line.name for line in lines)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000" '
        f'preserveAspectRatio="none">{"".join(inside)}</svg>'
    )
    frame = f"left:{_LEFT}px;right:{_RIGHT}px;top:{_TOP}px;bottom:{_BOTTOM}px"
    return (
        f'<div class="still" data-predicted="{foretold}" '
        f'style="position:relative;height:{HEIGHT}px">'
        f'<div style="position:absolute;{frame}">'
        f"{image(svg, words, 'position:absolute;width:100%;height:100%')}"
        f'<div aria-hidden="true">{"".join(said)}</div></div></div>'
    )


def _text(place: str, words: str, moved: str) -> str:
    style = f"position:absolute;white-space:nowrap;font-size:12px;{place};translate:{moved}"
    return f'<span style="{style}">{escape(words)}</span>'


def _stroke(colour: str, width: float = 1.0) -> str:
    # Without this a stretched picture has strokes of another width across than down.
    return (
        f'fill="none" stroke="{colour}" stroke-width="{numeral(width, 6)}" '
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
