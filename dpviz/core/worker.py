"""Work in other processes that can be stopped at once.

Compiled code cannot be asked to stop: one fit of scikit-learn may take minutes without checking. So
the caller waits here and checks for cancellation meanwhile (`dpviz.core.cancelling`); an exception
from the check ends the processes. They also end with the process that started them.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from importlib.machinery import ModuleSpec
from typing import Any
from uuid import uuid4

from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import DpvizError
from dpviz.core.platform import in_browser
from dpviz.core.resources import one_blas_thread

try:
    from concurrent.futures import ProcessPoolExecutor
except ImportError:  # A browser has no processes.
    ProcessPoolExecutor = Executor  # type: ignore[assignment, misc]

LOOK_SECONDS = 0.1
_HERE = uuid4().hex  # This text identifies the present process in its workers.
_starting = threading.Lock()
# Limit the jobs that run in their own process to the number of cores.
_places = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))


class Ended(DpvizError):
    """Some processes ended before their work was done, for example for lack of memory."""

    def __init__(self) -> None:
        super().__init__(
            "The work ended before it was done, as it does where memory runs out: fewer rows or "
            "features, or fewer workers, may do."
        )


class Processes(ProcessPoolExecutor):
    """Processes on this machine that end with their context."""

    def __init__(self, workers: int) -> None:
        # Start processes by spawn: after a fork, a lock of another thread could never be released.
        context = multiprocessing.get_context("spawn")
        super().__init__(workers, context, initializer=_begin)

    def submit(self, fn: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Call the function in a process, and start a process if none is free."""
        main = sys.modules["__main__"]
        with _starting:
            spec = main.__spec__
            # Spawn would run the user's script or page again, so send only the needed code. Spawn
            # does not import a module named __main__, so use this name for the script.
            main.__spec__ = ModuleSpec("dpviz.__main__", None)
            try:
                return super().submit(fn, *given, **named)
            finally:
                main.__spec__ = spec

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Kill the processes, because compiled code ignores softer signals."""
        for process in list((self._processes or {}).values()):
            process.kill()
        super().shutdown(wait, cancel_futures=cancel_futures)


def send(executor: Executor, work: Callable[..., Any], *given: Any) -> Future[Any]:
    """Submit ``work(*given)``, also for functions from a notebook or a plugin file."""
    import cloudpickle  # The browser edition lacks cloudpickle, as it has no processes.

    return executor.submit(_run, cloudpickle.dumps((work, given)), _HERE)


@contextmanager
def sent_whole(things: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Send classes and functions of other packages to workers as code, not by name.

    A worker cannot import a module that was loaded from a path.
    """
    ours = __name__.partition(".")[0]
    modules = {sys.modules[one.__module__] for one in things if one.__module__ in sys.modules}
    with ExitStack() as after:
        with suppress(ImportError):  # The browser edition has no worker processes.
            import cloudpickle

            for module in modules:
                if module.__name__.partition(".")[0] != ours:
                    cloudpickle.register_pickle_by_value(module)
                    after.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


@contextmanager
def own_process() -> Iterator[Callable[..., Any]]:
    """Yield a function that runs work in its own process, or directly in a browser.

    Yields
    ------
    callable
        A function from a function and its arguments to the result. It raises the function's errors,
        and `Ended` if the process ended early.
    """
    if in_browser():
        yield lambda work, *given: work(*given)
        return
    with Processes(1) as pool:

        def run(work: Callable[..., Any], *given: Any) -> Any:
            while not _places.acquire(timeout=LOOK_SECONDS):
                check_cancelled()
            try:
                future = send(pool, work, *given)
                while wait([future], LOOK_SECONDS).not_done:
                    check_cancelled()
                return future.result()
            except BrokenExecutor:
                raise Ended from None
            finally:
                _places.release()

        yield run


def _begin() -> None:
    """Leave interrupts to the parent process, and end when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    maker = multiprocessing.parent_process()
    assert maker is not None

    def watch() -> None:
        maker.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(sent: bytes, maker: str) -> Any:
    work, given = pickle.loads(sent)
    if maker != _HERE:
        # Limit the threads of BLAS as long as the worker lives: lifting the limit in one thread
        # would lift it for all. All libraries to limit are loaded at this point.
        one_blas_thread()
    return work(*given)
