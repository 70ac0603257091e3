"""Detect the layout of a delimited text: delimiter, names, and lines around the table.

The layout is judged from the start and the end of the text, not from the content of a column.
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

# A row that sums up others has one of these names; names in brackets may also be ordinary rows.
_SUMS = re.compile(
    r"(?:grand |sub|gesamt)?(?:tot[a-zé]*|sum(?:s|m[ae]|a|mary)?|som[ae])(?: \w+)?|"
    r"insgesamt|overall|mean|average|avg|median\w*|std\.? ?(?:dev|abw)\w*|"
    r"durchschnitt|mittel(?:wert)?|"
    r"moyenne|promedio|m[eé]dia|gemiddelde|medelvärde|итого|всего|среднее|сумма|合計|総計|平均|合计|总计|平均值|"
    r"(n|s\.?d|s\.?e|sem|cv|min(?:imum)?|max(?:imum)?|count|anzahl|q[13])"
)
_MARKED = re.compile(r"\s*(?:#|%|//|!)")
_RULER = re.compile(r"[\s|+:=-]*(?:---|===)[\s|+:=-]*")
_WITHHELD = re.compile(WITHHELD.replace(r"\z", r"\Z"))
_SAMPLE_ROWS = 200
_JUDGED_ROWS = 2_000
_MOST_TITLES = 10
_SEP_LINE = re.compile(r"sep=(.)\s*\Z", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2}")
# These texts are certainly a unit or the type of a column.
_UNIT = re.compile(
    UNIT + r"|\A(?:n|no\.?|none|text|string|char|numeric|integer|int|float|double|number|factor|"
    r"logical|date|categor(?:y|ical)|nominal|ordinal|score|ratio|index)\Z"
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

# In a tie, the earlier delimiter wins: a comma may be a decimal mark, a space part of a text.
DELIMITERS = {"tab": "\t", "semicolon": ";", "bar": "|", "comma": ",", "space": " "}
"""Delimiters by their setting."""


class Text(NamedTuple):
    """The parts of a text from which its layout is judged.

    Parameters
    ----------
    name : str
        Name of the text in messages.
    head, tail : bytes
        Bytes at the start and the end of the text.
    size : int
        Size in bytes.
    delimiter : str
        Delimiter between the cells, if known.
    """

    name: str
    head: bytes
    tail: bytes
    size: int
    delimiter: str = ""

    @classmethod
    def of(cls, name: str, about: Mapping[str, Any]) -> Text:
        """Return the text from a reader's description."""
        head, tail = (about[end].encode("latin-1") for end in ("head", "tail"))
        return cls(name, head, tail, about["size"], about.get("delimiter", ""))

    @classmethod
    def whole(cls, name: str, text: bytes) -> Text:
        """Return a text from its complete bytes."""
        return cls(name, text, text, len(text))


