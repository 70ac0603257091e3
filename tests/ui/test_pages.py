"""Every page: it renders, each control does its work, and a change of page loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Checkbox, TextInput, Toggle

from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from tests.ui.driver import (
    FIRST,
    PAGES,
    QUICK,
    SHARED,
    another,
    change,
    each_part,
    errors,
    found,
    go,
    held,
    keys,
    notices,
    parts_of,
    press,
    show,
    shown_value,
    start,
    unheard,
    unread,
    untold,
)

# A legal text for each text box that belongs to no declared option; declared ones bring examples.
TEXTS = {
    "view.row_bound.level": "0.5",
    "plan.n": "2000",
    "plan.spectrum": "0.3,0.1,0.05,0.01",
    "tasks.epsilons": "0.5,2",
    "preparation.bounds": "0:9",
    "release.row_bound": "40",
    "release.epsilon": "0.5",
    "release.delta": "1e-7",
    "release.k": "1",
    "release.name": "survey",
    "release.purpose": "annual report",
    "release.by": "A. Example",
    "release.new.name": "some-ledger",
    "release.new.limit": "3,1e-5",
    "release.new.purpose": "a study",
    "release.new.rows_a_person": "3",
}

# Parts of Claims that are given the budget alone: each is drawn on one table, and each table has
# one of them.
TABLE_BLIND = ("refutations", "person")


def legal_text(key: str, now: str) -> str:
    """Return a legal text for a text box that it does not hold yet."""
    if key in TEXTS:
        return TEXTS[key]
    param = params_of(Settings)[key.split(".")[1]]
    written = [param.format(value) for value in (*param.examples, param.default)]
    return next(text for text in written if text != now)


def another_value(at: AppTest, key: str) -> Any:
    """Return a legal value that a widget does not hold, or None if it holds none."""
    widget = found(at, key)
    return legal_text(key, widget.value) if isinstance(widget, TextInput) else another(widget)


def visit(page: str, query: dict[str, str], wanted: list[str]) -> tuple[list[str], list[str]]:
    """Change controls of a page one after the other, leave it and come back to all of them.

    One run per control, and five more in all: the last is of a browser that missed the one before.
    A control that cannot be changed beside those before it, because it hides or moves one of them
    or has no place beside them, waits for another visit: there it stands first, and nothing is
    forgiven. Returns those that held and those that wait.
    """
    at = start(page, **query)
    given: dict[str, Any] = {}
    waiting: list[str] = []
    shown = set(keys(at))
    # what is switched on, or makes each later run longer, comes last: it is drawn anew at each
    last = {key for key in shown & {*wanted} if isinstance(found(at, key), Checkbox | Toggle)}
    last.add("tasks.tuning")
    for key in sorted(wanted, key=lambda key: key in last):
        if given and (key not in keys(at) or another_value(at, key) is None):
            waiting.append(key)
            continue
        value, before = another_value(at, key), shown_value(at, key)
        change(at, key, value)
        drawn = keys(at)
        if given and (
            errors(at)
            or not {key, *given} <= set(drawn)
            or any(shown_value(at, other) != held for other, held in given.items())
        ):
            together = [other for other in wanted if other != key]
            held, left = visit(page, query, together)
            return held, [*left, key]
        assert errors(at) == [], key
        given[key] = shown_value(at, key)
        assert given[key] != before, key
        if key not in TEXTS:
            assert given[key] == value, key
    stores = ("view", "explore", "claims")
    view = [dict(at.session_state[store]) for store in stores]
    # by one other page after the other: what either one loses is not there in the end
    for other in other_pages(page):
        go(at, other)
        assert errors(at) == [], (given, other)
    go(at, page)
    assert errors(at) == [], given
    for key, after in given.items():
        assert shown_value(at, key) == after, key
    unheard(at)
    assert untold(at) == [], given
    for key, after in given.items():
        assert shown_value(at, key) == after, key
    assert [dict(at.session_state[store]) for store in stores] == view, given
    return list(given), waiting


def other_pages(page: str) -> list[str]:
    """Return a page that shows the shared settings and one that does not, both quick to draw.

    test_a_change_on_one_page_is_seen_on_the_next walks through more that share settings.
    """
    return [name for name in ("mechanisms", "papers") if name != page]


@pytest.mark.parametrize("page", PAGES)
def test_page_renders_without_error_and_with_every_mechanism(page: str) -> None:
    at = start(page, **QUICK)
    for part in each_part(at, page):
        assert errors(at) == [], part
        assert notices(at) == [], part
        # a lesson's headline is on its stage, which tests/e2e/test_stage.py measures
        assert at.title or page == "guide", "a page starts with a title"
    if page in SHARED and "mechanisms" not in unread(page):
        press(at, "mechanisms.all")
        for part in each_part(at, page):
            assert errors(at) == [], part


@pytest.mark.long
@pytest.mark.parametrize("page", SHARED)
def test_page_renders_on_every_builtin_table(page: str) -> None:
    at = start(page, trials="5", m="gaussian,ppca", tuning="fixed", epsilons="1")
    of_the_table = [part for part in parts_of(page) if part.get("part") not in TABLE_BLIND]
    blind = [part for part in parts_of(page) if part not in of_the_table]
    tables = found(at, "view.table").options[:-1]  # the last one is the upload
    assert len(blind) <= len(tables)
    for number, table in enumerate(tables):
        change(at, "view.table", table)
        in_turn = blind[number % len(blind) :][:1] if blind else []
        for part in (*of_the_table, *in_turn):
            show(at, page, part)
            assert errors(at) == [], (table, part)
            assert notices(at) == [], (table, part)


@pytest.mark.parametrize("page", SHARED)
def test_page_says_what_is_missing_without_a_table(page: str) -> None:
    at = start(page, table="upload", epsilon="2")
    for part in each_part(at, page):
        assert len(errors(at)) == 1, part
        assert "Upload the file" in errors(at)[0]
        assert held(at, "epsilon") == 2


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_every_control_holds_what_it_is_given_through_a_change_of_page(page: str) -> None:
    # Row bound as a quantile, so that the box for its level is there too.
    # Controls are tried here and not mechanisms.
    query = QUICK | {"row_bound": "quantile:0.9", "m": "gaussian,directional_gaussian"}
    at = start(page, **query)
    drawn: dict[str, dict[str, str]] = {}  # every control, and the part where it stands first
    for part in each_part(at, page):
        drawn = {key: part for key in keys(at) if another_value(at, key) is not None} | drawn
    if page != FIRST:
        # The shared settings are the same everywhere (test_settings_widgets.py) and tried on the
        # first page.
        first = keys(start(FIRST, **query))
        drawn = {key: part for key, part in drawn.items() if key not in first}
    # Who is protected takes one line once it is answered: tests of Decide and of Release go on.
    drawn = {key: part for key, part in drawn.items() if not key.endswith(".person")}
    changed: list[str] = []
    for part in parts_of(page):
        waiting = [key for key, place in drawn.items() if place == part]
        while waiting:
            together, waiting = visit(page, query | part, waiting)
            changed += together
    # The shared settings alone are a dozen: a page that drew nothing must not pass.
    if page == FIRST:
        assert len(changed) >= 12
        assert {"view.epsilon.box", "view.delta.box", "view.k", "bar.share"} <= set(changed)
    elif page in SHARED:
        # Where the board does not scrub it, epsilon has a slider; not where it is not read.
        assert ("view.epsilon.slider" in changed) == ("epsilon" not in unread(page))


@pytest.mark.parametrize("page", ["claims", "precision", "tasks"])
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
    for number, page in enumerate(("claims", "explore", "precision", "tasks", "claims")):
        go(at, page)
        before = found(at, "view.seed").value
        assert before == number
        change(at, "view.seed", number + 1)
