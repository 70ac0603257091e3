"""What rows tell by their lengths: how many are longer than a radius, and the moment clipped there.

Mechanisms that bound each row by themselves ask for no more, and for radii on one grid alone, so
rows that are not in memory serve as well: in two passes where they can be read again, in one by
sums for each step of the grid where they cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable
from dpviz.core.memory import too_much

PER_OCTAVE = 8
_LOW, _HIGH = -33 * PER_OCTAVE, 56 * PER_OCTAVE
_STEPS = np.arange(_LOW, _HIGH + 1)
GRID: FloatArray = np.ldexp(2.0 ** (_STEPS % PER_OCTAVE / PER_OCTAVE), _STEPS // PER_OCTAVE)
"""The radii, 2^(j/8), ascending: whole powers of 2 exactly."""

_ROOM = 1 + 4 * np.finfo(np.float64).eps  # one rounding to the safe side: no unit row is longer
_SMALL, _LARGE = 1e-280, 1e280  # squared lengths of rows that need no care
_BLOCK_ENTRIES = 1 << 17  # 1 MiB of numbers: a block stays in the processor's cache
_ASK_FROM = 1 << 28  # bytes from which free memory is looked up


class Lengths(Protocol):
    """What rows tell by their lengths."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows lie between neighbours on the grid, shape (len(GRID) + 1,)."""

    def moment(self, radius: float | None) -> FloatArray:
        """Return the mean of a uu' over u = x/|x|, a = min(1, |x|^2/radius^2), shape (d, d).

        Without a radius a is 1. Zero rows stay zero.
        """

    def everything(self) -> FloatArray:
        """Return the mean of xx', shape (d, d)."""


def longer(lengths: Lengths, radii: FloatArray) -> FloatArray:
    """Return how many rows are longer than each radius on the grid.

    One row moves each number by at most 1.
    """
    up_to = np.cumsum(lengths.counts)
    found: FloatArray = (up_to[-1] - up_to[_places(radii)]).astype(np.float64)
    return found


def at_rank(lengths: Lengths, rank: float) -> float:
    """Return the least radius on the grid that no more rows are longer than the rank says."""
    few = longer(lengths, GRID) <= rank
    return float(GRID[int(np.argmax(few)) if few.any() else -1])


def _places(radii: FloatArray) -> NDArray[np.intp]:
    steps = np.log2(radii) * PER_OCTAVE
    places: NDArray[np.intp] = np.rint(steps).astype(np.intp) - _LOW
    if (
        np.abs(steps - np.rint(steps)).max(initial=0) > 1e-9
        or not ((places >= 0) & (places < len(GRID))).all()
    ):
        raise ValueError("rows by their lengths know radii on their grid alone")
    return places


def lengths_of(rows: FloatArray) -> FloatArray:
    """Return the length of each row, infinite where it is no ordinary number, shape (n,)."""
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        lengths: FloatArray = np.sqrt(squares)
        odd = _odd(squares)
        if odd.any():
            # scaled first: the square of an entry of 1e-200 vanishes, and that of 1e200 overflows
            largest, unit = _scaled(rows[odd])
            lengths[odd] = largest * np.sqrt(np.square(unit).sum(axis=1))
    return lengths


def shortened(rows: FloatArray, radius: float | None) -> FloatArray:
    """Return x/radius, of longer rows x/|x|, and of all rows that without a radius, shape (n, d).

    Each is a function of its own row alone, of length at most 1; zero rows stay zero.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        divisor = np.sqrt(squares)
        if radius is not None:
            np.maximum(divisor, radius, out=divisor)
        divisor *= _ROOM
        short: FloatArray = rows / divisor[:, None]
        odd = _odd(squares)
        if odd.any():
            largest, unit = _scaled(rows[odd])
            size = np.sqrt(np.square(unit).sum(axis=1))
            part = 1.0 if radius is None else np.minimum(1.0, largest * size / radius)[:, None]
            short[odd] = unit / (np.where(size > 0, size, 1.0) * _ROOM)[:, None] * part
    return short


def _odd(squares: FloatArray) -> NDArray[np.bool_]:
    return ~((squares > _SMALL) & (squares < _LARGE))


def _scaled(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest size in each row, and rows divided by it; zero rows stay zero."""
    largest = np.abs(rows).max(axis=1)
    return largest, rows / np.where(largest > 0, largest, 1.0)[:, None]


def _counted(lengths: FloatArray) -> NDArray[np.int64]:
    bins = np.searchsorted(GRID, lengths, side="left")
    counts: NDArray[np.int64] = np.bincount(bins, minlength=len(GRID) + 1)
    return counts


class _Counts:
    """How many rows lie between neighbours on the grid: a sum over blocks of rows."""

    def __init__(self) -> None:
        self.rows = self.dropped = 0
        self.counts = np.zeros(len(GRID) + 1, dtype=np.int64)

    def add(self, block: FloatArray, start: int) -> None:
        self.rows += len(block)
        self.counts += _counted(lengths_of(block))

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.dropped += other.dropped
        self.counts += other.counts


class _Products:
    """The sum of xx', of rows as they are or shortened: a sum over blocks of rows."""

    def __init__(self, d: int, shorten: bool, radius: float | None) -> None:
        self.rows = self.dropped = 0
        self.shorten, self.radius = shorten, radius
        self.products = np.zeros((d, d))

    def add(self, block: FloatArray, start: int) -> None:
        self.rows += len(block)
        if self.shorten:
            block = shortened(block, self.radius)
        self.products += block.T @ block

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.dropped += other.dropped
        self.products += other.products


