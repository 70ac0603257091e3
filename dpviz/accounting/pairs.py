"""Exact profiles of a replaced row: the worst pair of rows is orthogonal, and its two integrals.

**Noise with a log-concave density on the matrix** (`wishart_pair`). Let f be the density of the
noise N and H(Delta) = sup over E of P(N + Delta in E) - e^epsilon P(N in E).

1. H(Delta) = 1 - integral of min(f(x - Delta), e^epsilon f(x)) dx: the best event is where the
   first density is the larger, and (a - b)_+ = a - min(a, b).
2. The integrand is log-concave in (x, Delta) together: f(x - Delta) is, being f after a linear
   map, so is f(x), and the minimum of two log-concave functions is log-concave.
3. Integrating out x keeps that (Prekopa 1973). So 1 - H is log-concave in Delta, {H <= c} is
   convex for every c, and on a polytope H is greatest at a vertex.
4. Neighbours in the unit ball differ by D = s pp' - t qq', p and q orthonormal, 0 <= s, t <= 1
   (fact F1 of `dpviz.accounting.sensitivity`): a point of the rectangle with vertices 0, pp', -qq'
   and pp' - qq'. Each vertex is itself the difference of two legal tables.
5. The law of the noise W_d(nu + d - 1, I) does not change under rotations, so H at a vertex does
   not depend on p and q. H(0) = 0. H(pp') and H(-qq') are the two sides of a row put in or taken
   out, the zero-out profile. H(pp' - qq') is two orthogonal unit rows.
6. The density |W|^((nu - 2)/2) e^(-tr W/2) on the cone is log-concave for nu >= 2, as ln|W| is.

So the exact profile under replace is the larger of the zero-out profile and that of two orthogonal
unit rows. The argument does not use the Wishart law but in 5 and 6.

**A Gaussian sketch** (`sketch_pair`) has no additive noise. Rows of the sketch are N(0, C + vv')
or N(0, C + ww') with C >= w^2 I, w^2 the lift. In coordinates that diagonalise both covariances,
two directions differ: along one the variance is rho_1 >= 1 times as large with v, along the other
rho_2 >= 1 times as large with w, and rho_1, rho_2 <= 1 + 1/lift, since x'(C + vv')x is at most
(1 + v'C^-1 v) x'Cx. A smaller ratio is reached from a larger one by adding the same independent
noise to both laws, along each direction by itself; so the worst pair has both ratios equal to
1 + 1/lift, and orthogonal unit rows have them where all other rows are orthogonal to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, gammaincc, gammaln

from dpviz.core.arrays import FloatArray

_DEPTH = 60.0
"""Integrands are followed until they have fallen by e^-60."""
_DEEPEST = 700.0
"""How far below its mode, in logarithms, a Gamma density is searched for the integrand's peak."""
_FEW, _MANY = (61, 97, 64), (121, 257, 200)
"""Points to find the peak, to integrate over ln g, and over w; many below shape 8, where the
integrands are wide. The errors found by doubling them are below a hundredth of the room."""
_COARSER = 3
"""So many times fewer points over w where only the window is sought."""
_WIDE_BELOW = 8.0
_ROUNDING = float(np.finfo(np.float64).eps)

_Log = Callable[[FloatArray, bool], FloatArray]  # of g; whether it need only be rough


