"""Compare the core's cost on the Explore page with the least possible cost.

The least possible cost is the time to sample every mechanism's noise plus the decompositions that
results need. These are all eigenvalues of the release with its top k vectors, and two spectral
norms, on matrices of the right shape. For mechanisms that do not add noise to A, the whole release
counts as sampling.

Run ``python -m benchmarks.explore --table digits``, or ``--table wide`` for a generated table of
784 features (``wide:D`` for another number). Both costs are measured alternately in one process, as
CPU time on one thread, and the result is the ratio of their medians.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from dpviz import datasets
from dpviz.core import eigen
from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import Draws, generator
from dpviz.core.settings import Settings
from dpviz.datasets.table import Table
from dpviz.mechanisms._base import AdditiveMechanism
from dpviz.preparation.bounding import Prepared, prepare
from dpviz.simulation import simulate
from dpviz.simulation.cells import ResolvedSetting, plan
from dpviz.simulation.compare import compare


def wide(d: int, n: int = 20_000) -> Table:
    """Return a synthetic table: ten strong directions in a falling spectrum."""
    rng = generator(0, "wide", d)
    spread = np.concatenate([np.linspace(6, 3, 10), 1 / np.sqrt(np.arange(1, d - 9))])
    basis = np.linalg.qr(rng.standard_normal((d, d))).Q
    rows = (rng.standard_normal((n, d)) * spread) @ basis
    return Table(f"wide:{d}", rows, tuple(f"x{i}" for i in range(d)))


def floor(chosen: ResolvedSetting, prepared: Prepared) -> None:
    """Do only the necessary work: sample, and decompose matrices of the right shape."""
    for cell in chosen.cells:
        mechanism, problem = cell.mechanism, cell.problem
        draws = Draws.trials(cell.seed, mechanism.key, cell.trials)
        if isinstance(mechanism, AdditiveMechanism):
            noise = mechanism.standard_noise(problem, draws)
            values, vectors = eigen.top_eigen(noise, problem.k)
            matrices = noise
        else:
            calibration = mechanism.calibrate(problem, cell.budget)
            data = prepared.moment_with_rows if mechanism.needs_rows else prepared.moment
            release = mechanism.release_many(data, calibration, draws)
            if release.matrix is None or release.eigenvalues is None:
                continue
            matrices, values, vectors = release.matrix, release.eigenvalues, release.components
        eigen.spectral_norms(matrices)
        true = prepared.reference
        eigen.residual_norms(true.eigenvalues, true.eigenvectors, vectors, values[:, : problem.k])


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call, without noise stored by an earlier call."""
    simulate._standard_noise.cache_clear()
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="digits", help="a built-in name, or wide or wide:D")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mechanism", action="append", default=[], help="default: every one")
    arguments = parser.parse_args()
    name, _, features = arguments.table.partition(":")
    table = wide(int(features or 784)) if name == "wide" else datasets.load(arguments.table)
    settings = Settings(
        table="wine" if name == "wide" else arguments.table,
        trials=arguments.trials,
        mechanisms=tuple(arguments.mechanism),
    )
    prepared = prepare(table, settings)
    cells = plan(prepared, settings)
    times: dict[str, list[float]] = {"now": [], "floor": []}
    with one_blas_thread():
        compare(prepared, settings)  # This untimed first comparison fills the caches.
        for _ in range(arguments.rounds):
            times["now"].append(timed(lambda: compare(prepared, settings)))
            times["floor"].append(timed(lambda: floor(cells, prepared)))
    print(
        f"{arguments.table}: n {prepared.n}, d {prepared.d}, {arguments.trials} draws, "
        f"{len(cells.cells)} mechanisms"
    )
    for side, seconds in times.items():
        print(
            f"{side:<5} median {np.median(seconds):.3f} s  (min {min(seconds):.3f}, "
            f"max {max(seconds):.3f})"
        )
    median = {side: float(np.median(seconds)) for side, seconds in times.items()}
    print(f"now / floor {median['now'] / median['floor']:.2f}")


if __name__ == "__main__":
    main()
