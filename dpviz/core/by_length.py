"""Summaries of rows by length: counts beyond each radius, and moments of rows clipped there.

Mechanisms that bound rows themselves need only these summaries, and only at radii on one grid. So
rows need not be in memory: two passes are enough if they can be read again; otherwise one pass sums
each step of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import InvalidTable
from dpviz.core.resources import too_much

PER_OCTAVE = 8
_LOW, _HIGH = -33 * PER_OCTAVE, 56 * PER_OCTAVE
_STEPS = np.arange(_LOW, _HIGH + 1)
GRID: FloatArray = np.ldexp(2.0 ** (_STEPS % PER_OCTAVE / PER_OCTAVE), _STEPS // PER_OCTAVE)
"""The radii, 2^(j/8), ascending; whole powers of 2 are exact."""

_OCTAVE = GRID[-_LOW : PER_OCTAVE - _LOW] / 2  # These steps of the grid from 1/2 to 1 are exact.
_ROOM = 1 + 4 * np.finfo(np.float64).eps  # This margin keeps a rounded unit row no longer than 1.
_SMALL, _LARGE = 1e-280, 1e280  # Squared lengths between these limits do not overflow or vanish.
_BLOCK_ENTRIES = 1 << 17  # A block has at most 1 MiB of numbers, so that it fits the cache.
_ASK_FROM = 1 << 28  # Check the free memory from this many bytes on.


Pieces = Iterable[tuple[FloatArray, int]]
"""Rows in pieces of any size, each with the number of rows lost to missing values."""
RowChange = Callable[[FloatArray], FloatArray]
"""A function from a block of rows to a changed block of as many rows."""


class Lengths(Protocol):
    """Counts and moments of rows by their lengths."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows between adjacent radii of the grid, shape (len(GRID) + 1,)."""

    def moment(self, radius: float | None) -> FloatArray:
        """Return the mean of a uu', u = x/|x|, a = min(1, |x|^2/radius^2), shape (d, d).

        Without a radius, a is 1. Zero rows stay zero.
        """

    def everything(self) -> FloatArray:
        """Return the mean of xx', shape (d, d)."""

    def squares_along(self, directions: FloatArray, radius: float) -> FloatArray:
        """Return `squares_along` of ``moment(radius)``, without that matrix if this is faster."""


def squares_along(directions: FloatArray, moment: FloatArray) -> FloatArray:
    """Return the mean squares along orthonormal directions, then the mean square of the rest.

    Parameters
    ----------
    directions : ndarray of shape (d, m)
    moment : ndarray of shape (d, d)

    Returns
    -------
    ndarray of shape (m + 1,)
    """
    squares = np.einsum("ij,ij->j", directions, moment @ directions)
    return np.append(squares, np.trace(moment) - squares.sum())


def longer(lengths: Lengths, radii: FloatArray) -> FloatArray:
    """Return how many rows are longer than each radius on the grid.

    A change of one row changes each count by at most 1.
    """
    up_to = np.cumsum(lengths.counts)
    counts: FloatArray = (up_to[-1] - up_to[_places_of(radii)]).astype(np.float64)
    return counts


def at_rank(lengths: Lengths, rank: float) -> float:
    """Return the least radius on the grid that at most ``rank`` rows exceed."""
    few = longer(lengths, GRID) <= rank
    return float(GRID[int(np.argmax(few)) if few.any() else -1])


def _places_of(radii: FloatArray) -> NDArray[np.intp]:
    # The grid is geometric, so the logarithm of a radius gives its index.
    steps = np.log2(radii) * PER_OCTAVE
    places: NDArray[np.intp] = np.rint(steps).astype(np.intp) - _LOW
    if (
        np.abs(steps - np.rint(steps)).max(initial=0) > 1e-9
        or not ((places >= 0) & (places < len(GRID))).all()
    ):
        raise ValueError("summaries by row length can be clipped only at the radii of their grid")
    return places


