r"""The rows of a table as a release reads them: one record a line, each cell by itself.

Nothing here depends on more than one line. The bytes are cut into lines at ``\\n``, a ``\\r``
before it is dropped, and the end of the last line begins no record; an empty line is a record. A
line is cut into cells, and a quote never reaches beyond it; cells that a line lacks are missing,
cells that it has too many are not looked at. A cell is a number if it is written with the digits 0
to 9, a sign, the declared decimal mark and an exponent, the place of a word among the declared ones
of its column where it is one of them, and missing otherwise. How many lines there
are, and what the line of names says, is public; nothing else can stop a reader.

Where the schema names the column of the person, the first so many rows of each count, and the rest
are rows of missing cells: what is left of a person depends on that person's lines alone.

A sheet of a workbook comes here as text, of which the same is true (`formats.sheet_text`).

Memory is bounded by the block of rows and `LONGEST_LINE`, whatever stands in the file, and by the
people that a schema tells apart.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import OTHER
from dpviz.core.errors import InvalidTable, printable
from dpviz.core.settings import plain_word
from dpviz.datasets import Table
from dpviz.datasets.claims import DAMAGED, claims_of
from dpviz.datasets.columns import clean_names, to_numpy
from dpviz.datasets.files import keyed
from dpviz.datasets.source import Source, readable, refuse_foreign
from dpviz.datasets.survey import is_number, is_text, plain_numbers
from dpviz.datasets.table import label_text
from dpviz.releasing.schema import MOST_COLUMNS, Column, Schema

Codes: TypeAlias = NDArray[np.intp]
"""Each row's label, as a place among the kinds of a schema; shape (m,)."""
TableInput: TypeAlias = Table | Path | bytes | bytearray | memoryview | BinaryIO
"""What a release can be made of."""

LONGEST_LINE = 1 << 22
"""Bytes of a line that are looked at."""
LONGEST_NUMBER = 1_000
"""Bytes of the longest number; a double has at most 767 digits that matter."""

_CELLS = 1 << 18  # of a block
_BLOCK_BYTES = 1 << 23
_BOM = b"\xef\xbb\xbf"
_QUOTE = b'"'
_BLANK, _SEEN = re.compile(rb"\s"), re.compile(rb"\S")


class Records(Protocol):
    """Rows that can be read again and again."""

    @property
    def n(self) -> int:
        """How many rows there are, which is public."""
        ...

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order, NaN for what is missing; shape (m, d) each.

        They are n rows in all, less those that are too many of one person.
        """
        ...

    def labelled(self) -> Iterator[tuple[FloatArray, Codes]]:
        """Yield the same, with each row's label as a place among the schema's kinds."""
        ...


class _Records(ABC):
    """Rows whose last column is the code of the label, where the schema declares one."""

    _schema: Schema

    @abstractmethod
    def _read(self) -> Iterator[FloatArray]:
        """Yield rows, and after them the code of the label where there is one."""

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the rows."""
        d = len(self._schema.used)
        for found in self._read():
            yield found[:, :d]

    def labelled(self) -> Iterator[tuple[FloatArray, Codes]]:
        """Yield the rows and their labels."""
        d = len(self._schema.used)
        for found in self._read():
            coded = bool(self._schema.label)
            codes = found[:, d].astype(np.intp) if coded else np.zeros(len(found), dtype=np.intp)
            yield found[:, :d], codes


def _coder(schema: Schema, encoding: str = "utf-8") -> Callable[[bytes], int]:
    """Return what tells a cell's place among the kinds: by that cell alone."""
    known = {name.encode(encoding, "replace"): at for at, name in enumerate(schema.kinds)}
    other = schema.kinds.index(OTHER)
    return lambda cell: known.get(cell.strip(), other)


