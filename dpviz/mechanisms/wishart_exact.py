"""One-sided Wishart noise, calibrated by its exact privacy profile."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.profiles import RowProfile, WishartNoise, least_freedom, least_scale
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo
from dpviz.sampling.ensembles import wishart_from_uniforms
from dpviz.sampling.limits import FreeNoise, MarchenkoPasturLaw


@dataclass(frozen=True)
class WishartExact(Mechanism):
    """Release X'X + W with W ~ W_d(nu + d - 1, c R^2 I), no larger than the budget needs.

    Notes
    -----
    Two numbers define the noise, nu and c, and the exact profile fixes each number given the other.
    With c given (1 is Sheffet's choice) nu is the least that meets the budget. By default nu is 3 d
    + 60 + epsilon and c the least. Over all pairs on the profile this is within a tenth of the
    smallest upper edge c (sqrt(nu + d - 1) + sqrt(d))^2. c = 1 misses this edge by a factor that
    grows with epsilon: at c = 1 no epsilon reduces P(chi^2_nu < 1), the probability that a release
    reveals a row.

    Degrees of freedom are real: the Wishart density, Bartlett's factors and the profile's
    chi-square all exist for every real number above d - 1.

    Under replace the worst pair of rows is orthogonal, or a row against zero if epsilon and the
    scale are large (`dpviz.accounting.profiles` has the proof). The triangle inequality over two
    zero-out steps would need up to half as much scale again. The mean of the noise is not
    subtracted: this would move every eigenvalue alike and no eigenvector, and the release would no
    longer be positive semi-definite.
    """

    scale: float | None = number(
        None,
        1e-3,
        1e3,
        label="Scale of the noise",
        help="Eigenvalue of the noise's scale matrix, in squared row-norm bounds. Auto gives the "
        "smallest noise edge.",
        log=True,
        optional=True,
        slider=(0.01, 10),
        examples=(0.01,),
    )

    info = MechanismInfo(
        label="Wishart, exact",
        summary="Adds one Wishart matrix, so the result stays positive semi-definite.",
        paper="dpviz, after Sheffet 2019",
        family="wishart",
        release="matrix",
        guarantee="approximate",
        order=18,
        psd=True,
        law=r"\hat A = A + W,\quad W \sim W_d(\nu + d - 1,\ (c R^2/n) I)",
        calibration=(
            r"F_\nu(t + 1/c) - e^{\varepsilon} F_\nu(t) = \delta,\quad"
            r" t = \frac{1/c}{e^{(\varepsilon + 1/(2c))/(\nu/2 - 1)} - 1}\ (\text{zero-out})"
        ),
        complexity="d^3",
        advice="Use it if the released matrix itself must be positive semi-definite.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the degrees of freedom and the scale, of which one is solved for."""
        if self.scale is None:
            freedom = 3 * problem.d + 60 + budget.epsilon
            unit = least_scale(problem.relation, budget, freedom)
        else:
            unit = self.scale
            freedom = least_freedom(problem.relation, budget, unit)
        scale = unit * problem.domain.radius**2 / problem.n
        values = {
            "nu": freedom,
            "unit_scale": unit,
            "degrees_of_freedom": freedom + problem.d - 1,
        }
        return Calibration(problem, budget, scale, values=values)

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
        values = self.calibrate(problem, budget).values
        return WishartNoise(values["nu"], values["unit_scale"])

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the privacy loss from the exact likelihood ratio."""
        profile = self.row_profile(problem, budget)
        return profile.spent(problem, budget, "exact chi-square profile")

    def free_noise(self, calibration: Calibration) -> FreeNoise:
        """Return the Marchenko-Pastur law of W."""
        freedom = calibration.values["degrees_of_freedom"]
        return MarchenkoPasturLaw(freedom, calibration.scale, calibration.problem.d)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration, and the floor of delta if it binds."""
        assert spent is not None
        first = "The likelihood ratio of neighbours depends on one chi-square when a row is zeroed"
        if problem.relation is Relation.REPLACE:
            first += ", and on a 2 x 2 Wishart for the worst pair of rows, which is orthogonal"
        first += ", so delta is exact" if spent.exact else ", which bounds delta on this box"
        if spent.epsilon < budget.epsilon * (1 - 1e-6):
            first += (
                "; at this scale the probability that a release reveals a row sets the "
                f"noise, so the privacy loss is only epsilon {numeral(spent.epsilon, 3)}"
            )
        return first + "."
