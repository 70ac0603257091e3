"""How numbers are written as text: one rule, over whole columns, for every reader.

A text is a number if it is one under a decimal point with commas between
thousands, or under a decimal comma with points between thousands. ``1.5`` fits
the first only, ``1,5`` the second only, ``1.234`` both: what a column's texts
fit together decides, then what the other columns of the file prove, and where
nothing does the reader asks instead of guessing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

POINT, COMMA = ".", ","
MARKS = (POINT, COMMA)

# blanks and apostrophes between thousands; they are never decimal marks
_NEUTRAL = " '\u2019\u00a0\u2009\u202f"
_BLANK = r"[\t\n\f\r ]"
_SIGN = "[+\\-\u2212]?"
_EXPONENT = r"(?:[eE][+-]?\d+)?"


def _pattern(decimal: str) -> str:
    """Return what a number looks like under a decimal mark, in Arrow's syntax."""
    mark, other = (r"\.", ",") if decimal == POINT else (",", r"\.")
    grouped = rf"[1-9]\d{{0,2}}(?:(?:{other}\d{{3}})+|(?:[{_NEUTRAL}]\d{{3}})+)"
    body = rf"(?:(?:\d+|{grouped})(?:{mark}\d*)?|{mark}\d+){_EXPONENT}"
    return rf"\A(?:{_SIGN}(?:{body}{_BLANK}?%?|(?i:inf(?:inity)?))|\({body}{_BLANK}?%?\))\z"


_PATTERNS = {mark: _pattern(mark) for mark in MARKS}
_CODE = r"\A0\d+\z"  # a number is not written with leading zeros, a code is
_PLAIN = r"\A[+-]?(?:0|[1-9]\d*)\z"
_DAY_MONTH = r"\A(?:0?[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.?\z"
_ZERO_DAY = r"\A0[1-9]\."
_DATE = (
    r"\A(?:\d{1,2}[./-]\d{1,2}[./-](?:\d{2}|\d{4})|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}\.\d{1,2}\.)"
    r"(?:[T ]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?\z"
)


@dataclass(frozen=True)
class Numerals:
    """What the texts of one column are, taken together.

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
    """

    fits: frozenset[str]
    marked: frozenset[str] = frozenset()
    codes: bool = False
    dates: bool = False
    mixed: bool = False
    extras: tuple[str, ...] = ()

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

NO_NUMERALS = Numerals(frozenset())
"""What texts are that are no numbers."""


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


def judge(texts: Any) -> Numerals:
    """Return what the texts of an Arrow string array, trimmed and without gaps, are."""
    if not len(texts):
        return NO_NUMERALS
    fits = frozenset(mark for mark in MARKS if matches(texts, _PATTERNS[mark]).all())
    dates = bool(matches(texts, _DATE).all())
    if not fits:
        return Numerals(fits, dates=dates)
    marked = frozenset(mark for mark in MARKS if matches(texts, "\\" + mark).any())
    if not marked and matches(texts, _PLAIN).all():
        return Numerals(fits)
    day_month = bool(matches(texts, _DAY_MONTH).all())
    extras = []
    if matches(texts, r"%\z").any():
        extras.append("percent signs")
    if matches(texts, r"\A\(").any():
        extras.append("brackets for negative numbers")
    if matches(texts, rf"\d[{_NEUTRAL}]\d").any():
        extras.append("blanks or apostrophes between thousands")
    return Numerals(
        fits,
        marked,
        codes=bool(matches(texts, _CODE).any()),
        dates=dates or (day_month and bool(matches(texts, _ZERO_DAY).any())),
        mixed=bool(marked) and not matches(texts, "[.,]").all(),
        extras=tuple(extras),
    )


def groups_thousands(texts: Any, mark: str) -> bool:
    """Return whether a text has the other mark, between thousands, under a decimal mark."""
    return bool(matches(texts, "," if mark == POINT else r"\.").any())


def parse(texts: Any, mark: str) -> NDArray[np.float64]:
    """Return the numbers that texts mean under a decimal mark; NaN where one is none.

    Parameters
    ----------
    texts : pyarrow string array
        Trimmed; a gap becomes NaN.
    mark : str
        ``.`` or ``,``.
    """
    fits = matches(texts, _PATTERNS[mark])
    plain = pc.if_else(pa.array(fits), texts, None)
    negative = matches(plain, r"\A\(")
    plain = pc.replace_substring_regex(plain, rf"[(){_NEUTRAL}%+]", "")
    plain = pc.replace_substring(plain, "\u2212", "-")
    plain = pc.replace_substring(plain, COMMA if mark == POINT else POINT, "")
    if mark == COMMA:
        plain = pc.replace_substring(plain, COMMA, POINT)
    try:
        numbers = pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # a number beyond what a float holds, which float() calls infinite
        listed = plain.to_pylist()
        numbers = np.array([np.nan if text is None else float(text) for text in listed])
    found: NDArray[np.float64] = np.where(negative, -numbers, numbers)
    return found
