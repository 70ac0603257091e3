"""Binary streams that a parser reads rows from, in constant memory."""

from __future__ import annotations

import io
import re
from typing import Any

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
