"""Who cannot see the screen, or uses no mouse: axe-core, a keyboard walk and zoom on every page.

axe-core travels in the wheel of axe-playwright-python, so nothing is fetched. What Streamlit's own
elements do wrong is listed in ``STREAMLITS_OWN``; everything else must be clean. A page is loaded
once, and looked at in both widths and both themes: it follows the system's. In the dark its shape
is looked at as well. Of a page that is drawn a part at a time all is looked at with its first part,
and then each other part by itself. Colours are looked at in each width and theme, and what else
axe-core asks in each width and in each theme.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import axe_playwright_python
import pytest
from playwright.sync_api import ElementHandle, Page, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from dpviz.mechanisms import featured
from tests.e2e import parts
from tests.e2e.harness import Server, open_app, wait_idle
from tests.e2e.test_looks import brightness, check_shape
from tests.ui.driver import FIRST, PAGES

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")

# rule -> what Streamlit 1.67 draws. docs/accessibility.md says what is wrong with each.
STREAMLITS_OWN = {
    # the menu of a narrow window: groups of links are div in a ul
    "list": '<ul data-testid="stSidebarNavItems"',
    "listitem": "<li class=",
    # the uploader's drop zone: a focusable section with the role presentation
    "presentation-role-conflict": 'data-testid="stFileUploaderDropzone"',
}
PLOTS = '[data-testid="stPlotlyChart"]'
LAPTOP: ViewportSize = {"width": 1400, "height": 900}
PHONE: ViewportSize = {"width": 420, "height": 900}
TWICE: ViewportSize = {"width": 700, "height": 450}  # a laptop's window at 200 %
SMALL = "table=iris&trials=5&m=gaussian,laplace"
# Another epsilon and k than a first visitor's, with few draws.
LINK = "v=1&trials=5&epsilon=2&k=3"
MANY = f"m={','.join(featured())},laplace"  # what a first visitor sees and one mechanism more
# How many are compared, and how wide the table is, is seen on these; elsewhere two will do.
WIDE = {FIRST: MANY, "tradeoffs": f"table=iris&{MANY}"}
TWO = "table=iris&m=gaussian,laplace"

# Whether the page has taken over the system's theme.
_DARK = """() => getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor
  .match(/\\d+/g).slice(0, 3).every(part => part < 40)"""

# All that axe-core asks by itself, or of it what has a tag; the stricter contrast it does not ask.
_RUN = """([root, only]) => axe.run(root || document, {resultTypes: ['violations'], ...(only && {
  runOnly: axe.getRules([only]).filter(rule => !rule.tags.includes('wcag2aaa'))
    .map(rule => rule.ruleId)})})"""
COLOURS = "cat.color"

# What the focus looked like at each stop, and what the same element looks like without it. A stop
# is looked at when the next key goes down: by then it has been painted.
_WALK = """root => {
  const look = e => {
    const seen = [];
    for (let at = e, up = 0; at instanceof Element && up < 5; up++) {
      const s = getComputedStyle(at);
      seen.push(s.outlineStyle === 'none' ? '' : s.outlineWidth + s.outlineColor, s.boxShadow,
        s.borderTopColor + s.borderTopWidth, s.backgroundColor, s.textDecorationLine);
      at = at.parentElement || at.getRootNode().host;
    }
    return seen.join('|');
  };
  const inside = e => { // also from within a component's own tree
    for (let at = e; at; at = at.getRootNode().host) if (at.closest(root)) return true;
    return false;
  };
  const stops = [];
  window.dpvizWalk?.end.abort(); // an earlier walk looks no more
  const end = new AbortController(), heard = {capture: true, signal: end.signal};
  window.dpvizWalk = {stops, look, root, end, over: false};
  const last = () => stops[stops.length - 1];
  document.addEventListener('keydown', () => {
    const now = last();
    if (now && !now.look) now.look = look(now.e);
  }, heard);
  document.addEventListener('focusin', event => {
    const to = event.composedPath()[0];
    // A grid hands the focus on to its cell, soon or late; what is seen is the grid's canvas.
    const e = to.closest('canvas') ?? to;
    if (last()?.e === e) return;
    const left = root && !inside(e) && stops.some(stop => inside(stop.e));
    if (left || stops.some(stop => stop.e === e)) window.dpvizWalk.over = true;
    const box = e.getBoundingClientRect();
    stops.push({e, look: '', off: box.right <= 0 || box.left >= innerWidth});
  }, heard);
}"""
_WALKED = """() => {
  document.activeElement.blur();
  const {stops, look, root} = window.dpvizWalk;
  const name = e => (e.getAttribute('aria-label') || e.innerText || e.getAttribute('data-testid')
    || e.tagName).trim().split('\\n').pop().slice(0, 50);
  const reached = new Set(stops.map(stop => stop.e));
  const named = test => [...new Set(stops.filter(
    stop => stop.e.isConnected && test(stop)).map(stop => name(stop.e)))];
  // What a pointer can press in the page and the keyboard never reached. One of a group of radios
  // or tabs takes the focus for all of them.
  const missed = [...document.querySelectorAll((root || '[data-testid="stMain"]')
    + ' :is(button, a[href], input, select, textarea, summary)')].filter(e =>
      e.checkVisibility({visibilityProperty: true, opacityProperty: true})
      && !e.disabled && e.tabIndex >= 0 && !reached.has(e) && !e.closest(
    '[role="radiogroup"], [role="tablist"], [role="toolbar"], [data-testid="stDataFrame"]')
      && e.getBoundingClientRect().width > 1).map(name);
  const unseen = stops.filter(
    stop => stop.e.isConnected && stop.look && stop.look === look(stop.e)).map(stop => stop.e);
  window.dpvizWalk.unseen = [...new Set(unseen)];
  return {missed, off: named(stop => stop.off), stops: stops.length,
    unseen: window.dpvizWalk.unseen.map(name)};
}"""
_LOST = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const lost = main.scrollWidth > main.clientWidth + 1 ? ['the page scrolls sideways'] : [];
  const parts = 'h1, h2, h3, button, input, [data-testid="stMarkdown"] p';
  for (const e of main.querySelectorAll(parts)) {
    if (!e.checkVisibility()) continue;
    // within a row that may be swiped, or a box that may be scrolled, nothing is lost
    let swiped = false;
    for (let at = e.parentElement; at && at !== main; at = at.parentElement) {
      swiped ||= /auto|scroll/.test(getComputedStyle(at).overflowX)
        && at.scrollWidth > at.clientWidth;
    }
    const box = e.getBoundingClientRect();
    if (!swiped && box.width > 1 && (box.right > innerWidth + 1 || box.left < -1)) {
      lost.push((e.innerText || e.getAttribute('aria-label') || e.tagName).slice(0, 50));
    }
  }
  return lost;
}"""

