"""What a first look at a built-in table needs, drawn beforehand.

It ships in one archive beside this file, each item under the key by which the shelf that asks for
it would keep it. Any other setting has another key and is drawn; so is everything once the code
that drew the archive has changed. ``python -m tools.first_sight`` makes it again.
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
# Rooms and files that make no number and no word of what ships.
_ASIDE = (
    "extend", "releasing", "papers", "cli", "_app",
    "report/figures", "core/files.py", "core/platform.py", "core/resources.py", "core/worker.py",
    "simulation/jobs.py", "simulation/store.py", "datasets/remote", "lessons/slides.py",
    "lessons/room.py", "lessons/in_or_out.py",
)  # fmt: skip


def digest_of(what: object) -> str:
    """Return a name for anything by what it looks like in Python."""
    return hashlib.blake2b(repr(what).encode(), digest_size=12).hexdigest()


class Shipped(Generic[Item]):
    """Items of one shelf that ship.

    Parameters
    ----------
    name : str
    read : callable
        From the bytes of an item.
    write : callable
        To them.
    """

    noting: dict[str, bytes] | None = None
    """What is kept while an archive is made, by its name in there; nothing ships meanwhile."""

    def __init__(
        self, name: str, read: Callable[[bytes], Item], write: Callable[[Item], bytes]
    ) -> None:
        self._name, self._read, self._write = name, read, write

    def place(self, what: Hashable) -> str:
        """Return the name of an item in the archive."""
        # what begins alike lies together, as it is asked for together
        group = what[0] if isinstance(what, tuple) else what
        return f"{self._name}/{digest_of(group)}/{digest_of(what)}"

    def get(self, what: Hashable) -> Item | None:
        """Return an item, if it ships and its code is as it was."""
        content = self._content(what)
        return None if content is None else self._read(content)

    def has(self, what: Hashable) -> bool:
        """Return whether an item ships, and its code is as it was."""
        return self._content(what) is not None

    def _content(self, what: Hashable) -> bytes | None:
        return None if Shipped.noting is not None else item(self.place(what))

    def note(self, what: Hashable, item: Item) -> None:
        """Note an item while an archive is made."""
        if Shipped.noting is not None:
            Shipped.noting[self.place(what)] = self._write(item)


BOARDS = Shipped[dict[str, Any]]("boards", json.loads, lambda board: json.dumps(board).encode())
"""What a board begins with."""


def board_key(settings: Settings) -> tuple[str, str]:
    """Return by what a board that begins with a setting is kept."""
    return settings.table, repr(settings)


class _Archive:
    """An archive: groups of items, of which those that were asked for last are held."""

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
        """Return whether it was drawn by the code as it is."""
        digests = json.loads(self.get(_FILES) or b"[]")
        known, left = dict(digests), Counter(code for _, code in digests)
        for path in _sources():  # where a file lies changes no number
            # Bytes come first: they are soon read, and each Python writes a tree its own way.
            code = known.get(bytes_digest(path)) or code_digest(path)
            if not left[code]:
                return False
            left[code] -= 1
        return not left.total()

    def _read(self, group: str) -> dict[str, bytes]:
        if group not in self._names:
            return {}
        head, _, body = self._zip.read(group).partition(b"\n")
        found, at = {}, 0
        for name, size in json.loads(head):
            found[name] = body[at : at + size]
            at += size
        return found


def item(name: str) -> bytes | None:
    """Return what ships under a name."""
    archive = _shipped()
    return None if archive is None else archive.get(name)


@cache
def _shipped() -> _Archive | None:
    """Return what ships; None where there is no archive, or the code has changed since."""
    with suppress(OSError, zipfile.BadZipFile):
        found = _Archive(ARCHIVE)
        if found.of_this_code():
            return found
    return None


def write(items: Mapping[str, bytes], path: Path = ARCHIVE) -> None:
    """Write an archive that belongs to the code as it is; the same items are the same bytes."""
    digests = sorted((bytes_digest(path), code_digest(path)) for path in _sources())
    files = json.dumps(digests).encode()
    groups: dict[str, list[tuple[str, bytes]]] = {}
    for name, item in sorted({_FILES: files, **items}.items()):
        groups.setdefault(name.rpartition("/")[0], []).append((name, item))
    with atomic_write(path) as aside, zipfile.ZipFile(aside, "w") as archive:
        for group, found in groups.items():
            head = json.dumps([(name, len(item)) for name, item in found]).encode()
            body = b"".join(item for _, item in found)
            # an item has its like 30 kB before it, where deflation does not look
            archive.writestr(zipfile.ZipInfo(group), head + b"\n" + body, zipfile.ZIP_LZMA)


def stale(path: Path = ARCHIVE) -> bool:
    """Return whether the code that draws has changed since an archive was made."""
    return not path.is_file() or not _Archive(path).of_this_code()


def _sources() -> list[Path]:
    aside = [PACKAGE / one for one in _ASIDE]
    found = [*PACKAGE.rglob("*.py"), *(PACKAGE / "lessons" / "scripts").glob("*.toml")]
    return sorted(path for path in found if not any(path.is_relative_to(one) for one in aside))


def bytes_digest(path: Path) -> str:
    """Return the digest of a file that draws what ships, byte by byte."""
    return digest_of(path.read_bytes())


def code_digest(path: Path) -> str:
    """Return the digest of the same, without imports, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    return digest_of(plain(text) if path.suffix == ".py" else text)


def plain(text: str) -> str:
    """Return Python code without imports, comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                kept = [one for one in block if not _silent(one)]
                setattr(node, name, kept or ([ast.Pass()] if name == "body" else []))
    return ast.unparse(tree)


def _silent(node: ast.stmt) -> bool:
    """Return whether a statement imports, or is nothing but a text."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
