"""Reads a file into a `RawTable`: delimited text, Parquet, or what `formats` makes one of them.

What a file is follows from its bytes: its name is only looked at to say that
a ``.parquet`` holds text, or a ``.json`` no records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from dpviz.core.errors import InvalidSetting, InvalidTable, printable
from dpviz.core.files import unguarded
from dpviz.datasets import delimited
from dpviz.datasets.claims import DAMAGED, check_claims, check_size
from dpviz.datasets.columns import Kind, RawColumn, clean_names, distinct, listed
from dpviz.datasets.formats import opened
from dpviz.datasets.layout import Layout, detect
from dpviz.datasets.numerals import COMMA, POINT
from dpviz.datasets.raw import RawTable
from dpviz.datasets.source import AT_HAND, IN_MEMORY, Limits, Source, readable
from dpviz.datasets.survey import Survey, is_number, is_text, settle, survey

DECIMALS = {"auto": None, "point": POINT, "comma": COMMA}
"""What the user may say of the decimal mark."""


@dataclass(frozen=True)
class Settled:
    """What reading decides of one column.

    Attributes
    ----------
    place : int
        Among the columns that were read, from 0.
    column : RawColumn
    values : pyarrow array
        As `RawTable` keeps them.
    mark : str or None
        The decimal mark, for numbers that were stored as text.
    """

    place: int
    column: RawColumn
    values: Any
    mark: str | None


def misnamed(source: Source) -> list[str]:
    """Return a sentence where a file that is no Parquet has the name of one, else none."""
    if source.name.lower().endswith((".parquet", ".pq")):
        return [f"{source.name} is named Parquet and holds text: it was read as text."]
    return []


def shown_name(name: str) -> str:
    """Return a file's name as messages quote it."""
    return printable(name) or "the file"


def decimal_mark(decimal: str) -> str | None:
    """Return the mark that a word of `DECIMALS` means."""
    if decimal not in DECIMALS:
        raise InvalidSetting("decimal", "one of " + ", ".join(DECIMALS), decimal, "--decimal")
    return DECIMALS[decimal]


def read_raw(
    source: str | Path | bytes | bytearray | memoryview | BinaryIO,
    *,
    name: str,
    decimal: str = "auto",
    encoding: str = "auto",
    sheet: str = "",
    limits: Limits = IN_MEMORY,
) -> RawTable:
    """Return the parsed file; the dear step.

    Parameters
    ----------
    source : str, Path, bytes-like or binary file
        A path is read from disk. A file must be seekable; it is left open, and
        an in-memory one is not copied.
    name : str
        What messages and the table call it.
    decimal : {"auto", "point", "comma"}
        The decimal mark of numbers in texts; auto finds it, or asks.
    encoding, sheet
        As in `dpviz.datasets.formats.opened`.
    limits : Limits
        What the file may take once it is unpacked.

    Raises
    ------
    InvalidTable
        With one sentence that shows no cell.
    """
    mark = decimal_mark(decimal)
    name = shown_name(name)
    found = opened(source, name, encoding=encoding, sheet=sheet, limits=limits)
    if found.source.is_parquet:
        settled, notes = _read_parquet(found.source, mark, limits)
    else:
        settled, notes = _read_text(found.source, mark, limits)
        notes = [*misnamed(found.source), *notes]
    raw = _raw_table(name, settled, [*found.notes, *notes], limits)
    return replace(raw, sheets=found.sheets, sheet=found.sheet)


def parsed(
    name: str, columns: list[tuple[str, Any]], notes: list[str], decimal: str = "auto"
) -> RawTable:
    """Return the raw table of columns that are in memory, whatever they came from.

    Parameters
    ----------
    name : str
        What messages and the table call it.
    columns : list of (str, pyarrow.ChunkedArray)
        Names and values of flat columns.
    notes : list of str
        What reading changed or assumed.
    decimal : {"auto", "point", "comma"}
        The decimal mark, for numbers that were stored as text.
    """
    settled, said = settled_columns(name, columns, decimal_mark(decimal))
    return _raw_table(name, settled, [*notes, *said], AT_HAND)


def _raw_table(name: str, settled: list[Settled], notes: list[str], limits: Limits) -> RawTable:
    for item in settled:
        if item.column.kind is Kind.NUMERIC and counts_rows(item.values):
            notes.append(
                f"'{item.column.name}' counts the rows: if it is a row number, leave it out."
            )
    data = pa.table([item.values for item in settled], names=[item.column.name for item in settled])
    return RawTable(name, tuple(item.column for item in settled), tuple(notes), data, limits)


