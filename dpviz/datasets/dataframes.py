"""Read data in memory: Arrow frames, arrays, sparse matrices and Dask frames.

Data in an array become a `Table`; rows in other inputs are summed where they are stored. Messages
name a column and its kind but never show a cell. Dask is an optional extra, so it is imported only
for Dask frames. The caller's scheduler computes the partitions, on a cluster or on the threads of
one machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import S
from dpviz.core.errors import InvalidSetting, InvalidTable, printable
from dpviz.datasets.batches import Batches, block_rows, check_batches, complete
from dpviz.datasets.check import advised
from dpviz.datasets.columns import listed
from dpviz.datasets.files import parsed
from dpviz.datasets.raw import RawTable
from dpviz.datasets.table import ReadOptions, Table


def name_at_hand(table: object) -> str | None:
    """Return the name of an object in memory for the settings; None for anything but a table."""
    if isinstance(table, Table):
        return table.name
    if _is_array(table) or _is_sparse(table):
        return "array"
    return "frame" if is_frame(table) or _is_dask(table) or _is_bunch(table) else None


def table_at_hand(table: Any, reading: ReadOptions) -> Table:
    """Return an object in memory as a table, read by the options; lazy frames are computed.

    Parameters
    ----------
    table : Table, frame, array, Bunch or sparse matrix
        An object in memory; a Dask frame is computed.
    reading : ReadOptions
    """
    if _is_sparse(table):
        table = table.toarray()
    if _is_dask(table):
        table = table.compute()
    if _is_bunch(table):
        table = _frame_of_bunch(table, reading.label)
    if isinstance(table, Table):
        return table.as_read(reading)
    if _is_array(table):
        return table_of_array(_array_of(table)).as_read(reading)
    raw = read_frame(table).stated(reading)
    reading, notes = advised(raw, reading)
    return raw.to_table(reading).noting(notes)


def rows_not_held(table: Any, reading: ReadOptions) -> Batches | None:
    """Return the rows of a Dask frame or a sparse matrix in batches; None for anything else.

    Raises
    ------
    InvalidSetting
        If the reading asks for a label, or needs all rows in memory.
    """
    if not (_is_dask(table) or _is_sparse(table)):
        return None
    check_batches(reading)
    if _is_dask(table):
        if reading.label is not None:
            raise InvalidSetting("label", "None for a Dask frame: drop that column", reading.label)
        return FrameBatches(table)
    for name, value in (("label", reading.label), ("leave out", ",".join(reading.leave_out or ()))):
        if value:
            rule = "left out for a sparse matrix, whose columns have no names"
            raise InvalidSetting(name, rule, value)
    return SparseRows(table)


# In memory ------------------------------------------------------------------------------------


def is_frame(table: object) -> bool:
    """Return whether `read_frame` accepts an object: an Arrow frame, or a lazy frame."""
    # Require columns, because a single column supports Arrow's interface too.
    columns = hasattr(type(table), "columns") or isinstance(table, pa.Table)
    return columns and any(hasattr(type(table), x) for x in ("__arrow_c_stream__", "collect"))


def read_frame(frame: Any, name: str = "frame") -> RawTable:
    """Return a data frame as a parsed table, and copy as little as possible.

    Parameters
    ----------
    frame : DataFrame
        A frame from pandas, polars, duckdb or any library with Arrow streams; a lazy frame is
        collected. A pandas index is not read as a column.
    name : str
        Name of the table, also in messages.

    Raises
    ------
    InvalidTable
        If a column mixes kinds of values, or there are fewer than two rows.
    """
    if not hasattr(type(frame), "__arrow_c_stream__"):
        frame = frame.collect()
    titles = [*map(str, frame.columns)] if isinstance(frame, pd.DataFrame) else None
    if titles is not None:
        # pandas names may repeat, and its index is not a column. Arrow has no sparse columns.
        frame = frame.set_axis(range(len(titles)), axis=1).reset_index(drop=True)
        kinds = frame.dtypes.items()
        few = {j: kind.subtype for j, kind in kinds if isinstance(kind, pd.SparseDtype)}
        frame = frame.astype(few) if few else frame
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        at = re.search(r"column (\d+) with", " ".join(map(str, error.args)))
        which = f"column '{printable(titles[int(at[1])])}'" if titles and at else "each column"
        raise InvalidTable(
            f"{which} of {name} must hold one kind of values: numbers, text, dates or true and "
            "false."
        ) from None
    return parsed(name, table.rename_columns(titles) if titles else table)


def table_of_array(array: np.ndarray[Any, Any], name: str = "array") -> Table:
    """Return a NumPy array of shape (n, d) as a table.

    Parameters
    ----------
    array : ndarray of shape (n, d)
        An array of finite numbers; its features are named column 1, column 2 and so on.
    name : str
        Name of the table, also in messages.

    Raises
    ------
    InvalidTable
        If the array has another shape, is not numeric, or has missing or infinite values.
    """
    _check_array(array, name)
    # Copy the array: a table must not change, but the caller may change the array.
    rows = np.array(array, dtype=np.float64, order="C")
    if not np.isfinite(rows).all():
        at = int(np.argmin(np.isfinite(rows).all(axis=0)))
        raise InvalidTable(
            f"{name} must hold finite numbers; column {at + 1} has a missing or infinite value. "
            "Only data frames may have missing values."
        )
    return Table(name, rows, tuple(_titles(rows.shape[1])))


def _check_array(array: Any, name: str) -> None:
    """Raise InvalidTable unless an array has two dimensions and holds real numbers."""
    count = getattr(array, "ndim", "no")
    if count != 2:
        dimensions = "dimension" if count == 1 else "dimensions"
        raise InvalidTable(f"{name} must have the shape (n, d); it has {count} {dimensions}.")
    if array.dtype.kind not in "biuf":
        raise InvalidTable(f"{name} must hold real numbers; its dtype is {array.dtype}.")
    if np.ma.is_masked(array):  # Masked numbers would otherwise count as data.
        raise InvalidTable(f"{name} must hold finite numbers; some cells are masked.")


# Not held by an array -------------------------------------------------------------------------


class FrameBatches(Batches):
    """The numeric rows of a Dask DataFrame; rows with missing values are left out.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    name : str
        Name of the rows in messages and results.
    """

    def __init__(self, frame: Any, name: str = "frame") -> None:
        numeric = [
            column
            for column, kind in frame.dtypes.items()
            if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)
        ]
        other = [str(column) for column in frame.columns if column not in set(numeric)]
        self.name = self.called = name
        self.columns = tuple(map(str, numeric))
        self.notes = (f"Left out as text or dates: {listed(other)}.",) if other else ()
        if len(self.columns) < 2:
            raise InvalidTable(
                f"{name} must have at least 2 numeric columns; it has {len(self.columns)}."
            )
        self._frame = frame[numeric]
        self._starts: list[int] | None = None

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows, each with its number of incomplete rows left out."""
        for number, part in enumerate(self._frame.to_delayed(), start=1):
            yield from _blocks(part.compute(), self._named(number), self.columns)

    def _named(self, partition: int) -> str:
        return f"partition {partition} of {self.name}"

    def fold(self, new: Callable[[], S]) -> S:
        """Sum all rows; each partition is summed where it is stored, and only sums are moved."""
        import dask

        parts = self._frame.to_delayed()
        # The first pass over the data finds the row numbers; nothing needs them earlier.
        starts = self._starts or [0] * len(parts)
        work = dask.delayed(_partition_sum, pure=False)
        sums: list[S] = dask.compute(
            *(
                work(part, start, new, self._named(number), self.columns)
                for number, (part, start) in enumerate(zip(parts, starts, strict=True), start=1)
            )
        )
        if self._starts is None:
            self._starts = [0, *np.cumsum([part.rows for part in sums])[:-1].tolist()]
        total = new()
        for part in sums:
            total.merge(part)
        return total


