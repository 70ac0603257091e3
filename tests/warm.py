"""A Python with third-party libraries in memory, which forks instead of starting.

Imports of NumPy, SciPy, pandas, PyArrow and Streamlit take more than half of a command's second,
and of the three seconds of a dashboard with its first visitor. `warm_python` makes a program that
is called like Python. The program runs a module in a fork of one process that has imported these
libraries and, unless requested, nothing of dpviz. The fork gets the caller's files, folder and
environment. All other calls go to Python itself. Tests of starts, imports and memory use Python
itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

LIBRARIES = (
    "numpy", "pandas", "pyarrow.csv", "pyarrow.parquet", "scipy.linalg", "scipy.optimize",
    "scipy.special", "scipy.stats", "streamlit.web.bootstrap", "streamlit.web.cli",
)  # fmt: skip

# The calling program sends a signal as one byte and receives the exit status. It imports no slow
# modules.
_CALLER = """#!{python} -ISE
import os, sys
if sys.argv[1:2] != ["-m"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
import _socket, array, json, signal
line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
line.connect({address!r})
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: line.send(bytes([number])))
asked = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
files = array.array("i", [0, 1, 2])
line.sendmsg([len(asked).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
line.sendall(asked)
told = line.recv(4)
sys.exit(int.from_bytes(told, "big") if told else 1)
"""


@contextlib.contextmanager
def warm_python(folder: Path, more: Sequence[str] = ()) -> Iterator[Path]:
    """Make a program that forks a warm Python, in a folder; it works until the block ends.

    Parameters
    ----------
    folder : Path
        Folder for the program and its socket, with a short path.
    more : sequence of str
        Modules of dpviz to import, too.

    Yields
    ------
    Path
        Path of the program.
    """
    address, caller = folder / "warm", folder / "python"
    caller.write_text(_CALLER.format(python=sys.executable, address=str(address)))
    caller.chmod(0o755)
    words = [sys.executable, __file__, str(address), *more]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        assert running.stdout.readline() == b"ready\n"
        yield caller
    finally:
        running.stdin.close()  # Closing the input ends the server.
        running.wait()
        running.stdout.close()


def _serve(address: str, more: Sequence[str]) -> None:
    """Serve one caller after the other, until standard input ends."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    for name in (*LIBRARIES, *more):
        importlib.import_module(name)
    assert threading.active_count() == 1, "what has threads cannot be forked"
    gc.freeze()  # Garbage collection would copy memory pages.
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([door, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _see_to(line)
            line.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _see_to(line: socket.socket) -> None:
    """Run the module that a caller requests and report its status; end it if the caller goes."""
    head, files, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as text:
        words, folder, environment = json.loads(text.read(int.from_bytes(head, "big")))
    runs = os.fork()
    if runs == 0:
        line.close()
        _become(words, folder, environment, files)
    for file in files:
        os.close(file)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # A group signal is meant for the child only.
    end = os.pidfd_open(runs)
    while True:
        ready, _, _ = select.select([line.fileno(), end], [], [])
        if end in ready:
            status = os.waitstatus_to_exitcode(os.waitpid(runs, 0)[1])
            with contextlib.suppress(OSError):
                line.sendall((status if status >= 0 else 128 - status).to_bytes(4, "big"))
            os._exit(0)
        word = line.recv(1)
        os.kill(runs, word[0] if word else signal.SIGKILL)
        if not word:
            os._exit(0)


def _become(words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> None:
    """Become the process that the caller requested; this process then ends."""
    os.setsid()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(words)
    sys.path[0] = folder
    status = 0
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # Python itself also prints the traceback.
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # Exit at once, without clearing all memory.


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2:])
