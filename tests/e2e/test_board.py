"""The Explore figure in a browser: one screen, scrubbed without the server, pinned, presented."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, parse_qsl, urlsplit

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, WebSocket, expect

from tests.e2e.harness import (
    LEAST_TEXT,
    Server,
    new_page,
    open_app,
    open_popover,
    problems_of,
    rerun,
    wait_idle,
)
from tests.e2e.test_journeys import send, working_view

SCREEN = {"width": 1400, "height": 900}
FRAME_MS = 20
# Return the frame times of one drag in milliseconds, which the page measures itself.
_FRAMES = """
() => {
  window.dpvizFrameTimes = [];
  let last = performance.now();
  const tick = now => {
    window.dpvizFrameTimes.push(now - last);
    last = now;
    window.dpvizTick = requestAnimationFrame(tick);
  };
  window.dpvizTick = requestAnimationFrame(tick);
}
"""
_MEDIAN = """
() => {
  cancelAnimationFrame(window.dpvizTick);
  const times = window.dpvizFrameTimes.slice(2).sort((a, b) => a - b);
  return [times[Math.floor(times.length / 2)], times.length];
}
"""
# Return a checksum of the image on a canvas, which tells whether the image has changed.
_INK = """
canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let sum = 0;
  for (let i = 0; i < data.length; i += 1) sum = (sum * 31 + data[i]) | 0;
  return sum;
}
"""
_PAINTED = "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => go())))"
# Record every state of a pressed button, so that the test misses no short state.
_WATCH_PRESSED = """
button => {
  window.dpvizPressed = [];
  const states = window.dpvizPressed;
  new MutationObserver(() => {
    const now = button.getAttribute('aria-pressed');
    if (states[states.length - 1] !== now) states.push(now);
  }).observe(button, {attributes: true, attributeFilter: ['aria-pressed']});
}
"""
# Record where the figure's elements are in each painted frame.
_WATCH_PLACES = """
board => {
  const parts = ['.dpv-ask', '.dpv-bar', '.dpv-grid', '.dpv-recovery', '.dpv-legend', '.dpv-strip'];
  window.dpvizSeen = new Set();
  const look = () => {
    window.dpvizSeen.add(JSON.stringify(parts.map(name => {
      const {top, left, width, height} = board.querySelector(name).getBoundingClientRect();
      return [name, top, left, width, height].join(' ');
    })));
    window.dpvizLooking = requestAnimationFrame(look);
  };
  look();
}
"""
_SEEN_PLACES = "() => { cancelAnimationFrame(window.dpvizLooking); return [...window.dpvizSeen]; }"
_ON_THE_BOARD = """
([x, y]) => {
  const inside = document.elementFromPoint(x, y).shadowRoot;
  return Boolean(inside?.elementFromPoint(x, y)?.closest('.dpv'));
}
"""


@pytest.fixture
def page(page: Page) -> Page:
    """A page of a projector's or laptop's size, with animations."""
    page.set_viewport_size(SCREEN)  # type: ignore[arg-type]
    page.emulate_media(reduced_motion="no-preference")
    return page


def sent_by(page: Page) -> list[int]:
    """Return a list that grows by one for each message to the server."""
    frames: list[int] = []

    def follow(stream: WebSocket) -> None:
        stream.on("framesent", lambda _: frames.append(1))

    page.on("websocket", follow)
    return frames


def scrubber(page: Page) -> Locator:
    return page.get_by_role("slider", name="Epsilon")


def drag(page: Page, start: float, end: float, steps: int = 40) -> None:
    """Drag the scrubber between two shares of its width; do not release the mouse button."""
    box = scrubber(page).bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    for step in range(1, steps + 1):
        page.mouse.move(box["x"] + (start + (end - start) * step / steps) * box["width"], y)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => done(null)))")


def marks(page: Page, key: str) -> dict[str, object]:
    """Return checksums of a column's three drawings, and its recovery."""
    column = page.locator(f'.dpv-col[data-key="{key}"]')
    ink: dict[str, object] = {
        row: column.locator(f"canvas.dpv-{row}").evaluate(_INK)
        for row in ("picture", "spectrum", "distance")
    }
    ink["recovery"] = column.locator(".dpv-value").inner_text()
    return ink


