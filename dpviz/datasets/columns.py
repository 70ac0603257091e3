"""What each column of a table holds, judged once from its cells, and what is missing in it.

A text is a number if it is one under a decimal point with commas between thousands, or under a
decimal comma with points between thousands. ``1.5`` fits the first only, ``1,5`` the second only,
``1.234`` both: what a column's texts fit together decides, then what the other columns of the file
prove, and where nothing does the reader asks instead of guessing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.core.cancelling import in_threads
from dpviz.core.errors import QUOTED, InvalidTable, printable
from dpviz.core.number_text import numeral
from dpviz.datasets.reader import is_number, is_text
from dpviz.datasets.source import readable

MAX_CATEGORIES = 50
"""Most categories of a column that one-hot encoding expands."""
MAX_MAGNITUDE = 1e100
"""Largest absolute value of a cell: squares and sums of it stay finite."""
_LONG_TEXT, _REMARK_WORDS = 40, 4
_FIRST_CELLS, _CELL_LETTERS = 3, 20
_FEW_CELLS = 1 << 16


class Kind(StrEnum):
    """What a column holds.

    ``IDENTIFIER`` is text that differs in every row, with more than `MAX_CATEGORIES` rows;
    ``REMARK`` is free text, more than a few words or letters in a cell; ``EMPTY`` has no value.
    """

    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    CATEGORICAL = "categorical"
    DATE = "date"
    IDENTIFIER = "identifier"
    REMARK = "free text"
    EMPTY = "empty"


@dataclass(frozen=True)
class RawColumn:
    """One column of a parsed file, and how it was read.

    Attributes
    ----------
    name : str
        Distinct within the table.
    kind : Kind
    missing : int
        Cells without a value.
    constant : bool
        Whether all values are equal.
    categories : int or None
        Number of different texts; None for numbers.
    place : int
        Among the columns that were read, from 0.
    mark : str or None
        The decimal mark, for numbers that were stored as text in another way than programs do.
    unit : str
        What stands behind each number.
    how : tuple of str
        How its texts were read as numbers, in words.
    words : tuple of str
        Texts that became missing, beside empty cells and the usual marks.
    numbers : int
        Cells that are numbers, of a column that is texts because a few are not.
    first : tuple of str
        Its first cells: for the file's holder alone.
    """

    name: str
    kind: Kind
    missing: int
    constant: bool
    categories: int | None = None
    place: int = 0
    mark: str | None = None
    unit: str = ""
    how: tuple[str, ...] = ()
    words: tuple[str, ...] = field(default=(), repr=False)
    numbers: int = 0
    first: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def is_feature(self) -> bool:
        """Whether the column is a feature without being encoded."""
        return self.kind in (Kind.NUMERIC, Kind.BOOLEAN)

    @property
    def read_as(self) -> str:
        """What the column is and how its cells were read, in words."""
        return ", ".join([self.kind.value, *self.how, *(["constant"] if self.constant else [])])

    @property
    def is_text(self) -> bool:
        """Whether the column holds texts, coded over their categories."""
        return self.kind not in (Kind.NUMERIC, Kind.BOOLEAN, Kind.EMPTY)

    @property
    def can_encode(self) -> bool:
        """Whether one-hot encoding expands the column: never free text."""
        return (
            self.kind in (Kind.CATEGORICAL, Kind.DATE)
            and self.categories is not None
            and 2 <= self.categories <= MAX_CATEGORIES
        )

    @property
    def can_label(self) -> bool:
        """Whether the column can be the label."""
        return self.kind not in (Kind.EMPTY, Kind.IDENTIFIER)


@dataclass(frozen=True)
class Judged:
    """A column and its values, as `RawTable` keeps them."""

    column: RawColumn
    values: Any


# Names --------------------------------------------------------------------------------------------


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words: as many as fit in `QUOTED` letters, and how many more."""
    shown: list[str] = []
    room = QUOTED
    for name in names:
        seen = printable(name, room if not shown else QUOTED)
        # the first is named whatever its length, so that a sentence is about something
        room -= len(seen)
        if shown and room < 0:
            break
        shown.append(f"'{seen}'")
    more = len(names) - len(shown)
    if more:
        return ", ".join(shown) + f" and {more} more"
    if len(shown) > 1:
        return ", ".join(shown[:-1]) + f" and {shown[-1]}"
    return shown[0]


def counted(number: int, noun: str) -> str:
    """Return a number and what it counts: 1 cell, 2 cells."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def distinct(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the names made distinct by a number in brackets, and the new ones."""
    taken = set(names)
    seen: set[str] = set()
    out: list[str] = []
    new: list[str] = []
    for name in names:
        shown = name
        count = 1
        # a new name may not take one that a later column has already
        while shown in seen or (shown != name and shown in taken):
            count += 1
            shown = f"{name} ({count})"
        if shown != name:
            new.append(shown)
        seen.add(shown)
        out.append(shown)
    return tuple(out), new


