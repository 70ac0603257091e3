"""Bytes of a table, wherever they are: a path, memory or an open binary file.

Nothing is copied: paths are read from disk, memory is wrapped, and an open
file is read through its own ``read``.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from dpviz.errors import InvalidTable

MAX_TEXT_BYTES = 2 << 30
"""Most bytes of CSV text that are read, after decompression: 2 GiB."""

_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
# what people upload by mistake, by its first bytes
_FOREIGN = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook"),
    (b"PK\x05\x06", "a zip archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"ARROW1", "an Arrow file"),
    (b"FEA1", "a Feather file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy file"),
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Source:
    """One table's bytes, which can be opened from the start again and again.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
        A file must be seekable; it is left open.
    name : str
        What messages call it.
    """

    def __init__(
        self, given: str | Path | bytes | bytearray | memoryview | BinaryIO, name: str
    ) -> None:
        self.name = name
        self._path: str | None = None
        self._buffer: Any = None
        self._file: BinaryIO | None = None
        if isinstance(given, (str, Path)):
            self._path = str(given)
        elif isinstance(given, (bytes, bytearray, memoryview)):
            self._buffer = pa.py_buffer(given)
        elif isinstance(given, io.BytesIO):
            self._buffer = pa.py_buffer(given.getbuffer())
        else:
            self._file = given

    def open(self) -> Any:
        """Return the raw bytes from the start, as a readable Arrow file."""
        if self._path is not None:
            try:
                return pa.OSFile(self._path)
            except OSError as error:
                raise InvalidTable(f"{self.name} cannot be opened: {_reason(error)}.") from None
        if self._buffer is not None:
            return pa.BufferReader(self._buffer)
        assert self._file is not None
        self._file.seek(0)
        return pa.PythonFile(self._file, mode="r")

    @property
    def is_gzip(self) -> bool:
        """Whether the bytes are gzip's, whatever the name says."""
        head: bytes = self.open().read(len(_GZIP_MAGIC))
        return head == _GZIP_MAGIC

    @property
    def is_parquet(self) -> bool:
        """Whether the bytes start as a Parquet file does."""
        head: bytes = self.open().read(len(PARQUET_MAGIC))
        return head == PARQUET_MAGIC

    def open_text(self) -> Any:
        """Return the text from the start, decompressed where it is gzip's."""
        # asked first: every opening of a caller's file moves the one position it has
        packed = self.is_gzip
        raw = self.open()
        return gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw

    def check_text(self) -> None:
        """Raise InvalidTable when the text is empty, damaged or too long.

        A gzip is decompressed once, one megabyte at a time, and dropped: a small
        file that would grow past `MAX_TEXT_BYTES` is refused in constant memory.
        """
        total = 0
        limit = MAX_TEXT_BYTES
        if self.is_gzip:
            try:
                stream = self.open_text()
                while chunk := stream.read(_CHUNK):
                    total += len(chunk)
                    if total > limit:
                        break
            except (EOFError, gzip.BadGzipFile, zlib.error):
                raise InvalidTable(f"{self.name} is a damaged or incomplete gzip file.") from None
        else:
            total = self.open().size()
        if total > limit:
            raise InvalidTable(
                f"{self.name} holds more than {limit / 2**30:g} GiB of text, the most that is "
                "read; save it as Parquet or keep fewer rows or columns."
            )
        if total == 0:
            raise InvalidTable(f"{self.name} is empty.")


def _reason(error: OSError) -> str:
    """Return why a file does not open, without its path."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission is denied"
    return "it is not a readable file"


def refuse_foreign(head: bytes, name: str) -> None:
    """Raise InvalidTable when the first bytes are another format's or not UTF-8 text."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise InvalidTable(
                f"{name} is {what}, not a table; upload CSV (also gzipped) or Parquet."
            )
    if head.startswith(_UTF16):
        raise InvalidTable(f"{name} is encoded as UTF-16; save it as UTF-8.")
    if b"\0" in head:
        raise InvalidTable(f"{name} is neither CSV text nor Parquet: it holds binary data.")
