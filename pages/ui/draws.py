"""Draws within the time that a page may take."""

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
"""Between two looks at whether anybody still wants the draws."""

# Of this thread alone, where the system counts that (a browser's does not).
_own_time = getattr(time, "thread_time", time.process_time)


def chunk_size(d: int) -> int:
    """Return how many trials take about `CHUNK_SECONDS` at dimension d.

    Three symmetric eigenvalue problems a trial; their cost is measured in
    ``benchmarks/explore.py``.
    """
    seconds = 3 * (5e-5 + 4e-7 * d**2 + 6e-10 * d**3)
    return max(1, math.floor(CHUNK_SECONDS / seconds))


class InTime:
    """Draws cells, but those that would take longer than a page may; their first draw tells."""

    def __init__(self, trials: int) -> None:
        self._trials, self._each = trials, dict[Mechanism, float]()
        self.spent = 0.0
        """Seconds of one core so far."""

    def __call__(
        self, cell: Cell, measured: Measured, metrics: Sequence[str | Metric]
    ) -> Result | CannotRun:
        """Draw a cell."""
        mechanism, most = cell.mechanism, limits.caps().work
        first = mechanism not in self._each
        expected = self._each.get(mechanism, 0.0) * self._trials
        if expected > most:
            return TooLong(mechanism.text, limits.too_slow(expected))
        began = _own_time()
        try:
            with limits.deadline(limits.CHUNK_LIMIT if first else most):
                found = attempt(cell, measured, metrics)
        except limits.TooSlow:
            return TooLong(mechanism.text, limits.too_slow(math.inf))
        took = _own_time() - began  # neither other sessions nor the wait for a turn make it slow
        self.spent += took
        if first:
            self._each[mechanism] = took / len(cell.trials)
        return found


def compared(
    prepared: Prepared, settings: Settings, draw: InTime | None = None
) -> Iterator[Comparison]:
    """Yield the comparison of a view as it grows, for `pages.ui.ask.ask`.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    draw : InTime, optional
        Who then knows what the draws took.
    """
    chosen = plan(prepared, settings, strict=False)
    draw = draw or InTime(settings.trials)
    yield from steps(chosen, first=1, most=chunk_size(prepared.d), draw=draw)


class Kept(NamedTuple):
    """What one mechanism keeps of the structure.

    Attributes
    ----------
    mean, low, high : float
        Recovery, and the central 95 % of the simulated releases.
    hint : str or None
        What it aims at, where that is not the components.
    picture : str
        The rows in its first release, as the address of an image; empty where they are not shown.
    """

    mean: float
    low: float
    high: float
    hint: str | None
    picture: str


class AllKept(NamedTuple):
    """What each mechanism keeps, by key, and how much of the work is done."""

    of: dict[str, Kept]
    share: float


def all_kept(prepared: Prepared, settings: Settings) -> Iterator[AllKept]:
    """Yield what each mechanism keeps on a table as it grows, for `pages.ui.ask.ask`."""
    found: dict[str, Kept] = {}
    yield AllKept(found, 0.0)
    for comparison in compared(prepared, settings):
        for result in comparison.results:
            told = result.summaries.get("recovery")
            if told is None or (len(result.components) < settings.trials):
                continue
            key = result.mechanism.key
            if key not in found:
                ends = (told.mean, told.low, told.high)
                found[key] = Kept(*ends, result.hint, _projected(prepared, result))
        yield AllKept(dict(found), comparison.share)


def _projected(prepared: Prepared, result: Result) -> str:
    if not anybodys(prepared):
        return ""
    table = picture_table(prepared, [result], 0, "aligned", 120)
    seen = table[table["mechanism"] == result.mechanism.text]
    kinds = seen["label"].astype("category").cat.codes.to_numpy(dtype=np.intp)
    return thumbnail(seen["x"].to_numpy(float), seen["y"].to_numpy(float), kinds)
