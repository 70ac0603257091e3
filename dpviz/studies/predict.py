"""The question `predict`: what is expected, without a draw."""

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
    """A plan in the place of a table, or another number of people."""

    n: float | None = number(
        None, 2, 1e15, label="People", optional=True,
        help="Beside a spectrum, or in the place of the table's: the same population.",
    )  # fmt: skip
    spectrum: str | None = text(
        None, label="Spectrum", optional=True,
        help="Eigenvalues in squared row-norm bounds, instead of a table. A file with one "
        "eigenvalue a line, or a text such as power:d=50,exponent=1.5,total=0.5.",
    )  # fmt: skip


_PREDICTED = (
    "recovery", "captured_share", "captured_total", "projection_distance", "noise_spectral",
    "noise_frobenius", "negative_eigenvalues",
)  # fmt: skip


def _metric(name: str, row: Expectation) -> Any:
    found = row.metric(name)
    return ABSENT if found is None else found


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
           type=Annotated[FloatArray, list[float]], help="With the true directions."),
    Column("eigenvalues", of=lambda row: row.prediction.spectrum, show=frozenset({"json"}),
           type=Annotated[FloatArray, list[float]]),
)  # fmt: skip
"""Of a mechanism: its expected metrics, and its spectrum."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Answer):
    """What mechanisms are expected to do in one setting, without a single draw.

    Attributes
    ----------
    skipped : tuple of dpviz.simulation.cells.Skipped
        Mechanisms without a prediction, and why.
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
        """Return the summary."""
        return self.summary()

    def summary(self) -> str:
        """Return the expected share of each mechanism, the best first."""
        rows, settings = self.prepared, self.settings
        ranked = sorted(self.results, key=lambda item: -item.prediction.captured_share)
        at = budget_words(rows.budget(settings))
        lines = [
            f"Expected at {at}, n {rows.n:,}, d {rows.d}, k {settings.k}, without a draw, of what "
            f"{settings.k} components can explain: "
            + ", ".join(
                f"{item.mechanism.label} {percent(item.prediction.captured_share)}"
                f" ({item.account.status.words})"
                for item in ranked
            )
            + "."
            if ranked
            else "None of the chosen mechanisms has a prediction without draws."
        ]
        lines += left_out(self.skipped)
        lines.append("Assumed public: " + "; ".join(rows.assumed_public) + ".")
        return "\n".join(lines)

    def figure(self, name: str | None = None) -> Figure:
        """Draw the expected noisy spectra, or one expected metric.

        Parameters
        ----------
        name : str, optional
            ``spectrum`` (the default) or a metric that can be predicted.

        Returns
        -------
        plotly.graph_objects.Figure
        """
        name = self._named(name)
        from dpviz.report.figures import side_by_side
        from dpviz.report.figures.theme import panels_of

        rows, settings = self.prepared, self.settings
        mechanisms = [item.mechanism for item in self.results]
        shown = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
        if name == "spectrum":
            accounts = {item.mechanism.text: item.account for item in self.results}
            edges = {key: one.edges for key, one in accounts.items() if one.edges is not None}
            thresholds = {
                key: one.threshold for key, one in accounts.items() if one.threshold is not None
            }
            table = expected_spectrum(rows, self.results)
            return side_by_side.spectra(table, shown, edges, thresholds)
        # not every mechanism's law says every metric
        values = self.table()[["mechanism", name]].dropna()
        # a figure of ranges, here without any width: nothing was drawn
        drawn = [(key, value, value, value) for key, value in values.itertuples(index=False)]
        table = pd.DataFrame(drawn, columns=list(MEASURE_COLUMNS))
        return side_by_side.measures(table, shown, METRICS[name])

    def _picture(self) -> Picture | None:
        from dpviz.report.figures.theme import panels_of
        from dpviz.report.print import ranges

        rows, settings = self.prepared, self.settings
        mechanisms = [item.mechanism for item in self.results]
        if not mechanisms:
            return None
        # where k = d any space is the whole one, and only the captured share is predicted
        known = self.table().set_index("mechanism")
        name = "recovery" if "recovery" in known else "captured_share"
        points = [(key, *[value] * 3) for key, value in known[name].items()]
        table = pd.DataFrame(points, columns=["mechanism", "mean", "low", "high"])
        shown = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
        return ranges(table, shown, "recovery, predicted analytically")


