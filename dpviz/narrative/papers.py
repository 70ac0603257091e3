"""Sentences of the Papers page."""

from __future__ import annotations

from dpviz.reproduce import Answer, Findings, counted


def reproduction_sentence(found: Findings) -> str:
    """Return how many of a paper's printed claims were met."""
    counts = counted(found.claims)
    total = len(found.claims)
    if not total:
        return "What is measured here the paper does not print: it answers no claim."
    said = [f"**{count} {_WORDS[answer]}**" for answer, count in counts.items()]
    subject = "the 1 printed claim" if total == 1 else f"{total} printed claims"
    return f"Of {subject}, {', '.join(said)}."


_WORDS = {
    Answer.REPRODUCED: "reproduced",
    Answer.BOUND: "holding as a bound",
    Answer.ORDER: "found in order only",
    Answer.CANNOT_TELL: "not to be told",
    Answer.NOT_REPRODUCED: "not reproduced",
    Answer.NOT_HERE: "not reproducible here",
    Answer.PENDING: "not yet measured",
}
