"""Run a task over epsilons and mechanisms, in small parts so that it can stop and resume."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import summarise
from dpviz.simulation import jobs as engine
from dpviz.simulation.jobs import Arrays, Progress, Storage
from dpviz.simulation.tasks.plan import CHANCE, CLEAN, TaskPart, TaskPlan


@dataclass(frozen=True, eq=False)
class RoundsJob:
    """A few rounds of a task, as a job; see `dpviz.simulation.jobs.Job`.

    ``tick`` is called before each fit, so that long work can be stopped.
    """

    plan: TaskPlan
    part: TaskPart
    tick: Callable[[], object] | None = None

    @property
    def key(self) -> str:
        """Digest of everything that the scores depend on."""
        return self.plan.key(self.part)

    @property
    def size(self) -> int:
        """Number of rounds."""
        return len(self.part.trials)

    def run(self) -> Arrays:
        """Return the score of each round."""
        return {"score": self.plan.run(self.part, self.tick)}


@dataclass(frozen=True, eq=False)
class TaskStep:
    """State of a running task.

    Attributes
    ----------
    progress : Progress
        Progress, counted in rounds of one fit each.
    scores : dict of TaskPart to ndarray
        Scores found so far.
    """

    progress: Progress
    scores: dict[TaskPart, FloatArray]


def work(
    plan: TaskPlan, store: Storage | None = None, tick: Callable[[], object] | None = None
) -> Generator[TaskStep, None, None]:
    """Run the parts that are not stored yet; yield before the first and after each.

    To stop, close the generator or raise in ``tick``; stored parts stay stored.
    """
    jobs = [RoundsJob(plan, part, tick) for part in plan.parts]
    with closing(engine.work(jobs, store)) as steps:
        for step in steps:
            scores = {plan.parts[place]: arrays["score"] for place, arrays in step.done.items()}
            yield TaskStep(step.progress, scores)


# Scores as a table --------------------------------------------------------------------------------


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
    """Return the mean and the band of each mechanism at each epsilon, and of each floor.

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
    by_text = {mechanism.text: mechanism for mechanism in plan.mechanisms}
    for place, part in table.groupby(["mechanism", "source", "epsilon"], sort=False, dropna=False):
        name, source, epsilon = cast("tuple[str, str, float]", place)
        summary = summarise(part["score"].to_numpy(dtype=np.float64))
        verdict = str(plan.verdict(by_text[name], epsilon)) if name in by_text else ""
        rows.append(
            (name, source, epsilon, summary.mean, summary.low, summary.high, len(part), verdict)
        )
    return pd.DataFrame(rows, columns=list(TASK_BAND_COLUMNS)).astype({"epsilon": float})
