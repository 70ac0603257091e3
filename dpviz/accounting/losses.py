"""Exact distributions of privacy losses, without simulation.

Each method gives a lower bound on the actual privacy loss of some pair of legal tables, so it can
refute a claim or show that the claim is tight. `Mechanism.exact_loss` selects the method.
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

# Integrate over heights z in [0, 1] of the sphere, with 16 nodes in each interval. Intervals shrink
# towards the pole, where a concentrated distribution lies, down to a width of 1e-9.
_PANELS = 60
_NARROWEST = 1e-9
_MOST_CONCENTRATED = 1e5


Tables = tuple[SecondMoment, SecondMoment]
"""Two neighbouring tables."""


@dataclass(frozen=True)
class ExactLoss:
    """The exact privacy loss of some neighbours.

    Attributes
    ----------
    epsilon : float
        The least epsilon at the claimed delta; infinite if no epsilon is enough.
    deltas : tuple of float
        The least delta at each requested epsilon, or 0 if the method gives no delta.
    source : str
        The name of the method, a phrase.
    """

    epsilon: float
    deltas: tuple[float, ...]
    source: str


def of_parts(
    calibration: Calibration, delta: float, at_epsilons: tuple[float, ...], *, data: bool
) -> ExactLoss | None:
    """Return the exact loss of one Gaussian or Laplace query, if some neighbours attain it.

    Several parts compose adaptively and their worst cases need not coincide, so the losses of such
    releases are only simulated.
    """
    if len(calibration.parts) != 1:
        return None
    (part,) = calibration.parts
    # With noise on every row, all noisy rows together have this loss, whatever is released.
    of = " of the noisy rows" if data else ""
    if isinstance(part, GaussianPart):
        deltas = tuple(delta_of(epsilon, part.mu) for epsilon in at_epsilons)
        return ExactLoss(epsilon_of(delta, part.mu), deltas, f"exact Gaussian profile{of}")
    if isinstance(part, LaplacePart) and part.attained and delta == 0:
        nothing = tuple(0.0 for _ in at_epsilons)
        return ExactLoss(part.epsilon, nothing, f"closed form of the Laplace density ratio{of}")
    return None


def of_profile(account: Spent, delta: float, at_epsilons: tuple[float, ...]) -> ExactLoss | None:
    """Return the loss from exact accounting that uses a likelihood ratio instead of parts."""
    if delta == 0 or account.delta_at_epsilon is None or account.delta != delta:
        return None  # If a person has several rows, delta differs between row and person.
    # The privacy loss is known only at the claimed epsilon; use the bound 0 at larger ones.
    deltas = (account.delta_at_epsilon, *(0.0 for _ in at_epsilons[1:]))
    return ExactLoss(account.epsilon, deltas, account.source)


def of_published_space(at_epsilons: tuple[float, ...]) -> ExactLoss:
    """Return the loss of publishing the exact top-k space, which differs between any two tables."""
    every = tuple(1.0 for _ in at_epsilons)
    return ExactLoss(
        math.inf,
        every,
        "the row space of the release is the exact top-k space, seen with probability 1",
    )


def of_moving_support(calibration: Calibration, at_epsilons: tuple[float, ...]) -> ExactLoss:
    """Return the chance of a release that only one table allows, if a unit row is zeroed.

    W_d(d + 1, c I) has two degrees of freedom along the row, whatever d; see `WishartNoise`. The
    zero row is legal under replace too, so the bound holds for both relations.
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

    At x the ratio is c x'(A1 - A2)x - (ln Z1 - ln Z2), with the normalisers by quadrature. The
    extremes of the ratio over x come from eigenvalues of A1 - A2.
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
        Eigenvalues of B, in any order.

    Notes
    -----
    On the circle the integral is 2 pi exp((a + b)/2) I0((a - b)/2). On the sphere the same formula
    holds at each height z of the last axis, with a and b shrunk by 1 - z^2; heights z and -z
    contribute equally.
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
    top = float(values[-1])
    if len(values) == 2:
        half = (values[1] - values[0]) / 2
        return math.log(2 * math.pi * float(ive(0, half))) + top
    heights, weights = _heights()
    # Let z be the axis of the largest eigenvalue: the probability is then near the pole.
    low, middle, high = values - top
    shrunk = 1 - heights**2
    # Use I0(h) = ive(0, h) e^h: h plus the mean of eigenvalues low and middle is middle.
    exponent = middle * shrunk + high * heights**2
    inner = ive(0, (middle - low) / 2 * shrunk)
    total = float((weights * np.exp(exponent) * inner).sum())
    return math.log(4 * math.pi * total) + top


