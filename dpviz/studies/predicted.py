"""The answer of `dpviz.predict`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpviz.core.number_text import percent
from dpviz.core.settings import Settings
from dpviz.metrics import METRICS
from dpviz.preparation.load import handed_on
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.phrases import budget_words
from dpviz.report.tables.comparison import MEASURE_COLUMNS
from dpviz.report.tables.predicted import Expected, expected_row, expected_spectrum
from dpviz.simulation.cells import Skipped
from dpviz.studies import Answer

if TYPE_CHECKING:
    from dpviz.report.figures.theme import (
        Figure,
    )
_PREDICTED = (
    "recovery", "captured_share", "captured_total", "projection_distance", "noise_spectral",
    "noise_frobenius", "negative_eigenvalues",
)  # fmt: skip


class Predictions(Answer):
    """What mechanisms are expected to do in one setting, without a single draw.

    Attributes
    ----------
    found : tuple of dpviz.report.tables.predicted.Expected
        Each with its prediction: overlaps, spectrum, captured shares.
    skipped : tuple of dpviz.simulation.cells.Skipped
        Mechanisms without a prediction, and why.
    prepared : Measured
    settings : Settings
    """

    figures: ClassVar[tuple[str, ...]] = ("spectrum", *_PREDICTED)

    def __init__(
        self, found: Sequence[Expected], skipped: Sequence[Skipped], prepared: Measured,
        settings: Settings,
    ) -> None:  # fmt: skip
        self.found, self.skipped = tuple(found), tuple(skipped)
        self.prepared, self.settings = prepared, settings

    def summary(self) -> str:
        """Return the expected share of each mechanism, the best first."""
        rows, settings = self.prepared, self.settings
        ranked = sorted(self.found, key=lambda item: -item.prediction.captured_share)
        at = budget_words(rows.budget(settings))
        lines = [
            f"Expected at {at}, n {rows.n:,}, d {rows.d}, k {settings.k}, without a draw, of what "
            f"{settings.k} components can explain: "
            + ", ".join(
                f"{item.mechanism.label} {percent(item.prediction.captured_share)}"
                f" ({item.status.words})"
                for item in ranked
            )
            + "."
            if ranked
            else "None of the chosen mechanisms has a prediction without draws."
        ]
        lines += [f"{item.mechanism} was left out: {item.reason}." for item in self.skipped]
        lines.append("Assumed public: " + "; ".join(rows.assumed_public) + ".")
        return "\n".join(lines)

    def table(self) -> pd.DataFrame:
        """Return one row per mechanism: status, and each metric that can be predicted."""
        rows = [expected_row(item, self.settings.k) for item in self.found]
        return pd.DataFrame(rows, columns=["mechanism", "status", *_PREDICTED])

    def data(self) -> dict[str, Any]:
        """Return settings, the rows of `table` with their spectra, and what was skipped."""
        k = self.settings.k
        return {
            "n": self.prepared.n,
            "d": self.prepared.d,
            "settings": handed_on(self.settings).to_json() | {"delta": self._delta},
            "results": [
                expected_row(item, k)
                | {
                    "overlaps": item.prediction.overlaps.tolist(),
                    "eigenvalues": item.prediction.spectrum.tolist(),
                }
                for item in self.found
            ],
            "skipped": [
                {"mechanism": item.mechanism, "reason": item.reason} for item in self.skipped
            ],
        }

    @property
    def _delta(self) -> float:
        return self.prepared.budget(self.settings).delta

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
        from dpviz.report.figures import side_by_side
        from dpviz.report.figures.theme import panels_of

        name, rows, settings = self._named(name), self.prepared, self.settings
        mechanisms = [item.mechanism for item in self.found]
        shown = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
        if name == "spectrum":
            edges = {i.mechanism.text: i.edges for i in self.found if i.edges is not None}
            thresholds = {
                i.mechanism.text: i.threshold for i in self.found if i.threshold is not None
            }
            table = expected_spectrum(rows, self.found)
            return side_by_side.spectra(table, shown, edges, thresholds)
        values = self.table()[["mechanism", name]].dropna()
        drawn = [(key, value, value, value) for key, value in values.itertuples(index=False)]
        table = pd.DataFrame(drawn, columns=list(MEASURE_COLUMNS))
        return side_by_side.measures(table, shown, METRICS[name])

    def _picture(self) -> str:
        from dpviz.report.figures.small import ranges_image
        from dpviz.report.figures.theme import panels_of

        rows, settings = self.prepared, self.settings
        mechanisms = [item.mechanism for item in self.found]
        if not mechanisms:
            return ""
        known = {item.mechanism.text: expected_row(item, settings.k) for item in self.found}
        points = [
            (key, *[row.get("recovery", row["captured_share"])] * 3) for key, row in known.items()
        ]
        table = pd.DataFrame(points, columns=["mechanism", "mean", "low", "high"])
        shown = panels_of(mechanisms, rows.problem(settings), rows.budget(settings))
        return ranges_image(table, shown, "recovery, predicted without a draw")
