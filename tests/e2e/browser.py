"""Choose the browser that the tests drive; import only modules that load quickly."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dpviz.core.platform import switch

NO_BROWSER = (
    "browser tests skipped: no Chromium on PATH; get one with apt-get install chromium,"
    " or name one in DPVIZ_CHROMIUM"
)

# Tests run as root without a network, so use no sandbox, fetch nothing, and wait for no UDP.
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # In a container, /dev/shm is often too small for a renderer.
    # Pages of one session and host share a process and its compiled scripts, so that opening a page
    # costs half as much. Each Playwright session still has its own process.
    "--process-per-site",
)

# With streaming, the browser parses scripts of earlier pages again: a tenth of the cost of a page.
# This list replaces Playwright's list, so it repeats Playwright's features that paint late or
# contact hosts. Tests of speed use the browser as users have it.
WITHOUT = (
    "--disable-features=ScriptStreaming,PaintHolding,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "MediaRouter,OptimizationHints,NetworkTimeServiceQuerying,PreconnectToSearch"
)


WITH_WINDOWS = ("chromium", "chromium-browser", "google-chrome")
SHELL = "chromium-headless-shell"


def find_chromium(*, windows: bool = True) -> Path | None:
    """Return the browser named in ``DPVIZ_CHROMIUM``, or the first one found on PATH.

    The browser that users have comes first. Without ``windows``, the same Chromium without window
    drawing comes first: it opens a page in a tenth less time.

    Raises
    ------
    FileNotFoundError
        If ``DPVIZ_CHROMIUM`` names a program that does not exist, which is a mistake and no reason
        to skip.
    """
    path = os.environ.get("DPVIZ_CHROMIUM")
    if path:
        program = shutil.which(path)
        if program is None:
            raise FileNotFoundError(f"DPVIZ_CHROMIUM names no program: {path!r}")
        return Path(program)
    for name in (*WITH_WINDOWS, SHELL) if windows else (SHELL, *WITH_WINDOWS):
        program = shutil.which(name)
        if program is not None:
            return Path(program)
    return None


def browser_required() -> bool:
    """Return whether a missing browser fails the tests (``DPVIZ_REQUIRE_BROWSER=1``, as in CI)."""
    return switch("DPVIZ_REQUIRE_BROWSER")
