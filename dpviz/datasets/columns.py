"""Judge the content of each column of a table from its cells, and find missing values.

A text counts as a number under a decimal point (commas between thousands) or a decimal comma
(points between thousands). ``1.5`` fits the first only, ``1,5`` the second only, ``1.234`` both.
The texts of a column decide together, then the other columns of the file. If they do not decide,
the reader asks the user instead of guessing.
"""

from __future__ import annotations

import os
import re
import unicodedata
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
"""Largest number of categories that one-hot encoding expands."""
MAX_MAGNITUDE = 1e100
"""Largest absolute value of a cell, so that its squares and sums stay finite."""
_LONG_TEXT, _REMARK_WORDS = 40, 4
_FIRST_CELLS, _CELL_LETTERS = 3, 20
_FEW_CELLS = 1 << 16


class Kind(StrEnum):
    """The content of a column.

    ``IDENTIFIER`` is text that differs in every row, in more than `MAX_CATEGORIES` rows. ``REMARK``
    is free text: more than a few words or letters in a cell. ``EMPTY`` has no value.
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
        Name, distinct within the table.
    kind : Kind
    missing : int
        Cells without a value.
    constant : bool
        Whether all values are equal.
    categories : int or None
        Number of different texts; None for a column of numbers.
    place : int
        Position among the columns that were read, from 0.
    mark : str or None
        Decimal mark of numbers stored as text, unless numbers are written as programs write them.
    unit : str
        Unit written after each number.
    how : tuple of str
        How texts were read as numbers, as phrases.
    words : tuple of str
        Texts counted as missing, besides empty cells and the usual marks.
    numbers : int
        Number of numeric cells in a column that is text because a few cells are not.
    first : tuple of str
        First cells, shown only to the file's owner.
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
        """Whether the column is a feature even without encoding."""
        return self.kind in (Kind.NUMERIC, Kind.BOOLEAN)

    @property
    def read_as(self) -> str:
        """Kind of the column and how its cells were read, in words."""
        return ", ".join([self.kind.value, *self.how, *(["constant"] if self.constant else [])])

    @property
    def is_text(self) -> bool:
        """Whether the column holds texts, stored as category codes."""
        return self.kind not in (Kind.NUMERIC, Kind.BOOLEAN, Kind.EMPTY)

    @property
    def can_encode(self) -> bool:
        """Whether one-hot encoding can expand the column; never for free text."""
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
    """A column and its values, as `RawTable` stores them."""

    column: RawColumn
    values: Any


# Names --------------------------------------------------------------------------------------------


def listed(names: Sequence[str]) -> str:
    """List names in words, as many as fit in `QUOTED` letters, and count the rest."""
    quotes: list[str] = []
    room = QUOTED
    for name in names:
        quote = printable(name, room if not quotes else QUOTED)
        # Always show the first name, even if it is long, so that the sentence names a column.
        room -= len(quote)
        if quotes and room < 0:
            break
        quotes.append(f"'{quote}'")
    more = len(names) - len(quotes)
    if more:
        return ", ".join(quotes) + f" and {more} more"
    if len(quotes) > 1:
        return ", ".join(quotes[:-1]) + f" and {quotes[-1]}"
    return quotes[0]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, singular or plural: 1 cell, 2 cells."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def distinct(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the names made distinct by a number in brackets, and the changed names."""
    used_names, out, new = set(names), dict[str, None](), []
    for name in names:
        unique_name, count = name, 1
        # A new column name must differ from every name in the file, even from later names.
        while unique_name in out or (unique_name != name and unique_name in used_names):
            count += 1
            unique_name = f"{name} ({count})"
        new += [unique_name] if unique_name != name else []
        out[unique_name] = None
    return tuple(out), new


