"""The files of one release: they get their room on the disk before anything is spent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpviz.core.errors import CannotWrite, DpvizError
from dpviz.core.files import Reserved, cannot_write, strict_json
from dpviz.core.number_text import numeral
from dpviz.releasing.ledger import RELEASE, Ledger, LedgerError, Receipt


class SpentWithoutFile(DpvizError):
    """The spend is in the ledger, and a file of the release could not be written."""


class Outputs:
    """Where one release goes: beside its ledger, for its owner only, and where its maker wants it.

    Parameters
    ----------
    ledger : Ledger or None
    out : Path or None
        A new file.
    size : int
        Most bytes that the release can have.

    Raises
    ------
    DpvizError
        If either cannot be written there; nothing is left of it.
    """

    def __init__(self, ledger: Ledger | None, out: Path | None, size: int) -> None:
        self._ledger, self._out = ledger, out
        if out is not None:
            _check(out, ledger)
        self._beside: Reserved | None = None
        self._wanted: Reserved | None = None
        with ExitStack() as undo:
            if ledger is not None:
                name = f"the release beside ledger {ledger.path.name}"
                try:
                    ledger.folder.mkdir(mode=0o700, exist_ok=True)
                except OSError as error:
                    raise cannot_write(Path(name), error) from None
                self._beside = Reserved(ledger.folder, size, name, private=True)
                undo.callback(self._beside.drop)
            if out is not None:
                self._wanted = Reserved(out.parent, size, out.name)
            undo.pop_all()

    def drop(self) -> None:
        """Give back the room of what was not written."""
        for place in (self._beside, self._wanted):
            if place is not None:
                place.drop()

    def write(self, content: bytes, receipt: Receipt | None) -> None:
        """Write the release, beside the ledger first.

        Raises
        ------
        SpentWithoutFile
            If a file cannot be written after a spend; the sentence says what was spent, and where
            the release is if it is anywhere.
        """
        # beside the ledger first: that copy is its owner's, and the one that can be had again
        places: list[tuple[Reserved, Path, str]] = []
        if self._beside is not None and self._ledger is not None and receipt is not None:
            path = self._ledger.name_of(receipt)
            places.append((self._beside, path, f"{path.parent.name}/{path.name}"))
        if self._wanted is not None and self._out is not None:
            places.append((self._wanted, self._out, self._out.name))
        written, failed = [], []
        for place, path, name in places:
            try:
                place.become(path, content)
                written.append(name)
            except CannotWrite as error:
                failed.append(error)
        if written and receipt is not None and self._ledger is not None:
            try:
                self._ledger.close(receipt.number, RELEASE, content)
            except LedgerError as error:
                raise SpentWithoutFile(
                    f"{spent(self._ledger, receipt)} and the release is in {written[0]}, of which "
                    f"the ledger has no digest, as {error}"
                ) from None
        if failed and (receipt is None or self._ledger is None):
            raise failed[0]
        if failed and receipt is not None and self._ledger is not None:
            where = f"is in {written[0]} only" if written else "is lost"
            raise SpentWithoutFile(
                f"{spent(self._ledger, receipt)} and the release {where}, as {failed[0]}"
            )


def read_release(path: Path) -> dict[str, Any]:
    """Return a release's file as data; `DpvizError` if it cannot be read or is none."""
    return read_document(path, "release", 1)


def read_document(path: Path, kind: str, version: int) -> dict[str, Any]:
    """Return a file of dpviz as data.

    Parameters
    ----------
    path : Path
    kind : str
        What it is: the file names its version as ``dpviz_KIND``.
    version : int

    Raises
    ------
    DpvizError
        If it cannot be read or is none.
    """
    try:
        found = strict_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DpvizError(f"{path.name} cannot be read: {error.strerror}.") from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get(f"dpviz_{kind}") != version:
        raise DpvizError(f"{path.name} is not a {kind} of this version of dpviz.")
    return found


@contextmanager
def telling(ledger: Ledger | None, receipt: Receipt | None) -> Iterator[None]:
    """Say what was spent, whatever stops a release after its spend."""
    try:
        yield
    except KeyboardInterrupt:
        if ledger is None or receipt is None:
            raise
        raise SpentWithoutFile(
            f"{spent(ledger, receipt)} and the release is lost, as it was interrupted."
        ) from None
    except SpentWithoutFile:
        raise
    except DpvizError as error:  # the table cannot be read any more
        if ledger is None or receipt is None:
            raise
        raise SpentWithoutFile(
            f"{spent(ledger, receipt)} and the release is lost: {error}"
        ) from None
    except Exception as error:
        if ledger is not None and receipt is not None:
            error.add_note(f"{spent(ledger, receipt)}.")
        raise


def spent(ledger: Ledger, receipt: Receipt) -> str:
    """Return what a receipt says, as the beginning of a sentence."""
    return (
        f"epsilon {numeral(receipt.spend.epsilon, 6)} and delta {numeral(receipt.spend.delta, 3)} "
        f"are spent, as spend number {receipt.number} of ledger {ledger.path.name},"
    )


def _check(out: Path, ledger: Ledger | None) -> None:
    """Raise `DpvizError` if a release must not be written there."""
    place = Path(os.path.realpath(out))
    if ledger is not None and any(own == place or own in place.parents for own in ledger.own_files):
        raise DpvizError(
            f"--out must name a file apart from the ledger; {out.name!r} belongs to "
            f"{ledger.path.name!r}; nothing was spent."
        )
    if os.path.lexists(out):
        raise DpvizError(f"--out must name a new file; {out.name!r} is there; nothing was spent.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise DpvizError(f"{out.name} cannot be written in that folder; nothing was spent.")
