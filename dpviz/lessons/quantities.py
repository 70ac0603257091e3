"""The numbers that a lesson may name: each a function of settings, written by one rule.

A lesson's file says which quantity a number is, at which settings and with which arguments; what
can be named is what stands here, so a file from anywhere is data and nothing in it runs.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dpviz.auditing.attack import posterior_bound, worlds_at
from dpviz.auditing.exhibits import leak, support_table
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import decimals, numeral, percent, thousands
from dpviz.core.params import format_number
from dpviz.core.settings import Settings
from dpviz.lessons import measures
from dpviz.lessons.cast import cloud
from dpviz.mechanisms import parse_variant
from dpviz.preparation.load import load_measured
from dpviz.report.sentences.phrases import belief
from dpviz.report.tables.board import FIRST_COMPONENTS


@dataclass(frozen=True)
class Fact:
    """A number or a word, and how it is written."""

    value: Any
    text: str


@dataclass(frozen=True)
class Quantity:
    """Something that a lesson can name.

    Attributes
    ----------
    compute : callable
        To its value, from settings and arguments by keyword.
    written : callable
        To a text, from a value.
    """

    compute: Callable[..., Any]
    written: Callable[[Any], str]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments it takes beside settings."""
        # without the settings, which come from the step
        return tuple(inspect.signature(self.compute).parameters)[1:]

    @property
    def required(self) -> tuple[str, ...]:
        """Those of them that have no default."""
        known = inspect.signature(self.compute).parameters
        return tuple(
            name for name in self.arguments if known[name].default is inspect.Parameter.empty
        )

    def at(self, settings: Settings, **arguments: Any) -> Fact:
        """Return it at one setting."""
        value = self.compute(settings, **arguments)
        return Fact(value, self.written(value))


QUANTITIES: dict[str, Quantity] = {}
"""Every quantity by the name that a lesson's file says."""

_Compute = Callable[..., Any]


def _shown(written: Callable[[Any], str] = str) -> Callable[[_Compute], _Compute]:
    def add(compute: _Compute) -> _Compute:
        QUANTITIES[compute.__name__.strip("_")] = Quantity(compute, written)
        return compute

    return add


def _whole(value: float) -> str:
    return decimals(value, 0)


def _key(settings: Settings) -> str:
    return settings.variants[0]


# What is set ------------------------------------------------------------------------


@_shown(format_number)
def _epsilon(settings: Settings) -> float:
    return settings.epsilon


@_shown()
def _draws(settings: Settings) -> int:
    return settings.trials


@_shown(thousands)
def _people(settings: Settings) -> int:
    return load_measured(settings).n


@_shown()
def _features(settings: Settings) -> int:
    return load_measured(settings).d


@_shown()
def _dots(settings: Settings) -> int:
    return int(measures.dots(settings))


@_shown()
def _components_drawn(settings: Settings) -> int:
    return min(FIRST_COMPONENTS, load_measured(settings).d)


@_shown(thousands)
def _count(settings: Settings, value: float) -> float:
    return value


@_shown(percent)
def _share(settings: Settings, value: float) -> float:
    return value


@_shown()
def _mechanism(settings: Settings, place: int = 1) -> str:
    return parse_variant(settings.variants[place - 1]).label


# What a release keeps ---------------------------------------------------------------


@_shown(percent)
def _recovery(settings: Settings, draw: str = "mean") -> float:
    values = measures.recovery(settings, _key(settings))
    return float(values.mean() if draw == "mean" else values[measures.DRAWS[draw](values)])


@_shown(percent)
def _told(settings: Settings) -> float:
    """Return how well nearest printed points name people: 0 as one name for all, 1 as exact."""
    return float(np.mean(measures.result(settings, _key(settings)).metrics["class_picture"]))


@_shown()
def _change(settings: Settings, allocation: str, against: str = "") -> str:
    """Return in a word how far recovery moves from one allocation to another."""
    before = _recovery(replace(settings, allocation=against or settings.allocation))
    apart = abs(_recovery(replace(settings, allocation=allocation)) - before)
    # in a word, so that a lesson's text holds whatever the draws are
    return "nothing" if apart < 0.02 else "little" if apart < 0.5 else "much"


@_shown()
def _proof(settings: Settings) -> str:
    """Return whether one draw tells the recovery of the others to a tenth."""
    values = measures.recovery(settings, _key(settings))
    return "yes" if np.ptp(values) <= 0.1 else "no"


