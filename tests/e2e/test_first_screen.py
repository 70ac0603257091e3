"""The largest texts on a first screen: question, answer and a control for the next step."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Keyboard, Locator, Page, expect

from tests.e2e.harness import Server, open_app, wait_idle

# Explore and the Guide are missing here: they start with a figure, which has its own tests.
PAGES = (
    "claims", "decide", "mechanisms", "papers", "precision", "preparation", "release", "tasks",
    "tradeoffs",
)  # fmt: skip
MENU_LEFT = 64  # The menu starts 64 pixels from the left, with and without a sidebar.
WIDTHS = (1400, 1024, 420)
HIGH = 900
QUICK = "v=1&table=iris&trials=4&m=gaussian,wishart_difference&ceiling=25"
_TEXTS = """() => {
  const main = document.querySelector('[data-testid="stMain"]'), found = [];
  const part = node => node.closest('h1') ? 'question'
    : node.closest('.st-key-page-answer, [class*="st-key-decide-answer"] h2') ? 'answer'
    : node.closest('.st-key-page-next :is(a, button), .st-key-decide-fill button') ? 'next'
    : 'other';
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, said = walker.currentNode.data.trim();
    if (!said || node.closest('style, script, .st-key-bar, svg')) continue;
    const icon = node.dataset.testid === 'stIconMaterial';
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    if (icon || box.width < 2 || box.height < 2 || box.top < 0 || box.top > HIGH) continue;
    if (!node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const style = getComputedStyle(node), text = said.slice(0, 40);
    found.push({ part: part(node), size: parseFloat(style.fontSize), text,
      left: box.left, right: box.right, top: box.top, bottom: box.bottom });
  }
  return found;
}""".replace("HIGH", str(HIGH))


def seen(page: Page) -> dict[str, list[dict[str, float]]]:
    """Return the texts of the first screen by role: question, answer and next step."""
    sizes: dict[str, list[dict[str, float]]] = {}
    for text in page.evaluate(_TEXTS):
        sizes.setdefault(text["part"], []).append(text)
    return sizes


@pytest.mark.first
@pytest.mark.parametrize("name", PAGES)
def test_question_answer_and_next_step_are_the_largest_texts(
    page: Page, server: Server, name: str
) -> None:
    page.set_viewport_size({"width": WIDTHS[0], "height": HIGH})
    open_app(page, f"{server.url}/{name}?{QUICK}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HIGH})
        wait_idle(page)
        sizes = seen(page)
        assert {"question", "answer", "next"} <= set(sizes), (width, sorted(sizes))
        largest = max(sizes.get("other", []), key=lambda text: text["size"])
        for part in ("question", "answer", "next"):
            for text in sizes[part]:
                assert text["size"] > largest["size"], (width, part, text, largest)
                assert 0 <= text["left"] < text["right"] <= width, (width, part, text)
                assert text["bottom"] <= HIGH, (width, part, text)
        tops = [sizes[part][0]["top"] for part in ("question", "answer")]
        assert tops[0] <= tops[1], width
        if width != WIDTHS[-1]:  # On a phone, the menu is part of the sidebar.
            menu = page.get_by_test_id("stTopNavLinkContainer").first.bounding_box()
            assert menu is not None
            assert menu["x"] == MENU_LEFT, width
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[-1]


HOSPITAL = "id,age,hb,crp,sodium\n" + "\n".join(
    f"P{row:03d},{30 + row % 50},{110 + 3 * (row % 13)},{row * 7 % 90},{130 + row % 15}"
    for row in range(600)
)


ACTS = {
    Page: ("goto",), Keyboard: ("press", "type"),
    Locator: ("click", "fill", "press", "check", "select_option", "set_input_files", "drag_to"),
}  # fmt: skip


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a growing list of the driver's actions on pages, so that the test counts each one."""
    done: list[str] = []

    def count(kind: type, name: str) -> None:
        act = getattr(kind, name)

        def counted(self: object, *args: object, **options: object) -> object:
            done.append(name)
            return act(self, *args, **options)

        monkeypatch.setattr(kind, name, counted)

    for kind, names in ACTS.items():
        for name in names:
            count(kind, name)
    return done


def test_a_stakeholder_gets_from_a_file_to_epsilon_reason_and_what_is_open(
    page: Page, server: Server, acts: list[str]
) -> None:
    page.goto(f"{server.url}/decide?v=1&table=iris")
    page.get_by_role("button", name="Upload").click()
    file = {"name": "hospital.csv", "mimeType": "text/csv", "buffer": HOSPITAL.encode()}
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(file)
    page.keyboard.press("Escape")
    answer = page.locator("[class*='st-key-decide-answer-']")
    expect(answer.get_by_role("heading", level=2)).to_have_text(
        re.compile(r"[✓✗?] (ε [\d.]+|No)"), timeout=200_000
    )
    assert re.search(r"1 in 100|suspicion", answer.inner_text())
    still = page.locator(".st-key-decide-open")
    expect(still).to_contain_text("left to do")
    step = page.locator(".st-key-decide-fill button")
    expect(step).to_contain_text("State the limits")  # A release first needs declared limits.
    step.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Publish once", timeout=60_000)
    assert acts[-1] == "click"
    assert len(acts) <= 6, acts
