"""The Guide and Decide in headless Chromium: what a class and a data officer wait for.

A class takes the lessons of twenty minutes by keyboard, twice: first on a server that nobody has
visited, then in a session of its own. Each step is timed from the key to the painted picture.
Beside it, in the same run, stands a page that holds nothing but a button: a step can be no faster.

A data officer uploads ``data/example.csv`` and gets the answer of Decide. Beside it, in the same
run, stands the search alone, without a page.

Run ``python -m benchmarks.guide --out benchmarks/guide.json``; `python -m tools.teaching` puts the
figures into ``docs/teaching.md``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import dpviz
from dpviz.core.files import app_path
from dpviz.lessons import lessons
from dpviz.lessons.teaching import SHORT, fitting
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tests.e2e.harness import Server, new_page, open_app, problems_of, rerun

SCREEN = {"width": 1400, "height": 900}
EXAMPLE = Path(__file__).resolve().parents[1] / "data" / "example.csv"
_BARE = "import streamlit as st\nst.button('again', shortcut='N')\n"
_BARE_STEPS = 15


def pressed(page: Page, key: str) -> float:
    """Return the seconds from a key to the painted page."""
    began = time.perf_counter()
    with rerun(page):
        page.keyboard.press(key)
    return time.perf_counter() - began


def lesson_steps(browser: Browser, url: str) -> dict[int, list[float]]:
    """Return the seconds of every key of a class, by lesson."""
    page = new_page(browser.new_context(viewport=SCREEN))
    found = {}
    numbers = [lesson.number for lesson, _ in fitting(SHORT)]
    for lesson in lessons():
        if lesson.number not in numbers:
            continue
        open_app(page, f"{url}/guide?v=1&lesson={lesson.number}&step=1")
        seconds = []
        for place in range(1, len(lesson.steps)):  # a bet and a move wait for no server
            began = time.perf_counter()
            page.keyboard.press("n")
            stage = page.locator(".dps[data-ready]", has_text=f"{place + 1} of {len(lesson.steps)}")
            stage.wait_for()
            seconds.append(time.perf_counter() - began)
        found[lesson.number] = seconds
    if problems_of(page):
        print(problems_of(page))
    page.context.close()
    return found


def officer(browser: Browser, url: str) -> float:
    """Return the seconds from the upload to the answer, without anybody's thinking."""
    page = new_page(browser.new_context(viewport=SCREEN))
    open_app(page, f"{url}/decide?v=1")
    page.get_by_role("button", name="Upload").first.click()
    began = time.perf_counter()
    with rerun(page):
        page.locator('input[type="file"]').first.set_input_files(EXAMPLE)
    page.keyboard.press("Escape")
    page.locator("[class*='st-key-decide-answer-']").wait_for()
    seconds = time.perf_counter() - began
    if problems_of(page):
        print(problems_of(page))
    page.context.close()
    return seconds


def search_alone() -> float:
    """Return the seconds of the officer's search without a page."""
    began = time.perf_counter()
    dpviz.decide(str(EXAMPLE))
    return time.perf_counter() - began


def measure(browser: Browser, folder: Path) -> dict[str, float | int]:
    """Return every figure."""
    bare = folder / "bare.py"
    bare.write_text(_BARE, encoding="utf-8")
    with Server(bare, folder / "bare.log") as server:
        page = new_page(browser.new_context(viewport=SCREEN))
        open_app(page, server.url)
        empty = statistics.median(pressed(page, "n") for _ in range(_BARE_STEPS))
        page.context.close()
    with Server(app_path(), folder / "server.log") as server:
        first, again = lesson_steps(browser, server.url), lesson_steps(browser, server.url)
        card = officer(browser, server.url)
    cold = [seconds for steps in first.values() for seconds in steps]
    warm = [seconds for steps in again.values() for seconds in steps]
    return {
        "keys": len(warm),
        "median": statistics.median(warm),
        "slowest": max(warm),
        "slowest_first_visit": max(cold),
        "empty_page": empty,
        "card": card,
        "search": search_alone(),
    }


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="keep the figures in this file")
    arguments = parser.parse_args()
    path = find_chromium()
    if path is None:
        parser.exit(2, NO_BROWSER + "\n")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS])
        found = {name: round(value, 2) for name, value in measure(browser, Path(folder)).items()}
        browser.close()
    taken = [str(lesson.number) for lesson, _ in fitting(SHORT)]
    print(
        f"{found['keys']} keys of lessons {', '.join(taken)}: median "
        f"{found['median']} s, {found['median'] / found['empty_page']:.1f} times an empty page; "
        f"slowest {found['slowest']} s, on a fresh server {found['slowest_first_visit']} s"
    )
    print(
        f"upload to answer: {found['card']} s, {found['card'] / found['search']:.1f} times the "
        "search alone"
    )
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
