"""Symmetric noise with density proportional to exp(-||M||_nuc): the matrix K-norm law, exactly.

The noise's eigenvectors are Haar and its eigenvalues l_1 > .. > l_d have density proportional to

    prod over i < j of (l_i - l_j)  times  exp(-sum |l_i|).

The product is the determinant of ``phi_i(l_j)``, phi_i = p_i(x) exp(-|x|), for any d independent
polynomials p_i of degree below d. De Bruijn (1955) integrates such a determinant over ordered
points: over all x_1 > .. > x_d below x it is the Pfaffian of the skew matrix

    A_ik(x) = integral over s < t < x of phi_i(s) phi_k(t) - phi_k(s) phi_i(t),

bordered by the integrals of phi_i below x if d is odd. So the largest eigenvalue has the
distribution function Pf A(x)/Pf A(inf). Given this eigenvalue, the same problem remains for d - 1
points below it and those combinations of the phi_i that vanish there. Each eigenvalue is sampled
from its exact conditional law by inverting a distribution function. No Markov chain has to
converge, no data enter, and one uniform gives one eigenvalue, downwards.

Numerical methods: integrals by Gauss-Legendre on panels (20 nodes for at most one and a half
eigenvalues), polynomials orthonormal in exp(-2|x|) by Stieltjes' procedure, Pfaffians as square
roots of determinants. Rounding errors grow downwards, as the remaining combinations become small
below the last point. `tests/unit/test_sampling_nuclear.py` compares distribution functions with 60
digits (1e-11 up to d = 13), and the last eigenvalue's with quadrature (1e-7 at d = 61).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws
from dpviz.sampling.stiefel import uniform_frames

LARGEST_D = 100
"""Largest number of features: a sample takes of the order of d^4 operations."""

_NODES = 20  # Each panel has this many Gauss-Legendre nodes.
_INSIDE = 18  # Each panel's distribution function is evaluated at this many nodes.
_PER_PANEL = 1.5  # eigenvalues
_STEPS = 60  # So many halvings of an interval reach the spacing of doubles.
_LEAP = 42  # Newton's method predicts this many halvings, rarely wrongly.
_NEWTON, _GRID = 4, 32  # These count Newton's steps, and cells of the starting grid.
_AHEAD, _AHEAD_ALONE = 3, 6  # Evaluate points of several halvings at once; more for few samples.
_FEW = 32  # draws
_NEAR = 2**13  # Evaluate this many points at once, so that polynomials fit the cache.
_BLOCK_BYTES = 2**23  # The arrays of one block take this many bytes.
_EACH = 60  # Computing one sample was measured to need this many d x d matrices.

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Ensemble:
    """The functions phi_i and their integrals below the ends of panels.

    Attributes
    ----------
    ends : ndarray of shape (panels + 1,)
        Ascending. One end is 0, where exp(-|x|) has its kink.
    recurrence : ndarray of shape (d,)
        x p_i = r_i p_(i+1) + r_(i-1) p_(i-1), p_0 = 1 (the weight exp(-2|x|) has mass 1).
    below : ndarray of shape (panels + 1, d)
        Integrals of the phi_i below each end.
    skew : ndarray of shape (panels + 1, d, d)
        Matrix A at each end of a panel.
    """

    ends: FloatArray
    recurrence: FloatArray
    below: FloatArray
    skew: FloatArray

    @property
    def d(self) -> int:
        return len(self.recurrence)

    def functions(self, x: FloatArray) -> FloatArray:
        """Return phi_i(x), shape (*x.shape, d)."""
        return _functions(x, self.recurrence)


def _functions(x: FloatArray, recurrence: FloatArray) -> FloatArray:
    # Put the order of the polynomial on the first axis, so that memory is read contiguously.
    functions = np.empty((len(recurrence), *x.shape))
    functions[0] = np.exp(-np.abs(x))
    for i in range(1, len(functions)):
        np.divide(x * functions[i - 1], recurrence[i - 1], out=functions[i])
        if i > 1:
            functions[i] -= recurrence[i - 2] / recurrence[i - 1] * functions[i - 2]
    return np.ascontiguousarray(np.moveaxis(functions, 0, -1))


def _edge(d: int) -> float:
    """Return the edge of the eigenvalues for large d: Ullman's law of order 1."""
    return math.pi / 2 * d


