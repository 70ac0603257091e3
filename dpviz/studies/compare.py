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


# of a picture: more would hide each other
_POINTS = 300
_FIGURES = ("spectrum", "distance", "projection", "published")


@dataclass(frozen=True)
class Looked:
    """The table that was looked at.

    Attributes
    ----------
    row_bound : float or None
        The longest row in the data's units; null where none is bounded.
    """

    name: str
    n: int
    d: int
    row_bound: float | None
    domain: str


@dataclass(frozen=True)
class Exact:
    """The analysis without privacy.

    Attributes
    ----------
    eigenvalues : list of float
        Of A, in squared row bounds, descending.
    captured : float
        By the best k components.
    captured_total : float
        The same as a share of all variance.
    """

    eigenvalues: list[float]
    captured: float
    captured_total: float


@dataclass(frozen=True, eq=False)
class Side:
    """One mechanism of a comparison: what ran, and what came of it."""

    comparison: Comparison
    cell: Cell
    result: Result


def _account(side: Side) -> Any:
    """Return the account of a whole chain, or None where no epsilon describes it."""
    if side.cell.private is None:
        return ABSENT
    cell = side.cell
    # a release that no epsilon describes, such as one without noise, has no account
    try:
        view = account_view(cell.mechanism, cell.problem, cell.budget, private=cell.private)
    except CannotRun:
        return None
    return Account.of(view)


MEASURED = (
    Column("mean", type=float),
    Column("se", "Standard error", digits=2,
           help="Standard error of the mean; null with one draw."),
    *(
        Column(end, label, type=float,
               help="The central 95 % of the simulated releases: a range, not an interval of the "
                    "mean.")
        for end, label in (("low", "Low (2.5 % of the draws)"), ("high", "High (97.5 %)"))
    ),
    Column("kind", of=lambda summary: Kind.MEASUREMENT, type=Literal["measurement"],
           show=frozenset({"json"})),
)  # fmt: skip
"""A metric over the draws."""

SPENT = (
    *SOURCED,
    Column("exact", type=bool, help="Whether it is no less either."),
    Column("delta_at_claimed_epsilon", of=lambda spent: spent.delta_at_epsilon,
           help="Delta at the epsilon that is claimed, where it is known."),
)  # fmt: skip
"""What a mechanism spends."""

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
           help="Recovery without noise; null where nothing is aimed at."),
    Column("components_found", of=lambda side: side.comparison.components_found(side.result),
           type=int | None, show=_JSON,
           help="How many components a noisy matrix is expected to show."),
    Column("account", of=_account, show=_JSON, type=NotRequired[Account | None],
           help="Preparation and release together, if the preparation uses part of the budget."),
    # the same in tables, a number a column
    Column("claimed_epsilon", of=lambda side: of_pair(side.result.claimed, "epsilon"), digits=3,
           show=_ON_PAGE),
    Column("claimed_delta", of=lambda side: of_pair(side.result.claimed, "delta"), show=_IN_TABLE),
    Column("spent_epsilon", of=lambda side: of_pair(side.result.spent, "cost"), digits=3,
           show=_READ, help="Actual privacy loss of a release; a dash if no epsilon describes it."),
    Column("spent_delta", of=lambda side: of_pair(side.result.spent, "delta"), show=_IN_TABLE),
    Column("delta_at_claimed_epsilon", digits=2, show=_ON_PAGE,
           of=lambda side: of_pair(side.result.spent, "delta_at_epsilon"),
           help="The delta that a release really gives at the epsilon it claims."),
)  # fmt: skip
"""Of a mechanism in a comparison; `measures` of each metric stand behind them."""


def _end(key: str, end: str, side: Side) -> Any:
    return getattr(side.result.summaries[key], end) if key in side.result.metrics else ABSENT


