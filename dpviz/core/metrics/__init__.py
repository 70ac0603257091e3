"""Utility metrics of a batch of releases; each is a function decorated by `metric`.

Metrics take a batch of simulated releases and compare it with the exact components of the reference
moment. A metric that does not apply to a release is absent. Metrics are found, without
registration, in this package's modules without a leading underscore, in packages and in plugins.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics._base import (
    Metric,
    Outcome,
    Summary,
    chance_distance,
    chance_share,
    farthest_distance,
    nothing_to_recover,
    optimum,
    principal_angles,
    recovery_of,
    share_at_recovery,
    summarise,
)
from dpviz.core.plugins import from_outside, kept_apart, modules_of

__all__ = [
    "METRICS",
    "Metric",
    "Metrics",
    "Outcome",
    "Summary",
    "chance_distance",
    "chance_share",
    "chosen",
    "farthest_distance",
    "measure",
    "metric_of",
    "nothing_to_recover",
    "offered",
    "optimum",
    "principal_angles",
    "recovery_of",
    "share_at_recovery",
    "summarise",
]


def _found() -> dict[str, Metric]:
    """Return every metric by its key, sorted by ``place``."""
    metrics = {
        item.key: item
        for module in modules_of(__name__)
        for item in vars(module).values()
        if isinstance(item, Metric)
    }
    brought = ((one.key, one) for one in from_outside("metrics") if isinstance(one, Metric))
    metrics |= kept_apart(metrics, brought)
    return dict(sorted(metrics.items(), key=lambda item: item[1].place))


METRICS: dict[str, Metric] = _found()


Metrics = str | Metric | Iterable[str | Metric]
"""Metrics given by a caller: names in `METRICS`, or objects made by `metric`."""


def metric_of(one: str | Metric) -> Metric:
    """Return a metric, given as an object or by its name in `METRICS`."""
    return METRICS[one] if isinstance(one, str) else one


def chosen(given: Metrics | None) -> dict[str, Metric]:
    """Return the requested metrics by key, in order; all of `METRICS` by default.

    Raises
    ------
    InvalidSetting
        If an object is not a metric, or has the name of another metric.
    """
    if given is None:
        return dict(METRICS)
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    by_key: dict[str, Metric] = {}
    for one in several:
        metric = METRICS.get(one) if isinstance(one, str) else one
        if not isinstance(metric, Metric):
            word = one if isinstance(one, str) else type(one).__name__
            allowed = f"made by dpviz.metric, or one of {', '.join(METRICS)}"
            raise InvalidSetting("metrics", allowed, word, "--metric")
        key = metric.key
        others = (METRICS.get(key, metric), by_key.get(key, metric))
        if not key.isidentifier() or any(other != metric for other in others):
            raise InvalidSetting("metrics", OWN_NAME, key, "--metric")
        by_key[key] = metric
    if not by_key:
        raise InvalidSetting("metrics", "at least one metric", "none", "--metric")
    return by_key


OWN_NAME = "functions, each with a name of its own that nothing in dpviz has"
"""Requirement on a caller's metrics, in words."""


def offered(*, picture: bool) -> list[str]:
    """Return the metrics that a run can compute, with a published chart or without."""
    return [key for key, metric in METRICS.items() if picture or metric.needs != "picture"]


def _computed(metric: Metric, outcome: Outcome) -> FloatArray | None:
    """Return a metric's values, hiding texts of a custom metric's errors, which may quote rows."""
    if metric.compute.__module__.startswith(f"{__name__}."):
        return metric.compute(outcome)
    size, given = len(outcome.release.components), "an error"
    try:
        values = metric.compute(outcome)
        if values is None:
            return None
        array = np.asarray(values, dtype=np.float64)
        if array.shape == (size,) and np.isfinite(array).all():
            return array
        given = f"an array of shape {array.shape}" if array.shape != (size,) else "others"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        given = f"{type(error).__name__} in line {last.lineno} of {Path(last.filename).name}"
    allowed = f"one that returns {size} finite numbers, one a draw, or None"
    raise InvalidSetting(f"metric {metric.key}", allowed, given)


def measure(
    outcome: Outcome, wanted: Iterable[str | Metric] = tuple(METRICS)
) -> dict[str, FloatArray]:
    """Return each applicable metric by its key, with one value per simulated release.

    Raises
    ------
    InvalidSetting
        If a custom metric fails, or returns anything but one finite number a release.
    """
    measured = {one.key: _computed(one, outcome) for one in map(metric_of, wanted)}
    return {key: values for key, values in measured.items() if values is not None}
