"""Laplace input perturbation with the sensitivity of the upper triangle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import l1_upper, l1_upper_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import LaplacePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo
from dpviz.sampling.ensembles import symmetric_laplace
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class LaplaceTight(AdditiveMechanism):
    """Symmetric Laplace noise scaled to the l1 sensitivity of the upper triangle.

    Only this triangle is sampled, so only its l1 sensitivity counts; see
    `dpviz.accounting.sensitivity.l1_upper` for the bound and its proof.

    Notes
    -----
    With S_1 R^2/n for this sensitivity, the log density ratio of independent Laplace noise is at
    most the l1 norm of the shift over b. It is at most epsilon for b = S_1 R^2/(n epsilon).
    """

    info = MechanismInfo(
        label="Laplace, tight",
        summary="Adds Laplace noise scaled to the largest change that one person can cause.",
        paper="dpviz, after Jiang et al. 2016, Algorithm 1",
        family="laplace",
        release="matrix",
        guarantee="pure",
        order=3,
        discrete="discrete Laplace",
        law=r"\hat A = A + L,\quad L_{ij} = L_{ji} \sim \mathrm{Lap}(b)",
        calibration=r"b = S_1 R^2 / (n \varepsilon)",
        complexity="d^3",
        advice="Use it if d is small and entries must be released one by one with pure privacy.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least scale that the sensitivity bound allows."""
        sensitivity = l1_upper(problem)
        # The scale is rounded up, so that the loss is at most epsilon.
        scale = math.nextafter(sensitivity / budget.epsilon, math.inf)
        part = LaplacePart(sensitivity, scale, l1_upper_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a symmetric matrix of independent Lap(1) entries."""
        return symmetric_laplace(draws, problem.d)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return a semicircle: an entry has standard deviation sqrt(2) b."""
        std = math.sqrt(2) * calibration.scale
        return SemiCircle(std, calibration.problem.d, tails=(3.0, 30.0))

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the sensitivity that sets the scale."""
        return (
            "Scaled to a proved bound on the l1 norm by which one person can move the upper "
            "triangle of A."
        )
