"""The question `compare`: mechanisms side by side in one setting."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import pandas as pd

from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics import METRICS, chance_distance, farthest_distance
from dpviz.core.number_text import numeral, parseable
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import BoundedTable, Prepared
from dpviz.preparation.load import PlannedTable
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences import explore
from dpviz.report.sentences.phrases import left_out, text_table
from dpviz.report.tables.comparison import distance_table, measure_table, spectrum_table
from dpviz.report.tables.frame import pictured
from dpviz.report.tables.projection import picture_table
from dpviz.simulation.compare import Comparison
from dpviz.simulation.compare import compare as compare_prepared
from dpviz.simulation.defaults import with_featured
from dpviz.simulation.simulate import Cell
from dpviz.studies import Answer
from dpviz.studies.options import Options, asks, ready
from dpviz.studies.published import published_figure

if TYPE_CHECKING:
    from dpviz.report.figures.theme import Figure
    from dpviz.studies.board import Board


_SHOWN = ("mechanism", "status", "spent_epsilon")
# of a picture: more would hide each other
_POINTS = 300
_IN_PAPERS = ("recovery", "captured_share", "projection_distance")


class Compared(Answer):
    """Mechanisms side by side in one setting.

    Attributes
    ----------
    comparison : dpviz.simulation.compare.Comparison
        Every draw: metrics, eigenvalues, components.
    """

    figures: ClassVar[tuple[str, ...]] = (
        "spectrum", "distance", "projection", "published", *METRICS
    )  # fmt: skip
    with_rows: ClassVar[tuple[str, ...]] = ("projection", "published")

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

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
            bound = "no row bound"
        lines = [
            f"{prepared.name}: n {prepared.n:,}, d {prepared.d}, {prepared.domain.kind}, "
            f"{bound}; epsilon {numeral(budget.epsilon, 6)}, "
            f"delta {numeral(budget.delta, 6)}, k {problem.k}, {problem.relation}",
            *(f"note: {note}" for note in prepared.notes),
            "assumed public: " + "; ".join(found.assumed_public),
            "",
        ]
        # a metric that no mechanism here has would be a column of dashes
        names = [name for name in METRICS if any(name in r.metrics for r in found.results)]
        rows = []
        for result in found.results:
            means = result.summaries
            spent = numeral(result.spent.epsilon, 3) if result.spent else "-"
            cells = [numeral(means[name].mean, 4) if name in means else "-" for name in names]
            rows.append([result.mechanism.text, str(result.status.verdict), spent, *cells])
        lines.append(text_table(["mechanism", "status", "spent_epsilon", *names], rows))
        hinted = [result for result in found.results if result.hint is not None]
        lines += [f"{result.mechanism.text} {result.hint}" for result in hinted]
        lines += left_out(found.skipped)
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return one row per variant: status, account, and each metric's mean and range.

        Columns that end in ``_low`` and ``_high`` hold the central 95 % of the draws.
        """
        return self.comparison.summary_table()

    def draws(self) -> pd.DataFrame:
        """Return a row per variant, trial and metric: `dpviz.simulation.compare.TABLE_COLUMNS`."""
        return self.comparison.table()

    def data(self) -> dict[str, Any]:
        """Return the object that ``dpviz compare --format json`` prints.

        Behind a private preparation each result has the account of the whole chain too.
        """
        found = self.comparison.to_json()
        for cell, result in zip(self.comparison.plan.cells, found["results"], strict=True):
            if cell.private is not None:
                result["account"] = _account(cell)
        return found

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
                return published_figure(list(pictured(found, prepared).values()), prepared)
            results = list(found.results)
            table = picture_table(prepared, results, 0, "aligned", _POINTS)
            ribbon = prepared.table.ribbon
            return side_by_side.pictures(table, shown, strip=problem.k == 1, ribbon=ribbon)
        return side_by_side.measures(measure_table(found.results, name), shown, METRICS[name])

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
        from dpviz.report.figures.drawing import COLUMN, ranges_picture
        from dpviz.report.figures.theme import panels
        from dpviz.report.paper import booktabs, cited, latex, methods, with_error, write_paper

        found = self.comparison
        # a table in print has no dashes: a measure that one of them lacks is left out
        names = [name for name in _IN_PAPERS if all(name in r.metrics for r in found.results)]
        rows = [
            [
                cited(result.mechanism),
                latex(result.status.words),
                f"${parseable(result.spent.epsilon, 3)}$" if result.spent else "--",
                *(with_error(result.summaries[name].mean, result.summaries[name].se)
                  for name in names),
            ]
            for result in found.results
        ]  # fmt: skip
        header = ["Mechanism", "Claim", r"Spent $\varepsilon$"]
        made = self.made
        return write_paper(
            folder,
            figures={
                name: ranges_picture(
                    measure_table(found.results, name), panels(found.results),
                    f"{METRICS[name].label}, mean and 95 % of draws", look=COLUMN,
                )
                for name in names
            },
            table=booktabs(
                [*header, *(latex(METRICS[name].label) for name in names)], rows,
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

    def _shown(self) -> pd.DataFrame:
        table = self.table()
        means = [name for name in METRICS if name in table]
        return table[[name for name in (*_SHOWN, *means) if name in table]]

    def _picture(self) -> str:
        from dpviz.report.figures.drawing import ranges_picture
        from dpviz.report.figures.theme import panels

        found = self.comparison
        if not found.results:
            return ""
        # Without recovery where k = d: every subspace is then the whole space.
        metric = "recovery" if "recovery" in found.results[0].metrics else "captured_share"
        title = f"{METRICS[metric].label}: mean and the central 95 % of the draws"
        return ranges_picture(
            measure_table(found.results, metric), panels(found.results), title
        ).image()


def _account(cell: Cell) -> dict[str, Any] | None:
    """Return the account of a whole chain, or None where no epsilon describes it."""
    from dpviz.auditing.account import account_view

    # a release that no epsilon describes, such as one without noise, has no account
    try:
        view = account_view(cell.mechanism, cell.problem, cell.budget, private=cell.private)
    except CannotRun:
        return None
    return view.to_json()


@asks("run mechanisms side by side on one table", Settings)
def compare(
    table: Any = "digits",
    *,
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
    prepared, settings = ready(table, options)
    return Compared(compare_prepared(prepared, settings, progress, on_estimate, memory))
