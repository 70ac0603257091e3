"""Find which changes of an experiment would yield printed figures, and which explains most.

A table's experiment states which parameters may have been different (`Change`, solved for the
printed figure) and which readings exist (their figures are measured). A factor of unit follows from
printed and measured values. Sentences on these solutions are derived here, for every declared claim
whose number is not reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpviz.papers.experiment import Part
from dpviz.papers.measurements import Mean, Measurements, Point
from dpviz.papers.said import Claim, ClaimAnswer, Line, Stated, number, short

SOLVER = "what_was_run"
"""Name of the experiment of a paper whose points this module reads."""
IMPLIED = "what the printed figure implies"
TRIED, READING = "the range tried", "the figure in this reading"
VALUE, LOW, HIGH = 0.0, -1.0, 1.0  # These x mark a solution and both ends of its interval.
UNIT = "unit"


class SolvePart(Part):
    """One row of a table, and one change of how the table was computed."""

    row: str = ""
    change: str = ""
    draws: int = 0


_NEAR = 5  # Number of grid points near a solution, to find the ends of its interval.


@dataclass(frozen=True)
class Change:
    """A parameter that may have had another value in the paper's run.

    Attributes
    ----------
    name : str
    given : float
        Printed value of the parameter.
    low, high : float
        Ends of the range to try; both are positive.
    loss : callable
        Function that computes the figure, as the paper prints it, from a value.
    places : int
        Grid points of the range, to find the nearest crossing.
    """

    name: str
    given: float
    low: float
    high: float
    loss: Callable[[float], Mean]
    places: int = 17


def solved(change: Change, printed: float) -> float:
    """Return the value nearest to the printed one that yields a figure; NaN if no value does."""
    from scipy.optimize import brentq

    def excess(log_value: float) -> float:
        return change.loss(math.exp(log_value)).value - printed

    # A grid is searched first, because a root finder alone would miss further crossings.
    logs = np.linspace(math.log(change.low), math.log(change.high), change.places)
    values = [excess(log) for log in logs]
    crossings = [i for i in range(change.places - 1) if values[i] * values[i + 1] <= 0]
    if not crossings:
        return math.nan
    first = min(crossings, key=lambda i: abs((logs[i] + logs[i + 1]) / 2 - math.log(change.given)))
    return math.exp(float(brentq(excess, logs[first], logs[first + 1], xtol=1e-2)))


def implied(row: str, change: Change, printed: Stated) -> Measurements:
    """Return the value that a printed figure implies, with the range from both errors.

    Parameters
    ----------
    row : str
        Key of the claim.
    change : Change
    printed : Stated
    """
    found = {
        Point(change.name, row, TRIED, x): np.array([value])
        for x, value in ((VALUE, change.given), (LOW, change.low), (HIGH, change.high))
    }
    value = solved(change, printed.value)
    if not math.isnan(value):
        error = math.hypot(printed.error, printed.spread, change.loss(value).half)
        near = Change(
            # The search stays near the solution, so that it follows the same crossing.
            change.name, value, max(change.low, value / 10), min(change.high, value * 10),
            change.loss, _NEAR,
        )  # fmt: skip
        ends = [solved(near, printed.value + sign * error) for sign in (-1, 1)]
        known = [value, *(end for end in ends if not math.isnan(end))]
        for x, one in ((VALUE, value), (LOW, min(known)), (HIGH, max(known))):
            found[Point(change.name, row, IMPLIED, x)] = np.array([one])
    return Measurements(found)


def read_as(row: str, name: str, low: float, high: float) -> Measurements:
    """Return the range that a figure has in another reading."""
    return Measurements(
        {Point(name, row, READING, x): np.array([v]) for x, v in ((LOW, low), (HIGH, high))}
    )


# --- what is said of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """One possible explanation of a printed figure, whether or not it works.

    Attributes
    ----------
    name : str
        Name of the change; rows with the same change are compared.
    value, low, high : float
        Value of the change, with its interval; NaN if no tried value yields the figure.
    told : str
    """

    name: str
    value: float
    low: float
    high: float
    told: str

    @property
    def yields(self) -> bool:
        """Whether this explanation yields the figure."""
        return not math.isnan(self.low)


def what_was_run(claims: Sequence[Claim], points: pd.DataFrame) -> list[str]:
    """Return for each number that is not reproduced the single changes that would yield it.

    The first sentence names the change that explains most rows of the table.

    Parameters
    ----------
    claims : sequence of Claim
        Claims of one table.
    points : DataFrame
        Solutions for this table, with `SUMMARY_COLUMNS`.
    """
    rows = {
        _name(claim): _ways(line, at)
        for claim in claims
        if claim.answer in (ClaimAnswer.NOT_REPRODUCED, ClaimAnswer.ORDER)
        for line in claim.lines
        if line.stated is not None and line.mean is not None
        for at in [_by_change(points, claim.key)]
        if at
    }
    if not rows:
        return []
    lines = [
        f"{_first(name)}: {'. '.join(_first(way.told) for way in _worth(ways))}."
        for name, ways in rows.items()
    ]
    return [_most(rows), *lines]


def _name(claim: Claim) -> str:
    """Return a row's name, which follows "of" in the claim."""
    name = claim.item.partition(" of ")[2] or claim.item
    return name.partition(", over")[0].removesuffix(", %")


