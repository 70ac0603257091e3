"""Raw text to numbers: delimited columns, plain numbers, categories as 0/1 features."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidTable
from dpviz.datasets.source import Source

Codes = tuple[NDArray[np.intp], list[str]]
"""The category of each row as an index, and the names of the categories."""


def read_columns(path: Path, names: Sequence[str], text: Sequence[str] = ()) -> Any:
    """Return the columns of a text without a header, numbers as float64, as an Arrow table.

    Parameters
    ----------
    path : Path
        Plain or gzipped; a gzip is read in pieces and never written out.
    names : sequence of str
        Every column, in order.
    text : sequence of str
        Columns of categories.

    Raises
    ------
    InvalidTable
        If a line has another number of cells, or a number is none.
    """
    category = pa.dictionary(pa.int32(), pa.string())
    types = {name: category if name in text else pa.float64() for name in names}
    try:
        found = csv.read_csv(
            Source(path, path.name).open_text(),
            read_options=csv.ReadOptions(column_names=list(names)),
            # none of these files quotes: a mark of quotation is a letter
            parse_options=csv.ParseOptions(quote_char=False),
            # a question mark is a category until a table's own reader says it is a gap
            convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except (pa.ArrowInvalid, EOFError, gzip.BadGzipFile, zlib.error):
        raise _unexpected(path, f"lines of {len(names)} values") from None
    # blocks are read apart, each with codes of its own
    return found.unify_dictionaries()


def read_numbers(path: Path, width: int, delimiter: str | None = None) -> FloatArray:
    """Return the numbers of a text without a header; shape (lines, width).

    Parameters
    ----------
    path : Path
    width : int
        Numbers a line.
    delimiter : str or None
        None takes any run of blanks. NaN is kept.

    Raises
    ------
    InvalidTable
        If a line has another number of cells, or a cell is no number. Lines that
        start with ``#`` are left out.
    """
    return parse_numbers(path, read_lines(path), width, delimiter)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text without those that are empty."""
    # every byte is a letter there: a strange one must not end in a traceback
    return [line for line in path.read_text(encoding="latin-1").splitlines() if line.strip()]


def parse_numbers(
    path: Path, lines: Sequence[str], width: int, delimiter: str | None = None
) -> FloatArray:
    """Return the numbers of lines of a file; as `read_numbers`."""
    wrong = _unexpected(path, f"lines of {width} numbers")
    # loadtxt takes # for a comment, and warns of an empty file instead of failing
    if not any(not line.startswith("#") for line in lines):
        raise wrong
    try:
        found: FloatArray = np.loadtxt(lines, delimiter=delimiter, ndmin=2)
    except ValueError:
        raise wrong from None
    if found.shape[1] != width:
        raise wrong
    return found


def _unexpected(path: Path, wanted: str) -> InvalidTable:
    return InvalidTable(f"{path.name} must hold {wanted}; it is damaged or another file.")


def categories(values: Any) -> Codes:
    """Return the sorted, trimmed categories that occur, and the category of each row.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
        Dictionary-encoded, without gaps.
    """
    chunk = values.combine_chunks()
    chunk = chunk.chunk(0) if isinstance(chunk, pa.ChunkedArray) else chunk
    indices = chunk.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    # some files have a blank after each comma: two spellings are then one category
    spelled = [text.strip() for text in chunk.dictionary.to_pylist()]
    occurs = np.bincount(indices, minlength=len(spelled)) > 0
    names = sorted({text for text, used in zip(spelled, occurs, strict=True) if used})
    place = {name: index for index, name in enumerate(names)}
    # -1 for one that no row has: it is never looked up
    rank = np.array([place.get(text, -1) for text in spelled], dtype=np.intp)
    return rank[indices], names


def levels(values: FloatArray) -> Codes:
    """Return the categories of a column of whole numbers, in their order."""
    present, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.intp), [f"{value:.0f}" for value in present]


def features(parts: Sequence[tuple[str, Any]]) -> tuple[FloatArray, tuple[str, ...]]:
    """Return rows of numbers and of 0/1 features, one for each category, and the names.

    Parameters
    ----------
    parts : sequence of (str, codes or array)
        Columns by name: codes with the names of the categories, or n numbers,
        also as an Arrow column, which is converted when its turn comes.

    Returns
    -------
    rows : ndarray of shape (n, d)
    columns : tuple of str
        Those of categories are called ``name = category``.
    """
    columns: list[str] = []
    for name, part in parts:
        columns += [f"{name} = {level}" for level in part[1]] if isinstance(part, tuple) else [name]
    first = parts[0][1]
    rows = np.zeros((len(first[0] if isinstance(first, tuple) else first), len(columns)))
    everyone = np.arange(len(rows))
    at = 0
    for _, part in parts:
        if isinstance(part, tuple):
            codes, names = part
            rows[everyone, at + codes] = 1.0
            at += len(names)
        else:
            rows[:, at] = part
            at += 1
    return rows, tuple(columns)


def parts_of(table: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return columns of an Arrow table for `features`, in the order of the names."""
    return [
        (name, categories(table[name]))
        if pa.types.is_dictionary(table.schema.field(name).type)
        else (name, table[name])
        for name in names
    ]


def without(table: Any, names: Sequence[str], marker: str) -> Any:
    """Return the rows of an Arrow table in which no category of these columns is the marker."""
    keep = None
    for name in names:
        present = pc.not_equal(pc.utf8_trim_whitespace(table[name].cast(pa.string())), marker)
        keep = present if keep is None else pc.and_(keep, present)
    return table.filter(keep)


def named(codes: Codes) -> NDArray[np.str_]:
    """Return the name of each row's category; shape (n,)."""
    found: NDArray[np.str_] = np.array(codes[1])[codes[0]]
    return found


def categories_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return what a table assumes public whose fields became 0/1 features."""
    return (f"the lists of categories in {', '.join(names[:-1])} and {names[-1]}",)
