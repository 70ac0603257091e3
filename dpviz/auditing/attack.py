"""The attacker's view: trade-off curves of membership tests on a release."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import trade_off
from dpviz.auditing import Audit, default_budget
from dpviz.auditing.bounds import lower_limit, upper_limit
from dpviz.auditing.table import every_mechanism
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.problem import Budget, Problem
from dpviz.core.quantity import Kind, Quantity
from dpviz.mechanisms import Mechanism

DEFAULT_LEVELS: FloatArray = np.linspace(0.0, 1.0, 201)
DEFAULT_LEVELS.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Curve:
    """The trade-off curve of a membership test.

    Attributes
    ----------
    alpha, beta : ndarray of shape (points,)
        False-alarm rates, and the least miss rate at each of them.
    exact : bool
        Whether an attacker on the worst neighbours reaches the curve. If not, no attacker gets
        below the curve, but the curve may be lower than necessary.
    source : str
        The source of the curve, in a phrase.
    """

    alpha: FloatArray
    beta: FloatArray
    exact: bool
    source: str


@dataclass(frozen=True, eq=False)
class EmpiricalCurve:
    """The simulated trade-off curve of one attack.

    Attributes
    ----------
    alpha : ndarray of shape (points,)
        False-alarm rates.
    beta, low, high : ndarray of shape (points,)
        Observed miss rates, and their confidence band.
    confidence : float
    simultaneous : bool
        Whether the band holds at all levels simultaneously.
    """

    alpha: FloatArray
    beta: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    simultaneous: bool


def gaussian_curve(mu: float, alpha: FloatArray = DEFAULT_LEVELS, *, exact: bool = True) -> Curve:
    """Return beta(alpha) = Phi(Phi^-1(1 - alpha) - mu), exact for Gaussian noise.

    If ``exact`` is False, mu is an upper bound, and no attacker gets below the curve.

    Source
    ------
    Dong, Roth & Su 2022, "Gaussian differential privacy", equation 6.
    """
    beta = np.asarray(trade_off(alpha, mu), dtype=np.float64)
    words = "exact for Gaussian noise with mu =" if exact else "Gaussian noise with mu at most"
    return Curve(alpha, beta, exact, f"{words} {numeral(mu, 3)}")


def bounded_curve(
    budget: Budget, alpha: FloatArray = DEFAULT_LEVELS, apart: float | None = None
) -> Curve:
    """Return the lowest trade-off curve that an (epsilon, delta) guarantee allows.

    beta is at least max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha)). If the
    total variation is known to be at most ``apart``, beta is also at least 1 - alpha - apart.

    Source
    ------
    Wasserman & Zhou 2010; Kairouz, Oh & Viswanath 2015.
    """
    upper = np.exp(min(budget.epsilon, 700.0)) * alpha
    shrunk = math.exp(-budget.epsilon) * (1 - budget.delta - alpha)
    beta = np.maximum(np.maximum(1 - budget.delta - upper, shrunk), 0.0)
    words = f"bound from epsilon {numeral(budget.epsilon, 3)}"
    if apart is not None:
        beta = np.maximum(beta, 1 - alpha - apart)
    if budget.delta > 0:
        words += f" and delta {numeral(budget.delta)}"
    return Curve(alpha, beta, False, words)


def curve(
    mechanism: Mechanism, problem: Problem, budget: Budget, alpha: FloatArray = DEFAULT_LEVELS
) -> Curve:
    """Return the attacker's trade-off curve for a mechanism's actual privacy loss.

    The curve is exact for Gaussian noise of known sensitivity, and a bound for bounded sensitivity.
    For other mechanisms the bound follows from their actual (epsilon, delta). If no epsilon
    describes the release, beta is 0 at every level.
    """
    mechanism.check(problem, budget)
    loss = mechanism.spent(problem, budget)
    if loss is None or not math.isfinite(loss.epsilon):
        return Curve(alpha, np.zeros_like(alpha), False, "no epsilon limits what can be learned")
    if loss.mu is not None and 0 < loss.mu < math.inf:
        return gaussian_curve(loss.mu, alpha, exact=loss.exact)
    if loss.epsilon == 0 and loss.delta == 0:
        return Curve(alpha, 1 - alpha, True, "the release does not depend on the data")
    # Clip epsilon to the range that `Budget` accepts; this changes the claim only by rounding.
    epsilon = max(loss.epsilon, 1e-4)
    return bounded_curve(Budget(min(epsilon, 1e6), loss.delta), alpha, loss.total_variation)


def posterior(prior: float, alpha: float, beta: float) -> float:
    """Return the posterior probability of membership after an alarm, given a test's error rates.

    Bayes' rule gives prior (1 - beta)/(prior (1 - beta) + (1 - prior) alpha). A test that never
    alarms leaves the prior unchanged.
    """
    check_prior(prior)
    hit, alarm = prior * (1 - beta), (1 - prior) * alpha
    return prior if hit + alarm == 0 else hit / (hit + alarm)


def posterior_curve(prior: float, seen: Curve) -> FloatArray:
    """Return the posterior after an alarm at each level of a trade-off curve; shape (points,).

    At alpha 0, any alarm proves that the person is in. A delta above 0 allows such alarms, and
    Gaussian noise comes arbitrarily close.
    """
    return np.array(
        [posterior(prior, a, b) for a, b in zip(seen.alpha, seen.beta, strict=True)],
        dtype=np.float64,
    )


def posterior_bound(prior: float, epsilon: float) -> float:
    """Return the highest posterior that pure epsilon allows: e^eps p/(1 - p + e^eps p).

    Under (epsilon, delta) no attacker exceeds this posterior, except on a share of releases that
    delta limits; see `excess_probability`.
    """
    check_prior(prior)
    if prior in (0.0, 1.0):
        return prior
    # Compute with logarithms: e^epsilon overflows from epsilon 710 on.
    odds = math.log(prior) - math.log1p(-prior) + epsilon
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def excess_probability(epsilon: float, delta: float, beyond: float) -> float:
    """Return the greatest probability that posterior odds grow beyond e^(epsilon + beyond).

    On the set S of releases with a loss above epsilon + beyond, (epsilon, delta) gives
    P(S) <= e^epsilon Q(S) + delta <= e^-beyond P(S) + delta, so P(S) <= delta/(1 - e^-beyond).

    Parameters
    ----------
    epsilon, delta : float
        The privacy guarantee; its epsilon only sets the threshold.
    beyond : float
        Excess of the loss over epsilon, above 0.
    """
    if not (beyond > 0):
        raise InvalidSetting("beyond", "above 0", beyond)
    if not (epsilon >= 0):
        raise InvalidSetting("epsilon", "at least 0", epsilon)
    # Use expm1, because rounding in 1 - e^-x would lose small values.
    return min(1.0, delta / -math.expm1(-beyond))


def empirical_curve(
    person_in: FloatArray,
    person_out: FloatArray,
    alpha: FloatArray = DEFAULT_LEVELS,
    *,
    confidence: float = 0.95,
    simultaneous: bool = True,
) -> EmpiricalCurve:
    """Return the trade-off curve of a test on one score, with a confidence band.

    Parameters
    ----------
    person_in, person_out : ndarray of shape (trials,)
        Scores of releases of either table, high if the person seems to be in. Do not use the
        releases on which the score was chosen.
    alpha : ndarray of shape (points,)
        False-alarm rates.
    confidence : float
        Confidence of the band.
    simultaneous : bool
        True: both distribution functions lie in a Dvoretzky-Kiefer-Wolfowitz band, so the whole
        curve holds at once. False: Clopper-Pearson limits at each threshold, valid for one level
        only.

    Notes
    -----
    A score above the threshold t sounds an alarm. Suppose ``F_out`` and ``F_in`` lie within their
    bands at every t. Then the misses at level a are at most the misses of the lowest threshold
    whose alarms are surely at most a, and at least the misses of the highest threshold whose alarms
    may exceed a.

    Source
    ------
    Massart 1990 for the constant: P(sup |F_m - F| > e) <= 2 exp(-2 m e^2).
    """
    if not (0 < confidence < 1):
        raise InvalidSetting("confidence", "above 0 and below 1", confidence, "--confidence")
    if not (len(person_in) and len(person_out)):
        raise InvalidSetting("scores", "lists of one or more scores for both tables", "none")
    ordered_in, ordered_out = np.sort(person_in), np.sort(person_out)
    both = np.unique(np.concatenate([ordered_in, ordered_out]))
    # Add a threshold below all scores: there, every score raises an alarm.
    thresholds = np.concatenate([[-np.inf], both])
    misses = ordered_in.searchsorted(thresholds, "right")
    alarms = len(ordered_out) - ordered_out.searchsorted(thresholds, "right")
    # Split the error level between two confidence bands, so that both hold at once.
    share = (1 - confidence) / 2
    miss_low, miss_high = _band(misses, len(ordered_in), share, simultaneous)
    alarm_low, alarm_high = _band(alarms, len(ordered_out), share, simultaneous)
    # As the threshold rises, alarms fall and misses rise.
    beta = misses / len(ordered_in)
    miss_rates = _at_levels(alpha, alarms / len(ordered_out), beta, 1.0)
    high = _at_levels(alpha, alarm_high, miss_high, 1.0)
    low = _at_levels(alpha, alarm_low, miss_low, 1.0)
    return EmpiricalCurve(alpha, miss_rates, low, high, confidence, simultaneous)


def _band(
    counts: np.ndarray[tuple[int], np.dtype[np.intp]], trials: int, share: float, all_at_once: bool
) -> tuple[FloatArray, FloatArray]:
    if not all_at_once:
        return lower_limit(counts, trials, share / 2), upper_limit(counts, trials, share / 2)
    reach = math.sqrt(math.log(2 / share) / (2 * trials))
    rates = counts / trials
    return np.maximum(rates - reach, 0.0), np.minimum(rates + reach, 1.0)


def _at_levels(
    levels: FloatArray, alarms: FloatArray, misses: FloatArray, none: float
) -> FloatArray:
    """Return the misses at the first threshold whose alarms are at most each level."""
    # With alarms in rising order, the last entry within the level has the lowest threshold.
    ascending, matching = alarms[::-1], misses[::-1]
    place = ascending.searchsorted(levels, "right") - 1
    miss_rates: FloatArray = np.where(place >= 0, matching[np.maximum(place, 0)], none)
    return miss_rates


def check_prior(prior: float) -> None:
    """Raise `InvalidSetting` unless the prior is a probability."""
    if not (0 <= prior <= 1):
        raise InvalidSetting("prior", "from 0 to 1", prior)


ATTACK_COLUMNS = ("alpha", "beta", "posterior")

ATTACK_LEVELS: FloatArray = np.union1d(np.geomspace(1e-6, 1.0, 121), np.linspace(0.0, 1.0, 201))
"""False-alarm rates of the plotted curve, dense near 0, where alarms are most informative."""


# The attacker ------------------------------------------------------------------


def attacker_curve(mechanism: Mechanism, problem: Problem, budget: Budget) -> Curve:
    """Return the trade-off curve of a membership test at `ATTACK_LEVELS`."""
    return curve(mechanism, problem, budget, ATTACK_LEVELS)


def limit_of(prior: float, spent: Spent | None) -> float | None:
    """Return the posterior that the actual epsilon would allow without delta, or None."""
    if spent is None or not math.isfinite(spent.epsilon):
        return None
    return posterior_bound(prior, spent.epsilon)


def attack_table(seen: Curve, prior: float) -> pd.DataFrame:
    """Return a membership test's errors and the posterior after an alarm at each level.

    Returns
    -------
    DataFrame
        `ATTACK_COLUMNS`.
    """
    return pd.DataFrame(
        {"alpha": seen.alpha, "beta": seen.beta, "posterior": posterior_curve(prior, seen)}
    )[list(ATTACK_COLUMNS)]


def exhibited(problem: Problem, budget: Budget) -> Mechanism:
    """Return the mechanism whose attacker pages show first: the first with an exact curve.

    Without a delta in the budget, this is the first mechanism that runs and makes a claim.
    """
    claiming = [
        m
        for m in every_mechanism()
        if m.info.guarantee != "none"
        and m.info.featured
        and m.why_not(problem, budget) is None
        and m.spent(problem, budget) is not None
    ]
    exact = [m for m in claiming if curve(m, problem, budget).exact]
    return [*exact, *claiming, *every_mechanism()][0]


def claimed_curve(claim: Budget) -> Curve:
    """Return the lowest trade-off curve that a claim allows."""
    return bounded_curve(claim, ATTACK_LEVELS)


def attack_seen_table(measured: EmpiricalCurve) -> pd.DataFrame:
    """Return an attack's trade-off curve with its band as a table."""
    return pd.DataFrame(
        {
            "alpha": measured.alpha,
            "beta": measured.beta,
            "low": measured.low,
            "high": measured.high,
        }
    )


