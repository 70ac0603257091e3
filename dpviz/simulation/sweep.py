"""Sweeps: mechanisms over a grid of settings, as one tidy table.

`sweep` crosses values of epsilon, delta, k, n and the row bound. Streams are
named by seed, mechanism and trial, so one draw runs along each axis and makes a
smooth curve, while trials are independent of each other.

- n below the table's takes a random subsample, each inside the next larger; n
  above keeps A and enlarges n. Results are always compared with the whole
  table, with the bound held.
- A row bound prepares the rows again. Results are compared with the rows before
  bounding, and metrics in units of the squared row bound are given in those of
  the base setting, so that they compare along the axis.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.files import write_table
from dpviz.core.metrics import METRICS, Metric, Metrics, chosen, metric_of
from dpviz.core.resources import one_blas_thread
from dpviz.core.settings import Settings
from dpviz.core.worker import sent_whole
from dpviz.datasets.table import Table
from dpviz.mechanisms import ALL, parse_variant
from dpviz.preparation.bounding import BoundedTable, prepare
from dpviz.preparation.load import PlannedTable, load_measured
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import private_steps
from dpviz.simulation.axes import axis_param, clean_value
from dpviz.simulation.cells import cell_at, pilot_draws, variants_of
from dpviz.simulation.compare import TABLE_COLUMNS, attempt
from dpviz.simulation.jobs import Arrays, Progress, kept, work
from dpviz.simulation.simulate import Cell
from dpviz.simulation.store import Keys, Store

SKIPPED_COLUMNS = (
    "table", "mechanism", "epsilon", "delta", "k", "n", "row_bound", "relation", "reason",
)  # fmt: skip

_SQUARED_BOUND = "squared row bound"  # the unit that a row bound changes
_TEXT = ("table", "mechanism", "relation", "metric", "reason")
_WHOLE = ("k", "n", "trial")


@dataclass(frozen=True, eq=False)
class Sweep:
    """The result of a sweep.

    Attributes
    ----------
    table : DataFrame
        Columns `dpviz.simulation.compare.TABLE_COLUMNS`: one row per cell, metric and
        trial. ``row_bound`` is in units of the (scaled) table, ``value`` in the
        metric's own unit, or in squared row bounds of the base setting.
    skipped : DataFrame
        Columns `SKIPPED_COLUMNS`: the cells that cannot run, and why.
    reused, computed : int
        Cells from the cache, and cells run now.
    """

    table: pd.DataFrame
    skipped: pd.DataFrame
    reused: int
    computed: int

    def write(self, path: str | Path) -> None:
        """Write the table as CSV or Parquet, by the ending; whole or not at all.

        Raises
        ------
        InvalidSetting
            If the ending is another, or the folder cannot be written.
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
        Axes among epsilon, delta, k, n and row_bound, with the values of each;
        their product is swept. Repeated values count once.
    settings : Settings, optional
        All the rest: mechanisms, trials, seed, relation, preparation.
    metrics : str, Metric or iterable of these, optional
        Names of `dpviz.core.metrics.METRICS`, and others; all of `METRICS` if not given.
    workers, executor
        Who runs the cells: see `dpviz.simulation.jobs.work`.
    store : Store, optional
        Where finished cells are kept and found again.
    progress : callable, optional
        Called after each finished cell, once it is in the store.
    on_estimate : callable, optional
        Called once, before the first cell, with the seconds that a long sweep is expected to take,
        judged by a few draws of every mechanism.

    Returns
    -------
    Sweep
        In the order of row bound, n, k, epsilon, delta and mechanism, whatever
        the order in which cells finished.

    Raises
    ------
    InvalidSetting
        If an axis, a value or a metric is not legal.
    CannotRun
        If a mechanism that was named can run in no cell, or none is left: a cell in which one of
        somebody else fails is among the skipped, with its reason.
    """
    settings = settings or Settings()
    # by name where a worker knows them: only what it cannot know is sent as code
    wanted = tuple(key if key in METRICS else one for key, one in chosen(metrics).items())
    axes = _axes_of(over)
    if isinstance(table, str):
        table = load_measured(replace(settings, table=table))
    base = prepare(table, settings) if isinstance(table, Table) else table
    grid = _Grid(base, settings, axes, wanted)
    seconds = None if on_estimate is None else expected_seconds(grid.jobs, store, workers)
    if on_estimate is not None and seconds is not None:
        on_estimate(seconds)
    strange = {one.compute for one in wanted if isinstance(one, Metric)}
    with sent_whole({*strange, *(type(job.cell.mechanism) for job in grid.jobs)}):
        for step in work(grid.jobs, store, workers, executor):
            if progress is not None:
                progress(step.progress)
    reused = step.progress.reused
    for number, why in sorted(step.failed.items()):
        if not step.done:
            raise why
        grid.skipped.append(grid.places[number] | {"reason": why.reason})
    if store is not None:
        store.prune()
    return Sweep(
        _table(grid, step.done),
        _typed(grid.skipped, SKIPPED_COLUMNS),
        reused,
        len(step.done) - reused,
    )


def _axes_of(over: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Return the values of each axis within its range, each once."""
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
        """Draw the cell's trials and measure them; say why where an own mechanism fails."""
        found = attempt(self.cell, self.measured, self.metrics)
        return found if isinstance(found, CannotRun) else found.metrics


