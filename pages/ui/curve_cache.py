"""Cached curves: predictions, draws and marks, each handed over as it grows.

As in `pages.ui.cached`: texts and numbers name a result, and what is taken from an upload stays
within its session.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import CannotRun
from dpviz.core.metrics import METRICS
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.theme import GREY, Panel, colour_of, panels_of
from dpviz.report.figures.tradeoff import FEW
from dpviz.report.tables import curves
from dpviz.report.tables.comparison import (
    PREDICTION_COLUMNS,
    AxisPoint,
    PredictedPoint,
    axis_point,
    predicted_at,
    prediction_rows,
)
from dpviz.report.tables.curves import CurvePoint
from dpviz.simulation import axes, cells
from pages.ui import cached
from pages.ui.first_sight import Shipped
from pages.ui.shelves import Kept, apart

_KEPT_BYTES = 48 * 2**20  # of curves: some hundred with a hundred draws
_MOST_PREDICTED = 1_000  # predictions: a few kilobytes each
_ALONG: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 1.0}, "delta": {"delta": None}, "k": {"k": 1},
}  # fmt: skip


@dataclass(frozen=True)
class _Drawn:
    """Every point of one variant that can be drawn, and why others cannot."""

    points: tuple[CurvePoint, ...]
    skipped: str | None

    @property
    def size(self) -> int:
        return sum(values.nbytes for point in self.points for values in point.metrics.values())


# The key is not hashed: all tables of a shelf share its room.
@apart(st.cache_resource, show_spinner=False)
def _drawn(_key: tuple[str, ...]) -> Kept[_Drawn]:
    return Kept(_KEPT_BYTES, lambda curve: curve.size)


@apart(st.cache_resource, show_spinner=False)
def _predictions(_key: tuple[str, ...]) -> Kept[tuple[PredictedPoint | None, ...]]:
    return Kept(_MOST_PREDICTED)


FIRST = next(iter(METRICS))
"""The measure that is seen first. What ships has no other, where what is kept has all."""


def _written(curve: _Drawn) -> bytes:
    points = [
        (
            point.x, point.mechanism, str(point.verdict), point.metrics[FIRST].tolist(),
            point.shape, point.unit, point.distance_bound,
        )
        for point in curve.points
    ]  # fmt: skip
    return json.dumps([points, curve.skipped]).encode()


def _read(text: bytes) -> _Drawn:
    points, skipped = json.loads(text)
    return _Drawn(
        tuple(
            CurvePoint(
                x, name, Verdict(verdict), {FIRST: np.array(values)}, tuple(shape), unit, bound
            )
            for x, name, verdict, values, shape, unit, bound in points
        ),
        skipped,
    )


_CURVES = Shipped("curves", _read, _written)
_LINES = Shipped[list[tuple[str, float, float, str]]](
    "lines",
    lambda text: [(name, x, y, verdict) for name, x, y, verdict in json.loads(text)],
    lambda line: json.dumps(line).encode(),
)
_MARKS = Shipped[pd.DataFrame](
    "marks",
    lambda text: pd.DataFrame(**json.loads(text)),
    lambda table: json.dumps(table.to_dict("split", index=False)).encode(),
)


def _along(settings: Settings, axis: str) -> Settings:
    """Return what curves along an axis depend on."""
    return replace(settings, mechanisms=(), **_ALONG.get(axis, {}))


def _at_hand(data_key: tuple[str, ...], what: tuple[str, ...], metric: str) -> _Drawn | None:
    drawn = _drawn(data_key).get(what)
    return _CURVES.get(what) if drawn is None and metric == FIRST else drawn


def at_hand(
    data_key: tuple[str, ...],
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    axis: str,
    metric: str,
) -> bool:
    """Return whether every variant's whole curve is kept, so that nothing is drawn for it."""
    start = (*data_key, repr(_along(settings, axis)), axis, str(axes.FINE))
    return all(_at_hand(data_key, (*start, one.text), metric) is not None for one in mechanisms)


def curve(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    axis: str,
    count: int,
    seen: Callable[[list[CurvePoint]], object] = len,
    seams: tuple[int, ...] = (),
    metric: str = "",
) -> tuple[list[CurvePoint], list[tuple[str, str]]]:
    """Return every variant at every default value of an axis, and what cannot run.

    Where ``metric`` is all that is wanted, points may have no other. One variant after the other;
    ``seen`` is called with all points so far after each. Draws are made in chunks that end at
    ``seams`` too, where those of a shorter run ended.
    """
    points: list[CurvePoint] = []
    skipped: dict[str, str] = {}
    values = axes.default_values(axis, rows, count)
    progress = cached.Progress()
    own = _along(settings, axis)
    for number, mechanism in enumerate(mechanisms):
        what = (*data_key, repr(own), axis, str(count), mechanism.text)
        drawn = _at_hand(data_key, what, metric)
        if drawn is None:
            line: list[CurvePoint] = []
            reason: str | None = None
            for place, value in enumerate(values):

                def tell(share: float, place: int = place, number: int = number,
                         label: str = mechanism.label) -> None:  # fmt: skip
                    done = number + (place + share) / len(values)
                    progress(done / len(mechanisms), f"Drawing releases: {label}")

                found = _point(data_key, rows, own, mechanism, axis, value, tell, seams)
                if isinstance(found, str):
                    reason = reason or found
                    continue
                line.append(found)
                seen([*points, *line])
            drawn = _Drawn(tuple(line), reason)
            _drawn(data_key).keep(what, drawn)
            if count == axes.FINE:
                _CURVES.note(what, drawn)
        points += drawn.points
        seen(points)
        if drawn.skipped is not None:
            skipped[mechanism.text] = drawn.skipped
    progress.close()
    return points, list(skipped.items())


