"""The board in headless Chromium: first paint, every frame there, and the frames of a drag.

Measured from asking for the page in a fresh browser session on a warm server: until the first
column is painted, and until every frame of the path is in the browser. Each visit has a seed of its
own, so that nothing is cached. Then the scrubber is dragged from epsilon 1 to the private end and
the time between animation frames is taken by the page itself. The browser has no GPU and runs on
this machine, together with the server: two cores are what the figures in the README mean.

Run ``python -m benchmarks.paint``.
"""

from __future__ import annotations

import argparse
import statistics
import time

from playwright.sync_api import Browser

from benchmarks.visits import chromium, dashboard, visitor
from tests.e2e.harness import open_app

GOALS = {"complete": 2.5, "frame": 0.020}  # seconds, with an otherwise idle machine
START = """
() => {
  window.dpvizTimes = [];
  let last = performance.now();
  const tick = now => {
    window.dpvizTimes.push(now - last);
    last = now;
    window.dpvizTick = requestAnimationFrame(tick);
  };
  window.dpvizTick = requestAnimationFrame(tick);
}
"""
STOP = "() => { cancelAnimationFrame(window.dpvizTick); return window.dpvizTimes.slice(2); }"


def visit(browser: Browser, url: str) -> tuple[float, float, list[float]]:
    """Return seconds to the first column, to all frames, and milliseconds of a drag's frames."""
    with visitor(browser) as page:
        started = time.perf_counter()
        page.goto(url)
        page.locator(".dpv-col").first.wait_for()
        first = time.perf_counter() - started
        page.locator(".dpv[data-complete]").wait_for(state="attached")
        complete = time.perf_counter() - started
        box = page.get_by_role("slider", name="Epsilon").bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.56 * box["width"], y)
        page.mouse.down()
        page.evaluate(START)
        for step in range(1, 61):
            page.mouse.move(box["x"] + (0.56 - 0.5 * step / 60) * box["width"], y)
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => done(null)))")
        frames: list[float] = page.evaluate(STOP)
        page.mouse.up()
    return first, complete, frames


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--table", default="digits")
    arguments = parser.parse_args()
    with chromium() as browser, dashboard() as server:
        with visitor(browser) as page:
            open_app(page, f"{server.url}/?v=1&table={arguments.table}")  # warms the server
        seen = [
            visit(browser, f"{server.url}/?v=1&table={arguments.table}&seed={seed}")
            for seed in range(1, arguments.visits + 1)
        ]
    frames = sorted(time for _, _, times in seen for time in times)
    print(
        f"{len(seen)} visits: first column {statistics.median(one[0] for one in seen):.2f} s, "
        f"all frames {statistics.median(one[1] for one in seen):.2f} s (goal "
        f"{GOALS['complete']} after the first), drag: median frame "
        f"{statistics.median(frames):.1f} ms, p95 {frames[int(0.95 * len(frames))]:.1f} ms (goal "
        f"{1000 * GOALS['frame']:.0f}) of {len(frames)}"
    )


if __name__ == "__main__":
    main()
