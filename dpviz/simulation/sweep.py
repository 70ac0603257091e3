"""Sweep mechanisms over a grid of settings into a tidy table, or compare them along one axis.

`sweep` crosses values of epsilon, delta, k, n and the row-norm bound. Streams are named by seed,
mechanism and trial. So one trial has the same random numbers along each axis and makes a smooth
curve, while trials are independent of each other.

- n below the table's takes a random subsample, each inside the next larger subsample; n above it
  keeps A and enlarges n. Results are always compared with the whole table, with the same bound.
- A row-norm bound prepares the rows again. Results are compared with the rows before bounding.
  Metrics in squared row-norm bounds are given in the base setting's bounds, so that they are
  comparable along the axis.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import in_threads
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.files import write_table
from dpviz.core.metrics import METRICS, Metric, Metrics, chosen, metric_of
from dpviz.core.resources import one_blas_thread
from dpviz.core.settings import Settings
from dpviz.core.worker import sent_whole
from dpviz.datasets.table import Table
from dpviz.mechanisms import ALL, Mechanism, parse_variant
from dpviz.preparation.bounding import BoundedTable, prepare
from dpviz.preparation.load import PlannedTable, load_measured
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import private_steps
from dpviz.simulation.axes import axis_param, clean_value, rows_at, settings_at
from dpviz.simulation.cells import pilot_draws, plan, takes_rows
from dpviz.simulation.compare import TABLE_COLUMNS, Comparison, Draw, Result, attempt, compare
from dpviz.simulation.jobs import Arrays, Progress, kept, work
from dpviz.simulation.simulate import Cell
from dpviz.simulation.store import Keys, Store

At = Callable[[Measured, str, Any, int, bool], Measured]
"""A function to the table at one axis value: `dpviz.simulation.axes.rows_at`, or its cache."""

SKIPPED_COLUMNS = (
    "table", "mechanism", "epsilon", "delta", "k", "n", "row_bound", "relation", "reason",
)  # fmt: skip

_SQUARED_BOUND = "squared row bound"  # Metrics with this unit depend on the row-norm bound.
_TEXT = ("table", "mechanism", "relation", "metric", "reason")
_WHOLE = ("k", "n", "trial")


@dataclass(frozen=True, eq=False)
class Sweep:
    """The result of a sweep.

    Attributes
    ----------
    table : DataFrame
        Columns `dpviz.simulation.compare.TABLE_COLUMNS`: one row per cell, metric and trial.
        ``row_bound`` is in units of the (scaled) table, ``value`` in the metric's own unit, or in
        squared row-norm bounds of the base setting.
    skipped : DataFrame
        Columns `SKIPPED_COLUMNS`: the cells that cannot run, and the reasons.
    reused, computed : int
        Numbers of cells from the cache, and of cells run now.
    """

    table: pd.DataFrame
    skipped: pd.DataFrame
    reused: int
    computed: int

    def write(self, path: str | Path) -> None:
        """Write the table as CSV or Parquet, by the ending; the file is complete or absent.

        Raises
        ------
        InvalidSetting
            If the ending is neither CSV nor Parquet, or the folder cannot be written.
        """
        write_table(self.table, path)


def sweep(
    table: str | Table | BoundedTable | PlannedTable,
    over: Mapping[str, Iterable[Any]],
    settings: Settings | None = None,
    *,
    metrics: Metrics | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_estimate: Callable[[float], None] | None = None,
) -> Sweep:
    """Run mechanisms over a grid of settings.

    Parameters
    ----------
    table : str, Table, BoundedTable or PlannedTable
        A built-in name, a path, a plan (see `dpviz.preparation.load`), a table, or rows
        prepared with the settings.
    over : mapping of str to values
        Axes among epsilon, delta, k, n and row_bound, with the values of each axis; their product
        is swept. Repeated values count once.
    settings : Settings, optional
        All other settings: mechanisms, trials, seed, relation, preparation.
    metrics : str, Metric or iterable of these, optional
        Names of `dpviz.core.metrics.METRICS`, or custom metrics; by default all of `METRICS`.
    workers, executor
        How the cells are run; see `dpviz.simulation.jobs.work`.
    store : Store, optional
        The store of finished cells.
    progress : callable, optional
        A function called after each finished cell, once it is in the store.
    on_estimate : callable, optional
        A function called once, before the first cell, with the expected seconds of a long sweep,
        judged by a few trials of every mechanism.

    Returns
    -------
    Sweep
        In the order of row-norm bound, n, k, epsilon, delta and mechanism, independent of the order
        in which cells finished.

    Raises
    ------
    InvalidSetting
        If an axis, a value or a metric is not legal.
    CannotRun
        If a named mechanism can run in no cell, or no mechanism is left. A cell in which an
        external mechanism fails is skipped, with its reason.
    """
    settings = settings or Settings()
    # Worker processes know the built-in metrics by name, so only custom metrics are sent as code.
    keys = tuple(key if key in METRICS else one for key, one in chosen(metrics).items())
    axes = _axes_of(over)
    if isinstance(table, str):
        table = load_measured(replace(settings, table=table))
    base = prepare(table, settings) if isinstance(table, Table) else table
    grid = _Grid(base, settings, axes, keys)
    seconds = None if on_estimate is None else expected_seconds(grid.jobs, store, workers)
    if on_estimate is not None and seconds is not None:
        on_estimate(seconds)
    strange = {one.compute for one in keys if isinstance(one, Metric)}
    with sent_whole({*strange, *(type(job.cell.mechanism) for job in grid.jobs)}):
        for step in work(grid.jobs, store, workers, executor):
            if progress is not None:
                progress(step.progress)
    from_store = step.progress.reused
    for number, why in sorted(step.failed.items()):
        if not step.done:
            raise why
        grid.skipped.append(grid.places[number] | {"reason": why.reason})
    if store is not None:
        store.prune()
    return Sweep(
        _table(grid, step.done),
        _typed(grid.skipped, SKIPPED_COLUMNS),
        from_store,
        len(step.done) - from_store,
    )


def _axes_of(over: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Return the distinct values of each axis, checked against its range."""
    axes = {
        axis: list(dict.fromkeys(clean_value(axis_param(axis), axis, value) for value in values))
        for axis, values in over.items()
    }
    for axis, values in axes.items():
        if not values:
            raise InvalidSetting(axis, "given at least one value", "none", f"--values (of {axis})")
    return axes


