"""Passes over the rows of a table: in memory, in batches of a file, or on a cluster.

Preparation uses the interface `Passes` which hides where the rows are stored. `InMemory` reads an
array. `Batched` sums over the rows of a source, in one pass if possible: it gives the mean, the
scatter and usually the longest row. A bound that clips rows takes a second pass. A quantile of the
norms is refused, because it needs all norms at once.

Passes over large tables are sums over blocks of rows that can be merged.

Every sum has ``add`` for a block and ``merge`` for another sum of the same pass, so batches of a
file and partitions on a cluster use the same arithmetic. Scatter matrices are taken about each
block's own mean and combined by adding only positive semi-definite terms. So nothing cancels,
however far the data is from zero (Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import BlocksAgain, ByLength, FoldSum, InBlocks, Lengths, ReadAgain
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.moments import SecondMoment, is_thin
from dpviz.core.number_text import numeral
from dpviz.core.resources import too_much
from dpviz.core.seeding import generator
from dpviz.datasets.dataframes import Products, SparseRows
from dpviz.datasets.raw import unit_words
from dpviz.datasets.table import Table
from dpviz.preparation.transform import Transform

_DIGITS_KEPT = 1e-3  # Least share of a column's sum of squares that centring must leave.
_BASE = 0x9E3779B97F4A7C15  # The base is odd, so that every row affects the digest.
FAR_ROWS = 1_024
"""Number of stored farthest rows; usually the longest row is among them."""


class RowSummary:
    """Count, range, mean and scatter of raw rows, and the rows farthest out.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        A typical row, relative to which means are stored.
    anchor : ndarray of shape (d,)
        Point from which distances of rows are measured.

    Attributes
    ----------
    rows, dropped : int
        Numbers of rows added, and of rows left out because of missing values.
    low, high : ndarray of shape (d,)
    offset : ndarray of shape (d,)
        Mean minus origin.
    scatter : ndarray of shape (d, d)
        Sum of (x - mean)(x - mean)'.
    far : ndarray of shape (m, d)
        The farthest rows, unchanged.
    beyond : float
        Upper bound of the distance between the anchor and any row not in ``far``.
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
        """Return the summary from X'X without a pass over rows, or None if digits would be lost.

        Centring subtracts n m m' from X'X. For a column far from zero, mostly rounding remains.
        """
        summary = cls(np.zeros(len(seen.mean)), np.zeros(len(seen.mean)))
        summary.rows, summary.offset = seen.n, seen.mean
        summary.low, summary.high = seen.low, seen.high
        summary.scatter = seen.total - seen.n * np.outer(seen.mean, seen.mean)
        sound = np.diag(summary.scatter) > _DIGITS_KEPT * np.diag(seen.total)
        return summary if (sound | (summary.low == summary.high)).all() else None

    @property
    def mean(self) -> FloatArray:
        """Mean of the rows, shape (d,)."""
        mean: FloatArray = self.origin + self.offset
        return mean

    @property
    def beyond(self) -> float:
        """Upper bound of the distance between the anchor and any row not in ``far``."""
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
        """Add the summary of the rows that follow."""
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
        is_far = squares > self._cut
        if not is_far.any():
            return
        self.far = np.concatenate([self.far, block[is_far]])
        self._far_squares = np.concatenate([self._far_squares, squares[is_far]])
        # Far rows are selected many at a time, because most blocks of rows have none.
        if len(self.far) > 2 * FAR_ROWS:
            order = np.argpartition(self._far_squares, -FAR_ROWS)
            farthest, dropped = order[-FAR_ROWS:], order[:-FAR_ROWS]
            self._cut = float(self._far_squares[dropped].max())
            self.far, self._far_squares = self.far[farthest], self._far_squares[farthest]


