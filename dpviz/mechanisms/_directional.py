"""Shared parts of mechanisms with shaped noise: directions, their cost, shares, estimates.

Noise has the shape S = W diag(s) W'. The problem's allocation selects the basis W: the standard
one, private principal directions that use a share of the budget (`_suppliers`), or (for teaching)
the true eigenvectors. Everything is computed in the coordinates of W.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import mahalanobis, reaches
from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import choice
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, released
from dpviz.mechanisms._suppliers import (
    SAFE,
    Purchase,
    completed,
    purchase,
    variances_along,
    why_not_bought,
)
from dpviz.sampling.ensembles import goe, wishart

FLOOR = 1e-3
"""Share of the precision that max-PNR spreads equally, so that no direction is left without."""


# --- shares -----------------------------------------------------------------------------------


def water_filling(gains: FloatArray, total: float) -> FloatArray:
    """Return the x >= 0 of sum ``total`` that maximises the sum of log(1 + gains * x).

    Parameters
    ----------
    gains : ndarray of shape (d,)
        Gains below 0 count as 0. If all gains are 0, every x does equally well and the result is
        equal shares.
    total : float
        Sum of the result, above 0.

    Returns
    -------
    ndarray of shape (d,)
        x_i = max(c - 1/gains_i, 0) with c set by the sum.

    Source
    ------
    Chanyaswad et al. 2018, Theorem 7, whose solution has no max(., 0) and so
    may ask for negative precision.
    """
    d = len(gains)
    best = float(gains.max())
    if best <= 0:
        return np.full(d, total / d)
    # Use units of the best gain, so that differences between the inverses 1/gain lose few digits.
    relative = np.maximum(gains / best, 1e-300)
    depth = 1.0 / relative - 1.0
    order = np.argsort(depth, kind="stable")
    budget = total * best
    levels = (budget + np.cumsum(depth[order])) / np.arange(1, d + 1)
    active = int(np.flatnonzero(levels > depth[order])[-1])
    filled: FloatArray = np.maximum(levels[active] - depth, 0.0)
    return filled * (total / math.fsum(filled))


def with_floor(weights: FloatArray) -> FloatArray:
    """Return shares proportional to weights >= 0, apart from `FLOOR`, which is spread equally.

    The result sums to 1 and every share is at least FLOOR/d.
    """
    d = len(weights)
    shares: FloatArray = FLOOR / d + (1 - FLOOR) * weights / math.fsum(weights)
    return shares / math.fsum(shares)


_FIT_STEPS = 10
"""Number of steps of the scoring iteration in `belief_weights`, which settles in about five."""

_BLOCK = 1 << 16  # Maximum number of entries in a block, so that it fits the processor's cache.


# --- directions -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Directions:
    """Coordinates in which noise is shaped: one basis per repetition, or one for all.

    Attributes
    ----------
    bases : ndarray of shape (m, d, d) or None
        Orthonormal columns; None means the features. m is 1 or the number of repetitions.
    variances : ndarray of shape (m, d) or None
        Estimated variances of A along the columns (public once released); None for the features and
        if only a subspace was released.
    """

    bases: FloatArray | None = None
    variances: FloatArray | None = None

    @property
    def count(self) -> int:
        """Number of different bases: 1, or one per repetition."""
        return 1 if self.bases is None else len(self.bases)

    def basis(self, index: int, d: int) -> FloatArray:
        """Return one basis, shape (d, d)."""
        return np.eye(d) if self.bases is None else self.bases[index]

    def spectrum(self, index: int) -> FloatArray | None:
        """Return the estimated variances along one basis."""
        return None if self.variances is None else self.variances[index]

    def enter(self, matrix: FloatArray) -> FloatArray:
        """Return W'MW, shape (m, d, d), of a symmetric (d, d) matrix."""
        if self.bases is None:
            return matrix[None]
        inside: FloatArray = self.bases.transpose(0, 2, 1) @ matrix @ self.bases
        return inside

    def leave(self, matrices: FloatArray) -> FloatArray:
        """Return W M W' of matrices of shape (size, d, d)."""
        if self.bases is None:
            return matrices
        outside: FloatArray = self.bases @ matrices @ self.bases.transpose(0, 2, 1)
        return outside


