"""The marks of a claim that fails at some points of a curve: dashes, open markers, words."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from dpviz.core.release import VERDICT_WORDS, Verdict


def stretches(
    part: pd.DataFrame, plain: str, *, x: str = "x", beyond: float = math.inf
) -> list[tuple[pd.DataFrame, str]]:
    """Return the rows of each stretch of one dash, neighbours sharing the point between them.

    Parameters
    ----------
    part : DataFrame
        Rows of one curve in order, with a column verdict: a line is dashed where the claim fails
        at either end of it.
    plain : str
        Dash of the other lines.
    x : str
        Column of the axis.
    beyond : float
        From here on lines are dashed in any case.
    """
    fails = [Verdict(verdict).fails for verdict in part["verdict"]]
    if len(part) < 2:
        return [(part, "dash" if any(fails) else plain)]
    lines = [
        "dash" if fails[i] or fails[i + 1] or part[x].iloc[i] >= beyond else plain
        for i in range(len(part) - 1)
    ]
    found, start = [], 0
    for i in range(1, len(lines) + 1):
        if i == len(lines) or lines[i] != lines[start]:
            found.append((part.iloc[start : i + 1], lines[start]))
            start = i
    return found


def symbols(verdicts: Iterable[str], marker: str) -> list[str]:
    """Return the marker of each point: open where the claim fails."""
    return [f"{marker}-open" if Verdict(verdict).fails else marker for verdict in verdicts]


def verdict_words(verdicts: Iterable[str]) -> list[str]:
    """Return what is said of the claim at each point."""
    return [VERDICT_WORDS[Verdict(verdict)] for verdict in verdicts]
