"""Read a file into a `RawTable`, column by column, from what `dpviz.datasets.process` returns.

The bytes decide the file's type. The name is only used to report that a ``.parquet`` holds text, or
a ``.json`` no records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from dpviz.core.errors import InvalidSetting, InvalidTable, printable
from dpviz.core.files import unguarded
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.datasets.columns import (
    COMMA,
    POINT,
    Judged,
    Kind,
    RawColumn,
    counts_rows,
    distinct,
    judge_columns,
    listed,
)
from dpviz.datasets.dialect import DELIMITERS, Layout, Text, detect
from dpviz.datasets.process import File, Given
from dpviz.datasets.raw import CELLS, RawTable
from dpviz.datasets.reader import is_flat
from dpviz.datasets.table import PLAINLY, ReadOptions

TEXT_BYTES = 1 << 29
"""Maximum number of bytes of text held in memory; larger files are read in batches."""

ENCODED = params_of(Settings)["encoding"].choices
"""Possible settings of a text's encoding, with their names."""

_COLUMNS = 20_000
_GROUP_ROWS = 1 << 20

_MARKS = {"auto": None, "point": POINT, "comma": COMMA}


def shown_name(name: str) -> str:
    """Return a file's name as messages quote it."""
    return printable(name) or "the file"


def read_raw(
    source: Given,
    *,
    name: str,
    reading: ReadOptions = PLAINLY,
    cells: int = CELLS,
) -> RawTable:
    """Parse a file, which is the expensive step.

    Parameters
    ----------
    source : str, Path, bytes-like or binary file
        A file, which must be seekable and is left open.
    name : str
        Name of the table, also in messages.
    reading : ReadOptions
        Only the options for the file count here, from ``decimal`` to ``sheet``.
    cells : int
        Limit on the number of rows times columns.

    Raises
    ------
    InvalidTable
        If the file cannot be read; the message is one sentence that shows no cell.
    """
    name = shown_name(name)
    with open_file(source, name, reading, cells=cells) as file:
        columns = Columns.of(file, reading)
        table = file.table(columns.plan(cells))
        items, notes = columns.settle(table, reading.decimal)
    raw = _raw_table(name, items, [*columns.notes, *notes], cells)
    return replace(raw, sheets=columns.sheets, sheet=columns.sheet, layout=columns.layout)


def open_file(
    source: Given,
    name: str,
    reading: ReadOptions = PLAINLY,
    *,
    stream: bool = False,
    whole: bool = False,
    cells: int = CELLS,
) -> File:
    """Open a file for the reader, as `read_raw` does, in batches, or as the sheet for a release."""
    request = {
        "encoding": "" if reading.encoding == "auto" else reading.encoding,
        "encoded": ENCODED[reading.encoding],
        "sheet": reading.sheet,
        "whole": whole,
        "stream": stream,
        "text_bytes": TEXT_BYTES,
        "cells": cells,
    }
    return File(source, name, request)


def schema_of(file: File) -> Any:
    """Return the Arrow schema of a file that has a schema."""
    return pa.ipc.read_schema(pa.py_buffer(file.about["schema"].encode("latin-1")))


