"""Control the process that reads files, one file at a time; report its crash as a sentence.

A warm helper (`dpviz.datasets.reader`, run as a script) forks a child for each file. On Windows and
in a browser there is no helper: the same code reads the file in this process, without limits.
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
"""Maximum numbers of bytes that a child may allocate beyond its start size, and may write."""
SECONDS = 120
"""Processor time for a file, plus one second per `_BYTES_A_SECOND` bytes when streaming."""
_BYTES_A_SECOND = 1 << 20
_LOOK_SECONDS = 0.1
_DIED = (
    "{} cannot be read: it takes more than the "
    f"{MEMORY_BYTES >> 20:,} MiB of memory or the {SECONDS} s of a processor that a file "
    "may take, or it is damaged; keep fewer rows or columns, or save it as CSV."
)


class TooLarge(InvalidTable):
    """A readable file is too large to be held in memory at once."""


def sentence(error: reader.Refused, name: str) -> InvalidTable:
    """Return why a file cannot be read as a table."""
    text = str(error).replace("{}", name, 1)
    if error.encoding:
        return OtherEncoding(text, error.encoding)
    return TooLarge(text) if error.large else InvalidTable(text)


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Turn an error of the reader into an error that names the file."""
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
    """Return a caller's file or bytes as a new binary file with a descriptor."""
    if isinstance(given, (str, Path)):
        try:
            with io.FileIO(given) as file:
                file.seek(0, 2)
            return io.FileIO(given)
        except OSError as error:
            what = "read" if error.errno in (errno.EIO, errno.EINVAL) else "opened"
            raise InvalidTable(f"{name} cannot be {what}: {reason(error)}.") from None
    memory = _memory()
    if isinstance(given, (bytes, bytearray, memoryview)):
        given = io.BytesIO(given)
    given.seek(0)
    while chunk := given.read(1 << 24):
        view = memoryview(chunk)
        while view:
            view = view[memory.write(view) :]
    return memory


def _memory() -> Any:
    """Return an empty file without a name, in memory if the system can."""
    if hasattr(os, "memfd_create"):
        return io.FileIO(os.memfd_create("dpviz"), "w+")
    return tempfile.TemporaryFile(buffering=0)


def reason(error: OSError) -> str:
    """Return why a file cannot be opened, without its path."""
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
    """A warm process that forks a child for each file; it is started for the first file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._owner = 0

    def start(self) -> socket.socket:
        """Start the helper unless it runs, and return the socket that it listens to."""
        with self._lock:
            # After a fork, start a new helper process, because the parent uses the old one.
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
                            # Avoid Arrow's own memory pool, which reserves a gigabyte of addresses.
                            "ARROW_DEFAULT_MEMORY_POOL": "system",
                            "MALLOC_ARENA_MAX": "2",  # Each extra memory arena reserves as much.
                        },
                        # Ctrl-C in a terminal must not reach the helper.
                        start_new_session=True,
                    ).returncode = 0  # Nobody waits for the helper: it ends with our socket.
                self._control, self._owner = ours, os.getpid()
                finalize(self, ours.close)
            return self._control

    def call(self, fds: list[int]) -> None:
        """Send a new child its file descriptors."""
        for _ in range(2):
            control = self.start()
            try:
                socket.send_fds(control, [b"f"], fds)
                return
            except OSError:  # The helper process was ended, so try once more.
                with self._lock:
                    self._control = None
        raise InvalidTable("No process could be started to read files; try again.")


HELPER = Helper()
_ONE = threading.Lock()


def apart() -> bool:
    """Return whether files are read in separate processes."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds") and not in_browser()


def warm() -> None:
    """Start the helper, so that the first file need not wait for it."""
    if apart():
        HELPER.start()


class _Closing:
    """A context manager that closes itself at the end."""

    def close(self) -> None:
        """Stop any work in progress."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class File(_Closing):
    """A file that is read in a separate process, as often as needed.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
    name : str
        Name of the file in messages.
    asked : mapping
        Reading options, the same as for `reader.Reading`.
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
        """Findings on the file; the reader waits for a plan."""
        self.rows: int = self.about.get("rows", 0)

    def table(self, plan: Mapping[str, Any]) -> Any:
        """Return the whole file as an Arrow table outside this process's memory."""
        talk, self._talk = self._talk or self._begin({**self._asked, "plan": plan}), None
        with _held(), talk:
            return talk.table(plan)

    def batches(self, plan: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the file's record batches as they are read."""
        talk, self._talk = self._talk or self._begin({**self._asked, "plan": plan}), None
        with talk:
            yield from talk.batches(plan)

    def close(self) -> None:
        """End a reader that still waits for a plan."""
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    def _begin(self, request: Mapping[str, Any]) -> _Child | _Here:
        return (_Child if apart() else _Here)(self._file, self.name, request)


@contextmanager
def _held() -> Iterator[None]:
    """Allow only one file at a time to be read into memory."""
    while not _ONE.acquire(timeout=_LOOK_SECONDS):
        check_cancelled()
    try:
        yield
    finally:
        _ONE.release()


class _Here(_Closing):
    """A reader in this process, for systems without a child process."""

    def __init__(self, file: Any, name: str, request: Mapping[str, Any]) -> None:
        self._name = name
        with refusing(name):
            self._reading = reader.Reading(file, request)
        self.about = self._reading.about

    def table(self, plan: Mapping[str, Any]) -> Any:
        with refusing(self._name):
            schema, batches = self._reading.batches(plan)
            return pa.Table.from_batches(batches, schema)

    def batches(self, plan: Mapping[str, Any]) -> Iterator[Any]:
        with refusing(self._name):
            yield from self._reading.batches(plan)[1]


class _Child(_Closing):
    """A child process of the helper, at the other end of a socket."""

    def __init__(self, file: Any, name: str, request: Mapping[str, Any]) -> None:
        self._name, self._pid, self._rest, self._ended = name, 0, b"", False
        self._socket, its = socket.socketpair()
        if request["stream"]:
            self._out, out = map(os.fdopen, os.pipe(), ("rb", "wb"))
        else:
            self._out = out = _memory()
        with its:
            HELPER.call([its.fileno(), file.fileno(), out.fileno()])
        if out is not self._out:
            out.close()
        finalize(self, self._out.close)
        finalize(self, self._socket.close)
        self._say(request)
        self._pid = self._hear()["pid"]
        self.about: dict[str, Any] = {} if "plan" in request else self._hear()["about"]
        self._planned = "plan" in request

    def _say(self, what: Mapping[str, Any]) -> None:
        with suppress(OSError):  # Ignore this error: a later call reports its cause.
            self._socket.sendall(json.dumps(what).encode() + b"\n")

    def _hear(self) -> dict[str, Any]:
        """Return the next message of the child, or raise its error; the caller may be cancelled."""
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
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            refusal = reader.Refused(
                answer["refused"], large=answer["large"], encoding=answer["encoding"]
            )
            raise sentence(refusal, self._name)
        if "lacks" in answer:
            raise _lacking(answer["lacks"])
        return answer

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
        # Map the result, which then uses no memory of this process until somebody reads it.
        memory = mmap.mmap(self._out.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(memory)).read_all()

    def batches(self, plan: Mapping[str, Any]) -> Iterator[Any]:
        self._plan(plan)
        try:
            yield from pa.ipc.open_stream(self._out)
        except (pa.ArrowException, OSError):
            self._hear()
            raise InvalidTable(_DIED.replace("{}", self._name)) from None
        self._hear()

    def close(self) -> None:
        """End the child if it still runs, and wait until it is gone."""
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
