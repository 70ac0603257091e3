"""How a delimited text is laid out: delimiter, names, and what surrounds the table.

It is judged on the start of the text and on its last line. A column whose numbers could be read
in two ways is to be parsed as text, so that `dpviz.datasets.numerals` can decide over all of it.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from dpviz.core.errors import InvalidTable, OtherEncoding, printable
from dpviz.datasets.columns import MISSING_MARKERS
from dpviz.datasets.numerals import COMMA, POINT, Numerals, judge, numbers_among
from dpviz.datasets.source import BLOCK_BYTES, Extent, Source, refuse_foreign

_TOTALS = {
    "total", "totals", "grand total", "sum", "average", "mean",
    "gesamt", "insgesamt", "summe", "durchschnitt", "mittelwert",
}  # fmt: skip
_SAMPLE_BYTES = 1 << 19
_SAMPLE_ROWS = 200
_JUDGED_ROWS = 2_000
_MOST_TITLES = 10
_SEP_LINE = re.compile(r"sep=(.)\s*\Z", re.IGNORECASE)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class Layout:
    """How a delimited text is laid out.

    Attributes
    ----------
    delimiter : str
        One of ``, ; tab | space``; a run of spaces counts as one.
    names : tuple of str or None
        What the line of column names says; None where there is no such line.
    width : int
        Number of columns.
    decimal : str
        The mark that Arrow reads numbers with, ``.`` or ``,``.
    as_text : frozenset of int
        Columns that are parsed as text, for their numbers to be judged.
    unproven : frozenset of int
        Columns whose numbers show no mark in the sample.
    proved : frozenset of str
        Decimal marks that some column of the sample proves.
    start : int
        Byte of the text at which the rows start.
    stop : int or None
        Byte at which they end, where something follows them.
    skipped : int
        Lines before the rows.
    notes : tuple of str
        What was seen, as sentences.
    """

    delimiter: str
    names: tuple[str, ...] | None
    width: int
    decimal: str
    as_text: frozenset[int]
    unproven: frozenset[int]
    proved: frozenset[str]
    start: int
    stop: int | None
    skipped: int
    notes: tuple[str, ...]

    @property
    def header(self) -> bool:
        """Whether a line names the columns."""
        return self.names is not None


@dataclass(frozen=True)
class _Record:
    """One record of the sample and the number of lines up to its end."""

    cells: list[str]
    lines: int


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING_MARKERS


def _are_numbers(cells: Sequence[str]) -> list[bool]:
    """Return which cells are a number under some decimal mark."""
    trimmed = pa.array([cell.strip() for cell in cells], pa.large_string())
    return [bool(flag) for flag in numbers_among(trimmed)]


@dataclass(frozen=True)
class _Sample:
    """The first lines of a text.

    Attributes
    ----------
    lines : list of str
        With their ends.
    before : int
        Bytes of the mark before them.
    delimiter : str
        What separates their cells.
    skipped : int
        Lines that say so.
    """

    lines: list[str]
    before: int
    delimiter: str
    skipped: int

    def records(self) -> list[_Record]:
        """Return the records that the layout is judged on."""
        return _split(self.lines[self.skipped :], self.delimiter, _JUDGED_ROWS)

    def start(self, gone: int) -> int:
        """Return the byte of the text at which a line starts, by the number of those before."""
        return self.before + len("".join(self.lines[:gone]).encode())


def _sample(source: Source) -> _Sample:
    """Return the first lines, and what separates their cells."""
    stream = source.open_text()
    head: bytes = stream.read(_SAMPLE_BYTES)
    refuse_foreign(head, source.name)
    whole = len(head) < _SAMPLE_BYTES
    if not whole and b"\n" not in head and b"\r" not in head:
        head += stream.read(BLOCK_BYTES)  # the names alone are that long
        whole = len(head) < _SAMPLE_BYTES + BLOCK_BYTES
    try:
        # a sample may end inside a character, the file may not
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError:
        raise OtherEncoding(
            f"{source.name} is not UTF-8 text; save it as UTF-8{_offer(head, source.name)}.",
            "cp1252",
        ) from None
    mark = 3 if text.startswith("\ufeff") else 0
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidTable(f"{source.name} is empty: it holds only blanks.")
    end = max(text.rfind("\n"), text.rfind("\r"))
    lines = _LINE.findall(text if whole or end < 0 else text[: end + 1])
    return _Sample(lines, mark, *_separator(lines, source))


def _offer(head: bytes, name: str) -> str:
    """Return that a text may be of Windows, with a name of a column that shows how it would look.

    Only what would be read as a name is shown: never a cell.
    """
    offer = ", or choose Windows-1252 as its encoding (--encoding cp1252)"
    try:
        source = Source(head[: head.rfind(b"\n") + 1].decode("cp1252").encode(), name)
        names = detect(source, source.extent()).names or ()
    except (UnicodeDecodeError, InvalidTable):
        return offer
    seen = next((found for found in names if not found.isascii()), None)
    return offer if seen is None else f"{offer}: umlauts then look like {printable(seen)!r}"


def _split(lines: Sequence[str], delimiter: str, most: int) -> list[_Record]:
    """Return the sample's first records, blank lines left out."""
    # columns are often lined up by several blanks
    if delimiter == " ":
        lines = [re.sub(r"[ \t]+", " ", line).strip() for line in lines]
    records = []
    reader = csv.reader(iter(lines), delimiter=delimiter)
    try:
        for cells in reader:
            if cells:
                records.append(_Record(cells, reader.line_num))
            if len(records) > most:
                break
    except csv.Error:  # a cell too long for any table, most likely an open quote: parsing will tell
        pass
    return records


