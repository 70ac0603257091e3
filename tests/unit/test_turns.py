"""Turns between sessions, and threads that end with their caller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from dpviz.core.cancelling import cancelled_by, check_cancelled, in_threads
from pages.ui.turns import Turns


class Left(Exception):
    """Raised when the visitor has gone."""


class Clock:
    """A clock in seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def stay() -> None:
    """Check for cancellation, without ever raising."""


def come(turns: Turns, session: str, act: Callable[[], object]) -> threading.Thread:
    """Let a session request a turn and act in it; return once the session is in the queue."""

    def run() -> None:
        with turns.turn(session, stay):
            act()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while not turns.waiting(session):
        time.sleep(0.001)
    return thread


def use(turns: Turns, clock: Clock, session: str, seconds: float) -> None:
    """Let a session use some seconds in a turn."""
    with turns.turn(session, stay):
        clock.now += seconds


def order_of(turns: Turns, *sessions: str) -> list[str]:
    """Let sessions request turns while a holder has the only place; return the order served."""
    order: list[str] = []
    with turns.turn("holder", stay):
        threads = [
            come(turns, one, lambda one=one: order.append(one))  # type: ignore[misc]
            for one in sessions
        ]
    for thread in threads:
        thread.join(10)
    return order


def test_who_asked_first_is_next_where_all_have_used_the_same(clock: Clock) -> None:
    assert order_of(Turns(1, clock), "first", "second", "third") == ["first", "second", "third"]


def test_who_has_used_least_is_next(clock: Clock) -> None:
    turns = Turns(1, clock)
    use(turns, clock, "noisy", 5.0)
    use(turns, clock, "quiet", 0.1)
    clock.now += 2.0
    assert order_of(turns, "noisy", "quiet") == ["quiet", "noisy"]


def test_a_session_begins_twice_a_second_at_most_while_others_wait(clock: Clock) -> None:
    turns = Turns(1, clock)
    use(turns, clock, "other", 3.0)
    clock.now += 1.0
    use(turns, clock, "again", 0.01)
    order: list[str] = []
    with turns.turn("holder", stay):
        # The session "again" has used less time in total, but its last turn began just now.
        threads = [come(turns, "again", lambda: order.append("again"))]
        threads += [come(turns, "other", lambda: order.append("other"))]
    for thread in threads:
        thread.join(10)
    assert order == ["other", "again"]
    use(turns, clock, "again", 0.0)  # A single session does not wait.


@pytest.mark.parametrize(("used", "first"), [(0.0, "other"), (9.0, "long")])
def test_long_work_gives_way_to_who_used_less(clock: Clock, used: float, first: str) -> None:
    turns, order = Turns(1, clock), list[str]()
    use(turns, clock, "other", used)
    clock.now += 1.0
    with turns.turn("long", stay) as turn:
        turn.give_way()  # No other session waits.
        clock.now += 3.0
        thread = come(turns, "other", lambda: order.append("other"))
        turn.give_way()
        order.append("long")
    thread.join(10)
    assert (order[0], len(order)) == (first, 2)


def test_who_waits_for_others_holds_no_place() -> None:
    turns, order = Turns(1), list[str]()
    with turns.turn("waits", stay) as turn:
        with turn.paused():
            come_through(turns, "works", order)
        order.append("waits")
    assert order == ["works", "waits"]


def come_through(turns: Turns, session: str, order: list[str]) -> None:
    """Let a session have a turn from its beginning to its end."""
    with turns.turn(session, stay):
        order.append(session)


def asked_within(turns: Turns, seconds: float) -> list[str]:
    """Request a turn and leave after some seconds."""
    end = time.monotonic() + seconds

    def look() -> None:
        if time.monotonic() > end:
            raise Left

    answers: list[str] = []
    try:
        with turns.turn("asking", look):
            answers.append("got it")
    except Left:
        assert not turns.waiting("asking")  # The session that left no longer waits.
    return answers


def test_a_turn_ends_with_its_work_also_when_that_fails() -> None:
    turns = Turns(1)
    with pytest.raises(Left), turns.turn("one", stay):
        raise Left
    assert asked_within(turns, 10) == ["got it"]


def test_threads_end_when_their_caller_is_asked_to() -> None:
    looks, ends = [], []

    def work(item: int) -> int:
        try:
            while True:
                check_cancelled()
                time.sleep(0.001)
        finally:
            ends.append(item)

    def leave() -> None:
        looks.append(threading.current_thread())
        if len(looks) > 2:
            raise Left

    with cancelled_by(leave), pytest.raises(Left):
        in_threads(work, [1, 2, 3], 2, look=0.01)
    assert set(looks) == {threading.current_thread()}  # Streamlit can stop this thread.
    assert sorted(ends) == [1, 2]  # The third task was never started.
