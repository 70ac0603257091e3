"""Chanyaswad et al. 2018, Table 3: regression on noisy rows of Liver."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpviz.core.allocation import UNIFORM, Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget
from dpviz.core.seeding import generator
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg._liver import (
    BINARY,
    CLIPPED,
    DATA,
    FIXED,
    GAUSSIAN,
    GIVEN,
    LAPLACE,
    MAX_PNR,
    MVG,
    MVG_TIGHT,
    NON_PRIVATE,
    PRIVATE,
    RANDOM,
    REPORTED,
    RIGHT,
    RMSE,
    SCALED_RMSE,
    TEST,
    TEXTBOOK_ROW,
    TUNED,
    Liver,
    by_trial,
    learned,
    measured_row,
    noise_facts,
)
from dpviz.papers.mvg._shared import EPSILON, EXACT, TAUS, TEXTBOOK, Row

DIRECTIONS_SHARE = 0.2
SULQ = Allocation("max-pnr", "private", share=DIRECTIONS_SHARE, supplier="sulq")
BOUGHT = Allocation("max-pnr", "private", share=DIRECTIONS_SHARE)
TRUE = Allocation("max-pnr", "true")

ROWS = (
    Row(BINARY, MVG),
    Row(MAX_PNR, MVG, allocation=SULQ),
    Row("MVG, max-PNR, directions by exact Gaussian noise", MVG, allocation=BOUGHT),
    Row("MVG, binary, tight tail", MVG_TIGHT),
    Row("MVG shape, binary, exact account", MVG, EXACT),
    Row("MVG shape, max-PNR, exact account", MVG, EXACT, SULQ),
    Row(TEXTBOOK_ROW, GAUSSIAN, TEXTBOOK),
    Row("Gaussian, exact", GAUSSIAN),
    Row("Laplace", LAPLACE),
)
ORACLE = Row("MVG, max-PNR, true directions (not private)", MVG, allocation=TRUE)
CONSTANT = "Constant 0 (the public centre)"
NOISE = "i.i.d. noise of a given std on every cell"
NOISE_RMSE = "RMSE over i.i.d. noise"

TRIALS = 1_000
_MORE = {TEXTBOOK_ROW: 10, "Laplace": 10, CONSTANT: 10}
"""Factors on the number of trials; some rows learn wild predictions and are compared with 0."""
LAPLACE_ROW, STATEMENTS = "Laplace", "statements"

EQUAL = len(RIGHT) / 6
"""At this tau the two favoured features of six get the same share as the others."""
PANEL, RATIO = "Liver", "RMSE over the non-private one (no unit)"
STDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class LiverPart(Part):
    """One kind of noise at one tau, or a baseline that needs only its name.

    Attributes
    ----------
    row : str
    x : float or None
        Value of tau, the std of `NOISE`, or None.
    trials : int
    learner : str
        Learner: `GIVEN`, `FIXED` or `TUNED`.
    """

    row: str = ""
    x: float | None = None
    trials: int = 0
    learner: str = GIVEN


class MvgTable3(Experiment):
    """RMSE on clean patients after training on patients with noise; see `info`."""

    pictures: ClassVar = {
        "tau": (RMSE, *(row.name for row in ROWS if row.tried)),
        "noise": (NOISE_RMSE, NOISE),
    }

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each learner, kind of noise and tau."""
        quick = effort is Effort.QUICK
        places: list[tuple[str, float | None]] = [(NON_PRIVATE, None)]
        for row in ROWS:
            places += [(row.name, x) for x in ((EQUAL, *TAUS) if row.tried else (None,))]
        places += [(NOISE, std) for std in STDS]
        guesses: list[tuple[str, float | None]] = [(RANDOM, None), (CONSTANT, None)]
        trials = 30 if quick else TRIALS  # The paper uses 100 trials.
        parts: list[Part] = [
            LiverPart(DATA, name, x, _trials(name, trials, quick), GIVEN)
            for name, x in (*guesses, *places)
        ]
        other = FIXED if quick else TUNED
        parts += [LiverPart(DATA, name, x, 15 if quick else 100, other) for name, x in places]
        return [*parts, LiverPart(DATA, ORACLE.name, None, 15 if quick else 100)]

    def shared(self, data: str) -> Liver:
        """Return the patients of Liver."""
        return Liver.load()

    def run(self, part: LiverPart, shared: Liver, seed: int) -> Measurements:
        """Return the errors with one kind of noise, and the noise's size and privacy loss."""
        rows = {row.name: row for row in ROWS}
        if part.row in rows:
            values = measured_row(
                shared, rows[part.row], part.x, seed, part.trials, learner=part.learner
            )
            if part.learner != GIVEN:  # The noise is the same for both learners, so report it once.
                values = {name: values[name] for name in (SCALED_RMSE, CLIPPED)}
        elif part.row == ORACLE.name:
            values = _oracle(shared, seed, part.trials)
        elif part.row in (RANDOM, CONSTANT):
            values = {RMSE: _guessed(shared, part.row == RANDOM, seed, range(part.trials))}
        else:
            values = _learned(shared, part, seed)
            if part.row == NOISE:
                noisy, curve = (
                    (RMSE, NOISE_RMSE)
                    if part.learner == GIVEN
                    else (SCALED_RMSE, f"{NOISE_RMSE}, learner on scaled values")
                )
                values = {curve: values[noisy]}
        return Measurements(
            {Point(PANEL, part.row, quantity, part.x): array for quantity, array in values.items()}
        )


def _trials(name: str, trials: int, quick: bool) -> int:
    """Return a row's number of trials; rows that the paper lacks use its 100."""
    if name not in REPORTED and name not in _MORE:
        return min(trials, 100)
    return trials if quick else trials * _MORE.get(name, 1)


def _learned(liver: Liver, part: LiverPart, seed: int) -> dict[str, FloatArray]:
    """Return the errors after training on rows with i.i.d. Gaussian noise, or with no noise."""
    found = []
    for trial in range(part.trials):
        private, test = liver.split(seed, trial)
        noise = generator(seed, "reproduce", DATA, "noise", trial).standard_normal(private.shape)
        noisy = private + (part.x or 0.0) * noise
        found.append(learned(noisy, test, seed, trial, learner=part.learner))
    return by_trial(found)


def _guessed(liver: Liver, random: bool, seed: int, trials: range) -> FloatArray:
    """Return the errors of uniform random guesses, or of the constant 0."""
    found = []
    for trial in trials:
        true = liver.split(seed, trial)[1][:, -1]
        rng = generator(seed, "reproduce", DATA, "guess", trial)
        guess = rng.uniform(-1.0, 1.0, TEST) if random else np.zeros(TEST)
        found.append(np.sqrt(np.mean((guess - true) ** 2)))
    return np.array(found)


def _oracle(liver: Liver, seed: int, trials: int) -> dict[str, FloatArray]:
    """Return the power-to-noise ratio of Theorem 7's allocation for the true directions."""
    problem, budget = liver.problem(ORACLE.allocation or UNIFORM), Budget(EPSILON, 1 / PRIVATE)
    calibration = ORACLE.mechanism.calibrate(problem, budget)
    return noise_facts(liver, ORACLE.mechanism, calibration, seed, trials)
