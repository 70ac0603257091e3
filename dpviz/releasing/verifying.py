"""Whether a ledger and releases fit together: what was cut, restored from a copy, or mixed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpviz.core.errors import DpvizError
from dpviz.releasing.ledger import Contents, Ledger, LedgerError
from dpviz.releasing.making import digest
from dpviz.releasing.outputs import read_release
from dpviz.releasing.picture import differing

_CLOSE = 1e-9


@dataclass(frozen=True)
class _Seen:
    """What a release's file says of its ledger."""

    name: str
    ledger: str
    number: int
    head: str
    relation: str
    settings: str
    epsilon: float
    delta: float
    total: tuple[float, float]
    content: dict[str, Any]


def verify(ledger: Ledger, releases: Sequence[Path]) -> list[str]:
    """Return what does not match, one sentence each; nothing if all of it fits.

    Noticed are a damaged line, a ledger that is behind what was spent (cut, or an old copy), one
    that went on from an old copy (two branches), releases of other ledgers or relations, and a
    release that says something else than its line, than the copy kept beside the ledger, or of its
    picture than its public numbers make of it. Not noticed is what nobody kept: if the ledger,
    all that lies beside it and the newest releases go back together, nothing is left to tell.

    Parameters
    ----------
    ledger : Ledger
    releases : sequence of Path
        Files of releases; those kept beside the ledger are looked at in any case.
    """
    found: list[str] = []
    contents: Contents | None = None
    try:
        contents = ledger.read_alone()
        found += [f"{problem}." for problem in ledger.behind_head()]
    except LedgerError as error:
        found.append(str(error))
    seen: list[_Seen] = []
    # one that is kept and was handed over as well is looked at once
    given = {path.resolve(): path for path in [*ledger.kept().values(), *releases]}
    for path in given.values():
        try:
            seen.append(_read(path))
            found += _pictured(path)
        except DpvizError as error:
            found.append(str(error))
    fitting = []
    for one in seen:
        wrong = [] if contents is None else _against(one, contents, ledger.path.name)
        found += wrong
        fitting += [] if wrong else [one]
    found += _branches(seen) + _copies(fitting)
    # one fault may be seen from several files
    return list(dict.fromkeys(found))


def _pictured(path: Path) -> list[str]:
    """Return what the picture of a release says that does not follow from what was released."""
    release = read_release(path)
    if release.get("picture") is None:
        return []
    try:
        wrong = differing(release)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, DpvizError):
        wrong = ["all of it"]
    return [f"{path.name} says something else of its picture: {', '.join(wrong)}."] * bool(wrong)


def _against(one: _Seen, contents: Contents, name: str) -> list[str]:
    """Return what a release says that its ledger does not."""
    if one.ledger != contents.identity:
        return [f"{one.name} was paid for by another ledger than {name}."]
    found = []
    if one.relation != contents.relation:
        found.append(
            f"{one.name} is under the relation {one.relation}, and {name} adds up releases under "
            f"{contents.relation}."
        )
    if one.number > len(contents.spends):
        found.append(
            f"{one.name} is spend {one.number}, and {name} ends at spend {len(contents.spends)}: "
            "its tail is missing, or it is an old copy."
        )
        return found
    if contents.heads[one.number - 1] != one.head:
        found.append(
            f"{one.name} is spend {one.number} of another branch: {name} has another line there, "
            "so it went on from an old copy."
        )
        return found
    spend = contents.spends[one.number - 1]
    total = contents.receipt(one.number).total
    if (
        (one.settings, one.epsilon, one.delta) != (spend.settings, spend.epsilon, spend.delta)
        or abs(one.total[0] - total[0]) > _CLOSE * total[0]
        or abs(one.total[1] - total[1]) > _CLOSE * total[1]
    ):
        found.append(
            f"{one.name} says something else about its settings or its cost than spend "
            f"{one.number} of {name}."
        )
    return found


def _branches(seen: Sequence[_Seen]) -> list[str]:
    """Return the pairs of releases that one ledger cannot both have paid for."""
    first: dict[tuple[str, int], _Seen] = {}
    found = []
    for one in seen:
        # the first seen with a number is what all later ones with it are held against
        other = first.setdefault((one.ledger, one.number), one)
        if other.head != one.head:
            found.append(
                f"{other.name} and {one.name} are both spend {one.number} of one ledger: it has "
                "two branches, and their costs add up."
            )
    return found


def _copies(seen: Sequence[_Seen]) -> list[str]:
    """Return what says something else than the first copy of the same release: the kept one's."""
    first: dict[str, _Seen] = {}
    found = []
    for one in seen:
        other = first.setdefault(one.head, one)
        if other.content != one.content:
            found.append(
                f"{other.name} and {one.name} are one release, spend {one.number}, and say "
                "different things: one of them was changed."
            )
    return found


def _read(path: Path) -> _Seen:
    found = read_release(path)
    if found.get("ledger", "") is None:
        raise DpvizError(f"{path.name} was made without a ledger.")
    try:
        of_ledger: dict[str, Any] = found["ledger"]
        number = of_ledger["spends"]
        # true is 1 to Python, and is no number of a spend
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise TypeError
        return _Seen(
            path.name,
            str(of_ledger["id"]),
            number,
            str(of_ledger["head"]),
            str(found["relation"]),
            digest(found["settings"]),
            float(found["proved"]["epsilon"]),
            float(found["proved"]["delta"]),
            (float(of_ledger["epsilon"]), float(of_ledger["delta"])),
            found,
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise DpvizError(f"{path.name} is no release of this version of dpviz.") from None
