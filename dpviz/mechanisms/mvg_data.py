"""The matrix-variate Gaussian mechanism on the rows themselves, as published."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import rows_l2, rows_mahalanobis
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, claimed_against_spent
from dpviz.mechanisms._directional import (
    Directions,
    FollowsAllocation,
    known_shape,
    spectrum_shares,
    with_directions,
)
from dpviz.mechanisms._mvg import precision_of_theorem, tail_param
from dpviz.mechanisms._rows import RowNoise, debiased, moment_of, noisy_moments, noisy_rows


@dataclass(frozen=True)
class MvgData(FollowsAllocation):
    """Release X + E, with rows of E i.i.d. N(0, S); the covariance estimate subtracts S.

    Source
    ------
    Chanyaswad, Dytso, Poor and Mittal 2018, Algorithm 1 with Theorem 2: noise
    is directional over features and i.i.d. over rows. The ball, zero-out, the
    tight tail and the debiasing are ours.

    Notes
    -----
    gamma = R sqrt(n) and s2 = 2R (replace, as published for a box) or R (zero-out). P = B^2/n and
    the variance along direction i is 1/sqrt(theta_i P). The actual loss is exact: the release is a
    Gaussian mechanism whose mu is the largest distance of two rows in the metric of S.
    """

    tail: str = tail_param()

    info = MechanismInfo(
        label="MVG on the data",
        summary="Adds Gaussian noise to every row, with a precision per feature direction.",
        paper="Chanyaswad et al. 2018, Algorithm 1",
        url="https://arxiv.org/abs/1801.00823",
        family="directional",
        release="data",
        guarantee="approximate",
        order=20,
        law=r"\hat X = X + E,\quad E_{i\cdot} \sim N(0, \Sigma),\quad"
        r" \hat A = \hat X'\hat X/n - \Sigma",
        calibration=r"\sigma_i = 1/\sqrt{\theta_i P},\quad P = B^2/n",
        complexity="d^3",
        advice="For comparison with the paper; noise on rows costs a PCA far more than noise on A.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published precision; the scale is the std of uniform noise on a cell."""
        bought = self.purchase(problem, budget)
        # The query is X' itself, d x n, so its norm and sensitivity equal the table's.
        bound = precision_of_theorem(
            problem.d,
            problem.n,
            bought.rest,
            largest=problem.domain.radius * math.sqrt(problem.n),
            sensitivity=rows_l2(problem),
            theorem="2",
            tail=self.tail,
        )
        values = {**bought.values, "bound": bound, "precision": bound**2 / problem.n}
        # Equal shares theta_i = 1/d give the variance sqrt(d/P). The std of a cell is its root.
        scale = math.sqrt(math.sqrt(problem.d / values["precision"]))
        calibration = Calibration(problem, budget, scale, (), values)
        if known_shape(problem):
            variances, _ = self.shape(calibration, None)
            sensitivity = rows_mahalanobis(problem, np.eye(problem.d), variances)
            attained = True
        else:
            # In any basis, the sensitivity is at most the row's length over the noise's least std.
            shares = problem.allocation
            most = 1.0 if shares.needs_spectrum else float(shares.shares(problem.d).max())
            sensitivity = rows_l2(problem) * (most * values["precision"]) ** 0.25
            attained = problem.domain.kind == "ball" and not shares.needs_spectrum
        parts = (*bought.parts, GaussianPart(sensitivity, 1.0, attained))
        return Calibration(problem, budget, scale, parts, values)

    def shape(
        self, calibration: Calibration, spectrum: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the noise variances along the directions and theta, each (d,)."""
        problem, precision = calibration.problem, calibration.values["precision"]
        if problem.allocation.needs_spectrum and spectrum is not None:
            # In Problem 2 of the paper, the row directions together have the 1-norm budget B/n.
            total = calibration.values["bound"] / problem.n
            shares = spectrum_shares(problem.n * spectrum, total, power=2)
        else:
            shares = problem.allocation.shares(problem.d)
        return 1 / np.sqrt(shares * precision), shares

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the debiased covariance of noisy rows, sampled from its exact law given A."""
        problem = calibration.problem
        # Noise is sampled first, so that a change of the directions does not change the noise.
        noise = RowNoise.draw(draws, problem.n, problem.d)
        directions = self.directions(data, calibration, draws)
        variances = self._variances(calibration, directions)
        moments = noisy_moments(data, problem.n, noise, directions, variances)
        return debiased(moments, calibration, directions, variances)

    def _variances(self, calibration: Calibration, directions: Directions) -> FloatArray:
        """Return the noise variances along each repetition's directions, (m, d)."""
        spectra = [directions.spectrum(index) for index in range(directions.count)]
        return np.stack([self.shape(calibration, spectrum)[0] for spectrum in spectra])

    def release_rows(self, rows: FloatArray, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return X + E, in directions that are estimated privately if they need data."""
        noise = draws.normal(*rows.shape)
        directions = self.directions(moment_of(rows), calibration, draws)
        return noisy_rows(rows, noise, directions, self._variances(calibration, directions))

    def account(self, problem: Problem, budget: Budget, spent: Spent) -> str:
        """Return how the claim of the theorem compares with the exact privacy loss."""
        bought = with_directions(self.purchase(problem, budget))
        tail = " with the tight tail" if self.tail == "tight" else ""
        return (
            f"Theorem 2{tail} is valid but loose: by the exact account it spends "
            f"{claimed_against_spent(budget, spent)}{bought}."
        )
