"""Rows clipped at a radius that is found privately, in units of it: what the clipped pair shares.

Where no radius is worth its price the rows enter as directions alone. Which of both, and at which
rank, is decided by the calibration, from public numbers: it has a ``rank`` where one is sought.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import at_rank
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Aim, Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._quantiles import Lengths
from dpviz.mechanisms._weighing import Weighing


@dataclass(frozen=True)
class OfClippedRows(Weighing):
    """A mechanism that sees rows clipped at a private radius, or as unit vectors alone."""

    @abstractmethod
    def noise_of(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise at unit scale, shape (size, d, d)."""

    @abstractmethod
    def radii(self, lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return the radius that each draw finds, shape (size,)."""

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the noisy moment of clipped rows with its radius, or of directions alone."""
        problem = calibration.problem
        # drawn first, so that both branches add the same noise
        matrices = self.noise_of(problem, draws)
        matrices *= calibration.scale
        if "rank" not in calibration.values:
            matrices += data.shortened(None).A
            return Release(matrices, self.of_matrices(matrices, calibration).components)
        radii = self.radii(data.lengths, calibration, draws)
        for radius in np.unique(radii):
            matrices[radii == radius] += data.shortened(float(radius)).A
        estimate = matrices * np.square(radii)[:, None, None]
        release = replace(Release.of_matrices(estimate, problem.k, raw=matrices), radius=radii)
        return self.weighed(release, calibration) if self.weighs else release

    def public_total(self, calibration: Calibration) -> float | None:
        """Return 1 where every row has length one, None where rows are clipped."""
        return None if "rank" in calibration.values else 1.0

    @property
    def needs_row_bound(self) -> bool:
        """No: a row enters as a unit vector times a number from 0 to 1."""
        return False

    def releases(self, problem: Problem, budget: Budget) -> str:
        """Return matrix where a radius is sought, subspace elsewhere."""
        sought = "rank" in self.calibrate(problem, budget).values
        return "matrix" if sought else "subspace"

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return clipped rows where a radius is sought, directions elsewhere."""
        sought = "rank" in self.calibrate(problem, budget).values
        return Aim.CLIPPED if sought else Aim.DIRECTIONS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment of rows clipped at the rank sought, or of directions."""
        values = self.calibrate(problem, budget).values
        sought = "rank" in values
        return data.shortened(at_rank(data.lengths, values["rank"]) if sought else None)
