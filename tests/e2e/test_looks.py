"""How pages look: on a phone, turned, to a screen reader. Each in the dark is in test_axe.py."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.harness import Server, at_rest, open_app, rerun, travel, wait_idle

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
    for panel in page.locator(".dpv canvas[role=img]").all():
        name = panel.get_attribute("aria-label")
        assert name is not None, "what is drawn is said in words too"
        assert len(name) > 15
    for chart in page.locator(CHARTS).all():
        box = chart.bounding_box()
        assert box is not None
        assert box["width"] >= 200
        assert box["width"] <= width
        assert box["height"] >= 150
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


def check_bar_of_a_phone(page: Page) -> None:
    """Check that epsilon, its scale and the buttons beside it stand in one line."""
    parts = page.locator(".dpv-eps, .dpv-track, .dpv-do-play, .dpv-do-pin")
    middles = parts.evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => (box.top + box.bottom) / 2)"
    )
    assert len(middles) == 4
    assert max(middles) - min(middles) < 10


def test_turning_the_phone_redraws_the_charts_and_every_kind_of_view_fits(
    page: Page, server: Server
) -> None:
    """One page on a phone; the widest table, with all that is featured, is in test_axe.py."""
    page.set_viewport_size({"width": 420, "height": 900})
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    check_bar_of_a_phone(page)
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


def test_numbers_are_taken_along_by_a_button_of_ours(page: Page, server: Server) -> None:
    """A grid's own button would write other people's names as formulas."""
    open_app(page, server.url + "/tradeoffs?v=1&table=iris&trials=5")
    with rerun(page):
        page.get_by_text("The numbers behind this chart").first.click()
    grid = page.get_by_test_id("stDataFrame").first
    grid.hover()
    tools = page.get_by_test_id("stElementToolbar").first
    expect(tools.get_by_role("button", name="Search")).to_be_visible()
    expect(tools.get_by_role("button", name="Download as CSV")).to_be_hidden()
    with page.expect_download() as got:
        page.get_by_role("button", name="These numbers (CSV)").click()
    assert got.value.suggested_filename == "dpviz-curve.csv"
    header = got.value.path().read_text(encoding="utf-8").splitlines()[0]
    assert "mechanism" in header.split(",")


def test_no_word_of_the_row_above_is_cut(page: Page, server: Server) -> None:
    """On a projector and on two laptops, where the page moves epsilon itself and where not."""
    for number, place in enumerate(("", "tradeoffs", "release")):
        (travel if number else open_app)(page, f"{server.url}/{place}?v=1&table=digits")
        expect(page.locator(".st-key-bar")).to_be_visible()
        wait_idle(page)
        for width in (1024, 1200, 1400):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(_CUT_WORDS, ".st-key-bar *") == [], (place, width)
    travel(page, f"{server.url}/tradeoffs?v=1&table=digits")
    page.get_by_test_id("stExpandSidebarButton").click()
    at_rest(page.get_by_test_id("stSidebar"))
    assert page.evaluate(_CUT_WORDS, ".st-key-bar *") == []
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    at_rest(page.get_by_test_id("stSidebar"))
    # the check sees what is cut: half the room for the same words
    page.add_style_tag(content=".st-key-bar { width: 50%; }")
    assert page.evaluate(_CUT_WORDS, ".st-key-bar *") != []


def test_every_choice_of_a_row_of_choices_is_seen(page: Page, server: Server) -> None:
    """On Decide at the width of a projector, and on a phone."""
    open_app(page, f"{server.url}/decide?v=1&table=iris")
    groups = page.get_by_test_id("stButtonGroup").get_by_role("radiogroup")
    for width in (1024, 420):
        page.set_viewport_size({"width": width, "height": 800})
        expect(groups).to_have_count(3)
        out = """
        all => all.flatMap(group => [...group.querySelectorAll('button, [role=radio]')].map(one => {
          const column = group.closest('[data-testid="stColumn"]') ?? document.body;
          return one.getBoundingClientRect().right - column.getBoundingClientRect().right;
        }))
        """
        assert max(groups.evaluate_all(out)) <= 1, width
