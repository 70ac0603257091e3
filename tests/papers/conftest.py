"""Quick runs of experiments, each done once for all tests of the layer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpviz.papers import Effort, Reproduction, absent_data, experiment, reproduce
from dpviz.simulation.store import Store

NO_DATA = "DPVIZ_DATA names no folder or address with the raw files"
# Public files that the folder of raw files does not hold either; their parts are tested with
# made-up tables of the same form.
NEVER_THERE = frozenset({"census", "localization", "secom", "covertype"})


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store that all processes of one test run share."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    return Store(base / "experiments")


@pytest.fixture(scope="session")
def quick(store: Store) -> Callable[[str], Reproduction]:
    """Return a function that runs an experiment's quick form, or skips for want of data."""
    found: dict[str, Reproduction] = {}

    def run(key: str) -> Reproduction:
        if key not in found:
            wanted = set(absent_data(experiment(key))) - NEVER_THERE
            if wanted:
                pytest.skip(f"{NO_DATA}: {', '.join(sorted(wanted))}")
            found[key] = reproduce(experiment(key), Effort.QUICK, store=store)
        return found[key]

    return run


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make every remote data set absent."""
    monkeypatch.delenv("DPVIZ_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
