"""Row bounds and feature bounds as text: what words and numbers mean."""

from __future__ import annotations

import math

from dpviz.core.errors import InvalidSetting
from dpviz.core.params import format_number

ROW_BOUND_ALLOWED = (
    "max, a positive number, none, private:adaptive, or private:Q or quantile:Q with Q above 0 and "
    "at most 1"
)
PRIVATE = "private"
"""What a step of the preparation is called that is paid for out of the budget."""
BOUNDS_WORDS = ("max", "known", PRIVATE)
ADAPTIVE = f"{PRIVATE}:adaptive"
UNDECLARED = "none"
"""What a row bound is called where none is declared."""


def check_row_bound(value: str) -> str:
    """Return the row bound in canonical text."""
    error = InvalidSetting("row bound", ROW_BOUND_ALLOWED, value, "--row-bound")
    if value in ("max", ADAPTIVE, UNDECLARED):
        return value
    prefix, colon, quantile = value.rpartition(":")
    try:
        level = float(quantile)
    except ValueError:
        raise error from None
    if prefix in ("quantile", PRIVATE) and 0 < level <= 1:
        return f"{prefix}:{format_number(level)}"
    if not colon and 0 < level < math.inf:
        return format_number(level)
    raise error


def pair_of(value: str) -> tuple[float, float] | None:
    """Return the two numbers of ``LOW:HIGH``, or None where it is not written so.

    Raises
    ------
    InvalidSetting
        If they are not finite, or not in order.
    """
    first, colon, second = value.partition(":")
    try:
        low, high = float(first), float(second)
    except ValueError:
        return None
    if not (colon and math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidSetting("bounds", "finite numbers with low below high", value, "--bounds")
    return low, high


def check_bounds(value: str) -> str:
    """Return bounds as given; a pair of numbers in canonical text."""
    pair = pair_of(value)
    return value if pair is None else f"{format_number(pair[0])}:{format_number(pair[1])}"


def names_file(value: str) -> bool:
    """Return whether bounds are a file's: no link names one."""
    return value not in BOUNDS_WORDS and pair_of(value) is None
