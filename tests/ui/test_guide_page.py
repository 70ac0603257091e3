"""The Guide page: bet, move, reveal, explain; links to steps; the same settings on Explore."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.lessons import Lesson, lessons
from tests.ui.driver import component, errors, go, held, start

pytestmark = pytest.mark.long


def shown(at: AppTest) -> dict[str, object]:
    """Return the data sent to the animation page."""
    assert errors(at) == []
    return component(at, "guide.stage")


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_each_step_is_sent_with_its_question_and_its_stops(lesson: Lesson) -> None:
    for place in range(len(lesson.steps)):
        at = start("guide", lesson=str(lesson.number), step=str(place + 1))
        state, question = shown(at), lesson.question_at(place)
        assert state["id"] == f"{lesson.number}.{place + 1}"
        assert state["say"] == lesson.filled(lesson.steps[place].say)
        assert state["ask"] == ("" if question is None else question.ask)
        assert len(state["stops"]) == len(lesson.moves(place)) + 1  # type: ignore[arg-type]
        assert (state["bet"], state["made"]) == (None, 0)


def test_the_link_tells_the_bet_the_moves_and_that_it_is_presented() -> None:
    at = start("guide", lesson="3", step="2", bet="2.5", moved="more", present="yes")
    state = shown(at)
    assert (state["bet"], state["made"], state["present"]) == (2.5, 2, True)
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (2.5, "more")
    go(at, "claims")
    go(at, "guide")
    assert shown(at)["bet"] == 2.5
    assert (held(at, "lesson", "guide"), held(at, "step", "guide")) == (3, 2)


def test_a_folder_without_lessons_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPVIZ_LESSONS", str(tmp_path))
    lessons.cache_clear()
    try:
        assert "the folder has no lesson" in errors(start("guide"))[0]
    finally:
        lessons.cache_clear()
