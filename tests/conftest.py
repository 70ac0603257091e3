"""What every layer shares: one BLAS thread, Hypothesis profiles, marks, and the quick run."""

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

# Before any test module imports NumPy, and inherited by pytest-xdist's workers and by servers that
# tests start: with one thread the same bytes come out on every machine. `make` sets these too; this
# is for a bare `pytest`.
for _variable in (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ.setdefault(_variable, "1")
# Ledgers of tests lie where tests lie, which on many machines is memory.
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

# Folders of the long tier; a test of theirs that is marked `first` belongs to the first one.
LONG = frozenset({"process", "docs", "e2e", "browser", "papers"})

# "steady" gives the same examples on every run, so that a red build is a change of the code and
# not of the draw. DPVIZ_HYPOTHESIS=explore looks further, afresh each time; a find belongs into an
# @example of the test.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,  # a busy two-core machine would fail a deadline, not the code
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
    """Let each test begin with no fit of `PrivatePCA` counted: the count is a process's own."""
    loaded = sys.modules.get("dpviz.releasing.budget")
    if loaded is not None:
        loaded._HERE.fits.clear()
        loaded._HERE.warned = False


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Python with libraries in memory, or Python itself where processes cannot be watched."""
    if not hasattr(os, "pidfd_open"):
        yield Path(sys.executable)
        return
    with warm_python(tmp_path_factory.mktemp("warm")) as python:
        yield python


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make check` leave out what takes long and stands in no file that has changed."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests marked slow, but for those of files that differ from main",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no look for garbage walk through what stays: a tenth of the time of unit and ui."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its layer, the name of its folder, and with its tier."""
    for item in items:
        if item.path.is_relative_to(_TESTS):
            layer = item.path.relative_to(_TESTS).parts[0]
            if layer in _LAYERS:
                item.add_marker(layer)
            if layer in LONG and item.get_closest_marker("first") is None:
                item.add_marker("long")
    if config.getoption("--quick"):
        touched = {_TESTS.parent / file for file in changed() or ()}
        slow = [
            item
            for item in items
            if item.get_closest_marker("slow") is not None and item.path not in touched
        ]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
