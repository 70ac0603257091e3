"""The guard between the network and Streamlit, and the server's own tasks.

app.py passes both to Streamlit's ASGI application. A browser edition has no server, and does not
need this file.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
import signal
import threading
import time
import webbrowser
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from google.protobuf.message import DecodeError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.media_file_storage import MediaFileStorageError

from dpviz.core.errors import DpvizError, printable
from dpviz.core.platform import NO_OPENDP, can_release
from dpviz.core.resources import give_back, share_heaps
from dpviz.datasets.process import warm
from pages.ui import first_picture, hearing, limits, menu

LOG = logging.getLogger("uvicorn.error")

# Allow eval and inline code: Streamlit's charts compile code, and its page has inline scripts.
CONTENT = (
    "default-src 'self'; script-src 'self' blob: 'unsafe-eval' 'wasm-unsafe-eval' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; worker-src 'self' blob:; frame-src 'self' blob: data:; "
    "frame-ancestors 'self'; object-src 'none'; base-uri 'self'; form-action 'self'"
)
HEADERS = (
    (b"content-security-policy", CONTENT.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
FOREIGN = (
    "dpviz answers only to localhost and to the names in DPVIZ_HOSTS. docs/deploy.md explains how "
    "to set DPVIZ_HOSTS."
)
FAR = (
    "dpviz serves only its own machine until DPVIZ_HOSTS has the server's name. docs/deploy.md "
    "explains how to set DPVIZ_HOSTS."
)
HEALTH, METRICS, UPLOAD = "/_stcore/health", "/_stcore/metrics", "/_stcore/upload_file"

DOWNLOADS = "streamlit.runtime.backend_operation_handler"
"""Logger of the code that creates a file on a button press."""

_READING = ("GET", "HEAD", "OPTIONS", "DELETE")
_EVERYWHERE = ("0.0.0.0", "::")
_TOLD = 20
_NO_MESSAGE = 1003

GRACE = 120.0
"""Seconds in which a visitor who left may come back; Streamlit's own limit may be shorter."""
# Collect cyclic garbage of departed visitors 12 times per grace period.
_LOOKS = 12
# Uvicorn waits for every open request when it stops, however slow, so limit the wait.
_ENDING = 1.5


class Uploads:
    """Count uploaded bytes: those that Streamlit holds, and those that are arriving."""

    def __init__(self) -> None:
        self._coming: Counter[str] = Counter()

    def room(self, session: str) -> int:
        """Return how many more bytes a session may send."""
        files_by_session = runtime.get_instance().uploaded_file_mgr.file_storage
        sizes = Counter(self._coming)
        for one, files in list(files_by_session.items()):
            sizes[one] += sum(len(file.data) for file in list(files.values()))
        own = st.get_option("server.maxUploadSize") * 2**20
        return int(min(own - sizes[session], limits.caps().held - sizes.total()))

    @contextmanager
    def coming(self, session: str, receive: Receive) -> Iterator[Receive]:
        """Count a body while it is received, and stop if there is no space for more."""
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            more = len(message.get("body", b""))
            if more > self.room(session):
                raise HTTPException(413, no_room())
            self._coming[session] += more
            size += more
            return message

        try:
            yield counted
        finally:
            self._coming[session] -= size
            if not self._coming[session]:
                del self._coming[session]


def no_room() -> str:
    """Return why an upload that is too large is refused."""
    own = st.get_option("server.maxUploadSize")
    return (
        f"This file does not fit into the server's storage. One visitor may store {own:,} MB on "
        f"this server, and all visitors together {limits.caps().held // 2**20:,} MB."
    )


def _speaks(frame: bytes | None) -> bool:
    """Return whether a frame is a valid message of a browser, which means readable bytes."""
    if frame is None:
        return False
    try:
        BackMsg.FromString(frame)
    except DecodeError:
        return False
    return True


