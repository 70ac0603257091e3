"""Give access to a table's bytes in a path, in memory or in an open binary file.

A release reads its lines through this module. No bytes are copied: paths are read from disk, memory
is wrapped, and an open file is read through its own ``read``.
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
    """The bytes of a table, which can be opened from the start repeatedly.

    Parameters
    ----------
    given : str, Path, bytes-like or binary file
        A file must be seekable, and it is left open.
    name : str
        Name of the table in messages.
    """

    def __init__(
        self, source: str | Path | bytes | bytearray | memoryview | BinaryIO, name: str
    ) -> None:
        self.name = name
        if isinstance(source, io.BytesIO):
            source = source.getbuffer()
        in_memory = isinstance(source, (bytes, bytearray, memoryview))
        self.given: Any = source
        self._given: Any = pa.py_buffer(source) if in_memory else source

    def open(self) -> Any:
        """Return the raw bytes from the start, as a readable Arrow file."""
        if isinstance(self._given, (str, Path)):
            try:
                # Pass the file name as bytes, because it may be valid text in no encoding.
                return pa.OSFile(os.fsencode(self._given))
            except OSError as error:
                raise InvalidTable(f"{self.name} cannot be opened: {reason(error)}.") from None
        if isinstance(self._given, pa.Buffer):
            return pa.BufferReader(self._given)
        self._given.seek(0)
        return pa.PythonFile(self._given, mode="r")

    def chunks(self, packed: bool = False) -> Iterator[bytes]:
        """Yield the raw or unpacked bytes from the start, a megabyte at a time.

        Parameters
        ----------
        packed : bool
            Whether to unpack the bytes.

        Raises
        ------
        InvalidTable
            If the bytes cannot be read, or are not a complete gzip file.
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
        """Whether the bytes are a gzip file, whatever the name says."""
        return self.head(len(GZIP_MAGIC)) == GZIP_MAGIC

    @property
    def is_parquet(self) -> bool:
        """Whether the bytes start as a Parquet file does."""
        return self.head(len(PARQUET_MAGIC)) == PARQUET_MAGIC

    def head(self, size: int) -> bytes:
        """Return the first bytes, or raise InvalidTable if the system cannot read them."""
        try:
            content: bytes = self.open().read(size)
        except OSError as error:
            raise InvalidTable(f"{self.name} cannot be read: {reason(error)}.") from None
        return content

    def open_text(self) -> Any:
        """Return the text from the start, decompressed if it is a gzip."""
        # Check for gzip before opening: each opening moves the position in the caller's file.
        is_gzip = self.is_gzip
        raw = self.open()
        return gzip.GzipFile(fileobj=raw, mode="rb") if is_gzip else raw


@contextmanager
def readable(sentence: str) -> Iterator[None]:
    """Replace Arrow's error on unreadable bytes, which may quote a cell, by a sentence."""
    try:
        yield
    except (pa.ArrowException, UnicodeError, OverflowError, OSError):
        raise InvalidTable(sentence) from None
