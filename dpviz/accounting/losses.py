"""Exact distributions of privacy losses, without simulation.

Each route is a lower bound on what some pair of legal tables really costs, so it can
refute a claim or show that it is tight. `Mechanism.exact_loss` says which route is a mechanism's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from scipy.special import ive

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import delta_of, epsilon_of
from dpviz.accounting.profiles import WishartNoise
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Relation
from dpviz.core.release import Calibration, Release

# Quadrature over heights z in [0, 1] of the sphere: panels that shrink towards the pole, where the
# mass of a concentrated law is, each with 16 nodes. The last panel is 1e-9 wide.
_PANELS = 60
_NARROWEST = 1e-9
_MOST_CONCENTRATED = 1e5


Tables = tuple[SecondMoment, SecondMoment]
"""Two neighbouring tables."""


@dataclass(frozen=True)
class ExactLoss:
    """Exact privacy losses of some neighbours.

    Attributes
    ----------
    epsilon : float
        The least epsilon at the claimed delta; infinite if no epsilon is enough.
    deltas : tuple of float
        The least delta at each epsilon asked for, or 0 where the route does not say.
    source : str
        The route, in a phrase.
    """

    epsilon: float
    deltas: tuple[float, ...]
    source: str


def of_parts(
    calibration: Calibration, delta: float, at_epsilons: tuple[float, ...], *, data: bool
) -> ExactLoss | None:
    """Return the loss of one Gaussian or Laplace query, which neighbours attain.

    Several parts are composed adaptively and their worst cases need not meet, so they are left
    to the draws.
    """
    if len(calibration.parts) != 1:
        return None
    (part,) = calibration.parts
    # Where rows are noised, the account is of all of them, whatever summary is passed on.
    of = " of the noisy rows" if data else ""
    if isinstance(part, GaussianPart):
        deltas = tuple(delta_of(epsilon, part.mu) for epsilon in at_epsilons)
        return ExactLoss(epsilon_of(delta, part.mu), deltas, f"exact Gaussian profile{of}")
    if isinstance(part, LaplacePart) and part.attained and delta == 0:
        nothing = tuple(0.0 for _ in at_epsilons)
        return ExactLoss(part.epsilon, nothing, f"closed form of the Laplace density ratio{of}")
    return None


def of_profile(account: Spent, delta: float, at_epsilons: tuple[float, ...]) -> ExactLoss | None:
    """Return the loss that an exact account without parts computed from its likelihood ratio."""
    if delta == 0 or account.delta_at_epsilon is None or account.delta != delta:
        return None  # a row of a person has another delta
    # Only the claimed epsilon was computed; above it the route does not say.
    # a bound from below: 0 claims nothing
    deltas = (account.delta_at_epsilon, *(0.0 for _ in at_epsilons[1:]))
    return ExactLoss(account.epsilon, deltas, account.source)


def of_published_space(at_epsilons: tuple[float, ...]) -> ExactLoss:
    """Return the loss of publishing the exact top-k space: two tables never agree on it."""
    every = tuple(1.0 for _ in at_epsilons)
    return ExactLoss(
        math.inf,
        every,
        "the row space of the release is the exact top-k space, seen with probability 1",
    )


def of_moving_support(calibration: Calibration, at_epsilons: tuple[float, ...]) -> ExactLoss:
    """Return the chance of a release that one table cannot make: zeroing a unit row.

    W_d(d + 1, c I) has two degrees of freedom along the row, whatever d; see `WishartNoise`. The
    zero row is legal under replace too, so the bound stands for both relations.
    """
    problem = calibration.problem
    profile = WishartNoise(2.0, calibration.scale * problem.n / problem.domain.radius**2)
    deltas = tuple(profile.delta(Relation.ZERO_OUT, epsilon) for epsilon in at_epsilons)
    return ExactLoss(
        math.inf,
        deltas,
        "law of the depth at which a release leaves the other table's support",
    )


def of_bingham(
    calibration: Calibration, at_epsilons: tuple[float, ...], tables: Sequence[Tables]
) -> ExactLoss | None:
    """Return the largest log density ratio of the exponential mechanism over some pairs of tables.

    At x it is c x'(A1 - A2)x - (ln Z1 - ln Z2), with the normalisers by quadrature, and its
    extremes over x are eigenvalues of A1 - A2.
    """
    c = calibration.scale
    if c > _MOST_CONCENTRATED:
        return None
    most = 0.0
    for first, second in tables:
        shift = log_normaliser(c * first.eigenvalues) - log_normaliser(c * second.eigenvalues)
        extremes = c * np.linalg.eigvalsh(first.A - second.A)
        most = max(most, float(extremes[-1]) - shift, shift - float(extremes[0]))
    nothing = tuple(0.0 for _ in at_epsilons)
    return ExactLoss(most, nothing, "density ratio of the Bingham law by quadrature")


def log_normaliser(eigenvalues: FloatArray) -> float:
    """Return ln of the integral of exp(x'Bx) over the unit circle or sphere.

    Parameters
    ----------
    eigenvalues : ndarray of shape (2,) or (3,)
        Of B, in any order.

    Notes
    -----
    On the circle it is 2 pi exp((a + b)/2) I0((a - b)/2). On the sphere the same holds for each
    height z of the last axis, with a and b shrunk by 1 - z^2, and heights z and -z are alike.
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
    top = float(values[-1])
    if len(values) == 2:
        half = (values[1] - values[0]) / 2
        return math.log(2 * math.pi * float(ive(0, half))) + top
    heights, weights = _heights()
    # The largest eigenvalue lies along z, so that the mass is near the pole.
    low, middle, high = values - top
    shrunk = 1 - heights**2
    # I0(h) = ive(0, h) e^h; together with the mean this leaves the larger of the two
    exponent = middle * shrunk + high * heights**2
    inner = ive(0, (middle - low) / 2 * shrunk)
    total = float((weights * np.exp(exponent) * inner).sum())
    return math.log(4 * math.pi * total) + top


@cache
def _heights() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss and Legendre on [0, 1], refined towards 1."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    ends = np.concatenate([[0.0], np.geomspace(_NARROWEST, 1.0, _PANELS)])
    widths = np.diff(ends)[:, None]
    depth = ends[:-1, None] + widths * (nodes + 1) / 2
    return 1 - depth.ravel(), (widths * weights / 2).ravel()


# --- ratios of known densities --------------------------------------------------------------------


LogRatio = Callable[[Release], FloatArray]
"""ln f1/f2 of a batch of releases, where no named score of an audit equals it.

Gaussian, Laplace and Bingham releases need none: their ratios are the linear, the l1 and the
subspace score of `dpviz.auditing.events`.
"""

_FARTHEST = 60.0
_GRID = 60
_NODES = 60


def wishart_difference_ratio(scale: float, first: FloatArray, second: FloatArray) -> LogRatio:
    """Return ln f1/f2 of a batch as a function, for A + scale * (W1 - W2) at d = 2.

    Parameters
    ----------
    scale : float
    first, second : ndarray of shape (2, 2)
        The A of two tables.
    """

    def ratio(release: Release) -> FloatArray:
        return log_density((release.raw - first) / scale) - log_density(
            (release.raw - second) / scale
        )

    return ratio


def log_density(noise: FloatArray) -> FloatArray:
    """Return ln f(M) + const for M = W1 - W2, independent W_2(3, I); shape (size, 2, 2) in.

    Notes
    -----
    f(M) is proportional to the integral of exp(-(2 tr P - tr M)/2) over {P >= 0, P >= M}. Where M
    or -M is semi-definite that is exp(-||M||_nuc/2). With eigenvalues a > 0 > -b it is larger, by
    the factor g(a, b) = G(a, b)/G(0, 0): integrating out the off-diagonal entry of P leaves

        G(a, b) = integral over x, y > 0 of exp(-x - y) 2 sqrt(min((x + a) y, x (y + b))).
    """
    values = np.linalg.eigvalsh(noise)
    low, high = values[:, 0], values[:, 1]
    a = np.sqrt(np.clip(high, 0.0, _FARTHEST))
    b = np.sqrt(np.clip(-low, 0.0, _FARTHEST))
    # ln g is 0 where a or b is, so definite matrices need no case of their own
    gain = np.asarray(_log_gain().ev(a, b), dtype=np.float64)
    log_f: FloatArray = np.where((high > 0) & (low < 0), gain, 0.0) - np.abs(values).sum(axis=1) / 2
    return log_f


@cache
def _log_gain() -> scipy.interpolate.RectBivariateSpline:
    """Return ln g as a spline in the square roots of a and b, up to 60."""
    roots = np.linspace(0.0, math.sqrt(_FARTHEST), _GRID)
    table = np.array([[_volume(a * a, b * b) for b in roots] for a in roots])
    return scipy.interpolate.RectBivariateSpline(roots, roots, np.log(table / table[0, 0]))


def _volume(a: float, b: float) -> float:
    """Return G(a, b): Laguerre in r = x + y, Legendre in x/r on each side of a y = b x.

    x/r = sin^2 of the angle within a side takes the square root's ends out.
    """
    r, radial, angle, angular = _nodes()
    share = np.square(np.sin(angle))
    turn = 2 * np.sin(angle) * np.cos(angle) * angular
    border = a / (a + b) if a + b > 0 else 0.5
    below, above = border * share, border + (1 - border) * share
    # x/r below the border: a y > b x, so x (y + b) is the smaller product
    first = r * below * (r * (1 - below) + b)
    right = (r * above + a) * r * (1 - above)
    total = radial * r * 2 * (np.sqrt(first) * border + np.sqrt(right) * (1 - border)) * turn
    return float(total.sum())


@cache
def _nodes() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r, radial = np.polynomial.laguerre.laggauss(_NODES)
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    return r[:, None], radial[:, None], (points + 1) * math.pi / 4, weights * math.pi / 4
