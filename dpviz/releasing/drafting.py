"""Draft a first schema from a table, which a person then edits and publishes."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import TypeAlias

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import LARGEST, FeatureBounds
from dpviz.core.errors import InvalidTable
from dpviz.core.settings import plain_word
from dpviz.datasets import Table
from dpviz.datasets.columns import MISSING_MARKERS, SENTINELS, clean_names, far_from
from dpviz.datasets.dialect import Layout, Text, detect
from dpviz.datasets.files import open_file, schema_of
from dpviz.datasets.reader import is_flat, is_json
from dpviz.datasets.sheet import SheetText
from dpviz.datasets.source import Source
from dpviz.releasing.records import TableInput, lines_of, number_parser, open_records, split, usable
from dpviz.releasing.schema import (
    DECIMALS,
    THOUSANDS,
    Column,
    Schema,
    public_labels,
    public_schema,
    with_bounds,
)

Scales: TypeAlias = Sequence[Sequence[str]]
_SAMPLE_BYTES = 1 << 19
_SAMPLE_LINES = 500
_GROUPED = {mark: re.compile(rb"[+-]?\d{1,3}(?:[%b]\d{3})*" % mark.encode()) for mark in DECIMALS}
"""Numbers in which a decimal mark could also separate thousands."""
_MISSING = {marker.encode() for marker in MISSING_MARKERS}


def draft(
    table: TableInput,
    name: str,
    bounds: tuple[float, float] | FeatureBounds | str = "data",
    most_bytes: int | None = None,
    levels: Scales = (),
) -> Schema:
    """Return a first schema of a table.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    name : str
        Name of the table, for messages.
    bounds : pair of float, FeatureBounds, "data" or "none"
        One pair for every column, bounds for each column, "data" for each column's smallest and
        largest number, or "none". With "none", only the start of a text is read.
    most_bytes : int, optional
        Length of the longest text that dpviz reads in full.
    levels : sequence of sequence of str
        Scales of ordered words; each scale lists its words from the least to the most. A column of
        such words counts as numbers.

    Returns
    -------
    Schema
        Schema that is marked as taken from the data, unless the table's bounds are public.
    """
    public = public_schema(table) if isinstance(table, Table) else None
    if public is not None and bounds == "data":
        return public
    outline, start = _outline(table, name, levels)
    if bounds == "none":
        used = outline
        if start is not None:  # `start` has the first bytes, already unpacked.
            used = replace(
                _measured(replace(outline, packing="text"), start), packing=outline.packing
            )
        # The bounds of a rating scale are left out as well, because they follow from its words.
        found = replace(used, columns=tuple(replace(c, low=None, high=None) for c in used.columns))
    else:
        if most_bytes is not None and not (start is None or isinstance(table, Table)):
            source, left = Source(table, name), most_bytes
            for chunk in source.chunks(source.is_gzip):
                left -= len(chunk)
                if left < 0:
                    raise InvalidTable(
                        f"{name} holds more than {most_bytes >> 20} MiB of text, the most that "
                        "dpviz reads here. State the bounds, or keep fewer rows or columns."
                    )
        used = _measured(outline, table)
        found = used if isinstance(bounds, str) else with_bounds(used, bounds)
    # The columns of a built-in table are public, and so is what the caller states about them.
    return replace(found, from_data=isinstance(bounds, str) or not isinstance(table, Table))


def _outline(table: TableInput, name: str, levels: Scales) -> tuple[Schema, bytes | None]:
    """Return the outline schema, in which possibly numeric columns are used, and a text's start."""
    if isinstance(table, Table):
        own = tuple(Column(found) for found in clean_names(table.columns)[0])
        return Schema(own, **public_labels(table)), None
    source = Source(table, name)
    if source.is_parquet:
        file = open_file(table, name, stream=True)
        flat = [field for field in schema_of(file) if is_flat(field)]
        names = clean_names([field.name for field in flat])[0]
        kinds = (usable(field.type) for field in flat)
        return Schema(tuple(Column(n, use=use) for n, use in zip(names, kinds, strict=True))), None
    return _of_text(source, levels, sheet=isinstance(table, SheetText))


def _of_text(source: Source, levels: Scales, *, sheet: bool) -> tuple[Schema, bytes]:
    """Return the outline schema of a text, judged on its start as in Explore, and the start."""
    start: bytes = source.open_text().read(_SAMPLE_BYTES)
    if is_json(start):  # A CSV reader would take JSON for names of columns.
        raise InvalidTable(
            f"{source.name} is JSON, and a release does not read JSON. Save the table as "
            "CSV or Parquet."
        )
    if len(start) == _SAMPLE_BYTES and b"\n" in start:
        # The bytes end in the middle of a line, so only the whole lines before it are used.
        start = start[: start.rindex(b"\n") + 1]
    head, encoding = _as_utf8(start)
    layout = detect(Text.whole(source.name, head), sheet=sheet)
    names, at = _line_of_names(head, layout)
    plain = Schema(
        tuple(Column(found) for found in names),
        header=at is not None,
        skip=layout.skipped if at is None else at,
        delimiter=layout.delimiter,
        encoding=encoding,
        packing="gzip" if source.is_gzip and at is None and not layout.skipped else "auto",
    )
    lines = list(islice(lines_of(head), layout.skipped, layout.skipped + _SAMPLE_LINES))
    rows = [split(line, layout.delimiter.encode(), len(names)) for line in lines]
    best = _with_marks(plain, rows)
    columns = tuple(
        _judged(best, column, [row[j].strip() for row in rows if j < len(row)], levels)
        for j, column in enumerate(best.columns)
    )
    return replace(best, columns=columns), start


