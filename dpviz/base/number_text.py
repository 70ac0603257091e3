"""How a small or large number is written in a sentence, a table and a caption: 3e-7, 0.00062."""

from __future__ import annotations


def numeral(value: float, digits: int = 2) -> str:
    """Return a number with so many digits; a power of ten has neither a plus nor a leading zero.

    Parameters
    ----------
    value : float
    digits : int
        At most 6.
    """
    mantissa, mark, power = f"{float(f'{value:.{digits}g}'):g}".partition("e")
    return f"{mantissa}e{int(power)}" if mark else mantissa


def percent(share: float) -> str:
    """Return a share as text, with more digits near 0 and 1; one below 0 keeps its sign."""
    value = 100 * share
    if -0.05 < value <= 0:
        return "0 %"
    if 0 < value < 0.1:
        return "less than 0.1 %"
    if abs(value) < 1 or 99 < value < 100:
        return f"{value:.1f} %"
    return f"{value:.0f} %"
