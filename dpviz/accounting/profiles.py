"""Exact privacy profiles of two mechanisms whose loss depends on one or two chi-squares.

Zero-out compares tables with and without one row. P is the release with the row, Q the release
without it. The privacy profile has two sides:

    with_row(epsilon)    = sup over events E of P(E) - e^epsilon Q(E)
    without_row(epsilon) = sup over events E of Q(E) - e^epsilon P(E)

delta(epsilon) is exactly the larger side. Under replace the worst pair of rows is one of these or
two orthogonal rows of full length, so delta(epsilon) is exactly the largest of three. The third
matters from a few degrees of freedom on. The proof that the worst pair is orthogonal follows.

**Noise with a log-concave density on the matrix** (`wishart_pair`). Let f be the density of the
noise N and H(Delta) = sup over E of P(N + Delta in E) - e^epsilon P(N in E).

1. H(Delta) = 1 - integral of min(f(x - Delta), e^epsilon f(x)) dx: the best event is where the
   first density is the larger, and (a - b)_+ = a - min(a, b).
2. The integrand is log-concave in (x, Delta) together: f(x - Delta) is, being f after a linear
   map, so is f(x), and the minimum of two log-concave functions is log-concave.
3. Integrating out x keeps log-concavity (Prekopa 1973). So 1 - H is log-concave in Delta, {H <= c}
   is convex for every c, and on a polytope H is greatest at a vertex.
4. Neighbours in the unit ball differ by D = s pp' - t qq', p and q orthonormal, 0 <= s, t <= 1
   (fact F1 of `dpviz.accounting.sensitivity`): a point of the rectangle with vertices 0, pp', -qq'
   and pp' - qq'. Each vertex is the difference of two legal tables.
5. The law of the noise W_d(nu + d - 1, I) does not change under rotations, so H at a vertex does
   not depend on p and q. H(0) = 0. H(pp') and H(-qq') are the two sides of a row added or removed,
   the zero-out profile. H(pp' - qq') belongs to two orthogonal unit rows.
6. The density |W|^((nu - 2)/2) e^(-tr W/2) on the cone is log-concave for nu >= 2, as ln|W| is.

So the exact profile under replace is the larger of two: the zero-out profile, and the profile of
two orthogonal unit rows. Only steps 5 and 6 use the Wishart law.

**A Gaussian sketch** (`sketch_pair`) has no additive noise. Rows of the sketch are N(0, C + vv') or
N(0, C + ww') with C >= w^2 I, w^2 the lift. In coordinates that diagonalise both covariances, two
directions differ: along one the variance is rho_1 >= 1 times as large with v, along the other rho_2
>= 1 times as large with w, and rho_1, rho_2 <= 1 + 1/lift, since x'(C + vv')x is at most (1 +
v'C^-1 v) x'Cx. Adding the same independent noise to both laws, along each direction separately,
turns a larger ratio into a smaller one. So the worst pair has both ratios equal to 1 + 1/lift.
Orthogonal unit rows have these ratios if all other rows are orthogonal to both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import erf, gammainc, gammaincc, gammaln

from dpviz.accounting.accounting import Spent
from dpviz.accounting.composition import connected
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import EPSILON_RANGE, Budget, Problem, Relation

_ROUNDING = float(np.finfo(np.float64).eps)

# SciPy's incomplete gamma functions err by less than 1e-14 up to this shape. Above it, they fall
# short of tails beyond about 4.5 standard deviations, because their series has a fixed number of
# terms. At shape 1e9 and 7 standard deviations, the lower tail is 0.36 of its true value.
_LARGE_SHAPE = 1e4
_nodes, _weights = np.polynomial.legendre.leggauss(64)
_NODES: FloatArray = 22.5 * (np.asarray(_nodes, dtype=np.float64) + 1)
_WEIGHTS: FloatArray = 22.5 * np.asarray(_weights, dtype=np.float64)


class RowProfile(ABC):
    """The two sides of one row's privacy profile, and quantities derived from them."""

    @abstractmethod
    def with_row(self, epsilon: FloatArray) -> FloatArray:
        """Return sup of P(E) - e^epsilon Q(E), rounded up; P is the release with the row."""

    @abstractmethod
    def without_row(self, epsilon: FloatArray) -> FloatArray:
        """Return sup of Q(E) - e^epsilon P(E), rounded up; Q is the release without the row."""

    @abstractmethod
    def replaced(self, epsilon: FloatArray) -> FloatArray:
        """Return the profile of replacing a row by an orthogonal row, rounded up."""

    def delta(self, relation: Relation, epsilon: float) -> float:
        """Return the least delta at epsilon >= 0, rounded up."""
        one = np.asarray([epsilon], dtype=np.float64)
        least = float(max(self.with_row(one)[0], self.without_row(one)[0]))
        return least if relation is Relation.ZERO_OUT else max(least, float(self.replaced(one)[0]))

    def epsilon(self, relation: Relation, delta: float) -> float:
        """Return the epsilon at delta, rounded up; infinite if no epsilon is enough."""
        return _epsilon(self, relation, delta)

    def repeated(self, releases: int) -> RowProfile | None:
        """Return the profile of ``releases`` releases, if it is known without composition."""
        return None

    def renyi(self, order: float) -> float | None:
        """Return a bound on the Renyi divergence of an order above 1, or None if none is known."""
        return None

    def spent(self, problem: Problem, budget: Budget, source: str) -> Spent:
        """Return the privacy loss at the budget's delta, and the delta at the budget's epsilon.

        The result is exact if the domain contains the worst pair: a row of full length, and under
        replace two orthogonal rows. On the cube such rows are corners, and need an even d.
        """
        relation, domain = problem.relation, problem.domain
        alike = len(set(domain.half_widths)) == 1 and domain.d % 2 == 0
        return Spent(
            epsilon=self.epsilon(relation, budget.delta),
            delta=budget.delta,
            exact=relation is Relation.ZERO_OUT or domain.kind == "ball" or alike,
            source=source,
            delta_at_epsilon=self.delta(relation, budget.epsilon),
            total_variation=self.delta(relation, 0.0),
        )


