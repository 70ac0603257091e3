"""List every Streamlit internal that dpviz relies on, and how dpviz uses it.

Streamlit guarantees none of these internals. `missing` looks for `PRIVATE` in the source of the
Streamlit version of the browser edition, and for `SERVED` and `MARKS` in the installed Streamlit. A
contract test reads the results of `missing`, and finds names that are used but not listed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zipfile import Path as Packed


@dataclass(frozen=True)
class Private:
    """One of Streamlit's private names, and its expected shape.

    Attributes
    ----------
    module : str
    name : str
        Name in the module. It is dotted for a member of a class, and empty for the module itself.
    parameters : tuple of str or None
        Names of the arguments in calls; None if the name is not a function.
    why : str
        How Streamlit uses the name.
    whose : str
        Code of dpviz that relies on the name.
    """

    module: str
    name: str
    parameters: tuple[str, ...] | None
    why: str
    whose: str = "the browser edition"


_RUNNER = "streamlit.runtime.scriptrunner.script_runner"
_SESSION = "streamlit.runtime.app_session"
_RUNTIME = "streamlit.runtime.runtime"
_CONTEXT = "streamlit.runtime.scriptrunner_utils.script_run_context"

PRIVATE = (
    Private(_RUNNER, "ScriptRunner.start", ("self",), "starts a script without a thread"),
    Private(_RUNNER, "ScriptRunner._script_thread", None, "says that a script was started"),
    Private(_RUNTIME, "Runtime._session_mgr", None, "finds the page's session"),
    Private(_RUNNER, "ScriptRunner._run_script_thread", ("self",), "is what a thread would run"),
    Private(
        _RUNNER,
        "ScriptRunner._maybe_handle_execution_control_request",
        ("self",),
        "lets messages in while a script runs",
    ),
    Private(
        _SESSION,
        "AppSession._call_soon_on_event_loop",
        ("self", "callback"),
        "handles a script's events at once",
    ),
    Private(_SESSION, "_close_script_event_loop", ("loop",), "leaves the only event loop open"),
    Private(
        _RUNTIME, "Runtime._enqueued_some_message", ("self",), "sends a script's messages at once"
    ),
    Private(_RUNTIME, "Runtime._send_message", ("self", "session_info", "msg"), "sends a message"),
    Private(
        "streamlit.runtime.websocket_session_manager",
        "WebsocketSessionManager.list_active_sessions",
        ("self",),
        "finds what is to be sent",
    ),
    Private(_SESSION, "AppSession.flush_browser_queue", ("self",), "takes what is to be sent"),
    Private(_SESSION, "AppSession.on_flushed_messages_sent", ("self",), "says that it was sent"),
    Private("streamlit.config", "_main_script_path", None, "finds the settings beside the app"),
    Private(_CONTEXT, "SCRIPT_RUN_CONTEXT_ATTR_NAME", None, "forgets a script that ended"),
    Private(
        "streamlit.runtime.memory_media_file_storage",
        "MemoryMediaFileStorage.get_file",
        ("self", "filename"),
        "finds a download",
    ),
    Private("streamlit.runtime.runtime_util", "serialize_forward_msg", ("msg",), "packs a message"),
    Private(_SESSION, "AppSession", None, "is patched to need no thread"),
    Private(_RUNTIME, "RuntimeConfig", None, "starts a runtime without a server"),
    Private(
        "streamlit.runtime.caching.storage.dummy_cache_storage",
        "MemoryCacheStorageManager",
        None,
        "keeps caches in memory",
    ),
    Private(
        "streamlit.runtime.memory_uploaded_file_manager",
        "MemoryUploadedFileManager",
        None,
        "keeps uploads in the page",
    ),
    Private("streamlit.runtime.uploaded_file_manager", "UploadedFileRec", None, "keeps an upload"),
    Private("streamlit.runtime.session_manager", "ClientContext", None, "is the page's client"),
    Private("streamlit.runtime.session_manager", "SessionClient", None, "is sent messages"),
    Private(
        "streamlit.runtime.media_file_storage",
        "MediaFileStorageError",
        None,
        "says that a download has gone",
    ),
)

_SERVER = "the server (pages/ui/serving.py)"
_SIGHT = "tools/first_sight.py"
_LIMITS = "the list of who is there (pages/ui/limits.py)"
_LINKS = "the link of a page (pages/ui/state.py)"
_TYPES = "a signature of the pages"
_HEARS = "sessions that hear all (pages/ui/hearing.py)"

SERVED = (
    Private("streamlit.logger", "set_log_level", ("level",), "keeps a tool quiet", _SIGHT),
    Private("streamlit.testing.v1.app_test", "AppTest", None, "runs a page", _SIGHT),
    Private("streamlit.runtime", "get_instance", (), "asks for the runtime", _SERVER),
    Private("streamlit.runtime", "exists", (), "tells a server from a test", _LIMITS),
    Private(_RUNTIME, "Runtime", None, "tells a server from a test", _LIMITS),
    Private(
        _RUNTIME, "Runtime.is_active_session", ("self", "session_id"), "sees who has left", _LIMITS
    ),
    Private(_RUNTIME, "Runtime.close_session", ("self", "session_id"), "forgets who left", _SERVER),
    Private(_RUNTIME, "Runtime._session_mgr", None, "sees sessions that never ran", _SERVER),
    Private(_RUNTIME, "Runtime.uploaded_file_mgr", ("self",), "measures uploads", _SERVER),
    Private(
        "streamlit.runtime.memory_uploaded_file_manager",
        "MemoryUploadedFileManager.file_storage",
        None,
        "measures uploads",
        _SERVER,
    ),
    Private(_CONTEXT, "get_script_run_ctx", None, "asks whose run it is", _LIMITS),
    Private(_CONTEXT, "ScriptRunContext.session_id", None, "asks whose run it is", _LIMITS),
    Private(
        _CONTEXT, "ScriptRunContext.is_history_navigation", None, "follows the back button", _LINKS
    ),
    Private("streamlit.runtime.uploaded_file_manager", "UploadedFile", None, "is a file", _TYPES),
    Private(
        _SESSION, "AppSession.request_rerun", ("self", "client_state"), "lets one wait", _HEARS
    ),
    Private(_SESSION, "AppSession._scriptrunner", None, "sees that a run begins", _HEARS),
    Private(
        _SESSION, "AppSession._call_soon_on_event_loop", ("self", "callback"), "goes on", _HEARS
    ),
    Private(_SESSION, "AppSession.get_pages", ("self",), "knows the pages", _HEARS),
    Private(_SESSION, "AppSession._pages_manager", None, "knows which page is there", _HEARS),
    Private(
        "streamlit.runtime.pages_manager",
        "PagesManager.current_page_script_hash",
        ("self",),
        "knows which page is there",
        _HEARS,
    ),
    Private(_SESSION, "AppSession.shutdown", ("self",), "lets nothing wait any more", _HEARS),
    Private(_SESSION, "AppSession._on_scriptrunner_event", None, "sees that a run ends", _HEARS),
    Private(
        "streamlit.runtime.websocket_session_manager", "AppSession", None, "makes them", _HEARS
    ),
    Private(_RUNNER, "ScriptRunner", None, "names a run's type", _HEARS),
    Private(_RUNNER, "ScriptRunner._script_thread", None, "knows whose words they are", _HEARS),
    Private(_RUNNER, "ScriptRunnerEvent", None, "sees that a run ends", _HEARS),
    Private("streamlit.proto.ClientState_pb2", "", None, "names a message's type", _HEARS),
    Private("streamlit.navigation.page", "StreamlitPage", None, "names a page's type", _TYPES),
    Private("streamlit.delta_generator", "DeltaGenerator", None, "names a place's type", _TYPES),
    Private("streamlit.proto.BackMsg_pb2", "", None, "speaks as a browser does", "benchmarks.load"),
    Private("streamlit.proto.BackMsg_pb2", "", None, "tells a message of a browser", _SERVER),
    Private(
        "streamlit.proto.ForwardMsg_pb2", "", None, "reads as a browser does", "benchmarks.load"
    ),
)
"""Names that the server and pages use in the installed Streamlit."""

MARKS = (
    "data-test-script-state", "stActiveTheme",
    "stApp", "stAppViewContainer", "stButtonGroup", "stCaptionContainer", "stColumn",
    "stElementContainer", "stElementToolbar", "stEmpty", "stExpandSidebarButton",
    "stExpanderDetails", "stFileChip", "stFileUploader", "stHeader", "stHorizontalBlock",
    "stLayoutWrapper", "stMain", "stMainBlockContainer", "stMetric", "stMetricValue",
    "stMultiSelectTagsContainer", "stPlotlyChart", "stPopoverBody", "stPopoverButton", "stSidebar",
    "stSkeleton", "stTable", "stToastContainer", "stToolbar", "stTopNav", "stTopNavDropdownLink",
    "stTopNavLink", "stTopNavSection", "stVerticalBlock", "stWidgetLabel",
)  # fmt: skip
"""Marks by which our styles and scripts find Streamlit's elements and its state."""


