"""What a new session waits for on each page, beside Streamlit's own floor, in headless Chromium.

The floor is a script of one component that draws one div, on a server of its own: what a browser
takes to load Streamlit's pages and to be sent anything. Each round has a visit to the floor and one
to every page, with all of it still to load, to a built-in table of which what is seen first ships.
Explore's board is drawn before Streamlit has started, and so may be there before the floor.

Run ``python -m benchmarks.first``. Browser and servers share the machine, so compare ratios.
``--beside FOLDER`` takes the first page of another copy of dpviz along.
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
    "Papers, first chart": ("papers", ".dp-exhibit img"),
    "Guide, first stop": ("guide", ".dps[data-ready]"),
}


def waited(browser: Browser, address: str, what: str) -> float:
    """Return the seconds from asking for a page to seeing something on it."""
    with visitor(browser) as page:
        started = time.perf_counter()
        page.goto(address)
        page.locator(what).first.wait_for(state="attached")
        return time.perf_counter() - started


def main() -> None:
    """Print the medians and their ratios to the floor."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=len(TABLES))
    parser.add_argument("--beside", type=Path)
    given = parser.parse_args()
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        script = folder / "floor.py"
        script.write_text(FLOOR, encoding="utf-8")
        quiet = {"STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false", "XDG_CACHE_HOME": str(folder)}
        floor = stack.enter_context(Server(script, folder / "floor.log", quiet))
        ours = stack.enter_context(dashboard())
        copies = {"": ours}
        if given.beside is not None:
            other = Server(given.beside / app_path().name, folder / "other.log", quiet)
            copies["the other copy: "] = stack.enter_context(other)
        browser = stack.enter_context(chromium())
        for server in (floor, *copies.values()):  # what is loaded once for all
            with visitor(browser) as page:
                open_app(page, f"{server.url}/?v=1&table={WARM}" if server != floor else floor.url)
        for place in range(given.rounds):
            asked = f"?v=1&table={TABLES[place % len(TABLES)]}"
            times.setdefault("floor", []).append(waited(browser, floor.url, ".floor"))
            for name, (path, what) in PAGES.items():
                for whose, server in copies.items():
                    if not whose or not path:
                        took = waited(browser, f"{server.url}/{path}{asked}", what)
                        times.setdefault(whose + name, []).append(took)
    least = statistics.median(times["floor"])
    print("| a new session | seconds | of Streamlit's floor |\n|---|---|---|")
    for name, found in times.items():
        took = statistics.median(found)
        print(f"| {name} | {took:.2f} | {took / least:.2f} |")


if __name__ == "__main__":
    main()
