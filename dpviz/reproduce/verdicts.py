"""One answer for every claim that a paper prints, on its fairest reading.

A claim is a number, an order or a theorem of the paper. Its answer is drawn from
the lines of its experiment; lines that show another reading, or what was added
here, are no claims and are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpviz.reproduce.lines import Agreement, Line
from dpviz.reproduce.said import Answer as Answer


@dataclass(frozen=True)
class Claim:
    """One printed claim and its answer.

    Attributes
    ----------
    item : str
        The claim in our words.
    answer : Answer
    reason : str
        One sentence or two; never empty.
    stated, measured : str
        As text; empty where there is none.
    place : str
        Where it is printed; empty for the place of its experiment.
    """

    item: str
    answer: Answer
    reason: str
    stated: str = ""
    measured: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        if not self.reason.endswith("."):
            raise ValueError(f"{self.item}: an answer needs a sentence")


NO_DATA = "Its data is not at hand."
"""The reason where nothing could be looked at."""

_TOLD = (Agreement.AGREES, Agreement.DIFFERS)
_SEEN = (*_TOLD, Agreement.CANNOT_TELL)


def panels(lines: Iterable[Line]) -> str:
    """Return the panels of some lines as text, each once."""
    names = list(dict.fromkeys(line.panel for line in lines))
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def judged(
    item: str,
    lines: Sequence[Line],
    *,
    place: str = "",
    stated: str = "",
    held: Answer = Answer.REPRODUCED,
    failed: Answer = Answer.NOT_REPRODUCED,
    because: str = "",
    why: str = "",
    every: bool = False,
) -> Claim:
    """Return the answer that the lines of one claim give together.

    One line that speaks against the claim fails it, one that speaks for it and
    none against lets it hold, and where none is decided it cannot be told.

    Parameters
    ----------
    item : str
    lines : sequence of Line
        One for each data set or setting in which the claim was looked at.
    place, stated : str
        As in `Claim`; ``stated`` defaults to what the lines report.
    held, failed : Answer
        What to say in each case.
    because : str
        The reason where it holds; default the notes of the lines.
    why : str
        The reason where it fails; default the note of the first that fails.
    every : bool
        Whether the claim says all of its lines at once, so that one that cannot
        be told leaves the whole untold.
    """
    stated = stated or next((line.reported for line in lines if line.reported), "")
    seen = [line for line in lines if line.agreement in _SEEN]
    absent = [line for line in lines if line.agreement is Agreement.ABSENT]
    more = f" Without measurement: {panels(absent)}." if absent else ""
    if not seen:
        return Claim(item, Answer.NOT_HERE, NO_DATA, stated, "", place)
    measured = _measured(seen)
    against = [line for line in seen if line.agreement is Agreement.DIFFERS]
    for_it = [line for line in seen if line.agreement is Agreement.AGREES]
    untold = [line for line in seen if line.agreement is Agreement.CANNOT_TELL]
    if against:
        reason = why or against[0].note
        if for_it and not {line.panel for line in for_it} & {line.panel for line in against}:
            reason = f"So on {panels(for_it)}, but not on {panels(against)}. {reason}"
        return Claim(item, failed, reason + more, stated, measured, place)
    if for_it and not (every and untold):
        reason = because or " ".join(dict.fromkeys(line.note for line in for_it if line.note))
        reason = reason or f"On {panels(for_it)}."
        if untold and not because:
            where = panels(untold)
            if {line.panel for line in untold} <= {line.panel for line in for_it}:
                where = ", ".join(f"{line.panel} ({line.item})" for line in untold)
            reason += f" Cannot tell on {where}."
        return Claim(item, held, reason + more, stated, measured, place)
    reason = why or untold[0].note
    return Claim(item, Answer.FEW_DRAWS, reason + more, stated, measured, place)


def _measured(lines: Sequence[Line]) -> str:
    """Return what was measured, by panel where there are several."""
    if len({line.panel for line in lines}) == 1:
        return "; ".join(dict.fromkeys(line.measured for line in lines))
    return "; ".join(f"{line.panel}: {line.measured}" for line in lines)


def of_item(lines: Iterable[Line], item: str | Callable[[str], bool]) -> list[Line]:
    """Return the lines whose item is this one, or is one that a function accepts.

    Raises
    ------
    LookupError
        If there is none: a line that was renamed must not drop a claim.
    """
    accepts = (lambda text: text == item) if isinstance(item, str) else item
    found = [line for line in lines if accepts(line.item)]
    if not found:
        raise LookupError(f"no line for {item}")
    return found


def counted(claims: Iterable[Claim]) -> dict[Answer, int]:
    """Return how many claims have each answer, in the order of `Answer`."""
    given = [claim.answer for claim in claims]
    return {answer: given.count(answer) for answer in Answer if answer in given}
