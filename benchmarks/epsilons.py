"""Many epsilons of one draw: the frames of a board with and without noise that is kept.

Mechanisms that add noise scale one draw by what epsilon asks for, so the draw is kept from one
epsilon to the next. Before, every epsilon drew it again. The numbers are the same to the last byte.

Run ``python -m benchmarks.epsilons``: CPU time on one thread, both sides in turn in one run.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from dpviz.core.resources import one_blas_thread
from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.report.tables.frame import FRAME_METRICS
from dpviz.report.tables.scrub import frame_epsilons
from dpviz.simulation import cells, compare, simulate


def frames(table: str, mechanisms: tuple[str, ...], trials: int) -> tuple[float, list[bytes]]:
    """Return the CPU seconds of all frames and their numbers."""
    simulate._standard_noise.cache_clear()
    settings = Settings(table=table, mechanisms=mechanisms, trials=trials)
    prepared = load_prepared(settings)
    found = []
    started = time.process_time()
    for epsilon in frame_epsilons():
        here = Settings(table=table, mechanisms=mechanisms, trials=trials, epsilon=epsilon)
        for cell in cells.plan(prepared, here, strict=False).cells:
            values = compare.run_cell(cell, prepared, FRAME_METRICS).metrics["captured_share"]
            found.append(values.tobytes())
    return time.process_time() - started, found


def main() -> None:
    """Print the medians and their ratio for some tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", default="iris,wine,digits")
    parser.add_argument("--mechanism", action="append", default=[])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    chosen = tuple(arguments.mechanism) or ("gaussian", "laplace_tight", "wishart_difference")
    kept = simulate._SHARED_ENTRIES
    for table in arguments.tables.split(","):
        times: dict[int, list[float]] = {kept: [], 0: []}
        numbers = {}
        with one_blas_thread():
            for _ in range(arguments.rounds):
                for entries, found in times.items():
                    simulate._SHARED_ENTRIES = entries
                    seconds, numbers[entries] = frames(table, chosen, arguments.trials)
                    found.append(seconds)
        now, before = np.median(times[kept]), np.median(times[0])
        print(
            f"{table}: {len(frame_epsilons())} epsilons of {len(chosen)} mechanisms: {now:.2f} s, "
            f"before {before:.2f} s, now / before {now / before:.2f}, "
            f"same bytes: {numbers[kept] == numbers[0]}"
        )


if __name__ == "__main__":
    main()
