"""Draws and comparisons, kept; `table_cache` and its neighbours keep the rest.

Arguments of a kept call are texts, numbers and tuples of them only.

A dataclass nested in an argument would lose its class in the cache key, and a
generator has none: pass texts and seeds. Results of uploads stay within the
session that uploaded (`pages.ui.shelves`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from dpviz.core.allocation import UNIFORM
from dpviz.core.errors import CannotRun
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences import explore as narrative
from dpviz.report.tables import curves
from dpviz.simulation import cells
from dpviz.simulation import compare as running
from dpviz.simulation.cells import ResolvedSetting, Skipped
from dpviz.simulation.compare import Comparison, Result
from dpviz.simulation.simulate import Cell
from pages.ui import limits
from pages.ui.shelves import apart

# A run can only be stopped between Streamlit calls; chunks keep that short.
CHUNK_SECONDS = 0.15
TOLD_SECONDS = 0.25  # between two messages of how far work is


# Where all draws take longer than this, the first of each mechanism is shown before the others.
FIRST_AFTER = 2.0


# Of this thread alone, where the system counts that (a browser's does not).
_own_time = getattr(time, "thread_time", time.process_time)


@apart(st.cache_data, max_size="96MB", show_spinner=False)
def chunk(
    data_key: tuple[str, ...],
    variant: str,
    budget: tuple[float, float],
    problem: str,
    seed: int,
    start: int,
    stop: int,
    _cell: Cell,
    _measured: Measured,
    _took: list[float],
) -> Result:
    """Return one chunk of trials of one variant; add what it took to ``_took``."""
    with limits.deadline(limits.CHUNK_LIMIT):
        began = _own_time()
        found = running.run_cell(_cell, _measured)
        _took.append(_own_time() - began)
    return found


def chunk_size(d: int) -> int:
    """Return how many trials take about `CHUNK_SECONDS` at dimension d.

    Three symmetric eigenvalue problems a trial; their cost is measured in
    ``benchmarks/explore.py``.
    """
    seconds = 3 * (5e-5 + 4e-7 * d**2 + 6e-10 * d**3)
    return max(1, math.floor(CHUNK_SECONDS / seconds))


@dataclass
class _Paces:
    """What trials take, by what is drawn.

    Attributes
    ----------
    sizes : dict
        Trials a chunk.
    refused : dict
        Why something is not drawn at all.
    seconds : dict
        What all its trials took on one core.
    """

    sizes: dict[tuple[str, ...], int]
    refused: dict[tuple[str, ...], str]
    seconds: dict[tuple[str, ...], float]


@apart(st.cache_resource, show_spinner=False)
def _paces(_key: tuple[str, ...]) -> _Paces:
    return _Paces({}, {}, {})


class Late(Skipped):
    """A variant that is not drawn because it would take longer than a page may."""


def seconds_of(data_key: tuple[str, ...], comparison: Comparison) -> float:
    """Return what the draws of a comparison took on one core, as far as they were made here."""
    known = _paces(data_key).seconds
    return sum(known.get(_what(cell), 0.0) for cell in comparison.plan.cells)


def _what(cell: Cell) -> tuple[str, ...]:
    return cell.mechanism.text, _problem_text(cell), repr(cell.budget)


def _problem_text(cell: Cell) -> str:
    # All of it: k, relation, domain; but the allocation only where noise follows it, so that
    # moving shares draws nobody else again.
    follows = cell.mechanism.follows_allocation
    found = repr(cell.problem if follows else replace(cell.problem, allocation=UNIFORM))
    if cell.picture is not None:
        found += f", {cell.picture!r}"
    return f"{found}, post-processed" if cell.free else found


def in_chunks(
    data_key: tuple[str, ...],
    cell: Cell,
    measured: Measured,
    between: Callable[[float], object],
    only_first: bool = False,
    seams: tuple[int, ...] = (),
) -> Result:
    """Return the result of a cell, chunk by chunk.

    Parameters
    ----------
    data_key : tuple of str
        Everything the data depends on.
    cell : Cell
    measured : Measured
    between : callable
        Called with the share done before each chunk; it must make a Streamlit
        call, which is where a run that is no longer wanted stops.
    only_first : bool
        Whether the first chunk, of one trial, is all that is wanted yet.
    seams : tuple of int
        Trials at which a chunk ends in any case: those before were drawn by a shorter run.

    Raises
    ------
    CannotRun
        If it would take longer than a page may.
    """
    parts = []
    problem, what, pace = _problem_text(cell), _what(cell), _paces(data_key)
    spent = 0.0
    if what in pace.refused:
        raise CannotRun(cell.mechanism.text, pace.refused[what])
    start = cell.trials.start
    while start < cell.trials.stop:
        # One trial first: k, the sampler and its sweeps decide what it takes. What was measured
        # is kept, so that the next run asks for the same chunks.
        size = pace.sizes.get(what, 1) if start > cell.trials.start else 1
        stop = min(start + size, cell.trials.stop, *(at for at in seams if at > start))
        between((start - cell.trials.start) / max(len(cell.trials), 1))
        took: list[float] = []
        try:
            # By name: Streamlit reads the function's signature for each argument that has none.
            part = chunk(
                data_key,
                variant=cell.mechanism.text,
                budget=(cell.budget.epsilon, cell.budget.delta),
                problem=problem,
                seed=cell.seed,
                start=start,
                stop=stop,
                _cell=replace(cell, trials=range(start, stop)),
                _measured=measured,
                _took=took,
            )
        except limits.TooSlow:
            pace.refused[what] = limits.too_slow(math.inf)
            raise CannotRun(cell.mechanism.text, pace.refused[what]) from None
        parts.append(part)
        spent += sum(took)
        if took and what not in pace.sizes:
            # neither other sessions nor the wait for a turn make it slow
            seconds = max(sum(took), 1e-6)
            expected = seconds * (cell.trials.stop - stop)
            if expected > limits.caps().work:
                pace.refused[what] = limits.too_slow(expected)
                raise CannotRun(cell.mechanism.text, pace.refused[what])
            # powers of two: a noisy clock mostly leads to the same chunks
            rate = math.floor(math.log2(max(CHUNK_SECONDS / seconds, 1.0)))
            pace.sizes[what] = min(2**rate, chunk_size(cell.problem.d))
        if only_first:
            break
        start = stop
    if spent:
        pace.seconds[what] = spent
    return running.joined(parts)


class Progress:
    """A progress bar that shows itself only when work takes longer than a moment."""

    def __init__(self) -> None:
        self._place = st.empty()
        self._next = time.monotonic() + 0.5

    def __call__(self, share: float, words: str) -> None:
        """Show how much is done; a call is where Streamlit may end the run.

        Each message makes the browser draw the page again, so most calls only look up.
        """
        limits.look_up()
        now = time.monotonic()
        if now >= self._next:
            self._next = now + TOLD_SECONDS
            self._place.progress(min(share, 1.0), words)

    def close(self) -> None:
        """Take the bar away."""
        self._place.empty()


def results(
    data_key: tuple[str, ...], chosen: ResolvedSetting, ready: Prepared, *, early: bool = True
) -> tuple[tuple[Result, ...], tuple[Skipped, ...]]:
    """Return the result of every cell of a plan, and what would take too long.

    Parameters
    ----------
    data_key : tuple of str
    chosen : ResolvedSetting
    ready : Prepared
    early : bool
        Whether first draws may be told before all are there: they compare with the truth.
    """
    progress = Progress()
    first = st.empty()
    if early and _seconds(chosen) > FIRST_AFTER:
        seen = []
        for number, cell in enumerate(chosen.cells):
            progress(number / len(chosen.cells), f"First draw: {cell.mechanism.label}")
            with suppress(CannotRun):  # said below, where it is left out
                seen.append(in_chunks(data_key, cell, ready, lambda share: None, only_first=True))
        first.markdown(narrative.first_draw(seen, chosen.settings.trials))
    found = []
    slow = []
    for number, cell in enumerate(chosen.cells):

        def tell(share: float, number: int = number, label: str = cell.mechanism.label) -> None:
            progress((number + share) / len(chosen.cells), f"Drawing releases: {label}")

        try:
            found.append(in_chunks(data_key, cell, ready, tell))
        except CannotRun as error:
            slow.append(Late(error.mechanism, error.reason))
    progress.close()
    first.empty()
    return tuple(found), tuple(slow)


def _seconds(chosen: ResolvedSetting) -> float:
    """Return about what the draws of a plan take."""
    each = CHUNK_SECONDS / chunk_size(chosen.problem.d)
    return len(chosen.cells) * chosen.settings.trials * each


def comparison(
    data_key: tuple[str, ...], ready: Prepared, settings: Settings, *, early: bool = True
) -> Comparison:
    """Return the comparison of one view, from the cache where it can be; see `results`."""
    chosen = cells.plan(ready, settings, strict=False)
    found, slow = results(data_key, chosen, ready, early=early)
    late = {item.mechanism for item in slow}
    drawn = replace(
        chosen,
        cells=tuple(cell for cell in chosen.cells if cell.mechanism.text not in late),
        skipped=(*chosen.skipped, *slow),
    )
    return Comparison(drawn, found)


@apart(st.cache_data, max_entries=2_000, show_spinner="Predicting", show_time=True)
def _spectrum(key: tuple[str, ...], _measured: Measured, _settings: Settings) -> list[float] | None:
    return curves.predicted_spectrum(_measured, _settings, parse_variant(key[-1]))


def predicted_spectra(data_key: tuple[str, ...], comparison: Comparison) -> dict[str, list[float]]:
    """Return the predicted noisy spectrum of each variant that has one."""
    found = {}
    for result in comparison.results:
        text = result.mechanism.text
        key = (*data_key, repr(comparison.problem), repr(comparison.budget), text)
        spectrum = _spectrum(key, comparison.prepared, comparison.settings)
        if spectrum is not None:
            found[text] = spectrum
    return found
