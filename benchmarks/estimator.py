"""Measure time and memory of `PrivatePCA` beside scikit-learn's PCA on the same rows.

``python -m benchmarks.estimator [--rows 1000000] [--columns 50]`` writes rows in single precision
to a temporary folder. Each fit has its own process, which loads the rows and then measures the CPU
time of all threads and the most additional memory. The result is the smallest of several runs. A
fit from a file does not load the rows first, so its memory is everything beyond the imports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

_FIT = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.decomposition import PCA
from dpviz import PrivatePCA

def held(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024

how, folder = sys.argv[1:]
small = np.random.default_rng(0).standard_normal((4096, 3)).astype(np.float32)
PrivatePCA(2, center="none").fit(small), PCA(2).fit(small)  # imports
from_file = how in ("fit_path", "read")
if from_file:
    from pyarrow import parquet
    PrivatePCA(2, center="none").fit_path(folder + "/small.parquet")
rows = None if from_file else np.load(folder + "/rows.npy")
fits = {
    "scikit-learn": lambda: PCA(10).fit(rows),
    "auto": lambda: PrivatePCA(10, center="none").fit(rows),
    "pure": lambda: PrivatePCA(10, delta=0.0, center="none").fit(rows),
    "row_bound": lambda: PrivatePCA(
        10, mechanism="gaussian", row_bound=60.0, center="none"
    ).fit(rows),
    "spherical": lambda: PrivatePCA(10, mechanism="spherical", center="none").fit(rows),
    "fit_path": lambda: PrivatePCA(10, center="none").fit_path(folder + "/rows.parquet"),
}
def read():
    file = parquet.ParquetFile(folder + "/rows.parquet", buffer_size=1 << 18)
    for batch in file.iter_batches(batch_size=1 << 16):
        pass
fits["read"] = read
def partial():
    pca = PrivatePCA(10, center="none")
    for start in range(0, len(rows), 50_000):
        pca.partial_fit(rows[start : start + 50_000])
    pca.finalize()
fits["partial_fit"] = partial
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak is counted from here
before, wall, cpu = held("VmRSS"), time.perf_counter(), time.process_time()
fits[how]()
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
print(json.dumps({"cpu": cpu, "wall": wall, "beside": held("VmHWM") - before}))
"""
_SAID = {
    "scikit-learn": "scikit-learn's `PCA(10)`",
    "auto": '`PrivatePCA(10, center="none")`',
    "pure": '`PrivatePCA(10, delta=0, center="none")`',
    "row_bound": '`mechanism="gaussian", row_bound=60`',
    "spherical": '`mechanism="spherical"`, variances bought',
    "partial_fit": "`partial_fit` of 20 parts, `finalize`",
    "fit_path": "`fit_path` of the rows as Parquet",
    "read": "that file read once, and nothing done with it",
}


def _write(folder: Path, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    table = np.empty((rows, columns), dtype=np.float32)
    scale = 1 / np.sqrt(np.arange(1, columns + 1))
    for start in range(0, rows, 100_000):
        block = rng.standard_normal((min(100_000, rows - start), columns))
        table[start : start + len(block)] = 10 * block * scale
    np.save(folder / "rows.npy", table)
    for name, part in (("rows", table), ("small", table[:4096])):
        names = [f"x{j}" for j in range(columns)]
        arrays = pa.table([part[:, j] for j in range(columns)], names=names)
        parquet.write_table(arrays, folder / f"{name}.parquet")


def _measured(how: str, folder: Path, runs: int) -> dict[str, float]:
    """Return the smallest of several runs, each in its own process."""
    rows = []
    for _ in range(runs):
        result = subprocess.run(
            [sys.executable, "-c", _FIT, how, str(folder)],
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append(json.loads(result.stdout))
    return {name: min(one[name] for one in rows) for name in rows[0]}


def main() -> None:
    """Measure each way to fit, and print one row for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    size = 4.0 * options.rows * options.columns
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, options.rows, options.columns)
        by_name = {how: _measured(how, folder, options.runs) for how in _SAID}
    least = by_name["scikit-learn"]
    print(f"{options.rows:,} x {options.columns} in single precision, {size / 1e6:.0f} MB\n")
    print("| fit | CPU, s | of scikit-learn's | wall, s | memory, of the rows' |")
    print("|---|---|---|---|---|")
    for how, one in by_name.items():
        rows = 0.0 if how in ("fit_path", "read") else 1.0
        print(
            f"| {_SAID[how]} | {one['cpu']:.2f} | {one['cpu'] / least['cpu']:.1f} | "
            f"{one['wall']:.2f} | {rows + one['beside'] / size:.2f} |"
        )


if __name__ == "__main__":
    main()
