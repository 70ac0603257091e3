"""Every page of the dashboard as its first visitor meets it.

Each page is asked for on a server that has just started, with an empty cache of its own, and timed
until its heading is painted, until its first chart, board or table is, and until its script has
ended. On the Papers page that is the table of answers, whose numbers ship with the package, so
nothing is run. The server's own start is not counted, and the package is compiled, as an
installation leaves it.

Run ``python -m benchmarks.pages [--page papers ...]``.
"""

from __future__ import annotations

import argparse
import compileall
import time

from playwright.sync_api import Browser, Page

from benchmarks.visits import chromium, dashboard, visitor
from dpviz.base.paths import PACKAGE, app_path
from tests.e2e.harness import PATIENCE, wait_idle

PAGES = tuple(sorted(path.stem for path in (app_path().parent / "pages").glob("*.py")))
GOAL = 3.0  # seconds until the Papers page shows its first numbers
DRAWN = "svg.main-svg, .dpv-col, .dpv svg, [data-testid='stTable'] td"
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def _first_chart(page: Page, started: float) -> float | None:
    """Return the seconds until the first chart or table is painted, or None on a page without."""
    drawn = page.locator(DRAWN)
    drawn.or_(page.locator(IDLE)).first.wait_for(state="attached")
    if drawn.count() == 0:
        wait_idle(page)  # a chart's code may be loaded after the script that sent it has ended
        if drawn.count() == 0:
            return None
    drawn.first.wait_for()
    return time.perf_counter() - started


def visit(browser: Browser, name: str) -> tuple[float, float | None, float]:
    """Return seconds to the heading, to the first chart and to the end of the script."""
    with dashboard() as server, visitor(browser) as page:
        page.set_default_timeout(PATIENCE)
        started = time.perf_counter()
        page.goto(f"{server.url}/{name}?v=1")
        page.locator("h1, .dpv").first.wait_for()
        heading = time.perf_counter() - started
        chart = _first_chart(page, started)
        wait_idle(page)
        return heading, chart, time.perf_counter() - started


def main() -> None:
    """Print one line a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="append", choices=PAGES)
    arguments = parser.parse_args()
    for folder in (PACKAGE, app_path().parent / "pages"):
        compileall.compile_dir(folder, quiet=1)
    with chromium() as browser:
        print(f"{'page':<14}{'heading':>9}{'first chart':>13}{'whole':>9}   seconds")
        for name in arguments.page or PAGES:
            heading, chart, done = visit(browser, name)
            drawn = "no chart" if chart is None else f"{chart:.2f}"
            goal = "" if name != "papers" else f"   goal: first chart within {GOAL:g} s"
            print(f"{name:<14}{heading:9.2f}{drawn:>13}{done:9.2f}{goal}", flush=True)


if __name__ == "__main__":
    main()
