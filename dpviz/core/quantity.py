"""Numbers with their kind, which decides the words next to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from dpviz.core.number_text import numeral, of_hundred, per_cent, towards


class Kind(StrEnum):
    """The kind of a number: measurement, bound or prediction."""

    MEASUREMENT = "measurement"
    """A number counted in simulated releases or computed exactly."""
    UPPER_BOUND = "upper bound"
    LOWER_BOUND = "lower bound"
    PREDICTION = "prediction"

    @property
    def prefix(self) -> str:
        """Words before a number of this kind in a sentence."""
        return _PREFIXES[self]

    @property
    def side(self) -> int:
        """Direction of rounding: 1 up, -1 down, 0 to the nearest."""
        return _SIDES.get(self, 0)


_PREFIXES = {
    Kind.MEASUREMENT: "",
    Kind.UPPER_BOUND: "at most ",
    Kind.LOWER_BOUND: "at least ",
    Kind.PREDICTION: "about ",
}
_SIGNS = {Kind.UPPER_BOUND: "≤ ", Kind.LOWER_BOUND: "≥ "}
_SIDES = {Kind.UPPER_BOUND: 1, Kind.LOWER_BOUND: -1}
# Do not round a count up if it exceeds a whole number by its last digits only.
_LAST_BITS = 1e-9


@dataclass(frozen=True)
class Quantity:
    """A number and its kind; bounds are rounded outwards, so that the shown number is a bound."""

    value: float
    kind: Kind

    @property
    def rest(self) -> Quantity:
        """One minus the share; an upper bound becomes a lower bound."""
        turned = {Kind.UPPER_BOUND: Kind.LOWER_BOUND, Kind.LOWER_BOUND: Kind.UPPER_BOUND}
        return Quantity(1 - self.value, turned.get(self.kind, self.kind))

    def words(self, digits: int = 3, name: str = "") -> str:
        """Return the number with the words of its kind, such as: at most epsilon 1.

        Parameters
        ----------
        digits : int
        name : str
            Name of the number, if any.
        """
        rounds = self.kind.side and 0 < self.value < math.inf
        value = towards(self.value, digits, self.kind.side) if rounds else self.value
        return f"{self.kind.prefix}{name}{' ' * bool(name)}{numeral(value, digits)}"

    @property
    def brief(self) -> str:
        """The number with three digits for a table cell, such as ≤ 1."""
        return self.words().replace(self.kind.prefix, _SIGNS.get(self.kind, self.kind.prefix))

    @property
    def cell(self) -> str:
        """`brief` without a blank, because blanks separate the columns of printed text."""
        return self.brief.replace(" ", "")

    def of_hundred(self, places: int = 0) -> str:
        """Return a share as a count in a hundred, without words before it."""
        if not self.kind.side:
            return of_hundred(self.value)
        turned = math.ceil if self.kind.side > 0 else math.floor
        step = 10**places
        count = turned(100 * self.value * step - self.kind.side * _LAST_BITS) / step
        return numeral(count, 3)

    def percent(self) -> str:
        """Return a share in per cent with the words of its kind, never 0% or 100%."""
        share, digits = self.value, 2 if self.value < 0.1 else 3
        if share > 0.999:
            text = "more than 99.9"
        elif 0 < share < 0.001:
            text = "less than 0.1"
        else:
            rounds = self.kind.side and share > 0
            share = towards(share, digits, self.kind.side) if rounds else share
            text = numeral(100 * share, digits)
        return self.kind.prefix + per_cent(text)
