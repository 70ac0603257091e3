"""Eigenvector sampling: exact Bingham directions, one after the other, with deflation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import nuclear, spectral
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import choice, number
from dpviz.core.parts import LaplacePart, Part, PurePart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo, paper
from dpviz.mechanisms._ranged import Ranged, account_choice
from dpviz.sampling.deflation import Complements, bingham_each


@dataclass(frozen=True)
class EigenvectorSampling(Ranged):
    """Sample k orthonormal directions, each by an exponential mechanism on the complement.

    Source
    ------
    Amin, Dick, Kulesza, Munoz Medina and Vassilvitskii 2019. The constant of
    the concentration is ours, and proved below; ``concentration=published`` is n epsilon_i/4.

    Notes
    -----
    Direction i has density proportional to exp(b u'C u) on the unit sphere of the complement of
    earlier directions, with C the restriction of A. The complement is then public, and one row
    moves u'Cu by at most R^2/n in any complement. So each direction uses 2 b R^2/n under replace.
    Under zero-out every score moves the same way, and each direction uses half. Thus b = n
    epsilon_i/(2 R^2) and n epsilon_i/R^2 are enough; the published quarter uses half and a quarter
    of its claim. Sampling is exact (`dpviz.sampling.deflation`).

    With ``account=range`` the directions are accounted for by their bounded range at the budget's
    delta, if that allows more than a k-th of epsilon each.

    Eigenvalues, if released, are all d of A with Laplace noise. Lidskii's inequality: they move in
    l1 norm by at most the nuclear norm of the difference. Noisy ones are sorted.
    """

    concentration: str = choice(
        "tight",
        {"tight": "as the relation allows", "published": "n epsilon / 4, as published"},
        label="Concentration",
        help="How strongly the sampler prefers directions of large variance.",
        examples=("published",),
    )
    values_share: float = number(
        0.0,
        0.0,
        0.9,
        label="Share for eigenvalues",
        help="Share of epsilon used for noisy eigenvalues; 0 releases directions only.",
        examples=(0.5,),
    )
    account: str = account_choice()

    info = MechanismInfo(
        label="Eigenvector sampling",
        summary="Draws one direction after the other, each with odds exponential in its variance.",
        paper="Amin et al. 2019, covariance estimation (our constant, proved here)",
        references=(
            paper(
                "Amin2019",
                "Amin, Kareem and Dick, Travis and Kulesza, Alex and Mu{\\~n}oz Medina, "
                "Andr{\\'e}s and Vassilvitskii, Sergei",
                "Differentially Private Covariance Estimation",
                "Advances in Neural Information Processing Systems 32",
                2019,
            ),
        ),
        url="https://papers.nips.cc/paper/2019/hash/4158f6d19559955bae372bb00f6204e4-Abstract.html",
        family="subspace",
        release="subspace",
        guarantee="pure",
        order=15,
        redraws=True,
        timed=True,
        law=r"p(u_i) \propto \exp(\beta\, u_i' A u_i),\quad u_i \perp u_1, \dots, u_{i-1}",
        calibration=(
            r"\beta = n \varepsilon / (2 k R^2)\ (\text{replace}),\quad n \varepsilon / (k R^2)"
            r"\ (\text{zero-out})"
        ),
        complexity="k d^3",
        advice="Pure privacy for several directions, drawn exactly; ppca for one.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the concentration of each direction, and the scale of the eigenvalues' noise."""
        reach = spectral(problem)
        sides = 2 if problem.relation is Relation.REPLACE else 1
        ranged = self.better(budget, problem.k)
        each = budget.epsilon * (1 - self.values_share) / problem.k
        if ranged:
            each = self.epsilon_each(budget, 1 - self.values_share, problem.k)
        # The authors divide by 4. Our proof needs 2 under replace and 1 under zero-out.
        divisor = 4 if self.concentration == "published" else sides
        # The accounting adds k equal parts up, so the factor leaves room for its rounding.
        concentration = each / (divisor * reach) * (1 - 1e-14)
        width = concentration * sides * reach
        part = PurePart(width, "exponential mechanism, drawn exactly", width=width)
        parts: tuple[Part, ...] = (part,) * problem.k
        values = {"epsilon_each": each}
        if self.values_share > 0:
            # By Lidskii, all eigenvalues move in l1 norm by at most the change's nuclear norm.
            spread = nuclear(problem)
            # For a loss of epsilon e, Laplace noise has rho at most e^2/2. A sampled direction has
            # rho e^2/8, which is a quarter of this.
            epsilon_of_values = budget.epsilon * self.values_share
            if ranged:
                epsilon_of_values = self.epsilon_each(budget, self.values_share, 1) / 2
            noise = spread / epsilon_of_values * (1 + 1e-14)
            parts += (LaplacePart(spread, noise),)
            values["values_scale"] = noise
        return Calibration(problem, budget, concentration, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the directions in sampling order.

        Noisy eigenvalues, if requested, are the last column of the raw release, because no released
        matrix has them.
        """
        problem = calibration.problem
        complements = Complements.whole(
            calibration.scale * data.eigenvalues, data.eigenvectors, draws.size
        )
        frames = np.empty((draws.size, problem.d, problem.k))
        for column in range(problem.k):
            x = bingham_each(complements.values, draws)
            frames[:, :, column] = complements.lift(x)
            if column + 1 < problem.k:
                complements = complements.without(x)
        if self.values_share == 0:
            return Release.of_frames(frames)
        values = _noisy_values(data, calibration.values["values_scale"], draws)
        raw = np.concatenate([frames, values[:, :, None]], axis=2)
        return Release(raw=raw, components=fix_signs(frames), variances=values)

    @property
    def releases_variances(self) -> bool:
        """Whether a share of the budget goes to eigenvalues."""
        return self.values_share > 0

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the loss of each direction."""
        assert spent is not None
        cost = "2/n" if problem.relation is Relation.REPLACE else "1/n"
        first = (
            "Each direction is an exponential mechanism on the public complement of those before "
            f"it, drawn exactly, and costs {cost} times its concentration"
        )
        if self.concentration == "published":
            return f"{first}: a quarter of n epsilon is more cautious than necessary."
        if spent.delta > 0:
            return (
                f"{first}; by their bounded range the {problem.k} of them spend epsilon "
                f"{numeral(spent.epsilon, 3)} at delta {numeral(spent.delta)}."
            )
        return f"{first}; the {problem.k} of them add up to epsilon."


def _noisy_values(data: SecondMoment, scale: float, draws: Draws) -> FloatArray:
    """Return A's eigenvalues plus Laplace noise, descending, shape (size, d)."""
    # The difference of two standard exponential numbers has the Laplace law of scale 1.
    pair = draws.exponential(2, data.d)
    noisy = data.eigenvalues + scale * (pair[:, 0] - pair[:, 1])
    return np.ascontiguousarray(np.sort(noisy, axis=1)[:, ::-1])
