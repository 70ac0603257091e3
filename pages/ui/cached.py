"""Every cached call. Arguments are texts, numbers and tuples of them only.

A dataclass nested in an argument would lose its class in the cache key, and a
generator has none: pass texts and seeds. Results of uploads stay within the
session that uploaded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import streamlit as st

from dpviz import datasets, sweeps
from dpviz.datasets import RawTable, Table
from dpviz.errors import DpvizError, InvalidTable
from dpviz.mechanisms import parse_variant
from dpviz.prepare import Prepared, prepare
from dpviz.settings import Settings
from dpviz.sweeps import Cell, Comparison, Plan, Result

# A run can only be stopped between Streamlit calls; chunks keep that short.
CHUNK_SECONDS = 0.15


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _parsed(file_id: str, name: str, _file: object) -> RawTable | str:
    # Streamlit forgets a call that raised: a zip bomb would be unpacked again on every run.
    try:
        return datasets.read_raw(_file, name=name)  # type: ignore[arg-type]
    except DpvizError as error:
        return str(error)


def raw_table(file_id: str, name: str, file: object) -> RawTable:
    """Return the parsed upload, or raise InvalidTable saying why there is none."""
    found = _parsed(file_id, name, file)
    if isinstance(found, str):
        raise InvalidTable(found)
    return found


@st.cache_resource(max_entries=16, show_spinner=False)
def builtin(key: str) -> Table:
    """Return a built-in table."""
    return datasets.load(key)


@st.cache_resource(scope="session", max_entries=4, show_spinner=False)
def uploaded(
    file_id: str, label: str | None, categorical: str, missing: str, _raw: RawTable
) -> Table:
    """Return the upload as a numeric table."""
    return _raw.to_table(label=label, categorical=categorical, missing=missing)


@st.cache_resource(scope="session", max_entries=12, show_spinner=False)
def prepared(
    table_key: str,
    columns: tuple[str, ...],
    preparation: tuple[tuple[str, str], ...],
    bounds: tuple[tuple[str, tuple[float, float]], ...],
    _table: Table,
    _settings: Settings,
) -> Prepared:
    """Return the prepared table; ``preparation`` names what it depends on."""
    return prepare(_table.select(columns) if columns else _table, _settings, dict(bounds) or None)


@st.cache_data(scope="session", max_size="256MB", show_spinner=False)
def chunk(
    data_key: tuple[str, ...],
    variant: str,
    budget: tuple[float, float],
    problem: str,
    seed: int,
    start: int,
    stop: int,
    _cell: Cell,
    _prepared: Prepared,
) -> Result:
    """Return one chunk of trials of one variant."""
    return sweeps.run_cell(_cell, _prepared)


def chunk_size(d: int) -> int:
    """Return how many trials take about `CHUNK_SECONDS` at dimension d.

    Three symmetric eigenvalue problems a trial; their cost is measured in
    ``benchmarks/explore.py``.
    """
    seconds = 3 * (5e-5 + 4e-7 * d**2 + 6e-10 * d**3)
    return max(1, math.floor(CHUNK_SECONDS / seconds))


def results(
    data_key: tuple[str, ...], chosen: Plan, ready: Prepared
) -> Iterator[tuple[int, Result]]:
    """Yield (number of the cell, its result), calling Streamlit between chunks."""
    progress = st.empty()
    started = time.monotonic()
    for number, cell in enumerate(chosen.cells):
        size = chunk_size(cell.problem.d)
        parts = []
        for start in range(cell.trials.start, cell.trials.stop, size):
            stop = min(start + size, cell.trials.stop)
            if time.monotonic() - started > 0.5:
                done = number + (start - cell.trials.start) / max(len(cell.trials), 1)
                progress.progress(
                    done / len(chosen.cells), f"Drawing releases: {cell.mechanism.label}"
                )
            else:
                progress.empty()  # a Streamlit call: the point where a stale run stops
            part = Cell(cell.mechanism, cell.problem, cell.budget, cell.seed, range(start, stop))
            parts.append(
                chunk(
                    data_key,
                    cell.mechanism.text,
                    (cell.budget.epsilon, cell.budget.delta),
                    repr(cell.problem),  # all of it: k, relation, domain, allocation
                    cell.seed,
                    start,
                    stop,
                    part,
                    ready,
                )
            )
        yield number, sweeps.joined(parts)
    progress.empty()


def comparison(data_key: tuple[str, ...], ready: Prepared, settings: Settings) -> Comparison:
    """Return the comparison of one view, from the cache where it can be."""
    chosen = sweeps.plan(ready, settings, strict=False)
    found = tuple(result for _, result in results(data_key, chosen, ready))
    return Comparison(
        ready, settings, ready.problem(settings), ready.budget(settings), found, chosen.skipped
    )


def variant_label(text: str) -> str:
    """Return the display name of a variant."""
    return parse_variant(text).label
