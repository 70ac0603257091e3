"""Numeric rows of a file of any size, a batch at a time.

The features are those that reading the whole file would give, by the same code,
with one difference: what a column holds is judged by the first rows of a Parquet
file, or by the first 8 MiB of a text, and a file whose later cells say otherwise
is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import FoldSum
from dpviz.core.errors import InvalidSetting, InvalidTable, printable
from dpviz.core.number_text import numeral
from dpviz.core.params import format_number
from dpviz.core.settings import levels_listed
from dpviz.datasets import delimited, numerals
from dpviz.datasets.claims import DAMAGED, check_pages, check_size
from dpviz.datasets.columns import MISSING_MARKERS, Kind, listed
from dpviz.datasets.files import (
    Settled,
    decimal_mark,
    flat_columns,
    flat_of,
    keyed,
    misnamed,
    settled_columns,
    settled_text,
    shown_name,
)
from dpviz.datasets.formats import opened
from dpviz.datasets.layout import Layout, detect
from dpviz.datasets.source import IN_MEMORY, Source, readable
from dpviz.datasets.survey import MAX_MAGNITUDE, is_text, plain_numbers
from dpviz.datasets.table import NAMELESS, PLAINLY, ReadOptions

LARGE_BYTES = 8 * IN_MEMORY.cells
"""A file is read in batches if its numbers, or its text, take more than this: 512 MiB."""

_READ_BYTES = 1 << 18  # of a column of a Parquet file at a time
_BATCH_ROWS = 1 << 16
_BLOCK_CELLS = 1 << 19  # 4 MiB of numbers: a block stays in the processor's cache


S = TypeVar("S", bound=FoldSum)
V = TypeVar("V", bound=np.generic)


def check_batches(reading: ReadOptions) -> None:
    """Raise `InvalidSetting` where a reading asks for what needs all rows in memory at once."""
    for name, value in (("categorical", reading.categorical), ("missing", reading.missing)):
        if value != "drop":
            allowed = "drop for rows that are read in batches"
            raise InvalidSetting(name, allowed, value, f"--{name}")
    for name, given in (
        ("codes", ",".join(map(format_number, reading.codes))),
        ("levels", levels_listed(reading.levels)),
        ("person", reading.person),
    ):
        if given:
            allowed = "left out for rows that are read in batches"
            raise InvalidSetting(name, allowed, given, f"--{name}")


def is_large(path: str | Path) -> bool:
    """Return whether a file is so large that it is read in batches."""
    path = Path(path)
    if not path.is_file():
        return False
    # unnamed: what is wrong is said by whoever reads it
    source = Source(path, "")
    if source.is_parquet:
        try:
            metadata = parquet.ParquetFile(source.open()).metadata
        except (pa.ArrowException, UnicodeError, OSError):
            return False
        groups = range(metadata.num_row_groups)
        unpacked = sum(metadata.row_group(j).total_byte_size for j in groups)
        cells = metadata.num_rows * metadata.num_columns
        return bool(cells * 8 > LARGE_BYTES or unpacked > IN_MEMORY.text_bytes)
    if not source.is_gzip:
        size = path.stat().st_size
        # a line of a table has two cells at least, of one letter each, and their ends
        return size > LARGE_BYTES or (size > LARGE_BYTES // 8 and _many_cells(source))
    limits = replace(IN_MEMORY, text_bytes=LARGE_BYTES)
    try:
        source.extent(limits)
    except InvalidTable:
        return _unpacks(source)
    return _many_cells(source)


def _many_cells(source: Source) -> bool:
    """Return whether a text has more cells than are read into memory."""
    try:
        extent = source.extent(replace(IN_MEMORY, text_bytes=LARGE_BYTES))
        return extent.lines * detect(source, extent).width * 8 > LARGE_BYTES
    except InvalidTable:
        return False


def _unpacks(source: Source) -> bool:
    """Return whether the start of a gzip is sound: else reading it says what is wrong."""
    try:
        return bool(source.open_text().read(1))
    except (EOFError, OSError, zlib.error):
        return False


class FileBatches:
    """The numeric rows of a CSV, gzipped CSV or Parquet file; rows with gaps are left out.

    Parameters
    ----------
    path : str or Path
    reading : ReadOptions
        Rows without a label are left out. What an encoding or a sheet turns into text or Parquet
        is held in memory.
    name : str, optional
        What the file is called, where that is not the name it lies under.

    Attributes
    ----------
    name : str
        File name, as messages show it.
    called : str
        What results call it.
    columns : tuple of str
        Names of the numeric columns.
    notes : tuple of str
        What reading changed or assumed, as sentences.

    Raises
    ------
    InvalidTable
        If the file cannot be read, or the label is not one of its columns.
    InvalidSetting
        As in `check_batches`.
    """

    def __init__(
        self, path: str | Path, reading: ReadOptions = PLAINLY, name: str | None = None
    ) -> None:
        check_batches(reading)
        path = Path(path)
        self.name = shown_name(path.name if name is None else name)
        self.called = NAMELESS
        self.rows_a_person = reading.rows_a_person
        if not path.is_file():
            raise InvalidTable(
                f"table must be a file to be read in batches; {self.name!r} is none."
            )
        found = opened(path, self.name, encoding=reading.encoding, sheet=reading.sheet)
        self._source = found.source
        self._layout: Layout | None = None
        self._decimal = decimal_mark(reading.decimal)
        settled, notes = self._head()
        self._choose(settled, reading)
        self.columns = tuple(item.column.name for item in self._features)
        self.notes = (*found.notes, *notes, *self._left_out)

    def _choose(self, settled: list[Settled], reading: ReadOptions) -> None:
        """Decide which columns are features, which hold nothing and which is the label."""
        places = {item.column.name: item.place for item in settled}
        named = [("label", reading.label)] if reading.label is not None else []
        for what, column in [*named, *(("a column left out", name) for name in reading.leave_out)]:
            if column not in places:
                raise InvalidTable(
                    f"{what} must be a column of {self.name}, one of {listed(list(places))}; "
                    f"got {printable(column)!r}."
                )
        self._label = None if reading.label is None else places[reading.label]
        used = [
            item
            for item in settled
            if item.place != self._label and item.column.name not in reading.leave_out
        ]
        self._features = [item for item in used if item.column.is_feature]
        self._empty = [item for item in used if item.column.kind is Kind.EMPTY]
        beside = [item for item in used if item not in self._features and item not in self._empty]
        self._left_out = [
            f"Left out as {what}: {listed([item.column.name for item in items])}."
            for what, items in (("text or dates", beside), ("empty", self._empty))
            if items
        ]

    def _head(self) -> tuple[list[Settled], list[str]]:
        """Return what the columns are, judged on a text's first block or a Parquet's first rows."""
        if self._source.is_parquet:
            return self._parquet_head()
        extent = self._source.extent()
        layout = detect(self._source, extent, self._decimal)
        check_size(self.name, 0, layout.width, IN_MEMORY)

        def first(more: Collection[int]) -> Any:
            kept = replace(layout, as_text=layout.as_text | set(more))
            head = _first_rows(delimited.open_batches(self._source, kept), 2)
            if head is not None:
                return head
            return pa.table({str(j): pa.nulls(0) for j in range(layout.width)})

        self._layout = layout
        settled, said = settled_text(self.name, first(()), layout, self._decimal, first)
        return settled, [*misnamed(self._source), *said]

    def _parquet_head(self) -> tuple[list[Settled], list[str]]:
        with readable(DAMAGED.format(self.name)):
            file = parquet.ParquetFile(self._source.open())
            check_size(self.name, 0, file.metadata.num_columns, IN_MEMORY)
            names, notes = flat_columns(self.name, file.schema_arrow)
            self._claims = check_pages(self._source, set(names), IN_MEMORY)
            least = self._claims.rows(_BATCH_ROWS, names)
            head = _first_rows(self._parquet_batches(names), least)
        if head is None or file.metadata.num_rows < 2:
            found = "one row" if file.metadata.num_rows else "none"
            raise InvalidTable(f"{self.name} must have at least 2 rows of data; it has {found}.")
        self._keys = list(keyed(head))
        columns = flat_of(head)
        if file.metadata.num_rows > head.num_rows:
            columns = [(name, self._later(j, values)) for j, (name, values) in enumerate(columns)]
        settled, said = settled_columns(self.name, columns, self._decimal)
        return settled, notes + said

    def _later(self, place: int, values: Any) -> Any:
        """Return a column's first values, or those of the first batch that has any."""
        if pc.all(pc.is_null(values, nan_is_null=True)).as_py():
            with readable(DAMAGED.format(self.name)):
                key = self._keys[place]
                for batch in self._parquet_batches([key[0]]):
                    later = keyed(batch)[key]
                    if not pc.all(pc.is_null(later, nan_is_null=True)).as_py():
                        return pa.chunked_array([later.slice(0, len(values))])
        return values

    def _parquet_batches(self, names: list[str]) -> Iterator[Any]:
        # Buffering ahead keeps all that was read, up to the whole file; without a buffer a column
        # of a row group is read at once, and its pages cost more than its numbers.
        file = parquet.ParquetFile(
            self._source.open(),
            read_dictionary=self._claims.coded,
            pre_buffer=False,
            buffer_size=_READ_BYTES,
        )
        yield from file.iter_batches(self._claims.rows(_BATCH_ROWS, names), columns=names)

    def _batches(self) -> Iterator[list[Any]]:
        """Yield the arrays of the features, of the empty columns and of the label, if any."""
        places = [item.place for item in (*self._features, *self._empty)]
        places += [] if self._label is None else [self._label]
        if self._layout is not None:
            types = {item.place: _type_of(item) for item in self._features}
            types |= dict.fromkeys([item.place for item in self._empty], pa.string())
            if self._label is not None:
                types[self._label] = pa.string()
            for batch in delimited.open_batches(self._source, self._layout, types):
                yield [batch.column(j) for j in range(len(places))]
            return
        with readable(DAMAGED.format(self.name)):
            keys = [self._keys[place] for place in places]
            for batch in self._parquet_batches(list(dict.fromkeys(name for name, _ in keys))):
                read = keyed(batch)
                yield [read[key] for key in keys]

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows and how many incomplete ones each lost.

        A block, of shape (size, d), is only good until the next one: they share
        memory.

        Raises
        ------
        InvalidTable
            On an infinite or absurdly large number; the row is named.
        """
        d, empty = len(self._features), len(self._empty)
        size = max(256, min(_BATCH_ROWS, _BLOCK_CELLS // max(d, 1)))
        # by columns, as they arrive; its transpose is the block
        buffer = np.empty((d, size))
        row = 0
        for batch in _read_ahead(self._batches()):
            count = len(batch[0]) if batch else 0
            arrays = [
                self._numbers(item, column)
                for item, column in zip(self._features, batch, strict=False)
            ]
            for item, column in zip(self._empty, batch[d : d + empty], strict=True):
                if _present(column).any():
                    raise InvalidTable(
                        f"column '{item.column.name}' of {self.name} starts empty and later holds "
                        "values, which a file read in batches must not."
                    )
            present = None if self._label is None else _present(batch[-1])
            for start in range(0, count, size):
                stop = min(start + size, count)
                block = buffer[:, : stop - start]
                for j, array in enumerate(arrays):
                    block[j] = array[start:stop]
                keep = None if present is None else present[start:stop]
                yield complete(block.T, keep, self.name, self.columns, row + start)
            row += count

    def _numbers(self, item: Settled, column: Any) -> NDArray[Any]:
        """Return one column of a batch as numbers, gaps as NaN."""
        if item.mark is None:
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            numbers: NDArray[Any] = plain_numbers(column).to_numpy(zero_copy_only=False)
            return numbers
        mark = item.mark

        def parsed(texts: Any) -> NDArray[np.float64]:
            return numerals.parse(pc.utf8_trim_whitespace(texts.cast(pa.large_string())), mark)

        found = _each(column, parsed, np.nan)
        if (np.isnan(found) & _present(column)).any():
            raise delimited.later_text(self.name, item.place)
        return found

    def first(self) -> FloatArray:
        """Return the first block that has complete rows; empty if there is none."""
        for block, _ in self.blocks():
            if len(block):
                return block.copy()
        return np.zeros((0, len(self._features)))

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows, in the order of the file."""
        total = new()
        for block, dropped in self.blocks():
            total.dropped += dropped
            if len(block):
                total.add(block, total.rows)
        return total


