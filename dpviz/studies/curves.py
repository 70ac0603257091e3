"""Curves of one mechanism along one axis, simulated and predicted, for the page Trade-offs.

`dpviz.sweep` computes the same values for a whole grid, with the same simulated releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from dpviz.simulation.compare import Draw, Result, attempt
from dpviz.simulation.expectation import expect
from dpviz.simulation.sweep import At, along

PREDICTION_COLUMNS = ("mechanism", "x", "value", "verdict")


@dataclass(frozen=True)
class Curve:
    """Points of one mechanism along an axis.

    Attributes
    ----------
    points : tuple of CurvePoint
    skipped : str or None
        Reasons why the mechanism cannot run at some values.
    share : float
        Completed share of the curve.
    """

    points: tuple[CurvePoint, ...] = ()
    skipped: str | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Line:
    """Prediction for one mechanism, without simulation.

    Attributes
    ----------
    rows : tuple of tuple
        Rows of the line, with `PREDICTION_COLUMNS`.
    share : float
        Completed share of the line.
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
    at: At = rows_at,
) -> Iterator[Curve]:
    """Yield a mechanism's curve, with one more default value of an axis each time.

    Parameters
    ----------
    rows : Measured
    settings : Settings
        Base settings; the axis and the mechanism are replaced at each value.
    mechanism : Mechanism
    axis : str
        Axis, one of `dpviz.simulation.axes.AXES`.
    count : int
        Spacing of the values, `dpviz.simulation.axes.COARSE` or `FINE`.
    metrics : sequence of str or Metric
    draw : callable
        Argument of `dpviz.simulation.compare.compare`.
    at : callable
        Argument of `dpviz.simulation.sweep.along`.
    """
    values = axes.default_values(axis, rows, count)
    one_variant = replace(settings, mechanisms=(mechanism.text,))
    points, skipped = list[CurvePoint](), None
    comparisons = along(rows, one_variant, axis, values, metrics, draw=draw, at=at)
    for place, value in enumerate(values):
        yield Curve(tuple(points), skipped, place / len(values))
        comparison = next(comparisons)
        for result in comparison.results:
            there, here = comparison.prepared, comparison.settings
            points.append(point_at(rows, there, here, axis, value, result))
        for one in comparison.skipped:
            skipped = skipped or one.reason
    yield Curve(tuple(points), skipped, 1.0)


def line(
    rows: Measured,
    *,
    settings: Settings,
    mechanism: Mechanism,
    axis: str,
    metric: str,
    at: At = rows_at,
) -> Iterator[Line]:
    """Yield a mechanism's predicted line, with one more value of an axis each time.

    The line is empty after a private preparation. The parameters of `curve`, and in addition:

    metric : str
    at : callable
        Argument of `dpviz.simulation.sweep.along`.
    """
    values = axes.default_values(axis, rows, axes.FINE) if rows.raw is None else []
    points: list[tuple[str, float, float, str]] = []
    for place, value in enumerate(values):
        yield Line(tuple(points), place / len(values))
        check_cancelled()
        table = at(rows, axis, value, settings.seed, False)
        expectation = expect(table, axes.settings_at(settings, axis, value), mechanism)
        # There may be no prediction at this value, but the line may continue at the next value.
        if isinstance(expectation, Skipped) or (expected := expectation.metric(metric)) is None:
            continue
        x, unit = axes.where(rows, table, axis, value)
        # The row-norm bound changes the unit, so convert all values to the setting's unit.
        scale = unit if METRICS[metric].unit == SQUARED_BOUND else 1.0
        verdict = expectation.account.status.verdict
        points.append((mechanism.text, x, expected * scale, str(verdict)))
    yield Line(tuple(points), 1.0)


def point_at(
    rows: Measured, table: Measured, settings: Settings, axis: str, value: Any, result: Result
) -> CurvePoint:
    """Return a result as a point of a curve.

    Parameters
    ----------
    rows : Measured
        The table in the base setting.
    table : Measured
        The table at this value of the axis.
    settings : Settings
        Settings at this value of the axis.
    axis : str
    value : Any
    result : Result
    """
    x, unit = where(rows, table, axis, value)
    d, k = result.components.shape[1:]
    return CurvePoint(
        x, result.mechanism.text, result.status.verdict, result.metrics, (d, k), unit,
        _distance_bound(table, settings.k, result), result.before,
    )  # fmt: skip