class RowsDigest:
    """A digest of rows in their order, the same however the rows are divided into blocks.

    Attributes
    ----------
    value : int
        64 bits: a polynomial in ``_BASE`` whose coefficients are hashes of the rows, so that two
        parts merge without their start positions. The digest does not prevent deliberate
        collisions; by chance one occurs once in 2^64.
    rows, dropped : int
    """

    def __init__(self) -> None:
        self.value = self.rows = self.dropped = 0

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of rows, shape (size, d)."""
        bits = np.ascontiguousarray(block + 0.0).view(np.uint64)  # Adding 0 turns -0 into 0.
        places = np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(_BASE)
        rows = _mixed(_mixed(bits ^ places).sum(axis=1, dtype=np.uint64))
        powers = np.uint64(_BASE) ** np.arange(len(rows), dtype=np.uint64)
        self._follow(int((rows[::-1] * powers).sum(dtype=np.uint64)), len(rows))

    def merge(self, other: Self) -> None:
        """Add the digest of the rows that follow."""
        self.dropped += other.dropped
        self._follow(other.value, other.rows)

    def _follow(self, value: int, rows: int) -> None:
        self.value = (self.value * pow(_BASE, rows, 1 << 64) + value) % (1 << 64)
        self.rows += rows


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return mixed bits, each dependent on all bits, by SplitMix64 (Steele, Lea and Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class Moments:
    """Second moments of the bounded and of the unbounded rows, as sums.

    Parameters
    ----------
    transform : Transform
    sample : Subsample, optional
        Rows to include; all rows if not given.
    with_free : bool
        Whether to sum the moment of the unbounded rows too.
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
    """Summaries of bounded rows by length, from one pass.

    Parameters
    ----------
    transform : Transform
    sample : Subsample, optional
        Rows to include; all rows if not given.

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
        """Add the summary of the rows that follow."""
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
        """Add the summary of the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.norm = max(self.norm, other.norm)


def norms(unscaled: Transform, block: FloatArray) -> FloatArray:
    """Return the norm of each row in the units of a transform."""
    rows = unscaled.unbounded(block)
    lengths: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths


# Random subsamples of rows ------------------------------------------------------------------------


Keys = NDArray[np.uint64]

_BLOCK = 1 << 20
_DIGITS = 16  # Number of top bits of a key by which keys are counted first.


