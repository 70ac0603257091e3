"""The question `compare`: mechanisms side by side in one setting."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, Unpack

import pandas as pd

from dpviz.auditing.account import account_view
from dpviz.core.entries import FROM_DATA, UNDECLARED
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics import (
    METRICS,
    OWN_NAME,
    Metric,
    Metrics,
    Summary,
    chance_distance,
    chosen,
    farthest_distance,
    optimum,
)
from dpviz.core.number_text import numeral, rows_words
from dpviz.core.problem import Budget, Unit
from dpviz.core.quantity import Kind
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import BoundedTable, Prepared
from dpviz.preparation.load import PlannedTable
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences import explore
from dpviz.report.sentences.phrases import left_out
from dpviz.report.tables.comparison import distance_table, measure_table, spectrum_table
from dpviz.report.tables.frame import FRAME_METRICS
from dpviz.report.tables.projection import picture_table
from dpviz.simulation.cells import Skipped
from dpviz.simulation.compare import Comparison, Result, pictured
from dpviz.simulation.compare import compare as compare_prepared
from dpviz.simulation.defaults import with_featured
from dpviz.simulation.simulate import Cell
from dpviz.studies import Answer
from dpviz.studies.account import Account
from dpviz.studies.columns import (
    ABSENT,
    ASIDE,
    EVERYWHERE,
    NUMBERS,
    SKIPPED,
    SOURCED,
    Column,
    Number,
    Sentence,
    Share,
    of_pair,
    printed,
    seen,
    typeset,
)
from dpviz.studies.options import Measuring, Options, asks, ready
from dpviz.studies.published import published_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from dpviz.releasing.private_pca import PrivatePCA
    from dpviz.report.figures.theme import Figure
    from dpviz.studies.board import Board


# This is the maximum number of points in a chart, because more points would hide each other.
_POINTS = 300
_FIGURES = ("spectrum", "distance", "projection", "published")


@dataclass(frozen=True)
class Looked:
    """Columns of the analysed table.

    Attributes
    ----------
    row_bound : float or None
        Return the row-norm bound in the data's units; null if rows are not bounded.
    """

    name: str
    n: int
    d: int
    row_bound: float | None
    domain: str


@dataclass(frozen=True)
class Exact:
    """The analysis without privacy, for comparison.

    Attributes
    ----------
    eigenvalues : list of float
        Eigenvalues of A, in squared row-norm bounds, descending.
    captured : float
        Variance that the best k components capture.
    captured_total : float
        Value of ``captured`` as a share of the total variance.
    """

    eigenvalues: list[float]
    captured: float
    captured_total: float


@dataclass(frozen=True, eq=False)
class Side:
    """One mechanism of a comparison: its variant, and its result."""

    comparison: Comparison
    cell: Cell
    result: Result


def _account(side: Side) -> Any:
    """Return the accounting of a whole chain, or None if no epsilon describes it."""
    if side.cell.private is None:
        return ABSENT
    cell = side.cell
    # Some releases, such as one without noise, have no epsilon, so they have no privacy accounting.
    try:
        view = account_view(cell.mechanism, cell.problem, cell.budget, private=cell.private)
    except CannotRun:
        return None
    return Account.of(view)


MEASURED = (
    Column("mean", type=float),
    Column("se", "Standard error", digits=2,
           help="Standard error of the mean; null with one simulated release."),
    *(
        Column(end, label, type=float,
               help="End of the range of the central 95 % of the releases; not an interval of the "
                    "mean.")
        for end, label in (("low", "Low (2.5 % of releases)"), ("high", "High (97.5 %)"))
    ),
    Column("kind", of=lambda summary: Kind.MEASUREMENT, type=Literal["measurement"],
           show=frozenset({"json"})),
)  # fmt: skip
"""Columns of a metric over the releases."""

SPENT = (
    *SOURCED,
    Column("exact", type=bool, help="Whether epsilon is also the exact loss."),
    Column("delta_at_claimed_epsilon", of=lambda loss: loss.delta_at_epsilon,
           help="Actual delta at the claimed epsilon, if it is known."),
)  # fmt: skip
"""Columns of a mechanism's privacy loss."""

