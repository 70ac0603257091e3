"""Measure the cost of the browser edition: ``python -m benchmarks.browser --pyodide DIR``.

The command builds the folder, serves it on this machine, and opens Explore twice in one Chromium
session: the first visit loads everything, the second starts from the browser's storage. It prints a
table; ``--docs FILE`` writes the table between the marks of that file.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import platform
import sys
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from dpviz.cli.browser_edition.folder import export
from dpviz.cli.browser_edition.lock import read_lock
from tests.e2e.browser import CHROMIUM_FLAGS, find_chromium

START, END = "<!-- browser: start -->", "<!-- browser: end -->"
_PATIENCE = 240_000


class _Counting(http.server.SimpleHTTPRequestHandler):
    """Serves the folder and counts the bytes sent."""

    sent = 0

    def copyfile(self, source, outputfile) -> None:
        content = source.read()
        type(self).sent += len(content)
        outputfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def visit(page: Page, address: str) -> dict[str, float]:
    """Open Explore; return its seconds, its bytes, and the memory of Python's worker."""
    before, begin = _Counting.sent, time.perf_counter()
    page.goto(address)
    page.wait_for_function("() => window.dpvizEdition && window.dpvizEdition.seconds !== null")
    python = time.perf_counter() - begin
    verdict = page.get_by_test_id("stMain").locator("strong").filter(visible=True).first
    expect(verdict).to_contain_text("At epsilon 1 and delta")
    expect(page.locator(".dpv .dpv-col canvas").first).to_be_visible()
    explore = time.perf_counter() - begin
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    page.locator(".dpv[data-complete]").wait_for(state="attached")
    return {
        "python": python,
        "explore": explore,
        "bytes": _Counting.sent - before,
        "memory": float(page.evaluate("() => window.dpvizEdition.memory()")),
    }


def step(page: Page) -> float:
    """Move the scrubber by one step; return the seconds until the page has the new numbers."""
    verdict = page.get_by_test_id("stMain").locator("strong").filter(visible=True).first
    page.get_by_role("slider", name="Epsilon").focus()
    begin = time.perf_counter()
    page.keyboard.press("ArrowRight")
    expect(verdict).to_contain_text("At epsilon 1.25")
    return time.perf_counter() - begin


def measured(folder: Path) -> tuple[dict[str, float], dict[str, float], float]:
    """Return the measurements of both visits and a step of the scrubber."""
    handler = functools.partial(_Counting, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            with sync_playwright() as driver:
                expect.set_options(timeout=_PATIENCE)
                chromium = driver.chromium.launch(
                    executable_path=find_chromium(), args=[*CHROMIUM_FLAGS]
                )
                session = chromium.new_context(viewport={"width": 1400, "height": 900})
                session.set_default_timeout(_PATIENCE)
                page = session.new_page()
                address = f"http://127.0.0.1:{server.server_port}/?v=1"
                cold = visit(page, address)
                # Wait, because the browser edition stores compiled files only when no script runs.
                page.wait_for_function("() => new Set(window.dpvizEdition.kept).size === 2")
                warm = visit(page, address)
                seconds = step(page)
                chromium.close()
        finally:
            server.shutdown()
            serving.join()
    return cold, warm, seconds


def table(
    cold: dict[str, float], warm: dict[str, float], step_seconds: float, written: int, loaded: int
) -> str:
    """Return the measurements as Markdown."""
    rows = [
        ("Python is ready", f"{cold['python']:.0f} s", f"{warm['python']:.0f} s"),
        ("Explore is complete (digits, 6 mechanisms)", f"{cold['explore']:.0f} s",
         f"{warm['explore']:.0f} s"),
        ("bytes from the host", f"{cold['bytes'] / 1e6:.1f} MB", f"{warm['bytes'] / 1e6:.1f} MB"),
        ("memory of Python", f"{cold['memory'] / 1e6:.0f} MB", f"{warm['memory'] / 1e6:.0f} MB"),
    ]  # fmt: skip
    lines = ["| until | first visit | second visit |", "|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [
        "",
        f"The folder has {written / 1e6:.0f} MB of compressed files; a browser loads "
        f"{loaded / 1e6:.0f} MB of them before Python starts. After a step of the epsilon slider "
        f"on Explore, the page shows the new numbers within {step_seconds:.1f} s.",
        "",
        f"We measured with headless Chromium on {platform.machine()}, and the same machine served "
        "the files. On a network, the first visit also takes the time of the download.",
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure and print; write the table if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pyodide", type=Path, required=True, help="folder of Pyodide's files")
    parser.add_argument("--libraries", type=Path, help="folder of the pinned libraries' wheels")
    parser.add_argument("--docs", type=Path, help="file to write the table into")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside) / "out"
        edition = export(folder, read_lock(), options.pyodide, wheels=options.libraries)
        cold, warm, seconds = measured(folder)
    text = table(cold, warm, seconds, edition.written, edition.loaded)
    print(text)
    if options.docs:
        whole = options.docs.read_text(encoding="utf-8")
        before, _, rest = whole.partition(START)
        _, _, after = rest.partition(END)
        options.docs.write_text(f"{before}{START}\n{text}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
