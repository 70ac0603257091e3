"""The question `verify`: whether a card, its release and its ledger fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.core.errors import DpvizError
from dpviz.releasing.ledger import CARD, PAGE, Ledger, ledger_at, sha256
from dpviz.releasing.outputs import read_document, read_release
from dpviz.releasing.verifying import verify as fits
from dpviz.report.privacy_card import CARD_FORMAT, PLAN, sealed
from dpviz.studies import Answer
from dpviz.studies.card import CardOptions, from_release
from dpviz.studies.options import asks

_PEOPLE = ("title", "purpose", "recipients", "controller")
# Entries that do not follow from the release alone, or are looked at one by one: when and by which
# version the card was made, who confirmed what, the counts of the file copy, the ledger's limit.
_OWN = {
    "made", "copy", "withheld", "data", "assumptions", "unconfirmed", "ledger", "versions",
    "release", "signatures",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Verified(Answer):
    """What does not fit; nothing, if all does.

    Attributes
    ----------
    problems : list of str
        One sentence each.
    """

    fits: bool
    problems: list[str]

    def summary(self) -> str:
        """Return yes, or what does not fit."""
        return "\n".join(self.problems) or "The card, its release and its ledger fit together."

    def table(self) -> pd.DataFrame:
        """Return a row for each problem."""
        return pd.DataFrame({"problem": self.problems})

    @property
    def status(self) -> int:
        """Exit status of the command: 1 where something does not fit."""
        return int(bool(self.problems))


@asks("check a privacy card against its release and its ledger", command="release verify")
def verify(
    card: str | PathLike[str],
    release: str | PathLike[str],
    ledger: str | PathLike[str],
) -> Verified:
    """Return what does not fit between a card, a release and a ledger.

    Parameters
    ----------
    card, release, ledger : path
        Their files. The card's may be its page; a page beside a card is looked at with it.

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
    Release, card and page must be, to the byte, files whose SHA-256 digests the ledger has of this
    spend, and the page must carry its own. Everything on the card but what people said of the
    release is made again from the release and compared as well; the release is held against its
    line of the ledger, and the ledger against its own digests and all that lies beside it. Digests
    are no signatures: whoever may write all three files can make them fit.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book, out, filed = (f"{folder}/{name}" for name in ("book.jsonl", "out", "card.json"))
    ...     paid = dpviz.ledger(book, limit=(3, 1e-5))
    ...     made = dpviz.release("digits", ledger=book, out=out, row_bound=60, delta=1e-6)
    ...     dpviz.card(out, ledger=book).write_card(filed)
    ...     found = dpviz.verify(filed, out, book)
    >>> found.problems
    []
    """
    found = _problems(Path(card), Path(release), ledger_at(fspath(ledger)))
    return Verified(not found, found)


def _problems(card: Path, release: Path, ledger: Ledger) -> list[str]:
    try:
        is_page = card.read_bytes()[:15].lower() == b"<!doctype html>"
    except OSError as error:
        raise DpvizError(f"{card.name} cannot be read: {error.strerror}.") from None
    found = {} if is_page else read_document(card, "card", CARD_FORMAT)
    # a plan looks like a card, and must never pass for one
    if found.get("status") == PLAN:
        return [f"{card.name} is a PLAN: nothing was released under it."]
    # the page lies beside its card where both were written, and is looked at with it
    filed = {card: PAGE} if is_page else {card: CARD, card.with_suffix(".html"): PAGE}
    contents = {path: (path.read_bytes(), what) for path, what in filed.items() if path.is_file()}
    problems = [
        f"{path.name} was changed: it carries the digest of another page."
        for path, (content, what) in contents.items()
        if what == PAGE and not sealed(content)
    ]
    # of a release that is not the one that was written nothing is made anew
    if wrong := fits(ledger, [release], whole=False):
        return problems + wrong
    made, book = read_release(release), ledger.read_alone()
    for path, (content, what) in contents.items():
        if sha256(content) not in book.written(made["ledger"]["spends"], what):
            problems.append(
                f"{ledger.path.name} has no line for {path.name}: it was changed, is of another "
                "release, or was written without the ledger."
            )
    return problems if is_page else problems + _of_card(found, card.name, made, release, ledger)


def _of_card(
    found: Mapping[str, Any], name: str, made: Mapping[str, Any], release: Path, ledger: Ledger
) -> list[str]:
    """Return what a card says that its release and its ledger do not."""
    said = found.get("release")
    # of another file everything differs, and one sentence says it
    if not isinstance(said, Mapping) or said.get("sha256") != sha256(release.read_bytes()):
        return [f"{release.name} is not the file that {name} is about: it differs."]
    try:
        # what only people know is taken from the card: of the rest a card is made anew and compared
        people = CardOptions(**{key: found.get(key, "") for key in _PEOPLE})
        fresh = from_release(made, release, people)
    except DpvizError as error:
        return [str(error)]
    wrong = _differing(found, fresh)
    problems = [f"{name} says something else than its release: {', '.join(wrong)}."] * bool(wrong)
    return problems + _of_ledger(found, fresh, ledger, name)


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
    contents = ledger.read_alone()
    limit = {"epsilon": contents.limit.epsilon, "delta": contents.limit.delta}
    # a card made without its ledger names no limit, which is no contradiction
    if said.get("limit", limit) != limit:
        wrong.append("limit")
    if said.get("account", contents.account) != contents.account:
        wrong.append("account")
    return [f"{name} says something else of its ledger: {', '.join(wrong)}."] if wrong else []
