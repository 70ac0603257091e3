"""Transform of raw rows to bounded rows: limit, centre, scale, clip.

Rows in memory, in batches of a file, behind a private preparation and on the grid of a release all
use this transform. So a preparation has the same meaning everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of, shortened
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Domain

_FAR = 1e100  # In units of the bound. A longer row is clipped, so that its squares are finite.


@dataclass(frozen=True, eq=False)
class Transform:
    """Transform of a raw row to a bounded row, by public or already released numbers.

    A row is clipped to the feature bounds, centred, divided by the scale, and clipped to the
    row-norm bound, which is then its unit.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
        Feature bounds, in units of the table; infinite without clipping.
    center, scale : ndarray of shape (d,)
        In table units. The scale may include the row-norm bound; ``row_bound`` is then 1.
    row_bound : float
        Row-norm bound in scaled units; infinite if row lengths are not limited.
    centered : bool
        Whether ``center`` is the mean.
    edge : float
        Expected largest eigenvalue of the noise on X'X, in squared row-norm bounds. If a private
        bound clips more rows than this number, clipping loses more than the saved noise.
    keep : ndarray of bool, shape (d_raw,), or None
        Columns in use; None if rows have no other columns.
    box : bool
        Whether cells are clipped to [-1, 1] instead of rows to a row-norm bound.
    unit : bool
        Whether every row is scaled to length one, so that no bound on lengths is needed.
    """

    low: FloatArray
    high: FloatArray
    center: FloatArray
    scale: FloatArray
    row_bound: float = 1.0
    centered: bool = False
    edge: float = 0.0
    keep: NDArray[np.bool_] | None = None
    box: bool = False
    unit: bool = False

    @cached_property
    def domain(self) -> Domain:
        """Set that contains every bounded row."""
        d = len(self.center)
        if self.box:
            return Domain.box(d)
        return Domain.ball(d) if math.isfinite(self.row_bound) else Domain.unbounded(d)

    @cached_property
    def changes(self) -> bool:
        """Whether the transform can change a row."""
        return bool(
            self.box
            or self.unit
            or math.isfinite(self.row_bound)
            or not (self.keep is None or self.keep.all())
            or np.isfinite(self.low).any()
            or np.isfinite(self.high).any()
            or self.center.any()
            or (self.scale != 1).any()
        )

    def require_bounds(self) -> None:
        """Raise `InvalidSetting` unless every feature has bounds, in order."""
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise InvalidSetting(
                "feature bounds", "finite if the preparation is private", "none", "--bounds"
            )
        if not (self.low <= self.high).all():
            raise InvalidSetting("feature bounds", "low below high", "high below low", "--bounds")

    def within(self, reach: float) -> Transform:
        """Return the same transform with bounds -reach and +reach for every feature."""
        side = np.full(len(self.low), reach)
        return replace(self, low=-side, high=side)

    def cut(self, rows: FloatArray) -> FloatArray:
        """Return rows clipped to the feature bounds, or the rows themselves without bounds."""
        if np.isfinite(self.low).any() or np.isfinite(self.high).any():
            rows = np.clip(rows, self.low, self.high)
        return rows

    def unbounded(self, rows: FloatArray) -> FloatArray:
        """Return rows in scaled units, without clipping.

        Steps that change nothing are skipped, so the result may be the input array.
        """
        z = rows if self.keep is None or self.keep.all() else rows[:, self.keep]
        z = self.cut(z)
        if self.center.any():
            z = z - self.center
        if (self.scale != 1).any():
            # Rows are divided in place to save memory, unless the array belongs to the caller.
            z = z / self.scale if z is rows else np.divide(z, self.scale, out=z)
        return z

    def bounded(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Return rows inside the domain, and the number of rows that were clipped."""
        return self.into_domain(self.unbounded(rows))

    def inside(self, rows: FloatArray) -> FloatArray:
        """Return rows inside the domain."""
        return self.bounded(rows)[0]

    def into_domain(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Return rows in scaled units clipped to the norm bound, or cells clipped to the box.

        Each result row depends on its own row only.
        """
        if self.unit:
            return shortened(rows, None), len(rows)
        # A row that is longer than the bound by one part in 1e12 counts as inside: it is rounding.
        tolerance = self.row_bound * (1 + 1e-12)
        if self.box:
            outside = (np.abs(rows) > tolerance).any(axis=1)
            return np.clip(rows, -1.0, 1.0), int(outside.sum())
        if not math.isfinite(self.row_bound):
            return rows, 0
        with np.errstate(invalid="ignore"):
            lengths = lengths_of(rows)
        beyond = ~np.isfinite(lengths)
        if beyond.any():  # Rows whose lengths overflow count as equally long.
            rows = rows.copy()
            rows[beyond] = np.clip(rows[beyond], -_FAR, _FAR)
            lengths[beyond] = lengths_of(rows[beyond])
        moved = int((lengths > tolerance).sum())
        if self.row_bound != 1:
            return rows / np.maximum(lengths, self.row_bound)[:, None], moved
        # Rounding may leave a row outside the ball by a last digit, so it is shortened again.
        over = lengths > 1
        if over.any():  # Only these few rows are copied.
            rows = rows.copy()
            rows[over] /= lengths[over, None]
        return rows, moved