def open_records(table: TableInput, schema: Schema) -> Records:
    """Return the records of a table under a schema.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    schema : Schema

    Raises
    ------
    InvalidTable
        If the table cannot be opened, or its names are not those of the schema. No message and no
        refusal depends on a row.
    """
    if isinstance(table, Table):
        return _OfTable(table, schema)
    source = Source(table, printable(table.name) if isinstance(table, Path) else "the table")
    if not (schema.header or schema.skip):  # the first bytes may be somebody's
        return _OfText(source, schema, packed=schema.packing == "gzip")
    if schema.packing == "auto" and schema.header and source.is_parquet:
        return _OfParquet(source, schema)
    packed = source.is_gzip if schema.packing == "auto" else schema.packing == "gzip"
    return _OfText(source, schema, packed=packed)


def places_of(names: Sequence[str], schema: Schema, name: str) -> list[int]:
    """Return where the columns that a schema uses stand among a table's names.

    The last ones, where the schema names them, are those of the person and of the label.
    """
    known = {found: place for place, found in enumerate(clean_names(names)[0])}
    wanted = [column.name for column in schema.used]
    wanted += [name for name in (schema.person, schema.label) if name]
    for column in wanted:
        if column not in known:
            raise InvalidTable(
                f"{name} must have the columns of the schema; none of its {len(names):,} is named "
                f"{column!r}."
            )
    return [known[column] for column in wanted]