def detect(source: Source, extent: Extent, decimal: str | None = None) -> Layout:
    """Return the layout judged on the start and the end of the text, or raise InvalidTable.

    Parameters
    ----------
    source : Source
    extent : Extent
        Of the source.
    decimal : str, optional
        The decimal mark, where the user said it.
    """
    sample = _sample(source)
    records = sample.records()
    head = _head(records)
    names, rows = head.names, head.rows
    notes = [_TOLD] * sample.skipped + head.notes
    # most rows are whole: one that is cut short must not set the width
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else len(names or ())
    gone = sample.skipped + (records[head.past - 1].lines if head.past else 0)
    stop = _total_line(extent, sample.delimiter, width, rows)
    if stop is not None:
        notes.append("The last line sums up the others: it was left out.")
    if names is not None and rows and len(names) == width - 1:
        names = ("", *names)  # R names all columns but that of the row names
    if names is not None:
        width = len(names)  # parsing will name the first line that differs
    judged = _judged(rows, width)
    proved = frozenset(found.proves for found in judged if found.proves is not None)
    # one column that proves a comma speaks for all that prove nothing
    mark = decimal or (COMMA if proved == {COMMA} else POINT)
    return Layout(
        sample.delimiter,
        names,
        width,
        POINT if sample.delimiter == COMMA else mark,
        _as_text(judged, rows, sample.delimiter),
        frozenset(j for j, found in enumerate(judged) if found.proves is None),
        proved,
        sample.start(gone),
        stop,
        gone,
        tuple(notes),
    )


_TOLD = "The first line says what separates the cells and was not read as data."


