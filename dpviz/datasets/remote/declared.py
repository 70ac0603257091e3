"""What is known of a remote data set before any of it is here."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpviz.datasets.table import Table

_UCI = "https://archive.ics.uci.edu"
_UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
_HERE = Path(__file__).parent

Read = Callable[[Path], Table]


@dataclass(frozen=True)
class File:
    """One raw file.

    Attributes
    ----------
    name : str
        Path below the set's folder, with forward slashes.
    sha256 : str or None
        Digest of the raw file; None where no copy could be examined.
    addresses : tuple of str
        Tried in order. An address that ends in the file's name gives the file
        itself; any other gives an archive that holds it, or the file packed.
    text : str or None
        The digest of the text alone, which a copy that was packed again or has
        other line ends shares; None where it is `sha256`. See
        `dpviz.datasets.remote.download.text_digest`.
    """

    name: str
    sha256: str | None
    addresses: tuple[str, ...]
    text: str | None = None


@dataclass(frozen=True)
class Remote:
    """One remote data set, declared once.

    Attributes
    ----------
    key, label : str
        Name on the command line, and title.
    folder : str
        Folder of the set in a mirror and in the cache.
    files : tuple of File
    n, d : int
        Rows and features of the loaded table, as documented by the source.
    labels : str
        What the labels are, in words.
    licence, citation, page : str
        Terms, source, and the page for people.
    papers : tuple of str
        Papers that use the set.
    preparation : tuple of str
        What the loader does, as sentences; they are the table's notes.
    read : callable
        Makes the table from the folder that holds the files.
    openml : str or None
        Page of the set on OpenML, where a reader finds the same rows in another format.
    paper_d : int or None
        Dimension that a paper states, where it states one.
    read_as_paper : callable or None
        Makes the table with ``paper_d`` features, where that takes more than `read`.
    """

    key: str
    label: str
    folder: str
    files: tuple[File, ...]
    n: int
    d: int
    labels: str
    licence: str
    citation: str
    page: str
    papers: tuple[str, ...]
    preparation: tuple[str, ...]
    read: Read
    openml: str | None = None
    paper_d: int | None = None
    read_as_paper: Read | None = None

    @property
    def listed(self) -> str:
        """The names of the files, as words."""
        names = [file.name for file in self.files]
        # a sentence has room for few names
        if len(names) > 4:
            return f"{len(names)} files {names[0]} to {names[-1]}"
        if len(names) == 1:
            return names[0]
        return f"{', '.join(names[:-1])} and {names[-1]}"


def declared(readers: Mapping[str, Read], as_paper: Mapping[str, Read]) -> tuple[Remote, ...]:
    """Return the sets of ``sets.toml`` with their readers, in the order shown."""
    sets = tomllib.loads((_HERE / "sets.toml").read_text(encoding="utf-8"))
    return tuple(_entry(key, facts, readers[key], as_paper.get(key)) for key, facts in sets.items())


def _entry(key: str, facts: dict[str, Any], read: Read, read_as_paper: Read | None) -> Remote:
    uci = facts.pop("uci", "")
    page = f"{_UCI}/dataset/{uci}" if uci else facts.pop("page")
    archive = (f"{_UCI}/static/public/{uci}.zip",) if uci else ()
    files = facts.pop("file", [])
    if "listed" in facts:  # one digest a line
        at, listed = facts.pop("at"), (_HERE / facts.pop("listed")).read_text(encoding="ascii")
        pairs = (line.split() for line in listed.splitlines())
        files = [{"name": name, "sha256": digest, "at": at} for digest, name in pairs]
    return Remote(
        key=key,
        files=tuple(
            File(
                file["name"],
                file.get("sha256"),
                (*archive, *map(_address, file["at"])),
                file.get("text"),
            )
            for file in files
        ),
        licence=_UCI_LICENCE,
        page=page,
        papers=tuple(facts.pop("papers")),
        preparation=tuple(facts.pop("preparation")),
        read=read,
        read_as_paper=read_as_paper,
        **facts,
    )


def _address(path: str) -> str:
    """Return an address as it is, and of a path the one in UCI's older layout."""
    return path if path.startswith("https://") else f"{_UCI}/ml/machine-learning-databases/{path}"
