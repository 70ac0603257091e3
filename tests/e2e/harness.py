"""A dashboard server and a watched browser page, for tests that need a real browser.

A test opens a page with ``open_app(page, server.url)``, changes something inside ``with
rerun(page):`` and then checks the page. No helper sleeps. A run ends with the server's
``script_finished`` message on the page's websocket. So the helpers do not miss a run too fast for
the DOM, nor guess the time of a slow run.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    WebSocket,
)
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

# A browser step fails after 60 seconds. The slowest legal step is a first run of all mechanisms on
# a busy two-core machine; it takes a tenth of this limit.
PATIENCE = 60_000
_START_SECONDS = 60
_TRACEBACK = "Traceback (most recent call last)"

_NOT_RUNNING = '[data-testid="stApp"][data-test-script-state="notRunning"]'

# Return the smallest font size of any visible text.
LEAST_TEXT = """part => Math.min(...[...part.querySelectorAll("*")]
  .filter(one => one.checkVisibility()
    && [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()))
  .map(one => parseFloat(getComputedStyle(one).fontSize)))"""

# One frame lays out new elements and the next frame paints them. Wait for both in one message to
# the browser, because a message costs more than the check itself.
_PAINTED = """
async patience => {
  const frame = () => new Promise(done => requestAnimationFrame(() => done(null)));
  const twoFrames = async () => { await frame(); await frame(); };
  const end = performance.now() + patience;
  const until = async (what, there) => {
    while (!there()) {
      if (performance.now() > end) throw new Error(`${what} was waited for in vain`);
      await new Promise(done => setTimeout(done, 20));
    }
  };
  await twoFrames();
  // The board asks for its other frames once it stands, which is another run.
  await until("a complete board", () => {
    const inside = [...document.querySelectorAll(".st-key-board *")];
    return !document.querySelector(".st-key-board")
      || inside.some(node => node.shadowRoot?.querySelector(".dpv[data-complete]"));
  });
  // An element's code is loaded when it is first needed; until then it is drawn as a grey bar. Of
  // the typefaces, those come that something on the page is written in.
  await until("the code of an element",
    () => !document.querySelector('[data-testid="stSkeleton"]'));
  await document.fonts.ready;
  await twoFrames();
}
"""

# Animations move groups and sidebars and may restart, so wait until no animation runs. Wait a few
# further frames for scroll events.
_AT_REST = """
async part => {
  const moving = () => {
    const found = [];
    for (let at = part; at; at = at.parentElement) found.push(...at.getAnimations());
    return found.filter(one => one.playState !== "finished");
  };
  for (let found = moving(); found.length; found = moving()) {
    await Promise.allSettled(found.map(one => one.finished));
  }
  for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
}
"""

# Navigate as the Back button does, which loads no new document, even within a page.
_TRAVEL = """
to => {
  history.pushState(history.state, "", to);
  dispatchEvent(new PopStateEvent("popstate", {state: history.state}));
}
"""

# Record every exception box that ever appears, even if a rerun soon replaces it.
_EXCEPTION_WATCH = """
(() => {
  const seen = new WeakSet(), box = '[data-testid="stException"]';
  const look = node => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    for (const one of node.matches(box) ? [node] : node.querySelectorAll(box)) {
      if (!seen.has(one)) { seen.add(one); window.dpvizReport(one.innerText); }
    }
  };
  new MutationObserver(all => all.forEach(one => one.addedNodes.forEach(look)))
    .observe(document, {childList: true, subtree: true});
})();
"""


def free_port() -> int:
    """Return a TCP port that nothing on this machine listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Return whether nothing on this machine listens on a TCP port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # Servers also set this option.
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Server:
    """A dashboard in a process of its own, on a free port of this machine.

    Parameters
    ----------
    app : Path
        Script that Streamlit runs.
    log_path : Path
        File for the output of the process.
    environment : mapping of str to str, optional
        Variables added to this process's environment.
    directory : Path, optional
        Working directory; the script's folder if left out.
    port : int, optional
        Port of an ended server whose pages are still open; a free port if left out.
    command : sequence of str, optional
        Command that starts a server on the given port; Streamlit on the script if left out.
    below : str, optional
        URL path of the server, such as ``/dpviz``.
    python : Path, optional
        Interpreter that runs Streamlit; this process's interpreter if left out.
    """

    def __init__(
        self,
        app: Path,
        log_path: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        port: int | None = None,
        command: Sequence[str] | None = None,
        below: str = "",
        python: Path | None = None,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}{below}"
        self.folder = log_path.parent
        self._log_path = log_path
        self._checked = 0
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command
                or [
                    *(str(python or sys.executable), "-m", "streamlit", "run", str(app)),
                    *("--server.address", "127.0.0.1", "--server.port", str(self.port)),
                    *("--server.headless", "true"),
                ],
                cwd=directory or app.parent,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        """Wait until the server answers; the script has not run yet."""
        try:
            self._await_health()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.stop()

    def _await_health(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            # Between requests, check whether the process has ended, to report a failed start early.
            try:
                status = self._process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"the server ended with status {status}:\n{self.log()}")
        raise RuntimeError(f"no answer from the server in {_START_SECONDS} s:\n{self.log()}")

    def stop(self) -> None:
        """End the process: terminate it, then kill it if needed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Number of the server's process."""
        return self._process.pid

    def log(self) -> str:
        """Return all that the server printed."""
        return self._log_path.read_text(encoding="utf-8", errors="replace")

    def new_traceback(self) -> str:
        """Return the log since the last call if it holds a traceback, otherwise nothing."""
        text = self.log()
        fresh, self._checked = text[self._checked :], len(text)
        return fresh if _TRACEBACK in fresh else ""


