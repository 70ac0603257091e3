"""Fixtures of the browser tests: servers, browser sessions and a watched page.

Tests import ``open_app``, ``rerun`` and ``wait_idle`` from ``tests.e2e.harness``. One server and
one browser session serve all tests of a process, since compiling Streamlit's scripts again costs
more than most tests. Each test has its own page; cookies and storage are cleared after the test.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

from dpviz.core.files import app_path
from tests.e2e.browser import (
    CHROMIUM_FLAGS,
    NO_BROWSER,
    WITHOUT,
    browser_required,
    find_chromium,
)
from tests.e2e.harness import (
    PATIENCE,
    Server,
    free_port,
    is_free,
    new_context,
    new_page,
    problems_of,
)
from tests.warm import warm_python

_FOLDER = Path(__file__).resolve().parent
PAGES = app_path().parent / "pages"
_servers: list[Server] = []

ServerFactory = Callable[..., Server]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip this folder without a browser, or stop with an error if a browser is required."""
    # Tests of Papers depend on their order, because later visits find results of earlier runs. Put
    # them first: one process takes tests in order, and idle processes take tests from the end.
    items.sort(key=lambda item: item.path != _FOLDER / "test_papers.py")
    if find_chromium() is not None:
        return
    here = [item for item in items if item.path.is_relative_to(_FOLDER)]
    if here and browser_required():
        raise pytest.UsageError(
            "DPVIZ_REQUIRE_BROWSER is set and no Chromium is on PATH: apt-get install chromium"
        )
    for item in here:
        item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    """Playwright's driver from the Playwright package."""
    with sync_playwright() as driver:
        expect.set_options(timeout=PATIENCE)
        yield driver


@pytest.fixture(scope="session")
def browser(playwright_driver: Playwright) -> Iterator[Browser]:
    """The machine's own Chromium, headless; Playwright's download is never used."""
    path = find_chromium(windows=False)
    assert path is not None, "tests without a browser are skipped at collection"
    chromium = playwright_driver.chromium.launch(
        executable_path=path, args=[*CHROMIUM_FLAGS, WITHOUT]
    )
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Python that has already imported the pages' dpviz modules, but no page.

    tests/unit/test_rooms.py tests that no module needs another module first;
    tests/process/test_server.py tests the start of Python.
    """
    if not hasattr(os, "pidfd_open"):
        yield Path(sys.executable)
        return
    pages = "".join(path.read_text(encoding="utf-8") for path in PAGES.rglob("*.py"))
    modules = sorted({*re.findall(r"^from (dpviz[\w.]*) import", pages, re.MULTILINE)})
    with warm_python(tmp_path_factory.mktemp("warm"), modules) as python:
        yield python


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Iterator[Server]:
    """The dashboard, started once for all tests, with its caches.

    Tests of a first visit use ``fresh_server``.
    """
    folder = tmp_path_factory.mktemp("server")
    # Use a separate folder, so that tests never touch the results and ledgers of their user.
    env = {"XDG_CACHE_HOME": str(folder), "DPVIZ_LEDGERS": str(folder / "ledgers")}
    with Server(app_path(), folder / "server.log", env, python=warm) as running:
        _servers.append(running)
        yield running
        _servers.remove(running)


@pytest.fixture(scope="session")
def spare_port() -> int:
    """The port that fresh dashboards use one after another.

    With a constant port the browser reuses Streamlit's scripts, compiled at the first visit.
    """
    return free_port()


@pytest.fixture
def fresh_server(tmp_path: Path, spare_port: int, warm: Path) -> Iterator[ServerFactory]:
    """Make dashboards without earlier visitors, for tests of a first visit.

    Call the fixture's function with an optional mapping of environment variables; its servers stop
    with the test. Libraries and dpviz are imported already; the pages are imported again.
    """
    with ExitStack() as stack:

        def start(environment: Mapping[str, str] | None = None, app: Path | None = None) -> Server:
            log = tmp_path / f"server-{len(_servers)}.log"
            port = spare_port if is_free(spare_port) else None
            # Use an empty cache: a first visitor must not find results of earlier runs.
            env = {"XDG_CACHE_HOME": str(tmp_path), **(environment or {})}
            one = Server(app or app_path(), log, env, port=port, python=warm)
            running = stack.enter_context(one)
            _servers.append(running)
            stack.callback(_servers.remove, running)
            return running

        yield start


class Visitor:
    """A browser session that many tests use one after the other.

    A small page stays open to keep alive the process that compiled Streamlit's scripts.

    Parameters
    ----------
    browser : Browser
        Browser that opens the session.
    server : Server
        Dashboard that the session visits.
    """

    def __init__(self, browser: Browser, server: Server) -> None:
        self.session = new_context(browser)
        anchor = self.session.new_page()
        anchor.goto(f"{server.url}/_stcore/health")
        self._line = self.session.new_cdp_session(anchor)

    def forget(self) -> None:
        """Close the test's pages; clear cookies, permissions and storage."""
        _, *page_there = self.session.pages
        addresses = {running.url for running in _servers}
        for tab in page_there:
            place = urlsplit(tab.url)
            if place.scheme == "http":
                addresses.add(f"http://{place.netloc}")
            tab.close()
        self.session.clear_cookies()
        self.session.clear_permissions()
        for origin in addresses:
            scope = {"origin": origin, "storageTypes": "all"}
            self._line.send("Storage.clearDataForOrigin", scope)


@pytest.fixture(scope="session")
def visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    """The browser session that all tests share."""
    one = Visitor(browser, server)
    yield one
    one.session.close()


@pytest.fixture(scope="session")
def other_visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    """The browser session of a second person, who receives a link."""
    one = Visitor(browser, server)
    yield one
    one.session.close()


@pytest.fixture
def context(visitor: Visitor) -> Iterator[BrowserContext]:
    """The shared browser session, without cookies, storage or pages of earlier tests."""
    yield visitor.session
    visitor.forget()


@pytest.fixture
def other_context(other_visitor: Visitor) -> Iterator[BrowserContext]:
    """Another browser session, which shares nothing with ``context`` and is cleared likewise."""
    yield other_visitor.session
    other_visitor.forget()


@pytest.fixture
def page(context: BrowserContext, fresh_server: ServerFactory) -> Iterator[Page]:
    """A page that fails its test if the app ever showed an exception on it.

    Uncaught JavaScript errors and requests to other hosts also fail the test.
    """
    del fresh_server  # Servers end after the last check, as their fixture is requested first.
    first = new_page(context)
    yield first
    problems = problems_of(first)
    if problems:
        pytest.fail(f"problems on the page:\n{problems}", pytrace=False)


@pytest.fixture(autouse=True)
def quiet_servers(fresh_server: ServerFactory) -> Iterator[None]:
    """Fail a test during which a server logged a traceback."""
    del fresh_server  # Servers end after this check, as their fixture is requested first.
    yield
    traces = [text for text in (running.new_traceback() for running in _servers) if text]
    if traces:
        pytest.fail("the server logged a traceback:\n" + "\n".join(traces), pytrace=False)
