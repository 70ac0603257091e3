"""Experiments of the papers, kept on disk for the next visit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import streamlit as st

from dpviz.core.errors import InvalidSetting
from dpviz.papers import run
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.run import RunStep
from dpviz.simulation.jobs import Pool
from dpviz.simulation.store import Store, default_folder
from pages.ui import limits


@st.cache_resource(show_spinner=False)
def results_store() -> Store:
    """Return where results of experiments are kept for the next visit."""
    try:
        return Store(default_folder())
    except InvalidSetting:  # a host without a home: kept while the server runs
        return Store(Path(tempfile.mkdtemp(prefix="dpviz-")))


def kept(chosen: Experiment, effort: Effort) -> RunStep:
    """Return what is known of an experiment without running anything."""
    return run.kept(chosen, effort, results_store())


def reproduction_steps(
    chosen: Experiment, effort: Effort, tell: Callable[[], None]
) -> Iterator[RunStep]:
    """Yield an experiment's state after each part; every part is kept on disk at once.

    ``tell`` is called every second while a part runs: on a server in a process of its own, which
    ends with the visit.
    """
    limits.refuse_in_public("runs no experiments; it shows those that were run before")
    pool = Pool(apart=limits.serving())
    steps = run.work(chosen, effort, store=results_store(), pool=pool)
    with closing(steps):
        while True:
            with limits.telling(tell):
                step = next(steps, None)
            if step is None:
                return
            yield step


def shown_every(total: int) -> int:
    """Return after how many parts to draw again, so that drawing does not outweigh the work."""
    return max(1, total // 12)
