"""Peak memory and time of loading a large table, each load in its own process.

``python benchmarks/table_memory.py [--rows 1000000] [--columns 22]`` writes a CSV
of standard normals with 8 digits and one text column to a temporary folder (about
210 MB), and the same as gzip and Parquet, then loads each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

LOAD = """
import io, json, resource, sys, time
from dpviz.datasets import read_raw
how, path = sys.argv[1:]
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = path
if how == "memory":
    with open(path, "rb") as file:
        source = io.BytesIO(file.read())
start = time.perf_counter()
raw = read_raw(source, name=path)
parsed = time.perf_counter()
table = raw.to_table(label="group")
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"shape": table.rows.shape, "read_s": round(parsed - start, 2),
    "to_table_s": round(done - parsed, 2), "imports_mib": base // 1024,
    "peak_mib": peak // 1024}))
"""


def write_files(folder: Path, rows: int, columns: int) -> list[Path]:
    rng = np.random.default_rng(0)
    csv, packed, parquet = (folder / f"big.{end}" for end in ("csv", "csv.gz", "parquet"))
    names = [f"x{j}" for j in range(columns)]
    step = 100_000
    writer = None
    with csv.open("wb") as file:
        file.write((",".join([*names, "group"]) + "\n").encode())
        for start in range(0, rows, step):
            block = rng.standard_normal((min(step, rows - start), columns)).round(6)
            table = pa.table([block[:, j] for j in range(columns)], names=names)
            group = pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, len(block))])
            table = table.append_column("group", group)
            pyarrow.csv.write_csv(
                table, file, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
            )
            writer = writer or pyarrow.parquet.ParquetWriter(parquet, table.schema)
            writer.write_table(table)
    if writer is not None:
        writer.close()
    with csv.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as file:
        shutil.copyfileobj(plain, file)
    return [csv, packed, parquet]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=22)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), given.rows, given.columns)
        for path in files:
            for how in ("path", "memory"):
                run = subprocess.run(
                    [sys.executable, "-c", LOAD, how, str(path)],
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                )
                size = path.stat().st_size / 2**20
                print(f"{path.name} ({size:.0f} MiB) from {how}: {json.loads(run.stdout)}")


if __name__ == "__main__":
    main()
