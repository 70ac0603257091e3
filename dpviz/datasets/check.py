"""What each column of a parsed file looks like, and what to use it for: "check your table".

Nothing is decided here: every suggestion is shown and can be changed. What is
seen (kinds, gaps, scales) is taken from the data and is not protected.
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
    WITHHELD,
    Kind,
    RawColumn,
    counted,
    counts_rows,
    listed,
    sentinel,
)
from dpviz.datasets.raw import RawTable
from dpviz.datasets.table import ReadOptions

USES = ("feature", "colour", "drop")
"""What a column can be used for."""

_SCALE = 30.0  # times the median spread of the numeric columns
_FEW_COLOURS = 20
# Of whole numbers that must be different, for an identifier: without its name, and with it.
_IDENTIFIER_SHARE, _NAMED_SHARE = 0.9, 0.5
_LONG, _NARROW = 6, 0.2  # digits of numbers that are given out, and their range over the largest
_EXACT = 2.0**53  # beyond it a double does not count
_IDENTIFIER_ROWS = 20
_SPARSE = 5  # times the rows that numbers of people range over
_FEW_CODES, _CODED_ROWS = 10, 10
FEW_PEOPLE = 5
"""Fewer people than this with one label are found by it."""
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
    """One row of the table that a user looks over after an upload.

    Attributes
    ----------
    name : str
    kind : Kind
    missing : int
        Cells without a value.
    use : str
        What is suggested, one of `USES`.
    warnings : tuple of str
        What to look at, as sentences.
    identifies : bool
        Whether the column looks like an identifier.
    wide : bool
        Whether it spreads much farther than the others.
    code : float, str or None
        A number or a word that may stand for missing.
    repeats : int
        Most rows with one value, where the column may name the person; else 0.
    exposes : str
        What a screen or file would show of people if the column were the label or one feature
        a text, as a sentence; empty for nothing.
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
        """Return whether it must be looked at before anything is made of the table.

        Parameters
        ----------
        person : bool
            Whether it was said how many rows one person has.
        used : bool
            Whether the column takes part, as a feature or as colour.
        """
        named = self.repeats > 1 and not person
        return isinstance(self.code, float) or named or (used and bool(self.exposes))


def check_columns(raw: RawTable, dropped: Collection[str] = ()) -> tuple[ColumnCheck, ...]:
    """Return what each column looks like and what to use it for.

    Parameters
    ----------
    raw : RawTable
    dropped : collection of str
        Columns that are left out already: they say nothing of the scale of the rest.
    """
    numbers = {
        column.name: _present(raw.data[column.name])
        for column in raw.columns
        if column.kind is Kind.NUMERIC
    }
    spreads = {
        name: float(np.std(values / 1e50)) * 1e50  # squares of large numbers stay finite
        for name, values in numbers.items()
        if name not in dropped and len(values)
    }
    middle = float(np.median([s for s in spreads.values() if s > 0] or [0.0]))
    met: dict[bytes, str] = {}
    found = []
    for column in raw.columns:
        check = _check(raw, column, numbers.get(column.name), spreads, middle)
        twin = _twin(raw, column, met)
        if twin:
            said = (*check.warnings, f"The same in every row as '{twin}'.")
            check = replace(check, use="drop", warnings=said)
        found.append(check)
    return tuple(found)


def _twin(raw: RawTable, column: RawColumn, met: dict[bytes, str]) -> str | None:
    """Return an earlier column of numbers with the same values, by a digest of them."""
    if column.kind is not Kind.NUMERIC or column.constant:
        return None
    values = np.asarray(raw.data[column.name].to_numpy(), dtype=np.float64) + 0.0
    earlier = met.setdefault(hashlib.sha256(values.tobytes()).digest(), column.name)
    return None if earlier == column.name else earlier


def word_cells(raw: RawTable, word: str) -> dict[str, int]:
    """Return in how many cells of each column of categories a word stands."""
    found: dict[str, int] = {}
    for column in raw.columns:
        if column.kind is Kind.CATEGORICAL:
            cells = pc.sum(pc.equal(raw.data[column.name].cast(pa.large_string()), word)).as_py()
            found |= {column.name: cells} if cells else {}
    return found


