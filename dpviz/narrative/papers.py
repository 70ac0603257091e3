"""Sentences of the Papers page."""

from __future__ import annotations

from collections.abc import Iterable

from dpviz.reproduce import Claim, Findings, counted
from dpviz.reproduce.solve import BY_ROWS, HIGH, IMPLIED, LOW, VALUE


def reproduction_sentence(found: Findings) -> str:
    """Return how many of a paper's printed claims were met."""
    total = len(found.claims)
    if not total:
        return "What is measured here the paper does not print: it answers no claim."
    said = _counts(found.claims)
    subject = "the 1 printed claim" if total == 1 else f"{total} printed claims"
    return f"Of {subject}, {said}."


def implied(found: Findings) -> list[str]:
    """Return for each row that is not reproduced which single change would yield it.

    The first line sums the rows up; what was run is not known.
    """
    points = found.points
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


def _counts(claims: Iterable[Claim]) -> str:
    found = counted(claims).items()
    return ", ".join(f"**{count} {answer}**" for answer, count in found)
