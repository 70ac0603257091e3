"""The papers' data sets that are not shipped: read from a mirror or the cache, or downloaded.

Each set is declared once in ``sets.toml``; `dpviz.datasets.remote.readers` holds its reader.
``DPVIZ_DATA`` names a local mirror; see `dpviz.datasets.remote.download`. An absent set raises an
error and is never replaced by another set.
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
    """Return every remote set by key, in the order shown, without looking for files."""
    return {entry.key: entry for entry in _SETS}


def _entry(key: str) -> Remote:
    entries = sets()
    if key not in entries:
        raise InvalidSetting("data set", f"one of {', '.join(entries)}", key, "data set")
    return entries[key]


def at_hand(key: str) -> bool:
    """Return whether all files of a set are in the ``DPVIZ_DATA`` folder or in the cache.

    Raises
    ------
    InvalidSetting
        For an unknown key, or if ``DPVIZ_DATA`` names a folder that does not exist.
    """
    return _download.found(_entry(key)) is not None


def missing(key: str) -> str:
    """Return the sentence on how to get a set that is not available locally."""
    return str(_download.absent(_entry(key)))


def fetch(key: str, progress: OnBytes | None = None) -> Path:
    """Return the folder that holds the files of a set; download those that are missing.

    Parameters
    ----------
    key : str
    progress : callable, optional
        A function called during each download with the bytes done and the total (None if the server
        does not state it).

    Raises
    ------
    NotAvailable
        If a file cannot be downloaded, or differs from the file on record; one sentence says how to
        place it by hand.
    InvalidSetting
        In the same cases as `at_hand`.
    """
    return _download.fetch(_entry(key), progress)


def unrecorded(key: str, folder: Path) -> tuple[str, ...]:
    """Return a sentence, with the copy's digest, on each file that has no digest on record."""
    return _download.unrecorded(_entry(key), folder)


def load(
    key: str,
    progress: OnBytes | None = None,
    download: bool = True,
    *,
    as_paper: bool = False,
) -> Table:
    """Return the table of a set, neither centred nor scaled.

    Parameters
    ----------
    key : str
    progress : callable, optional
        The same parameter as in `fetch`.
    download : bool
        Whether a set that is not available locally is downloaded.
    as_paper : bool
        Whether to return the ``paper_d`` features that the paper's number implies, if they differ.
        These features include the label (`census`, `localization`).

    Returns
    -------
    Table
        Rows in the data's own units. The notes are `Remote.preparation`, the findings of the
        reader, and the digest of any file without one on record.

    Raises
    ------
    NotAvailable, InvalidSetting
        In the same cases as `fetch`; also NotAvailable if ``download`` is False and the set is not
        available locally.
    InvalidTable
        If the files have unexpected contents.
    """
    entry = _entry(key)
    folder = _download.fetch(entry, progress, allowed=download)
    reader, d = entry.read, entry.d
    if as_paper and entry.read_as_paper is not None:
        reader, d = entry.read_as_paper, entry.paper_d or entry.d
    table = reader(folder)
    # Check the content, because another file of that name would give another data set's results.
    if table.rows.shape != (entry.n, d):
        n_file, d_file = table.rows.shape
        raise InvalidTable(
            f"{entry.label} must have {entry.n:,} rows and {d} features; {entry.listed} in "
            f"{folder} {'has' if len(entry.files) == 1 else 'have'} {n_file:,} and {d_file}. "
            "Remove the downloaded files and fetch the data set again."
        )
    note = _download.unrecorded(entry, folder)
    notes = (*entry.preparation, *table.notes, *note)
    return replace(table, notes=notes, public=True)


def dataset_rows() -> list[dict[str, str | int | bool]]:
    """Return one row per set for a listing, with the keys of the built-in tables' rows.

    The rows also have ``origin``, ``at_hand``, ``page``, ``openml`` and ``papers``.
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
