"""Chanyaswad et al. 2018, section 10.2: directional noise compared with dropping features."""

from __future__ import annotations

from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg._liver import (
    BINARY,
    DATA,
    FIXED,
    GAUSSIAN,
    GIVEN,
    MVG,
    NON_PRIVATE,
    RIGHT,
    ROUNDING,
    SCALED_RMSE,
    TEXTBOOK_ROW,
    TUNED,
    Liver,
    by_trial,
    learned,
    measured_row,
)
from dpviz.papers.mvg._liver import REPORTED as TABLE_3
from dpviz.papers.mvg._shared import EXACT, TAUS, TEXTBOOK, Row
from dpviz.papers.said import Stated

ALL, TWO = "all six features", "ALT and Y alone"
MVG_EXACT, EXACT_ROW = "MVG shape, binary, exact account", "Gaussian, exact"
ROWS = {
    ALL: (
        Row(BINARY, MVG),
        Row(MVG_EXACT, MVG, EXACT),
        Row(TEXTBOOK_ROW, GAUSSIAN, TEXTBOOK),
        Row(EXACT_ROW, GAUSSIAN),
    ),
    TWO: (
        Row(TEXTBOOK_ROW, GAUSSIAN, TEXTBOOK),
        Row(EXACT_ROW, GAUSSIAN),
    ),
}

REPORTED = {
    (ALL, BINARY): TABLE_3[BINARY],
    (ALL, TEXTBOOK_ROW): TABLE_3[TEXTBOOK_ROW],
    (TWO, TEXTBOOK_ROW): Stated(0.02538, 0.00065, ROUNDING),
}
TRIALS = 1_000


class SectionPart(Part):
    """One kind of noise on some of the features, or no noise."""

    panel: str = ""
    row: str = ""
    tau: float | None = None
    trials: int = 0
    learner: str = GIVEN


class MvgSection10(Experiment):
    """RMSE if all other features are dropped; see `info`."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each learner, noise, choice of features and tau."""
        quick = effort is Effort.QUICK
        found: list[Part] = []
        for learner, trials in (  # The paper uses 100 trials, as for Table 3.
            (GIVEN, 30 if quick else TRIALS),
            (FIXED if quick else TUNED, 15 if quick else 100),
        ):
            for panel, rows in ROWS.items():
                found.append(SectionPart(DATA, panel, NON_PRIVATE, None, trials, learner))
                for row in rows:
                    for tau in TAUS if row.tried else (None,):
                        found.append(SectionPart(DATA, panel, row.name, tau, trials, learner))
        return found

    def shared(self, data: str) -> Liver:
        """Return the patients of Liver."""
        return Liver.load()

    def run(self, part: SectionPart, shared: Liver, seed: int) -> Measurements:
        """Return the errors with one kind of noise."""
        liver = shared if part.panel == ALL else shared.only(RIGHT)
        if part.row == NON_PRIVATE:
            values = by_trial(
                [
                    learned(*liver.split(seed, trial), seed, trial, learner=part.learner)
                    for trial in range(part.trials)
                ]
            )
        else:
            (row,) = (row for row in ROWS[part.panel] if row.name == part.row)
            values = measured_row(liver, row, part.tau, seed, part.trials, learner=part.learner)
            if part.learner != GIVEN:  # The noise is the same for both learners, so report it once.
                values = {SCALED_RMSE: values[SCALED_RMSE]}
        return Measurements(
            {
                Point(part.panel, part.row, quantity, part.tau): array
                for quantity, array in values.items()
            }
        )
