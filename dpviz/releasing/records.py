r"""The rows of a table as a release reads them: one record a line, each cell by itself.

No result here depends on more than one line. The bytes are split into lines at ``\\n``, and a
``\\r`` before it is dropped. The end of the last line begins no record; an empty line is a record.
A quote never reaches beyond its line. Cells that a line lacks are missing; surplus cells are
ignored. A cell is a number if it is written with the digits 0 to 9, a sign, the declared decimal
mark and an exponent. A declared word of its column counts as its place among these words. Any other
cell is missing. The number of lines and the header row are public; nothing else can stop a reader.

If the schema names the person's column, only a limited number of rows of each person are used, the
first ones. Rows that name nobody are left out too. The used rows of a person depend only on that
person's lines.

A workbook's sheet is read as text, under the same rules (`datasets.sheet`).

For every content of the file, memory is bounded by the block of rows, `LONGEST_LINE` and the number
of people that a schema distinguishes.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import OTHER
from dpviz.core.errors import InvalidTable, printable
from dpviz.core.settings import plain_word
from dpviz.datasets import Table
from dpviz.datasets.columns import (
    MISSING_MARKERS,
    clean_names,
    plain_numbers,
    to_numpy,
)
from dpviz.datasets.files import open_file, schema_of
from dpviz.datasets.process import sentence
from dpviz.datasets.raw import CELLS, unit_words
from dpviz.datasets.reader import Refused, is_flat, is_number, refuse_foreign
from dpviz.datasets.source import Source
from dpviz.datasets.table import NAMELESS, label_text
from dpviz.releasing.schema import (
    FROM_DATA,
    MOST_COLUMNS,
    SCHEMA_PUBLIC,
    Column,
    Schema,
    SchemaError,
)

Codes: TypeAlias = NDArray[np.intp]
"""Each row's label, as an index into the kinds of a schema; shape (m,)."""
TableInput: TypeAlias = Table | Path | bytes | bytearray | memoryview | BinaryIO
"""Types of tables that a release can read."""

LONGEST_LINE = 1 << 22
"""Maximum number of bytes of a line that are read."""
LONGEST_NUMBER = 1_000
"""Maximum length of a number in bytes; a double has at most 767 digits that matter."""

_CELLS = 1 << 18  # Maximum number of cells in a block.
_BLOCK_BYTES = 1 << 23
_BOM = b"\xef\xbb\xbf"
_QUOTE = b'"'
_NOBODY = frozenset(marker.encode() for marker in MISSING_MARKERS)
_BLANK, _SEEN = re.compile(rb"\s"), re.compile(rb"\S")


class Records(Protocol):
    """Rows that can be read several times."""

    @property
    def n(self) -> int:
        """Number of rows, which is public."""
        ...

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order, with NaN for missing values; each block has shape (m, d).

        The blocks have n rows in all, minus the rows beyond a person's limit.
        """
        ...

    def labelled(self) -> Iterator[tuple[FloatArray, Codes]]:
        """Yield the rows, with the label of each row as an index into the schema's kinds."""
        ...


