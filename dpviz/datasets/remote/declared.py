"""Facts about a remote data set, known before it is downloaded."""

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
    """One raw file of a data set.

    Attributes
    ----------
    name : str
        Path below the set's folder, with forward slashes.
    sha256 : str or None
        Digest of the raw file; None if no copy could be examined.
    addresses : tuple of str
        Addresses that are tried in order. An address that ends in the file's name gives the file
        itself; any other gives an archive that holds it, or the packed file.
    text : str or None
        Digest of the text alone, the same for a copy packed again or with other line ends; None if
        this digest equals `sha256`. See `dpviz.datasets.remote.download.text_digest`.
    """

    name: str
    sha256: str | None
    addresses: tuple[str, ...]
    text: str | None = None


@dataclass(frozen=True)
class Remote:
    """A remote data set, declared once.

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
        Meaning of the labels, in words.
    licence, citation, page : str
        Terms of use, source, and the web page for people.
    papers : tuple of str
        Papers that use the set.
    preparation : tuple of str
        Sentences on the steps of the loader; they become the table's notes.
    read : callable
        A function that builds the table from the folder that holds the files.
    openml : str or None
        Page of the set on OpenML, with the same rows in another format.
    paper_d : int or None
        Dimension stated by a paper, or None.
    read_as_paper : callable or None
        A function that builds the table with ``paper_d`` features, if this needs more than `read`.
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
        """The names of the set's files, in words."""
        names = [file.name for file in self.files]
        # Name only the first and the last of many files, because a message has little space.
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
    if "listed" in facts:  # The list of files has one digest per line.
        at, digests = facts.pop("at"), (_HERE / facts.pop("listed")).read_text(encoding="ascii")
        pairs = (line.split() for line in digests.splitlines())
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
    """Return an https address as it is; put any other path below UCI's older layout."""
    return path if path.startswith("https://") else f"{_UCI}/ml/machine-learning-databases/{path}"
