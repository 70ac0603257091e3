"""The picture that a recovery gives, for somebody who is asked how much must survive."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import EPSILON_RANGE, Budget
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.lessons.cast import plain
from dpviz.lessons.needed import goal_of
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.projection import coordinates
from dpviz.simulation.cells import evaluate
from dpviz.simulation.least import predicted_crossing
from dpviz.simulation.simulate import Cell

_POINTS = 300


def example_table(measured: Measured, settings: Settings, recovery: float) -> pd.DataFrame:
    """Return what the first two directions show at a recovery, for a picture.

    One release at the epsilon that is predicted to give the recovery; for a plan the points are
    made up from its spectrum.

    Returns
    -------
    DataFrame
        Columns x, y and label, one row a point.
    """
    measured = replace(measured, raw=None)  # a recovery looks the same whoever paid for what
    k = max(2, settings.k) if measured.d > 2 else 2
    chosen = replace(settings, k=min(k, measured.d - 1) if measured.d > 2 else 1)
    true = measured.reference.eigenvectors[:, : chosen.k]
    frame = true if recovery >= 1 else _released(measured, chosen, recovery)
    rows, labels = _rows(measured)
    drawn = coordinates(rows, frame, true, "aligned")
    across = drawn[:, 1] if drawn.shape[1] > 1 else np.zeros(len(drawn))
    return pd.DataFrame({"x": drawn[:, 0], "y": across, "label": labels})


def _released(measured: Measured, settings: Settings, recovery: float) -> FloatArray:
    """Return the frame whose recovery is nearest to the one asked for, of a few draws."""
    goal = goal_of(measured, settings.k, recovery)
    found = predicted_crossing(measured, settings, plain(), goal)
    epsilon = EPSILON_RANGE[1] if found is None or math.isinf(found) else found
    chosen = replace(settings, epsilon=min(max(epsilon, EPSILON_RANGE[0]), EPSILON_RANGE[1]))
    budget = measured.budget(chosen)
    if budget.delta == 0:
        budget = Budget(budget.epsilon, 1e-6)
    cell = Cell(plain(), measured.problem(chosen), budget, chosen.seed, range(20))
    outcome = evaluate(cell, measured)
    shares = goal.measure.compute(outcome)
    assert shares is not None
    frames: FloatArray = outcome.release.components
    nearest: FloatArray = frames[int(np.abs(shares - goal.value).argmin())]
    return nearest


def _rows(measured: Measured) -> tuple[FloatArray, list[str]]:
    if isinstance(measured, Prepared):
        rows, index = measured.picture(_POINTS)
        labels = measured.table.labels
        kinds = ["" for _ in index] if labels is None else [str(labels[i]) for i in index]
        return rows, kinds
    rng = generator(0, "guide", "decide", "plan")
    spread = np.sqrt(measured.moment.eigenvalues)
    made: FloatArray = rng.normal(size=(_POINTS, measured.d)) * spread
    return made @ measured.moment.eigenvectors.T, ["" for _ in range(_POINTS)]
