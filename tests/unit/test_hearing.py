"""Messages that a browser sends at once are handled one by one, and none is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime import app_session
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner import ScriptRunnerEvent

from pages.ui.hearing import Session

pytestmark = pytest.mark.long


class Runner:
    """A script run that begins and ends when a test requires it."""

    made: list[Runner]
    quick: Session | None = None

    def __init__(self, *, initial_rerun_data: Any, **_: Any) -> None:
        self.page = initial_rerun_data.page_name or initial_rerun_data.page_script_hash
        self.query = initial_rerun_data.query_string
        self.on_event = Mock()
        self.ended = False
        self._script_thread = threading.Thread()
        self.made.append(self)

    def start(self) -> None:
        """Begin the run, and read the settings at once if requested."""
        if self.quick is not None:
            self.quick.taken(self._script_thread)

    def request_stop(self) -> None:
        self.ended = True


def heard(session: Session) -> list[tuple[str, bool]]:
    """Return the runs that have begun, and whether each run received a request to end."""
    return [(one.page, one.ended) for one in Runner.made]


async def turn() -> None:
    """Let the session handle the messages that it received."""
    await asyncio.sleep(0)


@pytest.fixture
def runners(monkeypatch: pytest.MonkeyPatch) -> list[Runner]:
    Runner.made = []
    monkeypatch.setattr(app_session, "ScriptRunner", Runner)
    return Runner.made


@contextmanager
def session() -> Iterator[Session]:
    one = Session(ScriptData("app.py", False), Mock(), Mock(), None, {})
    yield one
    one.shutdown()
    one._script_event_loop.close()


def test_a_run_is_not_ended_before_it_has_taken_what_was_set(runners: list[Runner]) -> None:
    async def act() -> None:
        one = rooms.enter_context(session())
        for page in "abc":
            one.request_rerun(ClientState(page_name=page))
        assert heard(one) == [("a", False)]
        one.taken(threading.current_thread())  # This thread belongs to another run.
        await turn()
        assert heard(one) == [("a", False)]
        one.taken(runners[0]._script_thread)
        await turn()
        assert heard(one) == [("a", True), ("b", False)]
        # If a script is unreadable, its run never reads the settings; this run must block nothing.
        one._on_scriptrunner_event(runners[1], ScriptRunnerEvent.SHUTDOWN)  # type: ignore[arg-type]
        await turn()
        assert heard(one) == [("a", True), ("b", False), ("c", False)]
        one.taken(runners[2]._script_thread)
        await turn()
        one.request_rerun(ClientState(page_name="d"))
        assert heard(one)[2:] == [("c", True), ("d", False)]

    with ExitStack() as rooms:
        asyncio.run(act())


def test_a_late_word_of_a_page_that_is_left_does_not_lead_back_to_it(runners: list[Runner]) -> None:
    def said(page: str, query: str, *, back: bool = False) -> ClientState:
        return ClientState(page_script_hash=page, query_string=query, is_history_navigation=back)

    async def act() -> None:
        one = rooms.enter_context(session())
        there = one._pages_manager = Mock()
        there.get_pages.return_value = {"a": {}, "b": {}}

        def then(message: ClientState) -> tuple[str, str]:
            one._taking = None
            one.request_rerun(message)
            return runners[-1].page, runners[-1].query

        there.current_page_script_hash = "a"
        assert then(said("a", "v=1&k=3")) == ("a", "v=1&k=3")
        assert then(said("b", "")) == ("b", "")  # The user clicks in the page menu.
        there.current_page_script_hash = "b"  # The run shows page b, unknown to the browser.
        assert then(said("a", "v=1&k=3")) == ("b", "")
        assert then(said("a", "v=1&k=3", back=True)) == ("a", "v=1&k=3")
        there.current_page_script_hash = "main"  # The first run has not yet chosen a page.
        assert then(said("a", "v=1&k=3")) == ("a", "v=1&k=3")

    with ExitStack() as rooms:
        asyncio.run(act())