def pinned_of(page: Page) -> dict[str, str]:
    """Return the pinned setting that the link carries."""
    (pin,) = parse_qs(urlsplit(page.url).query)["pin"]
    return dict(parse_qsl(pin))


@pytest.mark.first
def test_dragging_needs_no_server_and_letting_go_sets_the_link(page: Page, server: Server) -> None:
    requests = sent_by(page)
    open_app(page, f"{server.url}/?v=1")
    before, count, link = marks(page, "gaussian"), len(requests), page.url
    truth = page.locator('.dpv-col[data-key="exact"] canvas.dpv-spectrum').evaluate(_INK)
    states = page.locator('.dpv-col[data-key="analyze_gauss"]')
    expect(states).to_have_attribute("data-state", "false")
    page.locator(".dpv").evaluate(_WATCH_PLACES)
    page.evaluate(_FRAMES)
    drag(page, 0.56, 0.1)
    median, frames = page.evaluate(_MEDIAN)
    assert len(page.evaluate(_SEEN_PLACES)) == 1, "the board jumps during the drag"
    during = marks(page, "gaussian")
    for row, value in before.items():
        assert during[row] != value, f"{row} does not follow the drag"
    # The exact spectrum stays. A status changes at the epsilon from which its claim holds.
    exact = page.locator('.dpv-col[data-key="exact"] canvas.dpv-spectrum').evaluate(_INK)
    assert exact == truth
    expect(states).not_to_have_attribute("data-state", "false")
    assert len(requests) == count, "a message was sent during the drag"
    assert page.url == link
    assert frames >= 40
    assert median <= FRAME_MS
    with rerun(page):
        page.mouse.up()
    assert len(requests) > count  # Control: the test detects a message to the server.
    assert "epsilon=0.0" in page.url
    text = page.locator(".dpv-epsilon").inner_text()
    expect(page.get_by_role("textbox", name="Epsilon")).to_have_value(text)
    # In the publishable view, dragging needs no server either.
    page.get_by_role("button", name="publishable", exact=True).click()
    picture = page.locator('.dpv-col[data-key="gaussian"] canvas.dpv-picture')
    points, count = picture.evaluate(_INK), len(requests)
    page.evaluate(_FRAMES)
    drag(page, 0.1, 0.56)
    median, frames = page.evaluate(_MEDIAN)
    assert picture.evaluate(_INK) != points
    assert len(requests) == count, "a message was sent during the drag of the publishable view"
    assert frames >= 40
    assert median <= FRAME_MS
    page.mouse.up()
    assert problems_of(page) == ""


def test_a_pin_shows_ghosts_and_travels(
    page: Page, server: Server, other_context: BrowserContext
) -> None:
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5&epsilon=0.2")
    plain = marks(page, "gaussian")
    with rerun(page):
        page.get_by_role("button", name="pin", exact=True).click()
    assert pinned_of(page)["epsilon"] == "0.2"
    with rerun(page):
        page.get_by_role("textbox", name="Epsilon").fill("2")
        page.keyboard.press("Enter")
    expect(page.locator(".dpv-epsilon")).to_have_text("2")
    ghost = page.locator('.dpv-col[data-key="gaussian"] .dpv-ghost')
    expect(ghost).to_have_text(f"pin {plain['recovery']}")
    ghosts, link = marks(page, "gaussian"), page.url
    # Without the pin, the same setting has another image, because the pinned marks are missing.
    with rerun(page):
        page.get_by_role("button", name="unpin").click()
    bare = marks(page, "gaussian")
    assert bare["recovery"] == ghosts["recovery"]
    for row in ("picture", "spectrum", "distance"):
        assert bare[row] != ghosts[row]
    guest = new_page(other_context)
    guest.set_viewport_size(SCREEN)  # type: ignore[arg-type]
    guest.emulate_media(reduced_motion="no-preference")
    open_app(guest, link)
    assert marks(guest, "gaussian") == ghosts
    assert guest.url == link
    with rerun(guest):
        guest.get_by_role("button", name="swap").click()
    assert "&epsilon=0.2" in guest.url
    assert pinned_of(guest)["epsilon"] == "2"
    expect(guest.locator(".dpv-epsilon")).to_have_text("0.2")
    assert marks(guest, "gaussian")["recovery"] == plain["recovery"]
    assert problems_of(guest) == ""