def clean_names(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return usable column names and sentences on what was changed.

    Blanks are tidied, a leading ``#`` goes, long names are cut, blank names are
    numbered and repeated names get a number in brackets.
    """
    tidy = [printable(name) for name in names]
    if tidy and tidy[0].startswith("#"):
        # a line of names is often marked as a comment
        tidy[0] = tidy[0].lstrip("# ")
    notes = []
    blank = [j for j, name in enumerate(tidy) if not name]
    for j in blank:
        tidy[j] = f"column {j + 1}"
    if blank:
        were = "column without a name was" if len(blank) == 1 else "columns without names were"
        notes.append(f"{len(blank)} {were} named {listed([tidy[j] for j in blank])}.")
    unique, renamed = distinct(tidy)
    if renamed:
        whole, new = Counter(map(str, names)), {*renamed}
        cut = [
            now
            for now, name in zip(unique, map(str, names), strict=True)
            if now in new and len(name) > QUOTED and whole[name] == 1
        ]
        repeated = [name for name in renamed if name not in cut]
        if repeated:
            notes.append(f"Repeated column names were made distinct: {listed(repeated)}.")
        if cut:
            notes.append(
                f"Long column names were cut to {QUOTED} letters, and numbered where they begin "
                f"alike: {listed(cut)}."
            )
    return unique, notes


# What stands for a missing cell -------------------------------------------------------------------


# Some words always do. A number such as -999 may: it is found and said, and changed where asked.
MISSING_MARKERS = (
    "", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NAN", "null",
    "NULL", "Null", "None", "none", "nil", "?", ".", "-", "--",
)  # fmt: skip
"""Cells that count as missing, also with blanks around them."""

WITHHELD = (
    "*", "**", "***", "****", "#", "##", "x", "xx", "nd", "n.d.", "nr", "n.r.", "nk", "n/k", "k.a.",
    "k. a.", "..", "...", "\u2026", "\u2013", "\u2014", ":", "(x)", "(d)", "(s)", "(na)",
    "suppressed", "withheld", "redacted", "masked", "hidden", "confidential", "unknown",
    "missing", "unbekannt", "fehlt", "not available", "not reported", "#div/0!", "#ref!",
    "#value!", "#name?", "#num!", "#null!",
)  # fmt: skip
"""Words, in lower case, for a number that is not told; where there are no numbers, text."""

SENTINELS = (-999.0, -9999.0, -99999.0, -99.0, 999.0, 9999.0, 99999.0, 999999.0)
"""Numbers that are in use as codes for "missing"."""
_FAR = 1.0  # a code for "missing" lies at least so many ranges of the others away from them

WARNING = (
    "hold a number such as -999, far from all others: it may stand for missing and counts as a "
    "number."
)


def sentinel(values: NDArray[np.float64]) -> tuple[float, int]:
    """Return a usual code for "missing", far from all others, and its cells; NaN for none."""
    if not len(values) or not {float(values.min()), float(values.max())} & {*SENTINELS}:
        return np.nan, 0  # what is far from all others is an end of the range
    for code in SENTINELS:
        at = values == code
        rest = values[~at]
        if not at.any() or len(rest) < 3:
            continue
        if far_from(code, float(rest.min()), float(rest.max())):
            return code, int(at.sum())
    return np.nan, 0


def far_from(code: float, low: float, high: float) -> bool:
    """Return whether a code lies where numbers between two others do not."""
    reach = _FAR * max(high - low, 1e-300)
    return (code < 0 and low >= 0) or code < low - reach or code > high + reach


# Numbers in texts ---------------------------------------------------------------------------------

POINT, COMMA = ".", ","
MARKS = (POINT, COMMA)

# blanks and apostrophes between thousands; they are never decimal marks
_NEUTRAL = " '\u2019\u00a0\u2009\u202f"
_BLANK = r"[\t\n\f\r ]"
_SIGN = "[+\\-\u2212]?"
_EXPONENT = r"(?:[eEdD][+-]?\d+)?"  # Fortran writes D
_MONEY = "[$€£¥]"


def _pattern(decimal: str) -> str:
    """Return what a number looks like under a decimal mark, in Arrow's syntax."""
    mark, other = (r"\.", ",") if decimal == POINT else (",", r"\.")
    grouped = rf"[1-9]\d{{0,2}}(?:(?:{other}\d{{3}})+|(?:[{_NEUTRAL}]\d{{3}})+)"
    body = rf"(?:(?:\d+|{grouped})(?:{mark}\d*)?|{mark}\d+){_EXPONENT}"
    body = rf"(?:{_MONEY}{_BLANK}?)?{body}{_BLANK}?(?:%|{_MONEY})?"
    return rf"\A(?:{_SIGN}(?:{body}|(?i:inf(?:inity)?))|\({body}\))\z"


_PATTERNS = {mark: _pattern(mark) for mark in MARKS}
_CODE = r"\A0\d+\z"  # a number is not written with leading zeros, a code is
_PLAIN = r"\A[+-]?(?:0|[1-9]\d*)\z"
_DAY_MONTH = r"\A(?:0?[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.?\z"
_ZERO_DAY = r"\A0[1-9]\."
_DATE = (
    r"\A(?:\d{1,2}[./-]\d{1,2}[./-](?:\d{2}|\d{4})|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}\.\d{1,2}\.)"
    r"(?:[T ]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?\z"
)
_EXTRAS = {
    "percent signs": r"%\z",
    "currency signs": _MONEY,
    "brackets for negative numbers": r"\A\(",
    "blanks or apostrophes between thousands": rf"\d[{_NEUTRAL}]\d",
}
UNIT = (
    r"[/%\u00b0^\u00b5\u00b2\u00b3\u20ac$\u00a3]|\A[\[(].*[\])]\Z|\A(?:[yzafpnumcdhkMGTPEZY]?"
    r"(?:m|g|s|l|L|A|K|mol|cd|Hz|N|Pa|J|W|C|V|F|T|H|Bq|Gy|Sv|bar|eV|cal|dB|B|U|M|t|IU|Ohm)|"
    r"deg ?[CFK]?|mm ?Hg|cm ?H2O|rpm|bpm|pp[mbt]|in|ft|lbs?|oz|mi|mph|psi|h|hrs?|hours?|"
    r"min(?:utes?)?|sec(?:onds?)?|days?|d|weeks?|months?|yrs?|years?|Jahre?|Tage?|Stunden|"
    r"USD|EUR|GBP|CHF|units?|counts?|kg ?m-?2|m ?s-?1)\Z"
)
"""What is a unit for sure."""
BEHIND = re.compile(r"\A([\d.,' \u2212+-]*\d[.,]?)[ \u00a0]?((?:[^\W\d_]|[\u00b0\u00b5]).{0,11})\Z")
_TRUTHS = dict.fromkeys(("true", "True", "TRUE"), 1) | dict.fromkeys(("false", "False", "FALSE"), 0)


@dataclass(frozen=True)
class Numerals:
    """What the texts of one column are as numbers, taken together.

    Attributes
    ----------
    fits : frozenset of str
        Decimal marks under which every text is a number; empty where one is none.
    marked : frozenset of str
        Which of ``.`` and ``,`` occur in the texts.
    codes : bool
        Whether whole numbers are written with leading zeros: a code, not a quantity.
    dates : bool
        Whether every text is a date.
    mixed : bool
        Whether some numbers have a mark and others have none.
    extras : tuple of str
        What else numbers were written with, in words.
    unit : str
        What stands behind every number.
    """

    fits: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    codes: bool = False
    dates: bool = False
    mixed: bool = False
    extras: tuple[str, ...] = ()
    unit: str = ""

    @property
    def is_number(self) -> bool:
        """Whether every text is a number under some mark, and no code and no date."""
        return bool(self.fits) and not self.codes and not self.dates

    @property
    def proves(self) -> str | None:
        """The decimal mark that these texts alone prove, if they do."""
        if self.is_number and self.marked and len(self.fits) == 1:
            return next(iter(self.fits))
        return None

    @property
    def is_open(self) -> bool:
        """Whether the texts are numbers under either mark, and other ones under each."""
        return self.is_number and bool(self.marked) and len(self.fits) == 2

    def mark(self, given: str | None, proved: Collection[str], delimiter: str) -> str | None:
        """Return the decimal mark to read with, or None where it must be asked for.

        Parameters
        ----------
        given : str or None
            What the user said.
        proved : collection of str
            What other columns of the file prove.
        delimiter : str
            Between cells; empty for files that have none.
        """
        if not self.is_open:
            return self.proves or given or POINT
        if given is not None:
            return given
        if len(set(proved)) == 1:
            return next(iter(set(proved)))
        # A lone point is a decimal point everywhere but in files that separate by semicolons;
        # three digits behind it in some rows and no point in others look like thousands.
        doubtful = delimiter == ";" or (self.mixed and delimiter not in (COMMA, ""))
        if not proved and self.marked == {POINT} and not doubtful:
            return POINT
        return None


# Up to so many texts, preparing a pattern for Arrow takes longer than matching in Python.
_FEW = 256


def matches(texts: Any, pattern: str) -> NDArray[np.bool_]:
    """Return which texts of an Arrow array match; a gap does not."""
    if len(texts) <= _FEW:
        search = _compiled(pattern).search
        answers = (text is not None and search(text) is not None for text in texts.to_pylist())
        return np.fromiter(answers, np.bool_, len(texts))
    found = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    flags: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return flags


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern in Arrow's syntax for Python: the same texts match."""
    return re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)


