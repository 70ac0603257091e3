"""Laplace noise on the rows themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import rows_l1
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import LaplacePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, paper
from dpviz.mechanisms._directional import Directions
from dpviz.mechanisms._rows import debiased, laplace_moments, laplace_rows


@dataclass(frozen=True)
class DataLaplace(Mechanism):
    """Release X + E with i.i.d. Lap(b) entries; the covariance estimate subtracts 2 b^2 I.

    Source
    ------
    Dwork, McSherry, Nissim and Smith 2006, the Laplace mechanism on the
    identity query.

    Notes
    -----
    A row moves the table in l1 norm by at most `dpviz.accounting.sensitivity.rows_l1`: on the ball
    2 sqrt(d) R (replace) or sqrt(d) R (zero-out). The log density ratio of the noise is at most
    this norm over b. Everything computed from the noisy table is post-processing.

    Laplace noise is not rotation invariant, so the law of the noisy moment
    depends on the rows and not only on X'X.
    """

    info = MechanismInfo(
        label="Laplace on the data",
        summary="Adds Laplace noise to every cell and takes the PCA of the noisy table.",
        paper="Dwork et al. 2006, identity query",
        references=(
            paper(
                "Dwork2006",
                "Dwork, Cynthia and McSherry, Frank and Nissim, Kobbi and Smith, Adam",
                "Calibrating Noise to Sensitivity in Private Data Analysis",
                "Theory of Cryptography Conference",
                2006,
            ),
        ),
        family="data",
        release="data",
        guarantee="pure",
        order=22,
        needs_rows=True,
        passes=1,
        law=r"\hat X = X + E,\ E_{ij} \sim \mathrm{Lap}(b),\quad \hat A = \hat X'\hat X/n"
        r" - 2 b^2 I",
        calibration=r"b = D_1/\varepsilon,\quad D_1 = 2R\sqrt d\ (\text{replace}),\ R\sqrt d\ "
        r"(\text{zero-out})",
        complexity="n d^2",
        advice="Use it only if you need the noisy table itself; noise on A costs far less.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return b = l1 sensitivity of a row/epsilon, rounded up."""
        sensitivity = rows_l1(problem)
        scale = math.nextafter(sensitivity / budget.epsilon, math.inf)
        return Calibration(problem, budget, scale, (LaplacePart(sensitivity, scale),))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the debiased covariance of the noisy rows."""
        b = calibration.scale
        moments = laplace_moments(data, b, draws)
        # Laplace noise of scale b has the variance 2 b^2.
        variances = np.full((1, data.d), 2 * b**2)
        return debiased(moments, calibration, Directions(), variances)

    def release_rows(self, rows: FloatArray, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return X + E, the table whose moment `release_many` gives on the same stream."""
        noise = laplace_rows(rows, draws)
        noise *= calibration.scale
        noise += rows
        return noise

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            "The Laplace mechanism on the table itself: the scale is the l1 distance "
            "between two rows over epsilon. Every row carries this noise for every n."
        )
