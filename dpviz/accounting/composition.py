"""Zero-concentrated and Renyi accounting, and the privacy loss of repeated releases.

Every part of a release is dominated by a pair of laws whose privacy loss is known:

* Gaussian noise by two Gaussians a distance mu apart;
* Laplace noise of l1 sensitivity ``s`` scales, in any number of coordinates, by two Laplace laws of
  scale 1 a distance s apart. If coordinates move one at a time, the trade-off function of the whole
  is at least the bound of group privacy, f2(1 - f1) (Dong, Roth & Su 2022, Lemma A.5). For the
  Laplace family f_s(a) = F(F^-1(1 - a) - s) that bound is f_(s1 + s2) itself;
* a pure bound e by randomised response of loss +e and -e (Kairouz, Oh & Viswanath 2015), and, if
  the log ratio ranges over less than 2 e, by the envelope of the laws on the ends of such ranges;
* an (e, d) bound by the same pair, after everything is revealed with probability d.

Dominating pairs compose adaptively (Zhu, Dong & Wang 2022, Theorem 10). Gaussian parts stay in
closed form; the other parts form a law on a grid of losses. The mass between two grid points is
split between them so that both laws of the pair keep their probability of the cell. The split
spreads the likelihood ratio and can only raise delta (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
2022, "Connect the dots").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri_exp

from dpviz.accounting.gaussian import delta_of, epsilon_of, least_meeting
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, Part, PurePart

_POINTS, _POINTS_BESIDE_GAUSSIAN = 2**17, 2**12
# Convolution by FFT errs by less than this total probability, which counts as failure.
_FFT_ROOM = 1e-12
_RANGE_NODES = 512  # The profile of a range-bounded mechanism has this many points.
_DEEP = 20.0  # ln delta is cut off this far below the delta that the search looks for.
_LARGEST_RELEASES = 100_000


# --- zero-concentrated and Renyi accounts of one part ---------------------------------------


def rho_of_pure(epsilon: float) -> float:
    """Return the least rho such that every epsilon-private release is rho-zCDP.

    epsilon tanh(epsilon/2), the divergence of randomised response at order 1; this rho is below the
    epsilon^2/2 of Bun & Steinke 2016, Proposition 3.3.
    """
    return math.inf if epsilon == math.inf else epsilon * math.tanh(epsilon / 2)


def rho_of_laplace(epsilon: float) -> float:
    """Return the rho of Laplace noise of scale sensitivity/epsilon: epsilon + e^-epsilon - 1.

    Source
    ------
    Harrison & Manurangsi 2026, "Exact zCDP characterizations for fundamental differentially private
    mechanisms"; rho is the divergence at order 1.
    """
    if epsilon == math.inf:
        return math.inf
    return epsilon + math.expm1(-epsilon) if epsilon > 1e-4 else 0.5 * epsilon * epsilon


def rho_of_range(width: float) -> float:
    """Return a valid rho of a release whose log density ratio spans an interval of ``width``.

    For exponential mechanisms the width is twice the concentration times the sensitivity of the
    score, or half as much if one row moves every score the same way.

    Source
    ------
    width^2/8: Cesar & Rogers 2021, "Bounding, concentrating, and truncating", Lemma 3.2.
    """
    return min(width * width / 8, rho_of_pure(width))


def renyi_of_gaussian(mu: float, order: float) -> float:
    """Return the Renyi divergence of Gaussian noise: order times mu^2/2."""
    return order * mu * mu / 2


def renyi_of_laplace(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of Laplace noise (Mironov 2017, Proposition 6)."""
    a = order
    return float(
        np.logaddexp(
            math.log(a / (2 * a - 1)) + (a - 1) * epsilon,
            math.log((a - 1) / (2 * a - 1)) - a * epsilon,
        )
    ) / (a - 1)


