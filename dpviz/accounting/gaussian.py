"""The exact privacy profile of Gaussian noise, in log space.

Gaussian noise of standard deviation ``std`` on a query of l2 sensitivity ``D`` has the
noise-to-signal number ``mu = D / std``. The noise is (epsilon, delta)-private exactly when

    delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

(Balle & Wang 2018, "Improving the Gaussian mechanism for differential privacy: analytical
calibration and optimal denoising", Theorem 8). The two terms cancel and underflow, so this module
never evaluates them as written. With ``a = epsilon/mu - mu/2``, ``b = epsilon/mu + mu/2`` and the
Mills ratio ``m(x) = Phi(-x) / phi(x)`` the identity ``b^2 - a^2 = 2 epsilon`` gives

    delta = phi(a) (m(a) - m(b)) = phi(a) * integral from a to b of (1 - x m(x)) dx,

whose integrand is positive. If a and b are close, the integral is used, so no digits are lost. The
factor phi(a) is stored as a logarithm.

Every result is rounded to the safe side: `mu_of` is never above and `epsilon_of` never below the
true root.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias, overload

import numpy as np
import scipy
from scipy.special import erfcx, erfinv, ndtr, ndtri, ndtri_exp

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget

Numbers: TypeAlias = float | FloatArray

_ROUNDING = float(np.finfo(np.float64).eps)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
# Up to this value squares do not overflow; beyond it, log delta is below -1e299 anyway.
_HUGE = 1e150

# Gauss-Legendre nodes for integrals over [a, b] with b - a <= max(1, a). There 1 - x m(x) is
# analytic in an ellipse of parameter at least 3 + sqrt 8, so 16 nodes err by less than 1e-24.
_nodes, _weights = np.polynomial.legendre.leggauss(16)
_NODES: FloatArray = 0.5 * (np.asarray(_nodes, dtype=np.float64) + 1)
_WEIGHTS: FloatArray = 0.5 * np.asarray(_weights, dtype=np.float64)

# For large x and the Mills ratio m, 1 - x m(x) = 1/x^2 - 3/x^4 + 15/x^6 - ..., by parts.
_SERIES_FROM = 20.0
_SERIES = (1.0, -3.0, 15.0, -105.0, 945.0, -10395.0, 135135.0, -2027025.0, 34459425.0, -654729075.0)

# `mu_of` allows for this many rounding errors and `epsilon_of` for fewer. So a mechanism that
# multiplies the noise by its sensitivity (a few more rounding errors) still meets its claim.
_CALIBRATION_ROOM = 64
_REPORT_ROOM = 16


@overload
def log_delta(epsilon: float, mu: float) -> float: ...
@overload
def log_delta(epsilon: Numbers, mu: Numbers) -> FloatArray | float: ...
def log_delta(epsilon: Numbers, mu: Numbers) -> FloatArray | float:
    """Return the natural logarithm of the least delta that noise ``mu`` gives at ``epsilon``.

    Parameters
    ----------
    epsilon : float or ndarray
        Epsilon, at least 0.
    mu : float or ndarray
        Sensitivity divided by standard deviation, at least 0 (0 means no signal, infinity no
        noise). Arrays broadcast against each other.

    Returns
    -------
    float or ndarray
        Log delta, in [-inf, 0]; a float if both arguments are numbers.

    Raises
    ------
    InvalidSetting
        If an argument is negative or not a number, or epsilon is infinite.

    Source
    ------
    The formula of Balle & Wang 2018, Theorem 8, rewritten as in the module docstring.
    """
    if isinstance(epsilon, (int, float)) and isinstance(mu, (int, float)):
        _check_epsilon(float(epsilon))
        _check_mu(float(mu))
        return _log_delta(float(epsilon), float(mu))
    epsilons, mus = np.broadcast_arrays(
        np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    )
    if epsilons.size:
        _check_epsilon(float(epsilons.min()))
        _check_epsilon(float(epsilons.max()))
        _check_mu(float(mus.min()))
    return _log_delta_array(epsilons, mus)


@overload
def delta_of(epsilon: float, mu: float) -> float: ...
@overload
def delta_of(epsilon: Numbers, mu: Numbers) -> FloatArray | float: ...
def delta_of(epsilon: Numbers, mu: Numbers) -> FloatArray | float:
    """Return the least delta that noise ``mu`` gives at ``epsilon``; see `log_delta`.

    Deltas below about 1e-308 underflow to 0; `log_delta` has no underflow.
    """
    logs = log_delta(epsilon, mu)
    return math.exp(logs) if isinstance(logs, float) else np.exp(logs)


def loss_beyond(epsilon: float, mu: float) -> float:
    """Return the chance that the privacy loss of noise ``mu`` exceeds epsilon.

    The loss is normal with mean mu^2/2 and standard deviation mu, so the chance is Phi(mu/2 -
    epsilon/mu). At usual settings this chance is 12 to 111 times delta: delta is the mean of (1 -
    e^(epsilon - loss))_+, and most losses beyond epsilon exceed it only slightly.

    Parameters
    ----------
    epsilon : float
        Epsilon, at least 0.
    mu : float
        Sensitivity divided by standard deviation, at least 0; may be infinite.
    """
    _check_epsilon(epsilon)
    _check_mu(mu)
    if mu in (0.0, math.inf):
        return 0.0 if mu == 0 else 1.0
    return float(ndtr(mu / 2 - epsilon / mu))


def epsilon_of(delta: float, mu: float) -> float:
    """Return the least epsilon that noise ``mu`` gives at ``delta``, rounded up.

    Parameters
    ----------
    delta : float
        Delta in [0, 1).
    mu : float
        Sensitivity divided by standard deviation, at least 0; may be infinite.

    Returns
    -------
    float
        Epsilon, at least 0; infinite without noise, and for delta = 0 unless mu = 0, because the
        loss of Gaussian noise is unbounded. Never below the true value; above it by rounding only.

    Raises
    ------
    InvalidSetting
        If delta is outside [0, 1) or mu is negative or not a number.

    Source
    ------
    The root of the formula of Balle & Wang 2018, Theorem 8, in epsilon.
    """
    if not (0 <= delta < 1):
        raise InvalidSetting("delta", "at least 0 and below 1", delta, "--delta")
    _check_mu(mu)
    return _epsilon_of(float(delta), float(mu))


def mu_of(budget: Budget) -> float:
    """Return the greatest noise-to-signal number ``mu`` that meets the budget, rounded down.

    Parameters
    ----------
    budget : Budget
        The budget; its delta must be above 0.

    Returns
    -------
    float
        mu = sensitivity / standard deviation. ``log_delta(budget.epsilon, mu)`` is at most
        ``log(budget.delta)`` with room for some tens of roundings, in this code and in the
        caller's product of sensitivity and noise.

    Raises
    ------
    InvalidSetting
        If the budget's delta is 0: Gaussian noise has unbounded loss.

    Source
    ------
    The root of the formula of Balle & Wang 2018, Theorem 8, in mu.
    """
    _needs_delta(budget)
    return _mu_of(budget.epsilon, budget.delta)


def noise_std(budget: Budget) -> float:
    """Return g(epsilon, delta), the least noise std for an l2 sensitivity of 1, rounded up.

    A query of sensitivity D needs ``D * noise_std(budget)`` in the query's own units. The result is
    exact at every epsilon; see `mu_of` for errors and source.
    """
    mu = mu_of(budget)
    std = 1 / mu
    while 1 / std > mu:
        std = math.nextafter(std, math.inf)
    return std


def classical_std(budget: Budget) -> float:
    """Return sqrt(2 ln(1.25/delta)) / epsilon, the textbook noise std for an l2 sensitivity of 1.

    The formula is proved only for epsilon < 1, where its noise is larger than needed. At large
    epsilon the formula breaks its guarantee; use `noise_std` instead.

    Raises
    ------
    InvalidSetting
        If the budget's delta is 0.

    Source
    ------
    Dwork & Roth 2014, "The algorithmic foundations of differential privacy", Theorem A.1.
    """
    _needs_delta(budget)
    # Subtract logarithms: 1.25 / delta would overflow for a subnormal delta.
    return math.sqrt(2 * (math.log(1.25) - math.log(budget.delta))) / budget.epsilon


@overload
def trade_off(alpha: float, mu: float) -> float: ...
@overload
def trade_off(alpha: Numbers, mu: Numbers) -> FloatArray | float: ...
def trade_off(alpha: Numbers, mu: Numbers) -> FloatArray | float:
    """Return the least miss rate of a membership test with false-alarm rate ``alpha``.

    beta(alpha) = Phi(Phi^-1(1 - alpha) - mu): no membership test on a release with noise ``mu`` has
    a lower miss rate, and the likelihood-ratio test attains this rate.

    Parameters
    ----------
    alpha : float or ndarray
        False-alarm rate in [0, 1].
    mu : float or ndarray
        Sensitivity divided by standard deviation, at least 0 and finite.

    Returns
    -------
    float or ndarray
        Miss rate in [0, 1]; arrays broadcast.

    Raises
    ------
    InvalidSetting
        If alpha is outside [0, 1] or mu is negative, infinite or not a number.

    Source
    ------
    Dong, Roth & Su 2022, "Gaussian differential privacy", equation (6).
    """
    alphas = np.asarray(alpha, dtype=np.float64)
    mus = np.asarray(mu, dtype=np.float64)
    for bound in (alphas.min(initial=0.0), alphas.max(initial=0.0)):
        if not (0 <= bound <= 1):
            raise InvalidSetting("alpha", "a number from 0 to 1", float(bound))
    for bound in (mus.min(initial=0.0), mus.max(initial=0.0)):
        if not (0 <= bound < math.inf):
            raise InvalidSetting("mu", "a finite number of at least 0", float(bound))
    # Use Phi^-1(1 - alpha) = -Phi^-1(alpha), which keeps the digits of a tiny alpha.
    beta: FloatArray = np.asarray(ndtr(-ndtri(alphas) - mus), dtype=np.float64)
    return float(beta) if beta.ndim == 0 else beta


def least_meeting(
    gap: Callable[[float], float], meets: Callable[[float], bool], high: float
) -> float:
    """Return the root of a decreasing function on [0, high], moved up until ``meets`` holds.

    Parameters
    ----------
    gap : callable
        A decreasing function, above 0 at 0 and at most 0 at ``high``.
    meets : callable
        Strict test of a candidate; true from just above the root on.
    high : float
        Upper end of the search, finite and above 0.
    """
    # Use a tolerance relative to high: terms as large as high limit the accuracy of epsilon.
    root = float(scipy.optimize.brentq(gap, 0.0, high, xtol=_ROUNDING * high, rtol=4 * _ROUNDING))
    step = max(2 * _ROUNDING * root, math.ulp(0.0))
    while not meets(root):
        root += step
        step *= 1.5
    return root


@overload
def rounding_room(epsilon: float, mu: float, value: float, roundings: int = ...) -> float: ...
@overload
def rounding_room(
    epsilon: FloatArray, mu: float, value: FloatArray, roundings: int = ...
) -> FloatArray: ...
def rounding_room(
    epsilon: Numbers, mu: float, value: Numbers, roundings: int = _REPORT_ROOM
) -> Numbers:
    """Return a bound on the error of ``value = log_delta(epsilon, mu)``.

    A relative rounding u of mu or epsilon moves a by at most b u, so log delta by about
    (1 + |a|) b u (1 - delta), and the evaluation itself rounds 1 - delta a few times.

    Parameters
    ----------
    epsilon, value : float or ndarray
        The argument and the result of `log_delta`.
    mu : float
    roundings : int
        Number of roundings to allow for; the evaluation alone needs about 5.
    """
    if isinstance(epsilon, np.ndarray):
        if mu == 0:
            return np.zeros_like(epsilon)
        a = np.clip(epsilon / mu - mu / 2, -_HUGE, _HUGE)
        b = np.minimum(epsilon / mu + mu / 2, _HUGE)
        room: FloatArray = -roundings * _ROUNDING * (1 + (1 + np.abs(a)) * b) * np.expm1(value)
        return room
    if mu == 0:
        return 0.0
    low, far = _ends(epsilon, mu)
    return -roundings * _ROUNDING * (1 + (1 + abs(low)) * far) * math.expm1(float(value))


def _check_epsilon(epsilon: float) -> None:
    if not (0 <= epsilon < math.inf):
        raise InvalidSetting("epsilon", "a finite number of at least 0", epsilon, "--epsilon")


def _check_mu(mu: float) -> None:
    if not (mu >= 0):  # This condition also catches NaN.
        raise InvalidSetting("mu", "a number of at least 0", mu)


def _needs_delta(budget: Budget) -> None:
    if budget.delta == 0:
        raise InvalidSetting(
            "delta", "above 0 and below 1 for Gaussian noise", budget.delta, "--delta"
        )


def _log_delta(epsilon: float, mu: float) -> float:
    if mu == 0:
        return -math.inf
    a, b = _ends(epsilon, mu)
    if mu <= max(1.0, a):
        return float(_log_close(np.asarray(a), np.asarray(mu)))
    if a >= 0:
        return float(_log_far(np.asarray(a), np.asarray(b)))
    return float(_log_near_one(np.asarray(a), np.asarray(b)))


def _ends(epsilon: float, mu: float) -> tuple[float, float]:
    a = epsilon / mu - mu / 2
    return min(max(a, -_HUGE), _HUGE), min(epsilon / mu + mu / 2, _HUGE)


def _log_delta_array(epsilon: FloatArray, mu: FloatArray) -> FloatArray:
    safe = np.where(mu == 0, 1.0, mu)
    with np.errstate(over="ignore"):
        a = np.clip(epsilon / safe - safe / 2, -_HUGE, _HUGE)
        b = np.minimum(epsilon / safe + safe / 2, _HUGE)
    out = np.full(mu.shape, -np.inf)
    close = (mu > 0) & (mu <= np.maximum(1.0, a))
    far = (mu > 0) & ~close & (a >= 0)
    near = (mu > 0) & ~close & (a < 0)
    if close.any():
        out[close] = _log_close(a[close], mu[close])
    if far.any():
        out[far] = _log_far(a[far], b[far])
    if near.any():
        out[near] = _log_near_one(a[near], b[near])
    return out


def _mills(x: FloatArray) -> FloatArray:
    ratio: FloatArray = _SQRT_HALF_PI * erfcx(x * _SQRT_HALF)
    return ratio


def _falling_near(x: FloatArray) -> FloatArray:
    # 1 - x m(x) errs by x^2 rounding errors, no more than the rounding of a causes.
    falling: FloatArray = 1 - x * _mills(x)
    return falling


def _falling_far(x: FloatArray) -> FloatArray:
    inverse = 1 / x**2
    series = np.zeros_like(x)
    for coefficient in reversed(_SERIES):
        series = coefficient + inverse * series
    return inverse * series


def _log_close(a: FloatArray, mu: FloatArray) -> FloatArray:
    # delta is phi(a) * integral of 1 - x m(x) on [a, a + mu]; here mu <= max(1, a) and a >= -1/2.
    x = a[..., None] + mu[..., None] * _NODES
    near = x < _SERIES_FROM
    if near.all():
        falling = _falling_near(x)
    elif not near.any():
        falling = _falling_far(x)
    else:
        falling = np.empty_like(x)
        falling[near] = _falling_near(x[near])
        falling[~near] = _falling_far(x[~near])
    log_mean: FloatArray = np.log(falling @ _WEIGHTS)
    return np.asarray(-0.5 * a * a - _LOG_SQRT_2PI + np.log(mu) + log_mean)


def _log_far(a: FloatArray, b: FloatArray) -> FloatArray:
    # Subtracting is safe: here b >= 2 a and b - a >= 1, so m(a) and m(b) differ clearly.
    return np.asarray(-0.5 * a * a - _LOG_SQRT_2PI + np.log(_mills(a) - _mills(b)))


def _log_near_one(a: FloatArray, b: FloatArray) -> FloatArray:
    # For a < 0, use 1 - delta = phi(a) (m(-a) + m(b)): a sum of positive terms loses no digits.
    return np.asarray(np.log1p(-np.exp(-0.5 * a * a - _LOG_SQRT_2PI) * (_mills(-a) + _mills(b))))


def _meets(epsilon: float, mu: float, log_target: float, roundings: int) -> bool:
    value = _log_delta(epsilon, mu)
    return value + rounding_room(epsilon, mu, value, roundings) <= log_target


@lru_cache(maxsize=65536)
def _epsilon_of(delta: float, mu: float) -> float:
    if mu == 0:
        return 0.0
    if delta == 0 or mu == math.inf:
        return math.inf
    target = math.log(delta)
    if _meets(0.0, mu, target, _REPORT_ROOM):
        return 0.0
    # As delta(epsilon) < Phi(-a), the epsilon with Phi(-a) = delta is large enough.
    high = mu * (mu / 2 - float(ndtri(delta)))
    if not high < math.inf:
        return math.inf
    high = max(high, math.ulp(0.0)) * (1 + 1e-9)
    return least_meeting(
        lambda epsilon: _log_delta(epsilon, mu) - target,
        lambda epsilon: _meets(epsilon, mu, target, _REPORT_ROOM),
        high,
    )


@lru_cache(maxsize=65536)
def _mu_of(epsilon: float, delta: float) -> float:
    target = math.log(delta)
    z = -float(ndtri(delta))
    root = math.sqrt(z * z + 2 * epsilon)
    # Two mu meet the budget: one with Phi(-a) = delta, and one with that delta at epsilon 0.
    below = 2 * epsilon / (root + z) if z > 0 else root - z
    low = max(below, 2 * math.sqrt(2) * float(erfinv(delta)), math.ulp(0.0)) * (1 - 1e-9)
    # An (epsilon, delta) mechanism has total variation up to 1 - 2 (1 - delta) / (1 + e^epsilon)
    # (Kairouz, Oh & Viswanath 2015). For Gaussian noise it is 1 - 2 Phi(-mu/2).
    log_one_plus = epsilon + math.log1p(math.exp(-epsilon))
    high = -2 * float(ndtri_exp(math.log1p(-delta) - log_one_plus)) * (1 + 1e-9)
    high = max(high, low * (1 + 1e-6))
    log_mu = scipy.optimize.brentq(
        lambda log_mu: _log_delta(epsilon, math.exp(log_mu)) - target,
        math.log(low),
        math.log(high),
        xtol=1e-15,
        rtol=4 * _ROUNDING,
    )
    mu = math.exp(log_mu)
    step = 4 * _ROUNDING
    while not _meets(epsilon, mu, target, _CALIBRATION_ROOM):
        mu *= 1 - step
        step *= 1.5
    return mu


# --- discrete Gaussian noise ----------------------------------------------------------------------


_SECOND, _FOURTH = 0.02017, 0.0062
_ROOM = 1 + 1e-12


def rounding_distance(scale: float) -> float:
    """Return tau(scale), the bound on the total variation of one coordinate.

    Parameters
    ----------
    scale : float
        Scale of the noise, at least 1.

    Notes
    -----
    Let Z be the discrete Gaussian of scale s >= 1, P(Z = k) proportional to exp(-k^2/(2 s^2)), and
    R = round(N(0, s^2)). For a whole number x, x + R is x + N(0, s^2) rounded. Rounding is
    post-processing, so the exact profile of the Gaussian mechanism holds for R. Z is close to R.

    **Theorem.** The total variation between Z and R is at most

        tau(s) = .02017/s^2 + .0062/s^4.

    *Proof.* Let f be the density of N(0, s^2), phi the standard normal density and u = x/s.

    1. By Poisson summation the f(k) sum to S = 1 + 2 sum_(m >= 1) exp(-2 pi^2 s^2 m^2). As
       P(Z = k) = f(k)/S, half the sum of |P(Z = k) - f(k)| is (S - 1)/2 <= 1.001 exp(-2 pi^2 s^2).
    2. By Taylor's formula P(R = k) - f(k) is the integral over |v| <= 1/2 of K(v) f''(k + v), where
       K(v) = (1/2 - |v|)^2/2 >= 0 has the integral 1/24. So the sum over k of |P(R = k) - f(k)| is
       at most 1/24 times the largest over v of H(v) = sum_k |f''(k + v)|.
    3. f'' = (u^2 - 1) phi(u)/s^3, so h = |f''| has the integral 4 phi(1)/s^2. By Euler and
       Maclaurin H(v) differs from it by the integral of (c - B(x - v)/2) dh'(x), B(t) = t^2 - t +
       1/6 repeated from [0, 1) and c any constant, since h' vanishes at both ends. B/2 runs from
       -1/24 to 1/12: the difference is at most Var(h')/16.
    4. h' is (3u - u^3) phi(u)/s^4 up to its sign, which flips at u = -1 and 1. With g that function
       of u, extreme at a^2 = 3 - sqrt 6 and b^2 = 3 + sqrt 6, Var(h') is
       (4 g(a) + 4 |g(b)| + 8 phi(1))/s^4 <= 4.737/s^4.
    5. Half of (4 phi(1)/s^2 + .2961/s^4)/24 is at most .0201643/s^2 + .00617/s^4, and the remainder
       of .02017/s^2 is above 1.001 exp(-2 pi^2 s^2) for every s >= 1.
    """
    if not (1 <= scale < math.inf):
        raise InvalidSetting("scale of discrete noise", "a finite number of at least 1", scale)
    return (_SECOND + _FOURTH / scale**2) / scale**2 * _ROOM


def log_excess(epsilon: float, scale: float, coordinates: int) -> float:
    """Return the logarithm of (1 + e^epsilon) m tau(scale), rounded up."""
    whole = epsilon + math.log1p(math.exp(-epsilon))
    return whole + math.log(coordinates * rounding_distance(scale)) + 1e-12 * (1 + epsilon)


def least_scale(budget: Budget, sensitivity: int, coordinates: int) -> float | None:
    """Return the least scale found for discrete noise that meets the budget, rounded up.

    Parameters
    ----------
    budget : Budget
        The budget; its delta must be above 0.
    sensitivity : int
        l2 sensitivity, above 0.
    coordinates : int
        m, at least 1.

    Returns
    -------
    float or None
        None if the distance between Z and R would use more than a hundredth of delta.

    Notes
    -----
    **Corollary** of `rounding_distance`. Adding independent Z to m whole numbers of l2 sensitivity
    D is (epsilon, delta)-private with

        delta = delta_Gauss(epsilon; D/s) + (1 + e^epsilon) m tau(s):

    The laws of m coordinates of Z and of R differ by at most m tau, before and after the change. In
    P(Z in E) <= P(R in E) + m tau <= e^epsilon P'(R in E) + delta_Gauss + m tau, the second step
    from R back to Z adds e^epsilon m tau.

    Zero-concentrated privacy proves rho = D^2/(2 s^2) for Z at every s (Canonne, Kamath and Steinke
    2020, Theorem 4). Converted to (epsilon, delta), this rho needs 5 to 9 % more noise. At a large
    epsilon or a small s, rho proves more than this corollary.
    """
    # The excess falls with the noise scale, so its value at the least scale covers all scales.
    least = _scale_at(mu_of(budget), sensitivity)
    if least < 1:
        return None
    excess = log_excess(budget.epsilon, least, coordinates)
    if excess > math.log(budget.delta / 100):
        return None
    remaining = (budget.delta - math.exp(excess)) * (1 - 1e-15)
    return _scale_at(mu_of(Budget(budget.epsilon, remaining)), sensitivity)


def proved_epsilon(
    budget: Budget, scale: float, sensitivity: int, coordinates: int
) -> float | None:
    """Return an epsilon that `least_scale`'s corollary proves at the budget's delta, rounded up.

    Returns
    -------
    float or None
        An epsilon of at most the budget's, or None if no epsilon that small is proved.
    """
    if scale < 1:
        return None
    excess = log_excess(budget.epsilon, scale, coordinates)
    if excess >= math.log(budget.delta):
        return None
    # The excess grows with epsilon, so its value at the budget's epsilon covers smaller epsilons.
    remaining = (budget.delta - math.exp(excess)) * (1 - 1e-15)
    mu = sensitivity / scale
    while mu * scale < sensitivity:
        mu = math.nextafter(mu, math.inf)
    epsilon = epsilon_of(remaining, mu)
    return epsilon if epsilon <= budget.epsilon else None


def _scale_at(mu: float, sensitivity: int) -> float:
    scale = sensitivity / mu
    while scale * mu < sensitivity:
        scale = math.nextafter(scale, math.inf)
    return math.nextafter(scale, math.inf)
