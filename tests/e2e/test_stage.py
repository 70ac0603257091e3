"""Measure the animation page: the picture's share of the screen, at five sizes and every step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from dpviz.lessons import Lesson, lessons
from tests.e2e.harness import Server, open_app, rerun, travel

SCREENS = ((1024, 768), (1400, 900), (1920, 1080))
PHONES = ((420, 800), (360, 640))
SHARE = 0.6
PAIR = 0.45  # Two pictures beside thumbnails fill at least this share of the screen.

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


# A resized figure redraws over several frames, so wait until two frames show no change.
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


TWO_FRAMES = "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"


# While a visitor leaves a page, its picture has size 0; drawing it must not throw an error.
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


# Return whether a canvas cuts off a name while it rotates: its top row of pixels is not empty.
CUT = """
cloud => {
  window.dpvizCut = false;
  cloud.addEventListener("pointermove", () => {
    const first = cloud.getContext("2d").getImageData(0, 0, cloud.width, 1);
    window.dpvizCut ||= first.data.some(Boolean);
  });
}
"""


# Return whether a canvas gets light ink within 300 frames, as in the dark theme.
LIGHT = """async cloud => {
  const drawn = () => cloud.getContext("2d").getImageData(0, 0, cloud.width, cloud.height).data;
  const light = () => drawn().some((value, at) => at % 4 < 3 && value > 210);
  for (let left = 300; left && !light(); left--) await new Promise(requestAnimationFrame);
  return light();
}"""


def turned(page: Page) -> bool:
    """Turn the point cloud once round, and return whether the picture's edge cut a name."""
    cloud = page.locator(".dps-cloud")
    cloud.evaluate(CUT)
    box = cloud.bounding_box()
    assert box is not None
    across, middle = box["x"] + 5, box["y"] + box["height"] / 2
    for _ in range(3):  # A drag of 120 pixels rotates the picture by a radian.
        page.mouse.move(across, middle)
        page.mouse.down()
        page.mouse.move(across + 270, middle, steps=20)
        page.mouse.up()
    return bool(page.evaluate("dpvizCut"))


def measured(page: Page, size: tuple[int, int], board: Locator | None = None) -> dict[str, Any]:
    """Return the measures of an animation page, or of an Explore figure, at a size."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    if board is not None:
        page.evaluate(TWO_FRAMES)
    sizes: dict[str, Any] = board.evaluate(BOARD_MEASURE) if board else page.evaluate(SETTLED, size)
    return sizes


def on_a_screen(
    seen: dict[str, Any], size: tuple[int, int], where: str, headline: int = 28
) -> None:
    """Check the measures of an animation page that is not on a phone."""
    assert seen["share"] >= SHARE, where
    assert seen["over"] <= 0, where
    assert seen["page"] <= 0, where
    assert seen["cut"] <= 1, where
    assert seen["outside"] <= 1, where
    assert seen["headline"] >= headline, where
    assert seen["drawn"] >= 0.2, where
    assert seen["least"] >= (17 if size[0] > 1700 else 15), where
    if seen["count"] is not None:  # The picture shows as many dots as the page states.
        assert seen["on"] == round(float(seen["count"])), where


def states(lesson: Lesson) -> Iterator[tuple[int, bool, str]]:
    """Yield each step, whether its answer is revealed, and its link; questions come first."""
    for place in range(len(lesson.steps)):
        question, link = lesson.question_at(place), f"lesson={lesson.number}&step={place + 1}"
        yield place, False, link
        if question is not None:
            bet = question.right if question.axis is not None else question.right + 1
            yield place, True, f"{link}&bet={bet:g}&moved=more"


@pytest.mark.parametrize("several", [lessons()[::2], lessons()[1::2]], ids=["odd", "even"])
def test_the_picture_has_the_screen(
    page: Page, server: Server, several: tuple[Lesson, ...]
) -> None:
    """On five screens, each state keeps the picture's share, without scrolling or cut-off parts."""
    every = [(lesson, *state) for lesson in several for state in states(lesson)]
    scenes: set[str] = set()
    for number, (lesson, place, answer, query) in enumerate(every):
        (travel if number else open_app)(page, f"{server.url}/guide?v=1&{query}")
        expect(page.locator(".dps-where select")).to_have_value(str(lesson.number))
        expect(page.locator(".dps-where")).to_contain_text(f"{place + 1} of {len(lesson.steps)}")
        expect(page.locator(".dps[data-ready]")).to_be_visible()
        then = expect(page.locator(".dps-then"))
        then.not_to_be_empty() if answer else then.to_be_empty()
        # Alternate the order of sizes: a page that already has a size is not laid out again.
        for size in (*SCREENS, *PHONES)[:: -1 if number % 2 else 1]:
            sizes = measured(page, size)
            where = f"{query} at {size}: {sizes}"
            assert sizes["words"] <= 14, where
            assert sizes["outside"] <= 1, where  # The epsilon does not cover the picture.
            assert sizes["apart"] <= 1, where  # All private pictures have the same place.
            if size in SCREENS:
                on_a_screen(sizes, size, where)
                continue
            assert 0.38 <= sizes["tall"] <= 0.42, where
            assert sizes["wide"] <= 0, where
            assert sizes["end"] >= size[1] - 1, where  # No empty space is below the words.
            assert sizes["headline"] >= 24, where
            assert 0 <= sizes["scrolled"] <= 70, where  # The picture stays while the words scroll.
            if number == 0 and lesson is lessons()[0]:
                assert turned(page) is False, where
                page.emulate_media(color_scheme="dark")
                assert page.locator(".dps-cloud").evaluate(LIGHT), where
        page.locator(".dps-pic").evaluate(WITHOUT_ROOM)
        # In presentation, one test for each kind of picture is enough.
        if answer and lesson.steps[place].scene not in scenes:
            scenes.add(lesson.steps[place].scene)
            with rerun(page):
                page.keyboard.press("p")
            expect(page.locator(".dps[data-present][data-ready]")).to_be_visible()
            for size in SCREENS:
                sizes = measured(page, size)
                on_a_screen(sizes, size, f"{query} presented at {size}: {sizes}")
                assert sizes["top"] == 0, sizes
            with rerun(page):
                page.keyboard.press("p")
    assert scenes == {one.steps[place].scene for one, place, shown, _ in every if shown}


