"""Symmetric noise with density proportional to exp(-||M||_nuc): the matrix K-norm law, exactly.

Its eigenvectors are Haar and its eigenvalues l_1 > .. > l_d have density proportional to

    prod over i < j of (l_i - l_j)  times  exp(-sum |l_i|).

The product is the determinant of ``phi_i(l_j)``, phi_i = p_i(x) exp(-|x|), for any d independent
polynomials p_i of degree below d. De Bruijn (1955) integrates such a determinant over ordered
points: over all x_1 > .. > x_d below x it is the Pfaffian of the skew matrix

    A_ik(x) = integral over s < t < x of phi_i(s) phi_k(t) - phi_k(s) phi_i(t),

bordered by the integrals of phi_i below x where d is odd. So the largest eigenvalue has the
distribution function Pf A(x)/Pf A(inf). Given it, what is left is the same problem for d - 1 points
below it and those combinations of the phi_i that vanish there: each eigenvalue is drawn from its
exact conditional law by inverting a distribution function. No Markov chain has to converge, no data
enter, and one uniform makes one eigenvalue, downwards.

Numerical are: integrals by Gauss-Legendre on panels (20 nodes for at most one and a half
eigenvalues), polynomials orthonormal in exp(-2|x|) by Stieltjes' procedure, Pfaffians as square
roots of determinants. Rounding grows downwards, as the combinations left become small below the
last point: `tests/unit/test_sampling_nuclear.py` holds distribution functions against 60 digits
(1e-11 up to d = 13) and that of the last eigenvalue against quadrature (1e-7 at d = 61).
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
"""Features up to which draws are offered: a draw takes of the order of d^4 operations."""

_NODES = 20  # of each panel
_INSIDE = 18  # where a distribution function is read within a panel
_PER_PANEL = 1.5  # eigenvalues
_STEPS = 60  # halvings of a bracket: below the spacing of doubles
_LEAP = 42  # of them that Newton's method predicts: rounding seldom reaches so far
_NEWTON, _GRID = 4, 32  # its steps, and cells among which it starts
_AHEAD, _AHEAD_ALONE = 3, 6  # later ones whose points are read together, and for few draws
_FEW = 32  # draws
_NEAR = 2**13  # points read at once: with their polynomials what stays near the processor
_BLOCK_BYTES = 2**23  # of what draws made together take
_EACH = 60  # d x d matrices that a draw takes while its eigenvalues are found, measured

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Ensemble:
    """The functions phi_i and their integrals below the ends of panels.

    Attributes
    ----------
    ends : ndarray of shape (panels + 1,)
        Ascending; one of them is 0, where exp(-|x|) has its kink.
    recurrence : ndarray of shape (d,)
        x p_i = r_i p_(i+1) + r_(i-1) p_(i-1), p_0 = 1 (the weight exp(-2|x|) has mass 1).
    below : ndarray of shape (panels + 1, d)
        Integrals of the phi_i below each end.
    skew : ndarray of shape (panels + 1, d, d)
        A at each end.
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
    # by order first: neighbours in memory are then read together
    functions = np.empty((len(recurrence), *x.shape))
    functions[0] = np.exp(-np.abs(x))
    for i in range(1, len(functions)):
        np.divide(x * functions[i - 1], recurrence[i - 1], out=functions[i])
        if i > 1:
            functions[i] -= recurrence[i - 2] / recurrence[i - 1] * functions[i - 2]
    return np.ascontiguousarray(np.moveaxis(functions, 0, -1))


def _edge(d: int) -> float:
    """Return where the eigenvalues end for large d: Ullman's law of order 1."""
    return math.pi / 2 * d


def _panels(d: int) -> FloatArray:
    """Return the ends of panels: short where eigenvalues are dense, to where nothing is left."""
    edge, x = _edge(d), 0.0
    last = 1.5 * edge + 60.0  # every phi_i is below 1e-18 there, checked for d up to LARGEST_D
    ends = [x]
    while x < last:
        # eigenvalues a unit, at the middle of a first guess of the panel
        dense = math.acosh(max(edge / (x + 0.5), 1.0 + 1e-9)) / (math.pi * _edge(1))
        x += min(max(_PER_PANEL / max(dense, 1e-9), 0.5), 2.0)
        ends.append(x)
    right = np.array(ends)
    return np.concatenate([-right[:0:-1], right])


