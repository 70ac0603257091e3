"""Spherical PCA under pure privacy: unit rows and the K-norm noise of the nuclear norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.knorm import most_apart
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere
from dpviz.mechanisms._pure import PureLaw, PureNoise
from dpviz.mechanisms._weighing import Weighing
from dpviz.sampling.nuclear import direction_std, nuclear_noise


@dataclass(frozen=True)
class SphericalKNorm(PureNoise, OfDirections, Weighing):
    """Release the top k of S + N: S the mean of xx'/|x|^2, N with density exp(-||N||_nuc/s).

    Source
    ------
    Spherical principal components: Locantore et al. 1999; see `dpviz.mechanisms._clipped` for their
    estimates. The noise: Hardt and Talwar 2010, d'Orsi and Novikov 2025, arXiv 2510.26717; its
    exact sampler is ours, see `dpviz.sampling.nuclear`.

    Notes
    -----
    Replacing a row moves S by (uu' - vv')/n with unit u and v, of nuclear norm at most 2/n,
    attained by orthogonal rows, and 1/n under zero-out. The log density ratio of the noise is at
    most this norm over s, by the triangle inequality.
    """

    info = MechanismInfo(
        label="Spherical K-norm",
        summary="Scales every row to length one, then adds noise shaped by the nuclear norm.",
        paper="dpviz, after Locantore et al. 1999 and d'Orsi and Novikov 2025",
        url="https://arxiv.org/abs/2510.26717",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=35,
        needs_rows=True,
        by_length=True,
        law=r"\hat S = \frac1n \sum_i \frac{x_i x_i'}{\|x_i\|^2} + N,\quad"
        r" f(N) \propto e^{-\|N\|_{\mathrm{nuc}}/s}",
        calibration=r"s = 2/(n \varepsilon)\ (\text{replace}),\quad 1/(n \varepsilon)"
        r"\ (\text{zero-out})",
        complexity="n d^2 + d^4",
        advice=(
            "Gives the accuracy of the spherical Wishart difference at ten per cent more epsilon."
        ),
    )

    def law(self, d: int) -> PureLaw:
        """Return the law of the noise."""
        return PureLaw.KNORM

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return s = nuclear sensitivity of unit rows/epsilon, rounded up."""
        sensitivity = nuclear(on_the_sphere(problem))
        scale = math.nextafter(sensitivity / budget.epsilon, math.inf)
        reason = "log density ratio is at most the nuclear norm/s"
        apart = most_apart(problem.d, budget.epsilon, problem.relation)
        part = PurePart(sensitivity / scale, reason, apart=apart)  # Only the subspace is released.
        return Calibration(problem, budget, scale, (part,))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the top k of the noisy second moment of the unit rows."""
        matrices = nuclear_noise(draws, calibration.problem.d)
        matrices *= calibration.scale
        matrices += data.shortened(None).A
        return Release(matrices, self.of_matrices(matrices, calibration).components)

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Nw for unit w."""
        return direction_std(calibration.problem.d) * calibration.scale

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the proof in one sentence."""
        return (
            "Proved: rows of length one move the second moment by a known nuclear norm without "
            "any row-norm bound, and the log density ratio of the noise is at most that over s."
        )
