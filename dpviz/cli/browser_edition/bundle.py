"""The archives that the browser unpacks: the libraries that Pyodide lacks, and the app."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from io import BytesIO
from pathlib import Path, PurePosixPath

from dpviz.cli.browser_edition.lock import EditionError, Lock
from dpviz.core.files import PACKAGE, app_path

# --- libraries ------------------------------------------------------------------------------------


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
            f"the browser edition needs Streamlit {lock.streamlit}, and {streamlit.version} is "
            "installed. Run `python -m tools.edition fetch` and pass the folder that it prints "
            f"with --libraries. Or build in an environment with streamlit=={lock.streamlit}."
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


# --- archives -------------------------------------------------------------------------------------


SITE = "/lib/python3.12/site-packages"
"""Where Pyodide's Python looks for libraries."""

PLACES = {"site": SITE, "dynlib": "/usr/lib"}
"""Where Pyodide's lock says that a package belongs."""

APP = "/dpviz/app"
"""Where the app lies: ``app.py``, ``pages``, ``dpviz`` and ``browser``, as in a checkout."""

# Parts of libraries that nothing in the browser reads: pages served by a server, samples, tests,
# widgets of notebooks. A path counts if it begins with one of these.
_UNREAD = (
    "streamlit/static/", "streamlit/hello/", "streamlit/testing/",
    "streamlit/.agents/", "streamlit/vendor/pympler/",
    "plotly/labextension/", "plotly/package_data/datasets/", "plotly/matplotlylib/",
    "plotly/figure_factory/", "plotly/express/", "plotly/data/",
    "plotly/offline/_plotlyjs_version.py.orig",
    "narwhals/_duckdb/", "narwhals/_ibis/", "narwhals/_spark_like/",
    "starlette/testclient.py", "anyio/pytest_plugin.py",
)  # fmt: skip
_KINDS_UNREAD = {".so", ".pyd", ".dylib", ".pyi", ".pyc", ".map", ".md", ".rst"}
_FOLDERS_UNREAD = {"__pycache__", "tests", "test"}
# Larger than all the rest of the app, and the start screen shows a board of its own.
_NOT_SENT = {"first_sight.zip"}
# What is read of a distribution's record of itself: versions, and which plug-ins there are.
_RECORD = {"METADATA", "entry_points.txt"}

# What a licence asks to be kept with the code, whatever else is left out.
_LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|authors)", re.IGNORECASE)
_PROSE = {"", ".txt", ".md", ".rst", ".apache", ".bsd"}

# One date for every member, so that the same files give the same bytes.
_DATE = (2020, 1, 1, 0, 0, 0)

Member = tuple[str, bytes]


def archive(members: Iterable[Member]) -> bytes:
    """Return a zip of the members: the same bytes whenever and wherever it is made."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        for name, content in sorted(members):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            packed.writestr(info, content)
    return written.getvalue()


def members_of(libraries: Iterable[Library]) -> Iterator[Member]:
    """Yield what the app imports of the libraries, as pure Python."""
    for library in libraries:
        for path, read in library.files:
            if _is_read(path):
                yield path.as_posix(), read()


def is_licence(entry: PurePosixPath) -> bool:
    """Return whether a file holds the terms of a library, and no code."""
    return _LICENCE.match(entry.name) is not None and entry.suffix.lower() in _PROSE


def _is_read(entry: PurePosixPath) -> bool:
    if is_licence(entry):
        return True
    if entry.parts[0].endswith((".dist-info", ".data")):
        return entry.name in _RECORD
    if entry.suffix in _KINDS_UNREAD or _FOLDERS_UNREAD & set(entry.parts[:-1]):
        return False
    return not entry.as_posix().startswith(_UNREAD)


def app(tables: Iterable[Member] = ()) -> Iterator[Member]:
    """Yield the app's own files, laid out as in a checkout, and the tables to embed."""
    root = app_path().parent
    for top in (root / "app.py", root / ".streamlit" / "config.toml"):
        yield top.relative_to(root).as_posix(), top.read_bytes()
    for folder, base in (
        (root / "pages", root),
        (root / "data", root),
        (root / "browser", root),
        (PACKAGE, PACKAGE.parent),
    ):
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(base)
            if not path.is_file() or {"__pycache__", "_app"} & set(inside.parts):
                continue
            if inside.name in _NOT_SENT:
                continue
            if inside.parts[0] != "browser" or path.suffix == ".py":
                yield inside.as_posix(), path.read_bytes()
    yield from tables
