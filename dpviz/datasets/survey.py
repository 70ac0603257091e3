"""What a column of a file holds: first by itself, then beside the others.

A column of texts may be numbers; whether a mark in them stands for decimals is decided over all
columns of the file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpviz.core.errors import InvalidTable
from dpviz.core.number_text import numeral
from dpviz.datasets import numerals
from dpviz.datasets.columns import (
    MAX_CATEGORIES,
    MISSING_MARKERS,
    Kind,
    RawColumn,
    counted,
    to_numpy,
)
from dpviz.datasets.numerals import COMMA, NO_NUMERALS, Numerals
from dpviz.datasets.source import readable

MAX_MAGNITUDE = 1e100
"""Largest absolute value of a cell: squares and sums of it stay finite."""


@dataclass
class Survey:
    """A column seen by itself, before the other columns say how to read its numbers.

    Attributes
    ----------
    name, table : str
        What messages call the column and the table.
    column : RawColumn or None
        What the column is; None for texts, which `settle` decides on.
    values : pyarrow array
        As `RawTable` keeps them; of texts, the index of each row's category, -1 for a gap.
    notes : list of str
    kind : Kind
        Of texts: date or category.
    categories : pyarrow string array, optional
        The different texts, sorted and trimmed.
    numerals : Numerals
        What the texts are as numbers.
    """

    name: str
    table: str
    column: RawColumn | None
    values: Any
    notes: list[str]
    kind: Kind = Kind.CATEGORICAL
    categories: Any = None
    numerals: Numerals = NO_NUMERALS


def survey(values: Any, name: str, table: str) -> Survey:
    """Return what can be said of a column without the others.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
    name, table : str
        What messages call the column and the table.

    Raises
    ------
    InvalidTable
        On an infinite or absurdly large number, text that is not UTF-8, or values
        that Arrow cannot convert.
    """
    with readable(f"column '{name}' of {table} holds values that cannot be read."):
        return _survey(values, name, table)


def _survey(values: Any, name: str, table: str) -> Survey:
    kind = values.type
    # a frame may code numbers as categories: only texts stay coded here
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        values = values.cast(kind.value_type)
        kind = values.type
    if pa.types.is_null(kind) or values.null_count == len(values):
        return _nothing(values, name, table)
    if is_number(kind):
        numbers = plain_numbers(values)
        truth = Kind.BOOLEAN if pa.types.is_boolean(kind) else Kind.NUMERIC
        column = _numeric(numbers, name, table, truth)
        if column.missing == len(values):
            return _nothing(values, name, table)
        return Survey(name, table, column, numbers, [])
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        if pa.types.is_timestamp(kind):  # the text of a time zone's local time needs its database
            values = values.cast(pa.timestamp(kind.unit))
        said = [f"Dates in '{name}' are treated as text."]
        return _texts(values.cast(pa.string()), name, table, Kind.DATE, said)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or not _is_utf8(values):
        raise InvalidTable(f"column '{name}' of {table} is not UTF-8 text; save it as UTF-8.")
    return _texts(values, name, table, Kind.CATEGORICAL, [])


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is a number or a truth value."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def plain_numbers(values: Any) -> Any:
    """Return an Arrow array of numbers in a type that NumPy has too."""
    if pa.types.is_boolean(values.type):
        # a truth counts as 0 or 1, and NumPy subtracts no booleans
        return values.cast(pa.uint8())
    if pa.types.is_decimal(values.type) or pa.types.is_float16(values.type):
        return values.cast(pa.float64(), safe=False)
    return values


def _is_utf8(values: Any) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _nothing(values: Any, name: str, table: str) -> Survey:
    column = RawColumn(name, Kind.EMPTY, len(values), True)
    return Survey(name, table, column, pa.nulls(len(values)), [])


def _texts(values: Any, name: str, table: str, kind: Kind, notes: list[str]) -> Survey:
    """Return a text column coded over its sorted, trimmed categories."""
    if pa.types.is_string_view(values.type):
        # Arrow encodes no views
        values = values.cast(pa.large_string())
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    coded = coded.combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    code = to_numpy(pc.fill_null(coded.indices, -1)).astype(np.intp)  # a browser's has 32 bits
    trimmed = pc.utf8_trim_whitespace(coded.dictionary.cast(pa.large_string()))
    # a marker may stand among more blanks than the parser knows, a category in no row
    in_rows = np.bincount(code[code >= 0], minlength=len(trimmed)) > 0
    marker = pc.is_in(trimmed, value_set=pa.array(MISSING_MARKERS, pa.large_string()))
    real = in_rows & ~to_numpy(pc.fill_null(marker, True))
    merged = pc.if_else(pa.array(real), trimmed, None).dictionary_encode()
    if not len(merged.dictionary):
        return _nothing(values, name, table)
    order = to_numpy(pc.array_sort_indices(merged.dictionary))
    categories = merged.dictionary.take(pa.array(order))
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    # index -1, for a gap, meets the -1 at the end of each table
    remap = np.append(rank[to_numpy(pc.fill_null(merged.indices, -1))], np.int32(-1))
    found = numerals.judge(categories) if kind is Kind.CATEGORICAL else NO_NUMERALS
    if found.dates:
        kind = Kind.DATE
        notes = [*notes, f"Dates in '{name}' are treated as text."]
    return Survey(name, table, None, remap[code], notes, kind, categories, found)


def settle(
    found: Survey, proved: Collection[str], delimiter: str, decimal: str | None
) -> tuple[RawColumn, Any, list[str], str | None]:
    """Return what a column is, its values, sentences, and the mark its texts were read with.

    Parameters
    ----------
    found : Survey
    proved : collection of str
        Decimal marks that the columns of the file prove.
    delimiter : str
        Between cells; empty for Parquet.
    decimal : str or None
        The decimal mark, where the user said it.

    Raises
    ------
    InvalidTable
        When numbers can be read in two ways and nothing says in which.
    """
    if found.column is not None:
        return found.column, found.values, found.notes, None
    name, code32, categories = found.name, found.values, found.categories
    notes = list(found.notes)
    missing = int(np.count_nonzero(code32 < 0))
    if found.numerals.is_number:
        mark = found.numerals.mark(decimal, proved, delimiter)
        if mark is None:
            raise InvalidTable(
                f"column '{name}' of {found.table} writes numbers with a mark that can stand for "
                "decimals or for thousands; say which by choosing the decimal mark point or comma."
            )
        parsed = np.append(numerals.parse(categories, mark), np.nan)
        numbers = pa.chunked_array([pa.array(parsed[code32], from_pandas=True)])
        notes.append(f"Numbers stored as text in '{name}' were read as numbers.")
        notes += [f"Left out in '{name}': {extra}." for extra in found.numerals.extras]
        if numerals.groups_thousands(categories, mark):
            word = "commas" if mark != COMMA else "points"
            notes.append(f"In '{name}', {word} were read as marks between thousands.")
        return _numeric(numbers, name, found.table), numbers, notes, mark
    kind = found.kind
    numeric = np.append(numerals.numbers_among(categories), False)
    present = len(code32) - missing
    texts = present - int(np.count_nonzero(numeric[code32]))
    if found.numerals.codes:
        notes.append(
            f"'{name}' is written with leading zeros: it was read as a code, not as a number."
        )
    elif kind is Kind.CATEGORICAL and texts == 0:
        notes.append(
            f"'{name}' counts as text because its numbers are written with a decimal point in "
            "some rows and a decimal comma in others."
        )
    # a few strange cells in a column of numbers are worth a word; a column of words is not
    elif kind is Kind.CATEGORICAL and texts <= 0.1 * present:
        first = int(np.argmax((code32 >= 0) & ~numeric[code32])) + 1
        notes.append(
            f"'{name}' counts as text because {counted(texts, 'cell')} of {present} cannot be "
            f"read as a number, first in row {first} (not counting a header)."
        )
    if pc.any(pc.match_substring(categories, "\n")).as_py():
        notes.append(f"Cells of '{name}' hold line breaks: check that every quote is closed.")
    # a text of its own in each row groups nobody, and may well name them
    if len(categories) == present and present > MAX_CATEGORIES:
        kind = Kind.IDENTIFIER if kind is Kind.CATEGORICAL else kind
    indices = pa.array(code32, mask=code32 < 0, type=pa.int32())
    packed = pa.DictionaryArray.from_arrays(indices, categories)
    column = RawColumn(name, kind, missing, len(categories) == 1, len(categories))
    return column, packed, notes, None


def _numeric(values: Any, name: str, table: str, kind: Kind = Kind.NUMERIC) -> RawColumn:
    """Return what a numeric column is, having refused infinite and absurd values."""
    if not pa.types.is_floating(values.type):
        # whole numbers are finite: their ends say all
        ends = pc.min_max(values)
        constant = ends["min"].as_py() == ends["max"].as_py()
        return RawColumn(name, kind, values.null_count, constant)
    missing = 0
    row = 0
    lows: list[float] = []
    highs: list[float] = []
    for chunk in values.chunks:  # by chunk, so that nothing the size of the column is made
        block = to_numpy(chunk)
        # false for NaN, true for an infinity, and within the range of narrow floats
        bad = np.abs(block) > min(MAX_MAGNITUDE, float(np.finfo(block.dtype).max))
        if bad.any():
            raise InvalidTable(
                f"column '{name}' of {table} holds an infinite number or one beyond "
                f"{numeral(MAX_MAGNITUDE, 6)} in row {row + int(np.argmax(bad)) + 1}, not counting "
                "a header."
            )
        gaps = int(np.count_nonzero(np.isnan(block)))
        missing += gaps
        row += len(block)
        if gaps < len(block):
            lows.append(float(np.nanmin(block)))
            highs.append(float(np.nanmax(block)))
    return RawColumn(name, kind, missing, bool(lows) and min(lows) == max(highs))
