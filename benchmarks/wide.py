"""What few rows of many columns cost on the command line: seconds and memory.

``python -m benchmarks.wide`` writes a table of 5 rows and 5,000 columns and compares what is exact
about it (no noise, a random subspace) and one mechanism that adds a matrix of noise, one process
each. ``--checkout DIR`` measures the code of another checkout, such as that of an older commit.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

SETS = {
    "exact": ("non_private", "random_projection"),
    "a subspace from products": ("noisy_power_exact",),
    "a matrix of noise": ("gaussian",),
}


def measured(words: list[str], folder: Path) -> tuple[int, float, float]:
    """Return the status, CPU seconds and peak megabytes of a command of a checkout."""
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "dpviz", *words])
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    return os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024


def main() -> None:
    """Write the table, run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--columns", type=int, default=5_000)
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parents[1])
    given = parser.parse_args()
    rows = np.random.default_rng(0).normal(size=(given.rows, given.columns))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.csv"
        names = ",".join(f"c{i}" for i in range(given.columns))
        np.savetxt(path, rows, delimiter=",", fmt="%.6g", header=names, comments="")
        for name, keys in SETS.items():
            words = ["compare", str(path), "--trials", "1"]
            words += [word for key in keys for word in ("--mechanism", key)]
            status, seconds, megabytes = measured(words, given.checkout)
            ended = "" if status == 0 else f", status {status}"
            print(f"{name}: {seconds:.1f} s of CPU, {megabytes:.0f} MB{ended}", flush=True)


if __name__ == "__main__":
    main()
