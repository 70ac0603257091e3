"""How soon Trade-offs shows something with all mechanisms: in headless Chromium, on a warm server.

Measured from asking for the page in a fresh browser session: until the first chart is painted,
until a prediction is on it, and until the last draw is. Each visit has a session of its own, so
that neither a prediction nor a draw is cached. Browser and server share this machine.

Run ``python -m benchmarks.tradeoffs``.
"""

from __future__ import annotations

import argparse
import statistics
import time

from playwright.sync_api import Browser

from benchmarks.visits import chromium, dashboard, visitor
from dpviz.mechanisms import all_mechanisms
from tests.e2e.harness import open_app

GOAL = 1.0  # seconds to the first chart, with an otherwise idle machine
_CHART = ".st-key-curve .js-plotly-plot .cartesianlayer"
_PREDICTED = ".st-key-curve .js-plotly-plot .legendtext"


def visit(browser: Browser, url: str) -> tuple[float, float, float]:
    """Return seconds to the first chart, to the first prediction on it, and to the end."""
    with visitor(browser) as page:
        started = time.perf_counter()
        page.goto(url)
        page.locator(_CHART).first.wait_for()
        first = time.perf_counter() - started
        page.locator(_PREDICTED, has_text="predicted without a draw").first.wait_for()
        predicted = time.perf_counter() - started
        page.get_by_role("button", name="This curve (CSV)").wait_for(timeout=600_000)
        whole = time.perf_counter() - started
    return first, predicted, whole


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--table", default="digits")
    arguments = parser.parse_args()
    every = ",".join(all_mechanisms())
    with chromium() as browser, dashboard() as server:
        with visitor(browser) as page:
            open_app(page, f"{server.url}/tradeoffs?v=1&table=iris&trials=5")  # warms it
        base = f"{server.url}/tradeoffs?v=1&table={arguments.table}&m={every}"
        seen = [visit(browser, f"{base}&seed={seed}") for seed in range(1, arguments.visits + 1)]
    first, predicted, whole = (statistics.median(times) for times in zip(*seen, strict=True))
    print(
        f"{len(seen)} visits, {len(all_mechanisms())} mechanisms on {arguments.table}: first chart "
        f"{first:.2f} s (goal {GOAL:g}), first prediction {predicted:.2f} s, last draw "
        f"{whole:.0f} s"
    )


if __name__ == "__main__":
    main()