def numbers_among(texts: Any) -> NDArray[np.bool_]:
    """Return which texts are numbers under some decimal mark."""
    return matches(texts, _PATTERNS[POINT]) | matches(texts, _PATTERNS[COMMA])


def numerals_of(texts: Any) -> Numerals:
    """Return what the texts of an Arrow string array, trimmed and without gaps, are."""
    if not len(texts):
        return Numerals()
    fits = frozenset(mark for mark in MARKS if matches(texts, _PATTERNS[mark]).all())
    dates = bool(matches(texts, _DATE).all())
    if not fits:
        unit = _unit_of(texts)
        found = numerals_of(_without(unit, texts)) if unit else Numerals(dates=dates)
        return replace(found, unit=unit) if found.is_number else Numerals(dates=dates)
    marked = frozenset(mark for mark in MARKS if matches(texts, "\\" + mark).any())
    if not marked and matches(texts, _PLAIN).all():
        return Numerals(fits)
    day_month = bool(matches(texts, _DAY_MONTH).all())
    return Numerals(
        fits,
        marked,
        codes=bool(matches(texts, _CODE).any()),
        dates=dates or (day_month and bool(matches(texts, _ZERO_DAY).any())),
        mixed=bool(marked) and not matches(texts, "[.,]").all(),
        extras=tuple(word for word, form in _EXTRAS.items() if matches(texts, form).any()),
    )


