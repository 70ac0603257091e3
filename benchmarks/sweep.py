"""A sweep with several workers against this process alone, and a small one.

Run ``python -m benchmarks.sweep``. Each round takes the sweep with workers that are still to start,
here alone, and with workers that wait from the sweep before; the small one is of one epsilon.

``--kill`` asks something else: a Dask cluster of so many worker processes on this machine does the
sweep, and again while one of them is killed a third of the way.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd

from dpviz import datasets
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation.jobs import Pool, Progress
from dpviz.simulation.sweep import sweep


def lose(
    prepared: Prepared, over: dict[str, list[float]], settings: Settings, workers: int
) -> None:
    """Print what a sweep takes on a local cluster, and what it takes where a worker is killed.

    Raises
    ------
    AssertionError
        If the numbers are not those of this process.
    """
    from distributed import LocalCluster  # for this alone

    alone = sweep(prepared, over, settings)
    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=workers, threads_per_worker=1, **quiet) as cluster:
        pool = Pool(workers, "dask", cluster.scheduler_address)
        victims = [worker.pid for worker in cluster.workers.values()]
        killed: list[int] = []

        def tell(progress: Progress) -> None:
            if not killed and 3 * progress.done > progress.total:
                killed.append(victims[0])
                os.kill(victims[0], signal.SIGKILL)

        sweep(prepared, over, settings, pool=pool)  # workers load what they need
        for name, told in (("all of them there", None), ("one of them killed", tell)):
            start = time.perf_counter()
            found = sweep(prepared, over, settings, pool=pool, progress=told)
            seconds = time.perf_counter() - start
            pd.testing.assert_frame_equal(alone.table, found.table, check_exact=True)
            print(f"{workers} workers, {name}: {found.computed} cells in {seconds:.1f} s, the same")
    assert killed


def main() -> None:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="digits")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--values", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backend", default="loky")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--once", choices=("whole", "small"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings = Settings(table=arguments.table, trials=arguments.trials)
    prepared = prepare(datasets.load(settings.table), settings)
    over = {"epsilon": np.geomspace(0.1, 10, arguments.values).tolist()}
    if arguments.kill:
        lose(prepared, over, settings, arguments.workers)
        return
    many = Pool(arguments.workers, arguments.backend)
    small = {"epsilon": over["epsilon"][:1]}

    def timed(pool: Pool, over: dict[str, list[float]] = over) -> float:
        start = time.perf_counter()
        sweep(prepared, over, settings, pool=pool)
        return time.perf_counter() - start

    if arguments.once:  # in a process that has no workers yet
        sweep(prepared, small, settings)  # which imports what cells need
        print(timed(many, small if arguments.once == "small" else over))
        return

    def cold(what: str) -> float:
        command = [sys.executable, "-m", "benchmarks.sweep", *sys.argv[1:], "--once", what]
        return float(subprocess.run(command, capture_output=True, check=True).stdout)

    times: dict[str, list[float]] = {}
    timed(many)
    for _ in range(arguments.rounds):
        for name, took in (
            ("start", cold("whole")), ("alone", timed(Pool())), ("wait", timed(many)),
            ("small", cold("small")), ("small alone", timed(Pool(), small)),
        ):  # fmt: skip
            times.setdefault(name, []).append(took)
    found = {name: float(np.median(taken)) for name, taken in times.items()}
    cells, few = (sweep(prepared, what, settings).computed for what in (over, small))
    print(f"{arguments.table}: {cells} cells of {arguments.trials} trials")
    print(f"in this process           {found['alone']:.2f} s")
    for name, what in (("start", "meanwhile"), ("wait", "before")):
        ratio = found["alone"] / found[name]
        words = f"{arguments.workers} workers, started {what}"
        print(f"{words:25} {found[name]:.2f} s, {ratio:.2f} times as fast")
    print(f"{few} cells in this process {found['small alone']:.2f} s")
    print(f"{few} cells, {arguments.workers} workers   {found['small']:.2f} s")


if __name__ == "__main__":
    main()