def _first_rows(batches: Iterator[Any], least: int) -> Any:
    """Return the first batches, at least so many rows where there are, as one table; or None."""
    found: list[Any] = []
    for batch in batches:
        found.append(batch)
        if sum(part.num_rows for part in found) >= least:
            break
    return pa.Table.from_batches(found) if found else None


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what an iterator yields, which works on the next one meanwhile in a thread."""
    # one ahead: reading and arithmetic overlap, and no more than two batches live
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def complete(
    rows: FloatArray, keep: NDArray[np.bool_] | None, name: str, columns: tuple[str, ...], row: int
) -> tuple[FloatArray, int]:
    """Return the rows without gaps, and how many had one.

    Raises
    ------
    InvalidTable
        On an infinite or absurdly large number; ``row`` is the number of the
        first row, from 0.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        # Column sums tell whether a block needs a closer look, and few do.
        if keep is None and (np.abs(np.ones(len(rows)) @ rows) < MAX_MAGNITUDE).all():
            return rows, 0
        bad = np.abs(rows) > MAX_MAGNITUDE
    if bad.any():
        at, column = np.argwhere(bad)[0]
        raise InvalidTable(
            f"column '{columns[column]}' of {name} holds an infinite number or one beyond "
            f"{numeral(MAX_MAGNITUDE, 6)} in row {row + int(at) + 1}, not counting a header."
        )
    whole = ~np.isnan(rows).any(axis=1)
    if keep is not None:
        whole &= keep
    return rows[whole], int(len(rows) - np.count_nonzero(whole))


def _type_of(item: Settled) -> Any:
    """Return what Arrow shall read a feature of a text as."""
    if item.mark is not None:
        return pa.string()
    return pa.bool_() if item.column.kind is Kind.BOOLEAN else pa.float64()


def _each(column: Any, of: Callable[[Any], NDArray[V]], gap: V | float) -> NDArray[V]:
    """Return what a function finds of each cell; of coded ones once for each text.

    Decoded, they could take any amount of memory.
    """
    if not pa.types.is_dictionary(column.type):
        return of(column)
    found = np.append(of(column.dictionary), gap)
    at = pc.fill_null(column.indices.cast(pa.int64()), len(found) - 1)
    taken: NDArray[V] = found[at.to_numpy(zero_copy_only=False)]
    return taken


def _present(column: Any) -> NDArray[np.bool_]:
    """Return which rows have a label."""
    if pa.types.is_dictionary(column.type):
        return _each(column, _present, False)
    gap = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        words = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        gap = pc.or_(gap, pc.is_in(words, value_set=pa.array(MISSING_MARKERS, pa.large_string())))
    present: NDArray[np.bool_] = ~gap.to_numpy(zero_copy_only=False)
    return present