class Guard:
    """ASGI middleware that decides which requests are allowed, before they reach Streamlit.

    Parameters
    ----------
    app : ASGI application
        Streamlit's.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._uploads = Uploads()
        self._told: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer refused requests, and pass on allowed requests."""
        if scope["type"] == "lifespan":
            await self._start(scope, receive, send)
            return

        has_answer = has_left = mute = False

        async def received() -> Message:
            nonlocal mute
            message = await receive()
            if message["type"] == "websocket.receive" and not _speaks(message.get("bytes")):
                # Pretend to Streamlit that the browser has left. Otherwise a text message or
                # unknown bytes would end with a traceback.
                mute = True
                return {"type": "websocket.disconnect", "code": _NO_MESSAGE}
            return message

        async def sent(message: Message) -> None:
            nonlocal has_answer, has_left
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                has_answer = True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            try:
                await send(message)
            except OSError:
                has_left = True
                raise

        reason = self._refusal(scope)
        if reason is not None:
            await _refuse(reason, scope, receive, sent)
            return
        try:
            await self._pass(scope, received, sent)
            if mute:
                await send({"type": "websocket.close", "code": _NO_MESSAGE})
        except ClientDisconnect:
            return  # The client ended its request, so nobody waits for an answer.
        except Exception as error:
            # Ignore this error: Streamlit closes a connection twice if the visitor leaves early.
            if has_left and scope["type"] == "websocket" and isinstance(error, RuntimeError):
                return
            if scope["type"] == "http" and not has_answer:
                await PlainTextResponse("Internal Server Error\n", 500)(scope, receive, sent)
            raise

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass allowed requests on to Streamlit."""
        # Remove the origin, which is already checked here. Streamlit would look up this machine's
        # outside address to compare an unknown origin with it.
        headers = [(name, value) for name, value in scope["headers"] if name != b"origin"]
        scope = {**scope, "headers": headers}
        if scope["type"] == "http" and scope["path"] == f"{_base()}/{_first()}":
            query = scope["query_string"].decode("latin-1")
            await RedirectResponse(f"{_base()}/{query and '?'}{query}")(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] == f"{_base()}/" and scope["method"] == "GET":
            page = await run_in_threadpool(first_picture.page, scope["query_string"])
            if page is not None:
                await page(scope, receive, send)
                return
        if not _stores(scope):
            await self._app(scope, receive, send)
            return
        with self._uploads.coming(_session(scope), receive) as body:
            await self._app(scope, body, send)

    async def _start(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start the server, unless the environment has invalid settings."""
        try:
            limits.caps()
        except DpvizError as error:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": f"dpviz: {error}"})
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> HTTPException | None:
        """Return why a request is refused, or None."""
        path = scope["path"]
        if path == f"{_base()}{HEALTH}":  # Monitors may use other host names for the server.
            return None
        if not _near(scope):
            return HTTPException(403, FAR)
        host = ", ".join(_header(scope, b"host"))  # Several host headers never match a known name.
        if not _may_reach(host):
            self._tell("name", host)
            return HTTPException(421, FOREIGN)
        for origin in _header(scope, b"origin"):
            if not _same(origin, host):
                self._tell("origin", origin)
                return HTTPException(403, FOREIGN)
        if METRICS in path and limits.caps().public:
            return HTTPException(404, "Not found.")
        if _stores(scope):
            return self._unwelcome(scope)
        return None

    def _unwelcome(self, scope: Scope) -> HTTPException | None:
        """Return why an upload is refused before any of it is read, or None."""
        session = _session(scope)
        if not limits.caps().uploads:
            return HTTPException(403, "Uploads are switched off on this server.")
        if not limits.sessions().admitted(session):
            return HTTPException(403, "This file belongs to no open session, so it was not stored.")
        lengths = [int(one) for one in _header(scope, b"content-length") if one.isdecimal()]
        if max(lengths, default=0) > self._uploads.room(session):
            return HTTPException(413, no_room())
        return None

    def _tell(self, what: str, value: str) -> None:
        """Log once what was refused, because the browser shows no message."""
        if (what, value) not in self._told and len(self._told) < _TOLD:
            self._told.add((what, value))
            LOG.warning("dpviz: refused the %s %r; DPVIZ_HOSTS lists allowed names",
                        what, printable(value))  # fmt: skip


