"""Turns between the sessions of one server: whoever asked first draws next, looks ahead of frames.

Python runs one thread at a time, so many sessions that draw at once only slow each other down. A
turn lasts one chunk of draws, about an eighth of a second. What somebody looks at comes before the
frames that a board fetches ahead; those get a turn when nobody looks, and after `PATIENCE` in any
case.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import streamlit as st

from dpviz.core.pauses import pause

AT_ONCE = max(os.cpu_count() or 1, 1)
PATIENCE = 2.0
_LOOK_SECONDS = 0.1


@dataclass(eq=False)
class _Ticket:
    ahead: bool
    since: float


@dataclass
class Turns:
    """Who draws now and who waits.

    Parameters
    ----------
    at_once : int
        How many draw at a time.
    """

    at_once: int = AT_ONCE
    _waiting: list[_Ticket] = field(default_factory=list)
    _drawing: int = 0
    _free: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def one(self, *, ahead: bool = False) -> Iterator[None]:
        """Wait for a turn and hold it for the block.

        Whoever waits looks up now and then (`pause`), and leaves the queue when stopped.

        Parameters
        ----------
        ahead : bool
            Whether nobody looks at the result yet.
        """
        ticket = _Ticket(ahead, time.monotonic())
        with self._free:
            self._waiting.append(ticket)
        try:
            while not self._taken(ticket):
                pause()
        except BaseException:
            with self._free:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                self._free.notify_all()
            raise
        try:
            yield
        finally:
            with self._free:
                self._drawing -= 1
                self._free.notify_all()

    def _taken(self, ticket: _Ticket) -> bool:
        """Take the turn if it is this ticket's; otherwise wait a moment."""
        with self._free:
            if self._drawing < self.at_once and self._next() is ticket:
                self._waiting.remove(ticket)
                self._drawing += 1
                self._free.notify_all()
                return True
            self._free.wait(_LOOK_SECONDS)
            return False

    def _next(self) -> _Ticket:
        late = time.monotonic() - PATIENCE
        return min(
            self._waiting,
            key=lambda ticket: (ticket.ahead and ticket.since > late, ticket.since),
        )


@st.cache_resource(show_spinner=False)
def turns() -> Turns:
    """Return the turns of this server."""
    return Turns()
