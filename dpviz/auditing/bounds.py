"""Exact binomial limits, and the lower bounds on epsilon and delta that follow from two counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting


def lower_limit(count: ArrayLike, trials: int, alpha: float) -> FloatArray:
    """Return the Clopper-Pearson lower limit of a probability at confidence 1 - alpha.

    Parameters
    ----------
    count : int or array of int
        Successes, from 0 to trials.
    trials : int
        At least 1.
    alpha : float
        Above 0 and below 1: the chance that the limit exceeds the probability is at most this.

    Source
    ------
    Clopper & Pearson 1934: the limit p solves P(Binomial(trials, p) >= count) = alpha.
    """
    counts = _checked(count, trials, alpha)
    with np.errstate(invalid="ignore"):
        found = betaincinv(counts, trials - counts + 1, alpha)
    return np.where(counts == 0, 0.0, found)


def upper_limit(count: ArrayLike, trials: int, alpha: float) -> FloatArray:
    """Return the Clopper-Pearson upper limit at confidence 1 - alpha; see `lower_limit`."""
    counts = _checked(count, trials, alpha)
    with np.errstate(invalid="ignore"):
        found = betaincinv(counts + 1, trials - counts, 1 - alpha)
    return np.where(counts == trials, 1.0, found)


def _checked(count: ArrayLike, trials: int, alpha: float) -> FloatArray:
    counts = np.asarray(count, dtype=np.float64)
    if trials < 1:
        raise InvalidSetting("trials", "at least 1", trials)
    if not (0 < alpha < 1):
        raise InvalidSetting("alpha", "above 0 and below 1", alpha)
    if counts.size and not (counts.min() >= 0 and counts.max() <= trials):
        raise InvalidSetting("count", f"from 0 to {trials}", "another number")
    return counts


def epsilon_bound(p_low: ArrayLike, q_high: ArrayLike, delta: float) -> FloatArray:
    """Return max(0, ln((p_low - delta)/q_high)): any (epsilon, delta) claim must allow it.

    Parameters
    ----------
    p_low : array
        Lower limit of the event's probability on one table.
    q_high : array
        Upper limit, above 0, of its probability on the neighbour.
    delta : float
        In [0, 1).
    """
    gain = np.asarray(p_low, dtype=np.float64) - delta
    low = np.asarray(q_high, dtype=np.float64)
    ratio = np.maximum(gain, 0.0) / low
    found: FloatArray = np.log(np.maximum(ratio, 1.0))
    return found


def delta_bound(p_low: ArrayLike, q_high: ArrayLike, epsilon: float) -> FloatArray:
    """Return max(0, p_low - e^epsilon q_high): any (epsilon, delta) claim must allow it."""
    # e^700 is finite, and any q_high above 0 then exceeds p_low many times over
    grown = np.exp(min(epsilon, 700.0)) * np.asarray(q_high, dtype=np.float64)
    found: FloatArray = np.maximum(np.asarray(p_low, dtype=np.float64) - grown, 0.0)
    return found
