"""The command ``compare`` on a large Parquet file: now, and as it worked before, in one run.

Before: full eigendecompositions of the release and all eigenvalues twice more, all draws of a
mechanism in one array, the table prepared as one block and every row of it divided. Both sides are
the whole command in a process of its own, from start-up to the printed table, on one thread, in
turn; the time is CPU time, and the ratio of the medians is what counts.

Run ``python -m benchmarks.command``: 20,000 rows of 784 features, two mechanisms, 20 draws.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

MECHANISMS = ("gaussian", "wishart_difference")


def as_before() -> None:
    """Put the old path in place of the new one in this process."""
    from dpviz.core import eigen, metrics
    from dpviz.preparation import passes, transform
    from dpviz.sampling import wishart
    from dpviz.simulation import cells

    def into_domain(self: Any, rows: Any) -> tuple[Any, int]:
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        outside = norms > 1 + 1e-12
        return rows / np.maximum(norms, 1.0)[:, None], int(outside.sum())

    def factor(diagonal: Any, draws: Any) -> Any:
        size, d = diagonal.shape
        rows, columns = np.tril_indices(d, -1)
        found = np.zeros((size, d, d))
        flat = found.reshape(size, d * d)
        flat[:, rows * d + columns] = draws.normal(d * (d - 1) // 2)
        flat[:, :: d + 1] = diagonal
        return found

    def noise_frobenius(outcome: Any) -> Any:
        return np.linalg.norm(outcome.release.matrix - outcome.moment.A, axis=(1, 2))

    def noise_spectral(outcome: Any) -> Any:
        return eigen.spectral_norms(outcome.release.matrix - outcome.moment.A)

    eigen.BATCHED_BELOW = eigen.LANCZOS_FROM = 10**9
    cells._BLOCK_ENTRIES = passes._BLOCK_ENTRIES = 10**12
    transform.Transform.into_domain = into_domain
    wishart._factor = factor
    for key, compute in (("noise_frobenius", noise_frobenius), ("noise_spectral", noise_spectral)):
        object.__setattr__(metrics.METRICS[key], "compute", compute)


def command(words: list[str], *, before: bool) -> tuple[float, str]:
    """Return the CPU seconds of one command and what it printed."""
    start = "from benchmarks.command import as_before; as_before(); " if before else ""
    code = f"import sys; {start}from dpviz.cli import main; sys.exit(main())"
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    kept = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=os.environ | threads,
        check=True,
        capture_output=True,
        text=True,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - kept.ru_utime - kept.ru_stime, done.stdout


def main() -> None:
    """Print the medians and their ratio."""
    import pandas as pd

    from benchmarks.explore import wide

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {"now": [], "before": []}
    printed = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wide.parquet"
        table = wide(arguments.features, arguments.rows)
        pd.DataFrame(table.rows, columns=list(table.columns)).to_parquet(file)
        words = ["compare", str(file), "--trials", str(arguments.trials)]
        for key in MECHANISMS:
            words += ["--mechanism", key]
        command(["mechanisms"], before=False)  # compiles what is not compiled yet
        for _ in range(arguments.rounds):
            for side in times:
                used, printed[side] = command(words, before=side == "before")
                times[side].append(used)
    for side, found in times.items():
        print(f"{side:<7} median {np.median(found):.2f} s of CPU", *(f"{x:.2f}" for x in found))
    print(f"now / before {np.median(times['now']) / np.median(times['before']):.2f}")
    print(f"the same is printed: {printed['now'] == printed['before']}")


if __name__ == "__main__":
    main()
