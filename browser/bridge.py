"""Streamlit's runtime inside Pyodide: no sockets and no threads, one page, one event loop.

The worker (worker.js) calls `start`, `connect`, `receive`, `upload`, `forget` and `media`; this
file calls the worker's `toPage`, `turn`, `runLater` and `keepStore`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import concurrent.futures.thread
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import js
from pyodide.ffi import can_run_sync, create_proxy, run_sync, to_js

# By default, Emscripten creates files that nobody may read, so change the default.
os.umask(0o022)

LOOP = asyncio.get_event_loop()
_LOOK_SECONDS = 0.1


# --------------------------------------------------------------- what needs a thread elsewhere


class _Timer:
    """Replace `threading.Timer` on the event loop; a timer fires once a script waits or ends."""

    def __init__(
        self,
        interval: float,
        function: Callable[..., Any],
        args: Iterable[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.interval = interval
        self.name, self.daemon = "timer", True
        self._call = lambda: function(*(args or ()), **(kwargs or {}))
        self._due: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = LOOP.call_later(self.interval, lambda: self.run())

    def run(self) -> None:  # Streamlit replaces `run`, so look up `run` when the timer fires.
        self._call()

    def cancel(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None:
        del timeout


class _InPlace(concurrent.futures.Executor):
    """Replace `ThreadPoolExecutor`; each task runs immediately in the only thread."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


async def _in_place(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


# Replace these names before importing Streamlit or the app, which bind them on import.
threading.Timer = _Timer  # type: ignore[misc, assignment]
concurrent.futures.ThreadPoolExecutor = _InPlace  # type: ignore[misc, assignment]
concurrent.futures.thread.ThreadPoolExecutor = _InPlace  # type: ignore[misc, assignment]
asyncio.to_thread = _in_place
asyncio.new_event_loop = lambda: LOOP
asyncio.set_event_loop = lambda loop: None

from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import Runtime, RuntimeConfig, app_session
from streamlit.runtime.caching.storage.dummy_cache_storage import MemoryCacheStorageManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.runtime_util import serialize_forward_msg
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_run_context import SCRIPT_RUN_CONTEXT_ATTR_NAME
from streamlit.runtime.session_manager import ClientContext, SessionClient
from streamlit.runtime.uploaded_file_manager import UploadedFileRec


class _Page(SessionClient):
    """The only page that this runtime serves."""

    def write_forward_msg(self, msg: Any) -> None:
        js.toPage(to_js(serialize_forward_msg(msg)))

    @property
    def client_context(self) -> ClientContext:
        return _Context()


class _Context(ClientContext):
    """A client context without headers, cookies or address, as no network is involved."""

    headers = property(lambda self: [])
    cookies = property(lambda self: {})
    remote_ip = property(lambda self: None)


class _Runtime(Runtime):
    """Send each message immediately, because the event loop rests while a script runs."""

    def _enqueued_some_message(self) -> None:
        for info in self._session_mgr.list_active_sessions():
            for message in info.session.flush_browser_queue():
                self._send_message(info, message)
            info.session.on_flushed_messages_sent()


# --------------------------------------------------------------- scripts


class _Scripts:
    """State of the scripts: whether one runs, and whether it pauses to let messages in."""

    resting = False
    looked = 0.0


def _start(self: ScriptRunner) -> None:
    """Replace `ScriptRunner.start`; the script runs when the only thread is free."""
    if self._script_thread is not None:
        raise RuntimeError("ScriptRunner was already started")
    self._script_thread = threading.current_thread()

    def run() -> None:
        try:
            self._run_script_thread()
        finally:
            vars(threading.current_thread()).pop(SCRIPT_RUN_CONTEXT_ATTR_NAME, None)
            js.keepStore()

    proxy = create_proxy(run)
    js.runLater(proxy)
    proxy.destroy()


_look_at_requests = ScriptRunner._maybe_handle_execution_control_request


def _look(self: ScriptRunner) -> None:
    """Accept a rerun or a stop ten times a second if the browser can suspend WebAssembly."""
    if _Scripts.resting:
        return  # A timer fired during the pause; the script must not end here.
    now = time.monotonic()
    if now - _Scripts.looked > _LOOK_SECONDS and can_run_sync():
        _Scripts.resting = True
        try:
            run_sync(js.turn())
        finally:
            _Scripts.resting = False
        _Scripts.looked = time.monotonic()
    _look_at_requests(self)


ScriptRunner.start = _start
ScriptRunner._maybe_handle_execution_control_request = _look
app_session.AppSession._call_soon_on_event_loop = lambda self, callback: callback()
app_session._close_script_event_loop = lambda loop: None


# --------------------------------------------------------------- called by the worker


class _Open:
    runtime: _Runtime
    media: MemoryMediaFileStorage
    uploads: MemoryUploadedFileManager
    page: _Page | None = None
    session = ""


async def start(folder: str, options: Mapping[str, str]) -> None:
    """Start the runtime on the app in a folder."""
    del options
    script = f"{folder}/app.py"
    os.chdir(folder)
    sys.argv = [script]
    config._main_script_path = script
    config.get_config_options(force_reparse=True)
    _Open.media = MemoryMediaFileStorage("/media")
    _Open.uploads = MemoryUploadedFileManager("/_stcore/upload_file")
    _Open.runtime = _Runtime(
        RuntimeConfig(
            script_path=script,
            media_file_storage=_Open.media,
            uploaded_file_manager=_Open.uploads,
            cache_storage_manager=MemoryCacheStorageManager(),
        )
    )
    await _Open.runtime.start()


def connect() -> None:
    """Open the page's session, or resume it after its page closed the connection."""
    _Open.page = _Page()
    _Open.session = _Open.runtime.connect_session(
        client=_Open.page, user_info={}, existing_session_id=_Open.session or None
    )


def disconnect() -> None:
    """Close the page's connection; the session stays open."""
    if _Open.page is not None:
        _Open.runtime.disconnect_session(_Open.session, client=_Open.page)
        _Open.page = None


def receive(data: memoryview) -> None:
    """Receive a message from the page."""
    message = BackMsg()
    message.ParseFromString(bytes(data))
    _Open.runtime.handle_backmsg(_Open.session, message)


def upload(session: str, file: str, name: str, kind: str, data: memoryview) -> None:
    """Receive an uploaded file."""
    record = UploadedFileRec(file_id=file, name=name, type=kind, data=bytes(data))
    _Open.uploads.add_file(session_id=session, file=record)


def forget(session: str, file: str) -> None:
    """Drop an uploaded file."""
    _Open.uploads.remove_file(session_id=session, file_id=file)


def media(name: str) -> Any:
    """Return the bytes, the type and the name of a download, or None."""
    from streamlit.runtime.media_file_storage import MediaFileStorageError

    try:
        file = _Open.media.get_file(name)
    except MediaFileStorageError:
        return None
    content = file.content if isinstance(file.content, bytes) else bytes(file.content)
    return [to_js(content), file.mimetype, file.filename or ""]
