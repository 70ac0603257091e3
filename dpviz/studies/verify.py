"""The question `verify`: whether a privacy card, its release and its ledger match."""

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
# These entries do not follow from the release alone, or are checked separately: time and version of
# the card, who confirmed what, the counts of the internal copy, the ledger's limit.
_OWN = {
    "made", "copy", "withheld", "data", "assumptions", "unconfirmed", "ledger", "versions",
    "release", "signatures",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Verified(Answer):
    """Mismatches between a privacy card, its release and its ledger.

    Attributes
    ----------
    problems : list of str
        Problems, one sentence each.
    """

    fits: bool
    problems: list[str]

    def summary(self) -> str:
        """Return the statement that all files match, or the mismatches."""
        return "\n".join(self.problems) or "The card, its release and its ledger fit together."

    def table(self) -> pd.DataFrame:
        """Return a row for each problem."""
        return pd.DataFrame({"problem": self.problems})

    @property
    def status(self) -> int:
        """Exit status of the command: 1 if something does not match."""
        return int(bool(self.problems))


@asks("check a privacy card against its release and its ledger", command="release verify")
def verify(
    card: str | PathLike[str],
    release: str | PathLike[str],
    ledger: str | PathLike[str],
) -> Verified:
    """Return the mismatches between a privacy card, a release and a ledger.

    Parameters
    ----------
    card, release, ledger : path
        Paths of the files. ``card`` may be the card's page; a page beside it is checked too.

    Returns
    -------
    Verified
        Answer whose ``problems`` are empty if all files match.

    Raises
    ------
    DpvizError
        If the file is not a privacy card.

    See Also
    --------
    card : Makes the card of a release.

    Notes
    -----
    Release, card and page must match, to the byte, the SHA-256 digests that the ledger has for
    this entry, and the page must carry its own digest. Everything in the card except facts
    from people is computed again from the release and compared. The release is checked against its
    line in the ledger, and the ledger against its own digests and the files beside it. Digests are
    not signatures: anyone who may write all three files can make them match.

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
    problems = _problems(Path(card), Path(release), ledger_at(fspath(ledger)))
    return Verified(not problems, problems)


def _problems(card: Path, release: Path, ledger: Ledger) -> list[str]:
    try:
        is_page = card.read_bytes()[:15].lower() == b"<!doctype html>"
    except OSError as error:
        raise DpvizError(f"{card.name} cannot be read: {error.strerror}.") from None
    fields = {} if is_page else read_document(card, "card", CARD_FORMAT)
    # A plan looks like a privacy card, but it must never be accepted as a card.
    if fields.get("status") == PLAN:
        return [f"{card.name} is a PLAN: nothing was released under this plan."]
    # If the printable page lies beside its card, check both files.
    files = {card: PAGE} if is_page else {card: CARD, card.with_suffix(".html"): PAGE}
    contents = {path: (path.read_bytes(), what) for path, what in files.items() if path.is_file()}
    problems = [
        f"{path.name} was changed: the digest in the page belongs to a different page."
        for path, (content, what) in contents.items()
        if what == PAGE and not sealed(content)
    ]
    # If the release differs from the recorded file, compute nothing from it.
    if wrong := fits(ledger, [release], whole=False):
        return problems + wrong
    result, book = read_release(release), ledger.read_alone()
    for path, (content, what) in contents.items():
        if sha256(content) not in book.written(result["ledger"]["spends"], what):
            problems.append(
                f"{ledger.path.name} has no line for {path.name}. The card was changed, "
                "belongs to another release, or was written without the ledger."
            )
    return problems if is_page else problems + _of_card(fields, card.name, result, release, ledger)


def _of_card(
    fields: Mapping[str, Any], name: str, result: Mapping[str, Any], release: Path, ledger: Ledger
) -> list[str]:
    """Return the entries of a card that its release or its ledger contradicts."""
    entry = fields.get("release")
    # With a different release every entry would differ, so report only that the release is wrong.
    if not isinstance(entry, Mapping) or entry.get("sha256") != sha256(release.read_bytes()):
        return [f"{release.name} differs from the file that {name} describes."]
    try:
        # Take facts that only people know from the card. Compute and compare all others.
        people = CardOptions(**{key: fields.get(key, "") for key in _PEOPLE})
        fresh = from_release(result, release, people)
    except DpvizError as error:
        return [str(error)]
    wrong = _differing(fields, fresh)
    problems = [f"{name} contradicts its release: {', '.join(wrong)}."] * bool(wrong)
    return problems + _of_ledger(fields, fresh, ledger, name)


def _differing(fields: Mapping[str, Any], fresh: Mapping[str, Any]) -> list[str]:
    """Return the entries of a card that differ from those that its release implies."""
    keys = sorted({*fresh, *fields} - _OWN)
    wrong = [name for name in keys if fields.get(name) != fresh.get(name)]
    assumptions = fields.get("assumptions")
    rows = assumptions if isinstance(assumptions, list) else [assumptions]
    what = [one.get("what") if isinstance(one, Mapping) else one for one in rows]
    if what != [one["what"] for one in fresh["assumptions"]]:
        wrong.append("assumptions")
    return wrong


def _of_ledger(
    fields: Mapping[str, Any], fresh: Mapping[str, Any], ledger: Ledger, name: str
) -> list[str]:
    """Return the entries of a card that its ledger contradicts."""
    entry, state = fields.get("ledger"), fresh["ledger"]
    if not isinstance(entry, Mapping) or state is None:
        return [] if entry is None and state is None else [f"{name} does not refer to this ledger."]
    wrong = [key for key in state if entry.get(key) != state[key]]
    contents = ledger.read_alone()
    limit = {"epsilon": contents.limit.epsilon, "delta": contents.limit.delta}
    # A card made without its ledger names no limit, which is not a contradiction.
    if entry.get("limit", limit) != limit:
        wrong.append("limit")
    if entry.get("account", contents.account) != contents.account:
        wrong.append("account")
    return [f"{name} contradicts its ledger: {', '.join(wrong)}."] if wrong else []
