"""Phrases that several pages share: percentages, budgets, durations, privacy accounting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import both_worlds, posterior_bound, worlds_at
from dpviz.core.metrics import Summary
from dpviz.core.number_text import decimals, numeral, per_cent, percent
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.core.quantity import Kind, Quantity
from dpviz.simulation.cells import Skipped

# Two means count as different if they are this many standard errors apart. A normal difference
# exceeds this by chance about once in 370 comparisons.
SEPARATED = 3.0

# These texts explain the marks that `dpviz.report.figures.theme` draws.
FAILS_THERE = "Dashed, open marks: the privacy claim fails at these points."


ASKED = {
    (Relation.REPLACE, Unit.ROW): "which of two values a row has",
    (Relation.REPLACE, Unit.PERSON): "which of two values a person's rows have",
    (Relation.ZERO_OUT, Unit.ROW): "whether a row is used",
    (Relation.ZERO_OUT, Unit.PERSON): "whether a person is in the table",
}
"""Question of a guesser: which of two neighbouring tables was used? All other rows are known."""

BELIEVED = {
    (Relation.REPLACE, Unit.ROW): "that a row has the suspected value",
    (Relation.REPLACE, Unit.PERSON): "that a person's rows have the suspected values",
    (Relation.ZERO_OUT, Unit.ROW): "that a row is used",
    (Relation.ZERO_OUT, Unit.PERSON): "that a person is in the table",
}
"""The suspicion that a release makes more likely or less likely."""


def risk_words(mechanism: str, loss: Spent, epsilon: float, relation: Relation, unit: Unit) -> str:
    """Return how many guesses are right, and the limit for any release at the epsilon.

    Parameters
    ----------
    mechanism : str
        Label of the mechanism, or another source of the release.
    loss : Spent
    epsilon : float
        Claimed.
    relation : Relation
    unit : Unit
    """
    guesses = guesses_words(both_worlds(loss))
    start = f"of 100 guesses {ASKED[relation, unit]}, after {mechanism}: "
    most = guesses_words(worlds_at(epsilon))
    if guesses == most:
        return f"{start}{guesses}, whatever the mechanism"
    # This limit holds for every release, so it must not be used to rank mechanisms.
    anything = f"after any release at ε {numeral(epsilon, 3)} without δ: {most}, possibly far fewer"
    return f"{start}{guesses}; {anything}"


def guess_sentence(guesses: str, relation: Relation, unit: Unit) -> str:
    """Return one sentence on a guesser's gain from a release, compared with tossing a coin.

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
    """Return how many of 100 guesses are right; for a limit, leave out the wrong guesses."""
    text = f"{right.kind.prefix}{right.of_hundred()} right"
    return text if right.kind.side else f"{text}, {right.rest.of_hundred()} wrong"


def belief_words(prior: float, loss: Spent, relation: Relation, unit: Unit) -> str:
    """Return how far a release can raise a belief, except for the cases that delta allows."""
    before = per_cent("100") if prior == 1 else belief(prior)
    after = Quantity(posterior_bound(prior, loss.epsilon), Kind.UPPER_BOUND).percent()
    return f"a belief of {before} {BELIEVED[relation, unit]} becomes {after}"


def belief(share: float) -> str:
    """Return a belief in per cent, never rounded to certainty."""
    return Quantity(share, Kind.MEASUREMENT).percent()


def capital(text: str) -> str:
    """Return a phrase with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def bias_note(d: int) -> str:
    """Return the caveat on predictions at small d for the end of a sentence, or an empty text."""
    return "; with fewer than 10 features, predictions are too low by up to 0.045" if d < 10 else ""


def budget_words(budget: Budget) -> str:
    """Return a budget in words, with delta only if it is above 0."""
    if budget.delta == 0:
        return f"epsilon {numeral(budget.epsilon, 4)}"
    return f"epsilon {numeral(budget.epsilon, 4)} and delta {numeral(budget.delta)}"


def separated(first: Summary, second: Summary) -> bool:
    """Return whether the simulated releases distinguish two means."""
    # One release has no standard error, so it cannot show that means differ.
    if math.isnan(first.se) or math.isnan(second.se):
        return False
    return abs(first.mean - second.mean) > SEPARATED * math.hypot(first.se, second.se)


def account_words(budget: Budget | None, loss: Spent | None) -> str:
    """Return a mechanism's claimed and actual privacy loss as one phrase."""
    if budget is None:
        return "no claim"
    claim = f"claims {budget_words(budget)}"
    if loss is None:
        return f"{claim}; no epsilon is known for the actual privacy loss"
    words = f"{claim}; actual privacy loss {loss.cost.words(3, 'epsilon')}"
    if loss.delta_at_epsilon is not None and budget.delta > 0:
        truth = replace(loss.cost, value=loss.delta_at_epsilon)
        actual = truth.words(2, "delta") if truth.value > 0 else "delta below 1e-300"
        words += f", or {actual} at the claimed epsilon"
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
    words = list(items)
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def by_reason(skipped: Iterable[Skipped]) -> dict[str, list[str]]:
    """Return the variants that could not run, grouped by the reason."""
    names: dict[str, list[str]] = {}
    for item in skipped:
        names.setdefault(item.reason, []).append(item.mechanism)
    return names


def kept_words(share: float, most: str = "") -> str:
    """Return a recovery in words; what a random subspace recovers too is nothing."""
    return "nothing" if share <= 0 else most + percent(share)


def left_out(skipped: Iterable[Skipped]) -> list[str]:
    """Return which variants could not run, with a sentence for each reason."""
    return [
        f"{join_words(names)} {'was' if len(names) == 1 else 'were'} left out: {reason}."
        for reason, names in by_reason(skipped).items()
    ]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return lines of text: rows of cells under a header, in columns of equal width."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    )
