"""Whether a file is the one on record; each state of a file is digested once."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from dpviz.core.whole import whole
from dpviz.datasets.remote.declared import File

_CHUNK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"


def matches(path: Path, file: File) -> bool:
    """Return whether a file has the digest on record, or where there is none the first one seen.

    The digest of the text counts as well as that of the raw bytes: copies of
    one file differ in line ends, in blanks at the ends of lines, and in packing.
    """
    if file.sha256 is None:
        first = first_digest(path)
        return first is None or first == digest_of(path)
    key = _state(path)
    return _digest(*key) == file.sha256 or _text_digest(*key) == (file.text or file.sha256)


def digest_of(path: Path) -> str:
    """Return the sha256 of a file as it is."""
    return _digest(*_state(path))


def first_digest(path: Path) -> str | None:
    """Return the sha256 that a file without a digest on record had when it was downloaded first."""
    kept = _first(path)
    return kept.read_text(encoding="ascii").strip() if kept.is_file() else None


def keep_first(path: Path) -> None:
    """Keep the sha256 of a file beside it, for every later look."""
    with whole(_first(path)) as aside:
        aside.write_text(f"{digest_of(path)}\n", encoding="ascii")


def _first(path: Path) -> Path:
    return path.with_name(f"{path.name}.first-sha256")


def _state(path: Path) -> tuple[str, int, int]:
    state = path.stat()
    return str(path), state.st_mtime_ns, state.st_size


def text_digest(path: Path) -> str | None:
    """Return the sha256 of a text in its plain form, or None for a damaged gzip.

    Unpacked where it is a gzip; blanks at the ends of lines removed, lines
    ended by a line feed, no empty lines at the end.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(path, "rb") if packed else path.open("rb") as lines:
            _add_plain(digest, lines)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return None
    return digest.hexdigest()


def _add_plain(digest: hashlib._Hash, lines: Iterable[bytes]) -> None:
    empty = 0
    for line in lines:
        kept = line.rstrip()
        if not kept:
            empty += 1
            continue
        digest.update(b"\n" * empty + kept + b"\n")
        empty = 0


# The time and the size make a changed file another entry.
@lru_cache(maxsize=4096)
def _digest(path: str, modified: int, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _text_digest(path: str, modified: int, size: int) -> str | None:
    return text_digest(Path(path))
