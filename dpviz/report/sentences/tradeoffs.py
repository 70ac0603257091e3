"""Sentences of the Trade-offs page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from dpviz.core.metrics import METRICS, chance_share, nothing_to_recover
from dpviz.core.number_text import numeral, per_cent, thousands, towards
from dpviz.core.problem import (
    EPSILON_RANGE,
)
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import PEOPLE_RANGE, Predicted, Target


def all_alike(table: Measured, k: int) -> str:
    """Return that any k directions keep as much as the exact ones, if they do; else nothing."""
    if not nothing_to_recover(chance_share(table.reference, k)):
        return ""
    return f"any {k} of {table.d} directions keep as much as the exact ones"


def curve_caption(
    bands: pd.DataFrame,
    best: pd.DataFrame,
    axis: str,
    metric: str,
    mechanisms: Sequence[Mechanism],
) -> str:
    """Return which variant is best along an axis, and where that changes."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    name = METRICS[metric].label
    if bands.empty:
        return f"None of the chosen mechanisms has a {name}."
    if best.empty:
        return f"Mean {name} along {axis}: nowhere do these draws single out one mechanism."
    # along the axis, from one change of the best to the next
    runs: list[tuple[str, float]] = []
    for mechanism, x in zip(best["mechanism"], best["x"], strict=True):
        if not runs or runs[-1][0] != mechanism:
            runs.append((str(mechanism), float(x)))
    if len(runs) == 1:
        return (
            f"Among claims that hold, {labels[runs[0][0]]} has the best {name} wherever draws "
            "can tell."
        )
    words = [f"{labels[mechanism]} from {axis} {numeral(x, 3)}" for mechanism, x in runs]
    return f"Best {name} among claims that hold: {', '.join(words)}."


def row_bound_caption(bands: pd.DataFrame, mechanisms: Sequence[Mechanism]) -> str:
    """Return what clipping harder gains and costs."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    parts = []
    for mechanism, table in bands.groupby("mechanism", sort=False):
        # by place and not by label: rows of one mechanism keep their index of the whole table
        top = table.iloc[int(table["mean"].to_numpy().argmax())]
        last = table.iloc[int(table["x"].to_numpy().argmax())]
        if str(mechanism) in labels and top["x"] < last["x"]:
            parts.append(
                f"{labels[str(mechanism)]} does best at R = {numeral(top['x'], 3)} "
                f"({numeral(top['mean'], 3)} "
                f"against {numeral(last['mean'], 3)} at the largest norm)"
            )
    start = (
        "A smaller bound scales long rows down, which loses signal (bias), and lowers the noise by "
        "its square. "
    )
    if not parts:
        return start + "Here no mechanism gains from clipping harder than the largest norm."
    return start + "; ".join(parts) + ". Choosing the bound by this curve uses the data."


# Targets and plans --------------------------------------------------------------------------------


def goal_words(goal: Goal, k: int) -> str:
    """Return the goal as the end of a sentence, such as "to keep 90 % of ..."."""
    noun = "one component" if k == 1 else f"{k} components"
    if goal.recovery is not None:
        words = f"to recover {per_cent(numeral(100 * goal.recovery, 4))} of what {noun} can show"
    elif goal.metric == "captured_share":
        share = per_cent(numeral(100 * goal.value, 4))
        words = f"to keep {share} of the variance that {noun} can explain"
    elif goal.metric == "captured_total":
        words = f"to keep {per_cent(numeral(100 * goal.value, 4))} of all variance with {noun}"
    else:
        side = "at least" if goal.measure.better == "higher" else "at most"
        unit = f" {goal.measure.unit}" if goal.measure.unit else ""
        words = f"for a {goal.measure.label} of {side} {numeral(goal.value, 4)}{unit} with {noun}"
    if goal.of_draws is not None:
        words += f" in {per_cent(numeral(100 * goal.of_draws, 4))} of releases"
    return words


def _amount(value: float, what: str) -> str:
    return f"{thousands(value)} people" if what == "n" else f"epsilon {numeral(value, 3)}"


def range_words(low: float, high: float, what: str) -> str:
    """Return an interval as an estimate with its ends: about 7, between 6.53 and 7.48.

    Ends are rounded outwards, to three digits; the estimate is their middle on a logarithmic axis,
    with as many digits as keep it between them.
    """
    if what == "n":
        ends = f"{math.floor(low):,} and {math.ceil(high):,}"
        return f"about {thousands(_inside(low, high))} people, between {ends}"
    ends = f"{outwards(low, -1)} and {outwards(high, 1)}"
    return f"about {numeral(_inside(low, high), 6)}, between {ends}"


def _inside(low: float, high: float) -> float:
    """Return the middle of an interval with as few digits as leave it there, two at least."""
    # the search runs on logarithms, where an interval's middle is the geometric mean
    middle = math.sqrt(low * high)
    # a rounded middle may fall outside a narrow interval
    few = (float(f"{middle:.{digits}g}") for digits in range(2, 7))
    return next((found for found in few if low <= found <= high), middle)


def outwards(value: float, side: int) -> str:
    """Return a number of three digits that is not inside of the one given."""
    return numeral(towards(value, 3, side), 3)


def sentence(target: Target, k: int) -> str:
    """Return the answer in words."""
    label, what, goal = target.mechanism.label, target.what, goal_words(target.goal, k)
    if target.reason is not None:
        return f"{label} cannot answer: {target.reason}."
    sure = f"{per_cent(numeral(100 * target.confidence, 6))} confidence"
    if not target.monotone:
        return (
            f"{label}: the measure does not move one way with {what}, so there is no single least "
            f"value {goal}."
        )
    if target.never:
        nothing = "no number of people up to" if what == "n" else "no epsilon up to"
        words = f"With {label}, {nothing} {thousands(target.last)} is enough {goal} ({sure})"
    elif target.high is None:
        over = f" It lies above {_amount(target.low, what)}." if target.low is not None else ""
        return f"{label}: these draws do not show any value that is enough {goal}.{over}"
    elif target.low is None:
        words = f"{label} needs at most {_amount(target.high, what)} {goal} ({sure})"
    else:
        unit = "" if what == "n" else "epsilon "
        amount = unit + range_words(target.low, target.high, what)
        words = f"{label} needs {amount}, {goal} ({sure})"
    words += "."
    if target.status is not None and target.status.verdict.fails:
        words += f" Not counted there: {target.status.words}."
    return words


def predicted_sentence(answer: Predicted, what: str) -> str:
    """Return an answer of `predicted_targets` in words."""
    label, value, status = answer.mechanism.label, answer.value, answer.status
    if value is None:
        words = f"{label}: no prediction without draws."
    elif math.isinf(value):
        last = PEOPLE_RANGE[1] if what == "n" else EPSILON_RANGE[1]
        words = f"{label}: not even {_amount(float(last), what)}."
    else:
        words = f"{label}: {_amount(value, what)}."
    if status is not None and status.verdict.fails:
        words += f" Not counted there: {status.words}."
    return words


def predicted_lines(answers: Sequence[Predicted], what: str) -> list[str]:
    """Return one sentence for each answer, and one for all that have none."""
    lines = [predicted_sentence(answer, what) for answer in answers if answer.value is not None]
    # one sentence for all of them: a list of refusals hides the answers
    silent = [answer.mechanism.label for answer in answers if answer.value is None]
    if silent:
        lines.append(f"No prediction without draws: {', '.join(silent)}.")
    return lines
