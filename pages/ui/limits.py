"""What one visitor may use, and all of them together: the one place where that is set.

`DPVIZ_PUBLIC=1` is the demo that strangers may use; `DPVIZ_SESSIONS` and `DPVIZ_UPLOADS` change
single caps. Streamlit's own limits (an upload's megabytes) are in its settings file.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, replace
from functools import cache

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpviz.errors import InvalidSetting

# Streamlit forgets a closed session two minutes later, but only when somebody else comes.
_TEND_SECONDS = 20.0


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
    dimension : int
        Most features a page takes.
    work : float
        Most seconds that one view may be predicted to take on one core.
    """

    public: bool = False
    uploads: bool = True
    sessions: int = 20
    trials: int = 1_000
    dimension: int = 300
    work: float = 180.0


PUBLIC = Caps(public=True, uploads=False, trials=50, dimension=100, work=30.0)
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
    if context is None or not runtime.exists():
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


def _sessions():  # type: ignore[no-untyped-def]  # Streamlit's own manager
    return runtime.get_instance()._session_mgr


@st.cache_resource(show_spinner=False)
def _tended() -> bool:
    """Make the server forget closed sessions, uploads included, also when nobody else comes.

    A timer of the server's own event loop, and no thread: it reaps what has expired.
    """
    loop = runtime.get_instance()._get_async_objs().eventloop

    def tend() -> None:
        if not runtime.exists() or loop.is_closed():
            return
        storage = _sessions()._session_storage
        before = len(storage._cache._data) if hasattr(storage._cache, "_data") else None
        if before is None or len(storage._cache) < before:  # len() reaps
            gc.collect()
        loop.call_later(_TEND_SECONDS, tend)

    loop.call_soon_threadsafe(lambda: loop.call_later(_TEND_SECONDS, tend))
    return True


def session_count() -> int:
    """Return how many sessions are open."""
    return len(_sessions().list_active_sessions())
