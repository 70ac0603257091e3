"""A uniformly random subspace: the lower limit of accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Aim, Calibration, Release, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo


@dataclass(frozen=True)
class RandomProjection(Mechanism):
    """Release a uniformly random k-dimensional subspace, for all data."""

    info = MechanismInfo(
        label="Random subspace",
        summary="Draws a subspace without looking at the data.",
        paper="no mechanism",
        family="baseline",
        release="subspace",
        guarantee="none",
        order=1,
        law=r"\hat V \sim \text{Haar on } \{V : V'V = I_k\}",
        calibration=r"\text{none}",
        complexity="d k^2",
        advice="Never useful; a mechanism that does not beat it has learned nothing.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the empty calibration."""
        return Calibration(problem, budget, scale=0.0)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return uniform frames: the Q of a Gaussian matrix spans a Haar subspace."""
        problem = calibration.problem
        frames, _ = np.linalg.qr(draws.normal(problem.d, problem.k))
        return Release.of_frames(frames)

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return the approximate peak bytes of the frames; no matrix is formed."""
        return 8.0 * problem.d * problem.k * (4 + 8 * draws)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return zero loss: the output does not depend on the data."""
        return Spent(epsilon=0.0, delta=0.0, exact=True, source="does not read the data")

    @property
    def needs_row_bound(self) -> bool:
        """False, because the mechanism does not use the rows."""
        return False

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return `Verdict.BASELINE`."""
        return Verdict.BASELINE

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return `Aim.NOTHING`: the rows are not used."""
        return Aim.NOTHING

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return None, because the release does not depend on any matrix."""
        return None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return why the mechanism uses no budget."""
        return "Does not read the data, so it spends nothing and learns nothing."
