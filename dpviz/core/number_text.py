"""How a number is written, by one rule for sentences, tables, captions and pictures.

What only a browser knows, such as a bar that is being dragged, is written there by `script`: the
same rule once more, which a test holds against this one.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files

PER_CENT = "\u00a0%"
"""What stands behind a share; no line parts it from its number."""

_CERTAIN = 1 - 1e-9
"""From here on a share is 1 but for what doubles leave of a sum."""


@cache
def script() -> str:
    """Return JavaScript that defines ``DpvizNumbers`` with the functions of this file."""
    return files(__package__).joinpath("number_text.js").read_text(encoding="utf-8")


def decimals(value: float, places: int) -> str:
    """Return a number with so many digits behind the point, halves away from zero.

    For what stands in one column or beside its like: 0.40 and 0.42.
    """
    value = float(value)
    if not math.isfinite(value):
        return f"{value:g}"
    # through Decimal, which sees the double that there is: round() goes to even
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return str(rounded if rounded else abs(rounded))


def thousands(value: float) -> str:
    """Return a whole number with commas: 1,797."""
    return f"{int(decimals(value, 0)):,}" if math.isfinite(value) else numeral(value)


def spaced(text: str) -> str:
    """Return a text with narrow blanks for commas, which other languages read as points.

    Source
    ------
    ISO 80000-1: 7.3.1.
    """
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\u202f", text)


def numeral(value: float, digits: int = 2) -> str:
    """Return a number with so many digits: 3e-7, 0.00062, 1.5.

    A power of ten has neither a plus nor a leading zero.

    Parameters
    ----------
    value : float
    digits : int
        From 1 to 17.
    """
    exact = Decimal(float(value))
    if exact.is_finite() and exact:
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        value = float(exact.quantize(step, ROUND_HALF_UP))
    mantissa, mark, power = f"{value or 0:.{max(digits, 6)}g}".partition("e")
    return f"{mantissa}e{int(power)}" if mark else mantissa


def per_cent(number: str) -> str:
    """Return a written number as one of a hundred."""
    return number + PER_CENT


def percent(share: float) -> str:
    """Return a share in per cent, with more digits near 0 and 1; one below 0 keeps its sign.

    What is not nothing is never 0 %, and what is not all is never 100 %.
    """
    value = 100 * share
    if -0.05 < value <= 0:
        return per_cent("0")
    if 0 < value < 0.1:
        return per_cent("< 0.1")
    if value > 99.9 and share < _CERTAIN:
        return per_cent("> 99.9")
    return per_cent(decimals(value, int(abs(value) < 1 or 99 < value <= 99.9)))


def of_hundred(share: float) -> str:
    """Return how many of a hundred, never rounded to none or all."""
    if 0 < share < 0.005:
        return "less than 1"
    if 0.995 < share < 1:
        return "more than 99"
    return decimals(100 * share, 0)