_JSON, _READ = frozenset({"json"}), EVERYWHERE - {"json"}
_IN_TABLE, _ON_PAGE = frozenset({"table"}), frozenset({"table", "page"})

COMPARED = (
    Column("mechanism", of=lambda side: side.result.mechanism, type=str),
    Column("status", "Claim", lambda side: side.result.status, type=str),
    Column("evidence", of=lambda side: side.result.status.evidence, type=Sentence,
           show=frozenset({"json", "page"})),
    Column("claimed", of=lambda side: side.result.claimed, show=_JSON, type=Budget | None),
    Column("spent", of=lambda side: side.result.spent, show=_JSON,
           type=Annotated[Any, SPENT] | None),
    Column("metrics", of=lambda side: side.result.summaries, show=_JSON,
           type=dict[str, Annotated[Summary, MEASURED]]),
    Column("diagnostics", of=lambda side: side.result.diagnostics, show=_JSON,
           type=dict[str, Any]),
    Column("aims_at", of=lambda side: side.result.aim, type=str, show=NUMBERS),
    Column("bias", of=lambda side: side.result.bias, show=NUMBERS,
           help="Recovery without noise; null if the mechanism aims at nothing."),
    Column("components_found", of=lambda side: side.comparison.components_found(side.result),
           type=int | None, show=_JSON,
           help="Expected number of components that the noisy matrix reveals."),
    Column("account", of=_account, show=_JSON, type=NotRequired[Account | None],
           help="Privacy loss of the whole pipeline, if preparation uses part of the budget."),
    # These columns repeat the values for tables, with one number per column.
    Column("claimed_epsilon", of=lambda side: of_pair(side.result.claimed, "epsilon"), digits=3,
           show=_ON_PAGE),
    Column("claimed_delta", of=lambda side: of_pair(side.result.claimed, "delta"), show=_IN_TABLE),
    Column("spent_epsilon", of=lambda side: of_pair(side.result.spent, "cost"), digits=3,
           show=_READ, help="Actual privacy loss of a release; a dash if no epsilon describes it."),
    Column("spent_delta", of=lambda side: of_pair(side.result.spent, "delta"), show=_IN_TABLE),
    Column("delta_at_claimed_epsilon", digits=2, show=_ON_PAGE,
           of=lambda side: of_pair(side.result.spent, "delta_at_epsilon"),
           help="The actual delta of a release at its claimed epsilon."),
)  # fmt: skip
"""Columns of a mechanism in a comparison; the `measures` of each metric come after them."""


def _end(key: str, end: str, side: Side) -> Any:
    return getattr(side.result.summaries[key], end) if key in side.result.metrics else ABSENT


