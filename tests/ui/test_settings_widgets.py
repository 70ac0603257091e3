"""Options and their widgets: declared once, shown on all pages, refused in one message."""

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

# These options have no widget in the settings row; each is listed with its reason.
WITHOUT_WIDGET = {
    "bounds": "its widget is drawn on the Precision page, and only for a box",
    "leave_out": "its widget is the table of an upload's columns (test_check_table.py)",
    "sheet": "its widget lists the sheets of a workbook that has several",
    "read_as": "its widget is the table of an upload's columns (test_check_table.py)",
    "codes": "its button stands beside what the check of the table finds",
    "levels": "its editor stands beside the words that the check of the table finds",
    "rows_a_person": "its widget is the question of the unit (test_check_table.py)",
    "person": "its widget is the question of the unit",
    "name": "no page sets it: an upload's name is asked for beside the upload, and no link has it",
}
# These options' widgets have another session key, because the session holds a number for links.
OTHER_KEY = {"label": "upload.label"}

# Each part of the settings row is listed with its widgets, because a page may lack the part.
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
    base = f"{store}.{name}"
    return [key for key in drawn if key == base or key.startswith(base + ".")]


def test_each_option_has_a_widget_or_a_reason() -> None:
    # Make all widgets appear: an upload adds file options, and private steps add budget shares.
    prices = dict.fromkeys(("center", "scale", "count", "bounds"), "private") | {
        "relation": "zero-out"
    }
    at = start(**QUICK, **prices, row_bound="private:0.9")
    here = keys(corrected(more(upload(at, "example.csv", CSV))))
    missing = {name for name in params_of(Settings) if not widget_keys(name, here)}
    assert missing == set(WITHOUT_WIDGET)
    missing = {name for name in params_of(ExploreView) if not widget_keys(name, here, "explore")}
    assert missing == {"stage"}  # One option has a button in the figure instead of a widget.


def test_the_settings_are_the_same_on_every_page_that_uses_them() -> None:
    slider = "view.epsilon.slider"  # On Explore, the figure itself has the epsilon slider.
    keys_by_page = {
        page: [
            key
            for key in keys(start(page, **QUICK))
            if key.startswith(("view.", "bar.", "upload", "reset"))
        ]
        for page in BESIDE
    }
    everywhere = keys_by_page[FIRST]
    assert slider not in everywhere
    for page, keys_here in keys_by_page.items():
        missing = [key for part in unread(page) for key in PART_KEYS[part]]
        assert set(missing) - set(everywhere) <= {slider}, page
        wanted_keys = [key for key in everywhere if key not in missing]
        assert [key for key in keys_here if key != slider] == wanted_keys, page
        assert (slider in keys_here) is (page != FIRST and slider not in missing), page


@pytest.mark.parametrize("page", sorted(set(PAGES) - set(SHARED)))
def test_a_page_that_ignores_the_settings_does_not_show_them(page: str) -> None:
    at = start(page, **QUICK)
    assert not [key for key in keys(at) if key.startswith(("view.", "bar.", "upload", "reset"))]
    # A page that uses all shared widgets shows them all again.
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
    keys_here = keys(at)
    assert all(widget_keys(name, keys_here) for name in new)
    change(at, "view.extra_whole", 5)
    change(at, "view.extra_slid", 30)
    change(at, "view.extra_number.box", "0.25")
    change(at, "view.extra_choice", "second way")
    change(at, "view.extra_text", "other")
    assert errors(at) == []
    values = {
        "extra_whole": "5", "extra_slid": "30", "extra_number": "0.25", "extra_choice": "two",
        "extra_text": "other",
    }  # fmt: skip
    assert {name: at.query_params[name] for name in new} == values
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
        value = "wine" if name == "table" else getattr(defaults, name)
        assert held(at, name) == value, name
    for name in params_of(ExploreView):
        assert held(at, name, "explore") == getattr(ExploreView(), name), name
    assert at.query_params == {"v": "1", "table": "wine"}
    assert errors(at) == []


