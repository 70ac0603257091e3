"""The question `verify`: whether a card, its release and its ledger fit together."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.core.errors import DpvizError
from dpviz.releasing.ledger import Ledger, ledger_at
from dpviz.releasing.outputs import read_document, read_release
from dpviz.releasing.verifying import verify as fits
from dpviz.report.privacy_card import CARD_FORMAT, PLAN, RELEASED
from dpviz.studies import Answer
from dpviz.studies.card import CardOptions, digest_of, from_release
from dpviz.studies.options import asks

_PEOPLE = ("title", "purpose", "recipients", "controller")
# Entries that do not follow from the release alone, or are looked at one by one: when and by which
# version the card was made, who confirmed what, the counts of the file copy, the ledger's limit.
_OWN = {
    "made", "copy", "withheld", "data", "assumptions", "unconfirmed", "ledger", "versions",
    "release", "signatures",
}  # fmt: skip


_BEFORE = {"status": RELEASED, "by": ""}
"""Entries that the first cards did not have."""


class Verified(Answer):
    """What does not fit; nothing, if all does.

    Attributes
    ----------
    problems : list of str
        One sentence each.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems

    def summary(self) -> str:
        """Return yes, or what does not fit."""
        return "\n".join(self.problems) or "The card, its release and its ledger fit together."

    def table(self) -> pd.DataFrame:
        """Return a row for each problem."""
        return pd.DataFrame({"problem": self.problems})

    def data(self) -> dict[str, Any]:
        """Return whether all fits, and what does not."""
        return {"fits": not self.problems, "problems": self.problems}

    @property
    def status(self) -> int:
        """Exit status of the command: 1 where something does not fit."""
        return int(bool(self.problems))


@asks("check a privacy card against its release and its ledger")
def verify(
    card: str | PathLike[str],
    release: str | PathLike[str],
    ledger: str | PathLike[str],
) -> Verified:
    """Return what does not fit between a card, a release and a ledger.

    Parameters
    ----------
    card, release, ledger : path
        Their files.

    Returns
    -------
    Verified
        Its ``problems`` are empty where all fits.

    Raises
    ------
    DpvizError
        If the card is none.

    See Also
    --------
    card : Makes the card of a release.

    Notes
    -----
    Everything on the card but what people said of the release is made again from the release and
    compared; the release is held against its line of the ledger, and the ledger against its own
    digests and all that lies beside it. Digests are no signatures: whoever may write all three
    files can make them fit.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book, out, filed = (f"{folder}/{name}" for name in ("book.jsonl", "out", "card.json"))
    ...     paid = dpviz.ledger(book, limit=(3, 1e-5))
    ...     made = dpviz.release("digits", ledger=book, out=out, row_bound=60, delta=1e-6)
    ...     with open(filed, "w") as file:
    ...         print(dpviz.card(out, ledger=book).to_json(), file=file)
    ...     found = dpviz.verify(filed, out, book)
    >>> found.problems
    []
    """
    return Verified(_problems(Path(card), Path(release), ledger_at(fspath(ledger))))


def _problems(card: Path, release: Path, ledger: Ledger) -> list[str]:
    found = _BEFORE | dict(read_document(card, "card", CARD_FORMAT))
    # a plan looks like a card, and must never pass for one
    if found["status"] == PLAN:
        return [f"{card.name} is a PLAN: nothing was released under it."]
    try:
        made = read_release(release)
        fresh = from_release(
            # what only people know is taken from the card: of the rest a card is made anew and
            # compared
            made,
            release,
            CardOptions(**{name: found.get(name, "") for name in _PEOPLE}),
        )
        digest = digest_of(release)
    except DpvizError as error:
        return [str(error)]
    problems = []
    said = found.get("release")
    if not isinstance(said, Mapping) or said.get("sha256") != digest:
        problems.append(f"{release.name} is not the file that {card.name} is about: it differs.")
    # of another file everything differs, and the first sentence says it
    elif wrong := _differing(found, fresh):
        problems.append(f"{card.name} says something else than its release: {', '.join(wrong)}.")
    problems += _of_ledger(found, fresh, ledger, card.name)
    return problems + fits(ledger, [release])


def _differing(found: Mapping[str, Any], fresh: Mapping[str, Any]) -> list[str]:
    """Return the entries of a card that are not what its release makes them."""
    checked = sorted({*fresh, *found} - _OWN)
    wrong = [name for name in checked if found.get(name) != fresh.get(name)]
    listed = found.get("assumptions")
    rows = listed if isinstance(listed, list) else [listed]
    what = [one.get("what") if isinstance(one, Mapping) else one for one in rows]
    if what != [one["what"] for one in fresh["assumptions"]]:
        wrong.append("assumptions")
    return wrong


def _of_ledger(
    found: Mapping[str, Any], fresh: Mapping[str, Any], ledger: Ledger, name: str
) -> list[str]:
    """Return what a card says of the ledger that is not so."""
    said, paid = found.get("ledger"), fresh["ledger"]
    if not isinstance(said, Mapping) or paid is None:
        return [] if said is None and paid is None else [f"{name} names no ledger, or another."]
    wrong = [key for key in paid if said.get(key) != paid[key]]
    try:
        contents = ledger.read_alone()
    except DpvizError:
        return []  # said by what looks at the ledger
    limit = {"epsilon": contents.limit.epsilon, "delta": contents.limit.delta}
    # a card made without its ledger names no limit, which is no contradiction
    if said.get("limit", limit) != limit:
        wrong.append("limit")
    if said.get("account", contents.account) != contents.account:
        wrong.append("account")
    return [f"{name} says something else of its ledger: {', '.join(wrong)}."] if wrong else []