class FoldSum(Protocol):
    """A sum over blocks of rows that merges with another."""

    rows: int
    dropped: int

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block; ``start`` is the number of its first row."""

    def merge(self, other: Self) -> None:
        """Add the sum of the rows that follow."""


S = TypeVar("S", bound=FoldSum)


class Foldable(Protocol):
    """Rows that can be folded into a sum any number of times, in the same order."""

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows; ``new`` makes an empty one."""


class InBlocks:
    """Rows of an array, folded a block at a time, each block in doubles.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Of any type of real numbers.
    change : callable, optional
        What each row becomes, from a block to a block of as many rows.
    d : int, optional
        Features after the change, if that has another number.
    """

    def __init__(
        self,
        rows: NDArray[np.generic],
        change: Callable[[FloatArray], FloatArray] | None = None,
        d: int | None = None,
    ) -> None:
        self._rows, self._change = rows, change
        self._d = rows.shape[1] if d is None else d

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the number of the first row of each block, and the block."""
        step = max(256, _BLOCK_ENTRIES // max(self._d, 1))
        for start in range(0, len(self._rows), step):
            block = np.asarray(self._rows[start : start + step], dtype=np.float64)
            yield start, block if self._change is None else self._change(block)

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows."""
        total = new()
        for start, block in self.blocks():
            total.add(block, start)
        return total


class ReadAgain:
    """What rows tell by their lengths, in one pass for the lengths and one for each radius.

    Parameters
    ----------
    source : Foldable
    n, d : int
    """

    def __init__(self, source: Foldable, n: int, d: int) -> None:
        self._source, self.n, self._d = source, n, d

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many rows lie between neighbours on the grid."""
        return self._source.fold(_Counts).counts

    def moment(self, radius: float | None) -> FloatArray:
        """Return the second moment of shortened rows."""
        return self._mean(shorten=True, radius=radius)

    def everything(self) -> FloatArray:
        """Return the second moment of the rows."""
        return self._mean(shorten=False, radius=None)

    def _mean(self, *, shorten: bool, radius: float | None) -> FloatArray:
        d = self._d
        products = self._source.fold(lambda: _Products(d, shorten, radius)).products
        return symmetric_mean(products, self.n)


class ByLength:
    """The same from sums for each step of the grid, which need every row once.

    Parameters
    ----------
    d : int

    Raises
    ------
    InvalidTable
        If this machine has no memory for them.
    """

    def __init__(self, d: int) -> None:
        self.rows = self.dropped = 0
        self.d = d
        self.counts = np.zeros(len(GRID) + 1, dtype=np.int64)
        # by place: of rows in units of the end of their step, and of unit rows
        self._products: dict[int, tuple[FloatArray, FloatArray]] = {}

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of rows."""
        self.rows += len(block)
        lengths = lengths_of(block)
        self.counts += _counted(lengths)
        places = np.searchsorted(GRID, lengths, side="left")
        order = np.argsort(places, kind="stable")
        places, unit = places[order], shortened(block, None)[order]
        with np.errstate(under="ignore"):
            within = lengths[order] / GRID[np.minimum(places, len(GRID) - 1)]
            inside = unit * np.minimum(within, 1.0)[:, None]
        ends = [0, *(np.flatnonzero(np.diff(places)) + 1), len(places)]
        for first, stop in pairwise(ends):
            rows, ones = inside[first:stop], unit[first:stop]
            self._add(int(places[first]), rows.T @ rows, ones.T @ ones)

    def merge(self, other: Self) -> None:
        """Add the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.counts += other.counts
        for place, pair in other._products.items():
            self._add(place, *pair)

    @property
    def arrays(self) -> list[FloatArray]:
        """All that it holds, in order."""
        held = [self._products[place] for place in sorted(self._products)]
        return [self.counts.astype(np.float64), *(array for pair in held for array in pair)]

    def moment(self, radius: float | None) -> FloatArray:
        """Return the second moment of shortened rows, at a radius on the grid."""
        last = -1 if radius is None else int(_places(np.array([radius]))[0])
        total = np.zeros((self.d, self.d))
        for place in sorted(self._products):
            inside, unit = self._products[place]
            total += unit if place > last else inside * (GRID[place] / GRID[last]) ** 2
        return symmetric_mean(total, self.rows)

    def everything(self) -> FloatArray:
        """Return the second moment of the rows, of which those beyond the grid count as its end."""
        total = np.zeros((self.d, self.d))
        for place in sorted(self._products):
            total += self._products[place][0] * GRID[min(place, len(GRID) - 1)] ** 2
        return symmetric_mean(total, self.rows)

    def _add(self, place: int, inside: FloatArray, unit: FloatArray) -> None:
        held = self._products.get(place)
        if held is not None:
            held[0][...] += inside
            held[1][...] += unit
            return
        size = 16.0 * self.d**2
        if size * (len(self._products) + 1) > _ASK_FROM and (reason := too_much(size)):
            raise InvalidTable(
                f"rows of {self.d:,} features by their lengths take {reason}: leave columns out."
            )
        self._products[place] = (inside, unit)


def symmetric_mean(products: FloatArray, n: int) -> FloatArray:
    """Return a sum of products over n, symmetric to the last bit."""
    mean = products / n
    symmetric: FloatArray = (mean + mean.T) / 2
    return symmetric
