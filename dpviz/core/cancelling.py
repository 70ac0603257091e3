"""Cancellation of long work.

Loops that can run for minutes call `check_cancelled` in each iteration. `check_cancelled` does
nothing unless the caller registered a check for its own thread or task. With a check, a page learns
whether its visitor has left. Cancellation changes no result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from dpviz.core.platform import in_browser

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_ASKED: ContextVar[Callable[[], None] | None] = ContextVar("asked", default=None)


@contextmanager
def cancelled_by(act: Callable[[], None]) -> Iterator[None]:
    """Call a function at every `check_cancelled` in the block, which ends if it raises."""
    token = _ASKED.set(act)
    try:
        yield
    finally:
        _ASKED.reset(token)


def check_cancelled() -> None:
    """Call the caller's check for cancellation, if the caller registered one."""
    act = _ASKED.get()
    if act is not None:
        act()


class _Unwanted(Exception):
    """A check that stops a worker thread whose caller has ended."""


def in_threads(
    work: Callable[[_In], _Out], items: Sequence[_In], workers: int, look: float = 0.1
) -> list[_Out]:
    """Return the results of work on each item, from threads that stop if the caller is cancelled.

    The caller's thread checks for cancellation while it waits; an exception from this check stops
    the threads at their next check.

    Parameters
    ----------
    work : callable
    items : sequence
    workers : int
        Number of threads; with 1, no thread is started.
    look : float
        Seconds between two checks by the caller.
    """
    if workers == 1 or len(items) < 2 or in_browser():  # Threads do not exist in a browser.
        return [work(item) for item in items]
    ended = threading.Event()

    def stop() -> None:
        if ended.is_set():
            raise _Unwanted

    def one(item: _In) -> _Out:
        with cancelled_by(stop):
            stop()
            return work(item)

    with ThreadPoolExecutor(workers) as pool:
        try:
            waiting = [pool.submit(one, item) for item in items]
            while wait(waiting, timeout=look).not_done:
                check_cancelled()
        except BaseException:
            # Leaving the pool waits for its threads, so tell the threads to stop first.
            ended.set()
            raise
    return [future.result() for future in waiting]
