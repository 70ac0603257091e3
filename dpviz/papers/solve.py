"""What was run? The single change that yields a printed figure, and the one that explains most.

A table's experiments say which parameters could have been other ones (`Change`, solved for the
printed figure) and which readings there are (their figure is measured); a factor of unit follows
from what is printed and measured. What is said of them is derived here, for every declared claim
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
"""Name of the experiment of a paper whose points are read here."""
IMPLIED = "what the printed figure implies"
TRIED, READING = "the range tried", "the figure in this reading"
VALUE, LOW, HIGH = 0.0, -1.0, 1.0  # places of a solution and of the ends of its interval
UNIT = "unit"


class SolvePart(Part):
    """One row of a table and one change of how it was run."""

    row: str = ""
    change: str = ""
    draws: int = 0


_NEAR = 5  # places about a solution, that the ends of its interval are sought from


@dataclass(frozen=True)
class Change:
    """A parameter of which another value may have been run.

    Attributes
    ----------
    name : str
    given : float
        Its printed value.
    low, high : float
        Positive ends of the range tried.
    loss : callable
        Of its value: the figure, as the paper prints it.
    places : int
        Of the range, that are looked at for the nearest crossing.
    """

    name: str
    given: float
    low: float
    high: float
    loss: Callable[[float], Mean]
    places: int = 17


def solved(change: Change, printed: float) -> float:
    """Return the value nearest to the given one that yields a figure; NaN where none does."""
    from scipy.optimize import brentq

    def excess(log_value: float) -> float:
        return change.loss(math.exp(log_value)).value - printed

    # a grid first: a figure may be crossed more than once, and the root finder sees one of them
    logs = np.linspace(math.log(change.low), math.log(change.high), change.places)
    values = [excess(log) for log in logs]
    crossings = [i for i in range(change.places - 1) if values[i] * values[i + 1] <= 0]
    if not crossings:
        return math.nan
    first = min(crossings, key=lambda i: abs((logs[i] + logs[i + 1]) / 2 - math.log(change.given)))
    return math.exp(float(brentq(excess, logs[first], logs[first + 1], xtol=1e-2)))


def implied(row: str, change: Change, printed: Stated) -> Measurements:
    """Return the value that a printed figure implies, and those that its errors and ours imply.

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
            # about the solution alone, so that its ends are on the same crossing
            change.name, value, max(change.low, value / 10), min(change.high, value * 10),
            change.loss, _NEAR,
        )  # fmt: skip
        ends = [solved(near, printed.value + sign * error) for sign in (-1, 1)]
        known = [value, *(end for end in ends if not math.isnan(end))]
        for x, one in ((VALUE, value), (LOW, min(known)), (HIGH, max(known))):
            found[Point(change.name, row, IMPLIED, x)] = np.array([one])
    return Measurements(found)


def read_as(row: str, name: str, low: float, high: float) -> Measurements:
    """Return the range of a figure in another reading."""
    return Measurements(
        {Point(name, row, READING, x): np.array([v]) for x, v in ((LOW, low), (HIGH, high))}
    )


# --- what is said of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """One way in which a printed figure could have come about, or not.

    Attributes
    ----------
    name : str
        Of the change; rows that share one are compared.
    value, low, high : float
        Of the change, with its interval; NaN where nothing that was tried yields the figure.
    told : str
    """

    name: str
    value: float
    low: float
    high: float
    told: str

    @property
    def yields(self) -> bool:
        """Whether it yields the figure."""
        return not math.isnan(self.low)


def what_was_run(claims: Sequence[Claim], points: pd.DataFrame) -> list[str]:
    """Return for each number that is not reproduced which single change would yield it.

    The first sentence says which one change explains most rows of the table.

    Parameters
    ----------
    claims : sequence of Claim
        Of one table.
    points : DataFrame
        What was solved for it, with `SUMMARY_COLUMNS`.
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
        f"{_first(name)}: {'; '.join(way.told for way in _worth(ways))}."
        for name, ways in rows.items()
    ]
    return [_most(rows), *lines]


def _name(claim: Claim) -> str:
    """Return the name of a row: in a claim it stands behind "of"."""
    name = claim.item.partition(" of ")[2] or claim.item
    return name.partition(", over")[0].removesuffix(", %")


