"""What a release really costs, recomputed from what the mechanism says it does.

A mechanism describes its randomness as a sequence of parts, each a frozen value
that states a sensitivity and a noise scale in the same units, or a proved pure
epsilon. `spent` turns the parts into (epsilon, delta) without knowing how the
mechanism was calibrated, so a wrong calibration shows. It cannot see a wrong
sensitivity: that is for the numerical searches in the tests.

Parts compose adaptively: each may depend on what the ones before it released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from dpviz.errors import InvalidSetting
from dpviz.privacy.gaussian import (
    delta_of,
    epsilon_of,
    least_meeting,
    log_delta,
    mu_of,
    rounding_room,
)
from dpviz.values.parts import ApproximatePart, GaussianPart, LaplacePart, Part, PurePart
from dpviz.values.problem import Budget

_ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Spent:
    """The privacy that a release costs.

    Attributes
    ----------
    epsilon : float
        At least 0; may be infinite.
    delta : float
        The delta at which ``epsilon`` is quoted; 0 for pure privacy.
    exact : bool
        Whether ``epsilon`` is the least possible at ``delta``, given that the stated
        sensitivities are attained; otherwise it is an upper bound.
    source : str
        The account it comes from, in a phrase.
    delta_at_epsilon : float or None
        The delta really given at the claimed epsilon, exact or a bound as ``exact`` says;
        None where nobody computed it.
    total_variation : float or None
        The most by which the chance of any event differs between neighbours: the delta at
        epsilon 0, exact or a bound as ``exact`` says. None where nobody computed it.
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


def spent(parts: Sequence[Part], budget: Budget) -> Spent:
    """Return what the parts cost together.

    Parameters
    ----------
    parts : sequence of Part
        In any order. None at all costs nothing.
    budget : Budget
        Its delta is where epsilon is quoted if there is Gaussian noise; its epsilon is where
        ``delta_at_epsilon`` is computed. Nothing else is taken from it.

    Returns
    -------
    Spent
        Rounded up. It is quoted at the budget's delta if a part needs one, else at delta 0.

    Notes
    -----
    Gaussian parts compose to one with mu^2 the sum of the mu^2, exactly, also adaptively
    (Dong, Roth & Su 2022, Corollary 2). Pure epsilons add. A pure bound e is dominated by
    randomised response, whose loss is +e with probability 1/(1 + exp(-e)) and -e otherwise
    (Kairouz, Oh & Viswanath 2015), and dominating pairs compose (Zhu, Dong & Wang 2022,
    Theorem 10), so with Gaussian noise of profile D beside it

        delta(epsilon) <= p D(epsilon - e) + (1 - p) D(epsilon + e),   p = 1/(1 + exp(-e)).

    An (e, d) release is dominated by one that tells everything with probability d and is else the
    randomised response of e (Kairouz, Oh & Viswanath 2015), so with f the chance that any of such
    parts fails, delta(epsilon) <= f + (1 - f) times the right side above, e counting theirs too.
    """
    other = [part for part in parts if not isinstance(part, GaussianPart)]
    pure = [part for part in other if not isinstance(part, ApproximatePart)]
    mu = math.hypot(*(part.mu for part in parts if isinstance(part, GaussianPart)))
    total = _sum_up([part.epsilon for part in other])
    if len(pure) < len(other):
        return _spent_with_failures(parts, total, mu, budget)
    if mu == 0:
        return _spent_pure(pure, total, budget.epsilon)
    count = len(parts) - len(pure)
    attained = all(part.attained for part in parts if isinstance(part, GaussianPart))
    gaussian = "exact Gaussian profile" + (f", {count} adaptive steps" if count > 1 else "")
    if total == 0:
        return Spent(
            epsilon=epsilon_of(budget.delta, mu),
            delta=budget.delta,
            exact=attained,
            source=gaussian,
            delta_at_epsilon=delta_of(budget.epsilon, mu),
            total_variation=math.erf(mu / math.sqrt(8)),
            mu=mu,
        )
    return Spent(
        epsilon=_epsilon_of_mixture(budget.delta, total, mu),
        delta=budget.delta,
        exact=False,
        source=f"{gaussian}, composed with a pure epsilon of {total:.3g}",
        delta_at_epsilon=math.exp(_log_delta_of_mixture(budget.epsilon, total, mu)),
        total_variation=math.exp(_log_delta_of_mixture(0.0, total, mu)),
    )


