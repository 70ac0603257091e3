"""Predict the effect of noise on components, without simulation.

Noise with R-transform R is added to a matrix A with eigenvalues ``a_j``. The resolvent of the sum
at z is the resolvent of A at w, where

    z(w) = w + R(g(w)),    g(w) = (1/d) sum_j 1/(w - a_j)

(free additive convolution; Biane 1997 for the semicircle). No equation is solved on a grid of z,
because z is explicit in w. With w = u + i v, ``1 - Im z/v`` equals ``sum_p r_p/((u - p)^2 + v^2)``
for some r_p >= 0 and real p, because -R(g(w)) maps the upper half plane into itself. Hence:

* for each real u there is exactly one v(u) >= 0 above which Im z > 0; the curve u + i v(u) is the
  real axis of z, and x = Re z rises along it;
* that sum is a Stieltjes function of v^2, so its reciprocal is concave and
  Newton's method on it never overshoots: no damping is needed;
* the mass of noisy eigenvalues above x is the imaginary part of an analytic
  function of w, in closed form: no mass is lost, however small the noise;
* the mass along direction j is a contour integral that may leave the curve straight upwards, where
  the integrand is smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import farthest_distance, nothing_to_recover, recovery_of
from dpviz.sampling.limits import FreeNoise

# Noise below this share of the spectrum's size is raised to it, because doubles cannot place a
# point of the curve more finely. The effect of raising it is only the square of the share.
_LEAST_NOISE = 1e-10
_MASS_TOLERANCE = 1e-9  # The search on the curve stops at this share of one eigenvalue.
_MASS_LOST = 1e-6  # A check allows this share of one eigenvalue; quadrature loses less.
_HEIGHT_STEPS, _SEARCH_STEPS = 100, 200  # Only a bug can reach these iteration limits.
FOUND = 0.5
"""Squared overlap from which a component counts as found: turned by at most 45 degrees."""
# Integrate by the trapezoidal rule in log tau. The integrand is analytic in a strip of half-width
# pi/2, so the error is about exp(-pi^2/step).
_CONTOUR_STEP = 0.4


@dataclass(frozen=True, eq=False)
class _Curve:
    """The subordination curve for a matrix and a noise law.

    Attributes
    ----------
    values : ndarray of shape (p,)
        Distinct eigenvalues, ascending.
    weights : ndarray of shape (p,)
        Multiplicities of the eigenvalues, as floats; they sum to d.
    noise : FreeNoise
    """

    values: FloatArray
    weights: FloatArray
    noise: FreeNoise

    @cached_property
    def d(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def _columns(self) -> FloatArray:
        return np.stack([self.weights, self.weights * self.values], axis=1) / self.d

    def at(self, u: FloatArray) -> _Points:
        """Return the points of the curve above real u, shape (points,)."""
        apart = u[:, None] - self.values
        squares = apart * apart
        # The sum is at most spread^2/v^2, which limits the height. Smaller heights than the least
        # one lie outside the support and are set to 0.
        most = self.noise.spread**2
        least = (1e-9 * self.noise.visible_above) ** 2
        height2 = np.zeros(len(u))
        pull, _ = self._pull(u, squares, np.full(len(u), least))
        active = np.flatnonzero(pull > 1)
        low, high, trial = (np.full(len(active), value) for value in (least, most, most / 4))
        near, near_u = squares[active], u[active]
        for _ in range(_HEIGHT_STEPS):
            if len(active) == 0:
                break
            pull, slope = self._pull(near_u, near, trial)
            low, high = np.where(pull > 1, trial, low), np.where(pull > 1, high, trial)
            # Use Newton's method on 1/pull - 1, which is concave and increasing in the squared
            # height. If a pole spoils the slope, halve the bracket in the logarithm instead.
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = trial - (pull - 1) * pull / slope
            newton = np.where((newton > low) & (newton < high), newton, np.sqrt(low * high))
            hits = np.abs(pull - 1) <= 1e-13
            newton = np.where(hits, trial, newton)
            converges = hits | (high - low <= 1e-13 * high)
            height2[active[converges]] = newton[converges]
            going = ~converges
            active, near, near_u = active[going], near[going], near_u[going]
            low, high, trial = low[going], high[going], newton[going]
        else:
            raise ArithmeticError("the iteration for the subordination curve did not converge")
        # Exactly on an eigenvalue the curve may reach the real axis (a hard edge, or an atom),
        # where nothing is finite. So evaluate just above it.
        height2[(height2 == 0) & (squares.min(axis=1) < least)] = least
        return self._points(u, apart, squares, np.sqrt(height2))

    def _pull(
        self, u: FloatArray, squares: FloatArray, height2: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return 1 - Im z/v and its derivative in v^2."""
        inverse = 1 / (squares + height2[:, None])
        s0, s1 = (inverse @ self._columns).T
        t0, t1 = ((inverse * inverse) @ self._columns).T
        real = u * s0 - s1  # This is the real part of g; the imaginary part is -v s0.
        real_slope = u * t0 - t1
        spread, spread_slope = self.noise.variance, np.zeros_like(u)
        for rate, size in self.noise.jumps:
            away = 1 - size * real
            modulus = away * away + size * size * height2 * s0 * s0
            modulus_slope = 2 * size * away * real_slope + size * size * s0 * (
                s0 - 2 * height2 * t0
            )
            term = rate * size * size / modulus
            spread = spread + term
            spread_slope = spread_slope - term * modulus_slope / modulus
        return s0 * spread, s0 * spread_slope - t0 * spread

    def _points(
        self, u: FloatArray, apart: FloatArray, squares: FloatArray, height: FloatArray
    ) -> _Points:
        d, height2 = self.d, height * height
        inverse = 1 / (squares + height2[:, None])
        s0, s1 = (inverse @ self._columns).T
        t0, t1 = ((inverse * inverse) @ self._columns).T
        g = (u * s0 - s1) - 1j * (height * s0)
        g_slope = -((s0 - 2 * height2 * t0) - 2j * height * (u * t0 - t1))
        x = u + self.noise.shift + self.noise.variance * g.real
        r_slope = np.full(len(u), self.noise.variance, dtype=complex)
        phase = np.arctan2(height[:, None], apart) @ self.weights
        phase += 0.5 * d * self.noise.variance * (g * g).imag
        for rate, size in self.noise.jumps:
            away = 1 - size * g
            x += (rate * size / away).real
            r_slope += rate * size**2 / (away * away)
            # The imaginary part keeps the sign of its zero, so the logarithm stays on its branch.
            log_imag = np.arctan2(size * height * s0, away.real)
            phase += d * rate * ((1 / away).imag + log_imag)
        z_slope = 1 + r_slope * g_slope
        with np.errstate(divide="ignore", invalid="ignore"):
            mass_slope = -d * height * s0 * (np.abs(z_slope) ** 2 / z_slope.real) / math.pi
        return _Points(u, height, x, phase / math.pi, mass_slope)

    def overlaps_above(self, w: complex) -> FloatArray:
        """Return the mass above the point w along one direction each, shape (p,).

        The mass is Im F_j(w)/pi with ``F_j' = z'(w)/(w - a_j)`` and F_j - log w -> 0 at infinity:
        the logarithm is in closed form, the rest is integrated up a vertical ray.
        """
        nearest = float(np.abs(w - self.values).min())
        farthest = float(np.abs(w - self.values).max())
        farthest += self.noise.visible_above
        logs = np.arange(
            math.log(nearest) - 28, math.log(farthest) + 16 + _CONTOUR_STEP, _CONTOUR_STEP
        )
        tau = np.exp(logs)
        ray = 1 / (w + 1j * tau[:, None] - self.values)
        weights = self.weights / self.d
        g, g_slope = ray @ weights, -((ray * ray) @ weights)
        r_slope = np.full(len(tau), self.noise.variance, dtype=complex)
        for rate, size in self.noise.jumps:
            r_slope += rate * size**2 / (1 - size * g) ** 2
        rest = -1j * ((r_slope * g_slope * tau * _CONTOUR_STEP) @ ray)
        phase: FloatArray = np.arctan2(w.imag, w.real - self.values) + rest.imag
        return phase / math.pi


