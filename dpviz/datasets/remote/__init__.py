"""Data sets of the papers that are not shipped: found in a mirror or the cache, or downloaded.

Each set is declared once in ``sets.toml``; `dpviz.datasets.remote.readers` holds
its reader. ``DPVIZ_DATA`` names a local mirror; see `dpviz.datasets.remote.download`.
A set that is absent is an error that says so, and is never replaced.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpviz.core.errors import InvalidSetting, InvalidTable, NotAvailable
from dpviz.datasets.remote import download as _download
from dpviz.datasets.remote.declared import File, Remote, declared
from dpviz.datasets.remote.download import OnBytes, cache_folder
from dpviz.datasets.remote.readers import AS_PAPER, READERS
from dpviz.datasets.table import Table

__all__ = [
    "File",
    "NotAvailable",
    "OnBytes",
    "Remote",
    "at_hand",
    "cache_folder",
    "dataset_rows",
    "fetch",
    "load",
    "missing",
    "sets",
    "unrecorded",
]

_SETS = declared(READERS, AS_PAPER)


def sets() -> dict[str, Remote]:
    """Return every remote set by key, in the order shown; looks for no file."""
    return {entry.key: entry for entry in _SETS}


def _entry(key: str) -> Remote:
    known = sets()
    if key not in known:
        raise InvalidSetting("data set", f"one of {', '.join(known)}", key, "data set")
    return known[key]


def at_hand(key: str) -> bool:
    """Return whether all files of a set are in the ``DPVIZ_DATA`` folder or in the cache.

    Raises
    ------
    InvalidSetting
        For an unknown key, and if ``DPVIZ_DATA`` names nothing that is there.
    """
    return _download.found(_entry(key)) is not None


def missing(key: str) -> str:
    """Return the sentence that says how to get a set that is not at hand."""
    return str(_download.absent(_entry(key)))


def fetch(key: str, progress: OnBytes | None = None) -> Path:
    """Return the folder that holds the files of a set; downloads what is not at hand.

    Parameters
    ----------
    key : str
    progress : callable, optional
        Called with the bytes done and all bytes (None if the server does not
        say them) of each download.

    Raises
    ------
    NotAvailable
        If a file can be got nowhere, or is not the one on record; one sentence
        that says how to place it by hand.
    InvalidSetting
        As `at_hand`.
    """
    return _download.fetch(_entry(key), progress)


def unrecorded(key: str, folder: Path) -> tuple[str, ...]:
    """Return a sentence on each file of a set whose digest is on no record, with what it is."""
    return _download.unrecorded(_entry(key), folder)


def load(
    key: str,
    progress: OnBytes | None = None,
    download: bool = True,
    *,
    as_paper: bool = False,
) -> Table:
    """Return the table of a set; centring and scaling are left to the caller.

    Parameters
    ----------
    key : str
    progress : callable, optional
        As in `fetch`.
    download : bool
        Whether a set that is not at hand is downloaded.
    as_paper : bool
        Return the ``paper_d`` features that the paper's number implies, where
        they are others: the label is among them (`census`, `localization`).

    Returns
    -------
    Table
        Rows in the data's own units; its notes are the sentences of
        `Remote.preparation`, what reading found, and the digest of a file that has none on record.

    Raises
    ------
    NotAvailable, InvalidSetting
        As in `fetch`; also NotAvailable if ``download`` is False and the set is
        not at hand.
    InvalidTable
        If the files do not hold what they should.
    """
    entry = _entry(key)
    folder = _download.fetch(entry, progress, allowed=download)
    read, d = entry.read, entry.d
    if as_paper and entry.read_as_paper is not None:
        read, d = entry.read_as_paper, entry.paper_d or entry.d
    table = read(folder)
    # a file of that name with other content: numbers of it would be somebody else's
    if table.rows.shape != (entry.n, d):
        n_read, d_read = table.rows.shape
        raise InvalidTable(
            f"{entry.label} must have {entry.n:,} rows and {d} features; {entry.listed} in "
            f"{folder} {'has' if len(entry.files) == 1 else 'have'} {n_read:,} and {d_read}: "
            "remove what is there and fetch it again."
        )
    said = _download.unrecorded(entry, folder)
    notes = (*entry.preparation, *table.notes, *said)
    return replace(table, notes=notes, public=True)


def dataset_rows() -> list[dict[str, str | int | bool]]:
    """Return one row per set for a listing, with the keys of the built-in tables' rows.

    Further keys: ``origin``, ``at_hand``, ``page``, ``openml`` and ``papers``.
    """
    return [
        {
            "key": entry.key,
            "label": entry.label,
            "description": " ".join(entry.preparation),
            "n": entry.n,
            "d": entry.d,
            "labels": entry.labels,
            "source": entry.citation,
            "licence": entry.licence,
            "origin": "remote",
            "at_hand": at_hand(entry.key),
            "page": entry.page,
            "openml": entry.openml or "",
            "papers": "; ".join(entry.papers),
        }
        for entry in _SETS
    ]
