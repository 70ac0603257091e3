"""A target: a metric and the value it must reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.problem import (
    Problem,
)
from dpviz.metrics import METRICS, Metric, share_at_recovery


@dataclass(frozen=True)
class Goal:
    """What is to be reached.

    Attributes
    ----------
    metric : str
        Key of `dpviz.metrics.METRICS`, one that has a better direction.
    value : float
        In the metric's unit; reached from above or below as the metric asks.
    of_draws : float or None
        None: the mean over releases reaches the value. A number between 0 and
        1: at least that share of releases does; the only form for a metric
        without an upper limit.
    recovery : float or None
        The recovery that it was stated as, which sentences then say; see `of_recovery`.
    """

    metric: str = "captured_share"
    value: float = 0.9
    of_draws: float | None = None
    recovery: float | None = None

    def __post_init__(self) -> None:
        known = [key for key, m in METRICS.items() if m.better != "neither" and m.lower == 0]
        if self.metric not in known:
            raise InvalidSetting("the goal's metric", f"one of {', '.join(known)}", self.metric)
        if not 0 < self.value < math.inf:
            raise InvalidSetting("the goal", "a positive number", self.value)
        if self.of_draws is not None and not 0 < self.of_draws < 1:
            raise InvalidSetting("the share of releases", "above 0 and below 1", self.of_draws)

    @classmethod
    def of_recovery(cls, recovery: float, chance: float) -> Goal:
        """Return the goal of a mean recovery, as the captured share that means the same.

        Parameters
        ----------
        recovery : float
            Above 0 and below 1.
        chance : float
            From `dpviz.metrics.chance_share`; below 1.
        """
        if not 0 < recovery < 1:
            raise InvalidSetting("the recovery", "above 0 and below 1", recovery)
        return cls("captured_share", share_at_recovery(recovery, chance), recovery=recovery)

    @property
    def measure(self) -> Metric:
        """The metric of the goal."""
        return METRICS[self.metric]

    def check(self, problem: Problem) -> None:
        """Raise InvalidSetting if the goal makes no sense for this problem."""
        upper = self.measure.upper(problem.d, problem.k)
        if math.isinf(upper):
            if self.of_draws is None:
                raise InvalidSetting(
                    "the share of releases",
                    f"given for {self.measure.label}, which has no upper limit",
                    "none",
                )
        elif not self.value < upper:
            raise InvalidSetting("the goal", f"above 0 and below {numeral(upper, 6)}", self.value)

    def unit_values(self, values: FloatArray, problem: Problem) -> FloatArray:
        """Return values mapped to [0, 1], more being better."""
        higher = self.measure.better == "higher"
        if self.of_draws is not None:
            met = values >= self.value if higher else values <= self.value
            return met.astype(float)
        upper = self.measure.upper(problem.d, problem.k)
        unit = np.clip(values / upper, 0.0, 1.0)
        return unit if higher else 1 - unit

    def unit_threshold(self, problem: Problem) -> float:
        """Return what the mean of the mapped values must reach."""
        if self.of_draws is not None:
            return self.of_draws
        unit = self.value / self.measure.upper(problem.d, problem.k)
        return unit if self.measure.better == "higher" else 1 - unit

    def reached_by(self, value: float) -> bool:
        """Return whether one value of the metric reaches the goal."""
        return value >= self.value if self.measure.better == "higher" else value <= self.value
