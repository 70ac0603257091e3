"""How pages look: on a phone, turned, to a screen reader. Each in the dark is in test_axe.py."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, open_app, rerun, travel, wait_idle

CHARTS = '[data-testid="stEChartsChart"], [data-testid="stPlotlyChart"]'

# What sticks out of the page sideways; tables and code scroll by themselves.
_OVERFLOW = """
() => {
  const main = document.querySelector('[data-testid="stMain"]');
  return [
    document.documentElement.scrollWidth - document.documentElement.clientWidth,
    main.scrollWidth - main.clientWidth,
  ];
}
"""
# The right edges of what cuts a chart off, and of its panels.
# Widgets that a screen reader could not name.
_NAMELESS = """
() => [...document.querySelectorAll('input:not([type=file]), textarea, [role=combobox]')]
  .filter(e => e.offsetParent && !e.closest('[role=radiogroup]'))
  .filter(e => !(e.getAttribute('aria-label') || e.labels?.length
                 || e.getAttribute('aria-labelledby')))
  .map(e => e.outerHTML.slice(0, 200))
"""
_BACKGROUND = (
    "() => getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"
)


# What is cut off in the row above the page; on a phone it is swiped.
_CUT_WORDS = """
where => [...document.querySelectorAll(where)]
  .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1)
  .filter(e => getComputedStyle(e).overflow !== 'visible')
  .map(e => [e.tagName, e.innerText || e.value, e.scrollWidth, e.clientWidth])
"""


def brightness(page: Page) -> float:
    """Return the page's background between 0, black, and 255, white."""
    written = page.evaluate(_BACKGROUND)
    parts = [float(part) for part in written[written.index("(") + 1 : -1].split(",")[:3]]
    return sum(parts) / 3


def check_shape(page: Page) -> None:
    """Check that nothing sticks out, and that each chart has a size and a name."""
    assert page.evaluate(_OVERFLOW) == [0, 0]
    width = page.viewport_size["width"] if page.viewport_size else 0
    for panel in page.locator(".dpv canvas[role=img]").filter(visible=True).all():
        name = panel.get_attribute("aria-label")
        assert name is not None, "what is drawn is said in words too"
        assert len(name) > 15
    for chart in page.locator(CHARTS).all():
        box = chart.bounding_box()
        assert box is not None
        # a small map is there to be picked, and is drawn large when it is
        small = bool(chart.evaluate("c => c.closest('[class*=st-key-decide-small]') !== null"))
        assert (80 if small else 200) <= box["width"] <= width
        assert box["height"] >= (60 if small else 150)
        name = chart.get_attribute("aria-label")
        assert name is not None
        assert len(name) > 20, "an accessible name that says what is to be seen"
        assert chart.get_attribute("role") in {"img", "figure"}


def test_light_and_its_controls(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    assert brightness(page) > 240  # or the bound on dark would mean nothing
    check_shape(page)
    assert page.evaluate(_NAMELESS) == []
    # Something wide, and a box without a name, would have been noticed.
    page.evaluate(
        """() => {
          const wide = document.createElement('div');
          wide.style.width = '3000px';
          wide.style.height = '9px';
          const box = document.createElement('input');
          document.querySelector('[data-testid="stMainBlockContainer"]').append(wide, box);
        }"""
    )
    assert page.evaluate(_OVERFLOW) != [0, 0]
    assert len(page.evaluate(_NAMELESS)) == 1


def test_turning_the_phone_redraws_the_charts_and_every_kind_of_view_fits(
    page: Page, server: Server
) -> None:
    """One page on a phone; the widest table, with all that is featured, is in test_axe.py."""
    page.set_viewport_size({"width": 420, "height": 900})
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    assert page.evaluate(_CUT_WORDS, '[data-testid="stPageLink"] *') == []
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
    # One component, the other domain, every mechanism, and a table without kinds.
    for many in ("table=iris&k=1", "table=iris&domain=box", "m=&table=iris", "table=diabetes"):
        link = f"{server.url}/?v=1&trials=2&{many}"
        travel(page, link)
        assert page.url == link  # the view that is looked at, not the one before
        check_shape(page)
        assert page.get_by_test_id("stAlertContentError").count() == 0
