"""Curves along an axis as pages ask them, each mechanism's by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.core.metrics import METRICS
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.report.figures.theme import GREY, Panel, colour_of, panels_of
from dpviz.report.figures.tradeoff import FEW
from dpviz.report.tables.curves import CurvePoint
from dpviz.simulation import axes
from dpviz.studies.curves import PREDICTION_COLUMNS, Curve, Line, curve, line
from dpviz.studies.curves import marks as marks_of
from pages.ui import limits
from pages.ui.ask import ask, known
from pages.ui.draws import InTime
from pages.ui.first_sight import Shipped
from pages.ui.loading import Current

_ALONG: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 1.0}, "delta": {"delta": None}, "k": {"k": 1},
}  # fmt: skip
FIRST = next(iter(METRICS))
"""The measure that is seen first: what ships has no other, and is asked for by itself."""


def _written(found: Curve) -> bytes:
    points = [
        (
            point.x, point.mechanism, str(point.verdict), point.metrics[FIRST].tolist(),
            point.shape, point.unit, point.distance_bound,
        )
        for point in found.points
    ]  # fmt: skip
    return json.dumps([points, found.skipped]).encode()


def _read(text: bytes) -> Curve:
    points, skipped = json.loads(text)
    return Curve(
        tuple(
            CurvePoint(
                x, name, Verdict(verdict), {FIRST: np.array(values)}, tuple(shape), unit, bound
            )
            for x, name, verdict, values, shape, unit, bound in points
        ),
        skipped,
        1.0,
    )


_CURVES = Shipped("curves", _read, _written)
_LINES = Shipped[Line](
    "lines",
    lambda text: Line(tuple((name, x, y, said) for name, x, y, said in json.loads(text)), 1.0),
    lambda found: json.dumps(found.rows).encode(),
)
_MARKS = Shipped[pd.DataFrame](
    "marks",
    lambda text: pd.DataFrame(**json.loads(text)),
    lambda table: json.dumps(table.to_dict("split", index=False)).encode(),
)


def _options(
    settings: Settings, mechanism: Mechanism, axis: str, count: int, metric: str
) -> dict[str, Any]:
    """Return what a curve is asked with: what it is plotted along does not name it."""
    along = replace(settings, mechanisms=(), **_ALONG.get(axis, {}))
    # the first measure by itself, as it ships; all of them once another is wanted
    measures = (FIRST,) if metric == FIRST and settings.post == "none" else tuple(METRICS)
    named = {"settings": along, "mechanism": mechanism, "axis": axis, "count": count}
    return named | {"metrics": measures}


def whole(about: Current, mechanisms: Sequence[Mechanism], axis: str, metric: str) -> bool:
    """Return whether every curve is known, so that nothing is drawn for it."""
    asked = [_options(about.settings, one, axis, axes.FINE, metric) for one in mechanisms]
    return all(known(curve, one, about, ships=_CURVES) is not None for one in asked)


def drawn(
    about: Current,
    mechanisms: Sequence[Mechanism],
    axis: str,
    count: int,
    metric: str,
    show: Callable[[list[CurvePoint]], object] = len,
) -> tuple[list[CurvePoint], list[tuple[str, str]]]:
    """Return every variant at every default value of an axis, and what cannot run.

    One variant after the other; ``show`` is called with all points so far.
    """
    points: list[CurvePoint] = []
    skipped: list[tuple[str, str]] = []
    # a line of progress has a button, and so a name of its own
    told = f"Drawing releases of {about.settings.table}"
    at = cache(partial(axes.rows_at, about.prepared))
    with st.container():
        for one in mechanisms:
            options = _options(about.settings, one, axis, count, metric)
            found = Curve()
            try:
                found = ask(
                    curve,
                    options,
                    about,
                    draw=lambda part: show([*points, *part.points]),
                    saying=f"{told}: {one.label}",
                    aside={"draw": InTime(about.settings.trials), "at": at},
                    ships=_CURVES if options["metrics"] == (FIRST,) else None,
                )
            except limits.NotHere as error:
                skipped.append((one.text, str(error).removesuffix(".")))
            points.extend(found.points)
            show(points)
            if found.skipped is not None:
                skipped.append((one.text, found.skipped))
    return points, skipped


def predicted(
    about: Current,
    mechanisms: Sequence[Mechanism],
    axis: str,
    metric: str,
    show: Callable[[pd.DataFrame], object] = id,
) -> pd.DataFrame:
    """Return the predicted curve of each variant that has one; ``show`` is told on the way."""
    settings = replace(about.settings, mechanisms=(), trials=1, **_ALONG.get(axis, {}))
    rows: list[tuple[str, float, float, str]] = []
    at = cache(partial(axes.rows_at, about.prepared))

    def table(more: Line = Line()) -> pd.DataFrame:  # noqa: B008, it is frozen
        return pd.DataFrame([*rows, *more.rows], columns=list(PREDICTION_COLUMNS))

    with st.container():
        for one in mechanisms:
            found = ask(
                line,
                {"settings": settings, "mechanism": one, "axis": axis, "metric": metric},
                about,
                draw=lambda part: show(table(part)) if part.rows else None,
                saying=f"Predicting: {one.label}",
                aside={"at": at},
                ships=_LINES if metric == FIRST else None,
            )
            rows.extend(found.rows)
    return table()


def marks(about: Current, mechanisms: Sequence[Mechanism]) -> pd.DataFrame:
    """Return the epsilon from which on each variant finds each component.

    All of a few are marked, of many those with a colour.
    """
    settings = replace(about.settings, epsilon=1.0, mechanisms=(), trials=1)
    few = len(mechanisms) <= FEW
    with st.container():
        return pd.concat(
            ask(
                marks_of,
                {"settings": settings, "mechanisms": (one,)},
                about,
                saying=f"Predicting: {one.label}, its components",
                ships=_MARKS,
            )
            for one in mechanisms
            if few or colour_of(one) != GREY
        )


def judged(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return how each variant is shown, with its claim judged: that depends on no data."""
    options = {"mechanisms": tuple(mechanisms), "problem": problem, "budget": budget}
    return ask(panels_of, options, saying="Judging claims")


def coloured_first(mechanisms: Sequence[Mechanism]) -> list[Mechanism]:
    """Return mechanisms with those that have a colour of their own in front."""
    return sorted(mechanisms, key=lambda one: (colour_of(one) == GREY, one.info.highlight))
