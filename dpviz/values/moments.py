"""The second moment: all that most mechanisms ever see of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpviz.base.arrays import FloatArray, fix_signs


@dataclass(frozen=True, eq=False)
class SecondMoment:
    """A = X'X/n of n bounded rows.

    Attributes
    ----------
    A : ndarray of shape (d, d)
        Symmetric positive semi-definite, read-only, in units of the squared
        row bound (the unit ball or the cube).
    n : int
        Rows the moment stands for.
    rows : ndarray of shape (n, d) or None
        The bounded rows, where they are still at hand; only mechanisms whose
        ``info.needs_rows`` says so read them.
    """

    A: FloatArray
    n: int
    rows: FloatArray | None = None

    def __post_init__(self) -> None:
        self.A.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy made in another process is as read-only as the original.
        self.__dict__.update(state)
        self.A.setflags(write=False)

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.A)

    @cached_property
    def _eigen(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh(self.A)
        values, vectors = values[::-1].copy(), fix_signs(vectors[:, ::-1])
        values.setflags(write=False)
        vectors.setflags(write=False)
        return values, vectors

    @property
    def eigenvalues(self) -> FloatArray:
        """Eigenvalues of A, shape (d,), descending."""
        return self._eigen[0]

    @property
    def eigenvectors(self) -> FloatArray:
        """Eigenvectors of A as columns, shape (d, d), in the same order."""
        return self._eigen[1]

    @property
    def total(self) -> float:
        """Total variance, the trace of A."""
        return float(np.trace(self.A))
