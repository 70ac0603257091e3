"""Check each page for users without sight or mouse: axe-core, a keyboard walk and zoom.

axe-core comes in the wheel of axe-playwright-python, so nothing is fetched. ``STREAMLITS_OWN``
lists the faults of Streamlit's own elements; all other elements must have no fault. Each page is
loaded once and follows the system's theme, so the tests check it in two widths and two themes. In
the dark theme they also check the page's shape. If a page shows one part at a time, the tests check
the whole page with its first part, then each other part alone. They check colours in each width and
theme, axe-core's other rules once in each width and once in each theme.
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

# Elements of Streamlit 1.67 break these axe rules; docs/accessibility.md explains why.
STREAMLITS_OWN = {
    # In a narrow window, the menu's groups of links are div elements in a ul.
    "list": '<ul data-testid="stSidebarNavItems"',
    "listitem": "<li class=",
    # The uploader's drop zone can have the focus although its role is "presentation".
    "presentation-role-conflict": 'data-testid="stFileUploaderDropzone"',
}
PLOTS = '[data-testid="stPlotlyChart"]'
LAPTOP: ViewportSize = {"width": 1400, "height": 900}
PHONE: ViewportSize = {"width": 420, "height": 900}
TWICE: ViewportSize = {"width": 700, "height": 450}  # A laptop at 200 % zoom has this window size.
SMALL = "table=iris&trials=5&m=gaussian,laplace"
# This link has another epsilon and another k than a first visit, and few repetitions.
LINK = "v=1&trials=5&epsilon=2&k=3"
MANY = f"m={','.join(featured())},laplace"  # This link adds one mechanism to the usual ones.
# These pages show many mechanisms or a wide table; two mechanisms are enough elsewhere.
WIDE = {FIRST: MANY, "tradeoffs": f"table=iris&{MANY}"}
TWO = "table=iris&m=gaussian,laplace"

# Return whether the page shows the dark theme of the system.
_DARK = """() => getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor
  .match(/\\d+/g).slice(0, 3).every(part => part < 40)"""

# Run axe-core's default rules, or only the rules with a given tag, without the AAA contrast rules.
_RUN = """([root, only]) => axe.run(root || document, {resultTypes: ['violations'], ...(only && {
  runOnly: axe.getRules([only]).filter(rule => !rule.tags.includes('wcag2aaa'))
    .map(rule => rule.ruleId)})})"""
COLOURS = "cat.color"

# At each Tab stop, record an element's style with and without the focus. Read the style when the
# next key goes down, because the browser has painted the element by then.
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
      swiped ||= !at.closest('.st-key-bar') && /auto|scroll/.test(getComputedStyle(at).overflowX)
        && at.scrollWidth > at.clientWidth;
    }
    const box = e.getBoundingClientRect();
    if (!swiped && box.width > 1 && (box.right > innerWidth + 1 || box.left < -1)) {
      lost.push((e.innerText || e.getAttribute('aria-label') || e.tagName).slice(0, 50));
    }
  }
  return lost;
}"""

# Grids paint their cells on a canvas, so axe cannot see them. A screen reader reads a table inside
# the canvas, which fills only after the grid is painted, and again when a cell is entered.
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

# Paper cannot scroll, so the printed document must be tall enough for all of its content.
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
    """Return axe's findings on the page, or on one part, without Streamlit's own faults.

    With ``only``, run only the rules that have this tag.
    """
    problems = []
    for rule in page.evaluate(_RUN, [root, only])["violations"]:
        exception = STREAMLITS_OWN.get(rule["id"])
        for node in rule["nodes"]:
            if exception is None or exception not in node["html"]:
                summary = " ".join((node.get("failureSummary") or "").split())
                problems.append(f"{rule['id']}: {node['html'][:120]} | {summary[:200]}")
    return problems


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
    if box.count():  # Pages that ignore epsilon do not have this box.
        expect(box).to_have_value("2")
    address = urlsplit(page.url)
    assert (address.path, parse_qs(address.query)) == (f"/{path}", parse_qs(query))
    page.add_script_tag(content=AXE)
    if name == FIRST:
        expect(page.locator(".dpv-col")).to_have_count(8)
    faults, charts = [], 0
    for number, part in enumerate(parts.each(page, name)):
        root = parts.SHOWN if number else None
        address = looked_at(page, root, ON_A_PHONE.get(name), back=number % 2 == 1)
        faults += [f"{part}: {text}" for text in address]
        charts += page.locator(PLOTS).count()
    assert name != "claims" or charts == 7
    assert not faults, "\n".join(faults[:20])


