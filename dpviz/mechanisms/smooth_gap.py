"""Noise that follows the eigengap: propose a gap, test it, release the projection."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import delta_of, epsilon_of, mu_of
from dpviz.accounting.sensitivity import frobenius, spectral
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.params import number
from dpviz.core.parts import ApproximatePart, GaussianPart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo, paper
from dpviz.sampling.ensembles import goe

_TEST_DELTA = 0.1  # Share of delta for the case that the gap is overestimated.
_PASSING_EDGE = 0.25  # Largest eigenvalue of the projection's noise at which the test passes.


@dataclass(frozen=True)
class SmoothGap(Mechanism):
    """Release the top k of P + G: P projects on the top k of A, a tested gap sets the noise.

    Source
    ------
    Propose-test-release: Dwork and Lei 2009; for the gap of a PCA, Dwork, Talwar, Thakurta and
    Zhang 2014. The constants and the accounting below are dpviz's.

    Notes
    -----
    Units are R^2. Let gap = lambda_k - lambda_k+1, D = vv' - ww' (replace) or vv' (zero-out) and
    A' = A + D/n.

    The gap. lambda_k falls and lambda_k+1 rises by at most 1/n each; under zero-out all eigenvalues
    move one way. So the gap moves by at most 2/n, or 1/n under zero-out. The gap is released with
    Gaussian noise of std s and lowered by s z, with z the normal quantile of delta_1. The lowered
    gap c exceeds the true gap with probability delta_1.

    The projection. Let P' belong to A' and x = ||(I - P')P||_F. If gap >= c, the eigenvalues of A
    on P and of A' off P' are separated by e >= c - 1/n (Weyl). So x <= ||(I - P')DP||_F/(n e)
    (Davis and Kahan). The numerator is at most ||(I - P)DP||_F + ||P - P'||_2 ||D||_F. The first
    term of the numerator is at most a = |v_P||v_off| + |w_P||w_off| <= 1/2 + 1/2 (replace) or 1/2
    (zero-out). In the second, b = ||D||_F <= sqrt(2) or 1, and ||P - P'||_2 is at most x and at
    most 1/(n e). Hence, with N = n e,

        ||P - P'||_F = sqrt(2) x <= sqrt(2) min(a/(N - b) if N > b, (a + b/N)/N, sqrt(min(k, d-k))).

    The bound is symmetric in the two tables, so it holds for every c that does not exceed the
    larger of both gaps. On that set of c the release is two Gaussian mechanisms that compose
    exactly. Outside it, with probability at most delta_1, nothing is guaranteed. So delta = delta_1
    + the Gaussian profile, at every epsilon from 0 on. At 0 this bounds the total variation:
    delta_1 + 2 Phi(mu/2) - 1 = delta_1 + erf(mu/sqrt 8).

    The test passes if the noise on P has an edge below a quarter of the gap of P. If it fails, the
    same budget adds noise to A (the exact Gaussian mechanism). The outcome depends only on c.

    The gain from adapting to the eigengap. To first order in 1/n, noise on A also turns the
    subspace by noise over gap. Under replace (D_F = sqrt(2), 2a = 2) both routes give the same.
    Under zero-out (D_F = 1, 2a = 1) the projection needs 1/sqrt(2) of the noise. The test costs
    extra.
    """

    share: float = number(
        0.2,
        0.01,
        0.9,
        label="Share for the gap",
        help="Share of the budget (its squared mu) that is used to test the eigengap.",
        examples=(0.5,),
    )

    info = MechanismInfo(
        label="Gap test",
        summary="Tests the eigengap privately and adds noise to the projection in proportion.",
        paper="dpviz, after Dwork and Lei 2009 and Dwork et al. 2014",
        references=(
            paper(
                "Dwork2009",
                "Dwork, Cynthia and Lei, Jing",
                "Differential Privacy and Robust Statistics",
                "ACM Symposium on Theory of Computing",
                2009,
            ),
        ),
        family="subspace",
        release="subspace",
        guarantee="approximate",
        order=28,
        redraws=True,
        law=r"\hat P = V_k V_k' + \sigma(c)\, G,\quad c = \lambda_k - \lambda_{k+1} + s (z_1 - z),"
        r"\quad \text{else}\ A + G",
        calibration=r"\sigma(c) = \frac{\sqrt2\, a}{n c\, \mu_2} (1 + O(1/nc)),\quad"
        r" a = 1\ (\text{replace}),\ 1/2\ (\text{zero-out})",
        complexity="d^3",
        advice="For teaching: in our measurements gaussian was not worse.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the fallback's scale, and the parameters of the gap test."""
        failing = _TEST_DELTA * budget.delta
        mu = mu_of(Budget(budget.epsilon, budget.delta - failing)) * (1 - 1e-15)
        # The mu^2 of Gaussian steps add up, so the gap test and the release divide the total.
        first, second = mu * math.sqrt(self.share), mu * math.sqrt(1 - self.share)
        sides = 2 if problem.relation is Relation.REPLACE else 1
        gap_reach = sides * spectral(problem)
        std = gap_reach / first
        scale = frobenius(problem) / second
        values = {
            "gap_std": std,
            "gap_margin": -std * float(ndtri(failing)),
            "gap_failing": failing,
            "mu_of_release": second,
        }
        parts = (
            ApproximatePart(0.0, failing, "gap below its tested bound"),
            GaussianPart(gap_reach, std),
            GaussianPart(frobenius(problem), scale),
        )
        return Calibration(problem, budget, scale, parts, values)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the exact Gaussian profile at the delta that remains after the test."""
        calibration = self.calibrate(problem, budget)
        failing = calibration.values["gap_failing"]
        mu = math.hypot(*(p.mu for p in calibration.parts if isinstance(p, GaussianPart)))
        return Spent(
            epsilon=epsilon_of(budget.delta - failing, mu),
            delta=budget.delta,
            exact=False,
            source="exact Gaussian profile of test and release, plus the chance of a wrong test",
            delta_at_epsilon=failing + delta_of(budget.epsilon, mu),
            total_variation=min(1.0, failing + math.erf(mu / math.sqrt(8))),
        )

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the top k of the noisy projection if the test passes, else of noisy A."""
        problem, values = calibration.problem, calibration.values
        gap = data.eigenvalues[problem.k - 1] - data.eigenvalues[problem.k]
        noise = values["gap_std"] * draws.normal(1)[:, 0]
        # With probability delta_1 this bound exceeds the true gap. The accounting includes this.
        lowered = gap + noise - values["gap_margin"]
        reach = projection_reach(problem, lowered)
        std = reach / values["mu_of_release"]
        # The choice uses only the noisy gap, which is released, so it has no further privacy loss.
        passed = std * math.sqrt(2 * problem.d) < _PASSING_EDGE
        top = data.eigenvectors[:, : problem.k]
        matrices = goe(draws, problem.d)
        matrices *= np.where(passed, std, calibration.scale)[:, None, None]
        matrices += np.where(passed[:, None, None], top @ top.T, data.A)
        return Release(raw=matrices, components=Release.of_matrices(matrices, problem.k).components)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            "The gap and the projection are two Gaussian queries, whose exact profile uses nine "
            "tenths of delta. One tenth covers the case that the measured gap is too large."
        )


def projection_reach(problem: Problem, gap: FloatArray) -> FloatArray:
    """Return how far one person can move the top-k projection, in Frobenius norm.

    Parameters
    ----------
    problem : Problem
    gap : ndarray of shape (size,)
        Lower bounds of lambda_k - lambda_k+1 of either table, in units of A.

    Returns
    -------
    ndarray of shape (size,)
        At most sqrt(2 min(k, d - k)), which needs no gap. Proof: `SmoothGap`.
    """
    replace = problem.relation is Relation.REPLACE
    a, b = (1.0, math.sqrt(2)) if replace else (0.5, 1.0)
    most = math.sqrt(min(problem.k, problem.d - problem.k))
    # By Weyl, the smaller gap of both tables is at least the given gap less what one row can move.
    N = gap / spectral(problem) - 1.0
    safe = np.maximum(N, 1e-9)
    first = np.where(b < N, a / np.maximum(N - b, 1e-9), most)
    second = np.where(N > 0, (a + b / safe) / safe, most)
    reach: FloatArray = math.sqrt(2) * np.minimum(np.minimum(first, second), most)
    # The factor rounds up, to be safe against a few rounding errors.
    return reach * (1 + 1e-14)