def test_presenting_hides_all_but_the_board_and_a_column_opens_large(
    page: Page, server: Server
) -> None:
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    size = "e => parseFloat(getComputedStyle(e).fontSize)"
    name = page.locator('.dpv-col[data-key="exact"] .dpv-name')
    before = name.evaluate(size)
    with rerun(page):
        page.get_by_role("button", name="present").click()
    assert "stage=yes" in page.url
    assert name.evaluate(size) >= 1.3 * before
    pair = page.locator(".dpv-col[data-place=truth], .dpv-col[data-place=chosen]")
    expect(pair).to_have_count(2)
    board = page.locator(".dpv").bounding_box()
    assert board == {"x": 0, "y": 0, **SCREEN}
    # In presentation, the figure covers these points: the sidebar, menu and settings are hidden.
    for point in ([20, 20], [300, 30], [30, 500], [1380, 20], [700, 880]):
        assert page.evaluate(_ON_THE_BOARD, point), point
    page.keyboard.press("Escape")
    expect(pair).to_have_count(1)  # All columns are side by side again.
    assert name.evaluate(size) == before
    # A click on a column shows it in a large size, together with its evidence.
    wait_idle(page)
    with rerun(page):
        page.locator('.dpv-col[data-key="wishart"] .dpv-head').click()
    expect(page.locator(".dpv-said")).to_contain_text("Principal angles")
    expect(page.locator(".dpv-col[data-place=chosen]")).to_contain_text("claim is false")
    expect(page.locator(".dpv-answer")).to_contain_text(re.compile("Wishart keeps .*No privacy"))
    for name in ("all side by side", "play"):  # The way back needs no scrolling.
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    # The exact picture stays beside the large column: same size and height, different points.
    truth, private = (page.locator(f".dpv-col[data-place={one}]") for one in ("truth", "chosen"))
    here, there = truth.bounding_box(), private.bounding_box()
    assert here is not None
    assert there is not None
    assert here["x"] + here["width"] <= there["x"]
    assert [here[of] for of in ("y", "width", "height")] == [
        pytest.approx(there[of], abs=1)
        for of in ("y", "width", "height")  # type: ignore[literal-required]
    ]
    for row in ("picture", "spectrum", "distance"):
        expect(private.locator(f"canvas.dpv-{row}")).to_be_visible()
    points = [box.locator("canvas.dpv-picture").evaluate(_INK) for box in (truth, private)]
    assert points[0] != points[1]
    drag(page, 0.56, 0.9, steps=5)
    assert truth.locator("canvas.dpv-picture").evaluate(_INK) == points[0]
    assert private.locator("canvas.dpv-picture").evaluate(_INK) != points[1]
    with rerun(page):
        page.mouse.up()
    expect(page.get_by_role("heading", name="Wishart: every number")).to_be_visible()
    # A click on a thumbnail shows its column in large, instead of the previous column.
    with rerun(page):
        page.locator(".dpv-col[data-place=thumb]").first.locator("canvas.dpv-picture").click()
    expect(private).not_to_have_attribute("data-key", "wishart")
    with rerun(page):
        page.keyboard.press("Escape")
    expect(private).to_have_count(0)
    expect(page.get_by_role("heading", name="Wishart: every number")).to_have_count(0)


