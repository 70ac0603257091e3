"""The picture shown before Streamlit has started, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from pages.ui import first_picture
from tests.e2e.harness import Server, open_app, rerun, wait_idle
from tests.e2e.test_journeys import type_into

# Streamlit asks its server for this address first. A test delays the answer to stop the start.
CONNECTS = "**/_stcore/health"
_BOX = """
board => {
  const {top, left, width} = board.getBoundingClientRect();
  return [top, left, width];
}
"""
_WATCH = """
globalThis.dpvizWas = false;
new MutationObserver(() => {
  globalThis.dpvizWas ||= Boolean(document.getElementById("first-picture")?.shadowRoot);
}).observe(document, {childList: true, subtree: true});
"""


@pytest.fixture(autouse=True)
def of_this_code() -> None:
    assert first_picture.page(b"table=iris"), (
        "code that draws has changed: run python -m tools.first_sight"
    )


@pytest.mark.parametrize("width", [1400, 420])
def test_the_board_is_there_before_streamlit_and_the_pages_own_takes_its_place(
    page: Page, server: Server, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 850})
    routes: list[Route] = []
    late = True
    page.route(CONNECTS, lambda route: routes.append(route) if late else route.continue_())
    page.goto(f"{server.url}/?v=1&table=iris")
    board = page.locator("#first-picture .dpv")
    board.wait_for(state="visible")
    assert not page.locator(".st-key-bar").count()
    assert page.locator("#first-picture").evaluate("host => host.inert")
    place = board.evaluate(_BOX)
    late = False
    for route in routes:
        route.continue_()
    live = page.locator(".st-key-board .dpv")
    expect(live).to_be_visible()
    wait_idle(page)
    assert page.locator("#first-picture").count() == 0
    assert live.evaluate(_BOX) == pytest.approx(place, abs=1)
    with rerun(page):
        page.get_by_role("slider", name="Epsilon").press("Home")
    assert "epsilon=0.05" in page.url


def test_a_first_visit_of_the_bare_address_is_one_step(page: Page, server: Server) -> None:
    page.goto("about:blank#before")
    open_app(page, server.url)
    assert page.url == f"{server.url}/?v=1"
    type_into(page, "Epsilon", "2")
    with rerun(page):
        page.go_back()
    assert page.url == f"{server.url}/?v=1"
    page.go_back()
    assert page.url == "about:blank#before"


def test_where_it_would_not_be_true_there_is_none(page: Page, server: Server) -> None:
    """A theme that the user chose, or another seed, shows no first picture."""
    page.add_init_script(_WATCH)
    for link, name, there in (
        ("/?v=1&table=iris", '"System"', True),
        ("/?v=1&table=iris", '"Dark"', False),
        ("/?v=1&table=iris&seed=1", '"System"', False),
    ):
        page.goto(f"{server.url}/_stcore/health")
        page.evaluate("chosen => localStorage.setItem('stActiveTheme-/-v2', chosen)", name)
        open_app(page, f"{server.url}{link}")
        assert page.evaluate("globalThis.dpvizWas") is there
        assert page.locator("#first-picture").count() == 0
