"""The Guide for a class, Decide for a data officer, and the Explore figure opened from a disk."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dpviz.lessons import lessons
from tests.e2e.harness import (
    Server,
    new_page,
    open_app,
    problems_of,
    rerun,
    wait_idle,
    watch_of,
)

EXAMPLE = Path(__file__).resolve().parents[2] / "data" / "example.csv"
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 420, "height": 800}


def plain_text(text: str) -> str:
    """Replace each run of white space in a text by one space."""
    return re.sub(r"\s+", " ", text)


def press(pages: Page | list[Page], key: str) -> None:
    """Press a key on one page, or on several at once, and wait for the runs that it starts."""
    pages = pages if isinstance(pages, list) else [pages]
    before = [watch_of(page).runs for page in pages]
    for page in pages:
        page.keyboard.press(key)
    for page, runs in zip(pages, before, strict=True):
        wait_idle(page, after=runs + 1)


def stage_text(page: Page) -> str:
    """Return the animation page's text once the step in the address is rendered."""
    expect(page.locator(".dps[data-ready]")).to_be_visible()
    return plain_text(page.locator(".dps").inner_text())


def test_a_shared_step_is_the_first_visit_of_a_server(
    page: Page, fresh_server: Callable[[], Server]
) -> None:
    """A link holds the step, bet, move and presentation, and keys can change each of the four."""
    server = fresh_server()
    question = lessons()[-1].question_at(2)
    assert question is not None
    open_app(
        page, f"{server.url}/guide?v=1&lesson={len(lessons())}&step=3&bet=1&moved=yes&present=yes"
    )
    assert plain_text(question.then[0])[1:] in stage_text(page)
    expect(page.locator(".dp-sentence")).to_contain_text("at most 74 right")
    assert page.locator(".dp-worlds circle.sure").count() == 0
    expect(page.locator(".dps-foot")).to_be_hidden()
    whole = page.locator(".dps").bounding_box()
    assert whole == {"x": 0, "y": 0, **page.viewport_size}  # type: ignore[dict-item]
    press(page, "b")  # In presentation, keys also change the lesson's step.
    expect(page.locator(".dp-sentence")).to_contain_text("anyone who sees one of these is certain")
    assert page.locator(".dp-worlds circle.sure").count() > 20
    assert "bet=" not in page.url
    page.locator(".dps-flag").focus()
    page.keyboard.press("End")
    with rerun(page):
        page.keyboard.press("m")
    expect(page.locator(".dps-then")).not_to_be_empty()
    wait_idle(page)
    assert "bet=10" in page.url
    assert "moved=yes" in page.url
    press(page, "Escape")
    expect(page.get_by_test_id("stHeader")).to_be_visible()
    assert "present=" not in page.url
    assert page.locator(".dps").bounding_box()["y"] > 20  # type: ignore[index]


@pytest.mark.first
def test_a_flag_is_dragged_and_the_reveal_shows_before_it_speaks(
    browser: Browser, server: Server
) -> None:
    """On a phone, a finger moves the visible picture; the picture rests before words appear."""
    context = browser.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
    page = new_page(context)
    question = lessons()[2].question_at(1)
    assert question is not None
    open_app(page, f"{server.url}/guide?v=1&lesson=3&step=2")
    assert "you bet" not in stage_text(page).lower()
    flag, axis = page.locator(".dps-flag i"), page.locator(".dps-axis").bounding_box()
    start = flag.bounding_box()
    assert start is not None
    assert axis is not None
    page.mouse.move(start["x"] + 40, start["y"] + 40)
    page.mouse.down()
    page.mouse.move(axis["x"] + axis["width"] / 2, axis["y"] + 40, steps=6)
    page.mouse.up()
    button = page.locator(".dps-do")
    expect(button).to_have_text("Bet on 0.3")
    # The button's own style hides the button until the button has a text.
    assert not button.evaluate("""node => {
      const bare = node.parentElement.appendChild(node.cloneNode());
      const seen = bare.checkVisibility();
      bare.remove();
      return seen;
    }""")
    picture = page.locator(".dpv-col:not([data-key=exact]) canvas").first
    picture_before, runs = picture.evaluate("node => node.toDataURL()"), watch_of(page).runs
    assert watch_of(page).runs == runs  # Dragging a bet sends nothing to the server.
    button.click()
    texts = page.evaluate(
        """async () => {
          const root = [...document.querySelectorAll("*")].map((node) => node.shadowRoot)
            .find((one) => one?.querySelector(".dps"));
          const stage = root.querySelector(".dps");
          const state = () => {
            const box = root.querySelector(".dps-pic").getBoundingClientRect();
            const inside = box.top >= 0 && box.bottom <= innerHeight;
            const then = root.querySelector(".dps-then").textContent;
            const tall = box.height > 0.39 * innerHeight;
            const count = root.querySelector(".dps-hundred b").textContent;
            return { arrived: stage.dataset.arrived, then, count, inside: inside && tall };
          };
          const seen = [];
          while (!root.querySelector(".dps-then").textContent) {
            seen.push(state());
            await new Promise((done) => setTimeout(done, 50));
          }
          seen.push(state());
          return seen;
        }"""
    )
    assert all(one["inside"] for one in texts)
    assert not texts[0].get("arrived")
    rests = [one for one in texts if one.get("arrived") and not one["then"]]
    assert len(rests) >= 10  # The picture rests for a second: one sample per 50 ms.
    assert texts[-1]["then"]
    assert picture.evaluate("node => node.toDataURL()") != picture_before
    assert {one["count"] for one in rests} == {texts[-1]["count"]} != {texts[0]["count"]}
    verdict = page.locator(".dps h1")
    assert "Right: 0.2. You said 0.3." in verdict.inner_text()
    wait_idle(page)
    button.click()
    expect(button).to_be_hidden()  # The button shows the extreme case; the verdict stays.
    assert "Right: 0.2. You said 0.3." in verdict.inner_text()
    assert problems_of(page) == ""
    context.close()


