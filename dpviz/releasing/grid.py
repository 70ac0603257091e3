"""Rows as whole numbers: what a sensitivity can be proved for on a computer.

A row is cut to its public bounds, moved and divided by public numbers, scaled down to the row bound
(or to length one, whatever its length) and truncated toward zero on a grid of ``2^-bits`` of it.
Whatever rounding did on the way, each row is treated by itself, and its squared length is certified
in whole numbers afterwards: at most ``2^(2 bits)``. Sums of whole numbers have no rounding, so the
sensitivity of X'X is that of the certified rows and of nothing else. A sum of doubles has no such
proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import shortened
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.preparation.transform import Transform

IntArray = NDArray[np.int64]

BITS_RANGE = (6, 24)
DEFAULT_BITS = 20
# Weights of the diagonal and of what is off it: 99/70 is at least sqrt 2, by .005 %.
DIAGONAL_WEIGHT, OTHER_WEIGHT = 70, 99
# Rows multiplied at a time by doubles: every partial sum is a whole number of at most 2^52 up to
# 20 bits, so it is exact in any order; on a finer grid the chunk shrinks.
_EXACT = 2**53


class NeedsCoarserGrid(DpvizError):
    """There are too many rows for whole numbers of 64 bits on this grid."""


@dataclass(frozen=True)
class Declared:
    """What is public about every row before anybody looks.

    Attributes
    ----------
    columns : tuple of str
        Names of the d features.
    low, high : tuple of float
        Public bounds of each feature; infinite where none is stated.
    center : tuple of float
        Public numbers that are subtracted.
    row_bound : float
        R, the largest length of a centred row, in units of the table or of the scale; 1 for rows of
        length one.
    scale : tuple of float
        Public numbers by which features are divided; empty for none.
    unit : bool
        Whether every row is scaled to length one, so that no bound on lengths is needed.
    """

    columns: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    center: tuple[float, ...]
    row_bound: float
    scale: tuple[float, ...] = ()
    unit: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.row_bound < np.inf):
            raise InvalidSetting(
                "row bound", "a finite number above 0", self.row_bound, "--row-bound"
            )
        if len(self.columns) < 2:
            raise InvalidSetting("features", "at least 2", len(self.columns))
        for name, low, high, center in zip(
            self.columns, self.low, self.high, self.center, strict=True
        ):
            if not low < high or not np.isfinite(center):
                raise InvalidSetting(
                    f"the bounds of {name[:60]!r}", "numbers with low below high", f"{low}, {high}"
                )

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.columns)

    @cached_property
    def transform(self) -> Transform:
        """How a row becomes a bounded one, in units of the row bound."""
        limits = np.array(self.low), np.array(self.high)
        scale = np.array(self.scale or (1.0,) * self.d) * self.row_bound
        return Transform(*limits, np.array(self.center), scale)

    @cached_property
    def in_limits(self) -> Declared:
        """What bounds each row for a sum: itself, or the stated limits where rows have no bound.

        Then entries are in half widths of the limits over sqrt d, so that no row is longer than 1.
        """
        if not self.unit:
            return self
        low, high = np.array(self.low), np.array(self.high)
        width = (high / 2 - low / 2) * np.sqrt(self.d) * (1 + 1e-12)
        center = low / 2 + high / 2
        return Declared(
            self.columns, self.low, self.high, tuple(center.tolist()), 1.0, tuple(width.tolist())
        )

    def bounded(self, rows: FloatArray) -> FloatArray:
        """Return finite rows in units of the row bound, each no longer than 1 up to rounding."""
        with np.errstate(over="ignore"):  # a quotient too large for a double is a long row
            # in the order of rows, so that each is summed up by itself wherever it stands
            ordered = np.ascontiguousarray(rows, dtype=np.float64)
            if self.unit:
                return shortened(self.transform.unbounded(ordered), None)
            return self.transform.inside(ordered)


def bits_for(n: int, bits: int | None) -> int:
    """Return the grid in force for n rows: the one asked for, or the finest usual one that fits.

    Raises
    ------
    NeedsCoarserGrid
        If the weighted sums of n rows could pass 2^62 on it.
    """
    asked = DEFAULT_BITS if bits is None else bits
    low, high = BITS_RANGE
    if not (low <= asked <= high):
        raise InvalidSetting("grid", f"a whole number from {low} to {high}", bits, "--grid")
    fitting = asked
    while fitting >= low and OTHER_WEIGHT * n * 4**fitting >= 2**62:
        fitting -= 1
    if fitting < low or (bits is not None and fitting < asked):
        most = (2**62 - 1) // (OTHER_WEIGHT * 4**asked)
        advice = f"; a grid of {fitting} bits takes them" if fitting >= low else ""
        raise NeedsCoarserGrid(
            f"n must be at most {most:,} on a grid of 2^-{asked}, so that sums fit 64 bits; got "
            f"{n:,}{advice}."
        )
    return fitting


def quantised(rows: FloatArray, declared: Declared, bits: int) -> IntArray:
    """Return rows as whole numbers whose squared lengths are at most 4^bits.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Finite, in units of the table.
    declared : Declared
    bits : int

    Returns
    -------
    ndarray of shape (n, d), int64
        Truncated toward zero, in units of ``row_bound / 2^bits``. What lay outside the bounds is
        cut to them; nobody is told how many rows that were.
    """
    unit, most = float(2**bits), 4**bits
    whole: IntArray = np.trunc(declared.bounded(rows) * unit).astype(np.int64)
    # Certified in whole numbers: truncation shrinks, and a row that rounding left too long shrinks
    # by one step of the grid in each entry until it fits. |entry| <= 2^24 + 1, so squares are safe.
    # What no double of a finite row can become is no row: 0 before its square could wrap around.
    whole[((whole > 2**bits + 1) | (whole < -(2**bits) - 1)).any(axis=1)] = 0
    for _ in range(4):
        long = (whole * whole).sum(axis=1) > most
        if not long.any():
            break
        whole[long] -= np.sign(whole[long])
    whole[(whole * whole).sum(axis=1) > most] = 0
    return whole


def second_moment(whole: IntArray, bits: int) -> IntArray:
    """Return X'X of whole-number rows, exactly.

    Parameters
    ----------
    whole : ndarray of shape (n, d), int64
        From `quantised`, on the same grid.
    bits : int

    Returns
    -------
    ndarray of shape (d, d), int64
    """
    n, d = whole.shape
    if n * 4**bits >= 2**63:
        raise NeedsCoarserGrid(f"n must be below {2**63 // 4**bits:,} on a grid of 2^-{bits}.")
    total = np.zeros((d, d), dtype=np.int64)
    chunk = max(1, (_EXACT - 1) // 4**bits)
    for start in range(0, n, chunk):
        block = whole[start : start + chunk].astype(np.float64)
        total += (block.T @ block).astype(np.int64)
    return total
