"""SULQ: non-symmetric Gaussian noise with a scale that grows like d ln d."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import frobenius, frobenius_attained
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, claimed_against_spent, paper
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class Sulq(Mechanism):
    """Independent Gaussian noise on all d^2 entries of A, without symmetry.

    Source
    ------
    Blum, Dwork, McSherry and Nissim 2005, with the variance that Chaudhuri, Sarwate and Sinha 2012
    quote for it: 8 d^2 ln^2(d/delta)/(n epsilon)^2.

    Notes
    -----
    The released matrix M is not symmetric, so its eigenvalues may be complex. The estimate is (M +
    M')/2, which is post-processing. The estimate's noise has variance s^2 on the diagonal and s^2/2
    off it: a GOE of scale s. The antisymmetric part is independent of this noise, so nothing is
    lost. All d^2 entries have independent noise, so a row moves the release by the Frobenius norm.
    """

    info = MechanismInfo(
        label="SULQ",
        summary="Adds independent Gaussian noise to every entry of A, so the result is lopsided.",
        paper="Blum et al. 2005, as quoted by Chaudhuri et al. 2012",
        references=(
            paper(
                "Blum2005",
                "Blum, Avrim and Dwork, Cynthia and McSherry, Frank and Nissim, Kobbi",
                "Practical Privacy: The SuLQ Framework",
                "ACM Symposium on Principles of Database Systems",
                2005,
                doi="10.1145/1065167.1065184",
            ),
        ),
        url="https://doi.org/10.1145/1065167.1065184",
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=10,
        law=r"\hat A = (M + M')/2,\quad M = A + G,\quad G_{ij} \sim N(0, s^2)\ \text{i.i.d.}",
        calibration=r"s = 2\sqrt{2}\, R^2\, d \ln(d/\delta) / (n \varepsilon)",
        complexity="d^3",
        advice="For comparison only: it adds far more noise than its promise needs.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published standard deviation."""
        # The logarithms are subtracted, because d/delta would overflow if delta is extremely small.
        log_term = math.log(problem.d) - math.log(budget.delta)
        scale = 2 * math.sqrt(2) * problem.d * log_term / (problem.n * budget.epsilon)
        scale *= problem.domain.radius**2
        # All d^2 entries have independent noise, so the sensitivity is the Frobenius norm.
        part = GaussianPart(frobenius(problem), scale, frobenius_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return M as published, and the eigenvectors of its symmetric part."""
        d = calibration.problem.d
        raw = draws.normal(d, d)
        raw *= calibration.scale
        raw += data.A
        symmetric = 0.5 * (raw + raw.transpose(0, 2, 1))
        return Release.of_matrices(symmetric, calibration.problem.k, raw)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the semicircle of the symmetric part, a GOE of scale s."""
        std = math.sqrt(0.5) * calibration.scale
        return SemiCircle(std, calibration.problem.d, diagonal=2.0)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the actual privacy loss."""
        assert spent is not None
        return (
            "Its noise grows like d ln(d), but one person's influence does not grow with d: "
            f"privacy loss {claimed_against_spent(budget, spent)}."
        )
