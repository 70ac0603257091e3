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
    """Results of mechanisms along one or several axes.

    Attributes
    ----------
    over : dict of str to list
        Values of each axis.
    table_ : DataFrame
        Table with one row per setting, trial and metric.
    skipped : DataFrame
        Settings that cannot run, with the reasons: `dpviz.simulation.sweep.SKIPPED_COLUMNS`.
    sweep : dpviz.simulation.sweep.Sweep
    prepared : BoundedTable or PlannedTable
        The table on which the sweep ran.
    metrics : dict of str to Metric
        Names of the measured metrics; the summary shows the first.
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
        """Return the answer for a sweep, with all metrics unless the caller names some."""
        metrics = METRICS if metrics is None else metrics
        axes = {axis: list(values) for axis, values in over.items()}
        answer = cls(settings, axes, sweep.table, sweep.skipped, sweep, prepared, metrics)
        # Each measured metric has a figure, and so does each custom metric.
        object.__setattr__(answer, "figures", tuple(metrics))
        return answer

    @property
    def axis(self) -> str:
        """The axis of the figures: the first axis with more than one value."""
        # An axis with only one value is a setting, because its curve would be a single point.
        several = [axis for axis in self.over if self.sweep.table[axis].nunique() > 1]
        return (several or list(self.over))[0]

    def summary(self) -> str:
        """Return the best mechanism along the axis, and the mechanisms that could not run."""
        table, axis, metric = self.sweep.table, self.axis, self._first
        rows, elsewhere = self._slice(axis, {})
        bands = band_table_of_sweep(rows, self.prepared, self.settings, axis, metric.key)
        best = frontier(bands, metric)
        lines = [curve_caption(bands, best, axis, metric, self._mechanisms)]
        if elsewhere:
            lines[0] += f" Read at {self._words(elsewhere)}."
        names = join_words(f"{axis} ({table[axis].nunique()} values)" for axis in self.over)
        cells = self.sweep.reused + self.sweep.computed
        lines.append(f"{cells} cells over {names}, {self.settings.trials} simulated releases each.")
        for (name, reason), part in self.skipped.groupby(["mechanism", "reason"], sort=False):
            count = "1 cell" if len(part) == 1 else f"{len(part)} cells"
            lines.append(f"{name} was left out of {count}: {reason}.")
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return a row per setting, trial and metric: `dpviz.simulation.compare.TABLE_COLUMNS`."""
        return self.sweep.table

    def figure(
        self,
        name: str | None = None,
        *,
        over: str | None = None,
        at: Mapping[str, Any] | None = None,
    ) -> Figure:
        """Plot one metric along one axis.

        Parameters
        ----------
        name : str, optional
            Metric, a key of `metrics`; by default the first.
        over : str, optional
            Axis of the figure; by default the first axis with more than one value.
        at : mapping of str to value, optional
            Values of the other axes; by default the first value of each.

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        InvalidSetting
            If there is no such metric or axis, or a value is not in the sweep.
        """
        name = self._figure_name(name)
        from dpviz.report.figures.theme import panels_of
        from dpviz.report.figures.tradeoff import tradeoff_figure

        axis = over or self.axis
        if axis not in self.over:
            raise InvalidSetting("over", f"one of {', '.join(self.over)}", axis)
        part, elsewhere = self._slice(axis, at or {})
        rows, settings = self.prepared, self.settings
        bands = band_table_of_sweep(part, rows, settings, axis, name)
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
            # A metric without an upper limit may span powers of ten.
            log_y=metric.upper(rows.d, settings.k) > 1e300 and bool((bands["low"] > 0).all()),
            # A sweep has no current setting, so the line that marks it is where the axis starts.
            now=float(bands["x"].iloc[0]) if len(bands) else float("nan"),
            limits=limit_table(rows, settings, axis, self.over[axis], name),
        )

    def _slice(self, axis: str, at: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the table along one axis, and the values of the other axes."""
        table, places = self.sweep.table, {}
        for other in self.over:
            if other == axis or table.empty:
                continue
            values = list(dict.fromkeys(table[other]))
            # An axis that the figure omits has its first value, unless `at` gives a value.
            value = at.get(other, values[0])
            if value not in values:
                rule = ", ".join(numeral(number, 6) for number in values)
                raise InvalidSetting(other, f"one of {rule}", value)
            if len(values) > 1:
                places[other] = value
        wrong = [name for name in at if name not in self.over or name == axis]
        if wrong:
            others = [other for other in self.over if other != axis]
            raise InvalidSetting("at", f"about {', '.join(others) or 'no axis here'}", wrong[0])
        return at_one_value(table, places), places

    @staticmethod
    def _words(others: Mapping[str, Any]) -> str:
        return join_words(f"{axis} {numeral(value, 6)}" for axis, value in others.items())

    @property
    def _first(self) -> Metric:
        return self.metrics[self.figures[0]]

    @property
    def _mechanisms(self) -> list[Mechanism]:
        # A mechanism that was skipped at every setting has no curve and no claim.
        ran = set(self.sweep.table["mechanism"])
        return [m for m in variants_of(self.settings) if m.text in ran]

    def _notebook_table(self) -> pd.DataFrame:
        return self._bands().rename(columns={"x": self.axis, "mean": self.figures[0]})

    def paper(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the material for a paper into a folder, and return the files' paths.

        The files are: recovery along the axis as a chart one column wide, in SVG and PDF (8 pt, no
        colour); ``table.tex`` with booktabs and errors; ``references.bib`` of every mechanism
        shown; and ``methods.tex`` with one paragraph and the command that repeats the study. All
        results are compared with the exact answer, so they are not private.

        Parameters
        ----------
        folder : str or path
            Target folder, created if missing.

        Raises
        ------
        InvalidSetting
            If the folder cannot be created.
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
            counts = bands.loc[bands["mechanism"] == one.text, "verdict"].value_counts(sort=False)
            parts = [
                VERDICT_WORDS[Verdict(str(key))]
                + ("" if len(counts) == 1 else f" at {count} of {counts.sum()} values")
                for key, count in counts.items()
            ]
            claims.append((one, ", ".join(parts)))
        places = sorted({x for _, x in at})
        # Figures and table show one axis. Every other axis is fixed at its first value.
        others = [f"{latex(one)} {numeral(float(values[0]), 6)}"
                  for one, values in self.over.items() if one != axis]  # fmt: skip
        place = f" at {', '.join(others)}" if others else ""
        origin = self.made
        return write_paper(
            folder,
            figures={name: self._picture()},
            table=booktabs(
                [latex(axis), *(numeral(x, 4) for x in places)],
                [[cited(one), *(at.get((one.text, x), "--") for x in places)]
                 for one in self._mechanisms],
                rf"{self._first.label} on {latex(rows.name)} along {latex(axis)}{place}: means of "
                rf"{settings.trials} simulated releases $\pm$ one standard error.",
            ),
            mechanisms=self._mechanisms,
            methods=methods(
                rows, settings, claims,
                (*rows.assumed_public, *(item for one in self._mechanisms
                                         for item in one.assumed_public)),
                self.over,
            ),
            command=None if origin is None else origin.command,
        )  # fmt: skip

    def _bands(self) -> pd.DataFrame:
        """Return the first metric along the axis of the figures."""
        table, _ = self._slice(self.axis, {})
        return band_table_of_sweep(table, self.prepared, self.settings, self.axis, self.figures[0])

    def _picture(self) -> Picture:
        from dpviz.report.figures.theme import panels_of
        from dpviz.report.print import curves

        rows, settings, axis, bands = self.prepared, self.settings, self.axis, self._bands()
        variants = panels_of(self._mechanisms, rows.problem(settings), rows.budget(settings))
        return curves(
            bands, variants, f"{self._first.label} against {axis}",
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
        A table as in `compare`.
    over : str, sequence of str or mapping
        Axes: epsilon, delta, k, n or row_bound. A mapping gives the values too.
    values : str or sequence, optional
        Values such as ``"0.1:10:9"`` (nine values, equally spaced on a logarithmic scale),
        ``"0.1,1,10"`` or numbers; one such item for each axis if ``over`` is a sequence.
    metrics : str, Metric or sequence of these, optional
        Metrics to measure: names of `dpviz.core.metrics.METRICS`, and custom functions under
        `metric`. The summary shows the first. By default all applicable `METRICS`.
    workers : int
        Number of processes that run settings, from 1. With an executor, the number of settings that
        it has at a time, if more than 64.
    executor : concurrent.futures.Executor, optional
        Executor that runs the settings instead of processes on this machine, such as
        ``distributed.Client("tcp://host:8786").get_executor()``. If one of your own processes is
        killed, the sweep ends; a cache keeps the finished settings.
    cache : path or Store, optional
        Folder in which finished settings are saved and found again; by default none. The files hold
        measurements of the data that are not private.
    progress : callable, optional
        Function that is called with a `dpviz.simulation.jobs.Progress` after each finished setting.
    on_estimate : callable, optional
        A table as in `compare`.
    **options
        A table as in `compare`.

    Returns
    -------
    Swept
        ``table()`` has one row per setting, trial and metric; ``figure(metric)`` plots one metric.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        For the reasons listed in `compare`, and if an axis or a value is not allowed.

    See Also
    --------
    compare : One setting, with every figure.
    least : Where a curve crosses a goal.

    Notes
    -----
    Below the table's n, a setting has a random subsample; above it, the same second moments with
    more people. Results are always compared with the whole table. All values of an axis use the
    same seed, so curves are smooth.

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
    by_name = chosen(metrics)
    prepared, settings = ready(table, options)
    result = sweep_prepared(
        prepared, axes, settings, metrics=by_name.values(), workers=workers, executor=executor,
        store=store, progress=progress, on_estimate=on_estimate,
    )  # fmt: skip
    return Swept.of(result, prepared, settings, axes, by_name)


def axes_of(over: Any, values: Any) -> dict[str, list[Any]]:
    """Return the parsed values of each axis of a sweep.

    Parameters
    ----------
    over, values
        Arguments of `sweep`.
    """
    if isinstance(over, Mapping):
        if values is not None:
            raise InvalidSetting("values", "left out, because over is a mapping", values)
        texts = dict(over)
    else:
        names = [over] if isinstance(over, str) else list(over)
        items = [values] if isinstance(over, str) else values
        if isinstance(items, str) or not isinstance(items, Sequence) or len(items) != len(names):
            raise InvalidSetting("values", "a list with one entry for each axis", values)
        texts = dict(zip(names, items, strict=True))
    axes: dict[str, list[Any]] = {}
    for axis, item in texts.items():
        param = axis_param(axis)
        if item is None:
            rule = "given: numbers, or a text such as 0.1:10:9 or 0.1,1,10"
            raise InvalidSetting("values", rule, item)
        if isinstance(item, str):
            axes[axis] = parse_values(axis, item)
        else:
            alone = not isinstance(item, Iterable)
            # A row-norm bound is a text, such as quantile:0.9, but callers may also pass a number.
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
        Table with `dpviz.simulation.compare.TABLE_COLUMNS` and one value on every other axis.
    rows : Measured
        The table on which the sweep ran.
    settings : Settings
    axis, metric : str

    Returns
    -------
    DataFrame
        Table with `dpviz.report.tables.curves.BAND_COLUMNS`; low and high hold the central 95 % of
        the releases.
    """
    lines = []
    private = private_steps(settings)
    values = table[table["metric"] == metric]
    by_key = {mechanism.text: mechanism for mechanism in variants_of(settings)}
    for (text, x), part in values.groupby(["mechanism", axis], sort=False):
        mechanism, first = by_key[str(text)], part.iloc[0]
        # The unit of A is the squared row-norm bound, so no problem depends on this bound.
        problem = replace(rows.problem(settings), n=int(first["n"]), k=int(first["k"]))
        budget = Budget(float(first["epsilon"]), float(first["delta"]))
        # Judge the claim at each point, because it may hold at one epsilon and fail at another.
        verdict = account_of(mechanism, problem, budget, private).status.verdict
        stats = summarise(part["value"].to_numpy(dtype=float))
        lines.append(
            (str(text), x, stats.mean, stats.se, stats.low, stats.high, len(part), str(verdict))
        )
    bands = pd.DataFrame(lines, columns=list(BAND_COLUMNS))
    return bands.sort_values(["mechanism", "x"], ignore_index=True)


def at_one_value(table: pd.DataFrame, others: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a sweep's table at the given values of some of its columns."""
    mask = pd.Series(True, index=table.index)
    for axis, value in others.items():
        mask &= table[axis] == value
    return table[mask]
