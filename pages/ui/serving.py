"""What stands between the network and Streamlit, and what a server does by itself.

app.py hands both to Streamlit's ASGI application. A browser edition has no server, and no use for
this file.
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

# Streamlit's charts compile their specifications, and its page carries scripts and styles.
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
    "dpviz answers to localhost and to the names that DPVIZ_HOSTS has: docs/deploy.md tells how to "
    "set it."
)
FAR = (
    "dpviz serves the machine that it runs on only, until DPVIZ_HOSTS has the name it is reached "
    "by: docs/deploy.md tells how to set it."
)
HEALTH, METRICS, UPLOAD = "/_stcore/health", "/_stcore/metrics", "/_stcore/upload_file"

DOWNLOADS = "streamlit.runtime.backend_operation_handler"
"""Logger of what writes a file when its button is pressed."""

_READING = ("GET", "HEAD", "OPTIONS", "DELETE")
_EVERYWHERE = ("0.0.0.0", "::")
_TOLD = 20
_NO_MESSAGE = 1003

GRACE = 120.0
"""Seconds that somebody who left may take to come back; Streamlit's own limit may be shorter."""
# Of all that somebody left, what hangs in circles is found when this much of the grace is over.
_LOOKS = 12
# Uvicorn waits for every request that is under way, however slowly it comes.
_ENDING = 1.5


class Uploads:
    """The meter of what is uploaded: what Streamlit holds, and what is on its way."""

    def __init__(self) -> None:
        self._coming: Counter[str] = Counter()

    def room(self, session: str) -> int:
        """Return how many bytes more a session may send."""
        stored = runtime.get_instance().uploaded_file_mgr.file_storage
        held = Counter(self._coming)
        for one, files in list(stored.items()):
            held[one] += sum(len(file.data) for file in list(files.values()))
        own = st.get_option("server.maxUploadSize") * 2**20
        return int(min(own - held[session], limits.caps().held - held.total()))

    @contextmanager
    def coming(self, session: str, receive: Receive) -> Iterator[Receive]:
        """Count a body while it is received, and break off where there is no room for more."""
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
    """Return why an upload is refused that is too much."""
    own = st.get_option("server.maxUploadSize")
    return (
        f"There is no room for this file: one visitor may have {own:,} MB on this server, and all "
        f"together {limits.caps().held // 2**20:,} MB."
    )


def _speaks(frame: bytes | None) -> bool:
    """Return whether a frame is a message as a browser sends it: bytes that can be read."""
    if frame is None:
        return False
    try:
        BackMsg.FromString(frame)
    except DecodeError:
        return False
    return True