# Cells of a grid are painted, so axe sees none of them: what a screen reader reads is a table
# inside the canvas, which is filled a moment after the picture, and again when a cell is entered.
_GRIDS = """() => [...document.querySelectorAll('[data-testid="data-grid-canvas"]')].flatMap(e => {
  const table = e.querySelector('table[role="grid"]');
  const texts = role => [...(table?.querySelectorAll(`[role="${role}"]`) ?? [])]
    .filter(cell => cell.textContent.trim()).length;
  const named = e.closest('[role="region"][aria-label]');
  const name = named?.getAttribute('aria-label') || '';
  return name && texts('columnheader') > 0 && texts('gridcell') > 1 ? []
    : [`${name || 'no name'}: ${texts('columnheader')} heads, ${texts('gridcell')} cells, `
      + `${e.clientWidth} px wide`];
})"""

# On paper nothing can be scrolled: all of the content must be part of the document's own height.
_PRINTED = """() => {
  const wrong = [];
  for (const part of ['stSidebar', 'stHeader']) {
    const e = document.querySelector(`[data-testid="${part}"]`);
    if (e && e.checkVisibility()) wrong.push(`${part} is printed`);
  }
  const content = document.querySelector('[data-testid="stMainBlockContainer"]');
  const all = content.getBoundingClientRect();
  const height = document.documentElement.scrollHeight;
  if (all.height < 100) wrong.push('nothing is there');
  if (all.bottom + scrollY > height + 2) wrong.push(`${all.bottom} of ${height} px`);
  for (let at = content; at; at = at.parentElement) {
    const s = getComputedStyle(at);
    if (/auto|scroll|hidden/.test(s.overflowY) && at.scrollHeight > at.clientHeight + 2
        && at !== document.documentElement && at !== document.body) {
      wrong.push(`cut off by ${at.dataset.testid || at.className}`);
    }
  }
  return wrong;
}"""


