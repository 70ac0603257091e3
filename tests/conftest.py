"""Settings that all test layers share: one BLAS thread, Hypothesis profiles, marks, quick run."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.changes import changed
from tests.warm import warm_python

# Set these variables before any test module imports NumPy; pytest-xdist's workers and servers of
# tests inherit them. With one thread, every machine gives the same bytes. `make` sets the same
# variables; these lines are for a bare `pytest`.
for _variable in (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ.setdefault(_variable, "1")
# Allow ledgers in temporary folders, which dpviz otherwise refuses: many are only in memory.
os.environ.setdefault("DPVIZ_LEDGERS_TEMPORARY", "on")

_TESTS = Path(__file__).resolve().parent
_LAYERS = frozenset(
    {
        "unit",
        "contract",
        "process",
        "docs",
        "golden",
        "answers",
        "statistical",
        "ui",
        "e2e",
        "browser",
        "papers",
    }
)

# Tests in these folders belong to the long tier, unless a test is marked `first`.
LONG = frozenset({"process", "docs", "e2e", "browser", "papers"})

# The profile "steady" gives the same examples on every run, so a red build means that the code
# changed. DPVIZ_HYPOTHESIS=explore tries new examples each time; add its failures as @example.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,  # On a busy machine, correct code would miss a deadline.
    max_examples=25,
    database=None,
)
settings.register_profile(
    "explore",
    deadline=None,
    max_examples=500,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("DPVIZ_HYPOTHESIS", "steady"))


@pytest.fixture(autouse=True)
def _count_of_fits() -> None:
    """Reset the per-process count of `PrivatePCA` fits before each test."""
    module = sys.modules.get("dpviz.releasing.budget")
    if module is not None:
        module._HERE.fits.clear()
        module._HERE.warned = False


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a Python with preloaded libraries, or plain Python if processes cannot be watched."""
    if not hasattr(os, "pidfd_open"):
        yield Path(sys.executable)
        return
    with warm_python(tmp_path_factory.mktemp("warm")) as python:
        yield python


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make check` skip slow tests in files that have not changed."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests marked slow, but for those of files that differ from main",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector off loaded objects to save a tenth of unit and ui test time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its layer (the name of its folder) and its tier."""
    for item in items:
        if item.path.is_relative_to(_TESTS):
            layer = item.path.relative_to(_TESTS).parts[0]
            if layer in _LAYERS:
                item.add_marker(layer)
            if layer in LONG and item.get_closest_marker("first") is None:
                item.add_marker("long")
    if config.getoption("--quick"):
        files = {_TESTS.parent / file for file in changed() or ()}
        slow = [
            item
            for item in items
            if item.get_closest_marker("slow") is not None and item.path not in files
        ]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