@dataclass(frozen=True)
class Layout:
    """The layout of a delimited text.

    Attributes
    ----------
    delimiter : str
        One of ``, ; tab | space``; a run of spaces counts as one.
    names : tuple of str or None
        Cells of the header row, or None if there is no header row.
    width : int
        Number of columns.
    start : int
        Byte offset at which the rows start.
    stop : int or None
        Byte offset at which the rows end, if something follows them.
    skipped : int
        Number of lines before the rows.
    notes : tuple of str
        Sentences on the detected layout.
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
        """Return how the reader splits the text, and how many cells it reads at most."""
        most = {} if cells is None else {"cells": cells}
        facts = {key: value for key, value in vars(self).items() if key not in ("names", "notes")}
        return most | facts | {"named": self.names is not None, "missing": MISSING_MARKERS}


class _Record(NamedTuple):
    """One record of the sample and the number of lines up to its end."""

    cells: list[str]
    lines: int


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING_MARKERS


def _are_numbers(cells: Sequence[str]) -> list[bool]:
    """Return which cells are a number under some decimal mark."""
    texts = pa.array([cell.strip() for cell in cells], pa.large_string())
    return [bool(flag) for flag in numbers_among(texts)]


def _sample(source: Text) -> tuple[list[str], int]:
    """Return the first lines, with their ends, and the size of the byte order mark."""
    whole = len(source.head) == source.size
    try:
        refuse_foreign(source.head)
        # Decode strictly at the end only for a whole file: a sample may end inside a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(source.head, final=whole)
    except Refused as error:
        raise sentence(error, source.name) from None
    except UnicodeDecodeError:
        raise OtherEncoding(
            f"{source.name} is not UTF-8 text; save it as UTF-8{_offer(source)}; other "
            "encodings are cp1250, cp1251, shift_jis and gbk.",
            "cp1252",
        ) from None
    mark = 3 if text.startswith("\ufeff") else 0
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InvalidTable(f"{source.name} is empty: it holds only blanks.")
    end = max(text.rfind("\n"), text.rfind("\r"))
    lines = _LINE.findall(text if whole or end < 0 else text[: end + 1])
    return lines, mark


def _offer(source: Text) -> str:
    """Return a hint that a text may be Windows-1252, with a column name decoded that way.

    Only a likely column name is shown, never a cell.
    """
    offer = ", or choose Windows-1252 as its encoding (--encoding cp1252)"
    try:
        head = source.head[: source.head.rfind(b"\n") + 1].decode("cp1252").encode()
        names = detect(Text.whole(source.name, head)).names or ()
    except (UnicodeDecodeError, InvalidTable):
        return offer
    example = next((found for found in names if not found.isascii()), None)
    return offer if example is None else f"{offer}: umlauts then look like {printable(example)!r}"


def _split(lines: Sequence[str], delimiter: str, most: int) -> list[_Record]:
    """Return the sample's first records, without blank lines."""
    # Treat several blanks as one delimiter, because blanks often align columns.
    if delimiter == " ":
        lines = [re.sub(r"[ \t]+", " ", line).strip() for line in lines]
    records = []
    reader = csv.reader(iter(lines), delimiter=delimiter, skipinitialspace=True)
    try:
        for cells in reader:
            if cells:
                records.append(_Record(cells, reader.line_num))
            if len(records) > most:
                break
    except csv.Error:  # This cell is too long, probably after an open quote.
        pass
    return records


def detect(source: Text, *, sheet: bool = False, header: str = "auto") -> Layout:
    """Return the layout judged on the start and the end of the text, or raise InvalidTable.

    Parameters
    ----------
    source : Text
    sheet : bool
        Whether the text is a sheet whose lines end with their last filled cell. A missing name is
        then the name of the last column.
    header : {"auto", "yes", "no"}
        Whether the first line holds column names; auto detects it.
    """
    lines, before = _sample(source)
    delimiter, lines_before = _separator(lines, source)
    records = _split(lines[lines_before:], delimiter, _JUDGED_ROWS)
    names, past, rows, notes = _head(records, header)
    if lines_before:
        notes.insert(0, "The first line says what separates the cells and was not read as data.")
    # Use the most frequent number of cells, because a truncated row may have too few.
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else len(names or ())
    gone = lines_before + (records[past - 1].lines if past else 0)
    stop, remarks = _end(source, delimiter, width, rows)
    notes += remarks
    if names is not None and rows and len(names) == width - 1:
        by_r = not sheet and _are_row_names(rows, width)
        names = ("", *names) if by_r else (*names, "")
        if by_r:
            notes.append(
                "There is one name less than every row has cells: the first cell of each row was "
                "read as the name of the row, as R writes it."
            )
    if names is not None:
        width = len(names)  # The parser later reports the first row with another number of cells.
    surplus = [row[width:] for row in rows if len(row) > width]
    uneven = bool(surplus) and not any(cell.strip() for cells in surplus for cell in cells)
    if uneven:
        notes.append(f"{len(surplus)} of the first lines end in more delimiters than others.")
    # Arrow recognises a quotation mark only directly after the delimiter.
    blank = re.compile(rf'(?:[^"]*"[^"]*")*[^"]*{re.escape(delimiter)} +"')
    uneven = uneven or any(map(blank.match, lines[:_JUDGED_ROWS]))
    uneven = uneven and delimiter != " "
    start = before + len("".join(lines[:gone]).encode())
    return Layout(delimiter, names, width, start, stop, gone, tuple(notes), uneven)


def _separator(lines: Sequence[str], source: Text) -> tuple[str, int]:
    """Return the delimiter, and the number of lines before the cells that declare it."""
    match = _SEP_LINE.match(lines[0])
    lines_before, delimiters = 0, tuple(DELIMITERS.values())
    if match and match[1] in delimiters:
        delimiters, lines_before = (match[1],), 1
    if source.delimiter:
        delimiters = (source.delimiter,)
    delimiter = _delimiter(lines[lines_before:], delimiters)
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
    return delimiter, lines_before