def expected_seconds(
    jobs: Sequence[CellJob], store: Store | None = None, workers: int = 1
) -> float | None:
    """Return about how long the cells that are not kept will take, or None where that is short.

    A few draws of one cell of every mechanism are timed, and shared out among the workers; they
    are drawn again by the cells.
    """
    have = kept(jobs, store).done
    todo = [job for place, job in enumerate(jobs) if place not in have]
    draws: dict[str, list[CellJob]] = {}
    for job in todo:
        draws.setdefault(job.cell.mechanism.text, []).append(job)
    total = 0.0
    for alike in draws.values():
        # cells of a mechanism differ along the axes: one from their middle stands for them
        middle = alike[len(alike) // 2]
        trials = sum(len(job.cell.trials) for job in alike)
        few = min(pilot_draws(middle.cell.problem.d, trials), len(middle.cell.trials))
        if few:
            cell = replace(middle.cell, trials=middle.cell.trials[:few])
            started = time.monotonic()
            replace(middle, cell=cell).run()
            total += (time.monotonic() - started) * trials / few
    return total / workers if total else None


class _Grid:
    """The cells of a sweep in order, with what they need and where they stand in the table."""

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
        self._metrics = metrics
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
            if bound in bounds:  # max and quantile:1 are one bound
                continue
            bounds.add(bound)
            # metrics in squared row bounds are brought back to those of the base setting
            factor = (rows.row_bound / base.row_bound) ** 2
            for n in axes.get("n", [base.n]):
                self._add(rows, n, setting, axes, factor)
        self._check_named(settings)

    def _add(
        self,
        rows: BoundedTable | PlannedTable,
        n: int,
        settings: Settings,
        axes: Mapping[str, Sequence[Any]],
        factor: float,
    ) -> None:
        """Add the cells of one row bound and one n."""
        measured = rows.with_n(n, settings.seed)
        _diagonalise(measured)
        light = measured, Keys(measured)
        # Rows are taken along where a mechanism or a picture asks for them, and are made once.
        heavy: tuple[Measured, Keys] | None = None
        in_table = n <= rows.n
        for k, epsilon, delta in itertools.product(
            axes.get("k", [settings.k]),
            axes.get("epsilon", [settings.epsilon]),
            axes.get("delta", [settings.delta]),
        ):
            setting = replace(settings, k=k, epsilon=epsilon, delta=delta)
            place = self._place(measured, setting, n)
            for mechanism in variants_of(settings):
                # n may be that of more people than there are rows
                cell = cell_at(
                    measured,
                    setting,
                    mechanism,
                    range(setting.trials),
                    serves=in_table and rows.serves(mechanism),
                    has_rows=in_table and rows.has_rows,
                )
                placed = place | {"mechanism": mechanism.text}
                if isinstance(cell, str):
                    self.skipped.append(placed | {"reason": cell})
                    continue
                weighs = mechanism.needs_rows or cell.picture is not None
                if weighs and heavy is None:
                    with_rows = rows.with_n(n, settings.seed, with_rows=True)
                    heavy = with_rows, Keys(with_rows)
                data, keys = heavy if heavy and weighs else light
                key = keys.key(cell, self._metrics)
                self.jobs.append(CellJob(cell, data, self._metrics, key))
                self.places.append(placed)
                self.factors.append(factor)

    @staticmethod
    def _place(measured: Measured, setting: Settings, n: int) -> dict[str, Any]:
        """Return where cells of one setting stand in the table."""
        budget = measured.budget(setting)
        return {
            "table": measured.name,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "k": setting.k,
            "n": n,
            "row_bound": measured.row_bound,
            "relation": str(measured.problem(setting).relation),
        }

    def _check_named(self, settings: Settings) -> None:
        """Raise CannotRun if a named mechanism can run nowhere."""
        runs = {place["mechanism"] for place in self.places}
        for text in settings.mechanisms:
            if text == ALL:
                continue
            name = parse_variant(text).text
            if name not in runs:
                reasons = [item["reason"] for item in self.skipped if item["mechanism"] == name]
                raise CannotRun(name, reasons[0])


def _diagonalise(measured: Measured) -> None:
    """Have the eigenvectors found here, once, and not again in every worker."""
    with one_blas_thread():
        for moment in (measured.moment, measured.reference):
            _ = moment.span


def _table(grid: _Grid, metrics: Mapping[int, Mapping[str, FloatArray]]) -> pd.DataFrame:
    """Return the tidy table, in the order of the jobs."""
    places, sizes, trials, names, values = [], [], [], [], []
    for number, (place, factor) in enumerate(zip(grid.places, grid.factors, strict=True)):
        for metric, drawn in metrics.get(number, {}).items():
            scaled = drawn * factor if grid.units[metric] == _SQUARED_BOUND else drawn
            places.append(place)
            sizes.append(len(drawn))
            names.append(metric)
            trials.append(np.arange(len(drawn)))
            values.append(scaled)
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
    """Return a table with the types of its columns."""
    kinds = {
        name: "str" if name in _TEXT else "int64" if name in _WHOLE else "float64"
        for name in columns
    }
    return pd.DataFrame(rows, columns=list(columns)).astype(kinds)