@dataclass(frozen=True)
class WishartNoise(RowProfile):
    """Profile of X'X + W with W ~ W_d(freedom + d - 1, scale I), for a row on the unit sphere.

    Attributes
    ----------
    freedom : float
        nu, the degrees of freedom minus d - 1: real, at least 2.
    scale : float
        Eigenvalue of the scale matrix in units of R^2, above 0.

    Notes
    -----
    Let M be the release and v the row, |v| = 1. Because |M - A + vv'| = |M - A| (1 + 1/T), the
    density ratio depends on M only through T = 1/(v'(M - A)^-1 v). With the row, T is scale times
    chi^2_nu; without the row, T is (scale times chi^2_nu) - 1. In units of the scale, with h =
    1/scale and p = nu/2 - 1, the release without the row is more likely by (1 + h/T)^p e^(-h/2) if
    T > 0, and T <= 0 cannot occur with the row. So with F the chi^2_nu distribution function

        without_row = F(t + h) - e^epsilon F(t),        t = h/(e^((epsilon + h/2)/p) - 1)
        with_row    = (1 - F(u)) - e^epsilon (1 - F(u + h)),  u = h/(e^((h/2 - epsilon)/p) - 1)

    where with_row applies for epsilon < h/2 only, and is 0 above. For nu >= 2 the chi-square
    density is log-concave, so half-lines are the best events for a shift of any length, and their
    gain grows with the shift. Shorter rows and larger scales are easier to hide, so |v| = 1 is the
    worst. Degrees of freedom need not be whole: the density |W|^((k-d-1)/2) e^(-tr W/2), Bartlett's
    factors and the chi-square of T exist for every real k > d - 1.

    delta never falls below F(h), the chance of a release that the table with the row cannot
    produce.
    """

    freedom: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (2 <= self.freedom < math.inf):
            raise InvalidSetting("freedom", "a finite number of at least 2", self.freedom)
        if not (0 < self.scale < math.inf):
            raise InvalidSetting("scale", "a finite number above 0", self.scale)

    def with_row(self, epsilon: FloatArray) -> FloatArray:
        """Return (1 - F(u)) - e^epsilon (1 - F(u + h)), 0 from epsilon = h/2 on."""
        h = 1 / self.scale
        room = np.maximum(h / 2 - epsilon, 0.0)
        u = self._threshold(room)
        half = self.freedom / 2
        above, beyond = _upper_tail(half, u / 2), _upper_tail(half, (u + h) / 2)
        gain = _difference(half, above, beyond, epsilon)
        return np.where(room > 0, gain, 0.0)

    def without_row(self, epsilon: FloatArray) -> FloatArray:
        """Return F(t + h) - e^epsilon F(t)."""
        h = 1 / self.scale
        t = self._threshold(epsilon + h / 2)
        half = self.freedom / 2
        return _difference(half, _lower_tail(half, (t + h) / 2), _lower_tail(half, t / 2), epsilon)

    def replaced(self, epsilon: FloatArray) -> FloatArray:
        """Return the profile of the shift diag(1, -1) of a 2 x 2 Wishart."""
        return wishart_pair(self.freedom, self.scale, tuple(epsilon.tolist()))

    def _threshold(self, exponent: FloatArray) -> FloatArray:
        p = self.freedom / 2 - 1
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # If p is 0, the ratio is constant for T > 0, so the threshold is 0.
            growth = np.expm1(exponent / p) if p > 0 else np.full_like(exponent, np.inf)
            threshold: FloatArray = (1 / self.scale) / growth
        return threshold


