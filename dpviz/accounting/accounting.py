"""The actual privacy loss of a release, from the parts that the mechanism declares.

A mechanism describes its randomness as a sequence of parts. Each part is a frozen value that states
a sensitivity and a noise scale in the same units, or a proved pure epsilon. `spent` turns the parts
into (epsilon, delta) without knowing how the mechanism was calibrated, so it exposes a wrong
calibration. A wrong sensitivity is found only by the numerical searches in the tests.

Parts compose adaptively: each part may depend on the results of earlier parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from dpviz.accounting.composition import PrivacyLoss, composed, epsilon_of_rho, rho_of
from dpviz.accounting.gaussian import (
    delta_of,
    epsilon_of,
    least_meeting,
    log_delta,
    mu_of,
    rounding_room,
)
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, Part, PurePart
from dpviz.core.problem import Budget
from dpviz.core.quantity import Kind, Quantity

_ROUNDING = float(np.finfo(np.float64).eps)
_RANGE_CELLS = 2048  # More grid cells make the epsilon of range-bounded mechanisms tighter.
_RANGE_SPAN = 32  # The coarse pass joins this many grid cells: a value chosen by timing.
_RANGE_ROOM = 1e-9  # This margin is larger than any rounding error of log delta.
_LEAST_ON_GRID = 1e-11  # Composition adds a rounding error of 1e-12 to the failure probability.


@dataclass(frozen=True)
class Spent:
    """The privacy loss of a release, as epsilon and delta.

    Strictly, privacy loss is a random variable, the log density ratio; (epsilon, delta) bounds it.

    Attributes
    ----------
    epsilon : float
        Epsilon, at least 0; may be infinite.
    delta : float
        The delta at which ``epsilon`` is quoted; 0 for pure privacy.
    exact : bool
        Whether some pair of neighbours attains ``epsilon``. This needs a single query whose
        sensitivity is attained and whose noisy result is released whole. Otherwise ``epsilon`` is
        an upper bound: the worst neighbours of several queries may differ, and a part of a result
        reveals no more than the whole.
    source : str
        Name of the accounting method, a phrase.
    delta_at_epsilon : float or None
        The actual delta at the claimed epsilon, exact or a bound as ``exact`` states; None if delta
        is not computed.
    total_variation : float or None
        The most by which the probability of any event differs between neighbours: the delta at
        epsilon 0. The value is exact or a bound as ``exact`` states, and a bound for pure privacy.
        None if unknown: a pure epsilon alone bounds it by tanh(epsilon/2), whatever the mechanism.
    mu : float or None
        Sensitivity divided by standard deviation, if all noise is Gaussian.
    """

    epsilon: float
    delta: float
    exact: bool
    source: str
    delta_at_epsilon: float | None = None
    total_variation: float | None = None
    mu: float | None = None

    @property
    def cost(self) -> Quantity:
        """Epsilon: a measurement if some neighbours attain it, else an upper bound."""
        return Quantity(self.epsilon, Kind.MEASUREMENT if self.exact else Kind.UPPER_BOUND)

    def to_json(self) -> dict[str, Any]:
        """Return epsilon, delta, kind and source as JSON data."""
        kind = str(self.cost.kind)
        return {"epsilon": self.epsilon, "delta": self.delta, "kind": kind, "source": self.source}


def spent(parts: Sequence[Part], budget: Budget, releases: int = 1) -> Spent:
    """Return the combined privacy loss of the parts.

    Parameters
    ----------
    parts : sequence of Part
        The parts in the order in which they run. Without parts the loss is 0.
    budget : Budget
        The budget supplies two values: the delta at which epsilon is quoted if there is Gaussian
        noise, and the epsilon at which ``delta_at_epsilon`` is computed.
    releases : int
        Number of times that all parts run; each run may depend on earlier runs.

    Returns
    -------
    Spent
        The loss, rounded up. Epsilon is quoted at the budget's delta if a part needs one.
    """
    return _spent(tuple(parts), budget, releases)


@lru_cache(maxsize=4096)  # Claim, status and remaining budget use the same parts, so cache them.
def _spent(parts: tuple[Part, ...], budget: Budget, releases: int) -> Spent:
    composition = composition_of(parts, releases)
    if composition.pure:
        return _spent_pure(composition, budget.epsilon)
    if composition.gaussian:
        count = len(parts) * releases
        steps = f", {count} adaptive steps" if count > 1 else ""
        active = [part for part in parts if isinstance(part, GaussianPart) and part.mu > 0]
        return Spent(
            epsilon=epsilon_of(budget.delta, composition.mu),
            delta=budget.delta,
            exact=len(active) * releases == 1 and active[0].attained,
            source=f"exact Gaussian profile{steps}",
            delta_at_epsilon=delta_of(budget.epsilon, composition.mu),
            total_variation=math.erf(composition.mu / math.sqrt(8)),
            mu=composition.mu,
        )
    epsilon, source = composition.least(budget.delta)
    return Spent(
        epsilon=epsilon,
        delta=budget.delta,
        exact=False,
        source=source,
        delta_at_epsilon=composition.delta(budget.epsilon),
        total_variation=composition.delta(0.0),
    )


def composition_of(parts: Sequence[Part], releases: int = 1) -> Composition:
    """Return the composition of parts that run in sequence, ``releases`` times.

    Parameters
    ----------
    parts : sequence of Part
        The parts in the order in which they run.
    releases : int
    """
    return _composition_of(tuple(parts), releases)


@dataclass(frozen=True, eq=False)
class Composition:
    """Several parts composed adaptively; see `composition_of`.

    Attributes
    ----------
    parts : tuple of Part
    releases : int
    mu : float
        Combined mu of the Gaussian parts.
    total : float
        Sum of the epsilons of the parts that are not Gaussian.
    failing : float
        The probability that any part reveals everything, rounded up.

    Notes
    -----
    Gaussian parts compose exactly, also adaptively, to one Gaussian part whose mu^2 is the sum of
    the mu^2 (Dong, Roth & Su 2022, Corollary 2). Pure epsilons add. Let D be the profile of the
    Gaussian noise; at a negative epsilon D is 1 - e^epsilon + e^epsilon D(-epsilon). The least of
    the following bounds holds:

    *All epsilons as one.* A pure bound e is dominated by randomised response, whose loss is +e
    with probability p = 1/(1 + exp(-e)) and -e otherwise (Kairouz, Oh & Viswanath 2015), and
    dominating pairs compose (Zhu, Dong & Wang 2022, Theorem 10), so

        delta(epsilon) <= p D(epsilon - e) + (1 - p) D(epsilon + e).

    *A bounded range that runs first.* Let the log ratio of a pair of neighbours lie in [t - w, t]
    in one part, which no earlier release could choose. The delta that D gives at a ratio r =
    e^-loss is convex in r, and r has mean 1. So the worst distribution sits on the two ends:

        delta(epsilon) <= max over t of p D(epsilon - t) + (1 - p) D(epsilon - t + w),
        p = (1 - e^(t - w))/(1 - e^-w),

    with t from w - e to e. An exponential mechanism with two outputs attains this bound. For t
    anywhere in [a, b] the range lies in [a - w, b], so a grid of cells for t gives an upper bound.

    *Losses on a grid.* Each other part is represented by its dominating loss
    (`dpviz.accounting.composition`), however the part was chosen.

    *zCDP.* The zCDP parameters rho add up, and their sum is converted to an epsilon.

    An (e, d) release is dominated by a mechanism that reveals everything with probability d and
    otherwise is the randomised response of e (Kairouz, Oh & Viswanath 2015). Let f be the
    probability that any such part fails. Then delta(epsilon) <= f + (1 - f) times the right side of
    the bound above, with the epsilons of such parts included in e.
    """

    parts: tuple[Part, ...]
    releases: int
    mu: float
    total: float
    failing: float

    @property
    def other(self) -> tuple[Part, ...]:
        """The parts that are not Gaussian and have a privacy loss."""
        return tuple(part for part in self.parts if _costs(part))

    @property
    def pure(self) -> bool:
        """Whether the composition is pure."""
        return self.mu == 0 and not any(isinstance(p, ApproximatePart) for p in self.other)

    @property
    def gaussian(self) -> bool:
        """Whether all parts are Gaussian."""
        return self.mu > 0 and not self.other

    @property
    def apart(self) -> float:
        """The stated bound on total variation if the only part is pure; else 1, a trivial bound."""
        alone = len(self.other) * self.releases == 1 and self.pure
        return self.other[0].apart if alone and isinstance(self.other[0], PurePart) else 1.0

    @cached_property
    def first_range(self) -> PurePart | None:
        """The first part, if its log ratio has a bounded range and all other parts are Gaussian."""
        active = [part for part in self.parts if not isinstance(part, GaussianPart) or part.mu > 0]
        first = active[0] if active and len(self.other) * self.releases == 1 else None
        return first if isinstance(first, PurePart) and first.ranged else None

    @cached_property
    def loss(self) -> PrivacyLoss | None:
        """The non-Gaussian parts on a grid of losses, if the grid may tighten the bound."""
        other = self.other
        if not other or math.inf in (self.mu, self.total) or self.first_range is not None:
            return None
        alone = len(other) * self.releases == 1
        if alone and not isinstance(other[0], LaplacePart) and not _ranged(other[0]):
            return None
        return composed(self.parts, self.releases)

    def log_delta(self, epsilon: float, mu: float) -> float:
        """Return the logarithm of the least delta known at epsilon, rounded up.

        Parameters
        ----------
        epsilon : float
            Epsilon, at least 0.
        mu : float
            A mu that replaces the combined mu of the Gaussian parts.
        """
        if self.failing >= 1 or math.inf in (mu, self.total):
            return 0.0
        if self.first_range is not None:
            least = _log_delta_of_range(epsilon, self.first_range, mu)
        else:
            least = _log_delta_of_mixture(epsilon, self.total, mu)
        if self.failing > 0:
            log_of_rest = math.log1p(-self.failing) + least
            least = float(np.logaddexp(math.log(self.failing), log_of_rest))
        if self.loss is not None and least > math.log(_LEAST_ON_GRID):
            on_grid = replace(self.loss, mu=mu).delta(epsilon)
            least = min(least, math.log(max(on_grid, math.ulp(0.0))))
        return min(least, 0.0)

    def delta(self, epsilon: float) -> float:
        """Return the least delta known at epsilon, rounded up."""
        if self.gaussian:
            return delta_of(epsilon, self.mu)
        if self.pure and epsilon >= self.total:
            return 0.0
        return min(self.apart, math.exp(self.log_delta(epsilon, self.mu)) * (1 + 4 * _ROUNDING))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon known at delta, rounded up; may be infinite."""
        return self.least(delta)[0]

    def least(self, delta: float) -> tuple[float, str]:
        """Return the least epsilon known at delta, and the accounting method in a phrase."""
        candidates = [(self._at_most(delta), self._name)]
        if delta > 0 and self.other:
            if self.loss is not None:
                candidates.append((self.loss.epsilon(delta), f"{self._name}; losses composed"))
            rho = rho_of(self.parts)
            if rho is not None:
                rho *= self.releases
                candidates.append(
                    (epsilon_of_rho(rho, delta), f"{self._name}; {numeral(rho, 3)}-zCDP")
                )
        return min(candidates, key=lambda pair: pair[0])

    def _at_most(self, delta: float) -> float:
        """Return the epsilon at ``delta`` by closed forms, rounded up."""
        if not self.other:
            return epsilon_of(delta, self.mu)
        remaining = (delta - self.failing) * (1 - 8 * _ROUNDING)
        remaining = remaining / (1 - self.failing) if self.failing < 1 else -1.0
        if remaining < 0 or math.inf in (self.total, self.mu) or (remaining == 0 and self.mu > 0):
            return math.inf
        if self.first_range is not None and remaining > 0:
            return _epsilon_of_range(remaining, self.first_range, self.mu)
        if self.mu == 0:
            return _epsilon_of_pure(remaining, self.total)
        return _epsilon_of_mixture(remaining, self.total, self.mu)

    @property
    def _name(self) -> str:
        names = []
        for part in self.parts:
            if isinstance(part, GaussianPart):
                names += ["exact Gaussian profile"] if part.mu > 0 else []
            else:
                names.append("Laplace noise" if isinstance(part, LaplacePart) else part.reason)
        return " + ".join(dict.fromkeys(names))


