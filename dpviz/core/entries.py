"""The entries of a preparation in one format: bounds, centre, scale and row-norm bound.

Each entry is public, taken from the data, or private. Callers (a keyword, a parameter of
`dpviz.PrivatePCA`, a command, a link) may write an entry in any of these forms. This module turns
them into the one text that settings store, or `FeatureBounds` if one text is not enough. A
comparison, the estimator and a release all prepare their rows by `Entries`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, TypeAlias

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting, printable
from dpviz.core.number_text import number_in, numeral
from dpviz.core.params import format_number, quotable

FROM_DATA = "from data (not private)"
"""Word for an entry taken from the data, long enough to be noticed."""
PRIVATE = "private"
"""Word for a step of the preparation that uses part of the budget."""
PUBLIC = "public"
MIDPOINT = "midpoint"
UNIT = "unit"
"""Word that replaces a row-norm bound: every row is scaled to length one."""
LARGEST, SMALLEST = 1e100, 1e-100
"""Range of declared row sizes in which sums of squares neither overflow nor vanish."""
ROW_BOUND_ALLOWED = (
    "max, a number from 1e-100 to 1e100, none, private:adaptive, or private:Q or quantile:Q with Q "
    "above 0 and at most 1"
)
RANGE_ALLOWED = "numbers of at most 1e100 in size with low below high, by 1e-100 or more"
BOUNDS_WORDS = ("max", "known", PRIVATE)
BOUNDS_ALLOWED = "max, known, private, LOW:HIGH or the path of a CSV or Parquet file"
ADAPTIVE = f"{PRIVATE}:adaptive"
USUAL_LEVEL = 0.9
"""Default quantile of the row lengths for a private row-norm bound."""
UNDECLARED = "none"
"""Word for a row-norm bound that is not declared."""
GIVEN = "given"
"""Text in settings for bounds that were passed feature by feature."""

Pairs = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class FeatureBounds:
    """Public lower and upper limit of each feature.

    Attributes
    ----------
    low, high : tuple of float
    names : tuple of str or None
        Feature names; None if bounds follow the columns of the table.
    text : str
        Text in settings: `GIVEN`, or the file of the bounds.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    names: tuple[str, ...] | None = None
    text: str = GIVEN

    @classmethod
    def named(cls, pairs: Pairs, text: str = GIVEN) -> FeatureBounds:
        """Return the bounds of a mapping from features to (low, high).

        Raises
        ------
        InvalidSetting
            If a value is not a pair of numbers.
        """
        try:
            sides = [(float(low), float(high)) for low, high in pairs.values()]
        except (TypeError, ValueError, OverflowError):
            raise InvalidSetting(
                "feature bounds", "a pair of numbers, low and high, for each feature", text,
                "--bounds",
            ) from None  # fmt: skip
        low, high = tuple(side[0] for side in sides), tuple(side[1] for side in sides)
        return cls(low, high, tuple(map(str, pairs)), text)

    @property
    def pairs(self) -> dict[str, tuple[float, float]]:
        """Low and high by name; empty if the bounds have no names."""
        return dict(zip(self.names or (), zip(self.low, self.high, strict=True), strict=False))

    def of(self, columns: Sequence[str], among: Sequence[str] = ()) -> FloatArray:
        """Return low and high of some columns, shape (2, d).

        Parameters
        ----------
        columns : sequence of str
        among : sequence of str
            All columns of the table; bounds without names may refer to all columns.

        Raises
        ------
        InvalidSetting
            If a column has no bounds, or they are not finite numbers in order.
        """
        if self.names is None:
            bounds = self._by_place(columns, among)
        else:
            pairs = self.pairs
            missing = [name for name in columns if name not in pairs]
            if missing:
                raise InvalidSetting(
                    "feature bounds",
                    f"given for every feature; {missing[0]!r} has no bounds",
                    f"{len(pairs)} of them" if self.text == GIVEN else self.text,
                    "--bounds",
                )
            bounds = np.array([pairs[name] for name in columns], dtype=float).T
        for name, low, high in zip(columns, *bounds, strict=True):
            # Lower and upper bound may be equal, because a column may be constant.
            if not _is_range(low, high) and not (low == high and abs(low) <= LARGEST):
                raise InvalidSetting(
                    f"the bounds of {name!r}",
                    RANGE_ALLOWED,
                    f"{numeral(low, 6)}, {numeral(high, 6)}",
                    "--bounds",
                )
        return bounds

    def _by_place(self, columns: Sequence[str], among: Sequence[str]) -> FloatArray:
        both = np.array([self.low, self.high])
        if len(self.low) == len(columns):
            return both
        if len(self.low) != len(among):
            raise InvalidSetting(
                "bounds",
                f"a pair of numbers or of arrays of {len(among) or len(columns)} numbers",
                f"{len(self.low)} of them",
                "--bounds",
            )
        return both[:, [list(among).index(name) for name in columns]]


