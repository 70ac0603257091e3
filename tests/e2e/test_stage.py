"""The stage measured: how much of a screen is picture, at five sizes and at every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dpviz.lessons import Lesson, lessons
from tests.e2e.harness import Server, open_app, rerun

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


# A board that is given another size draws in the frames after it: settled is what two frames leave
# as it is.
SETTLED = f"""
async () => {{
  const measure = {MEASURE.strip()};
  const frame = () => new Promise(done => requestAnimationFrame(() => done(null)));
  let [seen, last] = [null, ""];
  while (JSON.stringify(seen) !== last) {{
    last = JSON.stringify(seen);
    await frame();
    await frame();
    seen = measure();
  }}
  return seen;
}}
"""
# What the way back does, also to an address of the same page: no document is loaded.
TRAVEL = """
to => {
  history.pushState(history.state, "", to);
  dispatchEvent(new PopStateEvent("popstate", {state: history.state}));
}
"""


def measured(page: Page, size: tuple[int, int]) -> dict[str, Any]:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.wait_for_function("size => innerWidth === size[0] && innerHeight === size[1]", arg=size)
    found: dict[str, Any] = page.evaluate(SETTLED)
    return found


def states(lesson: Lesson) -> Iterator[tuple[int, bool, str]]:
    """Yield every step with whether it is revealed and its link; asked before it is shown."""
    for place in range(len(lesson.steps)):
        asked, link = lesson.asked(place), f"lesson={lesson.number}&step={place + 1}"
        yield place, False, link
        if asked is not None:
            bet = asked.right if asked.axis is not None else asked.right + 1
            yield place, True, f"{link}&bet={bet:g}&moved=more"


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_the_picture_has_the_screen(page: Page, server: Server, lesson: Lesson) -> None:
    """At three screens and two phones, before and after: share, no scrolling, nothing cut."""
    for number, (place, revealed, query) in enumerate(states(lesson)):
        if number == 0:
            open_app(page, f"{server.url}/guide?v=1&{query}")
        else:
            with rerun(page):
                page.evaluate(TRAVEL, f"{server.url}/guide?v=1&{query}")
        expect(page.locator(".dps-where")).to_contain_text(f"{place + 1} of {len(lesson.steps)}")
        expect(page.locator(".dps[data-ready]")).to_be_visible()
        then = expect(page.locator(".dps-then"))
        then.not_to_be_empty() if revealed else then.to_be_empty()
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
