"""Rows as whole numbers: what a sensitivity can be proved for on a computer.

A row is cut to its public bounds, moved and divided by public numbers, scaled down to the row bound
(or to length one, whatever its length) and truncated toward zero on a grid of ``2^-bits`` of it.
Whatever rounding did on the way, each row is treated by itself, and its squared length is certified
in whole numbers afterwards: at most ``2^(2 bits)``. Sums of whole numbers have no rounding, so the
sensitivity of X'X is that of the certified rows and of nothing else. A sum of doubles has no such
proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import UNIT, Entries
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


def transform_of(stated: Entries) -> Transform:
    """Return how a row becomes a bounded one, in units of the row bound.

    Parameters
    ----------
    stated : Entries
        Public: bounds of each feature, the numbers that are subtracted and divided by, and a row
        bound (or `UNIT`). A centre that is paid for is the one that stands for it.
    """
    limits, radius = stated.bounds.value, row_bound_in(stated)
    low, high = np.array(limits.low), np.array(limits.high)
    center = np.array(stated.center.value)
    if len(low) < 2:
        raise InvalidSetting("features", "at least 2", len(low))
    legal = (low < high) & np.isfinite(center)
    if not legal.all():
        at = int(np.argmin(legal))
        raise InvalidSetting(
            f"the bounds of {limits.names[at][:60]!r}", "numbers with low below high",
            f"{low[at]}, {high[at]}",
        )  # fmt: skip
    scale = np.broadcast_to(np.array(stated.scale.value or 1.0) * radius, low.shape)
    return Transform(low, high, center, scale, unit=stated.row_bound.value == UNIT)


def row_bound_in(stated: Entries) -> float:
    """Return the row bound of a release; 1 for rows of length one."""
    radius = 1.0 if stated.row_bound.value == UNIT else float(stated.row_bound.value)
    if not (0 < radius < np.inf):
        raise InvalidSetting("row bound", "a finite number above 0", radius, "--row-bound")
    return radius


def within_limits(how: Transform) -> Transform:
    """Return what bounds each row for a sum: the same, or the limits where rows have no bound.

    Then entries are in half widths of the limits over sqrt d, so that no row is longer than 1.
    """
    if not how.unit:
        return how
    width = (how.high / 2 - how.low / 2) * np.sqrt(len(how.low)) * (1 + 1e-12)
    return replace(how, center=how.low / 2 + how.high / 2, scale=width, unit=False)


def center_at(mean: FloatArray, how: Transform) -> FloatArray:
    """Return the centre of the table that a mean of rows `within_limits` is, shape (d,)."""
    to = within_limits(how)
    center: FloatArray = np.clip(to.center + mean * to.scale, to.low, to.high)
    return center


def bounded(rows: FloatArray, how: Transform) -> FloatArray:
    """Return finite rows in units of the row bound, each no longer than 1 up to rounding."""
    with np.errstate(over="ignore"):  # a quotient too large for a double is a long row
        # in the order of rows, so that each is summed up by itself wherever it stands
        return how.inside(np.ascontiguousarray(rows, dtype=np.float64))


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


def quantised(rows: FloatArray, how: Transform, bits: int) -> IntArray:
    """Return rows as whole numbers whose squared lengths are at most 4^bits.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Finite, in units of the table.
    how : Transform
        With the row bound in its scale, as `transform_of` has it.
    bits : int

    Returns
    -------
    ndarray of shape (n, d), int64
        Truncated toward zero, in units of ``row_bound / 2^bits``. What lay outside the bounds is
        cut to them; nobody is told how many rows that were.
    """
    unit, most = float(2**bits), 4**bits
    whole: IntArray = np.trunc(bounded(rows, how) * unit).astype(np.int64)
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
