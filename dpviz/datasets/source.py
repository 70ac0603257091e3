"""Bytes of a table, wherever they are: a path, memory or an open binary file.

A release reads its own lines, and this is what it reads them from. Nothing is copied: paths are
read from disk, memory is wrapped, and an open file is read through its own ``read``.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from dpviz.core.errors import InvalidTable
from dpviz.datasets.process import reason
from dpviz.datasets.reader import GZIP_MAGIC, PARQUET_MAGIC

_CHUNK = 1 << 20


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
        if isinstance(given, io.BytesIO):
            given = given.getbuffer()
        in_memory = isinstance(given, (bytes, bytearray, memoryview))
        self.given: Any = given
        self._given: Any = pa.py_buffer(given) if in_memory else given

    def open(self) -> Any:
        """Return the raw bytes from the start, as a readable Arrow file."""
        if isinstance(self._given, (str, Path)):
            try:
                # as bytes: a name need not be text in the locale's or any encoding
                return pa.OSFile(os.fsencode(self._given))
            except OSError as error:
                raise InvalidTable(f"{self.name} cannot be opened: {reason(error)}.") from None
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
            raise InvalidTable(f"{self.name} cannot be read: {reason(error)}.") from None

    @property
    def is_gzip(self) -> bool:
        """Whether the bytes are gzip's, whatever the name says."""
        return self.head(len(GZIP_MAGIC)) == GZIP_MAGIC

    @property
    def is_parquet(self) -> bool:
        """Whether the bytes start as a Parquet file does."""
        return self.head(len(PARQUET_MAGIC)) == PARQUET_MAGIC

    def head(self, size: int) -> bytes:
        """Return the first bytes, or raise InvalidTable where the system cannot read them."""
        try:
            found: bytes = self.open().read(size)
        except OSError as error:
            raise InvalidTable(f"{self.name} cannot be read: {reason(error)}.") from None
        return found

    def open_text(self) -> Any:
        """Return the text from the start, decompressed where it is gzip's."""
        # asked first: every opening of a caller's file moves the one position it has
        packed = self.is_gzip
        raw = self.open()
        return gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw


@contextmanager
def readable(sentence: str) -> Iterator[None]:
    """Turn what Arrow says of bytes it cannot read, which may quote a cell, into a sentence."""
    try:
        yield
    except (pa.ArrowException, UnicodeError, OverflowError, OSError):
        raise InvalidTable(sentence) from None
