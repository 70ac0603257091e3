"""Measures for lessons besides the metrics: recovery, separation of classes, components found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import chance_share
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import load_measured, load_prepared
from dpviz.preparation.prepared import reference_variances
from dpviz.report.tables.frame import PICTURE_POINTS
from dpviz.report.tables.projection import procrustes
from dpviz.sampling.limits import FreeNoise
from dpviz.simulation.compare import Result, compare
from dpviz.simulation.goal import Goal
from dpviz.simulation.predict import components_found, predict

DRAWS: dict[str, Callable[[FloatArray], int]] = {
    "first": lambda recovery: 0,
    "least": lambda recovery: int(recovery.argmin()),
    "most": lambda recovery: int(recovery.argmax()),
}
"""Named ways to choose a simulated release by its recovery, other than the typical release."""

_PLANES = 200


@lru_cache(maxsize=8)
def prepared(settings: Settings) -> Prepared:
    """Return the prepared table of a lesson; only preparation settings affect it."""
    table = load_prepared(settings)
    if not isinstance(table, Prepared):
        raise RuntimeError("a lesson's table must fit in memory")
    return table


def table_of(settings: Settings) -> Prepared:
    """Return the table for the given settings, ignoring settings that do not affect the table."""
    plain = Settings()
    return prepared(
        replace(
            settings,
            # Reset settings that do not matter here, so that steps can share one prepared table.
            epsilon=plain.epsilon,
            delta=plain.delta,
            k=plain.k,
            mechanisms=(),
            trials=plain.trials,
            seed=plain.seed,
            allocation=plain.allocation,
        )
    )


@lru_cache(maxsize=128)
def result(settings: Settings, mechanism: str) -> Result:
    """Return the results of one pipeline at one setting."""
    (answer,) = compare(table_of(settings), replace(settings, mechanisms=(mechanism,))).results
    return answer


def recovery(settings: Settings, mechanism: str) -> FloatArray:
    """Return each simulated release's recovery: share captured, from 0 (chance) to 1 (the best)."""
    values: FloatArray = result(settings, mechanism).metrics["recovery"]
    return values


def people(settings: Settings) -> tuple[int, int]:
    """Return the n and d of a lesson's table."""
    table = table_of(settings)
    return table.n, table.d


def dots(settings: Settings) -> int:
    """Return how many people a published map shows."""
    return len(table_of(settings).picture(PICTURE_POINTS)[1])


@lru_cache(maxsize=128)
def sorted_apart(settings: Settings, mechanism: str, label: object) -> FloatArray:
    """Return how well a straight line separates a class from the rest in each released plane.

    Each value is the balanced accuracy (0.5 is chance) of Fisher's line at its best threshold,
    fitted on the same rows.
    """
    frames = result(settings, mechanism).components
    return np.array([_ratio(settings, frame, label) for frame in frames])


def typical(values: Sequence[FloatArray]) -> int:
    """Return the number of the release whose values deviate least from each array's mean."""
    draws = np.stack(values)
    return int(np.abs(draws - draws.mean(axis=1, keepdims=True)).max(axis=0).argmin())


def sorted_exactly(settings: Settings, label: object) -> float:
    """Return `sorted_apart` of the exact plane, as a number."""
    table = table_of(settings)
    return _ratio(settings, table.reference.eigenvectors[:, : settings.k], label)


@lru_cache(maxsize=8)
def sorted_by_chance(settings: Settings, label: object) -> float:
    """Return the average of `sorted_apart` for uniformly random planes."""
    rng = generator(settings.seed, "guide", "random planes")
    d = table_of(settings).d
    # Normal vectors span uniformly distributed planes, so sample normal vectors.
    frames = np.linalg.qr(rng.normal(size=(_PLANES, d, settings.k)))[0]
    return float(np.mean([_ratio(settings, frame, label) for frame in frames]))