@lru_cache(maxsize=65536)
def wishart_pair(freedom: float, scale: float, epsilon: float) -> float:
    """Return delta at epsilon for orthogonal unit rows under W_d(freedom + d - 1, scale I).

    Parameters
    ----------
    freedom : float
        nu, at least 2.
    scale : float
        In units of R^2, above 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Rounded up, by `_room` of the probability of the best event.

    Notes
    -----
    The density ratio depends on the noise only through the inverse of the 2 x 2 block of W^-1 on
    the plane of the rows, B ~ W_2(nu + 1, scale I) (Muirhead 1982, Theorem 3.2.11: the degrees of
    freedom fall by d - 2). So the case d = 2 is the general one: B against B + J, J = diag(1, -1).
    In units of the scale, h = 1/scale, p = nu/2 - 1:

        ratio = (|X - h J|/|X|)^p,   |X - h J| = |X| + h (X_11 - X_22) - h^2.

    Let g^2 = |B| and xi = (B_11 - B_22)/(2 g). The event that the ratio exceeds e^epsilon, or that
    X is outside the cone, is xi > (k' g^2 - h^2)/(2 h g) with the shift and
    xi > (k g^2 + h^2)/(2 h g) without, k = e^(epsilon/p) - 1 and k' = 1 - e^(-epsilon/p).

    By Bartlett B_11 = g e^w, B_22 = g e^-w + Z^2 with Z standard normal: g has density
    g^(nu - 1) e^-g/Gamma(nu), w given g one proportional to e^(w/2 - g cosh w), and
    xi = sinh w - Z^2/(2 g). So P(xi > x | g) is the mean over w of erf(sqrt(g (sinh w - x))),
    and both integrals, over w and ln g, are trapezoidal sums of analytic functions. The other
    order of the pair is the same by exchange of the two coordinates.
    """
    # ln ratio is p ln(|X - hJ|/|X|): its power in the Wishart density
    h, p = 1 / scale, freedom / 2 - 1
    shrunk = -math.expm1(-epsilon / p) if p > 0 else (1.0 if epsilon > 0 else 0.0)
    with np.errstate(over="ignore"):
        grown = float(np.expm1(epsilon / p)) if p > 0 else (math.inf if epsilon > 0 else 0.0)

    points = _sizes(freedom)[2]
    few = points // _COARSER

    def with_shift(g: FloatArray, rough: bool) -> FloatArray:
        return _log_tail((shrunk * g - h * (h / g)) / (2 * h), g, few if rough else points)

    def without(g: FloatArray, rough: bool) -> FloatArray:
        return _log_tail((grown * g + h * (h / g)) / (2 * h), g, few if rough else points)

    first = _log_mean(freedom, with_shift)
    second = _log_mean(freedom, without) if math.isfinite(grown) else -math.inf
    return _difference(freedom, first, epsilon + second)


@lru_cache(maxsize=65536)
def sketch_pair(rows: int, lift: float, epsilon: float) -> float:
    """Return delta at epsilon for orthogonal unit rows and a sketch of so many rows.

    Parameters
    ----------
    rows : int
        r of the sketch, at least 1.
    lift : float
        w^2 in units of R^2, above 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Rounded up, by `_room` of the probability of the best event.

    Notes
    -----
    With rho = 1 + 1/lift the loss is (1 - 1/rho)/2 times the difference of the two sums of
    squares: rho G_1 - G_2 with v and G_1 - rho G_2 with w, G_i independent chi^2_r. Given G_2 the
    chance of exceeding a level is a chi-square's tail.
    """
    half = rows / 2
    level = epsilon * (lift + 1)  # half of 2 epsilon/(1 - 1/rho): Gamma variables are chi^2/2
    ratio = 1 + 1 / lift

    def with_first(g: FloatArray, rough: bool) -> FloatArray:
        return _log(gammaincc(half, (level + g) / ratio))

    def with_second(g: FloatArray, rough: bool) -> FloatArray:
        return _log(gammaincc(half, level + ratio * g))

    first, second = _log_mean(half, with_first), _log_mean(half, with_second)
    return _difference(half, first, epsilon + second)


def _sizes(shape: float) -> tuple[int, int, int]:
    return _MANY if shape < _WIDE_BELOW else _FEW


def _room(shape: float) -> float:
    """Return the relative error allowed for a probability: quadrature, and rounded thresholds."""
    return 1e-11 + 64 * _ROUNDING * math.sqrt(shape)


def _difference(shape: float, log_first: float, log_second: float) -> float:
    """Return exp(log_first) - exp(log_second), rounded up and at least 0."""
    if log_first == -math.inf:
        return 0.0
    share = -math.expm1(log_second - log_first) if log_second < log_first else 0.0
    return min(1.0, math.exp(log_first) * (share + _room(shape)))


