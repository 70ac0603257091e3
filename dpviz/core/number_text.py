"""Formats of numbers for sentences, tables, captions and charts.

Numbers that only a browser knows, such as the position of a dragged bar, are formatted in the
browser by `script`. The script repeats the rules of this file, and a test compares both.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files

PER_CENT = "\u00a0%"
"""Suffix of a share, which no line break separates from its number."""

_CERTAIN = 1 - 1e-9
"""Shares from this value on differ from 1 only by rounding."""


@cache
def script() -> str:
    """Return JavaScript that defines ``DpvizNumbers`` with the functions of this file."""
    return files(__package__).joinpath("number_text.js").read_text(encoding="utf-8")


def number_in(text: str) -> float:
    """Return the number that a text represents, or raise ValueError.

    Like float(), but without underscores among the digits or digits of other scripts: nobody writes
    10 as 1_0.
    """
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def decimals(value: float, places: int) -> str:
    """Return a number with ``places`` decimals, halves rounded away from zero.

    Use fixed decimals for columns or pairs of numbers: 0.40 and 0.42.
    """
    value = float(value)
    if not math.isfinite(value):
        return f"{value:g}"
    # Use Decimal, which rounds halves away from zero; round() would round them to even.
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return str(rounded if rounded else abs(rounded))


def thousands(value: float) -> str:
    """Return a whole number with commas: 1,797."""
    return f"{int(decimals(value, 0)):,}" if math.isfinite(value) else numeral(value)


def spaced(text: str) -> str:
    """Return a text with narrow blanks for commas, which other languages read as decimal marks.

    Source
    ------
    ISO 80000-1: 7.3.1.
    """
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\u202f", text)


def towards(value: float, digits: int, side: int) -> float:
    """Return ``value`` rounded to ``digits`` digits, down (side -1) or up (side 1).

    Parameters
    ----------
    value : float
        Value above 0.
    digits : int
    side : {-1, 1}
    """
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    turned = math.floor if side < 0 else math.ceil
    # Tolerate an error in the last digits, which must not move the value by a whole step.
    return float(f"{turned(value / step - side * 1e-9) * step:.{digits}g}")


def rows_words(count: int) -> str:
    """Return a number of rows in words: one row, 3 rows."""
    return "one row" if count == 1 else f"{thousands(count)} rows"


def numeral(value: float, digits: int = 2) -> str:
    """Return a number with ``digits`` significant digits: 3e-7, 0.00062, 1.5, 18,000.

    A power of ten has no plus sign and no leading zero.

    Parameters
    ----------
    value : float
    digits : int
        Number of significant digits, from 1 to 17.
    """
    whole, point, rest = parseable(value, digits).partition(".")
    if len(whole.lstrip("-")) > 4 and whole.lstrip("-").isdigit():
        whole = f"{int(whole):,}"
    return whole + point + rest


def parseable(value: float, digits: int = 2) -> str:
    """Return a number as text without commas, for commands, links, coordinates and LaTeX."""
    exact = Decimal(float(value))
    if exact.is_finite() and exact:
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        value = float(exact.quantize(step, ROUND_HALF_UP))
    mantissa, mark, power = f"{value or 0:.{max(digits, 6)}g}".partition("e")
    return f"{mantissa}e{int(power)}" if mark else mantissa


def per_cent(number: str) -> str:
    """Return the text of a number followed by a per cent sign."""
    return number + PER_CENT


def percent(share: float) -> str:
    """Return a share in per cent, with more digits near 0 and 1; a negative share keeps its sign.

    A share above 0 is never 0 %, and a share below 1 is never 100 %.
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
    """Return a share as a number in a hundred, never rounded to none or all."""
    if 0 < share < 0.005:
        return "less than 1"
    if 0.995 < share < 1:
        return "more than 99"
    return decimals(100 * share, 0)


# Round numbers along an axis, for any renderer --------------------------------------------------

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def decades(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten between two ends, thinned to about ``most``.

    Parameters
    ----------
    low, high : float
        Common logarithms of the ends.
    most : int
    """
    powers = range(math.ceil(low), math.floor(high) + 1)
    return [float(f"1e{power}") for power in powers[:: max(1, math.ceil(len(powers) / most))]]


def power_text(tick: float) -> str:
    """Return a power of ten as an axis label: 0.01 to 1000 in full, other powers as 10⁻⁶."""
    exponent = round(math.log10(tick))
    return numeral(tick, 4) if -3 < exponent < 4 else f"10{str(exponent).translate(_RAISED)}"


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return about ``about`` round numbers in equal steps between two ends.

    Parameters
    ----------
    low, high : float
        The ends, low below high.
    about : int
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in _STEPS if power * nice >= rough)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_ticks(first: float, last: float) -> list[float]:
    """Return round numbers between two powers of ten; plotly's own ticks crowd a short axis.

    Parameters
    ----------
    first, last : float
        Exponents of the ends, as a logarithmic axis expects them.
    """
    if last - first > 2.5:
        step = math.ceil((last - first) / 5)
        powers = range(math.ceil(first), math.floor(last) + 1)
        return [float(f"1e{power}") for power in powers if power % step == 0]
    every = (1, 2, 5) if last - first > 0.6 else (1, 1.5, 2, 3, 4, 5, 7)
    ticks = [
        float(f"{digit}e{power}")
        for power in range(math.floor(first), math.ceil(last) + 1)
        for digit in every
    ]
    return [tick for tick in ticks if first <= math.log10(tick) <= last]
