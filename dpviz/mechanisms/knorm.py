"""The K-norm mechanism of the nuclear norm: the sharpest pure noise known for a whole matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.knorm import most_apart
from dpviz.accounting.losses import LogRatio
from dpviz.accounting.sensitivity import nuclear, nuclear_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, paper
from dpviz.mechanisms._pure import AUTO, PureLaw, PureNoise, law_for
from dpviz.mechanisms._weighing import WeighingAdditive
from dpviz.sampling.limits import FreeNoise, NuclearLaw
from dpviz.sampling.nuclear import direction_std, nuclear_noise


@dataclass(frozen=True)
class KNorm(PureNoise, WeighingAdditive):
    """A + N, N symmetric with density proportional to exp(-||N||_nuc/s): pure epsilon, unbiased.

    Source
    ------
    The K-norm mechanism: Hardt and Talwar 2010, "On the geometry of differential privacy". In the
    nuclear norm: d'Orsi and Novikov 2025, arXiv 2510.26717. The exact draws are ours, see
    `dpviz.sampling.nuclear`.

    Notes
    -----
    By the triangle inequality the log density ratio of a shift D is at most ||D||_nuc/s, and far
    out along D it is that much: s = nuclear sensitivity/epsilon gives epsilon, and no less.
    Replacing a row moves A by a matrix of nuclear norm at most 2/n, zeroing one by at most 1/n.
    """

    info = MechanismInfo(
        label="K-norm",
        summary="Adds noise shaped by the nuclear norm, in which one person moves the table least.",
        paper="dpviz, after Hardt and Talwar 2010 and d'Orsi and Novikov 2025",
        references=(
            paper(
                "d'Orsi2025",
                "d'Orsi, Tommaso and Novikov, Gleb",
                "On Purely Private Covariance Estimation",
                "",
                2025,
                journal="arXiv preprint",
                eprint="2510.26717",
            ),
            paper(
                "Hardt2010",
                "Hardt, Moritz and Talwar, Kunal",
                "On the Geometry of Differential Privacy",
                "ACM Symposium on Theory of Computing",
                2010,
                eprint="0907.3754",
            ),
        ),
        url="https://arxiv.org/abs/2510.26717",
        family="wishart",
        release="matrix",
        guarantee="pure",
        order=34,
        law=r"\hat A = A + N,\quad f(N) \propto e^{-\|N\|_{\mathrm{nuc}}/s}",
        calibration=r"s = D_{\mathrm{nuc}} / (n \varepsilon)",
        complexity="d^4",
        advice="The default under pure privacy for a matrix, up to 64 features: a tenth less noise "
        "than the Wishart difference, at the price of slower draws.",
    )

    def law(self, d: int) -> PureLaw:
        """Return the law of its noise."""
        return PureLaw.KNORM

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return s = nuclear sensitivity/epsilon, rounded up."""
        sensitivity = nuclear(problem)
        # rounded up: the part's epsilon, sensitivity/scale, is never above what is claimed
        scale = math.nextafter(sensitivity / budget.epsilon, math.inf)
        ball = problem.domain.kind == "ball"
        part = PurePart(
            sensitivity / scale,
            "log density ratio is at most the nuclear norm/s",
            attained=nuclear_attained(problem),
            apart=most_apart(problem.d, budget.epsilon, problem.relation) if ball else 1.0,
        )
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise at unit scale, exactly."""
        return nuclear_noise(draws, problem.d)

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return the standard deviation of w'Nw, exactly."""
        return direction_std(problem.d)

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 1.5 where draws are quick: the least regret of what needs the second moment."""
        return 1.5 if law_for(AUTO, problem.d) is PureLaw.KNORM else None

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return Ullman's law of order 1."""
        d = calibration.problem.d
        return NuclearLaw(math.pi / 2 * d * calibration.scale, d)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the proof in one sentence."""
        return (
            "Proved by the triangle inequality: the log density ratio of neighbours is at most the "
            "nuclear norm of their difference over s; draws are exact and see no data."
        )

    def log_ratio(
        self, calibration: Calibration, first: SecondMoment, second: SecondMoment
    ) -> LogRatio | None:
        """Return the ratio of the densities, which are known for every d."""

        def ratio(release: Release) -> FloatArray:
            norms = [
                np.abs(np.linalg.eigvalsh(release.raw - table.A)).sum(axis=1)
                for table in (first, second)
            ]
            # the normaliser is the same for both tables
            found: FloatArray = (norms[1] - norms[0]) / calibration.scale
            return found

        return ratio