def _unit_of(texts: Any) -> str:
    """Return the unit that stands behind a digit in every text; empty where there is none."""
    behind = BEHIND.search(texts[0].as_py())
    unit = behind[2] if behind else ""
    known = bool(unit) and re.search(UNIT, unit) is not None
    return unit if known and pc.all(pc.ends_with(texts, unit)).as_py() else ""


def _without(unit: str, texts: Any) -> Any:
    """Return texts without their unit; what does not end with it is left as it is."""
    cut = pc.utf8_rtrim_whitespace(pc.utf8_slice_codeunits(texts, 0, -len(unit)))
    return pc.if_else(pc.ends_with(texts, unit), cut, texts)


def parse(texts: Any, mark: str, unit: str = "") -> NDArray[np.float64]:
    """Return the numbers that texts mean under a decimal mark; NaN where one is none.

    Parameters
    ----------
    texts : pyarrow string array
        Trimmed; a gap becomes NaN.
    mark : str
        ``.`` or ``,``.
    unit : str
        What stands behind each number.
    """
    texts = _without(unit, texts) if unit else texts
    other = COMMA if mark == POINT else POINT
    if not pc.any(pc.match_substring(texts, other)).as_py():  # plainly written, as most are
        with suppress(pa.ArrowInvalid):
            simple = pc.cast(pc.replace_substring(texts, mark, POINT), pa.float64())
            return np.asarray(simple.to_numpy(zero_copy_only=False))
    fits = matches(texts, _PATTERNS[mark])
    plain = pc.if_else(pa.array(fits), texts, None)
    negative = matches(plain, r"\A\(")
    plain = pc.replace_substring_regex(plain, rf"[(){_NEUTRAL}%+]|{_MONEY}|{_BLANK}", "")
    plain = pc.replace_substring_regex(plain, "[dD]", "e")
    plain = pc.replace_substring(plain, "\u2212", "-")
    plain = pc.replace_substring(plain, other, "")
    if mark == COMMA:
        plain = pc.replace_substring(plain, COMMA, POINT)
    try:
        numbers = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # a number beyond what a float holds, which float() calls infinite
        texts = plain.to_pylist()
        numbers = np.array([np.nan if text is None else float(text) for text in texts])
    found: NDArray[np.float64] = np.where(negative, -numbers, numbers)
    return found


# Values of Arrow ----------------------------------------------------------------------------------


def to_numpy(values: Any) -> NDArray[Any]:
    """Return an Arrow array as NumPy's, gaps in numbers as NaN."""
    if isinstance(values, pa.ChunkedArray):
        found: NDArray[Any] = values.to_numpy()
    else:
        found = values.to_numpy(zero_copy_only=False)
    return found


def plain_numbers(values: Any) -> Any:
    """Return an Arrow array of numbers in a type that NumPy has too."""
    if pa.types.is_boolean(values.type):
        # a truth counts as 0 or 1, and NumPy subtracts no booleans
        return values.cast(pa.uint8())
    if pa.types.is_decimal(values.type) or pa.types.is_float16(values.type):
        return values.cast(pa.float64(), safe=False)
    return values


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


# Columns ------------------------------------------------------------------------------------------


