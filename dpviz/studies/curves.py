"""One mechanism along one axis, drawn and expected: what the page Trade-offs asks point by point.

`dpviz.sweep` answers the same of a whole grid; its table holds the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.cancelling import check_cancelled
from dpviz.core.metrics import METRICS, Metric, chance_distance, optimum, summarise
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.curves import LINE_COLUMNS, SQUARED_BOUND, CurvePoint
from dpviz.simulation import axes
from dpviz.simulation.axes import rows_at, settings_at, where
from dpviz.simulation.bounds import (
    davis_kahan,
    found_at,
    low_rank_error_scaling,
    pure_error_floor_scaling,
)
from dpviz.simulation.cells import Skipped
from dpviz.simulation.compare import Draw, Result, attempt, compare
from dpviz.simulation.expectation import expect

PREDICTION_COLUMNS = ("mechanism", "x", "value", "verdict")
At = Callable[[str, Any, int], Measured]
"""The table at one value of an axis, with a seed."""


@dataclass(frozen=True)
class Curve:
    """Points of one mechanism.

    Attributes
    ----------
    points : tuple of CurvePoint
    skipped : str or None
        Why it cannot run at some values.
    share : float
        How much of the curve there is.
    """

    points: tuple[CurvePoint, ...] = ()
    skipped: str | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Line:
    """What is expected of one mechanism without a draw.

    Attributes
    ----------
    rows : tuple of tuple
        Of `PREDICTION_COLUMNS`.
    share : float
        How much of the line there is.
    """

    rows: tuple[tuple[str, float, float, str], ...] = ()
    share: float = 0.0


def curve(
    rows: Measured,
    *,
    settings: Settings,
    mechanism: Mechanism,
    axis: str,
    count: int,
    metrics: Sequence[str | Metric] = tuple(METRICS),
    draw: Draw = attempt,
    at: At | None = None,
) -> Iterator[Curve]:
    """Yield the draws of a mechanism at more and more default values of an axis.

    Parameters
    ----------
    rows : Measured
    settings : Settings
        What is plotted along is set at each value, and the mechanism.
    mechanism : Mechanism
    axis : str
        One of `dpviz.simulation.axes.AXES`.
    count : int
        `dpviz.simulation.axes.COARSE` or `FINE`.
    metrics : sequence of str or Metric
    draw : callable
        As in `dpviz.simulation.compare.compare`.
    at : callable, optional
        As in `line`.
    """
    values = axes.default_values(axis, rows, count)
    points, skipped = list[CurvePoint](), None
    for done, value in enumerate(values):
        yield Curve(tuple(points), skipped, done / len(values))
        here = replace(axes.settings_at(settings, axis, value), mechanisms=(mechanism.text,))
        measured = (at or _at(rows))(axis, value, here.seed)
        found = compare(measured, here, metrics=metrics, strict=False, draw=draw)
        for result in found.results:
            points.append(point_at(rows, measured, here, axis, value, result))
        for one in found.skipped:
            skipped = skipped or one.reason
    yield Curve(tuple(points), skipped, 1.0)


def line(
    rows: Measured,
    *,
    settings: Settings,
    mechanism: Mechanism,
    axis: str,
    metric: str,
    at: At | None = None,
) -> Iterator[Line]:
    """Yield what is expected of a mechanism at more and more values of an axis, without a draw.

    Behind a preparation that is paid for nothing is. Parameters are those of `curve`, and:

    metric : str
    at : callable, optional
        Takes axis, value and seed, and returns the table there: from a cache, if several ask.
    """
    values = axes.default_values(axis, rows, axes.FINE) if rows.raw is None else []
    found: list[tuple[str, float, float, str]] = []
    for done, value in enumerate(values):
        yield Line(tuple(found), done / len(values))
        check_cancelled()
        measured = (at or _at(rows))(axis, value, settings.seed)
        seen = expect(measured, axes.settings_at(settings, axis, value), mechanism)
        # a hole in the line, where others may go on
        if isinstance(seen, Skipped) or (expected := seen.metric(metric)) is None:
            continue
        x, unit = axes.where(rows, measured, axis, value)
        # along the row bound the unit itself changes: all are told in that of the setting
        scale = unit if METRICS[metric].unit == SQUARED_BOUND else 1.0
        verdict = seen.account.status.verdict
        found.append((mechanism.text, x, expected * scale, str(verdict)))
    yield Line(tuple(found), 1.0)


def _at(rows: Measured) -> At:
    return lambda axis, value, seed: axes.rows_at(rows, axis, value, seed)


def point_at(
    rows: Measured, measured: Measured, settings: Settings, axis: str, value: Any, result: Result
) -> CurvePoint:
    """Return a result as a point of a curve.

    Parameters
    ----------
    rows : Measured
        The base setting's.
    measured : Measured
        The table at this value.
    settings : Settings
        At this value.
    axis : str
    value : Any
    result : Result
    """
    x, unit = where(rows, measured, axis, value)
    d, k = result.components.shape[1:]
    return CurvePoint(
        x, result.mechanism.text, result.status.verdict, result.metrics, (d, k), unit,
        _distance_bound(measured, settings.k, result), result.before,
    )  # fmt: skip


def _distance_bound(measured: Measured, k: int, result: Result) -> float | None:
    """Return the Davis-Kahan bound that 97.5 % of the draws are under, or None.

    The noise is all that parts the release from the reference: the drawn noise,
    at the norm that 97.5 % of draws stay below, and what bounding or sampling
    the rows did.
    """
    if result.before is not None:
        return None  # weighed components are those of another matrix
    norms = result.metrics.get("noise_spectral")
    values = measured.reference.eigenvalues
    # no matrix, no gap, or another table in each draw: the theorem is silent
    if norms is None or k >= measured.d or measured.raw is not None:
        return None
    moved = 0.0
    if measured.reference is not measured.moment:
        moved = float(np.abs(np.linalg.eigvalsh(measured.moment.A - measured.reference.A)).max())
    # a triangle inequality: what was drawn, and what bounding the rows moved before
    noise = summarise(norms).high + moved
    return davis_kahan(k, noise, float(values[k - 1] - values[k]))


def scaling_table(
    rows: Measured, settings: Settings, axis: str, values: Sequence[Any], metric: str
) -> pd.DataFrame:
    """Return orders of growth whose constant is unknown: to be read as slopes.

    Returns
    -------
    DataFrame
        Columns `LINE_COLUMNS`; empty for metrics without one.
    """
    found = []
    # orders of growth are printed for these two alone
    for value in values if metric in ("low_rank_error", "noise_spectral") else ():
        # the same subsample as the draws', as its own spectrum is what they meet
        measured = rows_at(rows, axis, value, settings.seed)
        here = settings_at(settings, axis, value)
        x, unit = where(rows, measured, axis, value)
        scale = unit * measured.domain.radius**2
        n, d, epsilon = measured.n, measured.d, here.epsilon
        # theory is for rows in the unit ball, and noise grows with the squared radius
        floor = scale * pure_error_floor_scaling(d, n, epsilon)
        found.append(("least of any pure release, d/(n epsilon)", x, floor))
        if metric == "low_rank_error" and here.k < d:
            noise = scale * low_rank_error_scaling(d, n, epsilon, 0.0)
            rest = unit * float(measured.reference.eigenvalues[here.k])
            found.append(("Wishart, next eigenvalue + d ln d/(n epsilon)", x, rest + noise))
    table = pd.DataFrame(found, columns=list(LINE_COLUMNS))
    return table.sort_values(["label", "x"], ignore_index=True)


def limits(rows: Measured, settings: Settings, metric: str) -> tuple[float | None, float | None]:
    """Return (floor of a random subspace, ceiling without privacy), where known exactly.

    The projection distance of a random subspace is the root of its mean square.
    """
    best = optimum(rows.reference, settings.k)
    total = rows.reference.total
    # a random direction captures 1/d of all variance on average
    chance = settings.k / rows.d * total
    if metric == "recovery":
        return 0.0, 1.0
    if metric == "captured_share":
        return chance / best, 1.0
    if metric == "captured_total":
        return chance / total, best / total
    if metric == "projection_distance":
        return chance_distance(rows.d, settings.k), 0.0
    # exact PCA leaves the next eigenvalue; with all directions it leaves nothing
    if metric == "low_rank_error" and settings.k < rows.d:
        return None, float(rows.reference.eigenvalues[settings.k])
    return None, None


def limit_table(
    rows: Measured, settings: Settings, axis: str, values: Sequence[Any], metric: str
) -> pd.DataFrame:
    """Return `limits` along an axis; they move with k alone.

    Returns
    -------
    DataFrame
        Columns `LINE_COLUMNS`; empty where nothing is known.
    """
    found = []
    for value in values:
        x = where(rows, rows_at(rows, axis, value, settings.seed), axis, value)[0]
        known = limits(rows, settings_at(settings, axis, value), metric)
        for label, level in zip(("random subspace", "without privacy"), known, strict=True):
            if level is not None:
                found.append((label, x, level))
    table = pd.DataFrame(found, columns=list(LINE_COLUMNS))
    return table.sort_values(["label", "x"], ignore_index=True)


def marks(rows: Measured, settings: Settings, mechanisms: Sequence[Mechanism]) -> pd.DataFrame:
    """Return the epsilon from which on each of the first k components is found.

    Returns
    -------
    DataFrame
        Columns mechanism, component, epsilon; only those on the axis, and only
        of mechanisms whose noise has a limiting law.
    """
    problem, budget = rows.problem(settings), rows.budget(settings)
    found = []
    for mechanism in mechanisms if rows.raw is None else ():
        if mechanism.why_not(problem, budget) is not None:
            continue
        if mechanism.free_noise(mechanism.calibrate(problem, budget)) is None:
            continue
        values, most = rows.moment.eigenvalues, min(settings.k, 5)
        for number, epsilon in enumerate(
            found_at(mechanism, problem, budget.delta, values, most), start=1
        ):
            if 0.01 < epsilon <= 100:  # beyond the axis a mark would only stretch it
                found.append((mechanism.text, number, float(epsilon)))
    return pd.DataFrame(found, columns=["mechanism", "component", "epsilon"])
