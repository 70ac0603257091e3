"""Gaussian noise on the rows themselves, exactly calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import rows_l2
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo
from dpviz.mechanisms._directional import Directions
from dpviz.mechanisms._rows import RowNoise, debiased, noisy_moments, noisy_rows


@dataclass(frozen=True)
class DataGaussian(Mechanism):
    """Release X + E with i.i.d. N(0, s^2) entries; the covariance estimate subtracts s^2 I.

    Source
    ------
    Dwork and Roth 2014 for noise on the table; Balle and Wang 2018 for the calibration. The release
    is sampled from the second moment alone by the exact law given A.

    Notes
    -----
    A row moves the table by at most 2 R (replace, by opposite rows) or R (zero-out) in l2 norm
    (`dpviz.accounting.sensitivity.rows_l2`). So the release is a Gaussian mechanism with mu = this
    norm over s. Everything computed from the noisy table is post-processing.
    """

    info = MechanismInfo(
        label="Gaussian on the data",
        summary="Adds Gaussian noise to every cell and takes the PCA of the noisy table.",
        paper="identity query, after Balle and Wang 2018",
        url="https://arxiv.org/abs/1805.06530",
        family="data",
        release="data",
        guarantee="approximate",
        order=21,
        law=r"\hat X = X + E,\ E_{ij} \sim N(0, s^2),\quad \hat A = \hat X'\hat X/n - s^2 I",
        calibration=r"s = D_2\, g(\varepsilon, \delta),\quad D_2 = 2R\ (\text{replace}),\ R\ "
        r"(\text{zero-out})",
        complexity="d^3",
        advice="Use it only if you need the noisy table itself; noise on A costs far less.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least std of a cell that meets the budget exactly."""
        sensitivity = rows_l2(problem)
        scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
        return Calibration(problem, budget, scale, (GaussianPart(sensitivity, scale),))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the debiased covariance of noisy rows, sampled from its exact law given A."""
        problem = calibration.problem
        noise = RowNoise.draw(draws, problem.n, problem.d)
        # The noise has the same known variance in all directions, so the estimate subtracts it.
        variances = np.full((1, problem.d), calibration.scale**2)
        moments = noisy_moments(data, problem.n, noise, Directions(), variances)
        return debiased(moments, calibration, Directions(), variances)

    def release_rows(self, rows: FloatArray, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return the noisy table, X + E."""
        noise = draws.normal(*rows.shape)
        variances = np.full((1, rows.shape[1]), calibration.scale**2)
        return noisy_rows(rows, noise, Directions(), variances)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            "The exact privacy profile sets the noise for the distance between two rows, so the "
            "privacy loss is exactly as claimed. Every row carries this noise for every n."
        )