def _blocks(
    frame: pd.DataFrame, name: str, columns: tuple[str, ...]
) -> Iterator[tuple[FloatArray, int]]:
    """Yield blocks of a partition's complete rows, each with its number of rows left out."""
    rows, size = frame.to_numpy(dtype=np.float64, na_value=np.nan), block_rows(len(columns))
    for at in range(0, len(rows), size):
        yield complete(rows[at : at + size], None, name, columns, at)


def _partition_sum(
    frame: pd.DataFrame, start: int, new: Callable[[], S], name: str, columns: tuple[str, ...]
) -> S:
    total = new()
    for block, dropped in _blocks(frame, name, columns):
        total.dropped += dropped
        if len(block):
            total.add(block, start + total.rows)
    return total


@dataclass(frozen=True, eq=False)
class Products:
    """X'X of a sparse matrix without missing values, and statistics of its columns.

    Attributes
    ----------
    n : int
    low, high, mean : ndarray of shape (d,)
    total : ndarray of shape (d, d)
    """

    n: int
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    total: FloatArray


class SparseRows(Batches):
    """The rows of a sparse matrix, without those that have missing values.

    Parameters
    ----------
    array : sparse matrix or array of SciPy, shape (n, d)
    name : str

    Raises
    ------
    InvalidTable
        If the array is not two-dimensional or does not hold real numbers.
    """

    def __init__(self, array: Any, name: str = "array") -> None:
        _check_array(array, "array")
        self.name = self.called = name
        self.columns = tuple(_titles(array.shape[1]))
        # Use a row-wise format, because the table is read in blocks of rows.
        self._rows = sparse.csr_array(array, dtype=np.float64)

    def products(self) -> Products | None:
        """Return X'X and column statistics from one pass; None if a value is missing."""
        X = self._rows
        if X.shape[0] < 2 or not np.isfinite(X.data).all():
            return None
        low, high = (side(axis=0).toarray().ravel() for side in (X.min, X.max))
        return Products(
            X.shape[0], low, high, np.asarray(X.mean(axis=0)).ravel(), (X.T @ X).toarray()
        )

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield dense blocks of complete rows, each with its number of rows left out."""
        size = block_rows(len(self.columns))
        for at in range(0, self._rows.shape[0], size):
            block = self._rows[at : at + size].toarray()
            yield complete(block, None, self.name, self.columns, at)


# Kinds of input -------------------------------------------------------------------------------


def _is_dask(table: object) -> bool:
    # Test the class, not the object: a delayed object claims to have any attribute.
    return hasattr(type(table), "to_delayed") and hasattr(type(table), "columns")


def _is_sparse(table: object) -> bool:
    return bool(sparse.issparse(table))


def _is_array(table: object) -> bool:
    """Return whether an object is an array or list of rows, from NumPy or another library."""
    if isinstance(table, (np.ndarray, list, tuple)):
        return True
    # A single column also counts as an array; a later check refuses its shape.
    return (
        hasattr(type(table), "__array__")
        and not hasattr(type(table), "columns")
        and not (is_frame(table) or hasattr(type(table), "__arrow_c_stream__"))
    )


def _array_of(table: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asanyarray(table)  # Unlike asarray, this keeps the mask of an array.
    except ValueError:  # The rows have different lengths.
        raise InvalidTable("all rows of a list must have the same length.") from None


def _is_bunch(table: object) -> bool:
    """Return whether an object is a Bunch, as scikit-learn's loaders return."""
    return isinstance(table, dict) and type(table) is not dict and "data" in table


def _frame_of_bunch(table: Any, label: str | None) -> pd.DataFrame:
    """Return the features of a Bunch, and its target if the target is the label."""
    data = table["data"]
    if _is_sparse(data):
        data = data.toarray()
    if not isinstance(data, pd.DataFrame):
        rows = table_of_array(_array_of(data)).rows
        names = table.get("feature_names")
        titles = list(names) if names is not None else None
        data = pd.DataFrame(rows, columns=titles if titles else _titles(rows.shape[1]))
    if label != _TARGET or table.get("target") is None:
        return data
    return data.assign(**{_TARGET: np.asarray(table["target"])})


def _titles(d: int) -> list[str]:
    return [f"column {j + 1}" for j in range(d)]


_TARGET = "target"
"""Name of a Bunch's label."""