def clean_names(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return usable column names and sentences on the changes.

    Blanks are tidied, a leading ``#`` is removed and long names are shortened. Blank names are
    numbered and repeated names get a number in brackets.
    """
    tidy = [printable(unicodedata.normalize("NFC", name)) for name in names]
    if tidy and tidy[0].startswith("#"):
        # Remove the comment mark # with which a header row often starts.
        tidy[0] = tidy[0].lstrip("# ")
    notes = []
    blank = [j for j, name in enumerate(tidy) if not name]
    for j in blank:
        tidy[j] = f"column {j + 1}"
    if blank:
        were = "column without a name was" if len(blank) == 1 else "columns without names were"
        notes.append(f"{len(blank)} {were} named {listed([tidy[j] for j in blank])}.")
    unique, changes = distinct(tidy)
    if changes:
        notes.append(
            f"Column names that repeat, or begin alike for {QUOTED} letters, were made distinct: "
            f"{listed(changes)}."
        )
    return unique, notes


# Marks for a missing cell -------------------------------------------------------------------------


# These words always mean missing. A number such as -999 may mean it, so it is only reported.
MISSING_MARKERS = (
    "", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NAN", "null",
    "NULL", "Null", "None", "none", "nil", "?", ".", "-", "--",
)  # fmt: skip
"""Cells that count as missing, even with blanks around them."""

_NOT = "not?|non?|nicht|kein(?:e[nr]?)?|sans|sin|zonder|utan|uten|brak|нет"
_GONE = (
    "suppressed|withheld|redacted|masked|hidden|confidential|declined|refused|unknown|unbekannt|"
    "inconnue?|desconocid[ao]|desconhecid[ao]|sconosciut[ao]|onbekend|ok[äe]nd|uk[je]+nt|неизвестно|"
    "missing(?: values?| data)?|blank|empty|leer|null|nil|na[nt]?|fehl(?:t|end|wert)|"
    "(?:dat[oa]s? )?(?:manquante?|mancant[ei]|faltante)|(?:don.?t|do not) know|"
    "不明|未知|缺失|欠測|なし|없음"
)
WITHHELD = (
    rf"\A(?:[\[(<]?(?:{_GONE}|(?:{_NOT})(?: [^\d\s]+)?|[未无無][^\d\s]+)[\])>]?|\([xds]\)|x+|"
    r"n[drk]|[nk]\. ?[a-z]\.?|[ns]/[adkv]|\.[a-z]|\\n|#\D[^ ]*|(?:[*#.:…–—/-] ?)+)\z"
)
"""Pattern of a lower-case word for a withheld number; a column of words treats it as a category."""

SENTINELS: tuple[float, ...] = (-999.0, -9999.0, -99999.0, -99.0, 999.0, 9999.0, 99999.0, 999999.0)
SENTINELS += (-99.9, -999.9, -999.99, -9999.9, -9999.99, 999.9, 999.99, 9999.9, 9999.99, 1e20)
"""Numbers commonly used as codes for "missing"."""
_FAR = 1.0  # A "missing" code lies at least this far from other values, in units of their range.

WARNING = (
    "hold a number such as -999, far from all others: it may stand for missing and counts as a "
    "number."
)


def sentinel(values: NDArray[np.float64]) -> tuple[float, int]:
    """Return a usual "missing" code, far from all other values, and its cell count; else NaN."""
    if not len(values) or not {float(values.min()), float(values.max())} & {*SENTINELS}:
        return np.nan, 0  # A 'missing' code is far from other values, so it is an extreme one.
    for code in SENTINELS:
        at = values == code
        rest = values[~at]
        if not at.any() or len(rest) < 3:
            continue
        if far_from(code, float(rest.min()), float(rest.max())):
            return code, int(at.sum())
    return np.nan, 0


def far_from(code: float, low: float, high: float) -> bool:
    """Return whether only the code is negative, or the code is far outside the others' range."""
    reach = _FAR * max(high - low, 1e-300)
    return (code < 0 and low >= 0) or code < low - reach or code > high + reach


# Numbers in texts ---------------------------------------------------------------------------------

POINT, COMMA = ".", ","
MARKS = (POINT, COMMA)

# Blanks and apostrophes separate thousands; they are never decimal marks.
_NEUTRAL = " '\u2019\u00a0\u2009\u202f"
_BLANK = "[\\t\\n\\f\\r \u00a0\u2009\u202f]*"
_MINUS = "\u2212\u2013"
_SIGN = rf"[+\-{_MINUS}]?"
_EXPONENT = r"(?:[eEdD][+-]?\d+)?"  # Fortran writes D for the exponent: 1.5D3.
_MONEY = (
    r"(?:[A-Z]{0,2}[$¢£¥฿₠-₿]|CHF|EUR|USD|GBP|SEK|NOK|DKK|PLN|CZK|JPY|CNY|INR|Fr\.|Rs\.?|kr\.?|zł|"
    r"Kč|Ft|руб\.?|円|元)"
)


def _pattern(decimal: str) -> str:
    """Return the pattern of a number under a decimal mark, in Arrow's syntax."""
    mark, other = (r"\.", ",") if decimal == POINT else (",", r"\.")
    indian = r"(?:,\d\d)+,\d{3}|" if decimal == POINT else ""
    groups = rf"[1-9]\d{{0,2}}(?:{indian}(?:{other}\d{{3}})+|(?:[{_NEUTRAL}]\d{{3}})+)"
    body = rf"(?:(?:\d+|{groups})(?:{mark}\d*)?|{mark}\d+){_EXPONENT}"
    front, behind = rf"(?:{_MONEY}{_BLANK})?", rf"{_BLANK}(?:%|{_MONEY})?"
    with_sign = rf"(?:{_SIGN}{front}|{front}[+\-{_MINUS}]){body}{behind}"
    brackets = rf"{front}\({front}{body}{behind}\)"
    # Accountants write the minus sign after the number.
    return rf"\A(?:{with_sign}|{brackets}|{body}-|{_SIGN}(?i:inf(?:inity)?))\z"


_PATTERNS = {mark: _pattern(mark) for mark in MARKS}
_CODE = r"\A0\d+\z"  # Only codes, such as postcodes, start with a zero.
_PLAIN = r"\A[+-]?(?:0|[1-9]\d*)\z"
_DAY_MONTH = r"\A(?:0?[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.?\z"
_ZERO_DAY = r"\A0[1-9]\."
_MONTH = (
    r"(?:jan|ene|gen|f[eé]v|feb|m[aä]r|mrz|a[pvb]r|ma[yijg]|jui?[nl]|giu|lug|aug|ao[uû]|ago|sep|set|o[ckt]t|"
    r"out|nov|d[eéi][cz])[a-zäéûç]*\.?"
)
_CLOCK = (
    r"(?:[T ,:]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]\.?m\.?)?"
    r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?)?"
)
_DATE = (
    r"(?i)\A(?:[a-zé]{2,10}\.?,? )??(?:\d{1,2}[./-] ?\d{1,2}[./-] ?(?:\d{2}|\d{4})|"
    r"\d{1,2}\.\d{1,2}\.|\d{4}[./-] ?\d{1,2}[./-] ?\d{1,2}\.?|"
    r"\d{4}-(?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])/\d{4}|"
    rf"\d{{1,2}}\.?[ -]?(?:de )?{_MONTH}[ -]?(?:de )?(?:\d{{2}}|\d{{4}})|"
    rf"{_MONTH} ?\d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|{_MONTH}[ '-]?(?:\d{{2}}|\d{{4}})|"
    rf"\d{{4}}[ -]{_MONTH}(?:[ -]\d{{1,2}})?|\d{{4}}[ -]?(?:Q[1-4]|W\d{{2}}(?:-\d)?)|"
    rf"Q[1-4][ /-]?\d{{4}}|\d{{2,4}}年\d{{1,2}}月(?:\d{{1,2}}日)?){_CLOCK}(?: \d{{4}})?\z"
)
_EXTRAS = {
    "percent signs": r"%\z",
    "currency signs": _MONEY,
    "brackets for negative numbers": r"\(",
    "blanks or apostrophes between thousands": rf"\d[{_NEUTRAL}]\d",
}
UNIT = (
    r"[/%\u00b0^\u00b5\u00b2\u00b3\u20ac$\u00a3]|\A[\[(].*[\])]\Z|\A(?:[yzafpnumcdhkMGTPEZY]?"
    r"(?:m|g|s|l|L|A|K|mol|cd|Hz|N|Pa|J|W|C|V|F|T|H|Bq|Gy|Sv|bar|eV|cal|dB|B|U|M|t|IU|Ohm)|"
    r"deg ?[CFK]?|mm ?Hg|cm ?H2O|rpm|bpm|pp[mbt]|in|ft|lbs?|oz|mi|mph|psi|h|hrs?|hours?|"
    r"min(?:utes?)?|sec(?:onds?)?|days?|d|weeks?|months?|yrs?|years?|Jahre?|Tage?|Stunden|"
    r"USD|EUR|GBP|CHF|units?|counts?|kg ?m-?2|m ?s-?1)\Z"
)
"""Pattern of texts that are certainly units."""
BEHIND = re.compile(
    r"\A([\d.,' \u2212+-]*\d[.,]?)[ \u00a0\u202f]?((?:[^\W\d_]|[\u00b0\u00b5]).{0,11})\Z"
)
_LIMIT = r"(?i)\A(?:[a-z. ]*\(?[<>≤≥]|bdl|lod|loq|bql|blq|nachweisgrenze|under |unter |below )"
_TRUTHS = dict.fromkeys(("true", "True", "TRUE"), 1) | dict.fromkeys(("false", "False", "FALSE"), 0)


