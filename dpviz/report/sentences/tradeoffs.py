"""Sentences of the Trade-offs page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import pandas as pd

from dpviz.core.metrics import Metric, chance_share, metric_of, nothing_to_recover
from dpviz.core.number_text import numeral, per_cent, thousands, towards
from dpviz.core.quantity import Kind, Quantity
from dpviz.mechanisms import Mechanism
from dpviz.preparation.prepared import Measured
from dpviz.simulation.goal import Goal
from dpviz.simulation.least import Predicted, Target


def all_alike(table: Measured, k: int) -> str:
    """Return a note if any k directions keep as much as the exact ones, else an empty text."""
    if not nothing_to_recover(chance_share(table.reference, k)):
        return ""
    return f"any {k} of {table.d} directions keep as much structure as the exact directions"


def curve_caption(
    bands: pd.DataFrame,
    best: pd.DataFrame,
    axis: str,
    metric: str | Metric,
    mechanisms: Sequence[Mechanism],
) -> str:
    """Return which variant is best along an axis, and the values at which this changes."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    name = metric_of(metric).label
    if bands.empty:
        return f"No chosen mechanism has a value of the metric {name}."
    if best.empty:
        return f"Mean {name} along {axis}: no mechanism is clearly best."
    # Record the values on the axis at which another mechanism becomes the best.
    runs: list[tuple[str, float]] = []
    for mechanism, x in zip(best["mechanism"], best["x"], strict=True):
        if not runs or runs[-1][0] != mechanism:
            runs.append((str(mechanism), float(x)))
    if len(runs) == 1:
        return (
            f"Among mechanisms whose claims hold, {labels[runs[0][0]]} has the best {name} "
            "whenever simulated releases can distinguish mechanisms."
        )
    words = [f"{labels[mechanism]} from {axis} {numeral(x, 3)}" for mechanism, x in runs]
    return f"Best {name} among mechanisms whose claims hold: {', '.join(words)}."


def row_bound_caption(bands: pd.DataFrame, mechanisms: Sequence[Mechanism]) -> str:
    """Return the gain and the cost of stronger clipping."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    parts = []
    for mechanism, table in bands.groupby("mechanism", sort=False):
        # Select rows by position, because each row keeps its index from the whole table.
        top = table.iloc[int(table["mean"].to_numpy().argmax())]
        last = table.iloc[int(table["x"].to_numpy().argmax())]
        if str(mechanism) in labels and top["x"] < last["x"]:
            parts.append(
                f"{labels[str(mechanism)]} does best at R = {numeral(top['x'], 3)} "
                f"({numeral(top['mean'], 3)} "
                f"against {numeral(last['mean'], 3)} at the largest norm)"
            )
    start = (
        "A smaller row-norm bound clips long rows, which loses signal (bias). A smaller bound also "
        "lowers the noise, in proportion to the square of the bound. "
    )
    if not parts:
        return start + "On this table no mechanism gains from clipping below the largest norm."
    return (
        start
        + "; ".join(parts)
        + (". Choosing the bound by this curve uses the data and is not private.")
    )


# Targets and plans --------------------------------------------------------------------------------


def goal_words(goal: Goal, k: int) -> str:
    """Return the goal as the end of a sentence, such as "to keep 90 % of ..."."""
    noun = "one component" if k == 1 else f"{k} components"
    if goal.recovery is not None:
        share = per_cent(numeral(100 * goal.recovery, 4))
        words = f"to recover {share} of the structure that {noun} can show"
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


def _amount(value: float, what: str, kind: Kind = Kind.MEASUREMENT) -> str:
    if what != "n":
        return Quantity(value, kind).words(3, "epsilon")
    whole = {1: math.ceil, -1: math.floor}.get(kind.side, round)(value)
    return f"{kind.prefix}{thousands(whole)} people"


def range_words(low: float, high: float, what: str) -> str:
    """Return an interval as an estimate with its ends, such as "about 7, between 6.53 and 7.48".

    Ends are rounded outwards, to three digits. The estimate is the middle of the interval on a
    logarithmic axis, with enough digits to stay between the ends.
    """
    if what == "n":
        ends = f"{math.floor(low):,} and {math.ceil(high):,}"
        return f"about {thousands(_inside(low, high))} people, between {ends}"
    ends = f"{outwards(low, -1)} and {outwards(high, 1)}"
    return f"about {numeral(_inside(low, high), 6)}, between {ends}"


def _inside(low: float, high: float) -> float:
    """Return an interval's middle, rounded to the fewest digits (at least two) that stay inside."""
    # The search uses logarithms, so the middle of an interval is its geometric mean.
    middle = math.sqrt(low * high)
    # Do not round the middle of a narrow interval, because it could fall outside.
    few = (float(f"{middle:.{digits}g}") for digits in range(2, 7))
    return next((number for number in few if low <= number <= high), middle)


def outwards(value: float, side: int) -> str:
    """Round a number outwards to three digits, so that an interval never shrinks."""
    return numeral(towards(value, 3, side), 3)


