"""What ends the process that reads a workbook and goes on for ever: time, Stop, and its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dpviz.core.cancelling import cancelled_by
from dpviz.core.errors import InvalidTable
from dpviz.datasets import read_raw, workbook
from tests.hostile import old_workbook

pytest.importorskip("resource", reason="no limits on Windows")

BOOK = old_workbook({(row, column): row + column / 4 for row in range(3) for column in range(2)})
FILE = str(workbook.__file__)
SAID = r"^t\.xls takes too long to read, more than .* save it as CSV\.$"

# Opens a pipe, whose end is the process's own, and says there that it lives. It loads one file, as
# all of dpviz could take the time that it has.
READER = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("workbook", {file!r})
workbook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(workbook)
sys.stdin.buffer.readline()
sys.stdin.buffer.read()
workbook.SECONDS = 1
workbook.limited(1000)
with open({pipe!r}, "w") as pipe:
    pipe.write("started ")
    pipe.flush()
    {does}
    pipe.write("went on")
"""


class _Stopped(Exception):
    pass


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def reader(pipe: Path, does: str) -> str:
    """Return the path of a reader that does this."""
    script = pipe.with_name("reader.py")
    script.write_text(READER.format(file=FILE, pipe=str(pipe), does=does))
    return str(script)


def test_the_processor_s_time_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    does = "while time.process_time() < 20: pass"
    monkeypatch.setattr(workbook, "__file__", reader(tmp_path / "file", does))
    with pytest.raises(InvalidTable, match=SAID):
        read_raw(BOOK, name="t.xls")
    assert (tmp_path / "file").read_text() == "started "


def test_the_clock_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(workbook, "__file__", reader(tmp_path / "file", "time.sleep(20)"))
    monkeypatch.setattr(workbook, "SECONDS", 2)
    with pytest.raises(InvalidTable, match=SAID):
        read_raw(BOOK, name="t.xls")
    assert (tmp_path / "file").read_text() == "started "


def test_stop_ends_it(monkeypatch: pytest.MonkeyPatch, pipe: Path) -> None:
    monkeypatch.setattr(workbook, "__file__", reader(pipe, "time.sleep(20)"))
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def stop() -> None:
        # nothing yet, or nobody who writes
        with suppress(BlockingIOError):
            if os.read(end, 100):
                raise _Stopped

    with pytest.raises(_Stopped), cancelled_by(stop):
        read_raw(BOOK, name="t.xls")
    os.set_blocking(end, True)
    with os.fdopen(end) as found:
        assert found.read() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limit of time ends it")
def test_its_parent_s_death_ends_it(pipe: Path) -> None:
    parent = (
        "from dpviz.datasets import read_raw, workbook\n"
        f"workbook.__file__ = {reader(pipe, 'time.sleep(20)')!r}\n"
        f"read_raw({BOOK!r}, name='t.xls')\n"
    )
    script = pipe.with_name("parent.py")
    script.write_text(parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, str(script)], env=env) as process, open(pipe) as found:
        assert found.read(len("started ")) == "started "
        process.send_signal(signal.SIGKILL)
        assert found.read() == ""
