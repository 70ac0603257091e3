"""Sums over blocks of rows that merge: what passes over large tables are made of.

Every sum has ``add`` for a block and ``merge`` for another sum of the same
pass, so that batches of a file and partitions on a cluster go through the same
arithmetic. Scatter matrices are taken about each block's own mean and combined
by adding positive semi-definite terms only, so nothing cancels however far the
data lies from zero (Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import ByLength
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import generator
from dpviz.datasets.frames import Products
from dpviz.preparation.transform import Transform

_DIGITS_KEPT = 1e-3  # of a column's sum of squares, what must be left of it about its mean
FAR_ROWS = 1_024
"""Rows kept because they lie farthest out: the longest row is among them as a rule."""


class RowSummary:
    """Count, range, mean and scatter of raw rows, and the rows farthest out.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        A typical row: means are held relative to it.
    anchor : ndarray of shape (d,)
        What the farthest rows are far from.

    Attributes
    ----------
    rows, dropped : int
        Rows added; rows left out on the way because of gaps.
    low, high : ndarray of shape (d,)
    offset : ndarray of shape (d,)
        Mean minus origin.
    scatter : ndarray of shape (d, d)
        Sum of (x - mean)(x - mean)'.
    far : ndarray of shape (m, d)
        The farthest rows, as they were.
    beyond : float
        No row but the far ones is farther from the anchor than this.
    """

    def __init__(self, origin: FloatArray, anchor: FloatArray) -> None:
        d = len(origin)
        self.origin, self.anchor = origin, anchor
        self.rows = self.dropped = 0
        self.low, self.high = np.full(d, np.inf), np.full(d, -np.inf)
        self.offset, self.scatter = np.zeros(d), np.zeros((d, d))
        self.far = np.zeros((0, d))
        self._far_squares = np.zeros(0)
        self._cut = 0.0

    @classmethod
    def of_products(cls, seen: Products) -> RowSummary | None:
        """Return what X'X tells without a pass over the rows; None where that would lose digits.

        Centring takes n m m' off X'X: of a column far from zero, little but rounding is left.
        """
        found = cls(np.zeros(len(seen.mean)), np.zeros(len(seen.mean)))
        found.rows, found.offset = seen.n, seen.mean
        found.low, found.high = seen.low, seen.high
        found.scatter = seen.total - seen.n * np.outer(seen.mean, seen.mean)
        sound = np.diag(found.scatter) > _DIGITS_KEPT * np.diag(seen.total)
        return found if (sound | (found.low == found.high)).all() else None

    @property
    def mean(self) -> FloatArray:
        """Mean of the rows, shape (d,)."""
        mean: FloatArray = self.origin + self.offset
        return mean

    @property
    def beyond(self) -> float:
        """Largest distance from the anchor that a row not among the far ones may have."""
        return float(np.sqrt(self._cut))

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of rows, shape (size, d)."""
        self.low = np.minimum(self.low, block.min(axis=0))
        self.high = np.maximum(self.high, block.max(axis=0))
        shifted = block - self.origin
        from_anchor = shifted if self.anchor is self.origin else block - self.anchor
        squares = np.einsum("ij,ij->i", from_anchor, from_anchor)
        self._keep_far(block, squares)
        mean = np.full(len(block), 1 / len(block)) @ shifted
        shifted -= mean
        self._combine(len(block), mean, shifted.T @ shifted)

    def merge(self, other: Self) -> None:
        """Add the extent of the rows that follow."""
        self.dropped += other.dropped
        if other.rows == 0:
            return
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self._cut = max(self._cut, other._cut)
        self._keep_far(other.far, other._far_squares)
        self._combine(other.rows, other.offset, other.scatter)

    def _combine(self, rows: int, offset: FloatArray, scatter: FloatArray) -> None:
        total = self.rows + rows
        step = offset - self.offset
        self.scatter += scatter
        self.scatter += np.outer(step, step) * (self.rows * rows / total)
        self.offset = self.offset + step * (rows / total)
        self.rows = total

    def _keep_far(self, block: FloatArray, squares: FloatArray) -> None:
        found = squares > self._cut
        if not found.any():
            return
        self.far = np.concatenate([self.far, block[found]])
        self._far_squares = np.concatenate([self._far_squares, squares[found]])
        # sorted out in bulk: far rows are few, and most blocks bring none
        if len(self.far) > 2 * FAR_ROWS:
            order = np.argpartition(self._far_squares, -FAR_ROWS)
            kept, left = order[-FAR_ROWS:], order[:-FAR_ROWS]
            self._cut = float(self._far_squares[left].max())
            self.far, self._far_squares = self.far[kept], self._far_squares[kept]


