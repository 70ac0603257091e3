"""Measure the cost of reading small uploads that unpack to a maximum size.

``python -m benchmarks.bombs`` makes gzip and Parquet files of at most 1.5 MB. Unpacked, they are
far above the upload limits, just below the limits, very wide, or one long text repeated. A child
process with limits reads each file as a page does, and turns its columns into numbers with every
option that adds columns. The exit status is 1 if a file takes more than 2 GB here or gives anything
but a table or one message.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MOST_MIB = 2048
MOST_BYTES = 3 << 19  # This limit is 1.5 MB.

READ = r"""
import json, re, sys, time
from dpviz.datasets.table import ReadOptions
from dpviz.datasets import UPLOADED_CELLS, read_raw
from dpviz.core.errors import DpvizError
name, path = sys.argv[1:]
content = open(path, "rb").read()
start = time.perf_counter()
try:
    raw = read_raw(content, name=name, cells=UPLOADED_CELLS)
    table = raw.to_table(ReadOptions(categorical="onehot", missing="median"))
    said = f"{table.rows.shape[0]:,} x {table.rows.shape[1]:,} numbers"
except DpvizError as error:
    said = str(error)
# of this process alone: what getrusage says includes the one that started it
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) // 1024
print(json.dumps({"said": said, "mib": peak, "seconds": round(time.perf_counter() - start, 1)}))
"""


def packed(line: bytes, times: int, head: bytes = b"a,b\n") -> bytes:
    """Return a gzip of one line repeated, packed in pieces."""
    piece = gzip.compress(line * max((4 << 20) // len(line), 1), 9, mtime=0)
    pieces = max(times * len(line) // (4 << 20), 1)
    return gzip.compress(head, mtime=0) + piece * pieces


def parquet(columns: dict[str, pa.Array], **options: object) -> bytes:
    """Return a Parquet file of columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd", compression_level=19, **options)
    return sink.getvalue()


def constant(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column of one value, which a Parquet file stores once."""
    return pa.repeat(pa.scalar(value, kind), rows)


def _coded(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), [text])


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip, 1 GiB of text": lambda: packed(b"1,2\n", 1 << 28),
    "gzip, as many cells as are allowed": lambda: packed(b"1,2\n", (1 << 24) - (1 << 21)),
    "gzip, 500 MB of blanks in few cells": lambda: packed(b"1," + b" " * 1000 + b"2\n", 480_000),
    "gzip, texts of 100 kB": lambda: packed(b"1," + b"x" * 100_000 + b"\n", 4_000),
    "gzip, 20,000 columns": lambda: packed(
        b"1," * 19_999 + b"2\n", 1_500, (",".join(f"c{j}" for j in range(20_000)) + "\n").encode()
    ),
    "Parquet, 200 million rows": lambda: parquet(
        {"a": constant(1, pa.int8(), 200_000_000), "b": constant(2, pa.int8(), 200_000_000)}
    ),
    "Parquet, as many cells as are allowed": lambda: parquet(
        {name: constant(1.5, pa.float64(), 4_100_000) for name in "abcdefgh"}
    ),
    "Parquet, all missing": lambda: parquet(
        {name: constant(None, pa.float64(), 16_000_000) for name in "ab"}
    ),
    "Parquet, one text of 1 MB in every row": lambda: parquet(
        {"a": _coded("x" * 1_000_000, 2_000_000), "b": constant(1, pa.int64(), 2_000_000)}
    ),
    "Parquet, decimals of 76 digits": lambda: parquet(
        {name: constant(1, pa.decimal256(76), 4_000_000) for name in "abcd"}
    ),
}


def main() -> int:
    """Read every compression bomb, or the bombs named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    wrong = 0
    for name, make in BOMBS.items():
        if options.names and name not in options.names:
            continue
        content = make()
        ending = "parquet" if name.startswith("Parquet") else "csv.gz"
        with tempfile.NamedTemporaryFile(suffix=f".{ending}") as file:
            Path(file.name).write_bytes(content)
            words = [sys.executable, "-c", READ, f"bomb.{ending}", file.name]
            job = subprocess.run(words, capture_output=True, text=True, check=False)
        if job.returncode:
            wrong += 1
            print(f"{name}: {job.stderr.strip().splitlines()[-1] if job.stderr else 'killed'}")
            continue
        report = json.loads(job.stdout)
        bad = report["mib"] > MOST_MIB or len(content) > MOST_BYTES or "\n" in report["said"]
        wrong += bad
        print(
            f"{name} ({len(content) / 1e6:.2f} MB): {report['mib']} MiB, {report['seconds']} s"
            f"{' TOO MUCH' if bad else ''}: {report['said']}",
            flush=True,
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
