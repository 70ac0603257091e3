"""Rows as whole numbers, whose sensitivity can be proved on a computer.

A row is clipped to its public bounds, moved and divided by public numbers, scaled down to the
row-norm bound (or to length one, whatever its length) and truncated toward zero on a grid of
``2^-bits`` of the row-norm bound. However these steps round, each row is treated by itself. Its
squared length is then certified in whole numbers: at most ``2^(2 bits)``. Sums of whole numbers
have no rounding, so the sensitivity of X'X depends on the certified rows alone. A sum of doubles
has no such proof.
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
# Weights of entries on and off the diagonal. Their ratio 99/70 exceeds sqrt 2 by .005 %.
DIAGONAL_WEIGHT, OTHER_WEIGHT = 70, 99
# Rows are multiplied in doubles a few at a time: up to 20 bits, each partial sum is a whole number
# of at most 2^52 and so exact. A finer grid allows fewer rows at a time.
_EXACT = 2**53


class NeedsCoarserGrid(DpvizError):
    """Raised if there are too many rows for 64-bit whole numbers on the grid."""


def transform_of(stated: Entries) -> Transform:
    """Return the transform that bounds a row, in units of the row-norm bound.

    Parameters
    ----------
    stated : Entries
        Public entries: bounds of each feature, the numbers that are subtracted and divided by, and
        a row-norm bound (or `UNIT`). A private centre must be replaced by its public stand-in.
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
    """Return the row-norm bound of a release; 1 for rows of length one."""
    radius = 1.0 if stated.row_bound.value == UNIT else float(stated.row_bound.value)
    if not (0 < radius < np.inf):
        raise InvalidSetting("row-norm bound", "a finite number above 0", radius, "--row-bound")
    return radius


def within_limits(how: Transform) -> Transform:
    """Return the transform that bounds rows for a sum: ``how``, or its limits for unit rows.

    With limits, entries are in half widths over sqrt d, so that no row is longer than 1.
    """
    if not how.unit:
        return how
    width = (how.high / 2 - how.low / 2) * np.sqrt(len(how.low)) * (1 + 1e-12)
    return replace(how, center=how.low / 2 + how.high / 2, scale=width, unit=False)


def center_at(mean: FloatArray, how: Transform) -> FloatArray:
    """Return the table's centre for a mean of rows `within_limits`, shape (d,)."""
    to = within_limits(how)
    center: FloatArray = np.clip(to.center + mean * to.scale, to.low, to.high)
    return center


def bounded(rows: FloatArray, how: Transform) -> FloatArray:
    """Return finite rows in units of the row-norm bound, each no longer than 1 up to rounding."""
    with np.errstate(over="ignore"):  # A quotient that overflows only means that a row is long.
        # Each row lies together in memory, so its sum of squares does not depend on its position.
        return how.inside(np.ascontiguousarray(rows, dtype=np.float64))


def bits_for(n: int, bits: int | None) -> int:
    """Return the grid for n rows: the requested grid, or the finest usual grid that fits.

    Raises
    ------
    NeedsCoarserGrid
        If the weighted sums of n rows could exceed 2^62 on the grid.
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
        advice = f"; a grid of {fitting} bits allows this many" if fitting >= low else ""
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
        Finite rows, in the units of the table.
    how : Transform
        Transform whose scale includes the row-norm bound, as from `transform_of`.
    bits : int

    Returns
    -------
    ndarray of shape (n, d), int64
        Rows truncated toward zero, in units of ``row_bound / 2^bits``. Values outside the bounds
        are clipped; the number of clipped rows is not reported.
    """
    unit, most = float(2**bits), 4**bits
    whole: IntArray = np.trunc(bounded(rows, how) * unit).astype(np.int64)
    # Lengths are checked in whole numbers. A row that rounding left too long shrinks by one grid
    # step in each entry until it fits. |entry| <= 2^24 + 1, so squares are safe. Only a row that is
    # not finite has larger entries: they become 0 before their squares wrap around.
    whole[((whole > 2**bits + 1) | (whole < -(2**bits) - 1)).any(axis=1)] = 0
    for _ in range(4):
        long = (whole * whole).sum(axis=1) > most
        if not long.any():
            break
        whole[long] -= np.sign(whole[long])
    whole[(whole * whole).sum(axis=1) > most] = 0
    return whole


def second_moment(whole: IntArray, bits: int) -> IntArray:
    """Return the exact X'X of whole-number rows.

    Parameters
    ----------
    whole : ndarray of shape (n, d), int64
        Rows from `quantised`, on the same grid.
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