class Moments:
    """Second moments of the bounded and of the unbounded rows, as sums.

    Parameters
    ----------
    transform : Transform
    sample : Subsample, optional
        Which rows count; all if not given.
    with_free : bool
        Whether the moment of the unbounded rows is wanted too.
    """

    def __init__(
        self, transform: Transform, sample: Subsample | None = None, *, with_free: bool = True
    ) -> None:
        d = transform.domain.d
        self.transform, self.sample, self.with_free = transform, sample, with_free
        self.rows = self.dropped = self.counted = self.outside = 0
        self.bounded, self.free = np.zeros((d, d)), np.zeros((d, d))

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of raw rows."""
        self.rows += len(block)
        if self.sample is not None:
            block = block[self.sample.chosen(start, start + len(block))]
        free = self.transform.unbounded(block)
        bounded, moved = self.transform.into_domain(free)
        product = bounded.T @ bounded
        self.bounded += product
        if self.with_free:
            self.free += free.T @ free if moved else product
        self.outside += moved
        self.counted += len(block)

    def merge(self, other: Self) -> None:
        """Add the sums of the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.counted += other.counted
        self.outside += other.outside
        self.bounded += other.bounded
        self.free += other.free


class ByLengthOf:
    """What bounded rows tell by their lengths, found in one pass.

    Parameters
    ----------
    transform : Transform
    sample : Subsample, optional
        Which rows count; all if not given.

    Attributes
    ----------
    found : ByLength
    """

    def __init__(self, transform: Transform, sample: Subsample | None = None) -> None:
        self.transform, self.sample = transform, sample
        self.rows = self.dropped = 0
        self.found = ByLength(transform.domain.d)

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of raw rows."""
        self.rows += len(block)
        if self.sample is not None:
            block = block[self.sample.chosen(start, start + len(block))]
        if len(block):
            self.found.add(self.transform.inside(block), start)

    def merge(self, other: Self) -> None:
        """Add the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.found.merge(other.found)


class Longest:
    """The largest norm of a row in the units of a transform."""

    def __init__(self, unscaled: Transform) -> None:
        self.unscaled = unscaled
        self.rows = self.dropped = 0
        self.norm = 0.0

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of raw rows."""
        self.rows += len(block)
        self.norm = max(self.norm, float(norms(self.unscaled, block).max()))

    def merge(self, other: Self) -> None:
        """Add the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.norm = max(self.norm, other.norm)


def norms(unscaled: Transform, block: FloatArray) -> FloatArray:
    """Return the norm of each row in the units of a transform."""
    rows = unscaled.unbounded(block)
    lengths: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths


# Subsamples ---------------------------------------------------------------------------------------


Keys = NDArray[np.uint64]

_BLOCK = 1 << 20
_DIGITS = 16  # top bits of a key that are counted first


class Subsample:
    """The n rows of a table of ``total`` rows that have the smallest keys: no permutation is held.

    Row i has a random key that depends on the seed and i alone, so these rows are a uniform
    sample, and for one seed a smaller sample lies inside a larger one. Keys come from a jump in
    the stream: any block of rows can be asked alone, and memory does not grow with the table.

    Parameters
    ----------
    seed : int
    total : int
        Rows of the table.
    n : int
        Rows wanted, from 1 to ``total``.

    Raises
    ------
    InvalidSetting
        If n is out of range.
    """

    def __init__(self, seed: int, total: int, n: int) -> None:
        if not 1 <= n <= total:
            raise InvalidSetting("n", f"a whole number from 1 to {total}", n)
        self.seed, self.total, self.n = seed, total, n
        counts = np.zeros(1 << _DIGITS, dtype=np.int64)
        for _, keys in self._blocks():
            counts += np.bincount(_top(keys), minlength=len(counts))
        digit = int(np.searchsorted(np.cumsum(counts), n))
        found_keys, found_rows = [], []
        for start, keys in self._blocks():
            rows = np.flatnonzero(_top(keys) == digit)
            found_keys.append(keys[rows])
            found_rows.append(rows + start)
        near, rows = np.concatenate(found_keys), np.concatenate(found_rows)
        missing = n - int(counts[:digit].sum())
        self._limit = np.sort(near)[missing - 1]
        below = int((near < self._limit).sum())
        # Equal keys are as rare as collisions of 64 bits; the first rows win.
        self._ties = rows[near == self._limit][: missing - below]

    def _blocks(self) -> Iterator[tuple[int, Keys]]:
        for start in range(0, self.total, _BLOCK):
            yield start, _keys(self.seed, start, min(start + _BLOCK, self.total))

    def chosen(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which of the rows from ``start`` to before ``stop`` are in the sample."""
        mask: NDArray[np.bool_] = _keys(self.seed, start, stop) < self._limit
        ties = self._ties[(self._ties >= start) & (self._ties < stop)]
        mask[ties - start] = True
        return mask


def _keys(seed: int, start: int, stop: int) -> Keys:
    bits = generator(seed, "subsample").bit_generator
    assert isinstance(bits, np.random.PCG64)
    bits.advance(start)
    keys: Keys = bits.random_raw(stop - start)
    return keys


def _top(keys: Keys) -> NDArray[np.int64]:
    return (keys >> np.uint64(64 - _DIGITS)).astype(np.int64)
