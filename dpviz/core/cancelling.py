"""Cancellation of long work.

Loops that can run for minutes call `check_cancelled` each time round. It does nothing, unless the
caller has asked, for its own thread or task, to be told: a page then sees whether its visitor has
moved on. Nothing that is computed depends on it.
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
    """Call a function at every `check_cancelled` inside the block; its exception ends the work."""
    token = _ASKED.set(act)
    try:
        yield
    finally:
        _ASKED.reset(token)


def check_cancelled() -> None:
    """Call the caller's check for cancellation, if there is one."""
    act = _ASKED.get()
    if act is not None:
        act()


class _Unwanted(Exception):
    """Work in a thread whose caller has ended."""


def in_threads(
    work: Callable[[_In], _Out], items: Sequence[_In], workers: int, look: float = 0.1
) -> list[_Out]:
    """Return the results of work on each item, from threads that end if the caller is cancelled.

    The caller's thread looks up while it waits; what ends it there ends the threads where they
    next look up.

    Parameters
    ----------
    work : callable
    items : sequence
    workers : int
        Threads; with one it all happens here.
    look : float
        Seconds between two looks of the caller.
    """
    if workers == 1 or len(items) < 2 or in_browser():  # where there are no threads
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
            # the pool waits for its threads, so each is told before
            ended.set()
            raise
    return [future.result() for future in waiting]
