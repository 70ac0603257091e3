"""Every page: it renders, each control does its work, and a change of page loses nothing."""

from __future__ import annotations

import pytest
from streamlit.testing.v1.element_tree import TextInput

from dpviz.base.params import params_of
from dpviz.settings import Settings
from tests.ui.driver import (
    FIRST,
    PAGES,
    QUICK,
    SHARED,
    another,
    change,
    errors,
    found,
    go,
    held,
    keys,
    notices,
    press,
    shown_value,
    start,
    unread,
)

# A legal text for each text box that belongs to no declared option; declared ones bring examples.
TEXTS = {
    "view.row_bound.level": "0.5",
    "plan.n": "2000",
    "plan.spectrum": "0.3,0.1,0.05,0.01",
    "tasks.epsilons": "0.5,2",
    "preparation.bounds": "0:9",
    "release.row_bound": "40",
    "release.bounds": "0:9",
    "release.epsilon": "0.5",
    "release.delta": "1e-7",
    "release.k": "1",
    "release.ledger": "some-ledger",
    "release.limit": "3,1e-5",
}


def legal_text(key: str, now: str) -> str:
    """Return a legal text for a text box that it does not hold yet."""
    if key in TEXTS:
        return TEXTS[key]
    param = params_of(Settings)[key.split(".")[1]]
    written = [param.format(value) for value in (*param.examples, param.default)]
    return next(text for text in written if text != now)


def other_pages(page: str) -> list[str]:
    """Return a page that shows the shared settings and one that does not, both quick to draw.

    test_a_change_on_one_page_is_seen_on_the_next walks through all that share settings.
    """
    return [name for name in ("mechanisms", "papers") if name != page]


def test_there_are_pages() -> None:
    assert "explore" in PAGES
    assert len(PAGES) == len(set(PAGES))


@pytest.mark.parametrize("page", PAGES)
def test_page_renders_without_error(page: str) -> None:
    at = start(page, **QUICK)
    assert errors(at) == []
    assert notices(at) == []
    assert at.title, "a page starts with a title"


@pytest.mark.parametrize("page", SHARED)
def test_page_renders_on_every_builtin_table(page: str) -> None:
    at = start(page, trials="5", m="gaussian,ppca", tuning="fixed", epsilons="1")
    for table in found(at, "view.table").options[:-1]:  # the last one is the upload
        change(at, "view.table", table)
        assert errors(at) == [], table
        assert notices(at) == [], table


@pytest.mark.parametrize("page", [page for page in SHARED if "mechanisms" not in unread(page)])
def test_page_renders_with_every_mechanism(page: str) -> None:
    at = press(start(page, **QUICK), "mechanisms.all")
    assert errors(at) == []


@pytest.mark.parametrize("page", SHARED)
def test_page_says_what_is_missing_without_a_table(page: str) -> None:
    at = start(page, table="upload", epsilon="2")
    assert len(errors(at)) == 1
    assert "Upload the file" in errors(at)[0]
    assert held(at, "epsilon") == 2


@pytest.mark.parametrize("page", PAGES)
def test_every_control_holds_what_it_is_given_through_a_change_of_page(page: str) -> None:
    # Row bound as a quantile, so that the box for its level is there too.
    query = QUICK | {"row_bound": "quantile:0.9"}
    if page != FIRST:  # controls are tried here and not mechanisms
        query |= {"m": "gaussian,directional_gaussian"}
    changed = []
    drawn = keys(start(page, **query))
    if page != FIRST:
        # The shared settings are the same everywhere (test_settings_widgets.py) and tried on the
        # first page.
        drawn = [key for key in drawn if key not in keys(start(FIRST, **query))]
    others = other_pages(page)
    for number, key in enumerate(drawn):
        at = start(page, **query)
        widget = found(at, key)
        text = isinstance(widget, TextInput)
        value = legal_text(key, widget.value) if text else another(widget)
        if value is None:
            continue
        before = shown_value(at, key)
        change(at, key, value)
        assert errors(at) == [], key
        after = shown_value(at, key)
        assert after != before, key
        if not text or key not in TEXTS:
            assert after == value, key
        view = dict(at.session_state["view"]), dict(at.session_state["explore"])
        other = others[number % len(others)]  # in turn, as each visit runs a whole page
        go(at, other)
        assert errors(at) == [], (key, other)
        go(at, page)
        assert errors(at) == [], (key, other)
        assert shown_value(at, key) == after, (key, other)
        assert (dict(at.session_state["view"]), dict(at.session_state["explore"])) == view, key
        changed.append(key)
    # The shared settings alone are a dozen: a page that drew nothing must not pass.
    if page == FIRST:
        assert len(changed) >= 12
        assert {"view.epsilon.box", "view.delta.box", "view.k", "bar.share"} <= set(changed)
    elif page in SHARED:
        # Where the board does not scrub it, epsilon has a slider; not where it is not read.
        assert ("view.epsilon.slider" in changed) == ("epsilon" not in unread(page))


@pytest.mark.parametrize("page", SHARED)
def test_the_link_of_a_page_restores_the_view(page: str) -> None:
    at = start(page, **QUICK, epsilon="2.5", k="3", center="none", seed="7", row_bound="2")
    change(at, "view.relation", "zero out one person")
    link = dict(at.query_params)
    again = start(page, **link)
    assert dict(again.session_state["view"]) == dict(at.session_state["view"])
    assert dict(again.query_params) == link
    assert notices(again) == []


def test_a_change_on_one_page_is_seen_on_the_next() -> None:
    at = start(**QUICK)
    for number, page in enumerate((*SHARED, SHARED[0])):
        go(at, page)
        before = found(at, "view.seed").value
        assert before == number
        change(at, "view.seed", number + 1)
