"""What was run? The single change of scale that yields a printed figure, with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.said import Stated

IMPLIED = "what the printed figure implies"
BY_ROWS, BY_NOISE = "n", "noise smaller by a factor of"
VALUE, LOW, HIGH = 0.0, -1.0, 1.0  # places of a solution and of the ends of its interval


def solved(loss: Callable[[float], float], printed: float, low: float, high: float) -> float:
    """Return the scale at which a loss that rises or falls with it is the printed one.

    Parameters
    ----------
    loss : callable
        Of the scale; monotone but for the noise of its draws.
    printed : float
    low, high : float
        Positive ends; the nearer one is returned where the figure lies outside.
    """
    from scipy.optimize import brentq

    def excess(log_scale: float) -> float:
        return loss(math.exp(log_scale)) - printed

    ends = [math.log(low), math.log(high)]
    values = [excess(end) for end in ends]
    if values[0] * values[1] > 0:
        return math.exp(ends[int(abs(values[1]) < abs(values[0]))])
    return math.exp(float(brentq(excess, ends[0], ends[1], xtol=1e-2)))


def implied(
    kind: str, row: str, loss: Callable[[float], float], printed: Stated, low: float, high: float
) -> Measurements:
    """Return the scale that a printed figure implies, and those that its errors imply.

    Parameters
    ----------
    kind : str
        `BY_ROWS` or `BY_NOISE`.
    row : str
        Of the table.
    loss, low, high
        As of `solved`.
    printed : Stated
    """
    found = {
        where: solved(loss, printed.value + sign * printed.error, low, high)
        for where, sign in ((VALUE, 0), (LOW, 1), (HIGH, -1))
    }
    ends = sorted((found[LOW], found[HIGH]))
    return Measurements(
        {
            Point(kind, row, IMPLIED, where): np.array([value])
            for where, value in ((VALUE, found[VALUE]), (LOW, ends[0]), (HIGH, ends[1]))
        }
    )


def what_was_run(points: pd.DataFrame) -> list[str]:
    """Return for each row that is not reproduced which single change would yield it.

    The first line sums the rows up; what was run is not known.
    """
    here = points[points["quantity"] == IMPLIED] if not points.empty else points
    if here.empty:
        return []
    lines, people = [], []
    for (kind, row), some in here.groupby(["panel", "series"], sort=False):
        at = dict(zip(some["x"], some["mean"], strict=True))
        interval = f"{at[LOW]:,.3g} to {at[HIGH]:,.3g}"
        lines.append(f"{row}: the printed figure takes {kind} {at[VALUE]:,.3g} ({interval}).")
        if kind == BY_ROWS:
            people.append(at[VALUE])
    if len(people) > 1:
        lines.insert(
            0,
            f"What was run? {min(people):,.0f} to {max(people):,.0f} rows would explain "
            f"{len(people)} rows of the table. We do not know.",
        )
    return lines