def sentinel_effects(raw: RawTable, code: float) -> list[tuple[str, int, float, float]]:
    """Return name, cells, and mean with and without them of the columns that hold a code."""
    found = []
    for column in raw.columns:
        if column.kind is Kind.NUMERIC:
            values = _present(raw.data[column.name])
            at = values == code
            if at.any() and not at.all():
                found.append(
                    (column.name, int(at.sum()), float(values.mean()), float(values[~at].mean()))
                )
    return found


@dataclass
class _Findings:
    """What has been found of a column so far."""

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
    found = _Findings()
    if column.constant:
        found.use = "drop"
        found.warnings.append("Constant: it tells nobody apart.")
    if column.kind in (Kind.IDENTIFIER, Kind.DATE, Kind.CATEGORICAL, Kind.REMARK):
        _look_at_kind(found, column)
        found.code = _word(raw, column)
    elif values is not None and not column.constant:
        _look_at_numbers(found, raw, column, values, spreads, middle)
    repeats = _look_for_people(found, raw, column, values)
    exposes = exposed(raw, column)
    if exposes:
        found.use = "drop" if found.use == "colour" else found.use
        found.warnings.append(exposes)
    if column.missing > 0.2 * raw.data.num_rows:
        found.warnings.append(f"{percent(column.missing / raw.data.num_rows)} missing.")
    said = vars(found) | {"warnings": tuple(found.warnings)}
    return ColumnCheck(
        column.name, column.kind, column.missing, **said, repeats=repeats, exposes=exposes
    )


def _look_at_kind(found: _Findings, column: RawColumn) -> None:
    """Say what identifiers, dates and texts are for."""
    if column.kind is Kind.IDENTIFIER:
        found.use, found.identifies = "drop", True
        found.warnings.append("Looks like an identifier: it differs in every row.")
    elif column.kind is Kind.DATE:
        found.use = "drop"
        found.warnings.append("A date: left out unless it colours the picture.")
    else:
        few = column.categories is not None and column.categories <= _FEW_COLOURS
        found.use = found.use if column.constant else ("colour" if few else "drop")
        if not few:
            found.warnings.append(f"Text with {column.categories} different values.")


def _word(raw: RawTable, column: RawColumn) -> str | None:
    """Return a word among categories that may stand for one that is not told."""
    if column.kind is not Kind.CATEGORICAL:
        return None
    words = raw.data[column.name].chunk(0).dictionary
    at = pc.is_in(pc.utf8_lower(words), pa.array(WITHHELD, pa.large_string()))
    found: list[str] = words.filter(at).to_pylist()
    return found[0] if found and len(found) < len(words) else None


def _look_at_numbers(
    found: _Findings,
    raw: RawTable,
    column: RawColumn,
    values: NDArray[np.float64],
    spreads: dict[str, float],
    middle: float,
) -> None:
    """Look for numbers that are names, codes or dates, and for those that spread too far."""
    rows = raw.data.num_rows
    if _identifies(raw, column, values):
        found.use, found.identifies = "drop", True
        found.warnings.append(
            "Looks like an identifier: whole numbers that differ in nearly every row."
        )
    marker, far = sentinel(values)
    if far:
        found.code = marker
        found.warnings.append(f"{far} cells {WARNING}")
    kinds = len(np.unique(values)) if (values == np.round(values)).all() else rows
    if 2 < kinds <= _FEW_CODES and rows >= _CODED_ROWS * kinds:
        found.warnings.append(f"{kinds} different whole numbers: a code, or an amount?")
    if _may_be_dates(values):
        found.warnings.append("Could be dates written day.month: read as numbers.")
    # 1954 to 2064, counted from 1900 or from 1904
    if _DATED.search(column.name) and 20_000 <= values.min() <= values.max() <= 60_000:
        found.warnings.append("Could be days that a spreadsheet counts: read as numbers.")
    far_out = middle > 0 and spreads.get(column.name, 0.0) > _SCALE * middle
    found.wide = not found.identifies and len(spreads) > 1 and far_out
    if found.wide:
        found.warnings.append(
            f"Spreads more than {numeral(_SCALE, 6)} times as far as most columns: it decides "
            "the components alone unless the features are standardised."
        )


