"""Gaussian noise shaped by the precision allocation, with exact accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.accounting.accounting import Spent, greatest_mu_beside
from dpviz.accounting.sensitivity import mahalanobis, mahalanobis_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, claimed_against_spent
from dpviz.mechanisms._directional import (
    DirectionalMechanism,
    estimate_param,
    exact_shape,
    isotropic_std,
    known_shape,
    noise_param,
    where_it_pays,
    with_directions,
)
from dpviz.sampling.ensembles import goe
from dpviz.sampling.limits import FreeNoise, SemiCircle


@dataclass(frozen=True)
class DirectionalGaussian(DirectionalMechanism):
    """Release A + S^1/2 G S^1/2 with a GOE G and S = W diag(s) W'.

    Source
    ------
    The allocation is Chanyaswad et al. 2018's; the exact accounting is dpviz's
    (`dpviz.accounting.sensitivity.mahalanobis`), after Balle and Wang 2018.

    Notes
    -----
    The release is a Gaussian mechanism for the query S^-1/2 A S^-1/2. So (epsilon, delta) holds
    exactly when the profile allows mu = the Mahalanobis sensitivity of S. On the box s_j is
    proportional to reach_j^2/theta_j. S is scaled, for the directions in use, until mu is what the
    budget allows. Along the features this mu is exact on the box too (`dpviz.accounting.boxes`);
    along other directions it is an upper bound. By default private directions are eigenvectors of
    an exact Gaussian release. The two Gaussian parts compose exactly, and the release gets the
    remaining budget.
    """

    estimate: str = estimate_param("weighted")
    noise: str = noise_param()

    pure: ClassVar[bool] = False

    info = MechanismInfo(
        label="Directional Gaussian",
        summary="Adds Gaussian noise that is smaller along the directions given more precision.",
        paper="dpviz, after Chanyaswad et al. 2018",
        url="https://arxiv.org/abs/1801.00823",
        family="directional",
        release="matrix",
        guarantee="approximate",
        order=23,
        highlight=7,
        precision=("", "noise=isotropic"),
        law=r"\hat A = A + \Sigma^{1/2} G\, \Sigma^{1/2},\quad G \sim \mathrm{GOE}",
        calibration=r"\mu = \max \lVert \Sigma^{-1/2}(vv'-ww')\Sigma^{-1/2} \rVert_F / n"
        r" = 1/g(\varepsilon, \delta)",
        complexity="d^3",
        advice="Use it on a box if you know which features matter; on a ball gaussian is better.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return 1/mu, the noise of a query of sensitivity 1, after the directions' budget."""
        bought = self.purchase(problem, budget)
        # Squares of mu add up exactly, so the release gets what the directions leave.
        mu = greatest_mu_beside(bought.parts, budget)
        values = {**bought.values, "mu": mu}
        calibration = Calibration(problem, budget, math.nextafter(1 / mu, math.inf), (), values)
        # Private directions may be any basis. On a box, the sensitivity for any basis is a bound.
        part = GaussianPart(1.0, calibration.scale, attained=problem.domain.kind == "ball")
        if known_shape(problem):
            features = np.eye(problem.d)
            variances, _ = self.shape(calibration, features, None)
            exact = mahalanobis_attained(problem, features, variances)
            part = GaussianPart(mahalanobis(problem, features, variances), 1.0, exact)
        parts = (*bought.parts, part)
        return Calibration(problem, budget, calibration.scale, parts, values)

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return a GOE matrix: diagonal variance 1, off-diagonal 1/2."""
        return goe(draws, problem.d)

    def shape(
        self, calibration: Calibration, basis: FloatArray, spectrum: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return s and theta, with s scaled until mu uses the remaining budget."""
        problem, mu = calibration.problem, calibration.values["mu"]
        root = math.sqrt(2) if problem.relation is Relation.REPLACE else 1.0
        # On a box, all directions together share one budget. On a ball, each direction has its own.
        terms = 1 if problem.domain.kind == "box" else problem.d
        return exact_shape(
            problem,
            basis,
            spectrum,
            norm=mahalanobis,
            target=mu,
            precision=terms * problem.n * mu / root,
            isotropic=self.noise == "isotropic",
        )

    def free_noise(self, calibration: Calibration) -> FreeNoise | None:
        """Return a semicircle if all directions have the same noise, or None."""
        std = isotropic_std(self, calibration)
        if std is None:
            return None
        return SemiCircle(math.sqrt(0.5) * std, calibration.problem.d, diagonal=2.0)

    def account(self, problem: Problem, budget: Budget, spent: Spent) -> str:
        """Return the exact privacy loss and whether directions help in this setting."""
        bought = with_directions(self.purchase(problem, budget))
        return (
            f"By the exact account it spends {claimed_against_spent(budget, spent)}{bought}; "
            f"{where_it_pays(problem)}."
        )
