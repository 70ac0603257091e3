"""Work in a process of its own, which ends at once when nobody wants it any more.

Compiled code cannot be asked to stop: one fit of scikit-learn may take minutes and look up nowhere.
The caller waits for such work here and looks up meanwhile (`dpviz.core.cancelling`); whatever ends
it there ends the process. The process also ends with the one that started it, however that ended.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Self, TypeVar

from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import DpvizError
from dpviz.core.platform import in_browser

_Out = TypeVar("_Out")

_LOOK_SECONDS = 0.1
_LENGTH = 8  # bytes that say how long a message is
# No more of them work at a time than there are cores, whoever asks.
_places = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))


class Ended(DpvizError):
    """The process ended before its work did, as when memory runs out."""

    def __init__(self, status: int) -> None:
        super().__init__(
            f"The work ended before it was done (status {status}), as it does where memory runs "
            "out: fewer rows or features may do."
        )


class WorkerProcess:
    """One process that does what it is given, one piece after the other.

    It is started with the first piece, and ended by the end of the context. Inside a browser there
    are no processes, and the work is done in place.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.end()

    def run(self, work: Callable[..., _Out], *given: Any) -> _Out:
        """Return ``work(*given)``; what that raises is raised here.

        Parameters
        ----------
        work : callable
            One that pickles, as its arguments and its result have to.

        Raises
        ------
        Ended
            If the process ended early.
        """
        if in_browser():
            return work(*given)
        while not _places.acquire(timeout=_LOOK_SECONDS):
            check_cancelled()
        try:
            if self._process is None:
                self._process = _started()
            return self._ask(self._process, work, given)
        except BaseException:
            self.end()
            raise
        finally:
            _places.release()

    def _ask(
        self, process: subprocess.Popen[bytes], work: Callable[..., _Out], given: tuple[Any, ...]
    ) -> _Out:
        import cloudpickle  # a mechanism may have been typed into a notebook

        # before the thread: what does not pickle is an error of the caller's
        message = cloudpickle.dumps((work, given), pickle.HIGHEST_PROTOCOL)
        answers: list[bytes] = []

        def exchange() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                _send(process.stdin, message)
                answer = _received(process.stdout)
            except OSError:  # it has ended: the pipe is closed
                answer = None
            if answer is not None:
                answers.append(answer)

        # a pipe's read cannot be interrupted, so a thread waits and this one looks up
        talk = threading.Thread(target=exchange, name="worker", daemon=True)
        talk.start()
        while talk.is_alive():
            talk.join(_LOOK_SECONDS)
            check_cancelled()
        if not answers:
            raise Ended(process.wait())  # its pipe is closed, so it has ended
        error, result = pickle.loads(answers[0])
        if error is not None:
            raise error
        found: _Out = result
        return found

    def end(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            # not terminate(): compiled code would not hear it
            process.kill()
            process.communicate()


def _started() -> subprocess.Popen[bytes]:
    """Start a process that imports what this one would."""
    return subprocess.Popen(
        [sys.executable, "-m", "dpviz.core.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_LENGTH, "big"))
    stream.write(message)
    stream.flush()


def _received(stream: IO[bytes]) -> bytes | None:
    """Return the next message, or None where the other side has ended."""
    length = stream.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    size = int.from_bytes(length, "big")
    message = stream.read(size)
    return message if len(message) == size else None


def _answer(message: bytes) -> bytes:
    work, given = pickle.loads(message)
    return pickle.dumps((None, work(*given)), pickle.HIGHEST_PROTOCOL)


def _serve() -> None:
    """Do what is asked on the standard input until that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this one ends it
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what work prints is no answer
    asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        # also while work goes on: the end of the input is the end of whoever wanted it
        while (message := _received(sys.stdin.buffer)) is not None:
            asked.put(message)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    with ThreadPoolExecutor(1) as pool:
        while True:
            done = pool.submit(_answer, asked.get())
            error = done.exception()
            _send(answers, done.result() if error is None else pickle.dumps((error, None)))


if __name__ == "__main__":
    _serve()
