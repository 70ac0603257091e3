"""The process that reads a file: asked here, one file at a time, and its death told as a sentence.

A warm helper (`dpviz.datasets.reader`, run as a script) forks a child for each file. On Windows and
inside a browser there is none: the same code reads the file in this process, without limits.
"""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias
from weakref import finalize

import pyarrow as pa

from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import InvalidTable, NotAvailable, OtherEncoding, printable
from dpviz.core.platform import NO_WORKBOOKS, in_browser, need
from dpviz.datasets import reader

Given: TypeAlias = str | Path | bytes | bytearray | memoryview | BinaryIO

MEMORY_BYTES = 5 << 28
"""What a child may take beside what it starts with, and what it may write."""
SECONDS = 120
"""Of a processor's time for a file, and one more for each of its first `_BYTES_A_SECOND` bytes."""
_BYTES_A_SECOND = 1 << 20
_LOOK_SECONDS = 0.1
_DIED = (
    "{} cannot be read: it takes more than the "
    f"{MEMORY_BYTES >> 20:,} MiB of memory or the {SECONDS} s of a processor that a file "
    "may take, or it is damaged; keep fewer rows or columns, or save it as CSV."
)


class TooLarge(InvalidTable):
    """A file is no more than too large to be held in memory at once."""


def sentence(error: reader.Refused, name: str) -> InvalidTable:
    """Return why a file is no table that can be read."""
    said = str(error).replace("{}", name, 1)
    if error.encoding:
        return OtherEncoding(said, error.encoding)
    return TooLarge(said) if error.large else InvalidTable(said)


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Turn what the reader says into an error that names the file."""
    try:
        yield
    except reader.Refused as error:
        raise sentence(error, name) from None
    except ModuleNotFoundError as error:
        raise _lacking(error.name or "") from None
    except (MemoryError, pa.ArrowException, OSError, UnicodeError):
        raise InvalidTable(_DIED.replace("{}", name)) from None


def _lacking(library: str) -> NotAvailable:
    if in_browser() and library == "python_calamine":
        return NotAvailable(NO_WORKBOOKS)
    with suppress(KeyError):
        need(library)
    return NotAvailable(f"What reads such a file is not installed here: {printable(library)}.")


def opened(given: Given, name: str) -> Any:
    """Return a caller's file or bytes as a binary file of our own, with a descriptor."""
    if isinstance(given, (str, Path)):
        try:
            with io.FileIO(given) as file:
                file.seek(0, 2)
            return io.FileIO(given)
        except OSError as error:
            what = "read" if error.errno in (errno.EIO, errno.EINVAL) else "opened"
            raise InvalidTable(f"{name} cannot be {what}: {reason(error)}.") from None
    held = _memory()
    if isinstance(given, (bytes, bytearray, memoryview)):
        given = io.BytesIO(given)
    given.seek(0)
    while chunk := given.read(1 << 24):
        view = memoryview(chunk)
        while view:
            view = view[held.write(view) :]
    return held


def _memory() -> Any:
    """Return an empty file without a name: in memory, where the system can."""
    if hasattr(os, "memfd_create"):
        return io.FileIO(os.memfd_create("dpviz"), "w+")
    return tempfile.TemporaryFile(buffering=0)


def reason(error: OSError) -> str:
    """Return why a file does not open, without its path."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission is denied"
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if error.errno in (errno.EIO, errno.EINVAL):
        return "the disk, share or device that it is on answers with an error"
    return "it is not a readable file"


class Helper:
    """The warm process that forks a child for each file; started at the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._owner = 0

    def start(self) -> socket.socket:
        """Start the process, if it is not there, and return the socket that it listens to."""
        with self._lock:
            # a fork of ours has a helper of its own
            if self._control is None or self._owner != os.getpid():
                ours, its = socket.socketpair()
                with its:
                    subprocess.Popen(
                        [sys.executable, "-P", str(reader.__file__), str(its.fileno())],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        pass_fds=[its.fileno()],
                        env={
                            **os.environ,
                            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
                            # that of Arrow's own takes a gigabyte of addresses before it is asked
                            "ARROW_DEFAULT_MEMORY_POOL": "system",
                            "MALLOC_ARENA_MAX": "2",  # and so does one of the system's per thread
                        },
                        # a terminal's Ctrl-C is for us
                        start_new_session=True,
                    ).returncode = 0  # nobody waits for it: it ends when our socket does
                self._control, self._owner = ours, os.getpid()
                finalize(self, ours.close)
            return self._control

    def call(self, fds: list[int]) -> None:
        """Hand a child its descriptors."""
        for _ in range(2):
            control = self.start()
            try:
                socket.send_fds(control, [b"f"], fds)
                return
            except OSError:  # somebody ended it: once more
                with self._lock:
                    self._control = None
        raise InvalidTable("No process could be started to read files; try again.")


HELPER = Helper()
_ONE = threading.Lock()


