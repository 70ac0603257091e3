"""Every private name of Streamlit that the browser edition relies on, and what for.

Streamlit promises nothing about these: `missing` looks for them in the source of the Streamlit
that the edition is pinned to, and a contract test reads its answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zipfile import Path as Packed


@dataclass(frozen=True)
class Private:
    """A private name, and the shape in which it is relied on.

    Attributes
    ----------
    module : str
    name : str
        Within the module, dotted for what belongs to a class.
    parameters : tuple of str or None
        Names that it is called with; None for what is no function.
    why : str
        What the edition does with it.
    """

    module: str
    name: str
    parameters: tuple[str, ...] | None
    why: str


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
)


def missing(source: Path | Packed, names: tuple[Private, ...] = PRIVATE) -> list[str]:
    """Return a sentence for each name that a Streamlit lacks or has in another shape.

    Parameters
    ----------
    source : path
        What holds the folder ``streamlit``: site-packages, or the inside of a wheel.
    names : tuple of Private
    """
    sentences = []
    for private in names:
        whole = f"{private.module}.{private.name}"
        because = f"the browser edition needs it, as it {private.why} (browser/names.py)"
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
    """Return the statement that makes a name."""
    file = source / (private.module.replace(".", "/") + ".py")
    if not file.is_file():
        return None
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
    """Return the names that a statement makes in its scope."""
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
