"""The Decide page: one question at a time, answers kept, one card."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.ui.driver import change, errors, go, held, keys, nodes, press, start

QUESTIONS = ("about", "survive", "delta", "hand_out", "card")


def html(at: AppTest) -> str:
    return "\n".join(node.proto.body for node in nodes(at) if node.type == "html")


def test_from_the_first_question_to_the_card_whose_risk_follows_both_sliders() -> None:
    at = start("decide", table="iris")
    for question in QUESTIONS:
        assert errors(at) == []
        assert held(at, "shown", "decide") == question
        if question != "card":
            press(at, "decide.next")
    shown = html(at)
    assert "Least epsilon" in shown
    assert "Consequences" in shown
    assert "--delta" in shown  # the command says what a later default could change
    assert "after one release" in shown
    change(at, "decide.releases", 10)
    assert "after 10 releases" in html(at)
    change(at, "decide.prior", 50.0)
    assert "believed with 50 %" in html(at)
    assert errors(at) == []
    for _ in range(4):
        press(at, "decide.back")
    assert held(at, "shown", "decide") == "about"


def test_answers_are_in_the_link_and_survive_another_page() -> None:
    at = start("decide", table="iris", ask="survive")
    change(at, "decide.survive", "50")
    assert at.query_params["survive"] in ("50", ["50"])
    go(at, "claims")
    go(at, "decide")
    assert held(at, "survive", "decide") == "50"
    press(at, "decide.next")
    change(at, "decide.delta_allowed", "no")
    again = start("decide", table="iris", ask="card", survive="50", with_delta="no")
    assert errors(again) == []
    assert "50 % of the structure" in html(again)
    assert "without a delta from" not in html(again)
    assert "no exceptions" in html(again)


def test_a_plan_needs_no_table() -> None:
    at = start("decide", table="upload", about="plan", people="5000", features="6", ask="card")
    assert "plan: 5,000 people" in html(at)


def test_without_a_file_the_page_says_so_and_offers_a_plan() -> None:
    at = start("decide", table="upload", ask="survive")
    (said,) = errors(at)
    assert "Upload the file" in said
    assert "decide.source" in keys(at)


def test_a_picture_of_the_people_is_refused_and_drawn_points_are_offered() -> None:
    at = start("decide", table="iris", ask="card", survive="50", hand_out="picture")
    refused = html(at)
    assert "No. A picture of the people cannot be published" in refused
    assert "Least epsilon" not in refused
    assert "base64" not in refused  # the dots of the risk
    assert "decide.download" not in keys(at)
    press(at, "decide.instead")
    assert held(at, "hand_out", "decide") == "drawn"
    assert "Least epsilon" in html(at)
    assert errors(at) == []


def test_a_picture_is_not_called_a_release() -> None:
    at = start("decide", table="iris", ask="survive")
    captions = " ".join(node.proto.body for node in nodes(at) if node.type == "caption")
    assert "Each picture is one release" not in captions
    assert "and no release" in captions
