"""What lessons measure beside the table of metrics: recovery, classes kept apart, things found."""

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
"""Which draw can be named in place of the typical one, by the recovery of each."""

_PLANES = 200


@lru_cache(maxsize=8)
def prepared(settings: Settings) -> Prepared:
    """Return the table of a lesson; only what is about preparation counts."""
    table = load_prepared(settings)
    if not isinstance(table, Prepared):
        raise RuntimeError("a lesson's table is small and in memory")
    return table


def table_of(settings: Settings) -> Prepared:
    """Return the table of settings; what is not about the table plays no part."""
    plain = Settings()
    return prepared(
        replace(
            settings,
            # put back to defaults: one prepared table serves every step that scrubs or redraws it
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
    """Return what one variant does at one setting."""
    (found,) = compare(table_of(settings), replace(settings, mechanisms=(mechanism,))).results
    return found


def recovery(settings: Settings, mechanism: str) -> FloatArray:
    """Return the recovery of each draw: the captured share, from chance at 0 to the best at 1."""
    values: FloatArray = result(settings, mechanism).metrics["recovery"]
    return values


def people(settings: Settings) -> tuple[int, int]:
    """Return n and d of a lesson's table."""
    table = table_of(settings)
    return table.n, table.d


def dots(settings: Settings) -> int:
    """Return how many people a picture shows."""
    return len(table_of(settings).picture(PICTURE_POINTS)[1])


@lru_cache(maxsize=128)
def sorted_apart(settings: Settings, mechanism: str, label: object) -> FloatArray:
    """Return how well a straight line sorts one class from the rest in each released plane.

    Of each draw the balanced accuracy (.5 is a coin) of Fisher's line at its best threshold,
    fitted on the same rows.
    """
    frames = result(settings, mechanism).components
    return np.array([_sorted(settings, frame, label) for frame in frames])


def typical(values: Sequence[FloatArray]) -> int:
    """Return the draw, from 0, that stays nearest to the mean of each array, a value a draw."""
    drawn = np.stack(values)
    return int(np.abs(drawn - drawn.mean(axis=1, keepdims=True)).max(axis=0).argmin())


def sorted_exactly(settings: Settings, label: object) -> float:
    """Return `sorted_apart` of the exact plane, a number."""
    table = table_of(settings)
    return _sorted(settings, table.reference.eigenvectors[:, : settings.k], label)


@lru_cache(maxsize=8)
def sorted_by_chance(settings: Settings, label: object) -> float:
    """Return `sorted_apart` of uniformly random planes, on average."""
    rng = generator(settings.seed, "guide", "random planes")
    d = table_of(settings).d
    # planes of normal vectors are uniform: no direction is preferred
    frames = np.linalg.qr(rng.normal(size=(_PLANES, d, settings.k)))[0]
    return float(np.mean([_sorted(settings, frame, label) for frame in frames]))


def sorting_line(settings: Settings, frame: FloatArray, label: object) -> list[float]:
    """Return a straight line between a class and the rest in the picture of a plane.

    Returns
    -------
    list of float
        A, B and C of Ax + By = C, in the coordinates of the picture, all people counted.
    """
    true = table_of(settings).reference.eigenvectors[:, : settings.k]
    # turned as the picture is, or the line would lie elsewhere in it
    _, (across, up), at = _fisher(settings, frame @ procrustes(frame, true), label)
    return [float(across), float(up), at]


def _sorted(settings: Settings, frame: FloatArray, label: object) -> float:
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
    """Return the best balanced accuracy of Fisher's line between some points and the rest.

    With it the line: where a point's product with the first is the second, beyond it are those
    inside.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    inside : ndarray of bool, shape (n,)
    """
    chosen = np.asarray(inside, dtype=bool)
    # both groups weigh alike, however many each has
    within = (np.cov(points[chosen].T) + np.cov(points[~chosen].T)) / 2
    apart = points[chosen].mean(axis=0) - points[~chosen].mean(axis=0)
    score = points @ (normal := np.linalg.solve(within, apart))
    order = np.argsort(score)
    hit = np.cumsum(chosen[order][::-1])[::-1] / chosen.sum()
    # those below the threshold, itself not among them
    passed = (np.cumsum(~chosen[order]) - (~chosen[order])) / (~chosen).sum()
    first = int(((hit + passed) / 2).argmax())
    # halfway between two people: the line goes through nobody
    between = score[order[max(first - 1, 0) : first + 1]].mean()
    return float((hit[first] + passed[first]) / 2), normal, float(between)


def found(settings: Settings, mechanism: Mechanism) -> int:
    """Return how many components are predicted to turn by less than 45 degrees."""
    return components_found(*_predicted(settings, mechanism))


def above_lone_threshold(settings: Settings, mechanism: Mechanism) -> int:
    """Return how many eigenvalues exceed what a lone one would need to be seen."""
    eigenvalues, noise = _predicted(settings, mechanism)
    return int((eigenvalues > noise.visible_above).sum())


def _predicted(settings: Settings, mechanism: Mechanism) -> tuple[FloatArray, FreeNoise]:
    """Return a table's eigenvalues and the law of what a mechanism adds to them."""
    table = table_of(settings)
    noise = mechanism.free_noise(
        mechanism.calibrate(table.problem(settings), table.budget(settings))
    )
    if noise is None:
        raise RuntimeError(f"{mechanism.text} has no prediction")
    return table.moment.eigenvalues, noise


GOAL = 0.9
"""The recovery that the lesson about people asks for."""

_MOST_PEOPLE = 10**12


def people_needed(settings: Settings, mechanism: Mechanism) -> float:
    """Return the fewest people at which predicted recovery reaches `GOAL`, to the last one."""
    measured = load_measured(settings)
    wanted = Goal.of_recovery(GOAL, chance_share(measured.reference, settings.k))
    values, along = measured.moment.eigenvalues, reference_variances(measured)

    def enough(people: int) -> bool:
        problem = replace(measured.problem(settings), n=people)
        noise = mechanism.free_noise(mechanism.calibrate(problem, measured.budget(settings)))
        if noise is None:
            raise RuntimeError(f"{mechanism.text} has no prediction")
        return wanted.reached_by(predict(values, settings.k, noise, along).captured_share)

    low, high = 1, _MOST_PEOPLE  # not enough, enough
    if not enough(high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)
