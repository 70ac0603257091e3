"""Sentences of the Papers page."""

from __future__ import annotations

from collections import Counter

from dpviz.reproduce import Agreement, Reproduction


def reproduction_sentence(found: Reproduction) -> str:
    """Return how many of a paper's numbers and statements were met."""
    counts = Counter(line.agreement for line in found.lines)
    told = sum(counts.values()) - counts[Agreement.ADDED]
    said = [f"**{counts[Agreement.AGREES]} agree**", f"**{counts[Agreement.DIFFERS]} differ**"]
    if counts[Agreement.ABSENT]:
        said.append(f"{counts[Agreement.ABSENT]} wait for data")
    if counts[Agreement.NOT_MEASURED]:
        said.append(f"{counts[Agreement.NOT_MEASURED]} cannot be redone from the paper")
    subject = "1 number or statement" if told == 1 else f"{told} numbers and statements"
    return f"Of {subject} in the paper, {', '.join(said[:-1])} and {said[-1]}."