def sorting_line(settings: Settings, frame: FloatArray, label: object) -> list[float]:
    """Return the line that separates a class from the rest in the projection on a plane.

    Returns
    -------
    list of float
        Coefficients A, B and C of Ax + By = C, in the chart's coordinates, fitted on all people.
    """
    true = table_of(settings).reference.eigenvectors[:, : settings.k]
    # Rotate the plane as the chart does, so that the line fits the chart.
    _, (across, up), at = _fisher(settings, frame @ procrustes(frame, true), label)
    return [float(across), float(up), at]


def _ratio(settings: Settings, frame: FloatArray, label: object) -> float:
    return _fisher(settings, frame, label)[0]


def _fisher(
    settings: Settings, frame: FloatArray, label: object
) -> tuple[float, FloatArray, float]:
    table = table_of(settings)
    rows = table.moment_with_rows.rows
    labels = table.table.labels
    if rows is None or labels is None:
        raise RuntimeError("this measure needs rows with labels")
    inside = np.asarray(labels) == label
    return separated(rows @ frame, inside)


def separated(
    points: FloatArray, inside: FloatArray | np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[float, FloatArray, float]:
    """Return the best balanced accuracy of Fisher's line between a group of points and the rest.

    The function also returns the line's normal vector and threshold. Points whose product with the
    normal exceeds the threshold count as members of the group.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    inside : ndarray of bool, shape (n,)
    """
    mask = np.asarray(inside, dtype=bool)
    # Give both groups the same weight, whatever their sizes.
    within = (np.cov(points[mask].T) + np.cov(points[~mask].T)) / 2
    apart = points[mask].mean(axis=0) - points[~mask].mean(axis=0)
    score = points @ (normal := np.linalg.solve(within, apart))
    order = np.argsort(score)
    hit = np.cumsum(mask[order][::-1])[::-1] / mask.sum()
    # Compute which share of the people outside the group is strictly below the threshold.
    miss = (np.cumsum(~mask[order]) - (~mask[order])) / (~mask).sum()
    first = int(((hit + miss) / 2).argmax())
    # Put the threshold halfway between two people, so that nobody lies exactly on it.
    between = score[order[max(first - 1, 0) : first + 1]].mean()
    return float((hit[first] + miss[first]) / 2), normal, float(between)


def found(settings: Settings, mechanism: Mechanism) -> int:
    """Return the predicted number of components that turn by less than 45 degrees."""
    return components_found(*_prediction(settings, mechanism))


def above_lone_threshold(settings: Settings, mechanism: Mechanism) -> int:
    """Return how many eigenvalues exceed the threshold at which a single eigenvalue is visible."""
    eigenvalues, noise = _prediction(settings, mechanism)
    return int((eigenvalues > noise.visible_above).sum())


def _prediction(settings: Settings, mechanism: Mechanism) -> tuple[FloatArray, FreeNoise]:
    """Return a table's eigenvalues and the distribution of a mechanism's noise."""
    table = table_of(settings)
    noise = mechanism.free_noise(
        mechanism.calibrate(table.problem(settings), table.budget(settings))
    )
    if noise is None:
        raise RuntimeError(f"dpviz cannot predict the releases of {mechanism.text}")
    return table.moment.eigenvalues, noise


GOAL = 0.9
"""Target recovery in the lesson about people."""

_MOST_PEOPLE = 10**12


def people_needed(settings: Settings, mechanism: Mechanism) -> float:
    """Return the exact smallest number of people at which predicted recovery reaches `GOAL`."""
    table = load_measured(settings)
    goal = Goal.of_recovery(GOAL, chance_share(table.reference, settings.k))
    values, along = table.moment.eigenvalues, reference_variances(table)

    def enough(people: int) -> bool:
        problem = replace(table.problem(settings), n=people)
        noise = mechanism.free_noise(mechanism.calibrate(problem, table.budget(settings)))
        if noise is None:
            raise RuntimeError(f"dpviz cannot predict the releases of {mechanism.text}")
        return goal.reached_by(predict(values, settings.k, noise, along).captured_share)

    low, high = 1, _MOST_PEOPLE  # 1 person is too few; the maximum may be enough.
    if not enough(high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)