def _log_mean(shape: float, log_of: _Log) -> float:
    """Return log E exp(log_of(g, False)) for g ~ Gamma(shape).

    In s = ln(g/shape) the density is exp(shape (1 + s - e^s)) up to a constant, and the integrand
    is analytic and falls off on both sides: the trapezoidal rule converges geometrically once the
    window holds the peak. The window is found on a coarse grid, which spans where the density
    itself lies above e^-700 of its mode.
    """
    spread = math.sqrt(2 * _DEEPEST / shape)
    low, high = -(_DEEPEST / shape + spread), spread

    def log_integrand(s: FloatArray, rough: bool) -> FloatArray:
        total: FloatArray = shape * (s - np.expm1(s)) + log_of(shape * np.exp(s), rough)
        return total

    # the window is narrowed at most three times, until the grid sees the peak
    coarse, fine, _ = _sizes(shape)
    for _ in range(3):
        grid = np.linspace(low, high, coarse)
        values = log_integrand(grid, True)
        top = float(values.max())
        if top == -math.inf:
            return -math.inf
        seen = np.flatnonzero(values >= top - _DEPTH)
        low = float(grid[max(int(seen[0]) - 1, 0)])
        high = float(grid[min(int(seen[-1]) + 1, coarse - 1)])
        if len(seen) >= coarse // 3:
            break
    grid, step = np.linspace(low, high, fine, retstep=True)
    values = log_integrand(grid, False)
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()) * float(step)) + _log_constant(shape)


def _log_constant(shape: float) -> float:
    """Return shape ln shape - shape - ln Gamma(shape)."""
    if shape < 100:
        return shape * math.log(shape) - shape - float(gammaln(shape))
    inverse = 1 / shape  # Stirling; the next term is below 1e-17 here
    series = inverse / 12 - inverse**3 / 360 + inverse**5 / 1260
    return 0.5 * math.log(shape / (2 * math.pi)) - series


def _log_tail(x: FloatArray, g: FloatArray, points: int) -> FloatArray:
    """Return log P(xi > x | g), arrays of shape (m,); see `wishart_pair`.

    It is e^g sqrt(g/(2 pi)) times the integral of e^(w/2 - g cosh w) erf(sqrt(g (sinh w - x)))
    over w from asinh x on; with w = asinh x + y^2 the integrand is an even analytic function of y.
    """
    start = np.arcsinh(x)
    # where the weight has fallen by e^-60 on either side of its peak, or of the start beyond it
    reach = np.arcsinh(np.sqrt(0.5 * _DEPTH / g))
    start = np.maximum(start, -2 * reach)
    base = np.maximum(start, 0.0)
    end = 2 * np.arcsinh(np.sqrt(np.sinh(np.minimum(base, 700) / 2) ** 2 + 0.5 * _DEPTH / g))
    y = np.linspace(0.0, 1.0, points) * np.sqrt(np.maximum(end - start, 0.0))[:, None]
    w = start[:, None] + y * y
    b = base[:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        fall = 2 * g[:, None] * np.sinh((w + b) / 2) * np.sinh((w - b) / 2)
        beyond = 2 * np.cosh((w + start[:, None]) / 2) * np.sinh((w - start[:, None]) / 2)
        beyond += (np.sinh(start) - x)[:, None] * (np.sinh(start) > x)[:, None]
        inside = np.exp(w / 2 - b / 2 - fall) * erf(np.sqrt(g[:, None] * beyond))
        sums = (2 * y * inside).sum(axis=1) * y[:, 1]
        at_base = base / 2 - 2 * g * np.sinh(base / 2) ** 2
        found: FloatArray = _log(sums) + at_base + 0.5 * np.log(g / (2 * math.pi))
    return np.where(np.isfinite(x), found, -np.inf)


def _log(values: NDArray[np.floating[Any]]) -> FloatArray:
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(np.asarray(values, dtype=np.float64))
    return logs
