"""The files of one release, whose disk space is reserved before any budget is used."""

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
    """Raised if the spend is in the ledger, but a file of the release could not be written."""


class Outputs:
    """Files of one release: an owner-only copy beside its ledger, and the user's own file.

    Parameters
    ----------
    ledger : Ledger or None
    out : Path or None
        Path of a new file for the user.
    size : int
        Largest possible size of the release, in bytes.

    Raises
    ------
    DpvizError
        If either file cannot be written there; then neither file remains.
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
        """Free the reserved disk space that was not used."""
        for place in (self._beside, self._wanted):
            if place is not None:
                place.drop()

    def write(self, content: bytes, receipt: Receipt | None) -> None:
        """Write the release, first to the copy beside the ledger.

        Raises
        ------
        SpentWithoutFile
            If a file cannot be written after a spend; the message states the budget used and the
            place of the release, if there is one.
        """
        # The file beside the ledger comes first, because the ledger's owner can copy it again.
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
                    f"{spent(self._ledger, receipt)} and the release is in {written[0]}, "
                    f"but the ledger did not store its digest: {error}"
                ) from None
        if failed and (receipt is None or self._ledger is None):
            raise failed[0]
        if failed and receipt is not None and self._ledger is not None:
            where = f"is in {written[0]} only" if written else "is lost"
            raise SpentWithoutFile(
                f"{spent(self._ledger, receipt)} and the release {where}, as {failed[0]}"
            )


def read_release(path: Path) -> dict[str, Any]:
    """Return a release's file as data, or raise `DpvizError` if it cannot be read."""
    return read_document(path, "release", 1)


def read_document(path: Path, kind: str, version: int) -> dict[str, Any]:
    """Return a file written by dpviz as data.

    Parameters
    ----------
    path : Path
    kind : str
        Kind of file; the file states its version as ``dpviz_KIND``.
    version : int

    Raises
    ------
    DpvizError
        If the file cannot be read or is of another kind.
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
    """Report the budget used if an error stops a release after its spend."""
    try:
        yield
    except KeyboardInterrupt:
        if ledger is None or receipt is None:
            raise
        raise SpentWithoutFile(
            f"{spent(ledger, receipt)} and the release is lost, because it was interrupted."
        ) from None
    except SpentWithoutFile:
        raise
    except DpvizError as error:  # The table can no longer be read.
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
    """Return the beginning of a sentence about a receipt."""
    return (
        f"epsilon {numeral(receipt.spend.epsilon, 6)} and delta {numeral(receipt.spend.delta, 3)} "
        f"are spent, as spend number {receipt.number} of ledger {ledger.path.name},"
    )


def _check(out: Path, ledger: Ledger | None) -> None:
    """Raise `DpvizError` if a release must not be written to the given path."""
    place = Path(os.path.realpath(out))
    if ledger is not None and any(own == place or own in place.parents for own in ledger.own_files):
        raise DpvizError(
            f"--out must name a file that is not part of a ledger; {out.name!r} belongs to "
            f"{ledger.path.name!r}; nothing was spent."
        )
    if os.path.lexists(out):
        raise DpvizError(
            f"--out must name a new file; {out.name!r} exists already; nothing was spent."
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise DpvizError(f"{out.name} cannot be written in that folder; nothing was spent.")
