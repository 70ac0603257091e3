"""One computation per answer, shared by all who may see it; a waiting session blocks none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import streamlit as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables, load
from dpviz.preparation.bounding import Prepared, prepare
from pages.ui import ask as asking
from pages.ui import limits
from pages.ui.ask import ask
from pages.ui.loading import Current
from pages.ui.turns import Turns

IRIS = prepare(load("iris"), Settings(table="iris"))


@dataclass(frozen=True)
class Found:
    """An answer, complete or partial."""

    name: str
    share: float = 1.0
    rows: Any = None


class Left(BaseException):
    """Streamlit's exception that ends a run whose visitor has moved on."""


def about(*data_key: str) -> Current:
    """Return a table with the data from which its rows were made."""
    return Current(Settings(table="iris"), IRIS, data_key, None)


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start without answers, and treat all callers as one session unless a test says otherwise."""
    shelf = asking._Shelf(asking._FOR_ONE)
    monkeypatch.setattr(asking, "_own", lambda: shelf)
    monkeypatch.setattr(limits, "look_up", lambda: None)
    asking.clear()
    yield
    asking.clear()


class Study:
    """A study that counts its runs and waits on request."""

    def __init__(self, *parts: Found) -> None:
        self.__module__, self.__qualname__ = "tests", "study"
        self.parts, self.runs = parts, 0
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.fails: BaseException | None = None

    def __call__(self, *rows: Prepared, **options: Any) -> Iterator[Found]:
        self.runs += 1
        yield from self.parts[:-1]
        self.begun.set()
        self.may_end.wait(10)
        if self.fails is not None:
            failure, self.fails = self.fails, None
            raise failure
        yield self.parts[-1]


def wait_for(happens: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    while not happens():
        time.sleep(0.01)


def quick(**options: Any) -> Found:
    """Answer without waiting."""
    return Found(repr(options))


@pytest.mark.parametrize("table", builtin_tables())
def test_answers_about_a_built_in_table_are_for_all(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(Found("whole"))
    study.may_end.set()
    first = ask(study, {}, about(table, "none"))
    monkeypatch.setattr(asking, "_own", lambda: asking._Shelf(1))  # Imitate another session.
    assert ask(study, {}, about(table, "none")) is first
    assert study.runs == 1


@pytest.mark.parametrize("key", ["f1/('digits',)", "digits/('age',)", "digits/", "", "upload"])
def test_answers_about_anything_else_stay_in_their_session(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(Found("whole"))
    study.may_end.set()
    assert ask(study, {}, about(key, "digits")) is ask(study, {}, about(key, "digits"))
    assert study.runs == 1
    other = asking._Shelf(asking._FOR_ONE)
    monkeypatch.setattr(asking, "_own", lambda: other)  # Imitate another session.
    ask(study, {}, about(key, "digits"))
    assert study.runs == 2


def test_another_option_another_table_and_another_study_have_other_answers() -> None:
    study = Study(Found("whole"))
    study.may_end.set()
    questions: list[tuple[Any, dict[str, Any], Any]] = [
        (study, {}, about("iris")),
        (study, {}, about("iris", "private")),
        (study, {}, None),
        (study, {"seed": 1}, None),
        (study, {"seed": "1"}, None),
        (quick, {"seed": 1}, None),
        (quick, {"seed": 1, "k": 2}, None),
    ]
    answers = [ask(*one) for one in questions]
    assert study.runs == 5
    # The order of the options does not change the answer.
    assert ask(quick, {"k": 2, "seed": 1}) is answers[-1]


def test_what_many_ask_at_once_is_computed_once_and_all_see_it_grow() -> None:
    study, draws = Study(Found("part", 0.5), Found("whole")), set[tuple[int, str]]()

    def draw(found: Found) -> None:
        draws.add((threading.get_ident(), found.name))

    with ThreadPoolExecutor(5) as pool:
        answers = [pool.submit(ask, study, {}, draw=draw) for _ in range(5)]
        wait_for(lambda: len(draws) == 5)
        study.may_end.set()
        assert {one.result(10).name for one in answers} == {"whole"}
    assert study.runs == 1
    assert {name for _, name in draws} == {"part"}


def test_an_error_reaches_all_who_wait_and_is_asked_again_later() -> None:
    study, waits = Study(Found("part", 0.5), Found("whole")), threading.Event()
    study.fails = InvalidSetting("k", "less", 9)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, study, {})
        study.begun.wait(10)
        second = pool.submit(ask, study, {}, draw=lambda part: waits.set())
        waits.wait(10)
        study.may_end.set()
        for one in (first, second):
            with pytest.raises(InvalidSetting):
                one.result(10)
    assert ask(study, {}).name == "whole"


def test_where_its_run_is_ended_one_of_the_others_computes_it() -> None:
    study, draws = Study(Found("part", 0.5), Found("whole")), set[int]()
    study.fails = Left()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, study, {})
        study.begun.wait(10)
        draw = lambda part: draws.add(threading.get_ident())  # noqa: E731
        others = [pool.submit(ask, study, {}, draw=draw) for _ in range(3)]
        wait_for(lambda: len(draws) == 3)
        study.may_end.set()
        with pytest.raises(Left):
            first.result(10)
        assert [one.result(10).name for one in others] == ["whole"] * 3
    assert study.runs == 2


def test_who_waits_for_an_answer_holds_no_place() -> None:
    turns, study = Turns(2), Study(Found("whole"))

    def visit(session: str) -> Found:
        with turns.turn(session, lambda: None) as turn:
            token = limits._TURN.set(turn)
            try:
                return ask(study, {})
            finally:
                limits._TURN.reset(token)

    with ThreadPoolExecutor(5) as pool:
        visits = [pool.submit(visit, "1")]
        study.begun.wait(10)  # The session that computes occupies one of a few places.
        visits += [pool.submit(visit, str(number)) for number in range(2, 6)]
        with turns.turn("somebody else", lambda: None):
            study.may_end.set()
        assert [one.result(10).name for one in visits] == ["whole"] * 5


def test_answers_not_asked_for_longest_go_first_and_a_table_counts_once() -> None:
    shelf = asking._Shelf(3_000)
    assert IRIS.table.rows.nbytes > 3_000  # The table exceeds the limit, but it is in use.

    def keep(name: str, rows: Any) -> None:
        work, _ = shelf.find(name)
        shelf.keep(work, Found("x" * 600, rows=rows))

    def kept(*names: str) -> list[str]:
        return [name for name in names if name in shelf._works]

    for name in ("a", "b"):
        keep(name, IRIS)
    assert kept("a", "b") == ["a", "b"]
    shelf.find("a")  # After this request, "a" is the last used answer.
    for name in "cde":
        keep(name, None)
    assert kept(*"abcde") == ["a", "c", "d", "e"]
    shelf = asking._Shelf(30_000)
    for number in range(asking._IN_USE + 8):  # Idle tables stay while memory allows.
        keep(str(number), prepare(load("iris"), Settings(table="iris")))
    count = len(shelf._works)
    assert asking._IN_USE < count < asking._IN_USE + 8
    assert str(number) in shelf._works


def test_a_question_that_was_stopped_waits_until_it_is_asked_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = Study(Found("known", 0.5), Found("whole"))
    study.may_end.set()
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    buttons: dict[str, Any] = {}

    class Place:
        def __getattr__(self, name: str) -> Any:
            return lambda label="", **how: buttons.update({label: how}) or Place()

    monkeypatch.setattr(asking.st, "empty", Place)
    key = ((), "tests.study", "[]", limits.caps())
    asking._press(asking._STOP, key)
    assert ask(study, {}, saying="Searching").name == "known"
    assert not study.begun.is_set()
    buttons["Go on (50\u00a0% done)"]["on_click"](*buttons["Go on (50\u00a0% done)"]["args"])
    assert ask(study, {}, saying="Searching").name == "whole"
    # An answer that only its visitor may begin shows the known result until the visitor does.
    study = Study(Found("known", 0.0), Found("whole"))
    study.may_end.set()
    assert ask(study, {"seed": 1}, begin=False).name == "known"
    buttons["Run it"]["on_click"](*buttons["Run it"]["args"])
    assert ask(study, {"seed": 1}, begin=False).name == "whole"
    # A study that only answers at once has no partial result, so do not compute any.
    runs: list[int] = []

    def at_once() -> Found:
        runs.append(1)
        return Found("whole")

    name = f"{__name__}.{at_once.__qualname__}"
    asking._press(asking._STOP, ((), name, "[]", limits.caps()))
    with pytest.raises(limits.NotHere, match="Searching was stopped"):
        ask(at_once, {}, saying="Searching")
    assert runs == []


def test_what_takes_too_long_is_refused_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = list[int]()

    def slow() -> Found:
        runs.append(1)
        raise limits.TooSlow

    for _ in range(2):
        with pytest.raises(limits.NotHere, match="a page works for at most 3 min"):
            ask(slow, {})
    assert len(runs) == 1