def _separator(lines: Sequence[str], source: Source) -> tuple[str, int]:
    """Return what separates the cells, and how many lines before them say so."""
    told = _SEP_LINE.match(lines[0])
    skipped = 0
    delimiters: tuple[str, ...] = ("\t", ";", "|", ",", " ")
    if told and told[1] in delimiters:
        delimiters, skipped = (told[1],), 1
    elif source.delimiter:
        delimiters = (source.delimiter,)
    delimiter = _delimiter(lines[skipped:], delimiters)
    if source.name.lower().endswith(".json") and (
        delimiter is None or lines[0].lstrip().startswith(("[", "{"))
    ):
        raise InvalidTable(
            f"{source.name} is named JSON and holds no records, [{{...}}, {{...}}] or one "
            "{...} a line; save it as CSV."
        )
    if delimiter is None:
        raise InvalidTable(
            f"{source.name} shows one column only: at least 2 are needed, separated by "
            "a comma, semicolon, tab, vertical bar or space."
        )
    return delimiter, skipped


@dataclass(frozen=True)
class _Head:
    """What stands above the rows: column names, how many records it takes, notes; and the rows."""

    names: tuple[str, ...] | None
    past: int
    rows: list[list[str]]
    notes: list[str]


def _head(records: Sequence[_Record]) -> _Head:
    """Take titles, column names and units off the sample's records."""
    notes = []
    past = _titles(records)
    if past:
        were = "line above the table was" if past == 1 else "lines above the table were"
        notes.append(f"{past} {were} left out as a title.")
    rows = [record.cells for record in records[past:]]
    names = _names(rows)
    if names is None:
        notes.append("The file has no line of column names: the columns are numbered from 1.")
        return _Head(None, past, rows, notes)
    past, rows = past + 1, rows[1:]
    if _counts_up([name for name in names if name.strip()]):
        notes.append("The first line counts 0, 1, 2, ... and was read as column names.")
    if _are_units(rows):
        notes.append(
            "The line under the column names was left out as units: it holds text "
            "where the columns hold numbers."
        )
        past, rows = past + 1, rows[1:]
    return _Head(names, past, rows, notes)


def _as_text(
    judged: Sequence[Numerals], rows: Sequence[list[str]], delimiter: str
) -> frozenset[int]:
    """Return the columns whose numbers are to be judged over all of the file."""
    return frozenset(
        j
        for j, found in enumerate(judged)
        if found.codes
        or found.dates
        or found.extras
        or (found.is_open and delimiter != COMMA)
        or any(j < len(row) and row[j].strip()[:2].lower() == "0x" for row in rows)
    )


def _delimiter(lines: Sequence[str], allowed: Sequence[str]) -> str | None:
    """Return what separates the cells: rows of equal length, with as many numbers as may be."""
    best: tuple[float, str] | None = None
    # in order of preference among equals: a comma may be a decimal mark, a space be inside text
    for delimiter in allowed:
        records = _split(lines, delimiter, _SAMPLE_ROWS)
        rows = [record.cells for record in records[_titles(records) :]]
        if not rows:
            continue
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        if width < 2:
            continue
        cells = [cell for row in rows for cell in row]
        numbers = _are_numbers(cells)
        numeric = sum(
            number or _is_missing(cell) for number, cell in zip(numbers, cells, strict=True)
        )
        # rows of one length count most; a table of words alone must have a score as well
        score = count / len(records) * (0.05 + numeric / len(cells))
        if best is None or score > best[0] + 1e-9:
            best = (score, delimiter)
    return None if best is None else best[1]


def _titles(records: Sequence[_Record]) -> int:
    """Return how many records at the start are a title and not part of the table."""
    if len(records) < 3:
        return 0
    width = Counter(len(record.cells) for record in records).most_common(1)[0][0]
    found = 0
    for record, after in pairwise(records[: _MOST_TITLES + 1]):
        filled = [cell for cell in record.cells if cell.strip()]
        short = len(record.cells) < width and (len(filled) <= 1 or record.cells[0][:1] == "#")
        padded = width > 2 and len(record.cells) == width and len(filled) == 1
        full = padded and all(cell.strip() for cell in after.cells)
        if not (short or full) or any(_are_numbers(filled)):
            break
        found += 1
    # names and a row have to be left, else nothing was a title
    return found if found + 2 <= len(records) else 0