def _read_text(
    source: Source, decimal: str | None, limits: Limits
) -> tuple[list[Settled], list[str]]:
    """Return the columns of a delimited text, and sentences."""
    extent = source.extent(limits)
    layout = detect(source, extent, decimal)
    rows = extent.lines - layout.skipped
    check_size(source.name, rows, layout.width, limits)
    table = delimited.parse(source, layout)
    if extent.hexadecimal:  # beyond the sample, Arrow took it for a number
        whole = [j for j, kind in enumerate(table.schema.types) if pa.types.is_integer(kind)]
        table = delimited.parse(source, layout, whole)
    return settled_text(
        source.name, table, layout, decimal, lambda more: delimited.parse(source, layout, more)
    )


def settled_text(
    name: str,
    table: Any,
    layout: Layout,
    decimal: str | None,
    parse_as_text: Callable[[Collection[int]], Any],
) -> tuple[list[Settled], list[str]]:
    """Return what the columns of a parsed text are: the one place where that is decided.

    Parameters
    ----------
    name : str
        Of the file.
    table : pyarrow.Table
        All of a text, or its first block.
    layout : Layout
    decimal : str or None
        The decimal mark, where the user said it.
    parse_as_text : callable
        Parses the same once more with more columns left as text.
    """
    if layout.header and table.num_rows == 0:
        raise InvalidTable(
            f"{name} must have at least 2 rows of data; it has only a line of column names."
        )
    names = list(layout.names or [f"column {j + 1}" for j in range(layout.width)])
    types = [field.type for field in table.schema]
    columns = table.columns
    del table  # a column and its survey need not both live
    read = _surveyed(name, names, columns)
    floats = _doubted(types, layout, {decimal} if decimal else layout.proved | read.proved)
    if floats:
        again = parse_as_text(floats)
        for item, found in enumerate(read.places):
            if found in floats:
                read.surveys[item] = survey(again.column(found), read.surveys[item].name, name)
    read.proved |= layout.proved
    settled = read.settled(layout.delimiter, decimal)
    by_arrow = layout.decimal == COMMA and any(map(pa.types.is_floating, types))
    notes = list(layout.notes)
    if layout.delimiter == " ":
        notes.append("Runs of spaces were read as one delimiter.")
    if by_arrow or COMMA in {item.mark for item in settled}:
        notes.append("Commas inside numbers were read as decimal marks.")
    return settled, notes + read.notes


def _doubted(types: Sequence[Any], layout: Layout, marks: Collection[str]) -> set[int]:
    """Return the columns that Arrow read as numbers by a mark that the file does not prove.

    12.345 is a number either way. Where nothing is proved the mark that was guessed stands, but
    not between semicolons: who separates by them writes decimal commas.
    """
    floats = {j for j in layout.unproven if pa.types.is_floating(types[j])}
    sure = set(marks) == {layout.decimal}
    return floats if not sure and (marks or layout.delimiter == ";") else set()


@dataclass
class _Surveyed:
    """Columns seen one by one."""

    places: list[int]
    surveys: list[Survey]
    notes: list[str]
    proved: frozenset[str]

    def settled(self, delimiter: str, decimal: str | None) -> list[Settled]:
        """Return what the columns are, now that all have been seen."""
        marks = (found.numerals.proves for found in self.surveys)
        proved = self.proved | {mark for mark in marks if mark is not None}
        done = []
        for j, place in enumerate(self.places):
            column, values, notes, mark = settle(self.surveys[j], proved, delimiter, decimal)
            self.surveys[j] = Survey(column.name, "", column, None, [])  # frees the texts
            self.notes += notes
            done.append(Settled(place, column, values, mark))
        return done


def _surveyed(name: str, names: Sequence[str], columns: list[Any]) -> _Surveyed:
    """Return the columns seen one by one; the list of columns is emptied on the way."""
    rows = len(columns[0]) if columns else 0
    if rows < 2:
        found = "one row" if rows else "none"
        raise InvalidTable(f"{name} must have at least 2 rows of data; it has {found}.")
    notes = []
    places = list(range(len(columns)))
    if len(columns) > 1 and not names[0].strip() and counts_rows(columns[0]):
        notes.append("The first column has no name and counts the rows: it was left out.")
        # the index that pandas writes
        del places[0]
    clean, renamed = clean_names([names[j] for j in places])
    notes += renamed
    surveys = []
    for shown, j in zip(clean, places, strict=True):
        surveys.append(survey(columns[j], shown, name))
        columns[j] = None  # a text column and its coded form need not both live
    marks = (found.numerals.proves for found in surveys)
    return _Surveyed(places, surveys, notes, frozenset(mark for mark in marks if mark is not None))


