"""Difference of two Wisharts: the pure-privacy repair of the Wishart mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.losses import LogRatio, wishart_difference_ratio
from dpviz.accounting.sensitivity import nuclear, nuclear_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._weighing import WeighingAdditive
from dpviz.sampling.ensembles import wishart
from dpviz.sampling.limits import FreeNoise, WishartDifferenceLaw


@dataclass(frozen=True)
class WishartDifference(WeighingAdditive):
    """Release A + W1 - W2 with independent W_d(d + 1, c I): pure epsilon, unbiased.

    Notes
    -----
    With d + 1 degrees of freedom the Wishart density is proportional to
    exp(-tr(P)/(2c)) on P >= 0, so N = W1 - W2 has density f(M) proportional to
    the integral of exp(-(2 tr P - tr M)/(2c)) over {P >= 0, P >= M}. For
    D >= 0, {P >= M + D} lies inside {P >= M}, hence
    f(M + D) <= exp(tr D/(2c)) f(M); shifting P by D gives
    f(M + D) >= exp(-tr D/(2c)) f(M). Splitting any D into its positive and
    negative parts, |log f(M + D) - log f(M)| <= ||D||_nuclear/(2c). So
    c = nuclear sensitivity/(2 epsilon) gives epsilon.

    **No better odds are known** than tanh(epsilon/2), the total variation that a pure epsilon
    allows. f is log-concave and even, so `dpviz.accounting.knorm` names the worst neighbours here
    too, but their density ratio above d = 2 is not known. Three ways around it fail. Releasing W1
    and W2 instead of their difference can only reveal more. The density of W1 moved by a uu' is
    exp(a/(2c)) times the other where both are positive. So the overlap is exp(-a/(2c)), and both
    parts of D together leave 1 - exp(-epsilon), which is above tanh(epsilon/2). Log-concavity along
    D gives overlap(t D) >= overlap(D)^t for t in [0, 1], which from a larger epsilon's (1 - tanh)
    is weaker than the bound at epsilon itself. Fisher information adds up by Stam's inequality, but
    the information of W1 is infinite, as its density jumps at the boundary of the cone.
    """

    info = MechanismInfo(
        label="Wishart difference",
        summary="Adds the difference of two independent Wishart matrices: the matrix Laplace.",
        paper="dpviz, repairing Jiang et al. 2016",
        family="wishart",
        release="matrix",
        guarantee="pure",
        order=8,
        featured=True,
        highlight=2,
        precision=("",),
        law=r"\hat A = A + W_1 - W_2,\quad W_i \sim W_d(d+1,\ c I)",
        calibration=r"c = D_{\mathrm{nuc}} / (2 n \varepsilon)",
        complexity="d^3",
        advice="The default under pure privacy for a matrix above 64 features. It is also the "
        "default for components of a second moment, except for one component at a small n "
        "epsilon (ppca).",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return c = nuclear sensitivity/(2 epsilon), rounded up."""
        sensitivity = nuclear(problem)
        # The scale is rounded up, so that the actual epsilon is never above the claim.
        scale = math.nextafter(sensitivity / (2 * budget.epsilon), math.inf)
        part = PurePart(
            sensitivity / (2 * scale),
            "log density ratio is at most the nuclear norm/(2c)",
            attained=nuclear_attained(problem),
        )
        return Calibration(problem, budget, scale, (part,))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return W1 - W2 at unit scale."""
        noise = wishart(draws, problem.d, problem.d + 1)
        noise -= wishart(draws, problem.d, problem.d + 1)
        return noise

    def diagonal_std(self, problem: Problem) -> float | None:
        """Return 2 sqrt(d + 1): each chi-square of d + 1 has variance 2 (d + 1)."""
        return 2 * math.sqrt(problem.d + 1)

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the free difference of two Marchenko-Pastur laws."""
        d = calibration.problem.d
        return WishartDifferenceLaw(d * calibration.scale, d)

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 1: the least regret of mechanisms that need the second moment alone."""
        return 1.0

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the proof in one sentence."""
        return (
            "Proved: the log density ratio of neighbours is at most the nuclear norm of their "
            "difference over 2c, and the bound is reached in the limit."
        )

    def log_ratio(
        self, calibration: Calibration, first: SecondMoment, second: SecondMoment
    ) -> LogRatio | None:
        """Return the density ratio at d = 2, where it is known."""
        # Above d = 2, no quick formula is known for the density of this noise.
        if calibration.problem.d != 2:
            return None
        return wishart_difference_ratio(calibration.scale, first.A, second.A)
