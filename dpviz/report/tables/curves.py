"""Curves along one axis: default values, bands, frontier, prediction."""

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
SINGLE_DRAWS = 20  # With more lines, the chart would look like a filled band.

SQUARED_BOUND = "squared row-norm bound"


@dataclass(frozen=True)
class CurvePoint:
    """One variant at one value of an axis.

    Attributes
    ----------
    x : float
        Position on the axis: the value of the axis, or the row-norm bound in units of the table.
    mechanism : str
        Text of the variant.
    verdict : Verdict
        Verdict on the claim at this value.
    metrics : dict of str to ndarray of shape (trials,)
    shape : (int, int)
        Numbers of features and of components.
    unit : float
        Squared row-norm bound at this value, divided by the squared bound of the base setting.
    distance_bound : float or None
        Davis-Kahan bound on the projection distance, or None if there is none.
    before : dict of str to ndarray of shape (trials,), or None
        Metrics as released, if ``metrics`` are after post-processing.
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
        """Return the factor that converts a metric to the units of the base setting."""
        return self.unit if METRICS[metric].unit == SQUARED_BOUND else 1.0


def band_table(points: Iterable[CurvePoint], metric: str) -> pd.DataFrame:
    """Return mean, standard error and range of one metric at each point.

    Returns
    -------
    DataFrame
        Table with `BAND_COLUMNS`; low and high hold the central 95 % of the simulated releases.
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
    """Return one metric of the first simulated releases, trial by trial.

    A trial keeps its random stream along the axis, so that its values form one curve.

    Returns
    -------
    DataFrame
        Table with `DRAW_COLUMNS`.
    """
    parts = []
    for point in points:
        values = point.metrics.get(metric)
        if values is not None:
            draws = values[:SINGLE_DRAWS] * point.scale(metric)
            text = point.mechanism
            parts += [(text, trial, point.x, float(value)) for trial, value in enumerate(draws)]
    # Sort the points of each trial along the axis, because a line connects points in their order.
    table = pd.DataFrame(parts, columns=list(DRAW_COLUMNS))
    return table.sort_values(["mechanism", "trial", "x"], ignore_index=True)


def bound_table(points: Iterable[CurvePoint], metric: str) -> pd.DataFrame:
    """Return the Davis-Kahan bound on a distance, if the theorem applies.

    ``||VV' - UU'||_F`` bounds the sine of the largest angle as well: the
    difference has the eigenvalues plus and minus each sine, so the sine is at
    most the norm over sqrt(2).

    Returns
    -------
    DataFrame
        Table with `BOUND_COLUMNS`; empty for other metrics.
    """
    rows = []
    for point in points:
        bound = point.distance_bound
        if bound is None or metric not in ("projection_distance", "largest_angle"):
            continue
        value = bound
        if metric == "largest_angle":
            # The theorem bounds the norm of the sines, up to sqrt(2), and so the largest sine too.
            value = math.asin(min(1.0, bound / math.sqrt(2)))
        if value >= METRICS[metric].upper(*point.shape):
            continue  # A bound this large is true but says nothing.
        rows.append((point.mechanism, point.x, value))
    table = pd.DataFrame(rows, columns=list(BOUND_COLUMNS))
    return table.sort_values(["mechanism", "x"], ignore_index=True)


def frontier(bands: pd.DataFrame, metric: str | Metric) -> pd.DataFrame:
    """Return the best variant at each x among variants whose claim does not fail there.

    An x has no row if simulated releases cannot distinguish the best variant from the second: their
    means are within three standard errors of the difference.

    Returns
    -------
    DataFrame
        Table with rows of ``bands``; empty for a metric that is neither better high nor low.
    """
    measure = metric_of(metric)
    counting = bands[[Verdict(verdict).counts for verdict in bands["verdict"]]]
    # No number of negative eigenvalues is better than another number, so there is no best variant.
    if measure.better == "neither" or counting.empty:
        return counting.iloc[:0]
    # Use a stable sort, so that mechanisms with equal means keep the order of the list.
    best_first = counting.sort_values("mean", ascending=measure.better == "lower", kind="stable")
    rows = []
    for _, group in best_first.groupby("x"):
        best = group.iloc[:1]
        if len(group) > 1:
            mean, se = group["mean"].to_numpy()[:2], group["se"].to_numpy()[:2]
            # Name no winner whose lead may be chance, or whose error is NaN after one release.
            if not abs(mean[0] - mean[1]) > 3 * math.hypot(se[0], se[1]):
                continue
        rows.append(best)
    return pd.concat(rows, ignore_index=True) if rows else counting.iloc[:0]