def _distance_bound(table: Measured, k: int, result: Result) -> float | None:
    """Return the Davis-Kahan bound that 97.5 % of the releases meet, or None.

    Two effects separate the release from the reference: the simulated noise, at the norm that 97.5
    % of releases stay below, and the bounding or sampling of rows.
    """
    if result.before is not None:
        return None  # After post-processing, the components belong to another matrix.
    norms = result.metrics.get("noise_spectral")
    values = table.reference.eigenvalues
    # The theorem needs a matrix, an eigengap, and the same table in all releases.
    if norms is None or k >= table.d or table.raw is not None:
        return None
    shift = 0.0
    if table.reference is not table.moment:
        shift = float(np.abs(np.linalg.eigvalsh(table.moment.A - table.reference.A)).max())
    # By the triangle inequality, add the noise and the earlier effect of bounding the rows.
    noise = summarise(norms).high + shift
    return davis_kahan(k, noise, float(values[k - 1] - values[k]))


def scaling_table(
    rows: Measured, settings: Settings, axis: str, values: Sequence[Any], metric: str
) -> pd.DataFrame:
    """Return orders of growth, of which only the slopes have a meaning, as constants are unknown.

    Returns
    -------
    DataFrame
        Table with `LINE_COLUMNS`; empty for metrics without an order of growth.
    """
    lines = []
    # Papers state orders of growth for these two metrics only.
    for value in values if metric in ("low_rank_error", "noise_spectral") else ():
        # Use the releases' subsample of rows, because the orders of growth depend on it.
        table_here = rows_at(rows, axis, value, settings.seed)
        here = settings_at(settings, axis, value)
        x, unit = where(rows, table_here, axis, value)
        scale = unit * table_here.domain.radius**2
        n, d, epsilon = table_here.n, table_here.d, here.epsilon
        # The theory assumes rows in the unit ball. Noise grows with the squared radius.
        floor = scale * pure_error_floor_scaling(d, n, epsilon)
        lines.append(("lower bound for every pure release, d/(n epsilon)", x, floor))
        if metric == "low_rank_error" and here.k < d:
            noise = scale * low_rank_error_scaling(d, n, epsilon, 0.0)
            rest = unit * float(table_here.reference.eigenvalues[here.k])
            lines.append(("Wishart, next eigenvalue + d ln d/(n epsilon)", x, rest + noise))
    table = pd.DataFrame(lines, columns=list(LINE_COLUMNS))
    return table.sort_values(["label", "x"], ignore_index=True)


def limits(rows: Measured, settings: Settings, metric: str) -> tuple[float | None, float | None]:
    """Return (value of a random subspace, value without privacy), if known exactly.

    The projection distance of a random subspace is the root of its mean square.
    """
    best = optimum(rows.reference, settings.k)
    total = rows.reference.total
    # On average, a random direction captures the share 1/d of the total variance.
    chance = settings.k / rows.d * total
    if metric == "recovery":
        return 0.0, 1.0
    if metric == "captured_share":
        return chance / best, 1.0
    if metric == "captured_total":
        return chance / total, best / total
    if metric == "projection_distance":
        return chance_distance(rows.d, settings.k), 0.0
    # The low-rank error of exact PCA is the next eigenvalue. With all d directions it is 0.
    if metric == "low_rank_error" and settings.k < rows.d:
        return None, float(rows.reference.eigenvalues[settings.k])
    return None, None


def limit_table(
    rows: Measured, settings: Settings, axis: str, values: Sequence[Any], metric: str
) -> pd.DataFrame:
    """Return `limits` along an axis; the limits depend only on k.

    Returns
    -------
    DataFrame
        Table with `LINE_COLUMNS`; empty if no value is known.
    """
    lines = []
    for value in values:
        x = where(rows, rows_at(rows, axis, value, settings.seed), axis, value)[0]
        levels = limits(rows, settings_at(settings, axis, value), metric)
        for label, level in zip(("random subspace", "without privacy"), levels, strict=True):
            if level is not None:
                lines.append((label, x, level))
    table = pd.DataFrame(lines, columns=list(LINE_COLUMNS))
    return table.sort_values(["label", "x"], ignore_index=True)


def marks(rows: Measured, settings: Settings, mechanisms: Sequence[Mechanism]) -> pd.DataFrame:
    """Return the epsilon above which each of the first k components is found.

    Returns
    -------
    DataFrame
        Table with columns mechanism, component, epsilon. It has only epsilons on the axis, and only
        mechanisms whose noise has a limiting distribution.
    """
    problem, budget = rows.problem(settings), rows.budget(settings)
    numbers = []
    for mechanism in mechanisms if rows.raw is None else ():
        if mechanism.why_not(problem, budget) is not None:
            continue
        if mechanism.free_noise(mechanism.calibrate(problem, budget)) is None:
            continue
        values, most = rows.moment.eigenvalues, min(settings.k, 5)
        for number, epsilon in enumerate(
            found_at(mechanism, problem, budget.delta, values, most), start=1
        ):
            if 0.01 < epsilon <= 100:  # A mark outside this interval would stretch the axis.
                numbers.append((mechanism.text, number, float(epsilon)))
    return pd.DataFrame(numbers, columns=["mechanism", "component", "epsilon"])