def attack_seen(found: Audit) -> EmpiricalCurve:
    """Return the trade-off curve of an audit's attack, on releases not used to choose it."""
    return empirical_curve(found.measured.first, found.measured.second)


def audited_budget(mechanism: Mechanism, epsilon: float, budget: Budget) -> Budget:
    """Return the audit's budget at another epsilon, with the setting's delta if claimed."""
    if mechanism.info.guarantee == "approximate" and budget.delta > 0:
        return Budget(epsilon, budget.delta)
    return default_budget(mechanism, epsilon)


# A balanced guesser, with the person in or out ----------------------------------------------------


def worlds_at(epsilon: float) -> Quantity:
    """Return the greatest share of right guesses that pure epsilon allows a balanced guesser."""
    return both_worlds(Spent(epsilon, 0.0, True, "pure"))


def both_worlds(spent: Spent | None) -> Quantity:
    """Return a balanced guesser's share of right guesses, with the person in or out.

    The attacker knows every other row and both candidates for the last, equally likely before the
    release. The guesses make a false alarm as likely as a miss. No guesser does better in both
    worlds at once.

    A test with false alarms alpha and misses beta satisfies 1 - alpha - beta <= TV, the total
    variation between both laws. With alpha = beta it errs at least (1 - TV)/2 of the time in either
    world. For Gaussian noise that rate is Phi(-mu/2), for a pure epsilon at least 1/(1 +
    e^epsilon). An (epsilon, delta) bound implies only TV <= 1 - 2 (1 - delta)/(1 + e^epsilon)
    (Kairouz, Oh & Viswanath 2015).

    Parameters
    ----------
    spent : Spent or None
        The actual privacy loss, not the claim; None or an infinite epsilon gives no promise.

    Returns
    -------
    Quantity
        From 0.5 to 1. The share is a measurement if an attacker on the worst neighbours reaches it:
        ``spent`` is exact and names its total variation, with a delta. Otherwise the share is an
        upper bound.
    """
    if spent is None:
        return Quantity(1.0, Kind.UPPER_BOUND)
    # With an infinite epsilon, no bound on the share of right guesses is below 1.
    apart, kind = 1.0, Kind.UPPER_BOUND
    if math.isfinite(spent.epsilon):
        shrunk = math.exp(-spent.epsilon)
        apart = 1 - 2 * (1 - spent.delta) * shrunk / (1 + shrunk)
    if spent.total_variation is not None:
        apart = min(apart, spent.total_variation)
        kind = spent.cost.kind if spent.delta > 0 else Kind.UPPER_BOUND
    return Quantity(1 - min(0.5, max(0.0, (1 - apart) / 2)), kind)