@dataclass(frozen=True)
class Numerals:
    """How the texts of one column, taken together, read as numbers.

    Attributes
    ----------
    fits : frozenset of str
        Decimal marks under which every text is a number; may be empty.
    marked : frozenset of str
        Which of ``.`` and ``,`` occur in the texts.
    codes : bool
        Whether some whole numbers have leading zeros and so are codes, not quantities.
    dates : bool
        Whether every text is a date.
    mixed : bool
        Whether some numbers have a decimal mark and others have none.
    extras : tuple of str
        Other characters found in the numbers, in words.
    unit : str
        Unit written after every number.
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
        """Whether every text is a number under some mark, and not a code or a date."""
        return bool(self.fits) and not self.codes and not self.dates

    @property
    def proves(self) -> str | None:
        """The decimal mark that these texts alone prove, or None."""
        if self.is_number and self.marked and len(self.fits) == 1:
            return next(iter(self.fits))
        return None

    @property
    def is_open(self) -> bool:
        """Whether the texts are numbers under either mark, with different values."""
        return self.is_number and bool(self.marked) and len(self.fits) == 2

    def mark(self, given: str | None, proved: Collection[str], delimiter: str) -> str | None:
        """Return the decimal mark for reading, or None if the user must choose.

        Parameters
        ----------
        given : str or None
            The user's choice.
        proved : collection of str
            Marks that other columns of the file prove.
        delimiter : str
            Delimiter between cells; empty for files without delimiters.
        """
        if not self.is_open:
            return self.proves or given or POINT
        if given is not None:
            return given
        if len(set(proved)) == 1:
            return next(iter(set(proved)))
        # If the point is the only mark in a column, it is the decimal mark, except in files that
        # separate cells by semicolons. Three digits after each point look like thousands.
        doubtful = delimiter == ";" or (self.mixed and delimiter not in (COMMA, ""))
        if not proved and self.marked == {POINT} and not doubtful:
            return POINT
        return None


# Up to this many texts, Python matches a pattern faster than Arrow, which must prepare it.
_FEW = 256


def matches(texts: Any, pattern: str) -> NDArray[np.bool_]:
    """Return which texts of an Arrow array match; a missing text does not."""
    if len(texts) <= _FEW:
        search = _compiled(pattern).search
        answers = (text is not None and search(text) is not None for text in texts.to_pylist())
        return np.fromiter(answers, np.bool_, len(texts))
    mask = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    flags: NDArray[np.bool_] = to_numpy(mask)
    return flags


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in Arrow's syntax for Python, matching the same texts."""
    return re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)


