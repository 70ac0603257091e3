"""How a delimited text is laid out: delimiter, names, and what surrounds the table.

It is judged on the start of the text and on its last line, and says nothing of what a column holds.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from dpviz.core.errors import InvalidTable, OtherEncoding, printable
from dpviz.datasets.columns import BEHIND, MISSING_MARKERS, UNIT, WITHHELD, numbers_among
from dpviz.datasets.process import sentence
from dpviz.datasets.reader import Refused, refuse_foreign

_TOTALS = {
    "total", "totals", "grand total", "sum", "average", "mean",
    "gesamt", "insgesamt", "summe", "durchschnitt", "mittelwert",
}  # fmt: skip
_SAMPLE_ROWS = 200
_JUDGED_ROWS = 2_000
_MOST_TITLES = 10
_SEP_LINE = re.compile(r"sep=(.)\s*\Z", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2}")
_UNIT = re.compile(
    UNIT + r"|\A(?:n|no\.?|none|text|string|char|numeric|integer|int|float|double|number|factor|"
    r"logical|date|categor(?:y|ical)|nominal|ordinal|score|ratio|index)\Z"
)
"""What is a unit, or the type of a column, for sure."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Text(NamedTuple):
    """What layouts are judged on.

    Parameters
    ----------
    name : str
        What messages call the text.
    head, tail : bytes
        Its start and its end.
    size : int
        Its bytes.
    delimiter : str
        What stands between the cells, where that is known.
    """

    name: str
    head: bytes
    tail: bytes
    size: int
    delimiter: str = ""

    @classmethod
    def of(cls, name: str, about: Mapping[str, Any]) -> Text:
        """Return the text that a reader found."""
        head, tail = (about[end].encode("latin-1") for end in ("head", "tail"))
        return cls(name, head, tail, about["size"], about.get("delimiter", ""))

    @classmethod
    def whole(cls, name: str, text: bytes) -> Text:
        """Return a text that is all there."""
        return cls(name, text, text, len(text))


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
    start : int
        Byte of the text at which the rows start.
    stop : int or None
        Byte at which they end, where something follows them.
    skipped : int
        Lines before the rows.
    notes : tuple of str
        What was seen, as sentences.
    uneven : bool
        Whether some lines end in more delimiters than there are columns.
    """

    delimiter: str
    names: tuple[str, ...] | None
    width: int
    start: int
    stop: int | None
    skipped: int
    notes: tuple[str, ...]
    uneven: bool = False

    def plan(self, cells: int | None = None) -> dict[str, Any]:
        """Return what tells the reader how to split the text, and how many cells at most."""
        most = {} if cells is None else {"cells": cells}
        said = {key: value for key, value in vars(self).items() if key not in ("names", "notes")}
        return most | said | {"named": self.names is not None, "missing": MISSING_MARKERS}


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


def _sample(given: Text) -> _Sample:
    """Return the first lines, and what separates their cells."""
    whole = len(given.head) == given.size
    try:
        refuse_foreign(given.head)
        # a sample may end inside a character, the file may not
        text = codecs.getincrementaldecoder("utf-8")().decode(given.head, final=whole)
    except Refused as error:
        raise sentence(error, given.name) from None
    except UnicodeDecodeError:
        raise OtherEncoding(
            f"{given.name} is not UTF-8 text; save it as UTF-8{_offer(given)}; others are "
            "cp1250, cp1251, shift_jis and gbk.",
            "cp1252",
        ) from None
    mark = 3 if text.startswith("\ufeff") else 0
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidTable(f"{given.name} is empty: it holds only blanks.")
    end = max(text.rfind("\n"), text.rfind("\r"))
    lines = _LINE.findall(text if whole or end < 0 else text[: end + 1])
    return _Sample(lines, mark, *_separator(lines, given))


def _offer(given: Text) -> str:
    """Return that a text may be of Windows, with a name of a column that shows how it would look.

    Only what would be read as a name is shown: never a cell.
    """
    offer = ", or choose Windows-1252 as its encoding (--encoding cp1252)"
    try:
        head = given.head[: given.head.rfind(b"\n") + 1].decode("cp1252").encode()
        names = detect(Text.whole(given.name, head)).names or ()
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


def detect(given: Text, *, sheet: bool = False) -> Layout:
    """Return the layout judged on the start and the end of the text, or raise InvalidTable.

    Parameters
    ----------
    given : Text
    sheet : bool
        Whether the text is a sheet whose lines end with their last filled cell: then a name that
        is missing is the last one's.
    """
    sample = _sample(given)
    records = sample.records()
    head = _head(records)
    names, rows = head.names, head.rows
    notes = [_TOLD] * sample.skipped + head.notes
    # most rows are whole: one that is cut short must not set the width
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else len(names or ())
    gone = sample.skipped + (records[head.past - 1].lines if head.past else 0)
    stop, said = _end(given, sample.delimiter, width, rows)
    notes += said
    if names is not None and rows and len(names) == width - 1:
        by_r = not sheet and _are_row_names(rows, width)
        names = ("", *names) if by_r else (*names, "")
        if by_r:
            notes.append(_BY_R)
    if names is not None:
        width = len(names)  # parsing will name the first line that differs
    surplus = [row[width:] for row in rows if len(row) > width]
    uneven = bool(surplus) and not any(cell.strip() for cells in surplus for cell in cells)
    if uneven:
        notes.append(f"{len(surplus)} of the first lines end in more delimiters than others.")
    return Layout(
        sample.delimiter,
        names,
        width,
        sample.start(gone),
        stop,
        gone,
        tuple(notes),
        uneven and sample.delimiter != " ",
    )


_BY_R = (
    "There is one name less than every row has cells: the first cell of each row was read as the "
    "name of the row, as R writes it."
)
_TOLD = "The first line says what separates the cells and was not read as data."


def _separator(lines: Sequence[str], source: Text) -> tuple[str, int]:
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
    elif any(_are_numbers(names)):
        notes.append(
            "The first line has numbers that are none of their columns': it was read as column "
            "names. If it is a row, put a line of names above it."
        )
    both = _second_names(names, rows)
    if both is not None:
        notes.append("Column names stand in two lines, which were put together.")
        names, past, rows = both, past + 1, rows[1:]
    if _are_units(rows):
        notes.append(
            "The line under the column names was left out as units: it holds text "
            "where the columns hold numbers."
        )
        past, rows = past + 1, rows[1:]
    return _Head(names, past, rows, notes)


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
        numbers = _are_numbers([BEHIND.sub(r"\1", cell) for cell in cells])  # without units
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
    for at, record in enumerate(records[:_MOST_TITLES]):
        filled = [cell for cell in record.cells if cell.strip()]
        short = len(record.cells) < width and (len(filled) <= 1 or record.cells[0][:1] == "#")
        padded = width > 2 and len(record.cells) == width and len(filled) == 1
        # names stand under it, in all of the columns or in words alone
        below = ([cell for cell in row.cells if cell.strip()] for row in records[at + 1 :])
        names = next((cells for cells in below if len(cells) > 1), [])
        named = len(names) == width or (len(names) > 1 and not any(_are_numbers(names)))
        if not (short or (padded and named)) or any(_are_numbers(filled)):
            break
        found += 1
    # names and a row have to be left, else nothing was a title
    return found if found + 2 <= len(records) else 0


def _names(rows: Sequence[list[str]]) -> tuple[str, ...] | None:
    """Return the column names if the first row holds them.

    A number above a column of numbers, or a text that comes again in its own column,
    says that it does not, but for the count 0, 1, 2, ..., for a word above numbers and for numbers
    in order that are none of their columns' (`_are_numbers_for_names`). Otherwise it does.
    """
    first, below = rows[0], rows[1:]
    if _counts_up(first) or _counts_up(first[1:] if not first[0].strip() else first):
        return tuple(first)
    numeric = _are_numbers(first)
    columns = [
        [row[j].strip() for row in below if j < len(row) and not _is_missing(row[j])]
        for j in range(len(first))
    ]
    held = [sum(_are_numbers(column)) if column else 0 for column in columns]
    above = [j for j in range(len(first)) if held[j] > max(2, 0.9 * len(columns[j]))]
    heads = [first[j].strip() for j in above if not numeric[j]]
    words = [cell for cell in heads if _WORD.search(cell) and not _is_withheld(cell)]
    # letters name columns where each has its own
    letters = 1 < len({*heads}) == len(above) and all(map(str.isalpha, heads))
    if words or (letters and not any(map(_is_withheld, heads))):
        return tuple(first)
    if _are_numbers_for_names(first, numeric, columns):
        return tuple(first)
    # files put together have their names once more below: that is no sign against them
    repeated = [row for row in below if row == first]
    for j, cell in enumerate(first):
        if numeric[j]:
            if held[j] >= 0.5 * len(columns[j]):
                return None
        elif not _is_missing(cell) and not repeated and cell.strip() in columns[j]:
            return None
    return tuple(first)


def _are_numbers_for_names(
    first: Sequence[str], numeric: Sequence[bool], columns: Sequence[Sequence[str]]
) -> bool:
    """Return whether numbers in the first row name columns: wavenumbers, doses, years.

    They rise or fall all along, and are none of what stands below: far from all of it, or outside
    of it beside a word that is of another form than the words below, or no more than a blank. Years
    in equal steps beside a word need not be outside, for counts of people reach as far.
    """
    heads = [j for j, number in enumerate(numeric) if number]
    values = _values([first[j] for j in heads])
    if len(values) < 2 or len(values) < len(heads):
        return False
    steps = {round(after - before, 9) for before, after in pairwise(values)}
    if not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
        return False
    outside, far = [], []
    for j, value in zip(heads, values, strict=True):
        below = _values(columns[j])
        if len(below) < max(2, 0.5 * len(columns[j])):
            return False
        low, high = min(below), max(below)
        outside.append(value < low or value > high)
        far.append(value < low - (high - low) or value > high + (high - low))
    years = all(value.is_integer() and 1500 <= value <= 2200 for value in values)
    if all(far) and (len(values) >= 3 or years):
        return True
    words = [j for j in range(len(first)) if not numeric[j]]
    apart = all(outside) or (years and len(steps) == 1)
    return apart and any(_is_apart(first[j], columns[j]) for j in words)


def _is_apart(cell: str, column: Sequence[str]) -> bool:
    """Return whether a cell is blank, or of another form than all that stand below it."""
    forms = {_form(text) for text in column}
    return len(column) > 2 and (_is_missing(cell) or (len(forms) == 1 and _form(cell) not in forms))


def _form(text: str) -> str:
    """Return a text with its letters and digits told apart and not from each other."""
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "a", text.strip()))


def _values(cells: Sequence[str]) -> list[float]:
    """Return the numbers among plainly written cells, whichever decimal mark they have."""
    found = []
    for cell in cells:
        with suppress(ValueError):
            found.append(float(cell.strip().replace(",", ".")))
    return found


def _is_withheld(cell: str) -> bool:
    return cell.strip().lower() in WITHHELD


def _are_row_names(rows: Sequence[list[str]], width: int) -> bool:
    """Return whether first cells are row names, which R writes under no name of a column.

    Every row then has its own, and one cell more than there are names; a last cell that is empty
    in every row stands behind a delimiter that ends the line.
    """
    firsts = {row[0].strip() for row in rows}
    whole = all(len(row) == width for row in rows)
    return (
        whole
        and "" not in firsts
        and len(firsts) == len(rows)
        and not all(_is_missing(row[-1]) for row in rows)
    )


def _counts_up(first: Sequence[str]) -> bool:
    """Return whether the cells read 0, 1, 2, ..."""
    cells = [cell.strip() for cell in first]
    return len(cells) >= 3 and cells == [str(j) for j in range(len(cells))]


def _second_names(names: Sequence[str], rows: Sequence[list[str]]) -> tuple[str, ...] | None:
    """Return the names of two lines where the first has gaps: heads of groups, then names.

    A head goes on until the next one, and the last one no further than the widest of the others.
    """
    if len(rows) < 3 or len(rows[0]) != len(names):
        return None
    starts = [j for j, name in enumerate(names) if name.strip()]
    widths = [after - at for at, after in pairwise(starts)]
    widest = max(widths) if max(widths, default=0) > 1 else len(names)
    found, above, gaps = [], "", 0
    for j, (name, cell) in enumerate(zip(names, rows[0], strict=True)):
        above = "" if starts and j >= starts[-1] + widest else name.strip() or above
        column = [row[j] for row in rows[1:] if j < len(row) and not _is_missing(row[j])]
        if column and sum(_are_numbers(column)) >= 0.9 * len(column):
            # a person has a number here, and who has none has no word
            if not _WORD.search(cell) or _is_withheld(cell) or cell in column:
                return None
            gaps += not name.strip()
        found.append(": ".join(part for part in (above, cell.strip()) if part))
    return tuple(found) if gaps else None


def _are_units(rows: Sequence[list[str]]) -> bool:
    """Return whether the first row holds units where the columns below hold numbers.

    A person whose values are withheld has a text there too: one word for all of them that is no
    unit, a word for "withheld", or one that stands below again; and a text of their own beside it.
    """
    if len(rows) < 3:
        return False
    words, beside = [], []
    for j, cell in enumerate(rows[0]):
        column = [row[j] for row in rows[1:] if j < len(row) and not _is_missing(row[j])]
        if not column or sum(_are_numbers(column)) < 0.9 * len(column):
            beside += [cell] if column and not _is_missing(cell) else []
            continue
        if _is_missing(cell):
            continue
        if any(_are_numbers([cell])) or _is_withheld(cell) or cell[:1] in "<>" or cell in column:
            return False
        words.append(cell.strip())
    if len(words) < 2:
        return False
    sure = all(map(_UNIT.search, words))
    return sure or not (len(set(words)) == 1 or any(not _UNIT.search(cell) for cell in beside))


def _end(
    given: Text, delimiter: str, width: int, rows: Sequence[list[str]]
) -> tuple[int | None, list[str]]:
    """Return the byte at which lines begin that are no rows, if any, and sentences.

    Such are a last line that sums up the others, and lines under the table that have one text.
    """
    if len(rows) < 3:
        return None, []
    stop, under, notes = None, 0, []
    # a spreadsheet pads its last lines with empty cells
    body = given.tail.rstrip(_PADDING)
    before = given.size - len(given.tail)
    table = [row for row in rows if sum(bool(cell.strip()) for cell in row) > 1]
    while cut := max(body.rfind(b"\n"), body.rfind(b"\r")) + 1:
        line = body[cut:].decode("utf-8", "replace")
        # within quotes a line may be part of a cell
        cells = (
            [] if '"' in line else next(iter(_split([line], delimiter, 1)), _Record([], 0)).cells
        )
        if not _is_remark(cells, width, table):
            break
        stop, under, body = before + cut, under + 1, body[:cut].rstrip(_PADDING)
    if under:
        were = "line under the table was" if under == 1 else "lines under the table were"
        notes.append(f"{under} {were} left out.")
    if cut and _sums_up(line, delimiter, width, table):
        stop = before + cut
        notes.append("The last line sums up the others: it was left out.")
    return stop, notes


_PADDING = b"\r\n \t;,|"


def _is_remark(cells: Sequence[str], width: int, table: Sequence[list[str]]) -> bool:
    """Return whether a line under a table has one text, where no row has one."""
    filled = [j for j, cell in enumerate(cells) if cell.strip()]
    if len(filled) != 1 or not re.search(r"[^\W\d_]", cells[filled[0]]):
        return False
    if len(cells) == 1 < width:
        return True
    column = [row[filled[0]] for row in table[1:] if filled[0] < len(row)]
    return all(_is_missing(cell) for cell in column) or all(_are_numbers(column))


def _sums_up(line: str, delimiter: str, width: int, table: Sequence[list[str]]) -> bool:
    """Return whether a last line sums up the others."""
    cells = next(iter(_split([line.strip("\r\n")], delimiter, 1)), _Record([], 0)).cells
    place = next((j for j, cell in enumerate(cells) if cell.strip()), None)
    if place is None or not 2 <= len(cells) <= width:
        return False
    word = cells[place].strip().rstrip(":").lower()
    others = {
        row[place].strip().rstrip(":").lower() for row in table if place < len(row) and row != cells
    }
    numbers = _are_numbers([cell for cell in cells[place + 1 :] if cell.strip()])
    # where another row is called so too, it is a category and no sum
    return word in _TOTALS and word not in others and any(numbers)