@lru_cache(maxsize=4096)
def _composition_of(parts: tuple[Part, ...], releases: int) -> Composition:
    mu = math.hypot(*(part.mu for part in parts if isinstance(part, GaussianPart)))
    total = _sum_up([part.epsilon for part in parts if not isinstance(part, GaussianPart)])
    if releases > 1:
        mu = math.sqrt(releases) * mu * (1 + 4 * _ROUNDING)
        total = releases * total * (1 + 2 * _ROUNDING)
    return Composition(parts, releases, mu, total, _failing(parts * releases))


def _costs(part: Part) -> bool:
    if isinstance(part, GaussianPart):
        return False
    return part.epsilon > 0 or (isinstance(part, ApproximatePart) and part.delta > 0)


def _ranged(part: Part) -> bool:
    return isinstance(part, PurePart) and part.ranged


def greatest_mu_beside(parts: Sequence[Part], budget: Budget) -> float:
    """Return the greatest mu of one more Gaussian part, run last, that still meets the budget.

    Parameters
    ----------
    parts : sequence of Part
        The earlier parts in the order in which they run, with a loss below the budget.
    budget : Budget
        The budget; its delta must be above 0.

    Returns
    -------
    float
        The mu, rounded down: the loss of all parts, including the new one, is at most the budget.
    """
    return _greatest_mu(tuple(parts), budget)


