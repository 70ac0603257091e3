"""Learning tasks, kept: the data of their splits, and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dpviz.core.arrays import FloatArray
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import Prepared
from dpviz.simulation.tasks import Task, TaskPlan, plan_task
from pages.ui import reproduction_cache


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def _task_splits(key: tuple[str, ...]) -> dict[int, Any]:
    return {}  # filled by the plans that share it


@st.cache_resource(scope="session", max_entries=6, show_spinner="Splitting", show_time=True)
def _task_plan(
    key: tuple[str, ...],
    shared: tuple[str, ...],
    _ready: Prepared,
    _settings: Settings,
    _task: Task,
    _mechanisms: Sequence[Mechanism],
) -> TaskPlan:
    return plan_task(
        _ready.table,
        _ready.stating(_settings),
        _task,
        None,
        _mechanisms,
        splits=_task_splits(shared),
    )


def task_plan(
    data_key: tuple[str, ...],
    ready: Prepared,
    settings: Settings,
    task: Task,
    mechanisms: Sequence[Mechanism],
) -> TaskPlan:
    """Return what a task asks for, with the data of its splits.

    Another epsilon, mechanism or number of draws does not prepare the rows again.
    """
    names = tuple(mechanism.text for mechanism in mechanisms)
    same = replace(settings, epsilon=1.0, mechanisms=(), trials=1)
    shared = (*data_key, repr(same), repr(replace(task, epsilons="1")))
    key = (*data_key, repr(settings), repr(task), *names)
    return _task_plan(key, shared, ready, settings, task, mechanisms)


class TaskScores:
    """Scores that are kept: in the session, and on disk where the table is public.

    Parameters
    ----------
    public : bool
        Whether the table is one that dpviz brings or fetches. What is measured
        on an upload stays in the session and goes with it.
    """

    MOST = 20_000  # parts of a few numbers each

    def __init__(self, public: bool) -> None:
        self._held: dict[str, FloatArray] = st.session_state.setdefault("task_scores", {})
        self._disk = reproduction_cache.results_store() if public else None

    def get(self, key: str) -> dict[str, FloatArray] | None:
        """Return the scores of a part."""
        if key not in self._held and self._disk is not None:
            found = self._disk.get(key)
            if found is not None:
                self._hold(key, found["score"])
        return {"score": self._held[key]} if key in self._held else None

    def put(self, key: str, metrics: Mapping[str, FloatArray]) -> None:
        """Keep the scores of a part."""
        self._hold(key, metrics["score"])
        if self._disk is not None:
            self._disk.put(key, metrics)

    def prune(self) -> None:
        """Keep the folder within its bounds."""
        if self._disk is not None:
            self._disk.prune()

    def _hold(self, key: str, scores: FloatArray) -> None:
        self._held[key] = scores
        while len(self._held) > self.MOST:
            del self._held[next(iter(self._held))]
