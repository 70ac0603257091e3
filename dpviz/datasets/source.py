"""Bytes of a table, wherever they are: a path, memory or an open binary file.

Nothing is copied: paths are read from disk, memory is wrapped, and an open
file is read through its own ``read``.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from dpviz.core.errors import InvalidTable
from dpviz.core.number_text import numeral


@dataclass(frozen=True)
class Limits:
    """What a file may take in memory, counted before it is read or while it unpacks.

    Attributes
    ----------
    text_bytes : int
        Most bytes of text or of Parquet values, after decompression.
    cells : int
        Most rows times columns.
    columns : int
        Most columns.
    """

    text_bytes: int
    cells: int
    columns: int = 20_000


IN_MEMORY = Limits(text_bytes=1 << 29, cells=1 << 26)
"""What the command line holds in memory: larger files are read in batches."""

UPLOADED = Limits(text_bytes=1 << 29, cells=1 << 25)
"""What a page takes: 512 MiB of text, 33 million cells."""


AT_HAND = Limits(text_bytes=1 << 40, cells=1 << 29, columns=1 << 20)
"""What the caller holds in memory already."""


@dataclass(frozen=True)
class Extent:
    """How much text a file holds.

    Attributes
    ----------
    size : int
        Bytes after decompression.
    lines : int
        Lines, counted for texts that will be held in memory; else 1.
    tail : bytes
        The last bytes.
    hexadecimal : bool
        Whether ``0x`` occurs, which Arrow reads as a number; for texts held in memory.
    """

    size: int
    lines: int
    tail: bytes
    hexadecimal: bool = False


_CHUNK = 1 << 20
_TAIL = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
# what people upload by mistake, by its first bytes
_FOREIGN = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (ZIP_MAGIC, "a zip archive or an Excel workbook"),
    (b"PK\x05\x06", "a zip archive"),
    (OLE_MAGIC, "an old Excel workbook"),
    (b"$FL2@(#)", "an SPSS file"),
    (b"$FL3@(#)", "an SPSS file"),
    (b"<stata_dta>", "a Stata file"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\0\1\0\0Standard", "an Access database"),
    (bytes(12) + b"\xc2\xea\x81\x60", "a SAS file"),
    (b"HEADER RECORD*******LIB", "a SAS transport file"),
    (b"ARROW1", "an Arrow file"),
    (b"FEA1", "a Feather file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"RDX2\n", "an R workspace"),
    (b"RDX3\n", "an R workspace"),
    (b"X\n\0\0", "an R object"),
    (b"<!DOCTYPE html", "a web page"),
    (b"<html", "a web page"),
)
_SAS = 'in SAS, proc export data=lib.table outfile="table.csv" dbms=csv; run;'
_EXPORTS = {
    "an R workspace": 'in R, write.csv(data, "table.csv", row.names = FALSE)',
    "an R object": 'in R, write.csv(data, "table.csv", row.names = FALSE)',
    "an SQLite database": "in its program, export one table or query as CSV",
    "an Access database": "in its program, export one table or query as CSV",
    "a SAS file": _SAS,
    "a SAS transport file": _SAS,
    "a web page": "from an online sheet, choose File, Download, CSV",
}
UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Source:
    """One table's bytes, which can be opened from the start again and again.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
        A file must be seekable; it is left open.
    name : str
        What messages call it.
    delimiter : str, optional
        What stands between the cells of a text, where that is known.
    """

    def __init__(
        self,
        given: str | Path | bytes | bytearray | memoryview | BinaryIO,
        name: str,
        delimiter: str | None = None,
    ) -> None:
        self.name = name
        self.delimiter = delimiter
        if isinstance(given, io.BytesIO):
            given = given.getbuffer()
        in_memory = isinstance(given, (bytes, bytearray, memoryview))
        self._given: Any = pa.py_buffer(given) if in_memory else given

    def open(self) -> Any:
        """Return the raw bytes from the start, as a readable Arrow file."""
        if isinstance(self._given, (str, Path)):
            try:
                # as bytes: a name need not be text in the locale's or any encoding
                return pa.OSFile(os.fsencode(self._given))
            except OSError as error:
                raise InvalidTable(f"{self.name} cannot be opened: {_reason(error)}.") from None
        if isinstance(self._given, pa.Buffer):
            return pa.BufferReader(self._given)
        self._given.seek(0)
        return pa.PythonFile(self._given, mode="r")

    def chunks(self, packed: bool = False) -> Iterator[bytes]:
        """Yield the bytes from the start, or what they are unpacked to, a megabyte at a time.

        Parameters
        ----------
        packed : bool
            Whether to unpack them.

        Raises
        ------
        InvalidTable
            If they cannot be read, or are no whole gzip file.
        """
        try:
            raw = self.open()
            stream = gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw
            while chunk := stream.read(_CHUNK):
                yield chunk
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InvalidTable(f"{self.name} is a damaged or incomplete gzip file.") from None
        except OSError as error:
            raise InvalidTable(f"{self.name} cannot be read: {_reason(error)}.") from None

    @property
    def is_gzip(self) -> bool:
        """Whether the bytes are gzip's, whatever the name says."""
        head: bytes = self.open().read(len(GZIP_MAGIC))
        return head == GZIP_MAGIC

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

    def extent(self, limits: Limits | None = None) -> Extent:
        """Return how much text there is, having refused one that is empty, damaged or too long.

        A gzip is decompressed once, one megabyte at a time, and dropped: a small
        file that would grow past the limits is refused in constant memory.

        Parameters
        ----------
        limits : Limits, optional
            Where the text will be held in memory: its bytes and lines are counted.
        """
        most = None if limits is None else limits.text_bytes
        total = lines = returns = 0
        tail = b""
        hexadecimal = False
        packed = self.is_gzip
        try:
            stream = self.open_text()
            if not packed:
                total = stream.size()
            # read in batches: lines are not counted, and of the text only the end is looked at
            if not packed and limits is None:
                stream.seek(max(total - _TAIL, 0))
                tail = stream.read()
            elif most is None or total <= most:
                total = 0
                while chunk := stream.read(_CHUNK):
                    total += len(chunk)
                    lines += chunk.count(b"\n")
                    returns += chunk.count(b"\r")
                    hexadecimal = hexadecimal or b"0x" in chunk or b"0X" in chunk
                    tail = (tail + chunk)[-_TAIL:]
                    if most is not None and total > most:
                        break
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InvalidTable(f"{self.name} is a damaged or incomplete gzip file.") from None
        except OSError as error:
            raise InvalidTable(f"{self.name} cannot be read: {_reason(error)}.") from None
        if most is not None and total > most:
            raise InvalidTable(
                f"{self.name} holds more than {numeral(most / 2**20, 6)} MiB of text, the most "
                "that is read into memory; keep fewer rows or columns."
            )
        if total == 0:
            raise InvalidTable(f"{self.name} is empty.")
        # whichever ends the lines: an old Mac's text has returns alone
        return Extent(total, max(lines, returns) + 1, tail, hexadecimal)


