"""The Claims page in a real browser: read, audit and move. test_axe.py tests it on a phone."""

from __future__ import annotations

import re
from itertools import combinations

from playwright.sync_api import Page, expect

from tests.e2e import parts
from tests.e2e.harness import Server, open_app, rerun

CHARTS = '[data-testid="stPlotlyChart"]'
QUICK = "claims?v=1&table=iris&trials=5"


def text(page: Page) -> str:
    """Return all text of the page's main part."""
    return page.get_by_test_id("stMain").inner_text()


def test_a_visitor_reads_the_claims_and_reruns_the_evidence(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1400, "height": 900})
    open_app(page, f"{server.url}/{QUICK}")
    expect(page.locator(".st-key-page-answer")).to_have_text(
        re.compile(r"^\d of \d\d do not, 1 is not proved\.")
    )
    charts = page.locator(CHARTS)
    expect(charts).to_have_count(0)
    card = page.locator('.dp-card[data-opens="wishart"]')
    box = card.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900, "all three shelves stand on the first screen"
    for width in (1024, 1200, 1400):  # A figure may shrink, but its texts keep their size.
        page.set_viewport_size({"width": width, "height": 900})
        sizes = page.locator(".dp-card svg text").evaluate_all(
            "all => all.map(one => parseFloat(getComputedStyle(one).fontSize)"
            " * one.ownerSVGElement.getBoundingClientRect().width / 260)"
        )
        assert min(sizes) >= 14, (width, sizes)
    for width in (700, 1400):  # Labels of mechanisms with a small loss do not overlap.
        page.set_viewport_size({"width": width, "height": 900})
        boxes = page.locator(".dp-pin").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect())"
            ".map(box => [box.left, box.right, box.top, box.bottom])"
        )
        assert len(boxes) > 2
        for (rest, right, top, bottom), (start, end, high, low) in combinations(boxes, 2):
            assert right <= start or end <= rest or bottom <= high or low <= top, width
    evidence = page.locator("#claim-wishart")
    expect(evidence).to_be_hidden()
    card.click()
    expect(evidence).to_be_visible()
    assert evidence.evaluate("e => e.scrollWidth <= e.clientWidth"), "evidence wraps"
    # The opened evidence stays open while the page's epsilon changes.
    epsilon = page.get_by_role("slider", name="Epsilon")
    epsilon.focus()
    with rerun(page):
        epsilon.press("ArrowRight")
    expect(evidence).to_be_visible()
    with rerun(page):
        epsilon.press("ArrowLeft")
    page.locator('.dp-card[data-opens="wishart"]').click()
    expect(evidence).to_be_hidden()
    parts.show(page, {"part": "audit", "mechanism": "wishart"})
    with rerun(page):
        page.get_by_role("button", name="Run the audit").click()
    expect(page.get_by_text("Refuted: the claim is false")).to_be_visible()
    expect(charts).to_have_count(1)
    parts.show(page, {"part": "refutations", "exhibit": "support"})
    box = charts.first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900, "the picture stands on the first screen"
    epsilon.focus()
    with rerun(page):
        epsilon.press("ArrowRight")
    assert "the exact share is 30.7\u00a0% for every number of features" in text(page)
    # The address links to this part of the page, but not to the state of widgets in it.
    assert page.url.endswith("part=refutations")
    heading = page.get_by_role("heading", level=1)
    before = heading.bounding_box()
    with rerun(page):
        epsilon.press("Home")
    expect(page.get_by_text("Below epsilon 0.1 the privacy promise is very strong")).to_be_visible()
    assert heading.bounding_box() == before, "a note that comes moves nothing"
