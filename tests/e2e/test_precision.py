"""The Precision page in a real browser: favour, drag, edit, switch, share."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from dpviz.core.number_text import percent
from tests.e2e.harness import (
    Server,
    new_page,
    open_app,
    problems_of,
    rerun,
    travel,
)

VIEW = "?v=1&table=iris&domain=box&trials=5"


def main_text(page: Page) -> str:
    """Return all text below the row of settings, whose buttons change when they are pressed.

    The result omits texts of charts and grids, because these may be painted at any time.
    """
    text: str = page.get_by_test_id("stMain").evaluate(
        """main => {
          const copy = main.cloneNode(true);
          const aside = '.st-key-bar, [data-testid="stPlotlyChart"], style, script, '
            + '[data-testid="stDataFrame"]';
          copy.querySelectorAll(aside).forEach(node => node.remove());
          return copy.textContent;
        }"""
    )
    return text


# Find texts that extend beyond their chart and are cut off.
_CUT = """
() => [...document.querySelectorAll('[data-testid="stPlotlyChart"]')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('svg text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
  }).map(text => text.textContent);
})
"""


def bar(page: Page, name: str) -> Locator:
    """Return the bar of a direction."""
    return page.get_by_role("slider", name=f"Share of {name}", exact=True)


def share(page: Page, name: str) -> float:
    """Return the share that a bar shows, in percent."""
    return float(bar(page, name).get_attribute("aria-valuenow") or "nan")


def shares_of_link(page: Page) -> list[float]:
    """Return the custom shares that the link carries, in percent."""
    query = parse_qs(urlsplit(page.url).query)
    kind, _, shares = query["allocation"][0].partition(":")
    assert kind == "custom"
    return [100 * float(text) for text in shares.split(",")]


FEATURES = ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")


def test_bars_are_dragged_moved_by_keys_locked_and_shared(
    page: Page, server: Server, other_context: BrowserContext
) -> None:
    open_app(page, f"{server.url}/precision{VIEW}")
    first, second, third, _ = FEATURES
    assert [share(page, name) for name in FEATURES] == [25] * 4
    # After the mouse has dragged a bar, the bar is as long as its share.
    box = bar(page, third).bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.49 * box["width"], y)
    assert share(page, third) == pytest.approx(49, abs=1)  # The page has not rerun yet.
    assert "allocation" not in page.url
    with rerun(page):
        page.mouse.move(box["x"] + 0.64 * box["width"], y)
        page.mouse.up()
    assert share(page, third) == pytest.approx(64, abs=1)
    assert share(page, first) == pytest.approx(12, abs=0.4)
    assert sum(shares_of_link(page)) == pytest.approx(100)
    assert shares_of_link(page) == pytest.approx([share(page, name) for name in FEATURES], abs=0.01)
    # The keyboard changes one share: a locked bar stays, and the two remaining bars shrink.
    page.get_by_role("button", name=f"Lock {third}").click()
    weight = share(page, third)
    bar(page, first).focus()
    with rerun(page):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("PageUp")
    assert share(page, first) == pytest.approx(23, abs=0.01)  # The keys add 1 and 10 to the share.
    assert share(page, third) == weight
    assert share(page, second) == pytest.approx((100 - 23 - weight) / 2, abs=0.01)
    bar(page, third).press("ArrowRight")
    expect(page.get_by_text(f"{third} is locked.")).to_be_visible()
    assert share(page, third) == weight
    link = page.url
    guest = new_page(other_context)
    open_app(guest, link)
    assert [share(guest, name) for name in FEATURES] == pytest.approx(
        [share(page, name) for name in FEATURES], abs=0.01
    )
    assert problems_of(guest) == ""


def noise_of(page: Page) -> list[float]:
    """Return the share of the noise on each direction, as the bar of noise displays it."""
    shares = page.locator(".sh-flow i").evaluate_all("all => all.map(one => +one.style.flexGrow)")
    assert sum(shares) == pytest.approx(1)
    return list(shares)


def test_on_a_phone_no_text_of_a_chart_is_cut_and_an_example_is_one_click_and_fits(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    open_app(page, f"{server.url}/precision{VIEW}&allocation=binary:1,3:0.8")
    charts = page.get_by_test_id("stPlotlyChart")
    assert charts.count() >= 4
    for chart in charts.all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator("svg text").first).to_be_attached()
    assert page.evaluate(_CUT) == []
    for key in ("stds", "prices"):  # Only the legend shows names, so that no name covers a line.
        chart = page.locator(f".st-key-{key}")
        assert chart.locator(".annotation").count() > 1
        assert chart.locator(".annotation").filter(visible=True).count() == 0
        assert chart.locator(".legendtext").filter(visible=True).count() > 1
    # Control: the test detects a text that is too long.
    text = charts.first.locator("svg text").first
    label = text.text_content()
    text.evaluate("text => { text.textContent = 'x'.repeat(200); }")
    assert len(page.evaluate(_CUT)) == 1
    text.evaluate("(text, written) => { text.textContent = written; }", label)
    travel(page, f"{server.url}/precision?v=1&table=iris&trials=5")
    with rerun(page):
        page.get_by_role("radio", name="Right", exact=True).click()
    assert "Yes." in main_text(page)
    assert share(page, "signal 1") == pytest.approx(40)
    # Shares of 40 % and 1.1 % give a length ratio of 36; one pixel is a third of a per cent.
    long, short = (
        bar(page, name).locator(".sh-fill").evaluate("bar => bar.getBoundingClientRect().width")
        for name in ("signal 1", "noise 1")
    )
    assert long / short == pytest.approx(share(page, "signal 1") / share(page, "noise 1"), rel=0.05)
    # In the bar of noise, the two lengths have the inverse ratio of the shares.
    little, much = noise_of(page)[0], noise_of(page)[2]
    assert much / little == pytest.approx(share(page, "signal 1") / share(page, "noise 1"))
    noise = percent(sum(noise_of(page)[:2]))  # The text below the bar explains its colours.
    texts = page.locator(".sh-flow p span").all_inner_texts()
    assert texts[0] == f"favoured {noise}"
    assert texts[1].startswith("the others ")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 420
    track = bar(page, "signal 1").bounding_box()
    assert track is not None
    assert track["x"] >= 0
    assert track["x"] + track["width"] <= 420
    with rerun(page):
        page.get_by_role("radio", name="Wrong", exact=True).click()
    assert "Yes." not in main_text(page)
    with rerun(page):
        page.get_by_role("radio", name="My settings", exact=True).click()
    assert "table=iris" in page.url
    with rerun(page):
        page.get_by_role("radio", name="Right", exact=True).click()
    with rerun(page):  # The text follows each key press; the page reruns later.
        bar(page, "signal 1").press("PageDown")
        assert noise_of(page)[0] > 1.2 * little