class _Records(ABC):
    """Rows with the label's code as last column, if the schema declares a label."""

    _schema: Schema
    whole = False

    @abstractmethod
    def _read(self) -> Iterator[FloatArray]:
        """Yield rows, followed by the label's code if the schema declares a label."""

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the rows."""
        d = len(self._schema.used)
        for found in self._read():
            yield found[:, :d]

    def labelled(self) -> Iterator[tuple[FloatArray, Codes]]:
        """Yield the rows with their labels."""
        d = len(self._schema.used)
        for found in self._read():
            coded = bool(self._schema.label)
            codes = found[:, d].astype(np.intp) if coded else np.zeros(len(found), dtype=np.intp)
            yield found[:, :d], codes


def _coder(schema: Schema, encoding: str = "utf-8") -> Callable[[bytes], int]:
    """Return the function from a cell to its index among the kinds, which reads only the cell."""
    known = {name.encode(encoding, "replace"): at for at, name in enumerate(schema.kinds)}
    other = schema.kinds.index(OTHER)
    return lambda cell: known.get(cell.strip(), other)


def open_records(table: TableInput, schema: Schema, *, whole: bool = False) -> Records:
    """Return the records of a table under a schema.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    schema : Schema
    whole : bool
        Whether unused rows stay in place as missing instead of being left out.

    Raises
    ------
    InvalidTable
        If the table cannot be opened, or its column names differ from the schema's. No message and
        no refusal depends on a row.
    """
    found = _opened(table, schema)
    found.whole = whole
    return found


def _opened(table: TableInput, schema: Schema) -> _OfTable | _OfText | _OfParquet:
    if isinstance(table, Table):
        return _OfTable(table, schema)
    source = Source(table, printable(table.name) if isinstance(table, Path) else "the table")
    if not (schema.header or schema.skip):  # Without a header these bytes may be a row.
        return _OfText(source, schema, packed=schema.packing == "gzip")
    if schema.packing == "auto" and schema.header and source.is_parquet:
        return _OfParquet(source, schema)
    packed = source.is_gzip if schema.packing == "auto" else schema.packing == "gzip"
    return _OfText(source, schema, packed=packed)


def places_of(names: Sequence[str], schema: Schema, name: str) -> list[int]:
    """Return the positions of a schema's used columns among a table's names.

    The last positions hold the columns of the person and of the label, if the schema names them.
    """
    known = {found: place for place, found in enumerate(clean_names(names)[0])}
    wanted = [column.name for column in schema.used]
    wanted += [name for name in (schema.person, schema.label) if name]
    for column in wanted:
        if column not in known:
            raise InvalidTable(
                f"{name} must have all columns of the schema; none of its {len(names):,} columns "
                f"has the name {column!r}."
            )
    return [known[column] for column in wanted]


def declared_table(table: TableInput, schema: Schema) -> Table:
    """Return all rows of a table as a release reads them, with the declared bounds.

    Typical values are subtracted, as a release centres rows, so a missing cell is 0. A row beyond a
    person's limit, or nobody's row, is a row of zeros that n still counts. So names, n and bounds
    follow from the schema and the number of rows, and each row follows only from its own person.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    schema : Schema

    Raises
    ------
    InvalidTable
        For the reasons listed in `open_records`, and if there are more cells than fit in memory.
    SchemaError
        If the schema is not complete, or was taken from the data.
    """
    schema.require()
    if schema.from_data:
        raise SchemaError(
            f"the schema is still marked {FROM_DATA!r}. Enter limits that were known before "
            "anybody looked at the table, and mark the schema public. Until then, publish "
            "nothing about the table."
        )
    records, (low, high, typical) = open_records(table, schema, whole=True), schema.limits_used.T
    n, d = records.n, len(typical)
    if n * d > CELLS:
        raise InvalidTable(f"the table would need {n} x {d} numbers, more than fit in memory.")
    rows, codes, at = np.zeros((n, d)), np.zeros(n, dtype=np.intp), 0
    for block, found in records.labelled():
        stop = at + len(block)
        rows[at:stop], codes[at:stop] = schema.filled(block) - typical, found
        at = stop
    return Table(
        NAMELESS,
        rows,
        schema.names_used,
        np.array(schema.kinds)[codes] if schema.label else None,
        schema.label or None,
        assumed_public=(unit_words(schema.rows_a_person), SCHEMA_PUBLIC),
        bounds=np.column_stack([low - typical, high - typical]),
        categories=schema.categories,
        declared=True,
    )


class _People:
    """Select the used rows, if a schema limits each person's rows.

    Reading is then local to a person instead of a row: whether a row is used depends on earlier
    rows of the same person and on nobody else's rows. Surplus rows are left out, like rows of zeros
    that n still counts. So at most m rows of a person move X'X. Removing a person's rows, or
    replacing them by rows of somebody who is not in the table, changes at most m rows, one after
    the other: m times the effect of one row. If surplus rows were filled with typical values, these
    values would disappear with the person as well.

    A row that names nobody is never used, which depends only on its own cell. If all nameless rows
    were one person's, a nameless row would decide whether another is used, and would move the sums.
    """

    def __init__(
        self,
        most: int,
        missing: Collection[float],
        words: Collection[bytes],
        number: Callable[[bytes], float],
        instead: list[float] | None,
    ):
        self._most, self._missing, self._number = most, missing, number
        self._nobody = _NOBODY | {*words}
        self.instead = instead
        self._met: Counter[bytes] = Counter()

    def nobody(self, person: bytes) -> bool:
        """Return whether a cell names nobody: empty, or a word or number that means "missing"."""
        if person in self._nobody:
            return True
        return bool(self._missing) and self._number(person) in self._missing

    def over(self, person: bytes) -> bool:
        """Count one more row of a person; return whether it exceeds the limit, or names nobody."""
        if self.nobody(person):
            return True
        # The name of each person is stored. A long name is cut and hashed: it needs little memory,
        # and differs from other names that begin alike.
        if len(person) > LONGEST_NUMBER:
            person = person[:LONGEST_NUMBER] + blake2b(person).digest()
        self._met[person] += 1
        return self._met[person] > self._most

    def first(self, rows: FloatArray, people: Iterable[bytes]) -> FloatArray:
        """Return the used rows; other rows are left out, or are missing in place."""
        over = np.fromiter((self.over(person) for person in people), bool, len(rows))
        found: FloatArray = rows[~over] if self.instead is None else rows.copy()
        if self.instead is not None:
            found[over] = self.instead
        return found


def _people(schema: Schema, whole: bool) -> _People | None:
    if not schema.person:
        return None
    assert schema.rows_a_person is not None
    own = next((column for column in schema.columns if column.name == schema.person), None)
    codes = () if own is None else own.codes
    words = () if own is None else [word.encode(schema.encoding, "replace") for word in own.words]
    other = [float(schema.kinds.index(OTHER))] if schema.label else []
    instead = [math.nan] * len(schema.used) + other if whole else None
    return _People(schema.rows_a_person, codes, words, number_parser(schema), instead)


class _OfTable(_Records):
    """A table of numbers in memory."""

    def __init__(self, table: Table, schema: Schema) -> None:
        self._table, self._schema = table, schema
        # A table's labels are not among its columns, unless a column is declared as the label.
        own = bool(schema.label) and schema.label == table.label_name and table.labels is not None
        self._own = table.labels if own and schema.label not in table.columns else None
        alone = replace(schema, label="", categories=()) if self._own is not None else schema
        self._places = places_of(table.columns, alone, table.name)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._table.rows)

    def _read(self) -> Iterator[FloatArray]:
        schema, d = self._schema, len(self._schema.used)
        people = _people(schema, self.whole)
        step = max(1, _CELLS // len(self._places))
        for start in range(0, self.n, step):
            cells = self._table.rows[start : start + step][:, self._places]
            found = cells[:, :d]
            if schema.label:
                labels = cells[:, -1] if self._own is None else self._own[start : start + step]
                coder = _coder(schema)
                codes = [coder(_text(label)) for label in np.asarray(labels).tolist()]
                found = np.column_stack([found, codes])
            if people is not None:
                found = people.first(found, (_text(value) for value in cells[:, d].tolist()))
            yield found


class _OfText(_Records):
    """Lines of a delimited text."""

    def __init__(self, source: Source, schema: Schema, *, packed: bool) -> None:
        self._source, self._schema, self._packed = source, schema, packed
        self._above = schema.skip + schema.header
        if schema.header:
            lines = self._lines()
            line = next((found for at, found in enumerate(lines) if at == schema.skip), None)
            if line is None:
                raise InvalidTable(f"{source.name} has no header row.")
            try:
                refuse_foreign(line)
            except Refused as error:
                raise sentence(error, source.name) from None
            cells = split(line, schema.delimiter.encode(), MOST_COLUMNS + 1)
            names = [cell.decode(schema.encoding, "replace") for cell in cells]
            self._places = places_of(names, schema, source.name)
        else:
            names = [column.name for column in schema.columns]
            self._places = places_of(names, schema, source.name)
        self._label = self._places.pop() if schema.label else None
        self._person = self._places.pop() if schema.person else None
        self.n = max(self._count() - self._above, 0)

    def _read(self) -> Iterator[FloatArray]:
        parse = self._parser()
        most = max(1, _CELLS // len(self._places))
        left, size = self.n, 0
        rows: list[list[float]] = []
        # Only the counted number of lines is read, because the file may have grown since.
        below = islice(self._lines(), self._above, self._above + self.n)
        for line in below:
            left, size = left - 1, size + len(line)
            row = parse(line)
            if row is not None:
                rows.append(row)
            if len(rows) >= most or size > _BLOCK_BYTES:
                yield np.array(rows, dtype=np.float64)
                rows, size = [], 0
        if rows:
            yield np.array(rows, dtype=np.float64)
        # The count n is public, so lines that have disappeared since then count as missing. If
        # lines name persons, a missing line names nobody and gives no row.
        while left > 0 and self._person is None:
            gone = min(left, most)
            missing = np.full((gone, len(self._schema.used)), np.nan)
            other = self._schema.kinds.index(OTHER) if self._schema.label else 0
            yield np.column_stack([missing, np.full(gone, other)])
            left -= gone

    def _parser(self) -> Callable[[bytes], list[float] | None]:
        """Return the function that reads a line, or None for a row beyond a person's limit."""
        parse, people = line_parser(self._schema, self._places), _people(self._schema, self.whole)
        person, label = self._person, self._label
        # Without a column for persons or labels, a line need not be split a second time.
        if person is None and label is None:
            return parse
        delimiter, most = self._schema.delimiter.encode(), max(person or 0, label or 0) + 1
        code = None if label is None else _coder(self._schema, self._schema.encoding)

        def counted(line: bytes) -> list[float] | None:
            cells = split(line.removesuffix(b"\r"), delimiter, most)
            # A short line lacks its last cells. It is read as if these cells were empty.
            cells += [b""] * (most - len(cells))
            if people is not None and person is not None and people.over(cells[person].strip()):
                return people.instead
            found = parse(line)
            return found if code is None or label is None else [*found, code(cells[label])]

        return counted

    def _count(self) -> int:
        lines, last = 0, b"\n"
        for chunk in self._source.chunks(self._packed):
            lines += chunk.count(b"\n")
            last = chunk[-1:]
        # The last line may end without a newline, and then counts too.
        return lines + (last != b"\n")

    def _lines(self) -> Iterator[bytes]:
        return _lines(self._source.chunks(self._packed))


