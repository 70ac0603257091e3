"""Data for the first page of a built-in table, computed in advance.

The data ships in one archive beside this file, with each item under the key of its request. Any
other setting has another key and is computed. After a change of the code behind the archive, all
items are computed. ``python -m tools.first_sight`` creates the archive again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from dpviz.core.files import PACKAGE, atomic_write
from dpviz.core.settings import Settings

Item = TypeVar("Item")

ARCHIVE = Path(__file__).with_name("first_sight.zip")
_FILES = "of/files"
# A change of these folders and files changes neither a shipped number nor a shipped word.
_ASIDE = (
    "extend", "releasing", "papers", "cli", "_app",
    "report/figures", "core/files.py", "core/platform.py", "core/resources.py", "core/worker.py",
    "simulation/jobs.py", "simulation/store.py", "datasets/remote", "lessons/slides.py",
    "lessons/room.py", "lessons/in_or_out.py",
)  # fmt: skip


def digest_of(what: object) -> str:
    """Return a name for any object, from its ``repr``."""
    return hashlib.blake2b(repr(what).encode(), digest_size=12).hexdigest()


class Shipped(Generic[Item]):
    """Shipped items of one kind.

    Parameters
    ----------
    name : str
    read : callable
        Function that turns bytes into an item.
    write : callable
        Function that turns an item into bytes.
    """

    noting: dict[str, bytes] | None = None
    """Items collected by name while an archive is created; meanwhile no shipped item is used."""

    def __init__(
        self, name: str, load: Callable[[bytes], Item], write: Callable[[Item], bytes]
    ) -> None:
        self._name, self._read, self._write = name, load, write

    def place(self, what: Hashable) -> str:
        """Return the name of an item in the archive."""
        # Group items whose keys have the same first element, because they are requested together.
        group = what[0] if isinstance(what, tuple) else what
        return f"{self._name}/{digest_of(group)}/{digest_of(what)}"

    def get(self, what: Hashable) -> Item | None:
        """Return an item, if the item ships and the code behind it has not changed."""
        content = self._content(what)
        return None if content is None else self._read(content)

    def has(self, what: Hashable) -> bool:
        """Return whether an item ships, and the code behind it has not changed."""
        return self._content(what) is not None

    def _content(self, what: Hashable) -> bytes | None:
        return None if Shipped.noting is not None else item(self.place(what))

    def note(self, what: Hashable, item: Item) -> None:
        """Record an item while an archive is created."""
        if Shipped.noting is not None:
            Shipped.noting[self.place(what)] = self._write(item)


BOARDS = Shipped[dict[str, Any]]("boards", json.loads, lambda board: json.dumps(board).encode())
"""First payloads of comparison figures."""


def board_key(settings: Settings) -> tuple[str, str]:
    """Return the key of the figure that opens with a setting."""
    return settings.table, repr(settings)


class _Archive:
    """An archive of groups of items; the most recently requested groups stay in memory."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        self._names = set(self._zip.namelist())
        self._lock = threading.Lock()
        self._group = lru_cache(maxsize=4)(self._read)

    def get(self, name: str) -> bytes | None:
        """Return an item by its name, or None."""
        with self._lock:
            return self._group(name.rpartition("/")[0]).get(name)

    def of_this_code(self) -> bool:
        """Return whether the archive was created with the current code."""
        digests = json.loads(self.get(_FILES) or b"[]")
        by_bytes, counts = dict(digests), Counter(code for _, code in digests)
        for path in _sources():  # A file that moves to another path changes no number.
            # Compare bytes first: they are quick to read, and syntax trees depend on Python.
            code = by_bytes.get(bytes_digest(path)) or code_digest(path)
            if not counts[code]:
                return False
            counts[code] -= 1
        return not counts.total()

    def _read(self, group: str) -> dict[str, bytes]:
        if group not in self._names:
            return {}
        head, _, body = self._zip.read(group).partition(b"\n")
        items, at = {}, 0
        for name, size in json.loads(head):
            items[name] = body[at : at + size]
            at += size
        return items


def item(name: str) -> bytes | None:
    """Return the shipped item with a name."""
    archive = _shipped()
    return None if archive is None else archive.get(name)


@cache
def _shipped() -> _Archive | None:
    """Return the shipped archive, or None if it is missing or the code has changed since."""
    with suppress(OSError, zipfile.BadZipFile):
        archive = _Archive(ARCHIVE)
        if archive.of_this_code():
            return archive
    return None


def write(items: Mapping[str, bytes], path: Path = ARCHIVE) -> None:
    """Write an archive for the current code; the same items give the same bytes."""
    digests = sorted((bytes_digest(path), code_digest(path)) for path in _sources())
    files = json.dumps(digests).encode()
    groups: dict[str, list[tuple[str, bytes]]] = {}
    for name, item in sorted({_FILES: files, **items}.items()):
        groups.setdefault(name.rpartition("/")[0], []).append((name, item))
    with atomic_write(path) as aside, zipfile.ZipFile(aside, "w") as archive:
        for group, members in groups.items():
            head = json.dumps([(name, len(item)) for name, item in members]).encode()
            body = b"".join(item for _, item in members)
            # Use LZMA: similar items are 30 kB apart, which is too far for deflation.
            archive.writestr(zipfile.ZipInfo(group), head + b"\n" + body, zipfile.ZIP_LZMA)


def stale(path: Path = ARCHIVE) -> bool:
    """Return whether the code behind an archive has changed since the archive was made."""
    return not path.is_file() or not _Archive(path).of_this_code()


def _sources() -> list[Path]:
    aside = [PACKAGE / one for one in _ASIDE]
    paths = [*PACKAGE.rglob("*.py"), *(PACKAGE / "lessons" / "scripts").glob("*.toml")]
    return sorted(path for path in paths if not any(path.is_relative_to(one) for one in aside))


def bytes_digest(path: Path) -> str:
    """Return the digest of a source file's bytes."""
    return digest_of(path.read_bytes())


def code_digest(path: Path) -> str:
    """Return the digest of a source file without imports, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    return digest_of(plain(text) if path.suffix == ".py" else text)


def plain(text: str) -> str:
    """Return Python code without imports, comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                statements = [one for one in block if not _silent(one)]
                setattr(node, name, statements or ([ast.Pass()] if name == "body" else []))
    return ast.unparse(tree)


def _silent(node: ast.stmt) -> bool:
    """Return whether a statement is an import or only a text."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
