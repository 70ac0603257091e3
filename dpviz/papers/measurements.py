"""What an experiment measured: one array of draws for every point of its pictures."""

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
    """Where draws belong.

    Attributes
    ----------
    panel : str
        Data set or theorem: one panel of a picture, one block of a table.
    series : str
        Line of the picture, row of the table: usually a mechanism.
    quantity : str
        What was measured, with its unit in words.
    x : float or None
        Place on the picture's axis; None for a row of a table.
    """

    panel: str
    series: str
    quantity: str
    x: float | None = None


@dataclass(frozen=True)
class Mean:
    """A mean over draws with its 95 % confidence interval and the draws' own range.

    Attributes
    ----------
    value, se, low, high : float
        Mean, standard error, and the interval of the mean by Student's t; the
        last three are NaN for a single draw.
    draws : int
    """

    value: float
    se: float
    low: float
    high: float
    draws: int

    @classmethod
    def of(cls, values: FloatArray) -> Mean:
        """Return the mean of draws, shape (draws,)."""
        count, value = len(values), float(np.mean(values))
        if count < 2:
            return cls(value, math.nan, math.nan, math.nan, count)
        se = float(np.std(values, ddof=1)) / math.sqrt(count)
        return cls.near(value, se, count)

    @classmethod
    def near(cls, value: float, se: float, draws: int) -> Mean:
        """Return a mean with the interval that its standard error makes."""
        if draws < 2 or math.isnan(se):
            return cls(value, math.nan, math.nan, math.nan, draws)
        # Student's t, as few draws give a rough standard error
        half = float(stdtrit(draws - 1, 0.975)) * se
        return cls(value, se, value - half, value + half, draws)

    @property
    def half(self) -> float:
        """Half the width of the interval; 0 for a single draw, which stands for itself."""
        return 0.0 if math.isnan(self.high) else self.high - self.value

    @property
    def error(self) -> float:
        """Standard error; 0 for a single draw."""
        return 0.0 if math.isnan(self.se) else self.se

    def __mul__(self, factor: float) -> Mean:
        """Return the mean of the draws times a number."""
        return Mean.near(self.value * factor, abs(factor) * self.se, self.draws)

    def __sub__(self, other: Mean) -> Mean:
        """Return the difference of two independent means."""
        error = math.hypot(self.error, other.error)
        return Mean.near(self.value - other.value, error, _fewest(self, other))

    def __truediv__(self, other: Mean) -> Mean:
        """Return the ratio of two independent means, its error to first order."""
        if other.value == 0:
            # infinite and not an error: a bound of 0 that is passed is passed without end
            return Mean.near(math.copysign(math.inf, self.value), math.nan, 1)
        ratio = self.value / other.value
        error = math.hypot(self.error, ratio * other.error) / abs(other.value)
        return Mean.near(ratio, error, _fewest(self, other))


def _fewest(*means: Mean) -> int:
    """Return the least number of draws among means that have an error; 1 where none has."""
    return min((mean.draws for mean in means if mean.error > 0), default=1)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Draws by point.

    Attributes
    ----------
    draws : dict of Point to ndarray of shape (draws,)
    """

    draws: dict[Point, FloatArray] = field(default_factory=dict)

    def add(self, other: Measurements) -> None:
        """Append another part's draws; points that both have are joined in this order."""
        for point, values in other.draws.items():
            mine = self.draws.get(point)
            # parts are added in one order, so that the same run has the same bytes
            self.draws[point] = values if mine is None else np.concatenate([mine, values])

    def table(self) -> pd.DataFrame:
        """Return one row per point, with `SUMMARY_COLUMNS`.

        ``mean_low`` and ``mean_high`` bound the mean (95 %); ``low`` and
        ``high`` hold the central 95 % of the draws.
        """
        rows = []
        for point, values in self.draws.items():
            mean = Mean.of(values)
            low, high = np.quantile(values, (0.025, 0.975))
            rows.append((*point, mean.draws, mean.value, mean.se, mean.low, mean.high, low, high))
        return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return the draws by texts that a store can keep."""
        # as JSON, since a store names arrays by texts and a point has four parts
        return {json.dumps(list(point)): values for point, values in self.draws.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, FloatArray]) -> Measurements:
        """Return what `to_arrays` took apart."""
        return cls({Point(*json.loads(text)): values for text, values in arrays.items()})

    def __iter__(self) -> Iterator[Point]:
        return iter(self.draws)


RESULTS = Path(__file__).resolve().parent / "results"
"""Where results of full runs ship."""


@cache
def shipped_points(key: str, folder: Path = RESULTS) -> pd.DataFrame:
    """Return the points that ship of an experiment, none where it has no results."""
    path = folder / f"{key}.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["points"] if path.is_file() else []
    points = pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))
    for name in SUMMARY_COLUMNS[3:]:
        # JSON's null leaves a column of objects
        points[name] = pd.to_numeric(points[name])
    return points


class Absent(LookupError):
    """Something that a claim looks at was not measured."""


class Found:
    """The mean at every point: what is known of an experiment, drawn here or shipped.

    Parameters
    ----------
    means : mapping of Point to Mean
    """

    def __init__(self, means: Mapping[Point, Mean]) -> None:
        self.means = dict(means)

    @classmethod
    def of(cls, known: Measurements | pd.DataFrame) -> Found:
        """Return the means of draws, or of a table of points with `SUMMARY_COLUMNS`."""
        if isinstance(known, Measurements):  # without the quantiles of its table
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
        """Return these and another's; where both have a point it is these."""
        # what was drawn here goes before what ships
        return Found({**other.means, **self.means})

    def mean(self, panel: str, series: str, quantity: str, x: float | None = None) -> Mean:
        """Return the mean at a point.

        Raises
        ------
        Absent
            If it was not measured.
        """
        point = Point(panel, series, quantity, x)
        if point not in self.means:
            raise Absent(*point[:3])
        return self.means[point]

    def curve(self, panel: str, series: str, quantity: str) -> dict[float, Mean]:
        """Return the means along the axis, by ascending x.

        Raises
        ------
        Absent
            If there is none.
        """
        found = sorted(
            point.x
            for point in self.means
            if point.x is not None and point[:3] == (panel, series, quantity)
        )
        if not found:
            raise Absent(panel, series, quantity)
        return {x: self.mean(panel, series, quantity, x) for x in found}
