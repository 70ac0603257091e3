"""Cached curves: predictions, draws and marks, each handed over as it grows.

As in `pages.ui.cached`: texts and numbers name a result, and what is taken from an upload stays
within its session.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.errors import CannotRun
from dpviz.figures.theme import Panel, panels_of
from dpviz.figures.tradeoff import FEW
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.prepare.prepared import Measured
from dpviz.run import axes
from dpviz.run import cells as sweeps
from dpviz.settings import Settings
from dpviz.tidy import curves
from dpviz.tidy.curves import CurvePoint
from dpviz.values.problem import Budget, Problem
from pages.ui import cached


def curve(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    axis: str,
    count: int,
    seen: Callable[[list[CurvePoint]], object] = len,
) -> tuple[list[CurvePoint], list[tuple[str, str]]]:
    """Return every variant at every default value of an axis, and what cannot run.

    One variant after the other; ``seen`` is called with all points so far after each.
    """
    points: list[CurvePoint] = []
    skipped: dict[str, str] = {}
    values = axes.default_values(axis, rows, count)
    progress = cached.Progress()
    total = len(values) * len(mechanisms)
    for number, (mechanism, value) in enumerate(product(mechanisms, values)):
        here = axes.settings_at(settings, axis, value)
        measured, key = _measured(data_key, rows, settings, axis, value)
        cell = sweeps.cell_at(measured, here, mechanism, range(here.trials))
        if isinstance(cell, str):
            skipped.setdefault(mechanism.text, cell)
            continue

        def tell(share: float, number: int = number, label: str = mechanism.label) -> None:
            progress((number + share) / total, f"Drawing releases: {label}")

        try:
            result = cached.in_chunks(key, cell, measured, tell)
        except CannotRun as error:
            skipped.setdefault(mechanism.text, error.reason)
            continue
        points.append(curves.point_at(rows, measured, here, axis, value, result))
        seen(points)
    progress.close()
    return points, list(skipped.items())


def _measured(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, axis: str, value: Any
) -> tuple[Measured, tuple[str, ...]]:
    """Return the table at one value of an axis, and what its data depends on."""
    if axis not in ("n", "row_bound"):
        return rows, data_key
    key = (*data_key, axis, str(value), str(settings.seed))
    return measured_at(data_key, axis, str(value), settings.seed, rows), key


@st.cache_resource(scope="session", max_entries=64, show_spinner="Preparing", show_time=True)
def measured_at(
    data_key: tuple[str, ...], axis: str, value: str, seed: int, _rows: Measured
) -> Measured:
    """Return the table at one n or row bound; the rows are read once for each."""
    return axes.rows_at(_rows, axis, value, seed)


@st.cache_data(scope="session", max_entries=5_000, show_spinner=False)
def _predicted_point(
    key: tuple[str, ...], _rows: Measured, _measured: Measured, _settings: Settings, _value: Any
) -> tuple[float, float, str] | None:
    variant, axis, metric = key[-3:]
    return curves.predicted_point(
        _rows, _measured, _settings, parse_variant(variant), axis, _value, metric
    )


def predicted(
    data_key: tuple[str, ...],
    rows: Measured,
    settings: Settings,
    mechanisms: Sequence[Mechanism],
    axis: str,
    metric: str,
    seen: Callable[[pd.DataFrame], object] = len,
) -> pd.DataFrame:
    """Return the predicted curve of each variant that has one; ``seen`` gets it as it grows."""
    # What is plotted along does not name the result, nor do draws: moving epsilon keeps a curve.
    along = {"epsilon": {"epsilon": 1.0}, "delta": {"delta": None}, "k": {"k": 1}}.get(axis, {})
    own = replace(settings, mechanisms=(), trials=1, **along)
    found: list[tuple[str, float, float, str]] = []

    def table() -> pd.DataFrame:
        return pd.DataFrame(found, columns=list(curves.PREDICTION_COLUMNS))

    values = axes.default_values(axis, rows, axes.FINE)
    for mechanism, value in product(mechanisms, values):
        measured, key = _measured(data_key, rows, own, axis, value)
        what = (*key, repr(own), repr(value), mechanism.text, axis, metric)
        point = _predicted_point(what, rows, measured, own, value)
        if point is not None:
            found.append((mechanism.text, *point))
            seen(table())
    return table()


@st.cache_data(scope="session", max_entries=500, show_spinner=False)
def _marks(key: tuple[str, ...], _rows: Measured, _settings: Settings) -> pd.DataFrame:
    return curves.marks(_rows, _settings, [parse_variant(key[-1])])


def marks(
    data_key: tuple[str, ...], rows: Measured, settings: Settings, mechanisms: Sequence[Mechanism]
) -> pd.DataFrame:
    """Return the epsilon from which on each variant finds each component."""
    own = replace(settings, epsilon=1.0, mechanisms=(), trials=1)
    shared = (*data_key, repr(own))
    return pd.concat([_marks((*shared, one.text), rows, own) for one in mechanisms])


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
    return sorted(mechanisms, key=lambda one: one.info.highlight or math.inf)


def marked(mechanisms: Sequence[Mechanism]) -> list[Mechanism]:
    """Return whose components are marked: all of a few, of many those with a colour."""
    few = len(mechanisms) <= FEW
    return [one for one in mechanisms if few or one.info.highlight]


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
