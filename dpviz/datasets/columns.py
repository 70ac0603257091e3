"""Columns of a parsed file: what they are called and what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpviz.core.errors import QUOTED, printable

MAX_CATEGORIES = 50
"""Most categories of a column that one-hot encoding expands."""


class Kind(StrEnum):
    """What a column holds.

    ``IDENTIFIER`` is text that differs in every row, with more than
    `MAX_CATEGORIES` rows; ``EMPTY`` has no value at all.
    """

    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    CATEGORICAL = "categorical"
    DATE = "date"
    IDENTIFIER = "identifier"
    EMPTY = "empty"


@dataclass(frozen=True)
class RawColumn:
    """One column of a parsed file.

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
    """

    name: str
    kind: Kind
    missing: int
    constant: bool
    categories: int | None = None

    @property
    def is_feature(self) -> bool:
        """Whether the column is a feature without being encoded."""
        return self.kind in (Kind.NUMERIC, Kind.BOOLEAN)

    @property
    def can_encode(self) -> bool:
        """Whether one-hot encoding expands the column."""
        return (
            self.kind in (Kind.CATEGORICAL, Kind.DATE)
            and self.categories is not None
            and 2 <= self.categories <= MAX_CATEGORIES
        )

    @property
    def can_label(self) -> bool:
        """Whether the column can be the label."""
        return self.kind not in (Kind.EMPTY, Kind.IDENTIFIER)


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


def to_numpy(values: Any) -> NDArray[Any]:
    """Return an Arrow array as NumPy's, gaps in numbers as NaN."""
    if isinstance(values, pa.ChunkedArray):
        found: NDArray[Any] = values.to_numpy()
    else:
        found = values.to_numpy(zero_copy_only=False)
    return found


# What stands for a missing cell -------------------------------------------------------------------


# Some words always do. A number such as -999 may: it is found and said, and changed where asked.
MISSING_MARKERS = (
    "", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "-nan", "NAN", "null",
    "NULL", "Null", "None", "none", "nil", "?", ".", "-", "--",
)  # fmt: skip
"""Cells that count as missing, also with blanks around them."""

SENTINELS = (-999.0, -9999.0, -99999.0, -99.0, 999.0, 9999.0, 99999.0, 999999.0)
"""Numbers that are in use as codes for "missing"."""
_FAR = 1.0  # a code for "missing" lies at least so many ranges of the others away from them

WARNING = (
    "hold a number such as -999, far from all others: it may stand for missing and counts as a "
    "number."
)


def sentinel_rows(values: NDArray[np.float64]) -> int:
    """Return how many cells hold a usual code for "missing" that is far from all others."""
    return sentinel(values)[1]


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
