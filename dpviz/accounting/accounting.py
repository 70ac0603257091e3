"""The actual privacy loss of a release, from the parts that the mechanism declares.

A mechanism describes its randomness as a sequence of parts, each a frozen value
that states a sensitivity and a noise scale in the same units, or a proved pure
epsilon. `spent` turns the parts into (epsilon, delta) without knowing how the
mechanism was calibrated, so a wrong calibration shows. It cannot see a wrong
sensitivity: that is for the numerical searches in the tests.

Parts compose adaptively: each may depend on what the ones before it released.
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
_RANGE_CELLS = 2048  # of where a bounded range may lie: each more narrows the bound
_RANGE_SPAN = 32  # cells looked at together first; measured
_RANGE_ROOM = 1e-9  # more than log delta is ever off by rounding
_LEAST_ON_GRID = 1e-11  # a composed loss counts 1e-12 of rounding as failure


@dataclass(frozen=True)
class Spent:
    """The privacy that a release costs, as epsilon and delta.

    Privacy loss is the word for the log ratio, a random variable; what is spent is a pair that
    bounds it.

    Attributes
    ----------
    epsilon : float
        At least 0; may be infinite.
    delta : float
        The delta at which ``epsilon`` is quoted; 0 for pure privacy.
    exact : bool
        Whether some neighbours cost as much: one query is all there is, its sensitivity is
        attained and what carries it is released whole. The worst neighbours of several queries
        need not be the same, and who sees a part of what is accounted for sees no more; ``epsilon``
        is then an upper bound.
    source : str
        The account it comes from, in a phrase.
    delta_at_epsilon : float or None
        The delta really given at the claimed epsilon, exact or a bound as ``exact`` says;
        None where nobody computed it.
    total_variation : float or None
        The most by which the chance of any event differs between neighbours: the delta at
        epsilon 0, exact or a bound as ``exact`` says, and of pure privacy a bound. None where
        nobody computed it: of a pure epsilon alone it is at most tanh(epsilon/2), whatever the
        mechanism.
    mu : float or None
        Sensitivity over standard deviation where Gaussian noise is all there is.
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
        """Return the account's values as JSON data."""
        kind = str(self.cost.kind)
        return {"epsilon": self.epsilon, "delta": self.delta, "kind": kind, "source": self.source}


def spent(parts: Sequence[Part], budget: Budget, releases: int = 1) -> Spent:
    """Return the privacy loss of the parts together.

    Parameters
    ----------
    parts : sequence of Part
        In the order they run. None at all costs nothing.
    budget : Budget
        Its delta is where epsilon is quoted if there is Gaussian noise; its epsilon is where
        ``delta_at_epsilon`` is computed. Nothing else is taken from it.
    releases : int
        How many times all of it runs, each free to depend on those before.

    Returns
    -------
    Spent
        Rounded up. It is quoted at the budget's delta if a part needs one, else at delta 0.
    """
    return _spent(tuple(parts), budget, releases)


@lru_cache(maxsize=4096)  # a claim, its status and what is left are asked of the same parts
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
    """Return the composition of parts that run one after another, repeated.

    Parameters
    ----------
    parts : sequence of Part
        In the order they run.
    releases : int
    """
    return _composition_of(tuple(parts), releases)