@dataclass
class Watch:
    """Problems on a page, and its script runs, since the page was opened.

    Parameters
    ----------
    problems : list of str
        Exceptions shown by the app, uncaught JavaScript errors, requests to other hosts and content
        that the content policy blocked. A test that provokes a problem must remove the problem from
        the list.
    runs : int
        Number of ended script runs, over all documents that the page has shown.
    running : bool
        Whether a run is due or under way.
    asked : bool
        Whether the page has requested a run that has not begun. One step may cause two runs: the
        first run can end while the request for the second run is still on its way.
    files : int
        Number of uploads under way. Replacing a file causes two runs: an immediate run without the
        old file, and a run when the new file has arrived.
    """

    problems: list[str] = field(default_factory=list)
    runs: int = 0
    running: bool = True
    asked: bool = False
    files: int = 0
    _stream: WebSocket | None = None

    def on_request(self, request: Request) -> None:
        """Record a new document, and any request that leaves this machine."""
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname not in {
            "127.0.0.1",
            "localhost",
        }:
            self.problems.append(f"request to another host: {parts.hostname}")
        if request.is_navigation_request() and request.frame.parent_frame is None:
            self.running, self.asked, self.files, self._stream = True, False, 0, None

    def on_console(self, message: ConsoleMessage) -> None:
        """Record content that the content policy has blocked."""
        if "Content Security Policy" in message.text:
            self.problems.append(f"kept out: {message.text}")

    def on_answer(self, request: Request) -> None:
        """Record the end of an upload, after which the page requests a run."""
        if request.method == "PUT" and "/upload_file/" in request.url and self.files:
            self.files -= 1

    def on_websocket(self, stream: WebSocket) -> None:
        """Watch the websocket on which Streamlit sends its messages to a document."""
        if urlsplit(stream.url).path.endswith("/_stcore/stream"):
            self._stream = stream
            stream.on("framereceived", self.on_frame)
            stream.on("framesent", self.on_sent)

    def on_sent(self, payload: str | bytes) -> None:
        """Record that the page requests a run or upload addresses."""
        if isinstance(payload, str):
            return
        message = BackMsg.FromString(payload)
        kind = message.WhichOneof("type")
        # Ignore timed reruns: they have no effect if the part of the page that they update is gone.
        if kind == "rerun_script" and not message.rerun_script.is_auto_rerun:
            self.asked = True
        elif kind == "file_urls_request":
            self.files += len(message.file_urls_request.file_names)

    def on_frame(self, payload: str | bytes) -> None:
        """Count the starts and ends of runs."""
        if isinstance(payload, str):
            return
        message = ForwardMsg.FromString(payload)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.running, self.asked = True, False
        elif kind == "script_finished":
            # If a run ended early, the run that interrupted it has not ended yet.
            early = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            self.running = early
            self.runs += not early

    @property
    def busy(self) -> bool:
        """Whether a run is known to be under way or due."""
        return bool(self.running or self.asked or self.files)

    def wait(self, page: Page, runs: int, deadline: float) -> None:
        """Return once at least ``runs`` runs have ended and none is under way."""
        while not self._over(runs):
            rest = 1000 * (deadline - time.monotonic())
            if rest <= 0:
                raise TimeoutError(f"the app still ran after {PATIENCE / 1000:.0f} s")
            # An aborted upload sends no message, so look again after a second. Do not wait for
            # single messages: a run sends a hundred, which would cost too much.
            with suppress(PlaywrightTimeout):
                if self._stream is None:
                    page.wait_for_event("websocket", timeout=min(rest, 1000))
                else:
                    self._stream.wait_for_event(
                        "framereceived", lambda _: self._over(runs), timeout=min(rest, 1000)
                    )

    def _over(self, runs: int) -> bool:
        return not self.busy and self.runs >= runs


