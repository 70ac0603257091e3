"""Likelihood ratios where the density of a release is known and no named score equals it.

Gaussian, Laplace and Bingham releases need none: their ratios are the linear, the l1 and the
subspace score of `dpviz.auditing.events`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import scipy

from dpviz.core.arrays import FloatArray
from dpviz.core.release import Release

LogRatio = Callable[[Release], FloatArray]

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
    found: FloatArray = np.where((high > 0) & (low < 0), gain, 0.0) - np.abs(values).sum(axis=1) / 2
    return found


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
    left = r * below * (r * (1 - below) + b)
    right = (r * above + a) * r * (1 - above)
    total = radial * r * 2 * (np.sqrt(left) * border + np.sqrt(right) * (1 - border)) * turn
    return float(total.sum())


@cache
def _nodes() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r, radial = np.polynomial.laguerre.laggauss(_NODES)
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    return r[:, None], radial[:, None], (points + 1) * math.pi / 4, weights * math.pi / 4