def missing(source: Path | Packed, names: tuple[Private, ...] = PRIVATE) -> list[str]:
    """Return a sentence for each name that a Streamlit version lacks or has in another shape.

    Parameters
    ----------
    source : path
        Parent of the folder ``streamlit``: site-packages, or the contents of a wheel.
    names : tuple of Private
    """
    sentences = []
    for private in names:
        whole = f"{private.module}.{private.name}".rstrip(".")
        because = f"{private.whose} needs it, as it {private.why} (browser/names.py)"
        found = _found(source, private)
        if found is None:
            sentences.append(f"This Streamlit has no {whole}: {because}.")
            continue
        if private.parameters is None:
            continue
        has = _parameters(found)
        if has[: len(private.parameters)] != private.parameters:
            expected = ", ".join(private.parameters)
            sentences.append(
                f"This Streamlit's {whole} takes ({', '.join(has)}) and not ({expected}): "
                f"{because}."
            )
    return sentences


def _found(source: Path | Packed, private: Private) -> ast.stmt | None:
    """Return the statement that defines a name."""
    place = private.module.replace(".", "/")
    file = source / f"{place}.py"
    if not file.is_file():
        file = source / place / "__init__.py"
    if not file.is_file():
        return None
    if not private.name:
        return ast.Pass()
    scope: ast.stmt | ast.Module = ast.parse(file.read_text(encoding="utf-8"))
    for part in private.name.split("."):
        inner = None
        if isinstance(scope, ast.Module | ast.ClassDef):
            inner = next((each for each in scope.body if part in _made(each)), None)
        if inner is None and isinstance(scope, ast.ClassDef):
            inner = _set_by_init(scope, part)
        if inner is None:
            return None
        scope = inner
    return scope if isinstance(scope, ast.stmt) else None


