"""One file out of what a server sends: an archive, an archive in an archive, or a packed file."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, cast

from dpviz.datasets.source import GZIP_MAGIC

_ZIP_MAGIC = b"PK\x03\x04"
_COMPRESS_MAGIC = b"\x1f\x9d"
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_DEEPEST = 2  # UCI puts an older zip or tar into its zip; nothing is packed further
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted member
)


class Damaged(ValueError):
    """What was sent cannot be unpacked."""


class Unpacker:
    """Takes files out of a download.

    Parameters
    ----------
    path : Path
        What was downloaded.
    aside : Path
        Folder for archives found inside.
    depth : int
        Archives around this one.
    """

    def __init__(self, path: Path, aside: Path, depth: int = 0) -> None:
        self._path, self._aside, self._depth = path, aside, depth
        self._inner: list[Unpacker] | None = None
        try:
            self._open()
        except DAMAGE:
            raise Damaged from None

    def _open(self) -> None:
        with self._path.open("rb") as file:
            head = file.read(len(_ZIP_MAGIC))
        self._zip = self._tar = False
        self._members: list[str] = []
        if zipfile.is_zipfile(self._path) or head == _ZIP_MAGIC:
            self._zip = True
            with zipfile.ZipFile(self._path) as archive:
                self._members = [item.filename for item in archive.infolist() if not item.is_dir()]
        elif tarfile.is_tarfile(self._path):
            self._tar = True
            with tarfile.open(self._path) as tar:
                self._members = [item.name for item in tar.getmembers() if item.isfile()]

    def extract(self, name: str, target: Path) -> bool:
        """Write the file of that name, or return False if it is not inside.

        Raises
        ------
        Damaged
            If what was sent is no archive, is cut short or fails its own check.
        """
        try:
            return self._extract(name, target)
        except DAMAGE:
            raise Damaged from None

    def _extract(self, name: str, target: Path) -> bool:
        if not (self._zip or self._tar):
            # an address that says nothing of the name, of a file that is wanted packed
            as_it_is = name.endswith((".gz", ".Z"))
            (shutil.copyfile if as_it_is else unpack_file)(self._path, target)
            return True
        member = self._find(name)
        if member is not None:
            self._copy(member, target)
            return True
        for suffix in (".gz", ".Z"):
            member = self._find(name + suffix)
            if member is not None:
                packed = self._aside / f"packed-{self._depth}"
                self._copy(member, packed)
                unpack_file(packed, target)
                packed.unlink()
                return True
        return any(inner._extract(name, target) for inner in self._archives())

    def _archives(self) -> list[Unpacker]:
        if self._inner is None:
            self._inner = []
            names = [name for name in self._members if name.lower().endswith(_ARCHIVES)]
            for number, name in enumerate(names if self._depth < _DEEPEST else []):
                path = self._aside / f"{self._path.name}-{number}"
                self._copy(name, path)
                self._inner.append(Unpacker(path, self._aside, self._depth + 1))
        return self._inner

    def _find(self, name: str) -> str | None:
        """Return the member whose path ends in that name, the shortest if there are several."""
        ending = "/" + name.lower()
        found = [item for item in self._members if ("/" + item.lower()).endswith(ending)]
        return min(found, key=len) if found else None

    def _copy(self, member: str, target: Path) -> None:
        if self._zip:
            with zipfile.ZipFile(self._path) as archive, archive.open(member) as source:
                _write(source, target)
            return
        with tarfile.open(self._path) as tar:
            source_of = tar.extractfile(member)
            if source_of is None:
                raise Damaged
            with source_of:
                _write(source_of, target)


def _write(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)


def unpack_file(path: Path, target: Path) -> None:
    """Write what a .gz or .Z file holds; any other file is copied.

    Raises
    ------
    Damaged, or one of `DAMAGE`
        If it is cut short or fails its own check.
    """
    with path.open("rb") as file:
        head = file.read(2)
    if head == GZIP_MAGIC:
        with gzip.open(path, "rb") as source:
            _write(cast(IO[bytes], source), target)
    # musk and waveform are packed so, alone at their old addresses
    elif head == _COMPRESS_MAGIC:
        target.write_bytes(uncompress(path.read_bytes()))
    else:
        shutil.copyfile(path, target)


def uncompress(packed: bytes) -> bytes:
    """Return what a file of the Unix program compress (.Z) holds.

    Parameters
    ----------
    packed : bytes
        The file: two magic bytes, a byte with the largest width of a code (10
        to 16) and the flag of block mode, then LZW codes, lowest bits first.

    Raises
    ------
    Damaged
        If a code cannot be, or the file ends too early to tell.

    Notes
    -----
    A code is 9 bits wide at first and one bit wider whenever the table is full.
    Codes are written in groups of eight of one width: when the width changes, or
    the table is cleared (code 256 in block mode), the rest of the group is skipped.
    """
    if len(packed) < 3 or packed[:2] != _COMPRESS_MAGIC:
        raise Damaged
    widest, block = packed[2] & 0x1F, bool(packed[2] & 0x80)
    if not 10 <= widest <= 16:  # at 9 the program does not keep to its own format
        raise Damaged
    first = 257 if block else 256
    roots = [bytes([value]) for value in range(256)] + [b""] * (first - 256)
    table = list(roots)
    out: list[bytes] = []
    previous = b""
    width, start, end = 9, 24, 8 * len(packed)
    at = start  # position in bits; a group of eight codes begins at `start`
    while at + width <= end:
        low = at >> 3
        code = int.from_bytes(packed[low : low + 4], "little") >> (at & 7) & ((1 << width) - 1)
        at += width
        if block and code == 256:
            at = start + -(-(at - start) // (8 * width)) * 8 * width
            start, width, previous = at, 9, b""
            table = list(roots)
            continue
        if code < len(table):
            entry = table[code]
        elif code == len(table) and previous:
            entry = previous + previous[:1]
        else:
            raise Damaged
        out.append(entry)
        if previous and len(table) < 1 << widest:
            table.append(previous + entry[:1])
            if len(table) == 1 << width and width < widest:
                at = start + -(-(at - start) // (8 * width)) * 8 * width
                start, width = at, width + 1
        previous = entry
    return b"".join(out)