def measures(metric: Metric) -> tuple[Column, ...]:
    """Return the columns of a metric: its mean, and the ends of the central 95 % of the draws."""
    key, arrow = metric.key, {"higher": " ↑", "lower": " ↓"}.get(metric.better, "")
    # a paper's page is narrow: the first metrics, and those that a caller brought
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
    """Mechanisms side by side in one setting.

    Attributes
    ----------
    assumed_public : tuple of str
        What is taken for public, in words.
    comparison : dpviz.simulation.compare.Comparison
        Every draw: metrics, eigenvalues, components.
    metrics : dict of str to Metric
        What was measured.
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
    def of(cls, found: Comparison, metrics: Mapping[str, Metric] | None = None) -> Compared:
        """Return the answer that a comparison is; of all metrics unless some are given."""
        metrics = METRICS if metrics is None else metrics
        prepared, best = found.prepared, optimum(found.prepared.reference, found.problem.k)
        bound = prepared.row_bound if prepared.domain.bounded else None
        reference = prepared.reference
        answer = cls(
            Looked(prepared.name, prepared.n, prepared.d, bound, prepared.domain.kind),
            found.assumed_public,
            tuple(prepared.notes),
            replace(found.settings, delta=found.budget.delta),
            Exact(reference.eigenvalues.tolist(), best, best / reference.total),
            tuple(Side(found, cell, result)
                  for cell, result in zip(found.plan.cells, found.results, strict=True)),
            found.skipped,
            found,
            metrics,
        )  # fmt: skip
        # a figure of each metric that was measured, one's own too
        object.__setattr__(answer, "figures", (*_FIGURES, *metrics))
        return answer

    def all_columns(self) -> tuple[Column, ...]:
        """Return the columns of the table, those of each metric last."""
        return (*self.columns, *(c for metric in self.metrics.values() for c in measures(metric)))

    def _looked_at(self) -> Measured:
        return self.comparison.prepared

    def summary(self) -> str:
        """Return the verdict, what was analysed, what was left out and what is assumed public."""
        found = self.comparison
        lines = [explore.verdict(found), explore.facts(found), *found.prepared.notes]
        lines += left_out(found.skipped)
        lines.append("Assumed public: " + "; ".join(found.assumed_public) + ".")
        return "\n".join(lines)

    def printed(self) -> str:
        """Return the setting, what is assumed public and the means, as the command prints them."""
        found = self.comparison
        prepared, budget, problem = found.prepared, found.budget, found.problem
        bound = f"row bound {numeral(prepared.row_bound, 4)}"
        if not prepared.domain.bounded:
            # an unbounded domain has a longest row too, and it bounds nothing
            bound = "no row-norm bound"
        person = problem.unit is Unit.PERSON
        whose = f", for a person with {rows_words(problem.together)}" if person else ""
        lines = [
            f"{prepared.name}: n {prepared.n:,}, d {prepared.d}, {prepared.domain.kind}, "
            f"{bound}; epsilon {numeral(budget.epsilon, 6)}, "
            f"delta {numeral(budget.delta, 6)}, k {problem.k}, {problem.relation}{whose}",
            *(f"note: {note}" for note in prepared.notes),
            "assumed public: " + "; ".join(found.assumed_public),
            "",
        ]
        lines.append(printed(self.all_columns(), self.results))
        hinted = [result for result in found.results if result.hint is not None]
        lines += [f"{result.mechanism.text} {result.hint}" for result in hinted]
        lines += left_out(found.skipped)
        return "\n".join(lines)

    def draws(self) -> pd.DataFrame:
        """Return a row per variant, trial and metric: `dpviz.simulation.compare.TABLE_COLUMNS`."""
        return self.comparison.table()

    def figure(self, name: str | None = None) -> Figure:
        """Draw the mechanisms side by side.

        Parameters
        ----------
        name : str, optional
            ``spectrum`` (the default): noisy eigenvalues against the true ones; ``distance``: of
            each draw's subspace from the true one; ``projection``: the 2-D picture of the first
            draw; ``published``: what may be published of it at this epsilon, axes and points
            together, where a claim holds; or a metric of `dpviz.core.metrics.METRICS`: its mean
            and the central 95 % of draws.

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        InvalidSetting
            If there is no figure of that name, or the picture needs rows that are not in memory.
        """
        name = self._named(name)
        from dpviz.report.figures import side_by_side
        from dpviz.report.figures.distance import distance_figure
        from dpviz.report.figures.theme import panels

        found = self.comparison
        shown = panels(found.results)
        prepared, problem = found.prepared, found.problem
        if name == "spectrum":
            edges = {r.mechanism.text: r.edges for r in found.results if r.edges is not None}
            thresholds = {
                r.mechanism.text: r.threshold for r in found.results if r.threshold is not None
            }
            table = spectrum_table(prepared, found.results)
            return side_by_side.spectra(table, shown, edges, thresholds)
        if name == "distance":
            d, k = problem.d, problem.k
            return distance_figure(
                distance_table(found.results),
                shown,
                farthest=farthest_distance(d, k),
                chance=chance_distance(d, k),
            )
        if name in ("projection", "published"):
            if not isinstance(prepared, Prepared):
                allowed = ", ".join(o for o in self.figures if o not in self.with_rows)
                allowed = f"one of {allowed} where the rows are not in memory"
                raise InvalidSetting("figure", allowed, name)
            if name == "published":
                return published_figure(list(pictured(found).values()), prepared)
            results = list(found.results)
            table = picture_table(prepared, results, 0, "aligned", _POINTS)
            ribbon = prepared.table.ribbon
            return side_by_side.pictures(table, shown, strip=problem.k == 1, ribbon=ribbon)
        return side_by_side.measures(measure_table(found.results, name), shown, self.metrics[name])

    def board(self) -> Board:
        """Return the board of the same table and mechanisms along epsilon; a notebook shows it.

        Raises
        ------
        InvalidSetting
            If the rows are not in memory.
        """
        from dpviz.studies.board import Board

        prepared = self.comparison.prepared
        if not isinstance(prepared, BoundedTable | PlannedTable):
            raise InvalidSetting("the table", "one whose rows are in memory", prepared.name)
        return Board(prepared, with_featured(prepared, self.comparison.settings), None)

    def paper(self, folder: str | PathLike[str]) -> list[Path]:
        """Write what a paper needs into a folder, and return the files.

        The table's measures one column wide as SVG and PDF (8 pt, no colour), ``table.tex`` with
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
        from dpviz.report.figures.theme import panels
        from dpviz.report.paper import booktabs, latex, methods, write_paper
        from dpviz.report.print import ranges

        found = self.comparison
        head, rows = typeset(self.all_columns(), self.results)
        drawn = [
            name
            for name in self.metrics
            if any(
                column.name == name for column in seen(self.all_columns(), "paper", self.results)
            )
        ]
        made = self.made
        return write_paper(
            folder,
            figures={
                name: ranges(
                    measure_table(found.results, name), panels(found.results),
                    f"{self.metrics[name].label}, mean and 95 % of draws",
                )
                for name in drawn
            },
            table=booktabs(
                head, rows,
                rf"{latex(found.prepared.name)}, $\varepsilon$ {numeral(found.budget.epsilon, 6)}, "
                rf"$k$ {found.problem.k}: means of {found.settings.trials} draws $\pm$ one "
                "standard error.",
            ),
            mechanisms=[result.mechanism for result in found.results],
            methods=methods(
                found.prepared, found.settings,
                [(result.mechanism, result.status.words) for result in found.results],
                found.assumed_public, {},
            ),
            command=None if made is None else made.command,
        )  # fmt: skip

    def estimator(self, mechanism: str | None = None, **parameters: Any) -> PrivatePCA:
        """Return an estimator that prepares rows as this comparison did, to be fitted.

        Its fit then has the recovery that the comparison has. What a comparison takes from the data
        it takes from the data, too, and warns: state ``bounds`` and a private ``center`` instead
        where the fit is to be published.

        Parameters
        ----------
        mechanism : str, optional
            A variant of the comparison; the one of the highest recovery among the claims that hold
            if not given.
        **parameters
            Of `dpviz.PrivatePCA`, in place of the comparison's.

        Raises
        ------
        InvalidSetting
            If no mechanism of that name ran, or an estimator has no such preparation: a box, or a
            quantile of the row lengths.
        """
        from dpviz.releasing.declared import PrivacyWarning
        from dpviz.releasing.private_pca import PrivatePCA

        found, settings = self.comparison, self.comparison.settings
        if found.prepared.domain.kind == "box":
            raise InvalidSetting("domain", "ball, as an estimator bounds the length of rows", "box")
        if settings.row_bound.startswith("quantile"):
            allowed = "a length, private or max: an estimator takes no quantile of the rows"
            raise InvalidSetting("row_bound", allowed, settings.row_bound)
        ran = {result.mechanism.text: result for result in found.results}
        holding = [name for name, result in ran.items() if result.status.verdict.counts]
        best = max(holding, key=lambda name: ran[name].summaries["captured_share"].mean, default="")
        chosen = best if mechanism is None else mechanism
        if chosen not in ran:
            raise InvalidSetting("mechanism", f"one of {', '.join(ran)}", chosen or "none holds")
        private = settings.private_shares
        bounds: Any = settings.bounds
        if bounds == "max":
            bounds = FROM_DATA if private else None
        row_bound: Any = settings.row_bound
        if row_bound == "max":
            row_bound = FROM_DATA
            if {"mean", "scale"} & set(private):
                # the longest row is one around the mean, which a fit does not know beforehand
                row_bound = found.prepared.row_bound
                warnings.warn(
                    "row_bound is taken from the comparison's table and is not private: state one "
                    "that was known before.",
                    PrivacyWarning,
                    stacklevel=2,
                )
        own = {
            "n_components": found.problem.k,
            "mechanism": chosen,
            "epsilon": found.budget.epsilon,
            "delta": found.budget.delta,
            "relation": settings.relation,
            "center": _AS_FITTED.get(settings.centring, settings.centring),
            "scale": _AS_FITTED.get(settings.scale, settings.scale),
            "row_bound": None if row_bound == UNDECLARED else row_bound,
            "bounds": bounds,
            "count": settings.count,
            "shares": private or None,
            # of a comparison all of the budget goes to the components
            "variance_share": 0.0,
        }
        return PrivatePCA(**(own | parameters))

    def _picture(self) -> Picture | None:
        from dpviz.report.figures.theme import panels
        from dpviz.report.print import ranges

        found = self.comparison
        if not found.results:
            return None
        # Without recovery where k = d: every subspace is then the whole space.
        metric = "recovery" if "recovery" in found.results[0].metrics else "captured_share"
        title = f"{METRICS[metric].label}, mean and 95 % of draws"
        return ranges(measure_table(found.results, metric), panels(found.results), title)