def judge_columns(
    table: str,
    names: Sequence[str],
    columns: list[Any],
    decimal: str | None = None,
    delimiter: str = "",
) -> tuple[list[Judged], list[str]]:
    """Return what the columns of a table are, with their values, and what reading changed.

    Parameters
    ----------
    table : str
        What messages call it.
    names : sequence of str
    columns : list of pyarrow.ChunkedArray
        Emptied on the way, as texts and what they become need not both live.
    decimal : str or None
        The decimal mark, where the user said it.
    delimiter : str
        Between the cells of a text, whose numbers and truths are texts; empty for anything else.

    Raises
    ------
    InvalidTable
        On fewer than two rows, an infinite or absurdly large number, text that is not UTF-8, and
        numbers that can be read in two ways where nothing says in which.
    """
    rows = len(columns[0]) if columns else 0
    if rows < 2:
        found = "one row" if rows else "none"
        raise InvalidTable(f"{table} must have at least 2 rows of data; it has {found}.")
    notes = []
    # a delimiter that ends each line, or the edge of a sheet, makes no column
    places = [
        j
        for j, column in enumerate(columns)
        if not delimiter or names[j].strip() or column.null_count < rows
    ]
    if len(columns) > 1 and not names[0].strip() and places[:1] == [0]:
        kind = columns[0].type
        first = columns[0] if pa.types.is_integer(kind) else cast(columns[0], pa.int64())
        if first is not None and counts_rows(first):
            notes.append("The first column has no name and counts the rows: it was left out.")
            # the index that pandas writes
            places.remove(0)
    clean, renamed = clean_names([names[j] for j in places])
    notes += renamed

    def look(at: int) -> _Texts | Judged:
        place = places[at]
        shown = RawColumn(clean[at], Kind.EMPTY, rows, True, place=place)
        found = _looked(columns[place], shown, table, delimiter)
        columns[place] = None
        return found

    workers = min(4, os.cpu_count() or 1) if rows * len(columns) > _FEW_CELLS else 1
    looked = in_threads(look, range(len(places)), workers)
    marks = (
        item.numerals.proves if isinstance(item, _Texts) else item.column.mark for item in looked
    )
    proved = frozenset(mark for mark in marks if mark is not None)
    judged: list[Judged] = []
    for at, item in enumerate(looked):
        done, said = (item, []) if isinstance(item, Judged) else item.settled(proved, decimal)
        looked[at] = done  # frees the texts
        notes += said
        column = done.column
        # the point is how programs write numbers
        plain = isinstance(item, Judged) and column.mark == POINT
        judged.append(replace(done, column=replace(column, mark=None)) if plain else done)
    return judged, notes


def judge_again(
    table: str,
    judged: Judged,
    missing: Collection[str],
    decimal: str | None,
    *,
    as_number: bool,
) -> tuple[Judged, list[str]]:
    """Return a column of texts in which more words count as missing, or all that are no number."""
    column = replace(judged.column, mark=None, unit="", how=())
    found = _texts(judged.values, column, table, Kind.CATEGORICAL, ".", missing)
    if isinstance(found, Judged):
        return found, []
    return found.settled((), decimal, as_number=as_number)


def as_texts(table: str, judged: Judged) -> Judged:
    """Return a column of numbers as one of the texts that they are written with."""
    column = replace(judged.column, mark=None, unit="", how=())
    found = _texts(judged.values.cast(pa.string()), column, table, Kind.CATEGORICAL, "", ())
    return found if isinstance(found, Judged) else found.kept()


def _looked(values: Any, column: RawColumn, table: str, delimiter: str) -> _Texts | Judged:
    """Return what can be said of a column without the others."""
    with readable(f"column '{column.name}' of {table} holds values that cannot be read."):
        column = replace(column, first=_first(values))
        found = _written_plainly(values, column, table, delimiter) if delimiter else None
        if found is not None:
            return found
        kind = values.type
        # a frame may code numbers as categories: only texts stay coded here
        if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
            values = values.cast(kind.value_type)
            kind = values.type
        if pa.types.is_null(kind) or values.null_count == len(values):
            return _nothing(values, column)
        if is_number(kind):
            truth = Kind.BOOLEAN if pa.types.is_boolean(kind) else Kind.NUMERIC
            numbers = plain_numbers(values)
            column = _numeric(numbers, column, table, truth)
            empty = column.missing == len(values)
            return _nothing(values, column) if empty else Judged(column, numbers)
        if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
            if pa.types.is_timestamp(kind):
                # the text of a time zone's local time needs its database
                values = values.cast(pa.timestamp(kind.unit))
            return _texts(values.cast(pa.string()), column, table, Kind.DATE)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or not _is_utf8(values):
            raise InvalidTable(
                f"column '{column.name}' of {table} is not UTF-8 text; save it as UTF-8."
            )
        return _texts(values, column, table, Kind.CATEGORICAL, delimiter)