def test_fresh_noise_and_every_draw(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5&epsilon=0.5")
    before = marks(page, "gaussian")
    with rerun(page):
        page.get_by_role("button", name="fresh draw").click()
    assert "seed=1" in page.url
    after = marks(page, "gaussian")
    assert after["picture"] != before["picture"]
    assert after["distance"] != before["distance"]
    button = page.get_by_role("button", name="5 draws")
    button.evaluate(_WATCH_PRESSED)
    with rerun(page):
        button.click()
    page.wait_for_function("() => window.dpvizPressed.join() === 'true,false'")
    expect(button).to_have_attribute("aria-pressed", "false")  # The animation has ended by itself.
    assert marks(page, "gaussian") == after
    # The legend highlights the class under the pointer; each class changes the picture.
    picture = page.locator('.dpv-col[data-key="gaussian"] canvas.dpv-picture')
    kinds = page.locator(".dpv-legend [data-kind]")
    expect(kinds).to_have_count(3)
    lit = set()
    for kind in kinds.all():
        kind.hover()
        page.evaluate(_PAINTED)
        lit.add(picture.evaluate(_INK))
    assert len(lit) == 3
    page.mouse.move(5, 5)
    page.evaluate(_PAINTED)
    assert picture.evaluate(_INK) == after["picture"]
    assert after["picture"] not in lit


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (1366, 768), (1400, 900)])
def test_a_projectors_first_screen_has_every_row_the_slider_and_the_buttons(
    page: Page, server: Server, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    open_app(page, f"{server.url}/")
    page.locator(".dpv[data-complete]").wait_for()
    kinds = ("do-present", "box-picture", "box-spectrum", "box-distance", "recovery", "stripbox",
             "bar", "buttons")  # fmt: skip
    boxes = [page.locator(f".dpv-{kind}").first.bounding_box() for kind in kinds]
    tops = [box["y"] for box in boxes if box]
    assert len(tops) == len(boxes)
    assert tops == sorted(tops)
    assert all(box["y"] + box["height"] <= height for box in boxes if box)
    columns = [one.bounding_box() for one in page.locator(".dpv-col").all()]
    assert len({round(box["y"]) for box in columns if box}) == 1  # All columns share the same row.
    # Valid claims come first, by recovery; false claims come last. No text is below 15 pixels.
    fails = page.locator(".dpv-col:not([data-key=exact])").evaluate_all(
        "all => all.map(one => one.dataset.state === 'false')"
    )
    assert fails == sorted(fails)
    assert True in fails
    assert page.locator(".dpv").evaluate(LEAST_TEXT) >= 15
    open_popover(page, "Upload")
    assert page.get_by_test_id("stFileUploader").evaluate(LEAST_TEXT) >= 15


@pytest.mark.first
def test_a_phone_shows_epsilon_and_a_picture(browser: Browser, server: Server) -> None:
    session = browser.new_context(viewport={"width": 420, "height": 800}, has_touch=True)
    page = new_page(session)
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5")
    for part in (".dpv-scrub", ".dpv-epsilon", "canvas.dpv-picture"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert 0 <= box["y"] < box["y"] + box["height"] <= 800
        assert 0 <= box["x"] < box["x"] + box["width"] <= 420
    # Two pictures are side by side. A tap on a name below shows that mechanism's picture second.
    truth = page.locator(".dpv-col[data-place=truth]")
    private = page.locator(".dpv-col[data-place=chosen]")
    here, there = truth.bounding_box(), private.bounding_box()
    assert here is not None
    assert there is not None
    assert 0 <= here["x"] < here["x"] + here["width"] <= there["x"]
    assert there["x"] + there["width"] <= 420
    assert here["y"] == there["y"]
    bar = page.locator(".dpv-axis")
    foot = bar.bounding_box()
    key = private.get_attribute("data-key")
    with rerun(page):
        page.locator(".dpv-col[data-place=thumb] .dpv-head").first.tap()
    expect(private).not_to_have_attribute("data-key", key or "")
    # Pinning a setting moves nothing on the page.
    pin = page.locator(".dpv-do-pin")
    width = (pin.bounding_box() or {}).get("width")
    with rerun(page):
        pin.tap()
    expect(pin).to_have_attribute("aria-pressed", "true")
    assert [bar.bounding_box(), (pin.bounding_box() or {}).get("width")] == [foot, width]
    # The slider of epsilon stays at the same place on the screen while the page scrolls.
    before = page.locator(".dpv-scrub").bounding_box()
    page.get_by_test_id("stMain").evaluate("e => e.scrollTo(0, 600)")
    assert page.locator(".dpv-scrub").bounding_box() == before
    # In presentation, the question, both pictures and epsilon fit on one screen.
    open_app(page, f"{server.url}/?v=1&table=iris&trials=5&stage=yes")
    board = page.locator(".dpv")
    expect(board).to_have_attribute("data-present", "")
    assert board.bounding_box() == {"x": 0, "y": 0, "width": 420, "height": 800}
    for part in (".dpv-ask", ".dpv-scrub", ".dpv-strip", ".dpv-col[data-place=chosen]"):
        box = page.locator(part).first.bounding_box()
        assert box is not None, part
        assert 0 <= box["x"] < box["x"] + box["width"] <= 420, part
        assert 0 <= box["y"] < box["y"] + box["height"] <= 800, part
    picture = page.locator(".dpv-col[data-place=chosen] canvas.dpv-picture")
    points = picture.evaluate(_INK)
    page.locator(".dpv-scrub").focus()
    page.keyboard.press("Home")
    page.evaluate(_PAINTED)
    assert picture.evaluate(_INK) != points
    assert problems_of(page) == ""
    session.close()


# Collect all texts and names that people, screen readers or a text search can find.
_SAID = """
() => {
  const found = [];
  const visit = node => {
    if (node.nodeType === Node.TEXT_NODE) found.push(node.data.trim());
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (node.matches('style, script')) return;
      for (const name of ['aria-label', 'aria-valuetext', 'title', 'alt', 'placeholder']) {
        if (node.hasAttribute(name)) found.push(node.getAttribute(name));
      }
      if (node.shadowRoot) node.shadowRoot.childNodes.forEach(visit);
    }
    node.childNodes.forEach(visit);
  };
  visit(document.body);
  return found.filter(Boolean);
}
"""


# Return the positions of real rows in the frames that the browser stores.
_PLACES = """
() => [...new Set([...window.dpvizFrames.values()].flatMap(parts => [...parts.values()])
  .flatMap(told => told.frames ?? []).flatMap(frame => Object.values(frame.cells))
  .map(cell => cell.picture))]
"""


def own_table(seed: int) -> bytes:
    """Return a table of fixed shape and column names, whose values depend only on the seed."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, 4)) * [9.0, 5.0, 1.0, 10.0 ** (2 * seed)]
    kinds = np.array([f"heron{seed}", f"stork{seed}"])[(rows[:, 0] > 0).astype(int)]
    return pd.DataFrame(rows, columns=[*"abcd"]).assign(kind=kinds).to_csv(index=False).encode()


def said_on(page: Page) -> list[str]:
    """Return the page's texts without published pictures, which the budget covers."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-testid=stBidiComponentRegular], "
        "[data-testid=stBidiComponentIsolated]')].length > 0"
    )
    wait_idle(page)
    texts = page.evaluate(_SAID)
    return [text for text in texts if not text.startswith(("Published ", "Noisy "))]


@pytest.mark.first
def test_no_word_and_no_file_of_the_publishable_view_is_decided_by_the_rows(
    page: Page, server: Server
) -> None:
    """Two tables that differ in every value show the same text, except in the working view."""
    open_app(page, f"{server.url}/?v=1&table=upload&trials=5&m=gaussian,spherical&label=0")
    publishable = page.get_by_role("button", name="noise only", exact=True)
    texts, working = [], []
    for seed in (1, 2):
        send(page, "own.csv", own_table(seed))
        expect(page.locator(".dpv[data-complete]")).to_have_count(1)
        expect(publishable).to_have_attribute("aria-pressed", "true")
        if seed == 1:
            assert page.evaluate(_PLACES) == [""]  # The publishable view sends the browser no row.
        working_view(page)
        assert len(page.evaluate(_PLACES)) > 1  # Control: the working view stores rows.
        with rerun(page):
            scrubber(page).press("ArrowRight")  # The page announces a change to screen readers.
        working.append(said_on(page))
        with rerun(page):
            publishable.click()
        texts.append(said_on(page))
        with rerun(page):
            scrubber(page).press("ArrowLeft")
        texts[-1] += said_on(page)
    assert texts[0] == texts[1]
    assert not any("heron" in text or "recovers" in text for text in texts[0])
    assert set(working[0]) != set(working[1])
    assert any("heron1" in text for text in working[0])
    assert any("recovers" in text for text in working[0])
    files = {}
    for button in page.get_by_test_id("stDownloadButton").all():
        with page.expect_download() as download:
            button.get_by_role("button").click()
        files[download.value.suggested_filename] = download.value.path().read_text("utf-8")
    assert set(files) == {"dpviz-board.html", "dpviz-report.html", "dpviz.ipynb", "dpviz_view.py"}
    for name, text in files.items():
        assert "heron" not in text, name
        assert "stork" not in text, name
        assert not re.search(r"recovers \d", text), name
