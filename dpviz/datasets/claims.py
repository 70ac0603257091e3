"""What a Parquet file claims to hold, by its footer and the head of each page, before it is read.

Arrow makes room for what the head of a page says, whatever the footer does: 66 kB whose footer
claimed 1 kB took 2 GB. Heads are written in Thrift's compact protocol; fields as in parquet.thrift.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import InvalidTable
from dpviz.core.number_text import numeral
from dpviz.datasets.columns import listed
from dpviz.datasets.source import IN_MEMORY, Limits, Source, readable
from dpviz.datasets.survey import is_text

DAMAGED = (
    "{} starts like a Parquet file but cannot be read as one: it is damaged, incomplete or of an "
    "unknown kind."
)

_HEADS = (1 << 8, 1 << 12, 1 << 16, 1 << 24)  # of Arrow's, the last is the longest
_KIND, _UNPACKED, _PACKED = (1,), (2,), (3,)
_VALUES, _ENCODING = ((5, 1), (8, 1)), ((5, 2), (8, 4))
_DICTIONARY, _PLACES = 2, {2, 8}  # kinds of pages and encodings
# of texts: Arrow makes room for as many as their packed bytes say, and each may repeat another
_DELTA = {6, 7}
_READ_BYTES = 1 << 18
_SMALL = 1 << 24  # a page that is read to see what it holds
_COPIES = 4  # of a text while it is read
_NUMBER = 16  # bytes, as it is read and as it is used
_LONGEST_NUMBER = 32
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


@dataclass(frozen=True)
class Claims:
    """What reading some columns of a Parquet file takes, by the heads of all its pages.

    Attributes
    ----------
    texts : tuple of str
        Columns to be read coded where all is read: a file may hold one long text a million times.
    coded : tuple of str
        Those to be read coded in batches. Of others Arrow would keep every text that it has met.
    unpacked, together : int
        Bytes of all pages, and of what is there at a time in batches, beside their rows; both
        whichever columns are read.
    widths : dict
        Bytes that a row takes at most in batches, by the name of a column.
    """

    texts: tuple[str, ...]
    coded: tuple[str, ...]
    unpacked: int
    together: int
    widths: dict[str, float]

    def rows(self, most: int, names: Iterable[str]) -> int:
        """Return how many rows of some columns to read at a time: at most so many that fit."""
        a_row = sum(self.widths.get(name, 0) for name in names)
        return max(1, min(most, int(IN_MEMORY.text_bytes / max(a_row, 1))))


def claims_of(source: Source, names: Set[str]) -> Claims:
    """Return what reading some columns of a Parquet file takes.

    Parameters
    ----------
    source : Source
    names : set of str

    Raises
    ------
    InvalidTable
        If a page has no head, or nothing bounds what a column unpacks to.
    """
    with readable(DAMAGED.format(source.name)):
        file = parquet.ParquetFile(source.open())
        fields = list(file.schema_arrow)
        leaves = [file.metadata.schema.column(j) for j in range(file.metadata.num_columns)]
        found = [_Chunk() for _ in leaves]
        unpacked = together = 0
        texts = {field.name for field in fields if _holds_text(field.type)}
        categories = {field.name for field in fields if pa.types.is_dictionary(field.type)}
        reader = parquet.ParquetFile(
            source.open(), read_dictionary=texts, pre_buffer=False, buffer_size=_READ_BYTES
        )
        for j, group in enumerate(_chunks(source, file.metadata)):
            for at, (leaf, chunk) in enumerate(zip(leaves, group, strict=True)):
                mixed = chunk.plain and chunk.dictionary and not chunk.delta
                if mixed and chunk.largest <= _SMALL and leaf.path in names & texts:
                    longest = _longest(reader, j, leaf.path, chunk.dictionary)
                    group[at] = chunk._replace(dictionary=longest)
            unpacked += sum(chunk.unpacked for chunk in group)
            together = max(together, sum(chunk.largest for chunk in group))
            found = list(map(_Chunk.beside, found, group))
    widths: defaultdict[str, float] = defaultdict(float)
    coded = set(texts)
    for leaf, chunk in zip(leaves, found, strict=True):
        is_bytes = leaf.physical_type == "BYTE_ARRAY"
        category = is_bytes and leaf.path in categories
        if category:  # Arrow reads them coded, whatever is asked, and keeps every text it has met
            together += chunk.plain
        # Arrow finds columns by name, and parts of nested ones by the start of theirs
        starts = accumulate(leaf.path.split("."), "{}.{}".format)
        name = leaf.path if leaf.path in names else next(filter(names.__contains__, starts), None)
        if name is None:
            continue
        if chunk.delta:
            raise InvalidTable(
                f"{source.name} has texts in a delta encoding in {listed([name])}, which may "
                "unpack to any size and are not read; write them plain or with a dictionary."
            )
        if (
            leaf.path != name
            or leaf.max_repetition_level
            or leaf.length > _LONGEST_NUMBER
            or (is_bytes and name not in texts)
        ):
            raise InvalidTable(
                f"{source.name} has nested values or bytes in {listed([name])}, which may unpack "
                "to any size and are not read; write decimals as numbers, and no name twice."
            )
        widths[name] += max(leaf.length, _NUMBER)
        if is_bytes and chunk.plain and not category:
            coded.discard(name)
            widths[name] += _COPIES * max(chunk.a_value, chunk.dictionary)
    return Claims(tuple(texts), tuple(coded), unpacked, together, dict(widths))


def check_claims(source: Source, claimed: Any, names: Set[str], limits: Limits) -> Claims:
    """Return what reading all of a Parquet file takes, or refuse more than fits in memory.

    Parameters
    ----------
    source : Source
    claimed : pyarrow.parquet.FileMetaData
        Its footer.
    names : set of str
        Of the columns that are read.
    limits : Limits
    """
    unpacked = sum(claimed.row_group(j).total_byte_size for j in range(claimed.num_row_groups))
    _require(source.name, unpacked, "", limits)
    claims = claims_of(source, names)
    _require(source.name, claims.unpacked, "", limits)
    return claims


def check_pages(source: Source, names: Set[str], limits: Limits) -> Claims:
    """Return what reading a Parquet file in batches takes, or refuse more than fits in memory.

    Then it has a page of each column there at a time.

    Parameters
    ----------
    source : Source
    names : set of str
        Of the columns that are read.
    limits : Limits
    """
    claims = claims_of(source, names)
    _require(source.name, claims.together, "in one page of each column ", limits)
    return claims


def _longest(reader: Any, group: int, name: str, size: int) -> int:
    """Return the bytes of the longest text in a dictionary, or of all of it where it hides them."""
    batch = next(reader.iter_batches(1, row_groups=[group], columns=[name]), None)
    if batch is None or [*map(pa.types.is_dictionary, batch.schema.types)] != [True]:
        return size
    # with the first row Arrow reads all of it, where the page that the row is of needs it
    lengths = pc.binary_length(batch.column(0).dictionary.cast(pa.large_binary()))
    held = (pc.sum(lengths).as_py() or 0) + 4 * len(lengths)
    return pc.max(lengths).as_py() if held == size else size


def _holds_text(kind: Any) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _require(name: str, unpacked: int, where: str, limits: Limits) -> None:
    if unpacked > limits.text_bytes:
        raise InvalidTable(
            f"{name} unpacks {where}to more than {numeral(limits.text_bytes / 2**20, 6)} MiB, "
            "the most that is read into memory; keep fewer rows or columns."
        )


class _Chunk(NamedTuple):
    """What the pages of a column hold, in a row group or in all.

    Parameters
    ----------
    unpacked, plain : int
        Bytes of all pages, and of those whose values are not places in a dictionary.
    largest, dictionary : int
        Bytes of the largest page, and of the largest dictionary.
    a_value : float
        Bytes of a value of a page, at most.
    delta : bool
        Whether texts are encoded by what they share with others.
    """

    unpacked: int = 0
    plain: int = 0
    largest: int = 0
    dictionary: int = 0
    a_value: float = 0.0
    delta: bool = False

    def beside(self, other: _Chunk) -> _Chunk:
        """Return what both hold together."""
        most: Iterator[Any] = map(max, self[2:], other[2:])
        return _Chunk(self.unpacked + other.unpacked, self.plain + other.plain, *most)


def _chunks(source: Source, claimed: Any) -> Iterator[list[_Chunk]]:
    """Yield for each row group what its columns hold, by the heads of their pages."""
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
                found.append(_chunk(stream, chunk, size))
            except (_Unfit, RecursionError):
                raise InvalidTable(DAMAGED.format(source.name)) from None
        yield found


def _chunk(stream: Any, chunk: Any, size: int) -> _Chunk:
    """Return what the pages of a column in a row group hold, in Arrow's order."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + chunk.total_compressed_size
    seen, found = 0, _Chunk()
    while seen < chunk.num_values and at < end:
        check_cancelled()  # a file may be nothing but pages
        head, length = _head(stream, at)
        unpacked, packed = head.get(_UNPACKED, -1), head.get(_PACKED, -1)
        if unpacked < 0 or not 0 <= packed <= size:
            raise _Unfit
        if head.get(_KIND) == _DICTIONARY:
            page = _Chunk(unpacked, 0, unpacked, unpacked)
        else:
            values = sum(max(head.get(path, 0), 0) for path in _VALUES)
            encodings = {head.get(path) for path in _ENCODING}
            plain = 0 if encodings & _PLACES else unpacked
            a_value = unpacked / max(values, 1)
            page = _Chunk(unpacked, plain, unpacked, 0, a_value, bool(encodings & _DELTA))
            seen += values
        found = found.beside(page)
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
