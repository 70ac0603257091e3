"""The question `sweep`: mechanisms along one or several axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Unpack

import pandas as pd

from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import METRICS, Metric, Metrics, chosen, summarise
from dpviz.core.number_text import numeral
from dpviz.core.params import as_python, format_number
from dpviz.core.problem import Budget
from dpviz.core.release import VERDICT_WORDS, Verdict
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import BoundedTable
from dpviz.preparation.load import PlannedTable
from dpviz.preparation.prepared import Measured
from dpviz.preparation.steps import private_steps
from dpviz.report.sentences.phrases import join_words
from dpviz.report.sentences.tradeoffs import curve_caption
from dpviz.report.tables.curves import BAND_COLUMNS, frontier
from dpviz.simulation.axes import AXES, axis_param, parse_values
from dpviz.simulation.cells import account_of, variants_of
from dpviz.simulation.jobs import Progress
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import Sweep
from dpviz.simulation.sweep import sweep as sweep_prepared
from dpviz.studies import Answer
from dpviz.studies.columns import ASIDE
from dpviz.studies.curves import limit_table
from dpviz.studies.options import Measuring, Options, asks, ready

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from dpviz.report.figures.theme import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Swept(Answer):
    """Mechanisms along one or several axes.

    Attributes
    ----------
    over : dict of str to list
        The values of each axis.
    table_ : DataFrame
        One row per cell, trial and metric.
    skipped : DataFrame
        The cells that cannot run, and why: `dpviz.simulation.sweep.SKIPPED_COLUMNS`.
    sweep : dpviz.simulation.sweep.Sweep
    prepared : BoundedTable or PlannedTable
        What was swept.
    metrics : dict of str to Metric
        What was measured; the summary is of the first.
    """

    figures: ClassVar[tuple[str, ...]] = tuple(METRICS)

    settings: Settings
    over: Annotated[dict[str, list[Any]], dict[str, list[float | str | None]]]
    table_: Annotated[pd.DataFrame, dict[str, list[float | str | None]]]
    skipped: Annotated[pd.DataFrame, list[dict[str, float | str | None]]]
    sweep: Annotated[Sweep, ASIDE]
    prepared: Annotated[BoundedTable | PlannedTable, ASIDE]
    metrics: Annotated[Mapping[str, Metric], ASIDE]

    @classmethod
    def of(
        cls,
        sweep: Sweep,
        prepared: BoundedTable | PlannedTable,
        settings: Settings,
        over: Mapping[str, Sequence[Any]],
        metrics: Mapping[str, Metric] | None = None,
    ) -> Swept:
        """Return the answer that a sweep is; of all metrics unless some are given."""
        metrics = METRICS if metrics is None else metrics
        axes = {axis: list(values) for axis, values in over.items()}
        found = cls(settings, axes, sweep.table, sweep.skipped, sweep, prepared, metrics)
        # a figure of each metric that was measured, one's own too
        object.__setattr__(found, "figures", tuple(metrics))
        return found

    @property
    def axis(self) -> str:
        """The axis that figures are drawn along: the first with more than one value."""
        # an axis with one value is a setting: a curve along it would be a point
        several = [axis for axis in self.over if self.sweep.table[axis].nunique() > 1]
        return (several or list(self.over))[0]

    def summary(self) -> str:
        """Return which mechanism does best where, and what could not run."""
        table, axis, metric = self.sweep.table, self.axis, self._first
        shown, elsewhere = self._slice(axis, {})
        bands = band_table_of_sweep(shown, self.prepared, self.settings, axis, metric.key)
        best = frontier(bands, metric)
        lines = [curve_caption(bands, best, axis, metric, self._mechanisms)]
        if elsewhere:
            lines[0] += f" Read at {self._words(elsewhere)}."
        names = join_words(f"{axis} ({table[axis].nunique()} values)" for axis in self.over)
        cells = self.sweep.reused + self.sweep.computed
        lines.append(f"{cells} cells over {names}, {self.settings.trials} draws each.")
        for (name, reason), part in self.skipped.groupby(["mechanism", "reason"], sort=False):
            count = "1 cell" if len(part) == 1 else f"{len(part)} cells"
            lines.append(f"{name} was left out of {count}: {reason}.")
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return one row per cell, trial and metric: `dpviz.simulation.compare.TABLE_COLUMNS`."""
        return self.sweep.table

    def figure(
        self,
        name: str | None = None,
        *,
        over: str | None = None,
        at: Mapping[str, Any] | None = None,
    ) -> Figure:
        """Draw one metric along one axis.

        Parameters
        ----------
        name : str, optional
            A key of `metrics`; the first if not said.
        over : str, optional
            Which axis; by default the first with more than one value.
        at : mapping of str to value, optional
            Values of the other axes; by default the first of each.

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        InvalidSetting
            If there is no such metric or axis, or a value was not swept.
        """
        name = self._named(name)
        from dpviz.report.figures.theme import panels_of
        from dpviz.report.figures.tradeoff import tradeoff_figure

        axis = over or self.axis
        if axis not in self.over:
            raise InvalidSetting("over", f"one of {', '.join(self.over)}", axis)
        shown, elsewhere = self._slice(axis, at or {})
        rows, settings = self.prepared, self.settings
        bands = band_table_of_sweep(shown, rows, settings, axis, name)
        metric = self.metrics[name]
        title = AXES[axis].label
        if elsewhere:
            title += f" (at {self._words(elsewhere)})"
        return tradeoff_figure(
            bands,
            panels_of(self._mechanisms, rows.problem(settings), rows.budget(settings)),
            x_title=title,
            y_title=metric.label + (f", {metric.unit}" if metric.unit else ""),
            shares=metric.share,
            log_x=axis in ("epsilon", "delta", "n"),
            # a measure without an upper end may span powers of ten
            log_y=metric.upper(rows.d, settings.k) > 1e300 and bool((bands["low"] > 0).all()),
            # a sweep has no current setting: the line that marks it stands at its start
            now=float(bands["x"].iloc[0]) if len(bands) else float("nan"),
            limits=limit_table(rows, settings, axis, self.over[axis], name),
        )

    def _slice(self, axis: str, at: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the table along one axis, and the values of the others."""
        table, fixed = self.sweep.table, {}
        for other in self.over:
            if other == axis or table.empty:
                continue
            values = list(dict.fromkeys(table[other]))
            # an axis that is not drawn stands still at its first value, unless one is said
            value = at.get(other, values[0])
            if value not in values:
                allowed = ", ".join(numeral(known, 6) for known in values)
                raise InvalidSetting(other, f"one of {allowed}", value)
            if len(values) > 1:
                fixed[other] = value
        wrong = [name for name in at if name not in self.over or name == axis]
        if wrong:
            others = [other for other in self.over if other != axis]
            raise InvalidSetting("at", f"about {', '.join(others) or 'no axis here'}", wrong[0])
        return at_one_value(table, fixed), fixed

    @staticmethod
    def _words(fixed: Mapping[str, Any]) -> str:
        return join_words(f"{axis} {numeral(value, 6)}" for axis, value in fixed.items())

    @property
    def _first(self) -> Metric:
        return self.metrics[self.figures[0]]

    @property
    def _mechanisms(self) -> list[Mechanism]:
        # what was skipped everywhere has no curve and no claim to list
        ran = set(self.sweep.table["mechanism"])
        return [m for m in variants_of(self.settings) if m.text in ran]

    def _shown(self) -> pd.DataFrame:
        return self._bands().rename(columns={"x": self.axis, "mean": self.figures[0]})

    def paper(self, folder: str | PathLike[str]) -> list[Path]:
        """Write what a paper needs into a folder, and return the files.

        Recovery along the axis one column wide as SVG and PDF (8 pt, no colour), ``table.tex`` with
        booktabs and errors, ``references.bib`` of every mechanism shown, and ``methods.tex``: one
        paragraph, and the command that makes it again. They compare with the exact answer, so they
        are not private.

        Parameters
        ----------
        folder : str or path
            Made if it is not there.

        Raises
        ------
        InvalidSetting
            If the folder cannot be there.
        """
        from dpviz.report.paper import booktabs, cited, latex, methods, with_error, write_paper

        rows, settings, axis = self.prepared, self.settings, self.axis
        bands, name = self._bands(), self.figures[0]
        at = {
            (str(key), float(x)): with_error(float(mean), float(se))
            for key, x, mean, se in bands[["mechanism", "x", "mean", "se"]].to_numpy().tolist()
        }
        claims = []
        for one in self._mechanisms:
            counted = bands.loc[bands["mechanism"] == one.text, "verdict"].value_counts(sort=False)
            said = [
                VERDICT_WORDS[Verdict(str(key))]
                + ("" if len(counted) == 1 else f" at {count} of {counted.sum()} values")
                for key, count in counted.items()
            ]
            claims.append((one, ", ".join(said)))
        places = sorted({x for _, x in at})
        # of other axes figures and table show the first value
        others = [f"{latex(one)} {numeral(float(values[0]), 6)}"
                  for one, values in self.over.items() if one != axis]  # fmt: skip
        held = f" at {', '.join(others)}" if others else ""
        made = self.made
        return write_paper(
            folder,
            figures={name: self._picture()},
            table=booktabs(
                [latex(axis), *(numeral(x, 4) for x in places)],
                [[cited(one), *(at.get((one.text, x), "--") for x in places)]
                 for one in self._mechanisms],
                rf"{self._first.label} on {latex(rows.name)} along {latex(axis)}{held}: means of "
                rf"{settings.trials} draws $\pm$ one standard error.",
            ),
            mechanisms=self._mechanisms,
            methods=methods(
                rows, settings, claims,
                (*rows.assumed_public, *(item for one in self._mechanisms
                                         for item in one.assumed_public)),
                self.over,
            ),
            command=None if made is None else made.command,
        )  # fmt: skip

    def _bands(self) -> pd.DataFrame:
        """Return the first measure along the axis of figures."""
        table, _ = self._slice(self.axis, {})
        return band_table_of_sweep(table, self.prepared, self.settings, self.axis, self.figures[0])

    def _picture(self) -> Picture:
        from dpviz.report.figures.theme import panels_of
        from dpviz.report.print import curves

        rows, settings, axis, bands = self.prepared, self.settings, self.axis, self._bands()
        shown = panels_of(self._mechanisms, rows.problem(settings), rows.budget(settings))
        return curves(
            bands, shown, f"{self._first.label} against {axis}",
            log=axis in ("epsilon", "delta", "n") and bool((bands["x"] > 0).all()),
        )  # fmt: skip


@asks("run mechanisms over a grid of settings", Settings, Measuring, noun="cell")
def sweep(
    table: Any = "digits",
    *,
    over: str | Sequence[str] | Mapping[str, Any] = "epsilon",
    values: Any = None,
    metrics: Metrics | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    cache: str | PathLike[str] | Store | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_estimate: Callable[[float], None] | None = None,
    **options: Unpack[Options],
) -> Swept:
    """Run mechanisms over a grid of settings.

    Parameters
    ----------
    table
        As in `compare`.
    over : str, sequence of str or mapping
        What to vary: epsilon, delta, k, n or row_bound. A mapping gives the values too.
    values : str or sequence, optional
        ``"0.1:10:9"`` (nine values, equally spaced on a logarithmic scale), ``"0.1,1,10"`` or
        numbers; one such item for each axis when ``over`` is a sequence.
    metrics : str, Metric or sequence of these, optional
        What to measure: names of `dpviz.core.metrics.METRICS`, and functions of one's own under
        `metric`. The summary is of the first. All of `METRICS` that apply if not said.
    workers : int
        Processes that run cells, from 1. With an executor, how many cells it has at a time, if
        more than 64.
    executor : concurrent.futures.Executor, optional
        Who runs the cells in place of processes of this machine, such as
        ``distributed.Client("tcp://host:8786").get_executor()``. Of processes that are yours, a
        killed one ends the sweep; with a cache, what was finished is kept.
    cache : path or Store, optional
        Where finished cells are kept and found again; nowhere if not said. The files hold
        measurements of the data that are not private.
    progress : callable, optional
        Called with a `dpviz.simulation.jobs.Progress` after each finished cell.
    on_estimate : callable, optional
        As in `compare`.
    **options
        As in `compare`.

    Returns
    -------
    Swept
        ``table()`` has one row per cell, trial and metric; ``figure(metric)`` draws one metric.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where an axis or a value is not legal.

    See Also
    --------
    compare : One setting, with every figure.
    least : Where a curve crosses a goal.

    Notes
    -----
    Below the table's n a cell has a random subsample, above it the same second moments with more
    people; results are always compared with the whole table. The same seed draws along each axis,
    so curves are smooth.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.sweep(
    ...     "iris", over="epsilon", values="0.1:10:3", k=1, trials=5, mechanisms="gaussian"
    ... )
    >>> found.table()["epsilon"].unique().tolist()
    [0.1, 1.0, 10.0]
    >>> figure = found.figure("captured_share")
    """
    axes = axes_of(over, values)
    store = cache if isinstance(cache, Store) or cache is None else Store(Path(cache))
    wanted = chosen(metrics)
    prepared, settings = ready(table, options)
    found = sweep_prepared(
        prepared, axes, settings, metrics=wanted.values(), workers=workers, executor=executor,
        store=store, progress=progress, on_estimate=on_estimate,
    )  # fmt: skip
    return Swept.of(found, prepared, settings, axes, wanted)


def axes_of(over: Any, values: Any) -> dict[str, list[Any]]:
    """Return the values of each axis of a sweep, parsed.

    Parameters
    ----------
    over, values
        As in `sweep`.
    """
    if isinstance(over, Mapping):
        if values is not None:
            raise InvalidSetting("values", "left out where over is a mapping", values)
        written = dict(over)
    else:
        names = [over] if isinstance(over, str) else list(over)
        items = [values] if isinstance(over, str) else values
        if isinstance(items, str) or not isinstance(items, Sequence) or len(items) != len(names):
            raise InvalidSetting("values", "given once for each axis", values)
        written = dict(zip(names, items, strict=True))
    axes: dict[str, list[Any]] = {}
    for axis, item in written.items():
        param = axis_param(axis)
        if item is None:
            allowed = "given: numbers, or a text such as 0.1:10:9 or 0.1,1,10"
            raise InvalidSetting("values", allowed, item)
        if isinstance(item, str):
            axes[axis] = parse_values(axis, item)
        else:
            alone = not isinstance(item, Iterable)
            # a row bound is a text, such as quantile:0.9, and may be a number too
            axes[axis] = [
                format_number(float(value))
                if param.kind == "text" and isinstance(value, (int, float))
                else value
                for value in map(as_python, [item] if alone else item)
            ]
    return axes


def band_table_of_sweep(
    table: pd.DataFrame, rows: Measured, settings: Settings, axis: str, metric: str
) -> pd.DataFrame:
    """Return mean, standard error and range of one metric along one axis.

    Parameters
    ----------
    table : DataFrame
        `dpviz.simulation.compare.TABLE_COLUMNS`, with one value on every other axis.
    rows : Measured
        What was swept.
    settings : Settings
    axis, metric : str

    Returns
    -------
    DataFrame
        Columns `dpviz.report.tables.curves.BAND_COLUMNS`; low and high hold the central 95 % of the
        draws.
    """
    found = []
    private = private_steps(settings)
    chosen = table[table["metric"] == metric]
    known = {mechanism.text: mechanism for mechanism in variants_of(settings)}
    for (text, x), part in chosen.groupby(["mechanism", axis], sort=False):
        mechanism, first = known[str(text)], part.iloc[0]
        # The row bound is the unit of A, so no problem depends on it.
        problem = replace(rows.problem(settings), n=int(first["n"]), k=int(first["k"]))
        budget = Budget(float(first["epsilon"]), float(first["delta"]))
        # at each point: a claim may hold at one epsilon and fail at another
        verdict = account_of(mechanism, problem, budget, private).status.verdict
        seen = summarise(part["value"].to_numpy(dtype=float))
        found.append(
            (str(text), x, seen.mean, seen.se, seen.low, seen.high, len(part), str(verdict))
        )
    bands = pd.DataFrame(found, columns=list(BAND_COLUMNS))
    return bands.sort_values(["mechanism", "x"], ignore_index=True)


def at_one_value(table: pd.DataFrame, fixed: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a sweep's table at given values of some of its columns."""
    kept = pd.Series(True, index=table.index)
    for axis, value in fixed.items():
        kept &= table[axis] == value
    return table[kept]
