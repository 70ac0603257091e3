"""Names beside lines, inside the plot, where lines part: none on another, none on a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dpviz.core.arrays import FloatArray
from dpviz.report.figures.theme import GREY

SIZE = 12
_LETTER, _LINE = 5.8, 16  # pixels of a letter on average, and of a line of text
_CELL = 3  # pixels of a cell of the raster that knows what is where
_STEP = 5  # points of a line from one that is tried to the next
_GAP = 5  # pixels between a line and its name
_AROUND = 9  # pixels round a name in which other lines are counted
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
        others = [
            np.stack(rest[0][1], axis=1) for other, rest in drawn.items() if rest and other != key
        ]
        found = _best(lines, name, colour, everything, own, others, plot)
        if found is None:
            continue
        (across, up), (right, above), box = found
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
    below, beside = _sums(everything), _sums(np.minimum(everything, 1.0) - own)
    most = _ON_A_LINE * (1 if colour == GREY else _TAKEN)
    best, least = None, math.inf
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
                near = _within(beside, _box(left, foot, wide, high, _AROUND))
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
