"""Curves along one axis: default values, bands over draws, frontier, prediction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import METRICS, chance_distance, optimum, summarise
from dpviz.core.release import Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.simulation.axes import rows_at, settings_at, where
from dpviz.simulation.bounds import (
    davis_kahan,
    found_at,
    low_rank_error_scaling,
    pure_error_floor_scaling,
)
from dpviz.simulation.compare import Result
from dpviz.simulation.predict import predicted_spectrum as spectrum_of_noisy

BAND_COLUMNS = ("mechanism", "x", "mean", "se", "low", "high", "draws", "verdict")
BOUND_COLUMNS = ("mechanism", "x", "value")
DRAW_COLUMNS = ("mechanism", "trial", "x", "value")
LINE_COLUMNS = ("label", "x", "value")
SINGLE_DRAWS = 20  # more lines than this are a band

SQUARED_BOUND = "squared row bound"


@dataclass(frozen=True)
class CurvePoint:
    """One variant at one value of an axis.

    Attributes
    ----------
    x : float
        Where it is drawn: the value, or the row bound in units of the table.
    mechanism : str
        Text of the variant.
    verdict : Verdict
        On its claim here.
    metrics : dict of str to ndarray of shape (trials,)
    shape : (int, int)
        Features and components.
    unit : float
        Squared row bound here over that of the base setting.
    distance_bound : float or None
        Davis-Kahan bound on the projection distance, or None where it is silent.
    before : dict of str to ndarray of shape (trials,), or None
        The metrics as released, where the others are after post-processing.
    """

    x: float
    mechanism: str
    verdict: Verdict
    metrics: Mapping[str, FloatArray]
    shape: tuple[int, int]
    unit: float = 1.0
    distance_bound: float | None = None
    before: Mapping[str, FloatArray] | None = None

    def as_released(self) -> CurvePoint:
        """Return the point of the same releases before post-processing."""
        return replace(self, metrics=self.before or {}, before=None)

    def scale(self, metric: str) -> float:
        """Return what turns a value into the units of the base setting."""
        return self.unit if METRICS[metric].unit == SQUARED_BOUND else 1.0


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


def band_table(points: Iterable[CurvePoint], metric: str) -> pd.DataFrame:
    """Return mean, standard error and range of one metric at each point.

    Returns
    -------
    DataFrame
        Columns `BAND_COLUMNS`; low and high hold the central 95 % of the draws.
    """
    rows = []
    for point in points:
        values = point.metrics.get(metric)
        if values is None:
            continue
        summary = summarise(values * point.scale(metric))
        rows.append(
            (
                point.mechanism,
                point.x,
                summary.mean,
                summary.se,
                summary.low,
                summary.high,
                len(values),
                str(point.verdict),
            )
        )
    table = pd.DataFrame(rows, columns=list(BAND_COLUMNS))
    return table.sort_values(["mechanism", "x"], ignore_index=True)


def draw_table(points: Iterable[CurvePoint], metric: str, most: int = SINGLE_DRAWS) -> pd.DataFrame:
    """Return one metric of the first draws, trial by trial.

    A trial keeps its stream along the axis, so that each is a curve of its own.

    Returns
    -------
    DataFrame
        Columns `DRAW_COLUMNS`.
    """
    parts = []
    for point in points:
        values = point.metrics.get(metric)
        if values is not None:
            shown = values[:most] * point.scale(metric)
            text = point.mechanism
            parts += [(text, trial, point.x, float(value)) for trial, value in enumerate(shown)]
    # sorted along each trial, as a line is drawn through the points in their order
    table = pd.DataFrame(parts, columns=list(DRAW_COLUMNS))
    return table.sort_values(["mechanism", "trial", "x"], ignore_index=True)


def bound_table(points: Iterable[CurvePoint], metric: str) -> pd.DataFrame:
    """Return the Davis-Kahan bound on a distance, where the theorem speaks.

    ``||VV' - UU'||_F`` bounds the sine of the largest angle as well: the
    difference has the eigenvalues plus and minus each sine, so the sine is at
    most the norm over sqrt(2).

    Returns
    -------
    DataFrame
        Columns `BOUND_COLUMNS`; empty for other metrics.
    """
    found = []
    for point in points:
        bound = point.distance_bound
        if bound is None or metric not in ("projection_distance", "largest_angle"):
            continue
        value = bound
        if metric == "largest_angle":
            # sqrt(2) times the norm of the sines, of which the largest is at most that norm
            value = math.asin(min(1.0, bound / math.sqrt(2)))
        if value >= METRICS[metric].upper(*point.shape):
            continue  # true, and says nothing
        found.append((point.mechanism, point.x, value))
    table = pd.DataFrame(found, columns=list(BOUND_COLUMNS))
    return table.sort_values(["mechanism", "x"], ignore_index=True)


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


def frontier(bands: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the best variant at each x among those whose claim does not fail there.

    Where the draws cannot tell the best from the second (their means are within
    three standard errors of the difference) there is no row.

    Returns
    -------
    DataFrame
        Rows of ``bands``; empty for a metric without a direction.
    """
    measure = METRICS[metric]
    kept = bands[[Verdict(verdict).counts for verdict in bands["verdict"]]]
    # of a count of negative eigenvalues none is best
    if measure.better == "neither" or kept.empty:
        return kept.iloc[:0]
    # stable, so that equal means keep the order of the list
    ordered = kept.sort_values("mean", ascending=measure.better == "lower", kind="stable")
    rows = []
    for _, ranked in ordered.groupby("x"):
        best = ranked.iloc[:1]
        if len(ranked) > 1:
            mean, se = ranked["mean"].to_numpy()[:2], ranked["se"].to_numpy()[:2]
            # luck names no winner; a NaN, of a single draw, names none either
            if not abs(mean[0] - mean[1]) > 3 * math.hypot(se[0], se[1]):
                continue
        rows.append(best)
    return pd.concat(rows, ignore_index=True) if rows else kept.iloc[:0]


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


def predicted_spectrum(
    measured: Measured, settings: Settings, mechanism: Mechanism
) -> list[float] | None:
    """Return the noisy eigenvalues expected without a draw, descending, or None."""
    if measured.raw is not None:
        return None
    problem, budget = measured.problem(settings), measured.budget(settings)
    noise = mechanism.free_noise(mechanism.calibrate(problem, budget))
    if noise is None:
        return None
    expected = spectrum_of_noisy(measured.moment.eigenvalues, noise)
    return [float(value) for value in expected]
