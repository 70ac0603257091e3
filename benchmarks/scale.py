"""Measure second moments on a Dask cluster: row cost, worker memory, and the time for 1e8 rows.

The synthetic table is not stored: each partition is made when it is needed. Two workers of one
thread each are measured. The results are their CPU seconds per row, with and without making the
rows, and a worker's largest memory at two numbers of rows, which must not depend on this number.

Run ``python -m benchmarks.scale``: it prints the table of docs/scale.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

import dask.dataframe
import distributed
import numpy as np
import pandas as pd

from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import prepare_batches

ENTRIES = 4_000_000
"""Numbers in one partition: 32 MB in double precision."""


def made(number: int, d: int, rows: int) -> pd.DataFrame:
    """Return one partition of synthetic rows."""
    X = generator(0, "scale", d, number).standard_normal((rows, d)) / np.sqrt(np.arange(1, d + 1))
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(d)])


def spread(n: int, d: int, rows: int) -> Any:
    """Return n synthetic rows as a Dask DataFrame."""
    return dask.dataframe.from_map(
        made, range(n // rows), d=d, rows=rows, meta=made(0, d, rows).iloc[:0]
    )


def cpu() -> float:
    return time.process_time()


def peak() -> float:
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(client: Any, n: int, d: int, rows: int) -> tuple[float, float]:
    """Return the workers' total CPU seconds and the largest memory of one worker, in MB."""
    before = sum(client.run(cpu).values())
    prepare_batches(spread(n, d, rows), Settings(center="none"))
    return sum(client.run(cpu).values()) - before, max(client.run(peak).values())


def main() -> None:
    """Print one row of the table for each number of features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", default="20,100,784")
    parser.add_argument("--entries", type=float, default=2e8, help="n times d of the longer table")
    options = parser.parse_args()
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    print("| d | rows | CPU s per 1e6 rows | of it making them | worker at n/4, MB | at n, MB | "
          "1e8 rows on 16 workers |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for d in (int(text) for text in options.features.split(",")):
        rows = max(1_000, ENTRIES // d)
        n = int(options.entries) // d // rows * rows
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            _, small = measured(client, n // 4 // rows * rows, d, rows)
            seconds, large = measured(client, n, d, rows)
            before = sum(client.run(cpu).values())
            spread(n, d, rows).map_partitions(len, meta=(None, "int64")).sum().compute()
            making = sum(client.run(cpu).values()) - before
        per_million = seconds / n * 1e6
        print(
            f"| {d} | {n:,} | {per_million:.1f} | {making / n * 1e6:.1f} | {small:.0f} | "
            f"{large:.0f} | {per_million * 100 / 16 / 60:.1f} min |",
            flush=True,
        )


if __name__ == "__main__":
    main()
