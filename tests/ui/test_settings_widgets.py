"""Options and their widgets: declared once, drawn everywhere, refused in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from streamlit.runtime.state.safe_session_state import SafeSessionState

from dpviz import datasets
from dpviz.core.params import choice, integer, number, params_of, text
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables
from pages.ui import controls, link, sidebar, state
from pages.ui import page_options as view
from pages.ui.page_options import ExploreView, page_defaults
from tests.ui.driver import (
    BESIDE,
    FIRST,
    PAGES,
    QUICK,
    ROOT,
    SHARED,
    change,
    commands,
    corrected,
    errors,
    found,
    go,
    held,
    keys,
    late,
    more,
    notices,
    one_sentence,
    press,
    reports,
    results,
    shown_value,
    start,
    unread,
    upload,
)

# Options without a widget, each with the reason.
WITHOUT_WIDGET = {
    "bounds": "its widget is drawn on the Precision page, and only for a box",
    "leave_out": "its widget is the table of an upload's columns (test_check_table.py)",
    "categories": "its widget stands below a chosen label column",
    "sheet": "its widget lists the sheets of a workbook that has several",
    "read_as": "its widget is the table of an upload's columns (test_check_table.py)",
    "codes": "its button stands beside what the check of the table finds",
    "levels": "its editor stands beside the words that the check of the table finds",
    "rows_a_person": "its widget is the question of the unit (test_check_table.py)",
    "person": "its widget is the question of the unit",
    "name": "no page sets it: an upload's name is asked for beside the upload, and no link has it",
}
# Options whose widget carries another name, because the session holds a number for the link.
OTHER_KEY = {"label": "upload.label"}

# Widgets of each part of the row above a page, where a page may be without it.
PART_KEYS = {
    "epsilon": ("view.epsilon.box", "view.epsilon.slider"),
    "delta": ("view.delta.box",),
    "k": ("view.k",),
    "precision": ("bar.share",),
    "directions": ("view.directions.kind", "view.allocation.kind"),
    "mechanisms": ("view.mechanisms",),
}

CSV = (ROOT / "data" / "example.csv").read_bytes()


def widget_keys(name: str, drawn: list[str], store: str = "view") -> list[str]:
    """Return the keys of the widgets that set one option."""
    if name in OTHER_KEY:
        return [key for key in drawn if key == OTHER_KEY[name]]
    own = f"{store}.{name}"
    return [key for key in drawn if key == own or key.startswith(own + ".")]


def test_each_option_has_a_widget_or_a_reason() -> None:
    # An upload shows the options of files too, and shares are those of what is paid for.
    paid = dict.fromkeys(("center", "scale", "count", "bounds"), "private") | {
        "relation": "zero-out"
    }
    at = start(**QUICK, **paid, row_bound="private:0.9")
    drawn = keys(corrected(more(upload(at, "example.csv", CSV))))
    missing = {name for name in params_of(Settings) if not widget_keys(name, drawn)}
    assert missing == set(WITHOUT_WIDGET)
    missing = {name for name in params_of(ExploreView) if not widget_keys(name, drawn, "explore")}
    assert missing == {"stage"}  # the board's own button


def test_the_settings_are_the_same_on_every_page_that_uses_them() -> None:
    slider = "view.epsilon.slider"  # the board moves epsilon itself
    shown = {
        page: [
            key
            for key in keys(start(page, **QUICK))
            if key.startswith(("view.", "bar.", "upload", "reset"))
        ]
        for page in BESIDE
    }
    everywhere = shown[FIRST]
    assert slider not in everywhere
    for page, drawn in shown.items():
        missing = [key for part in unread(page) for key in PART_KEYS[part]]
        assert set(missing) - set(everywhere) <= {slider}, page
        wanted = [key for key in everywhere if key not in missing]
        assert [key for key in drawn if key != slider] == wanted, page
        assert (slider in drawn) is (page != FIRST and slider not in missing), page


@pytest.mark.parametrize("page", sorted(set(PAGES) - set(SHARED)))
def test_a_page_that_ignores_the_settings_does_not_show_them(page: str) -> None:
    at = start(page, **QUICK)
    assert not [key for key in keys(at) if key.startswith(("view.", "bar.", "upload", "reset"))]
    # And they are all there again on a page that uses them.
    assert held(go(at, FIRST), "table") == QUICK["table"]


@dataclass(frozen=True)
class Extended(Settings):
    """`Settings` with one more option of each kind."""

    extra_whole: int = integer(
        3, 1, 9, label="Extra whole", group="Privacy", help="Whole.", examples=(4,)
    )
    extra_slid: int = integer(
        20, 1, 90, label="Extra slid", group="Mechanisms", help="Slid.", slider=(10, 50)
    )
    extra_number: float = number(
        0.5, 0.001, 9.0, label="Extra number", group="Preparation", help="Number.",
        slider=(0.01, 1.0), log=True,
    )  # fmt: skip
    extra_choice: str = choice(
        "one", {"one": "first way", "two": "second way"}, label="Extra choice",
        group="Preparation", help="Choice.",
    )  # fmt: skip
    extra_text: str = text("plain", label="Extra text", group="Preparation", help="Text.")


def test_a_new_option_appears_as_a_widget_and_in_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (controls, link, sidebar, state, view):
        monkeypatch.setattr(module, "Settings", Extended)
    at = start(**QUICK)
    new = {"extra_whole", "extra_slid", "extra_number", "extra_choice", "extra_text"}
    drawn = keys(at)
    assert all(widget_keys(name, drawn) for name in new)
    change(at, "view.extra_whole", 5)
    change(at, "view.extra_slid", 30)
    change(at, "view.extra_number.box", "0.25")
    change(at, "view.extra_choice", "second way")
    change(at, "view.extra_text", "other")
    assert errors(at) == []
    wanted = {
        "extra_whole": "5", "extra_slid": "30", "extra_number": "0.25", "extra_choice": "two",
        "extra_text": "other",
    }  # fmt: skip
    assert {name: at.query_params[name] for name in new} == wanted
    again = start(**at.query_params)
    assert held(again, "extra_whole") == 5
    assert held(again, "extra_choice") == "two"
    assert any("--extra-choice two" in text for text in commands(again))
    press(again, "reset")
    assert held(again, "extra_whole") == 3


def test_reset_returns_everything_but_the_table() -> None:
    at = start(
        table="wine", epsilon="3", delta="1e-5", k="3", relation="zero-out", m="ppca", trials="7",
        seed="9", center="none", scale="standardize", row_bound="quantile:0.5", axes="raw",
        draw="2", spectrum="linear",
    )  # fmt: skip
    assert notices(at) == []
    press(at, "reset")
    defaults = page_defaults()
    for name in params_of(Settings):
        wanted = "wine" if name == "table" else getattr(defaults, name)
        assert held(at, name) == wanted, name
    for name in params_of(ExploreView):
        assert held(at, name, "explore") == getattr(ExploreView(), name), name
    assert at.query_params == {"v": "1", "table": "wine"}
    assert errors(at) == []


@pytest.mark.parametrize("page", ["explore", "precision", "preparation"])
def test_a_late_report_of_a_widget_that_was_replaced_undoes_nothing(page: str) -> None:
    """A browser that has not heard of the last run yet reports what stood there before it."""
    given = {"epsilon": "2", "delta": "1e-4", "k": "3", "trials": "3", "seed": "5", "scale": "std",
             "allocation": "binary:1:0.9", "directions": "private:0.2", "row_bound": "quantile:0.8",
             "source": "table"}  # fmt: skip
    at = start(page, **{**QUICK, **given})
    before = reports(at)
    view = dict(press(at, "reset").session_state["view"])
    shown = {key: shown_value(at, key) for key in keys(at) if key != "reset"}
    late(at, before)
    assert errors(at) == []
    assert dict(at.session_state["view"]) == view
    assert {key: shown_value(at, key) for key in shown} == shown


def test_what_was_set_in_a_widget_before_it_was_heard_that_it_was_replaced_counts_once() -> None:
    at = start(**QUICK, epsilon="2")
    found(at, "view.epsilon.box").set_value("3")
    before = reports(at)
    found(at, "view.epsilon.box").set_value("2")
    press(at, "reset")
    late(at, before)
    assert held(at, "epsilon") == 3
    change(at, "view.epsilon.box", "4")
    late(at, before)
    assert held(at, "epsilon") == 4
    assert errors(at) == []


# Text that is no legal value; one sentence, the last value and the text typed stay.
REFUSED = [
    ("view.epsilon.box", ("0", "nan", "one"), "epsilon"),
    ("view.delta.box", ("1", "-0.1", ""), "delta"),
    ("view.row_bound.level", ("-3", "inf", "big"), "row_bound"),
]


@pytest.mark.parametrize(("key", "bad", "name"), REFUSED)
def test_bad_text_is_refused_in_one_sentence_and_nothing_is_lost(
    key: str, bad: tuple[str, ...], name: str
) -> None:
    at = start(**QUICK, epsilon="2", delta="1e-5", row_bound="3", k="3")
    link, before = dict(at.query_params), results(at)
    for typed in bad:
        change(at, key, typed)
        at.run()  # the sentence stays while the text does
        (said,) = errors(at)
        assert one_sentence(said), said
        assert name.replace("_", " ") in said
        assert repr(typed) in said
        assert found(at, key).value == typed
        assert dict(at.query_params) == link
        assert results(at).equals(before)
    change(at, key, "0.5")
    assert errors(at) == []
    assert held(at, name) == ("0.5" if name == "row_bound" else 0.5)


def test_the_last_mechanism_cannot_be_taken_away() -> None:
    at = start(**QUICK, m="gaussian")
    change(at, "view.mechanisms", [])
    (said,) = errors(at)
    assert one_sentence(said)
    assert found(at, "view.mechanisms").value == ["gaussian"]
    change(at, "view.mechanisms", ["gaussian", "ppca"])
    assert errors(at) == []


def test_a_box_centred_at_the_mean_is_refused_either_way_round() -> None:
    at = change(start(**QUICK, center="mean"), "view.domain", "box (bounded features)")
    (said,) = errors(at)
    assert one_sentence(said)
    assert "midpoint" in said
    assert held(at, "domain") == "ball"
    # Once the cause is gone the sentence is too.
    change(at, "view.center", "midpoint of the bounds")
    assert errors(at) == []
    change(at, "view.domain", "box (bounded features)")
    assert errors(at) == []
    assert held(at, "domain") == "box"
    change(at, "view.center", "mean")
    assert len(errors(at)) == 1
    assert held(at, "center") == "midpoint"
    assert shown_value(at, "view.center") == "midpoint of the bounds"


@pytest.mark.parametrize("linked", ["2", "900"])
def test_a_slider_that_a_link_has_widened_can_be_moved_again_and_again(linked: str) -> None:
    at = start("tasks", **{**QUICK, "trials": linked, "m": "gaussian", "epsilons": "1"})
    for value in (4, 91, 6) if linked == "2" else (300, 7, 90):
        change(at, "view.trials", value)
        assert errors(at) == []
        assert held(at, "trials") == shown_value(at, "view.trials") == value


@pytest.mark.parametrize("written", ["nonsense", "ppca[nothing=3]", "gaussian["])
def test_a_bad_mechanism_in_a_link_is_one_sentence(written: str) -> None:
    at = start(**QUICK, m=written, epsilon="2")
    assert len(errors(at) + notices(at)) == 1
    assert held(at, "epsilon") == 2
    # and the way out works
    press(at, "mechanisms.all")
    assert errors(at) == []


def test_k_is_clamped_when_the_table_changes_and_said() -> None:
    at = start(table="wine", trials="5", k="9")
    assert notices(at) == []
    change(at, "view.table", builtin_tables()["iris"].label)
    (said,) = notices(at)
    d = datasets.load("iris").rows.shape[1]
    assert "k = 9 is too large" in said
    assert str(d) in said
    assert 1 <= held(at, "k") <= d
    assert errors(at) == []
    change(at, "view.relation", "zero out one person")
    assert notices(at) == []


def test_a_refused_text_survives_every_change_of_page() -> None:
    at = change(start(**QUICK), "view.epsilon.box", "lots")
    for page in ("claims", "papers", "tasks"):
        go(at, page)
        if page not in SHARED or "epsilon" in unread(page):
            go(at, FIRST)  # the box is not there to be complained about
        assert len(errors(at)) == 1, page
        assert found(at, "view.epsilon.box").value == "lots", page


def test_a_late_report_after_a_run_that_was_cut_off_undoes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = start(**QUICK)
    found(at, "view.allocation.kind").set_value("favour some")
    before = reports(at)  # also what a browser reports that hears nothing of the run
    with monkeypatch.context() as cut:  # as of a run that is cut off before its end
        cut.setattr(SafeSessionState, "on_script_finished", lambda *_, **__: None)
        at.run()
    assert found(at, "bar.share").key != "bar.share", "it was filled anew"
    late(at, before)
    assert errors(at) == []
    assert held(at, "allocation") == "binary:1:0.8"
    # and of what was drawn there before, the last one alone is kept
    change(at, "view.allocation.kind", "equal shares")
    assert "bar.share" not in at.session_state
