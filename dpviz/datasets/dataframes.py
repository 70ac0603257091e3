"""Whatever a caller has in memory: frames that speak Arrow, arrays, sparse matrices, Dask's frames.

What an array holds becomes a `Table`; rows that no array holds stay where they are and are summed
there. No message shows a cell: a column is named and its kind is said. Dask is imported once a
frame is at hand, and not before: it is an extra. Partitions are computed by whatever scheduler the
caller has set up, a cluster or the threads of one machine.
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
    """Return what settings call what is at hand; None for what is nothing to read."""
    if isinstance(table, Table):
        return table.name
    if _is_array(table) or _is_sparse(table):
        return "array"
    return "frame" if is_frame(table) or _is_dask(table) or _is_bunch(table) else None


def table_at_hand(table: Any, reading: ReadOptions) -> Table:
    """Return what is in memory as a table, as a reading says; what is not is made so.

    Parameters
    ----------
    table : Table, frame, array, Bunch or sparse matrix
        Or a Dask frame, which is computed.
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
    """Return the rows of what no array holds, of Dask or sparse ones; None for all else.

    Raises
    ------
    InvalidSetting
        If the reading asks for a label, or for what needs all rows in memory.
    """
    if not (_is_dask(table) or _is_sparse(table)):
        return None
    check_batches(reading)
    if _is_dask(table):
        if reading.label is not None:
            raise InvalidSetting("label", "None for a Dask frame: drop the column", reading.label)
        return FrameBatches(table)
    for name, value in (("label", reading.label), ("leave out", ",".join(reading.leave_out or ()))):
        if value:
            allowed = "left out for a sparse matrix, whose columns have no names"
            raise InvalidSetting(name, allowed, value)
    return SparseRows(table)


# In memory ------------------------------------------------------------------------------------


def is_frame(table: object) -> bool:
    """Return whether `read_frame` takes it: a frame that speaks Arrow, or will once collected."""
    # a single column speaks Arrow too
    columns = hasattr(type(table), "columns") or isinstance(table, pa.Table)
    return columns and any(hasattr(type(table), x) for x in ("__arrow_c_stream__", "collect"))


def read_frame(frame: Any, name: str = "frame") -> RawTable:
    """Return a data frame as a parsed table; nothing is copied that need not be.

    Parameters
    ----------
    frame : DataFrame
        Of pandas, polars, duckdb or any library that speaks Arrow's stream; a lazy one is
        collected. A pandas index is no column.
    name : str
        What messages and the table call it.

    Raises
    ------
    InvalidTable
        If a column mixes kinds of values, or there are fewer than two rows.
    """
    if not hasattr(type(frame), "__arrow_c_stream__"):
        frame = frame.collect()
    titles = [*map(str, frame.columns)] if isinstance(frame, pd.DataFrame) else None
    if titles is not None:
        # names may repeat, an index is no column, and Arrow knows no column that stores few values
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
        Finite numbers; features are called column 1, column 2 and so on.
    name : str
        What messages and the table call it.

    Raises
    ------
    InvalidTable
        If the array has another shape, is not of numbers, or has gaps or infinities.
    """
    _check_array(array, name)
    # a copy: a table is read-only, the caller's is not
    rows = np.array(array, dtype=np.float64, order="C")
    if not np.isfinite(rows).all():
        at = int(np.argmin(np.isfinite(rows).all(axis=0)))
        raise InvalidTable(
            f"{name} must hold finite numbers; column {at + 1} has a gap or an infinity (a data "
            "frame may have gaps)."
        )
    return Table(name, rows, tuple(_titles(rows.shape[1])))


def _check_array(array: Any, name: str) -> None:
    """Raise InvalidTable unless it has two dimensions and holds real numbers."""
    found = getattr(array, "ndim", "no")
    if found != 2:
        dimensions = "dimension" if found == 1 else "dimensions"
        raise InvalidTable(f"{name} must have the shape (n, d); it has {found} {dimensions}.")
    if array.dtype.kind not in "biuf":
        raise InvalidTable(f"{name} must hold real numbers; its dtype is {array.dtype}.")
    if np.ma.is_masked(array):  # else the numbers under the mask would count
        raise InvalidTable(f"{name} must hold finite numbers; it has masked cells.")


# Not held by an array -------------------------------------------------------------------------


class FrameBatches(Batches):
    """The numeric rows of a Dask DataFrame; rows with missing values are left out.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    name : str
        What messages and results call it.
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
        """Yield blocks of complete rows and how many incomplete ones each lost."""
        for number, part in enumerate(self._frame.to_delayed(), start=1):
            yield from _blocks(part.compute(), self._named(number), self.columns)

    def _named(self, partition: int) -> str:
        return f"partition {partition} of {self.name}"

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows: each partition is summed where it lies, and sums move."""
        import dask

        parts = self._frame.to_delayed()
        # Row numbers are known after the first pass, and nothing before it asks for them.
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
    """Yield blocks of a partition's complete rows and how many incomplete ones each lost."""
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
    """X'X of a sparse matrix without gaps, and what else its columns tell.

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
    """The rows of a sparse matrix; those with gaps are left out.

    Parameters
    ----------
    array : sparse matrix or array of SciPy, shape (n, d)
    name : str

    Raises
    ------
    InvalidTable
        If it has another shape, or holds no real numbers.
    """

    def __init__(self, array: Any, name: str = "array") -> None:
        _check_array(array, "array")
        self.name = self.called = name
        self.columns = tuple(_titles(array.shape[1]))
        # by rows, which are read in blocks
        self._rows = sparse.csr_array(array, dtype=np.float64)

    def products(self) -> Products | None:
        """Return what one pass over the rows finds, from X'X; None where a row has a gap."""
        X = self._rows
        if X.shape[0] < 2 or not np.isfinite(X.data).all():
            return None
        low, high = (side(axis=0).toarray().ravel() for side in (X.min, X.max))
        return Products(
            X.shape[0], low, high, np.asarray(X.mean(axis=0)).ravel(), (X.T @ X).toarray()
        )

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows, dense ones, and how many incomplete ones each lost."""
        size = block_rows(len(self.columns))
        for at in range(0, self._rows.shape[0], size):
            block = self._rows[at : at + size].toarray()
            yield complete(block, None, self.name, self.columns, at)


# What it is -----------------------------------------------------------------------------------


def _is_dask(table: object) -> bool:
    # asked of the class: a delayed value would promise any attribute
    return hasattr(type(table), "to_delayed") and hasattr(type(table), "columns")


def _is_sparse(table: object) -> bool:
    return bool(sparse.issparse(table))


def _is_array(table: object) -> bool:
    """Return whether it is rows of numbers: NumPy's, a list's, or another library's, as Dask's."""
    if isinstance(table, (np.ndarray, list, tuple)):
        return True
    # one column is an array too; asked of the value, whose shape says it
    return (
        hasattr(type(table), "__array__")
        and not hasattr(type(table), "columns")
        and not (is_frame(table) or hasattr(type(table), "__arrow_c_stream__"))
    )


def _array_of(table: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asanyarray(table)  # with its mask, if it has one
    except ValueError:  # rows of different lengths
        raise InvalidTable("each row of a list must be as long as the others.") from None


def _is_bunch(table: object) -> bool:
    """Return whether it is what scikit-learn's loaders return."""
    return isinstance(table, dict) and type(table) is not dict and "data" in table


def _frame_of_bunch(table: Any, label: str | None) -> pd.DataFrame:
    """Return the features of a Bunch, and its target where that is the label."""
    data = table["data"]
    if _is_sparse(data):  # its columns have names, so it is a frame
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
"""What the label of a Bunch is called."""
