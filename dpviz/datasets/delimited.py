"""CSV and its relatives: finds delimiter, header and decimal mark, then parses.

The layout is judged on a sample of the start; the parser is Arrow's, which
infers each column's type from the whole file.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from dpviz.datasets.source import Source, refuse_foreign
from dpviz.errors import InvalidTable

MISSING_MARKERS = (
    "", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NAN", "null",
    "NULL", "Null", "None", "none", "nil", "?", ".", "-", "--",
)  # fmt: skip
"""Cells that count as missing, also with blanks around them."""

DELIMITER_WORDS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "space"}

_SAMPLE_BYTES = 1 << 19
_SAMPLE_ROWS = 200
# Arrow parses a block at a time, and a line must fit in one
_BLOCK_BYTES = 8 << 20
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z|[+-]?inf(inity)?\Z", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?\Z")
_REFUSED_COLUMN = re.compile(r"In CSV column #(\d+):")
_BLANKS = re.compile(rb"[ \t]+")
_LINE_ENDS = re.compile(rb"(?m)^ | (?=\r?$)")
_CHUNK = 1 << 20
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")


@dataclass(frozen=True)
class Layout:
    """How a delimited text is laid out.

    Attributes
    ----------
    delimiter : str
        One of ``, ; tab | space``; a run of spaces counts as one.
    header : bool
        Whether the first line names the columns.
    decimal : str
        ``.`` or ``,``.
    numbered : bool
        Whether the header is the plain count 0, 1, 2, ...
    """

    delimiter: str
    header: bool
    decimal: str
    numbered: bool = False


def is_number(cell: str, decimal: str = ".") -> bool:
    """Return whether the text is one number written with this decimal mark."""
    cell = cell.strip()
    if decimal == "," and _COMMA_NUMBER.match(cell):
        return True
    return _NUMBER.match(cell) is not None


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING_MARKERS


def _sample(source: Source) -> str:
    """Return the first lines as text, ending at a line's end."""
    head: bytes = source.open_text().read(_SAMPLE_BYTES)
    refuse_foreign(head, source.name)
    whole = len(head) < _SAMPLE_BYTES
    try:
        # a sample may end inside a character, the file may not
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=whole)
    except UnicodeDecodeError:
        raise InvalidTable(f"{source.name} is not UTF-8 text; save it as UTF-8.") from None
    if not text.strip():
        raise InvalidTable(f"{source.name} is empty: it holds only blanks.")
    end = max(text.rfind("\n"), text.rfind("\r"))
    return text if whole or end < 0 else text[: end + 1]


def _split(text: str, delimiter: str) -> list[list[str]]:
    """Return the sample's first rows of cells, blank lines left out."""
    if delimiter == " ":
        text = "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines())
    rows = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > _SAMPLE_ROWS:
                break
    except csv.Error:  # a cell too long for any table, most likely an open quote: parsing will tell
        pass
    return rows


def detect(source: Source) -> Layout:
    """Return the layout judged on the start of the text, or raise InvalidTable."""
    text = _sample(source)
    best: tuple[float, str, str, list[list[str]]] | None = None
    # in order of preference among equals: a comma may be a decimal mark, a space be inside text
    for delimiter in ("\t", ";", "|", ",", " "):
        rows = _split(text, delimiter)
        if not rows:
            continue
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        if width < 2:
            continue
        cells = [cell for row in rows for cell in row]
        decimal = "."
        if delimiter != ",":
            commas = sum(_COMMA_NUMBER.match(cell.strip()) is not None for cell in cells)
            points = sum("." in cell and is_number(cell) for cell in cells)
            decimal = "," if commas > points else "."
        numeric = sum(is_number(cell, decimal) or _is_missing(cell) for cell in cells)
        score = count / len(rows) * (0.05 + numeric / len(cells))
        if best is None or score > best[0] + 1e-9:
            best = (score, delimiter, decimal, rows)
    if best is None:
        raise InvalidTable(
            f"{source.name} shows one column only: at least 2 are needed, separated by "
            "a comma, semicolon, tab, vertical bar or space."
        )
    _, delimiter, decimal, rows = best
    numbered = _counts_up(rows[0])
    header = numbered or _has_header(rows, decimal)
    return Layout(delimiter, header, decimal, numbered)