@dataclass(frozen=True)
class Columns:
    """The columns of a file, before any column is read.

    Attributes
    ----------
    name : str
        Name of the file.
    layout : Layout or None
        Layout of a delimited text, else None.
    names : tuple of str
        Flat columns of any other file.
    notes : tuple of str
    sheets : tuple of str
        Sheets of a workbook, with the sheet that is read.
    sheet : str
    """

    name: str
    layout: Layout | None
    names: tuple[str, ...]
    notes: tuple[str, ...]
    sheets: tuple[str, ...] = ()
    sheet: str = ""

    @property
    def width(self) -> int:
        """Number of columns that are read."""
        return len(self.names) if self.layout is None else self.layout.width

    @classmethod
    def of(cls, file: File, reading: ReadOptions) -> Columns:
        """Return the columns of a file."""
        name, about = file.name, file.about
        sheets, sheet = tuple(about.get("sheets", ())), about.get("sheet", "")
        split = "schema" not in about
        for option, holds in (("header", split), ("delimiter", split and not sheet)):
            if not holds and getattr(reading, option) != "auto":
                allowed = f"auto for {name}, which is not a delimited text"
                raise InvalidSetting(option, allowed, getattr(reading, option), f"--{option}")
        notes = [*about["notes"]]
        if sheet:
            others = [other for other in sheets if other != sheet]
            also = f"; there are also {listed(others)}." if others else "."
            notes.append(f"Sheet '{printable(sheet)}' was read{also}")
        if "schema" in about:
            schema = schema_of(file)
            _check_width(name, len(schema))
            names = tuple(field.name for field in schema if is_flat(field))
            return cls(name, None, names, (*notes, *_without_nested(name, schema)))
        if "encoding" in about:
            notes.append(f"The text was read as {ENCODED[about['encoding']]}.")
        if name.lower().endswith((".parquet", ".pq")):
            notes.append(f"{name} is named Parquet and holds text: it was read as text.")
        text = Text.of(name, about)
        if reading.delimiter != "auto":
            text = text._replace(delimiter=DELIMITERS[reading.delimiter])
        layout = detect(text, header=reading.header)
        _check_width(name, layout.width)
        return cls(name, layout, (), (*notes, *layout.notes), sheets, sheet)

    def plan(self, cells: int | None = None) -> dict[str, Any]:
        """Return the columns and the block size, or the layout, that the reader needs."""
        if self.layout is not None:
            return self.layout.plan(cells)
        return {"columns": [*range(len(self.names))], "rows": _GROUP_ROWS}

    def settle(self, table: Any, decimal: str) -> tuple[list[Judged], list[str]]:
        """Return the kinds and values of the columns, and notes on what reading changed."""
        layout, mark = self.layout, _MARKS[decimal]
        if layout is None:
            return judge_columns(self.name, self.names, table.columns, mark)
        if layout.names is not None and table.num_rows == 0:
            raise InvalidTable(
                f"{self.name} must have at least 2 rows of data; it has only a line of column "
                "names."
            )
        names = layout.names or [f"column {j + 1}" for j in range(layout.width)]
        table, again = without_names(table, layout.names or ())
        table, lost = _without_empty_rows(table)
        items, more = judge_columns(
            self.name, names, table.columns, mark, delimiter=layout.delimiter
        )
        notes = ["Runs of spaces were read as one delimiter."] if layout.delimiter == " " else []
        if lost:
            were = "empty line was" if lost == 1 else "empty lines were"
            notes.append(f"{lost} {were} left out.")
        if again:
            were = "line was" if again == 1 else "lines were"
            notes.append(f"{again} {were} left out that say the column names once more.")
        if COMMA in {item.column.mark for item in items}:
            notes.append("Commas inside numbers were read as decimal marks.")
        return items, notes + more


def without_names(table: Any, names: Sequence[str]) -> tuple[Any, int]:
    """Remove rows that repeat the header row; return the remaining rows and the number removed."""
    again = None
    for cells, name in zip(table.columns, names, strict=False):
        if name.strip():
            same = pc.fill_null(pc.equal(cells, name), False)
            again = same if again is None else pc.and_(again, same)
            if not pc.any(again).as_py():
                return table, 0
    return (table, 0) if again is None else (table.filter(pc.invert(again)), pc.sum(again).as_py())


def _without_empty_rows(table: Any) -> tuple[Any, int]:
    """Remove rows without any value; return the remaining rows and the number removed."""
    if not table.num_columns or any(column.null_count == 0 for column in table.columns):
        return table, 0
    empty = reduce(pc.and_, (pc.is_null(column) for column in table.columns))
    lost = pc.sum(empty).as_py() or 0
    return (table.filter(pc.invert(empty)), lost) if 0 < lost < len(empty) else (table, 0)


def _check_width(name: str, columns: int) -> None:
    if columns > _COLUMNS:
        raise InvalidTable(f"{name} must have at most {_COLUMNS:,} columns; it has {columns:,}.")


def parsed(name: str, table: Any) -> RawTable:
    """Return an Arrow table in memory as a raw table, whatever its source."""
    notes = _without_nested(name, table.schema)
    flat = [(f.name, table.column(j)) for j, f in enumerate(table.schema) if is_flat(f)]
    items, remarks = judge_columns(name, [title for title, _ in flat], [cells for _, cells in flat])
    return _raw_table(name, items, [*notes, *remarks], 1 << 29)


def _without_nested(name: str, schema: Any) -> list[str]:
    """Return a sentence on columns left out as neither numbers nor text, if there are any."""
    if not any(map(is_flat, schema)):
        raise InvalidTable(f"{name} has no columns of numbers or text.")
    other = [
        field.name
        for field in schema
        if not is_flat(field) and not field.name.startswith("__index_level_")
    ]
    return [f"Left out, neither numbers nor text: {listed(distinct(other)[0])}."] if other else []