def _look_for_people(
    found: _Findings, raw: RawTable, column: RawColumn, values: NDArray[np.float64] | None
) -> int:
    """Look for a name of the person, and else for an outcome; return the most rows of one name."""
    repeats = 0 if column.kind is Kind.DATE else _repeats(raw, column, values)
    if repeats:
        named = bool(_PERSON.search(column.name))
        found.use = "drop" if named else found.use
        found.identifies = found.identifies or (named and column.kind is Kind.NUMERIC)
        found.warnings.append(
            f"May name the person: up to {counted(repeats, 'row')} have one value."
        )
    elif values is not None and _OUTCOME.search(column.name) and not column.constant:
        found.warnings.append(
            "Likely the outcome: it can colour the picture instead of being analysed."
        )
    return repeats


def _repeats(raw: RawTable, column: RawColumn, values: NDArray[np.float64] | None) -> int:
    """Return the most rows with one value, of a column that may name the person; else 0.

    One that may: whole numbers or texts with the name of an identifier, or more than half of them
    different. Values that all differ repeat nothing.
    """
    whole = column.kind in (Kind.CATEGORICAL, Kind.IDENTIFIER, Kind.REMARK) or (
        values is not None and len(values) > 0 and bool((values == np.round(values)).all())
    )
    if not whole:
        return 0
    found = raw.data[column.name].value_counts()
    counts = np.asarray(found.field("counts").to_numpy(zero_copy_only=False))
    gaps = np.asarray(found.field("values").is_null())
    counts = counts[~gaps]
    if len(counts) < 2 or counts.max() < 2:
        return 0
    rows = raw.data.num_rows
    many = len(counts) > 0.5 * rows and rows >= _IDENTIFIER_ROWS
    if values is not None:  # ages and years fill their range, numbers of people are spread in it
        digits = np.floor(np.log10(np.maximum(np.abs(values), 1)))
        many = many and bool((digits >= 3).all() and np.ptp(digits) == 0)
        many = many and float(np.ptp(values)) > _SPARSE * rows
    return int(counts.max()) if many or _PERSON.search(column.name) else 0


def exposed(raw: RawTable, column: RawColumn) -> str:
    """Return what showing a column's texts would tell of people, or nothing."""
    if column.kind is Kind.DATE:
        return "Dates find people: not shown unless asked for."
    if column.kind is Kind.REMARK:
        return "Free text: neither shown nor turned into features."
    if column.kind is not Kind.CATEGORICAL:
        return ""
    found = raw.data[column.name].value_counts()
    texts = found.field("values").to_pylist()
    counts = found.field("counts").to_pylist()
    held = [(text, n) for text, n in zip(texts, counts, strict=True) if text is not None]
    named = _NAMED.search(column.name) is not None
    if named or sum(bool(_FULL_NAME.match(text)) for text, _ in held) > 0.5 * len(held):
        return "Names of people: never shown unasked."
    if min(n for _, n in held) < FEW_PEOPLE:
        return f"A class has fewer than {FEW_PEOPLE} people."
    return ""


def suggested_drops(checks: Collection[ColumnCheck]) -> tuple[str, ...]:
    """Return the columns of numbers that look like an identifier."""
    return tuple(check.name for check in checks if check.identifies and check.kind is Kind.NUMERIC)


def advised(raw: RawTable, reading: ReadOptions) -> tuple[ReadOptions, list[str]]:
    """Return a reading without what looks like an identifier, where it does not say what goes.

    It is the verdict of `suggested_drops`, so that a page and a command begin with one table.

    Returns
    -------
    reading : ReadOptions
        With its columns left out stated.
    notes : list of str
        On what was left out, and on what may name rows or people and is a feature.
    """
    known = {reading.label, reading.person, *(reading.leave_out or ())}
    names, repeats = [], {}
    for column in raw.columns:
        if column.kind is Kind.NUMERIC and not column.constant and column.name not in known:
            values = _present(raw.data[column.name])
            repeats[column.name] = _repeats(raw, column, values)
            named = repeats[column.name] and _PERSON.search(column.name)
            names += [column.name] if named or _identifies(raw, column, values) else []
    able = sum(column.is_feature and column.name not in known for column in raw.columns)
    left = names if reading.leave_out is None and able - len(names) >= 2 else []
    notes = []
    if left:
        notes.append(
            f"Left out, as it looks like an identifier: {listed(left)} (--leave-out none keeps it)."
        )
    for name in repeats:
        if name in left:
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
    return replace(reading, leave_out=reading.leave_out or tuple(left)), notes


