"""Looks of pages on a phone, turned, and for a screen reader. test_axe.py tests the dark theme."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, open_app, rerun, travel, wait_idle

CHARTS = '[data-testid="stEChartsChart"], [data-testid="stPlotlyChart"]'

# Find elements wider than the page. Tables and code may be wider, because they scroll.
_OVERFLOW = """() => ['html', '[data-testid="stMain"]']
  .map(name => document.querySelector(name)).map(e => e.scrollWidth - e.clientWidth)"""
# Find input fields that have no name for a screen reader.
_NAMELESS = """
() => [...document.querySelectorAll('input:not([type=file]), textarea, [role=combobox]')]
  .filter(e => e.offsetParent && !e.closest('[role=radiogroup]'))
  .filter(e => !(e.getAttribute('aria-label') || e.labels?.length
                 || e.getAttribute('aria-labelledby')))
  .map(e => e.outerHTML.slice(0, 200))
"""


# Find texts that are cut off in the row above the page; on a phone, the user swipes this row.
_CUT_WORDS = """
where => [...document.querySelectorAll(where)]
  .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1)
  .filter(e => getComputedStyle(e).overflow !== 'visible')
  .map(e => [e.tagName, e.innerText || e.value, e.scrollWidth, e.clientWidth])
"""


def brightness(page: Page) -> float:
    """Return the background's brightness between 0, black, and 255, white."""
    colour = page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    parts = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(parts) / 3


def check_shape(page: Page) -> None:
    """Check that no element overflows, and that each chart has a size and a name."""
    assert page.evaluate(_OVERFLOW) == [0, 0]
    width = page.viewport_size["width"] if page.viewport_size else 0
    for panel in page.locator(".dpv canvas[role=img]").filter(visible=True).all():
        name = panel.get_attribute("aria-label") or ""
        assert len(name) > 15, "what is drawn is said in words too"
    for chart in page.locator(CHARTS).all():
        box = chart.bounding_box()
        assert box is not None
        # Small maps let a visitor choose; the page then shows the chosen map in large.
        small = bool(chart.evaluate("c => c.closest('[class*=st-key-decide-small]') !== null"))
        assert (80 if small else 200) <= box["width"] <= width
        assert box["height"] >= (60 if small else 150)
        name = chart.get_attribute("aria-label") or ""
        assert len(name) > 20, "an accessible name that says what is to be seen"
        assert chart.get_attribute("role") in {"img", "figure"}


def test_light_and_its_controls(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    assert brightness(page) > 240  # Otherwise the limit for the dark theme is meaningless.
    check_shape(page)
    assert page.evaluate(_NAMELESS) == []
    # Control: the tests detect a wide element and an input field without a name.
    page.evaluate(
        """() => {
          const wide = document.createElement('div');
          wide.style = 'width: 3000px; height: 9px';
          const page = document.querySelector('[data-testid="stMainBlockContainer"]');
          page.append(wide, document.createElement('input'));
        }"""
    )
    assert page.evaluate(_OVERFLOW) != [0, 0]
    assert len(page.evaluate(_NAMELESS)) == 1


def test_turning_the_phone_redraws_the_charts_and_every_kind_of_view_fits(
    page: Page, server: Server
) -> None:
    """Explore fits a phone; test_axe.py tests the widest table with all featured mechanisms."""
    page.set_viewport_size({"width": 420, "height": 900})
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    assert page.evaluate(_CUT_WORDS, '[data-testid="stPageLink"] *') == []
    menu = page.get_by_test_id("stExpandSidebarButton")  # It has the name of the page beside it.
    assert menu.evaluate("e => getComputedStyle(e, '::after').content") == '"Explore"'
    menu.click()
    page.get_by_role("button", name="Collapse sidebar").click()
    with rerun(page):
        page.get_by_text("All charts, with captions and numbers").click()
    check_shape(page)
    page.set_viewport_size({"width": 900, "height": 420})
    wait_idle(page)
    check_shape(page)
    page.set_viewport_size({"width": 420, "height": 900})
    wait_idle(page)
    expect(page.locator(CHARTS).first).to_have_css("width", "396px")
    check_shape(page)
    with rerun(page):
        page.get_by_text("All charts, with captions and numbers").click()
    # Test one component, rows in a box, every mechanism, and a table without classes.
    for many in ("table=iris&k=1", "table=iris&domain=box", "m=&table=iris", "table=diabetes"):
        link = f"{server.url}/?v=1&trials=2&{many}"
        travel(page, link)
        assert page.url == link  # The page shows the new view, not the earlier view.
        check_shape(page)
        assert page.get_by_test_id("stAlertContentError").count() == 0
