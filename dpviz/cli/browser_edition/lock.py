"""The lock of the browser edition: the pinned versions, and the sha256 of each file."""

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
    """Raised if the browser edition cannot be built."""


@dataclass(frozen=True)
class LockedFile:
    """A file that may be used only if it matches its sha256.

    Attributes
    ----------
    name : str
    size : int
        Size in bytes.
    sha256 : str
        Digest of the whole file, in hexadecimal digits.
    """

    name: str
    size: int
    sha256: str

    def check(self, content: bytes) -> None:
        """Raise `EditionError` unless the content matches the sha256."""
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise EditionError(
                f"{self.name} is not the expected file: its sha256 must be {self.sha256}; got "
                f"{digest}."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the file for the lock of an exported folder."""
        return {"name": self.name, "bytes": self.size, "sha256": self.sha256}


@dataclass(frozen=True)
class Component:
    """A third-party component and its licence.

    Attributes
    ----------
    name, version : str
    licence : str
        Licence as the component's authors state it.
    source : str
        Address of the component's source code or home page.
    texts : tuple of str
        Files in ``browser/licences`` with texts that the component's own files lack.
    file : str
        The component's own file, if any; empty for parts of Pyodide's core files.
    """

    name: str
    version: str
    licence: str
    source: str
    texts: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class Lock:
    """Pinned versions and files of the browser edition.

    Attributes
    ----------
    pyodide : str
        Version.
    cdn : str
        Address of Pyodide's files if the folder does not contain them.
    files : tuple of LockedFile
        Pyodide's own files, and the files of its packages.
    packages : tuple of str
        Names that Pyodide gives to the packages.
    pyodide_lock : dict
        Package index in the form that Pyodide reads.
    wheels : dict of str to LockedFile
        The libraries that Pyodide lacks, including Streamlit, by name.
    components : tuple of Component
        All packages and libraries, including Pyodide and the parts that it is built from.
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
        """Return the version of each library, by the library's name."""
        return {name: wheel.name.split("-")[1] for name, wheel in self.wheels.items()}

    @property
    def streamlit(self) -> str:
        """Return the version of Streamlit."""
        return self.versions["streamlit"]


def read_lock() -> Lock:
    """Return the lock that ships with dpviz."""
    if not LOCK.is_file():
        raise EditionError(
            "this installation lacks the files of the browser edition; install dpviz from a "
            "checkout or from the wheel."
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
    """Yield the components of a lock; entries under ``stated`` complete or replace others."""
    info, facts = raw["info"], raw["stated"]
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
        values = entry | facts.get(name, {})
        yield Component(
            name,
            values["version"],
            values.get("licence", ""),
            values.get("source", ""),
            tuple(values.get("texts", ())),
            values.get("file_name", ""),
        )
