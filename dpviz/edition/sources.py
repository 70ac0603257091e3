"""Where the libraries come from that Pyodide lacks: pinned wheels, or this environment."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from io import BytesIO
from pathlib import Path, PurePosixPath

from dpviz.edition.lock import EditionError, Lock

File = tuple[PurePosixPath, Callable[[], bytes]]


@dataclass(frozen=True)
class Library:
    """A distribution whose files can be read.

    Attributes
    ----------
    name, version : str
    files : tuple of (path, function)
        Each path relative to site-packages, and what reads the file.
    """

    name: str
    version: str
    files: tuple[File, ...]

    def below(self, folder: str) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yield the files of a folder, with paths relative to it."""
        for path, read in self.files:
            if path.is_relative_to(folder):
                yield path.relative_to(folder), read()


def libraries_of(lock: Lock, folder: Path | None) -> dict[str, Library]:
    """Return the libraries to take along.

    Parameters
    ----------
    lock : Lock
    folder : Path or None
        Folder with the wheels that the lock names. Without one they come from this environment,
        whose Streamlit has to be the pinned one; the others are those that pip put beside it.

    Raises
    ------
    EditionError
        If a wheel is missing or not the one on record, or the environment has another Streamlit.
    """
    if folder is not None:
        return {name: packed(name, lock, folder) for name in lock.wheels}
    streamlit = installed("streamlit")
    if streamlit.version != lock.streamlit:
        raise EditionError(
            f"the browser edition is pinned to Streamlit {lock.streamlit}, as it relies on names "
            f"that Streamlit may change; here is {streamlit.version}: give the folder of wheels "
            "that `python -m tools.edition fetch` prints by --libraries, or build it in an "
            f"environment with streamlit=={lock.streamlit}."
        )
    return {name: installed(name) for name in lock.wheels}


def installed(name: str) -> Library:
    """Return a distribution of this environment."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise EditionError(
            f"the browser edition takes {name} from this environment, where it is not installed."
        ) from None
    files = (
        (PurePosixPath(entry.as_posix()), Path(str(found.locate_file(entry))).read_bytes)
        for entry in found.files or ()
        if entry.parts[0] != ".." and not entry.is_absolute()  # commands are outside
    )
    return Library(name, found.version, tuple(files))


def packed(name: str, lock: Lock, folder: Path) -> Library:
    """Return a distribution from its wheel, once its sha256 is the one on record."""
    wheel = lock.wheels[name]
    path = folder / wheel.name
    if not path.is_file():
        raise EditionError(
            "--libraries must be a folder with the wheels that browser/lock.json names; "
            f"{wheel.name} is not there."
        )
    content = path.read_bytes()
    wheel.check(content)
    archive = zipfile.ZipFile(BytesIO(content))

    def reader(entry: zipfile.ZipInfo) -> Callable[[], bytes]:
        return lambda: archive.read(entry)

    files = (
        (PurePosixPath(entry.filename), reader(entry))
        for entry in archive.infolist()
        if not entry.is_dir()
    )
    return Library(name, lock.versions[name], tuple(files))
