"""Whole chains: each draw prepares the raw rows anew, on bounds that are public, and releases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.blas import one_blas_thread
from dpviz.core.moments import SecondMoment
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms import Mechanism
from dpviz.picture.account import chain_of
from dpviz.preparation.chain import PreparedDraws as PaidRows
from dpviz.preparation.chain import noise_edge, run
from dpviz.preparation.prepared import Measured
from dpviz.preparation.transform import Transform
from dpviz.simulation.simulate import Cell


@dataclass(frozen=True, eq=False)
class PaidDraws:
    """One paid preparation for each draw, and the mechanism that comes after it.

    Attributes
    ----------
    mechanism : Mechanism
    calibration : Calibration
        Of the mechanism, on what the preparation leaves.
    raw : ndarray of shape (n, d)
    public : Transform
    made : dpviz.preparation.chain.PreparedDraws
    """

    mechanism: Mechanism
    calibration: Calibration
    raw: FloatArray
    public: Transform
    made: PaidRows

    def sees(self, index: int) -> SecondMoment:
        """Return what the mechanism sees in one draw."""
        if self.mechanism.needs_rows:
            return self.made.moment_with_rows(self.raw, self.public, index)
        return self.made.moment(index, self.calibration.problem.n)

    @property
    def units(self) -> FloatArray:
        """The squared row bound of each draw in those of the reference, shape (trials,)."""
        unit = self.public.row_bound if np.isfinite(self.public.row_bound) else 1.0
        squared: FloatArray = np.square(self.made.unit / unit)
        return squared

    def rows(self, index: int) -> FloatArray:
        """Return the bounded rows of one draw, shape (n, d)."""
        return self.made.bounded(self.raw, self.public, index)

    def transform(self, index: int, before: Transform) -> Transform:
        """Return how other rows are prepared in one draw, as far as that is released."""
        scale = self.made.scale[index] * self.made.unit[index]
        return replace(before, center=self.made.center[index], scale=scale)


def paid_draws(cell: Cell, prepared: Measured) -> PaidDraws:
    """Return the paid preparation of each trial of a cell.

    Raises
    ------
    CannotRun
        If the preparation leaves nothing usable.
    """
    if cell.paid is None or prepared.raw is None or prepared.public is None:
        raise RuntimeError("a paid preparation needs a table that was prepared for it")
    mechanism, problem, raw = cell.mechanism, cell.problem, prepared.raw
    whole = chain_of(mechanism, problem, cell.budget, cell.paid, cell.picture)
    calibration = mechanism.calibrate(problem, whole.rest)
    edges = mechanism.spectrum_edges(calibration)
    if edges is not None:
        edge = problem.n * max(abs(edges[0]), abs(edges[1]))
    else:
        mu = mu_of(whole.rest) if whole.rest.delta > 0 else whole.rest.epsilon
        edge = noise_edge(problem.d, problem.relation, mu)
    public = replace(prepared.public, edge=edge)
    steps = Draws.trials(cell.seed, "prepare", cell.trials)
    with one_blas_thread():
        made = run(raw, public, whole.preparation, steps, people=problem.n)
    return PaidDraws(mechanism, calibration, raw, public, made)