class _People:
    """Which rows of a table count, where a schema says how many one person has at most.

    Reading is then no longer local to a row, for whether one counts hangs on those of the same
    person above it, but it is local to a person: nobody else's rows are looked at. Those that are
    too many are left out, as rows of zeros are that n still counts. So at most m rows of a person
    move X'X, however many she has, and taking hers away, or putting those of somebody who is not
    in the table in their place, changes at most m of its rows, one after the other: m times what
    one row does. Were they filled with typical values, those would go with her as well.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._met: Counter[bytes] = Counter()

    def over(self, person: bytes) -> bool:
        """Count one more row of a person; return whether it is one too many.

        Rows without a person are those of one, so that nobody escapes the limit by a gap.
        """
        # a name is kept for each person: none may take more memory than others, nor be taken for
        # another that begins as it does
        if len(person) > LONGEST_NUMBER:
            person = person[:LONGEST_NUMBER] + blake2b(person).digest()
        self._met[person] += 1
        return self._met[person] > self._most

    def first(self, rows: FloatArray, people: Iterable[bytes]) -> FloatArray:
        """Return the rows that count."""
        over = np.fromiter((self.over(person) for person in people), bool, len(rows))
        found: FloatArray = rows[~over]
        return found


def _people(schema: Schema) -> _People | None:
    if not schema.person:
        return None
    assert schema.rows_a_person is not None
    return _People(schema.rows_a_person)


class _OfTable(_Records):
    """Numbers in memory."""

    def __init__(self, table: Table, schema: Schema) -> None:
        self._table, self._schema = table, schema
        # its labels stand beside its columns, unless one of these is declared to be them
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
        people = _people(schema)
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
                names = cells[:, d] + 0.0  # -0 names whom 0 names
                found = people.first(found, (value.tobytes() for value in names))
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
                raise InvalidTable(f"{source.name} has no line of names.")
            refuse_foreign(line, source.name)
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
        # to the number of lines that were counted, should the file have changed since
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
        # n was counted and is public, so lines that are gone since count as missing
        while left > 0:
            gone = min(left, most)
            missing = np.full((gone, len(self._schema.used)), np.nan)
            other = self._schema.kinds.index(OTHER) if self._schema.label else 0
            yield np.column_stack([missing, np.full(gone, other)])
            left -= gone

    def _parser(self) -> Callable[[bytes], list[float] | None]:
        """Return what reads the lines in order: None for one too many of a person."""
        parse, people = line_parser(self._schema, self._places), _people(self._schema)
        person, label = self._person, self._label
        # nothing beside the features: a line need not be cut twice
        if person is None and label is None:
            return parse
        delimiter, most = self._schema.delimiter.encode(), max(person or 0, label or 0) + 1
        code = None if label is None else _coder(self._schema, self._schema.encoding)

        def counted(line: bytes) -> list[float] | None:
            cells = split(line.removesuffix(b"\r"), delimiter, most)
            # a short line lacks its last cells, and is read all the same
            cells += [b""] * (most - len(cells))
            if people is not None and person is not None and people.over(cells[person].strip()):
                return None
            found = parse(line)
            return found if code is None or label is None else [*found, code(cells[label])]

        return counted

    def _count(self) -> int:
        lines, last = 0, b"\n"
        for chunk in self._source.chunks(self._packed):
            lines += chunk.count(b"\n")
            last = chunk[-1:]
        # the last line may lack its end
        return lines + (last != b"\n")

    def _lines(self) -> Iterator[bytes]:
        return _lines(self._source.chunks(self._packed))


def lines_of(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a text in memory as a release cuts them."""
    return _lines(iter([text]))


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends, cut to `LONGEST_LINE`."""
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
    """Typed columns; those of text are read cell by cell."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source, self._schema = source, schema
        with readable(DAMAGED.format(source.name)):
            file = parquet.ParquetFile(source.open())
            self.n: int = file.metadata.num_rows
            columns = keyed(file.schema_arrow.empty_table())
        keys = list(columns)
        places = places_of([name for name, _ in keys], schema, source.name)
        self._keys = [keys[place] for place in places]
        for column, key in zip(schema.used, self._keys, strict=False):  # that of the person is last
            if not usable(columns[key].type):
                raise InvalidTable(
                    f"column {column.name!r} of {source.name} must hold numbers or texts; its type "
                    "is another."
                )
        # by name Arrow reads every column that has it
        self._names = list(dict.fromkeys(name for name, _ in self._keys))
        self._claims = claims_of(source, set(self._names))

    def _read(self) -> Iterator[FloatArray]:
        readers = [cell_parser(self._schema, column, "utf-8") for column in self._schema.used]
        people = _people(self._schema)
        step = self._claims.rows(_CELLS // len(self._keys), self._names)
        with readable(DAMAGED.format(self._source.name)):
            file = parquet.ParquetFile(self._source.open(), read_dictionary=self._claims.coded)
            for batch in file.iter_batches(batch_size=step, columns=self._names):
                read = keyed(batch)
                columns = [read[key] for key in self._keys]
                labels = columns.pop() if self._schema.label else None
                persons = None if people is None else columns.pop()
                block = np.empty((batch.num_rows, len(columns)))
                for j, (column, reader) in enumerate(zip(columns, readers, strict=True)):
                    block[:, j] = _numbers(column, reader)
                if labels is not None:
                    coder = _coder(self._schema)
                    codes = [coder(label) for label in _texts(labels)]
                    block = np.column_stack([block, codes])
                if people is not None and persons is not None:
                    block = people.first(block, _texts(persons))
                yield block


def _text(cell: Any) -> bytes:
    """Return a cell of numbers or texts as a line of text would have it."""
    return cell.strip() if isinstance(cell, bytes) else label_text(cell).encode(errors="replace")


def _texts(values: Any) -> list[bytes]:
    """Return the cells of a Parquet column as lines of text would have them.

    What Python has no value for, such as a date of the year 10000, is missing: no cell stops all.
    """
    if pa.types.is_dictionary(values.type):
        known = _texts(values.dictionary)
        return [b"" if at is None else known[at] for at in values.indices.to_pylist()]
    if is_text(values.type):  # as bytes: a text of a Parquet file need not be UTF-8
        return [_text(cell) for cell in values.cast(pa.large_binary()).to_pylist()]

    def alone(cell: Any) -> bytes:
        try:
            return _text(cell.as_py())
        except (ValueError, OverflowError):
            return b""

    try:
        return [_text(cell) for cell in values.to_pylist()]
    except (ValueError, OverflowError):
        return [alone(cell) for cell in values]


def usable(kind: Any) -> bool:
    """Return whether a Parquet column of a type can be read cell by cell as numbers."""
    kind = _plain(kind)
    return is_text(kind) or is_number(kind) or bool(pa.types.is_null(kind))


def _plain(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _numbers(values: Any, number: Callable[[bytes], float]) -> FloatArray:
    """Return a Parquet column as doubles, NaN for a gap and for what is no number."""
    kind = values.type
    if pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    if pa.types.is_dictionary(kind):
        codes = to_numpy(values.indices.fill_null(-1)).astype(np.int64)
        # a dictionary may list words that no row has
        met, places = np.unique(codes[codes >= 0], return_inverse=True)
        found = np.full(len(codes), np.nan)
        found[codes >= 0] = _numbers(values.dictionary.take(pa.array(met)), number)[places]
        return found
    if is_text(kind):
        # as bytes: a text of a Parquet file need not be UTF-8
        texts = values.cast(pa.large_binary()).to_pylist()
        return np.array([np.nan if text is None else number(text) for text in texts], np.float64)
    return np.asarray(to_numpy(plain_numbers(values)), dtype=np.float64)


def _numeral(schema: Schema) -> re.Pattern[bytes]:
    """Return how a number is written."""
    mark, group = re.escape(schema.decimal).encode(), re.escape(schema.thousands).encode()
    digits = rb"[0-9]+"
    if schema.thousands:
        digits = rb"(?:[0-9]{1,3}(?:" + group + rb"[0-9]{3})+|[0-9]+)"
    body = rb"(?:" + digits + rb"(?:" + mark + rb"[0-9]*)?|" + mark + rb"[0-9]+)"
    return re.compile(rb"[+-]?" + body + rb"(?:[eE][+-]?[0-9]+)?")


def number_parser(schema: Schema) -> Callable[[bytes], float]:
    """Return what reads one cell: its number, infinite where a double is too small, else NaN."""
    numeral = _numeral(schema).fullmatch
    mark, group = schema.decimal.encode(), schema.thousands.encode()

    def number(cell: bytes) -> float:
        cell = cell.strip()
        # float() reads more than a number, such as nan, 1_000 or digits of other scripts
        if len(cell) > LONGEST_NUMBER or numeral(cell) is None:
            return np.nan
        if group:
            cell = cell.replace(group, b"")
        return float(cell.replace(mark, b"."))

    return number


def cell_parser(schema: Schema, column: Column, encoding: str) -> Callable[[bytes], float]:
    """Return what reads a cell of one column: its number, or the place of its word, else NaN."""
    number = number_parser(schema)
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
    """Return the first cells of a line, at most so many; quotes around cells are taken off.

    A quoted cell may hold the delimiter, and two quotes for one. A quote that is not closed ends
    with the line.
    """
    blanks = delimiter == b" "
    line = line.removeprefix(_BOM)  # of the first line; no other has it but by malice
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
    """Return what reads one line: a number for each place, NaN where there is none.

    Parameters
    ----------
    schema : Schema
    places : sequence of int
        Of the columns that are used, among the cells of a line.
    """
    readers = [cell_parser(schema, column, schema.encoding) for column in schema.used]
    read = list(zip(places, readers, strict=True))
    delimiter, mark = schema.delimiter.encode(), schema.decimal.encode()
    between = None if schema.delimiter == " " else delimiter
    most = max(places) + 1
    # Of these characters alone, float() reads what `number` reads and nothing else: no letter but
    # e, no underscore. A decimal comma is written as a point first, where it is no delimiter.
    plain = b"0123456789+-eE" + mark + delimiter
    quick = mark != delimiter
    pick: Callable[[Sequence[float]], Sequence[float]] = itemgetter(*places, places[0])

    def parse(line: bytes) -> list[float]:
        line = line.removesuffix(b"\r")
        if quick and len(line) <= LONGEST_NUMBER and not line.translate(None, plain):
            try:
                cells = line.replace(mark, b".").split(between, most)[:most]
                if len(cells) == most:
                    return list(pick(list(map(float, cells))))[:-1]
            except ValueError:  # one of them is empty, or no number
                pass
        cells = split(line, delimiter, most)
        return [reader(cells[j]) if j < len(cells) else np.nan for j, reader in read]

    return parse