def told_nothing(texts: Any) -> NDArray[np.bool_]:
    """Return which texts are words for a withheld number."""
    return matches(pc.utf8_lower(trimmed(texts)), WITHHELD)


def numbers_among(texts: Any) -> NDArray[np.bool_]:
    """Return which texts are numbers under some decimal mark."""
    return matches(texts, _PATTERNS[POINT]) | matches(texts, _PATTERNS[COMMA])


def numerals_of(texts: Any) -> Numerals:
    """Judge the texts of an Arrow string array, trimmed and without missing values."""
    if not len(texts):
        return Numerals()
    fits = frozenset(mark for mark in MARKS if matches(texts, _PATTERNS[mark]).all())
    dates = bool(matches(texts, _DATE).all())
    if not fits:
        unit = _unit_of(texts)
        numerals = numerals_of(_without(unit, texts)) if unit else Numerals(dates=dates)
        return replace(numerals, unit=unit) if numerals.is_number else Numerals(dates=dates)
    marks = frozenset(mark for mark in MARKS if matches(texts, "\\" + mark).any())
    if not marks and matches(texts, _PLAIN).all():
        return Numerals(fits)
    day_month = bool(matches(texts, _DAY_MONTH).all())
    return Numerals(
        fits,
        marks,
        codes=bool(matches(texts, _CODE).any()),
        dates=dates or (day_month and bool(matches(texts, _ZERO_DAY).any())),
        mixed=bool(marks) and not matches(texts, "[.,]").all(),
        extras=tuple(word for word, form in _EXTRAS.items() if matches(texts, form).any()),
    )


