"""Keep in AppTest what a server keeps between runs; write files to the tests' folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("DPVIZ_LEDGERS", str(tmp_path_factory.mktemp("ledgers")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _kept_as_on_a_server() -> Iterator[None]:
    """Compile each script once, find components once, know the menu, and wait without polling.

    Unpatched, AppTest compiles at every run and searches for components at every start. It forgets
    the menu before every run, so each page starts twice. It reads all events of a run a thousand
    times a second to check whether the run has ended. If a newer Streamlit has other internals, the
    patch for them is skipped: AppTest is then slower, but just as correct.
    """
    with pytest.MonkeyPatch.context() as patch:
        runner, app = _inside("testing.v1.local_script_runner"), _inside("testing.v1.app_test")
        scripts = _inside("runtime.scriptrunner.script_cache")
        if hasattr(scripts, "ScriptCache"):
            store = scripts.ScriptCache()
            for module in filter(None, (runner, app)):
                patch.setattr(module, "ScriptCache", lambda: store, raising=False)
        if hasattr(runner, "require_widgets_deltas"):
            patch.setattr(runner, "require_widgets_deltas", _waiting(runner.require_widgets_deltas))
        pages = getattr(app, "PagesManager", None)
        if pages is not None:  # Ignore AppTest's setting, so that a first run stays a first run.
            patch.setattr(app, "PagesManager", type("PagesManager", (pages,), {}))
        manifests = _inside("components.v2.manifest_scanner")
        if hasattr(manifests, "scan_component_manifests"):
            manifests_of = cache(manifests.scan_component_manifests)
            patch.setattr(manifests, "scan_component_manifests", manifests_of)
        yield


def _inside(name: str) -> Any:
    """Return a module of Streamlit, or None if Streamlit has no module of this name."""
    try:
        return import_module(f"streamlit.{name}")
    except ModuleNotFoundError:
        return None


def _waiting(ask_events: Callable[[Any, float], None]) -> Callable[[Any, float], None]:
    """Return a function that waits for a run's thread and then checks the events once."""

    def wait(runner: Any, timeout: float = 3) -> None:
        thread = getattr(runner, "_script_thread", None)
        if thread is None:
            ask_events(runner, timeout)
            return
        thread.join(timeout)
        ask_events(runner, 0 if thread.is_alive() else 0.1)  # AppTest reports a time-out here.

    return wait
