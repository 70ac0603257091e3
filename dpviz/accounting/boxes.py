"""Exact sensitivity of a weighted second moment to replacing one row in a box.

Rows lie in ``|x_j| <= c_j``; dividing them by c turns this box into the cube [-1, 1]^d. A is
measured in units that differ by feature: P = diag(p) with ``p_j = c_j^2/s_j``, s the shape of the
noise. For a pair of rows v, w let D = vv' - ww'. We want the largest Frobenius and nuclear norms of
``P^1/2 D P^1/2``. Write M = sum p_j and, for u in the cube, N = sum p_j u_j and Q = sum p_j u_j^2.

**To one vector.** With x = (v + w)/2 and y = (v - w)/2, D_ij = 2 (x_i y_j + x_j y_i) and
|x_j| + |y_j| = max(|v_j|, |w_j|) <= 1. The squared Frobenius norm sum p_i p_j D_ij^2 and the
squared nuclear norm ((v'Pv) + (w'Pw))^2 - 4 (v'Pw)^2 = 16 (x'Px) (y'Py) only grow if signs are
dropped and the sums made equal to 1. So x = (1 - u)/2, y = (1 + u)/2, which is the pair v = 1,
w = -u, and D_ij = 1 - u_i u_j:

    Frobenius^2 = M^2 + max (Q^2 - 2 N^2),     nuclear^2 = max ((M + Q)^2 - 4 N^2).

**To one number.** The two norms grow with Q. For a given N, Q is convex on the polytope of the
cube, so a maximum has at most one coordinate strictly inside. Call it u_i = -t with 0 <= t <= 1,
against a signed sum s >= 0 of the other weights: Q = M - p_i (1 - t^2), N = s - p_i t. The
derivatives in t are

    4 p_i ((M - 2 p_i) t + p_i t^3 + s)     and     4 p_i ((2 M - 3 p_i) t + p_i t^3 + 2 s),

which are not negative unless p_i > M/2 (Frobenius) or p_i > 2M/3 (nuclear). So without such a
dominant weight a corner is best, with Q = M. The maximum then depends on how evenly the weights
split in two halves (`least_imbalance`): Frobenius^2 = 2 (M^2 - N^2), nuclear^2 = 4 (M^2 - N^2).

With a dominant weight p_1, let r = M - p_1. For fixed s the best t is 1 or the first root of the
cubic in brackets. At 1, s <= r < p_1 t; at a root p_1 t - s is t (M - p_1 + p_1 t^2), or half of t
(2 M - p_1 + p_1 t^2). So |N| falls as s grows, and by the envelope theorem the maximum rises: s =
r, all other weights against p_1, and t is 1 or a root of a cubic.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray

_Norm = Callable[[FloatArray, FloatArray], float]

_ROUNDING = float(np.finfo(np.float64).eps)
_GRID = 1e-13
"""Grid spacing for weights, as a share of their sum; the certified bound includes it."""
_MOST_SUMS = 1 << 15
"""Maximum number of signed sums stored for either half of the weights."""
_ATTAINED = 1e-9
"""A pair within this relative distance of the bound counts as reaching it."""


@dataclass(frozen=True, eq=False)
class BoxReach:
    """The largest norm over pairs of rows in the cube.

    Attributes
    ----------
    value : float
        An upper bound on the norm for every pair.
    row : ndarray of shape (d,)
        A row whose pair with the row of all ones reaches at least ``reached``.
    reached : float
        The norm of the pair of ``row`` and all ones.
    """

    value: float
    row: FloatArray
    reached: float

    @property
    def attained(self) -> bool:
        """Whether the pair reaches the bound, up to a relative 1e-9."""
        return self.reached >= self.value * (1 - _ATTAINED)


@dataclass(frozen=True, eq=False)
class Imbalance:
    """The most even split of numbers into two halves.

    Attributes
    ----------
    least : float
        Lower bound on |sum of signed numbers| for any choice of signs.
    reached : float
        |sum| of ``signs``.
    signs : ndarray of shape (d,)
        The signs, each 1 or -1.
    """

    least: float
    reached: float
    signs: FloatArray


def frobenius_reach(weights: FloatArray) -> BoxReach:
    """Return the largest ||P^1/2 (vv' - ww') P^1/2||_F over rows of the cube, P = diag(weights).

    Parameters
    ----------
    weights : ndarray of shape (d,)
        The weights: finite, at least 0, and one of them above 0.
    """
    total, top = math.fsum(weights), int(np.argmax(weights))
    largest = float(weights[top])
    rest = math.fsum(np.delete(weights, top))
    if largest <= rest:
        split = least_imbalance(weights)
        value = math.sqrt(2 * (total - split.least) * (total + split.least))
        return _reach(value, frobenius_of, weights, split.signs)
    return _best(frobenius_of, weights, top, _roots(largest, rest - largest, rest))


def nuclear_reach(weights: FloatArray) -> BoxReach:
    """Return the largest ||P^1/2 (vv' - ww') P^1/2||_nuc over rows of the cube, P = diag(weights).

    Parameters
    ----------
    weights : ndarray of shape (d,)
        The weights: finite, at least 0, and one of them above 0.
    """
    total, top = math.fsum(weights), int(np.argmax(weights))
    largest = float(weights[top])
    rest = math.fsum(np.delete(weights, top))
    if largest <= rest:
        split = least_imbalance(weights)
        value = 2 * math.sqrt((total - split.least) * (total + split.least))
        return _reach(value, nuclear_of, weights, split.signs)
    return _best(nuclear_of, weights, top, _roots(largest, 2 * rest - largest, 2 * rest))


def frobenius_of(weights: FloatArray, row: FloatArray) -> float:
    """Return ||P^1/2 (11' - uu') P^1/2||_F for a row u."""
    outer = 1 - row[:, None] * row[None, :]
    return math.sqrt(float(weights @ np.square(outer) @ weights))


def nuclear_of(weights: FloatArray, row: FloatArray) -> float:
    """Return ||P^1/2 (11' - uu') P^1/2||_nuc for a row u."""
    minus = math.fsum(weights * np.square(1 - row))
    plus = math.fsum(weights * np.square(1 + row))
    return math.sqrt(minus * plus)


def least_imbalance(weights: FloatArray) -> Imbalance:
    """Return the least |sum of +-w_j|, or a certified lower bound, and signs that nearly attain it.

    Equal weights are grouped. If the two halves of the weights have few enough signed sums, all are
    formed and the least is exact. This case covers many weights of few different values, and about
    thirty weights otherwise. For more weights, sums use the largest. The other weights can lower
    the result by at most their total, which certifies the bound. Signs then come from repeated
    differencing (Karmarkar & Karp 1982), which leaves almost nothing if there are many weights.

    Parameters
    ----------
    weights : ndarray of shape (d,)
        The weights: each at least 0, with a sum above 0.
    """
    total = math.fsum(weights)
    cells = np.rint(weights / total / _GRID)
    kinds, kind_of = np.unique(cells, return_inverse=True)
    counts = np.bincount(kind_of)
    # Sort the heaviest weights first, so that any weights left out are small.
    order = np.argsort(-kinds * counts)
    halves, left_out = _halves(kinds[order], counts[order])
    one, two = (_sums(half) for half in halves)
    # Every signed sum of all weights is a signed sum of one half plus one of the other half.
    least, closest = _closest(one[-1], two[-1])
    # Rounding moves each of d weights by up to half a grid cell, so each sum by up to d/2 cells.
    room = (len(weights) + 1) * _GRID * total
    bound = max(0.0, (least - left_out) * _GRID * total - room)
    signs = _differenced(weights)
    if left_out == 0:
        flips: dict[float, int] = {}
        for half, sums, value in zip(halves, (one, two), closest, strict=True):
            flips |= _taken_back(half, sums, value)
        exact = np.ones(len(weights))
        for place, kind in enumerate(kinds):
            negative = np.flatnonzero(kind_of == place)[: flips[float(kind)]]
            exact[negative] = -1.0
        if abs(math.fsum(exact * weights)) < abs(math.fsum(signs * weights)):
            signs = exact
    return Imbalance(bound, abs(math.fsum(signs * weights)), signs)


def _reach(value: float, norm: _Norm, weights: FloatArray, row: FloatArray) -> BoxReach:
    reach = norm(weights, row)
    # Each sum behind the value has a rounding error, so round the value up.
    value *= 1 + 16 * _ROUNDING
    return BoxReach(max(value, reach), row, reach)


def _best(norm: _Norm, weights: FloatArray, top: int, inside: Sequence[float]) -> BoxReach:
    """Return the exact maximum over the candidates when one weight dominates."""
    best: BoxReach | None = None
    for t in (1.0, *inside):
        row = np.ones(len(weights))
        row[top] = -t
        reach = norm(weights, row)
        if best is None or reach > best.reached:
            best = BoxReach(reach * (1 + 16 * _ROUNDING), row, reach)
    assert best is not None
    return best


def _roots(cubic: float, linear: float, constant: float) -> list[float]:
    """Return the roots of the cubic t^3 + linear t + constant in (0, 1)."""
    roots = np.roots([cubic, 0.0, linear, constant])
    real = roots.real[np.abs(roots.imag) <= 1e-9]
    return [float(t) for t in real if 0 < t < 1]


def _halves(
    kinds: FloatArray, counts: NDArray[np.intp]
) -> tuple[tuple[list[tuple[float, int]], list[tuple[float, int]]], float]:
    """Split the weights into two halves with few enough sums; also return the omitted total."""
    halves: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
    sizes = [1, 1]
    left_out = 0.0
    for kind, count in zip(kinds, counts, strict=True):
        side = 0 if sizes[0] <= sizes[1] else 1
        if kind > 0 and (left_out > 0 or sizes[side] * (count + 1) > _MOST_SUMS):
            left_out += float(kind) * int(count)
            continue
        halves[side].append((float(kind), int(count)))
        sizes[side] *= int(count) + 1 if kind > 0 else 1
    return halves, left_out


def _sums(half: list[tuple[float, int]]) -> list[FloatArray]:
    """Return the distinct signed sums of the first 0, 1, 2, ... kinds of weight, each sorted."""
    sums = [np.zeros(1)]
    for kind, count in half:
        steps = kind * (count - 2.0 * np.arange(count + 1))
        sums.append(np.unique(sums[-1][:, None] + steps[None, :]))
    return sums


def _closest(one: FloatArray, two: FloatArray) -> tuple[float, tuple[float, float]]:
    """Return the least |a + b| over a in ``one`` and b in ``two``, and the pair."""
    at = np.searchsorted(two, -one)
    best, pair = math.inf, (0.0, 0.0)
    for index in (np.minimum(at, len(two) - 1), np.maximum(at - 1, 0)):
        gaps = np.abs(one + two[index])
        place = int(gaps.argmin())
        if gaps[place] < best:
            best = float(gaps[place])
            pair = (float(one[place]), float(two[index[place]]))
    return best, pair


def _taken_back(
    half: list[tuple[float, int]], sums: list[FloatArray], value: float
) -> dict[float, int]:
    """Return how many weights of each kind are negative in a signed sum; integer sums are exact."""
    negative: dict[float, int] = {}
    for (kind, count), before in zip(reversed(half), reversed(sums[:-1]), strict=True):
        for flips in range(count + 1):
            rest = value - kind * (count - 2.0 * flips)
            if rest in before:
                break
        negative[kind], value = flips, rest
    return negative


def _differenced(weights: FloatArray) -> FloatArray:
    """Return the signs found by repeatedly differencing the two largest numbers."""
    heap = [(-float(w), place) for place, w in enumerate(weights)]
    heapq.heapify(heap)
    against: list[list[int]] = [[] for _ in weights]
    while len(heap) > 1:
        first, one = heapq.heappop(heap)
        second, two = heapq.heappop(heap)
        against[one].append(two)
        against[two].append(one)
        heapq.heappush(heap, (first - second, one))
    signs = np.zeros(len(weights))
    start = heap[0][1]
    signs[start] = 1.0
    waiting = [start]
    while waiting:
        vertex = waiting.pop()
        for neighbour in against[vertex]:
            if signs[neighbour] == 0:
                signs[neighbour] = -signs[vertex]
                waiting.append(neighbour)
    return signs
