"""Phrases that several pages share: percentages, budgets, durations, accounts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import both_worlds, posterior_bound, worlds_at
from dpviz.core.metrics import Summary
from dpviz.core.number_text import decimals, numeral, of_hundred, per_cent, towards
from dpviz.core.problem import (
    Budget,
)
from dpviz.simulation.cells import Skipped

# Two means count as different when they are this many standard errors apart;
# a normal difference exceeds that by chance about once in 370 comparisons.
SEPARATED = 3.0

# What the marks of `dpviz.report.figures.theme` say.
FAILS_THERE = "Dashed, open marks: the claim fails there."


RISK = "of 100 guesses who is in, after {mechanism}: {within} right, {out} wrong"
"""The one phrase for what a release gives away about one person; a browser fills it alike."""


def risk_words(mechanism: str, spent: Spent, epsilon: float) -> str:
    """Return `RISK` with its numbers, and what anything that claims this epsilon keeps to.

    Parameters
    ----------
    mechanism : str
        Its label, or what else a release is by.
    spent : Spent
    epsilon : float
        Claimed.
    """
    worlds = both_worlds(spent)
    return risk_of(mechanism, (of_hundred(worlds.out), of_hundred(worlds.within)), epsilon)


def risk_of(mechanism: str, risk: tuple[str, str], epsilon: float) -> str:
    """Return `risk_words` of false alarms and hits that are written already."""
    out, within = risk
    most = of_hundred(worlds_at(epsilon).within)
    # where the whole of what its epsilon allows is taken, the limit is said already
    limit = f"; after anything at ε {numeral(epsilon, 3)} without δ at most {most} right"
    return RISK.format(mechanism=mechanism, within=within, out=out) + limit * (most != within)


def belief_words(prior: float, spent: Spent) -> str:
    """Return what a release can make of a belief, but for what delta allows."""
    before = per_cent("100") if prior == 1 else belief(prior)
    # a limit is rounded to the unkind side, as on a card
    after = belief(posterior_bound(prior, spent.epsilon), 1)
    return f"a belief of {before} that she is in becomes at most {after}"


def belief(share: float, side: int = 0) -> str:
    """Return a belief in per cent, never rounded to certainty; with a side, towards it."""
    if share > 0.999:
        return per_cent("more than 99.9")
    if 0 < share < 0.001:
        return per_cent("less than 0.1")
    digits = 2 if share < 0.1 else 3
    return per_cent(numeral(100 * (towards(share, digits, side) if side else share), digits))


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
    most = "" if spent.exact else "at most "
    words = f"{claim}; spends {most}epsilon {numeral(spent.epsilon, 3)}"
    if spent.delta_at_epsilon is not None and claimed.delta > 0:
        truth = spent.delta_at_epsilon
        reached = f"{most}delta {numeral(truth)}" if truth > 0 else "delta below 1e-300"
        words += f", or {reached} at the claimed epsilon"
    return words


def time_words(done: int, total: int, left: float | None) -> str:
    """Return how far a run is and how long it will take."""
    so_far = f"{done} of {total} parts"
    return so_far if left is None else f"{so_far}, about {duration(left)} left"


def since_words(seconds: float) -> str:
    """Return how long the next piece of a run has been under way, once that is worth a word."""
    return "" if seconds < 3 else f", the next for {duration(math.floor(seconds))}"


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
