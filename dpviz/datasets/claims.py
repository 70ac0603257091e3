"""What a Parquet file claims to hold, by its footer and the head of each page, before it is read.

Arrow makes room for what the head of a page says, whatever the footer does: 66 kB whose footer
claimed 1 kB took 2 GB. Heads are written in Thrift's compact protocol; fields as in parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as parquet

from dpviz.core.errors import InvalidTable
from dpviz.core.number_text import numeral
from dpviz.datasets.source import Limits, Source, readable

DAMAGED = (
    "{} starts like a Parquet file but cannot be read as one: it is damaged, incomplete or of an "
    "unknown kind."
)

_HEADS = (1 << 8, 1 << 12, 1 << 16, 1 << 24)  # of Arrow's, the last is the longest
_UNPACKED, _PACKED, _VALUES = (2,), (3,), ((5, 1), (8, 1))
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _TEXT, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12


class _Unfit(ValueError):
    """These bytes are no head of a page."""


def check_size(name: str, rows: int, columns: int, limits: Limits) -> None:
    """Raise InvalidTable where a file claims more columns or cells than are read into memory."""
    if columns > limits.columns:
        raise InvalidTable(
            f"{name} must have at most {limits.columns:,} columns; it has {columns:,}."
        )
    if rows * columns > limits.cells:
        raise InvalidTable(
            f"{name} has about {rows:,} rows of {columns:,} columns, more than the "
            f"{limits.cells:,} cells that are read into memory; keep fewer rows or columns."
        )


def check_claims(source: Source, claimed: Any, limits: Limits) -> None:
    """Raise InvalidTable where a Parquet file claims more than is read into memory.

    Parameters
    ----------
    source : Source
    claimed : pyarrow.parquet.FileMetaData
        Its footer.
    limits : Limits
    """
    check_size(source.name, claimed.num_rows, claimed.num_columns, limits)
    unpacked = sum(claimed.row_group(j).total_byte_size for j in range(claimed.num_row_groups))
    if unpacked <= limits.text_bytes:
        pages = (sizes for group in _pages(source, claimed) for sizes in group)
        unpacked = max(unpacked, sum(map(sum, pages)))
    _require(source.name, unpacked, "", limits)


def check_pages(source: Source, limits: Limits) -> None:
    """Raise InvalidTable where a Parquet file takes too much memory to be read in batches.

    Then it has a page of each column there at a time. Of a file that is no Parquet nothing is
    asked.

    Parameters
    ----------
    source : Source
    limits : Limits
    """
    if source.is_parquet:
        with readable(DAMAGED.format(source.name)):
            groups = _pages(source, parquet.read_metadata(source.open()))
            for group in groups:
                together = sum(max(sizes, default=0) for sizes in group)
                _require(source.name, together, "in one page of each column ", limits)


def _require(name: str, unpacked: int, where: str, limits: Limits) -> None:
    if unpacked > limits.text_bytes:
        raise InvalidTable(
            f"{name} unpacks {where}to more than {numeral(limits.text_bytes / 2**20, 6)} MiB, "
            "the most that is read into memory; keep fewer rows or columns."
        )


def _pages(source: Source, claimed: Any) -> Iterator[list[list[int]]]:
    """Yield for each row group and column what the pages unpack to, by their heads."""
    stream = source.open()
    size = left = stream.size()
    for group in (claimed.row_group(j) for j in range(claimed.num_row_groups)):
        found = []
        for chunk in (group.column(j) for j in range(group.num_columns)):
            left -= chunk.total_compressed_size
            # pages are nobody's twice, so that heads are no more than the file holds
            if left < 0 or chunk.total_compressed_size < 0:
                raise InvalidTable(DAMAGED.format(source.name))
            try:
                found.append(_unpacked(stream, chunk, size))
            except (_Unfit, RecursionError):
                raise InvalidTable(DAMAGED.format(source.name)) from None
        yield found


def _unpacked(stream: Any, chunk: Any, size: int) -> list[int]:
    """Return the bytes that each page of a column in a row group unpacks to, in Arrow's order."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + chunk.total_compressed_size
    seen, found = 0, []
    while seen < chunk.num_values and at < end:
        head, length = _head(stream, at)
        unpacked, packed = head.get(_UNPACKED, -1), head.get(_PACKED, -1)
        if unpacked < 0 or not 0 <= packed <= size:
            raise _Unfit
        found.append(unpacked)
        seen += sum(max(head.get(path, 0), 0) for path in _VALUES)
        at += length + packed
    return found


def _head(stream: Any, at: int) -> tuple[dict[tuple[int, ...], int], int]:
    """Return the whole numbers in the head of a page, by their fields, and its length."""
    for most in _HEADS:
        stream.seek(at)
        data: bytes = stream.read(most)
        found: dict[tuple[int, ...], int] = {}
        try:
            return found, _struct(data, 0, (), found)
        except IndexError:
            # whole, so more of it would not help
            if len(data) < most:
                break
    raise _Unfit


def _struct(data: bytes, at: int, path: tuple[int, ...], found: dict[tuple[int, ...], int]) -> int:
    """Read a struct from a place on; return where it ends."""
    field = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        at += 1
        if step:
            field += step
        else:
            field, at = _number(data, at)
        if kind in (_SHORT, _INT, _LONG):
            found[*path, field], at = _number(data, at)
        elif kind == _STRUCT:
            at = _struct(data, at, (*path, field), found)
        elif kind == _TEXT:
            length, at = _varint(data, at)
            at += length
        elif kind in (_BYTE, _DOUBLE):
            at += 1 if kind == _BYTE else 8
        elif kind not in (_TRUE, _FALSE):  # heads have no lists
            raise _Unfit
    return at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        found |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return found, at
        if shift > 63:
            raise _Unfit


def _number(data: bytes, at: int) -> tuple[int, int]:
    found, at = _varint(data, at)
    return (found >> 1) ^ -(found & 1), at