def violations(page: Page, root: str | None = None, only: str | None = None) -> list[str]:
    """Return what axe finds on the page as it is, or in one part, but for Streamlit's own.

    With ``only``, by the rules that have this tag.
    """
    found = []
    for rule in page.evaluate(_RUN, [root, only])["violations"]:
        own = STREAMLITS_OWN.get(rule["id"])
        for node in rule["nodes"]:
            if own is None or own not in node["html"]:
                summary = " ".join((node.get("failureSummary") or "").split())
                found.append(f"{rule['id']}: {node['html'][:120]} | {summary[:200]}")
    return found


@pytest.mark.first
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_on_a_page(page: Page, server: Server, name: str) -> None:
    path = "" if name == FIRST else name
    open_app(page, f"{server.url}/{path}?{LINK}&{WIDE.get(name, TWO)}")
    page.add_script_tag(content=AXE)
    assert violations(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_deep_link_on_a_fresh_server_can_be_read_and_walked(
    page: Page, fresh_server: Callable[[], Server], name: str
) -> None:
    page.set_viewport_size(LAPTOP)
    page.emulate_media(color_scheme="light")
    path, query = "" if name == FIRST else name, f"{LINK}&{WIDE.get(name, TWO)}"
    open_app(page, f"{fresh_server().url}/{path}?{query}")
    assert page.get_by_test_id("stAlertContentError").count() == 0
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    box = page.locator(".st-key-bar").get_by_role("textbox", name="Epsilon")
    if box.count():  # a page that ignores the settings does not show them
        expect(box).to_have_value("2")
    seen = urlsplit(page.url)
    assert (seen.path, parse_qs(seen.query)) == (f"/{path}", parse_qs(query))
    page.add_script_tag(content=AXE)
    if name == FIRST:
        expect(page.locator(".dpv-col")).to_have_count(8)
    found, charts = [], 0
    for number, part in enumerate(parts.each(page, name)):
        root = parts.SHOWN if number else None
        seen = looked_at(page, root, ON_A_PHONE.get(name), back=number % 2 == 1)
        found += [f"{part}: {text}" for text in seen]
        charts += page.locator(PLOTS).count()
    assert name != "claims" or charts == 7
    assert not found, "\n".join(found[:20])


def claims_fit(page: Page) -> None:
    """Check that each chart of Claims is drawn, named at length and large enough to be read."""
    for chart in page.locator(PLOTS).all():
        assert len(chart.get_attribute("aria-label") or "") > 40
        assert chart.locator("svg.main-svg").count() > 0
        box = chart.bounding_box()
        assert box is not None
        assert 200 <= box["width"] <= PHONE["width"]
        assert box["height"] >= 300


def curve_fits(page: Page) -> None:
    """Check that what is left of the chart lies on the screen; names beside lines are cut off."""
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    for part in (".st-key-curve", ".st-key-curve .nsewdrag", ".st-key-curve .legend"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"], part


ON_A_PHONE = {"claims": claims_fit, "tradeoffs": curve_fits}


# Each theme and size, and what axe-core is asked there, if anything.
LOOKS: tuple[tuple[Literal["light", "dark"], ViewportSize, str | None], ...] = (
    ("light", LAPTOP, None),
    ("light", TWICE, ""),
    ("light", PHONE, COLOURS),
    ("dark", PHONE, None),
    ("dark", LAPTOP, COLOURS),
)
NAMES = {LAPTOP["width"]: "laptop", PHONE["width"]: "phone"}


def looked_at(
    page: Page,
    root: str | None = None,
    on_a_phone: Callable[[Page], None] | None = None,
    *,
    back: bool = False,
) -> list[str]:
    """Look at the page, or only at the part of it that a selector names, in every way.

    It is light and as wide as a laptop before, and dark after; with ``back`` it is the other way
    round, as every turn draws all pictures anew.
    """
    found = []
    for theme, size, only in LOOKS[:: -1 if back else 1]:
        turn(page, theme, size)
        if size is TWICE:
            found += [f"lost at 200 %: {text}" for text in page.evaluate(_LOST)]
            page.emulate_media(media="print")
            found += [f"printed: {text}" for text in page.evaluate(_PRINTED)]
            page.emulate_media(media="screen")
            continue
        if theme == "dark":
            assert brightness(page) < 40
            check_shape(page)
            if size is PHONE and on_a_phone is not None:
                on_a_phone(page)
        where = f"{theme}, {NAMES[size['width']]}"
        found += [f"{where}: {text}" for text in violations(page, root, only)]
        if (theme, size) == ("light", LAPTOP):
            found += unread(page)
            found += walked(page, root)
    return found


def turn(page: Page, theme: Literal["light", "dark"], size: ViewportSize) -> None:
    """Give the page a theme and a size that it may have already."""
    dark = page.evaluate(_DARK)
    if dark is (theme == "dark") and page.viewport_size == size:
        return
    page.set_viewport_size(size)
    if dark is not (theme == "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(_DARK if theme == "dark" else f"() => !({_DARK})()")
    wait_idle(page)


def unread(page: Page, patience: float = 5_000) -> list[str]:
    """Return the grids that have no name, no heads or no cells for a screen reader.

    The table of a grid that nobody has entered may stay empty, as happened once in many runs:
    what is asked then is what somebody hears who goes into its cells.
    """
    for enter in (False, True):
        if enter:
            for grid in page.locator('[data-testid="data-grid-canvas"]').all():
                grid.press("ArrowDown")
        try:
            page.wait_for_function(f"() => ({_GRIDS})().length === 0", timeout=patience)
        except PlaywrightTimeout:
            continue
        return []
    return [f"grid: {text}" for text in page.evaluate(_GRIDS)]


def walked(page: Page, root: str | None = None) -> list[str]:
    """Walk a page by the Tab key alone, or one part from what chooses it to its end.

    Returns what the walk misses, and where the focus is not seen.
    """
    if root is not None:
        page.locator(parts.CHOOSES).focus()
    page.evaluate(_WALK, root)
    for _ in range(40):
        for _ in range(15 if root is None else 5):
            page.keyboard.press("Tab")
        if page.evaluate("() => window.dpvizWalk.over"):  # round once, or out of the part
            break
    told = page.evaluate(_WALKED)
    assert told["stops"] > (10 if root is None else 0), told
    # The thumb of a slider is no element of its own, and a grid draws its mark a moment after the
    # key: only their pictures say whether they are marked.
    unseen = [
        name
        for at, name in enumerate(told["unseen"])
        if not marked(page, page.evaluate_handle(f"window.dpvizWalk.unseen[{at}]").as_element())
    ]
    return [
        *(f"no focus to be seen: {text}" for text in unseen),
        *(f"focus out of sight: {text}" for text in told["off"]),
        *(f"not reached by Tab: {text}" for text in told["missed"]),
    ]


def marked(page: Page, element: ElementHandle | None) -> bool:
    """Return whether an element's picture changes when Tab brings the focus to it."""
    if element is None or element.bounding_box() is None:
        return False
    element.focus()
    page.keyboard.press("Shift+Tab")  # by a key, as only then the focus counts as visible
    plain = element.screenshot()
    page.keyboard.press("Tab")
    until = time.monotonic() + 2  # one that is never marked is reported after this
    while time.monotonic() < until:
        if element.screenshot() != plain:
            return True
    return False


def test_what_is_wrong_is_found(page: Page, server: Server) -> None:
    """The control: no text, grey on grey, a hidden focus, a control out of reach, one cut off."""
    open_app(page, f"{server.url}/mechanisms?{SMALL}")
    page.add_script_tag(content=AXE)
    page.evaluate(
        """() => { const box = document.createElement('div');
        box.innerHTML = '<img src="data:,"><p style="color:#bbb;background:#ccc">faint</p>'
          + '<button style="outline:none!important" class="hid">hidden focus</button>'
          + '<button style="position:absolute;left:2000px">cut off</button>';
        const style = document.createElement('style');
        style.textContent = '.hid:focus-visible{outline:none!important}';
        box.append(style);
        const late = document.createElement('button');
        late.textContent = 'out of reach';
        late.addEventListener('focusin', event => event.stopImmediatePropagation(), true);
        box.append(late);
        document.querySelector('[data-testid="stMain"]').prepend(box); }"""
    )
    rules = {text.split(":")[0] for text in violations(page)}
    assert {"image-alt", "color-contrast"} <= rules
    assert {text.split(":")[0] for text in violations(page, only=COLOURS)} == {"color-contrast"}
    assert "no focus to be seen: hidden focus" in walked(page)
    assert "cut off" in page.evaluate(_LOST)


def test_a_grid_that_cannot_be_read_is_found(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/precision?{SMALL}")
    assert unread(page) == []
    painted = "document.querySelector('[data-testid=\"data-grid-canvas\"]')"
    page.evaluate(f"() => {painted}.parentElement.append({painted}.cloneNode())")
    name = "Recovery with these shares and with equal shares"
    (found,) = unread(page, 100)
    assert found.startswith(f"grid: {name}: 0 heads, 0 cells, ")
