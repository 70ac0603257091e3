"""Numeric rows of a file of any size, a batch at a time.

The features are the same as when the whole file is read, by the same code, with one difference.
Each column is judged by the first rows of a Parquet file, or by the first 8 MiB of a text. A file
whose later cells contradict that is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import S
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.number_text import numeral
from dpviz.core.settings import codes_listed, levels_listed, read_as_listed
from dpviz.datasets.check import advised
from dpviz.datasets.columns import (
    MAX_MAGNITUDE,
    MISSING_MARKERS,
    POINT,
    Judged,
    Kind,
    among,
    cast,
    listed,
    parse,
    plain_numbers,
    to_numpy,
    told_nothing,
    trimmed,
    truths,
)
from dpviz.datasets.files import Columns, open_file, shown_name, without_names
from dpviz.datasets.raw import RawTable
from dpviz.datasets.reader import is_text
from dpviz.datasets.table import NAMELESS, PLAINLY, ReadOptions

_BATCH_ROWS = 1 << 16
_HEAD_BYTES = 1 << 23
_BLOCK_CELLS = 1 << 19  # A block has 4 MiB of numbers, so that it fits the processor's cache.


V = TypeVar("V", bound=np.generic)


def check_batches(reading: ReadOptions) -> None:
    """Raise `InvalidSetting` if a reading needs all rows in memory at once."""
    for name, value in (("categorical", reading.categorical), ("missing", reading.missing)):
        if value != "drop":
            rule = "drop for rows that are read in batches"
            raise InvalidSetting(name, rule, value, f"--{name}")
    for name, setting in (
        ("codes", codes_listed(reading.codes)),
        ("read as", read_as_listed(reading.read_as)),
        ("levels", levels_listed(reading.levels)),
        ("person", reading.person),
    ):
        if setting:
            rule = "left out for rows that are read in batches"
            raise InvalidSetting(name, rule, setting, f"--{name.replace(' ', '-')}")


class Batches(ABC):
    """Rows outside a single array, summed where they are stored.

    Attributes
    ----------
    name : str
        Name of the rows in messages.
    called : str
        Name of the rows in results.
    columns : tuple of str
        Names of the numeric columns.
    notes : tuple of str
        Sentences on what reading changed or assumed.
    """

    name: str
    called: str
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @abstractmethod
    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows, each with its number of incomplete rows left out.

        A block, of shape (size, d), is valid only until the next: blocks may share memory.

        Raises
        ------
        InvalidTable
            If a number is infinite or absurdly large; the message names the row.
        """

    def first(self) -> FloatArray:
        """Return the first block that has complete rows; empty if there is none."""
        blocks = (block.copy() for block, _ in self.blocks() if len(block))
        return next(blocks, np.zeros((0, len(self.columns))))

    def fold(self, new: Callable[[], S]) -> S:
        """Return a new sum after adding all rows in order."""
        total = new()
        for block, dropped in self.blocks():
            total.dropped += dropped
            if len(block):
                total.add(block, total.rows)
        return total


