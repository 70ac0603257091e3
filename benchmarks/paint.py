"""Time the Explore figure in headless Chromium: first paint, all frames, frames of a drag.

The times start with the request for the page in a fresh browser session on a warm server. They end
when the first column is painted, and when every frame of the path is in the browser. Each visit has
its own seed, so that nothing is cached. With ``--view first`` each visit opens a built-in table
with default settings, whose frames are shipped. Then the scrubber is dragged from epsilon 1 to the
private end. The page itself measures the time between animation frames and the script's time in
each frame. The browser has no GPU and runs on this machine, together with the server: the figures
in the README are for two cores.

Run ``python -m benchmarks.paint``; with ``--view publishable`` the drag is in that view.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

from playwright.sync_api import Browser

from benchmarks.visits import chromium, dashboard, visitor
from dpviz.datasets import builtin_tables
from tests.e2e.harness import open_app

WARM = "iris"
GOALS = {"complete": 2.5, "frame": 0.020}  # These seconds are for an otherwise idle machine.
START = """
() => {
  window.dpvizTimes = [];
  let last = performance.now();
  window.dpvizWork = [];
  const ask = window.dpvizAsk = window.requestAnimationFrame;
  window.requestAnimationFrame = act => ask.call(window, now => {
    const started = performance.now();
    act(now);
    window.dpvizWork.push(performance.now() - started);
  });
  const tick = now => {
    window.dpvizTimes.push(now - last);
    last = now;
    window.dpvizTick = requestAnimationFrame(tick);
  };
  window.dpvizTick = requestAnimationFrame(tick);
}
"""
STOP = """
() => {
  cancelAnimationFrame(window.dpvizTick);
  window.requestAnimationFrame = window.dpvizAsk;
  return [window.dpvizTimes.slice(2), window.dpvizWork];
}
"""
VIEWS = {"working": "working view", "publishable": "publishable", "first": "working view"}


@dataclass(frozen=True)
class Visit:
    """Times of one visit.

    Attributes
    ----------
    first, complete : float
        Seconds to the first column and to all frames.
    frames, work : list of float
        Milliseconds between the frames of a drag, and in the figure's script for each frame.
    messages : int
        Messages sent to the server during the drag.
    """

    first: float
    complete: float
    frames: list[float]
    work: list[float]
    messages: int


def visit(browser: Browser, url: str, view: str) -> Visit:
    """Return the times of a drag in one view of the Explore figure, after a first visit."""
    frames_sent: list[int] = []
    with visitor(browser) as page:
        page.on("websocket", lambda stream: stream.on("framesent", lambda _: frames_sent.append(1)))
        begin = time.perf_counter()
        page.goto(url)
        page.locator(".dpv-col").first.wait_for()
        first = time.perf_counter() - begin
        page.locator(".dpv[data-complete]").wait_for(state="attached")
        complete = time.perf_counter() - begin
        page.get_by_role("button", name=VIEWS[view], exact=True).click()
        box = page.get_by_role("slider", name="Epsilon").bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.56 * box["width"], y)
        page.mouse.down()
        before = len(frames_sent)
        page.evaluate(START)
        for step in range(1, 61):
            page.mouse.move(box["x"] + (0.56 - 0.5 * step / 60) * box["width"], y)
            page.evaluate("() => new Promise(done => dpvizAsk.call(window, () => done(null)))")
        frames, work = page.evaluate(STOP)
        messages = len(frames_sent) - before
        page.mouse.up()
    return Visit(first, complete, frames, work, messages)


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--table", default="digits")
    parser.add_argument("--view", choices=list(VIEWS), default="working")
    arguments = parser.parse_args()
    first = arguments.view == "first"
    tables = [table for table in builtin_tables() if table != WARM]
    with chromium() as browser, dashboard() as server:
        with visitor(browser) as page:  # This visit only warms up the server.
            open_app(page, f"{server.url}/?v=1&table={WARM if first else arguments.table}")
        links = [f"table={arguments.table}&seed={seed + 1}" for seed in range(arguments.visits)]
        if first:
            links = [f"table={table}" for table in tables[: arguments.visits]]
        runs = [visit(browser, f"{server.url}/?v=1&{link}", arguments.view) for link in links]
    frames = sorted(time for one in runs for time in one.frames)
    work = sorted(time for one in runs for time in one.work)
    print(
        f"{len(runs)} visits: first column {statistics.median(one.first for one in runs):.2f} s, "
        f"all frames {statistics.median(one.complete for one in runs):.2f} s (goal "
        f"{GOALS['complete']} after the first), drag of the {arguments.view} view: median frame "
        f"{statistics.median(frames):.1f} ms, p95 {frames[int(0.95 * len(frames))]:.1f} ms (goal "
        f"{1000 * GOALS['frame']:.0f}) of {len(frames)}; the script's own, median "
        f"{statistics.median(work):.1f} ms, p95 {work[int(0.95 * len(work))]:.1f} ms; "
        f"{sum(one.messages for one in runs)} messages to the server"
    )


if __name__ == "__main__":
    main()
