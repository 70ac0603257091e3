"""The Decide page: one question, one answer, open points, and the next step."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import board
from tests.ui.driver import change, errors, go, held, keys, nodes, press, start


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the slow answers of other pages, which `test_one_answer` tests."""
    monkeypatch.setattr(board, "least", lambda *given: None)


def said(at: AppTest) -> str:
    """Return the words of the page as a reader sees them."""
    kinds = ("markdown", "header", "subheader", "title", "html", "caption")
    texts = [
        getattr(node, "value", None) or node.proto.body for node in nodes(at) if node.type in kinds
    ]
    return re.sub(r"[\\*\u2060]|<[^>]*>", "", "\n".join(texts))


def headers(at: AppTest) -> list[str]:
    return [box.value for box in at.header]


def test_one_question_one_answer_and_what_is_open_on_one_screen() -> None:
    at = start("decide", table="iris", k="1")
    assert errors(at) == []
    assert [box.value for box in at.title] == ["What can you publish safely?"]
    text = said(at)
    assert "must be kept in 95 % of releases" in text
    assert re.search(r"keep at least \d+% of the structure \(mean \d+%\)", text)
    # A table without a declared schema has no public limits, so Decide never gives a plain yes.
    change(at, "asked.ceiling", 25.0)
    assert held(at, "ceiling", "decide") == 25
    assert at.query_params["ceiling"] in ("25", ["25"])
    assert headers(at)[0].startswith("? ε ")
    assert "then the answer is yes" in said(at)
    assert "Four sentences for the people who decide" in said(at)
    assert "do not share" in said(at)
    go(go(at, "claims"), "decide")
    assert held(at, "ceiling", "decide") == 25
    change(at, "asked.ceiling", 2.0)
    assert headers(at)[0].startswith("✗ ε ")
    assert "What would help" in said(at)
    assert "Four sentences for the people who decide" not in said(at)
    press(at, "decide.fill")  # A rejected epsilon is never carried to a release.
    assert at.session_state["release.epsilon"] == "0.703"
    change(go(at, "decide"), "asked.hand_out", "picture")
    assert headers(at) == ["✗ No"]
    assert {"decide.plan", "decide.room", "decide.fill"} & set(keys(at)) == set()
    press(at, "decide.instead")
    assert held(at, "hand_out", "decide") == "map"
    assert errors(at) == []


def test_a_map_is_shown_with_others_to_click_and_a_release_is_filled_in() -> None:
    at = start("decide", table="digits", ceiling="10")
    assert headers(at)[0].startswith("✓ ε ")  # The limits of the digits table are public.
    least = headers(at)[0].removeprefix("✓ ε ")
    assert f"The map that would be published at ε {least}" in said(at)
    press(at, "decide.map.3")
    assert headers(at)[0] == f"✓ ε {least}"
    assert f"The map that would be published at ε {least}" not in said(at)
    # A release must know how many rows a person has, so the next step asks for this in place.
    change(at, "decide-fill.person", "one")
    assert at.button(key="decide.fill").label == f"Release at ε {least} …"
    press(at, "decide.fill")
    assert errors(at) == []
    assert at.session_state["release.pictured"]
    assert at.session_state["release.picture"] == "0.65"
    assert at.session_state["release.epsilon"] == least
    assert at.session_state["release.scale"] == "limits"
    assert "release.look" in keys(at) or "release.new.make" in keys(at)


def test_without_a_map_the_loadings_are_shown_and_noise_names_no_component() -> None:
    at = start("decide", table="iris", ceiling="10", hand_out="directions")
    assert "drives component 1”? Yes." in said(at)
    at = start("decide", table="digits", ceiling="10", hand_out="directions")
    assert "drives component 1”? No." in said(at)  # control


def test_where_nothing_is_released_the_way_to_a_release_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DPVIZ_RELEASE", "off")  # This hides Release, as missing OpenDP does.
    at = start("decide", table="iris", hand_out="directions")
    button = at.button(key="decide.fill")
    assert (button.disabled, button.help) == (True, "Releases are switched off on this server.")
    monkeypatch.setattr("dpviz.core.platform.in_browser", lambda: True)
    button = at.run().button(key="decide.fill")
    assert button.disabled
    assert button.help.startswith("Inside a browser no real release can be made")


def test_the_unit_is_asked_and_what_is_answered_follows_to_the_release() -> None:
    at = start("decide", table="iris", ceiling="25", hand_out="directions")
    assert "the release protects one ROW" in said(at)
    change(at, "decide.person", "some")
    assert held(at, "rows_a_person") == 3
    assert "a person with all of at most 3 rows" in said(at)
    go(at, "release")
    assert any("at most 3 rows" in text.value for text in at.markdown)
    if "release.new.unit" in keys(at):
        assert at.session_state["release.new.unit"] == "person"
    change(go(at, "decide"), "view.table", "wine")  # For a new table, Decide asks this again.
    assert held(at, "rows_a_person") is None


def test_what_cannot_be_answered_is_said_where_the_answer_would_be() -> None:
    at = start("decide", table="iris", k="4")
    assert any("k must be" in said for said in errors(at))
    assert "asked.survive" in keys(at)


def test_a_plan_needs_no_table() -> None:
    at = start("decide", table="upload", k="1", about="plan", people="5000", features="6")
    assert "plan (5,000 × 6)" in said(at)
    assert headers(at)[0].startswith("✓ ε ")


def test_without_a_file_the_page_says_so_and_offers_a_plan() -> None:
    at = start("decide", table="upload")
    (message,) = errors(at)
    assert "Upload the file" in message
    assert "decide.source" in keys(at)


@pytest.mark.parametrize("words", ["hand_out", "survive", "ceiling"])
def test_answers_are_in_the_link(words: str) -> None:
    value = {"hand_out": "directions", "survive": "50", "ceiling": "7"}[words]
    at = start("decide", table="iris", **{words: value})
    assert held(at, words, "decide") == (7 if words == "ceiling" else value)
    assert errors(at) == []
