"""Sweeps in several processes, and interrupted sweeps: the same bytes, and complete results.

A killed worker loses no results, and all workers end with the process that made them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.core.worker import Ended
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.jobs import Progress, work
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import sweep
from tests.process.fatal import Fatal, gone

SETTINGS = Settings(table="iris", delta=1e-3, trials=4, seed=3, mechanisms=("gaussian", "laplace"))
OVER = {"epsilon": [0.1, 0.3, 1.0, 3.0, 10.0], "k": [1, 2, 3]}
CELLS = 30


@cache
def iris() -> Prepared:
    return prepare(datasets.load("iris"), SETTINGS)


def files(folder: Path) -> list[Path]:
    """Return the complete stored results."""
    return sorted(folder.rglob("*.cell"))


def test_the_same_bytes_from_any_executor() -> None:
    over = {"epsilon": [0.1, 1.0, 10.0], "n": [100, 300]}
    alone = sweep(iris(), over, SETTINGS)
    with ThreadPoolExecutor(2) as threads:
        for options in ({"workers": 2}, {"executor": threads}):
            together = sweep(iris(), over, SETTINGS, **options)
            pd.testing.assert_frame_equal(alone.table, together.table, check_exact=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of Unix")
def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    some = [Fatal(place, tmp_path, dies=int(place == 3)) for place in range(30)]
    *_, last = work(some, workers=2)
    assert sorted(last.done) == list(range(30))
    assert last.progress.done == 30
    assert len(list(tmp_path.glob("died *"))) == 1
    pids = {int(arrays["process"][0]) for arrays in last.done.values()}
    assert os.getpid() not in pids
    assert all(gone(process) for process in pids)


def test_workers_that_always_end_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Ended, match="as it does where memory runs out"):
        list(work([Fatal(place, tmp_path, dies=99) for place in range(2)], workers=2))
    assert len(list(tmp_path.glob("died *"))) <= 6


_MAKER = """
import os, sys, time
from dataclasses import dataclass
import numpy as np
from dpviz.simulation.jobs import work

@dataclass
class Mine:  # of a script without a guard, which workers do not run again
    key: str
    size: int = 1
    def run(self):
        return {"process": np.array([float(os.getpid())])}

for step in work([Mine(str(place)) for place in range(12)], workers=2):
    if len(step.done) == 6:
        print(*{int(one["process"][0]) for one in step.done.values()}, flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of Unix")
def test_workers_that_wait_end_with_a_maker_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "maker.py"
    script.write_text(_MAKER)
    maker = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert maker.stdout is not None
    with maker.stdout as lines:
        pids = {int(word) for word in lines.readline().split()}
    maker.kill()
    maker.wait()
    assert pids
    assert all(gone(process) for process in pids)


def test_interrupted_workers_keep_what_was_finished(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(iris(), OVER, SETTINGS, store=Store(tmp_path), progress=interrupt, workers=2)
    count = len(files(tmp_path))
    assert count == 7
    answer = sweep(iris(), OVER, SETTINGS, store=Store(tmp_path))
    assert (answer.reused, answer.computed) == (count, CELLS - count)
