"""Rounds of a task behind a preparation that is paid for: each draw has its own, and learns by it.

Neighbours differ in one raw row of those that the release is about. Training and test rows pass
through what that draw released of its preparation, without the bound, which protects nobody there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.datasets.table import Table
from dpviz.simulation.cells import part_of
from dpviz.simulation.chains import paid_draws
from dpviz.simulation.simulate import Cell, Named, simulate, simulate_tables
from dpviz.simulation.tasks.parts import Projecting, Releasing
from dpviz.simulation.tasks.scores import score_projected, score_released


def chain_scores(
    cell: Cell,
    data: Projecting | Releasing,
    table: Table,
    learner: str,
    options: Mapping[str, Any],
) -> FloatArray:
    """Return the score of each trial of a cell.

    Parameters
    ----------
    cell : Cell
        With the steps that are paid for.
    data : Projecting or Releasing
    table : Table
    learner : str
        Key of `dpviz.simulation.tasks.learners.LEARNERS`.
    options : mapping
        Keywords of `score_projected` but ``numbers``.
    """
    scores = _projected if isinstance(data, Projecting) else _released
    return np.array(scores(cell, data, table, learner, options))  # type: ignore[arg-type]


def _projected(
    cell: Cell, data: Projecting, table: Table, learner: str, options: Mapping[str, Any]
) -> list[float]:
    seen = data.with_rows(table) if cell.mechanism.needs_rows else data.measured
    part = part_of(cell, seen)
    assert part.paid is not None, "the preparation is paid for"
    (frames,) = simulate([part], lambda _, release: release.components)
    scores: list[float] = []
    for index, trial in enumerate(cell.trials):
        train, test = data.prepared(table, part.paid.transform(index, data.transform))
        frame = frames[index][None]
        here = {**options, "numbers": [trial]}
        scores += list(score_projected(learner, frame, train, test, cell.seed, **here))
    return scores


def _released(
    cell: Cell, data: Releasing, table: Table, learner: str, options: Mapping[str, Any]
) -> list[float]:
    steps = paid_draws(cell, data.measured)
    tables = simulate_tables(
        cell.mechanism,
        steps.calibration,
        lambda index: data.beside(steps.rows(index)),
        Named(cell.seed, cell.mechanism.key, cell.trials),
    )
    scores: list[float] = []
    for index, (trial, released) in enumerate(zip(cell.trials, tables, strict=True)):
        test = data.prepared_test(table, steps.transform(index, data.transform))
        here = {**options, "numbers": [trial]}
        one = [data.read(released)]
        scores += list(score_released(learner, one, test, cell.seed, **here))
    return scores
