"""How a raw row becomes a bounded one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Domain


@dataclass(frozen=True, eq=False)
class Transform:
    """How a raw row becomes a bounded one: (x - center) / scale, then the bound.

    Attributes
    ----------
    keep : ndarray of bool, shape (d_raw,)
        Columns that are not constant.
    center, scale : ndarray of shape (d,)
        In units of the table; on a ball, ``scale`` includes the row bound R.
    domain : Domain
    """

    keep: NDArray[np.bool_]
    center: FloatArray
    scale: FloatArray
    domain: Domain

    def unbounded(self, rows: FloatArray) -> FloatArray:
        """Return rows in units of the bound, not yet forced inside it."""
        kept = rows if self.keep.all() else rows[:, self.keep]
        shifted: FloatArray = kept - self.center
        shifted /= self.scale
        return shifted

    def bounded(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Return rows inside the domain, and how many had to be moved there."""
        return into_domain(self.unbounded(rows), self.domain)

    def inside(self, rows: FloatArray) -> FloatArray:
        """Return rows inside the domain."""
        return self.bounded(rows)[0]


def into_domain(rows: FloatArray, domain: Domain) -> tuple[FloatArray, int]:
    """Scale long rows down to the ball, or clip cells to the box; all as it is without a bound."""
    if not domain.bounded:
        return rows, 0
    # One part in 1e12 over the bound is rounding, not a longer row.
    tolerance = 1 + 1e-12
    if domain.kind == "box":
        outside = (np.abs(rows) > tolerance).any(axis=1)
        return np.clip(rows, -1.0, 1.0), int(outside.sum())
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    outside = norms > tolerance
    # Rounding must not leave a row a last digit outside the ball.
    over = norms > 1.0
    if over.any():
        rows = rows.copy()
        rows[over] /= norms[over, None]
    return rows, int(outside.sum())