def _head(
    records: Sequence[_Record], header: str
) -> tuple[tuple[str, ...] | None, int, list[list[str]], list[str]]:
    """Return column names, the number of records above the rows, the rows, and notes."""
    notes = []
    past = _titles(records)
    if past:
        were = "line above the table was" if past == 1 else "lines above the table were"
        notes.append(f"{past} {were} left out as a title.")
    rows = [record.cells for record in records[past:]]
    names = _names(rows) if header == "auto" else tuple(rows[0]) if header == "yes" else None
    if names is None:
        notes.append("The file has no line of column names: the columns are numbered from 1.")
        return None, past, rows, notes
    past, rows = past + 1, rows[1:]
    if _counts_up([name for name in names if name.strip()]):
        notes.append("The first line counts 0, 1, 2, ... and was read as column names.")
    elif header == "auto" and any(_are_numbers(names)):
        notes.append(
            "The first line has numbers that are none of their columns': it was read as column "
            "names. If it is a row, choose a row as the first line (--header no)."
        )
    if rows and _RULER.fullmatch("".join(rows[0])):
        past, rows = past + 1, rows[1:]
    both = _second_names(names, rows)
    if both is not None:
        notes.append("Column names stand in two lines, which were put together.")
        names, past, rows = both, past + 1, rows[1:]
    units = 0
    while units < 2 and _are_units(rows):
        units, past, rows = units + 1, past + 1, rows[1:]
    if units:
        line = "line under the column names was" if units == 1 else "2 lines under the names were"
        notes.append(
            f"The {line} left out as units: text stands there where the columns hold numbers."
        )
    return names, past, rows, notes


def _delimiter(lines: Sequence[str], choices: Sequence[str]) -> str | None:
    """Return the delimiter that gives rows of equal length with the most numbers."""
    best: tuple[float, str] | None = None
    for delimiter in choices:
        records = _split(lines, delimiter, _SAMPLE_ROWS)
        rows = [record.cells for record in records[_titles(records) :]]
        if not rows:
            continue
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        if width < 2:
            continue
        cells = [cell for row in rows for cell in row]
        numbers = _are_numbers([BEHIND.sub(r"\1", cell) for cell in cells])  # Drop units first.
        numeric = sum(
            number or _is_missing(cell) for number, cell in zip(numbers, cells, strict=True)
        )
        # When choosing a delimiter, equal row lengths matter most; 0.05 gives words some score.
        score = count / len(records) * (0.05 + numeric / len(cells))
        if best is None or score > best[0] + 1e-9:
            best = (score, delimiter)
    return None if best is None else best[1]


def _titles(records: Sequence[_Record]) -> int:
    """Return how many of the first records are titles and not part of the table.

    A title has one text only. A record above the header row is also a title if it has fewer cells,
    a comment mark, or a colon after its first cell.
    """
    if len(records) < 3:
        return 0
    width = Counter(len(record.cells) for record in records).most_common(1)[0][0]
    first = [record.cells for record in records[: _MOST_TITLES + 1]]
    contents = [[cell for cell in cells if cell.strip()] for cells in first]
    numeric = [any(_are_numbers(cells)) for cells in contents]
    full = {
        at
        for at, cells in enumerate(contents)
        if len(cells) == width and not numeric[at] and not any(map(_is_withheld, cells))
    }
    top = min(full, default=0)
    while _MARKED.match(first[top][0]) and top + 1 in full:
        top += 1
    count = 0
    for at, cells in enumerate(first[:_MOST_TITLES]):
        has_mark = _MARKED.match(cells[0]) is not None
        short = len(cells) < width
        over = short or has_mark or cells[0].rstrip().endswith(":") or not contents[at]
        alone = len(contents[at]) <= 1 and (short or (width > 2 and contents[at] != []))
        is_title = (alone or (has_mark and short)) and not numeric[at]
        if not is_title and not (at < top and over):
            break
        count += 1
    # If fewer than two lines would remain, for a header and a row, nothing counts as a title.
    return count if count + 2 <= len(records) else 0


