"""Discrete Gaussian noise by the exact Gaussian profile.

Let Z be the discrete Gaussian of scale s >= 1, P(Z = k) proportional to exp(-k^2/(2 s^2)), and
R = round(N(0, s^2)). For whole numbers x, x + R is x + N(0, s^2) rounded: post-processing of the
Gaussian mechanism, so its exact profile holds for R. And Z is next to R.

**Theorem.** The total variation between Z and R is at most

    tau(s) = .02017/s^2 + .0062/s^4.

*Proof.* Let f be the density of N(0, s^2), phi the standard one and u = x/s.

1. By Poisson summation the f(k) sum to S = 1 + 2 sum_(m >= 1) exp(-2 pi^2 s^2 m^2). As
   P(Z = k) = f(k)/S, half the sum of |P(Z = k) - f(k)| is (S - 1)/2 <= 1.001 exp(-2 pi^2 s^2).
2. By Taylor's formula P(R = k) - f(k) is the integral over |v| <= 1/2 of K(v) f''(k + v), where
   K(v) = (1/2 - |v|)^2/2 >= 0 has the integral 1/24. So the sum over k of |P(R = k) - f(k)| is
   at most 1/24 times the largest over v of H(v) = sum_k |f''(k + v)|.
3. f'' = (u^2 - 1) phi(u)/s^3, so h = |f''| has the integral 4 phi(1)/s^2. By Euler and Maclaurin
   H(v) differs from it by the integral of (c - B(x - v)/2) dh'(x), B(t) = t^2 - t + 1/6 repeated
   from [0, 1) and c any constant, since h' vanishes at both ends. B/2 runs from -1/24 to 1/12:
   the difference is at most Var(h')/16.
4. h' is (3u - u^3) phi(u)/s^4 up to its sign, which turns at u = -1 and 1. With g that function
   of u, extreme at a^2 = 3 - sqrt 6 and b^2 = 3 + sqrt 6, Var(h') is
   (4 g(a) + 4 |g(b)| + 8 phi(1))/s^4 <= 4.737/s^4.
5. Half of (4 phi(1)/s^2 + .2961/s^4)/24 is at most .0201643/s^2 + .00617/s^4, and what is left of
   .02017/s^2 is above 1.001 exp(-2 pi^2 s^2) for every s >= 1.

**Corollary.** Independent Z on m whole numbers of l2 sensitivity D is (epsilon, delta)-private
with

    delta = delta_Gauss(epsilon; D/s) + (1 + e^epsilon) m tau(s):

the laws of m coordinates are within m tau of each other, before and after the change; in
P(Z in E) <= P(R in E) + m tau <= e^epsilon P'(R in E) + delta_Gauss + m tau the second step back
from R to Z costs e^epsilon m tau.

Zero-concentrated privacy proves rho = D^2/(2 s^2) of Z for every s (Canonne, Kamath and Steinke
2020, Theorem 4), which costs 5 to 9 % more noise where it is turned into (epsilon, delta). At a
large epsilon or a small s it proves more than this.
"""

from __future__ import annotations

import math

from dpviz.accounting.gaussian import epsilon_of, mu_of
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget

_SECOND, _FOURTH = 0.02017, 0.0062
_ROOM = 1 + 1e-12  # of a few roundings


def rounding_distance(scale: float) -> float:
    """Return tau(scale), the bound on the total variation of one coordinate.

    Parameters
    ----------
    scale : float
        At least 1.
    """
    if not (1 <= scale < math.inf):
        raise InvalidSetting("scale of discrete noise", "a finite number of at least 1", scale)
    return (_SECOND + _FOURTH / scale**2) / scale**2 * _ROOM


def log_excess(epsilon: float, scale: float, coordinates: int) -> float:
    """Return the logarithm of (1 + e^epsilon) m tau(scale), rounded up."""
    whole = epsilon + math.log1p(math.exp(-epsilon))
    return whole + math.log(coordinates * rounding_distance(scale)) + 1e-12 * (1 + epsilon)


def least_scale(budget: Budget, sensitivity: int, coordinates: int) -> float | None:
    """Return the least scale found with which the corollary meets the budget, rounded up.

    Parameters
    ----------
    budget : Budget
        Its delta must be above 0.
    sensitivity : int
        l2, above 0.
    coordinates : int
        m, at least 1.

    Returns
    -------
    float or None
        None where more than a hundredth of delta would go to the distance of Z and R.
    """
    # a larger scale has less excess, so that of the least scale there could be counts for all
    least = _scale_at(mu_of(budget), sensitivity)
    if least < 1:
        return None
    excess = log_excess(budget.epsilon, least, coordinates)
    if excess > math.log(budget.delta / 100):
        return None
    left = (budget.delta - math.exp(excess)) * (1 - 1e-15)
    return _scale_at(mu_of(Budget(budget.epsilon, left)), sensitivity)


def proved_epsilon(
    budget: Budget, scale: float, sensitivity: int, coordinates: int
) -> float | None:
    """Return an epsilon that the corollary proves at the budget's delta, rounded up.

    Returns
    -------
    float or None
        At most the budget's epsilon; None where nothing so small is proved.
    """
    if scale < 1:
        return None
    excess = log_excess(budget.epsilon, scale, coordinates)
    if excess >= math.log(budget.delta):
        return None
    # the excess grows with epsilon: that of the budget's counts for every smaller one
    left = (budget.delta - math.exp(excess)) * (1 - 1e-15)
    mu = sensitivity / scale
    while mu * scale < sensitivity:
        mu = math.nextafter(mu, math.inf)
    found = epsilon_of(left, mu)
    return found if found <= budget.epsilon else None


def _scale_at(mu: float, sensitivity: int) -> float:
    scale = sensitivity / mu
    while scale * mu < sensitivity:
        scale = math.nextafter(scale, math.inf)
    return math.nextafter(scale, math.inf)
