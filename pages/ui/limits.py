"""Limits of one visitor, and of all visitors together; no other file sets limits.

`DPVIZ_PUBLIC=1` is for a demo that strangers may use; `DPVIZ_SESSIONS` and `DPVIZ_UPLOADS` change
single limits. Streamlit's settings file limits the megabytes of one upload; all uploads of a
session share the same limit.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.core.cancelling import cancelled_by
from dpviz.core.errors import DpvizError
from dpviz.core.platform import ServerOptions, server_options
from dpviz.report.sentences.phrases import duration
from pages.ui.turns import Turn, Turns

_LOOK_SECONDS = 0.2
_TELL_SECONDS = 1.0
CHUNK_LIMIT = 20.0


@dataclass(frozen=True)
class Caps(ServerOptions):
    """A server's options, and the resulting limits for a visitor.

    Attributes
    ----------
    trials : int
        Maximum number of simulated releases in one view.
    work : float
        Maximum predicted seconds of one view on one core.
    held : int
        Maximum bytes of uploads of all sessions together on the server.
    """

    trials: int = 1_000
    work: float = 180.0
    held: int = 2**30


def caps() -> Caps:
    """Return the limits of this server, from its environment.

    Raises
    ------
    InvalidSetting
        If a variable has a value that is not allowed.
    """
    options = server_options()
    less = {"trials": 50, "work": 30.0} if options.public else {}
    return Caps(**(vars(options) | less))


@dataclass
class Sessions:
    """Sessions that arrived, were admitted, or have left.

    Page runs, requests and the server's own clean-up all use this object.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _admitted: set[str] = field(default_factory=set)
    _left: dict[str, float | None] = field(default_factory=dict)

    def admit(self, session: str, active: Callable[[str], bool], places: int) -> bool:
        """Return whether a session may stay; an admitted session stays until its visitor leaves."""
        with self._lock:
            self._left[session] = None
            self._admitted = {one for one in self._admitted if one == session or active(one)}
            if session not in self._admitted and len(self._admitted) >= places:
                return False
            self._admitted.add(session)
            return True

    def admitted(self, session: str) -> bool:
        """Return whether a session has been admitted."""
        return session in self._admitted

    def leaving(
        self, active: Callable[[str], bool], now: float, grace: float, others: Iterable[str] = ()
    ) -> list[str]:
        """Return the sessions that were left ``grace`` seconds ago, and forget them.

        Parameters
        ----------
        active : callable
            Function that returns whether a session has a visitor.
        now, grace : float
        others : iterable of str
            Sessions that may never have run, because their tab was closed earlier.
        """
        with self._lock:
            for session in others:
                self._left.setdefault(session, None)
            for session, since in self._left.items():
                if active(session):
                    self._left[session] = None
                elif since is None:
                    self._left[session] = now
            gone = [
                session
                for session, since in self._left.items()
                if since is not None and now - since >= grace
            ]
            for session in gone:
                del self._left[session]
                self._admitted.discard(session)
            return gone

    @property
    def empty(self) -> bool:
        """Whether no session is open and none was open a moment ago."""
        return not self._left


@st.cache_resource(show_spinner=False)
def turns() -> Turns:
    """Return the turns of this server; at least two pages run at once, as one may wait."""
    return Turns(max(2, os.cpu_count() or 1))


_TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def turn() -> Iterator[None]:
    """Hold a page's run until its visitor's turn."""
    context = get_script_run_ctx()
    if context is None or not serving():
        yield
        return
    with turns().turn(context.session_id, look_up) as own:
        token = _TURN.set(own)
        try:
            yield
        finally:
            _TURN.reset(token)


def give_way() -> None:
    """Let waiting visitors who have used less time go first."""
    if (own := _TURN.get()) is not None:
        own.give_way()


def wait_for(others: Future[Any], show: Callable[[], object] = int) -> None:
    """Wait for the work of another run, without occupying a place meanwhile.

    The function ``show`` is called repeatedly to report progress.
    """
    if others.done():
        return
    own = _TURN.get()
    with nullcontext() if own is None else own.paused():
        while wait([others], timeout=_LOOK_SECONDS).not_done:
            look_up()
            show()


@st.cache_resource(show_spinner=False)
def sessions() -> Sessions:
    """Return the sessions of this server, also after `make dev` has loaded this file again."""
    return Sessions()


def enter() -> None:
    """Admit a session, or report that the server is full and stop the session's run."""
    context = get_script_run_ctx()
    if context is None or not serving():
        return
    active = runtime.get_instance().is_active_session
    if not sessions().admit(context.session_id, active, caps().sessions):
        st.info(
            f"This server shows dpviz to {caps().sessions} people at a time, and all places "
            "are taken. Reload in a few minutes; the link keeps every setting.",
            icon=":material/hourglass_empty:",
        )
        st.stop()


class NotHere(DpvizError):
    """Raised if a server does not offer something."""


class TooSlow(Exception):
    """Raised if a piece of work took longer than its deadline."""


_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` inside the work after it has taken the given time."""
    token = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def look_up() -> None:
    """Let Streamlit end a run that is no longer needed; nothing is sent to the browser."""
    _ = "view" in st.session_state


@contextmanager
def looking_up() -> Iterator[None]:
    """Let the enclosed work end within a moment after its visitor has moved on, stopped or left.

    Any access to the session lets Streamlit end a run, even while the work must not draw.
    """
    with cancelled_by(_looker()):
        yield


@contextmanager
def telling(act: Callable[[], None]) -> Iterator[None]:
    """Call a function that reports progress, every second during the enclosed work.

    The function draws, so the enclosed work must not be a cached function. Runs can still end.
    """
    look, last = _looker(), time.monotonic()

    def both() -> None:
        nonlocal last
        look()
        if time.monotonic() - last > _TELL_SECONDS:
            last = time.monotonic()
            act()

    with cancelled_by(both):
        yield


def _looker() -> Callable[[], None]:
    last = time.monotonic()

    def look() -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LOOK_SECONDS:
            return
        last = now
        look_up()
        end = _DEADLINE.get()
        if end is not None and now > end:
            raise TooSlow
        give_way()
        last = time.monotonic()
        if end is not None:  # Waiting for other visitors' work does not count.
            _DEADLINE.set(end + last - now)

    return look


def too_slow(seconds: float) -> str:
    """Return the reason why work of this predicted duration is not started."""
    most = caps().work
    takes = "longer" if seconds > 3600 else f"about {duration(seconds)}"
    return (
        f"the work would take {takes}, and a page works for at most {duration(most)}. Choose a "
        "smaller k or fewer simulated releases, or use the command line"
    )


def serving() -> bool:
    """Return whether a server runs this code, instead of a test of a page."""
    return runtime.exists() and type(runtime.get_instance()) is runtime.Runtime