def _read_parquet(
    source: Source, decimal: str | None, limits: Limits
) -> tuple[list[Settled], list[str]]:
    """Return the flat columns of a Parquet file, and sentences."""
    with readable(DAMAGED.format(source.name)):
        file = parquet.ParquetFile(source.open())
        # few bytes can claim many rows
        check_size(source.name, file.metadata.num_rows, file.metadata.num_columns, limits)
        names, notes = flat_columns(source.name, file.schema_arrow)
        claims = check_claims(source, file.metadata, set(names), limits)
        file = parquet.ParquetFile(source.open(), read_dictionary=claims.texts)
        columns = flat_of(file.read(columns=names))
        if sum(column.nbytes for _, column in columns) > 2 * limits.text_bytes:
            raise InvalidTable(f"{source.name} holds texts that are too long to be read.")
    settled, said = settled_columns(source.name, columns, decimal)
    return settled, notes + said


def flat_columns(name: str, schema: Any) -> tuple[list[str], list[str]]:
    """Return the distinct names that the flat columns of a Parquet schema have, and sentences.

    Raises
    ------
    InvalidTable
        If no column holds numbers, texts, truth values or dates.
    """
    notes = []
    other = [
        field.name
        for field in schema
        if not is_flat(field) and not field.name.startswith("__index_level_")
    ]
    if other:
        notes.append(f"Left out, neither numbers nor text: {listed(distinct(other)[0])}.")
    names = list(dict.fromkeys(field.name for field in schema if is_flat(field)))
    if not names:
        raise InvalidTable(f"{name} has no columns of numbers or text.")
    return names, notes


def flat_of(table: Any) -> list[tuple[str, Any]]:
    """Return name and values of the flat columns of what was read, by position.

    Reading by name brings all columns of a name, and parts of nested columns whose
    path reads the same.
    """
    return [(field.name, table.column(j)) for j, field in enumerate(table.schema) if is_flat(field)]


def keyed(table: Any) -> dict[tuple[str, int], Any]:
    """Return the flat columns of what was read by name and how many before have it, in order."""
    met: Counter[str] = Counter()
    found = {}
    for name, values in flat_of(table):
        found[name, met[name]] = values
        met[name] += 1
    return found


def settled_columns(
    name: str, columns: Sequence[tuple[str, Any]], decimal: str | None
) -> tuple[list[Settled], list[str]]:
    """Return what columns of a Parquet file are, and sentences."""
    read = _surveyed(name, [shown for shown, _ in columns], [values for _, values in columns])
    settled = read.settled("", decimal)
    return settled, read.notes


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
        is_number(kind) or is_text(kind) or pa.types.is_temporal(kind) or pa.types.is_null(kind)
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


# Numbers of features by name ----------------------------------------------------------------------


def read_bounds(source: str | Path | BinaryIO) -> dict[str, tuple[float, float]]:
    """Return low and high of each feature from a CSV or Parquet file.

    Parameters
    ----------
    source : str, Path or binary file
        With the columns feature, low and high, one row per feature.

    Raises
    ------
    InvalidTable
        If the file is not there, its columns are others, a name is repeated or
        a bound is not a number.
    """
    rows = _read_named(source, "", ("feature",), ("low", "high"), "bounds file")
    return {feature: (low, high) for feature, (low, high) in rows.items()}


def read_thetas(source: str | Path | BinaryIO, *, name: str = "") -> dict[str, float]:
    """Return the share of each feature or direction from a CSV or Parquet file.

    Parameters
    ----------
    source : str, Path or binary file
        With the columns theta and feature, or theta and direction.
    name : str
        What messages call it; by default the file's name.

    Raises
    ------
    InvalidTable
        As `read_bounds`.
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
    """Return the numbers of each row by the name in its key column."""
    if isinstance(source, (str, Path)):
        name = name or Path(source).name
        if not Path(source).is_file():
            raise InvalidTable(f"The {what} must exist; {name[:60]!r} does not.")
    raw = read_raw(source, name=name)
    columns = {column.name: column for column in raw.columns}
    key = next((name for name in keys if name in columns), None)
    if key is None or not set(numbers) <= set(columns):
        needed = " (or ".join(keys) + (")" if len(keys) > 1 else "")
        raise InvalidTable(
            f"{name} must have the columns {needed}, {' and '.join(numbers)}; it has "
            f"{listed(list(columns))}."
        )
    used = [columns[each] for each in (key, *numbers)]
    if any(column.missing for column in used) or not all(one.is_feature for one in used[1:]):
        raise InvalidTable(
            f"{name} must have a name and a number for {' and '.join(numbers)} in every row."
        )
    # The parsed columns and not a Table: names may be as many as rows.
    names = [_name(value) for value in raw.data[key].to_pylist()]
    if len(set(names)) != len(names):
        raise InvalidTable(f"{name} must name each {key} once; one is repeated.")
    rows = zip(*(raw.data[number].to_pylist() for number in numbers), strict=True)
    return {each: tuple(map(float, row)) for each, row in zip(names, rows, strict=True)}


def _name(value: object) -> str:
    """Return a cell as a name; whole numbers lose the point that parsing gave them."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return unguarded(str(value))
