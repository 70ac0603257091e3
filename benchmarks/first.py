"""Measure a new session's wait on each page beside Streamlit's floor, in headless Chromium.

The floor is a script of one component that renders one div, on its own server. It is the time that
a browser needs to load Streamlit's pages and to receive anything. Each round visits the floor and
every page with an empty cache, on a built-in table whose first view is shipped. The Explore figure
is rendered before Streamlit has started, and so may appear before the floor.

Run ``python -m benchmarks.first``. Browser and servers share the machine, so compare ratios.
``--beside FOLDER`` also measures the first page of another copy of dpviz.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.visits import chromium, dashboard, visitor
from dpviz.core.files import app_path
from tests.e2e.harness import Server, open_app

WARM = "iris"
TABLES = ("digits", "wine", "breast_cancer", "diabetes")
FLOOR = """
import streamlit as st

if __name__ == "__main__":
    draw = st.components.v2.component("floor", js='''
        export default ({ parentElement }) => {
          const box = parentElement.appendChild(document.createElement("div"));
          box.className = "floor";
          box.textContent = "floor";
        }
    ''')
    draw(key="floor")
else:
    app = st.App(__file__)
"""
PAGES = {
    "Explore, first column": ("", ".dpv-col"),
    "Explore, all 24 epsilons": ("", ".dpv[data-complete]"),
    "Explore, the same in Streamlit's page": ("", ".st-key-board .dpv[data-complete]"),
    "Trade-offs, first chart": ("tradeoffs", ".st-key-curve svg.main-svg"),
    "Papers, first chart": ("papers", "[class*=st-key-papers-exhibit-] svg.main-svg"),
    "Guide, first stop": ("guide", ".dps[data-ready]"),
}


def waited(browser: Browser, address: str, what: str) -> float:
    """Return the seconds from the request for a page to its first visible content."""
    with visitor(browser) as page:
        begin = time.perf_counter()
        page.goto(address)
        page.locator(what).first.wait_for(state="attached")
        return time.perf_counter() - begin


def main() -> None:
    """Print the medians and their ratios to the floor."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=len(TABLES))
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        script = folder / "floor.py"
        script.write_text(FLOOR, encoding="utf-8")
        quiet = {"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false", "XDG_CACHE_HOME": str(folder)}
        floor = stack.enter_context(Server(script, folder / "floor.log", quiet))
        ours = stack.enter_context(dashboard())
        copies = {"": ours}
        if options.beside is not None:
            other = Server(options.beside / app_path().name, folder / "other.log", quiet)
            copies["the other copy: "] = stack.enter_context(other)
        browser = stack.enter_context(chromium())
        for server in (floor, *copies.values()):  # This visit loads the data that pages share.
            with visitor(browser) as page:
                open_app(page, f"{server.url}/?v=1&table={WARM}" if server != floor else floor.url)
        for place in range(options.rounds):
            query = f"?v=1&table={TABLES[place % len(TABLES)]}"
            times.setdefault("floor", []).append(waited(browser, floor.url, ".floor"))
            for name, (path, what) in PAGES.items():
                for whose, server in copies.items():
                    if not whose or not path:
                        took = waited(browser, f"{server.url}/{path}{query}", what)
                        times.setdefault(whose + name, []).append(took)
    least = statistics.median(times["floor"])
    print("| a new session | seconds | of Streamlit's floor |\n|---|---|---|")
    for name, seconds in times.items():
        took = statistics.median(seconds)
        print(f"| {name} | {took:.2f} | {took / least:.2f} |")


if __name__ == "__main__":
    main()