class Guard:
    """ASGI middleware: who may ask for what, before any of it reaches Streamlit.

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
        """Answer what is refused, and hand on the rest."""
        if scope["type"] == "lifespan":
            await self._start(scope, receive, send)
            return

        answered = left = mute = False

        async def received() -> Message:
            nonlocal mute
            message = await receive()
            if message["type"] == "websocket.receive" and not _speaks(message.get("bytes")):
                # to Streamlit it hangs up: a text ends there with a traceback, other bytes with one
                # in the log
                mute = True
                return {"type": "websocket.disconnect", "code": _NO_MESSAGE}
            return message

        async def sent(message: Message) -> None:
            nonlocal answered, left
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                answered = True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            try:
                await send(message)
            except OSError:
                left = True
                raise

        refused = self._refused(scope)
        if refused is not None:
            await _refuse(refused, scope, receive, sent)
            return
        try:
            await self._pass(scope, received, sent)
            if mute:
                await send({"type": "websocket.close", "code": _NO_MESSAGE})
        except ClientDisconnect:
            return  # a body was cut: nobody is there to be answered, and nothing is to be mended
        except Exception as error:
            # of a visitor who left while being told something Streamlit takes leave once more
            if left and scope["type"] == "websocket" and isinstance(error, RuntimeError):
                return
            if scope["type"] == "http" and not answered:
                await PlainTextResponse("Internal Server Error\n", 500)(scope, receive, sent)
            raise

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on to Streamlit what may reach it."""
        # It would compare an origin that it does not know with the machine's own addresses, and
        # look them up outside: what comes this far needs no second look.
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
        with self._uploads.coming(_session(scope), receive) as counted:
            await self._app(scope, counted, send)

    async def _start(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start, unless the environment says what cannot be."""
        try:
            limits.caps()
        except DpvizError as error:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": f"dpviz: {error}"})
            return
        await self._app(scope, receive, send)

    def _refused(self, scope: Scope) -> HTTPException | None:
        """Return why a request is refused, if it is."""
        path = scope["path"]
        if path == f"{_base()}{HEALTH}":  # who looks after a machine knows it by names of their own
            return None
        if not _near(scope):
            return HTTPException(403, FAR)
        host = ", ".join(_given(scope, b"host"))  # of several none is known
        if not _known(host):
            self._tell("name", host)
            return HTTPException(421, FOREIGN)
        for origin in _given(scope, b"origin"):
            if not _same(origin, host):
                self._tell("origin", origin)
                return HTTPException(403, FOREIGN)
        if METRICS in path and limits.caps().public:
            return HTTPException(404, "Not found.")
        if _stores(scope):
            return self._unwelcome(scope)
        return None

    def _unwelcome(self, scope: Scope) -> HTTPException | None:
        """Return why an upload is refused before any of it is read, if it is."""
        session = _session(scope)
        if not limits.caps().uploads:
            return HTTPException(403, "Uploads are switched off on this server.")
        if not limits.sessions().admitted(session):
            return HTTPException(403, "Nobody is here for whom this file could be kept.")
        lengths = [int(one) for one in _given(scope, b"content-length") if one.isdecimal()]
        if max(lengths, default=0) > self._uploads.room(session):
            return HTTPException(413, no_room())
        return None

    def _tell(self, what: str, given: str) -> None:
        """Say once in the log what was refused: to a browser it only looks like silence."""
        if (what, given) not in self._told and len(self._told) < _TOLD:
            self._told.add((what, given))
            LOG.warning("dpviz: refused the %s %r; DPVIZ_HOSTS has the names it may have",
                        what, printable(given))  # fmt: skip


async def _refuse(why: HTTPException, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": why.detail})
        return
    # a body that nobody reads ends with the connection
    answer = PlainTextResponse(f"{why.detail}\n", why.status_code, {"connection": "close"})
    await answer(scope, receive, send)


def _base() -> str:
    """Return the path that the dashboard lives under, with a slash before it, or nothing."""
    inside = st.get_option("server.baseUrlPath").strip("/")
    return f"/{inside}" if inside else ""


def _first() -> str:
    """Return the name of the first page, which Streamlit knows by the bare address alone."""
    return next(info.path.stem for info in menu.infos() if info.first)


def _given(scope: Scope, header: bytes) -> list[str]:
    """Return all that a request says under one header."""
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _stores(scope: Scope) -> bool:
    """Return whether a request would leave a file on the server."""
    return UPLOAD in scope["path"] and scope.get("method") not in _READING


def _session(scope: Scope) -> str:
    return str(scope["path"].partition(f"{UPLOAD}/")[2].partition("/")[0])


def _near(scope: Scope) -> bool:
    """Return whether somebody asks from this machine, or this server is there for others too."""
    caps, client = limits.caps(), scope.get("client")
    bound = st.get_option("server.address")
    opened = caps.public or bool(caps.hosts) or not (bound is None or _loopback(bound))
    return opened or client is None or _loopback(client[0])


def _known(host: str) -> bool:
    """Return whether a server may be reached by a name."""
    name = _name(f"//{host}")
    if name is None:
        return False
    return _loopback(name) or any(_matches(name, one) for one in _own_names())


def _same(origin: str, host: str) -> bool:
    """Return whether a page may speak to this server: its own, or one of a name in the list."""
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
        given = (st.get_option(option) or "").lower()
        if given not in ("", "localhost", *_EVERYWHERE):
            yield _name(f"//{given}") or given


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return pattern in ("*", name)


def _name(address: str) -> str | None:
    """Return the host of an address in lower case, or None where it has none."""
    try:
        found = urlsplit(address)
        _ = found.port
    except ValueError:
        return None
    return (found.hostname or "").rstrip(".") or None


def _loopback(name: str) -> bool:
    """Return whether a name or a number is this machine's own, seen from within."""
    if name == "localhost":
        return True
    try:
        number = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(number, "ipv4_mapped", None)
    return (mapped or number).is_loopback


_FIRST_PAGE = ("pages.ui.shell", "pages.ui.sections", "pages.ui.take", "scipy.optimize")
"""What Explore and its draws import, a quarter of a second of it beside the shell."""


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Make ready, say where the server is, and look after what visitors leave."""
    share_heaps()
    warm()
    logging.getLogger(DOWNLOADS).addFilter(_worth_telling)
    hearing.begin()
    for name in _FIRST_PAGE:  # or the first visitors would wait for it,
        import_module(name)
    first_picture.page(b"")  # and for what ships
    gc.collect()
    gc.freeze()  # what is imported stays: no later look goes through it
    gc.enable()  # again; app.py says why not before
    _end_soon()
    _announce()
    tending = asyncio.create_task(_tend())
    yield
    tending.cancel()


def _worth_telling(record: logging.LogRecord) -> bool:
    """Return whether a download failed, and was not asked for of a page that has run again since.

    Streamlit writes a traceback for both, and tells the browser of both.
    """
    error = record.exc_info[1] if record.exc_info else None
    overtaken = isinstance(error, MediaFileStorageError) and str(error).endswith(" not found")
    return not overtaken or error.__cause__ is not None


async def _tend() -> None:
    """Drop what belongs to those who have left, also while nobody asks for anything."""
    # Streamlit forgets who does not come back, and what they uploaded once anybody looks.
    grace = min(GRACE, 0.8 * st.get_option("server.disconnectedSessionTTL"))
    here, collect = runtime.get_instance(), 0
    while True:
        await asyncio.sleep(grace / _LOOKS)
        # of those that never ran no page has told; each holds an event loop, which is three files
        held = [one.session.id for one in here._session_mgr.list_sessions()]
        now = time.monotonic()
        for session in limits.sessions().leaving(here.is_active_session, now, grace, held):
            here.close_session(session)
            collect = 2  # what has gone lets go of the last of it a little later
        if collect:
            collect -= 1
            give_back()
            if limits.sessions().empty:
                gc.freeze()  # all that is left belongs to nobody


def _end_soon() -> None:
    """Let the signals that end the server end it also while a request hangs."""
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
    """Say where the server is, and open a browser there if it may."""
    named, bound = st.get_option("browser.serverAddress"), st.get_option("server.address")
    if named == "localhost" and bound not in (None, *_EVERYWHERE):
        named = f"[{bound}]" if ":" in bound else bound
    secure = "s" if st.get_option("server.sslCertFile") else ""
    address = f"http{secure}://{named}:{st.get_option('server.port')}{_base()}"
    print(f"dpviz: {address}", flush=True)
    if limits.caps().release and not can_release():
        print(f"dpviz: no page Release, as {NO_OPENDP}", flush=True)
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, address)


MIDDLEWARE = (Middleware(Guard),)
