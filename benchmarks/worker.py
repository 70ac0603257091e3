"""The process that a long fit runs in beside loky's: start, a piece of work, and a killed maker.

``python -m benchmarks.worker`` prints for both the seconds of the first piece and of each further
one, how many processes there are meanwhile, and whether a piece of half a minute goes on once its
maker is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from joblib.externals.loky import ProcessPoolExecutor

from dpviz.core.worker import WorkerProcess

PIECES, LONG, PATIENCE = 50, 30.0, 5.0
_OWN = """from dpviz.core.worker import WorkerProcess
own = WorkerProcess()
print(own.run(os.getpid), flush=True)
own.run(time.sleep, {long})"""
_LOKY = """from joblib.externals.loky import ProcessPoolExecutor
own = ProcessPoolExecutor(max_workers=1)
print(own.submit(os.getpid).result(), flush=True)
own.submit(time.sleep, {long}).result()"""


def children() -> int:
    """Return how many processes this one has started that still run."""
    found = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        state, parent = status.read_text().rpartition(")")[2].split()[:2]
        found += int(parent) == os.getpid() and state != "Z"
    return found


def timed(run: Callable[[], object]) -> tuple[float, float, int]:
    """Return the seconds of the first piece and of each further one, and the processes then."""
    began = time.perf_counter()
    run()
    first = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(PIECES):
        run()
    return first, (time.perf_counter() - began) / PIECES, children()


def goes_on(program: str) -> bool:
    """Return whether work goes on some seconds after its maker was killed."""
    code = "import os, time\n" + program.format(long=LONG)
    maker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    worker = Path("/proc", maker.stdout.readline().strip(), "stat")
    time.sleep(1.0)  # it is at its piece by now
    maker.kill()
    maker.wait()
    time.sleep(PATIENCE)
    return worker.exists() and worker.read_text().rpartition(")")[2].split()[0] != "Z"


def main() -> None:
    """Print a line for each."""
    with WorkerProcess() as own:
        measured = {"own": timed(lambda: own.run(os.getpid))}
    pool = ProcessPoolExecutor(max_workers=1)
    measured["loky"] = timed(lambda: pool.submit(os.getpid).result())
    pool.shutdown(kill_workers=True)
    for (name, (first, each, count)), program in zip(measured.items(), (_OWN, _LOKY), strict=True):
        after = "goes on" if goes_on(program) else "ends"
        print(
            f"{name}: first piece {first:.2f} s, each further {1e3 * each:.1f} ms, {count} "
            f"processes; {after} when its maker is killed"
        )


if __name__ == "__main__":
    main()