def lengths_of(rows: FloatArray, squares: FloatArray | None = None) -> FloatArray:
    """Return the length of each row, infinite if it overflows or is undefined, shape (n,).

    If the result of `_squares` is known, it may be passed.
    """
    with np.errstate(over="ignore", under="ignore"):
        squares = _squares(rows) if squares is None else squares
        lengths: FloatArray = np.sqrt(squares)
        odd = _odd(squares)
        if odd.any():
            # Scale first: squares of entries near 1e-200 vanish, and squares near 1e200 overflow.
            largest, unit = _scaled(rows[odd])
            lengths[odd] = largest * np.sqrt(np.square(unit).sum(axis=1))
    return lengths


def shortened(
    rows: FloatArray,
    radius: float | None,
    squares: FloatArray | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Return x/radius for short rows and x/|x| for longer ones; without a radius x/|x| for all.

    Each result row depends on its own row only and has length at most 1; zero rows stay zero.
    ``squares`` may be passed if known, and an array ``out`` for the result.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        squares = _squares(rows) if squares is None else squares
        divisor = np.sqrt(squares)
        if radius is not None:
            np.maximum(divisor, radius, out=divisor)
        divisor *= _ROOM
        short: FloatArray = np.divide(rows, divisor[:, None], out=out)
        odd = _odd(squares)
        if odd.any():
            largest, unit = _scaled(rows[odd])
            size = np.sqrt(np.square(unit).sum(axis=1))
            part = 1.0 if radius is None else np.minimum(1.0, largest * size / radius)[:, None]
            short[odd] = unit / (np.where(size > 0, size, 1.0) * _ROOM)[:, None] * part
    return short


def _squares(rows: FloatArray) -> FloatArray:
    """Return the squared length of each row, which may overflow or vanish, shape (n,)."""
    with np.errstate(over="ignore", under="ignore"):
        squares: FloatArray = np.einsum("ij,ij->i", rows, rows)
    return squares


def _odd(squares: FloatArray) -> NDArray[np.bool_]:
    return ~((squares > _SMALL) & (squares < _LARGE))


def _scaled(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each row's largest absolute entry, and rows divided by it; zero rows stay zero."""
    largest = np.abs(rows).max(axis=1)
    return largest, rows / np.where(largest > 0, largest, 1.0)[:, None]


def _place(lengths: FloatArray) -> NDArray[np.intp]:
    """Return the grid index of the first radius that is at least a row's length, shape (n,).

    The search uses the binary exponent, then the eight steps of an octave. Searching the whole grid
    takes twice as long.
    """
    inside = np.fmax(np.fmin(lengths, np.nextafter(GRID[-1], np.inf)), GRID[0])
    mantissa, octave = np.frexp(inside)
    steps = np.searchsorted(_OCTAVE, mantissa, side="left")
    places: NDArray[np.intp] = steps + (octave.astype(np.intp) - 1) * PER_OCTAVE - _LOW
    return places


def _counted(lengths: FloatArray) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = np.bincount(_place(lengths), minlength=len(GRID) + 1)
    return counts


class Counts:
    """Number of rows between adjacent radii of the grid, summed over blocks of rows.

    Attributes
    ----------
    rows, dropped : int
    counts : ndarray of int, shape (len(GRID) + 1,)
    """

    def __init__(self) -> None:
        self.rows = self.dropped = 0
        self.counts = np.zeros(len(GRID) + 1, dtype=np.int64)

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of rows."""
        self.rows += len(block)
        self.counts += _counted(lengths_of(block))

    def merge(self, other: Self) -> None:
        """Add the counts of the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.counts += other.counts


class _Products:
    """The sum of xx' over blocks of rows, either as they are or clipped.

    Row lengths are needed anyway, so count them if they are not counted yet.
    """

    def __init__(self, d: int, shorten: bool, radius: float | None, count: bool) -> None:
        self.rows = self.dropped = 0
        self.shorten, self.radius = shorten, radius
        self.products = np.zeros((d, d))
        self.counted = Counts() if count and shorten else None
        self._room = BlockMemory()

    def add(self, block: FloatArray, start: int) -> None:
        self.rows += len(block)
        if self.shorten:
            squares = _squares(block)
            if self.counted is not None:
                self.counted.counts += _counted(lengths_of(block, squares))
            block = shortened(block, self.radius, squares, self._room.like(block))
        self.products += block.T @ block

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.dropped += other.dropped
        self.products += other.products
        if self.counted is not None and other.counted is not None:
            self.counted.merge(other.counted)


class _Along:
    """The sums of squares along directions and of squared lengths, of clipped rows.

    Divide a row's few squares by one number instead of its d entries.
    """

    def __init__(self, directions: FloatArray, radius: float) -> None:
        self.rows = self.dropped = 0
        self.directions, self.radius = directions, radius
        self.along, self.total = np.zeros(directions.shape[1]), 0.0

    def add(self, block: FloatArray, start: int) -> None:
        self.rows += len(block)
        squares = _squares(block)
        if _odd(squares).any():
            block = shortened(block, self.radius, squares)
            squares, divisor = _squares(block), np.ones(len(block))
        else:
            divisor = np.square(np.maximum(np.sqrt(squares), self.radius) * _ROOM)
        self.along += (1 / divisor) @ np.square(block @ self.directions)
        self.total += float((squares / divisor).sum())

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.dropped += other.dropped
        self.along += other.along
        self.total += other.total


class FoldSum(Protocol):
    """A sum over blocks of rows that merges with another."""

    rows: int
    dropped: int

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block, where ``start`` is the number of its first row."""

    def merge(self, other: Self) -> None:
        """Add the sum of the rows that follow."""


S = TypeVar("S", bound=FoldSum)


class Foldable(Protocol):
    """Rows that can be summed any number of times, in the same order."""

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows; ``new`` makes an empty sum."""


class BlockMemory:
    """Memory reused for one block after another: fresh pages cost more time than the arithmetic."""

    def __init__(self) -> None:
        self._held = np.empty((0, 0))

    def __reduce__(self) -> tuple[type[BlockMemory], tuple[()]]:
        return BlockMemory, ()  # Pickling drops the content of this memory, which is temporary.

    def like(self, block: NDArray[Any]) -> FloatArray:
        """Return an uninitialised array of doubles with a block's shape and order."""
        held = self._held
        same = np.argmax(held.strides) == np.argmax(block.strides)
        if len(held) < len(block) or held.shape[1] != block.shape[1] or not same:
            held = self._held = np.empty_like(block, dtype=np.float64)
        return held[: len(block)]


def block_rows(d: int, entries: int = _BLOCK_ENTRIES) -> int:
    """Return how many rows of d features a block has."""
    return max(256, entries // max(d, 1))


class BlocksAgain:
    """Rows that are not in an array: each pass reads them again, in the same blocks as an array.

    Parameters
    ----------
    read : callable
        A function that yields all rows in pieces, each with its number of rows left out.
    change : callable
        A function from a block to a block of as many rows.
    d : int
        Number of features after the change.
    """

    def __init__(self, read: Callable[[], Pieces], change: RowChange, d: int) -> None:
        self._read, self._change, self._size = read, change, block_rows(d)

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield each block's first row number and the block, valid until the next block."""
        for number, block in enumerate(of_size((piece for piece, _ in self._read()), self._size)):
            check_cancelled()
            yield number * self._size, self._change(block)


def of_size(pieces: Iterable[FloatArray], size: int) -> Iterator[FloatArray]:
    """Regroup pieces of any size into blocks of ``size`` rows, each valid until the next block."""
    held, filled = np.empty((0, 0)), 0
    for piece in pieces:
        if not len(held):
            held = np.empty((size, piece.shape[1]))
        while len(piece):
            part, piece = np.split(piece, [size - filled])
            held[filled : filled + len(part)] = part
            filled += len(part)
            if filled == size:
                yield held
                filled = 0
    if filled:
        yield held[:filled]


class InBlocks:
    """Rows of an array, summed a block at a time, each block in doubles.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Any type of real numbers.
    change : callable, optional
        A function from a block of rows to a changed block of as many rows.
    d : int, optional
        Number of features after the change, if different.
    entries : int
        Approximate number of entries in a block.
    room : BlockMemory, optional
        Memory for blocks that are not in doubles.
    """

    def __init__(
        self,
        rows: NDArray[np.generic],
        change: RowChange | None = None,
        d: int | None = None,
        entries: int = _BLOCK_ENTRIES,
        room: BlockMemory | None = None,
    ) -> None:
        self._rows, self._change, self._entries = rows, change, entries
        self._room = room or BlockMemory()
        self._d = rows.shape[1] if d is None else d

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield each block's first row number and the block, valid until the next block."""
        step, rows = block_rows(self._d, self._entries), self._rows
        for start in range(0, len(rows), step):
            given = rows[start : start + step]
            if given.dtype == np.float64:
                block = np.asarray(given)
            else:
                block = self._room.like(given)
                np.copyto(block, given, casting="unsafe")
            yield start, block if self._change is None else self._change(block)

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows."""
        total = new()
        for start, block in self.blocks():
            total.add(block, start)
        return total


def shortened_moment(rows: FloatArray, radius: float | None) -> FloatArray:
    """Return the moment of clipped rows in memory, without counting lengths, shape (d, d)."""
    n, d = rows.shape
    summed = InBlocks(rows).fold(lambda: _Products(d, shorten=True, radius=radius, count=False))
    return symmetric_mean(summed.products, n)


class ReadAgain:
    """Summaries of rows by length, with one pass over the rows for each radius.

    Parameters
    ----------
    source : Foldable
    n, d : int
    counts : ndarray of int, shape (len(GRID) + 1,), optional
        Known counts of rows, if any.
    """

    def __init__(
        self, source: Foldable, n: int, d: int, counts: NDArray[np.int64] | None = None
    ) -> None:
        self._source, self.n, self._d, self._counts = source, n, d, counts

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows between adjacent radii of the grid."""
        if self._counts is None:
            self._counts = self._source.fold(Counts).counts
        return self._counts

    def moment(self, radius: float | None) -> FloatArray:
        """Return the second moment of clipped rows."""
        return self._mean(shorten=True, radius=radius)

    def everything(self) -> FloatArray:
        """Return the second moment of the rows."""
        return self._mean(shorten=False, radius=None)

    def squares_along(self, directions: FloatArray, radius: float) -> FloatArray:
        """Return the mean squares of clipped rows along directions, then of the rest."""
        if 2 * directions.shape[1] > self._d:
            return squares_along(directions, self.moment(radius))
        summed = self._source.fold(lambda: _Along(directions, radius))
        return np.append(summed.along, summed.total - summed.along.sum()) / self.n

    def _mean(self, *, shorten: bool, radius: float | None) -> FloatArray:
        d, count = self._d, self._counts is None
        summed = self._source.fold(lambda: _Products(d, shorten, radius, count))
        if summed.counted is not None:
            self._counts = summed.counted.counts
        return symmetric_mean(summed.products, self.n)


class ByLength:
    """Summaries of rows by length from one sum for each grid step, in one pass over the rows.

    Parameters
    ----------
    d : int
    beside : ByLength, optional
        Summaries whose memory for blocks is shared.

    Raises
    ------
    InvalidTable
        If this machine lacks memory for the sums.
    """

    def __init__(self, d: int, beside: ByLength | None = None) -> None:
        self.rows = self.dropped = 0
        self.d = d
        self.counts = np.zeros(len(GRID) + 1, dtype=np.int64)
        # Each grid step has two sums of products: of scaled rows, and of rows with length 1.
        self._products: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._rooms: tuple[BlockMemory, BlockMemory] = (
            (BlockMemory(), BlockMemory()) if beside is None else beside._rooms
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of rows."""
        self.rows += len(block)
        squares = _squares(block)
        lengths = lengths_of(block, squares)
        # NumPy sorts 16-bit numbers fast, by their digits.
        places = _place(lengths).astype(np.uint16)
        self.counts += np.bincount(places, minlength=len(GRID) + 1)
        order = np.argsort(places, kind="stable")
        # Group rows by grid step, because one matrix product can then handle a whole step.
        places, squares = places[order], squares[order]
        ends = [0, *(np.flatnonzero(np.diff(places)) + 1), len(places)]
        for first, stop in pairwise(ends):
            # Copy the rows of one grid step at a time, which fit the processor's cache.
            place, part = int(places[first]), slice(first, stop)
            inside = self._rooms[0].like(block[part])
            np.take(block, order[part], axis=0, out=inside, mode="clip")
            ones = shortened(inside, None, squares[part], self._rooms[1].like(inside))
            if 0 < place < len(GRID):
                products = inside.T @ inside
                products /= (GRID[place] * _ROOM) ** 2
            else:  # Squares of very short or long rows may vanish or overflow.
                with np.errstate(under="ignore"):
                    within = lengths[order[part]] / GRID[min(place, len(GRID) - 1)]
                    inside = ones * np.minimum(within, 1.0)[:, None]
                products = inside.T @ inside
            self._add(place, products, ones.T @ ones)

    def merge(self, other: Self) -> None:
        """Add the counts of the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.counts += other.counts
        for place, pair in other._products.items():
            self._add(place, *pair)

    @property
    def arrays(self) -> list[FloatArray]:
        """All arrays of the summary, in a fixed order."""
        held = [self._products[place] for place in sorted(self._products)]
        return [self.counts.astype(np.float64), *(array for pair in held for array in pair)]

    def moment(self, radius: float | None) -> FloatArray:
        """Return the second moment of clipped rows, at a radius on the grid."""
        # Rows longer than the radius count as length 1; other rows are divided by the radius.
        last = -1 if radius is None else int(_places_of(np.array([radius]))[0])
        total = np.zeros((self.d, self.d))
        for place in sorted(self._products):
            inside, unit = self._products[place]
            total += unit if place > last else inside * (GRID[place] / GRID[last]) ** 2
        return symmetric_mean(total, self.rows)

    def everything(self) -> FloatArray:
        """Return the second moment of the rows; rows beyond the last radius count as long as it."""
        total = np.zeros((self.d, self.d))
        for place in sorted(self._products):
            total += self._products[place][0] * GRID[min(place, len(GRID) - 1)] ** 2
        return symmetric_mean(total, self.rows)

    def squares_along(self, directions: FloatArray, radius: float) -> FloatArray:
        """Return the mean squares of clipped rows along directions, then of the rest."""
        return squares_along(directions, self.moment(radius))

    def _add(self, place: int, inside: FloatArray, unit: FloatArray) -> None:
        held = self._products.get(place)
        if held is not None:
            held[0][...] += inside
            held[1][...] += unit
            return
        size = 16.0 * self.d**2
        if size * (len(self._products) + 1) > _ASK_FROM and (reason := too_much(size)):
            raise InvalidTable(
                f"summaries by row length for {self.d:,} features take {reason}: leave columns out."
            )
        self._products[place] = (inside, unit)


def symmetric_mean(products: FloatArray, n: int) -> FloatArray:
    """Return a sum of products divided by n, made exactly symmetric."""
    mean = products / n
    symmetric: FloatArray = (mean + mean.T) / 2
    return symmetric
