"""The tight Gaussian mechanism: isotropic noise, exact calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius, frobenius_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.params import choice, number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, paper
from dpviz.mechanisms._weighing import WeighingAdditive
from dpviz.sampling.ensembles import goe
from dpviz.sampling.limits import FreeNoise, SemiCircle

CENTRAL, DISTRIBUTED, LOCAL = "central", "distributed", "local"


@dataclass(frozen=True)
class Gaussian(WeighingAdditive):
    """GOE noise, isotropic in the Frobenius inner product, exactly calibrated.

    Source
    ------
    Balle and Wang 2018 for the calibration; the GOE is dpviz's choice.

    Notes
    -----
    A row moves A by at most D_F in Frobenius norm: sqrt(2) R^2/n under replace, R^2/n under
    zero-out (`dpviz.accounting.sensitivity.frobenius`). In the coordinates A_ii and sqrt(2) A_ij, i
    < j, this norm is Euclidean and the GOE is i.i.d. N(0, t^2). So this is a Gaussian mechanism
    with mu = D_F/t. Its profile is exact, and g(epsilon, delta) = 1/mu solves it for equality.

    Trust. If one curator sees the rows and adds the noise, t protects a person from all who see the
    release. Without a curator the mean has more noise, but the loss of a person is the same.

    - *Distributed*: each of n people adds a share of variance t'^2/n, and secure addition reveals
      only the sum. Colluding people, a fraction c of all, subtract their shares. The rest has
      variance (1 - c) t'^2, which must be t^2: t' = t/sqrt(1 - c).
    - *Local*: each person publishes u u' with noise of her own. One report moves by at most n D_F,
      so its noise is n t, and the mean of n reports has noise t' = sqrt(n) t. No mean of n
      independent reports has less noise under this law.
    """

    trust: str = choice(
        CENTRAL,
        {CENTRAL: "One curator", DISTRIBUTED: "Secure addition", LOCAL: "Nobody"},
        label="Who is trusted",
        help="Who sees the rows. One curator sees all rows and adds the noise. With secure "
        "addition each person adds a share of the noise; only the sum is seen. If nobody is "
        "trusted, each person's noise protects the own row; the mean has sqrt(n) times the noise.",
        examples=(DISTRIBUTED, LOCAL),
    )
    colluders: float = number(
        0.1,
        0.0,
        0.99,
        label="Share of colluding people",
        help="Largest share of people who tell each other their noise. Only secure addition uses "
        "this value: honest people then add more noise. A larger value means more noise.",
        slider=(0.0, 0.9),
        examples=(0.5,),
    )

    info = MechanismInfo(
        label="Gaussian, exact",
        summary="Adds isotropic Gaussian noise, calibrated by the exact privacy profile.",
        paper="dpviz, after Balle and Wang 2018",
        references=(
            paper(
                "Balle2018",
                "Balle, Borja and Wang, Yu-Xiang",
                "Improving the Gaussian Mechanism for Differential Privacy: Analytical "
                "Calibration and Optimal Denoising",
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
        # The scale is the next double above the product, so that rounding never makes mu too large.
        scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
        part = GaussianPart(sensitivity, scale, frobenius_attained(problem))
        # The mean may have excess noise. The loss of a person does not depend on this excess.
        excess = {DISTRIBUTED: (1 - self.colluders) ** -0.5, LOCAL: problem.n**0.5}
        return Calibration(problem, budget, scale * excess.get(self.trust, 1.0), (part,))

    @property
    def central(self) -> bool:
        """Whether one curator sees all rows."""
        return self.trust == CENTRAL

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a GOE matrix: diagonal variance 1, off-diagonal 1/2."""
        # The Frobenius norm counts off-diagonal entries twice, so their variance is half as large.
        return goe(draws, problem.d)

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return 1: the noise is the same in every direction."""
        return 1.0

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return a semicircle: off the diagonal the standard deviation is t/sqrt(2)."""
        std = math.sqrt(0.5) * calibration.scale
        return SemiCircle(std, calibration.problem.d, diagonal=2.0)

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 1 if there is a curator: the least regret with delta, except for unit rows."""
        return 1.0 if self.central else None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        if self.trust == LOCAL:
            return (
                "The exact privacy profile sets the noise of each person's report, so nobody "
                "needs to be trusted. The mean of the reports has sqrt(n) times a curator's noise."
            )
        if self.trust == DISTRIBUTED:
            return (
                "The noise shares of people who do not collude add up to the noise that the exact "
                "privacy profile requires. This holds if secure addition reveals only the sum."
            )
        return (
            "The exact privacy profile sets the noise for the largest change by one person "
            "in Frobenius norm. So the privacy loss is exactly as claimed, at every epsilon."
        )