def symmetrised(matrices: FloatArray) -> FloatArray:
    """Return (M + M')/2, symmetric to the last bit."""
    half: FloatArray = (matrices + matrices.transpose(0, 2, 1)) / 2
    return half


def directions_of(
    data: SecondMoment, calibration: Calibration, draws: Draws, *, pure: bool
) -> Directions:
    """Return the directions of the problem's allocation, privately if they need data."""
    kind = calibration.problem.allocation.directions
    if kind == "features":
        return Directions()
    if kind == "true":
        return Directions(data.eigenvectors[None], data.eigenvalues[None])
    d, bought = data.d, purchase(calibration.problem, calibration.budget, pure=pure)
    if bought.supply is not None:
        supplied = released(bought.supply.mechanism, data, bought.supply.calibration, draws)
        count = bought.supply.count
        return Directions(completed(supplied.components), variances_along(supplied, count))
    if pure:
        noise = wishart(draws, d, d + 1)
        noise -= wishart(draws, d, d + 1)
    else:
        noise = goe(draws, d)
    noise *= bought.scale
    noise += data.A
    values, vectors = np.linalg.eigh(noise)
    return Directions(vectors[..., ::-1], values[..., ::-1])


def why_not_allocated(problem: Problem, budget: Budget, *, pure: bool) -> str | None:
    """Return why the problem's allocation cannot be used, or None if it can."""
    allocation = problem.allocation
    if allocation.needs_spectrum and allocation.directions == "features":
        return (
            "max-pnr takes its shares from the variances along the directions, so "
            "directions must be private:SHARE or true; got features"
        )
    if allocation.directions == "private":
        return why_not_bought(problem, budget, pure=pure)
    return None


def any_basis_mahalanobis(problem: Problem, variances: FloatArray) -> float:
    """Return an upper bound of `mahalanobis` that holds in every basis.

    The bound is the value on the ball around the domain, the same in every basis. The bound is
    exact on a ball.
    """
    d = problem.d
    ball = replace(problem, domain=Domain.ball(d))
    return problem.domain.radius**2 * mahalanobis(ball, np.eye(d), variances)


# --- the estimate -----------------------------------------------------------------------------


