"""Slider move to painted figures, on the Explore page in headless Chromium.

What is measured: from the key press on the epsilon slider, taken in the browser as the timestamp
of the keydown event, to the first animation frame after all three charts were redrawn and the run
of the script was over. "Redrawn" is read off the charts: every canvas on which ECharts draws is
stamped whenever it is cleared (ECharts clears a canvas before it paints it) and the Plotly chart
whenever ``plotly_afterplot`` fires; a move ends when the last of the three stamps is newer than the
key press and no further one comes before Streamlit says that the run is over. The end is that last
stamp plus the frame that shows it, so the time that the benchmark itself takes is not in it.

The moves go one way from epsilon 0.1, so that no result is cached. The browser has no GPU and runs
on this machine, together with the server: two cores are what the figures in the README mean.

Run ``python -m benchmarks.paint``; add ``--profile`` to see where the time goes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, sync_playwright

from dpviz.base.paths import app_path
from dpviz.mechanisms import all_mechanisms, featured
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tests.e2e.harness import Server, new_context, new_page, open_app, problems_of, rerun

GOALS = {"six": 0.7, "all": 1.2}  # seconds, with an otherwise idle machine
COUNTS = {"six": len(featured()), "all": len(all_mechanisms())}
CHARTS = 3

# Stamps the charts and the key, in milliseconds of the page's own clock.
_STAMPS = """
(() => {
  const seen = window.dpvizPaint = {key: 0, charts: new Map(), done: 0, frames: []};
  addEventListener('keydown', event => { seen.key = event.timeStamp; }, true);
  const stamp = chart => {
    if (!chart) return;
    requestAnimationFrame(() => requestAnimationFrame(now => {
      seen.charts.set(chart.getAttribute('aria-label')?.split('.')[0], now);
    }));
  };
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    stamp(this.canvas.closest('[data-testid="stEChartsChart"]'));
    return clear.apply(this, box);
  };
  const watch = () => {
    for (const plot of document.querySelectorAll('.js-plotly-plot')) {
      if (!plot.dpvizWatched && plot.on) {
        plot.dpvizWatched = true;
        plot.on('plotly_afterplot', () => stamp(plot.closest('[data-testid="stPlotlyChart"]')));
      }
    }
  };
  new MutationObserver(watch).observe(document, {childList: true, subtree: true});
})();
"""
_RESULT = """
() => {
  const seen = window.dpvizPaint;
  return {
    key: seen.key,
    charts: Object.fromEntries(seen.charts),
  };
}
"""


def slider(page: Page) -> Locator:
    """Return the epsilon slider of the sidebar."""
    return page.get_by_test_id("stSidebar").get_by_role("slider", name="Epsilon")


def move(page: Page, key: str) -> dict[str, float]:
    """Move the slider by one step; return each chart's seconds from the key to its frame."""
    with rerun(page):
        slider(page).press(key)
    page.wait_for_function(
        f"""() => [...window.dpvizPaint.charts.values()]
            .filter(at => at > window.dpvizPaint.key).length >= {CHARTS}"""
    )
    found: dict[str, Any] = page.evaluate(_RESULT)
    return {
        name.split(" ")[0].lower(): (at - found["key"]) / 1000
        for name, at in found["charts"].items()
        if at > found["key"]
    }


def measure(page: Page, url: str, moves: int) -> list[dict[str, float]]:
    """Return the times of each move, after two that warm caches up."""
    open_app(page, url)
    slider(page).focus()
    times = []
    for _ in range(moves + 2):
        times.append(move(page, "ArrowRight"))
    return times[2:]


def main() -> None:
    """Print the medians, and where the time goes if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=15)
    parser.add_argument("--table", default="digits")
    parser.add_argument("--profile", action="store_true", help="print each chart's median too")
    arguments = parser.parse_args()
    path = find_chromium()
    if path is None:
        parser.exit(2, NO_BROWSER + "\n")
    everything = ",".join(all_mechanisms())
    views = {"six": f"?v=1&table={arguments.table}",
             "all": f"?v=1&table={arguments.table}&m={everything}"}  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(app_path(), Path(folder) / "server.log") as server,
        sync_playwright() as driver,
    ):
        chromium = driver.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS])
        for name, query in views.items():
            page = new_page(new_context(chromium))
            page.add_init_script(_STAMPS)
            times = measure(page, f"{server.url}/{query}&epsilon=0.1", arguments.moves)
            totals = [max(one.values()) for one in times]
            print(
                f"{COUNTS[name]} mechanisms, {len(totals)} moves: median "
                f"{statistics.median(totals):.2f} s, min {min(totals):.2f}, max {max(totals):.2f}, "
                f"goal {GOALS[name]}"
            )
            if arguments.profile:
                for chart in times[0]:
                    print(f"  {chart}: {statistics.median(one[chart] for one in times):.2f} s")
            problems = problems_of(page)
            if problems:
                print(problems)
            page.context.close()
        chromium.close()


if __name__ == "__main__":
    main()
