"""Tidy tables of a task's scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.metrics import summarise
from dpviz.simulation.tasks.plan import CHANCE, CLEAN, TaskPart, TaskPlan

TASK_COLUMNS = ("mechanism", "source", "epsilon", "split", "trial", "score")
TASK_BAND_COLUMNS = (
    "mechanism", "source", "epsilon", "mean", "low", "high", "rounds", "verdict",
)  # fmt: skip

FLOOR = "floor"


def score_table(plan: TaskPlan, scores: Mapping[TaskPart, FloatArray]) -> pd.DataFrame:
    """Return the scores found so far as a tidy table.

    Returns
    -------
    DataFrame
        Columns `TASK_COLUMNS`: one row per mechanism, epsilon and trial. Floors
        have the source ``floor`` and no epsilon.
    """
    rows: list[tuple[Any, ...]] = []
    order = {name: place for place, name in enumerate(_names(plan))}
    for part in sorted(
        scores,
        key=lambda part: (order[part.name], part.epsilon or 0.0, part.trials[0]),
    ):
        source = FLOOR if part.floor else plan.task.source
        for trial, score in zip(part.trials, scores[part], strict=True):
            split = trial % plan.task.splits
            rows.append((part.name, source, part.epsilon, split, trial, float(score)))
    table = pd.DataFrame(rows, columns=list(TASK_COLUMNS))
    return table.astype({"epsilon": float, "split": int, "trial": int, "score": float})


def _names(plan: TaskPlan) -> list[str]:
    floors = [CLEAN, CHANCE, plan.learner.score.chance]
    return [*floors, *(mechanism.text for mechanism in plan.mechanisms)]


def band_table(plan: TaskPlan, table: pd.DataFrame) -> pd.DataFrame:
    """Return mean and band of each mechanism at each epsilon, and of each floor.

    Parameters
    ----------
    plan : TaskPlan
    table : DataFrame
        `TASK_COLUMNS`.

    Returns
    -------
    DataFrame
        Columns `TASK_BAND_COLUMNS`: low and high hold the central 95 % of the
        rounds, over splits and releases; the verdict is on the claim, empty for floors.
    """
    rows: list[tuple[Any, ...]] = []
    known = {mechanism.text: mechanism for mechanism in plan.mechanisms}
    for place, part in table.groupby(["mechanism", "source", "epsilon"], sort=False, dropna=False):
        name, source, epsilon = cast("tuple[str, str, float]", place)
        found = summarise(part["score"].to_numpy(dtype=np.float64))
        verdict = str(plan.verdict(known[name], epsilon)) if name in known else ""
        rows.append((name, source, epsilon, found.mean, found.low, found.high, len(part), verdict))
    return pd.DataFrame(rows, columns=list(TASK_BAND_COLUMNS)).astype({"epsilon": float})
