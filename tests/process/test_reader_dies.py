"""Files that take gigabytes or never end stop only the child process that reads them."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpviz.core.cancelling import cancelled_by
from dpviz.core.errors import DpvizError, InvalidTable
from dpviz.datasets import in_batches, process, read_raw
from dpviz.datasets.table import ReadOptions
from dpviz.releasing.records import open_records
from dpviz.releasing.schema import Column, Schema
from tests.hostile import growing_parquet, killing_workbook, lying_parquet

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for its size")

_GROWING = growing_parquet()


def _far_cell() -> bytes:
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "_rels/.rels",
            f'<Relationships {package}><Relationship Id="r" Type="{office}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook {main} xmlns:r="{office}"><sheets><sheet name="a" sheetId="1" '
            'r:id="rId1"/></sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships {package}><Relationship Id="rId1" Type="{office}/worksheet" '
            'Target="worksheets/sheet1.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            f'<worksheet {main}><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576">'
            '<c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>',
        )
    return sink.getvalue()


def _stata() -> bytes:
    """Return a Stata file in which 400,000 cells share a word of 30 kB: 12 GB."""
    sink = io.BytesIO()
    frame = pd.DataFrame({"a": np.zeros(400_000), "b": np.zeros(400_000, np.int8)})
    labels = {"b": {0: "y" * 30_000}}
    frame.to_stata(sink, write_index=False, version=118, value_labels=labels)
    return sink.getvalue()


HOSTILE: dict[str, Callable[[], bytes]] = {
    **{f"Parquet: {name}": lambda name=name: _GROWING[name] for name in _GROWING},  # type: ignore[misc]
    "Parquet: pages of more than the footer says": lying_parquet,
    "gzip: 600 MB of text": lambda: (
        gzip.compress(b"a,b\n", mtime=0) + gzip.compress(b"1,2\n" * (1 << 20), 1, mtime=0) * 150
    ),
    "gzip: one line without an end": lambda: gzip.compress(b"a,b\n" + b"x" * (1 << 26), 1),
    "an xls that claims 137 GB": killing_workbook,
    "an xlsx with a cell far out": _far_cell,
    "JSON: 20,000 records with names of their own": lambda: b"\n".join(
        b'{"k%d": 1}' % j for j in range(20_000)
    ),
    "Stata: a long word in every row": _stata,
    "SPSS: labels of a variable that is not there": lambda: (
        b"$FL2@(#) " + bytes(60) + struct.pack("<3i", 4, 1, 1 << 16) * 100
    ),
}


def _resident() -> int:
    """Return this process's peak memory since the last call, in MiB."""
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    Path("/proc/self/clear_refs").write_text("5")
    assert match is not None
    return int(match[1]) >> 10


@pytest.mark.parametrize("which", HOSTILE)
def test_a_hostile_file_is_read_or_ends_its_child_alone(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MEMORY_BYTES", 1 << 28)  # Use 256 MB, to end within a second.
    data = HOSTILE[which]()
    path = tmp_path / "t"
    path.write_bytes(data)
    names = Schema((Column("a", 0, 9), Column("b", 0, 9)))
    doors: list[Callable[[], object]] = [lambda: read_raw(data, name="t").shape]
    if which.startswith("Parquet"):
        doors += [
            lambda: len(in_batches(path).first()),
            lambda: len(in_batches(path, ReadOptions(label="b")).first()),
            lambda: len(next(open_records(path, names).blocks())),
        ]
    messages: list[str] = []
    _resident()
    before = _resident()
    for door in doors:
        try:
            door()
        except DpvizError as error:
            messages.append(str(error))
        # Here this process holds only the read data; the child held the peak of memory.
        assert _resident() - before < 400
    assert all(one.isprintable() and len(one) < 300 for one in messages)
    assert read_raw(b"a,b\n1,2\n3,4\n", name="t").shape == (2, 2)  # The next file can be read.


# This read never ends, because no process writes into its pipe.


class _Stopped(Exception):
    pass


def test_stop_ends_it() -> None:
    looks = 0

    def stop() -> None:
        nonlocal looks
        looks += 1
        if looks > 1:
            raise _Stopped

    data = gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 23), 1)
    with pytest.raises(_Stopped), cancelled_by(stop):
        read_raw(data, name="t")
    assert len(_readers(os.getpid())) == 1  # Only the helper process remains.


def _readers(above: int) -> set[int]:
    """Return the helper that a process has started, and the helper's children."""
    pids = {above}
    while True:
        more = pids | {pid for pid, its in _parents().items() if its in pids}
        if more == pids:
            return {pid for pid in pids if b"reader.py" in _words(pid)}
        pids = more


def _parents() -> dict[int, int]:
    folders = [*Path("/proc").glob("[0-9]*")]
    parents = {}
    for folder in folders:
        with suppress(OSError):
            state, its = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(its)
    return parents


def _words(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_the_processor_s_time_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SECONDS", 0)
    data = gzip.compress(b"a,b\n" + b"1.5,2\n" * (1 << 24), 1)
    with pytest.raises(InvalidTable, match="memory or the"):
        read_raw(data, name="t")


def test_its_parent_s_death_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1.5,2\n" * (1 << 24), 1))
    code = "from dpviz.datasets import read_raw\nprint(1, flush=True)\n"
    code += f"read_raw({str(path)!r}, name='t')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        end = time.monotonic() + 30
        while len(born := _readers(parent.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        assert len(born) == 2
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 5
    while (orphans := born & {*_parents()}) and time.monotonic() < end:
        time.sleep(0.02)
    assert not orphans


def test_a_file_is_read_under_lower_limits_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "small.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_parquet(path)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_CPU, (40, 40)); "
        "from dpviz.datasets import read_raw; print(len(read_raw(sys.argv[1], name='a').columns))"
    )
    result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert result.stdout == "2\n", result.stderr[-300:]
