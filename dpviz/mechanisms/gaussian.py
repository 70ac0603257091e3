"""The tight Gaussian mechanism: isotropic noise, exact calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius, frobenius_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, paper
from dpviz.mechanisms._weighing import WeighingAdditive
from dpviz.sampling.ensembles import goe
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class Gaussian(WeighingAdditive):
    """GOE noise, isotropic in the Frobenius inner product, exactly calibrated.

    Source
    ------
    Balle and Wang 2018 for the calibration; the GOE is dpviz's choice.

    Notes
    -----
    A row moves A by at most D_F in Frobenius norm: sqrt(2) R^2/n under replace, R^2/n under
    zero-out (`dpviz.accounting.sensitivity.frobenius`). In the coordinates A_ii and sqrt(2) A_ij,
    i < j, that norm is the Euclidean one and the GOE is i.i.d. N(0, t^2): a Gaussian mechanism of
    mu = D_F/t. Its profile is exact, and g(epsilon, delta) = 1/mu solves it for equality.
    """

    info = MechanismInfo(
        label="Gaussian, exact",
        summary="Adds isotropic Gaussian noise, calibrated by the exact privacy profile.",
        paper="dpviz, after Balle and Wang 2018",
        references=(
            paper(
                "Balle2018",
                "Balle, Borja and Wang, Yu-Xiang",
                "Improving the Gaussian Mechanism for Differential Privacy: Analytical "
                "Calibration and "
                "Optimal Denoising",
                "International Conference on Machine Learning",
                2018,
                eprint="1805.06530",
            ),
        ),
        url="https://arxiv.org/abs/1805.06530",
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=4,
        featured=True,
        highlight=1,
        precision=("",),
        discrete="discrete Gaussian",
        law=r"\hat A = A + G,\quad G_{ii} \sim N(0, t^2),\ G_{ij} \sim N(0, t^2/2)",
        calibration=r"t = D_F\, g(\varepsilon, \delta) / n",
        complexity="d^3",
        advice="The default with a delta, for a matrix and for components of a second moment.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least scale that meets the budget exactly."""
        sensitivity = frobenius(problem)
        # the product rounds once more: step over it, so that mu = sensitivity/scale stays below
        scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
        part = GaussianPart(sensitivity, scale, frobenius_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a GOE matrix: diagonal variance 1, off-diagonal 1/2."""
        # off-diagonal entries count twice in the Frobenius norm, and so have half of the variance
        return goe(draws, problem.d)

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return 1: the noise is the same in every direction."""
        return 1.0

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return a semicircle: off the diagonal the standard deviation is t/sqrt(2)."""
        std = math.sqrt(0.5) * calibration.scale
        return SemiCircle(std, calibration.problem.d, diagonal=2.0)

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 1: the least regret with delta, but for unit rows."""
        return 1.0

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            "Noise solved from the exact privacy profile for the Frobenius norm one person can "
            "cause, so it spends just what it claims, at every epsilon."
        )
