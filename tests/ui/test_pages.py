"""Every page renders, each control works, and a change of page loses no setting."""

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

# Each text box without a declared option gets this legal text; declared options have examples.
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

# These parts of the Claims page use only the budget. Test each part on a single table, and at most
# one part per table.
TABLE_BLIND = ("refutations", "person")


def legal_text(key: str, now: str) -> str:
    """Return a legal text other than the current text of a text box."""
    if key in TEXTS:
        return TEXTS[key]
    param = params_of(Settings)[key.split(".")[1]]
    texts = [param.format(value) for value in (*param.examples, param.default)]
    return next(text for text in texts if text != now)


def another_value(at: AppTest, key: str) -> Any:
    """Return a legal value other than a widget's current value, or None if it has no value."""
    widget = found(at, key)
    return legal_text(key, widget.value) if isinstance(widget, TextInput) else another(widget)


def visit(page: str, query: dict[str, str], wanted: list[str]) -> tuple[list[str], list[str]]:
    """Change the controls of a page one by one, leave the page, and find all changes on return.

    Use one run per control, and five more in all; the last run is of a browser that missed the run
    before. A control may hide or move earlier controls, or not fit beside them. Such a control
    waits for another visit, in which it comes first and no failure is excused. Return the controls
    that held and the controls that wait.
    """
    at = start(page, **query)
    values: dict[str, Any] = {}
    waiting: list[str] = []
    keys_here = set(keys(at))
    # Change switches and slow controls last, because each later run renders their result again.
    last = {key for key in keys_here & {*wanted} if isinstance(found(at, key), Checkbox | Toggle)}
    last.add("tasks.tuning")
    for key in sorted(wanted, key=lambda key: key in last):
        if values and (key not in keys(at) or another_value(at, key) is None):
            waiting.append(key)
            continue
        value, before = another_value(at, key), shown_value(at, key)
        change(at, key, value)
        now = keys(at)
        if values and (
            errors(at)
            or not {key, *values} <= set(now)
            or any(shown_value(at, other) != held for other, held in values.items())
        ):
            together = [other for other in wanted if other != key]
            same, rest = visit(page, query, together)
            return same, [*rest, key]
        assert errors(at) == [], key
        values[key] = shown_value(at, key)
        assert values[key] != before, key
        if key not in TEXTS:
            assert values[key] == value, key
    stores = ("view", "explore", "claims")
    view = [dict(at.session_state[store]) for store in stores]
    # Visit two further pages in turn: if one of them loses a value, it is missing in the end.
    for other in other_pages(page):
        go(at, other)
        assert errors(at) == [], (values, other)
    go(at, page)
    assert errors(at) == [], values
    for key, after in values.items():
        assert shown_value(at, key) == after, key
    unheard(at)
    assert untold(at) == [], values
    for key, after in values.items():
        assert shown_value(at, key) == after, key
    assert [dict(at.session_state[store]) for store in stores] == view, values
    return list(values), waiting


def other_pages(page: str) -> list[str]:
    """Return a page with the shared settings and a page without, both quick to render.

    test_a_change_on_one_page_is_seen_on_the_next covers more pages that share settings.
    """
    return [name for name in ("mechanisms", "papers") if name != page]


@pytest.mark.parametrize("page", PAGES)
def test_page_renders_without_error_and_with_every_mechanism(page: str) -> None:
    at = start(page, **QUICK)
    for part in each_part(at, page):
        assert errors(at) == [], part
        assert notices(at) == [], part
        # The headline of a lesson is in its animation, which tests/e2e/test_stage.py measures.
        assert at.title or page == "guide", "a page starts with a title"
    if page in SHARED and "mechanisms" not in unread(page):
        press(at, "mechanisms.all")
        for part in each_part(at, page):
            assert errors(at) == [], part


# The Decide page is missing here: tests/ui/test_one_answer.py opens it on every table.
@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in SHARED if page != "decide"])
def test_page_renders_on_every_builtin_table(page: str) -> None:
    at = start(page, trials="5", m="gaussian,ppca", tuning="fixed", epsilons="1")
    of_the_table = [part for part in parts_of(page) if part.get("part") not in TABLE_BLIND]
    blind = [part for part in parts_of(page) if part not in of_the_table]
    tables = found(at, "view.table").options[:-1]  # The last option of the list is the upload.
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
    # Use a quantile as the row-norm bound, because the box for the quantile's level then appears.
    # The test is about controls, not about mechanisms.
    query = QUICK | {"row_bound": "quantile:0.9", "m": "gaussian,directional_gaussian"}
    at = start(page, **query)
    controls: dict[str, dict[str, str]] = {}  # Map each control to the part that shows it first.
    for part in each_part(at, page):
        controls = {key: part for key in keys(at) if another_value(at, key) is not None} | controls
    if page != FIRST:
        # All pages have the same shared settings (test_settings_widgets.py), so only the first page
        # tries them.
        first = keys(start(FIRST, **query))
        controls = {key: part for key, part in controls.items() if key not in first}
    # After an answer, "Who is protected" shrinks to one line, which other tests cover.
    controls = {key: part for key, part in controls.items() if not key.endswith(".person")}
    changes: list[str] = []
    for part in parts_of(page):
        waiting = [key for key, place in controls.items() if place == part]
        while waiting:
            together, waiting = visit(page, query | part, waiting)
            changes += together
    # The shared settings alone are a dozen controls, so this fails if a page is empty.
    if page == FIRST:
        assert len(changes) >= 12
        assert {"view.epsilon.box", "view.delta.box", "view.k", "bar.share"} <= set(changes)
    elif page in SHARED:
        # A page without the Explore figure has an epsilon slider, unless the page ignores epsilon.
        assert ("view.epsilon.slider" in changes) == ("epsilon" not in unread(page))


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
