"""What a server keeps from run to run, AppTest keeps here; files go to the tests' folder."""

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
    """Compile each script once, look for components once, know the menu, and wait without polling.

    AppTest alone does the first at every run, the second at every start, forgets before every run
    that there is a menu, so that each page is begun twice, and reads through all events of a run a
    thousand times a second to see whether it has ended. Where a newer Streamlit has other insides,
    that part stays as AppTest does it: slower, and no less right.
    """
    with pytest.MonkeyPatch.context() as patch:
        runner, app = _inside("testing.v1.local_script_runner"), _inside("testing.v1.app_test")
        scripts = _inside("runtime.scriptrunner.script_cache")
        if hasattr(scripts, "ScriptCache"):
            kept = scripts.ScriptCache()
            for module in filter(None, (runner, app)):
                patch.setattr(module, "ScriptCache", lambda: kept, raising=False)
        if hasattr(runner, "require_widgets_deltas"):
            patch.setattr(runner, "require_widgets_deltas", _waiting(runner.require_widgets_deltas))
        pages = getattr(app, "PagesManager", None)
        if pages is not None:  # what AppTest sets on this one stays unread; a first run is a first
            patch.setattr(app, "PagesManager", type("PagesManager", (pages,), {}))
        manifests = _inside("components.v2.manifest_scanner")
        if hasattr(manifests, "scan_component_manifests"):
            found = cache(manifests.scan_component_manifests)
            patch.setattr(manifests, "scan_component_manifests", found)
        yield


def _inside(name: str) -> Any:
    """Return a module of Streamlit's, or None where there is none of this name."""
    try:
        return import_module(f"streamlit.{name}")
    except ModuleNotFoundError:
        return None


def _waiting(ask_events: Callable[[Any, float], None]) -> Callable[[Any, float], None]:
    """Return a wait for the thread of a run, after which the events are asked once."""

    def wait(runner: Any, timeout: float = 3) -> None:
        thread = getattr(runner, "_script_thread", None)
        if thread is None:
            ask_events(runner, timeout)
            return
        thread.join(timeout)
        ask_events(runner, 0 if thread.is_alive() else 0.1)  # it says what took too long

    return wait
