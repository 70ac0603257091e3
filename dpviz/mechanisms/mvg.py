"""The matrix-variate Gaussian mechanism on the covariance, as published."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import mahalanobis, mahalanobis_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.params import choice
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, claimed_against_spent, paper
from dpviz.mechanisms._directional import (
    DirectionalMechanism,
    any_basis_mahalanobis,
    estimate_param,
    isotropic_std,
    known_shape,
    spectrum_shares,
    with_directions,
)
from dpviz.mechanisms._mvg import covariance_sensitivity, precision_of_theorem, tail_param
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class Mvg(DirectionalMechanism):
    """Release A + B N B': N i.i.d. standard normal, B B' = S on both rows and columns.

    Source
    ------
    Chanyaswad, Dytso, Poor and Mittal 2018, Algorithm 2 with Theorem 2 or 3;
    max-PNR from Theorem 7. The ball, zero-out and the tight tail are ours.

    Notes
    -----
    The directions' variances are sigma_i = 1/sqrt(theta_i P), with P the theorem's bound B. The
    released matrix is not symmetric. Its symmetric part, S^1/2 GOE S^1/2, is independent of the
    rest, so components lose nothing. The actual loss is exact: the release is a Gaussian mechanism
    whose mu is the Mahalanobis sensitivity of S. For private directions, epsilon and delta are
    split as in the paper. Theorem 2's alpha contains gamma^2 without a factor 1/n, so its noise has
    a floor that more rows do not lower.
    """

    theorem: str = choice(
        "2",
        {"2": "Theorem 2, any query", "3": "Theorem 3, positive semi-definite query"},
        label="Theorem",
        help="Which sufficient condition of the paper sets the precision budget.",
        examples=("3",),
    )
    tail: str = tail_param()
    estimate: str = estimate_param("plain")

    pure: ClassVar[bool] = False

    info = MechanismInfo(
        label="MVG",
        summary="Adds matrix-variate Gaussian noise whose precision the user allocates.",
        paper="Chanyaswad et al. 2018, Algorithm 2",
        references=(
            paper(
                "Chanyaswad2018",
                "Chanyaswad, Thee and Dytso, Alex and Poor, H. Vincent and Mittal, Prateek",
                "MVG Mechanism: Differential Privacy under Matrix-Valued Query",
                "ACM Conference on Computer and Communications Security",
                2018,
                eprint="1801.00823",
            ),
        ),
        url="https://arxiv.org/abs/1801.00823",
        family="directional",
        release="matrix",
        guarantee="approximate",
        order=19,
        precision=("theorem=2", "theorem=3", "theorem=3,tail=tight"),
        law=r"\hat A = A + \Sigma^{1/2} N\, \Sigma^{1/2},\quad N_{ij} \sim N(0, 1)",
        calibration=r"\sigma_i = 1/\sqrt{\theta_i P},\quad P = \left(-\beta + "
        r"\sqrt{\beta^2 + 8\alpha\varepsilon}\right)^2 / (4\alpha^2)",
        complexity="d^3",
        advice="For comparison with the paper; directional_gaussian uses the whole budget.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published precision; the scale is the std of uniform diagonal noise."""
        bought = self.purchase(problem, budget)
        precision = precision_of_theorem(
            problem.d,
            problem.d,
            bought.rest,
            largest=problem.domain.radius**2,
            sensitivity=covariance_sensitivity(problem),
            theorem=self.theorem,
            tail=self.tail,
        )
        # In Algorithm 2 the theorem gets the epsilon and delta that the directions leave.
        values = {**bought.values, "precision": precision}
        # Equal shares theta_i = 1/d give every direction the std sqrt(d/P).
        scale = math.sqrt(problem.d / precision)
        calibration = Calibration(problem, budget, scale, (), values)
        if known_shape(problem):
            variances, _ = self.shape(calibration, np.eye(problem.d), None)
            sensitivity = mahalanobis(problem, np.eye(problem.d), variances)
            attained = mahalanobis_attained(problem, np.eye(problem.d), variances)
        elif problem.allocation.needs_spectrum:
            # For any shares, the squares of the two largest values of 1/sigma_i sum to at most P.
            sensitivity = problem.domain.radius**2 * math.sqrt(precision) / problem.n
            attained = False
        else:
            variances, _ = self.shape(calibration, np.eye(problem.d), None)
            sensitivity = any_basis_mahalanobis(problem, variances)
            attained = problem.domain.kind == "ball"
        # The sensitivity is measured in units of the noise along each direction, so the std is 1.
        parts = (*bought.parts, GaussianPart(sensitivity, 1.0, attained))
        return Calibration(problem, budget, scale, parts, values)

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return i.i.d. standard normals: the noise is not symmetric."""
        return draws.normal(problem.d, problem.d)

    def shape(
        self, calibration: Calibration, basis: FloatArray, spectrum: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return sigma_i = 1/sqrt(theta_i P) and theta."""
        problem, precision = calibration.problem, calibration.values["precision"]
        if problem.allocation.needs_spectrum and spectrum is not None:
            # Theorem 7 applies to X'X = n A. The power is 2, because the sum of 1/sigma_i^2 is P.
            shares = spectrum_shares(problem.n * spectrum, precision, power=2)
        else:
            shares = problem.allocation.shares(problem.d)
        return 1 / np.sqrt(shares * precision), shares

    def free_noise(self, calibration: Calibration) -> FreeNoise | None:
        """Return a semicircle if all directions have the same noise, or None."""
        std = isotropic_std(self, calibration)
        if std is None:
            return None
        return SemiCircle(math.sqrt(0.5) * std, calibration.problem.d, diagonal=2.0)

    def account(self, problem: Problem, budget: Budget, spent: Spent) -> str:
        """Return a comparison of the theorem's claim with the exact privacy loss."""
        bought = with_directions(self.purchase(problem, budget))
        stated = f"Theorem {self.theorem}"
        if self.tail == "tight":
            stated += " with the tight tail"
        return (
            f"{stated} is valid but loose: by the exact account it spends "
            f"{claimed_against_spent(budget, spent)}{bought}."
        )
