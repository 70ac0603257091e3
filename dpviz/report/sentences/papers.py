"""Sentences of the Papers page."""

from __future__ import annotations

from collections.abc import Iterable

from dpviz.papers.run import Findings
from dpviz.papers.said import Claim, counted


def reproduction_sentence(found: Findings) -> str:
    """Return how many of a paper's printed claims were met."""
    total = len(found.claims)
    if not total:
        return "What is measured here the paper does not print: it answers no claim."
    said = _counts(found.claims)
    subject = "the 1 printed claim" if total == 1 else f"{total} printed claims"
    return f"Of {subject}, {said}."


def _counts(claims: Iterable[Claim]) -> str:
    found = counted(claims).items()
    return ", ".join(f"**{count} {answer}**" for answer, count in found)
