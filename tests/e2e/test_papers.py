"""The Papers page in a real browser: choose, run, leave, come back, and look on a phone."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, open_app, rerun, wait_idle

CHARTS = '[data-testid="stPlotlyChart"]'
EXHIBIT = '[class*="st-key-papers-exhibit-"]'  # An exhibit shows printed and measured values.
SCREEN = 450  # An exhibit must start within 450 pixels from the top of the screen.
GENERATED = "papers?v=1&table=iris&trials=5&experiment=jiang_table1"


def text(page: Page) -> str:
    """Return all text of the page's main part."""
    return page.get_by_test_id("stMain").inner_text()


def test_a_reader_runs_an_experiment_and_finds_it_again(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/{GENERATED}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Do the papers' results hold up?")
    # A first visit shows the shipped results without scrolling.
    expect(page.locator(EXHIBIT)).to_have_count(1)
    assert (page.locator(EXHIBIT).first.bounding_box() or {"y": SCREEN})["y"] < SCREEN
    assert "results come with dpviz" in text(page)
    expect(page.locator(".st-key-ask-run-Running button")).to_contain_text("Run it")
    with rerun(page):
        page.locator(".st-key-ask-run-Running button").click()
    wait_idle(page)
    expect(page.locator(".st-key-ask-run-Running")).to_have_count(0)
    page.get_by_text("All measurements", exact=True).click()
    chart = page.locator(CHARTS).first
    expect(chart.locator("svg.main-svg").first).to_be_visible()
    assert chart.locator("path.point").count() > 5
    assert "printed claims, " in text(page)
    assert "python -m dpviz reproduce jiang_table1 --quick" in text(page)
    # The results are still shown after a visit to another page, and on a new visit.
    with rerun(page):
        page.get_by_role("link", name="Guide").click()
    page.get_by_test_id("stTopNavSection").filter(has_text="Reference").click()
    with rerun(page):
        page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Papers").click()
    expect(page.locator(EXHIBIT).first).to_be_visible()
    open_app(page, f"{server.url}/{GENERATED}")
    expect(page.locator(".st-key-ask-run-Running")).to_have_count(0)
    expect(page.locator(EXHIBIT).first).to_be_visible()
    # On a phone, the squares of all experiments precede the exhibit until a click on one opens it.
    page.set_viewport_size({"width": 420, "height": 900})
    square = page.locator('a[href*="experiment=jiang_table1"]').first
    assert (page.locator(EXHIBIT).bounding_box() or {"y": 0})["y"] > SCREEN
    open_app(page, f"{server.url}/{square.get_attribute('href')}")
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth - m.clientWidth") == 0
    box = page.locator(EXHIBIT).bounding_box()
    assert box is not None
    assert box["y"] < SCREEN
    assert 200 <= box["width"] <= 420
