"""The question `predict`: analytical predictions, without simulation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, Unpack

import pandas as pd

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import METRICS
from dpviz.core.number_text import percent
from dpviz.core.params import Declared, number, text
from dpviz.core.quantity import Kind
from dpviz.core.settings import Settings
from dpviz.preparation.load import PREFIX, plan_of, planned, whole_people
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.phrases import budget_words, left_out
from dpviz.report.tables.comparison import MEASURE_COLUMNS, SPECTRUM_COLUMNS
from dpviz.simulation.cells import Skipped, variants_of
from dpviz.simulation.expectation import Expectation, expect
from dpviz.studies import Answer
from dpviz.studies.columns import ABSENT, ASIDE, SKIPPED, Column, Number
from dpviz.studies.options import Options, asks, ready

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from dpviz.report.figures.theme import Figure


@dataclass(frozen=True)
class PlanOptions(Declared):
    """A plan instead of a table, or another number of people."""

    n: float | None = number(
        None, 2, 1e15, label="People", optional=True,
        help="Number of people, for a spectrum or to replace the table's number."
    )  # fmt: skip
    spectrum: str | None = text(
        None, label="Spectrum", optional=True,
        help="Eigenvalues to use instead of a table, in units of the squared row-norm bound. Give "
        "a file with one eigenvalue a line, or a text such as power:d=50,exponent=1.5,total=0.5.",
    )  # fmt: skip


_PREDICTED = (
    "recovery", "captured_share", "captured_total", "projection_distance", "noise_spectral",
    "noise_frobenius", "negative_eigenvalues",
)  # fmt: skip


def _metric(name: str, row: Expectation) -> Any:
    number = row.metric(name)
    return ABSENT if number is None else number


PREDICTED = (
    Column("mechanism", of=lambda row: row.mechanism, type=str),
    Column("status", "Claim", lambda row: row.account.status, type=str),
    *(
        Column(name, METRICS[name].label, partial(_metric, name), help=METRICS[name].help,
               type=NotRequired[Number], kind=Kind.PREDICTION)
        for name in _PREDICTED
    ),
    Column("kind", of=lambda row: Kind.PREDICTION, type=Literal["prediction"],
           show=frozenset({"json"})),
    Column("overlaps", of=lambda row: row.prediction.overlaps, show=frozenset({"json"}),
           type=Annotated[FloatArray, list[float]],
           help="Overlaps with the true components."),
    Column("eigenvalues", of=lambda row: row.prediction.spectrum, show=frozenset({"json"}),
           type=Annotated[FloatArray, list[float]]),
)  # fmt: skip
"""Return the columns of a mechanism: its expected metrics, and its spectrum."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Answer):
    """Predicted results of mechanisms in one setting, without simulation.

    Attributes
    ----------
    skipped : tuple of dpviz.simulation.cells.Skipped
        Mechanisms without a prediction, with reasons.
    prepared : Measured
    """

    figures: ClassVar[tuple[str, ...]] = ("spectrum", *_PREDICTED)
    columns: ClassVar[tuple[Column, ...]] = PREDICTED

    n: int
    d: int
    settings: Settings
    results: tuple[Expectation, ...]
    skipped: Annotated[tuple[Skipped, ...], SKIPPED]
    prepared: Annotated[Measured, ASIDE]

    def printed(self) -> str:
        """Return the summary of the predictions as text."""
        return self.summary()

    def summary(self) -> str:
        """Return the expected share of each mechanism, the highest first."""
        rows, settings = self.prepared, self.settings
        results = sorted(self.results, key=lambda item: -item.prediction.captured_share)
        at = budget_words(rows.budget(settings))
        lines = [
            f"Predicted analytically at {at}, n {rows.n:,}, d {rows.d}, k {settings.k}: share kept "
            f"of the variance that {settings.k} components can explain: "
            + ", ".join(
                f"{item.mechanism.label} {percent(item.prediction.captured_share)}"
                f" ({item.account.status.words})"
                for item in results
            )
            + "."
            if results
            else "No chosen mechanism has an analytical prediction."
        ]
        lines += left_out(self.skipped)
        lines.append("Assumed public: " + "; ".join(rows.assumed_public) + ".")
        return "\n".join(lines)

    def figure(self, name: str | None = None) -> Figure:
        """Plot the expected noisy spectra, or one expected metric.

        Parameters
        ----------
        name : str, optional
            ``spectrum`` (the default) or a metric that dpviz can predict.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        name = self._figure_name(name)
        from dpviz.report.figures import side_by_side
        from dpviz.report.figures.theme import panels_of

        rows, settings = self.prepared, self.settings
        mechanisms = [item.mechanism for item in self.results]
        variants = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
        if name == "spectrum":
            accounts = {item.mechanism.text: item.account for item in self.results}
            edges = {key: one.edges for key, one in accounts.items() if one.edges is not None}
            thresholds = {
                key: one.threshold for key, one in accounts.items() if one.threshold is not None
            }
            table = expected_spectrum(rows, self.results)
            return side_by_side.spectra(table, variants, edges, thresholds)
        # For some noise distributions, some metrics cannot be predicted.
        values = self.table()[["mechanism", name]].dropna()
        # Nothing was simulated, so draw each interval with width zero.
        points = [(key, value, value, value) for key, value in values.itertuples(index=False)]
        table = pd.DataFrame(points, columns=list(MEASURE_COLUMNS))
        return side_by_side.measures(table, variants, METRICS[name])

    def _picture(self) -> Picture | None:
        from dpviz.report.figures.theme import panels_of
        from dpviz.report.print import ranges

        rows, settings = self.prepared, self.settings
        mechanisms = [item.mechanism for item in self.results]
        if not mechanisms:
            return None
        # If k = d, recovery is undefined, so predict only the captured share.
        by_key = self.table().set_index("mechanism")
        name = "recovery" if "recovery" in by_key else "captured_share"
        points = [(key, *[value] * 3) for key, value in by_key[name].items()]
        table = pd.DataFrame(points, columns=["mechanism", "mean", "low", "high"])
        variants = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
        return ranges(table, variants, "recovery, predicted analytically")


@asks("predict analytically how much structure mechanisms keep", PlanOptions, Settings)
def predict(
    table: Any = None,
    *,
    n: float | None = None,
    spectrum: str | PathLike[str] | Sequence[float] | FloatArray | None = None,
    **options: Unpack[Options],
) -> Predictions:
    """Predict the results of mechanisms analytically, without simulation.

    Parameters
    ----------
    table : optional
        A table as in `compare`; or omitted, with ``n`` and ``spectrum`` instead.
    n : int, optional
        Number of people, from 2 to 1e15. With a table: the same population with this many people.
    spectrum : str, path or sequence of float, optional
        Eigenvalues of A = X'X/n in squared row-norm bounds, with a sum above 0 and at most 1: the
        numbers, a file with one a line, or a text of `dpviz.preparation.load.spectrum_of` such as
        ``power:d=50,exponent=1.5,total=0.5``.
    **options
        Options as in `compare`; ``trials`` and ``seed`` are not used.

    Returns
    -------
    Predictions
        Expected shares, distances, noise and spectra of the mechanisms whose noise has a limiting
        distribution; other mechanisms are in ``skipped`` with the reason.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        For the reasons listed in `compare`, and unless exactly one of table and spectrum is given.

    See Also
    --------
    compare : The same with draws.

    Notes
    -----
    Free additive convolution (Biane 1997) of the spectrum with the limiting distribution of the
    noise; exact as d grows. docs/prediction.md lists the error at small d.

    Examples
    --------
    >>> import dpviz
    >>> spectrum = "power:d=50,exponent=1.5,total=0.5"
    >>> found = dpviz.predict(n=100_000, spectrum=spectrum, epsilon=1, mechanisms="gaussian")
    >>> found.table()["captured_share"].round(2).tolist()
    [1.0]
    >>> len(found.data()["results"][0]["eigenvalues"])
    50
    """
    if (table is None) == (spectrum is None):
        count = "none" if table is None else "both"
        raise InvalidSetting("table", "given, or both n and spectrum in its place", count)
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, float))):
        raise InvalidSetting("n", "a whole number from 2 to 1e15", n)
    if table is None:
        if n is None:
            raise InvalidSetting("n", "given whenever a spectrum is given", "none")
        # Read a text or a path as part of a plan. Numbers create the plan directly.
        if isinstance(spectrum, (str, PathLike)):
            table = plan_of(f"{PREFIX}n={n},spectrum={spectrum}")
        else:
            table = planned(numbers_of(spectrum), whole_people(str(n)))
        # The plan already has n people, so the code below must not change the number again.
        n = None
    prepared, settings = ready(table, options)
    measured = prepared if n is None else prepared.with_n(whole_people(str(n)), settings.seed)
    expectations = [expect(measured, settings, mechanism) for mechanism in variants_of(settings)]
    values = replace(settings, delta=measured.budget(settings).delta)
    return Predictions(
        measured.n, measured.d, values,
        tuple(one for one in expectations if isinstance(one, Expectation)),
        tuple(one for one in expectations if isinstance(one, Skipped)), measured,
    )  # fmt: skip


def expected_spectrum(measured: Measured, expectations: Iterable[Expectation]) -> pd.DataFrame:
    """Return the expected noisy eigenvalues and the true eigenvalues.

    Returns
    -------
    DataFrame
        Columns `dpviz.report.tables.comparison.SPECTRUM_COLUMNS`; median, low and high are equal.
    """
    true = measured.reference.eigenvalues
    parts = [
        pd.DataFrame(
            {
                "mechanism": item.mechanism.text,
                "component": range(1, len(true) + 1),
                "true": true,
                # A prediction has no interval, but it needs the columns of simulations.
                "median": item.prediction.spectrum,
                "low": item.prediction.spectrum,
                "high": item.prediction.spectrum,
                "released": True,
            },
            columns=list(SPECTRUM_COLUMNS),
        )
        for item in expectations
    ]
    empty = pd.DataFrame(columns=list(SPECTRUM_COLUMNS))
    return pd.concat(parts, ignore_index=True) if parts else empty


def numbers_of(spectrum: Any) -> list[float]:
    """Return eigenvalues as a list of numbers."""
    try:
        return [float(value) for value in spectrum]
    except (TypeError, ValueError):
        rule = "a text, a path or a sequence of numbers"
        raise InvalidSetting("spectrum", rule, type(spectrum).__name__) from None