def _first(values: Any) -> tuple[str, ...]:
    """Return the first cells that are not missing, cut."""
    with suppress(ValueError, OverflowError, pa.ArrowException):
        cells = values.slice(0, _FEW).drop_null().slice(0, _FIRST_CELLS).to_pylist()
        return tuple(printable(str(cell), _CELL_LETTERS) for cell in cells)
    return ()


def _written_plainly(values: Any, column: RawColumn, table: str, delimiter: str) -> Judged | None:
    """Return a column whose texts are all plain numbers under one mark; None for any other."""
    texts = values.drop_null() if values.null_count else values
    found = _start(texts)
    zero = pc.starts_with(texts, "0")
    if (
        not found.is_number
        or found.extras
        or found.unit
        or found.is_open
        # a code, or what Arrow reads as hexadecimal
        or (pc.any(zero).as_py() and matches(texts.filter(zero), r"\A0[\dxX]").any())
    ):
        return None
    if not found.marked:
        numbers = cast(values, pa.int64())
        if numbers is not None:
            return Judged(_numeric(numbers, column, table), numbers)
        marked = pc.or_(pc.match_substring(texts, POINT), pc.match_substring(texts, COMMA))
        found = _start(texts.filter(marked))
        if found.marked and (not found.is_number or found.extras or found.is_open):
            return None
    mark = found.proves
    if mark == COMMA:
        if delimiter == COMMA or pc.any(pc.match_substring(texts, POINT)).as_py():
            return None
        values = pc.replace_substring(values, COMMA, POINT)
    numbers = cast(values, pa.float64())
    if numbers is None:
        return None
    how = ("with a decimal comma",) if mark == COMMA else ()
    column = _numeric(numbers, replace(column, mark=mark, how=how), table)
    return Judged(column, numbers)


def _start(texts: Any) -> Numerals:
    """Return what the first texts of a column are."""
    return numerals_of(trimmed(texts.slice(0, _FEW).combine_chunks()))


def cast(values: Any, kind: Any) -> Any:
    """Return texts as numbers of a kind, whatever blanks surround them; None if they are none."""
    if not is_text(values.type):
        return None
    with suppress(pa.ArrowInvalid):
        return pc.cast(values, kind)
    with suppress(pa.ArrowInvalid):
        return pc.cast(pc.utf8_trim_whitespace(values), kind)
    return None


def _is_utf8(values: Any) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _nothing(values: Any, column: RawColumn) -> Judged:
    column = replace(column, kind=Kind.EMPTY, missing=len(values), constant=True, categories=None)
    return Judged(column, pa.nulls(len(values)))


