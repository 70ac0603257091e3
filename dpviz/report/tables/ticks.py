"""Round numbers along an axis, whoever draws it."""

from __future__ import annotations

import math

from dpviz.core.number_text import numeral

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def decades(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten between two of them, thinned to about so many.

    Parameters
    ----------
    low, high : float
        Common logarithms of the ends.
    most : int
    """
    powers = range(math.ceil(low), math.floor(high) + 1)
    return [float(f"1e{power}") for power in powers[:: max(1, math.ceil(len(powers) / most))]]


def power_text(tick: float) -> str:
    """Return a power of ten as an axis names it: 0.01 to 1000 in full, others as 10⁻⁶."""
    exponent = round(math.log10(tick))
    return numeral(tick, 4) if -3 < exponent < 4 else f"10{str(exponent).translate(_RAISED)}"


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers in equal steps between two ends, about so many.

    Parameters
    ----------
    low, high : float
        Low below high.
    about : int
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in _STEPS if power * nice >= rough)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_ticks(first: float, last: float) -> list[float]:
    """Return round numbers between two powers of ten: plotly's own crowd a short axis.

    Parameters
    ----------
    first, last : float
        The powers, as a logarithmic axis takes them.
    """
    if last - first > 2.5:
        step = math.ceil((last - first) / 5)
        powers = range(math.ceil(first), math.floor(last) + 1)
        return [float(f"1e{power}") for power in powers if power % step == 0]
    every = (1, 2, 5) if last - first > 0.6 else (1, 1.5, 2, 3, 4, 5, 7)
    found = [
        float(f"{digit}e{power}")
        for power in range(math.floor(first), math.ceil(last) + 1)
        for digit in every
    ]
    return [tick for tick in found if first <= math.log10(tick) <= last]