def tables_memory(d: int) -> float:
    """Return about the most bytes that draws take beside the matrices they return.

    Their tables while they are made, five arrays of one d x d matrix for each end, and what a block
    of draws takes.
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
    within = half[:, None, None] * (integrate @ phi)  # from the panel's left end to each node
    totals = np.einsum("pq,pqi->pi", mass, phi)
    below = np.zeros((len(ends), d))
    np.cumsum(totals, axis=0, out=below[1:])
    low = below[:-1, None, :] + within
    weighted = (phi * mass[:, :, None]).transpose(0, 2, 1)
    half_skew = np.cumsum(weighted @ low, axis=0)  # [k, i]: integral of phi_k times below_i
    skew = np.zeros((len(ends), d, d))
    skew[1:] = half_skew.transpose(0, 2, 1) - half_skew
    return _Ensemble(ends, recurrence, below, skew)


def _recurrence(nodes: FloatArray, mass: FloatArray, d: int) -> FloatArray:
    """Return the coefficients of polynomials orthonormal in exp(-2|x|), by Stieltjes."""
    weight = mass * np.exp(-2 * np.abs(nodes))
    coefficients = np.empty(d)
    before, current = np.zeros_like(nodes), np.full_like(nodes, 1 / math.sqrt(weight.sum()))
    last = 0.0
    # The polynomials grow as fast as the weight falls; their product stays small.
    for i in range(d):
        raised = nodes * current - last * before
        last = math.sqrt(float((weight * raised * raised).sum()))
        coefficients[i] = last
        before, current = current, raised / last
    return coefficients


@lru_cache(maxsize=4)
def _rule(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes, weights, and the integrals from -1 to each node.

    The third is a matrix: values of a polynomial of degree below ``count`` at the nodes go to its
    integrals from -1.
    """
    points, weights = np.polynomial.legendre.leggauss(count)
    values = np.polynomial.legendre.legvander(points, count)
    orders = np.arange(count)
    # the coefficient of order j is (j + 1/2) sum w P_j f; its integral (P_(j+1) - P_(j-1))/(2j+1)
    coefficients = (values[:, :count] * weights[:, None]).T * (orders[:, None] + 0.5)
    integrals = np.empty((count, count))
    integrals[:, 0] = points + 1
    integrals[:, 1:] = (values[:, 2:] - values[:, : count - 1]) / (2 * orders[1:] + 1)
    return points, weights, integrals @ coefficients


def _log_pfaffian(skew: FloatArray, below: FloatArray) -> FloatArray:
    """Return the logarithm of the Pfaffian of skew matrices, bordered where their size is odd.

    Parameters
    ----------
    skew : ndarray of shape (..., m, m)
    below : ndarray of shape (..., m)
    """
    m = skew.shape[-1]
    if m % 2:
        bordered = np.zeros((*skew.shape[:-2], m + 1, m + 1))
        bordered[..., :m, :m] = skew
        bordered[..., :m, m] = below
        bordered[..., m, :m] = -below
        skew = bordered
    _, logarithm = np.linalg.slogdet(skew)
    half: FloatArray = logarithm / 2
    return half


def nuclear_eigenvalues(draws: Draws, d: int) -> FloatArray:
    """Return eigenvalues of noise with density proportional to exp(-||M||_nuc), descending.

    Parameters
    ----------
    draws : Draws
    d : int
        From 1 to `LARGEST_D`.

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
    determinants". The sampler is ours.
    """
    if not 1 <= d <= LARGEST_D:
        raise InvalidSetting("d", f"a whole number from 1 to {LARGEST_D}", d)
    # Centre of the 2^-53 cell that NumPy's uniform names: never exactly 0.
    uniforms = draws.uniform(d) + 2.0**-54
    # Exploring asks for the same named streams at every epsilon. What has no name is not kept, and
    # nothing of a release, which draws alone.
    alone = draws.shared or draws.size == 1
    return _in_blocks(uniforms) if alone else _kept(uniforms)


_KEPT: OrderedDict[bytes, FloatArray] = OrderedDict()
_MOST_KEPT = 20_000  # draws; d numbers each, twice


def _kept(uniforms: FloatArray) -> FloatArray:
    """Return `eigenvalues_at`, which is a function of the uniforms alone, from memory if known."""
    names = [row.tobytes() for row in uniforms]
    # looked up once: another thread may drop what is there
    memory = {name: one for name in names if (one := _KEPT.get(name)) is not None}
    unknown = [place for place, name in enumerate(names) if name not in memory]
    if unknown:
        for place, one in zip(unknown, _in_blocks(uniforms[unknown]), strict=True):
            memory[names[place]] = _KEPT[names[place]] = one.copy()
    while len(_KEPT) > _MOST_KEPT:
        _KEPT.popitem(last=False)
    return np.array([memory[name] for name in names])


