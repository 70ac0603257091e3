"""Mechanisms that read rows accept a table larger than the memory by which the process may grow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from dpviz.core.seeding import generator

N, D, STEP = 600_000, 30, 50_000  # The table takes 144 MB in total.
ROOM = 90  # MB
_CHILD = """
import sys
from pathlib import Path
import numpy as np, pyarrow.parquet as parquet
from dpviz import PrivatePCA
# Read VmHWM: ru_maxrss also counts the parent's memory from before exec.
def peak(): return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
def fit(X, mechanism):
    model = PrivatePCA(3, epsilon=1.0, delta=1e-6, center="none", row_bound="none",
                      mechanism=mechanism, random_state=0)
    model.fit_path(X) if isinstance(X, Path) else model.fit(X)
path, mechanism, how = sys.argv[1:]
fit(np.random.default_rng(0).standard_normal((20_000, 30)), mechanism)
before = peak()
X = Path(path) if how == "path" else parquet.read_table(path).to_pandas().to_numpy()
fit(X, mechanism)
print(peak() - before)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("large") / "rows.parquet", generator(6, "peak")
    schema = pa.schema([(f"c{j}", pa.float64()) for j in range(D)])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for _ in range(0, N, STEP):
            block = rng.standard_normal((STEP, D)) * np.geomspace(3, 0.3, D)
            writer.write_table(pa.table([*block.T], schema=schema))
    return path


def grown(path: Path, mechanism: str, how: str) -> float:
    command = [sys.executable, "-c", _CHILD, str(path), mechanism, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.parametrize("mechanism", ["funnel[sizes=0.25]", "clipped_gaussian"])
def test_a_fit_on_a_path_takes_the_memory_of_a_block(table: Path, mechanism: str) -> None:
    assert grown(table, mechanism, "path") < ROOM


def test_the_same_fit_of_an_array_takes_more(table: Path) -> None:
    """Control: the measurement detects a table that is held in memory."""
    assert grown(table, "funnel", "array") > ROOM
