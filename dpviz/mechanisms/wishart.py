"""The published Wishart mechanism: a claim that fails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.losses import ExactLoss, Tables, of_moving_support
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo, paper
from dpviz.sampling.ensembles import wishart
from dpviz.sampling.limits import FreeNoise, MarchenkoPasturLaw


@dataclass(frozen=True)
class Wishart(AdditiveMechanism):
    """One-sided Wishart noise as published; its privacy claim is false.

    Source
    ------
    Jiang, Xie and Zhang 2016, Algorithm 2.

    Notes
    -----
    The noise is positive definite, so A + W lies above A, and the set of possible releases moves
    with the data. With a unit row v replaced by zero, the neighbour's release leaves the original's
    support exactly when 1/(v'W^-1 v) < 1/n. The left side is 3/(2 n epsilon) times a chi-square
    with d + 1 - d + 1 = 2 degrees of freedom, so the probability is 1 - exp(-epsilon/3), in every
    dimension.
    """

    info = MechanismInfo(
        label="Wishart",
        summary="Adds one positive definite Wishart matrix to A.",
        paper="Jiang et al. 2016, Algorithm 2",
        references=(
            paper(
                "Jiang2016",
                "Jiang, Wuxuan and Xie, Cong and Zhang, Zhihua",
                "Wishart Mechanism for Differentially Private Principal Components Analysis",
                "AAAI Conference on Artificial Intelligence",
                2016,
                eprint="1511.05680",
            ),
        ),
        url="https://arxiv.org/abs/1511.05680",
        family="wishart",
        release="matrix",
        guarantee="pure",
        order=7,
        featured=True,
        highlight=6,
        psd=True,
        law=r"\hat A = A + W,\quad W \sim W_d(d+1,\ c I)",
        calibration=r"c = 3 R^2 / (2 n \varepsilon)",
        complexity="d^3",
        advice="Do not use it; wishart_difference repairs it at the same order of noise.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published scale matrix's eigenvalue, 3/(2 n epsilon)."""
        # Algorithm 2 has d + 1 degrees of freedom. Its scale matrix is 3/(2 n epsilon) times I.
        scale = 3 * problem.domain.radius**2 / (2 * problem.n * budget.epsilon)
        return Calibration(problem, budget, scale)

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return W_d(d + 1, I)."""
        return wishart(draws, problem.d, problem.d + 1)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the Marchenko-Pastur law of W_d(d + 1, c I)."""
        d = calibration.problem.d
        return MarchenkoPasturLaw(d + 1, calibration.scale, d)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return None: no finite epsilon describes the release at a small delta."""
        return None

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return `Verdict.REFUTED`: the claim is false at every scale."""
        return Verdict.REFUTED

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the probability of a release that only one table can produce."""
        # This is the probability that a chi-square of two degrees of freedom is below 2 epsilon/3.
        chance = -math.expm1(-budget.epsilon / 3)
        return (
            f"With probability 1 - exp(-epsilon/3) = {numeral(chance, 3)}, a release of the "
            "table with one person's row zeroed is impossible for the full table. Anyone "
            "who sees it knows the table, and no epsilon covers that."
        )

    def exact_loss(
        self,
        calibration: Calibration,
        delta: float,
        at_epsilons: tuple[float, ...],
        tables: Sequence[Tables],
    ) -> ExactLoss | None:
        """Return the probability of a release that the neighbour cannot produce."""
        return of_moving_support(calibration, at_epsilons)
