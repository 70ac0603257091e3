"""Quick runs of experiments, each done once for all tests of the layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from dpviz.core.arrays import FloatArray
from dpviz.datasets import remote
from dpviz.papers import experiment
from dpviz.papers.chaudhuri import figure1, table1
from dpviz.papers.chaudhuri._shared import UnitRows, load_unit_rows
from dpviz.papers.experiment import Effort
from dpviz.papers.measurements import Mean, Measurements, Point
from dpviz.papers.run import Findings, absent_data, reproduce
from dpviz.simulation.store import Store

ROOT = Path(__file__).resolve().parents[2]
NO_DATA = "DPVIZ_DATA names no folder or address with the raw files"
# These public files are missing even in the usual folder of raw files; tests use synthetic tables
# of the same form instead.
NEVER_THERE = frozenset({"census", "localization", "secom", "covertype", "musk2"})


def as_draws(found: Mapping[Point, ArrayLike]) -> Measurements:
    """Return measured values as repetitions; a single number counts as one repetition."""
    each = {point: np.array(values, dtype=float, ndmin=1) for point, values in found.items()}
    return Measurements(each)


def draws_at(found: Measurements, *point: str | float) -> FloatArray:
    """Return the repetitions at a point: panel, series, quantity, and x if it has one."""
    return found.draws[Point(*point)]


def mean_at(found: Measurements, *point: str | float) -> Mean:
    """Return the mean of the repetitions at a point."""
    return Mean.of(draws_at(found, *point))


def draws_along(found: Measurements, *line: str) -> dict[float, FloatArray]:
    """Return the repetitions along the axis of a panel, series and quantity."""
    places = sorted(point.x for point in found if point[:3] == line and point.x is not None)
    return {x: draws_at(found, *line, x) for x in places}


@pytest.fixture(scope="session", autouse=True)
def _rows_are_read_once() -> Iterator[None]:
    """Let two experiments share common rows: reading half a million rows takes four seconds."""

    @lru_cache
    def read(key: str, as_paper: bool) -> UnitRows:
        return load_unit_rows(key, as_paper)

    def rows(key: str, as_paper: bool = True) -> UnitRows:
        # For most data sets, the table does not depend on whether the paper counts the label.
        return read(key, as_paper and remote.sets()[key].read_as_paper is not None)

    with pytest.MonkeyPatch.context() as patch:
        for module in (figure1, table1):
            patch.setattr(module, "load_unit_rows", rows)
        yield


@pytest.fixture(scope="session")
def store() -> Store:
    """Return a store that all processes and later test runs share.

    A part is stored by the digest of the core's source, of its experiment's measuring code, of its
    data and of the libraries, so only parts that a change can affect run again. As a check, one
    part of each experiment always runs again and must give the stored bytes.
    """
    return Store(ROOT / ".test-reports" / "experiments")


@pytest.fixture(scope="session")
def quick(store: Store) -> Callable[[str], Findings]:
    """Return a function that runs an experiment's quick form, or skips if data are missing."""
    results: dict[str, Findings] = {}

    def run(key: str) -> Findings:
        if key not in results:
            absent = set(absent_data(experiment(key))) - NEVER_THERE
            if absent:
                pytest.skip(f"{NO_DATA}: {', '.join(sorted(absent))}")
            results[key] = reproduce(experiment(key), Effort.QUICK, store=store)
        return results[key]

    return run


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make every remote data set absent."""
    monkeypatch.delenv("DPVIZ_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