def rows_lost(raw: RawTable, used: Collection[str]) -> int:
    """Return how many rows have a gap in one of these columns."""
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
    """Return whether whole numbers name rows or people: by name, repetition and size together.

    Numbers that fill their range were counted up; numbers of many digits in a narrow range were
    given out; what a double cannot count is no amount. Incomes, counts and altitudes have as many
    digits each and differ as much, so that alone says nothing but below the name of an identifier.
    """
    n = len(values)
    if counts_rows(raw.data[column.name]):
        return True
    if n < _IDENTIFIER_ROWS or not (values == np.round(values)).all():
        return False
    different = np.unique(values)
    share, low, high = len(different) / n, different[0], different[-1]
    named = bool(_PERSON.search(column.name) or _NUMBERED.search(column.name))
    if share < (_NAMED_SHARE if named else _IDENTIFIER_SHARE) or low < 0 or len(different) < 2:
        return False
    if high >= _EXACT:
        return True
    same_length = len(str(int(low))) == len(str(int(high)))
    step = int(np.gcd.reduce(np.diff(different).astype(np.int64)))
    filled = share > 0.98 and len(different) / ((high - low) / step + 1) > 0.5
    given = len(str(int(low))) >= _LONG and same_length and high - low <= _NARROW * high
    return filled or given or (named and same_length and low >= 100)


def _may_be_dates(values: NDArray[np.float64]) -> bool:
    """Return whether all numbers could be a day and, after the point, a month."""
    hundred = np.round(values * 100) if np.abs(values).max(initial=0) < 32 else np.zeros(0)
    if len(hundred) < 3 or not np.allclose(hundred / 100, values, atol=1e-9):
        return False
    day, month = hundred // 100, hundred % 100
    some = len(np.unique(month)) >= 3
    return some and bool(((day >= 1) & (day <= 31) & (month >= 1) & (month <= 12)).all())


_SCALES = (
    # how often
    "never, almost never, hardly ever, rarely, seldom, occasionally, sometimes, often, frequently, "
    "usually, mostly, very often, almost always, always",
    "nie, niemals, fast nie, selten, gelegentlich, manchmal, häufig, oft, meistens, sehr häufig, "
    "sehr oft, fast immer, immer",
    "never, yearly, monthly, weekly, daily",
    "nie, jährlich, monatlich, wöchentlich, täglich",
    # how far one agrees
    "strongly disagree, disagree, somewhat disagree, slightly disagree, "
    "neither agree nor disagree, neither, neutral, undecided, slightly agree, somewhat agree, "
    "agree, strongly agree",
    "stimme überhaupt nicht zu, stimme gar nicht zu, stimme nicht zu, stimme eher nicht zu, "
    "weder noch, neutral, teils teils, teils-teils, teils/teils, unentschieden, stimme eher zu, "
    "stimme zu, stimme voll zu, stimme völlig zu, stimme voll und ganz zu",
    "trifft überhaupt nicht zu, trifft gar nicht zu, trifft nicht zu, trifft eher nicht zu, "
    "teils teils, teils-teils, teils/teils, trifft eher zu, trifft zu, trifft voll zu, "
    "trifft völlig zu, trifft voll und ganz zu",
    # how good
    "terrible, very poor, very bad, poor, bad, fair, average, okay, good, very good, excellent",
    "sehr schlecht, schlecht, mäßig, mittel, mittelmäßig, gut, sehr gut, ausgezeichnet",
    "ungenügend, mangelhaft, ausreichend, befriedigend, gut, sehr gut",
    "very dissatisfied, dissatisfied, somewhat dissatisfied, neutral, somewhat satisfied, "
    "satisfied, very satisfied",
    "sehr unzufrieden, unzufrieden, eher unzufrieden, neutral, weder noch, teils teils, "
    "eher zufrieden, zufrieden, sehr zufrieden",
    # how much
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
    """Return the words of a column from the least to the most; empty where no scale has them all.

    Parameters
    ----------
    words : collection of str
        In lower case, as `RawTable.words` gives them.
    """
    for order in _ORDERS:
        if words and set(words) <= set(order):
            return tuple(word for word in order if word in words)
    return ()