def belief_weights(matrices: FloatArray, shares: FloatArray, stds: FloatArray) -> FloatArray:
    """Return entrywise weights for a noisy symmetric matrix; the best entry's weight is 1.

    Parameters
    ----------
    matrices : ndarray of shape (size, d, d)
        A + N in the coordinates of the directions; N_ij has variance
        s_i s_j (1 + [i = j])/2.
    shares : ndarray of shape (m, d)
        Theta, the variances as the user believes them to be, up to a factor.
    stds : ndarray of shape (m, d)
        The standard deviations s of the diagonal noise.

    Returns
    -------
    ndarray of shape (size, d, d)

    Notes
    -----
    Under the prior that A_ij has variance kappa theta_i theta_j (1 + [i = j]),
    the posterior mean multiplies M_ij by r_ij = kappa b/(kappa b + v) with
    b = theta_i theta_j and v = s_i s_j/2. kappa is fitted to the released
    matrix by maximum likelihood (scoring steps), so this is post-processing of
    the release and of public numbers. Weights are r_ij divided by the largest:
    all 1 for the uniform allocation with equal noise, and all tend to 1 as
    noise vanishes.
    """
    size, d = len(matrices), matrices.shape[-1]
    b = (shares[:, :, None] * shares[:, None, :]).reshape(-1, d * d)
    v = (stds[:, :, None] * stds[:, None, :]).reshape(-1, d * d) / 2
    # Only ratios of variances matter, so the unit is chosen near 1 to avoid overflow.
    b = b / b.max(axis=1, keepdims=True)
    unit = v.min(axis=1, keepdims=True)
    v = v / unit
    double = 1 + np.eye(d).ravel()
    z = np.square(matrices.reshape(size, d * d) / np.sqrt(unit)) / double
    excess = z - v
    weights = np.empty((size, d * d))
    block = max(1, _BLOCK // (d * d))
    for start in range(0, size, block):
        weight = weights[start : start + block]
        block_rows = slice(None) if len(b) == 1 else slice(start, start + block)
        believed, noise, above_noise = b[block_rows], v[block_rows], excess[start : start + block]
        product = np.empty_like(weight)
        weight[...] = believed / np.square(noise)
        for _ in range(_FIT_STEPS):
            check_cancelled()
            above = np.multiply(weight, above_noise, out=product).sum(axis=1, keepdims=True)
            below = np.multiply(weight, believed, out=product).sum(axis=1, keepdims=True)
            kappa = np.maximum(above / below, 0.0)
            np.multiply(kappa, believed, out=weight)
            weight += noise
            np.square(weight, out=weight)
            np.divide(believed, weight, out=weight)
        np.multiply(kappa, believed, out=weight)
        weight += noise
        np.divide(believed, weight, out=weight)
        weight /= weight.max(axis=1, keepdims=True)
    return weights.reshape(size, d, d)


# --- the contract of matrix mechanisms with shaped noise --------------------------------------

ESTIMATES = {
    "weighted": "entries weighted by their noise and the shares",
    "plain": "the noisy matrix as it is",
}
NOISES = {"allocated": "shaped by the shares", "isotropic": "the same in all directions"}


def estimate_param(default: str) -> Any:
    """Declare how components are estimated from the released matrix."""
    return choice(
        default,
        ESTIMATES,
        label="Estimate",
        help="How components are computed from the released matrix. Weighted shrinks entries that "
        "are mostly noise and takes the shares as a guess of the variances. Plain uses the matrix "
        "as it is. Weighted and plain cost no privacy, and agree if all directions have equal "
        "noise.",
        examples=tuple(name for name in ESTIMATES if name != default),
    )


def noise_param() -> Any:
    """Declare whether noise follows the allocation."""
    return choice(
        "allocated",
        NOISES,
        label="Noise",
        help="Shape of the noise. Isotropic noise shows the gain from the weights alone; "
        "the remaining gain comes from shaped noise.",
        examples=("isotropic",),
    )


@dataclass(frozen=True)
class FollowsAllocation(Mechanism):
    """Claims of mechanisms that shape their noise by the allocation."""

    follows_allocation: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    """Whether the directions must be purely private."""

    def purchase(self, problem: Problem, budget: Budget) -> Purchase:
        """Return the budget of the directions."""
        return purchase(problem, budget, pure=self.pure)

    def limits(self, problem: Problem, budget: Budget) -> str | None:
        """Return why the allocation cannot be used, or None if it can."""
        return why_not_allocated(problem, budget, pure=self.pure)

    def claim(self, problem: Problem, budget: Budget) -> Budget | None:
        """Return the claim, or None when the data's own directions shape the noise."""
        return None if problem.allocation.directions == "true" else super().claim(problem, budget)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return the privacy loss, or None when the data's own directions shape the noise."""
        if problem.allocation.directions == "true":
            return None
        account = super().spent(problem, budget)
        supply = self.purchase(problem, budget).supply
        bounded = supply is not None and not supply.spent.exact
        return replace(account, exact=False) if account is not None and bounded else account

    def verdict(self, problem: Problem, budget: Budget, spent: Spent | None) -> Verdict:
        """Return the verdict on the claim; true directions make no claim.

        If the directions' sampler converges only in the limit, the verdict is approximate.
        """
        if problem.allocation.directions == "true":
            return Verdict.BASELINE
        of_claim = super().verdict(problem, budget, spent)
        supply = self.purchase(problem, budget).supply
        if supply is None or of_claim.fails:
            return of_claim
        approximate = supply.status.verdict is Verdict.APPROXIMATE
        return Verdict.APPROXIMATE if approximate else of_claim

    @final
    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the reason for the verdict."""
        if problem.allocation.directions == "true" or spent is None:
            return TRUE_DIRECTIONS
        return self.account(problem, budget, spent)

    @abstractmethod
    def account(self, problem: Problem, budget: Budget, spent: Spent) -> str:
        """Return one sentence of evidence on the private directions."""

    @final
    def directions(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Directions:
        """Return the directions of each repetition."""
        return directions_of(data, calibration, draws, pure=self.pure)


@dataclass(frozen=True)
class DirectionalMechanism(FollowsAllocation):
    """Release A + S^1/2 N S^1/2 with standard noise N and S shaped by the allocation."""

    @abstractmethod
    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return N of shape (size, d, d), which need not be symmetric."""

    @abstractmethod
    def shape(
        self, calibration: Calibration, basis: FloatArray, spectrum: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues of S along the basis, and the shares theta, each (d,)."""

    def diagonal_std(self, calibration: Calibration) -> float:
        """Return the std of a diagonal entry of the symmetrised standard noise."""
        return 1.0

    @property
    def weighs(self) -> bool:
        """Whether the estimate is weighted."""
        return getattr(self, "estimate", "plain") == "weighted"

    @final
    def direction_stds(
        self, calibration: Calibration, directions: Directions | None = None
    ) -> FloatArray:
        """Return the std of the noise on the variance along each direction.

        Parameters
        ----------
        calibration : Calibration
        directions : Directions, optional
            Directions of a release; by default the features.

        Returns
        -------
        ndarray of shape (m, d)
            Standard deviations of the diagonal of W'NW, in units of A. Between directions i and j
            the std is the geometric mean of both stds over sqrt(2).
        """
        variances, _ = self._shapes(calibration, directions or Directions())
        return variances * self.diagonal_std(calibration)

    @final
    def released_directions(
        self, data: SecondMoment, calibration: Calibration, draws: Draws
    ) -> Directions:
        """Return the directions of a release with the same random numbers."""
        if calibration.problem.allocation.directions == "private":
            self.standard_noise(calibration.problem, draws)  # A release samples its noise first.
        return self.directions(data, calibration, draws)

    @final
    def noise_along(
        self, data: SecondMoment, calibration: Calibration, draws: Draws
    ) -> FloatArray | None:
        """Return the standard deviations along the directions of the first repetition."""
        directions = self.released_directions(data, calibration, draws)
        first: FloatArray = self.direction_stds(calibration, directions)[0]
        return first

    def _shapes(
        self, calibration: Calibration, directions: Directions
    ) -> tuple[FloatArray, FloatArray]:
        d = calibration.problem.d
        shapes = [
            self.shape(calibration, directions.basis(index, d), directions.spectrum(index))
            for index in range(directions.count)
        ]
        return np.stack([shape[0] for shape in shapes]), np.stack([shape[1] for shape in shapes])

    @final
    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return A plus shaped noise, and the components of its estimate."""
        # Noise is sampled first, so that a change of the directions does not change the noise.
        noise = self.standard_noise(calibration.problem, draws)
        directions = self.directions(data, calibration, draws)
        variances, shares = self._shapes(calibration, directions)
        root = np.sqrt(variances)
        noise *= root[:, :, None] * root[:, None, :]
        noise += directions.enter(data.A)
        raw = directions.leave(noise)
        estimate = symmetrised(noise)
        if self.weighs:
            stds = variances * self.diagonal_std(calibration)
            estimate *= belief_weights(estimate, shares, stds)
        matrices = symmetrised(directions.leave(estimate))
        return Release.of_matrices(matrices, calibration.problem.k, raw=raw)


TRUE_DIRECTIONS = (
    "The data's principal directions shape this noise, and nothing protects them. It shows "
    "how much perfect directions would help, and makes no claim."
)


# --- exact accounts ---------------------------------------------------------------------------


def exact_shape(
    problem: Problem,
    basis: FloatArray,
    spectrum: FloatArray | None,
    *,
    norm: Callable[[Problem, FloatArray, FloatArray, FloatArray], float],
    target: float,
    precision: float,
    isotropic: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of S that meet a target exactly, and the shares theta, each (d,).

    Parameters
    ----------
    problem : Problem
    basis : ndarray of shape (d, d)
    spectrum : ndarray of shape (d,) or None
        Variances along the basis, for max-PNR.
    norm : callable
        Norm `mahalanobis` or `mahalanobis_nuclear`, homogeneous of degree -1 in S.
    target : float
        The value of the norm that the budget allows.
    precision : float
        For max-PNR: the sum of reach_j^2 divided by the stds of the diagonal noise.
    isotropic : bool
        Whether S is a multiple of I, for every allocation.

    Notes
    -----
    On a box s_j is reach_j^2/theta_j up to a common factor, the linear
    precision budget; on a ball every reach is 1. The factor follows from the
    norm, which is exact or an upper bound, so the budget is never exceeded.
    """
    reach = reaches(problem.domain, basis)
    if problem.allocation.needs_spectrum and spectrum is not None:
        shares = spectrum_shares(spectrum / reach**2, precision, power=1)
    else:
        shares = problem.allocation.shares(problem.d)
    variances = np.ones(problem.d) if isotropic else reach**2 / shares
    factor = SAFE * norm(problem, basis, variances, reach) / target
    return factor * variances, shares


def spectrum_shares(gains: FloatArray, total: float, *, power: int) -> FloatArray:
    """Return the max-PNR shares, by water filling in the power in which precision adds up."""
    filled = water_filling(np.maximum(gains, 0.0), total)
    return with_floor((filled / filled.max()) ** power)


def known_shape(problem: Problem) -> bool:
    """Return whether the noise is known before the release, because directions are features."""
    return problem.allocation.directions == "features"


def isotropic_std(mechanism: DirectionalMechanism, calibration: Calibration) -> float | None:
    """Return the std of the estimate's diagonal noise if the noise is isotropic.

    None if the stds differ or are unknown before the release, or if the estimate weighs entries:
    the noise then has no rotation-invariant law.
    """
    problem = calibration.problem
    if not known_shape(problem):
        return None
    stds = mechanism.direction_stds(calibration)
    alike = float(np.ptp(stds)) <= 1e-9 * float(stds.max())
    if not alike or (mechanism.weighs and float(np.ptp(problem.allocation.shares(problem.d))) > 0):
        return None
    return float(stds.max())


def where_it_pays(problem: Problem) -> str:
    """Return a clause of evidence on the gain of the allocation on this domain."""
    if problem.domain.kind == "ball":
        if problem.allocation.strategy == "uniform":
            return "on the ball no other shares give less noise"
        most = " (at most a factor sqrt 2 on one entry)" * (problem.relation is Relation.REPLACE)
        return (
            "on the ball a row may point in any direction, so low-noise directions do not help"
            + most
            + " and isotropic noise is the better choice"
        )
    return "on the box, directions share one precision budget, so if one gains, the others lose"


def with_directions(bought: Purchase) -> str:
    """Return the clause that states the cost of private directions and their supplier."""
    if bought.bought is None:
        return ""
    at = f" and delta {numeral(bought.bought.delta)}" if bought.bought.delta > 0 else ""
    clause = f", of which the directions used epsilon {numeral(bought.bought.epsilon, 3)}{at}"
    if bought.supply is None:
        return clause
    clause += f" from {bought.supplier}"
    if bought.supply.spent.epsilon < bought.bought.epsilon * (1 - 1e-6):
        clause += f", which spends {numeral(bought.supply.spent.epsilon, 3)} of it"
    if bought.supply.status.verdict is Verdict.APPROXIMATE:
        clause += ", whose draws reach their law only in the limit"
    return clause