@lru_cache(maxsize=4096)
def _greatest_mu(parts: tuple[Part, ...], budget: Budget) -> float:
    high = mu_of(budget)
    prior_mu = composition_of(parts).mu
    composition = composition_of((*parts, GaussianPart(high, 1.0)))
    if prior_mu < high and not composition.other:
        # Squares of mu add up for Gaussian noise. The divisor makes rounding err on the safe side.
        return math.sqrt((high - prior_mu) * (high + prior_mu)) / (1 + 64 * _ROUNDING)
    target = math.log(budget.delta)

    def over(mu: float) -> float:
        return composition.log_delta(budget.epsilon, math.hypot(prior_mu, mu)) - target

    low = high
    while over(low) > 0:
        low /= 2
        if low < high * 1e-12:
            raise InvalidSetting("budget", "above the loss of other noise parts", budget.epsilon)
    mu = low
    if low < high:
        mu = float(
            scipy.optimize.brentq(over, low, 2 * low, xtol=_ROUNDING * low, rtol=4 * _ROUNDING)
        )
    step = 64 * _ROUNDING
    while (
        over(mu) > 0
        or composition_of((*parts, GaussianPart(mu, 1.0))).epsilon(budget.delta) > budget.epsilon
    ):
        mu *= 1 - step
        step *= 1.5
    return mu