@cache
def _heights() -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on [0, 1], refined towards 1."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    ends = np.concatenate([[0.0], np.geomspace(_NARROWEST, 1.0, _PANELS)])
    widths = np.diff(ends)[:, None]
    depth = ends[:-1, None] + widths * (nodes + 1) / 2
    return 1 - depth.ravel(), (widths * weights / 2).ravel()


# --- ratios of known densities --------------------------------------------------------------------


LogRatio = Callable[[Release], FloatArray]
"""The log likelihood ratio ln f1/f2 of a batch of releases, if no named audit score equals it.

Gaussian, Laplace and Bingham releases need no such function: their ratios are the linear, l1 and
subspace scores of `dpviz.auditing.events`.
"""

_FARTHEST = 60.0
_GRID = 60
_NODES = 60


def wishart_difference_ratio(scale: float, first: FloatArray, second: FloatArray) -> LogRatio:
    """Return a function for ln f1/f2 of a batch of A + scale * (W1 - W2) at d = 2.

    Parameters
    ----------
    scale : float
    first, second : ndarray of shape (2, 2)
        The matrices A of the two tables.
    """

    def ratio(release: Release) -> FloatArray:
        return log_density((release.raw - first) / scale) - log_density(
            (release.raw - second) / scale
        )

    return ratio


def log_density(noise: FloatArray) -> FloatArray:
    """Return ln f(M) + const for M = W1 - W2, independent W_2(3, I); takes shape (size, 2, 2).

    Notes
    -----
    f(M) is proportional to the integral of exp(-(2 tr P - tr M)/2) over {P >= 0, P >= M}. If M or
    -M is semi-definite, f is proportional to exp(-||M||_nuc/2). With eigenvalues a > 0 > -b it is
    larger by the factor g(a, b) = G(a, b)/G(0, 0). Integrating out the off-diagonal entry of P
    leaves

        G(a, b) = integral over x, y > 0 of exp(-x - y) 2 sqrt(min((x + a) y, x (y + b))).
    """
    values = np.linalg.eigvalsh(noise)
    low, high = values[:, 0], values[:, 1]
    a = np.sqrt(np.clip(high, 0.0, _FARTHEST))
    b = np.sqrt(np.clip(-low, 0.0, _FARTHEST))
    # ln g is 0 if a or b is 0, so semi-definite matrices need no special case.
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
    """Return G(a, b): Laguerre in r = x + y, Legendre in x/r on each side of the line a y = b x.

    x/r = sin^2 of an angle within a side removes the square root's end singularities.
    """
    r, radial, angle, angular = _nodes()
    share = np.square(np.sin(angle))
    turn = 2 * np.sin(angle) * np.cos(angle) * angular
    border = a / (a + b) if a + b > 0 else 0.5
    below, above = border * share, border + (1 - border) * share
    # Below the border, a y > b x, so the smaller product is x (y + b).
    first = r * below * (r * (1 - below) + b)
    right = (r * above + a) * r * (1 - above)
    total = radial * r * 2 * (np.sqrt(first) * border + np.sqrt(right) * (1 - border)) * turn
    return float(total.sum())


@cache
def _nodes() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r, radial = np.polynomial.laguerre.laggauss(_NODES)
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    return r[:, None], radial[:, None], (points + 1) * math.pi / 4, weights * math.pi / 4