# In presentation, return the pictures' share of the screen and the elements outside of it.
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
    covered: Math.max(...shown.map((one, at) =>
      one.querySelector(".dpv-head").getBoundingClientRect().bottom - boxes[at].top)),
    clear: film[0].width ? film[0].left - asked.getBoundingClientRect().right : 99,
    words: ask.textContent.split(/\\s+/).length,
    headline: parseFloat(getComputedStyle(ask).fontSize),
    controls: [...board.querySelectorAll("input, .dpv-button")]
      .filter(one => one.getClientRects().length).length,
  };
}
"""


def staged(page: Page, board: Locator) -> dict[str, Any]:
    """Return the measures of an Explore figure, checked at the three screens."""
    for size in SCREENS:
        sizes = measured(page, size, board)
        where = f"{size}: {sizes}"
        assert sizes["share"] >= PAIR, where
        assert sizes["out"] <= 0.5, where
        assert sizes["over"] <= 0, where
        assert sizes["spread"] <= 1, where
        assert sizes["words"] <= 14, where
        assert sizes["clear"] >= 8, where  # Earlier epsilons are beside the question.
        assert sizes["headline"] >= 28, where
        assert sizes["controls"] == 2, where  # The two controls set epsilon and leave.
    return sizes


def test_explore_is_presented_on_the_stage(page: Page, server: Server) -> None:
    """A link presents the exact result and the best valid mechanism; a tap shows the others."""
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5&stage=yes")
    board = page.locator(".dpv[data-present]")
    first = staged(page, board)
    assert first["columns"][0] == "exact", first
    best = first["columns"][1]
    assert len(first["others"]) == 5
    scrubber = page.get_by_role("slider", name="Epsilon")
    film = page.get_by_role("list", name="Seen so far")
    expect(film.get_by_role("listitem")).to_have_count(1)
    start = scrubber.get_attribute("aria-valuetext")
    with rerun(page):
        scrubber.press("ArrowLeft")
    expect(film.get_by_role("listitem")).to_have_count(2)
    sizes = staged(page, board)
    assert sizes["columns"] == first["columns"]  # A change of epsilon removes no column.
    assert (first["film"], sizes["film"]) == (1, 2)
    pictures = film.locator("canvas").evaluate_all("all => all.map(one => one.toDataURL())")
    assert len(set(pictures)) == 2
    with rerun(page):  # A click on an earlier picture returns to its epsilon.
        film.get_by_role("button").first.click()
    expect(scrubber).to_have_attribute("aria-valuetext", start or "")
    expect(film.get_by_role("button").first).to_have_attribute("aria-current", "true")
    expect(film.get_by_role("listitem")).to_have_count(2)
    board.get_by_role("button", name="Wishart difference").click()
    more = staged(page, board)
    assert more["columns"] == ["exact", "wishart_difference"], more
    said = re.compile(r"Wishart difference keeps .+ of the structure\. A guess .*a coin: 50")
    expect(board.locator(".dpv-answer")).to_have_text(said)
    expect(board.locator("[data-place=chosen] .dpv-distance")).to_be_visible()
    small = measured(page, (700, 450), board)  # At 200 % no text covers a picture or is cut.
    assert (small["out"] <= 0.5, small["over"] <= 0, small["covered"] <= 0) == (True,) * 3, small
    assert {*more["others"], "wishart_difference"} == {*first["others"], best}
    with rerun(page):
        page.keyboard.press("Escape")
    assert "stage=" not in page.url
    expect(page.locator(".dpv-col").filter(visible=True)).to_have_count(7)