@dataclass(frozen=True, eq=False)
class CellJob:
    """A cell, the data it needs and the metrics wanted; see `dpviz.simulation.jobs.Job`."""

    cell: Cell
    measured: Measured
    metrics: tuple[str | Metric, ...]
    key: str
    size: int = 1

    def run(self) -> Arrays | CannotRun:
        """Simulate the cell's trials and measure them, or return why a custom mechanism fails."""
        answer = attempt(self.cell, self.measured, self.metrics)
        return answer if isinstance(answer, CannotRun) else answer.metrics


def expected_seconds(
    jobs: Sequence[CellJob], store: Store | None = None, workers: int = 1
) -> float | None:
    """Estimate the seconds of the cells that are not stored, or None if the time is short.

    A few trials of one cell of every mechanism are timed, and the total is divided among the
    workers. The cells simulate these trials again.
    """
    have = kept(jobs, store).done
    todo = [job for place, job in enumerate(jobs) if place not in have]
    draws: dict[str, list[CellJob]] = {}
    for job in todo:
        draws.setdefault(job.cell.mechanism.text, []).append(job)
    total = 0.0
    for alike in draws.values():
        # Cells of a mechanism differ along the axes, so measure the time of a middle cell.
        middle = alike[len(alike) // 2]
        trials = sum(len(job.cell.trials) for job in alike)
        few = min(pilot_draws(middle.cell.problem.d, trials), len(middle.cell.trials))
        if few:
            cell = replace(middle.cell, trials=middle.cell.trials[:few])
            start = time.monotonic()
            replace(middle, cell=cell).run()
            total += (time.monotonic() - start) * trials / few
    return total / workers if total else None


class _Grid:
    """The cells of a sweep in order, with their tables and their places in the result."""

    def __init__(
        self,
        base: BoundedTable | PlannedTable,
        settings: Settings,
        axes: Mapping[str, Sequence[Any]],
        metrics: tuple[str | Metric, ...],
    ) -> None:
        self.jobs: list[CellJob] = []
        self.places: list[dict[str, Any]] = []
        self.factors: list[float] = []
        self.skipped: list[dict[str, Any]] = []
        self.units = {one.key: one.unit for one in map(metric_of, metrics)}
        if max(axes.get("k", [settings.k])) > base.d:
            at_fault = max(axes.get("k", [settings.k]))
            flag = "--values (of k)" if "k" in axes else "--k"
            raise InvalidSetting("k", f"a whole number from 1 to {base.d}", at_fault, flag)
        bounds = set()
        for row_bound in axes.get("row_bound", [None]):
            rows = base if row_bound is None else base.rebound(row_bound)
            setting = settings if row_bound is None else replace(settings, row_bound=row_bound)
            bound = (rows.row_bound, rows.domain.kind, private_steps(setting))
            if bound in bounds:  # Bounds max and quantile:1 are the same, so skip repeats.
                continue
            bounds.add(bound)
            # Convert metrics in squared row-norm bounds to the row-norm bound of the base setting.
            factor = (rows.row_bound / base.row_bound) ** 2
            for n in axes.get("n", [base.n]):
                light = heavy = rows.with_n(n, settings.seed)
                _diagonalise(light)
                if n <= rows.n and takes_rows(rows, setting):
                    heavy = rows.with_n(n, settings.seed, with_rows=True)
                keys = {one: Keys(one) for one in (light, heavy)}
                for k, epsilon, delta in itertools.product(
                    axes.get("k", [settings.k]),
                    axes.get("epsilon", [settings.epsilon]),
                    axes.get("delta", [settings.delta]),
                ):
                    here = replace(setting, k=k, epsilon=epsilon, delta=delta)
                    plan_here = plan(heavy, here, strict=False)
                    for one in plan_here.skipped:
                        place = {"mechanism": one.mechanism, "reason": one.reason}
                        self.skipped.append(plan_here.place | place)
                    for cell in plan_here.cells:
                        # Send the rows only to mechanisms that need them.
                        weighs = cell.mechanism.needs_rows or cell.picture is not None
                        data = heavy if weighs else light
                        self.jobs.append(
                            CellJob(cell, data, metrics, keys[data].key(cell, metrics))
                        )
                        self.places.append(plan_here.place | {"mechanism": cell.mechanism.text})
                        self.factors.append(factor)
        self._check_named(settings)

    def _check_named(self, settings: Settings) -> None:
        """Raise CannotRun if a named mechanism can run in no cell."""
        runs = {place["mechanism"] for place in self.places}
        for text in settings.mechanisms:
            if text == ALL:
                continue
            name = parse_variant(text).text
            if name not in runs:
                reasons = [item["reason"] for item in self.skipped if item["mechanism"] == name]
                raise CannotRun(name, reasons[0])


def _diagonalise(measured: Measured) -> None:
    """Compute the eigenvectors once in this process, and not again in every worker."""
    with one_blas_thread():
        for moment in (measured.moment, measured.reference):
            _ = moment.span


def _table(grid: _Grid, metrics: Mapping[int, Mapping[str, FloatArray]]) -> pd.DataFrame:
    """Return the tidy table, in the order of the jobs."""
    places, sizes, trials, names, values = [], [], [], [], []
    for number, (place, factor) in enumerate(zip(grid.places, grid.factors, strict=True)):
        for metric, column in metrics.get(number, {}).items():
            numbers = column * factor if grid.units[metric] == _SQUARED_BOUND else column
            places.append(place)
            sizes.append(len(column))
            names.append(metric)
            trials.append(np.arange(len(column)))
            values.append(numbers)
    columns: dict[str, Any] = {
        name: np.repeat(np.array([place[name] for place in places], dtype=object), sizes)
        for name in TABLE_COLUMNS
        if name not in ("trial", "metric", "value")
    }
    columns["trial"] = np.concatenate(trials) if trials else []
    columns["metric"] = np.repeat(np.array(names, dtype=object), sizes)
    columns["value"] = np.concatenate(values) if values else []
    return _typed(columns, TABLE_COLUMNS)


def _typed(rows: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return a table with typed columns."""
    kinds = {
        name: "str" if name in _TEXT else "int64" if name in _WHOLE else "float64"
        for name in columns
    }
    return pd.DataFrame(rows, columns=list(columns)).astype(kinds)


# Sweep along one axis ---------------------------------------------------------------------------


def along(
    prepared: Measured,
    settings: Settings,
    axis: str,
    values: Sequence[Any],
    metrics: Sequence[str | Metric] = tuple(METRICS),
    *,
    draw: Draw = attempt,
    at: At = rows_at,
    workers: int = 1,
) -> Iterator[Comparison]:
    """Yield the comparison of all mechanisms at each value of an axis, in order.

    The releases are the same as in a `sweep`.

    Parameters
    ----------
    prepared : Measured
    settings : Settings
        All other settings. Mechanisms that cannot run, or fail in a trial, are always skipped.
    axis : str
        Name of an axis in `dpviz.simulation.axes.AXES`.
    values : sequence
    metrics : sequence of str or Metric
    draw : callable
        The same parameters as in `dpviz.simulation.compare.compare`.
    at : callable
        A function that returns the table at a value; from a cache, if several callers need it.
    workers : int
        Threads, which share the mechanisms of all values, so that no thread waits for a slow
        mechanism at each value. LAPACK lets other threads run while it works, and the numbers do
        not change. With one thread, each value is simulated on request.
    """

    def there(value: Any) -> tuple[Measured, Settings]:
        with_rows = axis == "n" and takes_rows(prepared, settings)
        table = at(prepared, axis, value, settings.seed, with_rows)
        return table, settings_at(settings, axis, value)

    places: Iterable[tuple[Measured, Settings]] = map(there, values)
    if workers > 1:
        places = [*places]
        alike: dict[Mechanism, list[tuple[Cell, Measured]]] = {}
        for table, here in places:
            for cell in plan(table, here, strict=False).cells:
                alike.setdefault(cell.mechanism, []).append((cell, table))
        # Start with samplers, which take the longest. Started last, one thread would run alone.
        groups = sorted(alike.items(), key=lambda item: item[0].info.release == "matrix")
        with one_blas_thread():
            parts = in_threads(
                lambda item: [(cell, draw(cell, rows, metrics)) for cell, rows in item[1]],
                groups,
                workers,
            )
        answers: dict[Cell, Result | CannotRun] = dict(pair for part in parts for pair in part)
        of_cell: Draw = lambda cell, *_: answers[cell]  # noqa: E731, it stands in for the one given
    else:
        of_cell = draw
    for table, here in places:
        yield compare(table, here, metrics=metrics, strict=False, draw=of_cell)