def renyi_of_pure(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of randomised response, the most that pure privacy allows."""
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    a = order
    return float(np.logaddexp(a * log_p + (1 - a) * log_q, a * log_q + (1 - a) * log_p)) / (a - 1)


def rho_of(parts: Sequence[Part]) -> float | None:
    """Return the zCDP parameter of all parts together; None if a part may fail outright.

    Returns
    -------
    float or None
        An upper bound, exact for Gaussian noise; the rho of parts add up (Bun & Steinke 2016).
    """
    if any(isinstance(part, ApproximatePart) for part in parts):
        return None
    return math.fsum(_rho_of_part(part) for part in parts)


def renyi_of(parts: Sequence[Part], order: float) -> float | None:
    """Return the parts' Renyi divergence at an order above 1, or None if `rho_of` is None."""
    if any(isinstance(part, ApproximatePart) for part in parts):
        return None
    return math.fsum(_renyi_of_part(part, order) for part in parts)


def gdp_of(parts: Sequence[Part]) -> float | None:
    """Return mu such that the parts together are mu-GDP, or None if a part may fail outright.

    Gaussian parts are mu-GDP exactly. A pure bound e has the trade-off function that is straight
    from (0, 1) to its fixed point at 1/(1 + e^e) and on to (1, 0). A Gaussian trade-off function
    through the same point is convex and lies below, so a bound e corresponds to mu = -2 Phi^-1(1/(1
    + e^e)). If the log ratio ranges over w only, the law on the ends t - w and t has its corner
    where false alarm a and miss b satisfy logit a + logit b = -w. The corner with a = b is the
    lowest for Gaussian noise, because Phi^-1(1/(1 + e^-x)) is concave for x > 0. So a range w has
    the mu of a pure bound w/2, wherever the range lies. The squares of mu add up.
    """
    squares = []
    for part in parts:
        if isinstance(part, ApproximatePart):
            return None
        if isinstance(part, GaussianPart):
            squares.append(part.mu**2)
        else:
            bound = part.epsilon
            if isinstance(part, PurePart) and part.ranged:
                bound = part.width / 2
            log_fixed_point = -bound - math.log1p(math.exp(-bound))
            squares.append((2 * float(ndtri_exp(log_fixed_point))) ** 2)
    return math.sqrt(math.fsum(squares))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return an epsilon at which every rho-zCDP release is (epsilon, delta)-private, rounded up.

    Parameters
    ----------
    rho : float
        The zCDP parameter rho, at least 0.
    delta : float
        Delta in (0, 1).

    Source
    ------
    Canonne, Kamath & Steinke 2020, "The discrete Gaussian for differential privacy", Corollary 13:
    the least over orders a of a rho + (ln(1/delta) + a ln(1 - 1/a) - ln(a - 1))/(a - 1). Every
    order gives a valid bound, so an inexact minimum is valid but larger.
    """
    if not (0 < delta < 1):
        raise InvalidSetting("delta", "above 0 and below 1 for zCDP", delta, "--delta")
    if rho == 0:
        return 0.0
    if rho == math.inf:
        return math.inf
    return _epsilon_of_rho(rho, delta)


@lru_cache(maxsize=65536)
def _epsilon_of_rho(rho: float, delta: float) -> float:
    log_delta = math.log(delta)

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        a = 1 + excess
        log_ratio = log_excess - math.log1p(excess)  # This is ln((a - 1)/a).
        return a * rho + (-log_delta + a * log_ratio - log_excess) / excess

    # Search near a - 1 = sqrt(ln(1/delta)/rho), which is close to the minimum.
    middle = 0.5 * math.log(max(-log_delta, 1e-3) / rho)
    minimum = scipy.optimize.minimize_scalar(
        bound, bounds=(middle - 12, middle + 12), method="bounded", options={"xatol": 1e-10}
    )
    return max(0.0, float(minimum.fun)) * (1 + 1e-12)


@lru_cache(maxsize=4096)
def rho_meeting(epsilon: float, delta: float) -> float:
    """Return the greatest rho whose `epsilon_of_rho` is at most epsilon, rounded down."""
    low, high = 0.0, epsilon
    for _ in range(200):
        middle = 0.5 * (low + high)
        if high - low <= 1e-13 * high:
            break
        if epsilon_of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


# --- the composed loss ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """A dominating loss: a Gaussian part plus a law on a grid.

    Attributes
    ----------
    mu : float
        Combined mu of the Gaussian parts.
    step : float
        Distance between two grid points.
    first : int
        Index of the grid's start, which is ``first * step``.
    masses : ndarray of shape (points,)
        Probability of each loss under the first law of the pair.
    failing : float
        Probability that the release reveals everything.
    """

    mu: float
    step: float
    first: int
    masses: FloatArray
    failing: float

    @property
    def losses(self) -> FloatArray:
        """The losses on the grid, shape (points,)."""
        points: FloatArray = self.step * (self.first + np.arange(len(self.masses), dtype=float))
        return points

    @cached_property
    def _there(self) -> tuple[NDArray[np.intp], FloatArray]:
        """The grid indices with mass, and their losses; pure parts give most indices no mass."""
        places = np.flatnonzero(self.masses)
        return places, self.losses[places]

    def delta(self, epsilon: float) -> float:
        """Return a delta that the release meets at epsilon >= 0, rounded up."""
        places, losses = self._there
        deltas = np.zeros(len(self.masses))
        if self.mu == 0:
            first = np.searchsorted(losses, epsilon, side="right")
            deltas[places[first:]] = -np.expm1(epsilon - losses[first:])
        else:
            gap = losses - epsilon
            size = np.abs(gap)
            profile = np.asarray(delta_of(size, np.full(len(size), self.mu)))
            shrunk = np.exp(-size)
            deltas[places] = np.where(gap > 0, 1 - shrunk + shrunk * profile, profile)
        total = float(self.masses @ deltas) * (1 + 1e-10) + self.failing
        return min(1.0, total)

    def epsilon(self, delta: float) -> float:
        """Return an epsilon that the release meets at delta, rounded up; may be infinite."""
        if self.delta(0.0) <= delta:
            return 0.0
        if self.failing >= delta:
            return math.inf
        high = max(float(self.losses[-1]), 0.0)
        if self.mu > 0:
            high += epsilon_of((delta - self.failing) / 2, self.mu)
        target = math.log(delta)

        def gap(epsilon: float) -> float:
            return max(math.log(max(self.delta(epsilon), math.ulp(0.0))) - target, -_DEEP)

        if gap(high) > 0:
            return high
        return least_meeting(gap, lambda epsilon: self.delta(epsilon) <= delta, high)


class GridLoss(Protocol):
    """A dominating loss that can be put on a grid."""

    @property
    def reach(self) -> float:
        """The largest finite loss on the grid."""

    def on_grid(self, step: float) -> tuple[FloatArray, float]:
        """Return the loss masses on [-m, m] steps, and the probability of an infinite loss."""


def composed(
    parts: Sequence[Part], releases: int = 1, known: Sequence[GridLoss] = ()
) -> PrivacyLoss:
    """Return the dominating loss of ``releases`` releases of all parts.

    Parameters
    ----------
    parts : sequence of Part
        Parts of one release, each with a finite loss.
    releases : int
        Number of releases, from 1 to 100,000; each may depend on the results of earlier releases.
    known : sequence of GridLoss
        Further losses of one release that no part describes, such as the losses of
        `dpviz.accounting.profiles`.
    """
    if not (1 <= releases <= _LARGEST_RELEASES):
        raise InvalidSetting(
            "releases", f"a whole number from 1 to {_LARGEST_RELEASES:,}", releases, "--releases"
        )
    # Gaussian noises compose in closed form (Dong, Roth & Su 2022, Corollary 2).
    mu = math.sqrt(releases) * math.hypot(
        *(part.mu for part in parts if isinstance(part, GaussianPart))
    )
    other = [part for part in parts if not isinstance(part, GaussianPart) and part.epsilon > 0]
    failing = _failing(parts, releases)
    if not other and not known:
        return PrivacyLoss(mu, 1.0, 0, np.ones(1), failing)
    epsilons = [*(part.epsilon for part in other), *(loss.reach for loss in known)]
    if math.inf in epsilons:
        return PrivacyLoss(mu, 1.0, 0, np.zeros(1), 1.0)
    # Use one grid for all privacy losses, as fine as the number of points allows.
    points = _POINTS if mu == 0 else _POINTS_BESIDE_GAUSSIAN
    cells = max(1, int(points * max(epsilons) / (2 * releases * math.fsum(epsilons))))
    step = max(epsilons) / min(cells, 2**14)
    laws = [_on_grid(part, step) for part in other]
    for loss in known:
        law, failing_once = loss.on_grid(step)
        laws.append(law)
        failing = (
            1 - (1 - failing) * (1 - failing_once) ** releases
            if failing + failing_once < 1
            else 1.0
        )
    masses = _convolved(laws, releases)
    single = len(laws) == 1 and releases == 1 and not known  # One loss needs no convolution.
    room = 0.0 if single else _FFT_ROOM
    return PrivacyLoss(mu, step, -(len(masses) // 2), masses, failing + room)


def _failing(parts: Sequence[Part], releases: int) -> float:
    """Return the probability that any release of any part reveals everything, rounded up."""
    log_chances = [
        -releases * math.log1p(-part.delta) for part in parts if isinstance(part, ApproximatePart)
    ]
    return -math.expm1(-math.fsum(log_chances)) * (1 + 1e-12)


def _convolved(laws: Sequence[FloatArray], releases: int) -> FloatArray:
    """Return the law of a sum of ``releases`` losses from each law.

    If each law lies on [-m, m] steps, the sum reaches ``releases`` times the sum of all m.
    """
    radius = releases * sum((len(law) - 1) // 2 for law in laws)
    size = next_fast_len(2 * radius + 1, real=True)  # This length prevents wrap-around in the FFT.
    product = np.ones(size // 2 + 1, dtype=complex)
    for law in laws:
        product *= rfft(law, size)
    # The FFT's rounding turns some zero probabilities into tiny negative numbers, so clip them.
    masses: FloatArray = np.maximum(irfft(product**releases, size)[: 2 * radius + 1], 0.0)
    return masses


def _on_grid(part: Part, step: float) -> FloatArray:
    """Return the masses of a part's loss on [-m, m] steps, with epsilon rounded up to m steps."""
    assert not isinstance(part, GaussianPart)
    count = max(1, math.ceil(part.epsilon / step * (1 - 1e-12)))
    if isinstance(part, LaplacePart):
        return _laplace_on_grid(count, step)
    if isinstance(part, PurePart) and part.ranged:
        return _range_on_grid(count, step, part.width / part.epsilon)
    masses = np.zeros(2 * count + 1)
    masses[-1] = 1 / (1 + math.exp(-count * step))
    masses[0] = 1 - masses[-1]
    return masses


def _laplace_on_grid(count: int, step: float) -> FloatArray:
    """Return the loss masses of Laplace noise shifted by ``count * step`` scales, on the grid.

    With y the noise of the first law, the loss is s for y <= 0, s - 2y in between, -s for y >= s.
    """
    s = count * step
    masses = np.zeros(2 * count + 1)
    masses[-1], masses[0] = 0.5, 0.5 * math.exp(-s)
    # Cell i of the grid covers privacy losses from (i - count) to (i + 1 - count) steps.
    low = step * (np.arange(2 * count) - count)
    near = (s - low - step) / 2
    p = 0.5 * np.exp(-near) * -math.expm1(-step / 2)
    q = 0.5 * np.exp(near + step / 2 - s) * -math.expm1(-step / 2)
    # Split p into p_low + p_high, with q = p_low e^-low + p_high e^-(low + step).
    upper = (p - q * np.exp(low)) / -math.expm1(-step)
    upper = np.clip(upper * (1 + 1e-11), 0.0, p)
    masses[1:] += upper
    masses[:-1] += p - upper
    return masses


@lru_cache(maxsize=64)
def _range_on_grid(count: int, step: float, wider: float) -> FloatArray:
    """Return the loss masses of a bounded range of width ``wider * count * step``.

    For a log ratio between t - w and t (so t from w - e to e), the law on the two ends has the
    largest profile, (e^w - e^t)(1 - e^(epsilon - t))/(e^w - 1): a convex function of e^loss is
    greatest there. This profile is greatest at t = (w + epsilon)/2, or at e if e is less. One curve
    for all t and both orders dominates every pair of neighbours.
    """
    epsilon = count * step
    width = wider * epsilon
    places = np.unique(np.rint(np.linspace(0, count, min(count, _RANGE_NODES) + 1)).astype(np.intp))
    at = step * places
    t = np.minimum((width + at) / 2, epsilon)
    deltas = -np.expm1(t - width) * -np.expm1(np.minimum(at - t, 0.0)) / -math.expm1(-width)
    masses, _ = connected(places, deltas, step)
    return masses


def _rho_of_part(part: Part) -> float:
    if isinstance(part, GaussianPart):
        return part.mu * part.mu / 2
    if isinstance(part, LaplacePart):
        return rho_of_laplace(part.epsilon)
    if isinstance(part, PurePart) and part.ranged:
        return min(rho_of_range(part.width), rho_of_pure(part.epsilon))
    return rho_of_pure(part.epsilon)


def _renyi_of_part(part: Part, order: float) -> float:
    if isinstance(part, GaussianPart):
        return renyi_of_gaussian(part.mu, order)
    if part.epsilon in (0.0, math.inf):
        return part.epsilon
    if isinstance(part, LaplacePart):
        return renyi_of_laplace(part.epsilon, order)
    if isinstance(part, PurePart) and part.ranged:
        # rho-zCDP bounds the Renyi divergence of every order by order * rho.
        return min(order * rho_of_range(part.width), renyi_of_pure(part.epsilon, order))
    return renyi_of_pure(part.epsilon, order)


# --- connect the dots -----------------------------------------------------------------------------


def connected(
    places: NDArray[np.intp], deltas: FloatArray, step: float
) -> tuple[FloatArray, float]:
    """Return the masses of the loss on [-m, m] steps, and the probability of an infinite loss.

    Parameters
    ----------
    places : ndarray of shape (points,)
        Positions in steps, ascending from 0 to m.
    deltas : ndarray of shape (points,)
        The profile at ``places``, which holds for both orders of the neighbours.
    step : float
        Distance between two points of the grid of losses.

    Returns
    -------
    masses : ndarray of shape (2 m + 1,)
        Masses and ``failing`` sum to 1 or a rounding more; read-only.
    failing : float

    Notes
    -----
    A profile delta(epsilon) is a convex function of x = e^epsilon, so chords between its points lie
    above it. The chords are the profile of a pair of laws whose losses are those points
    (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, Section 4); this pair dominates. One curve
    covers both orders of the neighbours, so the pair is symmetric: the second law gives loss l the
    probability that the first gives -l, which is e^-l times the first law's probability of l.
    """
    count = int(places[-1])
    widths = step * np.diff(places)
    # c_i is e^(epsilon_i) times the slope of the profile's chord i. Rounding can break the order of
    # the slopes. So raise slopes that are too low, starting at the far end.
    slopes = np.maximum(deltas[:-1] - deltas[1:], 0.0) / np.expm1(widths)
    for index in range(len(slopes) - 2, -1, -1):
        slopes[index] = max(slopes[index], slopes[index + 1] * math.exp(-widths[index]))
    above = slopes * np.exp(widths)
    above[:-1] -= slopes[1:]
    above = np.maximum(above, 0.0)  # These are the probabilities of all losses except the first.
    below = above * np.exp(-step * places[1:])
    failing = float(deltas[-1])
    masses = np.zeros(2 * count + 1)
    masses[count + places[1:]] = above
    masses[count - places[1:]] = below
    masses[count] = max(0.0, 1.0 - failing - float(above.sum() + below.sum()))
    masses.setflags(write=False)
    return masses, failing
