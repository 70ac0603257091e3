"""The trade-offs page in a real browser: the page follows epsilon and leads to Explore."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, open_app, rerun, wait_idle

QUICK = "/tradeoffs?v=1&table=iris&trials=5&m=gaussian,laplace"
TITLE = re.compile("of the structure")


# For each variant, return its marks on a page's first chart, with their opacity.
_SEEN = """chart => Object.fromEntries(
  [...chart.querySelectorAll(".scatterlayer > .trace, .annotation")].map(node => [
    (node.__data__?.[0]?.trace?.legendgroup ?? node.textContent) + node.classList[0],
    getComputedStyle(node).opacity]))"""
# For each variant, return the opacity of the filled range around its curve.
_RANGES = """chart => Object.fromEntries(
  [...chart.querySelectorAll(".scatterlayer > .trace")]
    .filter(node => node.__data__?.[0]?.trace?.fill === "toself")
    .map(node => [node.__data__[0].trace.legendgroup,
      getComputedStyle(node.querySelector(".js-fill")).fillOpacity]))"""


@pytest.mark.first
def test_pointing_moving_epsilon_and_a_click_that_opens_explore(page: Page, server: Server) -> None:
    # If the pointer is on a mechanism, the chart highlights the mechanism and its name.
    frames: list[object] = []
    page.on("websocket", lambda stream: stream.on("framesent", lambda frame: frames.append(frame)))
    open_app(page, server.url + QUICK)
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    chart = page.locator(".st-key-curve .js-plotly-plot").first
    plain = chart.evaluate(_SEEN)
    ranges = chart.evaluate(_RANGES)
    assert set(ranges.values()) == {"0"}
    names = chart.locator(".annotation", has_text="Laplace")
    expect(names).to_have_count(1)
    names.scroll_into_view_if_needed()
    before = len(frames)
    names.hover()
    other = chart.locator(".annotation", has_text="Gaussian")
    expect(other).to_have_css("opacity", "0.12")
    marks = chart.evaluate(_SEEN)
    assert marks["laplacetrace"] == plain["laplacetrace"] == "1"
    assert marks["gaussiantrace"] == "0.12"
    (name,) = [key for key in marks if key.startswith("Laplace") and key.endswith("annotation")]
    assert marks[name] == "1"
    assert chart.evaluate(_RANGES) == ranges | {"laplace": "0.13"}
    page.mouse.move(5, 5)
    expect(other).to_have_css("opacity", "1")
    assert chart.evaluate(_SEEN) == plain
    assert chart.evaluate(_RANGES) == ranges
    assert len(frames) == before  # The server got no message.
    # The names are inside the plot, to the right of all lines, and do not overlap.
    plot = chart.locator(".nsewdrag").first.bounding_box()
    assert plot is not None
    boxes = [
        chart.locator(".annotation", has_text=name).bounding_box()
        for name in ("Gaussian, exact", "Laplace")
    ]
    upper, lower = sorted((box for box in boxes if box is not None), key=lambda box: box["y"])
    for box in (upper, lower):
        assert plot["x"] < box["x"] < box["x"] + box["width"] < plot["x"] + 0.95 * plot["width"]
    assert lower["y"] - upper["y"] > 14  # The letters are 12 pixels high.
    # A change of epsilon moves the mark and changes the text.
    exact = page.get_by_label("Epsilon, exact")
    with rerun(page):
        exact.fill("0.5")
        exact.press("Enter")
    assert "epsilon=0.5" in page.url
    # A click on a point of the chart opens Explore at the epsilon of this point.
    chart = page.get_by_test_id("stPlotlyChart").first
    points = chart.locator(".scatterlayer .points path.point")
    assert points.count() >= 16  # Eight values of each curve lie in the range that is drawn.
    # The first curve's seventh point is at epsilon 4.642; other points are far enough away.
    points.nth(6).scroll_into_view_if_needed()
    box = points.nth(6).bounding_box()
    assert box is not None
    centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*centre)
    assert chart.locator(".js-plotly-plot").evaluate("chart => chart.dpvizShown")
    expect(chart.locator(".hoverlayer .hovertext").first).to_be_visible()
    with rerun(page):
        page.mouse.click(*centre)
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "How small can epsilon be before the structure disappears?"
    )
    wait_idle(page)
    assert "epsilon=4.642" in page.url
    expect(page.get_by_role("textbox", name="Epsilon")).to_have_value("4.642")
    # After a return to this page, the earlier click does not open Explore again.
    with rerun(page):
        page.get_by_role("link", name="Trade-offs").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    assert re.search(r"/tradeoffs\?.*epsilon=4\.642", page.url)
