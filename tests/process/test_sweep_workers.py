"""Sweeps in several processes, and interrupted ones: the same bytes, and whole cells."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.jobs import Pool, Progress
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import sweep

SETTINGS = Settings(table="iris", delta=1e-3, trials=4, seed=3, mechanisms=("gaussian", "laplace"))
OVER = {"epsilon": [0.1, 0.3, 1.0, 3.0, 10.0], "k": [1, 2, 3]}
CELLS = 30


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
    together = sweep(iris(), over, SETTINGS, pool=Pool(number, backend))
    pd.testing.assert_frame_equal(alone.table, together.table, check_exact=True)


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
