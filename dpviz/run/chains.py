"""Whole chains: each draw prepares the raw rows anew, on bounds that are public, and releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.base.blas import one_blas_thread
from dpviz.base.seeding import Draws
from dpviz.metrics import Outcome
from dpviz.paid.account import chain
from dpviz.paid.chain import Prepared as PaidRows
from dpviz.paid.chain import Public, noise_edge, run
from dpviz.prepare.prepared import Measured, Raw
from dpviz.prepare.transform import Transform
from dpviz.privacy.gaussian import mu_of
from dpviz.values.release import Calibration, Release

if TYPE_CHECKING:
    from dpviz.run.cells import Cell


@dataclass(frozen=True, eq=False)
class PaidDraws:
    """One paid preparation for each draw, and the mechanism that comes after it.

    Attributes
    ----------
    calibration : Calibration
        Of the mechanism, on what the preparation leaves.
    raw : Raw
    public : Public
    made : dpviz.paid.chain.Prepared
    """

    calibration: Calibration
    raw: Raw
    public: Public
    made: PaidRows

    def rows(self, index: int) -> FloatArray:
        """Return the bounded rows of one draw, shape (n, d)."""
        made = self.made
        center, scale, bound = made.center[index], made.scale[index], made.row_bound[index]
        public = self.public
        if made.reach is not None:
            public = public.within(float(made.reach[index]))
        return public.bounded(self.raw.rows, center, scale, float(bound))

    def transform(self, index: int, before: Transform) -> Transform:
        """Return how other rows are prepared in one draw, as far as that is released."""
        scale = self.made.scale[index] * self.made.unit[index]
        return replace(before, center=self.made.center[index], scale=scale)


def paid_draws(cell: Cell, raw: Raw) -> PaidDraws:
    """Return the paid preparation of each trial of a cell.

    Raises
    ------
    CannotRun
        If the preparation leaves nothing usable.
    """
    assert cell.paid is not None
    mechanism, problem = cell.mechanism, cell.problem
    whole = chain(mechanism, problem, cell.budget, cell.paid)
    calibration = mechanism.calibrate(problem, whole.rest)
    edges = mechanism.spectrum_edges(calibration)
    if edges is not None:
        edge = problem.n * max(abs(edges[0]), abs(edges[1]))
    else:
        mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
        edge = noise_edge(problem.d, problem.relation, mu)
    public = Public(raw.low, raw.high, raw.center, raw.scale, raw.row_bound, raw.centered, edge)
    steps = Draws.trials(cell.seed, "prepare", cell.trials)
    with one_blas_thread():
        made = run(raw.rows, public, whole.preparation, steps, people=problem.n)
    return PaidDraws(calibration, raw, public, made)


def evaluate_paid(cell: Cell, prepared: Measured) -> tuple[Outcome, PaidDraws]:
    """Return whole chains: each trial prepares the raw rows anew, and releases.

    A private row bound is another unit in each draw: what is released is brought back to that of
    the reference, by a factor that is released too.
    """
    if prepared.raw is None:
        raise RuntimeError("a paid preparation needs a table that was prepared for it")
    raw, mechanism, problem = prepared.raw, cell.mechanism, cell.problem
    steps = paid_draws(cell, raw)
    draws = Draws.trials(cell.seed, mechanism.key, cell.trials)
    with one_blas_thread():
        unit = raw.row_bound if np.isfinite(raw.row_bound) else 1.0
        units = np.square(steps.made.unit / unit)
        released = []
        for index, draw in enumerate(draws.single()):
            moment = (
                steps.made.moment_with_rows(raw.rows, steps.public, index)
                if mechanism.needs_rows
                else steps.made.moment(index, problem.n)
            )
            one = mechanism.release_many(moment, steps.calibration, draw)
            released.append(one.times(float(units[index])))
        seen = units[:, None, None] * steps.made.moments
        return Outcome(prepared.reference, prepared.moment, Release.joined(released), seen), steps