def _by_change(points: pd.DataFrame, row: str) -> dict[str, dict[str, dict[float, float]]]:
    """Return a row's solutions, keyed by change, quantity and x."""
    solutions: dict[str, dict[str, dict[float, float]]] = {}
    here = points[(points["series"] == row) & points["x"].notna()] if len(points) else points
    for _, one in here.iterrows():
        quantities = solutions.setdefault(one["panel"], {})
        quantities.setdefault(one["quantity"], {})[float(one["x"])] = float(one["mean"])
    return solutions


def _ways(line: Line, at: Mapping[str, Mapping[str, Mapping[float, float]]]) -> list[Way]:
    stated, mean = line.stated, line.mean
    assert stated is not None
    assert mean is not None
    ways = []
    for name, solutions in at.items():
        named = _named(name)
        if name == UNIT:
            # The printed figure may be in another unit, in which it equals the measured figure.
            ratio = stated.value / mean.value
            error = math.hypot(stated.error / stated.value, mean.half / mean.value) * ratio
            text = f"a unit {number(ratio)} times as large gives the printed figure"
            ways.append(Way(name, ratio, ratio - error, ratio + error, text))
        elif IMPLIED in solutions:
            value, low, high = (solutions[IMPLIED][x] for x in (VALUE, LOW, HIGH))
            text = (
                f"setting {named} to {short(value)} ({short(low)} to {short(high)}), not "
                f"{short(solutions[TRIED][VALUE])}, gives the printed figure"
            )
            ways.append(Way(name, value, low, high, text))
        elif TRIED in solutions:
            text = (
                f"no {name} from {short(solutions[TRIED][LOW])} to {short(solutions[TRIED][HIGH])} "
                "gives the printed figure"
            )
            ways.append(Way(name, math.nan, math.nan, math.nan, text))
        else:
            low, high = solutions[READING][LOW], solutions[READING][HIGH]
            # A changed reading gives two ends of an interval. The printed figure has an error too.
            room = math.hypot(stated.error, stated.rounding)
            inside = low - room <= stated.value <= high + room
            covers = "includes" if inside else "does not include"
            text = f"with {name}, the result is {short(low)} to {short(high)}, a range that"
            end = 1.0 if inside else math.nan
            ways.append(Way(name, end, end, end, f"{text} {covers} the printed figure"))
    return ways


def _worth(ways: Sequence[Way]) -> list[Way]:
    """Return the explanations to report for a row; a unit only if no other change works."""
    others = [way for way in ways if way.name != UNIT]
    return others if any(way.yields for way in others) else list(ways)


_OPEN = "We cannot say which settings the authors used."
_APART = 3.0  # Largest factor between values of one change that are reported together.


def _most(rows: Mapping[str, Sequence[Way]]) -> str:
    """Return the sentence on the single change that explains most rows of a table."""
    if len(rows) == 1:
        return _OPEN
    every = _yielding(rows)
    over = _groups(every, lambda first, way: way.low <= first.low <= way.high)
    # A table has only one unit, so a change of unit must explain at least half of its rows.
    largest = _largest((n, held) for n, held in over if n != UNIT or 2 * len(held) >= len(rows))
    every.pop(UNIT, None)
    near = _groups(every, lambda first, way: first.value <= way.value <= _APART * first.value)
    close = _largest(near, lambda held: (len(held), -_apart(held)))
    sentence = ""
    if len(largest[1]) > 1:
        low, high = max(w.low for _, w in largest[1]), min(w.high for _, w in largest[1])
        value = "" if low == high else f" from {short(low)} to {short(high)}"
        sentence = f"{_first(largest[0])}{value} yields {_of(largest[1], rows)}. "
    if len(close[1]) > max(len(largest[1]), 1):
        low, high = (end(w.value for _, w in close[1]) for end in (min, max))
        sentence += (
            f"{_first(close[0])} between {short(low)} and {short(high)} yields "
            f"{_of(close[1], rows)}. These {len(close[1])} figures need different values of "
            f"{_named(close[0])}. "
        )
    none = f"No single change yields more than one of {len(rows)} printed figures. "
    return f"{sentence or none}{_OPEN}"


Held = list[tuple[str, Way]]
"""Explanations, each with its table row."""
Group = tuple[str, Held]


def _yielding(rows: Mapping[str, Sequence[Way]]) -> dict[str, Held]:
    """Return by change the explanations that yield a row's figure."""
    every: dict[str, Held] = {}
    for row, ways in rows.items():
        for way in ways:
            if way.yields:
                every.setdefault(way.name, []).append((row, way))
    return every


def _groups(every: Mapping[str, Held], joins: Callable[[Way, Way], bool]) -> list[Group]:
    """Return a group for each explanation: those whose intervals or values it shares."""
    return [
        (name, [(row, way) for row, way in held if joins(first, way)])
        for name, held in every.items()
        for _, first in held
    ]


def _largest(groups: Iterable[Group], size: Callable[[Held], Any] = len) -> Group:
    return max(groups, key=lambda group: size(group[1]), default=("", []))


def _apart(held: Held) -> float:
    """Return how far apart the values of a change lie, as a factor."""
    values = [way.value for _, way in held]
    return max(values) / min(values)


def _of(held: Held, rows: Mapping[str, Sequence[Way]]) -> str:
    return f"{len(held)} of {len(rows)} printed figures ({'; '.join(row for row, _ in held)})"


def _named(change: str) -> str:
    return f"the {change}" if " " in change else change


def _first(text: str) -> str:
    return text[0].upper() + text[1:]