@dataclass(frozen=True)
class GaussianSketch(RowProfile):
    """Profile of ``rows`` independent samples of N(0, X'X + lift I), for a row on the unit sphere.

    Attributes
    ----------
    rows : int
        r, at least 1.
    lift : float
        w^2 in units of R^2, above 0.

    Notes
    -----
    Let S be the covariance without the row v, so S >= lift I. After whitening by S the two laws
    differ only along one direction, where the variance is 1 without the row and rho = 1 + v'S^-1 v
    <= 1 + 1/lift with it. Adding the same independent noise to both laws turns a larger rho into a
    smaller one. So the worst row has rho = 1 + 1/lift, when every other row is orthogonal to it.
    The likelihood ratio then depends on the sum of r squares, rho chi^2_r against chi^2_r, and the
    optimal events are half-lines.
    """

    rows: int
    lift: float

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InvalidSetting("number of rows of the sketch", "at least 1", self.rows)
        if not (0 < self.lift < math.inf):
            raise InvalidSetting("lift", "a finite number above 0", self.lift)

    def with_row(self, epsilon: FloatArray) -> FloatArray:
        """Return P(E) - e^epsilon Q(E) for the best event E, a large sum of squares."""
        t = self._threshold(epsilon)
        half = self.rows / 2
        shrunk = t / (2 * self._ratio)
        return _difference(half, _upper_tail(half, shrunk), _upper_tail(half, t / 2), epsilon)

    def without_row(self, epsilon: FloatArray) -> FloatArray:
        """Return Q(E) - e^epsilon P(E) for the best event E, a small sum of squares."""
        t = np.maximum(self._threshold(-epsilon), 0.0)
        half = self.rows / 2
        shrunk = t / (2 * self._ratio)
        return _difference(half, _lower_tail(half, t / 2), _lower_tail(half, shrunk), epsilon)

    def replaced(self, epsilon: FloatArray) -> FloatArray:
        """Return the profile if one chi-square grows and another shrinks."""
        return sketch_pair(self.rows, self.lift, tuple(epsilon.tolist()))

    def repeated(self, releases: int) -> GaussianSketch:
        """Return the profile of a sketch with ``releases`` times as many rows."""
        return replace(self, rows=self.rows * releases)

    @property
    def _ratio(self) -> float:
        return 1 + 1 / self.lift

    def _threshold(self, loss: FloatArray) -> FloatArray:
        # Solve log ratio = -(r/2) ln rho + (T/2)(1 - 1/rho) for T, with 1 - 1/rho = 1/(lift + 1).
        level: FloatArray = loss + 0.5 * self.rows * math.log1p(1 / self.lift)
        return 2 * (self.lift + 1) * level


def least_freedom(relation: Relation, budget: Budget, scale: float) -> float:
    """Return the least real nu of `WishartNoise` that meets the budget, rounded up.

    More degrees of freedom never worsen the profile: chi^2_(nu + x) is chi^2_nu plus independent
    noise, for real x too.

    Parameters
    ----------
    relation : Relation
    budget : Budget
        The budget; its delta must be above 0.
    scale : float
        Scale in units of R^2.

    Raises
    ------
    InvalidSetting
        If the budget's delta is 0, because the support moves with the data.
    """
    _needs_delta(budget, "Wishart noise on one side")
    return _least_freedom(relation, budget.epsilon, budget.delta, scale)


def least_scale(relation: Relation, budget: Budget, freedom: float) -> float:
    """Return the least scale of `WishartNoise`, in units of R^2, that meets the budget, rounded up.

    Parameters
    ----------
    relation : Relation
    budget : Budget
        The budget; its delta must be above 0.
    freedom : float
        nu, at least 2.

    Raises
    ------
    InvalidSetting
        If the budget's delta is 0.
    """
    _needs_delta(budget, "Wishart noise on one side")
    return _least_scale(relation, budget.epsilon, budget.delta, freedom)