@pytest.mark.parametrize("page", ["explore", "precision", "preparation"])
def test_a_late_report_of_a_widget_that_was_replaced_undoes_nothing(page: str) -> None:
    """A browser that missed the last run reports the old widgets; its report undoes no setting."""
    values = {"epsilon": "2", "delta": "1e-4", "k": "3", "trials": "3", "seed": "5", "scale": "std",
             "allocation": "binary:1:0.9", "directions": "private:0.2", "row_bound": "quantile:0.8",
             "source": "table"}  # fmt: skip
    at = start(page, **{**QUICK, **values})
    before = reports(at)
    view = dict(press(at, "reset").session_state["view"])
    values_now = {key: shown_value(at, key) for key in keys(at) if key != "reset"}
    late(at, before)
    assert errors(at) == []
    assert dict(at.session_state["view"]) == view
    assert {key: shown_value(at, key) for key in values_now} == values_now


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


# Illegal text gives one error. The box keeps the text, and the app keeps the last legal value.
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
    for bad_text in bad:
        change(at, key, bad_text)
        at.run()  # The error message stays as long as the illegal text.
        (message,) = errors(at)
        assert one_sentence(message), message
        assert name.replace("_", " ") in message
        assert repr(bad_text) in message
        assert found(at, key).value == bad_text
        assert dict(at.query_params) == link
        assert results(at).equals(before)
    change(at, key, "0.5")
    assert errors(at) == []
    assert held(at, name) == ("0.5" if name == "row_bound" else 0.5)


def test_the_last_mechanism_cannot_be_taken_away() -> None:
    at = start(**QUICK, m="gaussian")
    change(at, "view.mechanisms", [])
    (message,) = errors(at)
    assert one_sentence(message)
    assert found(at, "view.mechanisms").value == ["gaussian"]
    change(at, "view.mechanisms", ["gaussian", "ppca"])
    assert errors(at) == []


def test_a_box_centred_at_the_mean_is_refused_either_way_round() -> None:
    at = change(start(**QUICK, center="mean"), "view.domain", "box (bounded features)")
    (message,) = errors(at)
    assert one_sentence(message)
    assert "midpoint" in message
    assert held(at, "domain") == "ball"
    # The error message disappears once its cause is removed.
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
    # Following the error message's advice removes the error.
    press(at, "mechanisms.all")
    assert errors(at) == []


def test_k_is_clamped_when_the_table_changes_and_said() -> None:
    at = start(table="wine", trials="5", k="9")
    assert notices(at) == []
    change(at, "view.table", builtin_tables()["iris"].label)
    (message,) = notices(at)
    d = datasets.load("iris").rows.shape[1]
    assert "k = 9 is too large" in message
    assert str(d) in message
    assert 1 <= held(at, "k") <= d
    assert errors(at) == []
    change(at, "view.relation", "zero out one person")
    assert notices(at) == []


def test_a_refused_text_survives_every_change_of_page() -> None:
    at = change(start(**QUICK), "view.epsilon.box", "lots")
    for page in ("claims", "papers", "tasks"):
        go(at, page)
        if page not in SHARED or "epsilon" in unread(page):
            go(at, FIRST)  # A page without epsilon has no box for it.
        assert len(errors(at)) == 1, page
        assert found(at, "view.epsilon.box").value == "lots", page


def test_a_late_report_after_a_run_that_was_cut_off_undoes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = start(**QUICK)
    found(at, "view.allocation.kind").set_value("more for some directions")
    before = reports(at)  # This imitates a browser that misses the next run.
    with monkeypatch.context() as context:  # This imitates a script run that is cut off.
        context.setattr(SafeSessionState, "on_script_finished", lambda *_, **__: None)
        at.run()
    assert found(at, "bar.share").key != "bar.share", "it was filled anew"
    late(at, before)
    assert errors(at) == []
    assert held(at, "allocation") == "binary:1:0.8"
    # Of several widgets that took turns in one place, the session keeps only the last.
    change(at, "view.allocation.kind", "equal shares")
    assert "bar.share" not in at.session_state
