"""A first schema, taken from a table: what a person then makes public by editing it."""

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
"""Numbers that a mark could divide by thousands."""
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
        What messages call it.
    bounds : pair of float, FeatureBounds, "data" or "none"
        The same for every column, stated one by one, taken from its smallest and largest number,
        or left open: then only the start of a text is read.
    most_bytes : int, optional
        The longest text that is read to its end.
    levels : sequence of sequence of str
        Scales, each with its words from the least to the most: a column of such words is one of
        numbers.

    Returns
    -------
    Schema
        Marked as taken from the data, but for a table whose bounds are public.
    """
    public = public_schema(table) if isinstance(table, Table) else None
    if public is not None and bounds == "data":
        return public
    outline, start = _outline(table, name, levels)
    if bounds == "none":
        used = outline
        if start is not None:  # unpacked, whatever the file is
            used = replace(
                _measured(replace(outline, packing="text"), start), packing=outline.packing
            )
        # bounds of words are their number
        found = replace(used, columns=tuple(replace(c, low=None, high=None) for c in used.columns))
    else:
        if most_bytes is not None and not (start is None or isinstance(table, Table)):
            source, left = Source(table, name), most_bytes
            for chunk in source.chunks(source.is_gzip):
                left -= len(chunk)
                if left < 0:
                    raise InvalidTable(
                        f"{name} holds more than {most_bytes >> 20} MiB of text, the most that is "
                        "read here. State the bounds, or keep fewer rows or columns."
                    )
        used = _measured(outline, table)
        found = used if isinstance(bounds, str) else with_bounds(used, bounds)
    # the columns of a table of ours are public, and so is what the caller says of them
    return replace(found, from_data=isinstance(bounds, str) or not isinstance(table, Table))


def _outline(table: TableInput, name: str, levels: Scales) -> tuple[Schema, bytes | None]:
    """Return how a table is written, columns that could hold numbers in use, and a text's start."""
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
    """Return how a text is written, judged on its start as Explore judges it, and the start."""
    start: bytes = source.open_text().read(_SAMPLE_BYTES)
    if is_json(start):  # as delimited text, its cells would be names of columns
        raise InvalidTable(
            f"{source.name} is JSON, which a release does not read; save it as CSV or as Parquet."
        )
    if len(start) == _SAMPLE_BYTES and b"\n" in start:
        # whole lines: the last one was cut by the sample and not by the file
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
    """Return the start of a text in UTF-8, and how it was encoded."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        if not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            start = start.decode("cp1252", "replace").encode("utf-8")
        return start, "cp1252"
    return start, "utf-8"


def _with_marks(plain: Schema, rows: Sequence[Sequence[bytes]]) -> Schema:
    """Return the schema with the marks under which most cells are numbers."""
    best, most = plain, -1
    for thousands, mark in product(THOUSANDS, (".", ",")):
        if thousands == mark:
            continue
        tried = replace(plain, decimal=mark, thousands=thousands)
        parse = number_parser(tried)
        # of equal counts the first stays: a point, and no thousands
        count = sum(math.isfinite(parse(cell)) for row in rows for cell in row)
        if count > most:
            best, most = tried, count
    return best


def _judged(schema: Schema, column: Column, cells: Sequence[bytes], levels: Scales) -> Column:
    """Return a column with whether it could hold numbers, or words of a scale.

    It has a decimal mark of its own where more of its cells are numbers under that one, and the
    mark cannot stand between thousands in all of them.
    """
    cells = [cell for cell in cells if cell not in _MISSING]
    numbers = sum(math.isfinite(number_parser(schema)(cell)) for cell in cells)
    (mark,) = {*DECIMALS} - {schema.decimal}
    other = replace(column, decimal=mark)
    parse = number_parser(schema, other)
    under = [cell for cell in cells if math.isfinite(parse(cell))]
    if len(under) > numbers and not all(map(_GROUPED[mark].fullmatch, under)):
        column, numbers = other, len(under)
    # 007 is a code: a number is not written with a zero before it
    coded = any(cell[:1] == b"0" and cell[1:2].isdigit() for cell in cells)
    scale = _scale_of((cell.decode("utf-8", "replace") for cell in cells), levels)
    use = bool(scale) or (2 * numbers >= len(cells) > 0 and not coded)
    return replace(column, use=use, levels=scale)


def _scale_of(texts: Iterable[str], levels: Scales) -> tuple[str, ...]:
    """Return the first scale that has all of the words; nothing of no words."""
    words = {plain_word(text) for text in texts}
    ranks = ((scale, {plain_word(word) for word in scale}) for scale in levels)
    return next((tuple(scale) for scale, known in ranks if words and words <= known), ())


def _line_of_names(head: bytes, layout: Layout) -> tuple[Sequence[str], int | None]:
    """Return a text's names, and which line holds just them: None where no line does.

    A line under the names that is none of the rows, such as units, is skipped with them.
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
    """What stands in one column: codes for "missing" apart."""

    low: float = math.inf
    high: float = -math.inf
    count: int = 0
    counts_rows: bool = True

    def add(self, values: FloatArray, first: int) -> set[float]:
        """Look at more cells; return the codes among them."""
        numbers = values[np.abs(values) <= LARGEST]
        # row numbers, from 0 or 1
        steps = values - np.arange(first, first + len(values))
        start = steps[0] if len(steps) else 0.0
        self.counts_rows = self.counts_rows and start in (0, 1) and bool((steps == start).all())
        plain = numbers[~np.isin(numbers, SENTINELS)]
        if len(plain):
            self.low, self.high = min(self.low, plain.min()), max(self.high, plain.max())
            self.count += len(plain)
        return {float(code) for code in SENTINELS if (numbers == code).any()}


def _measured(outline: Schema, table: TableInput) -> Schema:
    """Return a schema with the bounds that the table's own numbers have."""
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
    """Return a column with bounds around its numbers; out of use where they say nothing."""
    if column.levels:
        return column
    low, high = seen.low, seen.high
    missing = [code for code in sorted(codes) if seen.count >= 3 and far_from(code, low, high)]
    for code in codes - set(missing):  # a number like any other
        low, high = min(low, code), max(high, code)
    if not low < high or (seen.counts_rows and n >= 3):
        return replace(column, use=False)
    low, high = _outward(low, high)
    return replace(column, low=low, high=high, missing=tuple(missing))


def _outward(low: float, high: float) -> tuple[float, float]:
    """Return bounds with few digits around two numbers."""
    if not math.isfinite(high - low):
        return low, high
    step = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    down, up = math.floor(round(low / step, 6)) * step, math.ceil(round(high / step, 6)) * step
    # a step of .1 leaves digits that nobody means
    down, up = float(f"{down:.12g}"), float(f"{up:.12g}")
    return min(down, low), max(up, high)