def _as_utf8(start: bytes) -> tuple[bytes, str]:
    """Return the start of a text in UTF-8, and its original encoding."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        if not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            start = start.decode("cp1252", "replace").encode("utf-8")
        return start, "cp1252"
    return start, "utf-8"


def _with_marks(plain: Schema, rows: Sequence[Sequence[bytes]]) -> Schema:
    """Return the schema with the decimal and thousands marks that read most cells as numbers."""
    best, most = plain, -1
    for thousands, mark in product(THOUSANDS, (".", ",")):
        if thousands == mark:
            continue
        tried = replace(plain, decimal=mark, thousands=thousands)
        parse = number_parser(tried)
        # If two number formats read equally many cells, the first wins: a decimal point.
        count = sum(math.isfinite(parse(cell)) for row in rows for cell in row)
        if count > most:
            best, most = tried, count
    return best


def _judged(schema: Schema, column: Column, cells: Sequence[bytes], levels: Scales) -> Column:
    """Return a column, marked as used if it could hold numbers or words of a scale.

    The column gets its own decimal mark if this mark makes more cells numbers, unless in all these
    cells it could separate thousands.
    """
    cells = [cell for cell in cells if cell not in _MISSING]
    numbers = sum(math.isfinite(number_parser(schema)(cell)) for cell in cells)
    (mark,) = {*DECIMALS} - {schema.decimal}
    other = replace(column, decimal=mark)
    parse = number_parser(schema, other)
    under = [cell for cell in cells if math.isfinite(parse(cell))]
    if len(under) > numbers and not all(map(_GROUPED[mark].fullmatch, under)):
        column, numbers = other, len(under)
    # A cell such as 007 is a code, because numbers have no leading zero.
    coded = any(cell[:1] == b"0" and cell[1:2].isdigit() for cell in cells)
    scale = _scale_of((cell.decode("utf-8", "replace") for cell in cells), levels)
    use = bool(scale) or (2 * numbers >= len(cells) > 0 and not coded)
    return replace(column, use=use, levels=scale)


def _scale_of(texts: Iterable[str], levels: Scales) -> tuple[str, ...]:
    """Return the first scale that contains all of the words, or an empty tuple."""
    words = {plain_word(text) for text in texts}
    ranks = ((scale, {plain_word(word) for word in scale}) for scale in levels)
    return next((tuple(scale) for scale, known in ranks if words and words <= known), ())


def _line_of_names(head: bytes, layout: Layout) -> tuple[Sequence[str], int | None]:
    """Return a text's column names, and the line with just these names (None if there is none).

    A line below the names that is not a row, such as a line of units, is skipped with the names.
    """
    if layout.names is None:
        return [f"column {j + 1}" for j in range(layout.width)], None
    names = clean_names(layout.names)[0]
    at = layout.skipped - 1
    line = next(islice(lines_of(head), at, None), b"")
    cells = split(line, layout.delimiter.encode(), len(names) + 1)
    own = clean_names([cell.decode("utf-8", "replace") for cell in cells])[0]
    return names, at if own == names else None


@dataclass
class _Seen:
    """Range and number of a column's values, without codes for "missing"."""

    low: float = math.inf
    high: float = -math.inf
    count: int = 0
    counts_rows: bool = True

    def add(self, values: FloatArray, first: int) -> set[float]:
        """Add more cells; return those that are codes for "missing"."""
        numbers = values[np.abs(values) <= LARGEST]
        # A column that counts the rows may start at 0 or at 1, so both are tested.
        steps = values - np.arange(first, first + len(values))
        start = steps[0] if len(steps) else 0.0
        self.counts_rows = self.counts_rows and start in (0, 1) and bool((steps == start).all())
        plain = numbers[~np.isin(numbers, SENTINELS)]
        if len(plain):
            self.low, self.high = min(self.low, plain.min()), max(self.high, plain.max())
            self.count += len(plain)
        return {float(code) for code in SENTINELS if (numbers == code).any()}


def _measured(outline: Schema, table: TableInput) -> Schema:
    """Return a schema with bounds from the table's own numbers."""
    used = outline.used
    if not used:
        return outline
    seen = [_Seen() for _ in used]
    codes: list[set[float]] = [set() for _ in used]
    first = 0
    for block in open_records(table, outline).blocks():
        for j, column in enumerate(seen):
            codes[j] |= column.add(block[:, j], first)
        first += len(block)
    columns = {
        column.name: _bounded(column, seen[j], codes[j], first) for j, column in enumerate(used)
    }
    return replace(
        outline, columns=tuple(columns.get(column.name, column) for column in outline.columns)
    )


def _bounded(column: Column, seen: _Seen, codes: set[float], n: int) -> Column:
    """Return a column with bounds around its numbers, or unused if they carry no information."""
    if column.levels:
        return column
    low, high = seen.low, seen.high
    missing = [code for code in sorted(codes) if seen.count >= 3 and far_from(code, low, high)]
    for code in codes - set(missing):  # A code outside `missing` counts as a number.
        low, high = min(low, code), max(high, code)
    if not low < high or (seen.counts_rows and n >= 3):
        return replace(column, use=False)
    low, high = _outward(low, high)
    return replace(column, low=low, high=high, missing=tuple(missing))


def _outward(low: float, high: float) -> tuple[float, float]:
    """Return bounds with few digits that enclose two numbers."""
    if not math.isfinite(high - low):
        return low, high
    step = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    down, up = math.floor(round(low / step, 6)) * step, math.ceil(round(high / step, 6)) * step
    # Multiples of a step such as .1 have meaningless last digits, so they are rounded.
    down, up = float(f"{down:.12g}"), float(f"{up:.12g}")
    return min(down, low), max(up, high)