def _unit_of(texts: Any) -> str:
    """Return the known unit after a digit in every text; empty if there is none."""
    behind = BEHIND.search(texts[0].as_py())
    unit = behind[2] if behind else ""
    is_unit = bool(unit) and re.search(UNIT, unit) is not None
    return unit if is_unit and pc.all(pc.ends_with(texts, unit)).as_py() else ""


def _without(unit: str, texts: Any) -> Any:
    """Remove the unit from the texts that end with it."""
    stem = pc.utf8_rtrim_whitespace(pc.utf8_slice_codeunits(texts, 0, -len(unit)))
    return pc.if_else(pc.ends_with(texts, unit), stem, texts)


def parse(texts: Any, mark: str, unit: str = "") -> NDArray[np.float64]:
    """Parse texts as numbers under a decimal mark; other texts become NaN.

    Parameters
    ----------
    texts : pyarrow string array
        Trimmed texts; a missing text becomes NaN.
    mark : str
        ``.`` or ``,``.
    unit : str
        Unit written after each number.
    """
    texts = _without(unit, texts) if unit else texts
    other = COMMA if mark == POINT else POINT
    if not pc.any(pc.match_substring(texts, other)).as_py():  # Most texts are plain numbers.
        with suppress(pa.ArrowInvalid):
            simple = pc.cast(pc.replace_substring(texts, mark, POINT), pa.float64())
            return np.asarray(simple.to_numpy(zero_copy_only=False))
    fits = matches(texts, _PATTERNS[mark])
    plain = pc.if_else(pa.array(fits), texts, None)
    negative = matches(plain, r"\(|-\z")
    plain = pc.replace_substring_regex(plain, rf"[(){_NEUTRAL}\t\n\f\r%+]|-\z|{_MONEY}", "")
    plain = pc.replace_substring_regex(plain, "[dD]", "e")
    plain = pc.replace_substring_regex(plain, f"[{_MINUS}]", "-")
    plain = pc.replace_substring(plain, other, "")
    if mark == COMMA:
        plain = pc.replace_substring(plain, COMMA, POINT)
    try:
        numbers = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # The number is too large for Arrow; float() returns infinity.
        texts = plain.to_pylist()
        numbers = np.array([np.nan if text is None else float(text) for text in texts])
    values: NDArray[np.float64] = np.where(negative, -numbers, numbers)
    return values


# Values of Arrow ----------------------------------------------------------------------------------


def to_numpy(values: Any) -> NDArray[Any]:
    """Return an Arrow array as a NumPy array, with NaN for missing numbers."""
    whole = {} if isinstance(values, pa.ChunkedArray) else {"zero_copy_only": False}
    array: NDArray[Any] = values.to_numpy(**whole)
    return array


def plain_numbers(values: Any) -> Any:
    """Convert an Arrow array of numbers to a type that NumPy also has."""
    if pa.types.is_boolean(values.type):
        # Convert booleans to 0 and 1, because NumPy cannot subtract booleans.
        return values.cast(pa.uint8())
    if pa.types.is_decimal(values.type) or pa.types.is_float16(values.type):
        return values.cast(pa.float64(), safe=False)
    return values


def counts_rows(values: Any) -> bool:
    """Return whether the rows read 0, 1, 2, ... or 1, 2, 3, ... in order."""
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
    """Return the columns of a table with their kinds and values, and notes on what reading changed.

    Parameters
    ----------
    table : str
        Name of the table in messages.
    names : sequence of str
    columns : list of pyarrow.ChunkedArray
        The columns, emptied on the way, so that texts and converted values are not both in memory.
    decimal : str or None
        Decimal mark, if the user stated it.
    delimiter : str
        Delimiter of a text file, in which numbers and truth values are texts; else empty.

    Raises
    ------
    InvalidTable
        If there are fewer than two rows, an infinite or absurdly large number, text that is not
        UTF-8, or numbers with two possible readings that nothing decides.
    """
    rows = len(columns[0]) if columns else 0
    if rows < 2:
        count = "one row" if rows else "none"
        raise InvalidTable(f"{table} must have at least 2 rows of data; it has {count}.")
    notes = []
    # An empty last column is left out: lines may end in a delimiter, or a sheet may be wider.
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
            # Drop the first column if it is the row index that pandas writes.
            places.remove(0)
    clean, changes = clean_names([names[j] for j in places])
    notes += changes

    def look(at: int) -> _Texts | Judged:
        place = places[at]
        column = RawColumn(clean[at], Kind.EMPTY, rows, True, place=place)
        item = _looked(columns[place], column, table, delimiter)
        columns[place] = None
        return item

    workers = min(4, os.cpu_count() or 1) if rows * len(columns) > _FEW_CELLS else 1
    items = in_threads(look, range(len(places)), workers)
    marks = (
        item.numerals.proves if isinstance(item, _Texts) else item.column.mark for item in items
    )
    proofs = frozenset(mark for mark in marks if mark is not None)
    out: list[Judged] = []
    for at, item in enumerate(items):
        final, remarks = (item, []) if isinstance(item, Judged) else item.settled(proofs, decimal)
        items[at] = final  # Free the memory that the texts of this column used.
        notes += remarks
        column = final.column
        # The decimal point is the usual mark, so do not record it.
        plain = isinstance(item, Judged) and column.mark == POINT
        out.append(replace(final, column=replace(column, mark=None)) if plain else final)
    return out, notes


