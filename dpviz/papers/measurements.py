"""Measurements of an experiment: one array of simulated values for every point of its charts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dpviz.core.arrays import FloatArray

SUMMARY_COLUMNS = (
    "panel", "series", "quantity", "x", "draws", "mean", "se", "mean_low", "mean_high",
    "low", "high",
)  # fmt: skip


class Point(NamedTuple):
    """Key of one array of simulated values.

    Attributes
    ----------
    panel : str
        Data set or theorem, which is one panel of a chart or one block of a table.
    series : str
        Line of the chart or row of the table, usually a mechanism.
    quantity : str
        Measured quantity, with its unit in words.
    x : float or None
        Value on the chart's x axis; None for a row of a table.
    """

    panel: str
    series: str
    quantity: str
    x: float | None = None


@dataclass(frozen=True)
class Mean:
    """A mean over simulated values, with its 95 % confidence interval and their number.

    Attributes
    ----------
    value, se, low, high : float
        Mean, standard error, and the interval of the mean by Student's t; the last three are NaN
        for a single value.
    draws : int
    """

    value: float
    se: float
    low: float
    high: float
    draws: int

    @classmethod
    def of(cls, values: FloatArray) -> Mean:
        """Return the mean of simulated values, shape (draws,)."""
        count, value = len(values), float(np.mean(values))
        if count < 2:
            return cls(value, math.nan, math.nan, math.nan, count)
        se = float(np.std(values, ddof=1)) / math.sqrt(count)
        return cls.near(value, se, count)

    @classmethod
    def near(cls, value: float, se: float, draws: int) -> Mean:
        """Return a mean with the confidence interval from its standard error."""
        if draws < 2 or math.isnan(se):
            return cls(value, math.nan, math.nan, math.nan, draws)
        # Student's t gives a wider interval, because the standard error of few values is uncertain.
        half = float(stdtrit(draws - 1, 0.975)) * se
        return cls(value, se, value - half, value + half, draws)

    @property
    def half(self) -> float:
        """Half the width of the confidence interval; 0 for a single value."""
        return 0.0 if math.isnan(self.high) else self.high - self.value

    @property
    def error(self) -> float:
        """Standard error of the mean; 0 for a single value."""
        return 0.0 if math.isnan(self.se) else self.se

    def __mul__(self, factor: float) -> Mean:
        """Return the mean multiplied by a constant."""
        return Mean.near(self.value * factor, abs(factor) * self.se, self.draws)

    def __sub__(self, other: Mean) -> Mean:
        """Return the difference of two independent means."""
        error = math.hypot(self.error, other.error)
        return Mean.near(self.value - other.value, error, _fewest(self, other))

    def __truediv__(self, other: Mean) -> Mean:
        """Return the ratio of two independent means, with its error to first order."""
        if other.value == 0:
            # A ratio over 0 is infinite, because any value above 0 exceeds a bound of 0 endlessly.
            return Mean.near(math.copysign(math.inf, self.value), math.nan, 1)
        ratio = self.value / other.value
        error = math.hypot(self.error, ratio * other.error) / abs(other.value)
        return Mean.near(ratio, error, _fewest(self, other))


def _fewest(*means: Mean) -> int:
    """Return the least number of values among means that have an error; 1 if no mean has one."""
    return min((mean.draws for mean in means if mean.error > 0), default=1)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Simulated values by point.

    Attributes
    ----------
    draws : dict of Point to ndarray of shape (draws,)
    """

    draws: dict[Point, FloatArray] = field(default_factory=dict)

    def add(self, other: Measurements) -> None:
        """Append another part's values; at a shared point they follow the existing values."""
        for point, values in other.draws.items():
            mine = self.draws.get(point)
            # Parts are joined in a fixed order, so that the same run gives the same bytes.
            self.draws[point] = values if mine is None else np.concatenate([mine, values])

    def table(self) -> pd.DataFrame:
        """Return a table with one row per point and `SUMMARY_COLUMNS`.

        ``mean_low`` and ``mean_high`` bound the mean (95 %); ``low`` and ``high`` hold the central
        95 % of the simulated values.
        """
        rows = []
        for point, values in self.draws.items():
            mean = Mean.of(values)
            low, high = np.quantile(values, (0.025, 0.975))
            rows.append((*point, mean.draws, mean.value, mean.se, mean.low, mean.high, low, high))
        return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return the values keyed by text, as a store needs them."""
        # Points are written as JSON: arrays in a store have text names, and a point has four parts.
        return {json.dumps(list(point)): values for point, values in self.draws.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, FloatArray]) -> Measurements:
        """Return the measurements from arrays that `to_arrays` made."""
        return cls({Point(*json.loads(text)): values for text, values in arrays.items()})

    def __iter__(self) -> Iterator[Point]:
        return iter(self.draws)


RESULTS = Path(__file__).resolve().parent / "results"
"""Folder of the shipped results of full runs."""


@cache
def shipped_points(key: str, folder: Path = RESULTS) -> pd.DataFrame:
    """Return the shipped points of an experiment; the table is empty if it has no results."""
    path = folder / f"{key}.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["points"] if path.is_file() else []
    points = pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))
    for name in SUMMARY_COLUMNS[3:]:
        # Numbers are converted, because one null in JSON turns a whole column into objects.
        points[name] = pd.to_numeric(points[name])
    return points


class Absent(LookupError):
    """Raised if a value that a claim needs was not measured."""


class Found:
    """Means at every point of an experiment, measured here or shipped.

    Parameters
    ----------
    means : mapping of Point to Mean
    """

    def __init__(self, means: Mapping[Point, Mean]) -> None:
        self.means = dict(means)

    @classmethod
    def of(cls, known: Measurements | pd.DataFrame) -> Found:
        """Return the means of simulated values, or of a table of points with `SUMMARY_COLUMNS`."""
        if isinstance(known, Measurements):  # These means lack the quantiles that a table has.
            return cls(
                {
                    point._replace(x=None if point.x is None else float(point.x)): Mean.of(values)
                    for point, values in known.draws.items()
                }
            )
        rows = known[list(SUMMARY_COLUMNS[:7])].itertuples(index=False, name=None)
        return cls(
            {
                Point(a, b, c, None if pd.isna(x) else float(x)): Mean.near(mean, se, int(draws))
                for a, b, c, x, draws, mean, se in rows
            }
        )

    def beside(self, other: Found) -> Found:
        """Return the union of two sets of means; at a shared point this set takes precedence."""
        # A mean that was measured here replaces the mean of the same point that dpviz ships.
        return Found({**other.means, **self.means})

    def mean(self, panel: str, series: str, quantity: str, x: float | None = None) -> Mean:
        """Return the mean at one point.

        Raises
        ------
        Absent
            If the point was not measured.
        """
        point = Point(panel, series, quantity, x)
        if point not in self.means:
            raise Absent(*point[:3])
        return self.means[point]

    def curve(self, panel: str, series: str, quantity: str) -> dict[float, Mean]:
        """Return the means along the axis, in ascending order of x.

        Raises
        ------
        Absent
            If the curve has no points.
        """
        places = sorted(
            point.x
            for point in self.means
            if point.x is not None and point[:3] == (panel, series, quantity)
        )
        if not places:
            raise Absent(panel, series, quantity)
        return {x: self.mean(panel, series, quantity, x) for x in places}
