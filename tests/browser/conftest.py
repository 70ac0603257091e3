"""Fixtures of the browser edition: one folder, one file server, one Chromium without a network.

The folder is served below its own path, as on a host with other pages. Chromium resolves no host
name. The tests read its network log after Chromium closes, because the log shows requests to other
hosts even if no page made them.
"""

from __future__ import annotations

import functools
import http.server
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from dpviz.cli.browser_edition import board_file
from dpviz.cli.browser_edition.folder import export
from dpviz.cli.browser_edition.lock import read_lock
from tests.browser.driver import CSV, SUB_PATH, asked_hosts
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, browser_required, find_chromium
from tools.edition import folder_of, ready

_FOLDER = Path(__file__).resolve().parent
NOT_FETCHED = (
    "the browser edition is skipped: its locked files are not in this user's cache; "
    "get them with make browser-edition"
)
# A step may take 150 seconds: in a browser on a busy machine, Python can need a minute to start.
PATIENCE = 150_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that cannot run here; raise an error for a Pyodide file that is not on record."""
    here = [item for item in items if item.path.is_relative_to(_FOLDER)]
    if not here:
        return
    if find_chromium() is None:
        if browser_required():
            raise pytest.UsageError("DPVIZ_REQUIRE_BROWSER is set and no Chromium is on PATH")
        reason = NO_BROWSER
    elif not ready(read_lock()):
        reason = NOT_FETCHED
    else:
        return
    for item in here:
        item.add_marker(pytest.mark.skip(reason=reason))


class _Files(http.server.SimpleHTTPRequestHandler):
    """A quiet `python -m http.server` that is as strict as the usual static hosts.

    The usual hosts serve no name that begins with ``_`` or ``.`` (they ignore a ``.nojekyll`` below
    the top of the site, as here). They show the ``404.html`` of the top folder.
    """

    def send_head(self) -> io.BytesIO | io.BufferedReader | None:
        parts = urlsplit(self.path).path.split("/")
        if any(part.startswith(("_", ".")) for part in parts):
            self.send_error(404)
            return None
        return super().send_head()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        lost = Path(self.directory) / SUB_PATH / "404.html"
        if code != 404 or not lost.is_file():
            super().send_error(code, message, explain)
            return
        content = lost.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture(scope="session")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an edition that hosts all its files itself, below a path of its own."""
    root = tmp_path_factory.mktemp("host")
    lock = read_lock()
    index = b'[{"key": "tiny", "file": "tiny.csv", "n": 6, "d": 3}]'
    tables = [("data/embedded/tiny.csv", CSV), ("data/embedded/tables.json", index)]
    (root / SUB_PATH).parent.mkdir(parents=True)
    export(root / SUB_PATH, lock, folder_of(lock), tables, folder_of(lock), board_file)
    return root / SUB_PATH


@pytest.fixture(scope="session")
def address(edition: Path) -> Iterator[str]:
    """Address of the edition."""
    root = edition.parents[SUB_PATH.count("/")]
    handler = functools.partial(_Files, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/{SUB_PATH}/"
        server.shutdown()
        serving.join()


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """One Chromium session for all tests; closing it reads its network log."""
    log = tmp_path_factory.mktemp("net") / "net.json"
    flags = [
        *CHROMIUM_FLAGS,
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--log-net-log={log}",
    ]
    with sync_playwright() as driver:
        expect.set_options(timeout=PATIENCE)
        chromium = driver.chromium.launch(executable_path=find_chromium(), args=flags)
        session = chromium.new_context(viewport={"width": 1280, "height": 900})
        session.set_default_timeout(PATIENCE)
        yield session
        session.close()
        chromium.close()
    hosts = asked_hosts(log)
    assert hosts == {"127.0.0.1"}, f"Chromium asked {sorted(hosts)}"


@pytest.fixture(scope="session")
def page(context: BrowserContext) -> Page:
    """The one page of the browser session."""
    return context.new_page()


@pytest.fixture(autouse=True)
def problems(page: Page) -> Iterator[list[str]]:
    """Fail a test during which the page or Python reported an error.

    A test that provokes an error must remove the error from the list.
    """
    problems: list[str] = []

    def on_error(error: object) -> None:
        problems.append(f"page error: {error}")

    def on_console(message: object) -> None:
        if getattr(message, "type", "") == "error":
            where = getattr(message, "location", {}).get("url", "")
            problems.append(f"console: {getattr(message, 'text', '')} ({where})")

    page.on("pageerror", on_error)
    page.on("console", on_console)
    yield problems
    page.remove_listener("pageerror", on_error)
    page.remove_listener("console", on_console)
    problems += page.locator('[data-testid="stException"]').all_inner_texts()
    assert problems == []
