"""Simulation within the time limit of a page."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dpviz.core.errors import CannotRun
from dpviz.core.metrics import Metric
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.figures.svg import thumbnail
from dpviz.report.tables.board import anybodys
from dpviz.report.tables.projection import picture_table
from dpviz.simulation.cells import plan
from dpviz.simulation.compare import Comparison, Result, TooLong, attempt, steps
from dpviz.simulation.simulate import Cell
from pages.ui import limits

CHUNK_SECONDS = 0.15
"""Seconds between checks whether a visitor still needs the releases."""

# Measure only the time of this thread, if the system can (a browser cannot).
_own_time = getattr(time, "thread_time", time.process_time)


def chunk_size(d: int) -> int:
    """Return how many trials take about `CHUNK_SECONDS` at dimension d.

    A trial solves three symmetric eigenvalue problems, whose cost ``benchmarks/explore.py``
    measures.
    """
    seconds = 3 * (5e-5 + 4e-7 * d**2 + 6e-10 * d**3)
    return max(1, math.floor(CHUNK_SECONDS / seconds))


class InTime:
    """Simulate settings, except those whose first release shows that they would take too long."""

    def __init__(self, trials: int) -> None:
        self._trials, self._each = trials, dict[Mechanism, float]()
        self.spent = 0.0
        """Seconds used on one core so far."""

    def __call__(
        self, cell: Cell, measured: Measured, metrics: Sequence[str | Metric]
    ) -> Result | CannotRun:
        """Simulate one mechanism at one setting."""
        mechanism, most = cell.mechanism, limits.caps().work
        first = mechanism not in self._each
        seconds = self._each.get(mechanism, 0.0) * self._trials
        if seconds > most:
            return TooLong(mechanism.text, limits.too_slow(seconds))
        began = _own_time()
        try:
            with limits.deadline(limits.CHUNK_LIMIT if first else most):
                result = attempt(cell, measured, metrics)
        except limits.TooSlow:
            return TooLong(mechanism.text, limits.too_slow(math.inf))
        took = _own_time() - began  # The wait for other sessions' work does not count.
        self.spent += took
        if first:
            self._each[mechanism] = took / len(cell.trials)
        return result


def compared(
    prepared: Prepared, settings: Settings, draw: InTime | None = None
) -> Iterator[Comparison]:
    """Yield the comparison of a view as it grows, for `pages.ui.ask.ask`.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    draw : InTime, optional
        Runner of the simulation, which then knows the simulation time.
    """
    cells = plan(prepared, settings, strict=False)
    draw = draw or InTime(settings.trials)
    yield from steps(cells, first=1, most=chunk_size(prepared.d), draw=draw)


class Kept(NamedTuple):
    """Recovery of one mechanism.

    Attributes
    ----------
    mean, low, high : float
        Mean recovery, and the central 95 % of the simulated releases.
    hint : str or None
        Aim of the mechanism, if it does not aim at the components.
    picture : str
        Projection of the rows in the first release, as a data URL; empty if rows are not shown.
    """

    mean: float
    low: float
    high: float
    hint: str | None
    picture: str


class AllKept(NamedTuple):
    """Recovery of each mechanism, by key, and the finished share of the work."""

    of: dict[str, Kept]
    share: float


def all_kept(prepared: Prepared, settings: Settings) -> Iterator[AllKept]:
    """Yield the recovery of each mechanism on a table as it grows, for `pages.ui.ask.ask`."""
    by_key: dict[str, Kept] = {}
    yield AllKept(by_key, 0.0)
    for comparison in compared(prepared, settings):
        for result in comparison.results:
            summary = result.summaries.get("recovery")
            if summary is None or (len(result.components) < settings.trials):
                continue
            key = result.mechanism.key
            if key not in by_key:
                ends = (summary.mean, summary.low, summary.high)
                by_key[key] = Kept(*ends, result.hint, _thumbnail(prepared, result))
        yield AllKept(dict(by_key), comparison.share)


def _thumbnail(prepared: Prepared, result: Result) -> str:
    if not anybodys(prepared):
        return ""
    table = picture_table(prepared, [result], 0, "aligned", 120)
    rows = table[table["mechanism"] == result.mechanism.text]
    kinds = rows["label"].astype("category").cat.codes.to_numpy(dtype=np.intp)
    return thumbnail(rows["x"].to_numpy(float), rows["y"].to_numpy(float), kinds)
