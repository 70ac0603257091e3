"""Where long work may be asked to stop.

Loops that can run for minutes call `pause` each time round. It does nothing, unless the caller has
asked, for its own thread or task, to be told: a page then sees whether its visitor has moved on.
Nothing that is computed depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ASKED: ContextVar[Callable[[], None] | None] = ContextVar("asked", default=None)


@contextmanager
def pausing(act: Callable[[], None]) -> Iterator[None]:
    """Call a function at every `pause` of the work inside; what it raises ends the work."""
    token = _ASKED.set(act)
    try:
        yield
    finally:
        _ASKED.reset(token)


def pause() -> None:
    """Let the caller look up, if it asked to."""
    act = _ASKED.get()
    if act is not None:
        act()
