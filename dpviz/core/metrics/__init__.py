"""Utility of a batch of releases: each metric is a function with `metric` above it.

Everything is batched over draws and compared with the exact components of the reference moment. A
metric that does not apply to a release is absent. Nothing is registered: every module of this
package that has no underscore is looked through, and what packages and plugins offer.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpviz.core.arrays import FloatArray
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
    "Outcome",
    "Summary",
    "chance_distance",
    "chance_share",
    "farthest_distance",
    "measure",
    "nothing_to_recover",
    "offered",
    "optimum",
    "principal_angles",
    "recovery_of",
    "share_at_recovery",
    "summarise",
]


def _found() -> dict[str, Metric]:
    """Return every metric by its key, in the order of their places."""
    found = {
        item.key: item
        for module in modules_of(__name__)
        for item in vars(module).values()
        if isinstance(item, Metric)
    }
    brought = ((one.key, one) for one in from_outside("metrics") if isinstance(one, Metric))
    found |= kept_apart(found, brought)
    return dict(sorted(found.items(), key=lambda item: item[1].place))


METRICS: dict[str, Metric] = _found()


def offered(*, picture: bool) -> list[str]:
    """Return the metrics that a run may have, with a picture or without."""
    return [key for key, metric in METRICS.items() if picture or metric.needs != "picture"]


def measure(outcome: Outcome, keys: Iterable[str] = tuple(METRICS)) -> dict[str, FloatArray]:
    """Return each metric that applies, with one value per draw."""
    measured = {key: METRICS[key].compute(outcome) for key in keys}
    return {key: values for key, values in measured.items() if values is not None}
