"""Chanyaswad et al. 2018, Tables 3 and 5 and section 10.2: several readings of the JL transform.

The paper names Upadhyay's sketch but not its size, so r takes each size that the paper's text
allows. The rows of a sketch are independent samples from N(0, (X'X + w^2 I)/r), with w^2 of
`dpviz.mechanisms.jl_transform`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Problem
from dpviz.core.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms.jl_transform import JlTransform, published_lift
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.mvg import _ctg, _liver
from dpviz.papers.mvg._ctg import CENTRED, RSS, Ctg, descending, random_frames, random_orders
from dpviz.papers.mvg._liver import (
    GIVEN,
    RIGHT,
    RMSE,
    ROUNDING,
    Liver,
    by_trial,
    learned,
    measured_row,
)
from dpviz.papers.mvg._shared import EPSILON, TAUS, Row, favouring
from dpviz.papers.said import Stated

SKETCH, MVG, CONSTANT = "JL transform", "MVG", "Constant 0"
NON_PRIVATE, RANDOM, BASIS = "Non-private", "Random guess", "Random basis"
LIVER, TWO, CTG = "Liver", "ALT and Y", "CTG"
SIZES = ("d", "2d", "8 ln(40)/.25", "n")
"""Rows of the sketch: d = k and 2d (all components kept), Blocki's rule, and one per record."""

PRINTED = {
    LIVER: Stated(0.01682, 0.00015, ROUNDING),
    TWO: Stated(0.02863, 0.00022, ROUNDING),
    CTG: Stated(0.06718, 0.00229, ROUNDING),
}
"""Printed values as plain numbers instead of hundredths."""


def panel_of(table: str, size: str) -> str:
    """Return the panel of a table with one sketch size."""
    return f"{table}, r = {size}"


def panels_of(table: str) -> list[str]:
    """Return the panels of a table with all sketch sizes."""
    return [panel_of(table, size) for size in SIZES]


def rows_of(size: str, problem: Problem) -> int:
    """Return a sketch's number of rows, r."""
    found = {
        "d": problem.d,
        "2d": 2 * problem.d,
        "8 ln(40)/.25": JlTransform().sketch_rows(),
        "n": problem.n,
    }
    return found[size]


class SketchPart(Part):
    """One sketch size on one table; without a size, the baselines for the table's sketches."""

    table: str = ""
    size: str = ""
    draws: int = 0


class MvgSketches(Experiment):
    """Errors after learning from a sketch of each size; see `info`."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each table and size."""
        draws = 20 if effort is Effort.QUICK else 1_000
        sets = {LIVER: _liver.DATA, TWO: _liver.DATA, CTG: _ctg.DATA}
        return [
            SketchPart(data, table, size, draws)
            for table, data in sets.items()
            for size in ("", *SIZES)
        ]

    def shared(self, data: str) -> Liver | Ctg:
        """Return the patients of Liver, or the cardiotocograms of CTG."""
        return Liver.load() if data == _liver.DATA else Ctg.load()

    def run(self, part: SketchPart, shared: Liver | Ctg, seed: int) -> Measurements:
        """Return the errors with a sketch, or with its baselines."""
        if isinstance(shared, Ctg):
            quantity, found = RSS, _covariance(shared, part, seed)
        else:
            liver = shared.only(RIGHT) if part.table == TWO else shared
            quantity, found = RMSE, _regression(liver, part, seed)
        panel = panel_of(part.table, part.size) if part.size else part.table
        return Measurements({Point(panel, name, quantity): loss for name, loss in found.items()})


def _sketch(
    square: FloatArray, problem: Problem, part: SketchPart, trial: int, seed: int
) -> FloatArray:
    """Return the rows of one sketch of a table with the given X'X, shape (r, d)."""
    rows = rows_of(part.size, problem)
    lift = published_lift(rows, Budget(EPSILON, 1 / problem.n)) * problem.domain.radius**2
    factor = np.linalg.cholesky(square + lift * np.eye(problem.d))
    rng = generator(seed, "reproduce", "mvg", "sketch", part.table, part.size, trial)
    drawn: FloatArray = rng.standard_normal((rows, problem.d)) @ factor.T / np.sqrt(rows)
    return drawn


def _regression(liver: Liver, part: SketchPart, seed: int) -> dict[str, FloatArray]:
    """Return root mean squared errors (RMSE) on clean patients."""
    splits = [liver.split(seed, trial) for trial in range(part.draws)]

    def of(name: str, trains: Iterable[FloatArray]) -> dict[str, FloatArray]:
        learns = zip(trains, splits, strict=True)
        errors = [learned(t, s[1], seed, i, learner=GIVEN) for i, (t, s) in enumerate(learns)]
        return {name: by_trial(errors)[RMSE]}

    if part.size:
        squares = enumerate(private.T @ private for private, _ in splits)
        problem = liver.problem()
        return of(SKETCH, (_sketch(square, problem, part, i, seed) for i, square in squares))
    found = of(NON_PRIVATE, (private for private, _ in splits))
    found[CONSTANT] = np.array([np.sqrt(np.mean(test[:, -1] ** 2)) for _, test in splits])
    if part.table == TWO:  # This table has only ALT and Y, so no direction is left to favour.
        return found
    row = Row(MVG, parse_variant("mvg_data"))
    errors = [measured_row(liver, row, tau, seed, part.draws)[RMSE] for tau in TAUS]
    return {**found, MVG: min(errors, key=lambda error: float(error.mean()))}


def _covariance(ctg: Ctg, part: SketchPart, seed: int) -> dict[str, FloatArray]:
    """Return the losses over all components."""
    moment, problem, draws = ctg.moment(CENTRED), ctg.problem(), part.draws
    if part.size:
        square = moment.n * moment.A
        sketches = [_sketch(square, problem, part, trial, seed) for trial in range(draws)]
        grams = np.stack([rows.T @ rows for rows in sketches])
        return {SKETCH: ctg.loss(descending(grams), CENTRED)}
    exact = descending(moment.A[None])[0]
    losses = [
        ctg.loss(
            ctg.release(
                parse_variant("mvg_data"), CENTRED, EPSILON, draws, seed,
                favouring(ctg.columns, _ctg.RIGHT, tau),
            )[0].components,
            CENTRED,
        )
        for tau in TAUS
    ]  # fmt: skip
    return {
        RANDOM: ctg.loss(random_orders(exact, 5 * draws, seed), CENTRED),
        BASIS: ctg.loss(random_frames(problem.d, 5 * draws, seed), CENTRED),
        MVG: min(losses, key=lambda loss: float(loss.mean())),
    }
