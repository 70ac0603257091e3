"""What a visitor waits for after a large upload: 20,000 rows of 784 features as Parquet.

The dashboard runs without a browser, as Streamlit's own test runner does it, so nothing is counted
for sending and painting. Taken is the CPU time of the process on one thread, for a clock would
measure whatever else the machine does: until the file is read, from then until the first draw of
every mechanism stands on the page, and until all draws and the board do. Progress is shown between
them, and a change of any setting stops the run.

Run ``python -m benchmarks.upload``; ``--features 1500`` is the most that pages take.
"""

from __future__ import annotations

import argparse
import io
import os
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

GOAL = 2.0  # seconds from the table that is read to the first numbers


def marked(done: list[float], work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes when it has ended."""

    def call(*args: Any, **options: Any) -> Any:
        found = work(*args, **options)
        done.append(time.process_time())
        return found

    return call


def main() -> None:
    """Print the three times."""
    import pandas as pd

    from benchmarks.explore import wide
    from dpviz.datasets.raw import RawTable
    from pages.ui import board
    from tests.ui.driver import errors, start, upload

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=20)
    arguments = parser.parse_args()
    table = wide(arguments.features, arguments.rows)
    file = io.BytesIO()
    pd.DataFrame(table.rows, columns=list(table.columns)).to_parquet(file)
    at = start(trials=str(arguments.trials))
    at.default_timeout = 600
    read: list[float] = []
    first: list[float] = []
    RawTable.to_table = marked(read, RawTable.to_table)  # type: ignore[method-assign]
    board.narrative.first_draw = marked(first, board.narrative.first_draw)
    started = time.process_time()
    upload(at, "wide.parquet", file.getvalue())
    ended = time.process_time()
    assert errors(at) == [], errors(at)
    print(f"{arguments.rows:,} x {arguments.features}, {file.tell() / 1e6:.0f} MB")
    print(f"read                         {read[0] - started:5.2f} s of CPU")
    print(f"then to the first numbers    {first[0] - read[0]:5.2f} s (goal {GOAL:g} at 784)")
    print(f"then to all {arguments.trials:3} draws, board {ended - first[0]:5.2f} s")


if __name__ == "__main__":
    main()