def measures(metric: Metric) -> tuple[Column, ...]:
    """Return the columns of a metric: its mean, and both ends of its central 95 %."""
    key, arrow = metric.key, {"higher": " ↑", "lower": " ↓"}.get(metric.better, "")
    # A page of a paper is narrow, so show only the main metrics and the caller's custom metrics.
    in_paper = key in FRAME_METRICS or key not in METRICS
    return (
        Column(key, metric.label + arrow, lambda side: side.result.summaries.get(key, ABSENT),
               help=metric.help, show=_READ if in_paper else _READ - {"paper"},
               type=Share if metric.share else Number),
        *(
            Column(f"{key}_{end}", show=_IN_TABLE,
                   of=partial(_end, key, end))
            for end in ("low", "high")
        ),
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Answer):
    """Results of mechanisms side by side in one setting.

    Attributes
    ----------
    assumed_public : tuple of str
        Values assumed to be public, in words.
    comparison : dpviz.simulation.compare.Comparison
        Results of every simulated release: metrics, eigenvalues, components.
    metrics : dict of str to Metric
        Names of the measured metrics.
    """

    figures: ClassVar[tuple[str, ...]] = (*_FIGURES, *METRICS)
    with_rows: ClassVar[tuple[str, ...]] = ("projection", "published")
    columns: ClassVar[tuple[Column, ...]] = COMPARED

    dataset: Looked
    assumed_public: tuple[str, ...]
    notes: tuple[str, ...]
    settings: Settings
    reference: Exact
    results: tuple[Side, ...]
    skipped: Annotated[tuple[Skipped, ...], SKIPPED]
    comparison: Annotated[Comparison, ASIDE]
    metrics: Annotated[Mapping[str, Metric], ASIDE]

    @classmethod
    def of(cls, comparison: Comparison, metrics: Mapping[str, Metric] | None = None) -> Compared:
        """Return the answer for a comparison, with all metrics unless the caller names some."""
        metrics = METRICS if metrics is None else metrics
        prepared, best = (
            comparison.prepared,
            optimum(comparison.prepared.reference, comparison.problem.k),
        )
        bound = prepared.row_bound if prepared.domain.bounded else None
        reference = prepared.reference
        answer = cls(
            Looked(prepared.name, prepared.n, prepared.d, bound, prepared.domain.kind),
            comparison.assumed_public,
            tuple(prepared.notes),
            replace(comparison.settings, delta=comparison.budget.delta),
            Exact(reference.eigenvalues.tolist(), best, best / reference.total),
            tuple(Side(comparison, cell, result)
                  for cell, result in zip(comparison.plan.cells, comparison.results, strict=True)),
            comparison.skipped,
            comparison,
            metrics,
        )  # fmt: skip
        # Each measured metric has a figure, and so does each custom metric.
        object.__setattr__(answer, "figures", (*_FIGURES, *metrics))
        return answer

    def all_columns(self) -> tuple[Column, ...]:
        """Return the columns of the table, with the columns of each metric at the end."""
        return (*self.columns, *(c for metric in self.metrics.values() for c in measures(metric)))

    def _looked_at(self) -> Measured:
        return self.comparison.prepared

    def summary(self) -> str:
        """Return the verdict, the table, the omitted mechanisms and the public assumptions."""
        comparison = self.comparison
        lines = [explore.verdict(comparison), explore.facts(comparison), *comparison.prepared.notes]
        lines += left_out(comparison.skipped)
        lines.append("Assumed public: " + "; ".join(comparison.assumed_public) + ".")
        return "\n".join(lines)

    def printed(self) -> str:
        """Return the setting, the public assumptions and the means, as the command prints them."""
        comparison = self.comparison
        prepared, budget, problem = comparison.prepared, comparison.budget, comparison.problem
        bound = f"row-norm bound {numeral(prepared.row_bound, 4)}"
        if not prepared.domain.bounded:
            # An unbounded domain has no row-norm bound, because the longest row is not a bound.
            bound = "no row-norm bound"
        person = problem.unit is Unit.PERSON
        whose = f", for a person with {rows_words(problem.together)}" if person else ""
        lines = [
            f"{prepared.name}: n {prepared.n:,}, d {prepared.d}, {prepared.domain.kind}, "
            f"{bound}; epsilon {numeral(budget.epsilon, 6)}, "
            f"delta {numeral(budget.delta, 6)}, k {problem.k}, {problem.relation}{whose}",
            *(f"note: {note}" for note in prepared.notes),
            "assumed public: " + "; ".join(comparison.assumed_public),
            "",
        ]
        lines.append(printed(self.all_columns(), self.results))
        with_hint = [result for result in comparison.results if result.hint is not None]
        lines += [f"{result.mechanism.text} {result.hint}" for result in with_hint]
        lines += left_out(comparison.skipped)
        return "\n".join(lines)

    def draws(self) -> pd.DataFrame:
        """Return a row per variant, trial and metric: `dpviz.simulation.compare.TABLE_COLUMNS`."""
        return self.comparison.table()

    def figure(self, name: str | None = None) -> Figure:
        """Plot the mechanisms side by side.

        Parameters
        ----------
        name : str, optional
            ``spectrum`` (the default): noisy eigenvalues against true ones; ``distance``: distance
            of each released subspace from the true subspace; ``projection``: the 2-D projection of
            the first release; ``published``: the map that may be published at this epsilon, axes
            and points together, if a claim holds; or a metric of `dpviz.core.metrics.METRICS`: its
            mean and the central 95 % of releases.

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        InvalidSetting
            If there is no figure of this name, or the chart needs rows that are not in memory.
        """
        name = self._figure_name(name)
        from dpviz.report.figures import side_by_side
        from dpviz.report.figures.distance import distance_figure
        from dpviz.report.figures.theme import panels

        comparison = self.comparison
        variants = panels(comparison.results)
        prepared, problem = comparison.prepared, comparison.problem
        if name == "spectrum":
            edges = {r.mechanism.text: r.edges for r in comparison.results if r.edges is not None}
            thresholds = {
                r.mechanism.text: r.threshold for r in comparison.results if r.threshold is not None
            }
            table = spectrum_table(prepared, comparison.results)
            return side_by_side.spectra(table, variants, edges, thresholds)
        if name == "distance":
            d, k = problem.d, problem.k
            return distance_figure(
                distance_table(comparison.results),
                variants,
                farthest=farthest_distance(d, k),
                chance=chance_distance(d, k),
            )
        if name in ("projection", "published"):
            if not isinstance(prepared, Prepared):
                rule = ", ".join(o for o in self.figures if o not in self.with_rows)
                rule = f"one of {rule} if the rows are not in memory"
                raise InvalidSetting("figure", rule, name)
            if name == "published":
                return published_figure(list(pictured(comparison).values()), prepared)
            results = list(comparison.results)
            table = picture_table(prepared, results, 0, "aligned", _POINTS)
            ribbon = prepared.table.ribbon
            return side_by_side.pictures(table, variants, strip=problem.k == 1, ribbon=ribbon)
        return side_by_side.measures(
            measure_table(comparison.results, name), variants, self.metrics[name]
        )

    def board(self) -> Board:
        """Return the same comparison with a slider for epsilon, which a notebook can show.

        Raises
        ------
        InvalidSetting
            If the rows are not in memory.
        """
        from dpviz.studies.board import Board

        prepared = self.comparison.prepared
        if not isinstance(prepared, BoundedTable | PlannedTable):
            raise InvalidSetting("the table", "a table whose rows are in memory", prepared.name)
        return Board(prepared, with_featured(prepared, self.comparison.settings), None)

    def paper(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the material for a paper into a folder, and return the files' paths.

        The files are: each measure as a chart one column wide, in SVG and PDF (8 pt, no colour);
        ``table.tex`` with booktabs and errors; ``references.bib`` of every mechanism shown; and
        ``methods.tex`` with one paragraph and the command that repeats the study. All results are
        compared with the exact answer, so they are not private.

        Parameters
        ----------
        folder : str or path
            Target folder, created if missing.

        Raises
        ------
        InvalidSetting
            If the folder cannot be created.
        """
        from dpviz.report.figures.theme import panels
        from dpviz.report.paper import booktabs, latex, methods, write_paper
        from dpviz.report.print import ranges

        comparison, epsilon = self.comparison, self.comparison.budget.epsilon
        head, rows = typeset(self.all_columns(), self.results)
        names = [
            name
            for name in self.metrics
            if any(
                column.name == name for column in seen(self.all_columns(), "paper", self.results)
            )
        ]
        origin = self.made
        return write_paper(
            folder,
            figures={
                name: ranges(
                    measure_table(comparison.results, name), panels(comparison.results),
                    f"{self.metrics[name].label}, mean and 95 % of simulated releases",
                )
                for name in names
            },
            table=booktabs(
                head, rows,
                rf"{latex(comparison.prepared.name)}, $\varepsilon$ {numeral(epsilon, 6)}, "
                rf"$k$ {comparison.problem.k}: means of {self.settings.trials} simulated releases "
                r"$\pm$ one standard error.",
            ),
            mechanisms=[result.mechanism for result in comparison.results],
            methods=methods(
                comparison.prepared, comparison.settings,
                [(result.mechanism, result.status.words) for result in comparison.results],
                comparison.assumed_public, {},
            ),
            command=None if origin is None else origin.command,
        )  # fmt: skip

    def estimator(self, mechanism: str | None = None, **parameters: Any) -> PrivatePCA:
        """Return an unfitted estimator that prepares rows in the same way as this comparison.

        A fit of the estimator has the recovery of the comparison. The estimator takes the same
        values from the data as the comparison, and warns: state ``bounds`` and a private ``center``
        instead if the fit is to be published.

        Parameters
        ----------
        mechanism : str, optional
            A variant of the comparison; by default the one with the highest recovery among the
            claims that hold.
        **parameters
            Parameters of `dpviz.PrivatePCA` that replace the comparison's parameters.

        Raises
        ------
        InvalidSetting
            If no mechanism of this name ran, or an estimator cannot prepare rows in this way: a
            box, or a quantile of the row lengths.
        """
        from dpviz.releasing.declared import PrivacyWarning
        from dpviz.releasing.private_pca import PrivatePCA

        comparison, settings = self.comparison, self.comparison.settings
        if comparison.prepared.domain.kind == "box":
            raise InvalidSetting("domain", "ball, because estimators bound row lengths", "box")
        if settings.row_bound.startswith("quantile"):
            rule = "a length, private or max, because an estimator uses no quantile of the rows"
            raise InvalidSetting("row_bound", rule, settings.row_bound)
        ran = {result.mechanism.text: result for result in comparison.results}
        holding = [name for name, result in ran.items() if result.status.verdict.counts]
        best = max(holding, key=lambda name: ran[name].summaries["captured_share"].mean, default="")
        key = best if mechanism is None else mechanism
        if key not in ran:
            raise InvalidSetting("mechanism", f"one of {', '.join(ran)}", key or "none holds")
        private = settings.private_shares
        bounds: Any = settings.bounds
        if bounds == "max":
            bounds = FROM_DATA if private else None
        row_bound: Any = settings.row_bound
        if row_bound == "max":
            row_bound = FROM_DATA
            if {"mean", "scale"} & set(private):
                # The longest row is measured from the mean, which is not known before a fit.
                row_bound = comparison.prepared.row_bound
                warnings.warn(
                    "row_bound comes from the comparison's table and is not private. State a bound "
                    "that was known before you saw the table.",
                    PrivacyWarning,
                    stacklevel=2,
                )
        own = {
            "n_components": comparison.problem.k,
            "mechanism": key,
            "epsilon": comparison.budget.epsilon,
            "delta": comparison.budget.delta,
            "relation": settings.relation,
            "center": _AS_FITTED.get(settings.centring, settings.centring),
            "scale": _AS_FITTED.get(settings.scale, settings.scale),
            "row_bound": None if row_bound == UNDECLARED else row_bound,
            "bounds": bounds,
            "count": settings.count,
            "shares": private or None,
            # In a comparison, the components get the whole budget and variances nothing.
            "variance_share": 0.0,
        }
        return PrivatePCA(**(own | parameters))

    def _picture(self) -> Picture | None:
        from dpviz.report.figures.theme import panels
        from dpviz.report.print import ranges

        comparison = self.comparison
        if not comparison.results:
            return None
        # If k = d, every subspace is the whole space, so recovery is undefined.
        metric = "recovery" if "recovery" in comparison.results[0].metrics else "captured_share"
        title = f"{METRICS[metric].label}, mean and 95 % of simulated releases"
        return ranges(measure_table(comparison.results, metric), panels(comparison.results), title)


_AS_FITTED = dict.fromkeys(("mean", "standardize"), FROM_DATA)
"""Values of an estimator for options that a comparison takes from the data."""


@asks("run mechanisms side by side on one table", Settings, Measuring)
def compare(
    table: Any = "digits",
    *,
    metrics: Metrics | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    on_estimate: Callable[[float], None] | None = None,
    memory: Callable[[float], None] | None = None,
    **options: Unpack[Options],
) -> Compared:
    """Run mechanisms side by side on one table.

    Parameters
    ----------
    table : str, path, DataFrame, array of shape (n, d) or plan
        A built-in or remote key (see `list_datasets`); the path of a CSV or Parquet file; a frame
        of pandas, polars (a lazy one too) or any library that speaks Arrow, or of Dask; an array,
        one row a person, of NumPy, Dask, SciPy (sparse) or anything with ``__array__``, or a list
        of rows; a Bunch of scikit-learn, whose target is the label ``target``; or a plan without a
        table, ``plan:n=1e5,spectrum=power:d=50,exponent=1.5,total=0.5``.
    metrics : str, Metric or sequence of these, optional
        Metrics in addition to recovery, captured share and projection distance, which the summary
        uses: names of `dpviz.core.metrics.METRICS`, and custom functions under `metric`. By default
        all applicable `METRICS`.
    progress : callable, optional
        Function that is called with (done, total, what comes next) before each mechanism.
    on_estimate : callable, optional
        Function that is called once with the expected duration of a long run in seconds.
    memory : callable, optional
        Function that is called once, before any simulation, with an estimate of the maximum number
        of bytes that the run needs in addition to the table. A mechanism that would need more than
        is free is skipped, or refused if named.
    **options
        Fields of `dpviz.core.settings.Settings`. ``mechanisms`` is one variant such as
        ``"mvg[theorem=3]"`` or several, by default all applicable variants; ``bounds`` may be a
        mapping of feature to (low, high), and ``allocation`` a mapping of feature to share.

    Returns
    -------
    Compared
        Answer with ``summary()``, ``table()``, ``draws()``, ``figure(name)`` and ``to_json()``,
        which writes the bytes of ``dpviz compare --format json``.

    Raises
    ------
    WrongArgument
        If an argument is unknown, or is given by position.
    InvalidSetting
        If an option is out of its range.
    InvalidTable
        If the table cannot be read or used.
    CannotRun
        If a named mechanism cannot run on the requested problem and budget.

    See Also
    --------
    sweep : The same along epsilon, delta, k, n or the row bound.
    least : The least epsilon for a goal.
    predict : The same without a draw.

    Notes
    -----
    Results are compared with the exact components, so no result here is a release. Metrics and
    their units are in `dpviz.core.metrics.METRICS`; eigenvalues are in squared row-norm bounds.
    Each mechanism's source is in its ``info.paper``.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.compare("iris", epsilon=1, delta=1e-4, k=2, trials=20, mechanisms="gaussian")
    >>> found.table()[["mechanism", "status"]].to_dict("records")
    [{'mechanism': 'gaussian', 'status': 'holds'}]
    >>> print(found.summary())
    At epsilon 1 and delta 0.0001, Gaussian, exact recovers ...
    iris: 150 people (rows), 4 features; row norms up to R = 3.839. ...
    Assumed public: the number of rows n and the features' names; ...
    >>> figure = found.figure("spectrum")

    A data frame, and bounds that were public before:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 44, 57, 62], "visits": [2, 0, 5, 3]})
    >>> bounds = {"age": (0, 120), "visits": (0, 50)}
    >>> stated = {"domain": "box", "bounds": bounds, "rows_a_person": 1}
    >>> found = dpviz.compare(frame, k=1, mechanisms="laplace", **stated)
    >>> found.comparison.prepared.assumed_public
    ("the number of rows n and the features' names", 'that no person has more than 1 row')
    """
    by_name = chosen(metrics) if metrics is None else chosen(FRAME_METRICS) | chosen(metrics)
    for name in (*_FIGURES, *(column.name for column in COMPARED)):
        if name in by_name:
            raise InvalidSetting("metrics", OWN_NAME, name, "--metric")
    prepared, settings = ready(table, options)
    comparison = compare_prepared(
        prepared, settings, progress, on_estimate, memory, tuple(by_name.values())
    )
    return Compared.of(comparison, by_name)
