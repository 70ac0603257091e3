"""Turns between sessions, and threads that end with their caller."""

from __future__ import annotations

import threading
import time

import pytest

from dpviz.core.pauses import in_threads, pause, pausing
from pages.ui import turns
from pages.ui.turns import Turns


class Left(Exception):
    """The visitor has gone."""


def asked_in_order(queue: Turns, wanted: list[tuple[str, bool]]) -> list[str]:
    """Let somebody hold the only turn while others ask one after the other; return who got it."""
    got: list[str] = []

    def ask(name: str, ahead: bool) -> None:
        with queue.one(ahead=ahead):
            got.append(name)

    threads = []
    with queue.one():
        for number, (name, ahead) in enumerate(wanted, start=1):
            thread = threading.Thread(target=ask, args=(name, ahead))
            thread.start()
            threads.append(thread)
            while len(queue._waiting) < number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return got


def test_whoever_asked_first_is_next_and_looks_come_before_frames() -> None:
    wanted = [("frames", True), ("first", False), ("second", False), ("more frames", True)]
    assert asked_in_order(Turns(1), wanted) == ["first", "second", "frames", "more frames"]


def test_frames_that_waited_long_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.0)
    wanted = [("frames", True), ("first", False)]
    assert asked_in_order(Turns(1), wanted) == ["frames", "first"]


def test_as_many_as_there_are_cores_draw_at_once() -> None:
    queue = Turns(2)
    with queue.one(), queue.one():
        assert queue._drawing == 2
        assert asked_within(queue, 0.3) == []
    assert asked_within(queue, 10) == ["got it"]


def asked_within(queue: Turns, seconds: float) -> list[str]:
    """Ask for a turn and leave after some seconds."""
    end = time.monotonic() + seconds

    def look() -> None:
        if time.monotonic() > end:
            raise Left

    got: list[str] = []
    with pausing(look):
        try:
            with queue.one():
                got.append("got it")
        except Left:
            assert not queue._waiting  # nobody waits for who has left
    return got


def test_a_turn_ends_with_its_work_also_when_that_fails() -> None:
    queue = Turns(1)
    with pytest.raises(Left), queue.one():
        raise Left
    assert asked_within(queue, 10) == ["got it"]


def test_threads_end_when_their_caller_is_asked_to() -> None:
    looks, ended = [], []

    def work(item: int) -> int:
        try:
            while True:
                pause()
                time.sleep(0.001)
        finally:
            ended.append(item)

    def leave() -> None:
        looks.append(threading.current_thread())
        if len(looks) > 2:
            raise Left

    with pausing(leave), pytest.raises(Left):
        in_threads(work, [1, 2, 3], 2, look=0.01)
    assert set(looks) == {threading.current_thread()}  # where Streamlit can stop a run
    assert sorted(ended) == [1, 2]  # the third was never begun


def test_threads_give_what_a_loop_gives() -> None:
    assert in_threads(lambda item: item**2, range(7), 3) == [item**2 for item in range(7)]
    assert in_threads(lambda item: item**2, [3], 3) == [9]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 / item, [1, 0], 2)
