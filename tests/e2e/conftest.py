"""Fixtures of the browser tests: servers, browser sessions and a watched page.

Tests import ``open_app``, ``rerun`` and ``wait_idle`` from ``tests.e2e.harness``. One server and
one browser session serve all tests of a process, since compiling Streamlit's scripts anew costs
more than most tests: each test has a page of its own, and what it left in the browser is cleared.
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
    """Skip the folder where there is no browser, or refuse to start where one is required."""
    # A run on Papers is there for all later visits, so its tests are in order. What comes first is
    # given to one process as it stands, and another one, once idle, takes from the end.
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
    """Playwright's driver, which its package ships."""
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
    """A Python that has in memory what pages import of dpviz, and none of the pages.

    No test here is of an import: that none needs another one first is in tests/unit/test_rooms.py,
    and a start of Python itself in tests/process/test_server.py.
    """
    if not hasattr(os, "pidfd_open"):
        yield Path(sys.executable)
        return
    pages = "".join(path.read_text(encoding="utf-8") for path in PAGES.rglob("*.py"))
    named = sorted({*re.findall(r"^from (dpviz[\w.]*) import", pages, re.MULTILINE)})
    with warm_python(tmp_path_factory.mktemp("warm"), named) as python:
        yield python


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Iterator[Server]:
    """The dashboard, started once; its caches live as long.

    A test of what a first visitor finds takes ``fresh_server``.
    """
    folder = tmp_path_factory.mktemp("server")
    # results and ledgers are kept: not among those of whoever runs the tests
    own = {"XDG_CACHE_HOME": str(folder), "DPVIZ_LEDGERS": str(folder / "ledgers")}
    with Server(app_path(), folder / "server.log", own, python=warm) as running:
        _servers.append(running)
        yield running
        _servers.remove(running)


@pytest.fixture(scope="session")
def spare_port() -> int:
    """The port of one dashboard after another.

    The browser then has Streamlit's scripts, compiled, from the first one's visit.
    """
    return free_port()


@pytest.fixture
def fresh_server(tmp_path: Path, spare_port: int, warm: Path) -> Iterator[ServerFactory]:
    """Make dashboards that nobody has visited, for tests of the first hit.

    Called with an optional mapping of environment variables; stopped with the test. Libraries and
    dpviz are in memory, as they are imported; all of the pages is imported anew.
    """
    with ExitStack() as stack:

        def start(environment: Mapping[str, str] | None = None, app: Path | None = None) -> Server:
            log = tmp_path / f"server-{len(_servers)}.log"
            port = spare_port if is_free(spare_port) else None
            # what a first visitor finds: nothing that earlier runs of this user have kept
            own = {"XDG_CACHE_HOME": str(tmp_path), **(environment or {})}
            one = Server(app or app_path(), log, own, port=port, python=warm)
            running = stack.enter_context(one)
            _servers.append(running)
            stack.callback(_servers.remove, running)
            return running

        yield start


class Visitor:
    """A browser session that many tests use one after the other.

    A small page stays open, so that the process that has compiled Streamlit's scripts lives on.

    Parameters
    ----------
    browser : Browser
        Where the session is made.
    server : Server
        The dashboard that it visits.
    """

    def __init__(self, browser: Browser, server: Server) -> None:
        self.session = new_context(browser)
        anchor = self.session.new_page()
        anchor.goto(f"{server.url}/_stcore/health")
        self._line = self.session.new_cdp_session(anchor)

    def forget(self) -> None:
        """Leave no page open, no cookie, no permission and nothing stored."""
        _, *opened = self.session.pages
        seen = {running.url for running in _servers}
        for left in opened:
            place = urlsplit(left.url)
            if place.scheme == "http":
                seen.add(f"http://{place.netloc}")
            left.close()
        self.session.clear_cookies()
        self.session.clear_permissions()
        for origin in seen:
            told = {"origin": origin, "storageTypes": "all"}
            self._line.send("Storage.clearDataForOrigin", told)


@pytest.fixture(scope="session")
def visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    """The browser session that all tests share."""
    one = Visitor(browser, server)
    yield one
    one.session.close()


@pytest.fixture(scope="session")
def other_visitor(browser: Browser, server: Server) -> Iterator[Visitor]:
    """The browser session of somebody else, to whom a link is given."""
    one = Visitor(browser, server)
    yield one
    one.session.close()


@pytest.fixture
def context(visitor: Visitor) -> Iterator[BrowserContext]:
    """The shared browser session, as one without cookies, storage or open pages finds it."""
    yield visitor.session
    visitor.forget()


@pytest.fixture
def other_context(other_visitor: Visitor) -> Iterator[BrowserContext]:
    """Another browser session, which shares nothing with ``context`` and is left as empty."""
    yield other_visitor.session
    other_visitor.forget()


@pytest.fixture
def page(context: BrowserContext, fresh_server: ServerFactory) -> Iterator[Page]:
    """A page that fails its test if the app ever showed an exception on it.

    Uncaught JavaScript errors and requests to other hosts fail it too.
    """
    del fresh_server  # only named to be torn down later than this: the last look needs the server
    watched = new_page(context)
    yield watched
    problems = problems_of(watched)
    if problems:
        pytest.fail(f"problems on the page:\n{problems}", pytrace=False)


@pytest.fixture(autouse=True)
def quiet_servers(fresh_server: ServerFactory) -> Iterator[None]:
    """Fail a test during which a server logged a traceback."""
    del fresh_server  # only named to look before its servers are gone
    yield
    found = [text for text in (running.new_traceback() for running in _servers) if text]
    if found:
        pytest.fail("the server logged a traceback:\n" + "\n".join(found), pytrace=False)