_WATCHES: WeakKeyDictionary[Page, Watch] = WeakKeyDictionary()


def new_context(browser: Browser) -> BrowserContext:
    """Return a new browser session with the size of a small laptop's window."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    return context


def new_page(context: BrowserContext) -> Page:
    """Return a page of ``context`` that is watched from its first request on."""
    page = context.new_page()
    watch = _WATCHES[page] = Watch()
    page.on("request", watch.on_request)
    page.on("response", lambda response: watch.on_answer(response.request))
    page.on("requestfailed", watch.on_answer)
    page.on("websocket", watch.on_websocket)
    page.on("console", watch.on_console)
    page.on("pageerror", lambda error: watch.problems.append(f"page error: {error}"))
    page.expose_function(
        "dpvizReport", lambda text: watch.problems.append(f"the app shows an exception: {text}")
    )
    page.add_init_script(_EXCEPTION_WATCH)
    return page


def watch_of(page: Page) -> Watch:
    """Return the `Watch` of ``page``, which ``new_page`` made."""
    return _WATCHES[page]


def wait_idle(page: Page, *, after: int = 0) -> None:
    """Wait until the script's last run is over and the browser has painted its output.

    Parameters
    ----------
    page : Page
        A page made by ``new_page``.
    after : int
        Number of ended runs to wait for, if the next run has not started yet.
    """
    deadline = time.monotonic() + PATIENCE / 1000
    watch = watch_of(page)
    while True:
        watch.wait(page, after, deadline)
        page.locator(_NOT_RUNNING).wait_for()
        page.bring_to_front()  # A hidden page paints only once a second, so show it.
        page.evaluate(_PAINTED, 1000 * (deadline - time.monotonic()))
        if not watch.busy:
            return


def open_app(page: Page, url: str) -> None:
    """Load ``url`` and wait until the app has rendered the page."""
    page.goto(url)
    wait_idle(page)


def travel(page: Page, url: str) -> None:
    """Go to another address within the open page, as the browser's own buttons do."""
    with rerun(page):
        page.evaluate(_TRAVEL, url)


def at_rest(part: Locator) -> None:
    """Wait until neither a part of the page nor its containers move or grow.

    Wait for containers too: an open list closes on any scrolling, and a group scrolls when it grows
    around an element brought into sight. The part itself may not move meanwhile.
    """
    part.evaluate(_AT_REST)


def open_popover(page: Page, name: str) -> None:
    """Open the popover of a button in the row of settings."""
    page.locator(".st-key-bar").get_by_role("button", name=name).click()


@contextmanager
def rerun(page: Page) -> Iterator[None]:
    """Wait, when the block ends, for the script run that the block started."""
    before = watch_of(page).runs
    yield
    wait_idle(page, after=before + 1)


def problems_of(page: Page) -> str:
    """Return the problems on ``page`` so far as indented JSON, or an empty text."""
    # Ask the page itself, too: a report of its last exception may not have arrived yet.
    boxes = page.locator('[data-testid="stException"]').all_inner_texts()
    problems = [*watch_of(page).problems]
    lines = "\n".join(problems)
    problems += [f"the app shows an exception: {text}" for text in boxes if text not in lines]
    return json.dumps(problems, indent=2, ensure_ascii=False) if problems else ""