@dataclass(frozen=True, eq=False)
class _Points:
    """Points on the curve, each of shape (points,)."""

    u: FloatArray
    height: FloatArray
    x: FloatArray
    above: FloatArray  # This is how many noisy eigenvalues lie above x, as a mass.
    slope: FloatArray  # This is the slope of that mass in u; it is 0 outside the support.


def _locate(curve: _Curve, targets: FloatArray, near: FloatArray) -> _Points:
    """Return the points of the curve above which the given masses lie.

    Parameters
    ----------
    curve : _Curve
    targets : ndarray
        Target masses, strictly between 0 and d.
    near : ndarray
        Real u near a target if the noise is small; tried first.

    Notes
    -----
    The search uses every evaluated point to narrow the bracket of every target.
    """
    reach = curve.noise.visible_above
    low, high = curve.values[0], curve.values[-1]
    while True:
        ends = curve.at(np.array([low - reach, high + reach]))
        if ends.above[0] > curve.d - 1e-12 * curve.d and ends.above[1] < 1e-12 * curve.d:
            break
        reach *= 2
    steps = np.linspace(low - reach, high + reach, 18)
    points = curve.at(np.unique(np.concatenate([steps, near])))
    known_u, known_above = points.u, points.above

    place = np.abs(points.above[:, None] - targets).argmin(axis=0)
    u, height, x = points.u[place].copy(), points.height[place].copy(), points.x[place].copy()
    above, slope = points.above[place].copy(), points.slope[place].copy()
    for _ in range(_SEARCH_STEPS):
        active = np.flatnonzero(np.abs(above - targets) > _MASS_TOLERANCE)
        # Rounding can break the falling order of the mass along u slightly, so restore it.
        falling = np.minimum.accumulate(known_above)
        right = len(falling) - np.searchsorted(falling[::-1], targets[active], side="right")
        right = np.clip(right, 1, len(falling) - 1)
        left_u, right_u = known_u[right - 1], known_u[right]
        open_ = right_u - left_u > 4 * np.spacing(np.maximum(np.abs(left_u), np.abs(right_u)))
        active, left_u, right_u = active[open_], left_u[open_], right_u[open_]
        if len(active) == 0:
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = u[active] - (above[active] - targets[active]) / slope[active]
        inside = (newton > left_u) & (newton < right_u)
        trial = np.where(inside, newton, (left_u + right_u) / 2)
        point = curve.at(trial)
        u[active], height[active], x[active] = point.u, point.height, point.x
        above[active], slope[active] = point.above, point.slope
        order = np.argsort(np.concatenate([known_u, trial]), kind="stable")
        known_above = np.concatenate([known_above, point.above])[order]
        known_u = np.concatenate([known_u, trial])[order]
    else:
        raise ArithmeticError("the search for the noisy eigenvalues did not converge")
    return _Points(u, height, x, above, slope)