@dataclass(frozen=True)
class Public:
    """A public value, known without the rows: a number, numbers by feature, bounds or a word.

    The value, or None if no value is stated.
    """

    value: Any = None


@dataclass(frozen=True)
class FromData:
    """A value computed from the rows without protection; for a row-norm bound, a quantile."""

    value: Any = None


@dataclass(frozen=True)
class Private:
    """A value released with a share of the budget, and its method; a placeholder until released."""

    share: float
    value: Any = None


Source: TypeAlias = Public | FromData | Private


def source_of(value: str | FeatureBounds | None, share: float = 0.0) -> Source:
    """Return the source that settings state for bounds, centre, scale, row-norm bound or count.

    Parameters
    ----------
    value : str, FeatureBounds or None
        In canonical form. Any text that is not a word, number or pair counts as a file name.
    share : float
        Share of the budget, if the entry is private.
    """
    if not isinstance(value, str):
        return Public(value)
    kind, _, level = value.partition(":")
    if kind == PRIVATE:
        return Private(share, _number(level) or level or None)
    if value in (FROM_DATA, "max", "mean", "standardize") or kind == "quantile":
        return FromData(_number(level))
    stated = None if value in (UNDECLARED, PUBLIC) else pair_of(value) or _number(value) or value
    return Public(stated)


@dataclass(frozen=True)
class Entries:
    """Sources of bounds, centre, scale, row-norm bound and number of people.

    Attributes
    ----------
    bounds, center, scale, row_bound, count : Source
        Rows are clipped to the bounds, centred, divided by the scale, and clipped to the row-norm
        bound.
    """

    bounds: Source = Public()
    center: Source = Public()
    scale: Source = Public()
    row_bound: Source = Public()
    count: Source = Public()

    @property
    def private(self) -> dict[str, Private]:
        """Private entries, keyed by the name of the step that releases them."""
        steps = {
            "count": self.count, "mean": self.center, "scale": self.scale,
            "bound": self.row_bound, "range": self.bounds,
        }  # fmt: skip
        return {step: entry for step, entry in steps.items() if isinstance(entry, Private)}

    @property
    def asks_rows(self) -> str:
        """Name of the entry that needs the rows before rows are summed; else empty."""
        names = ("center", "scale", "row_bound", "bounds")
        return next((name for name in names if not isinstance(getattr(self, name), Public)), "")

    def limits(self, columns: Sequence[str], among: Sequence[str] = ()) -> FloatArray:
        """Return the public low and high of some columns, shape (2, d); infinite if not stated.

        Parameters
        ----------
        columns, among : sequence of str
            The same columns as in `FeatureBounds.of`.
        """
        stated = self.bounds.value if isinstance(self.bounds, Public) else None
        if isinstance(stated, FeatureBounds):
            return stated.of(columns, among)
        low, high = (-math.inf, math.inf) if stated is None else stated
        return np.array([np.full(len(columns), low), np.full(len(columns), high)])