def sentence(target: Target, k: int) -> str:
    """Return the answer of a search for a target, in words."""
    label, what, goal = target.mechanism.label, target.what, goal_words(target.goal, k)
    if target.reason is not None:
        fails = "cannot answer" if target.searched else "was not searched"
        return f"{label} {fails}: {target.reason}."
    sure = f"{per_cent(numeral(100 * target.confidence, 6))} confidence"
    if not target.monotone:
        return (
            f"{label}: the measure does not rise or fall steadily with {what}, so no single "
            f"least value exists {goal}."
        )
    if target.never:
        nothing = "no number of people up to" if what == "n" else "no epsilon up to"
        words = f"With {label}, {nothing} {thousands(target.last)} is enough {goal} ({sure})"
    elif target.high is None:
        over = f" It lies above {_amount(target.low, what)}." if target.low is not None else ""
        return f"{label}: no value in these simulated releases is enough {goal}.{over}"
    elif target.low is None:
        words = f"{label} needs {_amount(target.high, what, Kind.UPPER_BOUND)} {goal} ({sure})"
    else:
        unit = "" if what == "n" else "epsilon "
        amount = unit + range_words(target.low, target.high, what)
        words = f"{label} needs {amount}, {goal} ({sure})"
    words += "."
    if target.status is not None and target.status.verdict.fails:
        words += f" This answer does not count: {target.status.words}."
    return words


def best_of(predictions: Sequence[Predicted], *, pure: bool = False) -> Predicted | None:
    """Return the least answer at which a claim holds, or None."""
    good = [
        one
        for one in predictions
        if one.good
        and math.isfinite(one.least)
        and (not pure or one.mechanism.info.guarantee == "pure")
    ]
    return min(good, key=Predicted.order, default=None)


def least_headline(predictions: Sequence[Predicted], goal: Goal, what: str) -> str:
    """Return the least epsilon, or number of people, for a goal: with a delta and without."""
    share = goal.value if goal.recovery is None else goal.recovery
    recovery = f"{per_cent(numeral(100 * share, 4))} of the structure"
    best, pure = best_of(predictions), best_of(predictions, pure=True)
    if best is None:
        return f"No mechanism shown keeps {recovery}"
    text = f"With the mechanisms shown, keeping {recovery} needs about {_bare(best.least, what)}"
    text = f"{text} people" if what == "n" else text.replace("about", "about epsilon")
    if pure is None or pure is best:
        return text
    return f"{text}, or {_bare(pure.least, what)} with no delta"


def least_lead(predictions: Sequence[Predicted]) -> str:
    """Return which mechanism needs least, with a delta and without a delta."""
    question = "How much accuracy does each epsilon leave?"
    best, pure = best_of(predictions), best_of(predictions, pure=True)
    if best is None:
        return question
    more = "" if pure is None or pure is best else f"; with no delta **{pure.mechanism.label}**"
    return f"{question} **{best.mechanism.label}** needs the least{more}."


def _bare(value: float, what: str) -> str:
    # Round up, because a smaller value would not be enough.
    return thousands(math.ceil(value)) if what == "n" else numeral(towards(value, 2, 1), 2)


def least_html(predictions: Sequence[Predicted], what: str) -> str:
    """Return one row for each answer, with a mark on a logarithmic axis and its name beside it."""
    ran = [one for one in predictions if one.value is not None]
    ends = [math.log10(one.least) for one in ran if math.isfinite(one.least)] or [0.0]
    low, high = math.floor(min(ends)), math.floor(max(ends)) + 1
    rows = []
    for one in sorted(ran, key=Predicted.order):
        label = escape(one.mechanism.label)
        if not math.isfinite(one.least):
            rows.append(f"<div><span>{label}: no {NOUNS[what]} is enough</span></div>")
            continue
        at = 60 * (math.log10(one.least) - low) / (high - low)
        fails = one.status is not None and one.status.verdict.fails
        kind = "no" if fails else "pure" if one.mechanism.info.guarantee == "pure" else "delta"
        text = f"<b>{_bare(one.least, what)}</b> {label}"
        text += f", not counted: {one.status.words}" if fails and one.status is not None else ""
        rows.append(
            f'<div class="dp-{kind}" style="--at:{round(at, 1)}%"><i></i>'
            f'<span class="at">{text}</span></div>'
        )
    silent = [one.mechanism.label for one in predictions if one.value is None]
    if silent:
        rows.append(f"<div><span>No prediction: {escape(', '.join(silent))}.</span></div>")
    return f'{_LEAST}<div class="dp-least">{"".join(rows)}</div>'


NOUNS = {"epsilon": "epsilon", "n": "number of people"}
_LEAST = """<style>
.dp-least { font-size: 15px; max-width: 70rem; }
.dp-least > div { position: relative; min-height: 27px; display: flex; align-items: center; }
.dp-least > div[style]::before { content: ""; position: absolute; top: 50%; left: 0;
  width: calc(var(--at) - 9px); border-top: 1px solid #8a93a055; }
.dp-least i { position: absolute; left: var(--at); width: 0; height: 0; margin-left: -7px;
  border: 7px solid #0000; border-top: 0; border-bottom: 13px solid var(--c); }
.dp-least .at { position: absolute; left: calc(var(--at) + 13px); white-space: nowrap; }
.dp-delta { --c: #2f74b5; } .dp-pure { --c: #2a8a7e; } .dp-no { --c: #8a93a0; }
@media (max-width: 640px) { .dp-least .at { white-space: normal; position: relative; left: 0;
  padding-top: 18px; } .dp-least i { top: 3px; }
  .dp-least > div[style]::before { top: 10px; } }
</style>"""