def _counts_up(first: list[str]) -> bool:
    """Return whether the row reads 0, 1, 2, ... after an optional blank cell."""
    cells = [cell.strip() for cell in first]
    cells = cells[1:] if cells[0] == "" else cells
    return len(cells) >= 3 and cells == [str(j) for j in range(len(cells))]


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Return whether the first row names the columns.

    A column votes yes when its first cell is text above numbers, and no when
    it is a number above numbers. A tie, or no vote, is a yes.
    """
    votes = 0
    for j, cell in enumerate(rows[0]):
        below = [row[j] for row in rows[1:] if j < len(row) and not _is_missing(row[j])]
        numeric = sum(is_number(other, decimal) for other in below)
        if is_number(cell, decimal):
            votes -= 1 if numeric >= 0.5 * len(below) else 0
        elif not _is_missing(cell) and below and numeric >= 0.9 * len(below):
            votes += 1
    return votes >= 0


class _SpacesCollapsed:
    """A binary stream whose runs of blanks are single spaces, none at the line ends."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._rest = b""
        self._ready = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, all for -1; empty at the end."""
        parts = [self._ready]
        have = len(self._ready)
        while not self._ended and (size < 0 or have == 0):
            chunk: bytes = self._stream.read(_CHUNK)
            self._ended = not chunk
            self._rest += chunk
            # a run of blanks may go on in the next chunk, a line's end cannot
            # without any line end the parser will refuse the block, so it need not be kept
            flush = self._ended or len(self._rest) > _BLOCK_BYTES
            end = len(self._rest) if flush else self._rest.rfind(b"\n") + 1
            lines, self._rest = self._rest[:end], self._rest[end:]
            parts.append(_LINE_ENDS.sub(b"", _BLANKS.sub(b" ", lines)))
            have += len(parts[-1])
        whole = b"".join(parts)
        size = have if size < 0 else size
        self._ready = whole[size:]
        return whole[:size]

    def close(self) -> None:
        """Do nothing: the source owns the stream."""


def _padded(markers: tuple[str, ...]) -> list[str]:
    """Return the markers bare and with a blank on either or both sides."""
    return [f"{a}{marker}{b}" for marker in markers for a in ("", " ") for b in ("", " ")]


def _open(source: Source, layout: Layout) -> Any:
    stream = source.open_text()
    return _SpacesCollapsed(stream) if layout.delimiter == " " else stream


def _arrow_stream(source: Source, layout: Layout) -> Any:
    stream = _open(source, layout)
    return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")


def _options(layout: Layout) -> tuple[Any, Any, Any]:
    """Return how Arrow shall read, split and convert."""
    return (
        arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, autogenerate_column_names=not layout.header),
        arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            null_values=_padded(MISSING_MARKERS),
            true_values=_padded(_TRUE),
            false_values=_padded(_FALSE),
            strings_can_be_null=True,
            decimal_point=layout.decimal,
        ),
    )


def open_batches(
    source: Source, layout: Layout, types: Mapping[str, Any] | None = None
) -> Iterator[Any]:
    """Yield the text as pyarrow record batches, in constant memory.

    Parameters
    ----------
    source : Source
    layout : Layout
    types : mapping of str to pyarrow type, optional
        The columns to read and what they hold. If not given, all are read and
        their types are inferred from the first batch alone.

    Raises
    ------
    InvalidTable
        As `parse`, and when a column later holds something else than its type.
    """
    read, split, convert = _options(layout)
    if types is not None:
        convert.column_types = dict(types)
        convert.include_columns = list(types)
    try:
        yield from arrow_csv.open_csv(
            _arrow_stream(source, layout),
            read_options=read,
            parse_options=split,
            convert_options=convert,
        )
    except pa.ArrowInvalid as error:
        # Arrow's message quotes the cell, so only the column's number is taken from it
        column = _REFUSED_COLUMN.match(str(error))
        if column is None:
            raise InvalidTable(_what_is_wrong(source, layout)) from None
        raise InvalidTable(
            f"column {int(column[1]) + 1} of {source.name} starts with numbers and later holds "
            "text, which a file read in batches must not."
        ) from None


def parse(source: Source, layout: Layout) -> Any:
    """Return the text as a pyarrow Table whose column types Arrow inferred.

    Without a header the columns are called ``f0``, ``f1``, ...

    Raises
    ------
    InvalidTable
        When a line has another number of cells than the first, or a quote
        stays open; the line is named.
    """
    read, split, convert = _options(layout)
    try:
        table = arrow_csv.read_csv(
            _arrow_stream(source, layout),
            read_options=read,
            parse_options=split,
            convert_options=convert,
        )
    except pa.ArrowInvalid:
        # Arrow's message quotes the line, so it is replaced and not passed on
        raise InvalidTable(_what_is_wrong(source, layout)) from None
    if _may_be_swallowed(table) and _quote_stays_open(source, layout):
        raise InvalidTable(_open_quote(source.name))
    return table


def _may_be_swallowed(table: Any) -> bool:
    """Return whether a cell of the last row, or the last name, holds a line's end.

    A quote that is never closed takes the rest of the file into one cell, and
    Arrow does not mind.
    """
    last = list(table.column_names)
    if table.num_rows:
        ends = (column[-1].as_py() for column in table.columns if pa.types.is_string(column.type))
        last += [cell for cell in ends if cell is not None]
    return any("\n" in cell or "\r" in cell for cell in last)


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
        f"or a line is longer than {_BLOCK_BYTES >> 20} MiB."
    )


def _records(source: Source, layout: Layout, *, strict: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the line each record starts on, from 1, and its number of cells."""
    text = io.TextIOWrapper(
        _as_raw(_open(source, layout)), encoding="utf-8", errors="replace", newline=""
    )
    reader = csv.reader(text, delimiter=layout.delimiter, strict=strict)
    start = 1
    for record in reader:
        if record:
            yield start, len(record)
        start = reader.line_num + 1


def _as_raw(stream: Any) -> Any:
    """Return the stream as the buffered binary file that text wrappers need."""

    class Raw(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            data: bytes = stream.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)

    return io.BufferedReader(Raw(), buffer_size=1 << 20)


def _what_is_wrong(source: Source, layout: Layout) -> str:
    """Return the sentence for a text that Arrow refused; reads it again, line by line."""
    expected = None
    try:
        for line, cells in _records(source, layout):
            expected = cells if expected is None else expected
            if cells != expected:
                return (
                    f"{source.name} must have the same number of cells on every line; read with "
                    f"the delimiter {DELIMITER_WORDS[layout.delimiter]}, line {line} has {cells} "
                    f"and the first line has {expected}."
                )
    except csv.Error:  # a cell above the csv module's limit, so an open quote
        pass
    return _open_quote(source.name)
