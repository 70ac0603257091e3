"""Check whether a ledger and releases match: cuts, old copies, mix-ups, changes."""

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
    """Statements of a release file about its ledger."""

    name: str
    ledger: str
    number: int
    head: str
    relation: str
    said: Mapping[str, Any]
    sha256: str


def verify(ledger: Ledger, releases: Sequence[Path], *, whole: bool = True) -> list[str]:
    """Return a sentence for each mismatch; the list is empty if everything matches.

    The check detects a damaged line and a ledger that is older than its spends (cut, or an old
    copy) or continued from an old copy (two branches). It detects releases of other ledgers or
    relations. It also detects a release that differs in any byte from the file whose digest
    completes its spend, or that contradicts its line. It cannot detect a consistent loss: if the
    ledger, all files beside it and the newest releases go back together, no evidence is left.

    Parameters
    ----------
    ledger : Ledger
    releases : sequence of Path
        Files of releases; releases stored beside the ledger are always checked too.
    whole : bool
        Whether every release of the ledger must be present, if the ledger is in its own folder.
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
    # A release beside the ledger is checked once, even if the caller names its file too.
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
    # Several files may have the same fault, so each sentence is reported once.
    return list(dict.fromkeys(found))


def _against(one: _Seen, contents: Contents, name: str) -> list[str]:
    """Return the contradictions between a release and its ledger as sentences."""
    if one.ledger != contents.identity:
        return [f"another ledger than {name} recorded {one.name}."]
    if one.number > len(contents.spends):
        return [
            f"{one.name} is spend {one.number}, but {name} ends at spend {len(contents.spends)}: "
            "the end of the ledger is missing, or the ledger is an old copy."
        ]
    if contents.heads[one.number - 1] != one.head:
        return [
            f"{one.name} is spend {one.number} of another branch: {name} has a different "
            "line there, so it continued from an old copy."
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
            f"no line of {name} closes spend {number}, because the release was interrupted, "
            f"so nobody can check whether {one.name} was changed."
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
        found.append(f"{one.name} contradicts spend {number} of {name}: {', '.join(wrong)}.")
    return found


def _same(said: Any, line: Any) -> bool:
    """Return whether two entries agree; sums may differ in their last digits."""
    if isinstance(line, tuple):
        pairs = zip(said, line, strict=True)
        return all(math.isclose(one, other, rel_tol=_CLOSE) for one, other in pairs)
    return bool(said == line)


def _missing(contents: Contents, name: str, there: Iterable[int]) -> list[str]:
    """Return a sentence for each spend whose release is missing."""
    found = []
    for number, spend in enumerate(contents.spends, start=1):
        if not spend.releases or number in there:
            continue
        if contents.written(number, RELEASE):
            found.append(
                f"the release of spend {number} was written, but its file beside {name} was "
                "deleted."
            )
        else:
            found.append(
                f"spend {number} of {name} counts but has no release: it was interrupted "
                "before the release was written, or the file was lost."
            )
    return found


def _branches(seen: Sequence[_Seen]) -> list[str]:
    """Return a sentence for each pair of releases that cannot belong to the same ledger history."""
    first: dict[tuple[str, int], _Seen] = {}
    found = []
    for one in seen:
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
        # In Python, True equals 1, but True is not the number of a ledger entry.
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
            # Releases by the first versions of dpviz did not state who requested them and why.
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
