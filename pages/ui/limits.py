"""What one visitor may use, and all of them together: the one place where that is set.

`DPVIZ_PUBLIC=1` is the demo that strangers may use; `DPVIZ_SESSIONS` and `DPVIZ_UPLOADS` change
single caps. One upload's megabytes are Streamlit's own limit, in its settings file; a session may
have no more in all.
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
    """What a server allows: its options, and what they leave to a visitor.

    Attributes
    ----------
    trials : int
        Most draws of one view.
    work : float
        Most seconds that one view may be predicted to take on one core.
    held : int
        Most bytes of uploads that all sessions may have on the server together.
    """

    trials: int = 1_000
    work: float = 180.0
    held: int = 2**30


def caps() -> Caps:
    """Return what this server allows, from its environment.

    Raises
    ------
    InvalidSetting
        If a variable is set to something else than it may be.
    """
    options = server_options()
    less = {"trials": 50, "work": 30.0} if options.public else {}
    return Caps(**(vars(options) | less))


@dataclass
class Sessions:
    """Who has come, who was let in, and who has left.

    Runs of pages, requests and the server's own look after what is left all ask here.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _admitted: set[str] = field(default_factory=set)
    _left: dict[str, float | None] = field(default_factory=dict)

    def admit(self, session: str, active: Callable[[str], bool], places: int) -> bool:
        """Return whether a session may stay, which it then does until it is left."""
        with self._lock:
            self._left[session] = None
            self._admitted = {one for one in self._admitted if one == session or active(one)}
            if session not in self._admitted and len(self._admitted) >= places:
                return False
            self._admitted.add(session)
            return True

    def admitted(self, session: str) -> bool:
        """Return whether a session has been let in."""
        return session in self._admitted

    def leaving(
        self, active: Callable[[str], bool], now: float, grace: float, others: Iterable[str] = ()
    ) -> list[str]:
        """Return the sessions that were left so many seconds ago, and forget them.

        Parameters
        ----------
        active : callable
            Whether somebody is there for a session.
        now, grace : float
        others : iterable of str
            Sessions that may never have run: their tab was closed before.
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
        """Whether nobody is here, or was a moment ago."""
        return not self._left


@st.cache_resource(show_spinner=False)
def turns() -> Turns:
    """Return the turns of this server; with one core two run at once, as one of them may wait."""
    return Turns(max(2, os.cpu_count() or 1))


_TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def turn() -> Iterator[None]:
    """Hold a page's run back until it is its visitor's turn."""
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
    """Let those go first who wait and have used less."""
    if (own := _TURN.get()) is not None:
        own.give_way()


def wait_for(others: Future[Any], show: Callable[[], object] = int) -> None:
    """Wait until something is done that another run does, and hold no place meanwhile.

    ``show`` says how far it is, again and again.
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
    """Return the sessions of this server; the same ones when `make dev` loads this file again."""
    return Sessions()


def enter() -> None:
    """Let a session in, or say that the server is full and stop its run."""
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
    """Something that a server does not do."""


class TooSlow(Exception):
    """A piece of work took longer than its deadline."""


_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` from the work inside once it has taken this long."""
    token = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def look_up() -> None:
    """Let Streamlit end a run that is no longer wanted, and send nothing."""
    _ = "view" in st.session_state


@contextmanager
def looking_up() -> Iterator[None]:
    """Let work inside end within a moment once its visitor has moved on, stopped or left.

    Any look at the session lets Streamlit end a run, also where nothing may be drawn.
    """
    with cancelled_by(_looker()):
        yield


@contextmanager
def telling(act: Callable[[], None]) -> Iterator[None]:
    """Call a function every second of the work inside, which says how far it is.

    It draws, so nothing inside may be a cached function. Looking up goes on.
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
        if end is not None:  # others' work is not this one's
            _DEADLINE.set(end + last - now)

    return look


def too_slow(seconds: float) -> str:
    """Return why something is not drawn that would take this long."""
    most = caps().work
    takes = "longer" if seconds > 3600 else f"about {duration(seconds)}"
    return (
        f"it would take {takes} here, and a page takes at most {duration(most)}: choose a smaller "
        "k or fewer draws, or use the command line"
    )


def serving() -> bool:
    """Return whether a server runs this, and no test of a page."""
    return runtime.exists() and type(runtime.get_instance()) is runtime.Runtime