@dataclass(frozen=True, eq=False)
class Composition:
    """Parts together; see `composition_of`.

    Attributes
    ----------
    parts : tuple of Part
    releases : int
    mu : float
        Of the Gaussian parts.
    total : float
        Epsilons of the others, added up.
    failing : float
        The chance that any of them tells everything, rounded up.

    Notes
    -----
    Gaussian parts compose to one with mu^2 the sum of the mu^2, exactly, also adaptively
    (Dong, Roth & Su 2022, Corollary 2). Pure epsilons add. Beside Gaussian noise of profile D,
    which at a negative epsilon is 1 - e^epsilon + e^epsilon D(-epsilon), the least of these holds:

    *All epsilons as one.* A pure bound e is dominated by randomised response, whose loss is +e
    with probability p = 1/(1 + exp(-e)) and -e otherwise (Kairouz, Oh & Viswanath 2015), and
    dominating pairs compose (Zhu, Dong & Wang 2022, Theorem 10), so

        delta(epsilon) <= p D(epsilon - e) + (1 - p) D(epsilon + e).

    *A bounded range that runs first.* Let the log ratio of a pair of neighbours lie in
    [t - w, t] in one part, which nothing released before could choose. The chance that D gains
    at a ratio r = e^-loss is convex in r, whose mean is 1, so the law on both ends is the worst:

        delta(epsilon) <= max over t of p D(epsilon - t) + (1 - p) D(epsilon - t + w),
        p = (1 - e^(t - w))/(1 - e^-w),

    t from w - e to e. It is attained, by an exponential mechanism with two outputs. A range that
    starts anywhere in [a, b] lies in the one from a - w to b, so cells of t give an upper bound.

    *Losses on a grid.* Each other part by the loss that dominates it
    (`dpviz.accounting.composition`), whatever it chose itself by.

    *zCDP.* rho adds and becomes an epsilon.

    An (e, d) release is dominated by one that tells everything with probability d and is else the
    randomised response of e (Kairouz, Oh & Viswanath 2015), so with f the chance that any of such
    parts fails, delta(epsilon) <= f + (1 - f) times the right side above, e counting theirs too.
    """

    parts: tuple[Part, ...]
    releases: int
    mu: float
    total: float
    failing: float

    @property
    def other(self) -> tuple[Part, ...]:
        """The parts with a privacy loss that are not Gaussian."""
        return tuple(part for part in self.parts if _costs(part))

    @property
    def pure(self) -> bool:
        """Whether no delta is needed."""
        return self.mu == 0 and not any(isinstance(p, ApproximatePart) for p in self.other)

    @property
    def gaussian(self) -> bool:
        """Whether all parts are Gaussian."""
        return self.mu > 0 and not self.other

    @property
    def apart(self) -> float:
        """What one pure part alone states of its total variation; else 1, which says nothing."""
        alone = len(self.other) * self.releases == 1 and self.pure
        return self.other[0].apart if alone and isinstance(self.other[0], PurePart) else 1.0

    @cached_property
    def first_range(self) -> PurePart | None:
        """The first part, if its range is bounded and all other parts are Gaussian."""
        active = [part for part in self.parts if not isinstance(part, GaussianPart) or part.mu > 0]
        first = active[0] if active and len(self.other) * self.releases == 1 else None
        return first if isinstance(first, PurePart) and first.ranged else None

    @cached_property
    def loss(self) -> PrivacyLoss | None:
        """The other parts on a grid of losses, if that may tighten the account."""
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
            At least 0.
        mu : float
            Of the Gaussian parts, in place of their own.
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
        """Return the least epsilon known at delta, and the account it comes from in a phrase."""
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
        """Return the epsilon by closed forms, rounded up."""
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
    """Return the greatest mu of one more Gaussian part, run last, with which all meet the budget.

    Parameters
    ----------
    parts : sequence of Part
        In the order they run. They must leave something: their own cost is below the budget.
    budget : Budget
        Its delta must be above 0.

    Returns
    -------
    float
        Rounded down: `spent` of the parts and of that one is at most the budget.
    """
    return _greatest_mu(tuple(parts), budget)


@lru_cache(maxsize=4096)
def _greatest_mu(parts: tuple[Part, ...], budget: Budget) -> float:
    high = mu_of(budget)
    taken = composition_of(parts).mu
    composition = composition_of((*parts, GaussianPart(high, 1.0)))
    if taken < high and not composition.other:
        # Gaussian parts compose by the squares of their mu; a few roundings to the safe side.
        return math.sqrt((high - taken) * (high + taken)) / (1 + 64 * _ROUNDING)
    target = math.log(budget.delta)

    def over(mu: float) -> float:
        return composition.log_delta(budget.epsilon, math.hypot(taken, mu)) - target

    low = high
    while over(low) > 0:
        low /= 2
        if low < high * 1e-12:
            raise InvalidSetting("budget", "above what its other parts cost", budget.epsilon)
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
    """Return the chance that any part tells everything, rounded up."""
    deltas = [part.delta for part in parts if isinstance(part, ApproximatePart)]
    if len(deltas) < 2:
        return math.fsum(deltas)
    logs = math.fsum(math.log1p(-delta) for delta in deltas)
    return min(1.0, -math.expm1(logs) * (1 + 4 * _ROUNDING))