def judge_again(
    table: str,
    judged: Judged,
    missing: Collection[str],
    decimal: str | None,
    *,
    as_number: bool,
) -> tuple[Judged, list[str]]:
    """Judge a text column again, with more words, or all non-numbers, as missing."""
    column = replace(judged.column, mark=None, unit="", how=())
    texts = _texts(judged.values, column, table, Kind.CATEGORICAL, ".", missing)
    if isinstance(texts, Judged):
        return texts, []
    return texts.settled((), decimal, as_number=as_number)


def as_texts(table: str, judged: Judged) -> Judged:
    """Return a column of numbers as a column of texts."""
    column = replace(judged.column, mark=None, unit="", how=())
    texts = _texts(judged.values.cast(pa.string()), column, table, Kind.CATEGORICAL, "", ())
    return texts if isinstance(texts, Judged) else texts.kept()


def _looked(values: Any, column: RawColumn, table: str, delimiter: str) -> _Texts | Judged:
    """Return a column's content, as far as its own cells show it."""
    with readable(f"column '{column.name}' of {table} holds values that cannot be read."):
        column = replace(column, first=_first(values))
        plain = _written_plainly(values, column, table, delimiter) if delimiter else None
        if plain is not None:
            return plain
        kind = values.type
        # A data frame may store numbers as categories; convert these back, but not texts.
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
                # Drop the time zone: converting to local time would need a time zone database.
                values = values.cast(pa.timestamp(kind.unit))
            return _texts(values.cast(pa.string()), column, table, Kind.DATE)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or not _is_utf8(values):
            raise InvalidTable(
                f"column '{column.name}' of {table} is not UTF-8 text; save it as UTF-8."
            )
        return _texts(values, column, table, Kind.CATEGORICAL, delimiter)


def _first(values: Any) -> tuple[str, ...]:
    """Return the first cells that are not missing, shortened."""
    with suppress(ValueError, OverflowError, pa.ArrowException):
        cells = values.slice(0, _FEW).drop_null().slice(0, _FIRST_CELLS).to_pylist()
        return tuple(printable(str(cell), _CELL_LETTERS) for cell in cells)
    return ()


def _written_plainly(values: Any, column: RawColumn, table: str, delimiter: str) -> Judged | None:
    """Return a column of plain numbers under one decimal mark; None for any other column."""
    texts = values.drop_null() if values.null_count else values
    start = _start(texts)
    zero = pc.starts_with(texts, "0")
    if (
        not start.is_number
        or start.extras
        or start.unit
        or start.is_open
        # A leading zero means a code, and Arrow would read 0x as hexadecimal.
        or (pc.any(zero).as_py() and matches(texts.filter(zero), r"\A0[\dxX]").any())
    ):
        return None
    if not start.marked:
        numbers = cast(values, pa.int64())
        if numbers is not None:
            return Judged(_numeric(numbers, column, table), numbers)
        with_mark = pc.or_(pc.match_substring(texts, POINT), pc.match_substring(texts, COMMA))
        start = _start(texts.filter(with_mark))
        if start.marked and (not start.is_number or start.extras or start.is_open):
            return None
    mark = start.proves
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
    """Judge the first texts of a column on their own."""
    return numerals_of(trimmed(texts.slice(0, _FEW).combine_chunks()))


