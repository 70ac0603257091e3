"""The stage measured: how much of a screen is picture, at five sizes and at every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from dpviz.lessons import Lesson, lessons
from tests.e2e.harness import Server, open_app, rerun, travel

SCREENS = ((1024, 768), (1400, 900), (1920, 1080))
PHONES = ((420, 800), (360, 640))
SHARE = 0.6
PAIR = 0.45  # of the screen, two pictures with the others as thumbnails beside them

MEASURE = """
() => {
  const root = [...document.querySelectorAll("*")].map((node) => node.shadowRoot)
    .find((one) => one?.querySelector(".dps"));
  const get = (name) => root.querySelector(name);
  // where the picture is when the words are scrolled to their end
  get(".dps").scrollTo(0, 9999);
  const scrolled = get(".dps-pic").getBoundingClientRect().top;
  get(".dps").scrollTo(0, 0);
  const box = get(".dps-pic").getBoundingClientRect();
  const view = get(".dps-view").getBoundingClientRect();
  const shown = (node) => node.checkVisibility({ visibilityProperty: true });
  const inner = [...get(".dps-view").querySelectorAll("canvas, svg")]
    .filter(shown).map((node) => node.getBoundingClientRect());
  const words = get(".dps-words");
  const drawn = [...get(".dps-view").children].filter(shown)
    .map((node) => node.getBoundingClientRect());
  const on = root.querySelectorAll(".dps-dots i[data-on]").length;
  const read = [...get(".dps").querySelectorAll("*")].filter((node) => shown(node)
    && [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim())
    && !["OPTION", "OPTGROUP", "STYLE"].includes(node.tagName));
  const least = Math.min(...read.map(
    (node) => parseFloat(getComputedStyle(node).fontSize) * (node.currentCSSZoom ?? 1)));
  return {
    top: get(".dps").getBoundingClientRect().top,
    share: (box.width * box.height) / (innerWidth * innerHeight),
    tall: box.height / innerHeight,
    scrolled,
    words: get("h1").textContent.trim().split(/\\s+/).length,
    over: words.scrollHeight - words.clientHeight,
    page: document.scrollingElement.scrollHeight - innerHeight,
    wide: get(".dps").scrollWidth - innerWidth,
    drawn: Math.max(...inner.map((one) => one.width * one.height)) / (view.width * view.height),
    cut: Math.max(...inner.map((one) => one.bottom)) - box.bottom,
    end: Math.max(words.getBoundingClientRect().bottom, shown(get(".dps-rail")) ? innerHeight : 0),
    outside: Math.max(...drawn.flatMap((one) => [view.top - one.top, one.bottom - view.bottom])),
    headline: parseFloat(getComputedStyle(get("h1")).fontSize),
    least,
    apart: Math.max(0, ...["left", "top", "width", "height"].map((side) => {
      const boxes = [...root.querySelectorAll(".dpv-col:not([data-key=exact]) .dpv-box-picture")];
      const seen = boxes.map((one) => one.getBoundingClientRect()[side]);
      return Math.max(...seen) - Math.min(...seen);
    }).filter(Number.isFinite)),
    count: get(".dps-hundred b")?.textContent ?? null,
    on,
  };
}
"""


# A board that is given another size draws in the frames after it: settled is what two frames leave
# as it is.
SETTLED = f"""
async ([width, height]) => {{
  const measure = {MEASURE.strip()};
  const frame = () => new Promise(done => requestAnimationFrame(() => done(null)));
  while (innerWidth !== width || innerHeight !== height) await frame();
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


# A page on its way to another one leaves a picture no room; a watched page fails on what is thrown.
WITHOUT_ROOM = """
async picture => {
  const frame = () => new Promise(done => requestAnimationFrame(() => done(null)));
  for (const display of ["none", ""]) {
    picture.style.display = display;
    await frame();
    await frame();
  }
}
"""


# Whether the edge cuts a name on the way: then there is ink in the first row.
CUT = """
cloud => {
  window.dpvizCut = false;
  cloud.addEventListener("pointermove", () => {
    const first = cloud.getContext("2d").getImageData(0, 0, cloud.width, 1);
    window.dpvizCut ||= first.data.some(Boolean);
  });
}
"""


def turned(page: Page) -> bool:
    """Turn the cloud once round, and return whether the picture's edge cut a name."""
    cloud = page.locator(".dps-cloud")
    cloud.evaluate(CUT)
    box = cloud.bounding_box()
    assert box is not None
    across, middle = box["x"] + 5, box["y"] + box["height"] / 2
    for _ in range(3):  # 120 px are one radian
        page.mouse.move(across, middle)
        page.mouse.down()
        page.mouse.move(across + 270, middle, steps=20)
        page.mouse.up()
    cut: bool = page.evaluate("dpvizCut")
    return cut


def measured(page: Page, size: tuple[int, int]) -> dict[str, Any]:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    found: dict[str, Any] = page.evaluate(SETTLED, size)
    return found


def on_a_screen(
    seen: dict[str, Any], size: tuple[int, int], where: str, headline: int = 28
) -> None:
    """Check what is measured of a stage that is no phone's."""
    assert seen["share"] >= SHARE, where
    assert seen["over"] <= 0, where
    assert seen["page"] <= 0, where
    assert seen["cut"] <= 1, where
    assert seen["outside"] <= 1, where
    assert seen["headline"] >= headline, where
    assert seen["drawn"] >= 0.2, where
    assert seen["least"] >= (17 if size[0] > 1700 else 14), where  # from the last row
    if seen["count"] is not None:  # what is said of a hundred is counted there
        assert seen["on"] == round(float(seen["count"])), where


def states(lesson: Lesson) -> Iterator[tuple[int, bool, str]]:
    """Yield every step with whether it is revealed and its link; asked before it is shown."""
    for place in range(len(lesson.steps)):
        asked, link = lesson.question_at(place), f"lesson={lesson.number}&step={place + 1}"
        yield place, False, link
        if asked is not None:
            bet = asked.right if asked.axis is not None else asked.right + 1
            yield place, True, f"{link}&bet={bet:g}&moved=more"


@pytest.mark.parametrize("several", [lessons()[::2], lessons()[1::2]], ids=["odd", "even"])
def test_the_picture_has_the_screen(
    page: Page, server: Server, several: tuple[Lesson, ...]
) -> None:
    """At three screens and two phones, before and after: share, no scrolling, nothing cut."""
    every = [(lesson, *state) for lesson in several for state in states(lesson)]
    presented: set[str] = set()
    for number, (lesson, place, revealed, query) in enumerate(every):
        (travel if number else open_app)(page, f"{server.url}/guide?v=1&{query}")
        expect(page.locator(".dps-where select")).to_have_value(str(lesson.number))
        expect(page.locator(".dps-where")).to_contain_text(f"{place + 1} of {len(lesson.steps)}")
        expect(page.locator(".dps[data-ready]")).to_be_visible()
        then = expect(page.locator(".dps-then"))
        then.not_to_be_empty() if revealed else then.to_be_empty()
        # There and back, as a page that has the size already is not laid out again.
        for size in (*SCREENS, *PHONES)[:: -1 if number % 2 else 1]:
            seen = measured(page, size)
            where = f"{query} at {size}: {seen}"
            assert seen["words"] <= 14, where
            assert seen["outside"] <= 1, where  # of the picture nothing lies under its epsilon
            assert seen["apart"] <= 1, where  # what a move puts in its place stands there already
            if size in SCREENS:
                on_a_screen(seen, size, where)
                continue
            assert 0.38 <= seen["tall"] <= 0.42, where
            assert seen["wide"] <= 0, where
            assert seen["end"] >= size[1] - 1, where  # no empty screen below the words
            assert seen["headline"] >= 24, where
            assert 0 <= seen["scrolled"] <= 70, where  # it stays while the words are scrolled
            if number == 0 and lesson is lessons()[0]:
                assert turned(page) is False, where
        page.locator(".dps-pic").evaluate(WITHOUT_ROOM)
        # Before a hall, once for each kind of picture.
        if revealed and lesson.steps[place].scene not in presented:
            presented.add(lesson.steps[place].scene)
            with rerun(page):
                page.keyboard.press("p")
            expect(page.locator(".dps[data-present][data-ready]")).to_be_visible()
            for size in SCREENS:
                seen = measured(page, size)
                on_a_screen(seen, size, f"{query} presented at {size}: {seen}")
                assert seen["top"] == 0, seen
            with rerun(page):
                page.keyboard.press("p")
    assert presented == {one.steps[place].scene for one, place, shown, _ in every if shown}


# Of a board on its stage: the pictures' share of the screen, and what lies outside of it.
BOARD_MEASURE = """
board => {
  const shown = ["truth", "chosen"].map(place => board.querySelector(`[data-place=${place}]`));
  const boxes = shown.map(one => one.querySelector(".dpv-box-picture").getBoundingClientRect());
  const thumbs = [...board.querySelectorAll("[data-place=thumb]")];
  const parts = [...board.querySelectorAll("canvas, button, p, input")]
    .filter(one => one.getClientRects().length).map(one => one.getBoundingClientRect());
  const ask = board.querySelector(".dpv-ask");
  const asked = document.createRange();
  asked.selectNodeContents(ask);
  const film = [...board.querySelectorAll(".dpv-film li")].map(one => one.getBoundingClientRect());
  return {
    share: boxes.reduce((sum, box) => sum + box.width * box.height, 0) / innerWidth / innerHeight,
    columns: shown.map(one => one.dataset.key),
    others: thumbs.map(one => one.dataset.key),
    spread: Math.max(...boxes.map(box => box.width)) - Math.min(...boxes.map(box => box.width)),
    out: Math.max(...parts.map(box => Math.max(
      box.right - innerWidth, box.bottom - innerHeight, -box.left, -box.top))),
    over: Math.max(board.scrollHeight - innerHeight,
      ...thumbs.map(one => one.scrollHeight - one.clientHeight)),
    film: film.length,
    clear: film[0].width ? film[0].left - asked.getBoundingClientRect().right : 99,
    words: ask.textContent.split(/\\s+/).length,
    headline: parseFloat(getComputedStyle(ask).fontSize),
    controls: [...board.querySelectorAll("input, .dpv-buttons button")]
      .filter(one => one.getClientRects().length).length,
  };
}
"""


def staged(page: Page, board: Locator) -> dict[str, Any]:
    """Return what is measured of a board at the three screens, all of them alike."""
    for size in SCREENS:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.evaluate(
            "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"
        )
        seen: dict[str, Any] = board.evaluate(BOARD_MEASURE)
        where = f"{size}: {seen}"
        assert seen["share"] >= PAIR, where
        assert seen["out"] <= 0.5, where
        assert seen["over"] <= 0, where
        assert seen["spread"] <= 1, where
        assert seen["words"] <= 14, where
        assert seen["clear"] >= 8, where  # the stops seen stand beside the question
        assert seen["headline"] >= 28, where
        assert seen["controls"] == 2, where  # epsilon, and the way out
    return seen


def test_explore_is_presented_on_the_stage(page: Page, server: Server) -> None:
    """By link: the truth and the best that holds; the others are a tap away."""
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5&stage=yes")
    board = page.locator(".dpv[data-present]")
    first = staged(page, board)
    assert first["columns"][0] == "exact", first
    best = first["columns"][1]
    assert len(first["others"]) == 5
    scrubber = page.get_by_role("slider", name="Epsilon")
    film = page.get_by_role("list", name="Seen so far")
    expect(film.get_by_role("listitem")).to_have_count(1)
    opened = scrubber.get_attribute("aria-valuetext")
    with rerun(page):
        scrubber.press("ArrowLeft")
    expect(film.get_by_role("listitem")).to_have_count(2)
    moved = staged(page, board)
    assert moved["columns"] == first["columns"]  # moved: nothing leaves the screen
    assert (first["film"], moved["film"]) == (1, 2)
    pictures = film.locator("canvas").evaluate_all("all => all.map(one => one.toDataURL())")
    assert len(set(pictures)) == 2
    with rerun(page):  # a click goes back, and is no new stop
        film.get_by_role("button").first.click()
    expect(scrubber).to_have_attribute("aria-valuetext", opened or "")
    expect(film.get_by_role("button").first).to_have_attribute("aria-current", "true")
    expect(film.get_by_role("listitem")).to_have_count(2)
    board.get_by_role("button", name="Wishart difference").click()
    more = staged(page, board)
    assert more["columns"] == ["exact", "wishart_difference"], more
    assert {*more["others"], "wishart_difference"} == {*first["others"], best}
    with rerun(page):
        page.keyboard.press("Escape")
    assert "stage=" not in page.url
    expect(page.locator(".dpv-col").filter(visible=True)).to_have_count(7)
