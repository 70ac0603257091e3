"""What stands for a missing cell.

Some words always do. A number such as -999 may: it is found and said, and changed where asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
