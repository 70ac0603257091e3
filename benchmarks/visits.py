"""Start a dashboard and visitors in headless Chromium, for the benchmarks of pages."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from dpviz.core.files import app_path
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tests.e2e.harness import Server, new_page, problems_of

SCREEN = {"width": 1400, "height": 900}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the machine's own browser, or exit with a message if there is none."""
    path = find_chromium()
    if path is None:
        print(NO_BROWSER, file=sys.stderr)
        raise SystemExit(2)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS])
        yield browser
        browser.close()


@contextmanager
def dashboard() -> Iterator[Server]:
    """Yield a newly started server with an empty cache of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(app_path(), Path(folder) / "server.log", {"XDG_CACHE_HOME": folder}) as server,
    ):
        yield server


@contextmanager
def visitor(browser: Browser) -> Iterator[Page]:
    """Yield a page in a browser session of its own; print the page's errors."""
    context = browser.new_context(viewport=SCREEN)
    page = new_page(context)
    yield page
    if problems := problems_of(page):
        print(problems)
    context.close()