def _in_blocks(uniforms: FloatArray) -> FloatArray:
    """Return `eigenvalues_at`, a few draws at a time: the bytes of a draw do not depend on it."""
    block = _block(uniforms.shape[1])
    starts = range(0, len(uniforms), block)
    return np.concatenate([eigenvalues_at(uniforms[at : at + block]) for at in starts])


def _block(d: int) -> int:
    return max(1, _BLOCK_BYTES // (8 * _EACH * d * d))


def eigenvalues_at(uniforms: FloatArray) -> FloatArray:
    """Return the eigenvalues that uniforms name: the largest by the first, and so on down.

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
    # combinations that vanish at what is drawn already
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
    """The next eigenvalue of each draw: its unnormalised distribution function.

    Attributes
    ----------
    ensemble : _Ensemble
    left : ndarray of shape (size, d, m)
        Orthonormal coordinates of the functions that vanish at the eigenvalues drawn so far.
    alike : bool
        Whether these are the same for every draw: then each panel is read once for all of them.
    """

    ensemble: _Ensemble
    left: FloatArray
    alike: bool = False

    def _few(self, count: int) -> _Stage:
        """Return the stage of so many of its draws."""
        return _Stage(self.ensemble, self.left[:count])

    def log_at_end(self, rows: IntArray, end: IntArray) -> FloatArray:
        """Return ln Pf A at the ends of panels, for some of the draws."""
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
        """Return ln Pf A at the nodes between the panel's left end and x, and last at x itself.

        Of draws that are alike, those in one panel have the same x.
        """
        if self.alike:
            panels, first, each = np.unique(panel, return_index=True, return_inverse=True)
            return self._few(len(panels))._inside(panels, right[first], which)[each]
        ensemble, combinations = self.ensemble, self.left
        points, weights, integrate = _rule(_INSIDE)
        start = ensemble.ends[panel]
        half = ((right - start) / 2)[:, None, None]
        phi = ensemble.functions(start[:, None] + half[:, :, 0] * (1 + points)) @ combinations
        # integrals along the panel: to each node, then to x itself
        rules = half * np.concatenate([integrate, weights[None]])
        below = ensemble.below[panel][:, None, :] @ combinations + rules @ phi
        ruled = rules[:, which, :, None] * phi[:, None]
        product = ruled.transpose(0, 1, 3, 2) @ below[:, None, :-1]
        skew = combinations.transpose(0, 2, 1) @ ensemble.skew[panel] @ combinations
        skew = skew[:, None] + product.transpose(0, 1, 3, 2) - product
        return _log_pfaffian(skew, below[:, which])

    def panel_of(self, panel: IntArray, level: FloatArray) -> IntArray:
        """Return the panel where ln Pf A passes the level, at or left of the given one."""
        high = panel.copy()  # the level is passed below its right end
        low = panel.copy()
        step = np.zeros_like(panel)
        going = np.arange(len(panel))
        while len(going):  # gallop to the left
            end = low[going]
            above = (end > 0) & (self.log_at_end(going, end) > level[going])
            moving = going[above]
            high[moving] = low[moving] - 1
            low[moving] = np.maximum(low[moving] - 2 ** step[moving], 0)
            step[moving] += 1
            going = moving
        while True:  # halve: the panel lies within low .. high
            going = np.flatnonzero(low < high)
            if len(going) == 0:
                return low
            middle = (low[going] + high[going] + 1) // 2
            above = self.log_at_end(going, middle) > level[going]
            high[going] = np.where(above, middle - 1, high[going])
            low[going] = np.where(above, low[going], middle)

    def inverted(self, panel: IntArray, right: FloatArray, level: FloatArray) -> FloatArray:
        """Return x in the panel, at most ``right``, where ln Pf A is the level."""
        logs = self._inside(panel, right, slice(None))
        last = logs[:, -1]
        share = np.exp(np.minimum(level - last, 0.0))
        values = np.exp(logs[:, :-1] - last[:, None])
        weights = _rule(_INSIDE)[1]
        orders = np.arange(_INSIDE) + 0.5
        # draw by draw, so that a batch has the bytes of a loop
        series = ((values * weights)[:, None, :] @ _modes())[:, 0] * orders
        within = _halved(series, share)
        start = self.ensemble.ends[panel]
        root: FloatArray = start + (right - start) * (1 + within) / 2
        return root


@lru_cache(maxsize=1)
def _modes() -> FloatArray:
    """Return the Legendre polynomials of a series at its nodes."""
    return _legendre(_rule(_INSIDE)[0])


def _legendre(points: FloatArray) -> FloatArray:
    return np.asarray(np.polynomial.legendre.legvander(points, _INSIDE - 1), dtype=np.float64)


def _halved(series: FloatArray, share: FloatArray) -> FloatArray:
    """Return where a Legendre series passes a share, between -1 and 1, by halving, draw by draw.

    The first halvings are predicted by Newton's method and all read at once; a draw with one that
    was predicted wrong begins again. Later, every point that the next few can ask for is read at
    once. The path is the path of single halvings, to the last bit.
    """
    low, right = _leapt(series, share)
    places = _halved_on(series, share, low, low + 2.0 ** (1 - _LEAP), _STEPS - _LEAP)
    if not right.all():
        again = ~right
        ends = np.full(len(share[again]), -1.0)
        places[again] = _halved_on(series[again], share[again], ends, -ends, _STEPS)
    return places


def _leapt(series: FloatArray, share: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the lower ends of what `_LEAP` halvings leave, and whether they were predicted right.

    A point met after j halvings is an odd multiple of 2^-j, less 1: exact in doubles.
    """
    guess = (_newton(series, share) + 1) / 2
    # of the interval among 2^j equal ones, j = 0 .. _LEAP
    cells = np.floor(np.clip(guess, 0.0, 1.0 - 2.0**-53)[:, None] * 2.0 ** np.arange(_LEAP + 1))
    middles = (cells[:, :-1] + 0.5) * 2.0 ** (1.0 - np.arange(_LEAP)) - 1
    upper = cells[:, 1:] != 2 * cells[:, :-1]
    right = (_under(series, share, middles) == upper).all(axis=1)
    return cells[:, -1] * 2.0 ** (1 - _LEAP) - 1, right


def _newton(series: FloatArray, share: FloatArray) -> FloatArray:
    """Return about where Legendre series pass a share, from the cosine's form of them."""
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
    """Return a grid, the Legendre polynomials on it, and what makes cosine series of theirs."""
    grid: FloatArray = np.linspace(-1.0, 1.0, _GRID + 1)
    # cosines of order 0 .. at the nodes of a rule that is exact for their products
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
    # NumPy's legvander, in place: with its temporaries this was most of a draw's time
    modes = np.ones((series.shape[1], *points.shape))
    raised, lowered = np.empty_like(modes[0]), np.empty_like(modes[0])
    modes[1] = points
    for i in range(2, len(modes)):
        np.multiply(modes[i - 1], modes[1], out=raised)
        np.multiply(raised, 2 * i - 1, out=raised)
        np.multiply(modes[i - 2], i - 1, out=lowered)
        np.divide(np.subtract(raised, lowered, out=raised), i, out=modes[i])
    modes *= series.T[:, :, None]
    # in the order in which NumPy sums a row, all rows at once: the same bytes in half the time
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
    """Return the middles of what so many more halvings leave of brackets."""
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

    With exp(g(x)) beside each exp(-|x|) the normaliser is the Pfaffian of A with that factor in
    both functions, so the mean of sum g(l_i) is the first derivative of its logarithm at g = 0, and
    the variance of sum l_i the second one in t for g = t x; sum l_i has mean 0.

    Parameters
    ----------
    d : int
        From 1 to `LARGEST_D`.
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

    Of any rotation-invariant M it is the root of (2 E||M||_F^2 + E(tr M)^2)/(d (d + 2)).
    """
    square, trace = square_means(d)
    return math.sqrt((2 * square + trace) / (d * (d + 2)))


def _without(left: FloatArray, values: FloatArray) -> FloatArray:
    """Return the combinations that vanish at one more point, by a Householder reflection.

    Parameters
    ----------
    left : ndarray of shape (size, d, m)
    values : ndarray of shape (size, d)
        phi_i at the point.
    """
    reflected = (values[:, None, :] @ left)[:, 0]
    reflected /= np.linalg.norm(reflected, axis=1, keepdims=True)
    axis = reflected.copy()
    axis[:, 0] += np.where(reflected[:, 0] >= 0, 1.0, -1.0)
    scale = 2 / np.square(axis).sum(axis=1)
    turned = left - scale[:, None, None] * (left @ axis[:, :, None]) * axis[:, None, :]
    rest: FloatArray = turned[:, :, 1:]
    return rest


def nuclear_noise(draws: Draws, d: int) -> FloatArray:
    """Return symmetric noise with density proportional to exp(-||M||_nuc).

    Parameters
    ----------
    draws : Draws
    d : int
        From 1 to `LARGEST_D`.

    Returns
    -------
    ndarray of shape (size, d, d)
        Its nuclear norm follows a Gamma law of shape d (d + 1)/2 and scale 1.
    """
    values = nuclear_eigenvalues(draws, d)
    frames = uniform_frames(draws, d, d)
    noise: FloatArray = (frames * values[:, None, :]) @ frames.transpose(0, 2, 1)
    return (noise + noise.transpose(0, 2, 1)) / 2
