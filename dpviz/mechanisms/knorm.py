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
    """Release A + N, with N of density proportional to exp(-||N||_nuc/s): pure, unbiased.

    Source
    ------
    The K-norm mechanism: Hardt and Talwar 2010, "On the geometry of differential privacy". In the
    nuclear norm: d'Orsi and Novikov 2025, arXiv 2510.26717. The exact sampler is ours, see
    `dpviz.sampling.nuclear`.

    Notes
    -----
    The triangle inequality: the log density ratio of a shift D is at most ||D||_nuc/s. Far along D
    the ratio reaches this value, so s = nuclear sensitivity/epsilon gives epsilon, and no less.
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
        advice="The default under pure privacy for a matrix of up to 64 features. It adds a tenth "
        "less noise than the Wishart difference, but is slower.",
    )

    def law(self, d: int) -> PureLaw:
        """Return the law of the noise."""
        return PureLaw.KNORM

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return s = nuclear sensitivity/epsilon, rounded up."""
        sensitivity = nuclear(problem)
        # The scale is rounded up, so that the actual epsilon never exceeds the claimed epsilon.
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
        """Return exact samples of the noise at unit scale."""
        return nuclear_noise(draws, problem.d)

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return the exact standard deviation of w'Nw."""
        return direction_std(problem.d)

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 1.5 if sampling is quick: the least regret of mechanisms on the second moment."""
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
        """Return the density ratio, which is known for every d."""

        def ratio(release: Release) -> FloatArray:
            norms = [
                np.abs(np.linalg.eigvalsh(release.raw - table.A)).sum(axis=1)
                for table in (first, second)
            ]
            # The density's normalising constant is the same for both tables, so it cancels.
            found: FloatArray = (norms[1] - norms[0]) / calibration.scale
            return found

        return ratio
