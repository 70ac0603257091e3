"""Tables: built-in ones, generators, files, remote sets, frames and arrays.

`read_table` is the entry point: it accepts every kind of table.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.core.errors import InvalidTable, WrongArgument, did_you_mean, printable
from dpviz.datasets import remote
from dpviz.datasets.batches import Batches, FileBatches
from dpviz.datasets.builtin import BuiltIn, builtin_tables, dataset_rows, load_builtin
from dpviz.datasets.check import (
    USES,
    ColumnCheck,
    advised,
    check_columns,
    rows_lost,
    suggested_drops,
)
from dpviz.datasets.columns import Kind, RawColumn
from dpviz.datasets.dataframes import (
    FrameBatches,
    name_at_hand,
    rows_not_held,
    table_at_hand,
)
from dpviz.datasets.files import read_bounds, read_raw, read_thetas
from dpviz.datasets.process import TooLarge
from dpviz.datasets.raw import UPLOADED_CELLS, RawTable
from dpviz.datasets.table import NAMELESS, PLAINLY, ReadOptions, Table

__all__ = [
    "UPLOADED_CELLS",
    "USES",
    "Batches",
    "BuiltIn",
    "ColumnCheck",
    "Kind",
    "RawColumn",
    "RawTable",
    "ReadOptions",
    "Table",
    "builtin_tables",
    "check_columns",
    "dataset_rows",
    "in_batches",
    "is_remote",
    "load",
    "load_builtin",
    "name_of",
    "read_bounds",
    "read_in_memory",
    "read_raw",
    "read_table",
    "read_thetas",
    "remote",
    "rows_lost",
    "suggested_drops",
]


TABLE_ALLOWED = (
    "a built-in key, a path, a plan such as plan:n=1e5,spectrum=power:d=50,exponent=1.5,total=0.5, "
    "a data frame (pandas, polars, Arrow, Dask), an array of shape (n, d) (NumPy, Dask, SciPy's "
    "sparse ones, or a list of rows) or a Bunch"
)


def read_table(table: Any, reading: ReadOptions = PLAINLY) -> Table | Batches:
    """Return any supported input as a table, or as batches if no array holds its rows.

    Parameters
    ----------
    table : str, Path, Table, frame, array, Bunch or sparse matrix
        A name, a path, or a frame of pandas, polars, Dask or any other library that speaks Arrow.
    reading : ReadOptions

    Raises
    ------
    InvalidTable
        If there is no such table, or it cannot be used.
    NotAvailable
        If a remote data set cannot be obtained.
    InvalidSetting
        If the reading options do not suit the input.
    """
    if isinstance(table, (str, Path)):
        try:
            return load(table, reading)
        except TooLarge:
            return FileBatches(table, reading)
    # Try Dask and sparse tables first: reading them as arrays would load them into memory.
    return rows_not_held(table, reading) or table_at_hand(table, reading)


def in_batches(table: Any, reading: ReadOptions = PLAINLY) -> Batches:
    """Return a file, Dask frame or sparse matrix of any size as batches of rows."""
    if isinstance(table, (str, Path)):
        return FileBatches(table, reading)
    return rows_not_held(table, reading) or FrameBatches(table)


def read_in_memory(table: Any, reading: ReadOptions = PLAINLY) -> Table:
    """Return a table with all rows in memory; Dask frames and sparse matrices are converted.

    Raises
    ------
    InvalidTable
        In the same cases as `read_table`, or if a file is too large for memory.
    """
    if not isinstance(table, (str, Path)):
        return table_at_hand(table, reading)
    try:
        return load(table, reading)
    except TooLarge as error:
        raise InvalidTable(
            f"A task needs the rows in memory: {error} A sample of the rows is enough."
        ) from None


def name_of(table: object) -> str:
    """Return the name that settings and results use for a table before it is read.

    Raises
    ------
    WrongArgument
        If `read_table` does not accept the input.
    """
    name = str(table) if isinstance(table, (str, Path)) else name_at_hand(table)
    if name is not None:
        return name
    article = "an" if type(table).__name__[0].lower() in "aeiou" else "a"
    raise WrongArgument(
        f"table must be {TABLE_ALLOWED}; got {article} {type(table).__name__[:40]}."
    )


def load(table: str | Path, reading: ReadOptions = PLAINLY) -> Table:
    """Return a built-in table by its key, the table in a file, or a remote set by its key.

    Parameters
    ----------
    table : str or Path
        Built-in key, path of a file that `read_raw` takes, or key of a remote set; the first match
        counts. A remote set that is not stored yet is downloaded.
    reading : ReadOptions
        Built-in tables and remote sets have no categories or missing values. Their label may be a
        column of its own or one of their features, which then stops being a feature.

    Raises
    ------
    InvalidTable
        When there is no such table or file, or it cannot be used.
    NotAvailable
        If a remote data set cannot be obtained.
    """
    name = str(table)
    if name in builtin_tables():
        return load_builtin(name).as_read(reading)
    if is_remote(name):
        return remote.load(name).as_read(reading)
    path = Path(table)
    file_name = printable(path.name)
    if not path.is_file():
        # Describe the path in the error, because the user may have misspelt a table's name.
        what = "a folder" if path.is_dir() else "no file"
        if path.exists() and not path.is_dir():
            what = "a pipe or device; a table from a pipe is named -"
        raise InvalidTable(
            f"table must be one of {', '.join(builtin_tables())}, a remote data set "
            f"({', '.join(remote.sets())}) or the path of a CSV or Parquet file; {file_name!r} is "
            f"{what}{did_you_mean(file_name, [*builtin_tables(), *remote.sets()])}."
        )
    raw = read_raw(path, name=path.name, reading=reading).stated(reading)
    # Check only features: columns that are left out or name the person are not published.
    reading, notes = advised(raw, reading)
    # Name the table without its file name, which may be private.
    return replace(raw.to_table(reading).noting(notes), name=NAMELESS)


def is_remote(name: str) -> bool:
    """Return whether `load` reads a name as a remote set, because nothing else has this name."""
    return name in remote.sets() and name not in builtin_tables() and not Path(name).is_file()