def _point(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanism: Mechanism,
    axis: str,
    value: Any,
    tell: Callable[[float], None],
    seams: tuple[int, ...],
) -> CurvePoint | str:
    """Return one variant at one value, or why it cannot run there."""
    here = axes.settings_at(settings, axis, value)
    measured, key = _measured(data_key, rows, settings, axis, value)
    cell = cells.cell_at(measured, here, mechanism, range(here.trials))
    if isinstance(cell, str):
        return cell
    try:
        result = cached.in_chunks(key, cell, measured, tell, seams=seams)
    except CannotRun as error:
        return error.reason
    return curves.point_at(rows, measured, here, axis, value, result)


def _measured(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, axis: str, value: Any
) -> tuple[Measured, tuple[str, ...]]:
    """Return the table at one value of an axis, and what its data depends on."""
    if axis not in ("n", "row_bound"):
        return rows, data_key
    key = (*data_key, axis, str(value), str(settings.seed))
    return measured_at(data_key, axis, str(value), settings.seed, rows), key


@apart(st.cache_resource, max_entries=64, show_spinner="Preparing", show_time=True)
def measured_at(
    data_key: tuple[str, ...], axis: str, value: str, seed: int, _rows: Measured
) -> Measured:
    """Return the table at one n or row bound; the rows are read once for each."""
    return axes.rows_at(_rows, axis, value, seed)


def predicted(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    axis: str,
    metric: str,
    seen: Callable[[Callable[[], pd.DataFrame]], object] = id,
) -> pd.DataFrame:
    """Return the predicted curve of each variant that has one.

    ``seen`` is told of every new point: it gets what makes a table of all of them so far.
    """
    # What is plotted along does not name the result, nor do draws or the metric.
    own = replace(_along(settings, axis), trials=1)
    found: list[tuple[str, float, float, str]] = []

    def table() -> pd.DataFrame:
        return pd.DataFrame(found, columns=list(PREDICTION_COLUMNS))

    if rows.raw is not None:  # behind a private preparation nothing is predicted
        return table()
    kept = _predictions(data_key)
    spots: list[AxisPoint] = []  # made once, when the first variant asks
    for mechanism in mechanisms:
        what = (*data_key, repr(own), axis, mechanism.text)
        known = kept.get(what)
        if known is not None:
            found += prediction_rows(mechanism, known, metric)
            continue
        if metric == FIRST and (shipped := _LINES.get(what)) is not None:
            found += shipped
            continue
        for value in axes.default_values(axis, rows, axes.FINE) if not spots else ():
            measured, _ = _measured(data_key, rows, own, axis, value)
            spots.append(axis_point(rows, measured, own, axis, value))
        line: list[PredictedPoint | None] = []
        for spot in spots:
            check_cancelled()
            line.append(predicted_at(mechanism, spot))
            new = prediction_rows(mechanism, line[-1:], metric)
            if new:
                found += new
                seen(table)
        kept.keep(what, tuple(line))
        if metric == FIRST:
            _LINES.note(what, prediction_rows(mechanism, line, metric))
    return table()


@apart(st.cache_resource, show_spinner=False)
def _marks(_key: tuple[str, ...]) -> Kept[pd.DataFrame]:
    return Kept(500, shipped=_MARKS)


def marks(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, mechanisms: Sequence[Mechanism]
) -> pd.DataFrame:
    """Return the epsilon from which on each variant finds each component."""
    own = replace(settings, epsilon=1.0, mechanisms=(), trials=1)
    kept, found = _marks(data_key), []
    for mechanism in mechanisms:
        what = (*data_key, repr(own), mechanism.text)
        known = kept.get(what)
        if known is None:
            known = curves.marks(rows, own, [mechanism])
            kept.keep(what, known)
        found.append(known)
    return pd.concat(found)


@st.cache_data(max_entries=100, show_spinner=False)
def _judged(
    key: tuple[str, ...], _mechanisms: Sequence[Mechanism], _problem: Problem, _budget: Budget
) -> list[Panel]:
    return panels_of(_mechanisms, _problem, _budget)


def judged(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return how each variant is shown, with its claim judged: that depends on no data."""
    key = (*(one.text for one in mechanisms), repr(problem), repr(budget))
    return _judged(key, mechanisms, problem, budget)


def coloured_first(mechanisms: Sequence[Mechanism]) -> list[Mechanism]:
    """Return mechanisms with those that have a colour of their own in front."""
    return sorted(mechanisms, key=lambda one: (colour_of(one) == GREY, one.info.highlight))


def marked(mechanisms: Sequence[Mechanism]) -> list[Mechanism]:
    """Return whose components are marked: all of a few, of many those with a colour."""
    few = len(mechanisms) <= FEW
    return [one for one in mechanisms if few or colour_of(one) != GREY]


class Paced:
    """Draws at once, and then again whenever the last drawing has paid off.

    Parameters
    ----------
    draw : callable
        Takes what there is so far.
    wait : float
        Least seconds between two drawings.
    """

    def __init__(self, draw: Callable[[Any], object], wait: float = 1.0) -> None:
        self._draw = draw
        self._wait = wait
        self._next = -math.inf

    def __call__(self, what: Any) -> None:
        """Draw what there is, if it is time."""
        started = time.monotonic()
        if started < self._next:
            return
        self._draw(what)
        ended = time.monotonic()
        self._next = ended + max(self._wait, 3 * (ended - started))
