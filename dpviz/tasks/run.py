"""Run a task over epsilons and mechanisms: in small parts, so that it can stop and go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from dpviz.base.arrays import FloatArray
from dpviz.datasets.table import Table
from dpviz.mechanisms import Mechanism
from dpviz.prepare.bounding import Bounds
from dpviz.run.jobs import Progress
from dpviz.settings import Settings
from dpviz.tasks.plan import TaskPart, TaskPlan, plan_task
from dpviz.tasks.task import Task
from dpviz.tasks.tidy import score_table


class Keeper(Protocol):
    """Where finished parts are kept, such as `dpviz.run.store.Store`."""

    def get(self, key: str) -> dict[str, FloatArray] | None:
        """Return what was kept under a key."""

    def put(self, key: str, metrics: Mapping[str, FloatArray]) -> None:
        """Keep the arrays of a finished part."""


@dataclass(frozen=True, eq=False)
class TaskStep:
    """A task under way.

    Attributes
    ----------
    progress : Progress
        Counts rounds: one fit each.
    scores : dict of TaskPart to ndarray
        What has been found so far.
    """

    progress: Progress
    scores: dict[TaskPart, FloatArray]


def kept(plan: TaskPlan, store: Keeper | None) -> TaskStep:
    """Return what is known of a task without running anything."""
    found = {}
    for part in plan.parts if store is not None else ():
        arrays = store.get(plan.key(part)) if store is not None else None
        if arrays is not None:
            found[part] = arrays["score"]
    done = sum(len(part.trials) for part in found)
    total = sum(len(part.trials) for part in plan.parts)
    return TaskStep(Progress(done, total, done, 0.0, None), found)


def work(
    plan: TaskPlan, store: Keeper | None = None, tick: Callable[[], object] | None = None
) -> Generator[TaskStep, None, None]:
    """Run the parts that are not kept yet; yield before the first and after each.

    Close the generator, or raise in ``tick``, to stop: what is kept stays.
    """
    started = time.monotonic()
    first = kept(plan, store)
    scores, reused = dict(first.scores), first.progress.done
    done, total = reused, first.progress.total
    yield first
    for part in plan.parts:
        if part in scores:
            continue
        scores[part] = plan.run(part, tick)
        if store is not None:
            store.put(plan.key(part), {"score": scores[part]})
        done += len(part.trials)
        seconds = time.monotonic() - started
        left = seconds / (done - reused) * (total - done)
        yield TaskStep(Progress(done, total, reused, seconds, left), scores)


def task_curve(
    table: Table,
    settings: Settings,
    task: Task,
    epsilons: Sequence[float] | None = None,
    mechanisms: Sequence[Mechanism] = (),
    progress: Callable[[Progress], None] | None = None,
    *,
    bounds: Bounds | None = None,
    store: Keeper | None = None,
) -> pd.DataFrame:
    """Return the score of a task against epsilon, for every mechanism and every round.

    Parameters
    ----------
    table, settings, task, epsilons, mechanisms, bounds
        As in `plan_task`; what cannot run is left out.
    progress : callable, optional
        Called after each part.
    store : Keeper, optional
        Where finished parts are kept, so that a run that is stopped goes on.

    Returns
    -------
    DataFrame
        Columns `TASK_COLUMNS`; see `score_table`.
    """
    plan = plan_task(table, settings, task, epsilons, mechanisms, bounds=bounds)
    return finish(plan, progress, store)


def finish(
    plan: TaskPlan,
    progress: Callable[[Progress], None] | None = None,
    store: Keeper | None = None,
) -> pd.DataFrame:
    """Run a plan to its end and return its scores; see `task_curve`."""
    for step in work(plan, store):
        if progress is not None:
            progress(step.progress)
        last = step
    return score_table(plan, last.scores)