def least_lift(relation: Relation, budget: Budget, rows: int) -> float:
    """Return the least w^2 of `GaussianSketch`, in units of R^2, that meets the budget, rounded up.

    Parameters
    ----------
    relation : Relation
    budget : Budget
        The budget; its delta must be above 0.
    rows : int
        Number of rows of the sketch.

    Raises
    ------
    InvalidSetting
        If the budget's delta is 0.
    """
    _needs_delta(budget, "a Gaussian sketch")
    return _least_lift(relation, budget.epsilon, budget.delta, rows)


@lru_cache(maxsize=65536)
def _epsilon(profile: RowProfile, relation: Relation, delta: float) -> float:
    def excess(epsilon: float) -> float:
        return _log_ratio(profile.delta(relation, epsilon), delta)

    # Start from the epsilon for removing a row: replacing a row costs at least as much.
    low = 0.0 if relation is Relation.ZERO_OUT else _epsilon(profile, Relation.ZERO_OUT, delta)
    if low == math.inf or excess(low) <= 0:
        return low
    high = max(EPSILON_RANGE[0], 2 * low)
    while excess(high) > 0:
        low, high = high, 4 * high
        if low > EPSILON_RANGE[1]:
            return math.inf
    return _least(excess, low, high)


@lru_cache(maxsize=65536)
def _least_freedom(relation: Relation, epsilon: float, delta: float, scale: float) -> float:
    def excess(freedom: float) -> float:
        return _log_ratio(WishartNoise(freedom, scale).delta(relation, epsilon), delta)

    zero_out = relation is Relation.ZERO_OUT
    low = 2.0 if zero_out else _least_freedom(Relation.ZERO_OUT, epsilon, delta, scale)
    return _least_from(excess, low)


@lru_cache(maxsize=65536)
def _least_scale(relation: Relation, epsilon: float, delta: float, freedom: float) -> float:
    def excess(scale: float) -> float:
        return _log_ratio(WishartNoise(freedom, scale).delta(relation, epsilon), delta)

    # Scales below 2^-60 meet no budget: a row is over 1e18 standard deviations there.
    zero_out = relation is Relation.ZERO_OUT
    low = 2.0**-60 if zero_out else _least_scale(Relation.ZERO_OUT, epsilon, delta, freedom)
    return _least_from(excess, low)


@lru_cache(maxsize=65536)
def _least_lift(relation: Relation, epsilon: float, delta: float, rows: int) -> float:
    def excess(lift: float) -> float:
        return _log_ratio(GaussianSketch(rows, lift).delta(relation, epsilon), delta)

    # A lift below 2^-60 meets no budget: one row is far larger than the lift there.
    zero_out = relation is Relation.ZERO_OUT
    low = 2.0**-60 if zero_out else _least_lift(Relation.ZERO_OUT, epsilon, delta, rows)
    return _least_from(excess, low)


def _log_ratio(value: float, limit: float) -> float:
    """Return ln(value/limit), above 0 if and only if value > limit; finite."""
    ratio = math.log(max(value, math.ulp(0.0))) - math.log(max(limit, math.ulp(0.0)))
    return max(ratio, math.ulp(0.0)) if value > limit else min(ratio, 0.0)


def _least_from(excess: Callable[[float], float], low: float) -> float:
    """Return the least value from ``low`` on that meets the budget, which always exists."""
    if excess(low) <= 0:
        return low
    high = 2 * low
    while excess(high) > 0:
        low, high = high, 2 * high
    return _least(excess, low, high)


