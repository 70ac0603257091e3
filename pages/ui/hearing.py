"""Sessions that process every message of a browser, one message after the other.

Streamlit ends a run when the next run is requested. If two messages arrive together, as after a
stalled connection, it ends the first run before or while this run takes its settings. Then a press
is lost, and so is text typed on a page that the second message leaves. In this module the second
run waits until the first has taken its settings, but not longer.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any
from weakref import WeakValueDictionary

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime import websocket_session_manager
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunner, ScriptRunnerEvent, get_script_run_ctx

_MOST = 64  # At most 64 messages wait, and the oldest are lost. Streamlit alone stores only one.

_SESSIONS: WeakValueDictionary[str, Session] = WeakValueDictionary()


class Session(AppSession):
    """A session whose next run begins when the previous run has taken its settings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._asked: deque[ClientState | None] = deque(maxlen=_MOST)
        self._taking: ScriptRunner | None = None
        super().__init__(*args, **kwargs)
        _SESSIONS[self.id] = self

    def request_rerun(self, client_state: ClientState | None) -> None:
        """Request a run, which starts now or after the earlier requests."""
        if self._taking is not None:
            self._asked.append(client_state)
            return
        before = self._scriptrunner
        super().request_rerun(client_state and self._with_page(client_state))
        if self._scriptrunner is not before:
            self._taking = self._scriptrunner

    def _with_page(self, state: ClientState) -> ClientState:
        """Return a message with the page to which it belongs.

        Until a browser has received another page, widgets and the comparison figure name the
        previous page, and would lead back to it. The menu requests a page without any settings, and
        the browser's own buttons identify themselves.
        """
        pages, now = self.get_pages(), self._pages_manager.current_page_script_hash
        asks = state.is_history_navigation or not state.query_string
        if asks or state.page_script_hash == now or not {state.page_script_hash, now} <= {*pages}:
            return state
        target = ClientState()
        target.CopyFrom(state)
        target.page_script_hash, target.query_string = now, ""
        return target

    def taken(self, thread: threading.Thread | None) -> None:
        """Continue with the waiting requests, if they waited for the run of this thread."""
        # Defer this call: a quick run ends before the session records that the run has begun.
        self._call_soon_on_event_loop(lambda: self._go_on(thread))

    def shutdown(self) -> None:
        """End the session, and drop its waiting requests."""
        self._asked.clear()
        super().shutdown()

    def _go_on(self, thread: threading.Thread | None) -> None:
        if self._taking is None or self._taking._script_thread is not thread:
            return
        self._taking = None
        while self._asked and self._taking is None:
            self.request_rerun(self._asked.popleft())

    def _on_scriptrunner_event(
        self, sender: ScriptRunner | None, event: ScriptRunnerEvent, *args: Any, **kwargs: Any
    ) -> None:
        super()._on_scriptrunner_event(sender, event, *args, **kwargs)
        if event is ScriptRunnerEvent.SHUTDOWN and sender is not None:
            self.taken(sender._script_thread)


def taken() -> None:
    """Report that this run has taken its settings, which precedes the script's first line."""
    context = get_script_run_ctx()
    session = None if context is None else _SESSIONS.get(context.session_id)
    if session is not None:
        session.taken(threading.current_thread())


def begin() -> None:
    """Use this class for all new sessions."""
    websocket_session_manager.AppSession = Session
