"""CSV and its relatives: parsed by Arrow as `dpviz.datasets.layout` says."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from dpviz.core.errors import InvalidTable
from dpviz.datasets.columns import MISSING_MARKERS
from dpviz.datasets.layout import Layout
from dpviz.datasets.source import (
    BLOCK_BYTES,
    CHUNK,
    LineEnded,
    RowStream,
    Source,
    SpacesCollapsed,
    as_raw,
)

DELIMITER_WORDS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "space"}
_REFUSED_COLUMN = re.compile(r"In CSV column #(\d+):")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")


def _padded(markers: tuple[str, ...]) -> list[str]:
    """Return the markers bare and with a blank on either or both sides."""
    return [f"{a}{marker}{b}" for marker in markers for a in ("", " ") for b in ("", " ")]


def _open(source: Source, layout: Layout) -> Any:
    stream = source.open_text()
    if layout.stop is None and isinstance(stream, pa.NativeFile):
        stream.seek(layout.start)
        rows = stream
    else:
        rows = RowStream(stream, layout.start, layout.stop)
    return SpacesCollapsed(rows) if layout.delimiter == " " else rows


def _arrow_stream(source: Source, layout: Layout) -> Any:
    stream = _open(source, layout)
    return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")


def _options(layout: Layout, types: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return how Arrow shall read, split and convert; columns are called by their position."""
    return (
        arrow_csv.ReadOptions(
            block_size=BLOCK_BYTES, column_names=[str(j) for j in range(layout.width)]
        ),
        arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            null_values=_padded(MISSING_MARKERS),
            true_values=_padded(_TRUE),
            false_values=_padded(_FALSE),
            strings_can_be_null=True,
            decimal_point=layout.decimal,
            column_types=types,
        ),
    )


def open_batches(
    source: Source, layout: Layout, types: dict[int, Any] | None = None
) -> Iterator[Any]:
    """Yield the text as pyarrow record batches, in constant memory.

    Parameters
    ----------
    source : Source
    layout : Layout
    types : dict of int to pyarrow type, optional
        The columns to read, by position, and what they hold. If not given, all
        are read and their types are inferred from the first batch alone.

    Raises
    ------
    InvalidTable
        As `parse`, and when a column later holds something else than its type.
    """
    fixed = {j: pa.string() for j in layout.as_text} if types is None else types
    read, split, convert = _options(layout, {str(j): kind for j, kind in fixed.items()})
    if types is not None:
        convert.include_columns = [str(j) for j in types]
    # Arrow hands over a last line without an end by itself, after types are inferred.
    stream = (
        pa.PythonFile(LineEnded(_open(source, layout)), mode="r")
        if types is None
        else _arrow_stream(source, layout)
    )
    try:
        yield from arrow_csv.open_csv(
            stream,
            read_options=read,
            parse_options=split,
            convert_options=convert,
        )
    except pa.ArrowInvalid as error:
        # Arrow's message quotes the cell, so only the column's number is taken from it
        column = _REFUSED_COLUMN.match(str(error))
        if column is None:
            raise InvalidTable(_what_is_wrong(source, layout)) from None
        raise later_text(source.name, int(column[1])) from None


def later_text(name: str, column: int) -> InvalidTable:
    """Return the error for a column of numbers that turns out to hold text as well."""
    return InvalidTable(
        f"column {column + 1} of {name} starts with numbers and later holds text, which a file "
        "read in batches must not."
    )


def parse(source: Source, layout: Layout, as_text: Collection[int] = ()) -> Any:
    """Return the text as a pyarrow Table whose column types Arrow inferred.

    Parameters
    ----------
    source : Source
    layout : Layout
    as_text : collection of int
        Columns that stay text, beside those that the layout names.

    Raises
    ------
    InvalidTable
        When a line has another number of cells than the first, or a quote
        stays open; the line is named.
    """
    kept = {str(j): pa.string() for j in {*layout.as_text, *as_text}}
    read, split, convert = _options(layout, kept)
    try:
        table = arrow_csv.read_csv(
            _arrow_stream(source, layout),
            read_options=read,
            parse_options=split,
            convert_options=convert,
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return pa.table({str(j): pa.nulls(0) for j in range(layout.width)})
        # Arrow's message quotes the line, so it is replaced and not passed on
        raise InvalidTable(_what_is_wrong(source, layout)) from None
    if _may_be_swallowed(table) and _quote_stays_open(source, layout):
        raise InvalidTable(_open_quote(source.name))
    return table


def _may_be_swallowed(table: Any) -> bool:
    """Return whether a cell of the last row holds a line's end.

    A quote that is never closed takes the rest of the file into one cell, and
    Arrow does not mind.
    """
    if not table.num_rows:
        return False
    texts = [column[-1] for column in table.columns if pa.types.is_string(column.type)]
    cells = [cell.as_buffer().to_pybytes() for cell in texts if cell.is_valid]
    return any(b"\n" in cell or b"\r" in cell for cell in cells)


def _quote_stays_open(source: Source, layout: Layout) -> bool:
    """Return whether the text ends inside quotes; reads it again, line by line."""
    try:
        for _ in _records(source, layout, strict=True):
            pass
    except csv.Error:
        return True
    return False


def _open_quote(name: str) -> str:
    return (
        f"{name} cannot be split into cells: a quote is opened and never closed, "
        f"or a line is longer than {BLOCK_BYTES >> 20} MiB."
    )


def _records(source: Source, layout: Layout, *, strict: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the line each record starts on, from 1, and its number of cells."""
    raw = as_raw(_open(source, layout))
    with io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="") as text:
        reader = csv.reader(text, delimiter=layout.delimiter, strict=strict)
        start = 1
        for record in reader:
            if record:
                yield layout.skipped + start, len(record)
            start = reader.line_num + 1


def _is_utf8(source: Source) -> bool:
    """Return whether the whole text is UTF-8; reads it again."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    stream = source.open_text()
    try:
        while chunk := stream.read(CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _what_is_wrong(source: Source, layout: Layout) -> str:
    """Return the sentence for a text that Arrow refused; reads it again, line by line."""
    if not _is_utf8(source):
        return (
            f"{source.name} is not UTF-8 text; save it as UTF-8, or choose Windows-1252 as its "
            "encoding (--encoding cp1252)."
        )
    first = layout.skipped  # the line of names, where there is one
    expected = None if layout.names is None else len(layout.names)
    try:
        for line, cells in _records(source, layout):
            expected, first = (cells, line) if expected is None else (expected, first)
            if cells != expected:
                return (
                    f"{source.name} must have the same number of cells on every line; read with "
                    f"the delimiter {DELIMITER_WORDS[layout.delimiter]}, line {line} has {cells} "
                    f"and {'the first line' if first <= 1 else f'line {first}'} has {expected}."
                )
    except csv.Error:  # a cell above the csv module's limit, so an open quote
        pass
    return _open_quote(source.name)