def bounds_of(value: Any, words: str = BOUNDS_ALLOWED) -> Any:
    """Return feature bounds in canonical form: a text, or `FeatureBounds`.

    ``(0, 10)`` and ``"0:10"`` are one pair for all features. ``{name: (low, high)}``, a pair of
    arrays and the path of a file give a pair for each feature. ``words`` are the other texts
    allowed.
    """
    if isinstance(value, FeatureBounds):
        return value
    if isinstance(value, Mapping):
        return FeatureBounds.named(value)
    if isinstance(value, (str, PathLike)):
        text = fspath(value)
        if text == FROM_DATA:
            return "max"
        pair = pair_of(text)
        return text if pair is None else ":".join(map(format_number, pair))
    error = InvalidSetting(
        "bounds", "a pair of numbers or of arrays, low and high, or a mapping from features to "
        f"pairs; or {words}", quotable(value), "--bounds",
    )  # fmt: skip
    try:
        low, high = (np.asarray(side, dtype=np.float64) for side in value)
    except (TypeError, ValueError, OverflowError):
        raise error from None
    if low.ndim == high.ndim == 0:
        return ":".join(map(format_number, _in_order(float(low), float(high), value)))
    if max(low.ndim, high.ndim) > 1 or not low.size or not high.size:
        raise error
    try:
        # A single number as the lower or upper bound applies to all features.
        low, high = np.broadcast_arrays(low, high)
    except ValueError:
        raise error from None
    return FeatureBounds(tuple(low.tolist()), tuple(high.tolist()))


def from_data_as(word: str) -> Callable[[Any], Any]:
    """Return a parser that reads `FROM_DATA` as the short word of a comparison."""
    return lambda value: word if isinstance(value, str) and value == FROM_DATA else value


def row_bound_of(value: Any) -> Any:
    """Return a row-norm bound in canonical form: one text for each meaning."""
    if not isinstance(value, str):
        # Refuse True and False, which are numbers in Python but are not lengths.
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            return value
        # A Python integer may be too large for a float, so compare first.
        return row_bound_of(format_number(float(value) if value <= LARGEST else math.inf))
    others = {FROM_DATA: "max", "adaptive": ADAPTIVE, PRIVATE: f"{PRIVATE}:{USUAL_LEVEL}"}
    value = others.get(value, value)
    error = InvalidSetting("row bound", ROW_BOUND_ALLOWED, value, "--row-bound")
    if value in ("max", ADAPTIVE, UNDECLARED):
        return value
    prefix, colon, quantile = value.rpartition(":")
    try:
        level = number_in(quantile)
    except ValueError:
        raise error from None
    if prefix in ("quantile", PRIVATE) and 0 < level <= 1:
        return f"{prefix}:{format_number(level)}"
    if not colon and SMALLEST <= level <= LARGEST:
        return format_number(level)
    raise error


def pair_of(value: str) -> tuple[float, float] | None:
    """Return the two numbers of ``LOW:HIGH``, or None if the text has another form.

    Raises
    ------
    InvalidSetting
        If the numbers are not finite, or not in order.
    """
    first, colon, second = value.partition(":")
    try:
        low, high = number_in(first), number_in(second)
    except ValueError:
        return None
    return _in_order(low, high, value) if colon else None


def _number(text: str) -> float | None:
    try:
        return number_in(text)
    except ValueError:
        return None


def _in_order(low: float, high: float, given: object) -> tuple[float, float]:
    if not _is_range(low, high):
        raise InvalidSetting("bounds", RANGE_ALLOWED, given, "--bounds")
    return low, high


def _is_range(low: float, high: float) -> bool:
    return max(abs(low), abs(high)) <= LARGEST and high - low >= SMALLEST


def names_file(value: str | FeatureBounds) -> bool:
    """Return whether bounds come from a file or are too many for a link."""
    if isinstance(value, FeatureBounds):
        return True
    return value not in BOUNDS_WORDS and pair_of(value) is None


OTHER = "other"
"""Label that replaces every label outside the declared categories."""
MOST_CATEGORIES = 50


def kinds_of(categories: Sequence[str]) -> tuple[str, ...]:
    """Return the label's categories: the declared categories and `OTHER`."""
    return (*categories, *([] if OTHER in categories or not categories else [OTHER]))


def stated_categories(given: Sequence[str]) -> tuple[str, ...]:
    """Return public categories, each one line of printable characters, without repeats.

    Raises
    ------
    InvalidSetting
        If there is no category, or more than `MOST_CATEGORIES`.
    """
    allowed = f"at most {MOST_CATEGORIES} different texts, each on one line"
    texts = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
    names = tuple(name.strip() for name in given) if texts else ()
    bad = next((name for name in names if not name or printable(name, None) != name), None)
    twice = next((name for name in names if names.count(name) > 1), None)
    if not texts or bad is not None or twice is not None or len(names) > MOST_CATEGORIES:
        problem = "something else" if not texts else twice or bad or f"{len(names)} of them"
        raise InvalidSetting("categories", allowed, problem, "--categories")
    return names
