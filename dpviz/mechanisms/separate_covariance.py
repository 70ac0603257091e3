"""SeparateCov: directions from a noisy matrix, variances from noisy eigenvalues."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import mu_of
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.arrays import fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, paper
from dpviz.sampling.ensembles import goe


@dataclass(frozen=True)
class SeparateCovariance(Mechanism):
    """Release V diag(l) V': V the eigenvectors of A + G, l the eigenvalues of A plus noise.

    Source
    ------
    Dong, Liang and Yi 2022, "Differentially private covariance revisited", SeparateCov. This
    version follows the mathematics, with two differences. Noise is isotropic (a GOE); in the paper
    it is i.i.d. on the upper triangle. The exact Gaussian profile meets the budget; the paper
    converts from zero-concentrated privacy.

    Notes
    -----
    The ordered eigenvalues move by at most the Frobenius norm of the difference, in l2 norm
    (Hoffman and Wielandt). So both queries have the sensitivity D_F and their noise composes
    exactly: mu^2 adds. A noisy matrix inflates its eigenvalues by noise of the order sqrt(d) t. In
    SeparateCov each of the d eigenvalues has independent noise of std t and no inflation. Sorting
    them again can only bring them closer to the truth (rearrangement).
    """

    share: float = number(
        0.5,
        0.01,
        0.99,
        label="Share for directions",
        help="Share of the budget (its squared mu) for the noisy matrix that gives directions.",
        examples=(0.8,),
    )

    info = MechanismInfo(
        label="Separate covariance",
        summary="Takes directions from one noisy matrix and variances from noisy eigenvalues.",
        paper="Dong, Liang and Yi 2022, SeparateCov (exact account by dpviz)",
        references=(
            paper(
                "Dong2022",
                "Dong, Wei and Liang, Yuting and Yi, Ke",
                "Differentially Private Covariance Revisited",
                "Advances in Neural Information Processing Systems 35",
                2022,
                eprint="2205.14324",
            ),
        ),
        url="https://arxiv.org/abs/2205.14324",
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=25,
        law=r"\hat A = \hat V \,\mathrm{diag}(\lambda + s z)\, \hat V',\quad"
        r" \hat V\ \text{of}\ A + G,\quad z \sim N(0, I)",
        calibration=r"t = D_F/(\mu \sqrt\theta),\quad s = D_F/(\mu \sqrt{1 - \theta}),\quad"
        r" \mu = 1/g(\varepsilon, \delta)",
        complexity="d^3",
        advice="Use it for the spectrum; gaussian nearly always keeps directions better.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return both scales; the sum of the squared mu meets the budget."""
        sensitivity, mu = frobenius(problem), mu_of(budget) * (1 - 1e-15)
        matrix = sensitivity / (mu * math.sqrt(self.share))
        values = sensitivity / (mu * math.sqrt(1 - self.share))
        # Only the eigenvectors of this noisy matrix are released, so its loss is not attained.
        first = GaussianPart(sensitivity, matrix, attained=False)
        parts = (first, GaussianPart(sensitivity, values))
        return Calibration(problem, budget, matrix, parts, {"values_std": values})

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the matrix composed of the noisy directions and the noisy eigenvalues."""
        problem = calibration.problem
        noisy = goe(draws, problem.d)
        noisy *= calibration.scale
        noisy += data.A
        directions = np.linalg.eigh(noisy)[1][..., ::-1]
        values = data.eigenvalues + calibration.values["values_std"] * draws.normal(problem.d)
        # Sorting uses only released values, and moves them no further from the true eigenvalues.
        values = np.sort(values, axis=1)[:, ::-1]
        matrices = (directions * values[:, None, :]) @ directions.transpose(0, 2, 1)
        matrices = (matrices + matrices.transpose(0, 2, 1)) / 2
        return Release(
            raw=matrices,
            components=fix_signs(directions[..., : problem.k]),
            matrix=matrices,
            eigenvalues=values,
        )

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            "Two Gaussian queries, the matrix and its eigenvalues, together use at most the "
            "claimed budget: one person moves each by at most a known Frobenius norm. Of the "
            "noisy matrix only the directions are released."
        )
