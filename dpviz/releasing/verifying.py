"""Whether a ledger and releases fit together: what was cut, restored, mixed up, or changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpviz.core.errors import DpvizError
from dpviz.releasing.ledger import RELEASE, Contents, Ledger, LedgerError, sha256
from dpviz.releasing.making import digest
from dpviz.releasing.outputs import read_release

_CLOSE = 1e-9


@dataclass(frozen=True)
class _Seen:
    """What a release's file says of its ledger."""

    name: str
    ledger: str
    number: int
    head: str
    relation: str
    said: Mapping[str, Any]
    sha256: str


def verify(ledger: Ledger, releases: Sequence[Path], *, whole: bool = True) -> list[str]:
    """Return what does not match, one sentence each; nothing if all of it fits.

    Noticed are a damaged line, a ledger that is behind what was spent (cut, or an old copy), one
    that went on from an old copy (two branches), releases of other ledgers or relations, a release
    that is not, to the byte, the file whose digest closes its spend, and one that says something
    else than its line. Not noticed is what nobody kept: if the ledger, all that lies beside it and
    the newest releases go back together, nothing is left to tell.

    Parameters
    ----------
    ledger : Ledger
    releases : sequence of Path
        Files of releases; those kept beside the ledger are looked at in any case.
    whole : bool
        Whether every release that was paid for must be there, where the ledger is at home.
    """
    found: list[str] = []
    contents: Contents | None = None
    try:
        contents = ledger.read_alone()
        found += [f"{problem}." for problem in ledger.behind_head()]
    except LedgerError as error:
        found.append(str(error))
    seen: list[_Seen] = []
    kept = ledger.kept()
    # one that is kept and was handed over as well is looked at once
    given = {path.resolve(): path for path in [*kept.values(), *releases]}
    for path in given.values():
        try:
            seen.append(_read(path))
        except DpvizError as error:
            found.append(str(error))
    if contents is not None:
        for one in seen:
            found += _against(one, contents, ledger.path.name)
        if whole and any(path.exists() for path in ledger.own_files[2:]):
            found += _missing(contents, ledger.path.name, {*kept, *(one.number for one in seen)})
    found += _branches(seen)
    # one fault may be seen from several files
    return list(dict.fromkeys(found))


def _against(one: _Seen, contents: Contents, name: str) -> list[str]:
    """Return what a release says that its ledger does not."""
    if one.ledger != contents.identity:
        return [f"{one.name} was paid for by another ledger than {name}."]
    if one.number > len(contents.spends):
        return [
            f"{one.name} is spend {one.number}, and {name} ends at spend {len(contents.spends)}: "
            "its tail is missing, or it is an old copy."
        ]
    if contents.heads[one.number - 1] != one.head:
        return [
            f"{one.name} is spend {one.number} of another branch: {name} has another line there, "
            "so it went on from an old copy."
        ]
    found = []
    if one.relation != contents.relation:
        found.append(
            f"{one.name} is under the relation {one.relation}, and {name} adds up releases under "
            f"{contents.relation}."
        )
    spend, number = contents.spends[one.number - 1], one.number
    written = contents.written(number, RELEASE)
    if not written:
        found.append(
            f"no line of {name} closes spend {number}, so nothing tells whether {one.name} is "
            "what was written: it was stopped in between."
        )
    elif one.sha256 not in written:
        found.append(
            f"{one.name} was changed: it is not the file that {name} closed spend {number} with."
        )
    receipt = contents.receipt(number)
    line = {
        "mechanism": spend.mechanism,
        "epsilon": spend.epsilon,
        "delta": spend.delta,
        "rho": spend.rho,
        "settings": spend.settings,
        "settings_hash": spend.settings,
        "schema": spend.schema,
        "purpose": spend.stated_purpose,
        "by": spend.by,
        "unit": str(contents.unit),
        "total": receipt.total,
        "left": receipt.left,
    }
    wrong = [what for what, value in line.items() if not _same(one.said[what], value)]
    if wrong:
        found.append(
            f"{one.name} says something else than spend {number} of {name}: {', '.join(wrong)}."
        )
    return found


def _same(said: Any, line: Any) -> bool:
    """Return whether two entries are one; sums may differ in their last digits."""
    if isinstance(line, tuple):
        pairs = zip(said, line, strict=True)
        return all(math.isclose(one, other, rel_tol=_CLOSE) for one, other in pairs)
    return bool(said == line)


def _missing(contents: Contents, name: str, there: Iterable[int]) -> list[str]:
    """Return the spends whose release is nowhere."""
    found = []
    for number, spend in enumerate(contents.spends, start=1):
        if not spend.releases or number in there:
            continue
        if contents.written(number, RELEASE):
            found.append(
                f"the release of spend {number} was written and is not beside {name}: its file "
                "was deleted."
            )
        else:
            found.append(
                f"spend {number} of {name} counts and has no release: it was stopped before one "
                "was written, or its file was lost."
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
        left, proved = of_ledger["left"], found["proved"]
        said = {
            "mechanism": found["mechanism"],
            **{name: float(proved[name]) for name in ("epsilon", "delta")},
            "rho": proved["rho"],
            "settings": digest(found["settings"]),
            "settings_hash": found["settings_hash"],
            "schema": found["declared"]["schema"],
            # the first releases did not say who asked, and for what
            **{name: found.get(name, "") for name in ("purpose", "by")},
            "unit": found.get("unit", {"protected": "row"})["protected"],
            "total": (float(of_ledger["epsilon"]), float(of_ledger["delta"])),
            "left": (float(left["epsilon"]), float(left["delta"])),
        }
        head, relation = str(of_ledger["head"]), str(found["relation"])
        name = str(of_ledger["id"])
        return _Seen(path.name, name, number, head, relation, said, sha256(path.read_bytes()))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise DpvizError(f"{path.name} is not a release of this version of dpviz.") from None
