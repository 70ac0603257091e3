"""Data frames and arrays in memory: pandas, whatever speaks Arrow (polars), and NumPy.

No message shows a cell: a column is named and its kind is said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpviz.core.errors import InvalidTable
from dpviz.datasets.columns import distinct, listed
from dpviz.datasets.files import is_flat, parsed
from dpviz.datasets.raw import RawTable
from dpviz.datasets.table import Table

# What pyarrow raises for values that no one type holds.
_MIXED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)


def is_frame(given: object) -> bool:
    """Return whether `read_frame` takes it: a pandas frame, or a frame that speaks Arrow."""
    if isinstance(given, pd.DataFrame):
        return True
    # Asked of the class: a lazy frame would compute its columns to answer.
    kind = type(given)
    if not (hasattr(kind, "columns") or isinstance(given, pa.Table)):
        return False  # a single column speaks Arrow too
    return hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__dataframe__")


def read_frame(frame: Any, name: str = "frame") -> RawTable:
    """Return a data frame as a parsed table; nothing is copied that need not be.

    Parameters
    ----------
    frame : DataFrame
        Of pandas, or of any library that has the Arrow or the data frame interface.
        A pandas index is no column.
    name : str
        What messages and the table call it.

    Raises
    ------
    InvalidTable
        If a column mixes kinds of values, or there are fewer than two rows.
    """
    columns = _of_pandas(frame, name) if isinstance(frame, pd.DataFrame) else _of_arrow(frame, name)
    notes = []
    flat = [(title, values) for title, values in columns if is_flat(pa.field(title, values.type))]
    if len(flat) < len(columns):
        kept = {id(values) for _, values in flat}
        other = [title for title, values in columns if id(values) not in kept]
        notes.append(f"Left out, neither numbers nor text: {listed(distinct(other)[0])}.")
    if not flat:
        raise InvalidTable(f"{name} has no columns of numbers or text.")
    return parsed(name, flat, notes)


def _of_pandas(frame: pd.DataFrame, name: str) -> list[tuple[str, Any]]:
    # Column by column: names may repeat, and a message can say which one is at fault.
    columns = []
    for j, title in enumerate(frame.columns):
        try:
            values = pa.array(frame.iloc[:, j], from_pandas=True)
        except _MIXED:
            raise InvalidTable(
                f"column '{str(title)[:60]}' of {name} must hold one kind of values: numbers, "
                "text, dates or true and false."
            ) from None
        columns.append((str(title), _chunked(values)))
    return columns


def _of_arrow(frame: Any, name: str) -> list[tuple[str, Any]]:
    if hasattr(frame, "__arrow_c_stream__"):
        table = pa.table(frame)
    else:
        from pyarrow.interchange import from_dataframe

        table = from_dataframe(frame)
    columns = []
    for title, values in zip(table.column_names, table.columns, strict=True):
        columns.append((title, _as_in_files(values)))
    return columns


def _as_in_files(values: Any) -> Any:
    """Return text as files hold it: polars hands it over in views, coded by unsigned numbers."""
    kind = values.type
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        coded = pa.dictionary(pa.int32(), pa.large_string())
        parts = [
            pa.DictionaryArray.from_arrays(
                part.indices.cast(pa.int32()), part.dictionary.cast(pa.large_string())
            )
            for part in values.chunks
        ]
        return pa.chunked_array(parts, type=coded).unify_dictionaries()
    return values


def _chunked(values: Any) -> Any:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


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
    if array.ndim != 2:
        raise InvalidTable(f"{name} must have the shape (n, d); it has {array.ndim} dimensions.")
    if array.dtype.kind not in "biuf":
        raise InvalidTable(f"{name} must hold real numbers; its dtype is {array.dtype}.")
    rows = np.array(
        array, dtype=np.float64, order="C"
    )  # a copy: a table is read-only, the caller's is not
    finite = np.isfinite(rows)
    if not finite.all():
        at = int(np.argmin(finite.all(axis=0)))
        raise InvalidTable(
            f"{name} must hold finite numbers; column {at + 1} has a gap or an infinity (a data "
            "frame may have gaps)."
        )
    return Table(name, rows, tuple(f"column {j + 1}" for j in range(rows.shape[1])))
