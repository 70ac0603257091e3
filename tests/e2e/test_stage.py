"""The stage measured: how much of a screen is picture, at five sizes and at every step."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dpviz.lessons import Lesson, lessons
from tests.e2e.harness import Server, open_app

SCREENS = ((1024, 768), (1400, 900), (1920, 1080))
PHONES = ((420, 800), (360, 640))
SHARE = 0.6

MEASURE = """
() => {
  const root = [...document.querySelectorAll("*")].map((node) => node.shadowRoot)
    .find((one) => one?.querySelector(".dps"));
  const get = (name) => root.querySelector(name);
  const box = get(".dps-pic").getBoundingClientRect();
  const view = get(".dps-view").getBoundingClientRect();
  const inner = [...get(".dps-view").querySelectorAll("canvas, svg")]
    .filter((node) => node.getClientRects().length).map((node) => node.getBoundingClientRect());
  const words = get(".dps-words");
  const column = get(".dpv-col:not([data-key=exact]) .dpv-box-picture")?.getBoundingClientRect();
  const on = root.querySelectorAll(".dps-dots i[data-on]").length;
  return {
    share: (box.width * box.height) / (innerWidth * innerHeight),
    tall: box.height / innerHeight,
    top: box.top,
    over: words.scrollHeight - words.clientHeight,
    page: document.scrollingElement.scrollHeight - innerHeight,
    wide: get(".dps").scrollWidth - innerWidth,
    drawn: Math.max(...inner.map((one) => one.width * one.height)) / (view.width * view.height),
    cut: Math.max(...inner.map((one) => one.bottom)) - box.bottom,
    headline: parseFloat(getComputedStyle(get("h1")).fontSize),
    count: get(".dps-hundred b")?.textContent ?? null,
    on,
  };
}
"""


def measured(page: Page, size: tuple[int, int]) -> dict[str, Any]:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate(
        "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => "
        "requestAnimationFrame(() => done(null))), 120))"
    )
    found: dict[str, Any] = page.evaluate(MEASURE)
    return found


@pytest.mark.parametrize("revealed", [False, True], ids=["asked", "revealed"])
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_the_picture_has_the_screen(
    page: Page, server: Server, lesson: Lesson, revealed: bool
) -> None:
    """At three screens and two phones, before and after: share, no scrolling, nothing cut."""
    for place in range(len(lesson.steps)):
        asked = lesson.asked(place)
        if asked is None and revealed:
            continue
        query = f"lesson={lesson.number}&step={place + 1}"
        if asked is not None and revealed:
            bet = asked.right if asked.axis is not None else asked.right + 1
            query += f"&bet={bet:g}&moved=more"
        open_app(page, f"{server.url}/guide?v=1&{query}")
        expect(page.locator(".dps[data-ready]")).to_be_visible()
        for size in SCREENS:
            seen = measured(page, size)
            where = f"{query} at {size}: {seen}"
            assert seen["share"] >= SHARE, where
            assert seen["over"] <= 0, where
            assert seen["page"] <= 0, where
            assert seen["cut"] <= 1, where
            assert seen["headline"] >= 28, where
            assert seen["drawn"] >= 0.2, where
            if seen["count"] is not None:  # what is said of a hundred is counted there
                assert seen["on"] == round(float(seen["count"])), where
        for size in PHONES:
            seen = measured(page, size)
            where = f"{query} at {size}: {seen}"
            assert 0.38 <= seen["tall"] <= 0.42, where
            assert seen["wide"] <= 0, where
            assert seen["headline"] >= 24, where
            page.locator(".dps").evaluate("node => node.scrollTo(0, 9999)")
            top = measured(page, size)["top"]
            assert 0 <= top <= 70, where  # it stays while the words are scrolled
            page.locator(".dps").evaluate("node => node.scrollTo(0, 0)")