@dataclass(frozen=True, eq=False)
class Prediction:
    """The expected properties of a noisy top-k space.

    Attributes
    ----------
    captured_share : float
        Expected captured variance, as a share of the variance that the best k capture.
    captured_total : float
        Expected captured variance, as a share of the total variance.
    chance : float
        Expected captured share of a random subspace.
    overlaps : ndarray of shape (d,)
        Expected squared overlap of the released space with each true component, in the order given.
        Each overlap is in [0, 1], and all sum to k.
    noise : FreeNoise
    mass : float
        Sum of the overlaps before they are scaled to k: a check of the numerics.
    """

    captured_share: float
    captured_total: float
    chance: float
    overlaps: FloatArray
    noise: FreeNoise
    mass: float
    _curve: _Curve

    @cached_property
    def spectrum(self) -> FloatArray:
        """Expected noisy eigenvalues, shape (d,), descending: quantiles of the law."""
        return _quantiles(self._curve, self.d)

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.overlaps)

    def metric(self, key: str, k: int) -> float | None:
        """Return a predicted metric by its key in `dpviz.core.metrics.METRICS`, or None.

        The projection distance is the root of the expected square, a little above the mean; so is
        the Frobenius norm. Metrics that follow neither from the overlaps nor from the noise's law
        are None.
        """
        law = self.noise.matched
        match key:
            case "recovery":
                return (
                    None
                    if nothing_to_recover(self.chance)
                    else float(recovery_of(self.captured_share, self.chance))
                )
            case "captured_share":
                return self.captured_share
            case "captured_total":
                return self.captured_total
            case "projection_distance":
                outside = max(k - float(self.overlaps[:k].sum()), 0.0)
                return min(math.sqrt(2 * outside), farthest_distance(self.d, k))
            case "noise_spectral":
                return max(abs(edge) for edge in law.edges)
            case "noise_frobenius":
                return math.sqrt(self.d * (law.spread**2 + law.mean**2))
            case "negative_eigenvalues":
                return float((self.spectrum < 0).sum())
        return None


def _curve_of(values: FloatArray, noise: FreeNoise) -> tuple[_Curve, NDArray[np.intp]]:
    """Return the curve of a spectrum and noise, and each eigenvalue's index in it."""
    least = _LEAST_NOISE * float(np.abs(values).max())
    too_low = noise.visible_above < least
    law = (noise.scaled(least / noise.visible_above) if too_low else noise).matched
    distinct, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return _Curve(distinct, counts.astype(float), law), which