@asks("what mechanisms are expected to do, predicted analytically", PlanOptions, Settings)
def predict(
    table: Any = None,
    *,
    n: float | None = None,
    spectrum: str | PathLike[str] | Sequence[float] | FloatArray | None = None,
    **options: Unpack[Options],
) -> Predictions:
    """Say what mechanisms are expected to do, without a single draw.

    Parameters
    ----------
    table : optional
        As in `compare`; or nothing, and ``n`` and ``spectrum`` in its place.
    n : int, optional
        People, from 2 to 1e15. Beside a table: the same population with that many people.
    spectrum : str, path or sequence of float, optional
        Eigenvalues of A = X'X/n in squared row bounds, of sum above 0 and at most 1: the numbers, a
        file with one a line, or a text of `dpviz.preparation.load.spectrum_of` such as
        ``power:d=50,exponent=1.5,total=0.5``.
    **options
        As in `compare`; ``trials`` and ``seed`` are not used.

    Returns
    -------
    Predictions
        Expected shares, distances, noise and spectra of the mechanisms whose noise has a limiting
        law; the others are in ``skipped`` with the reason.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        As in `compare`, and where neither or both of table and spectrum are given.

    See Also
    --------
    compare : The same with draws.

    Notes
    -----
    Free additive convolution (Biane 1997) of the spectrum with the noise's limiting law; exact as d
    grows. The error at small d is listed in docs/prediction.md.

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
        given = "none" if table is None else "both"
        raise InvalidSetting("table", "given, or n and spectrum in its place", given)
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, float))):
        raise InvalidSetting("n", "a whole number from 2 to 1e15", n)
    if table is None:
        if n is None:
            raise InvalidSetting("n", "given beside a spectrum", "none")
        # a name or a file is read as a plan's text; numbers make the plan at once
        if isinstance(spectrum, (str, PathLike)):
            table = plan_of(f"{PREFIX}n={n},spectrum={spectrum}")
        else:
            table = planned(numbers_of(spectrum), whole_people(str(n)))
        # the plan has its people already: they are not to be changed once more below
        n = None
    prepared, settings = ready(table, options)
    measured = prepared if n is None else prepared.with_n(whole_people(str(n)), settings.seed)
    found = [expect(measured, settings, mechanism) for mechanism in variants_of(settings)]
    told = replace(settings, delta=measured.budget(settings).delta)
    return Predictions(
        measured.n, measured.d, told,
        tuple(one for one in found if isinstance(one, Expectation)),
        tuple(one for one in found if isinstance(one, Skipped)), measured,
    )  # fmt: skip


def expected_spectrum(measured: Measured, found: Iterable[Expectation]) -> pd.DataFrame:
    """Return the expected noisy eigenvalues beside the true ones.

    Returns
    -------
    DataFrame
        Columns `dpviz.report.tables.comparison.SPECTRUM_COLUMNS`; median, low and high are one
        number.
    """
    true = measured.reference.eigenvalues
    parts = [
        pd.DataFrame(
            {
                "mechanism": item.mechanism.text,
                "component": range(1, len(true) + 1),
                "true": true,
                # an expectation has no range: the columns are those of what is drawn
                "median": item.prediction.spectrum,
                "low": item.prediction.spectrum,
                "high": item.prediction.spectrum,
                "released": True,
            },
            columns=list(SPECTRUM_COLUMNS),
        )
        for item in found
    ]
    empty = pd.DataFrame(columns=list(SPECTRUM_COLUMNS))
    return pd.concat(parts, ignore_index=True) if parts else empty


def numbers_of(spectrum: Any) -> list[float]:
    """Return eigenvalues as a list of numbers."""
    try:
        return [float(value) for value in spectrum]
    except (TypeError, ValueError):
        allowed = "a text, a path or a sequence of numbers"
        raise InvalidSetting("spectrum", allowed, type(spectrum).__name__) from None