async def _refuse(why: HTTPException, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": why.detail})
        return
    # Close the connection, because nobody reads the rest of the request's body.
    answer = PlainTextResponse(f"{why.detail}\n", why.status_code, {"connection": "close"})
    await answer(scope, receive, send)


def _base() -> str:
    """Return the dashboard's base path with a slash before it, or an empty text."""
    inside = st.get_option("server.baseUrlPath").strip("/")
    return f"/{inside}" if inside else ""


def _first() -> str:
    """Return the name of the first page, which Streamlit serves only at the bare address."""
    return next(info.path.stem for info in menu.infos() if info.first)


def _header(scope: Scope, header: bytes) -> list[str]:
    """Return all values of one header of a request."""
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _stores(scope: Scope) -> bool:
    """Return whether a request would leave a file on the server."""
    return UPLOAD in scope["path"] and scope.get("method") not in _READING


def _session(scope: Scope) -> str:
    return str(scope["path"].partition(f"{UPLOAD}/")[2].partition("/")[0])


def _near(scope: Scope) -> bool:
    """Return whether a request comes from this machine, or the server is open to other machines."""
    caps, client = limits.caps(), scope.get("client")
    bound = st.get_option("server.address")
    is_open = caps.public or bool(caps.hosts) or not (bound is None or _loopback(bound))
    return is_open or client is None or _loopback(client[0])


def _may_reach(host: str) -> bool:
    """Return whether a server may be reached under a name."""
    name = _name(f"//{host}")
    if name is None:
        return False
    return _loopback(name) or any(_matches(name, one) for one in _own_names())


def _same(origin: str, host: str) -> bool:
    """Return whether a page may talk to this server: its own page, or one with a listed name."""
    name = _name(origin)
    if name is None:
        return False
    if any(_matches(name, one) for one in _own_names()):
        return True
    same_port = urlsplit(origin).port == urlsplit(f"//{host}").port
    return _loopback(name) and _loopback(_name(f"//{host}") or "") and same_port


def _own_names() -> Iterator[str]:
    yield from limits.caps().hosts
    for option in ("server.address", "browser.serverAddress"):
        name = (st.get_option(option) or "").lower()
        if name not in ("", "localhost", *_EVERYWHERE):
            yield _name(f"//{name}") or name


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return pattern in ("*", name)


def _name(address: str) -> str | None:
    """Return the host of an address in lower case, or None."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return (parts.hostname or "").rstrip(".") or None


def _loopback(name: str) -> bool:
    """Return whether a name or an address is this machine's own loopback."""
    if name == "localhost":
        return True
    try:
        number = ipaddress.ip_address(name)
    except ValueError:
        return False
    inner = getattr(number, "ipv4_mapped", None)
    return (inner or number).is_loopback


_FIRST_PAGE = ("pages.ui.shell", "pages.ui.sections", "pages.ui.take", "scipy.optimize")
"""Modules that Explore and its simulation import: a quarter of a second without the shell."""


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Prepare the server, announce its address, and clean up after visitors."""
    share_heaps()
    warm()
    logging.getLogger(DOWNLOADS).addFilter(_worth_telling)
    hearing.begin()
    for name in _FIRST_PAGE:  # Import now; otherwise the first visitors would wait.
        import_module(name)
    first_picture.page(b"")  # This call loads the shipped data before the first visit.
    gc.collect()
    gc.freeze()  # Imported objects are never freed, so never scan them again.
    gc.enable()  # app.py disabled the garbage collector until now.
    _end_soon()
    _announce()
    tending = asyncio.create_task(_tend())
    yield
    tending.cancel()


def _worth_telling(record: logging.LogRecord) -> bool:
    """Return whether a download failed for another reason than a new run of its page.

    Streamlit logs a traceback in both cases, and reports both to the browser.
    """
    error = record.exc_info[1] if record.exc_info else None
    late = isinstance(error, MediaFileStorageError) and str(error).endswith(" not found")
    return not late or error.__cause__ is not None


async def _tend() -> None:
    """Drop the data of departed visitors, even while no requests arrive."""
    # Streamlit drops lost sessions and their uploads only when its list of sessions is read.
    grace = min(GRACE, 0.8 * st.get_option("server.disconnectedSessionTTL"))
    here, collect = runtime.get_instance(), 0
    while True:
        await asyncio.sleep(grace / _LOOKS)
        # List sessions that never ran: no page reports them, and each event loop uses three files.
        sessions_here = [one.session.id for one in here._session_mgr.list_sessions()]
        now = time.monotonic()
        for session in limits.sessions().leaving(here.is_active_session, now, grace, sessions_here):
            here.close_session(session)
            collect = 2  # Collect twice: the last objects are freed a bit later.
        if collect:
            collect -= 1
            give_back()
            if limits.sessions().empty:
                gc.freeze()  # The remaining objects belong to no visitor.


def _end_soon() -> None:
    """Let the signals that end the server end it even if a request hangs."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)

        def ending(number: int, frame: FrameType | None, before: Any = before) -> None:
            clock = threading.Timer(_ENDING, os._exit, (128 + number,))
            clock.daemon = True
            clock.start()
            before(number, frame)

        signal.signal(number, ending)


def _announce() -> None:
    """Print the server's address, and open this address in a browser if allowed."""
    host, bound = st.get_option("browser.serverAddress"), st.get_option("server.address")
    if host == "localhost" and bound not in (None, *_EVERYWHERE):
        host = f"[{bound}]" if ":" in bound else bound
    secure = "s" if st.get_option("server.sslCertFile") else ""
    address = f"http{secure}://{host}:{st.get_option('server.port')}{_base()}"
    print(f"dpviz: {address}", flush=True)
    if limits.caps().release and not can_release():
        print(f"dpviz: the page Release is off, as {NO_OPENDP}", flush=True)
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, address)


MIDDLEWARE = (Middleware(Guard),)
