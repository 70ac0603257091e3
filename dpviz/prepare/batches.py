"""Numeric rows of a file of any size, a batch at a time.

The features are those that reading the whole file would give, with one
difference: what a column holds is judged by the schema of a Parquet file, or by
the first 8 MiB of a text, and not by all of its cells.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from dpviz.base.arrays import FloatArray
from dpviz.datasets import delimited
from dpviz.datasets.delimited import MISSING_MARKERS, Layout
from dpviz.datasets.files import counts_rows, is_flat
from dpviz.datasets.raw import MAX_MAGNITUDE, clean_names, listed
from dpviz.datasets.source import Source
from dpviz.errors import InvalidTable
from dpviz.prepare.sums import Sum, digit_counts, norms
from dpviz.prepare.transform import Transform

LARGE_BYTES = 1 << 30
"""A file is read in batches if its numbers, or its text, take more than this: 1 GiB."""

_BATCH_ROWS = 1 << 16
_BLOCK_CELLS = 1 << 19  # 4 MiB of numbers: a block stays in the processor's cache


S = TypeVar("S", bound=Sum)


def is_large(path: str | Path) -> bool:
    """Return whether a file is so large that it is read in batches."""
    file = Path(path)
    if not file.is_file():
        return False
    source = Source(file, file.name)
    if source.is_parquet:
        try:
            metadata = parquet.ParquetFile(source.open()).metadata
        except (pa.ArrowInvalid, OSError):
            return False  # reading it will say what is wrong
        return bool(metadata.num_rows * metadata.num_columns * 8 > LARGE_BYTES)
    return file.stat().st_size > LARGE_BYTES


class FileBatches:
    """The numeric rows of a CSV, gzipped CSV or Parquet file; rows with gaps are left out.

    Parameters
    ----------
    path : str or Path
    label : str, optional
        Column that is no feature; rows without a label are left out.

    Attributes
    ----------
    name : str
        File name, as shown.
    columns : tuple of str
        Names of the numeric columns.
    notes : tuple of str
        What reading changed or assumed, as sentences.

    Raises
    ------
    InvalidTable
        If the file cannot be read, or the label is not one of its columns.
    """

    def __init__(self, path: str | Path, label: str | None = None) -> None:
        file = Path(path)
        name = file.name
        self.name = name if len(name) <= 60 else name[:57] + "..."
        if not file.is_file():
            raise InvalidTable(
                f"table must be a file to be read in batches; {self.name!r} is none."
            )
        self._source = Source(file, self.name)
        self._layout: Layout | None = None
        notes: list[str] = []
        if not self._source.is_parquet:
            self._layout = delimited.detect(self._source)
            if not self._layout.header:
                notes.append(
                    "The file has no line of column names: the columns are numbered from 1."
                )
        head = self._head()
        fields = list(head.schema)
        raw_names = [field.name for field in fields]
        shown = list(raw_names)
        if self._layout is not None and not self._layout.header:
            shown = [f"column {j + 1}" for j in range(len(shown))]
        if len(shown) > 1 and not shown[0].strip() and counts_rows(head.column(0)):
            notes.append("The first column has no name and counts the rows: it was left out.")
            del fields[0], raw_names[0], shown[0]
        names, renamed = clean_names(shown)
        notes += renamed
        self._label: str | None = None
        if label is not None:
            if label not in names:
                raise InvalidTable(
                    f"label must be a column of {self.name}, one of {listed(names)}; "
                    f"got {label[:60]!r}."
                )
            self._label = raw_names[names.index(label)]
        if len(set(raw_names)) < len(raw_names):
            raise InvalidTable(
                f"{self.name} must have distinct column names to be read in batches; "
                "a name is repeated."
            )
        self._types: dict[str, Any] = {}
        columns, left, empty = [], [], []
        for field, raw_name, name in zip(fields, raw_names, names, strict=True):
            if raw_name == self._label:
                continue
            if pa.types.is_null(field.type):
                empty.append(name)
            elif _is_number(field.type):
                truth = pa.types.is_boolean(field.type)
                self._types[raw_name] = pa.bool_() if truth else pa.float64()
                columns.append(name)
            else:
                left.append(name)
        if left:
            notes.append(f"Left out as text or dates: {listed(left)}.")
        if empty:
            notes.append(f"Left out as empty: {listed(empty)}.")
        self.columns = tuple(columns)
        self.notes = tuple(notes)

    def _head(self) -> Any:
        """Return the flat columns as a table: a text's first batch, of a Parquet file no rows.

        A Parquet file's first column without a name is read, to see whether it counts.
        """
        if self._layout is None:
            try:
                file = self._parquet()
                flat = [field.name for field in file.schema_arrow if is_flat(field)]
                if not flat or flat[0].strip():
                    return pa.table(file.schema_arrow.empty_table()).select(flat)
                return next(file.iter_batches(batch_size=_BATCH_ROWS, columns=flat))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
                raise self._damaged() from None
        for batch in delimited.open_batches(self._source, self._layout):
            return pa.Table.from_batches([batch])
        raise InvalidTable(f"{self.name} must have at least 2 rows of data; it has none.")

    def _parquet(self) -> Any:
        # Buffering ahead keeps all that was read, up to the whole file.
        return parquet.ParquetFile(self._source.open(), pre_buffer=False)

    def _damaged(self) -> InvalidTable:
        return InvalidTable(
            f"{self.name} starts like a Parquet file but cannot be read as one: "
            "it is damaged, incomplete or of an unknown kind."
        )

    def _batches(self) -> Iterator[Any]:
        """Yield record batches of the features, and of the label if there is one."""
        types = dict(self._types)
        if self._label is not None:
            types[self._label] = pa.string()
        if self._layout is not None:
            yield from delimited.open_batches(self._source, self._layout, types)
            return
        try:
            file = self._parquet()
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(types))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
            raise self._damaged() from None

    def blocks(self) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of complete rows and how many incomplete ones each lost.

        A block, of shape (size, d), is only good until the next one: they share
        memory.

        Raises
        ------
        InvalidTable
            On an infinite or absurdly large number; the row is named.
        """
        d = len(self._types)
        size = max(256, min(_BATCH_ROWS, _BLOCK_CELLS // max(d, 1)))
        buffer = np.empty((d, size))
        row = 0
        for batch in _read_ahead(self._batches()):
            arrays = [_numbers(batch.column(j)) for j in range(d)]
            present = None if self._label is None else _present(batch.column(d))
            for start in range(0, batch.num_rows, size):
                stop = min(start + size, batch.num_rows)
                block = buffer[:, : stop - start]
                for j, array in enumerate(arrays):
                    block[j] = array[start:stop]
                keep = None if present is None else present[start:stop]
                yield complete(block.T, keep, self.name, self.columns, row + start)
            row += batch.num_rows

    def first(self) -> FloatArray:
        """Return the first block that has complete rows; empty if there is none."""
        for block, _ in self.blocks():
            if len(block):
                return block.copy()
        return np.zeros((0, len(self._types)))

    def fold(self, new: Callable[[], S]) -> S:
        """Return the sum over all rows, in the order of the file."""
        total = new()
        for block, dropped in self.blocks():
            total.dropped += dropped
            if len(block):
                total.add(block, total.rows)
        return total

    def spool(self, unscaled: Transform) -> FileSpool:
        """Return the norms of all rows, kept in a temporary file."""
        spool = FileSpool()
        for block, _ in self.blocks():
            if len(block):
                spool.write(norms(unscaled, block))
        return spool


class FileSpool:
    """Numbers in a temporary file, which goes when this object does."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 (open as long as the object lives)
        weakref.finalize(self, self._file.close)

    def write(self, values: FloatArray) -> None:
        """Append numbers."""
        self._file.write(np.ascontiguousarray(values).data)

    def counts(self, prefix: int, shift: int) -> FloatArray:
        """Return the counts of the next digit over all numbers; see `dpviz.prepare.sums`."""
        total = np.zeros(1 << 16)
        self._file.seek(0)
        while block := self._file.read(8 << 20):
            total += digit_counts(np.frombuffer(block), prefix, shift)
        return total


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what an iterator yields, which works on the next one meanwhile in a thread."""
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
            f"{MAX_MAGNITUDE:g} in row {row + int(at) + 1}, not counting a header."
        )
    whole = ~np.isnan(rows).any(axis=1)
    if keep is not None:
        whole &= keep
    return rows[whole], int(len(rows) - np.count_nonzero(whole))


def _is_number(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def _numbers(column: Any) -> NDArray[Any]:
    """Return one column of a batch as numbers, gaps as NaN."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _present(column: Any) -> NDArray[np.bool_]:
    """Return which rows have a label."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    gap = pc.is_null(column, nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        words = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        gap = pc.or_(gap, pc.is_in(words, value_set=pa.array(MISSING_MARKERS, pa.large_string())))
    present: NDArray[np.bool_] = ~gap.to_numpy(zero_copy_only=False)
    return present
