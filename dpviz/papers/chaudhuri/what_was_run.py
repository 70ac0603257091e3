"""Chaudhuri, Sarwate and Sinha 2012, Table 1: settings that would give its numbers."""

from __future__ import annotations

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget
from dpviz.mechanisms import Mechanism
from dpviz.papers.chaudhuri._shared import (
    ALPHA,
    DATA_SETS,
    DELTA,
    NON_PRIVATE,
    PPCA,
    RANDOM,
    SULQ,
)
from dpviz.papers.chaudhuri.table1 import POSITIVE, STATED, Tables, accuracy
from dpviz.papers.experiment import Effort, Experiment, Part
from dpviz.papers.measurements import Mean, Measurements
from dpviz.papers.solve import Change, SolvePart, implied, read_as
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

DATA = "kddcup99"
ROWS = {"kdd-exact": NON_PRIVATE, "kdd-ppca": PPCA, "kdd-sulq": SULQ, "kdd-random": RANDOM}
N, EPSILON = "n", "alpha"
SPLIT = "one division of the rows"


class ChaudhuriWhatWasRun(Experiment):
    """Single changes that yield the printed accuracies; see `info`."""

    def parts(self, effort: Effort) -> list[Part]:
        """Return one part of the experiment for each table row and change."""
        if effort is Effort.QUICK:
            return [SolvePart(DATA, "kdd-sulq", SPLIT, 1)]
        return [
            SolvePart(DATA, row, change, 3)
            for row, mechanism in ROWS.items()
            for change in (EPSILON if mechanism in (PPCA, SULQ) else N, SPLIT)
        ]

    def shared(self, data: str) -> Tables:
        """Return the rows as a sparse matrix."""
        return Tables(data)

    def run(self, part: SolvePart, shared: Tables, seed: int) -> Measurements:
        """Return the required value of one change, or accuracies of single splits of the data."""
        mechanism = ROWS[part.row]
        if part.change == SPLIT:
            each = [_scores(shared, mechanism, 1, seed, division=i) for i in range(2 * part.draws)]
            return read_as(part.row, SPLIT, float(np.min(each)), float(np.max(each)))
        if part.change == EPSILON:
            change = Change(
                EPSILON, ALPHA, ALPHA / 100, ALPHA * 100,
                lambda alpha: Mean.of(_scores(shared, mechanism, part.draws, seed, alpha=alpha)),
                places=5,
            )  # fmt: skip
        else:
            n = shared.rows(True).n
            change = Change(
                N, n, n / 50, n,
                lambda rows: Mean.of(_scores(shared, mechanism, part.draws, seed, n=round(rows))),
                places=5,
            )  # fmt: skip
        return implied(part.row, change, STATED[DATA, mechanism])


def _scores(
    tables: Tables,
    mechanism: Mechanism,
    draws: int,
    seed: int,
    *,
    alpha: float = ALPHA,
    n: int = 0,
    division: int = 0,
) -> FloatArray:
    """Return the accuracies, in percent, of several releases on one split of the first n rows."""
    rows = tables.rows(True)
    order = rows.order(seed, division)[: n or rows.n]
    half = len(order) // 2
    (held_out,) = rows.prefixes(order, [half])
    first = division * draws
    cell = Cell(
        mechanism, rows.problem(half, DATA_SETS[DATA].k), Budget(alpha, DELTA), seed,
        range(first, first + draws),
    )  # fmt: skip
    frames = evaluate(cell, rows.measured(held_out)).release.components
    rest = order[half:]
    assert rows.labels is not None
    target = rows.labels[rest] == POSITIVE[DATA]
    return np.array([100 * accuracy(rows.rows[rest] @ frame, target) for frame in frames])
