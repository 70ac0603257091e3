"""Laplace input perturbation as published."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import l1_upper, l1_upper_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import LaplacePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo, claimed_against_spent
from dpviz.sampling.ensembles import symmetric_laplace
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class Laplace(AdditiveMechanism):
    """Symmetric Laplace noise scaled to an l1 sensitivity of 2d.

    Source
    ------
    Jiang et al. 2016, Algorithm 1; the noisy matrix of Xu et al. 2019, LIP.

    Notes
    -----
    A row moves the upper triangle, which alone is sampled, by at most S_1 R^2/n in l1 norm
    (`dpviz.accounting.sensitivity.l1_upper`). On the ball S_1 is at most d/sqrt(2) + 1 under
    replace and (d + 1)/2 under zero-out. The log density ratio of independent Laplace noise is at
    most the l1 norm of the shift over b. The scale b allows for 2d, so the claim holds, and at
    least half of the claimed epsilon is not used.
    """

    info = MechanismInfo(
        label="Laplace",
        summary="Adds independent Laplace noise to every entry of A.",
        paper="Jiang et al. 2016, Algorithm 1; Xu et al. 2019, LIP",
        family="laplace",
        release="matrix",
        guarantee="pure",
        order=2,
        law=r"\hat A = A + L,\quad L_{ij} = L_{ji} \sim \mathrm{Lap}(b)",
        calibration=r"b = 2 d R^2 / (n \varepsilon)",
        complexity="d^3",
        advice="For comparison only: wishart_difference gives the same guarantee with less noise.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published scale, 2d/(n epsilon)."""
        radius2 = problem.domain.radius**2
        # Algorithm 1 has the scale 2d/(n epsilon) for rows of length 1, under both relations.
        scale = 2 * problem.d * radius2 / (problem.n * budget.epsilon)
        part = LaplacePart(l1_upper(problem), scale, l1_upper_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a symmetric matrix of independent Lap(1) entries."""
        return symmetric_laplace(draws, problem.d)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return a semicircle: an entry has standard deviation sqrt(2) b."""
        # Tails are fourth and sixth cumulants of Laplace noise, in units of its std: 3 and 30.
        std = 2**0.5 * calibration.scale
        return SemiCircle(std, calibration.problem.d, tails=(3.0, 30.0))

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return how much the published sensitivity overstates the real one."""
        assert spent is not None
        return (
            "It assumes an l1 sensitivity of 2d, more than one person can cause: privacy "
            f"loss {claimed_against_spent(budget, spent)}."
        )