def _panels(d: int) -> FloatArray:
    """Return the ends of panels, short if eigenvalues are dense, up to negligible phi_i."""
    edge, x = _edge(d), 0.0
    last = 1.5 * edge + 60.0  # Beyond it phi_i is below 1e-18: checked up to LARGEST_D.
    ends = [x]
    while x < last:
        # Estimate the number of eigenvalues per unit, at the middle of a first guess of the panel.
        dense = math.acosh(max(edge / (x + 0.5), 1.0 + 1e-9)) / (math.pi * _edge(1))
        x += min(max(_PER_PANEL / max(dense, 1e-9), 0.5), 2.0)
        ends.append(x)
    right = np.array(ends)
    return np.concatenate([-right[:0:-1], right])


def tables_memory(d: int) -> float:
    """Return the approximate peak bytes of sampling, apart from the returned matrices.

    The tables take five arrays with one d x d matrix for each end while they are built. A block of
    samples is added.
    """
    return 8.0 * d**2 * (5 * len(_panels(d)) + _EACH * _block(d))


@lru_cache(maxsize=2)
def _ensemble(d: int) -> _Ensemble:
    ends = _panels(d)
    points, weights, integrate = _rule(_NODES)
    half = np.diff(ends) / 2
    nodes = ((ends[:-1] + ends[1:]) / 2)[:, None] + half[:, None] * points
    mass = half[:, None] * weights
    recurrence = _recurrence(nodes.ravel(), mass.ravel(), d)
    phi = _functions(nodes, recurrence)
    within = half[:, None, None] * (integrate @ phi)  # Integrate from the left end to each node.
    totals = np.einsum("pq,pqi->pi", mass, phi)
    below = np.zeros((len(ends), d))
    np.cumsum(totals, axis=0, out=below[1:])
    low = below[:-1, None, :] + within
    weighted = (phi * mass[:, :, None]).transpose(0, 2, 1)
    half_skew = np.cumsum(weighted @ low, axis=0)  # Entry [k, i] integrates phi_k times below_i.
    skew = np.zeros((len(ends), d, d))
    skew[1:] = half_skew.transpose(0, 2, 1) - half_skew
    return _Ensemble(ends, recurrence, below, skew)


def _recurrence(nodes: FloatArray, mass: FloatArray, d: int) -> FloatArray:
    """Return the coefficients of polynomials orthonormal in exp(-2|x|), by Stieltjes."""
    weight = mass * np.exp(-2 * np.abs(nodes))
    coefficients = np.empty(d)
    before, current = np.zeros_like(nodes), np.full_like(nodes, 1 / math.sqrt(weight.sum()))
    last = 0.0
    # The polynomials grow as fast as the weight falls, so their product remains small.
    for i in range(d):
        following = nodes * current - last * before
        last = math.sqrt(float((weight * following * following).sum()))
        coefficients[i] = last
        before, current = current, following / last
    return coefficients


