"""The Guide page: bet, move, reveal, why; links to steps; the same settings on Explore."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dpviz.lessons import lessons
from tests.ui.driver import QUICK, change, errors, go, held, keys, nodes, press, start


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
        asked = found.asked(place)
        if asked is not None:
            assert found.filled(step.why) not in text(at)
            assert "guide.move" not in keys(at)
            if asked.axis is None:
                press(at, f"guide.bet.{asked.right}")
            else:
                change(at, f"guide.flag.{found.number}.{place + 1}", asked.axis[1])
                press(at, "guide.bet.flag")
            if step.move:
                assert found.filled(step.why) not in text(at)
                press(at, "guide.move")
            bet = asked.right if asked.axis is None else asked.axis[1]
            assert asked.says(bet) in text(at)
            assert found.filled(step.why) in text(at)
        if step.extreme:
            press(at, "guide.move")
            assert "guide.move" not in keys(at)
        if place + 1 < len(found.steps):
            press(at, "guide.next")


def test_the_link_names_the_step_and_bets_stay() -> None:
    at = start("guide", lesson="2", step="3")
    assert "Lesson 2, step 3" in text(at)
    asked = lessons()[1].asked(2)
    assert asked is not None
    press(at, f"guide.bet.{1 - int(asked.right)}")
    assert "Not so" in text(at)
    press(at, "guide.back")
    press(at, "guide.next")
    assert "Not so" in text(at)
    go(at, "claims")
    go(at, "guide")
    assert (held(at, "lesson", "guide"), held(at, "step", "guide")) == (2, 3)


def test_a_lesson_that_is_not_there_shows_the_last() -> None:
    at = start("guide", lesson="42", step="9")
    assert errors(at) == []
    last = lessons()[-1]
    assert f"Lesson {len(lessons())}, step {len(last.steps)}" in text(at)


def test_a_link_tells_the_bet_the_moves_and_that_it_is_presented() -> None:
    asked = lessons()[2].asked(1)
    assert asked is not None
    at = start("guide", lesson="3", step="2", bet="2.5", moved="more", present="yes")
    assert asked.says(2.5) in text(at)
    assert "guide.chapter" not in keys(at)
    assert "guide.move" not in keys(at)
    press(at, "guide.leave_large")
    assert "guide.chapter" in keys(at)
    press(at, "guide.next")
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (0, "no")
    press(at, "guide.back")
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (2.5, "more")


@pytest.mark.parametrize(("lesson", "step"), [("1", "2"), ("3", "2")])
def test_a_bet_that_the_step_does_not_offer_is_none(lesson: str, step: str) -> None:
    at = start("guide", lesson=lesson, step=step, bet="9", moved="yes")
    assert errors(at) == []
    assert {"guide.bet.0", "guide.bet.flag"} & set(keys(at))
    assert (held(at, "bet", "guide"), held(at, "moved", "guide")) == (0, "no")


@pytest.mark.parametrize("page", ["guide", "explore", "decide", "claims", "mechanisms"])
def test_pages_offer_the_glossary(page: str) -> None:
    # It is drawn by the frame around every page.
    at = start(page, **QUICK)
    assert "glossary.page" in keys(at)
    assert [node.key for node in nodes(at) if node.type == "bidi_component"][-1] == "glossary.terms"
