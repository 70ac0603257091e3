"""Analyze Gauss: i.i.d. Gaussian noise with the classical scale."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import classical_std
from dpviz.accounting.sensitivity import l2_upper, l2_upper_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo, claimed_against_spent, paper
from dpviz.sampling.ensembles import symmetric
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class AnalyzeGauss(AdditiveMechanism):
    """Symmetric i.i.d. Gaussian noise, scaled to a sensitivity of 1.

    Source
    ------
    Dwork, Talwar, Thakurta and Zhang 2014, Algorithm 1. Its sensitivity is 1 under zero-out. Under
    replace it is sqrt(2) on the ball, and still 1 on a box
    (`dpviz.accounting.sensitivity.l2_upper`).

    Notes
    -----
    The release is a Gaussian mechanism on the upper triangle, with mu = the sensitivity over s. The
    classical scale was proved for epsilon below 1 (Dwork and Roth 2014, appendix A); here the exact
    profile at mu judges every epsilon.
    """

    info = MechanismInfo(
        label="Analyze Gauss",
        summary="Adds i.i.d. Gaussian noise to the upper triangle of A.",
        paper="Dwork et al. 2014, Algorithm 1",
        references=(
            paper(
                "Dwork2014",
                "Dwork, Cynthia and Talwar, Kunal and Thakurta, Abhradeep and Zhang, Li",
                "Analyze Gauss: Optimal Bounds for Privacy-Preserving Principal Component Analysis",
                "ACM Symposium on Theory of Computing",
                2014,
                doi="10.1145/2591796.2591883",
            ),
        ),
        url="https://doi.org/10.1145/2591796.2591883",
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=5,
        featured=True,
        highlight=4,
        law=r"\hat A = A + G,\quad G_{ij} = G_{ji} \sim N(0, s^2)",
        calibration=r"s = R^2 \sqrt{2 \ln(1.25/\delta)} / (n \varepsilon)",
        complexity="d^3",
        advice="Use it if a row may become zero and n is public; for replaced rows use gaussian.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published scale: the classical Gaussian scale at sensitivity 1."""
        # Algorithm 1 has this std for rows of length at most 1, so here it is multiplied by R^2/n.
        scale = classical_std(budget) * problem.domain.radius**2 / problem.n
        # The loss follows from the real sensitivity to one row. Algorithm 1 assumes sensitivity 1.
        part = GaussianPart(l2_upper(problem), scale, l2_upper_attained(problem))
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a symmetric matrix of independent standard normals."""
        return symmetric(draws, problem.d)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the semicircle of i.i.d. entries."""
        return SemiCircle(calibration.scale, calibration.problem.d)

    def promised_elsewhere(self, problem: Problem, budget: Budget) -> str | None:
        """Return the source's neighbours or range if this setting is outside them, or None."""
        if l2_upper(problem) > problem.domain.radius**2 / problem.n:
            return "for zero-out neighbours"
        return "for epsilon below 1" if budget.epsilon >= 1 else None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the exact delta and the range of the classical proof."""
        assert spent is not None
        assert spent.delta_at_epsilon is not None
        truth = (
            f"the exact delta at epsilon {numeral(budget.epsilon, 3)} is "
            f"{numeral(spent.delta_at_epsilon)}, against {numeral(budget.delta)} claimed"
        )
        # The claim is exceeded only under replace on the ball; see the docstring of the class.
        assumed = problem.domain.radius**2 / problem.n
        if l2_upper(problem) > assumed:
            first = (
                "Promised for zero-out neighbours, where the sensitivity is 1; replacing a row "
                f"moves A by sqrt(2): {truth}"
            )
        else:
            first = f"Spends {claimed_against_spent(budget, spent)}; {truth}"
        if budget.epsilon >= 1:
            return first + " (the classical scale is proved for epsilon below 1 only)."
        return first + "."
