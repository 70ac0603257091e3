"""Second moments of a Parquet file in batches, against reading it and one BLAS product.

The floor reads every batch and does nothing with it, and then multiplies as
many rows of the same shape by themselves in blocks (BLAS syrk). Both sides run
in processes of their own, in turn, after one run to warm the disk cache; what
counts is the ratio of the medians, and that peak memory does not grow with n.

Run ``python -m benchmarks.moments``; ``--rows 1e5,1e6,1e7`` picks the sizes. Files
are made in a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from dpviz.blas import one_blas_thread
from dpviz.prepare import prepare_batches
from dpviz.seeding import generator
from dpviz.settings import Settings

D = 50
_BATCH = 1 << 16


def write(path: Path, n: int) -> None:
    """Write n rows of D correlated columns, a row group at a time."""
    rng = generator(0, "benchmark", n)
    mixing = rng.standard_normal((D, D)) / D**0.5
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(D)])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n, 2 * _BATCH):
            rows = rng.standard_normal((min(2 * _BATCH, n - start), D)) @ mixing + 5
            columns = [np.ascontiguousarray(rows[:, j]) for j in range(D)]
            writer.write_table(pa.table(columns, schema=schema))


def read(path: Path) -> None:
    """Read every batch and drop it."""
    for _ in parquet.ParquetFile(path).iter_batches(batch_size=_BATCH):
        pass


def multiply(n: int) -> None:
    """Add up X'X over n rows that are at hand."""
    block = generator(0, "block").standard_normal((_BATCH, D))
    total = np.zeros((D, D))
    for start in range(0, n, _BATCH):
        part = block[: min(_BATCH, n - start)]
        total += part.T @ part


def measure(what: str, path: Path, n: int) -> dict[str, float]:
    """Return seconds and peak memory of one side, in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with one_blas_thread():
        if what == "floor":
            read(path)
            multiply(n)
        else:
            prepare_batches(path, Settings(row_bound=what))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "peak": peak / 1024, "added": (peak - before) / 1024}


def apart(what: str, path: Path, n: int) -> dict[str, float]:
    """Return the measurement of one side, made in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.moments", "--side", what]
    command += ["--path", str(path), "--rows", str(n)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def main() -> None:
    """Print medians, ratios and peak memory for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1e5,1e6,1e7")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(measure(arguments.side, Path(arguments.path), int(arguments.rows))))
        return
    print(f"{'rows':>9} {'row bound':>13} {'floor s':>8} {'ours s':>8} {'ratio':>6} {'peak MB':>8}")
    for text in arguments.rows.split(","):
        n = int(float(text))
        folder = Path(tempfile.mkdtemp(prefix="dpviz-benchmark-"))
        try:
            path = folder / "rows.parquet"
            needed = n * D * 8
            if shutil.disk_usage(folder).free < 2 * needed:
                print(
                    f"{n:>9} needs {needed / 2**30:.1f} GiB of disk, and there is less than twice"
                )
                continue
            write(path, n)
            apart("floor", path, n)
            for bound in ("max", "12", "quantile:0.9"):
                sides: dict[str, list[dict[str, float]]] = {"floor": [], bound: []}
                for _ in range(arguments.rounds):
                    for side, found in sides.items():
                        found.append(apart(side, path, n))
                floor, ours = (
                    float(np.median([one["seconds"] for one in found])) for found in sides.values()
                )
                peak = max(one["peak"] for one in sides[bound])
                times = f"{floor:>8.3f} {ours:>8.3f} {ours / floor:>6.2f}"
                print(f"{n:>9} {bound:>13} {times} {peak:>8.0f}", flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
