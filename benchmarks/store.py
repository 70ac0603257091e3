"""The store of cells beside joblib.Memory: the time of a cell, and what damage does.

``python -m benchmarks.store`` prints milliseconds of writing and of reading one, files and bytes of
500 cells of four metrics with 50 draws, and how many of 50 files with a changed byte gave wrong
numbers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from joblib import Memory

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import generator
from dpviz.simulation.store import Store

CELLS, DAMAGED = 500, 50
Cells = dict[str, FloatArray]


def own(folder: Path, metrics: Cells) -> Callable[[str], Cells]:
    """Return what reads a cell of the store, or computes and keeps it."""
    store = Store(folder)

    def cell(key: str) -> Cells:
        found = store.get(key)
        if found is None:
            store.put(key, metrics)
        return metrics if found is None else found

    return cell


def of_joblib(folder: Path, metrics: Cells) -> Callable[[str], Cells]:
    """Return the same by joblib.Memory."""

    def cell(key: str) -> Cells:
        return metrics

    remembered: Callable[[str], Cells] = Memory(folder, verbose=0).cache(cell)
    return remembered


def main() -> None:
    """Print a line for each."""
    warnings.simplefilter("ignore")  # joblib says that a function in a function is hard to name
    draws = generator(0, "store").random((4, 50))
    metrics = {f"metric {number}": values for number, values in enumerate(draws)}
    keys = [f"{number:040x}" for number in range(CELLS)]
    for name, made in (("store", own), ("joblib.Memory", of_joblib)):
        with TemporaryDirectory() as folder:
            cell = made(Path(folder), metrics)
            seconds = []
            for _ in ("written", "read"):
                start = time.perf_counter()
                for key in keys:
                    cell(key)
                seconds.append((time.perf_counter() - start) / CELLS)
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in files)
            for path in files:
                if path.suffix in (".cell", ".pkl"):
                    content = bytearray(path.read_bytes())
                    content[len(content) // 2] ^= 255
                    path.write_bytes(content)
            wrong = 0
            for key in keys[:DAMAGED]:
                found = cell(key)
                wrong += any(not np.array_equal(found[one], metrics[one]) for one in metrics)
            wrote, read = (1e3 * one for one in seconds)
            print(
                f"{name}: {wrote:.2f} ms to write, {read:.2f} to read, {len(files)} files, "
                f"{size:,} bytes; {wrong} of {DAMAGED} damaged cells gave wrong numbers"
            )


if __name__ == "__main__":
    main()
