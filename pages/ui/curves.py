"""Curves along an axis for pages, with a separate request for each mechanism."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
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
_SPAN = (0.046, 10.0)
"""Epsilons that a chart shows; outside, all lines are flat."""
FIRST = next(iter(METRICS))
"""The measure shown first; shipped curves have only this measure, so request it alone."""


def _write(answer: Curve) -> bytes:
    points = [
        (
            point.x, point.mechanism, str(point.verdict), point.metrics[FIRST].tolist(),
            point.shape, point.unit, point.distance_bound,
        )
        for point in answer.points
    ]  # fmt: skip
    return json.dumps([points, answer.skipped]).encode()


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


_CURVES = Shipped("curves", _read, _write)
_LINES = Shipped[Line](
    "lines",
    lambda text: Line(tuple((name, x, y, mark) for name, x, y, mark in json.loads(text)), 1.0),
    lambda answer: json.dumps(answer.rows).encode(),
)
_MARKS = Shipped[pd.DataFrame](
    "marks",
    lambda text: pd.DataFrame(**json.loads(text)),
    lambda table: json.dumps(table.to_dict("split", index=False)).encode(),
)


def _options(
    settings: Settings, mechanism: Mechanism, axis: str, count: int, metric: str
) -> dict[str, Any]:
    """Return the options of a curve; the setting along its axis is not part of its key."""
    along = replace(settings, mechanisms=(), **_ALONG.get(axis, {}))
    # Request only the first metric, because it is shipped. For another metric, request all.
    measures = (FIRST,) if metric == FIRST and settings.post == "none" else tuple(METRICS)
    options = {"settings": along, "mechanism": mechanism, "axis": axis, "count": count}
    return options | {"metrics": measures}


def shown(settings: Settings, axis: str, x: float) -> bool:
    """Return whether the chart has a value: no epsilon far from both the range and the setting."""
    low, high = _SPAN
    now = settings.epsilon
    return axis != "epsilon" or min(low, now / 2.1) <= x <= max(high, 2.1 * now)


def whole(about: Current, mechanisms: Sequence[Mechanism], axis: str, metric: str) -> bool:
    """Return whether every curve is known, so that nothing needs simulation."""
    queries = [_options(about.settings, one, axis, axes.FINE, metric) for one in mechanisms]
    return all(known(curve, one, about, ships=_CURVES) is not None for one in queries)


def drawn(
    about: Current,
    mechanisms: Sequence[Mechanism],
    axis: str,
    count: int,
    metric: str,
    show: Callable[[list[CurvePoint]], object] = len,
) -> tuple[list[CurvePoint], list[tuple[str, str]]]:
    """Return every variant at every default value of an axis, and the variants that cannot run.

    Variants are computed one after the other; ``show`` is called with all points so far.
    """
    points: list[CurvePoint] = []
    skipped: list[tuple[str, str]] = []
    # A progress line has a button, and each button needs a unique text.
    words = f"Simulating releases of {about.settings.table}"
    at = cache(axes.rows_at)

    def kept(part: Curve) -> list[CurvePoint]:
        return [point for point in part.points if shown(about.settings, axis, point.x)]

    with st.container():
        for one in mechanisms:
            options = _options(about.settings, one, axis, count, metric)
            answer = Curve()
            try:
                answer = ask(
                    curve,
                    options,
                    about,
                    draw=lambda part: show([*points, *kept(part)]),
                    saying=f"{words}: {one.label}",
                    aside={"draw": InTime(about.settings.trials), "at": at},
                    ships=_CURVES if options["metrics"] == (FIRST,) else None,
                )
            except limits.NotHere as error:
                skipped.append((one.text, str(error).removesuffix(".")))
            points.extend(kept(answer))
            show(points)
            if answer.skipped is not None:
                skipped.append((one.text, answer.skipped))
    return points, skipped


def predicted(
    about: Current,
    mechanisms: Sequence[Mechanism],
    axis: str,
    metric: str,
    show: Callable[[pd.DataFrame], object] = id,
) -> pd.DataFrame:
    """Return the predicted curve of each variant that has one; ``show`` gets interim tables."""
    settings = replace(about.settings, mechanisms=(), trials=1, **_ALONG.get(axis, {}))
    rows: list[tuple[str, float, float, str]] = []
    at = cache(axes.rows_at)

    def table(more: Line = Line()) -> pd.DataFrame:  # noqa: B008, it is frozen
        kept = [row for row in (*rows, *more.rows) if shown(about.settings, axis, row[1])]
        return pd.DataFrame(kept, columns=list(PREDICTION_COLUMNS))

    with st.container():
        for one in mechanisms:
            answer = ask(
                line,
                {"settings": settings, "mechanism": one, "axis": axis, "metric": metric},
                about,
                draw=lambda part: show(table(part)) if part.rows else None,
                saying=f"Predicting: {one.label}",
                aside={"at": at},
                ships=_LINES if metric == FIRST else None,
            )
            rows.extend(answer.rows)
    return table()


def marks(about: Current, mechanisms: Sequence[Mechanism]) -> pd.DataFrame:
    """Return the epsilon from which on each variant finds each component.

    If there are few variants, all are marked; if there are many, only coloured ones.
    """
    settings = replace(about.settings, epsilon=1.0, mechanisms=(), trials=1)
    few = len(mechanisms) <= FEW
    with st.container():
        found = pd.concat(
            ask(
                marks_of,
                {"settings": settings, "mechanisms": (one,)},
                about,
                saying=f"Predicting components of {one.label}",
                ships=_MARKS,
            )
            for one in mechanisms
            if few or colour_of(one) != GREY
        )
    return found[[shown(about.settings, "epsilon", x) for x in found["epsilon"]]]


def judged(mechanisms: Sequence[Mechanism], problem: Problem, budget: Budget) -> list[Panel]:
    """Return each variant's panel with the verdict on its claim, which needs no data."""
    options = {"mechanisms": tuple(mechanisms), "problem": problem, "budget": budget}
    return ask(panels_of, options, saying="Judging claims")


def coloured_first(mechanisms: Sequence[Mechanism]) -> list[Mechanism]:
    """Return mechanisms, with those that have their own colour first."""
    return sorted(mechanisms, key=lambda one: (colour_of(one) == GREY, one.info.highlight))
