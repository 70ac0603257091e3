"""What one visitor may use, and all of them together: the one place where that is set.

`DPVIZ_PUBLIC=1` is the demo that strangers may use; `DPVIZ_SESSIONS` and `DPVIZ_UPLOADS` change
single caps. Streamlit's own limits (an upload's megabytes) are in its settings file.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.base.memory import give_back, share_heaps
from dpviz.base.pauses import pausing
from dpviz.errors import DpvizError, InvalidSetting
from dpviz.narrative.phrases import duration

# Streamlit forgets a closed session two minutes later, but only when somebody else comes.
_TEND_SECONDS = 20.0
# A run looks up this often, and one piece of it may take so long.
_LOOK_SECONDS = 0.2
_TELL_SECONDS = 1.0
CHUNK_LIMIT = 20.0


@dataclass(frozen=True)
class Caps:
    """What a server allows.

    Attributes
    ----------
    public : bool
        Whether strangers use it: no uploads, no release, nothing written.
    uploads : bool
    sessions : int
        People at a time.
    trials : int
        Most draws of one view.
    work : float
        Most seconds that one view may be predicted to take on one core.
    """

    public: bool = False
    uploads: bool = True
    sessions: int = 20
    trials: int = 1_000
    work: float = 180.0


PUBLIC = Caps(public=True, uploads=False, trials=50, work=30.0)
"""The public demo."""


def _switch(name: str, default: bool) -> bool:
    written = os.environ.get(name, "").strip().lower()
    words = {"": default, "0": False, "1": True, "false": False, "true": True}
    if written not in words:
        raise InvalidSetting(name, "0 or 1", written)
    return words[written]


@cache
def caps() -> Caps:
    """Return what this server allows, from its environment.

    Raises
    ------
    InvalidSetting
        If a variable is set to something else than it may be.
    """
    found = PUBLIC if _switch("DPVIZ_PUBLIC", False) else Caps()
    uploads = found.uploads and _switch("DPVIZ_UPLOADS", True)
    written = os.environ.get("DPVIZ_SESSIONS", "").strip()
    if written and not (written.isascii() and written.isdigit() and 0 < int(written) < 10_000):
        raise InvalidSetting("DPVIZ_SESSIONS", "a whole number from 1 to 9999", written)
    return replace(found, uploads=uploads, sessions=int(written) if written else found.sessions)


@st.cache_resource(show_spinner=False)
def _admitted() -> dict[str, None]:
    return {}  # session ids, in the order they came


def enter() -> None:
    """Let a session in, or say that the server is full and stop its run."""
    context = get_script_run_ctx()
    if context is None or not serving():
        return
    _tended()
    here = {info.session.id for info in _sessions().list_active_sessions()}
    admitted = _admitted()
    for gone in [session for session in admitted if session not in here]:
        del admitted[gone]
    if context.session_id not in admitted:
        if len(admitted) >= caps().sessions:
            st.info(
                f"This server shows dpviz to {caps().sessions} people at a time, and all places "
                "are taken. Reload in a few minutes; the link keeps every setting.",
                icon=":material/hourglass_empty:",
            )
            st.stop()
        admitted[context.session_id] = None


def refuse_in_public(what: str) -> None:
    """Raise an error on the public demo, where something is not done."""
    if caps().public:
        raise NotHere(f"This public server {what}.")


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


@contextmanager
def looking_up() -> Iterator[None]:
    """Let work inside end within a moment once its visitor has moved on, stopped or left.

    Any look at the session lets Streamlit end a run, also where nothing may be drawn.
    """
    with pausing(_looker()):
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

    with pausing(both):
        yield


def _looker() -> Callable[[], None]:
    last = time.monotonic()

    def look() -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LOOK_SECONDS:
            return
        last = now
        _ = "view" in st.session_state
        end = _DEADLINE.get()
        if end is not None and now > end:
            raise TooSlow

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


def _sessions() -> Any:  # Streamlit's own manager
    return runtime.get_instance()._session_mgr


@st.cache_resource(show_spinner=False)
def _tended() -> bool:
    """Make the server forget closed sessions, uploads included, also when nobody else comes.

    A timer of the server's own event loop, and no thread: it reaps what has expired.
    """
    share_heaps()
    gc.collect()
    gc.freeze()  # what is imported stays: no later look goes through it
    loop = runtime.get_instance()._get_async_objs().eventloop
    here: set[str] = set()

    def tend() -> None:
        nonlocal here
        if not serving() or loop.is_closed():
            return
        loop.call_later(_TEND_SECONDS, tend)  # first, so that it goes on whatever happens
        closed = _sessions()._session_storage._cache
        len(closed)  # reaps
        active = (info.session.id for info in _sessions().list_active_sessions())
        before, here = here, {*active, *closed}
        if before - here:  # what has gone lets go of the last of it a little later
            loop.call_later(_TEND_SECONDS, give_back)

    loop.call_soon_threadsafe(lambda: loop.call_later(_TEND_SECONDS, tend))
    return True


def session_count() -> int:
    """Return how many sessions are open."""
    return len(_sessions().list_active_sessions())