def _by_change(points: pd.DataFrame, row: str) -> dict[str, dict[str, dict[float, float]]]:
    """Return what was solved for a row: by change, quantity and place."""
    found: dict[str, dict[str, dict[float, float]]] = {}
    here = points[(points["series"] == row) & points["x"].notna()] if len(points) else points
    for _, one in here.iterrows():
        quantities = found.setdefault(one["panel"], {})
        quantities.setdefault(one["quantity"], {})[float(one["x"])] = float(one["mean"])
    return found


def _ways(line: Line, at: Mapping[str, Mapping[str, Mapping[float, float]]]) -> list[Way]:
    stated, mean = line.stated, line.mean
    assert stated is not None
    assert mean is not None
    ways = []
    for name, known in at.items():
        if name == UNIT:
            # printed in another unit, it would be the same figure
            ratio = stated.value / mean.value
            error = math.hypot(stated.error / stated.value, mean.half / mean.value) * ratio
            told = f"a unit {number(ratio)} times as large"
            ways.append(Way(name, ratio, ratio - error, ratio + error, told))
        elif IMPLIED in known:
            value, low, high = (known[IMPLIED][x] for x in (VALUE, LOW, HIGH))
            told = (
                f"{name} {short(value)} ({short(low)} to {short(high)}) in place of "
                f"{short(known[TRIED][VALUE])}"
            )
            ways.append(Way(name, value, low, high, told))
        elif TRIED in known:
            told = f"no {name} from {short(known[TRIED][LOW])} to {short(known[TRIED][HIGH])}"
            ways.append(Way(name, math.nan, math.nan, math.nan, told))
        else:
            low, high = known[READING][LOW], known[READING][HIGH]
            # another reading gives a range: printed within it, but for its own error
            room = math.hypot(stated.error, stated.rounding)
            inside = low - room <= stated.value <= high + room
            told = f"{name}: {short(low)} to {short(high)}, {'with' if inside else 'without'} it"
            end = 1.0 if inside else math.nan
            ways.append(Way(name, end, end, end, told))
    return ways


def _worth(ways: Sequence[Way]) -> list[Way]:
    """Return what is told of a row: a unit of its own only where nothing else yields it."""
    others = [way for way in ways if way.name != UNIT]
    return others if any(way.yields for way in others) else list(ways)


_APART = 3.0  # the most that values of one change lie apart, as a factor, to be told together


def _most(rows: Mapping[str, Sequence[Way]]) -> str:
    """Return the sentence on the one change that explains most rows of a table."""
    if len(rows) == 1:
        return "What was run? We do not know."
    every = _yielding(rows)
    over = _groups(every, lambda first, way: way.low <= first.low <= way.high)
    # a table has one unit: it explains most of the rows, or nothing
    shared = _largest((n, held) for n, held in over if n != UNIT or 2 * len(held) >= len(rows))
    every.pop(UNIT, None)
    near = _groups(every, lambda first, way: first.value <= way.value <= _APART * first.value)
    close = _largest(near, lambda held: (len(held), -_apart(held)))
    told = ""
    if len(shared[1]) > 1:
        low, high = max(w.low for _, w in shared[1]), min(w.high for _, w in shared[1])
        value = "" if low == high else f" from {short(low)} to {short(high)}"
        told = f"{_first(shared[0])}{value} would yield {_of(shared[1], rows)}. "
    if len(close[1]) > max(len(shared[1]), 1):
        low, high = (end(w.value for _, w in close[1]) for end in (min, max))
        told += (
            f"{_first(close[0])} between {short(low)} and {short(high)} would yield "
            f"{_of(close[1], rows)}, each with a value of its own. "
        )
    told = told or f"No change would yield more than one of these {len(rows)} figures. "
    return f"What was run? {told}We do not know."


Held = list[tuple[str, Way]]
"""Ways with their rows."""
Group = tuple[str, Held]


def _yielding(rows: Mapping[str, Sequence[Way]]) -> dict[str, Held]:
    """Return by change the ways that yield a row's figure."""
    every: dict[str, Held] = {}
    for row, ways in rows.items():
        for way in ways:
            if way.yields:
                every.setdefault(way.name, []).append((row, way))
    return every


def _groups(every: Mapping[str, Held], joins: Callable[[Way, Way], bool]) -> list[Group]:
    """Return for each way of a change those that it joins; most overlap where one begins."""
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
    return f"{len(held)} of these {len(rows)} figures ({', '.join(row for row, _ in held)})"


def _first(text: str) -> str:
    return text[0].upper() + text[1:]
