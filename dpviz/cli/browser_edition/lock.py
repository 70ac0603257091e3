"""The lock of the browser edition: versions it is pinned to, and the sha256 of each file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpviz.core.errors import DpvizError
from dpviz.core.files import app_path

SOURCE = app_path().parent / "browser"
"""The folder of the bridge, the worker, the start screen and the lock."""

LOCK = SOURCE / "lock.json"


class EditionError(DpvizError):
    """The edition cannot be built from what is here."""


@dataclass(frozen=True)
class LockedFile:
    """A file that may be used only as it is on record.

    Attributes
    ----------
    name : str
    size : int
        In bytes.
    sha256 : str
        Of the whole file, in hexadecimal digits.
    """

    name: str
    size: int
    sha256: str

    def check(self, content: bytes) -> None:
        """Raise `EditionError` unless the content is what is on record."""
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise EditionError(
                f"{self.name} is not the file on record: its sha256 must be {self.sha256}, and "
                f"is {found}."
            )

    def to_json(self) -> dict[str, Any]:
        """Return it as the lock of a folder writes it."""
        return {"name": self.name, "bytes": self.size, "sha256": self.sha256}


@dataclass(frozen=True)
class Component:
    """What somebody else wrote, and under which licence.

    Attributes
    ----------
    name, version : str
    licence : str
        As its authors state it.
    source : str
        Address of its source or its home.
    texts : tuple of str
        Files of ``browser/licences`` with what its own files lack.
    file : str
        Its file where it has one of its own; empty for what Pyodide's own files are made of.
    """

    name: str
    version: str
    licence: str
    source: str
    texts: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class Lock:
    """What the edition is pinned to.

    Attributes
    ----------
    pyodide : str
        Version.
    cdn : str
        Address of Pyodide's files where they are not in the folder itself.
    files : tuple of LockedFile
        Pyodide's own files, and its packages.
    packages : tuple of str
        Pyodide's names of the packages.
    pyodide_lock : dict
        What Pyodide reads to know its packages.
    wheels : dict of str to LockedFile
        The libraries that Pyodide lacks, Streamlit among them, by name.
    components : tuple of Component
        All of these, Pyodide and what it is made of among them.
    """

    pyodide: str
    cdn: str
    files: tuple[LockedFile, ...]
    packages: tuple[str, ...]
    pyodide_lock: dict[str, Any]
    wheels: dict[str, LockedFile]
    components: tuple[Component, ...]

    @property
    def versions(self) -> dict[str, str]:
        """Return the version of each library, by the name of its wheel."""
        return {name: wheel.name.split("-")[1] for name, wheel in self.wheels.items()}

    @property
    def streamlit(self) -> str:
        """Return the version of Streamlit."""
        return self.versions["streamlit"]


def read_lock() -> Lock:
    """Return the lock that ships with dpviz."""
    if not LOCK.is_file():
        raise EditionError(
            "this installation lacks the files of the browser edition; a checkout and the wheel "
            "have them."
        )
    raw = json.loads(LOCK.read_text(encoding="utf-8"))
    packages = raw["packages"].values()
    return Lock(
        pyodide=raw["pyodide"],
        cdn=raw["cdn"],
        files=tuple(
            LockedFile(name, entry["bytes"], entry["sha256"])
            for name, entry in (
                *raw["core"].items(),
                *((each["file_name"], each) for each in packages),
            )
        ),
        packages=tuple(raw["packages"]),
        pyodide_lock={"info": raw["info"], "packages": raw["packages"]},
        wheels={
            name: LockedFile(entry["file_name"], entry["bytes"], entry["sha256"])
            for name, entry in raw["libraries"].items()
        },
        components=tuple(_components(raw)),
    )


def _components(raw: dict[str, Any]) -> Iterator[Component]:
    """Yield what a lock names: the licence is stated by its wheel, or where that says nothing."""
    info, stated = raw["info"], raw["stated"]
    versions = {
        "pyodide": raw["pyodide"],
        "python": info["python"],
        "emscripten": info["platform"].removeprefix("emscripten_").replace("_", "."),
    }
    entries = [(name, {"version": version}) for name, version in versions.items()]
    entries += raw["packages"].items()
    for name, entry in raw["libraries"].items():
        entries.append((name, entry | {"version": entry["file_name"].split("-")[1]}))
    for name, entry in entries:
        known = entry | stated.get(name, {})
        yield Component(
            name,
            known["version"],
            known.get("licence", ""),
            known.get("source", ""),
            tuple(known.get("texts", ())),
            known.get("file_name", ""),
        )
