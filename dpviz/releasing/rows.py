"""Where the rows of a fit are: an array, a sparse one, a file, a Dask frame, or sums of rows.

All are read in blocks, as often as the preparation and the release ask, and none is copied whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import (
    BlockMemory,
    ByLength,
    Counts,
    Foldable,
    FoldSum,
    InBlocks,
    Lengths,
    ReadAgain,
)
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.datasets.batches import Batches, FileBatches
from dpviz.datasets.table import ReadOptions
from dpviz.preparation.transform import Transform

S = TypeVar("S", bound=FoldSum)
_CHECKED = 1 << 16  # rows that are looked at together
_SORTED_ENTRIES = 1 << 19  # that are sorted together by their steps, each with rows enough for BLAS
NOT_FINITE = "X must hold finite numbers; it has NaN or infinity (inf) in it: nothing was spent."


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a fit, which can be folded any number of times.

    Attributes
    ----------
    source : Foldable
    n, d : int
    dtype : dtype
        What components are given in: float32 of rows in float32, float64 of all others.
    array : ndarray or None
        Where they are in memory.
    counts : ndarray of int or None
        How many lie between neighbours on the grid of lengths, where the pass that counts them
        read a file or a frame.
    """

    source: Foldable
    n: int
    d: int
    dtype: np.dtype[Any]
    array: NDArray[Any] | None = None
    counts: NDArray[np.int64] | None = None

    @classmethod
    def of_array(cls, array: NDArray[Any]) -> Rows:
        """Return the rows of an array of finite numbers, shape (n, d)."""
        for start in range(0, len(array), _CHECKED):
            block = array[start : start + _CHECKED]
            with np.errstate(over="ignore", invalid="ignore"):
                # one sum tells of a whole block; finite numbers may overflow it too, so it only
                # raises a doubt
                suspicious = not np.isfinite(block.sum())
            if suspicious and not np.isfinite(block).all():
                raise InvalidTable(NOT_FINITE)
        dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
        n, d = array.shape
        return cls(InBlocks(array), n, d, dtype, array)

    @classmethod
    def of_batches(cls, source: Batches) -> Rows:
        """Return the rows of a source that is read in batches; one pass counts them."""
        seen = source.fold(Counts)
        # a fit releases all rows: which ones were left out would depend on their cells
        if seen.dropped:
            raise InvalidTable(f"{source.name} has rows with gaps: nothing was spent.")
        if seen.rows < 2:
            raise InvalidTable(f"{source.name} must have at least 2 rows: nothing was spent.")
        d = len(source.columns)
        return cls(source, seen.rows, d, np.dtype(np.float64), counts=seen.counts)

    def lengths(self, change: Transform) -> Lengths:
        """Return what the rows tell by their lengths after a change of each."""
        if not change.changes:
            return ReadAgain(self.source, self.n, self.d, self.counts)
        return ReadAgain(Changed(self.source, change.inside), self.n, self.d)


def file_rows(path: str | Path, columns: Sequence[str] | None) -> FileBatches:
    """Return the numeric columns of a Parquet file, by its schema or as named, in their order.

    Raises
    ------
    InvalidTable
        If it is no Parquet file, or a column holds no numbers.
    InvalidSetting
        If a name is none of its columns.
    """
    try:
        schema = parquet.read_schema(path)
    except FileNotFoundError:
        raise InvalidTable(
            f"{Path(path).name} cannot be opened: there is no such file; nothing was spent."
        ) from None
    except (pa.ArrowException, OSError):
        raise InvalidTable(
            f"{Path(path).name} must be a Parquet file, whose schema says what columns hold: "
            "nothing was spent."
        ) from None
    numeric = [
        field.name
        for field in schema
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_boolean(field.type)
    ]
    for name in columns or ():
        if name not in numeric:
            raise InvalidSetting("columns", f"among the numeric columns of {Path(path).name}", name)
    wanted = numeric if columns is None else [name for name in numeric if name in columns]
    source = FileBatches(
        path, ReadOptions(leave_out=[name for name in schema.names if name not in wanted])
    )
    if list(source.columns) != wanted or len(wanted) < 2:
        raise InvalidTable(
            f"{source.name} must have at least 2 numeric columns that hold numbers from the start: "
            "nothing was spent."
        )
    return source


class Changed:
    """Rows of a source after a change of each.

    Parameters
    ----------
    source : Foldable
    change : callable
        From a block to a block of as many rows; it leaves the one it is given as it is.
    """

    def __init__(self, source: Foldable, change: Callable[[FloatArray], FloatArray]) -> None:
        self._source, self._change = source, change

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all changed rows."""
        change = self._change
        found: S = self._source.fold(lambda: _Passed(new(), change)).inner
        return found


class Summed:
    """Rows that were given a part at a time and not kept: what they tell by their lengths.

    Parameters
    ----------
    d : int
    change : Transform
        What is done to each row first.
    dtype : dtype
        Of the first part.
    """

    def __init__(self, d: int, change: Transform, dtype: np.dtype[Any]) -> None:
        self.sums, self.d, self._change, self.dtype = ByLength(d), d, change, dtype
        self._room = BlockMemory()

    def add(self, rows: Rows) -> None:
        """Add some rows, all of them or none."""
        # a part that fails half way would be in the sums without anybody's knowing
        change = self._change
        source = rows.source
        if rows.array is not None:
            source = InBlocks(rows.array, entries=_SORTED_ENTRIES, room=self._room)
        if change.changes:
            source = Changed(source, change.inside)
        part = source.fold(lambda: ByLength(self.d, self.sums))
        self.sums.merge(part)


class _Passed:
    """A sum that adds each block after a change."""

    def __init__(self, inner: Any, change: Callable[[FloatArray], FloatArray]) -> None:
        self.inner, self._change = inner, change

    @property
    def rows(self) -> int:
        return int(self.inner.rows)

    @rows.setter
    def rows(self, count: int) -> None:
        self.inner.rows = count

    @property
    def dropped(self) -> int:
        return int(self.inner.dropped)

    @dropped.setter
    def dropped(self, count: int) -> None:
        self.inner.dropped = count

    def add(self, block: FloatArray, start: int) -> None:
        self.inner.add(self._change(block), start)

    def merge(self, other: Self) -> None:
        self.inner.merge(other.inner)


class Reduced:
    """A number or an array of each block, brought together two at a time.

    Attributes
    ----------
    value
        None of no rows.
    """

    def __init__(
        self, of: Callable[[FloatArray], Any], together: Callable[[Any, Any], Any]
    ) -> None:
        self.rows = self.dropped = 0
        self.value: Any = None
        self._of, self._together = of, together

    def add(self, block: FloatArray, start: int) -> None:
        """Add a block of rows."""
        self.rows += len(block)
        self._take(self._of(block))

    def merge(self, other: Self) -> None:
        """Add the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        if other.value is not None:
            self._take(other.value)

    def _take(self, value: Any) -> None:
        self.value = value if self.value is None else self._together(self.value, value)
