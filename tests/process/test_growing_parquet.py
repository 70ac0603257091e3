"""Small Parquet files that grow while they are read, at all doors of a process of little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import growing_parquet

resource = pytest.importorskip("resource", reason="no limits on Windows")

# twice what is read into memory, and what threads have beside
_MOST = (2 << 29) + (1 << 28)

_READ = rf"""
import json, re, resource, sys
import pyarrow as pa
from dpviz.core.errors import DpvizError
from dpviz.datasets import UPLOADED, in_batches, read_raw, read_table
from dpviz.datasets.table import ReadOptions
from dpviz.releasing.drafting import draft
from dpviz.releasing.records import open_records
from dpviz.releasing.schema import Column, Schema
from pathlib import Path

pa.set_cpu_count(1)
path = Path(sys.argv[1])
numbers = Schema((Column("a", 0, 9), Column("c", 0, 9)))
texts = Schema((Column("a", 0, 9), Column("b", 0, 9)))
doors = {{
    "page": lambda: read_raw(path.read_bytes(), name="t", limits=UPLOADED).shape[0],
    "table": lambda: type(read_table(path)).__name__,
    "batches": lambda: len(in_batches(path).first()),
    "label": lambda: len(in_batches(path, ReadOptions(label="b")).first()),
    "schema": lambda: len(draft(path, "t", "none", levels=(("low", "high"),)).columns),
    "numbers": lambda: sum(map(len, open_records(path, numbers).blocks())),
    "texts": lambda: sum(map(len, open_records(path, texts).blocks())),
}}
size = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1])
most = size * 1024 + {_MOST}
resource.setrlimit(resource.RLIMIT_AS, (most, most))
found = {{}}
for name, door in doors.items():
    try:
        found[name] = door()
    except DpvizError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    return growing_parquet()


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for its size")
@pytest.mark.parametrize(
    ("which", "read"),
    [
        ("one text in every row", "page table batches label schema numbers texts"),
        ("long texts", "table batches label schema numbers texts"),
        ("texts that repeat the one before", "numbers"),
        ("more lengths than rows", "numbers"),
    ],
)
def test_no_door_takes_more_than_it_may(
    which: str, read: str, made: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(made[which])
    assert len(made[which]) < 400_000
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        # that of Arrow's own takes a gigabyte of addresses before it is asked
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert done.returncode == 0, done.stderr[-500:]
    found = json.loads(done.stdout)
    # short of memory Arrow says what it says of damaged files, which is neither of these
    said = (
        "t unpacks to more than 512 MiB",
        "has texts in a delta encoding in 'b', which may unpack",
    )
    refused = [door for door, what in found.items() if any(one in str(what) for one in said)]
    assert refused == [door for door in found if door not in read.split()], found
    assert not [door for door in read.split() if " " in str(found[door])], found