class Subsample:
    """The n of ``total`` rows with the smallest random keys; needs no permutation in memory.

    Row i has a random key that depends only on the seed and i. So these rows are a uniform sample,
    and for one seed a larger sample contains every smaller one. Keys come from a jump in the
    stream: any block of rows can be processed alone, and memory does not grow with the table.

    Parameters
    ----------
    seed : int
    total : int
        Number of rows of the table.
    n : int
        Size of the sample, from 1 to ``total``.

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
        # Equal keys are as rare as collisions of 64 bits. If keys are equal, the first rows win.
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


def _top(keys: Keys) -> NDArray[np.intp]:
    return (keys >> np.uint64(64 - _DIGITS)).astype(np.intp)


_ASK_FROM = 1 << 28  # Size of a table in bytes from which on free memory is checked.
_BLOCK_ROWS = 65_536  # Number of rows in a block, which limits the memory beside the table.
_BLOCK_ENTRIES = 1 << 21  # Maximum number of entries in a block, so that memory is reused.


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """Facts about the raw columns that preparation needs, shape (d_raw,) each."""

    n: int
    low: FloatArray
    high: FloatArray
    mean: FloatArray


class Passes(Protocol):
    """Passes over a table's rows for preparation."""

    @property
    def name(self) -> str:
        """Name of the table."""

    @property
    def called(self) -> str:
        """Name of the table in results, never a file's name."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the d_raw raw columns."""

    @property
    def bounds(self) -> FloatArray | None:
        """Known public bounds, shape (d_raw, 2)."""

    def facts(self) -> ColumnFacts:
        """Return count, range and mean."""

    def said(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return notes and what was assumed public, once `facts` is known."""

    def deviations(self, keep: NDArray[np.bool_]) -> FloatArray:
        """Return the population standard deviations of the kept columns."""

    def row_bound(self, unscaled: Transform, level: float | None) -> float:
        """Return the largest row norm, or a quantile of the norms, in the transform's units."""

    def moments(self, transform: Transform, inside: bool) -> tuple[SecondMoment, SecondMoment, int]:
        """Return the moments of bounded and of unbounded rows, and the number of clipped rows.

        ``inside`` states that no row is outside, because the bounds come from these rows.
        """

    def sample(self, transform: Transform, chosen: Subsample, with_rows: bool) -> SecondMoment:
        """Return the moment of the bounded rows of a subsample."""

    def lengths(self, transform: Transform) -> tuple[Lengths, BlocksAgain | None]:
        """Return summaries of the bounded rows by length, and a reader of the rows."""

    def raw_rows(self, keep: NDArray[np.bool_]) -> FloatArray:
        """Return the selected columns of all rows, unchanged, shape (n, d)."""

    def digest(self) -> RowsDigest:
        """Return the digest of the rows as read, in one pass."""


class InMemory:
    """Passes over a table that is in memory."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.name = self.called = table.name
        self.columns, self.bounds = table.columns, table.bounds
        self._facts: ColumnFacts | None = None

    def facts(self) -> ColumnFacts:
        """Return count, range and mean, computed once."""
        if self._facts is None:
            rows = self.table.rows
            origin = low = high = rows[0]
            total = np.zeros(rows.shape[1])
            for block in _blocks(rows):
                # One row is subtracted from all, so that a mean far from zero loses no digits.
                total += (block - origin).sum(axis=0)
                low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
            # Declared bounds hold for any rows, so even a column with one value is used.
            if self.table.declared and self.table.bounds is not None:
                low, high = self.table.bounds.T
            self._facts = ColumnFacts(len(rows), low, high, origin + total / len(rows))
        return self._facts

    def said(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the table's own notes."""
        return self.table.notes, self.table.assumed_public

    def deviations(self, keep: NDArray[np.bool_]) -> FloatArray:
        """Return population standard deviations of the kept columns, in two passes."""
        rows, mean = self.table.rows, self.facts().mean
        total = np.zeros(rows.shape[1])
        for block in _blocks(rows):
            centred = block - mean
            total += np.einsum("ij,ij->j", centred, centred)
        deviations: FloatArray = np.sqrt(total / len(rows))[keep]
        return deviations

    def row_bound(self, unscaled: Transform, level: float | None) -> float:
        """Return the largest row norm or a quantile of the norms."""
        lengths = np.concatenate([norms(unscaled, block) for block in _blocks(self.table.rows)])
        return float(lengths.max() if level is None else np.quantile(lengths, level))

    def moments(self, transform: Transform, inside: bool) -> tuple[SecondMoment, SecondMoment, int]:
        """Return the two moments and the number of clipped rows."""
        n = len(self.table.rows)
        # If rows are few and features many, the rows are stored, because X'X would be larger.
        if is_thin(n, transform.domain.d):
            free = transform.unbounded(self.table.rows)
            bounded, moved = transform.into_domain(free)
            moment = SecondMoment.of_root(bounded / math.sqrt(n), n)
            if moved == 0:
                return moment, moment, 0
            return moment, SecondMoment.of_root(free / math.sqrt(n), n), moved
        refuse_too_wide(self.name, transform.domain.d)
        sums = Moments(transform)
        for block in _blocks(self.table.rows):
            sums.add(block, sums.rows)
        moment = SecondMoment(symmetric(sums.bounded / n), n)
        if sums.outside == 0:
            return moment, moment, 0
        return moment, SecondMoment(symmetric(sums.free / n), n), sums.outside

    def sample(self, transform: Transform, chosen: Subsample, with_rows: bool) -> SecondMoment:
        """Return the moment of a subsample, with its rows on request."""
        if with_rows:
            rows = transform.inside(self.table.rows[chosen.chosen(0, chosen.total)])
        if is_thin(chosen.n, transform.domain.d):
            few, _ = transform.bounded(self.table.rows[chosen.chosen(0, chosen.total)])
            root = few / math.sqrt(chosen.n)
            return SecondMoment.of_root(root, chosen.n, few if with_rows else None)
        sums = Moments(transform, chosen, with_free=False)
        for block in _blocks(self.table.rows):
            sums.add(block, sums.rows)
        return SecondMoment(
            symmetric(sums.bounded / chosen.n), chosen.n, rows if with_rows else None
        )

    def lengths(self, transform: Transform) -> tuple[Lengths, BlocksAgain | None]:
        """Return summaries of the bounded rows by length, and a reader of the rows."""
        rows, d = self.table.rows, transform.domain.d
        return ReadAgain(InBlocks(rows, transform.inside, d), len(rows), d), None

    def raw_rows(self, keep: NDArray[np.bool_]) -> FloatArray:
        """Return the kept columns of the table."""
        rows: FloatArray = self.table.rows if keep.all() else self.table.rows[:, keep]
        return rows

    def digest(self) -> RowsDigest:
        """Return the digest of the rows as read."""
        found = RowsDigest()
        for block in _blocks(self.table.rows):
            found.add(block, found.rows)
        return found


S = TypeVar("S", bound=FoldSum)


class RowSource(Protocol):
    """Rows that can be summed any number of times, always in the same order."""

    @property
    def name(self) -> str:
        """Name of the source in messages."""

    @property
    def called(self) -> str:
        """Name of the source in results."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numeric columns."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes made while reading, as sentences."""

    def first(self) -> FloatArray:
        """Return some first rows, at least one, shape (size, d)."""

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows; ``new`` makes an empty sum."""

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows in order, each with its number of incomplete rows."""


def _chosen_rows(source: RowSource, chosen: Subsample | None) -> Iterator[tuple[FloatArray, int]]:
    start = 0
    for block, lost in source.blocks():
        stop = start + len(block)
        yield block if chosen is None else block[chosen.chosen(start, stop)], lost
        start = stop


class Batched:
    """Passes over a source that does not fit in memory.

    Parameters
    ----------
    source : RowSource
    about_zero : bool
        Whether rows will stay uncentred: the longest row is then measured from zero.
    """

    bounds: FloatArray | None = None

    def __init__(
        self, source: RowSource, about_zero: bool, rows_a_person: int | None = None
    ) -> None:
        self.rows_a_person = rows_a_person
        self.source = source
        self._about_zero = about_zero
        self._extent: RowSummary | None = None

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source.name

    @property
    def called(self) -> str:
        """Name of the source in results, never a file's name."""
        return self.source.called

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numeric columns."""
        return self.source.columns

    def extent(self) -> RowSummary:
        """Return the result of the first pass, computed once.

        Raises
        ------
        InvalidTable
            If fewer than two rows or columns remain.
        """
        if self._extent is None:
            d = len(self.columns)
            if d < 2:
                raise InvalidTable(f"{self.name} must have at least 2 numeric columns; it has {d}.")
            refuse_too_wide(self.name, d)
            # A sparse matrix supplies the products of its stored entries. Rows far from the mean
            # are then searched later.
            products = self.source.products() if isinstance(self.source, SparseRows) else None
            summed = None if products is None else RowSummary.of_products(products)
            if summed is not None:
                self._extent = summed
                return summed
            start = self.source.first()
            if not len(start):
                raise InvalidTable(f"{self.name} must have at least 2 rows; it has none.")
            origin = start[0] + (start - start[0]).mean(axis=0)
            anchor = np.zeros(d) if self._about_zero else origin
            about_zero = self._about_zero

            def new() -> RowSummary:
                return RowSummary(origin, anchor if about_zero else origin)

            summary = self.source.fold(new)
            if summary.rows < 2:
                raise InvalidTable(f"{self.name} must have at least 2 rows; it has {summary.rows}.")
            self._extent = summary
        return self._extent

    def facts(self) -> ColumnFacts:
        """Return count, range and mean, after the first pass."""
        extent = self.extent()
        return ColumnFacts(extent.rows, extent.low, extent.high, extent.mean)

    def said(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return notes on reading, such as rows with missing values."""
        extent = self.extent()
        notes = self.source.notes
        if extent.dropped:
            were = "row" if extent.dropped == 1 else "rows"
            was = "was" if extent.dropped == 1 else "were"
            notes += (
                f"{extent.dropped} {were} of {extent.rows + extent.dropped} without a value "
                f"{was} left out.",
            )
        return notes, (unit_words(self.rows_a_person),)

    def deviations(self, keep: NDArray[np.bool_]) -> FloatArray:
        """Return population standard deviations of the kept columns, without another pass."""
        extent = self.extent()
        deviations: FloatArray = np.sqrt(np.diag(extent.scatter) / extent.rows)[keep]
        return deviations

    def row_bound(self, unscaled: Transform, level: float | None) -> float:
        """Return the largest norm, with another pass over the rows if necessary.

        Raises
        ------
        InvalidSetting
            If a quantile is requested, which needs the norms of all rows at once.
        """
        if level is None or level == 1:
            return self._longest(unscaled)
        raise InvalidSetting(
            "row-norm bound",
            "max or a number, because a quantile needs all row norms and this table is read "
            "in batches",
            f"quantile:{numeral(level, 6)}",
            "--row-bound",
        )

    def _longest(self, unscaled: Transform) -> float:
        """Return the largest norm, from the far rows if no other row can be longer."""
        extent = self.extent()
        if (unscaled.scale == 1).all() and len(extent.far):
            longest = float(norms(unscaled, extent.far).max())
            moved = float(
                np.linalg.norm(
                    unscaled.center - extent.anchor[... if unscaled.keep is None else unscaled.keep]
                )
            )
            # For all other rows x, |x - center| <= |x - anchor| + |anchor - center|.
            if longest >= (extent.beyond + moved) * (1 + 1e-12):
                return longest
        return self.source.fold(lambda: Longest(unscaled)).norm

    def moments(self, transform: Transform, inside: bool) -> tuple[SecondMoment, SecondMoment, int]:
        """Return the two moments; the first pass already gives the moment of the unbounded rows."""
        extent = self.extent()
        keep = np.ones(len(extent.origin), bool) if transform.keep is None else transform.keep
        # The large terms are subtracted first and cancel exactly, so the mean loses no digits.
        shift = (extent.origin[keep] - transform.center) + extent.offset[keep]
        shift /= transform.scale
        scatter = extent.scatter[np.ix_(keep, keep)] / np.outer(transform.scale, transform.scale)
        A = symmetric(scatter / extent.rows + np.outer(shift, shift))
        reference = SecondMoment(A, extent.rows)
        if inside:
            return reference, reference, 0
        sums = self.source.fold(lambda: Moments(transform, with_free=False))
        if sums.outside == 0:
            return reference, reference, 0
        return SecondMoment(symmetric(sums.bounded / sums.rows), sums.rows), reference, sums.outside

    def sample(self, transform: Transform, chosen: Subsample, with_rows: bool) -> SecondMoment:
        """Return the moment of a subsample in one pass; lengths take another pass."""
        sums = self.source.fold(lambda: Moments(transform, chosen, with_free=False))
        moment = SecondMoment(symmetric(sums.bounded / chosen.n), chosen.n)
        if not with_rows:
            return moment
        return moment.with_lengths(*self.lengths(transform, chosen))

    def lengths(
        self, transform: Transform, chosen: Subsample | None = None
    ) -> tuple[Lengths, BlocksAgain]:
        """Return summaries of the bounded rows by length, in one pass, and a reader of the rows."""
        found = self.source.fold(lambda: ByLengthOf(transform, chosen)).found
        read = partial(_chosen_rows, self.source, chosen)
        return found, BlocksAgain(read, transform.inside, transform.domain.d)

    def raw_rows(self, keep: NDArray[np.bool_]) -> FloatArray:
        """Raise an error, because each repetition would read the whole file again."""
        raise InvalidSetting(
            "preparation",
            "public: a private value needs all rows in memory for each simulated release, and "
            "this table is read in batches",
            "private",
            "--center, --scale, --row-bound and --count",
        )

    def digest(self) -> RowsDigest:
        """Return the digest of the rows as read, in one pass."""
        return self.source.fold(RowsDigest)


def _blocks(rows: FloatArray) -> Iterator[FloatArray]:
    step = max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // rows.shape[1]))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def refuse_too_wide(name: str, d: int) -> None:
    """Raise InvalidTable if this machine lacks the memory for the moments of d features.

    Memory holds two moments, a block's product and a transpose.
    """
    size = 8.0 * 6 * d**2
    reason = too_much(size) if size > _ASK_FROM else None
    if reason is not None:
        raise InvalidTable(
            f"the second moments of the {d:,} features of {name} take {reason}: leave columns out."
        )


def symmetric(matrix: FloatArray) -> FloatArray:
    """Return the matrix made exactly symmetric."""
    average: FloatArray = (matrix + matrix.T) / 2
    return average
