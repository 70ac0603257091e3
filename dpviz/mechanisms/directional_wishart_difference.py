"""The difference of two shaped Wisharts: pure privacy with a precision allocation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import mahalanobis_nuclear, mahalanobis_nuclear_attained
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import PurePart
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
from dpviz.sampling.ensembles import wishart
from dpviz.sampling.limits import FreeNoise, WishartDifferenceLaw


@dataclass(frozen=True)
class DirectionalWishartDifference(DirectionalMechanism):
    """Release A + W1 - W2 with independent W_d(d + 1, C), C = W diag(c) W'.

    Notes
    -----
    The proof is as in `wishart_difference`, with tr(C^-1 P)/2 in place of tr(P)/(2c): the log
    density ratio of neighbours is at most half the nuclear norm of C^-1/2 D C^-1/2. On the box, c_j
    = reach_j^2/(theta_j P) with a linear precision budget P. Private directions come from a
    `wishart_difference` release by default; pure epsilons add.
    """

    estimate: str = estimate_param("weighted")
    noise: str = noise_param()

    pure: ClassVar[bool] = True

    info = MechanismInfo(
        label="Directional Wishart difference",
        summary="Adds the difference of two Wisharts, smaller along directions given precision.",
        paper="dpviz, after Jiang et al. 2016 and Chanyaswad et al. 2018",
        family="directional",
        release="matrix",
        guarantee="pure",
        order=24,
        highlight=8,
        precision=("",),
        law=r"\hat A = A + W_1 - W_2,\quad W_i \sim W_d(d+1,\ C),\ C = W \mathrm{diag}(c)\, W'",
        calibration=r"\varepsilon = \max \lVert C^{-1/2}(vv'-ww')C^{-1/2} \rVert_* / (2n)",
        complexity="d^3",
        advice="Pure privacy on a box, when you know which features matter.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return 1/(2 epsilon), the scale of a query of nuclear sensitivity 1."""
        bought = self.purchase(problem, budget)
        epsilon = bought.epsilon_left
        values = {**bought.values, "epsilon_release": epsilon}
        calibration = Calibration(problem, budget, 1 / (2 * epsilon), (), values)
        spent, attained = epsilon, problem.domain.kind == "ball"
        if known_shape(problem):
            features = np.eye(problem.d)
            scales, _ = self.shape(calibration, features, None)
            spent = mahalanobis_nuclear(problem, features, scales) / 2
            attained = mahalanobis_nuclear_attained(problem, features, scales)
        # The Wishart density contains tr(C^-1 P)/2, so the loss is half of the nuclear norm.
        part = PurePart(
            spent,
            "log density ratio is at most half the nuclear norm",
            attained=attained,
        )
        parts = (*bought.parts, part)
        return Calibration(problem, budget, calibration.scale, parts, values)

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return W1 - W2 at unit scale."""
        noise = wishart(draws, problem.d, problem.d + 1)
        noise -= wishart(draws, problem.d, problem.d + 1)
        return noise

    def diagonal_std(self, calibration: Calibration) -> float:
        """Return sqrt(4 (d + 1)): two chi-squares with d + 1 degrees of freedom."""
        return 2 * math.sqrt(calibration.problem.d + 1)

    def shape(
        self, calibration: Calibration, basis: FloatArray, spectrum: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return c and theta, with c scaled until epsilon uses the remaining budget."""
        problem, epsilon = calibration.problem, calibration.values["epsilon_release"]
        # Replacing a row changes the matrix by twice the nuclear norm of setting the row to zero.
        sides = 1 if problem.relation is Relation.REPLACE else 2
        terms = 1 if problem.domain.kind == "box" else problem.d
        return exact_shape(
            problem,
            basis,
            spectrum,
            norm=mahalanobis_nuclear,
            target=2 * epsilon,
            precision=terms * sides * problem.n * epsilon / self.diagonal_std(calibration),
            isotropic=self.noise == "isotropic",
        )

    def free_noise(self, calibration: Calibration) -> FreeNoise | None:
        """Return the law of `wishart_difference` if all directions have the same noise, or None."""
        std = isotropic_std(self, calibration)
        if std is None:
            return None
        d = calibration.problem.d
        return WishartDifferenceLaw(d * std / self.diagonal_std(calibration), d)

    def account(self, problem: Problem, budget: Budget, spent: Spent) -> str:
        """Return the privacy loss and whether directions help in this setting."""
        bought = with_directions(self.purchase(problem, budget))
        return (
            f"The log density ratio is at most half a nuclear norm, so it spends "
            f"{claimed_against_spent(budget, spent)}{bought}; {where_it_pays(problem)}."
        )