def greatest_mu_beside(parts: Sequence[Part], budget: Budget) -> float:
    """Return the greatest mu of one more Gaussian part with which all meet the budget.

    Parameters
    ----------
    parts : sequence of Part
        They must leave something: their own cost is below the budget.
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
    taken = math.hypot(*(part.mu for part in parts if isinstance(part, GaussianPart)))
    other = [part for part in parts if not isinstance(part, GaussianPart)]
    if taken < high and not other:
        # Gaussian parts compose by the squares of their mu; a few roundings to the safe side.
        return math.sqrt((high - taken) * (high + taken)) / (1 + 64 * _ROUNDING)
    total, failing = _sum_up([part.epsilon for part in other]), _failing(parts)

    def over(mu: float) -> float:
        rest = math.exp(_log_delta_of_mixture(budget.epsilon, total, math.hypot(taken, mu)))
        return failing + (1 - failing) * rest - budget.delta

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
    while over(mu) > 0 or spent((*parts, GaussianPart(mu, 1.0)), budget).epsilon > budget.epsilon:
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


def _spent_with_failures(parts: Sequence[Part], total: float, mu: float, budget: Budget) -> Spent:
    failing = _failing(parts)
    left = (budget.delta - failing) * (1 - 8 * _ROUNDING)
    left = left / (1 - failing) if failing < 1 else -1.0
    names = []
    for part in parts:
        if not isinstance(part, GaussianPart):
            names.append("Laplace noise" if isinstance(part, LaplacePart) else part.reason)
        elif mu > 0:
            names.append("exact Gaussian profile")
    if mu > 0:
        rest = math.exp(_log_delta_of_mixture(budget.epsilon, total, mu))
        apart = math.exp(_log_delta_of_mixture(0.0, total, mu))
        epsilon = _epsilon_of_mixture(left, total, mu) if left > 0 else math.inf
    else:
        rest, apart = _delta_of_pure(budget.epsilon, total), math.tanh(total / 2)
        epsilon = _epsilon_of_pure(left, total) if left >= 0 else math.inf
    return Spent(
        epsilon=epsilon,
        delta=budget.delta,
        exact=False,
        source=" + ".join(dict.fromkeys(names)),
        delta_at_epsilon=min(1.0, (failing + (1 - failing) * rest) * (1 + 4 * _ROUNDING)),
        total_variation=min(1.0, (failing + (1 - failing) * apart) * (1 + 4 * _ROUNDING)),
    )


def _epsilon_of_pure(delta: float, total: float) -> float:
    """Return where the profile of randomised response falls to ``delta``, rounded up."""
    share = delta * (1 + math.exp(-total))
    if share >= 1:
        return 0.0
    if total == math.inf:
        return total
    return min(total, max(0.0, total + math.log1p(-share) + 8 * _ROUNDING * total))


def _spent_pure(parts: Sequence[LaplacePart | PurePart], total: float, claimed: float) -> Spent:
    active = [part for part in parts if part.epsilon > 0]
    if not active:
        return Spent(0.0, 0.0, True, "does not depend on the data", 0.0, 0.0)
    names = ["Laplace noise" if isinstance(p, LaplacePart) else p.reason for p in active]
    return Spent(
        epsilon=total,
        delta=0.0,
        exact=len(active) == 1 and active[0].attained,
        source=" + ".join(dict.fromkeys(names)),
        delta_at_epsilon=_delta_of_pure(claimed, total),
        total_variation=math.tanh(total / 2),
    )


def _delta_of_pure(epsilon: float, total: float) -> float:
    """Return the most delta that a pure bound ``total`` allows at ``epsilon``."""
    if epsilon >= total:
        return 0.0
    # (e^total - e^epsilon) / (e^total + 1), the profile of randomised response
    return -math.expm1(epsilon - total) / (1 + math.exp(-total))


def _log_delta_of_mixture(epsilon: float, pure: float, mu: float) -> float:
    if math.inf in (pure, mu):
        return 0.0
    log_share = -math.log1p(math.exp(-pure))
    likely = _log_profile(epsilon - pure, mu)
    unlikely = _log_profile(epsilon + pure, mu) - pure
    return min(0.0, log_share + float(np.logaddexp(likely, unlikely)))


def _log_profile(epsilon: float, mu: float) -> float:
    """Return log delta of Gaussian noise at any real epsilon, rounded up."""
    x = abs(epsilon)
    value = log_delta(x, mu)
    value += rounding_room(x, mu, value)
    if epsilon >= 0:
        return value
    # delta(-x) = 1 - e^-x + e^-x delta(x): the two neighbours of a Gaussian pair are symmetric
    return float(np.logaddexp(math.log(-math.expm1(-x)), value - x))


@lru_cache(maxsize=65536)
def _epsilon_of_mixture(delta: float, pure: float, mu: float) -> float:
    if delta == 0 or math.inf in (pure, mu):
        return math.inf
    high = pure + epsilon_of(delta, mu)  # basic composition is never below
    if high == math.inf:
        return math.inf
    target = math.log(delta)

    def gap(epsilon: float) -> float:
        return _log_delta_of_mixture(epsilon, pure, mu) - target

    if gap(0.0) <= 0:
        return 0.0
    if gap(high) > 0:  # by rounding only, where the bound coincides with basic composition
        return math.nextafter(high, math.inf)
    return min(high, least_meeting(gap, lambda epsilon: gap(epsilon) <= 0, high))


def _sum_up(values: Sequence[float]) -> float:
    # a single value is reported as it is; fsum errs by half a rounding, so step over it
    total = math.fsum(values)
    return total if len(values) < 2 else math.nextafter(total, math.inf) if total > 0 else 0.0