def block_rows(columns: int) -> int:
    """Return how many rows a block has."""
    return max(256, min(_BATCH_ROWS, _BLOCK_CELLS // max(columns, 1)))


class FileBatches(Batches):
    """Numeric rows of a CSV, gzipped CSV or Parquet file, without rows that have missing values.

    Parameters
    ----------
    path : str or Path
    reading : ReadOptions
        Rows without a label are left out. A file converted because of its encoding or sheet is held
        in memory.
    name : str, optional
        Name of the file, if it differs from the name on disk.

    Raises
    ------
    InvalidTable
        If the file cannot be read, or the label is not one of the file's columns.
    InvalidSetting
        If a reading needs all rows in memory at once, as in `check_batches`.
    """

    def __init__(
        self, path: str | Path, reading: ReadOptions = PLAINLY, name: str | None = None
    ) -> None:
        check_batches(reading)
        path = Path(path)
        self._given = path.absolute(), reading, name
        self.name, self.called = shown_name(path.name if name is None else name), NAMELESS
        if not path.is_file():
            raise InvalidTable(f"only a file can be read in batches; {self.name!r} is not a file.")
        self._file = open_file(path, self.name, reading, stream=True)
        self._read = Columns.of(self._file, reading)
        columns, notes = self._read.settle(self._head(), reading.decimal)
        self._choose(columns, reading)
        self.columns = tuple(item.column.name for item in self._features)
        self.notes = (*self._read.notes, *notes, *self._left_out)

    def __reduce__(self) -> tuple[type[FileBatches], tuple[Path, ReadOptions, str | None]]:
        return FileBatches, self._given  # Another process opens the file again by itself.

    def _choose(self, judgements: list[Judged], reading: ReadOptions) -> None:
        """Decide which columns are features and which column is the label."""
        places = {item.column.name: item.column.place for item in judgements}
        data = pa.table([item.values for item in judgements], names=[*places])
        raw = RawTable(self.name, tuple(item.column for item in judgements), (), data)
        reading, advice = advised(raw, reading)
        raw.check_names("label", [] if reading.label is None else [reading.label])
        raw.check_names("a column left out", reading.leave_out or ())
        self._label = None if reading.label is None else places[reading.label]
        out = {reading.label, *(reading.leave_out or ())}
        features = [item for item in judgements if item.column.name not in out]
        self._features = [item for item in features if item.column.is_feature]
        empty = [item for item in features if item.column.kind is Kind.EMPTY]
        beside = [item for item in features if item not in self._features and item not in empty]
        self._left_out = [
            f"Left out as {what}: {listed([item.column.name for item in items])}."
            for what, items in (("text or dates", beside), ("empty", empty))
            if items
        ] + advice

    def _batches(self, places: Sequence[int]) -> Iterator[Any]:
        """Yield the columns at these positions, a batch at a time."""
        plan = {**self._read.plan(), "columns": [*places], "rows": _BATCH_ROWS}
        layout = self._read.layout
        names = [] if layout is None or layout.names is None else [layout.names[j] for j in places]
        return (without_names(batch, names)[0] for batch in self._file.batches(plan))

    def _head(self) -> Any:
        """Return the first rows, by which each column is judged.

        A column that is empty in these rows is judged by the first batch in which it has values.
        """
        width, whole = self._read.width, False
        head: list[Any] = []
        batches = self._batches(range(width))
        while sum(b.num_rows for b in head) < 2 or sum(b.nbytes for b in head) < _HEAD_BYTES:
            if (batch := next(batches, None)) is None:
                whole = True
                break
            head.append(batch)
        if not head:
            return pa.table({str(j): pa.nulls(0) for j in range(width)})
        table, later = pa.Table.from_batches(head), {}
        empty = [j for j, cells in enumerate(table.columns) if not (whole or _present(cells).any())]
        for batch in self._batches(empty) if empty else ():
            for j, cells in zip(empty, batch.columns, strict=True):
                if j not in later and _present(cells).any():
                    later[j] = cells.slice(0, len(table))
            if len(later) == len(empty):
                break
        for j, cells in later.items():
            rest = pa.nulls(len(table) - len(cells), cells.type)
            table = table.set_column(j, table.field(j), pa.chunked_array([cells, rest]))
        return table

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows, each with its number of incomplete rows left out."""
        d, row = len(self._features), 0
        size = block_rows(d)
        # Columns arrive one by one, so store them as rows of a buffer, and use its transpose.
        buffer = np.empty((d, size))
        places = [item.column.place for item in self._features]
        places += [] if self._label is None else [self._label]
        for batch in _read_ahead(self._batches(places)):
            count = batch.num_rows
            arrays = [
                self._numbers(item, column)
                for item, column in zip(self._features, batch.columns, strict=False)
            ]
            present = None if self._label is None else _present(batch.column(d))
            for start in range(0, count, size):
                stop = min(start + size, count)
                block = buffer[:, : stop - start]
                for j, array in enumerate(arrays):
                    block[j] = array[start:stop]
                keep = None if present is None else present[start:stop]
                yield complete(block.T, keep, self.name, self.columns, row + start)
            row += count

    def _numbers(self, item: Judged, column: Any) -> NDArray[Any]:
        """Return one column of a batch as numbers, with NaN for missing values."""
        kind = column.type
        has_codes = pa.types.is_dictionary(kind)
        if not is_text(kind.value_type if has_codes else kind):
            column = plain_numbers(column.dictionary_decode() if has_codes else column)
            numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
            return numbers
        mark, unit = item.column.mark or POINT, item.column.unit

        def parsed(texts: Any) -> NDArray[np.float64]:
            plain = cast(texts, pa.float64()) if mark == POINT and not unit else None
            return parse(trimmed(texts), mark, unit) if plain is None else to_numpy(plain)

        if item.column.kind is Kind.BOOLEAN:
            cells = _each(column if has_codes else column.dictionary_encode(), truths, np.nan)
        else:
            cells = _each(column, parsed, np.nan)
        gaps = np.isnan(cells)
        if np.count_nonzero(gaps) > column.null_count and (
            (gaps & _present(column) & ~_each(column, told_nothing, False)).any()
        ):
            raise InvalidTable(
                f"column {item.column.place + 1} of {self.name} starts with numbers and later "
                "holds text. A file read in batches must hold one kind of value per column."
            )
        return cells


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the items of an iterator while a thread prepares the next one."""
    # Read one batch ahead, while the previous batch is used; this stores at most two batches.
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def complete(
    rows: FloatArray, keep: NDArray[np.bool_] | None, name: str, columns: tuple[str, ...], row: int
) -> tuple[FloatArray, int]:
    """Return the complete rows, and the number of rows left out.

    Raises
    ------
    InvalidTable
        If a number is infinite or absurdly large. ``row`` is the number of the first row, from 0.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        # Column sums are a fast first test for missing or huge values; few blocks need a second.
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


def _each(column: Any, of: Callable[[Any], NDArray[V]], gap: V | float) -> NDArray[V]:
    """Return a function's value for each cell; for coded cells, evaluate each text only once.

    Decoding the cells could take any amount of memory.
    """
    if not pa.types.is_dictionary(column.type):
        return of(column)
    values = np.append(of(column.dictionary), gap)
    at = pc.fill_null(column.indices.cast(pa.int64()), len(values) - 1)
    cells: NDArray[V] = values[at.to_numpy(zero_copy_only=False)]
    return cells


def _present(column: Any) -> NDArray[np.bool_]:
    """Return which cells hold a value."""
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([_present(chunk) for chunk in column.chunks])
    if pa.types.is_dictionary(column.type):
        return _each(column, _present, False)
    present: NDArray[np.bool_] = ~to_numpy(pc.is_null(column, nan_is_null=True))
    return present & ~among(trimmed(column), MISSING_MARKERS) if is_text(column.type) else present