def cast(values: Any, kind: Any) -> Any:
    """Cast texts, whatever blanks surround them, to a number type; None if the cast fails."""
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
    """A column of texts, before the other columns decide how to read its numbers.

    Attributes
    ----------
    column : RawColumn
        The column, with its name and position.
    table : str
        Name of the table in messages.
    code : ndarray of int32
        Category index of each row's text; -1 for a missing value.
    categories : pyarrow string array
        The distinct texts, sorted and trimmed.
    kind : Kind
    numerals : Numerals
    delimiter : str
        Delimiter between cells; empty if the source is not text.
    gone : int
        Number of cells with one of the column's words for missing.
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
        """Return the column as numbers or texts, and notes on what reading changed.

        Parameters
        ----------
        proved : collection of str
            Decimal marks that the columns of the file prove.
        decimal : str or None
            Decimal mark, if the user stated it.
        as_number : bool
            Whether texts that are not numbers count as missing.
        """
        name, notes = self.column.name, []
        if self.gone:
            cells = counted(self.gone, "cell")
            notes.append(f"In '{name}', {listed(self.column.words)} counts as missing: {cells}.")
        if not (self.numerals.is_number or as_number):
            if self.kind is Kind.DATE:
                notes.append(f"Dates in '{name}' are treated as text.")
            doubts, numbers = self._doubts()
            texts = self.kept()
            return replace(texts, column=replace(texts.column, numbers=numbers)), notes + doubts
        form = self.numerals
        mark = form.mark(decimal, proved, self.delimiter)
        if not form.is_number:  # Choose the decimal mark that fits more texts.
            fits = {one: matches(self.categories, _PATTERNS[one]).sum() for one in MARKS}
            mark = max(MARKS, key=lambda one: (fits[one], one == decimal))
        if mark is None:
            raise InvalidTable(
                f"column '{name}' of {self.table} has numbers with a mark that can mean "
                "decimals or thousands. Choose a point or a comma as the decimal mark."
            )
        values = np.append(parse(self.categories, mark, form.unit), np.nan)
        numbers = pa.chunked_array([pa.array(values[self.code], from_pandas=True)])
        how = [f"without {extra}" for extra in form.extras]
        how += ["without the unit behind each number"] if form.unit else []
        if form.is_open and mark == POINT and self.delimiter == ";":
            how.append(
                "with points for decimals, as elsewhere, and not as a mark between thousands"
            )
        if matches(self.categories, "," if mark == POINT else r"\.").any() and form.is_number:
            how.append(f"with {'commas' if mark == POINT else 'points'} between thousands")
        lost = numbers.null_count - int(np.count_nonzero(self.code < 0))
        how += [f"without {counted(lost, 'cell')} that hold none"] if lost else []
        remarks = how if self.delimiter else ["though stored as text", *how]
        notes += [f"'{name}' was read as numbers, {', '.join(remarks)}."] if remarks else []
        if mark == COMMA and COMMA in form.marked:
            how.insert(0, "with a decimal comma")
        column = replace(self.column, mark=mark, unit=form.unit, how=tuple(how), categories=None)
        if numbers.null_count == len(numbers):
            return _nothing(numbers, column), notes
        return Judged(_numeric(numbers, column, self.table), numbers), notes

    def kept(self) -> Judged:
        """Return the column as texts."""
        missing = int(np.count_nonzero(self.code < 0))
        count, kind = len(self.categories), self.kind
        if kind is Kind.CATEGORICAL:
            # If every row has a different text, the texts form no groups and may identify people.
            if count == len(self.code) - missing and count > MAX_CATEGORIES:
                kind = Kind.IDENTIFIER
            else:
                blanks = pc.max(pc.count_substring(self.categories, " ")).as_py()
                longest = pc.max(pc.utf8_length(self.categories)).as_py()
                free = longest > _LONG_TEXT or blanks >= _REMARK_WORDS
                kind = Kind.REMARK if free else kind
        indices = pa.array(self.code, mask=self.code < 0, type=pa.int32())
        cells = pa.DictionaryArray.from_arrays(indices, self.categories)
        column = replace(
            self.column, kind=kind, missing=missing, constant=count == 1, categories=count
        )
        return Judged(column, pa.chunked_array([cells]))

    def _doubts(self) -> tuple[list[str], int]:
        """Return why texts that look like numbers stay text, and how many cells are numbers.

        The user is asked about such texts if they fill most of the cells with one decimal mark.
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
        elif (limits := self._cells(_LIMIT)) > 1 and (limits + present - texts >= 0.9 * present):
            doubts.append(
                f"counts as text because {counted(limits, 'cell')} of {present} say less or more "
                "than a number, as below a limit of detection: put numbers in their place, or read "
                "it as a number without them."
            )
        # Report odd cells only if they are few, in a column that otherwise has numbers.
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
        remarks = [f"'{name}' {doubt}" for doubt in doubts]
        if pc.any(pc.match_substring(self.categories, "\n")).as_py():
            remarks.append(f"Cells of '{name}' hold line breaks: check that every quote is closed.")
        worth = self.kind is Kind.CATEGORICAL and not self.numerals.codes
        return remarks, present - texts if worth and 0 < texts <= 0.5 * present else 0

    def _cells(self, pattern: str) -> int:
        """Return how many rows have a matching text."""
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
    """Code texts over their sorted, trimmed categories; true/false texts become booleans."""
    if pa.types.is_string_view(values.type):  # Arrow cannot turn string views into codes.
        values = values.cast(pa.large_string())
    codes = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    codes = codes.chunk(0) if isinstance(codes, pa.ChunkedArray) else codes
    # Convert the codes to int64: polars has unsigned codes, and browsers use 32-bit integers.
    code = to_numpy(pc.fill_null(codes.indices.cast(pa.int64()), -1)).astype(np.intp)
    names = trimmed(codes.dictionary)
    counts = np.bincount(code[code >= 0], minlength=len(names))
    # A missing-value marker may have blanks around it. A category may occur in no row.
    real = (counts > 0) & ~among(names, MISSING_MARKERS)
    mask, gone = among(pc.utf8_lower(names), [word.lower() for word in missing]) & real, 0
    withheld = told_nothing(names) & real & ~mask
    if kind is Kind.CATEGORICAL and withheld.any():
        rest = names.filter(pa.array(real & ~mask & ~withheld))
        beside = numerals_of(rest)
        mask |= withheld & (len(rest) > 1 and (beside.is_number or beside.dates))
    if mask.any():
        words = sorted({*names.filter(pa.array(mask)).to_pylist()})
        column, gone = replace(column, words=tuple(words)), int(counts[mask].sum())
    remainder = pc.if_else(pa.array(real & ~mask), names, None).dictionary_encode()
    if not len(remainder.dictionary):
        return _nothing(values, column)
    order = to_numpy(pc.array_sort_indices(remainder.dictionary))
    categories = remainder.dictionary.take(pa.array(order))
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    # Each lookup array ends in -1, so that index -1, for a missing value, gives -1 again.
    remap = np.append(rank[to_numpy(pc.fill_null(remainder.indices, -1))], np.int32(-1))
    code32 = remap[code]
    if delimiter and {*categories.slice(0, len(_TRUTHS) + 1).to_pylist()} <= {*_TRUTHS}:
        flags = np.array([_TRUTHS[word] for word in categories.to_pylist()] + [0], np.uint8)
        truth = pa.chunked_array([pa.array(flags[code32], mask=code32 < 0)])
        return Judged(_numeric(truth, column, table, Kind.BOOLEAN), truth)
    numerals = numerals_of(categories) if kind is Kind.CATEGORICAL else Numerals()
    kind = Kind.DATE if numerals.dates else kind
    return _Texts(column, table, code32, categories, kind, numerals, delimiter, gone)


