"""Spherical PCA under pure privacy: unit rows and the difference of two Wisharts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere
from dpviz.mechanisms._weighing import Weighing
from dpviz.sampling.ensembles import wishart


@dataclass(frozen=True)
class SphericalWishartDifference(OfDirections, Weighing):
    """Release the top k of S + W1 - W2, with S the mean of xx'/|x|^2 over the rows.

    Source
    ------
    Spherical principal components: Locantore et al. 1999; see `dpviz.mechanisms._clipped` for their
    estimates. The private form is ours.

    Notes
    -----
    Replacing a row moves S by (uu' - vv')/n with unit u and v, at most 2/n in nuclear norm, and 1/n
    under zero-out. The log density ratio of W1 - W2, independent W_d(d + 1, c I), is at most the
    nuclear norm of the shift over 2c: `dpviz.mechanisms.wishart_difference` has the proof.
    """

    info = MechanismInfo(
        label="Spherical Wishart difference",
        summary="Scales every row to length one, then adds the difference of two Wisharts.",
        paper="dpviz, after Locantore et al. 1999",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=30,
        needs_rows=True,
        by_length=True,
        law=r"\hat S = \frac1n \sum_i \frac{x_i x_i'}{\|x_i\|^2} + W_1 - W_2,\quad"
        r" W_i \sim W_d(d+1,\ c I)",
        calibration=r"c = 1/(n \varepsilon)\ (\text{replace}),\quad 1/(2 n \varepsilon)"
        r"\ (\text{zero-out})",
        complexity="n d^2",
        advice="Use it for what directions share, whatever the lengths of rows. clipped_pure "
        "does the same where noise is large, and otherwise approaches the components of A.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return c = nuclear sensitivity of unit rows/(2 epsilon), rounded up."""
        sensitivity = nuclear(on_the_sphere(problem))
        scale = math.nextafter(sensitivity / (2 * budget.epsilon), math.inf)
        part = PurePart(
            sensitivity / (2 * scale),
            "log density ratio is at most the nuclear norm/(2c)",
            attained=False,  # Only the subspace is released, not the noisy matrix.
        )
        return Calibration(problem, budget, scale, (part,))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the top k of the noisy second moment of the unit rows."""
        problem = calibration.problem
        matrices = wishart(draws, problem.d, problem.d + 1)
        matrices -= wishart(draws, problem.d, problem.d + 1)
        matrices *= calibration.scale
        matrices += data.shortened(None).A
        return Release(matrices, self.of_matrices(matrices, calibration).components)

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Nw for unit w."""
        return 2 * math.sqrt(calibration.problem.d + 1) * calibration.scale

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the proof in one sentence."""
        return (
            "Proved: rows of length one move the second moment by a known nuclear norm without "
            "any row-norm bound, and the log density ratio of the noise is at most that over 2c."
        )