def _names(rows: Sequence[list[str]]) -> tuple[str, ...] | None:
    """Return the column names if the first row holds them.

    The first row does not hold names if a number is above a column of numbers, or a text recurs in
    its own column. Exceptions: the count 0, 1, 2, ..., a word above numbers, and ordered numbers
    that do not belong to their columns (`_are_numbers_for_names`).
    """
    first, below = rows[0], rows[1:]
    if _counts_up(first) or _counts_up(first[1:] if not first[0].strip() else first):
        return tuple(first)
    numeric = _are_numbers(first)
    columns = [
        [row[j].strip() for row in below if j < len(row) and not _is_missing(row[j])]
        for j in range(len(first))
    ]
    numbers_in = [sum(_are_numbers(column)) if column else 0 for column in columns]
    above = [j for j in range(len(first)) if numbers_in[j] > max(2, 0.9 * len(columns[j]))]
    heads = [first[j].strip() for j in above if not numeric[j]]
    words = [cell for cell in heads if _WORD.search(cell) and not _is_withheld(cell)]
    # Single letters are column names if each column has a different letter.
    letters = 1 < len({*heads}) == len(above) and all(map(str.isalpha, heads))
    if words or (letters and not any(map(_is_withheld, heads))):
        return tuple(first)
    if _are_numbers_for_names(first, numeric, columns):
        return tuple(first)
    # Ignore repeats of the header row, which occur when files are joined.
    copies = [row for row in below if row == first]
    for j, cell in enumerate(first):
        if numeric[j]:
            if numbers_in[j] >= 0.5 * len(columns[j]):
                return None
        elif not _is_missing(cell) and not copies and cell.strip() in columns[j]:
            return None
    return tuple(first)


def _are_numbers_for_names(
    first: Sequence[str], numeric: Sequence[bool], columns: Sequence[Sequence[str]]
) -> bool:
    """Return whether numbers in the first row name columns: wavenumbers, doses, years.

    Such numbers rise or fall throughout and do not belong to the values below: they are far away,
    or outside their range beside a blank or a word whose form differs from the words below. Years
    in equal steps beside such a cell need not be outside, because counts of people reach as far.
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
    """Return whether a cell is blank, or unlike all cells below it in form."""
    forms = {_form(text) for text in column}
    return len(column) > 2 and (_is_missing(cell) or (len(forms) == 1 and _form(cell) not in forms))


def _form(text: str) -> str:
    """Return the form of a text: each run of letters as a, each run of digits as 9."""
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "a", text.strip()))


def _values(cells: Sequence[str]) -> list[float]:
    """Return the numbers among plainly written cells, with either decimal mark."""
    numbers = []
    for cell in cells:
        with suppress(ValueError):
            numbers.append(float(cell.strip().replace(",", ".")))
    return numbers


def _is_withheld(cell: str) -> bool:
    return _WITHHELD.match(cell.strip().lower()) is not None


def _are_row_names(rows: Sequence[list[str]], width: int) -> bool:
    """Return whether the first cells are row names, which R writes without a column name.

    In such a file every row has its own name, and one cell more than the header. If the last cell
    is empty in every row, a delimiter ends the line instead.
    """
    firsts = {row[0].strip() for row in rows}
    whole = all(len(row) == width for row in rows)
    ended = all(_is_missing(row[-1]) for row in rows)
    return whole and "" not in firsts and len(firsts) == len(rows) and not ended


def _counts_up(first: Sequence[str]) -> bool:
    """Return whether the cells read 0, 1, 2, ..."""
    cells = [cell.strip() for cell in first]
    return len(cells) >= 3 and cells == [str(j) for j in range(len(cells))]


def _second_names(names: Sequence[str], rows: Sequence[list[str]]) -> tuple[str, ...] | None:
    """Return joined names if a second header row follows one with blanks or repeats; else None.

    A header cell spans columns up to the next one; the last spans no more than the widest other.
    """
    if len(rows) < 3 or len(rows[0]) != len(names):
        return None
    starts = [j for j, name in enumerate(names) if name.strip()]
    widths = [after - at for at, after in pairwise(starts)]
    widest = max(widths) if max(widths, default=0) > 1 else len(names)
    names_out, above, gaps = [], "", 0
    for j, (name, cell) in enumerate(zip(names, rows[0], strict=True)):
        above = "" if starts and j >= starts[-1] + widest else name.strip() or above
        column = [row[j] for row in rows[1:] if j < len(row) and not _is_missing(row[j])]
        if column and sum(_are_numbers(column)) >= 0.9 * len(column):
            # Above numbers, a data row would have a number or nothing, so a word is a column name.
            if not _WORD.search(cell) or _is_withheld(cell) or cell in column:
                return None
            gaps += not name.strip()
        names_out.append(": ".join(part for part in (above, cell.strip()) if part))
    repeats = len({*names}) < len(names) == len({*names_out})
    return tuple(names_out) if gaps or repeats else None


def _are_units(rows: Sequence[list[str]]) -> bool:
    """Return whether the first row holds units while the columns below hold numbers.

    The row of a person whose values are withheld has texts in these columns too: one word for all
    that is not a unit, a word for "withheld", or a word that recurs below. The row also has its own
    text beside them.
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
    """Return the byte offset of trailing lines that are not rows, if any, and notes on them.

    Such lines have one text, or sum up the other lines.
    """
    if len(rows) < 3:
        return None, []
    # A spreadsheet pads its last lines with empty cells, so remove these.
    body, before = given.tail.rstrip(_PADDING), given.size - len(given.tail)
    table = [row for row in rows if sum(bool(cell.strip()) for cell in row) > 1]
    known = given.size == len(given.head) and len(rows) < _JUDGED_ROWS
    found: list[tuple[int, str]] = []
    while cut := max(body.rfind(b"\n"), body.rfind(b"\r")) + 1:
        line = body[cut:].decode("utf-8", "replace")
        # Stop at a line with quotes, because it may continue a cell of the line before.
        record = None if '"' in line else next(iter(_split([line], delimiter, 1)), None)
        if record is None:
            break
        kind = "remark" if _is_remark(record.cells, width, table) else ""
        kind = kind or _sums_up(record.cells, width, table, known=known and not found)
        if not kind:
            break
        found.append((before + cut, kind))
        body = body[:cut].rstrip(_PADDING)
    kinds = [kind for _, kind in found]
    if "sum" not in kinds and "other" in kinds:
        del found[kinds.index("other") :]
    notes, sums = [], sum(kind != "remark" for _, kind in found)
    if under := len(found) - sums:
        were = "line under the table was" if under == 1 else "lines under the table were"
        notes.append(f"{under} {were} left out.")
    if sums:
        say = "line sums" if sums == 1 else f"{sums} lines sum"
        were = "it was" if sums == 1 else "they were"
        notes.append(f"The last {say} up the others: {were} left out.")
    return (found[-1][0] if found else None), notes