def _least(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a decreasing function on [low, high], moved up until the budget is met."""
    root = float(scipy.optimize.brentq(excess, low, high, xtol=1e-13 * high, rtol=4 * _ROUNDING))
    step = 1e-13
    while excess(root) > 0:
        root *= 1 + step
        step *= 2
    return min(root, high)


def _difference(
    shape: float, first: FloatArray, second: FloatArray, epsilon: FloatArray
) -> FloatArray:
    """Return first - e^epsilon second for two tails of Gamma(shape), at least 0 and rounded up."""
    # Rounding moves a threshold near the shape by shape * eps. The tail changes over sqrt(shape)
    # divided by its distance in standard deviations, which is below 40.
    room = 1e-12 + 64 * _ROUNDING * math.sqrt(shape)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # A tail that underflows counts as 0, which makes the bound larger.
        scaled_second = np.where(second > 0, np.exp(epsilon + np.log(second)), 0.0)
    upper_bound = first * (1 + room) - scaled_second * (1 - room)
    return np.clip(upper_bound, 0.0, 1.0)


def _lower_tail(shape: float, x: FloatArray) -> FloatArray:
    """Return the distribution function of Gamma(shape) at x >= 0."""
    tail = np.asarray(gammainc(shape, x), dtype=np.float64)
    far = x < shape - 4 * math.sqrt(shape)
    if shape > _LARGE_SHAPE and far.any():
        tail = np.where(far, 0.0, tail)
        inside = far & (x > 0)
        tail[inside] = _far_tail(shape, x[inside], -1.0)
    return tail


def _upper_tail(shape: float, x: FloatArray) -> FloatArray:
    """Return the survival function of Gamma(shape) at x >= 0."""
    tail = np.asarray(gammaincc(shape, x), dtype=np.float64)
    far = x > shape + 4 * math.sqrt(shape)
    if shape > _LARGE_SHAPE and far.any():
        tail = np.where(far, 0.0, tail)
        inside = far & np.isfinite(x)
        tail[inside] = _far_tail(shape, x[inside], 1.0)
    return tail


def _far_tail(shape: float, x: FloatArray, side: float) -> FloatArray:
    """Return the tail of Gamma(shape) beyond x, on the side away from the mode.

    The tail is f(x) times the integral over s > 0 of f(x + side s)/f(x), whose logarithm (shape -
    1) ln(1 + side s/x) - side s falls at least as fast as -rate s, with rate = side (1 - (shape -
    1)/x).
    """
    rate = side * (1 - (shape - 1) / x)
    s = _NODES / rate[:, None]
    ratio = np.maximum(side * s / x[:, None], -1.0)
    with np.errstate(divide="ignore"):
        log_fall = (shape - 1) * np.log1p(ratio) - side * s
    integral = (np.exp(log_fall) @ _WEIGHTS) / rate
    # Use Stirling's series for the density: it loses no digits if ln Gamma(shape) is large.
    offset = (x - shape) / shape
    log_density = -shape * _log_excess(offset) - np.log(x) - 1 / (12 * shape)
    tail: FloatArray = integral * np.exp(log_density + 0.5 * math.log(shape / (2 * math.pi)))
    return tail


def _log_excess(offset: FloatArray) -> FloatArray:
    """Return y - ln(1 + y) for y > -1, without cancellation near 0."""
    small = np.where(np.abs(offset) < 0.05, offset, 0.0)
    series = np.zeros_like(offset)
    for power in range(16, 1, -1):
        series = 1 / power - small * series
    with np.errstate(divide="ignore"):
        # Rounding may give an offset of -1, where the density is 0.
        direct = offset - np.log1p(offset)
    return np.where(np.abs(offset) < 0.05, small * small * series, direct)


def _needs_delta(budget: Budget, what: str) -> None:
    if budget.delta == 0:
        raise InvalidSetting("delta", f"above 0 and below 1 for {what}", budget.delta, "--delta")


# --- the loss that a profile dominates ------------------------------------------------------------


_PLACES = {Relation.ZERO_OUT: 1_024, Relation.REPLACE: 96}
_CROWDED = 1.5  # This power moves grid points towards 0.
_NOTHING = 1e-14  # Losses of at most this total probability count as failure.
_MOST_QUARTERS = 80  # Search at most 80 quarters of an octave on either side of 1.


@dataclass(frozen=True)
class ProfileLoss:
    """The loss of a release with a known profile of one row, by connecting the profile's points.

    Attributes
    ----------
    profile : RowProfile
    relation : Relation
    """

    profile: RowProfile
    relation: Relation

    @property
    def reach(self) -> float:
        """The epsilon from which the profile is nearly 0 or falls no further."""
        return _reach(self.profile, self.relation)

    def delta(self, epsilon: float) -> float:
        """Return the delta at epsilon, rounded up."""
        return self.profile.delta(self.relation, epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at delta, rounded up; may be infinite."""
        return self.profile.epsilon(self.relation, delta)

    def repeated(self, releases: int) -> ProfileLoss | None:
        """Return the loss of ``releases`` releases, if their profile is known."""
        if releases == 1:
            return self
        longer = self.profile.repeated(releases)
        return None if longer is None else ProfileLoss(longer, self.relation)

    def on_grid(self, step: float) -> tuple[FloatArray, float]:
        """Return the masses of the loss on [-m, m] steps, and the probability of an infinite loss.

        Parameters
        ----------
        step : float

        Returns
        -------
        masses : ndarray of shape (2 m + 1,)
            Masses and ``failing`` sum to 1 or a rounding more.
        failing : float
        """
        return _on_grid(self.profile, self.relation, step)


def _deltas(profile: RowProfile, relation: Relation, epsilons: FloatArray) -> FloatArray:
    deltas: FloatArray = np.maximum(profile.with_row(epsilons), profile.without_row(epsilons))
    if relation is Relation.REPLACE:
        deltas = np.maximum(deltas, profile.replaced(epsilons))
    return deltas


@lru_cache(maxsize=4096)
def _reach(profile: RowProfile, relation: Relation) -> float:
    # Find the least quarter of an octave beyond which the profile no longer falls; some profiles
    # never reach 0. Fixed steps let the composed loss move smoothly with the profile's parameters.
    def flat(quarters: int) -> bool:
        at = 2.0 ** (quarters / 4)
        at_start, far = _deltas(profile, relation, np.array([at, 4 * at]))
        return bool(at_start - far <= max(_NOTHING, 1e-9 * at_start))

    quarters = 0
    while not flat(quarters) and quarters < _MOST_QUARTERS:
        quarters += 8
    while flat(quarters) and quarters > -_MOST_QUARTERS:
        quarters -= 4
    low, high = quarters, quarters + 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if flat(middle) else (middle, high)
    return float(2.0 ** (high / 4))


@lru_cache(maxsize=256)
def _on_grid(profile: RowProfile, relation: Relation, step: float) -> tuple[FloatArray, float]:
    count = max(1, math.ceil(_reach(profile, relation) / step))
    # Any grid points are valid, so place them densely where the profile bends most.
    even = np.linspace(0.0, 1.0, min(count, _PLACES[relation]) + 1)
    places = np.unique(np.rint(count * even**_CROWDED).astype(np.intp))
    deltas = _deltas(profile, relation, step * places.astype(np.float64))
    return connected(places, deltas, step)


# The exact profile of a replaced row needs two integrals for the worst pair of rows.

_DEPTH = 60.0
"""Integrands are evaluated until they have fallen by e^-60."""
_DEEPEST = 700.0
"""The peak search covers ln Gamma densities down to this far below the mode."""
_FEW, _MANY = (61, 97, 64), (121, 257, 200)
"""Numbers of points to find the peak, to integrate over ln g, and to integrate over w. Shapes below
8 need many, as integrands are wide. Doubling shows errors below a hundredth of `_room`."""
_COARSER = 3
"""Factor by which points over w are reduced while only the window is searched."""
_WIDE_BELOW = 8.0

_AT_ONCE = 8
"""Number of epsilons processed together: long arrays that still fit into a cache."""

_Log = Callable[[NDArray[np.intp], FloatArray, bool], FloatArray]
"""Function of epsilon indices, g of shape (epsilons, points), and whether rough results do."""


@lru_cache(maxsize=8192)
def wishart_pair(freedom: float, scale: float, epsilons: tuple[float, ...]) -> FloatArray:
    """Return delta at each epsilon for orthogonal unit rows under W_d(freedom + d - 1, scale I).

    Parameters
    ----------
    freedom : float
        nu, at least 2.
    scale : float
        Scale in units of R^2, above 0.
    epsilons : tuple of float
        Values of epsilon, at least 0.

    Returns
    -------
    ndarray of shape (epsilons,)
        Delta, rounded up by `_room` times the probability of the best event; read-only.

    Notes
    -----
    The density ratio depends on the noise only through the inverse of the 2 x 2 block of W^-1 on
    the plane of the rows, B ~ W_2(nu + 1, scale I) (Muirhead 1982, Theorem 3.2.11: the degrees of
    freedom fall by d - 2). So d = 2 covers every d: compare B with B + J, J = diag(1, -1). In units
    of the scale, h = 1/scale, p = nu/2 - 1:

        ratio = (|X - h J|/|X|)^p,   |X - h J| = |X| + h (X_11 - X_22) - h^2.

    Let g^2 = |B| and xi = (B_11 - B_22)/(2 g). The event that the ratio exceeds e^epsilon, or that
    X is outside the cone, is xi > (k' g^2 - h^2)/(2 h g) with the shift and
    xi > (k g^2 + h^2)/(2 h g) without, k = e^(epsilon/p) - 1 and k' = 1 - e^(-epsilon/p).

    By Bartlett B_11 = g e^w, B_22 = g e^-w + Z^2 with Z standard normal: g has density g^(nu - 1)
    e^-g/Gamma(nu), w given g has density proportional to e^(w/2 - g cosh w), and xi = sinh w -
    Z^2/(2 g). So P(xi > x | g) is the mean over w of erf(sqrt(g (sinh w - x))), and both integrals,
    over w and ln g, are trapezoidal sums of analytic functions. The other order of the pair is the
    same by exchange of the two coordinates.
    """
    # The log ratio is p ln(|X - hJ|/|X|), with p the power of |X| in the Wishart density.
    h, p = 1 / scale, freedom / 2 - 1
    at_zero = [1.0 if epsilon > 0 else 0.0 for epsilon in epsilons]
    shrunk = np.array([-math.expm1(-epsilon / p) for epsilon in epsilons] if p > 0 else at_zero)
    with np.errstate(over="ignore", divide="ignore"):
        growth = (
            np.expm1(np.array(epsilons) / p) if p > 0 else np.divide(at_zero, 1 - np.array(at_zero))
        )

    points = _sizes(freedom)[2]
    few = points // _COARSER

    def with_shift(which: NDArray[np.intp], g: FloatArray, rough: bool) -> FloatArray:
        x = (shrunk[which, None] * g - h * (h / g)) / (2 * h)
        return _log_tail(x, g, few if rough else points)

    def without(which: NDArray[np.intp], g: FloatArray, rough: bool) -> FloatArray:
        x = (growth[which, None] * g + h * (h / g)) / (2 * h)
        return _log_tail(x, g, few if rough else points)

    first = _log_mean(freedom, with_shift, np.arange(len(epsilons)))
    second = np.full(len(epsilons), -np.inf)
    finite = np.flatnonzero(np.isfinite(growth))
    second[finite] = _log_mean(freedom, without, finite)
    return _log_difference(freedom, first, epsilons + second)


@lru_cache(maxsize=8192)
def sketch_pair(rows: int, lift: float, epsilons: tuple[float, ...]) -> FloatArray:
    """Return delta at each epsilon for orthogonal unit rows and a sketch of ``rows`` rows.

    Parameters
    ----------
    rows : int
        r of the sketch, at least 1.
    lift : float
        w^2 in units of R^2, above 0.
    epsilons : tuple of float
        Values of epsilon, at least 0.

    Returns
    -------
    ndarray of shape (epsilons,)
        Delta, rounded up by `_room` times the probability of the best event; read-only.

    Notes
    -----
    With rho = 1 + 1/lift the loss is (1 - 1/rho)/2 times the difference of the two sums of
    squares: rho G_1 - G_2 with v and G_1 - rho G_2 with w, G_i independent chi^2_r. Given G_2 the
    chance of exceeding a level is a chi-square's tail.
    """
    half = rows / 2
    # Use half of 2 epsilon/(1 - 1/rho), because a Gamma variable is half a chi^2 variable.
    level = np.array(epsilons)[:, None] * (lift + 1)
    ratio = 1 + 1 / lift

    def with_first(which: NDArray[np.intp], g: FloatArray, rough: bool) -> FloatArray:
        return _log(gammaincc(half, (level[which] + g) / ratio))

    def with_second(which: NDArray[np.intp], g: FloatArray, rough: bool) -> FloatArray:
        return _log(gammaincc(half, level[which] + ratio * g))

    every = np.arange(len(epsilons))
    first, second = _log_mean(half, with_first, every), _log_mean(half, with_second, every)
    return _log_difference(half, first, epsilons + second)


def _sizes(shape: float) -> tuple[int, int, int]:
    return _MANY if shape < _WIDE_BELOW else _FEW


def _room(shape: float) -> float:
    """Return the relative error allowed in a probability for quadrature and rounded thresholds."""
    return 1e-11 + 64 * _ROUNDING * math.sqrt(shape)


def _log_difference(shape: float, log_first: FloatArray, log_second: FloatArray) -> FloatArray:
    """Return exp(log_first) - exp(log_second), rounded up and at least 0; read-only."""
    difference = np.zeros(len(log_first))
    for at, (first, second) in enumerate(zip(log_first.tolist(), log_second.tolist(), strict=True)):
        if first > -math.inf:
            share = -math.expm1(second - first) if second < first else 0.0
            difference[at] = min(1.0, math.exp(first) * (share + _room(shape)))
    difference.setflags(write=False)
    return difference


def _log_mean(shape: float, log_of: _Log, which: NDArray[np.intp]) -> FloatArray:
    """Return log E exp(log_of(one, g, False)) for each index in ``which``, g ~ Gamma(shape).

    In s = ln(g/shape) the density is exp(shape (1 + s - e^s)) up to a constant, and the integrand
    is analytic and falls off on both sides. So the trapezoidal rule converges geometrically once
    the window holds the peak. A coarse grid, which spans densities above e^-700 of the mode, finds
    the window.
    """
    blocks = range(0, len(which), _AT_ONCE)
    means = [_log_mean_at_once(shape, log_of, which[at : at + _AT_ONCE]) for at in blocks]
    return np.concatenate(means) if means else np.empty(0)


def _log_mean_at_once(shape: float, log_of: _Log, which: NDArray[np.intp]) -> FloatArray:
    def log_integrand(
        places: NDArray[np.intp], points: int, rough: bool
    ) -> tuple[FloatArray, FloatArray]:
        s = np.ascontiguousarray(np.linspace(low[places], high[places], points, axis=1))
        total: FloatArray = shape * (s - np.expm1(s))
        total += log_of(which[places], shape * np.exp(s), rough)
        return s, total

    spread = math.sqrt(2 * _DEEPEST / shape)
    low, high = np.full(len(which), -(_DEEPEST / shape + spread)), np.full(len(which), spread)
    positive = np.ones(len(which), dtype=bool)

    # Narrow each integration window at most three times, until the grid resolves the peak.
    coarse, fine, _ = _sizes(shape)
    places = np.arange(len(which))
    for _ in range(3):
        grid, values = log_integrand(places, coarse, True)
        top = values.max(axis=1)
        near_top = values >= top[:, None] - _DEPTH
        first, last = near_top.argmax(axis=1), coarse - 1 - near_top[:, ::-1].argmax(axis=1)
        each = np.arange(len(places))
        low[places] = grid[each, np.maximum(first - 1, 0)]
        high[places] = grid[each, np.minimum(last + 1, coarse - 1)]
        positive[places] = top > -np.inf
        places = places[positive[places] & (near_top.sum(axis=1) < coarse // 3)]
        if len(places) == 0:
            break
    log_means = np.full(len(which), -np.inf)
    places = np.flatnonzero(positive)
    _, values = log_integrand(places, fine, False)
    top, step = values.max(axis=1), (high[places] - low[places]) / (fine - 1)
    sums = np.exp(values - top[:, None]).sum(axis=1) * step
    logs = np.array([math.log(total) for total in sums.tolist()])
    log_means[places] = top + logs + _log_constant(shape)
    return log_means


def _log_constant(shape: float) -> float:
    """Return shape ln shape - shape - ln Gamma(shape)."""
    if shape < 100:
        return shape * math.log(shape) - shape - float(gammaln(shape))
    inverse = 1 / shape  # The next term of Stirling's series is below 1e-17 for this shape.
    series = inverse / 12 - inverse**3 / 360 + inverse**5 / 1260
    return 0.5 * math.log(shape / (2 * math.pi)) - series


def _log_tail(x: FloatArray, g: FloatArray, points: int) -> FloatArray:
    """Return log P(xi > x | g) for arrays of equal shape; see `wishart_pair`.

    The probability is e^g sqrt(g/(2 pi)) times the integral of e^(w/2 - g cosh w) erf(sqrt(g (sinh
    w - x))) over w from asinh x on; with w = asinh x + y^2 the integrand is an even analytic
    function of y.
    """
    shape, x, g = x.shape, x.ravel(), g.ravel()
    start = np.arcsinh(x)
    # Integrate until the weight is e^-60 of its peak, or of its start if this lies later.
    reach = np.arcsinh(np.sqrt(0.5 * _DEPTH / g))
    start = np.maximum(start, -2 * reach)
    base = np.maximum(start, 0.0)
    end = 2 * np.arcsinh(np.sqrt(np.sinh(np.minimum(base, 700) / 2) ** 2 + 0.5 * _DEPTH / g))
    y = np.linspace(0.0, 1.0, points) * np.sqrt(np.maximum(end - start, 0.0))[:, None]
    w = start[:, None] + y * y
    b = base[:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        # Compute in place, because all arrays must fit into the processor's cache.
        beyond = np.sinh((w - start[:, None]) / 2)
        fall = beyond.copy() if (start >= 0).all() else np.sinh((w - b) / 2)
        fall *= 2 * g[:, None] * np.sinh((w + b) / 2)
        beyond *= 2 * np.cosh((w + start[:, None]) / 2)
        beyond += (np.sinh(start) - x)[:, None] * (np.sinh(start) > x)[:, None]
        beyond *= g[:, None]
        inside = erf(np.sqrt(beyond, out=beyond), out=beyond)
        w /= 2
        w -= b / 2
        w -= fall
        inside *= np.exp(w, out=w)
        inside *= 2 * y
        sums = inside.sum(axis=1) * y[:, 1]
        at_base = base / 2 - 2 * g * np.sinh(base / 2) ** 2
        log_tail: FloatArray = _log(sums) + at_base + 0.5 * np.log(g / (2 * math.pi))
    return np.where(np.isfinite(x), log_tail, -np.inf).reshape(shape)


def _log(values: NDArray[np.floating[Any]]) -> FloatArray:
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(np.asarray(values, dtype=np.float64))
    return logs