_AS_FITTED = dict.fromkeys(("mean", "standardize"), FROM_DATA)
"""An estimator's words for what a comparison takes from the data."""


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
        What to measure beside recovery, captured share and projection distance, of which the
        summary is made: names of `dpviz.core.metrics.METRICS`, and functions of one's own under
        `metric`. All of `METRICS` that apply if not said.
    progress : callable, optional
        Called with (done, total, what comes next) before each mechanism.
    on_estimate : callable, optional
        Called once with the seconds that a long run is expected to take.
    memory : callable, optional
        Called once, before anything is drawn, with about the most bytes that the run takes beside
        the table. A mechanism that would take more than is free is skipped, or refused if named.
    **options
        Fields of `dpviz.core.settings.Settings`. ``mechanisms`` is one variant such as
        ``"mvg[theorem=3]"`` or several, all that apply if not said; ``bounds`` may be a mapping of
        feature to (low, high), and ``allocation`` a mapping of feature to share.

    Returns
    -------
    Compared
        ``summary()``, ``table()``, ``draws()``, ``figure(name)`` and ``to_json()``, which writes
        the bytes of ``dpviz compare --format json``.

    Raises
    ------
    WrongArgument
        If an argument is none of these, or is given by position.
    InvalidSetting
        If an option is out of its range.
    InvalidTable
        If the table cannot be read or used.
    CannotRun
        If a mechanism that was named cannot run on this problem and budget.

    See Also
    --------
    sweep : The same along epsilon, delta, k, n or the row bound.
    least : The least epsilon for a goal.
    predict : The same without a draw.

    Notes
    -----
    Results are compared with the exact components, so nothing here is a release. Metrics and
    their units are in `dpviz.core.metrics.METRICS`; eigenvalues are in squared row bounds. Each
    mechanism's source is in its ``info.paper``.

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

    A data frame, and bounds that are public:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 44, 57, 62], "visits": [2, 0, 5, 3]})
    >>> bounds = {"age": (0, 120), "visits": (0, 50)}
    >>> stated = {"domain": "box", "bounds": bounds, "rows_a_person": 1}
    >>> found = dpviz.compare(frame, k=1, mechanisms="laplace", **stated)
    >>> found.comparison.prepared.assumed_public
    ("the number of rows n and the features' names", 'that no person has more than 1 row')
    """
    wanted = chosen(metrics) if metrics is None else chosen(FRAME_METRICS) | chosen(metrics)
    for taken in (*_FIGURES, *(column.name for column in COMPARED)):
        if taken in wanted:
            raise InvalidSetting("metrics", OWN_NAME, taken, "--metric")
    prepared, settings = ready(table, options)
    found = compare_prepared(
        prepared, settings, progress, on_estimate, memory, tuple(wanted.values())
    )
    return Compared.of(found, wanted)
