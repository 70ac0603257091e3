"""Fixtures of the browser edition: one folder, one server of files, one Chromium cut off the net.

The folder is served below a path of its own, as on a host that has other pages. Chromium resolves
no name and its network log is read when it has closed, so a request to another host is seen also
where no page made it.
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
# One step of a session: Python in a browser starts in a minute on a busy machine.
PATIENCE = 150_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what cannot be driven here; a file of Pyodide that is not on record is an error."""
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
    """What `python -m http.server` is, quiet, and as strict as the usual hosts of static pages.

    Those serve nothing that begins with ``_`` or ``.`` (a ``.nojekyll`` that lies below the top of
    the site, as here, is not seen), and show ``404.html`` of their top.
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
    """Folder of an edition that hosts everything itself, below a path of its own."""
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
    """The one page of the session."""
    return context.new_page()


@pytest.fixture(autouse=True)
def problems(page: Page) -> Iterator[list[str]]:
    """Fail a test during which the page or Python reported an error.

    A test that provokes one takes it out of the list.
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