@_shown(_whole)
def _sorted_wrongly(settings: Settings, label: Any, plane: str = "released") -> float:
    """Return how many of 100, half of them of the class, a straight line sorts wrongly."""
    if plane == "exact":
        right = measures.sorted_exactly(settings, label)
    elif plane == "chance":
        right = measures.sorted_by_chance(settings, label)
    else:
        right = float(measures.sorted_apart(settings, _key(settings), label).mean())
    return 100 * (1 - right)


@_shown()
def _found(settings: Settings) -> int:
    return measures.found(settings, parse_variant(_key(settings)))


@_shown()
def _above_threshold(settings: Settings) -> int:
    return measures.above_lone_threshold(settings, parse_variant(_key(settings)))


@_shown(thousands)
def _needed(settings: Settings, trust: str = "central") -> float:
    return measures.people_needed(settings, parse_variant(f"{_key(settings)}[trust={trust}]"))


# What it tells of a person ----------------------------------------------------------


@_shown(_whole)
def _guessed(settings: Settings, world: str) -> float:
    """Return how many of 100 releases the best guesser says "in" of, rounded outwards."""
    right = worlds_at(settings.epsilon)
    return float({"in": right, "out": right.rest}[world].of_hundred())


@_shown(belief)
def _belief(settings: Settings, prior: float) -> float:
    return posterior_bound(prior, settings.epsilon)


@_shown(numeral)
def _odds(settings: Settings) -> float:
    return math.exp(settings.epsilon)


@_shown(percent)
def _betrayed(settings: Settings) -> float:
    """Return the share of releases without a person that cannot be releases with her."""
    table = support_table(2, settings.epsilon, settings.seed, trials=1)
    return float(table.loc[table["epsilon"] == settings.epsilon, "exact"].iloc[0])


@_shown()
def _leak(settings: Settings, what: str) -> str:
    found = leak()

    def listed(values: FloatArray) -> str:
        return ", ".join(numeral(value, 3) for value in values)

    texts = {
        "people": lambda: str(len(found.rows)),
        "features": lambda: str(len(found.features)),
        "kept": lambda: percent(cloud().kept),
        "recovered": lambda: listed(found.recovered),
        "true": lambda: listed(found.rows[-1]),
        "bound_with": lambda: numeral(found.bound_with, 3),
        "bound_without": lambda: numeral(found.bound_without, 3),
        "declared": lambda: numeral(found.declared_bound, 3),
    }
    return texts[what]()


@_shown()
def _given_away(settings: Settings) -> str:
    """Return how much of the last row the mean and the other rows give, in a word."""
    found = leak()
    off = np.abs(found.recovered / found.rows[-1] - 1).max()
    return "row" if off < 1e-9 else "rough" if off < 0.5 else "nothing"


@_shown()
def _leaking_steps(settings: Settings) -> str:
    """Return which of mean and bound tell of the last row."""
    told = {
        "mean": _given_away(settings) == "row",
        "bound": leak().bound_with != leak().bound_without,
    }
    return {(True, True): "both", (True, False): "mean", (False, True): "bound"}.get(
        (told["mean"], told["bound"]), "neither"
    )


# At which epsilon -------------------------------------------------------------------

LOWEST, HIGHEST = 0.01, 100.0
_DIGITS = 2


def where(
    quantity: Quantity, settings: Settings, arguments: Mapping[str, Any], target: float
) -> float:
    """Return the epsilon at which a quantity reaches a value, to two digits.

    Between `LOWEST` and `HIGHEST`, where the quantity goes one way. Where the nearest such epsilon
    does not show the value as it is written, it is the next one on the side that does.

    Raises
    ------
    ValueError
        If it is reached nowhere between.
    """

    @cache
    def over(epsilon: float) -> bool:
        value = quantity.compute(replace(settings, epsilon=epsilon), **arguments)
        return bool(value >= target)

    low, high = math.log(LOWEST), math.log(HIGHEST)
    # whether it rises or falls is asked and not assumed
    first = over(LOWEST)
    if first == over(HIGHEST):
        ends = f"epsilon from {numeral(LOWEST)} to {numeral(HIGHEST)}"
        raise ValueError(f"{ends} never gives {numeral(target, 6)}")
    # a thousandth of epsilon is finer than the digits that are written
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if over(math.exp(middle)) == first else (low, middle)
    reached, other = (low, high) if first else (high, low)
    nearest = float(f"{math.exp(reached):.{_DIGITS}g}")
    there = quantity.compute(replace(settings, epsilon=nearest), **arguments)
    if there >= target or quantity.written(there) == quantity.written(target):
        return nearest
    # One digit further to the side where it is reached, as what is written must say.
    digit = 10.0 ** (math.floor(math.log10(nearest)) - _DIGITS + 1)
    return float(f"{nearest + math.copysign(digit, reached - other):.{_DIGITS}g}")