@lru_cache(maxsize=4)
def _rule(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes, weights, and the integrals from -1 to each node.

    The third is a matrix. This matrix maps values of a polynomial of degree below ``count`` at the
    nodes to its integrals from -1.
    """
    points, weights = np.polynomial.legendre.leggauss(count)
    values = np.polynomial.legendre.legvander(points, count)
    orders = np.arange(count)
    # Coefficient j is (j + 1/2) sum w P_j f. The integral of P_j is (P_(j+1) - P_(j-1))/(2j+1).
    coefficients = (values[:, :count] * weights[:, None]).T * (orders[:, None] + 0.5)
    integrals = np.empty((count, count))
    integrals[:, 0] = points + 1
    integrals[:, 1:] = (values[:, 2:] - values[:, : count - 1]) / (2 * orders[1:] + 1)
    return points, weights, integrals @ coefficients


def _log_pfaffian(skew: FloatArray, below: FloatArray) -> FloatArray:
    """Return the logarithm of the Pfaffian of skew matrices, bordered if their size is odd.

    Parameters
    ----------
    skew : ndarray of shape (..., m, m)
    below : ndarray of shape (..., m)
    """
    m = skew.shape[-1]
    if m % 2:
        border = np.zeros((*skew.shape[:-2], m + 1, m + 1))
        border[..., :m, :m] = skew
        border[..., :m, m] = below
        border[..., m, :m] = -below
        skew = border
    _, logarithm = np.linalg.slogdet(skew)
    half: FloatArray = logarithm / 2
    return half


def nuclear_eigenvalues(draws: Draws, d: int) -> FloatArray:
    """Return eigenvalues of noise with density proportional to exp(-||M||_nuc), descending.

    Parameters
    ----------
    draws : Draws
    d : int
        Number of features, from 1 to `LARGEST_D`.

    Returns
    -------
    ndarray of shape (size, d)

    Raises
    ------
    InvalidSetting
        If d is out of range.

    Source
    ------
    The integral over ordered points: de Bruijn 1955, "On some multiple integrals involving
    determinants". The sampler is dpviz's.
    """
    if not 1 <= d <= LARGEST_D:
        raise InvalidSetting("d", f"a whole number from 1 to {LARGEST_D}", d)
    # Use the centre of a uniform number's 2^-53 cell, because the centre is never exactly 0.
    uniforms = draws.uniform(d) + 2.0**-54
    # Comparisons use the same named random streams at every epsilon, so cache their results. Cache
    # no unnamed stream. Cache no single sample, because a release takes only one.
    return _in_blocks(uniforms) if draws.shared else _kept(uniforms, keep=draws.size > 1)


_KEPT: OrderedDict[bytes, FloatArray] = OrderedDict()
_MOST_KEPT = 20_000  # The cache holds this many samples: d numbers each, stored twice.


def _kept(uniforms: FloatArray, *, keep: bool) -> FloatArray:
    """Return `eigenvalues_at` from a cache, because it is a function of the uniforms alone."""
    names = [row.tobytes() for row in uniforms]
    # Look each cache entry up only once, because another thread may drop entries meanwhile.
    memory = {name: one for name in names if (one := _KEPT.get(name)) is not None}
    unknown = [place for place, name in enumerate(names) if name not in memory]
    if unknown:
        for place, one in zip(unknown, _in_blocks(uniforms[unknown]), strict=True):
            memory[names[place]] = one.copy()
        if keep:
            _KEPT.update((names[place], memory[names[place]]) for place in unknown)
    while len(_KEPT) > _MOST_KEPT:
        _KEPT.popitem(last=False)
    return np.array([memory[name] for name in names])


def _in_blocks(uniforms: FloatArray) -> FloatArray:
    """Return `eigenvalues_at` in blocks; a sample's bytes do not depend on its block."""
    block = _block(uniforms.shape[1])
    starts = range(0, len(uniforms), block)
    return np.concatenate([eigenvalues_at(uniforms[at : at + block]) for at in starts])


def _block(d: int) -> int:
    return max(1, _BLOCK_BYTES // (8 * _EACH * d * d))


def eigenvalues_at(uniforms: FloatArray) -> FloatArray:
    """Return the eigenvalues for given uniforms, in descending order, one from each uniform.

    Parameters
    ----------
    uniforms : ndarray of shape (size, d)
        Within (0, 1).

    Returns
    -------
    ndarray of shape (size, d)
        Descending. Each uniform is the conditional distribution function of its eigenvalue, given
        those above it.
    """
    size, d = uniforms.shape
    ensemble = _ensemble(d)
    eigenvalues = np.empty((size, d))
    # These are combinations of the functions phi_i that vanish at the eigenvalues sampled so far.
    combinations: FloatArray = np.broadcast_to(np.eye(d), (size, d, d))
    panel = np.full(size, len(ensemble.ends) - 2)
    right = np.full(size, ensemble.ends[-1])
    for place in range(d):
        stage = _Stage(ensemble, combinations, alike=place == 0)
        level = stage.log_below(panel, right) + np.log(uniforms[:, place])
        panel = stage.panel_of(panel, level)
        right = np.minimum(right, ensemble.ends[panel + 1])
        right = stage.inverted(panel, right, level)
        eigenvalues[:, place] = right
        combinations = _without(combinations, ensemble.functions(right))
    return eigenvalues


@dataclass(frozen=True, eq=False)
class _Stage:
    """The unnormalised distribution function of each sample's next eigenvalue.

    Attributes
    ----------
    ensemble : _Ensemble
    left : ndarray of shape (size, d, m)
        Orthonormal coordinates of the functions that vanish at the eigenvalues sampled so far.
    alike : bool
        Whether all samples have the same coordinates: then each panel is read once for all.
    """

    ensemble: _Ensemble
    left: FloatArray
    alike: bool = False

    def _few(self, count: int) -> _Stage:
        """Return the state for the first ``count`` samples."""
        return _Stage(self.ensemble, self.left[:count])

    def log_at_end(self, rows: IntArray, end: IntArray) -> FloatArray:
        """Return ln Pf A at the ends of panels, for some of the samples."""
        if self.alike:
            ends, each = np.unique(end, return_inverse=True)
            few = np.arange(len(ends))
            return self._few(len(ends)).log_at_end(few, ends)[each]
        combinations = self.left[rows]
        skew = combinations.transpose(0, 2, 1) @ self.ensemble.skew[end] @ combinations
        below = (self.ensemble.below[end][:, None, :] @ combinations)[:, 0]
        return _log_pfaffian(skew, below)

    def log_below(self, panel: IntArray, x: FloatArray) -> FloatArray:
        """Return ln Pf A at x, which lies in the panel."""
        return self._inside(panel, x, slice(-1, None))[:, 0]

    def _inside(self, panel: IntArray, right: FloatArray, which: slice) -> FloatArray:
        """Return ln Pf A at the nodes between the panel's left end and x, and finally at x.

        If all samples have the same coordinates, samples in one panel have the same x.
        """
        if self.alike:
            panels, first, each = np.unique(panel, return_index=True, return_inverse=True)
            return self._few(len(panels))._inside(panels, right[first], which)[each]
        ensemble, combinations = self.ensemble, self.left
        points, weights, integrate = _rule(_INSIDE)
        start = ensemble.ends[panel]
        half = ((right - start) / 2)[:, None, None]
        phi = ensemble.functions(start[:, None] + half[:, :, 0] * (1 + points)) @ combinations
        # Integrate from the left end of the panel to each node, and last to x itself.
        rules = half * np.concatenate([integrate, weights[None]])
        below = ensemble.below[panel][:, None, :] @ combinations + rules @ phi
        ruled = rules[:, which, :, None] * phi[:, None]
        product = ruled.transpose(0, 1, 3, 2) @ below[:, None, :-1]
        skew = combinations.transpose(0, 2, 1) @ ensemble.skew[panel] @ combinations
        skew = skew[:, None] + product.transpose(0, 1, 3, 2) - product
        return _log_pfaffian(skew, below[:, which])

    def panel_of(self, panel: IntArray, level: FloatArray) -> IntArray:
        """Return the panel in which ln Pf A passes the level, at or left of the given panel."""
        high = panel.copy()  # The function exceeds the level left of this panel's right end.
        low = panel.copy()
        step = np.zeros_like(panel)
        going = np.arange(len(panel))
        while len(going):  # Search to the left in growing steps.
            end = low[going]
            above = (end > 0) & (self.log_at_end(going, end) > level[going])
            moving = going[above]
            high[moving] = low[moving] - 1
            low[moving] = np.maximum(low[moving] - 2 ** step[moving], 0)
            step[moving] += 1
            going = moving
        while True:  # Halve the interval from low to high that contains the panel.
            going = np.flatnonzero(low < high)
            if len(going) == 0:
                return low
            middle = (low[going] + high[going] + 1) // 2
            above = self.log_at_end(going, middle) > level[going]
            high[going] = np.where(above, middle - 1, high[going])
            low[going] = np.where(above, low[going], middle)

    def inverted(self, panel: IntArray, right: FloatArray, level: FloatArray) -> FloatArray:
        """Return x in the panel, at most ``right``, at which ln Pf A is the level."""
        logs = self._inside(panel, right, slice(None))
        last = logs[:, -1]
        share = np.exp(np.minimum(level - last, 0.0))
        values = np.exp(logs[:, :-1] - last[:, None])
        weights = _rule(_INSIDE)[1]
        orders = np.arange(_INSIDE) + 0.5
        # Compute each sample alone, so that a batch gives the same bytes as single samples.
        series = ((values * weights)[:, None, :] @ _modes())[:, 0] * orders
        within = _halved(series, share)
        start = self.ensemble.ends[panel]
        root: FloatArray = start + (right - start) * (1 + within) / 2
        return root


@lru_cache(maxsize=1)
def _modes() -> FloatArray:
    """Return the Legendre polynomials at the nodes of a panel."""
    return _legendre(_rule(_INSIDE)[0])


def _legendre(points: FloatArray) -> FloatArray:
    return np.asarray(np.polynomial.legendre.legvander(points, _INSIDE - 1), dtype=np.float64)


def _halved(series: FloatArray, share: FloatArray) -> FloatArray:
    """Return the point in [-1, 1] at which each Legendre series passes a share, by bisection.

    Newton's method predicts the first halvings, which are all read at once. A sample with a wrong
    prediction starts from the beginning. Later, all points that the next few halvings can need are
    read at once. The path is the path of single halvings, to the last bit.
    """
    low, right = _leapt(series, share)
    places = _halved_on(series, share, low, low + 2.0 ** (1 - _LEAP), _STEPS - _LEAP)
    if not right.all():
        again = ~right
        ends = np.full(len(share[again]), -1.0)
        places[again] = _halved_on(series[again], share[again], ends, -ends, _STEPS)
    return places


def _leapt(series: FloatArray, share: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the lower ends after `_LEAP` halvings, and whether all predictions were right.

    A point met after j halvings is an odd multiple of 2^-j, minus 1: exact in doubles.
    """
    guess = (_newton(series, share) + 1) / 2
    # For j = 0 .. _LEAP, find which of 2^j equal intervals contains the guess.
    cells = np.floor(np.clip(guess, 0.0, 1.0 - 2.0**-53)[:, None] * 2.0 ** np.arange(_LEAP + 1))
    middles = (cells[:, :-1] + 0.5) * 2.0 ** (1.0 - np.arange(_LEAP)) - 1
    upper = cells[:, 1:] != 2 * cells[:, :-1]
    right = (_under(series, share, middles) == upper).all(axis=1)
    return cells[:, -1] * 2.0 ** (1 - _LEAP) - 1, right


def _newton(series: FloatArray, share: FloatArray) -> FloatArray:
    """Return approximately where Legendre series pass a share, from their cosine series."""
    grid, at_grid, to_cosines = _cosines()
    place = np.clip((series @ at_grid < share[:, None]).sum(axis=1), 1, len(grid) - 1)
    x: FloatArray = (grid[place - 1] + grid[place]) / 2
    cosines, orders = series @ to_cosines, np.arange(series.shape[1])
    for _ in range(_NEWTON):
        angle = np.arccos(x)
        turns = angle[:, None] * orders
        value = (cosines * np.cos(turns)).sum(axis=1) - share
        slope = (cosines * orders * np.sin(turns)).sum(axis=1)
        step = value * np.sin(angle) / np.where(slope > 0, slope, np.inf)
        x = np.clip(x - step, grid[place - 1], grid[place])
    return x


@lru_cache(maxsize=1)
def _cosines() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a grid, its Legendre polynomials, and the map from Legendre to cosine series."""
    grid: FloatArray = np.linspace(-1.0, 1.0, _GRID + 1)
    # Compute cosines at the nodes of a quadrature rule that is exact for products of two.
    angles = (np.arange(_INSIDE) + 0.5) * math.pi / _INSIDE
    to_cosines: FloatArray = (
        _legendre(np.cos(angles)).T @ np.cos(angles[:, None] * np.arange(_INSIDE)) * (2 / _INSIDE)
    )
    to_cosines[:, 0] /= 2
    return grid, _legendre(grid).T, to_cosines


def _under(series: FloatArray, share: FloatArray, points: FloatArray) -> NDArray[np.bool_]:
    """Return whether Legendre series are below a share at points, shape (size, points)."""
    most = max(1, _NEAR // points.shape[1])
    if len(points) > most:
        starts = range(0, len(points), most)
        parts = (slice(start, start + most) for start in starts)
        return np.concatenate([_under(series[at], share[at], points[at]) for at in parts])
    # Compute NumPy's legvander in place, because its temporary arrays took most of the time.
    modes = np.ones((series.shape[1], *points.shape))
    above, below = np.empty_like(modes[0]), np.empty_like(modes[0])
    modes[1] = points
    for i in range(2, len(modes)):
        np.multiply(modes[i - 1], modes[1], out=above)
        np.multiply(above, 2 * i - 1, out=above)
        np.multiply(modes[i - 2], i - 1, out=below)
        np.divide(np.subtract(above, below, out=above), i, out=modes[i])
    modes *= series.T[:, :, None]
    # Add in NumPy's order within a row, but all rows at once: same bytes in half the time.
    terms = np.add(modes[:8], modes[8:16], out=modes[:8])
    while len(terms) > 1:
        terms = terms[::2] + terms[1::2]
    for rest in modes[16:]:
        terms += rest
    under: NDArray[np.bool_] = terms[0] < share[:, None]
    return under


def _halved_on(
    series: FloatArray, share: FloatArray, low: FloatArray, high: FloatArray, steps: int
) -> FloatArray:
    """Return the middles of brackets after ``steps`` more halvings."""
    ahead = _AHEAD_ALONE if len(share) <= _FEW else _AHEAD
    each, ends = np.arange(len(share)), 2**ahead
    points = np.empty((len(share), ends + 1))
    for _ in range(steps // ahead):
        points[:, 0], points[:, ends] = low, high
        step = ends
        while step > 1:
            points[:, step // 2 :: step] = (points[:, :-1:step] + points[:, step::step]) / 2
            step //= 2
        under = _under(series, share, points[:, 1:ends])
        first, last = np.zeros_like(each), np.full_like(each, ends)
        for _ in range(ahead):
            middle = (first + last) // 2
            below = under[each, middle - 1]
            first, last = np.where(below, middle, first), np.where(below, last, middle)
        low, high = points[each, first], points[each, last]
    halved: FloatArray = (low + high) / 2
    return halved


@lru_cache(maxsize=32)
def square_means(d: int) -> tuple[float, float]:
    """Return the means of ||M||_F^2 and (tr M)^2, exactly.

    Multiply each exp(-|x|) by exp(g(x)). The normaliser is then the Pfaffian of A with this factor
    in both functions. So the mean of sum g(l_i) is the first derivative of its logarithm at g = 0.
    The variance of sum l_i is the second derivative in t for g = t x; sum l_i has mean 0.

    Parameters
    ----------
    d : int
        Number of features, from 1 to `LARGEST_D`.
    """
    ensemble = _ensemble(d)
    ends = ensemble.ends
    points, weights, integrate = _rule(_NODES)
    half = np.diff(ends) / 2
    nodes = ((ends[:-1] + ends[1:]) / 2)[:, None] + half[:, None] * points
    mass = half[:, None] * weights
    phi = ensemble.functions(nodes)

    def skew(left: int, right: int) -> FloatArray:
        """Return the antisymmetric integral of s^left phi_i(s) t^right phi_k(t) over s < t."""
        low, high = (nodes[:, :, None] ** power * phi for power in (left, right))
        totals = np.einsum("pq,pqi->pi", mass, low)
        start = np.concatenate([np.zeros((1, d)), np.cumsum(totals, axis=0)[:-1]])
        below = start[:, None, :] + half[:, None, None] * (integrate @ low)
        half_skew = np.einsum("pqi,pqk->ik", below, mass[:, :, None] * high, optimize=True)
        skew_matrix: FloatArray = half_skew - half_skew.T
        return skew_matrix

    def bordered(matrix: FloatArray, power: int) -> FloatArray:
        if d % 2 == 0:
            return matrix
        column = np.einsum("pq,pqi->i", mass * nodes**power, phi)[:, None]
        return np.block([[matrix, column], [-column.T, np.zeros((1, 1))]])

    inverse = np.linalg.inv(bordered(skew(0, 0), 0))
    first = inverse @ bordered(skew(1, 0) + skew(0, 1), 1)
    second = inverse @ bordered(skew(2, 0) + skew(0, 2), 2)
    cross = 2 * skew(1, 1)
    crossed = np.zeros_like(inverse)
    crossed[:d, :d] = cross
    square = float(np.trace(second)) / 2
    trace = square + float(np.trace(inverse @ crossed)) / 2 - float(np.trace(first @ first)) / 2
    return square, trace


def direction_std(d: int) -> float:
    """Return the standard deviation of w'Mw, the same for every unit w.

    For any rotation-invariant M the result is the root of (2 E||M||_F^2 + E(tr M)^2)/(d (d + 2)).
    """
    square, trace = square_means(d)
    return math.sqrt((2 * square + trace) / (d * (d + 2)))


def _without(left: FloatArray, values: FloatArray) -> FloatArray:
    """Return the combinations that vanish at one more point, by a Householder reflection.

    Parameters
    ----------
    left : ndarray of shape (size, d, m)
    values : ndarray of shape (size, d)
        Values of the phi_i at the point.
    """
    images = (values[:, None, :] @ left)[:, 0]
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    axis = images.copy()
    axis[:, 0] += np.where(images[:, 0] >= 0, 1.0, -1.0)
    scale = 2 / np.square(axis).sum(axis=1)
    rotation = left - scale[:, None, None] * (left @ axis[:, :, None]) * axis[:, None, :]
    rest: FloatArray = rotation[:, :, 1:]
    return rest


def nuclear_noise(draws: Draws, d: int) -> FloatArray:
    """Return symmetric noise with density proportional to exp(-||M||_nuc).

    Parameters
    ----------
    draws : Draws
    d : int
        Number of features, from 1 to `LARGEST_D`.

    Returns
    -------
    ndarray of shape (size, d, d)
        The nuclear norm of each matrix follows a Gamma law of shape d (d + 1)/2 and scale 1.
    """
    values = nuclear_eigenvalues(draws, d)
    frames = uniform_frames(draws, d, d)
    noise: FloatArray = (frames * values[:, None, :]) @ frames.transpose(0, 2, 1)
    return (noise + noise.transpose(0, 2, 1)) / 2