@dataclass(frozen=True)
class _Texts:
    """A column of texts, before the other columns say how to read its numbers.

    Attributes
    ----------
    column : RawColumn
        With its name and its place.
    table : str
        What messages call the table.
    code : ndarray of int32
        The place of each row's text among the categories, -1 for a gap.
    categories : pyarrow string array
        The different texts, sorted and trimmed.
    kind : Kind
    numerals : Numerals
    delimiter : str
        Between the cells; empty for what is no text.
    gone : int
        Cells that hold one of the column's words for missing.
    """

    column: RawColumn
    table: str
    code: NDArray[np.int32]
    categories: Any
    kind: Kind
    numerals: Numerals
    delimiter: str
    gone: int

    def settled(
        self, proved: Collection[str], decimal: str | None, *, as_number: bool = False
    ) -> tuple[Judged, list[str]]:
        """Return what the column is, and what reading changed.

        Parameters
        ----------
        proved : collection of str
            Decimal marks that the columns of the file prove.
        decimal : str or None
            The decimal mark, where the user said it.
        as_number : bool
            Whether what is no number counts as missing.
        """
        name, notes = self.column.name, []
        if self.gone:
            cells = counted(self.gone, "cell")
            notes.append(f"In '{name}', {listed(self.column.words)} counts as missing: {cells}.")
        if not (self.numerals.is_number or as_number):
            if self.kind is Kind.DATE:
                notes.append(f"Dates in '{name}' are treated as text.")
            doubts, numbers = self._doubts()
            kept = self.kept()
            return replace(kept, column=replace(kept.column, numbers=numbers)), notes + doubts
        found = self.numerals
        mark = found.mark(decimal, proved, self.delimiter)
        if not found.is_number:  # the mark that makes numbers of more of the texts
            fits = {one: matches(self.categories, _PATTERNS[one]).sum() for one in MARKS}
            mark = max(MARKS, key=lambda one: (fits[one], one == decimal))
        if mark is None:
            raise InvalidTable(
                f"column '{name}' of {self.table} writes numbers with a mark that can stand for "
                "decimals or for thousands; say which by choosing the decimal mark point or comma."
            )
        parsed = np.append(parse(self.categories, mark, found.unit), np.nan)
        numbers = pa.chunked_array([pa.array(parsed[self.code], from_pandas=True)])
        how = ["with a decimal comma"] if mark == COMMA and COMMA in found.marked else []
        how += [f"without {extra}" for extra in found.extras]
        how += ["without the unit behind each"] if found.unit else []
        if not self.delimiter:
            notes.append(f"Numbers stored as text in '{name}' were read as numbers.")
        notes += [f"Left out in '{name}': {extra}." for extra in found.extras]
        if found.unit:
            notes.append(f"Left out in '{name}': the unit behind each number.")
        if found.is_open and mark == POINT and self.delimiter == ";":
            notes.append(
                f"'{name}' has three digits behind each point: read as a decimal point, as "
                "elsewhere in the file, and not as a mark between thousands."
            )
        if matches(self.categories, "," if mark == POINT else r"\.").any() and found.is_number:
            word = "commas" if mark != COMMA else "points"
            how.append(f"with {word} between thousands")
            notes.append(f"In '{name}', {word} were read as marks between thousands.")
        lost = numbers.null_count - int(np.count_nonzero(self.code < 0))
        if lost:
            how.append(f"without {counted(lost, 'cell')} that hold none")
            notes.append(
                f"'{name}' was read as numbers: {counted(lost, 'cell')} that are none count as "
                "missing."
            )
        column = replace(self.column, mark=mark, unit=found.unit, how=tuple(how), categories=None)
        if numbers.null_count == len(numbers):
            return _nothing(numbers, column), notes
        column = _numeric(numbers, column, self.table)
        return Judged(column, numbers), notes

    def kept(self) -> Judged:
        """Return the column as texts."""
        missing = int(np.count_nonzero(self.code < 0))
        count, kind = len(self.categories), self.kind
        if kind is Kind.CATEGORICAL:
            # a text of its own in each row groups nobody, and may well name them
            if count == len(self.code) - missing and count > MAX_CATEGORIES:
                kind = Kind.IDENTIFIER
            else:
                blanks = pc.max(pc.count_substring(self.categories, " ")).as_py()
                longest = pc.max(pc.utf8_length(self.categories)).as_py()
                free = longest > _LONG_TEXT or blanks >= _REMARK_WORDS
                kind = Kind.REMARK if free else kind
        indices = pa.array(self.code, mask=self.code < 0, type=pa.int32())
        packed = pa.DictionaryArray.from_arrays(indices, self.categories)
        column = replace(
            self.column, kind=kind, missing=missing, constant=count == 1, categories=count
        )
        return Judged(column, pa.chunked_array([packed]))

    def _doubts(self) -> tuple[list[str], int]:
        """Return why texts that look like numbers are none, and how many cells are numbers.

        They are worth a question where they are most of the cells, and all of one decimal mark.
        """
        name, doubts = self.column.name, []
        numeric = np.append(numbers_among(self.categories), False)
        present = int(np.count_nonzero(self.code >= 0))
        texts = present - int(np.count_nonzero(numeric[self.code]))
        if self.numerals.codes:
            doubts.append("is written with leading zeros: it was read as a code, not as a number.")
        elif self.kind is not Kind.CATEGORICAL:
            pass
        elif texts == 0:
            doubts.append(
                "counts as text because its numbers are written with a decimal point in some rows "
                "and a decimal comma in others."
            )
        elif (limits := self._cells(r"\A[<>] ?\d")) > 1 and (
            limits + present - texts >= 0.9 * present
        ):
            doubts.append(
                f"counts as text because {counted(limits, 'cell')} of {present} begin with < or >, "
                "as below a limit of detection: put numbers in their place, or read it as a number "
                "without them."
            )
        # a few strange cells in a column of numbers are worth a word; a column of words is not
        elif texts <= 0.1 * present:
            first = int(np.argmax((self.code >= 0) & ~numeric[self.code])) + 1
            doubts.append(
                f"counts as text because {counted(texts, 'cell')} of {present} cannot be read as a "
                f"number, first in row {first} (not counting a header)."
            )
        elif self._cells(r"\A[+-]?\d") >= 0.9 * present:
            doubts.append(
                "counts as text, though nearly every cell begins with a number: something stands "
                "beside it, such as a unit, a range or a plus-minus."
            )
        said = [f"'{name}' {doubt}" for doubt in doubts]
        if pc.any(pc.match_substring(self.categories, "\n")).as_py():
            said.append(f"Cells of '{name}' hold line breaks: check that every quote is closed.")
        worth = self.kind is Kind.CATEGORICAL and not self.numerals.codes
        return said, present - texts if worth and 0 < texts <= 0.5 * present else 0

    def _cells(self, pattern: str) -> int:
        """Return how many rows have a text that matches."""
        flags = np.append(matches(self.categories, pattern), False)
        return int(np.count_nonzero(flags[self.code]))


