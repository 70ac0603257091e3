"""The numbers that a lesson may name; each is a function of settings with one text format.

A lesson's file gives each number's quantity, settings and arguments. The file can only name
quantities defined here, so it is data and no part of it runs as code.
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
    """A number or a word, and its text."""

    value: Any
    text: str


@dataclass(frozen=True)
class Quantity:
    """A quantity that a lesson can name.

    Attributes
    ----------
    compute : callable
        Function that computes the value from settings and keyword arguments.
    written : callable
        Function that formats a value as text.
    """

    compute: Callable[..., Any]
    written: Callable[[Any], str]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the quantity, apart from the settings."""
        # Leave out the first argument, the settings, which the step supplies.
        return tuple(inspect.signature(self.compute).parameters)[1:]

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments of the quantity that have no default."""
        parameters = inspect.signature(self.compute).parameters
        return tuple(
            name for name in self.arguments if parameters[name].default is inspect.Parameter.empty
        )

    def at(self, settings: Settings, **arguments: Any) -> Fact:
        """Return the value for the given settings."""
        value = self.compute(settings, **arguments)
        return Fact(value, self.written(value))


QUANTITIES: dict[str, Quantity] = {}
"""Quantities, keyed by the names that lesson files use."""

_Compute = Callable[..., Any]


def _shown(write: Callable[[Any], str] = str) -> Callable[[_Compute], _Compute]:
    def add(compute: _Compute) -> _Compute:
        QUANTITIES[compute.__name__.strip("_")] = Quantity(compute, write)
        return compute

    return add


def _whole(value: float) -> str:
    return decimals(value, 0)


def _key(settings: Settings) -> str:
    return settings.variants[0]


# Settings ------------------------------------------------------------------------


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
    """Return how well nearest published points give labels: 0 is one label for all, 1 exact."""
    return float(np.mean(measures.result(settings, _key(settings)).metrics["class_picture"]))


@_shown()
def _change(settings: Settings, allocation: str, against: str = "") -> str:
    """Return a word for the change of recovery from one allocation to another."""
    before = _recovery(replace(settings, allocation=against or settings.allocation))
    apart = abs(_recovery(replace(settings, allocation=allocation)) - before)
    # Return a word instead of a number, so that the text holds for any simulated releases.
    return "nothing" if apart < 0.02 else "little" if apart < 0.5 else "much"


@_shown()
def _proof(settings: Settings) -> str:
    """Return "yes" if all recoveries agree to within a tenth, and "no" otherwise."""
    values = measures.recovery(settings, _key(settings))
    return "yes" if np.ptp(values) <= 0.1 else "no"


@_shown(_whole)
def _sorted_wrongly(settings: Settings, label: Any, plane: str = "released") -> float:
    """Return how many of 100 people a straight line misclassifies, if half are in the class."""
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


# Risk for one person ----------------------------------------------------------


@_shown(_whole)
def _guessed(settings: Settings, world: str) -> float:
    """Return for how many of 100 releases the best guesser says "in", rounded outwards."""
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
    """Return the share of releases that occur without a person but are impossible with her."""
    table = support_table(2, settings.epsilon, settings.seed, trials=1)
    return float(table.loc[table["epsilon"] == settings.epsilon, "exact"].iloc[0])


@_shown()
def _leak(settings: Settings, what: str) -> str:
    case = leak()

    def listed(values: FloatArray) -> str:
        return ", ".join(numeral(value, 3) for value in values)

    texts = {
        "people": lambda: str(len(case.rows)),
        "features": lambda: str(len(case.features)),
        "kept": lambda: percent(cloud().kept),
        "recovered": lambda: listed(case.recovered),
        "true": lambda: listed(case.rows[-1]),
        "bound_with": lambda: numeral(case.bound_with, 3),
        "bound_without": lambda: numeral(case.bound_without, 3),
        "declared": lambda: numeral(case.declared_bound, 3),
    }
    return texts[what]()


@_shown()
def _given_away(settings: Settings) -> str:
    """Return a word for how much of the last row the mean and the other rows reveal."""
    case = leak()
    off = np.abs(case.recovered / case.rows[-1] - 1).max()
    return "row" if off < 1e-9 else "rough" if off < 0.5 else "nothing"


@_shown()
def _leaking_steps(settings: Settings) -> str:
    """Return whether the mean, the bound or both reveal part of the last row."""
    revealed_by = {
        "mean": _given_away(settings) == "row",
        "bound": leak().bound_with != leak().bound_without,
    }
    return {(True, True): "both", (True, False): "mean", (False, True): "bound"}.get(
        (revealed_by["mean"], revealed_by["bound"]), "neither"
    )


# Search for epsilon -------------------------------------------------------------------

LOWEST, HIGHEST = 0.01, 100.0
_DIGITS = 2


def where(
    quantity: Quantity, settings: Settings, arguments: Mapping[str, Any], target: float
) -> float:
    """Return the epsilon at which a quantity reaches a value, to two digits.

    Search between `LOWEST` and `HIGHEST`, in which the quantity must be monotonic. If the rounded
    epsilon does not reach the value as written, use the next epsilon that does.

    Raises
    ------
    ValueError
        If no epsilon in the range reaches the value.
    """

    @cache
    def over(epsilon: float) -> bool:
        value = quantity.compute(replace(settings, epsilon=epsilon), **arguments)
        return bool(value >= target)

    low, high = math.log(LOWEST), math.log(HIGHEST)
    # Compare both ends, to find whether the quantity rises or falls with epsilon.
    first = over(LOWEST)
    if first == over(HIGHEST):
        ends = f"epsilon from {numeral(LOWEST)} to {numeral(HIGHEST)}"
        raise ValueError(f"{ends} never gives {numeral(target, 6)}")
    # Stop at a relative accuracy of 1e-3, which is finer than the digits shown.
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if over(math.exp(middle)) == first else (low, middle)
    inner, other = (low, high) if first else (high, low)
    nearest = float(f"{math.exp(inner):.{_DIGITS}g}")
    there = quantity.compute(replace(settings, epsilon=nearest), **arguments)
    if there >= target or quantity.written(there) == quantity.written(target):
        return nearest
    # Move the last digit to the side that reaches the value, so that text and epsilon agree.
    digit = 10.0 ** (math.floor(math.log10(nearest)) - _DIGITS + 1)
    return float(f"{nearest + math.copysign(digit, inner - other):.{_DIGITS}g}")
