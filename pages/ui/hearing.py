"""Sessions that hear all that a browser says, one message after the other.

Streamlit ends a run when the next one is asked for. Of two messages that come together, as after a
line stood still, it ends the first one's before or while what was set is taken: a press is lost,
and what was typed on a page that the second one leaves. Here the second waits for that, and for
nothing else of the first.
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

_MOST = 64  # messages that wait; of more the first are lost, as all but the last are in Streamlit

_SESSIONS: WeakValueDictionary[str, Session] = WeakValueDictionary()


class Session(AppSession):
    """A session whose next run begins when the last one has taken what was set."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._asked: deque[ClientState | None] = deque(maxlen=_MOST)
        self._taking: ScriptRunner | None = None
        super().__init__(*given, **named)
        _SESSIONS[self.id] = self

    def request_rerun(self, client_state: ClientState | None) -> None:
        """Ask for a run, now or after those that were asked for before."""
        if self._taking is not None:
            self._asked.append(client_state)
            return
        before = self._scriptrunner
        super().request_rerun(client_state and self._aimed(client_state))
        if self._scriptrunner is not before:
            self._taking = self._scriptrunner

    def _aimed(self, said: ClientState) -> ClientState:
        """Return a message with the page that it is about.

        Until a browser has heard of another page, boxes and the board name the one before, and
        would lead back to it. The menu asks for a page without a word of what is set, and the
        browser's own buttons say that they do.
        """
        pages, now = self.get_pages(), self._pages_manager.current_page_script_hash
        asks = said.is_history_navigation or not said.query_string
        if asks or said.page_script_hash == now or not {said.page_script_hash, now} <= {*pages}:
            return said
        aimed = ClientState()
        aimed.CopyFrom(said)
        aimed.page_script_hash, aimed.query_string = now, ""
        return aimed

    def taken(self, thread: threading.Thread | None) -> None:
        """Go on with what is asked for, if it is this thread's run that was waited for."""
        # not at once: a quick run comes here before the session knows that it has begun
        self._call_soon_on_event_loop(lambda: self._go_on(thread))

    def shutdown(self) -> None:
        """End the session, and all that is asked for in it."""
        self._asked.clear()
        super().shutdown()

    def _go_on(self, thread: threading.Thread | None) -> None:
        if self._taking is None or self._taking._script_thread is not thread:
            return
        self._taking = None
        while self._asked and self._taking is None:
            self.request_rerun(self._asked.popleft())

    def _on_scriptrunner_event(
        self, sender: ScriptRunner | None, event: ScriptRunnerEvent, *given: Any, **named: Any
    ) -> None:
        super()._on_scriptrunner_event(sender, event, *given, **named)
        if event is ScriptRunnerEvent.SHUTDOWN and sender is not None:  # or never came so far
            self.taken(sender._script_thread)


def taken() -> None:
    """Say that this run has taken what was set: callbacks come before a script's first line."""
    context = get_script_run_ctx()
    session = None if context is None else _SESSIONS.get(context.session_id)
    if session is not None:
        session.taken(threading.current_thread())


def begin() -> None:
    """Let all sessions from now on be such."""
    websocket_session_manager.AppSession = Session
