"""Numeric rows of a file of any size, a batch at a time.

The features are those that reading the whole file would give, by the same code,
with one difference: what a column holds is judged by the first rows of a Parquet
file, or by the first 8 MiB of a text, and a file whose later cells say otherwise
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import FoldSum
from dpviz.core.errors import InvalidSetting, InvalidTable, printable
from dpviz.core.number_text import numeral
from dpviz.core.settings import codes_listed, levels_listed, read_as_listed
from dpviz.datasets.check import advised
from dpviz.datasets.columns import (
    MAX_MAGNITUDE,
    MISSING_MARKERS,
    WITHHELD,
    Judged,
    Kind,
    among,
    is_text,
    listed,
    parse,
    plain_numbers,
    to_numpy,
    trimmed,
)
from dpviz.datasets.files import (
    Columns,
    decimal_mark,
    flat_of,
    judge_flat,
    keyed,
    open_file,
    shown_name,
)
from dpviz.datasets.raw import RawTable
from dpviz.datasets.reader import later_text
from dpviz.datasets.table import NAMELESS, PLAINLY, ReadOptions

_BATCH_ROWS = 1 << 16
_HEAD_BYTES = 1 << 23
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
        ("codes", codes_listed(reading.codes)),
        ("read as", read_as_listed(reading.read_as)),
        ("levels", levels_listed(reading.levels)),
        ("person", reading.person),
    ):
        if given:
            allowed = "left out for rows that are read in batches"
            raise InvalidSetting(name, allowed, given, f"--{name.replace(' ', '-')}")


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
        self._file = open_file(path, self.name, reading.encoding, reading.sheet, stream=True)
        self._decimal = decimal_mark(reading.decimal)
        settled, notes = self._head()
        self._choose(settled, reading)
        self.columns = tuple(item.column.name for item in self._features)
        self.notes = (*self._read.notes, *notes, *self._left_out)

    def _choose(self, settled: list[Judged], reading: ReadOptions) -> None:
        """Decide which columns are features, which hold nothing and which is the label."""
        rows = max(len(item.values) for item in settled)
        head = [item for item in settled if len(item.values) == rows]
        names = [item.column.name for item in head]
        data = pa.table([item.values for item in head], names=names)
        raw = RawTable(self.name, tuple(item.column for item in head), (), data)
        reading, advice = advised(raw, reading)
        places = {item.column.name: item.column.place for item in settled}
        named = [("label", reading.label)] if reading.label is not None else []
        for what, column in [
            *named,
            *(("a column left out", name) for name in reading.leave_out or ()),
        ]:
            if column not in places:
                raise InvalidTable(
                    f"{what} must be a column of {self.name}, one of {listed(list(places))}; "
                    f"got {printable(column)!r}."
                )
        self._label = None if reading.label is None else places[reading.label]
        used = [
            item
            for item in settled
            if item.column.place != self._label
            and item.column.name not in (reading.leave_out or ())
        ]
        self._features = [item for item in used if item.column.is_feature]
        self._empty = [item for item in used if item.column.kind is Kind.EMPTY]
        beside = [item for item in used if item not in self._features and item not in self._empty]
        self._left_out = [
            f"Left out as {what}: {listed([item.column.name for item in items])}."
            for what, items in (("text or dates", beside), ("empty", self._empty))
            if items
        ] + advice

    def _head(self) -> tuple[list[Judged], list[str]]:
        """Return what the columns are, judged on a text's first block or a Parquet's first rows."""
        self._read = Columns.of(self._file)
        plan = {**self._read.plan(), "rows": _BATCH_ROWS}
        head = _first_rows(self._file.batches(plan), 2)
        if self._read.layout is not None:
            if head is None:
                width = self._read.layout.width
                head = pa.table({str(j): pa.nulls(0) for j in range(width)})
            return self._read.settle(head, self._decimal)
        rows = self._file.rows
        if head is None or rows < 2:
            found = "one row" if rows else "none"
            raise InvalidTable(f"{self.name} must have at least 2 rows of data; it has {found}.")
        self._keys = list(keyed(head))
        columns = flat_of(head)
        if rows > head.num_rows:
            columns = [(name, self._later(j, values)) for j, (name, values) in enumerate(columns)]
        return judge_flat(self.name, columns, self._decimal)

    def _later(self, place: int, values: Any) -> Any:
        """Return a column's first values, or those of the first batch that has any."""
        if pc.all(pc.is_null(values, nan_is_null=True)).as_py():
            key = self._keys[place]
            for batch in self._file.batches({"columns": [key[0]], "rows": _BATCH_ROWS}):
                later = keyed(batch)[key]
                if not pc.all(pc.is_null(later, nan_is_null=True)).as_py():
                    return pa.chunked_array([later.slice(0, len(values))])
        return values

    def _batches(self) -> Iterator[list[Any]]:
        """Yield the arrays of the features, of the empty columns and of the label, if any."""
        places = [item.column.place for item in (*self._features, *self._empty)]
        places += [] if self._label is None else [self._label]
        if self._read.layout is not None:
            types = {str(item.column.place): _type_of(item) for item in self._features}
            types |= dict.fromkeys([str(item.column.place) for item in self._empty], "string")
            if self._label is not None:
                types[str(self._label)] = "string"
            for batch in self._file.batches({**self._read.plan(), "types": types}):
                yield [batch.column(j) for j in range(len(places))]
            return
        keys = [self._keys[place] for place in places]
        names = list(dict.fromkeys(name for name, _ in keys))
        for batch in self._file.batches({"columns": names, "rows": _BATCH_ROWS}):
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

    def _numbers(self, item: Judged, column: Any) -> NDArray[Any]:
        """Return one column of a batch as numbers, gaps as NaN."""
        if item.column.mark is None:
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            numbers: NDArray[Any] = plain_numbers(column).to_numpy(zero_copy_only=False)
            return numbers
        mark, unit = item.column.mark, item.column.unit

        def parsed(texts: Any) -> NDArray[np.float64]:
            return parse(trimmed(texts), mark, unit)

        found = _each(column, parsed, np.nan)
        if (np.isnan(found) & _present(column) & ~_each(column, _withheld, False)).any():
            raise InvalidTable(later_text(item.column.place).replace("{}", self.name))
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
        if sum(part.num_rows for part in found) >= least and (
            sum(part.nbytes for part in found) >= _HEAD_BYTES
        ):
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


def _type_of(item: Judged) -> str:
    """Return what the reader shall read a feature of a text as."""
    if item.column.mark is not None:
        return "string"
    return "bool_" if item.column.kind is Kind.BOOLEAN else "float64"


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


def _withheld(texts: Any) -> NDArray[np.bool_]:
    """Return which texts stand among numbers for one that is not told."""
    return among(pc.utf8_lower(trimmed(texts)), WITHHELD)


def _present(column: Any) -> NDArray[np.bool_]:
    """Return which rows have a label."""
    if pa.types.is_dictionary(column.type):
        return _each(column, _present, False)
    present: NDArray[np.bool_] = ~to_numpy(pc.is_null(column, nan_is_null=True))
    return present & ~among(trimmed(column), MISSING_MARKERS) if is_text(column.type) else present