def claims_fit(page: Page) -> None:
    """Check that each chart of Claims is rendered, has a long name and is large enough to read."""
    for chart in page.locator(PLOTS).all():
        assert len(chart.get_attribute("aria-label") or "") > 40
        assert chart.locator("svg.main-svg").count() > 0
        box = chart.bounding_box()
        assert box is not None
        assert 200 <= box["width"] <= PHONE["width"]
        assert box["height"] >= 300


def curve_fits(page: Page) -> None:
    """Check that the chart is on the screen, without the names beside its lines."""
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    for part in (".st-key-curve", ".st-key-curve .nsewdrag", ".dpviz-key"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"], part
    foot = page.locator(".st-key-bar-epsilon").bounding_box()
    assert foot is not None
    assert PHONE["height"] - 120 < foot["y"] < PHONE["height"] - foot["height"]


ON_A_PHONE = {"claims": claims_fit, "tradeoffs": curve_fits}


# Each theme and window size, with the tag of the axe-core rules to run (None: default rules).
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
    """Check the page, or the part that a selector names, in every theme and size.

    The page must start light and as wide as a laptop; it ends dark. With ``back`` the order is
    reversed, since every change of theme or size redraws all charts.
    """
    problems = []
    for theme, size, only in LOOKS[:: -1 if back else 1]:
        turn(page, theme, size)
        if size is TWICE:
            problems += [f"lost at 200 %: {text}" for text in page.evaluate(_LOST)]
            page.emulate_media(media="print")
            problems += [f"printed: {text}" for text in page.evaluate(_PRINTED)]
            page.emulate_media(media="screen")
            continue
        if theme == "dark":
            assert brightness(page) < 40
            check_shape(page)
            if size is PHONE and on_a_phone is not None:
                on_a_phone(page)
        where = f"{theme}, {NAMES[size['width']]}"
        problems += [f"{where}: {text}" for text in violations(page, root, only)]
        if (theme, size) == ("light", LAPTOP):
            problems += unread(page)
            problems += walked(page, root)
    return problems


def turn(page: Page, theme: Literal["light", "dark"], size: ViewportSize) -> None:
    """Set the page's theme and size, unless the page has them already."""
    dark = page.evaluate(_DARK)
    if dark is (theme == "dark") and page.viewport_size == size:
        return
    page.set_viewport_size(size)
    if dark is not (theme == "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(_DARK if theme == "dark" else f"() => !({_DARK})()")
    wait_idle(page)


def unread(page: Page, patience: float = 5_000) -> list[str]:
    """Return the grids that have no name, headers or cells for a screen reader.

    A grid's hidden table may stay empty until a user enters the grid, as happened once in many
    runs. Then check the text that a screen reader reads in the cells.
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
    """Walk through a page, or one part from the button above it, by the Tab key alone.

    The result lists controls that the walk misses, or whose focus is not visible.
    """
    if root is not None:
        page.locator(parts.CHOOSES).focus()
    page.evaluate(_WALK, root)
    for _ in range(40):
        for _ in range(15 if root is None else 5):
            page.keyboard.press("Tab")
        if page.evaluate("() => window.dpvizWalk.over"):  # Tab has now left the tested element.
            break
    walk = page.evaluate(_WALKED)
    assert walk["stops"] > (10 if root is None else 0), walk
    # A slider's thumb is not an element of its own, and a grid paints its focus mark shortly after
    # a key. Only screenshots show whether their focus is visible.
    names = [
        name
        for at, name in enumerate(walk["unseen"])
        if not marked(page, page.evaluate_handle(f"window.dpvizWalk.unseen[{at}]").as_element())
    ]
    return [
        *(f"no focus to be seen: {text}" for text in names),
        *(f"focus out of sight: {text}" for text in walk["off"]),
        *(f"not reached by Tab: {text}" for text in walk["missed"]),
    ]


def marked(page: Page, element: ElementHandle | None) -> bool:
    """Return whether an element's look changes when Tab brings the focus to it."""
    if element is None or element.bounding_box() is None:
        return False
    element.focus()
    page.keyboard.press("Shift+Tab")  # Browsers mark the focus only if a key sets it.
    plain = element.screenshot()
    page.keyboard.press("Tab")
    until = time.monotonic() + 2  # If no mark appears within two seconds, report the element.
    while time.monotonic() < until:
        if element.screenshot() != plain:
            return True
    return False


def test_what_is_wrong_is_found(page: Page, server: Server) -> None:
    """The checks find missing text, grey on grey, hidden focus, unreachable or cut-off parts."""
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
    canvas = "document.querySelector('[data-testid=\"data-grid-canvas\"]')"
    page.evaluate(f"() => {canvas}.parentElement.append({canvas}.cloneNode())")
    name = "Recovery with your shares and with equal shares"
    (problem,) = unread(page, 100)
    assert problem.startswith(f"grid: {name}: 0 heads, 0 cells, ")
