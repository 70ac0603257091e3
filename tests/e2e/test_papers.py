"""The Papers page in a real browser: choose, run, leave, come back, and look on a phone."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, open_app, rerun, travel, wait_idle

CHARTS = '[data-testid="stPlotlyChart"]'
EXHIBIT = ".dp-exhibit img"  # printed and measured, side by side
ON_A_PHONE = ".dp-phone img"  # both in one
SCREEN = 400  # pixels from the top within which the exhibit begins
GENERATED = "papers?v=1&table=iris&trials=5&experiment=jiang_table1"


def text(page: Page) -> str:
    """Return all text of the page's main part."""
    return page.get_by_test_id("stMain").inner_text()


def test_a_reader_runs_an_experiment_and_finds_it_again(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/{GENERATED}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Papers")
    # what ships is there at the first visit: printed left, measured right, on the first screen
    expect(page.locator(EXHIBIT)).to_have_count(2)
    box = page.locator(EXHIBIT).first.bounding_box()
    assert box is not None
    assert box["y"] < SCREEN
    assert "results that ship with the package" in text(page)
    expect(page.locator(".st-key-papers-run button")).to_contain_text("Run it again here")
    with rerun(page):
        page.locator(".st-key-papers-run button").click()
    wait_idle(page)
    expect(page.locator(".st-key-papers-run")).to_have_count(0)
    page.get_by_text("All that was measured").click()
    chart = page.locator(CHARTS).first
    expect(chart.locator("svg.main-svg").first).to_be_visible()
    assert chart.locator("path.point").count() > 5
    assert "printed claims, " in text(page)
    assert "python -m dpviz reproduce jiang_table1 --quick" in text(page)
    # Another page and back, then another visit: the results are still there.
    with rerun(page):
        page.get_by_role("link", name="Guide").click()
    page.get_by_test_id("stTopNavSection").filter(has_text="Reference").click()
    with rerun(page):
        page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Papers").click()
    expect(page.locator(EXHIBIT).first).to_be_visible()
    open_app(page, f"{server.url}/{GENERATED}")
    expect(page.locator(".st-key-papers-run")).to_have_count(0)
    expect(page.locator(EXHIBIT).first).to_be_visible()
    # On a phone both are one picture, before any table and any text.
    page.set_viewport_size({"width": 420, "height": 900})
    expect(page.locator(EXHIBIT).first).to_be_hidden()
    wait_idle(page)
    assert page.get_by_test_id("stMain").evaluate("m => m.scrollWidth - m.clientWidth") == 0
    box = page.locator(ON_A_PHONE).bounding_box()
    assert box is not None
    assert box["y"] < SCREEN
    assert 200 <= box["width"] <= 420


def test_a_run_that_is_stopped_goes_on(page: Page, server: Server) -> None:
    full = f"{GENERATED}&effort=full"
    open_app(page, f"{server.url}/{full}")
    page.locator(".st-key-papers-run button").click()
    stop = page.locator(".st-key-papers-stop button")
    expect(stop).to_be_visible()
    again = page.locator(".st-key-papers-run button")
    expect(again).to_have_count(0)  # a second click on it would ask for a second Stop
    expect(page.get_by_text("1 of 8 parts").first).to_be_visible(timeout=60_000)
    with rerun(page):
        stop.click()
    expect(again).to_contain_text("Go on (")
    done = int(again.inner_text().split("(")[1].split(" of")[0])
    assert 1 <= done < 8
    again.click()
    expect(stop).to_be_visible()
    expect(page.get_by_text(f"{done + 1} of 8 parts").first).to_be_visible(timeout=60_000)
    with rerun(page):
        stop.click()
    expect(again).to_contain_text("Go on (")


def test_what_is_kept_stands_side_by_side_and_every_claim_opens_its_exhibit(
    page: Page, server: Server
) -> None:
    """One visit: by a link to a full run, along three exhibits, and from a square of the reading.

    How long the first of it takes is a benchmark's matter.
    """
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto(f"{server.url}/papers?v=1&table=iris&trials=5&experiment=mvg_table4")
    expect(page.get_by_text("Measured in full").first).to_be_visible()
    expect(page.get_by_text("not reproduced").first).to_be_visible()
    expect(page.locator(EXHIBIT)).to_have_count(2)
    expect(page.locator(".st-key-papers-stop")).to_have_count(0)
    wait_idle(page)
    # Printed and measured stand side by side on the first screen.
    for query in ("", "&experiment=chaudhuri_figure1", "&experiment=xu_figure1"):
        link = f"{server.url}/papers?v=1&table=iris&trials=5{query}"
        travel(page, link)
        assert page.url == link  # the exhibit that is looked at, not the one before
        expect(page.locator(EXHIBIT)).to_have_count(2)
        boxes = [picture.bounding_box() for picture in page.locator(EXHIBIT).all()]
        left, right = (box for box in boxes if box is not None)
        assert left["y"] == right["y"] < SCREEN, query
        assert left["x"] + left["width"] <= right["x"]
        assert max(box["y"] + box["height"] for box in (left, right)) <= 900
        assert left["width"] == right["width"]  # the same axes have the same length
        counts = page.locator(".dp-key").bounding_box()
        assert counts is not None
        assert counts["y"] < left["y"]
        expect(page.locator(ON_A_PHONE)).to_be_hidden()
    # Every claim is a square that opens its exhibit.
    link = f"{server.url}/papers?v=1&table=iris&trials=5&view=reading"
    travel(page, link)
    assert page.url == link
    squares = page.locator("a.dp-mark")
    expect(squares.first).to_be_visible()
    assert squares.count() >= 195
    chosen = page.locator('a.dp-mark[href*="experiment=xu_figure1"]').first
    chosen.click()
    expect(page.locator(EXHIBIT)).to_have_count(2)
    assert "experiment=xu_figure1" in page.url
