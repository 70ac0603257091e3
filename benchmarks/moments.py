"""Second moments of a Parquet file in batches, against reading it and one BLAS product.

The floor reads every batch and does nothing with it, and then multiplies as
many rows of the same shape by themselves in blocks (BLAS syrk). Both sides run
in processes of their own, in turn, after one run to warm the disk cache; what
counts is the ratio of the medians, and that peak memory does not grow with n. The
ratio of processor times is that of a machine whose other cores are busy.

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

from dpviz.core.resources import one_blas_thread
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import prepare_batches

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
    """Read every batch and drop it, without buffering ahead: faster, and flat in memory."""
    for _ in parquet.ParquetFile(path, pre_buffer=False).iter_batches(batch_size=_BATCH):
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
    start, busy = time.perf_counter(), time.process_time()
    with one_blas_thread():
        if what == "floor":
            read(path)
            multiply(n)
        else:
            prepare_batches(path, Settings(row_bound=what))
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "busy": busy, "peak": peak / 1024}


def apart(what: str, path: Path, n: int) -> dict[str, float]:
    """Return the measurement of one side, made in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.moments", "--side", what]
    command += ["--path", str(path), "--rows", str(n)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def _median(side: list[dict[str, float]], what: str) -> float:
    return float(np.median([one[what] for one in side]))


def _ratio(ours: list[dict[str, float]], floor: list[dict[str, float]], what: str) -> float:
    return _median(ours, what) / _median(floor, what)


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
    print("     rows     row bound  floor s  ours s  ratio  ratio CPU  floor MB  ours MB")
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
            for bound in ("max", "12"):
                sides: dict[str, list[dict[str, float]]] = {"floor": [], bound: []}
                for _ in range(arguments.rounds):
                    for side, found in sides.items():
                        found.append(apart(side, path, n))
                floor, ours = sides.values()
                peaks = [max(one["peak"] for one in side) for side in (floor, ours)]
                print(
                    f"{n:>9} {bound:>13} {_median(floor, 'seconds'):>8.3f} "
                    f"{_median(ours, 'seconds'):>7.3f} {_ratio(ours, floor, 'seconds'):>6.2f} "
                    f"{_ratio(ours, floor, 'busy'):>10.2f} {peaks[0]:>9.0f} {peaks[1]:>8.0f}",
                    flush=True,
                )
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
