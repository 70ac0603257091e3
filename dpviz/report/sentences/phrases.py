"""Phrases that several pages share: percentages, budgets, durations, accounts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import both_worlds, posterior_bound, worlds_at
from dpviz.core.metrics import Summary
from dpviz.core.number_text import decimals, numeral, per_cent
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.core.quantity import Kind, Quantity
from dpviz.simulation.cells import Skipped

# Two means count as different when they are this many standard errors apart;
# a normal difference exceeds that by chance about once in 370 comparisons.
SEPARATED = 3.0

# What the marks of `dpviz.report.figures.theme` say.
FAILS_THERE = "Dashed, open marks: the claim fails there."


ASKED = {
    (Relation.REPLACE, Unit.ROW): "which of two values a row has",
    (Relation.REPLACE, Unit.PERSON): "which of two values a person's rows have",
    (Relation.ZERO_OUT, Unit.ROW): "whether a row counts",
    (Relation.ZERO_OUT, Unit.PERSON): "who is in",
}
"""What is guessed: by which of two neighbours a release was made, whose other rows are known."""

BELIEVED = {
    (Relation.REPLACE, Unit.ROW): "that a row has the suspected value",
    (Relation.REPLACE, Unit.PERSON): "that a person's rows have the suspected values",
    (Relation.ZERO_OUT, Unit.ROW): "that a row counts",
    (Relation.ZERO_OUT, Unit.PERSON): "that a person is in",
}
"""What a guesser is then more or less sure of."""


def risk_words(mechanism: str, spent: Spent, epsilon: float, relation: Relation, unit: Unit) -> str:
    """Return how many guesses are right, and what anything that claims this epsilon keeps to.

    Parameters
    ----------
    mechanism : str
        Its label, or what else a release is by.
    spent : Spent
    epsilon : float
        Claimed.
    relation : Relation
    unit : Unit
    """
    guesses = guesses_words(both_worlds(spent))
    said = f"of 100 guesses {ASKED[relation, unit]}, after {mechanism}: "
    most = guesses_words(worlds_at(epsilon))
    if guesses == most:
        return f"{said}{guesses}, whatever the mechanism"
    # a limit beside what another release gives away: the two rank nothing
    anything = f"after anything at ε {numeral(epsilon, 3)} without δ {most}, possibly far fewer"
    return f"{said}{guesses}; {anything}"


def guess_sentence(guesses: str, relation: Relation, unit: Unit) -> str:
    """Return one sentence of what a guesser gains from a release, beside a coin.

    Parameters
    ----------
    guesses : str
        `guesses_words`.
    relation : Relation
    unit : Unit
    """
    right = guesses.partition(" right")[0]
    return f"A guess {ASKED[relation, unit]} is then right {right} times in 100 (a coin: 50)."


def guesses_words(right: Quantity) -> str:
    """Return how many of 100 guesses are right; of a limit what is wrong is not said."""
    said = f"{right.kind.prefix}{right.of_hundred()} right"
    return said if right.kind.side else f"{said}, {right.rest.of_hundred()} wrong"


def belief_words(prior: float, spent: Spent, relation: Relation, unit: Unit) -> str:
    """Return what a release can make of a belief, but for what delta allows."""
    before = per_cent("100") if prior == 1 else belief(prior)
    after = Quantity(posterior_bound(prior, spent.epsilon), Kind.UPPER_BOUND).percent()
    return f"a belief of {before} {BELIEVED[relation, unit]} becomes {after}"


def belief(share: float) -> str:
    """Return a belief in per cent, never rounded to certainty."""
    return Quantity(share, Kind.MEASUREMENT).percent()


def capital(text: str) -> str:
    """Return a phrase with a capital letter, as a sentence begins."""
    return text[:1].upper() + text[1:]


def bias_note(d: int) -> str:
    """Return what a reader must know of a prediction at small d, to follow it; else nothing."""
    return "; below d = 10 predictions are low, by up to .045" if d < 10 else ""


def budget_words(budget: Budget) -> str:
    """Return a budget in words, with delta only where it is above 0."""
    if budget.delta == 0:
        return f"epsilon {numeral(budget.epsilon, 4)}"
    return f"epsilon {numeral(budget.epsilon, 4)} and delta {numeral(budget.delta)}"


def separated(first: Summary, second: Summary) -> bool:
    """Return whether the draws tell two means apart."""
    # one draw has no error, so nothing is told apart by it
    if math.isnan(first.se) or math.isnan(second.se):
        return False
    return abs(first.mean - second.mean) > SEPARATED * math.hypot(first.se, second.se)


def account_words(claimed: Budget | None, spent: Spent | None) -> str:
    """Return what a mechanism claims and what it spends, as one phrase."""
    if claimed is None:
        return "no claim"
    claim = f"claims {budget_words(claimed)}"
    if spent is None:
        return f"{claim}; no epsilon is known for what it spends"
    words = f"{claim}; spends {spent.cost.words(3, 'epsilon')}"
    if spent.delta_at_epsilon is not None and claimed.delta > 0:
        truth = replace(spent.cost, value=spent.delta_at_epsilon)
        reached = truth.words(2, "delta") if truth.value > 0 else "delta below 1e-300"
        words += f", or {reached} at the claimed epsilon"
    return words


def duration(seconds: float) -> str:
    """Return a length of time in words."""
    if seconds < 90:
        return f"{decimals(seconds, 0)} s"
    return (
        f"{decimals(seconds / 60, 0)} min" if seconds < 5400 else f"{decimals(seconds / 3600, 1)} h"
    )


def join_words(items: Iterable[str]) -> str:
    """Return items as an English list: a, b and c."""
    listed = list(items)
    if len(listed) < 2:
        return "".join(listed)
    return ", ".join(listed[:-1]) + " and " + listed[-1]


def by_reason(skipped: Iterable[Skipped]) -> dict[str, list[str]]:
    """Return the variants that could not run, by the reason."""
    found: dict[str, list[str]] = {}
    for item in skipped:
        found.setdefault(item.reason, []).append(item.mechanism)
    return found


def left_out(skipped: Iterable[Skipped]) -> list[str]:
    """Return which variants could not run, a sentence for each reason."""
    return [
        f"{join_words(names)} {'was' if len(names) == 1 else 'were'} left out: {reason}."
        for reason, names in by_reason(skipped).items()
    ]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells under a header, in columns of equal width, as lines of text."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    )
