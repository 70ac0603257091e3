"""Rows that no array holds: of a Dask DataFrame, summed where its partitions are, or sparse ones.

Dask is imported once a frame is at hand, and not before: it is an extra.
Partitions are computed by whatever scheduler the caller has set up, a cluster
or the threads of one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy import sparse

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable
from dpviz.datasets.columns import listed
from dpviz.preparation.batches import complete
from dpviz.preparation.sums import RowSummary, Sum

S = TypeVar("S", bound=Sum)

_BLOCK_CELLS = 1 << 19
_DIGITS_KEPT = 1e-3  # of a column's sum of squares, what must be left of it about its mean


class FrameBatches:
    """The numeric rows of a Dask DataFrame; rows with gaps are left out.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    name : str
        What messages and results call it.

    Attributes
    ----------
    columns : tuple of str
        Names of the numeric columns.
    notes : tuple of str
        What was left out, as sentences.
    """

    def __init__(self, frame: Any, name: str = "frame") -> None:
        self.name = self.called = name
        numeric = [
            column
            for column, kind in frame.dtypes.items()
            if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)
        ]
        other = [str(column) for column in frame.columns if column not in set(numeric)]
        self.columns = tuple(str(column) for column in numeric)
        self.notes = (f"Left out as text or dates: {listed(other)}.",) if other else ()
        if len(self.columns) < 2:
            raise InvalidTable(
                f"{name} must have at least 2 numeric columns; it has {len(self.columns)}."
            )
        self._frame = frame[numeric]
        self._starts: list[int] | None = None

    def _partitions(self) -> list[Any]:
        """Return one delayed data frame per partition, in order."""
        return list(self._frame.to_delayed())

    def _named(self, partition: int) -> str:
        return f"partition {partition + 1} of {self.name}"

    def first(self) -> FloatArray:
        """Return the first rows without gaps; empty if there are none."""
        for number, part in enumerate(self._partitions()):
            rows = _rows(part.compute(), self._named(number), self.columns)[0]
            if len(rows):
                return rows
        return np.zeros((0, len(self.columns)))

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows: one sum per partition, merged in their order."""
        parts = self._partitions()
        # Row numbers are known after the first pass, and nothing before it asks for them.
        starts = self._starts or [0] * len(parts)
        sums: list[S] = _compute(
            _delayed(_partition_sum)(part, start, new, self._named(number), self.columns)
            for number, (part, start) in enumerate(zip(parts, starts, strict=True))
        )
        if self._starts is None:
            self._starts = [0, *np.cumsum([part.rows for part in sums])[:-1].tolist()]
        total = new()
        for part in sums:
            total.merge(part)
        return total


class SparseRows:
    """The rows of a sparse matrix; those with gaps are left out.

    Parameters
    ----------
    matrix : sparse matrix or array of SciPy, shape (n, d)
    name : str

    Attributes
    ----------
    columns : tuple of str
    notes : tuple of str
        None: nothing is left out.

    Raises
    ------
    InvalidTable
        If it has another shape, or holds no real numbers.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, matrix: Any, name: str = "array") -> None:
        if matrix.ndim != 2:
            raise InvalidTable(f"array must have the shape (n, d); it has {matrix.ndim} dimension.")
        if matrix.dtype.kind not in "biuf":
            raise InvalidTable(f"array must hold real numbers; its dtype is {matrix.dtype}.")
        self.name = self.called = name
        self.columns = tuple(f"column {j + 1}" for j in range(matrix.shape[1]))
        self._matrix = sparse.csr_array(matrix, dtype=np.float64)

    def summary(self) -> RowSummary | None:
        """Return what one pass over the rows finds, from X'X; None where that would lose digits.

        Centring takes n m m' off X'X: of a column far from zero, little but rounding is left.
        """
        X, (n, d) = self._matrix, self._matrix.shape
        if n < 2 or not np.isfinite(X.data).all():
            return None
        found = RowSummary(np.zeros(d), np.zeros(d))
        found.rows, found.offset = n, np.asarray(X.mean(axis=0)).ravel()
        found.low, found.high = (side(axis=0).toarray().ravel() for side in (X.min, X.max))
        total = (X.T @ X).toarray()
        found.scatter = total - n * np.outer(found.offset, found.offset)
        sound = np.diag(found.scatter) > _DIGITS_KEPT * np.diag(total)
        return found if (sound | (found.low == found.high)).all() else None

    def first(self) -> FloatArray:
        """Return the first rows without gaps; empty if there are none."""
        return next((rows for rows, _, _ in self._blocks() if len(rows)), np.zeros((0, 0)))

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows, of which few are dense at a time."""
        total, start = new(), 0
        for rows, dropped, start in self._blocks():
            total.dropped += dropped
            if len(rows):
                total.add(rows, start)
        return total

    def _blocks(self) -> Iterator[tuple[FloatArray, int, int]]:
        """Yield complete rows, how many were not, and the number of the first of them."""
        size, start = max(256, _BLOCK_CELLS // max(len(self.columns), 1)), 0
        for at in range(0, self._matrix.shape[0], size):
            block = self._matrix[at : at + size].toarray()
            rows, dropped = complete(block, None, self.name, self.columns, at)
            yield rows, dropped, start
            start += len(rows)


def _delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    import dask

    made: Callable[..., Any] = dask.delayed(function, pure=False)
    return made


def _compute(tasks: Any) -> list[Any]:
    import dask

    return list(dask.compute(*tasks))


def _rows(frame: pd.DataFrame, name: str, columns: tuple[str, ...]) -> tuple[FloatArray, int]:
    """Return the complete rows of a partition, and how many were not."""
    rows = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return complete(rows, None, name, columns, 0)


def _partition_sum(
    frame: pd.DataFrame, start: int, new: Callable[[], S], name: str, columns: tuple[str, ...]
) -> S:
    rows, dropped = _rows(frame, name, columns)
    total = new()
    total.dropped += dropped
    size = max(256, _BLOCK_CELLS // len(columns))
    for at in range(0, len(rows), size):
        total.add(rows[at : at + size], start + at)
    return total
