"""The subsampled Gaussian mechanism: Renyi orders, and the noise that meets a budget.

Each of T steps takes every row with probability q, independently, sums a query of sensitivity 1
over the rows taken and adds N(0, z^2) noise. A row against the zero row changes one step from
N(0, z^2) to (1 - q) N(0, z^2) + q N(1, z^2) in the worst case, so this is the account for zero-out
neighbours. For whole orders a > 1 the Renyi divergence of that pair is at most

    1/(a - 1) ln sum_k C(a, k) (1 - q)^(a - k) q^k exp((k^2 - k)/(2 z^2))

in both directions (Mironov, Talwar and Zhang 2019, section 3.3). Steps add, and for every order

    epsilon <= T rdp(a) + ln((a - 1)/a) - (ln delta + ln a)/(a - 1)

(Canonne, Kamath and Steinke 2020, Proposition 12). The tests set the result beside dp-accounting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy
from scipy.special import gammaln

from dpviz.accounting.profiles import RowProfile
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Relation

ORDERS = (
    *range(2, 21), 22, 24, 27, 30, 34, 38, 43, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512, 768,
    1024, 2048, 4096,
)  # fmt: skip
"""The orders tried; the largest bounds how small an epsilon can be shown."""

_ROUNDING = 1e-12  # room for the roundings of sums over thousands of terms


@dataclass(frozen=True)
class SubsampledGaussian(RowProfile):
    """Bound on the profile of a row against the zero row, by the orders above.

    Attributes
    ----------
    rate, multiplier : float
        q in (0, 1], z above 0.
    steps : int
        T, at least 1.

    Notes
    -----
    The conversion of one order, read for delta, and the least of all of them. No event's chance
    differs by more than T q (2 Phi(1/(2 z)) - 1), which steps add up to and is less at small
    epsilon. Both orders of the neighbours have this bound.
    """

    rate: float
    multiplier: float
    steps: int

    def with_row(self, epsilon: FloatArray) -> FloatArray:
        """Return the least delta that any order allows."""
        orders = np.asarray(ORDERS, dtype=np.float64)
        total = self.steps * _renyi_orders(self.rate, self.multiplier) * (1 + _ROUNDING)
        slack = total + _ROUNDING + np.log1p(-1 / orders)
        logs = (orders - 1) * (slack - np.asarray(epsilon)[..., None]) - np.log(orders)
        apart = self.steps * self.rate * math.erf(1 / (self.multiplier * math.sqrt(8)))
        least: FloatArray = np.exp(np.minimum(logs.min(axis=-1), 0.0)) * (1 + _ROUNDING)
        return np.minimum(least, min(1.0, apart * (1 + _ROUNDING)))

    def without_row(self, epsilon: FloatArray) -> FloatArray:
        """Return the same bound."""
        return self.with_row(epsilon)

    def replaced(self, epsilon: float) -> float:
        """Refuse: a replaced row is two such rows, which no step was proved for."""
        raise NotImplementedError("subsampled steps are accounted for under zero-out only")

    def epsilon(self, relation: Relation, delta: float) -> float:
        """Return the epsilon spent at delta, rounded up."""
        return epsilon_of_steps(delta, self.rate, self.multiplier, self.steps)

    def repeated(self, releases: int) -> SubsampledGaussian:
        """Return the profile of as many times the steps."""
        return replace(self, steps=self.steps * releases)

    def renyi(self, order: float) -> float:
        """Return the divergence at the next whole order: it never falls with the order."""
        return self.steps * renyi(math.ceil(order), self.rate, self.multiplier) * (1 + _ROUNDING)


@lru_cache(maxsize=64)
def _renyi_orders(rate: float, multiplier: float) -> FloatArray:
    found: FloatArray = np.array([renyi(order, rate, multiplier) for order in ORDERS])
    found.setflags(write=False)
    return found


@lru_cache(maxsize=64)
def _binomials(order: int) -> FloatArray:
    k = np.arange(order + 1)
    logs: FloatArray = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs.setflags(write=False)
    return logs


def renyi(order: int, rate: float, multiplier: float) -> float:
    """Return the bound on the Renyi divergence of one step, of a whole order from 2 on.

    Parameters
    ----------
    order : int
    rate : float
        q, in (0, 1].
    multiplier : float
        z, the noise std over the sensitivity, above 0.
    """
    # every row in every step: the Gaussian's own divergence
    if rate == 1:
        return order / (2 * multiplier**2)
    k = np.arange(order + 1)
    # in logarithms: at orders in the thousands the terms themselves are no doubles
    terms = _binomials(order) + (order - k) * math.log1p(-rate) + k * math.log(rate)
    terms = terms + k * (k - 1.0) / (2 * multiplier**2)
    top = float(terms.max())
    return max(0.0, top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)


def epsilon_of_steps(delta: float, rate: float, multiplier: float, steps: int) -> float:
    """Return an upper bound of the epsilon spent at delta by so many steps.

    Parameters
    ----------
    delta : float
        Above 0.
    rate, multiplier : float
    steps : int
    """
    best = math.inf
    for order, one in zip(ORDERS, _renyi_orders(rate, multiplier), strict=True):
        total = steps * float(one) * (1 + _ROUNDING) + _ROUNDING
        # Proposition 12 at this order; each is a bound, so the least of them is
        bound = total + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, bound)
    return max(0.0, best)


@lru_cache(maxsize=512)
def least_multiplier(budget: Budget, rate: float, steps: int) -> float:
    """Return the least z found with which the steps meet the budget, rounded up.

    Raises
    ------
    InvalidSetting
        If the epsilon is below what these orders can show at this delta.
    """
    if budget.epsilon <= least_epsilon(budget.delta):
        raise InvalidSetting(
            "epsilon",
            f"above {numeral(least_epsilon(budget.delta))} here",
            budget.epsilon,
            "--epsilon",
        )

    def over(log_multiplier: float) -> float:
        spent = epsilon_of_steps(budget.delta, rate, math.exp(log_multiplier), steps)
        return math.log(max(spent, 1e-300) / budget.epsilon)

    # ln z: epsilon falls with z, and a bracket is found a factor e at a time
    low = high = 0.0
    while over(high) > 0:
        high += 1.0
    while over(low) <= 0:
        low -= 1.0
    found = (
        float(scipy.optimize.brentq(over, low, high, xtol=1e-13, rtol=1e-13))
        if low < high
        else high
    )
    while over(found) > 0:
        found += 1e-12
    return math.exp(found)


def least_epsilon(delta: float) -> float:
    """Return the epsilon that no noise, however large, brings the account below."""
    bounds: list[float] = [
        _ROUNDING + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1) for a in ORDERS
    ]
    return max(0.0, min(bounds))
