"""Sheffet's additive Wishart noise, as published."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.profiles import RowProfile, WishartNoise
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, claimed_against_spent, paper
from dpviz.sampling.ensembles import wishart_from_uniforms
from dpviz.sampling.limits import FreeNoise, MarchenkoPasturLaw


@dataclass(frozen=True)
class WishartApprox(Mechanism):
    """One Wishart matrix with many degrees of freedom, X'X + W_d(k, R^2 I).

    Source
    ------
    Sheffet 2015, 2019, the additive Wishart mechanism. The range (epsilon below 1, delta below 1/e)
    and the constant 14 are ours, and proved below for zero-out; their privacy loss is exact.

    Notes
    -----
    The actual loss is exact under both relations (`dpviz.accounting.profiles`). Subtracting k R^2 I
    would move every eigenvalue alike and no eigenvector. So the release stays as it is, positive
    semi-definite.

    The constant. Let nu = m - d + 1, which is at least 28 ln(4/delta)/epsilon^2, and T ~ chi^2_nu.
    By the density ratio of `dpviz.accounting.profiles.WishartNoise`, and ln(1 + y) between y/(1 +
    y) and y, the loss is at most (nu - 1 - T)/(2 (T - 1)) without a row and (T + 3 - nu)/(2 (T +
    1)) with it. So it is at most epsilon if T - 1 >= (nu - 2)/(1 + 2 epsilon), and if T + 1 <= (nu
    - 2)/(1 - 2 epsilon) or epsilon >= 1/2. With x = ln(1/delta), T lies above nu - 2 sqrt(nu x),
    and below nu + 2 sqrt(nu x) + 2 x, except with probability delta each (Laurent and Massart 2000,
    Lemma 1). As sqrt(x/nu) <= epsilon/sqrt(28), both are within those limits for epsilon < 1:
    2/sqrt(28) = .38 is below 2/(1 + 2 epsilon) >= .66.
    """

    info = MechanismInfo(
        label="Wishart, Sheffet",
        summary="Adds one Wishart matrix with enough degrees of freedom to hide its moving edge.",
        paper="Sheffet 2019, additive Wishart noise (our constants, proved here)",
        references=(
            paper(
                "Sheffet2019",
                "Sheffet, Or",
                "Old Techniques in Differentially Private Linear Regression",
                "International Conference on Algorithmic Learning Theory",
                2019,
            ),
        ),
        url="https://proceedings.mlr.press/v98/sheffet19a.html",
        family="wishart",
        release="matrix",
        guarantee="approximate",
        order=17,
        psd=True,
        redraws=False,
        law=r"\hat A = A + W,\quad W \sim W_d(m,\ (R^2/n) I)",
        calibration=r"m = \lfloor d + \tfrac{14}{\varepsilon^2}\, 2 \ln(4/\delta) \rfloor,\quad"
        r" \varepsilon < 1",
        complexity="d^3",
        advice="Use wishart_exact: the same law with a tenth of the degrees of freedom or fewer.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published degrees of freedom, and the scale R^2/n."""
        # The degrees of freedom are d + (14/epsilon^2) 2 ln(4/delta), rounded down.
        log_term = math.log(4) - math.log(budget.delta)
        freedom = math.floor(problem.d + 14 / budget.epsilon**2 * 2 * log_term)
        scale = problem.domain.radius**2 / problem.n
        values = {"degrees_of_freedom": float(freedom)}
        return Calibration(problem, budget, scale, values=values)

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return the published range of epsilon and delta if the budget is outside it, or None."""
        if budget.epsilon >= 1:
            return f"it is stated for epsilon below 1; got {numeral(budget.epsilon, 6)}"
        if budget.delta >= 1 / math.e:
            return f"it is stated for delta below 1/e = 0.367; got {numeral(budget.delta, 6)}"
        return None

    def promised_elsewhere(self, problem: Problem, budget: Budget) -> str | None:
        """Return the published range or neighbours if the setting is outside them, or None."""
        if self.limits(problem, budget) is not None:
            return "for epsilon below 1 and delta below 1/e"
        return "for zero-out neighbours" if problem.relation is Relation.REPLACE else None

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return A + W, smooth in epsilon on one random stream."""
        problem = calibration.problem
        freedom = calibration.values["degrees_of_freedom"]
        # Noise is computed from uniform numbers, so that it changes smoothly as epsilon changes.
        matrices = wishart_from_uniforms(draws, problem.d, freedom)
        matrices *= calibration.scale
        matrices += data.A
        return Release.of_matrices(matrices, problem.k)

    def row_profile(self, problem: Problem, budget: Budget) -> RowProfile:
        """Return the profile of the noise for this budget."""
        freedom = self.calibrate(problem, budget).values["degrees_of_freedom"]
        # Along one row, the Wishart noise has m - d + 1 degrees of freedom.
        return WishartNoise(max(2.0, freedom - problem.d + 1))

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the privacy loss from the exact likelihood ratio."""
        profile = self.row_profile(problem, budget)
        return profile.spent(problem, budget, "exact chi-square profile")

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the Marchenko-Pastur law of W."""
        freedom = calibration.values["degrees_of_freedom"]
        return MarchenkoPasturLaw(freedom, calibration.scale, calibration.problem.d)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the privacy loss, or the reason why the mechanism cannot run."""
        assert spent is not None
        account = f"the likelihood ratio gives {claimed_against_spent(budget, spent)}"
        if self.limits(problem, budget) is not None:
            return (
                "Not run here, as it is stated for epsilon below 1 and delta below 1/e; "
                f"with the same formula anyway, {account}."
            )
        return f"Stated for zero-out neighbours and epsilon below 1; {account}."