def _raw_table(name: str, items: list[Judged], notes: list[str], cells: int) -> RawTable:
    for item in items:
        if item.column.kind is Kind.NUMERIC and counts_rows(item.values):
            notes.append(
                f"'{item.column.name}' counts the rows: if it is a row number, leave it out."
            )
    if _are_variables([item.column for item in items], len(items[0].values)):
        notes.append(
            "Each row looks like a variable and each column like a sample: if so, transpose the "
            "table before, as a row is what is analysed and protected."
        )
    data = pa.table([item.values for item in items], names=[item.column.name for item in items])
    return RawTable(name, tuple(item.column for item in items), tuple(notes), data, cells)


_VARIABLE = re.compile(
    r"(?:^|[^a-z])(?:gene|probe|transcript|protein|peptide|metabolite|compound|tax(?:on|a)|otu|asv|"
    r"cpg|snp|marker|analyte|feature|variable)s?(?:$|[^a-z])|ensembl",
    re.IGNORECASE,
)
_SAMPLE = re.compile(
    r"(?:gsm|samples?|patient|subject|donor|case|control)[ _.-]?\d+", re.IGNORECASE
)


def _are_variables(columns: Sequence[RawColumn], rows: int) -> bool:
    """Return whether the names suggest that rows are variables and columns are samples."""
    first, *others = columns
    if first.categories != rows or len(others) < 3 or not all(one.is_feature for one in others):
        return False
    samples = all(_SAMPLE.fullmatch(one.name) for one in others)
    return samples or _VARIABLE.search(first.name) is not None


# Numbers of features by name ----------------------------------------------------------------------


def read_bounds(source: str | Path | BinaryIO) -> dict[str, tuple[float, float]]:
    """Return low and high of each feature from a CSV or Parquet file.

    Parameters
    ----------
    source : str, Path or binary file
        A file with the columns feature, low and high, and one row per feature.

    Raises
    ------
    InvalidTable
        If the file does not exist, has other columns, repeats a name or has a bound that is not a
        number.
    """
    rows = _read_named(source, "", ("feature",), ("low", "high"), "bounds file")
    return {feature: (low, high) for feature, (low, high) in rows.items()}


def read_thetas(source: str | Path | BinaryIO, *, name: str = "") -> dict[str, float]:
    """Return the share of each feature or direction from a CSV or Parquet file.

    Parameters
    ----------
    source : str, Path or binary file
        A file with the columns theta and feature, or theta and direction.
    name : str
        Name of the file in messages; by default its own name.

    Raises
    ------
    InvalidTable
        In the same cases as `read_bounds`.
    """
    rows = _read_named(source, name, ("feature", "direction"), ("theta",), "allocation file")
    return {direction: theta for direction, (theta,) in rows.items()}


def _read_named(
    source: str | Path | BinaryIO,
    name: str,
    keys: Sequence[str],
    numbers: Sequence[str],
    what: str,
) -> dict[str, tuple[float, ...]]:
    """Return each row's numbers, keyed by the name in its key column."""
    if isinstance(source, (str, Path)):
        name = name or Path(source).name
        if not Path(source).is_file():
            raise InvalidTable(f"The {what} {name[:60]!r} does not exist.")
    raw = read_raw(source, name=name)
    columns = {column.name: column for column in raw.columns}
    key = next((name for name in keys if name in columns), None)
    if key is None or not set(numbers) <= set(columns):
        titles = " (or ".join(keys) + (")" if len(keys) > 1 else "")
        raise InvalidTable(
            f"{name} must have the columns {titles}, {' and '.join(numbers)}; it has "
            f"{listed(list(columns))}."
        )
    cells = [columns[each] for each in (key, *numbers)]
    if any(column.missing for column in cells) or not all(one.is_feature for one in cells[1:]):
        raise InvalidTable(
            f"{name} must have a name and a number for {' and '.join(numbers)} in every row."
        )
    # Use the parsed columns, because a Table could not have one name per row.
    names = [_name(value) for value in raw.data[key].to_pylist()]
    if len(set(names)) != len(names):
        raise InvalidTable(f"{name} must name each {key} once; one name is repeated.")
    rows = zip(*(raw.data[number].to_pylist() for number in numbers), strict=True)
    return {each: tuple(map(float, row)) for each, row in zip(names, rows, strict=True)}


def _name(value: object) -> str:
    """Return a cell as a name; whole numbers lose the decimal point that parsing added."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return unguarded(str(value))