def lines_of(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a text in memory as a release splits them."""
    return _lines(iter([text]))


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends, truncated to `LONGEST_LINE`."""
    rest = b""
    for chunk in chunks:
        *ended, end = chunk.split(b"\n")
        for piece in ended:
            yield (rest + piece)[:LONGEST_LINE]
            rest = b""
        rest = (rest + end)[:LONGEST_LINE]
    if rest:
        yield rest


class _OfParquet(_Records):
    """Parquet columns of numbers or truth values, also dictionary-coded ones.

    Each value of such a column has the size of its type, so memory follows from the number of rows
    and the types, which are public. One person can write a text of any length, and its length would
    decide whether everybody's table fits in memory. So text columns are refused by type, even for
    the label and the person.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._schema = schema
        self._file = open_file(source.given, source.name, stream=True)
        self._file.close()  # The file will be opened and read again later.
        self.n = self._file.rows
        types = schema_of(self._file)
        flat = [field.name for field in types if is_flat(field)]
        self._places = places_of(flat, schema, source.name)
        # Columns are read by index: by name, Arrow would add nested columns of the same name.
        names = [flat[place] for place in self._places]
        for field in types:
            meant = next((name for name in names if _overlap(name, field.name)), None)
            if meant is not None and not usable(field.type):
                raise InvalidTable(
                    f"column {meant!r} of {source.name} must hold numbers or truth values. In a "
                    "Parquet file the length of a text could decide whether a release is refused. "
                    "Save the table as CSV, or replace the texts by numbers."
                )

    def _read(self) -> Iterator[FloatArray]:
        people, d = _people(self._schema, self.whole), len(self._schema.used)
        rows = max(1, _CELLS // len(self._places))
        for batch in self._file.batches({"columns": self._places, "rows": rows}):
            columns = batch.columns
            block = np.empty((batch.num_rows, d))
            for j, column in enumerate(columns[:d]):
                block[:, j] = _numbers(column)
            if self._schema.label:
                coder = _coder(self._schema)
                block = np.column_stack([block, [coder(label) for label in _texts(columns[-1])]])
            yield block if people is None else people.first(block, _texts(columns[d]))


def _overlap(name: str, other: str) -> bool:
    """Return whether Arrow reads a second column when a caller requests the first by name."""
    return name == other or name.startswith(other + ".") or other.startswith(name + ".")


def _text(cell: Any) -> bytes:
    """Return a number or a label as it would be written in a line of text."""
    return label_text(cell).encode(errors="replace")


def _texts(values: Any) -> list[bytes]:
    return [_text(cell) for cell in values.to_pylist()]


def usable(kind: Any) -> bool:
    """Return whether a Parquet column of a type is read as numbers."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_number(kind) or bool(pa.types.is_null(kind))


def _numbers(values: Any) -> FloatArray:
    """Return a Parquet column as doubles, NaN for a missing value."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    return np.asarray(to_numpy(plain_numbers(values)), dtype=np.float64)


def _numeral(decimal: str, thousands: str) -> re.Pattern[bytes]:
    """Return the pattern of a number."""
    mark, group = re.escape(decimal).encode(), re.escape(thousands).encode()
    digits = rb"[0-9]+"
    if thousands:
        digits = rb"(?:[0-9]{1,3}(?:" + group + rb"[0-9]{3})+|[0-9]+)"
    body = rb"(?:" + digits + rb"(?:" + mark + rb"[0-9]*)?|" + mark + rb"[0-9]+)"
    return re.compile(rb"[+-]?" + body + rb"(?:[eE][+-]?[0-9]+)?")


def number_parser(schema: Schema, column: Column | None = None) -> Callable[[bytes], float]:
    """Return the function that reads a cell: its number, infinite on overflow, else NaN.

    The function uses the marks of the column, or else of the table.
    """
    decimal = (column.decimal if column is not None else "") or schema.decimal
    thousands = "" if decimal == schema.thousands else schema.thousands
    numeral = _numeral(decimal, thousands).fullmatch
    mark, group = decimal.encode(), thousands.encode()

    def number(cell: bytes) -> float:
        cell = cell.strip()
        # The function float() also accepts texts that dpviz does not, such as nan or 1_000.
        if len(cell) > LONGEST_NUMBER or numeral(cell) is None:
            return np.nan
        if group:
            cell = cell.replace(group, b"")
        return float(cell.replace(mark, b"."))

    return number


def cell_parser(schema: Schema, column: Column, encoding: str) -> Callable[[bytes], float]:
    """Return the function that reads a column's cell: its number, its word's place, else NaN."""
    number = number_parser(schema, column)
    if not column.levels:
        return number
    places = {plain_word(word): float(at) for at, word in enumerate(column.levels, 1)}

    def word(cell: bytes) -> float:
        found = number(cell)
        cell = cell.strip()
        if not math.isnan(found) or len(cell) > LONGEST_NUMBER:
            return found
        return places.get(plain_word(cell.decode(encoding, "replace")), np.nan)

    return word


def split(line: bytes, delimiter: bytes, most: int) -> list[bytes]:
    """Return at most the first ``most`` cells of a line, without the quotes around cells.

    A quoted cell may contain the delimiter, and two quotes for one quote. An unclosed quote ends
    with the line.
    """
    blanks = delimiter == b" "
    line = line.removeprefix(_BOM)  # Only the first line has a byte order mark.
    if _QUOTE not in line:
        return line.split(None if blanks else delimiter, most)[:most]
    cells: list[bytes] = []
    at = 0
    while len(cells) < most:
        if blanks:
            begin = _SEEN.search(line, at)
            if begin is None:
                break
            at = begin.start()
        parts = []
        if line.startswith(_QUOTE, at):
            at += 1
            while (end := line.find(_QUOTE, at)) >= 0 and line.startswith(_QUOTE, end + 1):
                parts.append(line[at : end + 1])
                at = end + 2
            end = len(line) if end < 0 else end
            parts.append(line[at:end])
            at = min(end + 1, len(line))
        if blanks:
            blank = _BLANK.search(line, at)
            end = len(line) if blank is None else blank.start()
        else:
            end = line.find(delimiter, at)
            end = len(line) if end < 0 else end
        cells.append(b"".join([*parts, line[at:end]]))
        if end == len(line):
            break
        at = end + 1
    return cells


def line_parser(schema: Schema, places: Sequence[int]) -> Callable[[bytes], list[float]]:
    """Return the function that reads a line: a number for each place, or NaN.

    Parameters
    ----------
    schema : Schema
    places : sequence of int
        Positions of the used columns among the cells of a line.
    """
    readers = [cell_parser(schema, column, schema.encoding) for column in schema.used]
    read = list(zip(places, readers, strict=True))
    delimiter, mark = schema.delimiter.encode(), schema.decimal.encode()
    between = None if schema.delimiter == " " else delimiter
    most = max(places) + 1
    # With only these characters, float() accepts exactly what `number` accepts: no letter but e,
    # and no underscore. A decimal comma is first replaced by a point, unless it divides cells.
    plain = b"0123456789+-eE" + mark + delimiter
    quick = mark != delimiter and all(
        column.decimal in ("", schema.decimal) for column in schema.used
    )
    pick: Callable[[Sequence[float]], Sequence[float]] = itemgetter(*places, places[0])

    def parse(line: bytes) -> list[float]:
        line = line.removesuffix(b"\r")
        if quick and len(line) <= LONGEST_NUMBER and not line.translate(None, plain):
            try:
                cells = line.replace(mark, b".").split(between, most)[:most]
                if len(cells) == most:
                    return list(pick(list(map(float, cells))))[:-1]
            except ValueError:  # The cell is empty, or is not a number.
                pass
        cells = split(line, delimiter, most)
        return [reader(cells[j]) if j < len(cells) else np.nan for j, reader in read]

    return parse