@pytest.mark.first
def test_decide_from_an_upload_to_a_printed_plan(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/decide?v=1")
    uploader = page.locator('input[type="file"]')
    if uploader.count() == 0:
        page.get_by_role("button", name="Upload").first.click()
    with rerun(page):
        uploader.first.set_input_files(
            {"name": "people.csv", "mimeType": "text/csv", "buffer": EXAMPLE.read_bytes()}
        )
    page.keyboard.press("Escape")
    answer = page.locator("[class*='st-key-decide-answer-']")
    expect(answer.get_by_role("heading", level=2)).to_be_visible()
    # The page names the limits that are not public, and offers the one action that fixes this.
    expect(page.locator(".st-key-decide-open")).to_contain_text("were taken from this table")
    expect(page.get_by_role("button", name="State the limits")).to_be_visible()
    assert "people.csv" not in page.url
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the plan to print").click()
    plan = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert "PLAN: nothing was released" in plan
    assert answer.get_by_role("heading", level=2).inner_text()[2:] in plan.replace("epsilon", "ε")


def test_the_board_file_works_with_the_network_off(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "board.html"
    words = ["board", "digits", "--trials", "8", "--delta", "1e-6", "--out", str(path)]
    words += ["--mechanism", "gaussian", "--mechanism", "wishart_difference"]
    subprocess.run([sys.executable, "-m", "dpviz", *words], check=True, capture_output=True)
    assert path.stat().st_size < 8_000_000
    context = browser.new_context(offline=True, viewport=WIDE, reduced_motion="reduce")  # type: ignore[arg-type]
    problems: list[str] = []
    view = context.new_page()
    view.on("request", lambda request: problems.append(request.url))
    view.on("pageerror", lambda error: problems.append(f"http error {error}"))
    view.goto(path.as_uri())
    view.get_by_role("button", name="leave").click()  # Presentation shows only pictures.
    slider = view.get_by_role("slider").first
    slider.focus()

    measures = ("picture", "spectrum", "distance")

    def shown() -> dict[str, list[str]]:
        view.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => "
            "requestAnimationFrame(() => done(null))))"
        )
        view_now = {"recovery": view.locator(".dpv-value").all_inner_texts()}
        for measure in measures:
            view_now[measure] = view.locator(f"canvas.dpv-{measure}").evaluate_all(
                "all => all.map(node => node.toDataURL())"
            )
        return {name: values[-2:] for name, values in view_now.items()} | {
            "exact": [view_now["picture"][0], view_now["recovery"][0]],
            "words": view.locator(".dpv-words").all_inner_texts(),
        }

    slider.press("End")
    before = shown()
    slider.press("Home")
    after = shown()
    for name in ("recovery", *measures):  # Each measure has a value for each mechanism.
        assert len(before[name]) == 2
        changes = [one != other for one, other in zip(before[name], after[name], strict=True)]
        assert all(changes), name
    assert before["exact"] == after["exact"]
    assert "nearly all" in before["words"]
    assert "no better than chance" in after["words"]
    assert [url for url in problems if url.startswith("http")] == []
    context.close()
