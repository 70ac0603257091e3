"""Which browser the tests drive. Imports nothing that is not quick to come."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dpviz.core.platform import switch

NO_BROWSER = (
    "browser tests skipped: no Chromium on PATH; get one with apt-get install chromium,"
    " or name one in DPVIZ_CHROMIUM"
)

# Root and a closed network: no sandbox to set up, nothing to fetch, no UDP to wait for.
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # a container's /dev/shm is often too small for a renderer
    # Pages of one session and host share a process, and with it the compiled scripts: half of what
    # opening a page costs. Playwright's sessions still have a process each.
    "--process-per-site",
)

# What streams a script parses it again, though the process of an earlier page has it compiled: a
# tenth of what opening costs. A second list takes the place of Playwright's, so what paints late or
# asks around in that one is here too. Where speed is measured the browser is as users have it.
WITHOUT = (
    "--disable-features=ScriptStreaming,PaintHolding,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "MediaRouter,OptimizationHints,NetworkTimeServiceQuerying,PreconnectToSearch"
)


WITH_WINDOWS = ("chromium", "chromium-browser", "google-chrome")
SHELL = "chromium-headless-shell"


def find_chromium(*, windows: bool = True) -> Path | None:
    """Return the browser named in ``DPVIZ_CHROMIUM``, or the first one found on PATH.

    What is as users have it comes first, or without ``windows`` the same Chromium without what
    draws them, which opens a page for a tenth less.

    Raises
    ------
    FileNotFoundError
        If ``DPVIZ_CHROMIUM`` names something that is not there: asked for and not found is a
        mistake, not a reason to skip.
    """
    named = os.environ.get("DPVIZ_CHROMIUM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise FileNotFoundError(f"DPVIZ_CHROMIUM names no program: {named!r}")
        return Path(found)
    for name in (*WITH_WINDOWS, SHELL) if windows else (SHELL, *WITH_WINDOWS):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    return None


def browser_required() -> bool:
    """Return whether a missing browser fails the tests (``DPVIZ_REQUIRE_BROWSER=1``, as in CI)."""
    return switch("DPVIZ_REQUIRE_BROWSER")
