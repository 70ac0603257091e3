"""Spherical PCA: only the direction of a row counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, paper
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere
from dpviz.mechanisms._weighing import Weighing
from dpviz.sampling.ensembles import goe


@dataclass(frozen=True)
class Spherical(OfDirections, Weighing):
    """Release the top k of S + G, with S the mean of xx'/|x|^2 over the rows and G a GOE.

    Source
    ------
    Spherical principal components: Locantore et al. 1999; see `dpviz.mechanisms._clipped` for their
    estimates. The private form and its calibration are ours.

    Notes
    -----
    Replacing a row moves S by (uu' - vv')/n with unit u and v: at most sqrt(2)/n in Frobenius norm,
    attained by orthogonal rows, and 1/n under zero-out. The noise is exactly calibrated.
    """

    info = MechanismInfo(
        label="Spherical",
        summary="Scales every row to length one, then adds isotropic Gaussian noise.",
        paper="dpviz, after Locantore et al. 1999",
        references=(
            paper(
                "Locantore1999",
                "Locantore, N. and Marron, J. S. and Simpson, D. G. and Tripoli, N. and Zhang, J. "
                "T. and Cohen, K. L.",
                "Robust Principal Component Analysis for Functional Data",
                "",
                1999,
                journal="Test",
            ),
        ),
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        order=27,
        needs_rows=True,
        by_length=True,
        law=r"\hat S = \frac1n \sum_i \frac{x_i x_i'}{\|x_i\|^2} + G,\quad"
        r" G_{ii} \sim N(0, t^2),\ G_{ij} \sim N(0, t^2/2)",
        calibration=r"t = \sqrt2\, g(\varepsilon, \delta)/n\ (\text{replace}),\quad"
        r" g(\varepsilon, \delta)/n\ (\text{zero-out})",
        complexity="n d^2",
        advice="Use it for what directions share, whatever the lengths of rows. clipped_gaussian "
        "does the same where noise is large, and otherwise approaches the components of A.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least scale for unit rows, whatever the domain."""
        sensitivity = frobenius(on_the_sphere(problem))
        scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
        part = GaussianPart(sensitivity, scale, attained=False)  # Only the subspace is released.
        return Calibration(problem, budget, scale, (part,))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the top k of the noisy second moment of the unit rows."""
        problem = calibration.problem
        matrices = goe(draws, problem.d)
        matrices *= calibration.scale
        matrices += data.shortened(None).A
        return Release(matrices, self.of_matrices(matrices, calibration).components)

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Nw for unit w."""
        return calibration.scale

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            "Every row is scaled to length one before the second moment is taken, so one "
            "person moves it by a known amount without any row-norm bound, and the exact "
            "Gaussian profile sets the noise."
        )