def _names(rows: Sequence[list[str]]) -> tuple[str, ...] | None:
    """Return the column names if the first row holds them.

    A number above a column of numbers, or a text that comes again in its own column,
    says that it does not, but for the count 0, 1, 2, ... and for whole numbers in
    equal steps behind a text, such as years. Otherwise it does.
    """
    first, below = rows[0], rows[1:]
    if _counts_up(first) or _counts_up(first[1:] if not first[0].strip() else first):
        return tuple(first)
    numeric = _are_numbers(first)
    if not numeric[0] and first[0].strip() and all(numeric[1:]) and _are_steps(first[1:]):
        return tuple(first)
    # files put together have their names once more below: that is no sign against them
    repeated = [row for row in below if row == first]
    for j, cell in enumerate(first):
        column = [row[j] for row in below if j < len(row) and not _is_missing(row[j])]
        if numeric[j]:
            if sum(_are_numbers(column)) >= 0.5 * len(column):
                return None
        elif not _is_missing(cell) and not repeated and cell.strip() in map(str.strip, column):
            return None
    return tuple(first)


def _are_steps(cells: Sequence[str]) -> bool:
    """Return whether the cells are whole numbers in equal steps, such as years."""
    cells = [cell.strip() for cell in cells]
    if len(cells) < 2 or not all(cell.isascii() and cell.isdigit() for cell in cells):
        return False
    whole = [int(cell) for cell in cells]
    steps = {b - a for a, b in pairwise(whole)}
    # Any two numbers are in equal steps: they are names if they can be years.
    enough = len(whole) >= 3 or all(1500 <= year <= 2200 for year in whole)
    return len(steps) == 1 and steps != {0} and enough


def _counts_up(first: Sequence[str]) -> bool:
    """Return whether the cells read 0, 1, 2, ..."""
    cells = [cell.strip() for cell in first]
    return len(cells) >= 3 and cells == [str(j) for j in range(len(cells))]


def _are_units(rows: Sequence[list[str]]) -> bool:
    """Return whether the first row holds text where the columns below hold numbers."""
    if len(rows) < 3:
        return False
    votes = 0
    for j, cell in enumerate(rows[0]):
        column = [row[j] for row in rows[1:] if j < len(row) and not _is_missing(row[j])]
        if not column or sum(_are_numbers(column)) < 0.9 * len(column):
            continue
        if any(_are_numbers([cell])):
            return False
        votes += 0 if _is_missing(cell) else 1
    return votes >= 2


def _total_line(
    extent: Extent, delimiter: str, width: int, rows: Sequence[list[str]]
) -> int | None:
    """Return the byte at which a last line begins that sums up the others; None without one."""
    # a spreadsheet pads its last lines with empty cells
    body = extent.tail.rstrip(b"\r\n \t;,|")
    cut = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
    if not cut or len(rows) < 3:
        return None
    line = extent.tail[cut:].decode("utf-8", "replace").strip("\r\n")
    cells = next(iter(_split([line], delimiter, 1)), _Record([], 0)).cells
    place = next((j for j, cell in enumerate(cells) if cell.strip()), None)
    if place is None or not 2 <= len(cells) <= width:
        return None
    word = cells[place].strip().rstrip(":").lower()
    others = {row[place].strip().rstrip(":").lower() for row in rows[:-1] if place < len(row)}
    numbers = _are_numbers([cell for cell in cells[place + 1 :] if cell.strip()])
    # where another row is called so too, it is a category and no sum
    if word not in _TOTALS or word in others or not any(numbers):
        return None
    return extent.size - len(extent.tail) + cut


def _judged(rows: Sequence[list[str]], width: int) -> list[Numerals]:
    """Return what the sample says of each column's numbers."""
    found = []
    for j in range(width):
        cells = {row[j].strip() for row in rows if j < len(row) and not _is_missing(row[j])}
        found.append(judge(pa.array(sorted(cells), pa.large_string())))
    return found