def _epsilon_of_pure(delta: float, total: float) -> float:
    """Return where the profile of randomised response falls to ``delta``, rounded up."""
    share = delta * (1 + math.exp(-total))
    if share >= 1:
        return 0.0
    if total == math.inf:
        return total
    return min(total, max(0.0, total + math.log1p(-share) + 8 * _ROUNDING * total))


def _spent_pure(known: Composition, claimed: float) -> Spent:
    if not known.other:
        return Spent(0.0, 0.0, True, "does not depend on the data", 0.0, 0.0)
    first = known.other[0]
    alone = len(known.other) * known.releases == 1
    return Spent(
        epsilon=known.total,
        delta=0.0,
        exact=alone and isinstance(first, (LaplacePart, PurePart)) and first.attained,
        source=known._name,
        delta_at_epsilon=_delta_of_pure(claimed, known.total),
        total_variation=known.apart if known.apart < 1 else None,
    )


def _delta_of_pure(epsilon: float, total: float) -> float:
    """Return the most delta that a pure bound ``total`` allows at ``epsilon``."""
    if epsilon >= total:
        return 0.0
    # (e^total - e^epsilon) / (e^total + 1), the profile of randomised response
    return -math.expm1(epsilon - total) / (1 + math.exp(-total))


def _log_delta_of_mixture(epsilon: float, pure: float, mu: float) -> float:
    log_share = -math.log1p(math.exp(-pure))
    likely, unlikely = _log_profile(np.array([epsilon - pure, epsilon + pure]), mu)
    return min(0.0, log_share + float(np.logaddexp(likely, unlikely - pure)))


def _log_delta_of_range(epsilon: float, part: PurePart, mu: float) -> float:
    """Return the greatest over where the range may lie, from cells of that; see `Composition`.

    A bound for several cells together lies above the bound for each of them, and the worst range
    that starts at one point lies below. So cells that cannot be the worst are skipped.
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
    """Return log delta of Gaussian noise after a loss of each top, and of each low."""
    profiles = _log_profile(epsilon - np.append(tops, lows), mu)
    return profiles[: len(tops)], profiles[len(tops) :]


def _log_delta_within(
    low: FloatArray, top: FloatArray, likely: FloatArray, unlikely: FloatArray
) -> FloatArray:
    """Return log delta beside a range from low to top, from log delta after each end."""
    log_room = np.log(-np.expm1(low - top))
    with np.errstate(divide="ignore"):  # a range that ends at 0 is there with no chance at all
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
        # delta(-x) = 1 - e^-x + e^-x delta(x): the two neighbours of a Gaussian pair are symmetric
        mirrored = np.logaddexp(np.log(-np.expm1(-x)), value - x)
    return np.where(epsilon >= 0, value, mirrored)


@lru_cache(maxsize=65536)
def _epsilon_of_mixture(delta: float, pure: float, mu: float) -> float:
    return _root(lambda epsilon: _log_delta_of_mixture(epsilon, pure, mu), delta, pure, mu)


@lru_cache(maxsize=65536)
def _epsilon_of_range(delta: float, part: PurePart, mu: float) -> float:
    return _root(lambda epsilon: _log_delta_of_range(epsilon, part, mu), delta, part.epsilon, mu)


def _root(log_delta_at: Callable[[float], float], delta: float, pure: float, mu: float) -> float:
    """Return where a profile beside Gaussian noise falls to ``delta``, rounded up."""
    high = pure + epsilon_of(delta, mu)  # basic composition is never below
    if high == math.inf:
        return math.inf
    target = math.log(delta)

    def gap(epsilon: float) -> float:
        return log_delta_at(epsilon) - target

    if gap(0.0) <= 0:
        return 0.0
    if gap(high) > 0:  # by rounding only, where the bound coincides with basic composition
        return math.nextafter(high, math.inf)
    return min(high, least_meeting(gap, lambda epsilon: gap(epsilon) <= 0, high))


def _sum_up(values: Sequence[float]) -> float:
    # a single value is reported as it is; fsum errs by half a rounding, so step over it
    total = math.fsum(values)
    return total if len(values) < 2 else math.nextafter(total, math.inf) if total > 0 else 0.0