def apart() -> bool:
    """Return whether files are read in a process of their own."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds") and not in_browser()


def warm() -> None:
    """Start what reads files, so that the first one need not wait for it."""
    if apart():
        HELPER.start()


class _Closing:
    """What is closed at the end of a ``with``."""

    def close(self) -> None:
        """End what is still going on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class File(_Closing):
    """A file that is read in a process of its own, as often as it is asked.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
    name : str
        What messages call it.
    asked : mapping
        As `reader.Reading` takes it.
    """

    def __init__(self, given: Given, name: str, asked: Mapping[str, Any]) -> None:
        self.name = name
        self._file = opened(given, name)
        finalize(self, self._file.close)
        size = self._file.seek(0, 2)
        seconds = SECONDS + (size // _BYTES_A_SECOND if asked["stream"] else 0)
        self._asked = {**asked, "memory": MEMORY_BYTES, "seconds": seconds}
        self._talk: _Child | _Here | None = self._begin(self._asked)
        self.about: dict[str, Any] = self._talk.about
        """What was found; the reader waits for a plan."""
        self.rows: int = self.about.get("rows", 0)

    def table(self, plan: Mapping[str, Any]) -> Any:
        """Return all of it as an Arrow table of what is not this process's memory."""
        talk, self._talk = self._talk or self._begin({**self._asked, "plan": plan}), None
        with _held(), talk:
            return talk.table(plan)

    def batches(self, plan: Mapping[str, Any]) -> Iterator[Any]:
        """Yield its record batches, as they are read."""
        talk, self._talk = self._talk or self._begin({**self._asked, "plan": plan}), None
        with talk:
            yield from talk.batches(plan)

    def close(self) -> None:
        """End a reader that still waits."""
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    def _begin(self, asked: Mapping[str, Any]) -> _Child | _Here:
        return (_Child if apart() else _Here)(self._file, self.name, asked)


@contextmanager
def _held() -> Iterator[None]:
    """Let one file at a time be read into memory."""
    while not _ONE.acquire(timeout=_LOOK_SECONDS):
        check_cancelled()
    try:
        yield
    finally:
        _ONE.release()


class _Here(_Closing):
    """A reader in this process, where no other can be."""

    def __init__(self, file: Any, name: str, asked: Mapping[str, Any]) -> None:
        self._name = name
        with refusing(name):
            self._reading = reader.Reading(file, asked)
        self.about = self._reading.about

    def table(self, plan: Mapping[str, Any]) -> Any:
        with refusing(self._name):
            schema, batches = self._reading.batches(plan)
            return pa.Table.from_batches(batches, schema)

    def batches(self, plan: Mapping[str, Any]) -> Iterator[Any]:
        with refusing(self._name):
            yield from self._reading.batches(plan)[1]


class _Child(_Closing):
    """A child of the helper, at the other end of a socket."""

    def __init__(self, file: Any, name: str, asked: Mapping[str, Any]) -> None:
        self._name, self._pid, self._rest, self._ended = name, 0, b"", False
        self._socket, its = socket.socketpair()
        if asked["stream"]:
            self._out, out = _pipe()
        else:
            self._out = out = _memory()
        with its:
            HELPER.call([its.fileno(), file.fileno(), out.fileno()])
        if out is not self._out:
            out.close()
        finalize(self, self._out.close)
        finalize(self, self._socket.close)
        self._say(asked)
        self._pid = self._hear()["pid"]
        self.about: dict[str, Any] = {} if "plan" in asked else self._hear()["about"]
        self._planned = "plan" in asked

    def _say(self, what: Mapping[str, Any]) -> None:
        with suppress(OSError):  # what it died of is heard
            self._socket.sendall(json.dumps(what).encode() + b"\n")

    def _hear(self) -> dict[str, Any]:
        """Return what the child says next, or raise what it died of; the caller may look up."""
        while b"\n" not in self._rest:
            if not select.select([self._socket], [], [], _LOOK_SECONDS)[0]:
                self._look_up()
                continue
            data = b""
            with suppress(OSError):
                data = self._socket.recv(1 << 20)
            if not data:
                self._ended = True
                raise InvalidTable(_DIED.replace("{}", self._name))
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        if "refused" in said:
            refused = reader.Refused(
                said["refused"], large=said["large"], encoding=said["encoding"]
            )
            raise sentence(refused, self._name)
        if "lacks" in said:
            raise _lacking(said["lacks"])
        return said

    def _look_up(self) -> None:
        try:
            check_cancelled()
        except BaseException:
            self.close()
            raise

    def _plan(self, plan: Mapping[str, Any]) -> None:
        if not self._planned:
            self._say(plan)
            self._planned = True

    def table(self, plan: Mapping[str, Any]) -> Any:
        self._plan(plan)
        self._hear()
        # mapped, so that it is no memory of ours until it is looked at
        held = mmap.mmap(self._out.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(held)).read_all()

    def batches(self, plan: Mapping[str, Any]) -> Iterator[Any]:
        self._plan(plan)
        try:
            yield from pa.ipc.open_stream(self._out)
        except (pa.ArrowException, OSError):
            self._hear()
            raise InvalidTable(_DIED.replace("{}", self._name)) from None
        self._hear()

    def close(self) -> None:
        """End the child, if it is still there, and wait until it is gone."""
        with suppress(OSError):
            if self._pid and not self._ended:
                self._socket.setblocking(False)
                with suppress(BlockingIOError):
                    while self._socket.recv(1 << 20):
                        pass
                    self._ended = True
            if self._pid and not self._ended:
                os.kill(self._pid, signal.SIGKILL)
                self._socket.setblocking(True)
                while self._socket.recv(1 << 20):
                    pass
            self._ended = True
        self._socket.close()
        self._out.close()


def _pipe() -> tuple[Any, Any]:
    ours, its = os.pipe()
    return open(ours, "rb"), open(its, "wb")
