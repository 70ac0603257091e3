"""How soon Trade-offs shows something with all mechanisms: in headless Chromium, on a warm server.

Measured from asking for the page in a fresh browser session: until the page's title stands, until
the first chart does, until a prediction is on it, until Plotly has drawn one, and until the last
draw is on it. Each visit has a session of its own, so that neither a prediction nor a draw is
cached, and nor are Streamlit's and Plotly's scripts. Browser and server share this machine.

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

GOAL = 1.0  # seconds from the title to the first chart, with an otherwise idle machine
_PLOTLY = ".st-key-curve .js-plotly-plot .cartesianlayer"
_CHART = f".st-key-curve .still img, {_PLOTLY}"
_PREDICTED = (
    ".st-key-curve .still:not([data-predicted='0']), "
    ".st-key-curve .js-plotly-plot .legendtext:has-text('predicted without a draw')"
)


def visit(browser: Browser, url: str, *, whole: bool) -> list[float]:
    """Return seconds to title, first chart, first prediction on it, Plotly's, and to the end."""
    seen = []
    with visitor(browser) as page:
        started = time.perf_counter()
        page.goto(url)
        for what in ("h1", _CHART, _PREDICTED, _PLOTLY):
            page.locator(what).first.wait_for()
            seen.append(time.perf_counter() - started)
        if whole:
            page.get_by_role("button", name="This curve (CSV)").wait_for(timeout=600_000)
            seen.append(time.perf_counter() - started)
    return seen


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--table", default="digits")
    parser.add_argument("--quick", action="store_true", help="do not wait for the last draw")
    arguments = parser.parse_args()
    every = ",".join(all_mechanisms())
    with chromium() as browser, dashboard() as server:
        with visitor(browser) as page:
            open_app(page, f"{server.url}/tradeoffs?v=1&table=iris&trials=5")  # warms it
        base = f"{server.url}/tradeoffs?v=1&table={arguments.table}&m={every}"
        seen = [
            visit(browser, f"{base}&seed={seed}", whole=not arguments.quick)
            for seed in range(1, arguments.visits + 1)
        ]
    title, first, predicted, plotly, *whole = (
        statistics.median(times) for times in zip(*seen, strict=True)
    )
    print(
        f"{len(seen)} visits, {len(all_mechanisms())} mechanisms on {arguments.table}: title "
        f"{title:.2f} s, first chart {first - title:.2f} s later (goal {GOAL:g}), first prediction "
        f"{predicted - title:.2f}, Plotly's chart {plotly - title:.2f}"
        + "".join(f", last draw {end:.0f} s after opening" for end in whole)
    )


if __name__ == "__main__":
    main()
