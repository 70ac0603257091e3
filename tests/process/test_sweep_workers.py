"""Sweeps in several processes, and interrupted ones: the same bytes, and whole cells.

Workers start where they are worth it, stay for the next sweep, and end with their maker.
"""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky import process_executor

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation import jobs
from dpviz.simulation.jobs import Arrays, Pool, Progress, work
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import sweep

SETTINGS = Settings(table="iris", delta=1e-3, trials=4, seed=3, mechanisms=("gaussian", "laplace"))
OVER = {"epsilon": [0.1, 0.3, 1.0, 3.0, 10.0], "k": [1, 2, 3]}
CELLS = 30
PATIENCE = 20.0  # seconds; what is waited for takes a moment


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers pay from the second job on, and none be known to be there."""
    monkeypatch.setattr(jobs, "START_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "IDLE_SECONDS", 4.0)
    monkeypatch.setattr(jobs, "_last_use", (0, float("-inf")))


@cache
def iris() -> Prepared:
    return prepare(datasets.load("iris"), SETTINGS)


def files(folder: Path) -> list[Path]:
    """Return the whole cells."""
    return sorted(folder.rglob("*.cell"))


@pytest.mark.parametrize(("number", "backend"), [(2, "loky"), (2, "threading")])
def test_the_same_bytes_from_any_backend(number: int, backend: str) -> None:
    over = {"epsilon": [0.1, 1.0, 10.0], "n": [100, 300]}
    alone = sweep(iris(), over, SETTINGS)
    first = sweep(iris(), over, SETTINGS, pool=Pool(number, backend))
    again = sweep(iris(), over, SETTINGS, pool=Pool(number, backend))
    for together in (first, again):
        pd.testing.assert_frame_equal(alone.table, together.table, check_exact=True)


@dataclass(frozen=True)
class Meeting:
    """A job that notes its process, and waits in a worker until two of them have come.

    In the process that they work for all but the first wait until a worker has a later one.
    """

    number: int
    folder: Path
    maker: int
    size: int = 1

    @property
    def key(self) -> str:
        """Nothing is kept."""
        return str(self.number)

    def run(self) -> Arrays:
        """Return the process."""
        here = os.getpid()
        end = time.monotonic() + PATIENCE
        if here != self.maker:
            (self.folder / f"job {self.number}").touch()
            (self.folder / f"worker {here}").touch()
        while not self._met(here) and time.monotonic() < end:
            time.sleep(0.01)
        return {"process": np.array([float(here)])}

    def _met(self, here: int) -> bool:
        if here != self.maker:
            return len(list(self.folder.glob("worker *"))) >= 2
        later = [path for path in self.folder.glob("job *") if int(path.name[4:]) > self.number]
        return self.number == 0 or bool(later)


def met(folder: Path, number: int) -> list[int]:
    """Return where each job ran."""
    folder.mkdir(exist_ok=True)
    some = [Meeting(place, folder, os.getpid()) for place in range(number)]
    *_, last = work(some, pool=Pool(2))
    return [int(last.done[place]["process"][0]) for place in range(number)]


def gone(process: int) -> bool:
    """Return whether a process has ended, waiting for it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_workers_start_beside_the_first_cells_and_stay_for_the_next_sweep(
    tmp_path: Path,
) -> None:
    here = os.getpid()
    first = met(tmp_path / "first", 200)
    # one before there are any, and one meanwhile; then it hands over
    assert [place for place, process in enumerate(first) if process == here] == [0, 5]
    own = set(first) - {here}
    assert len(own) == 2
    assert set(met(tmp_path / "again", 12)) == own
    assert all(gone(process) for process in own)


def test_work_that_workers_would_not_pay_for_stays_in_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "START_SECONDS", 60.0)
    (tmp_path / "job 30").touch()
    assert set(met(tmp_path, 30)) == {os.getpid()}


_MAKER = """
import sys, time
from pathlib import Path
from tests.process.test_sweep_workers import jobs, met
jobs.START_SECONDS = 0.0
print(*met(Path(sys.argv[1]), 12), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is of Unix")
def test_workers_that_wait_end_with_a_maker_that_was_killed(tmp_path: Path) -> None:
    maker = subprocess.Popen(
        [sys.executable, "-c", _MAKER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert maker.stdout is not None
    with maker.stdout as lines:
        own = {int(word) for word in lines.readline().split()} - {maker.pid}
    maker.kill()
    maker.wait()
    assert len(own) == 2
    assert all(gone(process) for process in own)


def test_interrupted_workers_keep_what_was_finished(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(
            iris(), OVER, SETTINGS, store=Store(tmp_path), progress=interrupt, pool=Pool(2, "loky")
        )
    # Other cells may have been finished by then, and are kept as well.
    kept = len(files(tmp_path))
    assert 7 <= kept <= CELLS
    found = sweep(iris(), OVER, SETTINGS, store=Store(tmp_path))
    assert (found.reused, found.computed) == (kept, CELLS - kept)


def test_a_job_that_is_handed_out_at_the_interrupt_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = process_executor._ExecutorManagerThread
    ends = manager.is_shutting_down

    def is_shutting_down(self: Any) -> bool:
        ending = bool(ends(self))
        if ending:  # by a thread that was faster
            self.work_ids_queue.put(-1)
        return ending

    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(manager, "is_shutting_down", is_shutting_down)
    # pytest fails a test in which a thread fails
    with pytest.raises(KeyboardInterrupt):
        sweep(iris(), OVER, SETTINGS, progress=interrupt, pool=Pool(2, "loky"))


def test_a_worker_that_idles_out_meanwhile_is_no_error() -> None:
    assert jobs.IDLED_OUT in inspect.getsource(process_executor)
    assert jobs.MANAGER in inspect.getsource(process_executor)

    def tell(progress: Progress) -> None:
        if progress.done > 1:
            warnings.warn(f"{jobs.IDLED_OUT}.", UserWarning, stacklevel=1)

    sweep(iris(), {"epsilon": [0.1, 1.0, 10.0]}, SETTINGS, progress=tell, pool=Pool(2, "loky"))


_SCRIPT = """
import signal
import sys
from pathlib import Path
from dpviz.core.settings import Settings
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import sweep

def tell(progress):
    print(progress.done, flush=True)

# A shell starts background jobs with interrupts ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
settings = Settings(table="iris", trials=40, mechanisms=("gaussian", "laplace"))
over = {"epsilon": [0.1 * step for step in range(1, 1001)]}
try:
    sweep("iris", over, settings, store=Store(Path(sys.argv[1])), progress=tell)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_a_signal_leaves_whole_cells(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            if line.strip() == "25":
                break
        process.send_signal(signal.SIGINT)
        rest = lines.read().split()
    assert process.wait() == 0
    assert rest[-1] == "stopped"
    told = max([25, *map(int, rest[:-1])])
    # What was told is kept; one more may have been written when the signal came.
    assert told <= len(files(tmp_path)) <= told + 1
    assert not list(tmp_path.rglob("*.part"))
    keep = Store(tmp_path)
    for path in files(tmp_path):
        assert keep.get(path.stem) is not None