def _made(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines in its scope."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.ImportFrom):
        return {each.asname or each.name for each in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _set_by_init(scope: ast.ClassDef, name: str) -> ast.stmt | None:
    """Return the statement of ``__init__`` that sets an attribute."""
    inits = [each for each in scope.body if "__init__" in _made(each)]
    for statement in (each for init in inits for each in ast.walk(init)):
        targets: Iterable[ast.expr] = ()
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        if any(isinstance(each, ast.Attribute) and each.attr == name for each in targets):
            return statement
    return None


def _parameters(found: ast.stmt) -> tuple[str, ...]:
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        return ()
    given = found.args
    return tuple(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def missing_marks(source: Path | Packed, marks: tuple[str, ...] = MARKS) -> list[str]:
    """Return a sentence for each mark that is in no script of Streamlit's page."""
    scripts = source / "streamlit" / "static" / "static" / "js"
    left = set(marks)
    for script in scripts.iterdir():
        text = script.read_text(encoding="utf-8")
        # Look for the plain text first, because a pattern search takes a hundred times as long.
        left -= {mark for mark in left if mark in text and re.search(rf"\b{mark}\b", text)}
    return [
        f"This Streamlit marks nothing with {mark}: our styles look for it (browser/names.py)."
        for mark in sorted(left)
    ]
