"""A first schema, taken from a table: what a person then makes public by editing it."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from dpviz.core.arrays import FloatArray
from dpviz.core.entries import LARGEST, FeatureBounds
from dpviz.core.errors import InvalidTable
from dpviz.core.settings import plain_word
from dpviz.datasets import Table
from dpviz.datasets.claims import DAMAGED, check_pages
from dpviz.datasets.columns import MISSING_MARKERS, SENTINELS, clean_names, far_from
from dpviz.datasets.files import flat_of
from dpviz.datasets.formats import is_json
from dpviz.datasets.layout import Layout, detect
from dpviz.datasets.source import IN_MEMORY, Limits, Source, readable
from dpviz.datasets.survey import is_text
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
_MISSING = {marker.encode() for marker in MISSING_MARKERS}


def draft(
    table: TableInput,
    name: str,
    bounds: tuple[float, float] | FeatureBounds | str = "data",
    limits: Limits | None = None,
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
    limits : Limits, optional
        What the table may take once it is unpacked, a Parquet file by the page.
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
    outline, start = _outline(table, name, levels, limits)
    if bounds == "none":
        used = outline
        if start is not None:  # unpacked, whatever the file is
            used = replace(
                _measured(replace(outline, packing="text"), start), packing=outline.packing
            )
        # bounds of words are their number
        found = replace(used, columns=tuple(replace(c, low=None, high=None) for c in used.columns))
    else:
        if limits is not None and not (start is None or isinstance(table, Table)):
            Source(table, name).extent(limits)
        used = _measured(outline, table)
        found = used if isinstance(bounds, str) else with_bounds(used, bounds)
    # the columns of a table of ours are public, and so is what the caller says of them
    return replace(found, from_data=isinstance(bounds, str) or not isinstance(table, Table))


def _outline(
    table: TableInput, name: str, levels: Scales, limits: Limits | None
) -> tuple[Schema, bytes | None]:
    """Return how a table is written, columns that could hold numbers in use, and a text's start."""
    if isinstance(table, Table):
        own = tuple(Column(found) for found in clean_names(table.columns)[0])
        return Schema(own, **public_labels(table)), None
    source = Source(table, name)
    if source.is_parquet:
        with readable(DAMAGED.format(name)):
            file = parquet.ParquetFile(source.open())
            columns = flat_of(file.schema_arrow.empty_table())
        read = [found for found, _ in columns]
        claims = check_pages(source, set(read), limits or IN_MEMORY)
        names = clean_names(read)[0]
        kinds = (usable(values.type) for _, values in columns)
        found = tuple(Column(n, use=use) for n, use in zip(names, kinds, strict=True))
        if levels:
            with readable(DAMAGED.format(name)):
                file = parquet.ParquetFile(source.open(), read_dictionary=claims.coded)
                batches = file.iter_batches(
                    claims.rows(_SAMPLE_LINES, read), columns=list(dict.fromkeys(read))
                )
                few = next(batches, None)
            if few is not None:
                held = [values for _, values in flat_of(few)]
                found = tuple(map(partial(_worded, levels), found, held))
        return Schema(found), None
    return _of_text(source, levels)


def _worded(levels: Scales, column: Column, values: pa.Array) -> Column:
    """Return a column of a Parquet file with the scale that its first texts are words of."""
    if pa.types.is_dictionary(values.type):  # each text once, as it may be long
        values = values.dictionary.take(values.indices.unique())
    if not is_text(values.type):
        return column
    texts = [text for text in values.to_pylist() if isinstance(text, str) and text.strip()]
    return replace(column, levels=_scale_of(texts, levels))


def _of_text(source: Source, levels: Scales) -> tuple[Schema, bytes]:
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
    sample = Source(head, source.name)
    layout = detect(sample, sample.extent())
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
    best = _with_marks(plain, rows, layout.decimal)
    parse = number_parser(best)
    columns = tuple(
        _judged(column, [row[j].strip() for row in rows if j < len(row)], parse, levels)
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


def _with_marks(plain: Schema, rows: Sequence[Sequence[bytes]], decimal: str | None) -> Schema:
    """Return the schema with the marks under which most cells are numbers."""
    best, most = plain, -1
    for thousands, mark in product(THOUSANDS, sorted(DECIMALS, key=lambda one: one != decimal)):
        if thousands == mark:
            continue
        tried = replace(plain, decimal=mark, thousands=thousands)
        parse = number_parser(tried)
        # of equal counts the first stays: the mark that Explore would take, and no thousands
        count = sum(math.isfinite(parse(cell)) for row in rows for cell in row)
        if count > most:
            best, most = tried, count
    return best


def _judged(
    column: Column, cells: Sequence[bytes], parse: Callable[[bytes], float], levels: Scales
) -> Column:
    """Return a column with whether it could hold numbers, or words of a scale."""
    cells = [cell for cell in cells if cell not in _MISSING]
    numbers = sum(math.isfinite(parse(cell)) for cell in cells)
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
