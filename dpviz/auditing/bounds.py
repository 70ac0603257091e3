"""Exact binomial limits, and the lower bounds on epsilon and delta that follow from two counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, ndtri

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget


def lower_limit(count: ArrayLike, trials: int, alpha: float) -> FloatArray:
    """Return the Clopper-Pearson lower limit of a probability at confidence 1 - alpha.

    Parameters
    ----------
    count : int or array of int
        Number of successes, from 0 to trials.
    trials : int
        Number of trials, at least 1.
    alpha : float
        Above 0 and below 1. Alpha bounds the chance that the limit exceeds the probability.

    Source
    ------
    Clopper & Pearson 1934: the limit p solves P(Binomial(trials, p) >= count) = alpha.
    """
    counts = _checked(count, trials, alpha)
    with np.errstate(invalid="ignore"):
        limits = betaincinv(counts, trials - counts + 1, alpha)
    return np.where(counts == 0, 0.0, limits)


def upper_limit(count: ArrayLike, trials: int, alpha: float) -> FloatArray:
    """Return the Clopper-Pearson upper limit at confidence 1 - alpha; see `lower_limit`."""
    counts = _checked(count, trials, alpha)
    with np.errstate(invalid="ignore"):
        limits = betaincinv(counts + 1, trials - counts, 1 - alpha)
    return np.where(counts == trials, 1.0, limits)


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
    """Return max(0, ln((p_low - delta)/q_high)), a lower bound on epsilon at delta.

    Parameters
    ----------
    p_low : array
        Lower limit of the event's probability on the first table.
    q_high : array
        Upper limit, above 0, of the event's probability on the neighbour.
    delta : float
        Delta in [0, 1).
    """
    gain = np.asarray(p_low, dtype=np.float64) - delta
    low = np.asarray(q_high, dtype=np.float64)
    ratio = np.maximum(gain, 0.0) / low
    bound: FloatArray = np.log(np.maximum(ratio, 1.0))
    return bound


def delta_bound(p_low: ArrayLike, q_high: ArrayLike, epsilon: float) -> FloatArray:
    """Return max(0, p_low - e^epsilon q_high), a lower bound on delta at epsilon."""
    # e^700 does not overflow, and times any positive q_high it is far above p_low.
    upper = np.exp(min(epsilon, 700.0)) * np.asarray(q_high, dtype=np.float64)
    bound: FloatArray = np.maximum(np.asarray(p_low, dtype=np.float64) - upper, 0.0)
    return bound


def hidden_rows_bound(rows: int, guesses: int, right: int, delta: float, alpha: float) -> float:
    """Return a lower bound on epsilon from guesses about hidden rows, at confidence 1 - alpha.

    Parameters
    ----------
    rows : int
        Number of rows; a coin per row decided whether it was included.
    guesses, right : int
        Number of guesses about rows, and number of right guesses.
    delta : float
        Delta in [0, 1).
    alpha : float
        Bound on the chance that the result is too high.

    Source
    ------
    Steinke, Nasr and Jagielski 2023, Privacy Auditing with One (1) Training Run, Theorem 5.2: with
    delta 0, at most Binomial(guesses, e^eps/(1 + e^eps)) guesses are right. A delta adds 2 rows
    delta times the largest mean of the probabilities just below. Several runs on fresh rows count
    as one run on all of them.
    """
    from scipy.stats import binom  # This slow import happens late, as every page imports this file.

    _checked(right, guesses, alpha)

    def chance(epsilon: float) -> float:
        accuracy = float(expit(epsilon))
        tail = float(binom.sf(right - 1, guesses, accuracy))
        if delta > 0 and right > 0:
            below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, accuracy))
            steepest = float((below / np.arange(1, right + 1)).max())
            tail += 2 * rows * delta * steepest
        return tail

    low, high = 0.0, 50.0
    if chance(low) > alpha:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) <= alpha else (low, middle)
    return low


def least_seen(claim: Budget, draws: int, alpha: float) -> float:
    """Return the least true epsilon at which 9 in 10 audits refute a claim, given the best event.

    Parameters
    ----------
    claim : Budget
        The claim to refute.
    draws : int
        Number of releases of both tables together, on which events are counted.
    alpha : float
        Error level of each limit.

    Notes
    -----
    Randomised response is the most telling mechanism of a true epsilon. This mechanism names the
    right table with probability e^eps/(1 + e^eps); no event of any mechanism is easier to detect.
    """
    reach = float(ndtri(0.9))  # This is a normal approximation of the limit on counts.

    def refuted(epsilon: float) -> bool:
        right = float(expit(epsilon))
        wrong = 1 - right
        room = reach * math.sqrt(draws * right * wrong)
        hits, misses = math.floor(draws * right - room), math.ceil(draws * wrong + room)
        # With too few releases, the confidence margin exceeds the counts.
        if hits < 0 or misses > draws:
            return False
        least = lower_limit(hits, draws, alpha), upper_limit(misses, draws, alpha)
        return float(epsilon_bound(*least, claim.delta)) > claim.epsilon

    low, high = claim.epsilon, claim.epsilon
    while not refuted(high):
        high += 0.5 + high / 4
        if high > claim.epsilon + 60:
            return math.inf
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high