_PADDING = b"\r\n \t;,|"


def _is_remark(cells: Sequence[str], width: int, table: Sequence[list[str]]) -> bool:
    """Return whether a line under a table is a remark: text where rows have none, or few cells."""
    places = [j for j, cell in enumerate(cells) if cell.strip()]
    if not any(re.search(r"[^\W\d_]", cell) for cell in cells):
        return False
    if len(cells) < width and (len(places) == 1 or not any(_are_numbers(cells))):
        whole = [sum(map(bool, row)) for row in table if len(row) == width]
        return len(places) < min(whole, default=0)
    column = [row[places[0]] for row in table[1:] if places[0] < len(row)]
    return len(places) == 1 and (all(map(_is_missing, column)) or all(_are_numbers(column)))


def _sums_up(cells: Sequence[str], width: int, table: Sequence[list[str]], *, known: bool) -> str:
    """Return "sum" if a line sums up the other lines, "other" if it may, else an empty text.

    If all rows are ``known``, a line of sums needs no word, but its row name must be missing.
    """
    places = [j for j, cell in enumerate(cells) if cell.strip()]
    if not places or not 2 <= len(cells) <= width:
        return ""
    rows = [row for row in table if row != cells and len(row) >= width]
    place = places[0]
    word = cells[place].strip().rstrip(":").lower()
    # If other rows also have this word, it is a category and not the name of a sum.
    others = {row[place].strip().rstrip(":").lower() for row in rows}
    numbers = _are_numbers([cells[j] for j in places])
    word_match = _SUMS.fullmatch(word.rstrip("."))
    if word_match and word not in others and any(numbers[1:]):
        return "other" if word_match[1] else "sum"
    if not known or not all(numbers) or len(places) < 2 or len(rows) < 3:
        return ""
    gap = any(not _is_missing(row[j]) for j in {*range(width)} - {*places} for row in rows)
    for j in places:
        column, total = _values([row[j] for row in rows]), _values([cells[j]])
        gap = gap and len(total) == 1 and len({*column}) > 1 and abs(sum(column) - total[0]) < 1e-6
    return "sum" if gap else ""