def _failing(parts: Sequence[Part]) -> float:
    """Return the probability that any part reveals everything, rounded up."""
    deltas = [part.delta for part in parts if isinstance(part, ApproximatePart)]
    if len(deltas) < 2:
        return math.fsum(deltas)
    logs = math.fsum(math.log1p(-delta) for delta in deltas)
    return min(1.0, -math.expm1(logs) * (1 + 4 * _ROUNDING))


def _epsilon_of_pure(delta: float, total: float) -> float:
    """Return the epsilon at which randomised response has ``delta``, rounded up."""
    share = delta * (1 + math.exp(-total))
    if share >= 1:
        return 0.0
    if total == math.inf:
        return total
    return min(total, max(0.0, total + math.log1p(-share) + 8 * _ROUNDING * total))


def _spent_pure(composition: Composition, epsilon: float) -> Spent:
    if not composition.other:
        return Spent(0.0, 0.0, True, "does not depend on the data", 0.0, 0.0)
    first = composition.other[0]
    alone = len(composition.other) * composition.releases == 1
    return Spent(
        epsilon=composition.total,
        delta=0.0,
        exact=alone and isinstance(first, (LaplacePart, PurePart)) and first.attained,
        source=composition._name,
        delta_at_epsilon=_delta_of_pure(epsilon, composition.total),
        total_variation=composition.apart if composition.apart < 1 else None,
    )


def _delta_of_pure(epsilon: float, total: float) -> float:
    """Return the largest delta that a pure bound ``total`` allows at ``epsilon``."""
    if epsilon >= total:
        return 0.0
    # Randomised response has this profile: (e^total - e^epsilon) / (e^total + 1).
    return -math.expm1(epsilon - total) / (1 + math.exp(-total))


def _log_delta_of_mixture(epsilon: float, pure: float, mu: float) -> float:
    log_share = -math.log1p(math.exp(-pure))
    likely, unlikely = _log_profile(np.array([epsilon - pure, epsilon + pure]), mu)
    return min(0.0, log_share + float(np.logaddexp(likely, unlikely - pure)))


