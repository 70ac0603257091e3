"""The Guide page: bet, move, reveal, why; links to steps; the same settings on Explore."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.lessons import Lesson, lessons
from dpviz.lessons.scene import tally
from tests.ui.driver import QUICK, component, errors, go, held, keys, nodes, start


def shown(at: AppTest) -> dict[str, object]:
    """What the stage is sent."""
    assert errors(at) == []
    return component(at, "guide.stage")


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_each_step_is_sent_with_its_question_and_its_stops(lesson: Lesson) -> None:
    for place in range(len(lesson.steps)):
        at = start("guide", lesson=str(lesson.number), step=str(place + 1))
        sent, asked = shown(at), lesson.question_at(place)
        assert sent["id"] == f"{lesson.number}.{place + 1}"
        assert sent["say"] == lesson.filled(lesson.steps[place].say)
        assert sent["ask"] == ("" if asked is None else asked.ask)
        assert len(sent["stops"]) == len(lesson.moves(place)) + 1  # type: ignore[arg-type]
        assert (sent["bet"], sent["made"]) == (None, 0)


def test_the_link_tells_the_bet_the_moves_and_that_it_is_presented() -> None:
    at = start("guide", lesson="3", step="2", bet="2.5", moved="more", present="yes")
    sent = shown(at)
    assert (sent["bet"], sent["made"], sent["present"]) == (2.5, 2, True)
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (2.5, "more")
    go(at, "claims")
    go(at, "guide")
    assert shown(at)["bet"] == 2.5
    assert (held(at, "lesson", "guide"), held(at, "step", "guide")) == (3, 2)


def test_a_lesson_that_is_not_there_shows_the_last() -> None:
    last = lessons()[-1]
    sent = shown(start("guide", lesson="42", step="9"))
    assert sent["id"] == f"{len(lessons())}.{len(last.steps)}"
    assert sent["after"] is None


@pytest.mark.parametrize(("lesson", "step"), [("1", "2"), ("3", "2"), ("2", "1")])
def test_a_bet_that_the_step_does_not_offer_is_none(lesson: str, step: str) -> None:
    at = start("guide", lesson=lesson, step=step, bet="9", moved="yes")
    assert (shown(at)["bet"], shown(at)["made"]) == (None, 0)
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (0, "no")


def test_what_was_bet_right_is_counted_where_a_lesson_ends() -> None:
    course = lessons()
    tip = course[2].question_at(1)
    assert tip is not None
    for bet, right in ((tip.right, 1), (tip.axis[1], 0)):  # type: ignore[index]
        found = tally(course[2], 2, course, {"3.2": bet, "3.3": 0})
        assert (found["right"], found["asked"], found["read"]) == (right, 1, "")
    assert tally(course[2], 1, course, {}) is None
    assert tally(course[-1], len(course[-1].steps) - 1, course, {})["read"]


def test_a_folder_without_lessons_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_LESSONS", str(tmp_path))
    lessons.cache_clear()
    try:
        assert "there is no lesson" in errors(start("guide"))[0]
    finally:
        lessons.cache_clear()


@pytest.mark.parametrize("page", ["guide", "explore", "decide", "claims", "mechanisms"])
def test_pages_offer_the_glossary(page: str) -> None:
    # It is drawn by the frame around every page but the guide, whose stage would cover it.
    at = start(page, **QUICK)
    offered = "glossary.page" in keys(at)
    last = [node.key for node in nodes(at) if node.type == "bidi_component"][-1]
    assert (offered, last == "glossary.terms") == ((page != "guide"),) * 2
