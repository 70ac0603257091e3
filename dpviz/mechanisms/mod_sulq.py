"""MOD-SULQ: symmetric Gaussian noise with a very cautious scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import l2_upper, l2_upper_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo, claimed_against_spent
from dpviz.sampling.ensembles import symmetric
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class ModSulq(AdditiveMechanism):
    """Symmetric i.i.d. Gaussian noise with the published scale.

    Source
    ------
    Chaudhuri, Sarwate and Sinha 2012, Algorithm 1.

    Notes
    -----
    A row moves the upper triangle, which alone is sampled, by at most sqrt(2) R^2/n (replace, on
    the ball) or R^2/n (zero-out) in l2 norm (`dpviz.accounting.sensitivity.l2_upper`), in every
    dimension. So the release is a Gaussian mechanism with mu = this norm over beta. The published
    beta grows with d, so more features use less of the claim.
    """

    info = MechanismInfo(
        label="MOD-SULQ",
        summary="Adds i.i.d. Gaussian noise with a scale that grows like d.",
        paper="Chaudhuri et al. 2012, Algorithm 1",
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=6,
        law=r"\hat A = A + G,\quad G_{ij} = G_{ji} \sim N(0, \beta^2)",
        calibration=(
            r"\beta = \frac{R^2}{n}\left(\frac{d+1}{\varepsilon}"
            r"\sqrt{2 \ln\frac{d^2 + d}{2 \delta \sqrt{2\pi}}}"
            r" + \frac{1}{\sqrt{\varepsilon}}\right)"
        ),
        complexity="d^3",
        advice="For comparison only: it adds far more noise than its promise needs.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published standard deviation, step 2 of the algorithm."""
        n, d, epsilon = problem.n, problem.d, budget.epsilon
        # In step 2 of Algorithm 1, beta is used as printed, with its second term.
        log_term = math.log((d * d + d) / (2 * budget.delta * math.sqrt(2 * math.pi)))
        beta = (d + 1) / (n * epsilon) * math.sqrt(2 * log_term) + 1 / (math.sqrt(epsilon) * n)
        # The paper assumes rows of length at most 1, so its beta is multiplied by R^2.
        scale = beta * problem.domain.radius**2
        part = GaussianPart(l2_upper(problem), scale, l2_upper_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a symmetric matrix of independent standard normals."""
        return symmetric(draws, problem.d)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the semicircle of i.i.d. entries."""
        return SemiCircle(calibration.scale, calibration.problem.d)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the actual privacy loss."""
        assert spent is not None
        return (
            "It assumes a sensitivity that grows with d, but one person's influence does "
            f"not: privacy loss {claimed_against_spent(budget, spent)}."
        )