def _log_delta_of_range(epsilon: float, part: PurePart, mu: float) -> float:
    """Return the largest log delta over all places of the bounded range; see `Composition`.

    The bound for a group of cells is at least the bound for each cell, and the value at one
    position is at most the maximum. So cells that cannot hold the maximum are skipped.
    """
    ends = np.linspace(part.width - part.epsilon, part.epsilon, _RANGE_CELLS + 1)
    tops, starts = ends[::_RANGE_SPAN], ends[:-1:_RANGE_SPAN]
    lows = starts - part.width
    likely, unlikely = _log_profiles(epsilon, tops, lows, mu)
    spans = _log_delta_within(lows, tops[1:], likely[1:], unlikely)
    points = _log_delta_within(lows, starts, likely[:-1], unlikely)
    places = np.flatnonzero(spans >= points.max() - _RANGE_ROOM)
    cells = (places[:, None] * _RANGE_SPAN + np.arange(_RANGE_SPAN)).ravel()
    tops, lows = ends[cells + 1], ends[cells] - part.width
    log_deltas = _log_delta_within(lows, tops, *_log_profiles(epsilon, tops, lows, mu))
    return min(0.0, float(log_deltas.max()))


def _log_profiles(
    epsilon: float, tops: FloatArray, lows: FloatArray, mu: float
) -> tuple[FloatArray, FloatArray]:
    """Return log delta of Gaussian noise after adding each loss in ``tops`` and in ``lows``."""
    profiles = _log_profile(epsilon - np.append(tops, lows), mu)
    return profiles[: len(tops)], profiles[len(tops) :]


def _log_delta_within(
    low: FloatArray, top: FloatArray, likely: FloatArray, unlikely: FloatArray
) -> FloatArray:
    """Return log delta for a loss on the two ends of [low, top], given log delta at each end."""
    log_room = np.log(-np.expm1(low - top))
    with np.errstate(divide="ignore"):  # With a loss of 0 at one end, the other end is impossible.
        log_top = np.log(-np.expm1(low)) - log_room
        log_low = low + np.log(-np.expm1(-top)) - log_room
    log_delta: FloatArray = np.logaddexp(log_top + likely, log_low + unlikely)
    return log_delta


def _log_profile(epsilon: FloatArray, mu: float) -> FloatArray:
    """Return log delta of Gaussian noise at any real epsilons, rounded up."""
    x = np.abs(epsilon)
    value = np.asarray(log_delta(x, np.full(x.shape, mu)))
    value = value + rounding_room(x, mu, value)
    with np.errstate(divide="ignore"):
        # Gaussian noise has a symmetric loss, so delta(-x) = 1 - e^-x + e^-x delta(x).
        mirror_image = np.logaddexp(np.log(-np.expm1(-x)), value - x)
    return np.where(epsilon >= 0, value, mirror_image)


@lru_cache(maxsize=65536)
def _epsilon_of_mixture(delta: float, pure: float, mu: float) -> float:
    return _root(lambda epsilon: _log_delta_of_mixture(epsilon, pure, mu), delta, pure, mu)


@lru_cache(maxsize=65536)
def _epsilon_of_range(delta: float, part: PurePart, mu: float) -> float:
    return _root(lambda epsilon: _log_delta_of_range(epsilon, part, mu), delta, part.epsilon, mu)


def _root(log_delta_at: Callable[[float], float], delta: float, pure: float, mu: float) -> float:
    """Return the epsilon at which a profile with Gaussian noise has ``delta``, rounded up."""
    high = pure + epsilon_of(delta, mu)  # Basic composition gives this upper bound on epsilon.
    if high == math.inf:
        return math.inf
    target = math.log(delta)

    def gap(epsilon: float) -> float:
        return log_delta_at(epsilon) - target

    if gap(0.0) <= 0:
        return 0.0
    if gap(high) > 0:  # Only rounding can make this upper bound on epsilon too small.
        return math.nextafter(high, math.inf)
    return min(high, least_meeting(gap, lambda epsilon: gap(epsilon) <= 0, high))


def _sum_up(values: Sequence[float]) -> float:
    # A single value is returned unchanged. fsum may err by half a rounding, so round sums up.
    total = math.fsum(values)
    return total if len(values) < 2 else math.nextafter(total, math.inf) if total > 0 else 0.0