def trimmed(texts: Any) -> Any:
    """Strip the blanks around the texts of an Arrow array."""
    return pc.utf8_trim_whitespace(texts.cast(pa.large_string()))


def truths(texts: Any) -> NDArray[np.float64]:
    """Return 1 for true, 0 for false and NaN for anything else."""
    return np.array([_TRUTHS.get(word, np.nan) for word in trimmed(texts).to_pylist()])


def among(texts: Any, words: Collection[str]) -> NDArray[np.bool_]:
    """Return which texts are among some words."""
    mask = pc.is_in(texts, value_set=pa.array(list(words), pa.large_string()))
    flags: NDArray[np.bool_] = to_numpy(pc.fill_null(mask, False))
    return flags


def _numeric(values: Any, column: RawColumn, table: str, kind: Kind = Kind.NUMERIC) -> RawColumn:
    """Describe a numeric column; refuse infinite and absurdly large values."""
    if not pa.types.is_floating(values.type):
        # Whole numbers are always finite, so minimum and maximum are all that must be checked.
        ends = pc.min_max(values)
        constant = ends["min"].as_py() == ends["max"].as_py()
        return replace(column, kind=kind, missing=values.null_count, constant=constant)
    missing = 0
    row = 0
    lows: list[float] = []
    highs: list[float] = []
    for chunk in values.chunks:  # Work in chunks, because a full copy needs too much memory.
        block = to_numpy(chunk)
        # This test finds infinity but ignores NaN. Narrow float types have lower limits.
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
