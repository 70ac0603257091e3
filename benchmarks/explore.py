"""Core cost of the Explore page against the least it could cost.

The floor is the sampling of every mechanism's noise plus one bare batched
LAPACK eigenvalue call for each decomposition that a result needs: the released
matrix with vectors, the noise alone, and the rank-k residual, values only. Of
mechanisms that do not add noise to A, the whole release counts as sampling.

Run ``python -m benchmarks.explore``; both sides are measured in turn in one
process, and the ratio of their medians is what counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from dpviz import datasets
from dpviz.base.blas import one_blas_thread
from dpviz.base.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.prepare.bounding import Prepared, prepare
from dpviz.run.cells import Plan, plan
from dpviz.run.compare import compare
from dpviz.settings import Settings


def floor(chosen: Plan, prepared: Prepared) -> None:
    """Do the least work: sample, and call LAPACK on matrices of the right shape."""
    for cell in chosen.cells:
        mechanism, problem = cell.mechanism, cell.problem
        draws = Draws.trials(cell.seed, mechanism.key, cell.trials)
        if isinstance(mechanism, AdditiveMechanism):
            noise = mechanism.standard_noise(problem, draws)
            np.linalg.eigh(noise)
            np.linalg.eigvalsh(noise)
            np.linalg.eigvalsh(noise)
        else:
            calibration = mechanism.calibrate(problem, cell.budget)
            data = prepared.moment_with_rows if mechanism.info.needs_rows else prepared.moment
            release = mechanism.release_many(data, calibration, draws)
            if release.matrix is not None and release.matrix.strides[0]:
                np.linalg.eigvalsh(release.matrix)
                np.linalg.eigvalsh(release.matrix)


def timed(work: Callable[[], object]) -> float:
    """Return the wall time of one call, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="digits")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    settings = Settings(table=arguments.table, trials=arguments.trials)
    prepared = prepare(datasets.load(settings.table), settings)
    chosen = plan(prepared, settings)
    with one_blas_thread():
        compare(prepared, settings)
        floor(chosen, prepared)
        core, least = [], []
        for _ in range(arguments.rounds):
            core.append(timed(lambda: compare(prepared, settings)))
            least.append(timed(lambda: floor(chosen, prepared)))
    print(
        f"{arguments.table}: n {prepared.n}, d {prepared.d}, {arguments.trials} draws, "
        f"{len(chosen.cells)} mechanisms"
    )
    print(f"core   median {np.median(core):.3f} s  (min {min(core):.3f}, max {max(core):.3f})")
    print(f"floor  median {np.median(least):.3f} s  (min {min(least):.3f}, max {max(least):.3f})")
    print(f"ratio  {np.median(core) / np.median(least):.2f}")


if __name__ == "__main__":
    main()
