"""Archives that the browser unpacks: the libraries that Pyodide lacks, and the app."""

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
    """An installed library or a wheel whose files can be read.

    Attributes
    ----------
    name, version : str
    files : tuple of (path, function)
        Paths relative to site-packages, each with a function that reads the file.
    """

    name: str
    version: str
    files: tuple[File, ...]

    def below(self, folder: str) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Yield the files of a folder, with paths relative to it."""
        for path, load in self.files:
            if path.is_relative_to(folder):
                yield path.relative_to(folder), load()


def libraries_of(lock: Lock, folder: Path | None) -> dict[str, Library]:
    """Return the libraries to bundle.

    Parameters
    ----------
    lock : Lock
    folder : Path or None
        Folder with the wheels that the lock names. If None, the libraries come from this
        environment. Its Streamlit must have the pinned version; other libraries may be as pip
        installed them.

    Raises
    ------
    EditionError
        If a wheel is missing or differs from the lock, or this environment has another Streamlit.
    """
    if folder is not None:
        return {name: packed(name, lock, folder) for name in lock.wheels}
    streamlit = installed("streamlit")
    if streamlit.version != lock.streamlit:
        raise EditionError(
            f"the browser edition needs Streamlit {lock.streamlit}; {streamlit.version} is "
            "installed. Run `python -m tools.edition fetch` and pass the folder that it prints "
            f"with --libraries. Or build in an environment that has streamlit=={lock.streamlit}."
        )
    return {name: installed(name) for name in lock.wheels}


def installed(name: str) -> Library:
    """Return a library that is installed in this environment."""
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise EditionError(
            f"the browser edition needs {name}, which is not installed in this environment."
        ) from None
    files = (
        (PurePosixPath(entry.as_posix()), Path(str(package.locate_file(entry))).read_bytes)
        for entry in package.files or ()
        if entry.parts[0] != ".." and not entry.is_absolute()  # Leave out scripts of the package.
    )
    return Library(name, package.version, tuple(files))


def packed(name: str, lock: Lock, folder: Path) -> Library:
    """Return a library from its wheel, after checking the wheel's sha256."""
    wheel = lock.wheels[name]
    path = folder / wheel.name
    if not path.is_file():
        raise EditionError(
            "--libraries must be a folder with all wheels listed in browser/lock.json; the wheel "
            f"{wheel.name} is missing."
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
"""Folder in which Pyodide's Python looks for libraries."""

PLACES = {"site": SITE, "dynlib": "/usr/lib"}
"""Target folders by the name that Pyodide's lock gives them."""

APP = "/dpviz/app"
"""Folder of the app: ``app.py``, ``pages``, ``dpviz`` and ``browser``, as in a checkout."""

# Leave out parts of libraries that nothing in the browser reads, such as pages served by a server,
# samples, tests and notebook widgets: every path that begins with one of these.
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
# Leave out this file: it is larger than the rest of the app, and the start screen has a copy.
_NOT_SENT = {"first_sight.zip"}
# The app reads these metadata files: they list versions and available plug-ins.
_RECORD = {"METADATA", "entry_points.txt"}

# Always include these files: a licence requires them beside the code.
_LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|authors)", re.IGNORECASE)
_PROSE = {"", ".txt", ".md", ".rst", ".apache", ".bsd"}

# Give every zip member the same date, so that the same files give the same bytes.
_DATE = (2020, 1, 1, 0, 0, 0)

Member = tuple[str, bytes]


def archive(members: Iterable[Member]) -> bytes:
    """Return a zip of the members, with the same bytes on every machine and at every time."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as bundle:
        for name, content in sorted(members):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            bundle.writestr(info, content)
    return file.getvalue()


def members_of(libraries: Iterable[Library]) -> Iterator[Member]:
    """Yield the files of the libraries that the app needs, as pure Python."""
    for library in libraries:
        for path, load in library.files:
            if _is_read(path):
                yield path.as_posix(), load()


def is_licence(entry: PurePosixPath) -> bool:
    """Return whether a file holds the licence of a library, and no code."""
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
    """Yield the app's own files, in the folders of a checkout, and the tables to embed."""
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
