"""The Guide page: bet, move, reveal, why; links to steps; the same settings on Explore."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.lessons import lessons
from tests.ui.driver import QUICK, errors, go, held, keys, nodes, press, start


def text(at: AppTest) -> str:
    shown = [*at.markdown, *at.success, *at.info, *at.caption]
    return "\n".join(element.value for element in shown)


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_each_step_asks_moves_and_reveals(lesson: object) -> None:
    found = next(one for one in lessons() if one is lesson)
    at = start("guide", lesson=str(found.number))
    for place, step in enumerate(found.steps):
        assert errors(at) == []
        assert f"step {place + 1} of {len(found.steps)}" in text(at)
        if step.question is not None:
            assert found.filled(step.why) not in text(at)
            assert "guide.move" not in keys(at)
            press(at, f"guide.bet.{step.question.right}")
            if step.move:
                assert found.filled(step.why) not in text(at)
                press(at, "guide.move")
            assert found.filled(step.question.says(step.question.right)) in text(at)
            assert found.filled(step.why) in text(at)
        if place + 1 < len(found.steps):
            press(at, "guide.next")


def test_the_link_names_the_step_and_bets_stay() -> None:
    at = start("guide", lesson="6", step="3")
    assert "Lesson 6, step 3" in text(at)
    press(at, "guide.bet.0")
    assert "Not so" in text(at)
    press(at, "guide.back")
    press(at, "guide.next")
    assert "Not so" in text(at)
    go(at, "claims")
    go(at, "guide")
    assert (held(at, "lesson", "guide"), held(at, "step", "guide")) == (6, 3)


def test_a_lesson_that_is_not_there_shows_the_last() -> None:
    at = start("guide", lesson="42", step="9")
    assert errors(at) == []
    last = lessons()[-1]
    assert f"Lesson {len(lessons())}, step {len(last.steps)}" in text(at)


def test_a_link_tells_the_bet_the_move_and_that_it_is_presented() -> None:
    lesson = lessons()[0]
    question = lesson.steps[1].question
    assert question is not None
    at = start("guide", lesson="1", step="2", bet="1", moved="yes", present="yes")
    assert lesson.filled(question.says(0)) in text(at)
    assert "guide.chapter" not in keys(at)
    press(at, "guide.leave_large")
    assert "guide.chapter" in keys(at)
    press(at, "guide.next")
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (0, "no")
    press(at, "guide.back")
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (1, "yes")


def test_a_bet_that_the_step_does_not_offer_is_none() -> None:
    at = start("guide", lesson="1", step="2", bet="9", moved="yes")
    assert errors(at) == []
    assert "guide.bet.0" in keys(at)
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (0, "no")


@pytest.mark.parametrize("page", ["guide", "explore", "decide", "claims", "mechanisms"])
def test_pages_offer_the_glossary(page: str) -> None:
    # It is drawn by the frame around every page.
    at = start(page, **QUICK)
    assert "glossary.page" in keys(at)
    assert [node.key for node in nodes(at) if node.type == "bidi_component"][-1] == "glossary.terms"