@contextmanager
def readable(sentence: str) -> Iterator[None]:
    """Turn what Arrow says of bytes it cannot read, which may quote a cell, into a sentence."""
    try:
        yield
    except (pa.ArrowException, UnicodeError, OverflowError, OSError):
        raise InvalidTable(sentence) from None


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
            how = _EXPORTS.get(what, "save the table as CSV (also gzipped) or Parquet")
            raise InvalidTable(f"{name} is {what}, which is not read here; {how}.")
    if head.startswith(UTF16):
        raise InvalidTable(f"{name} is encoded as UTF-16; save it as UTF-8.")
    if b"\0" in head:
        raise InvalidTable(f"{name} is neither CSV text nor Parquet: it holds binary data.")


# Streams that a parser reads rows from ------------------------------------------------------------


# Arrow parses a block at a time, and a line must fit in one
BLOCK_BYTES = 8 << 20
CHUNK = 1 << 20
_BLANKS = re.compile(rb"[ \t]+")
_LINE_ENDS = re.compile(rb"(?m)^ | (?=\r?$)")


class SpacesCollapsed:
    """A binary stream whose runs of blanks are single spaces, none at the line ends."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._rest = b""
        self._ready = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, all for -1; empty at the end."""
        parts = [self._ready]
        have = len(self._ready)
        while not self._ended and (size < 0 or have == 0):
            chunk: bytes = self._stream.read(CHUNK)
            self._ended = not chunk
            self._rest += chunk
            # a run of blanks may go on in the next chunk, a line's end cannot
            # without any line end the parser will refuse the block, so it need not be kept
            flush = self._ended or len(self._rest) > BLOCK_BYTES
            end = len(self._rest) if flush else self._rest.rfind(b"\n") + 1
            lines, self._rest = self._rest[:end], self._rest[end:]
            parts.append(_LINE_ENDS.sub(b"", _BLANKS.sub(b" ", lines)))
            have += len(parts[-1])
        whole = b"".join(parts)
        size = have if size < 0 else size
        self._ready = whole[size:]
        return whole[:size]

    def close(self) -> None:
        """Do nothing: the source owns the stream."""


class RowStream:
    """The part of a binary stream that holds the rows."""

    closed = False

    def __init__(self, stream: Any, start: int, stop: int | None) -> None:
        self._stream = stream
        self._left = None if stop is None else stop - start
        while start > 0:
            start -= len(stream.read(min(start, CHUNK))) or start

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, all for -1; empty at the end."""
        if self._left is not None:
            size = self._left if size < 0 else min(size, self._left)
        data: bytes = self._stream.read(size)
        if self._left is not None:
            self._left -= len(data)
        return data

    def close(self) -> None:
        """Do nothing: the source owns the stream."""


class LineEnded:
    """A binary stream whose last line has an end, read in one go with what is before it."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._last = b"\n"

    def read(self, size: int = -1) -> bytes:
        """Return ``size`` bytes, fewer only at the end; all for -1."""
        parts: list[bytes] = []
        have = 0
        while size < 0 or have < size:
            data: bytes = self._stream.read(-1 if size < 0 else size - have)
            if not data and self._last not in (b"\n", b"\r"):
                data = b"\n"
            if not data:
                break
            self._last = data[-1:]
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Do nothing: the source owns the stream."""


def as_raw(stream: Any) -> Any:
    """Return the stream as the buffered binary file that text wrappers need."""

    class Raw(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            data: bytes = stream.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)

    return io.BufferedReader(Raw(), buffer_size=1 << 20)
