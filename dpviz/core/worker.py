"""Work in other processes that can be ended at once.

Compiled code cannot be asked to stop: one fit of scikit-learn may take minutes and look up nowhere.
The caller waits for such work here and looks up meanwhile (`dpviz.core.cancelling`); whatever ends
it there ends the processes. They also end with the one that started them, however that ended.
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
except ImportError:  # inside a browser, where there are no processes
    ProcessPoolExecutor = Executor  # type: ignore[assignment, misc]

LOOK_SECONDS = 0.1
_HERE = uuid4().hex  # this process, as workers see it
_starting = threading.Lock()
# No more pieces of work have a process of their own at a time than there are cores, whoever asks.
_places = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))


class Ended(DpvizError):
    """Processes ended before their work, for example for lack of memory."""

    def __init__(self) -> None:
        super().__init__(
            "The work ended before it was done, as it does where memory runs out: fewer rows or "
            "features, or fewer workers, may do."
        )


class Processes(ProcessPoolExecutor):
    """Processes on this machine that end with their context."""

    def __init__(self, workers: int) -> None:
        # not forked: a server has threads, which may hold locks just then
        context = multiprocessing.get_context("spawn")
        super().__init__(workers, context, initializer=_begin)

    def submit(self, fn: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Call the function in a process, and start one if none is free."""
        main = sys.modules["__main__"]
        with _starting:
            spec = main.__spec__
            # It would run the caller's script, or the page, once more. What of it is wanted travels
            # as code; and a program is imported nowhere.
            main.__spec__ = ModuleSpec("dpviz.__main__", None)
            try:
                return super().submit(fn, *given, **named)
            finally:
                main.__spec__ = spec

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Kill the processes, because compiled code ignores gentler signals."""
        for process in list((self._processes or {}).values()):
            process.kill()
        super().shutdown(wait, cancel_futures=cancel_futures)


def send(executor: Executor, work: Callable[..., Any], *given: Any) -> Future[Any]:
    """Submit ``work(*given)``, also for functions from a notebook or a plugin file."""
    import cloudpickle  # not in the browser edition, which has no processes

    return executor.submit(_run, cloudpickle.dumps((work, given)), _HERE)


@contextmanager
def sent_whole(things: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Send classes and functions of other packages to workers as code, not by name.

    A worker cannot import what was loaded from a path.
    """
    ours = __name__.partition(".")[0]
    modules = {sys.modules[one.__module__] for one in things if one.__module__ in sys.modules}
    with ExitStack() as after:
        with suppress(ImportError):  # in the browser edition there are no workers
            import cloudpickle

            for module in modules:
                if module.__name__.partition(".")[0] != ours:
                    cloudpickle.register_pickle_by_value(module)
                    after.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


@contextmanager
def own_process() -> Iterator[Callable[..., Any]]:
    """Yield a process for successive pieces of work; None inside a browser.

    Yields
    ------
    callable
        A function and its arguments to its result. What it raises is raised here, and `Ended`
        where the process ended early.
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
    """Leave interrupts to the process that started this one, and end with it."""
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
        # For its life: a worker may have several threads, and a limit that one of them lifts when
        # it is done would be lifted for all. By now all libraries are there that it is about.
        one_blas_thread()
    return work(*given)
