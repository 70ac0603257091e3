"""Curves along one axis: default values, bands over draws, frontier, prediction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import METRICS, Metric, metric_of, summarise
from dpviz.core.release import Verdict

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


def draw_table(points: Iterable[CurvePoint], metric: str) -> pd.DataFrame:
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
            shown = values[:SINGLE_DRAWS] * point.scale(metric)
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


def frontier(bands: pd.DataFrame, metric: str | Metric) -> pd.DataFrame:
    """Return the best variant at each x among those whose claim does not fail there.

    Where the draws cannot tell the best from the second (their means are within
    three standard errors of the difference) there is no row.

    Returns
    -------
    DataFrame
        Rows of ``bands``; empty for a metric without a direction.
    """
    measure = metric_of(metric)
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
