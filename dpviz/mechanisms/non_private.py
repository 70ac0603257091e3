"""Exact PCA: the upper limit of accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo


@dataclass(frozen=True)
class NonPrivate(Mechanism):
    """Release A itself, without noise."""

    info = MechanismInfo(
        label="Exact PCA",
        summary="Publishes the exact second moment: no privacy at all.",
        paper="no mechanism",
        family="baseline",
        release="matrix",
        guarantee="none",
        order=0,
        law=r"\hat A = A",
        calibration=r"\text{none}",
        complexity="d^3",
        advice="Never use it for private data; it is for comparison.",
        psd=True,
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the empty calibration."""
        return Calibration(problem, budget, scale=0.0)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return A for each repetition, decomposed only once."""
        k, size = calibration.problem.k, draws.size
        components = np.broadcast_to(data.top(k), (size, data.d, k))
        eigenvalues = np.broadcast_to(data.eigenvalues, (size, data.d))
        # For few rows of many features, no d x d matrix is built, because it would be too large.
        if data.root is not None:
            return Release(components, components, eigenvalues=eigenvalues, exact=True)
        matrices = np.broadcast_to(data.A, (size, *data.A.shape))
        return Release(matrices, components, matrices, eigenvalues)

    def memory(self, problem: Problem, draws: int, *, thin: bool = False) -> float:
        """Return the bytes of the exact components, and of the matrix if it is stored."""
        if thin:
            return 8.0 * problem.d * problem.k * (4 + 8 * draws)
        return super().memory(problem, draws)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return None: no epsilon describes an exact release."""
        return None

    @property
    def needs_row_bound(self) -> bool:
        """False, because the mechanism claims nothing."""
        return False

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return `Verdict.BASELINE`."""
        return Verdict.BASELINE

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return why the mechanism makes no claim."""
        return "Publishes the exact components: one changed row is visible with certainty."
