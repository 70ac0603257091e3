"""Sources of a fit's rows: an array, a sparse array, a file, a Dask frame, or sums of rows.

Sources are read in blocks, as often as the preparation and the release need, and never copied.
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
    BlocksAgain,
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
_CHECKED = 1 << 16  # Number of rows that are checked together.
_SORTED_ENTRIES = 1 << 19  # Maximum number of entries that are sorted by step together.
NOT_FINITE = "X must hold finite numbers; it has NaN or infinity (inf) in it: nothing was spent."


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a fit, which can be reduced block by block any number of times.

    Attributes
    ----------
    source : Foldable
    n, d : int
    dtype : dtype
        Type of the components: float32 for rows in float32, float64 for all others.
    array : ndarray or None
        The rows, if they are in memory.
    counts : ndarray of int or None
        Number of rows between neighbours on the grid of lengths, if the counting pass read a file
        or a frame.
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
                # One sum checks a whole block. The sum of finite numbers may overflow, so an
                # infinite sum only leads to a check of each number.
                suspicious = not np.isfinite(block.sum())
            if suspicious and not np.isfinite(block).all():
                raise InvalidTable(NOT_FINITE)
        dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
        n, d = array.shape
        return cls(InBlocks(array), n, d, dtype, array)

    @classmethod
    def of_batches(cls, source: Batches) -> Rows:
        """Return the rows of a source that is read in batches; one pass counts the rows."""
        seen = source.fold(Counts)
        # A fit uses every row, because a choice of rows would depend on the rows' values.
        if seen.dropped:
            raise InvalidTable(f"{source.name} has rows with missing values: nothing was spent.")
        if seen.rows < 2:
            raise InvalidTable(f"{source.name} must have at least 2 rows: nothing was spent.")
        d = len(source.columns)
        return cls(source, seen.rows, d, np.dtype(np.float64), counts=seen.counts)

    def lengths(self, change: Transform) -> Lengths:
        """Return the rows' statistics by length, after a transform of each row."""
        if not change.changes:
            return ReadAgain(self.source, self.n, self.d, self.counts)
        return ReadAgain(Changed(self.source, change.inside), self.n, self.d)

    def blocks(self, change: Transform) -> BlocksAgain:
        """Return an object that reads the rows again and transforms each row."""
        source = self.source
        assert isinstance(source, Batches), "an array has its rows in memory"
        return BlocksAgain(source.blocks, change.inside, self.d)


def file_rows(path: str | Path, columns: Sequence[str] | None) -> FileBatches:
    """Return the numeric columns of a Parquet file: all, or the named columns, in their order.

    Raises
    ------
    InvalidTable
        If the file is not Parquet, or a column does not hold numbers.
    InvalidSetting
        If a name is not the name of a column.
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
            raise InvalidSetting("columns", f"names of numeric columns of {Path(path).name}", name)
    wanted = numeric if columns is None else [name for name in numeric if name in columns]
    source = FileBatches(
        path, ReadOptions(leave_out=[name for name in schema.names if name not in wanted])
    )
    if list(source.columns) != wanted or len(wanted) < 2:
        raise InvalidTable(
            f"{source.name} must have at least 2 numeric columns, with numbers in their first "
            "rows: nothing was spent."
        )
    return source


class Changed:
    """Rows of a source, each after a transform.

    Parameters
    ----------
    source : Foldable
    change : callable
        Function from a block to a block with as many rows; must not modify its argument.
    """

    def __init__(self, source: Foldable, change: Callable[[FloatArray], FloatArray]) -> None:
        self._source, self._change = source, change

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all transformed rows."""
        change = self._change
        found: S = self._source.fold(lambda: _Passed(new(), change)).inner
        return found


class Summed:
    """Statistics by length of rows that come in several batches and are not stored.

    Parameters
    ----------
    d : int
    change : Transform
        Transform of each row before it is added.
    dtype : dtype
        Type of the first batch.
    """

    def __init__(self, d: int, change: Transform, dtype: np.dtype[Any]) -> None:
        self.sums, self.d, self._change, self.dtype = ByLength(d), d, change, dtype
        self._room = BlockMemory()

    def add(self, rows: Rows) -> None:
        """Add a batch of rows, either completely or not at all."""
        # A batch is summed up apart: if it fails half way, the total must not have a part of it.
        change = self._change
        source = rows.source
        if rows.array is not None:
            source = InBlocks(rows.array, entries=_SORTED_ENTRIES, room=self._room)
        if change.changes:
            source = Changed(source, change.inside)
        part = source.fold(lambda: ByLength(self.d, self.sums))
        self.sums.merge(part)


class _Passed:
    """A sum that adds each block after a transform."""

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
    """A number or an array of each block; two results are combined at a time.

    Attributes
    ----------
    value
        Combined result, or None if there are no rows.
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
        """Merge the result of the rows that follow."""
        self.rows += other.rows
        self.dropped += other.dropped
        if other.value is not None:
            self._take(other.value)

    def _take(self, value: Any) -> None:
        self.value = value if self.value is None else self._together(self.value, value)