def _texts(
    values: Any,
    column: RawColumn,
    table: str,
    kind: Kind,
    delimiter: str = "",
    missing: Collection[str] = (),
) -> _Texts | Judged:
    """Return texts coded over their sorted, trimmed categories; truths as what they are."""
    if pa.types.is_string_view(values.type):  # Arrow encodes no views
        values = values.cast(pa.large_string())
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    # polars codes by unsigned numbers; a browser's have 32 bits
    code = to_numpy(pc.fill_null(coded.indices.cast(pa.int64()), -1)).astype(np.intp)
    found = trimmed(coded.dictionary)
    counts = np.bincount(code[code >= 0], minlength=len(found))
    # a marker may stand among more blanks than the parser knows, a category in no row
    real = (counts > 0) & ~among(found, MISSING_MARKERS)
    told, gone = among(pc.utf8_lower(found), [word.lower() for word in missing]) & real, 0
    withheld = among(pc.utf8_lower(found), WITHHELD) & real & ~told
    if kind is Kind.CATEGORICAL and withheld.any():
        rest = found.filter(pa.array(real & ~told & ~withheld))
        told = told | withheld if len(rest) > 1 and numerals_of(rest).is_number else told
    if told.any():
        words = sorted({*found.filter(pa.array(told)).to_pylist()})
        column, gone = replace(column, words=tuple(words)), int(counts[told].sum())
    merged = pc.if_else(pa.array(real & ~told), found, None).dictionary_encode()
    if not len(merged.dictionary):
        return _nothing(values, column)
    order = to_numpy(pc.array_sort_indices(merged.dictionary))
    categories = merged.dictionary.take(pa.array(order))
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    # index -1, for a gap, meets the -1 at the end of each table
    remap = np.append(rank[to_numpy(pc.fill_null(merged.indices, -1))], np.int32(-1))
    code32 = remap[code]
    if delimiter and {*categories.slice(0, len(_TRUTHS) + 1).to_pylist()} <= {*_TRUTHS}:
        flags = np.array([_TRUTHS[word] for word in categories.to_pylist()] + [0], np.uint8)
        truth = pa.chunked_array([pa.array(flags[code32], mask=code32 < 0)])
        return Judged(_numeric(truth, column, table, Kind.BOOLEAN), truth)
    numerals = numerals_of(categories) if kind is Kind.CATEGORICAL else Numerals()
    kind = Kind.DATE if numerals.dates else kind
    return _Texts(column, table, code32, categories, kind, numerals, delimiter, gone)


def trimmed(texts: Any) -> Any:
    """Return texts of an Arrow array without blanks around them."""
    return pc.utf8_trim_whitespace(texts.cast(pa.large_string()))


def truths(texts: Any) -> NDArray[np.float64]:
    """Return 1 and 0 for true and false, and NaN for what is neither."""
    return np.array([_TRUTHS.get(word, np.nan) for word in trimmed(texts).to_pylist()])


def among(texts: Any, words: Collection[str]) -> NDArray[np.bool_]:
    """Return which texts are one of some words."""
    found = pc.is_in(texts, value_set=pa.array(list(words), pa.large_string()))
    flags: NDArray[np.bool_] = to_numpy(pc.fill_null(found, False))
    return flags


def _numeric(values: Any, column: RawColumn, table: str, kind: Kind = Kind.NUMERIC) -> RawColumn:
    """Return what a numeric column is, having refused infinite and absurd values."""
    if not pa.types.is_floating(values.type):
        # whole numbers are finite: their ends say all
        ends = pc.min_max(values)
        constant = ends["min"].as_py() == ends["max"].as_py()
        return replace(column, kind=kind, missing=values.null_count, constant=constant)
    missing = 0
    row = 0
    lows: list[float] = []
    highs: list[float] = []
    for chunk in values.chunks:  # by chunk, so that nothing the size of the column is made
        block = to_numpy(chunk)
        # false for NaN, true for an infinity, and within the range of narrow floats
        bad = np.abs(block) > min(MAX_MAGNITUDE, float(np.finfo(block.dtype).max))
        if bad.any():
            raise InvalidTable(
                f"column '{column.name}' of {table} holds an infinite number or one beyond "
                f"{numeral(MAX_MAGNITUDE, 6)} in row {row + int(np.argmax(bad)) + 1}, not counting "
                "a header."
            )
        gaps = int(np.count_nonzero(np.isnan(block)))
        missing += gaps
        row += len(block)
        if gaps < len(block):
            lows.append(float(np.nanmin(block)))
            highs.append(float(np.nanmax(block)))
    constant = bool(lows) and min(lows) == max(highs)
    return replace(column, kind=kind, missing=missing, constant=constant)