def _quantiles(curve: _Curve, d: int) -> FloatArray:
    halves: FloatArray = np.arange(d, dtype=float) + 0.5
    quantiles: FloatArray = _locate(curve, halves, curve.values).x
    return quantiles


def predict(
    eigenvalues: FloatArray, k: int, noise: FreeNoise, worth: FloatArray | None = None
) -> Prediction:
    """Predict the top k components of A plus noise.

    The prediction is exact as d grows; docs/prediction.md lists the error at small d.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of the matrix before noise, descending; repeats and zeros may occur.
    k : int
        Number of components, from 1 to d.
    noise : FreeNoise
    worth : ndarray of shape (d,), optional
        Variance of the reference along each eigenvector, if it differs from the eigenvalue (because
        rows were clipped to the bound). Off-diagonal terms vanish in the mean, since the noise is
        as likely with any signs.

    Raises
    ------
    InvalidSetting
        If k is out of range, or there is no variance to capture.
    ArithmeticError
        If the numerics lost mass; a bug.
    """
    values = np.asarray(eigenvalues, dtype=float)
    d = len(values)
    if not 1 <= k <= d:
        raise InvalidSetting("k", f"a whole number from 1 to {d}", k, "--k")
    worth = values if worth is None else np.asarray(worth, dtype=float)
    if not worth.sum() > 0:
        raise InvalidSetting("spectrum", "a list of numbers whose sum is above 0", "another sum")
    curve, which = _curve_of(values, noise)
    overlaps = np.ones(d)
    if k < d:
        descending = np.sort(values)[::-1]
        edge, after = float(descending[k - 1]), float(descending[k])
        near = np.array([edge, (edge + after) / 2, after])
        point = _locate(curve, np.array([float(k)]), near)
        w = complex(point.u[0], point.height[0])
        overlaps = curve.overlaps_above(w)[which]
    mass = float(overlaps.sum())
    if not abs(mass - k) <= _MASS_LOST * d:
        raise ArithmeticError(f"the predicted overlaps sum to {mass}, but should sum to {k}")
    overlaps = np.clip(overlaps * (k / mass), 0.0, 1.0)
    variance = float(overlaps @ worth)
    best = float(np.sort(worth)[::-1][:k].sum())
    return Prediction(
        captured_share=variance / best,
        captured_total=variance / float(worth.sum()),
        chance=k / d * float(worth.sum()) / best,
        overlaps=overlaps,
        noise=noise,
        mass=mass,
        _curve=curve,
    )


def direction_overlaps(
    eigenvalues: FloatArray, noise: FreeNoise, most: int | None = None
) -> FloatArray:
    """Return expected squared overlaps of released and true directions of the same rank.

    Each value is the overlap of component j with the released top-j space minus its overlap with
    the top-(j - 1) space.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of the matrix before noise, descending.
    noise : FreeNoise
    most : int, optional
        Number of leading directions; by default all of them.

    Returns
    -------
    ndarray of shape (most,)
        Overlaps, each in [0, 1].
    """
    values = np.sort(np.asarray(eigenvalues, dtype=float))[::-1]
    count = len(values) if most is None else min(most, len(values))
    return np.array(_direction_overlaps(tuple(values.tolist()), noise, count))


def components_found(eigenvalues: FloatArray, noise: FreeNoise) -> int:
    """Predict how many components are released turned by less than 45 degrees.

    Such a component and its released direction have a squared overlap of at least one half. For
    parameters see `direction_overlaps`.
    """
    return int((direction_overlaps(eigenvalues, noise) >= FOUND).sum())


@lru_cache(maxsize=1024)
def _direction_overlaps(
    values: tuple[float, ...], noise: FreeNoise, most: int
) -> tuple[float, ...]:
    spectrum = np.array(values)
    d = len(spectrum)
    if not spectrum.any():
        return (1 / d,) * most  # All directions are random, so none can be found.
    curve, which = _curve_of(spectrum, noise)
    near = np.concatenate([spectrum, (spectrum[1:] + spectrum[:-1]) / 2])
    points = _locate(curve, np.arange(1, min(most, d - 1) + 1, dtype=float), near)
    inside = np.zeros((most + 1, d))
    if most == d:
        inside[d] = 1.0
    for k, (u, height) in enumerate(zip(points.u, points.height, strict=True), start=1):
        inside[k] = curve.overlaps_above(complex(u, height))[which]
    each = np.diff(inside, axis=0).diagonal()
    return tuple(np.clip(each, 0.0, 1.0).tolist())
