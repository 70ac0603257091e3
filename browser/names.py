"""Every private name of Streamlit that the browser edition relies on, and what for.

Streamlit promises nothing about these: `missing` compares them with the Streamlit that is
installed, and a contract test reads its answer.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module


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


def _found(private: Private) -> object:
    found: object = import_module(private.module)
    for part in private.name.split("."):
        if inspect.isclass(found) and not hasattr(found, part):
            # set by the class's __init__, if at all
            if part not in found.__init__.__code__.co_names:
                raise AttributeError(part)
            return None
        found = getattr(found, part)
    return found


def missing(names: tuple[Private, ...] = PRIVATE) -> list[str]:
    """Return a sentence for each name that this Streamlit lacks or has in another shape."""
    sentences = []
    for private in names:
        whole = f"{private.module}.{private.name}"
        because = f"the browser edition needs it, as it {private.why} (browser/names.py)"
        try:
            found = _found(private)
        except (AttributeError, ModuleNotFoundError):
            sentences.append(f"This Streamlit has no {whole}: {because}.")
            continue
        if private.parameters is None:
            continue
        has = tuple(inspect.signature(found).parameters) if callable(found) else ()
        if has[: len(private.parameters)] != private.parameters:
            expected = ", ".join(private.parameters)
            sentences.append(
                f"This Streamlit's {whole} takes ({', '.join(has)}) and not ({expected}): "
                f"{because}."
            )
    return sentences
