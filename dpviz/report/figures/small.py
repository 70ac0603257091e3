"""Small still pictures for notebooks: SVG inside an image element, without a script or a host.

They show wherever HTML shows, also where a notebook is only read; the Plotly figures are a call
away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from dpviz.core.number_text import numeral
from dpviz.mechanisms import Mechanism
from dpviz.report.figures.svg import image
from dpviz.report.figures.theme import TRUE_COLOUR, Panel, colour_of
from dpviz.report.tables.portrait import Portrait

_WIDE, _LINE = 640, 26  # pixels of a picture with one line per variant, and of a line
_TEXT = 'font-family="sans-serif" font-size="12" fill="#7F7F7F"'


def _image(width: int, height: int, inside: Sequence[str], words: str) -> str:
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{"".join(inside)}</svg>'
    )
    return image(svg, words, "max-width:100%;height:auto")


def _path(xs: Sequence[float], ys: Sequence[float]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {_TEXT} text-anchor="{anchor}">{escape(words)}</text>'


def portrait_image(portrait: Portrait, mechanism: Mechanism) -> str:
    """Return a mechanism's noise or law as a small histogram in its colour.

    Parameters
    ----------
    portrait : Portrait
    mechanism : Mechanism
    """
    width, tall, wide = 300, 44, 292
    step = wide / len(portrait.heights)
    inside = [
        f'<rect x="{4 + step * place:.1f}" y="{tall - height * (tall - 4):.1f}" '
        f'width="{step - 1:.1f}" height="{height * (tall - 4):.1f}" '
        f'fill="{colour_of(mechanism)}"/>'
        for place, height in enumerate(portrait.heights)
        if height > 0
    ]
    inside.append(f'<line x1="4" x2="{4 + wide}" y1="{tall}" y2="{tall}" stroke="{TRUE_COLOUR}"/>')
    if portrait.kind == "noise":
        size = numeral(portrait.high)
        words = f"Eigenvalues of its noise, from -{size} to {size}, rows of length 1"
        inside.append(
            f'<line x1="{4 + wide / 2}" x2="{4 + wide / 2}" y1="0" y2="{tall}" '
            f'stroke="{TRUE_COLOUR}" stroke-dasharray="2 3"/>'
        )
        marks = [(4.0, f"-{size}", "start"), (4 + wide / 2, "noise 0", "middle"),
                 (4.0 + wide, size, "end")]  # fmt: skip
    else:
        words = "How far its first direction lies from the true one, from 0 to 90 degrees"
        marks = [(4.0, "0°: the true direction", "start"), (4.0 + wide, "90°", "end")]
    inside += [_text(x, tall + 13, text, anchor) for x, text, anchor in marks]
    return _image(width, tall + 17, inside, words)


def ranges_image(
    table: pd.DataFrame, panels: Sequence[Panel], title: str, *, log: bool = False
) -> str:
    """Return a point inside its range for each variant, one line each.

    Parameters
    ----------
    table : DataFrame
        Columns mechanism, mean, low and high; a variant without a number has an empty line.
    panels : sequence of Panel
    title : str
        What the numbers are.
    log : bool
        Whether the axis is logarithmic; all numbers are then positive.
    """
    known = table.dropna(subset=["mean", "low", "high"])
    numbers = known[["mean", "low", "high"]].to_numpy(dtype=float)
    if not len(numbers):
        return ""

    def forward(value: float) -> float:
        return math.log10(value) if log else value

    ends = (float(numbers.min()), float(numbers.max()))
    low, high = (forward(end) for end in ends)
    room = (high - low) or 1.0

    def at(value: float) -> float:
        return 230 + (_WIDE - 270) * (forward(value) - low) / room

    inside = []
    for number, panel in enumerate(panels):
        y = 22 + number * _LINE
        inside.append(_text(222, y + 4, panel.label[:34], "end"))
        for mean, lowest, highest in numbers[(known["mechanism"] == panel.key).to_numpy()]:
            inside.append(
                f'<line x1="{at(lowest):.1f}" x2="{at(highest):.1f}" y1="{y}" y2="{y}" '
                f'stroke="{panel.colour}" stroke-width="3" opacity="0.5"/>'
                f'<circle cx="{at(mean):.1f}" cy="{y}" r="5" fill="{panel.colour}"/>'
            )
    bottom = 22 + len(panels) * _LINE
    inside += [_text(at(end), bottom + 4, numeral(end, 3), "middle") for end in dict.fromkeys(ends)]
    inside.append(_text(_WIDE / 2 + 95, bottom + 20, title, "middle"))
    return _image(_WIDE, bottom + 28, inside, f"{title}, one line per mechanism")


def curves_image(bands: pd.DataFrame, panels: Sequence[Panel], title: str, *, log: bool) -> str:
    """Return the mean of one metric along one axis, a line per variant, named at its end.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.report.tables.curves.BAND_COLUMNS`.
    panels : sequence of Panel
    title : str
        What is drawn against what.
    log : bool
        Whether the axis is logarithmic; all its values are then positive.
    """
    if bands.empty:
        return ""
    xs = bands["x"].to_numpy(dtype=float)
    forward = np.log10(xs) if log else xs
    means = bands["mean"].to_numpy(dtype=float)
    wide, tall = _WIDE - 200, 180
    across = (forward - forward.min()) / ((forward.max() - forward.min()) or 1.0)
    up = (means - means.min()) / ((means.max() - means.min()) or 1.0)
    foot, right = 34 + tall, 50 + wide
    inside = [_text(46, 20, numeral(means.max(), 3), "end")]
    inside += [_text(46, 16 + tall, numeral(means.min(), 3), "end")]
    inside += [
        _text(50, foot, numeral(xs.min(), 3)),
        _text(right, foot, numeral(xs.max(), 3), "end"),
    ]
    inside += [_text(50 + wide / 2, foot, title, "middle")]
    named: list[tuple[float, str]] = []
    for panel in panels:
        mine = (bands["mechanism"] == panel.key).to_numpy()
        if not mine.any():
            continue
        places = [50 + wide * float(a) for a in across[mine]]
        points = _path(places, [16 + tall * (1 - float(u)) for u in up[mine]])
        inside.append(
            f'<polyline points="{points}" fill="none" stroke="{panel.colour}" stroke-width="2"/>'
        )
        named.append((16 + tall * (1 - float(up[mine][-1])), panel.label[:24]))
    lowest = 0.0
    for end, label in sorted(named):  # names that would touch move down
        lowest = max(end + 4, lowest + 12)
        inside.append(_text(56 + wide, lowest, label))
    return _image(_WIDE, tall + 44, inside, f"{title}, one line per mechanism")
