"""Describe each column of a parsed file and suggest its use, for "check your table".

This module decides nothing: the user sees every suggestion and can change it. The findings (kinds,
missing values, scales) come from the data and are not protected.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.core.number_text import numeral, percent
from dpviz.datasets.columns import (
    WARNING,
    Kind,
    RawColumn,
    counted,
    counts_rows,
    listed,
    sentinel,
    told_nothing,
)
from dpviz.datasets.raw import RawTable
from dpviz.datasets.table import ReadOptions

USES = ("feature", "colour", "drop")
"""Possible uses of a table's column."""

_SCALE = 30.0  # Wide columns have over 30 times the median spread of the columns.
_FEW_COLOURS = 20
# In an identifier, at least this share of numbers is distinct: without and with a fitting name.
_IDENTIFIER_SHARE, _NAMED_SHARE = 0.9, 0.5
_LONG, _NARROW = 6, 0.2  # Identifiers: at least 6 digits; range at most 0.2 times the maximum.
_EXACT = 2.0**53  # Above this number, a double cannot store every integer.
_IDENTIFIER_ROWS = 20
_SPARSE = 5  # The range of personal numbers is over this many times the number of rows.
_FEW_CODES, _CODED_ROWS = 10, 10
FEW_PEOPLE = 5
"""A label shared by fewer people than this could identify them."""
_PERSON = re.compile(
    r"(?:^|[^a-z])(?:[pu]?id|mrn|plz|zip|ssn|fall|case|pat(?:ient(?:en)?)?|subject|person)"
    r"[ _.-]*(?:nr|no|num(?:mer|ber)?|id|key)?(?:$|[^a-z])",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\w(?:[ _.-](?:nr|num(?:mer|ber)?|id|key)|nummer|number)\.?\Z", re.I)
_OUTCOME = re.compile(
    r"(?:^|[^a-z])(?:outcome|target|class|label|diagnos\w*|status|died|death|verstorben|"
    r"gruppe|group|ergebnis)(?:$|[^a-z])",
    re.IGNORECASE,
)
_DATED = re.compile(r"(?:^|[^a-z])(?:date|datum|day|born|birth|dob)(?:$|[^a-z])", re.IGNORECASE)
_NAMED = re.compile(r"(?:^|[^a-z])(?:(?:vor|nach)?name|surname|arzt|physician)(?:$|[^a-z])", re.I)
_FULL_NAME = re.compile(r"[^\W\d_][\w'-]+,? [^\W\d_][\w'-]+\Z")


@dataclass(frozen=True)
class ColumnCheck:
    """One row of the table that a user reviews after an upload.

    Attributes
    ----------
    name : str
    kind : Kind
    missing : int
        Cells without a value.
    use : str
        Suggested use, one of `USES`.
    warnings : tuple of str
        Sentences on the points that the user should check.
    identifies : bool
        Whether the column looks like an identifier.
    wide : bool
        Whether the column's spread is far above the spread of the other columns.
    code : float, str or None
        A number or a word that may stand for missing.
    repeats : int
        Largest number of rows with one value, if the column may name the person; else 0.
    exposes : str
        A sentence on what a screen or file would reveal of people if the column were the label or
        one-hot encoded; empty if it would reveal nothing.
    """

    name: str
    kind: Kind
    missing: int
    use: str
    warnings: tuple[str, ...] = ()
    identifies: bool = False
    wide: bool = False
    code: float | str | None = None
    repeats: int = 0
    exposes: str = ""

    def asks(self, *, person: bool, used: bool) -> bool:
        """Return whether the user must check the column before the table is used.

        Parameters
        ----------
        person : bool
            Whether the user stated how many rows one person has.
        used : bool
            Whether the column is used, as a feature or as a colour.
        """
        grouping = self.repeats > 1 and not person
        return isinstance(self.code, float) or grouping or (used and bool(self.exposes))


def check_columns(raw: RawTable, dropped: Collection[str] = ()) -> tuple[ColumnCheck, ...]:
    """Return a description and a suggested use of each column.

    Parameters
    ----------
    raw : RawTable
    dropped : collection of str
        Columns already left out, which do not count towards the usual scale.
    """
    numbers = {
        column.name: _present(raw.data[column.name])
        for column in raw.columns
        if column.kind is Kind.NUMERIC
    }
    spreads = {
        name: float(np.std(values / 1e50)) * 1e50  # Scaling avoids overflow in the squares.
        for name, values in numbers.items()
        if name not in dropped and len(values)
    }
    middle = float(np.median([s for s in spreads.values() if s > 0] or [0.0]))
    digests: dict[bytes, str] = {}
    checks = []
    for column in raw.columns:
        check = _check(raw, column, numbers.get(column.name), spreads, middle)
        twin = _twin(raw, column, digests)
        if twin:
            warnings = (*check.warnings, f"The same in every row as '{twin}'.")
            check = replace(check, use="drop", warnings=warnings)
        checks.append(check)
    return tuple(checks)


def _twin(raw: RawTable, column: RawColumn, digests: dict[bytes, str]) -> str | None:
    """Return the name of an earlier numeric column with the same values, compared by digest."""
    if column.kind is not Kind.NUMERIC or column.constant:
        return None
    values = np.asarray(raw.data[column.name].to_numpy(), dtype=np.float64) + 0.0
    earlier = digests.setdefault(hashlib.sha256(values.tobytes()).digest(), column.name)
    return None if earlier == column.name else earlier


def word_cells(raw: RawTable, word: str) -> dict[str, int]:
    """Return how many cells hold a word, for each categorical column with this word."""
    counts: dict[str, int] = {}
    for column in raw.columns:
        if column.kind is Kind.CATEGORICAL:
            cells = pc.sum(pc.equal(raw.data[column.name].cast(pa.large_string()), word)).as_py()
            counts |= {column.name: cells} if cells else {}
    return counts


def sentinel_effects(raw: RawTable, code: float) -> list[tuple[str, int, float, float]]:
    """Return each column that holds a code: name, coded cells, mean with and without these."""
    effects = []
    for column in raw.columns:
        if column.kind is Kind.NUMERIC:
            values = _present(raw.data[column.name])
            at = values == code
            if at.any() and not at.all():
                effects.append(
                    (column.name, int(at.sum()), float(values.mean()), float(values[~at].mean()))
                )
    return effects


@dataclass
class _Findings:
    """Findings about a column, collected step by step."""

    use: str = "feature"
    identifies: bool = False
    wide: bool = False
    code: float | str | None = None
    warnings: list[str] = field(default_factory=list)


def _check(
    raw: RawTable,
    column: RawColumn,
    values: NDArray[np.float64] | None,
    spreads: dict[str, float],
    middle: float,
) -> ColumnCheck:
    if column.kind is Kind.EMPTY:
        return ColumnCheck(column.name, column.kind, column.missing, "drop", ("No values.",))
    findings = _Findings()
    if column.constant:
        findings.use = "drop"
        findings.warnings.append("Constant: it tells nobody apart.")
    if column.kind in (Kind.IDENTIFIER, Kind.DATE, Kind.CATEGORICAL, Kind.REMARK):
        _look_at_kind(findings, column)
        findings.code = _word(raw, column)
    elif values is not None and not column.constant:
        _look_at_numbers(findings, raw, column, values, spreads, middle)
    repeats = _look_for_people(findings, raw, column, values)
    exposes = exposed(raw, column)
    if exposes:
        findings.use = "drop" if findings.use == "colour" else findings.use
        findings.warnings.append(exposes)
    if column.missing > 0.2 * raw.data.num_rows:
        findings.warnings.append(f"{percent(column.missing / raw.data.num_rows)} missing.")
    facts = vars(findings) | {"warnings": tuple(findings.warnings)}
    return ColumnCheck(
        column.name, column.kind, column.missing, **facts, repeats=repeats, exposes=exposes
    )


def _look_at_kind(findings: _Findings, column: RawColumn) -> None:
    """Suggest a use of identifiers, dates and texts."""
    if column.kind is Kind.IDENTIFIER:
        findings.use, findings.identifies = "drop", True
        findings.warnings.append("Looks like an identifier: it differs in every row.")
    elif column.kind is Kind.DATE:
        findings.use = "drop"
        findings.warnings.append("A date: left out unless it colours the picture.")
    else:
        few = column.categories is not None and column.categories <= _FEW_COLOURS
        findings.use = findings.use if column.constant else ("colour" if few else "drop")
        if not few:
            findings.warnings.append(f"Text with {column.categories} different values.")


def _word(raw: RawTable, column: RawColumn) -> str | None:
    """Return a category that may mean a withheld value, such as "unknown"; else None."""
    if column.kind is not Kind.CATEGORICAL:
        return None
    words = raw.data[column.name].chunk(0).dictionary
    candidates: list[str] = words.filter(pa.array(told_nothing(words))).to_pylist()
    return candidates[0] if candidates and len(candidates) < len(words) else None


def _look_at_numbers(
    findings: _Findings,
    raw: RawTable,
    column: RawColumn,
    values: NDArray[np.float64],
    spreads: dict[str, float],
    middle: float,
) -> None:
    """Look for identifiers, codes or dates among numbers, and for columns that spread too far."""
    rows = raw.data.num_rows
    if _identifies(raw, column, values):
        findings.use, findings.identifies = "drop", True
        findings.warnings.append(
            "Looks like an identifier: whole numbers that differ in nearly every row."
        )
    marker, far = sentinel(values)
    if far:
        findings.code = marker
        findings.warnings.append(f"{far} cells {WARNING}")
    kinds = len(np.unique(values)) if (values == np.round(values)).all() else rows
    if 2 < kinds <= _FEW_CODES and rows >= _CODED_ROWS * kinds:
        findings.warnings.append(f"{kinds} different whole numbers: a code, or an amount?")
    if _may_be_dates(values):
        findings.warnings.append("Could be dates written day.month or 20240131: read as numbers.")
    # Spreadsheets count days since 1900 or 1904; these days lie between 1954 and 2064.
    if _DATED.search(column.name) and 20_000 <= values.min() <= values.max() <= 60_000:
        findings.warnings.append("Could be days that a spreadsheet counts: read as numbers.")
    far_out = middle > 0 and spreads.get(column.name, 0.0) > _SCALE * middle
    findings.wide = not findings.identifies and len(spreads) > 1 and far_out
    if findings.wide:
        findings.warnings.append(
            f"Spreads more than {numeral(_SCALE, 6)} times as far as most columns: it decides "
            "the components alone unless the features are standardised."
        )


def _look_for_people(
    findings: _Findings, raw: RawTable, column: RawColumn, values: NDArray[np.float64] | None
) -> int:
    """Find a column that names people, else an outcome; return the largest row count of a name."""
    repeats = 0 if column.kind is Kind.DATE else _repeats(raw, column, values)
    if repeats:
        has_name = bool(_PERSON.search(column.name))
        findings.use = "drop" if has_name else findings.use
        findings.identifies = findings.identifies or (has_name and column.kind is Kind.NUMERIC)
        findings.warnings.append(
            f"May name the person: up to {counted(repeats, 'row')} have one value."
        )
    elif values is not None and _OUTCOME.search(column.name) and not column.constant:
        findings.warnings.append(
            "Likely the outcome: it can colour the picture instead of being analysed."
        )
    return repeats


def _repeats(raw: RawTable, column: RawColumn, values: NDArray[np.float64] | None) -> int:
    """Return the largest number of rows with one value if the column may name the person; else 0.

    Such a column holds whole numbers or texts, and has an identifier's name or more than half of
    its values different. The result is 0 if no value repeats.
    """
    whole = column.kind in (Kind.CATEGORICAL, Kind.IDENTIFIER, Kind.REMARK) or (
        values is not None and len(values) > 0 and bool((values == np.round(values)).all())
    )
    if not whole:
        return 0
    tally = raw.data[column.name].value_counts()
    counts = np.asarray(tally.field("counts").to_numpy(zero_copy_only=False))
    gaps = np.asarray(tally.field("values").is_null())
    counts = counts[~gaps]
    if len(counts) < 2 or counts.max() < 2:
        return 0
    rows = raw.data.num_rows
    many = len(counts) > 0.5 * rows and rows >= _IDENTIFIER_ROWS
    if values is not None:  # Ages use nearly all numbers in their range; personal numbers do not.
        digits = np.floor(np.log10(np.maximum(np.abs(values), 1)))
        many = many and bool((digits >= 3).all() and np.ptp(digits) == 0)
        many = many and float(np.ptp(values)) > _SPARSE * rows
    return int(counts.max()) if many or _PERSON.search(column.name) else 0


def exposed(raw: RawTable, column: RawColumn) -> str:
    """Return what showing a column's texts would reveal of people; empty if nothing."""
    if column.kind is Kind.DATE:
        return "Dates find people: not shown unless asked for."
    if column.kind is Kind.REMARK:
        return "Free text: neither shown nor turned into features."
    if column.kind is not Kind.CATEGORICAL:
        return ""
    tally = raw.data[column.name].value_counts()
    texts = tally.field("values").to_pylist()
    counts = tally.field("counts").to_pylist()
    cells = [(text, n) for text, n in zip(texts, counts, strict=True) if text is not None]
    is_name = _NAMED.search(column.name) is not None
    if is_name or sum(bool(_FULL_NAME.match(text)) for text, _ in cells) > 0.5 * len(cells):
        return "Names of people: never shown unasked."
    if min(n for _, n in cells) < FEW_PEOPLE:
        return f"A class has fewer than {FEW_PEOPLE} people."
    return ""


def suggested_drops(checks: Collection[ColumnCheck]) -> tuple[str, ...]:
    """Return the columns of numbers that look like an identifier."""
    return tuple(check.name for check in checks if check.identifies and check.kind is Kind.NUMERIC)


def advised(raw: RawTable, reading: ReadOptions) -> tuple[ReadOptions, list[str]]:
    """Return a reading that leaves out identifiers, unless the reading names the columns itself.

    The verdict agrees with `suggested_drops`, so a page and a command begin with the same table.

    Returns
    -------
    reading : ReadOptions
        The reading, which states the columns left out.
    notes : list of str
        Notes on columns left out, and on features that may name rows or people.
    """
    fixed_names = {reading.label, reading.person, *(reading.leave_out or ())}
    names, repeats = [], {}
    for column in raw.columns:
        if column.kind is Kind.NUMERIC and not column.constant and column.name not in fixed_names:
            values = _present(raw.data[column.name])
            repeats[column.name] = _repeats(raw, column, values)
            is_person = repeats[column.name] and _PERSON.search(column.name)
            names += [column.name] if is_person or _identifies(raw, column, values) else []
    able = sum(column.is_feature and column.name not in fixed_names for column in raw.columns)
    away = names if reading.leave_out is None and able - len(names) >= 2 else []
    notes = []
    if away:
        notes.append(
            f"Left out, as it looks like an identifier: {listed(away)} (--leave-out none keeps it)."
        )
    for name in repeats:
        if name in away:
            continue
        if name in names:
            notes.append(
                f"'{name}' looks like an identifier and counts as a feature: leave it out if it "
                "is one."
            )
        elif repeats[name]:
            notes.append(
                f"'{name}' may name the person, who then has up to "
                f"{counted(repeats[name], 'row')}, and counts as a feature: say so (--person), or "
                "leave it out."
            )
    return replace(reading, leave_out=reading.leave_out or tuple(away)), notes


def rows_lost(raw: RawTable, used: Collection[str]) -> int:
    """Return how many rows have a missing value in any of these columns."""
    gap = np.zeros(raw.data.num_rows, dtype=bool)
    for column in raw.columns:
        if column.name in used and column.missing:
            values = raw.data[column.name]
            gap |= np.asarray(values.is_null(nan_is_null=True))
    return int(np.count_nonzero(gap))


def _present(values: Any) -> NDArray[np.float64]:
    numbers = np.asarray(values.to_numpy(), dtype=np.float64)
    return numbers[~np.isnan(numbers)]


def _identifies(raw: RawTable, column: RawColumn, values: NDArray[np.float64]) -> bool:
    """Return whether whole numbers identify rows or people, by name, repetition and size together.

    Numbers that fill their range were counted up. Long numbers in a narrow range were assigned.
    Numbers beyond a double's exact integers are not amounts. Incomes, counts and altitudes can also
    vary widely with equally many digits, so those signs count only below an identifier's name.
    """
    n = len(values)
    if counts_rows(raw.data[column.name]):
        return True
    if n < _IDENTIFIER_ROWS or not (values == np.round(values)).all():
        return False
    different = np.unique(values)
    share, low, high = len(different) / n, different[0], different[-1]
    has_name = bool(_PERSON.search(column.name) or _NUMBERED.search(column.name))
    if share < (_NAMED_SHARE if has_name else _IDENTIFIER_SHARE) or low < 0 or len(different) < 2:
        return False
    if high >= _EXACT:
        return True
    same_length = len(str(int(low))) == len(str(int(high)))
    step = int(np.gcd.reduce(np.diff(different).astype(np.int64)))
    dense = share > 0.98 and len(different) / ((high - low) / step + 1) > 0.5
    long_number = len(str(int(low))) >= _LONG and same_length and high - low <= _NARROW * high
    return dense or long_number or (has_name and same_length and low >= 100)


def _may_be_dates(values: NDArray[np.float64]) -> bool:
    """Return whether all numbers could be dates, as day.month or as 20240131."""
    if len(values) and 19e6 <= values.min() <= values.max() < 21e6:
        values = values % 100 + values // 100 % 100 / 100
    hundred = np.round(values * 100) if np.abs(values).max(initial=0) < 32 else np.zeros(0)
    if len(hundred) < 3 or not np.allclose(hundred / 100, values, atol=1e-9):
        return False
    day, month = hundred // 100, hundred % 100
    some = len(np.unique(month)) >= 3
    return some and bool(((day >= 1) & (day <= 31) & (month >= 1) & (month <= 12)).all())


_SCALES = (
    # These words are scales of frequency.
    "never, almost never, hardly ever, rarely, seldom, occasionally, sometimes, often, frequently, "
    "usually, mostly, very often, almost always, always",
    "nie, niemals, fast nie, selten, gelegentlich, manchmal, häufig, oft, meistens, sehr häufig, "
    "sehr oft, fast immer, immer",
    "never, yearly, monthly, weekly, daily",
    "nie, jährlich, monatlich, wöchentlich, täglich",
    # These words are scales of agreement.
    "strongly disagree, disagree, somewhat disagree, slightly disagree, "
    "neither agree nor disagree, neither, neutral, undecided, slightly agree, somewhat agree, "
    "agree, strongly agree",
    "stimme überhaupt nicht zu, stimme gar nicht zu, stimme nicht zu, stimme eher nicht zu, "
    "weder noch, neutral, teils teils, teils-teils, teils/teils, unentschieden, stimme eher zu, "
    "stimme zu, stimme voll zu, stimme völlig zu, stimme voll und ganz zu",
    "trifft überhaupt nicht zu, trifft gar nicht zu, trifft nicht zu, trifft eher nicht zu, "
    "teils teils, teils-teils, teils/teils, trifft eher zu, trifft zu, trifft voll zu, "
    "trifft völlig zu, trifft voll und ganz zu",
    # These words are scales of quality.
    "terrible, very poor, very bad, poor, bad, fair, average, okay, good, very good, excellent",
    "sehr schlecht, schlecht, mäßig, mittel, mittelmäßig, gut, sehr gut, ausgezeichnet",
    "ungenügend, mangelhaft, ausreichend, befriedigend, gut, sehr gut",
    "very dissatisfied, dissatisfied, somewhat dissatisfied, neutral, somewhat satisfied, "
    "satisfied, very satisfied",
    "sehr unzufrieden, unzufrieden, eher unzufrieden, neutral, weder noch, teils teils, "
    "eher zufrieden, zufrieden, sehr zufrieden",
    # These words are scales of degree.
    "none, very low, low, rather low, medium, moderate, rather high, high, very high",
    "sehr niedrig, niedrig, eher niedrig, mittel, eher hoch, hoch, sehr hoch",
    "sehr gering, gering, mittel, groß, sehr groß",
    "not at all, a little, slightly, somewhat, moderately, quite, very, extremely",
    "gar nicht, überhaupt nicht, kaum, wenig, etwas, mittelmäßig, ziemlich, stark, sehr, "
    "sehr stark, äußerst",
    "none, minimal, mild, light, moderate, severe, very severe",
    "keine, leicht, mittel, mäßig, schwer, sehr schwer",
    "very small, small, medium, large, very large",
    "sehr klein, klein, mittel, groß, sehr groß",
    "very unlikely, unlikely, possible, neutral, likely, very likely",
    "very easy, easy, medium, difficult, hard, very difficult, very hard",
)
_ORDERS = tuple(tuple(scale.split(", ")) for scale in _SCALES)


def in_order(words: Collection[str]) -> tuple[str, ...]:
    """Return a column's words from least to most; empty if no known scale has them all.

    Parameters
    ----------
    words : collection of str
        Words in lower case, as `RawTable.words` gives them.
    """
    for order in _ORDERS:
        if words and set(words) <= set(order):
            return tuple(word for word in order if word in words)
    return ()
