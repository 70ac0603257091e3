"""A sweep with several workers against one.

Run ``python -m benchmarks.sweep``. Workers are started before the clock, as a
sweep of any length would not notice them; the last line counts them as well.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import prepare
from dpviz.simulation.jobs import Pool
from dpviz.simulation.sweep import sweep


def main() -> None:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="digits")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--values", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backend", default="loky")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    settings = Settings(table=arguments.table, trials=arguments.trials)
    prepared = prepare(datasets.load(settings.table), settings)
    over = {"epsilon": np.geomspace(0.1, 10, arguments.values).tolist()}
    many = Pool(arguments.workers, arguments.backend)

    def timed(pool: Pool) -> float:
        start = time.perf_counter()
        sweep(prepared, over, settings, pool=pool)
        return time.perf_counter() - start

    cold = timed(many)
    alone, together = [], []
    for _ in range(arguments.rounds):
        alone.append(timed(Pool()))
        together.append(timed(many))
    one, more = float(np.median(alone)), float(np.median(together))
    cells = sweep(prepared, over, settings).computed
    print(f"{arguments.table}: {cells} cells of {arguments.trials} trials")
    print(f"1 worker    median {one:.2f} s")
    print(f"{arguments.workers} workers   median {more:.2f} s, {one / more:.2f} times as fast")
    print(f"            with their start {cold:.2f} s, {one / cold:.2f} times as fast")


if __name__ == "__main__":
    main()
