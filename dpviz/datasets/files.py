"""Reads a CSV, gzipped CSV or Parquet file into a `RawTable`.

What a file is follows from its bytes: its name is only looked at to say that
a ``.parquet`` is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from dpviz.datasets import delimited
from dpviz.datasets.raw import (
    MAX_CELLS,
    Kind,
    RawColumn,
    RawTable,
    classify,
    clean_names,
    distinct,
    listed,
)
from dpviz.datasets.source import Source, refuse_foreign
from dpviz.errors import InvalidTable


def read_raw(
    source: str | Path | bytes | bytearray | memoryview | BinaryIO, *, name: str
) -> RawTable:
    """Return the parsed file; the dear step.

    Parameters
    ----------
    source : str, Path, bytes-like or binary file
        A path is read from disk. A file must be seekable; it is left open, and
        an in-memory one is not copied.
    name : str
        What messages and the table call it.

    Raises
    ------
    InvalidTable
        With one sentence that shows no cell.
    """
    name = name if len(name) <= 60 else name[:57] + "..."
    given = Source(source, name)
    if given.is_parquet:
        columns, notes, decimal = _read_parquet(given)
    elif name.lower().endswith((".parquet", ".pq")):
        refuse_foreign(given.open().read(64), name)
        raise InvalidTable(f"{name} is named Parquet but is not a Parquet file.")
    else:
        columns, notes, decimal = _read_text(given)
    return parsed(name, columns, notes, decimal)


def parsed(
    name: str, columns: list[tuple[str, Any]], notes: list[str], decimal: str = "."
) -> RawTable:
    """Return the raw table of columns that were read, whatever they were read from.

    Parameters
    ----------
    name : str
        What messages and the table call it.
    columns : list of (str, pyarrow.ChunkedArray)
        Names and values; the list is emptied as they are classified.
    notes : list of str
        What reading changed or assumed.
    decimal : str
        The decimal mark, for numbers that were stored as text.
    """
    count = len(columns[0][1]) if columns else 0
    if count < 2:
        found = "one row" if count else "none"
        raise InvalidTable(f"{name} must have at least 2 rows of data; it has {found}.")

    if len(columns) > 1 and not columns[0][0].strip() and counts_rows(columns[0][1]):
        notes.append("The first column has no name and counts the rows: it was left out.")
        del columns[0]
    names, renamed = clean_names([column for column, _ in columns])
    notes += renamed
    kinds: list[RawColumn] = []
    kept: list[Any] = []
    for j in range(len(columns)):
        raw = columns[j][1]
        columns[j] = ("", None)  # a text column and its coded form need not both live
        column, values, said = classify(raw, names[j], name, decimal)
        notes += said
        if column.kind is Kind.NUMERIC and counts_rows(values):
            notes.append(
                f"'{column.name}' counts the rows: if it is a row number, remove it from the file."
            )
        kinds.append(column)
        kept.append(values)
    data = pa.table(kept, names=[column.name for column in kinds])
    return RawTable(name, tuple(kinds), tuple(notes), data)


def _read_text(source: Source) -> tuple[list[tuple[str, Any]], list[str], str]:
    """Return (name, values) of each column of a delimited text, sentences and decimal mark."""
    source.check_text()
    layout = delimited.detect(source)
    table = delimited.parse(source, layout)
    notes = []
    names = list(table.column_names)
    if not layout.header:
        names = [f"column {j + 1}" for j in range(len(names))]
        notes.append("The file has no line of column names: the columns are numbered from 1.")
    elif layout.numbered:
        notes.append("The first line counts 0, 1, 2, ... and was read as column names.")
    if layout.header and table.num_rows == 0:
        raise InvalidTable(
            f"{source.name} must have at least 2 rows of data; it has only a line of column names."
        )
    if layout.decimal == ",":
        notes.append("Commas inside numbers were read as decimal marks.")
    if layout.delimiter == " ":
        notes.append("Runs of spaces were read as one delimiter.")
    return list(zip(names, table.columns, strict=True)), notes, layout.decimal


def _read_parquet(source: Source) -> tuple[list[tuple[str, Any]], list[str], str]:
    """Return (name, values) of each flat column of a Parquet file, and sentences."""
    notes = []
    try:
        file = parquet.ParquetFile(source.open())
        schema = file.schema_arrow
        # few bytes can claim many rows, so the claim is checked before anything is read
        if file.metadata.num_rows * max(len(schema), 1) > MAX_CELLS:
            raise InvalidTable(
                f"{source.name} has {file.metadata.num_rows} rows of {len(schema)} columns, more "
                f"than the {MAX_CELLS} cells that are allowed; keep fewer rows or columns."
            )
        flat = [j for j, column in enumerate(schema) if is_flat(column)]
        other = [column.name for column in schema if not is_flat(column)]
        other_names = distinct([name for name in other if not name.startswith("__index_level_")])[0]
        if other_names:
            notes.append(f"Left out, neither numbers nor text: {listed(other_names)}.")
        if not flat:
            raise InvalidTable(f"{source.name} has no columns of numbers or text.")
        texts = [
            schema.field(j).name
            for j in flat
            if pa.types.is_string(schema.field(j).type)
            or pa.types.is_large_string(schema.field(j).type)
        ]
        # texts arrive coded: a file may hold one long text a million times
        file = parquet.ParquetFile(source.open(), read_dictionary=texts)
        table = file.read(columns=[schema.field(j).name for j in flat])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise InvalidTable(
            f"{source.name} starts like a Parquet file but cannot be read as one: "
            "it is damaged, incomplete or of an unknown kind."
        ) from None
    return list(zip(table.column_names, table.columns, strict=True)), notes, "."


def is_flat(column: Any) -> bool:
    """Return whether the Parquet column holds one number, text, truth or date a row."""
    if column.name.startswith("__index_level_"):  # a data frame's row names, not a feature
        return False
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_duration(kind):
        return False
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_null(kind)
    )


def counts_rows(values: Any) -> bool:
    """Return whether the column reads 0, 1, 2, ... or 1, 2, 3, ... without a gap."""
    n = len(values)
    if not pa.types.is_integer(values.type) or values.null_count or n < 3:
        return False
    ends = pc.min_max(values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low not in (0, 1) or high != low + n - 1:
        return False
    steps = pc.pairwise_diff(values.combine_chunks().cast(pa.int64()))
    return bool(pc.all(pc.equal(steps, 1)).as_py())
