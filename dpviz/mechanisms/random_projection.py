"""A uniformly random subspace: the floor."""

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
    """Release a uniformly random k-dimensional subspace, whatever the data."""

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
        # the span of a Gaussian matrix is uniform, whatever signs and order qr gives its columns
        frames, _ = np.linalg.qr(draws.normal(problem.d, problem.k))
        return Release.of_frames(frames)

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return about the most bytes of the frames; no matrix is formed."""
        return 8.0 * problem.d * problem.k * (4 + 8 * draws)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return zero: the output does not depend on the data."""
        return Spent(epsilon=0.0, delta=0.0, exact=True, source="does not read the data")

    @property
    def needs_row_bound(self) -> bool:
        """No: the rows are not looked at."""
        return False

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return that this is a baseline."""
        return Verdict.BASELINE

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return that it looks at nothing."""
        return Aim.NOTHING

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return None: no matrix has anything to do with it."""
        return None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return why it costs nothing."""
        return "Does not read the data, so it spends nothing and learns nothing."
