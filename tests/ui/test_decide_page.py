"""The Decide page: what may be risked, and one live card; behind it a card of every mechanism."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.driver import change, errors, go, held, keys, nodes, press, start


def html(at: AppTest) -> str:
    return "\n".join(node.proto.body for node in nodes(at) if node.type == "html")


def test_the_four_questions_are_answered_on_one_screen_and_follow_the_ceiling() -> None:
    at = start("decide", table="iris", k="1")
    assert errors(at) == []
    shown = html(at)
    for answer in ("May I publish", "<th>ceiling</th>", "suspicion"):
        assert answer in shown
    # limits of a table whose schema nobody stated are not public: it is never a plain yes
    assert "✓ Yes" not in shown
    (left,) = (box.value for box in at.caption if "odds may" in box.value)
    often = left.split("in at most ")[1].split(" releases")[0]
    assert f"In at most {often} releases the odds grow" in shown
    change(at, "decide.words", 25.0)
    assert held(at, "ceiling", "decide") == 25
    assert at.query_params["ceiling"] in ("25", ["25"])
    assert "It could be" in html(at)
    assert "taken from this table" in html(at)
    go(at, "claims")
    go(at, "decide")
    assert held(at, "ceiling", "decide") == 25
    change(at, "decide.handed", "picture")
    assert "cannot be published, at any ceiling" in html(at)
    assert "base64" not in html(at)
    assert "decide.plan" not in keys(at)
    press(at, "decide.instead")
    assert held(at, "hand_out", "decide") == "drawn"
    change(at, "decide.pictured", True)
    change(at, "decide.ceiling", 1.1)
    assert "Not with a picture of counts" in html(at)
    assert "decide.fill" not in keys(at)  # a release would refuse it
    press(at, "decide.unpictured")
    assert held(at, "pictured", "decide") == "no"
    assert "decide.fill" in keys(at)
    assert errors(at) == []


def test_a_release_is_filled_in_from_the_card() -> None:
    at = start("decide", table="digits", ceiling="10")
    assert "✓ Yes" in html(at)  # its limits are public
    before = html(at)
    change(at, "decide.pictured", True)
    assert "a picture of counts</td><td><small>is counted in above" in html(at)
    assert html(at) != before
    assert at.query_params["pictured"] in ("yes", ["yes"])
    press(at, "decide.fill")
    assert errors(at) == []
    assert at.session_state["release.pictured"]
    assert at.session_state["release.picture"] == "0.65"
    assert at.session_state["release.epsilon"] == "2.39"
    assert at.session_state["release.rows"] == "unit"
    assert at.session_state["release.scale"] == "limits"
    assert "release.look" in keys(at) or "release.new.make" in keys(at)


def test_where_nothing_is_released_the_way_to_a_release_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DPVIZ_RELEASE", "off")  # as without OpenDP: there is no such page
    at = start("decide", table="digits")
    button = at.button(key="decide.fill")
    assert button.disabled
    assert button.help == "Releases are switched off here."
    assert errors(at) == []
    monkeypatch.setattr("dpviz.core.platform.in_browser", lambda: True)  # as the page asks
    button = at.run().button(key="decide.fill")
    assert button.disabled
    assert button.help.startswith("Inside a browser no real release can be made")


def test_the_unit_is_asked_and_what_is_answered_follows_to_the_release() -> None:
    at = start("decide", table="digits", ceiling="10")
    assert "? This protects one ROW" in html(at)
    change(at, "decide.person", "some")
    assert held(at, "rows_a_person") == 3
    assert "a person with all of at most 3 rows" in html(at)
    go(at, "release")
    assert any("at most 3 rows" in text.value for text in at.markdown)
    if "release.new.unit" in keys(at):
        assert at.session_state["release.new.unit"] == "person"
    change(go(at, "decide"), "view.table", "iris")  # another table is another question
    assert held(at, "rows_a_person") is None


def test_every_mechanism_is_asked_behind_it() -> None:
    at = start("decide", table="iris", k="1", survive="50")
    press(at, "decide.every")
    shown = html(at)
    assert held(at, "shown", "decide") == "card"
    assert "Least epsilon" in shown
    assert "Consequences" in shown
    assert "--delta" in shown  # the command says what a later default could change
    change(at, "decide.releases", 10)
    assert "after one release" in shown
    assert "after 10 releases" in html(at)
    change(at, "decide.prior", 50.0)
    assert "A belief of 50\u00a0%" in html(at)
    press(at, "decide.back")
    assert held(at, "shown", "decide") == "ceiling"
    assert errors(at) == []


def test_without_a_delta_claims_have_no_exceptions() -> None:
    at = start("decide", table="iris", k="1", ask="card", survive="50", with_delta="no")
    assert errors(at) == []
    assert "50\u00a0% of the structure" in html(at)
    assert "without a delta from" not in html(at)
    assert "no exceptions" in html(at)


def test_what_cannot_be_answered_is_said_where_the_answer_would_be() -> None:
    at = start("decide", table="iris", k="4")
    assert any("On Explore each column is" in box.value for box in at.markdown)  # and not here
    assert any("k must be" in box.value for column in at.columns for box in column.error)


def test_a_plan_needs_no_table() -> None:
    at = start("decide", table="upload", k="1", about="plan", people="5000", features="6")
    assert "plan: 5,000 people" in html(at)


def test_without_a_file_the_page_says_so_and_offers_a_plan() -> None:
    at = start("decide", table="upload")
    (said,) = errors(at)
    assert "Upload the file" in said
    assert "decide.source" in keys(at)


@pytest.mark.parametrize("words", ["hand_out", "survive", "pictured"])
def test_answers_are_in_the_link(words: str) -> None:
    chosen = {"hand_out": "picture", "survive": "50", "pictured": "yes"}[words]
    at = start("decide", table="iris", **{words: chosen})
    assert held(at, words, "decide") == chosen
    assert errors(at) == []
