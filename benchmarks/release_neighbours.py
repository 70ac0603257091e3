"""Test, by pairs of files, that one person's line does not affect how other lines are read.

Random tables are written in several dialects (delimiters, decimal marks, quotes, encodings, with or
without a header row, gzipped or not, Parquet, a sheet of a workbook). Each table is released twice,
once unchanged and once with one line changed to anything: hostile cells, cells of another dialect,
other numbers of cells, random bytes. Then all lines of a person are replaced by another person's
lines or blanked, in a text or a Parquet file. Either a column names each line's person, or nobody
has more than a declared m lines; some lines name nobody. The output has the largest change of the
integer moments over the stated sensitivity, in the weighted l2 norm (Gaussian noise) and in l1
(Laplace noise). This ratio must be at most 1. The output also has the number of pairs that differ
in a key, a shape, an exit code or a message, which must be 0. The exit status reports both results.
`published`, and `board` for every third file, then show the same files under their schema. In the
output only a picture may differ; in the table read, at most as many rows as the person has.

A stand-in for the noise records the moments of a release; the rest of the command runs unchanged.

    python -m benchmarks.release_neighbours --pairs 2000
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from dpviz import cli
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Relation
from dpviz.core.seeding import generator
from dpviz.releasing import making
from dpviz.releasing.grid import DIAGONAL_WEIGHT, OTHER_WEIGHT, IntArray
from dpviz.releasing.making import table_input
from dpviz.releasing.noise import sensitivity_l1, sensitivity_l2
from dpviz.releasing.records import declared_table
from dpviz.releasing.schema import Column, Schema

Rng = np.random.Generator
_parser = cache(cli.build_parser)  # Building the parser takes a third of a command's time.
ROW_BOUND = "3"

HOSTILE: tuple[bytes, ...] = (
    b"", b" ", b"0,5", b"0.5", b"1,234.5", b"1.234,5", b"1e999", b"-1e999", b"1e-999", b"inf",
    b"-Infinity", b"nan", b"NaN", b"NA", b"null", b"-999", b"-999.0", b"-9.99e2", b"0x1F", b"1_000",
    b"1e5", b"1E+05", b".", b"-", b"+", b"e5", b"--1", b"1-", b"1 2", b"'1", b'"', b'""', b'"1',
    b'1"', b'"1""2"', b"yes", b"true", b"2024-01-31", b"01.02.2024", b"12%", b"(5)", b"$5",
    b"9" * 5_000, b"0." + b"0" * 5_000 + b"1", b"1e" + b"9" * 400, b"\x00", b"1\x002", b"\xff\xfe",
    b"\xef\xbb\xbf1", "\u0661\u0662".encode(), "\u00b2".encode(), "\u22121".encode(),
    "\u00a01".encode(), b"\r", b"1\r", b"\x1a", b"\x0b1\x0c", b"=1+1", b"PAR1", b"\x1f\x8b\x08",
    b"1e400", b"1e308", b"-1e308", b"5e-324", b"total", b"sep=;", b"#1", b",", b";;", b"x" * 70_000,
)  # fmt: skip
"""Cells that confused some reader, or that a reader could take for a number."""


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one person, with one declaration for both.

    Attributes
    ----------
    first, second : bytes
    schema : Schema
    relation : Relation
    law : {"0", "1e-6"}
        The delta: 0 for Laplace noise, above 0 for Gaussian noise.
    ending : str
        Ending of the files' names.
    rows : {"bound", "unit"}
        Whether rows are clipped to a row-norm bound, or scaled to length one.
    center : {"typical", "private"}
    """

    first: bytes
    second: bytes
    schema: Schema
    relation: Relation
    delta: str
    ending: str
    rows: str = "bound"
    center: str = "typical"


def _schema(rng: Rng) -> Schema:
    """Return a declaration: two to five columns that are used, and some that are not."""
    columns = []
    for j in range(int(rng.integers(2, 6))):
        low = float(rng.choice([-1.0, 0.0, -1e6, 0.25]))
        high = low + float(rng.choice([1.0, 2.0, 1e3, 1e-3]))
        typical = float(rng.choice([low, high, (low + high) / 2]))
        missing = tuple(float(code) for code in rng.choice([-999, 9999, 0.5], int(rng.integers(3))))
        columns.append(Column(f"x{j}", low, high, typical, tuple(set(missing))))
    for j in range(int(rng.integers(0, 3))):
        columns.insert(int(rng.integers(len(columns) + 1)), Column(f"unused {j}", use=False))
    decimal = str(rng.choice([".", ","]))
    others = [mark for mark in ("", "", "", ",", ".", "'", " ") if mark != decimal]
    return Schema(
        tuple(columns),
        header=bool(rng.random() < 0.7),
        skip=int(rng.integers(0, 3)) if rng.random() < 0.3 else 0,
        delimiter=str(rng.choice([",", ";", "\t", "|", " "])),
        decimal=decimal,
        thousands=str(rng.choice(others)),
        encoding=str(rng.choice(["utf-8", "cp1252", "latin-1"])),
        packing=str(rng.choice(["auto", "text"])),
    )


def _number(rng: Rng, column: Column, schema: Schema) -> bytes:
    """Return a number as the schema writes it, mostly within the bounds."""
    low, high = (
        (0.0, 1.0) if column.low is None or column.high is None else (column.low, column.high)
    )
    text = f"{rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low)):.6g}"
    return text.replace(".", schema.decimal).encode()


def _cell(rng: Rng, column: Column, schema: Schema, hostile: float) -> bytes:
    if rng.random() < hostile:
        kind = rng.random()
        if kind < 0.8:
            return HOSTILE[int(rng.integers(len(HOSTILE)))]
        return bytes(rng.integers(0, 256, int(rng.integers(1, 40)), dtype=np.uint8))
    text = _number(rng, column, schema)
    return b'"' + text + b'"' if rng.random() < 0.1 or schema.delimiter.encode() in text else text


def _line(rng: Rng, schema: Schema, hostile: float) -> bytes:
    cells = [_cell(rng, column, schema, hostile) for column in schema.columns]
    if rng.random() < hostile / 2:
        cells = cells[: int(rng.integers(len(cells) + 1))]
    elif rng.random() < hostile / 2:
        cells += cells
    return schema.delimiter.encode().join(cells).replace(b"\n", b" ")


def _anything(rng: Rng, schema: Schema) -> bytes:
    """Return an arbitrary line."""
    kind = rng.random()
    if kind < 0.5:
        return _line(rng, schema, 0.5)
    if kind < 0.65:
        return _line(rng, replace(schema, delimiter=";", decimal=",", thousands=""), 0.1)
    if kind < 0.7:
        return b""
    if kind < 0.8:
        return HOSTILE[int(rng.integers(len(HOSTILE)))]
    if kind < 0.85:  # In this case, repeat the header row in the middle of the file.
        return schema.delimiter.encode().join(column.name.encode() for column in schema.columns)
    size = int(rng.choice([3, 60, 3_000, 100_000], p=[0.4, 0.4, 0.15, 0.05]))
    return bytes(rng.integers(0, 256, size, dtype=np.uint8)).replace(b"\n", b"")


def _text(lines: Sequence[bytes], schema: Schema, end: bytes, last: bool) -> bytes:
    above = [b"about this table"] * schema.skip
    if schema.header:
        names = [f'"{column.name}"'.encode() for column in schema.columns]
        above.append(schema.delimiter.encode().join(names))
    return end.join([*above, *lines]) + (end if last else b"")


def _of_text(rng: Rng) -> Pair:
    schema = _schema(rng)
    n = int(rng.integers(2, 40))
    lines = [_line(rng, schema, 0.03) for _ in range(n)]
    at, relation = int(rng.integers(n)), Relation(str(rng.choice(["replace", "zero-out"])))
    # Zero-out: the line becomes blank, and its filled-in cells are subtracted: a row of zeros.
    other = [*lines]
    other[at] = _anything(rng, schema) if relation is Relation.REPLACE else b""
    if relation is Relation.ZERO_OUT:
        lines[at] = _anything(rng, schema)
    end = b"\r\n" if rng.random() < 0.2 else b"\n"
    last = rng.random() < 0.8 or at == n - 1  # An empty last line needs a line end.
    files = [_text(rows, schema, end, last) for rows in (lines, other)]
    if rng.random() < 0.15 and (schema.header or schema.skip):
        schema = replace(schema, packing="auto")
        files = [gzip.compress(file, 1, mtime=0) for file in files]
    elif rng.random() < 0.1:
        schema = replace(schema, packing="gzip")
        files = [gzip.compress(file, 1, mtime=0) for file in files]
    ending = str(rng.choice([".csv", ".txt", ".parquet", ".gz"]))
    delta, rows = str(rng.choice(["0", "1e-6"])), str(rng.choice(["bound", "unit"]))
    return Pair(*files, schema, relation, delta, ending, rows)


_STRANGE = (None, float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, -999.0, 0.5)


def _of_parquet(rng: Rng) -> Pair:
    """Make typed columns: doubles, floats or whole numbers, plain or coded."""
    schema = replace(_schema(rng), header=True, skip=0, packing="auto")
    n = int(rng.integers(2, 40))
    at, relation = int(rng.integers(n)), Relation(str(rng.choice(["replace", "zero-out"])))
    tables: tuple[dict[str, pa.Array], dict[str, pa.Array]] = ({}, {})
    for column in schema.columns:
        kind = str(rng.choice(["double", "float", "int32", "coded"]))
        values: list[Any]
        new: Any
        type_: Any
        if kind in ("int32", "coded"):
            values, new = rng.integers(-1000, 1000, n).tolist(), int(rng.integers(-(2**31), 2**31))
            type_ = pa.int32()
        else:
            values = rng.normal(size=n).tolist()
            new, type_ = _STRANGE[int(rng.integers(len(_STRANGE)))], pa.float64()
        new = None if rng.random() < 0.1 else new
        neighbour = [*values]
        neighbour[at] = None if relation is Relation.ZERO_OUT else new
        if relation is Relation.ZERO_OUT:
            values[at] = new
        for table, values_here in zip(tables, (values, neighbour), strict=True):
            array = pa.array(values_here, type_)
            if kind == "float":
                array = array.cast(pa.float32(), safe=False)
            table[column.name] = array.dictionary_encode() if kind == "coded" else array
    files = []
    for table in tables:
        sink = io.BytesIO()
        parquet.write_table(pa.table(table), sink, row_group_size=max(1, n // 2))
        files.append(sink.getvalue())
    ending = str(rng.choice([".parquet", ".csv"]))
    delta, rows = str(rng.choice(["0", "1e-6"])), str(rng.choice(["bound", "unit"]))
    return Pair(*files, schema, relation, delta, ending, rows)


_VALUES = (
    "<v>0.5</v>", "<v>-999</v>", "<v>1e300</v>", "<v>-0</v>", 't="b"><v>1</v>',
    't="e"><v>#DIV/0!</v>', 't="str"><v>0.25</v>', "<f>AVERAGE(A:A)</f><v>0.5</v>",
    't="e"><f>1/0</f><v>#N/A</v>', 's="1"><v>45322.5</v>', 's="1"><v>1e300</v>', 's="1"><v>-1</v>',
    's="2"><v>1.5</v>', 's="3"><v>1234.5</v>', 's="3"><v>0.1</v>', "",
)  # fmt: skip
"""Make cells of a workbook: formatted numbers, dates, nothing, truth values, errors, formulas."""


def _sheet_cell(rng: Rng, column: Column, schema: Schema, hostile: float) -> str:
    """Return the XML of a cell of a sheet: the attributes, then the enclosed content."""
    kind = rng.random()
    if kind < hostile / 2:
        return _VALUES[int(rng.integers(len(_VALUES)))]
    if kind < hostile:
        return _in_sheet(HOSTILE[int(rng.integers(len(HOSTILE)))][:32_000].decode("latin-1"))
    return f"<v>{_number(rng, column, schema).decode()}</v>"


def _in_sheet(text: str) -> str:
    text = "".join(c if c >= " " or c in "\n\t" else f"_x{ord(c):04X}_" for c in text)
    return f't="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is>'


def _of_sheet(rng: Rng) -> Pair:
    """Return two workbooks with one row of a sheet changed; formulas keep their places."""
    schema = replace(
        _schema(rng), delimiter=",", decimal=".", thousands="", encoding="utf-8", packing="auto"
    )
    relation = Relation(str(rng.choice(["replace", "zero-out"])))
    n = int(rng.integers(3, 40))
    rows = [[_sheet_cell(rng, c, schema, 0.1) for c in schema.columns] for _ in range(n)]
    rows[-1] = ["<v>1</v>"] * len(schema.columns)  # The last non-empty row sets the row count.
    at = int(rng.integers(n - 1))
    other = [_sheet_cell(rng, c, schema, 0.6) for c in schema.columns]
    other = [
        new if ("<f>" in new) == ("<f>" in old) else old
        for old, new in zip(rows[at], other, strict=True)
    ]
    if rng.random() < 0.3:  # In this case, add more cells to the row than there are names.
        other += ["<v>7</v>"] * 3
    blank = [cell if "<f>" in cell else "" for cell in rows[at]]
    first, second = [*rows], [*rows]
    first[at], second[at] = (rows[at], other) if relation is Relation.REPLACE else (other, blank)
    above = [[_in_sheet("about this table")]] * schema.skip
    if schema.header:
        above += [[_in_sheet(column.name) for column in schema.columns]]
    files = [_workbook([*above, *rows]) for rows in (first, second)]
    delta, rows_rule = str(rng.choice(["0", "1e-6"])), str(rng.choice(["bound", "unit"]))
    return Pair(*files, schema, relation, delta, ".xlsx", rows_rule)


def _workbook(rows: Sequence[Sequence[str]]) -> bytes:
    """Return an xlsx of one sheet, written directly from the standard ECMA-376."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    lines = []
    for i, row in enumerate(rows, 1):
        cells = [
            f'<c r="{chr(65 + j)}{i}" {inside if inside[:1] not in ("", "<") else ">" + inside}</c>'
            for j, inside in enumerate(row)
        ]
        lines.append(f'<row r="{i}">{"".join(cells)}</row>')
    formats = "".join(f'<xf numFmtId="{which}"/>' for which in (0, 14, 46, 4))
    files = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="r" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Labor" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}"><Relationship Id="rId1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" '
        f'Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs>{formats}</cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{"".join(lines)}'
        "</sheetData></worksheet>",
    }
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return sink.getvalue()


_NOBODY = (b"", b'""', b" ", b"NA", b"nan", b"?")
PEOPLE = ("id", "column", "bound")
"""Ways to identify persons: an id in a text, a Parquet column, or a bound on a person's rows."""


def _people(rng: Rng, kind: str) -> Pair:
    """Return two tables that differ in all lines of one person, who may have too many lines."""
    schema = replace(
        _schema(rng), rows_a_person=int(rng.integers(1, 4)), skip=0, packing="auto", header=True
    )
    assert schema.rows_a_person is not None
    relation = Relation(str(rng.choice(["replace", "zero-out"])))
    n = int(rng.integers(6, 25))
    if kind == "bound":
        hers = rng.permutation(n)[: schema.rows_a_person]
        both = [_line(rng, schema, 0.03) for _ in range(n)]
        lines = [both, [*both]]
        for at in hers:
            lines[0][at] = _anything(rng, schema)
            lines[1][at] = _anything(rng, schema) if relation is Relation.REPLACE else b""
        files = [_text(rows, schema, b"\n", True) for rows in lines]
    else:
        schema = replace(schema, person="who", columns=(Column("who", use=False), *schema.columns))
        hers = rng.permutation(n)[: int(rng.integers(1, 6))]
        nobody = _NOBODY[1:2] if schema.delimiter == " " else _NOBODY
        who = [[*rng.choice([b"pp", b"qq", b"rr", b""], n, p=[0.3, 0.2, 0.2, 0.3])]] * 2
        who = [[*rows] for rows in who]
        for at in hers:
            who[0][at] = b"" if rng.random() < 0.3 else b"her"
            absent = relation is Relation.ZERO_OUT or rng.random() < 0.3
            who[1][at] = b"" if absent else b"another"
        # Use several markers, because people write different ones for a row that belongs to nobody.
        blank = [nobody[int(rng.integers(len(nobody)))] for _ in range(n)]
        schema_used = replace(schema, columns=schema.columns[1:], person="")
        if kind == "id":
            rest = [_line(rng, schema_used, 0.05) for _ in range(n)]
            other = [_line(rng, schema_used, 0.3) if at in hers else rest[at] for at in range(n)]
            files = [
                _text(
                    [
                        schema.delimiter.encode().join([name or blank[at], line])
                        for at, (name, line) in enumerate(zip(names, rows, strict=True))
                    ],
                    schema, b"\n", True,
                )
                for names, rows in zip(who, (rest, other), strict=True)
            ]  # fmt: skip
        else:
            files = _parquet(rng, schema, who, {int(at) for at in hers})
    delta, rows = str(rng.choice(["0", "1e-6"])), str(rng.choice(["bound", "unit"]))
    # Without a person id, a blank line gets typical values: it is zero only if they are the centre.
    absent = kind == "bound" and relation is Relation.ZERO_OUT
    center = "typical" if absent else str(rng.choice(["typical", "private"]))
    ending = ".parquet" if kind == "column" else ".csv"
    return Pair(*files, schema, relation, delta, ending, rows, center)


def _parquet(rng: Rng, schema: Schema, who: Sequence[list[bytes]], hers: set[int]) -> list[bytes]:
    """Return two Parquet files whose persons are whole numbers or doubles."""
    kind = str(rng.choice(["int64", "double", "coded"]))
    numbers = {b"pp": 1, b"qq": 2, b"rr": 3, b"her": 4, b"another": 5}
    n, files = len(who[0]), []
    cells = {c.name: rng.normal(size=n) for c in schema.columns[1:]}
    gaps = [rng.random() < 0.5 for _ in range(n)]
    for names, change in zip(who, (False, True), strict=True):
        if kind == "double":
            ids = pa.array(
                [
                    float(numbers[n_]) if n_ else (None if gap else float("nan"))
                    for n_, gap in zip(names, gaps, strict=True)
                ],
                pa.float64(),
            )
        else:
            ids = pa.array([numbers.get(name) for name in names], pa.int64())
        rows = {
            name: [
                float(rng.normal()) if change and at in hers else value
                for at, value in enumerate(values.tolist())
            ]
            for name, values in cells.items()
        }
        sink = io.BytesIO()
        table = pa.table({"who": ids.dictionary_encode() if kind == "coded" else ids, **rows})
        parquet.write_table(table, sink, row_group_size=max(1, n // 2))
        files.append(sink.getvalue())
    return files


def pair(seed: int, number: int) -> Pair:
    """Return one pair of files by its number."""
    rng = generator(seed, "release neighbours", number)
    if number % 10 == 9:
        return _of_sheet(rng)
    return _of_parquet(rng) if rng.random() < 0.2 else _of_text(rng)


@dataclass(frozen=True)
class Outcome:
    """Reports of a release, and the integers from which it is computed.

    Attributes
    ----------
    code : int
        Exit status of the command.
    said : str
        Messages on both streams.
    shape : str
        Keys of the JSON, lengths of its lists, and all values without randomness.
    moment : ndarray of shape (d, d) or None
        Moments in whole numbers, before noise.
    bits : int
    total : ndarray of shape (d,) or None
        Sum of the rows in whole numbers, if the mean is private.
    count : int or None
        Number of rows that count, if the file names persons.
    """

    code: int
    said: str
    shape: str
    moment: IntArray | None
    bits: int
    total: IntArray | None = None
    count: int | None = None


# These entries of a release file are random, a time, or the ledger's name.
_DRAWN = ("matrix", "eigenvalues", "components", "made", "id", "head", "counted", "mean", "center")


def _shape(value: Any, drawn: bool = False) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item, drawn or key in _DRAWN) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item, drawn) for item in value]
    return type(value).__name__ if drawn else value


@contextmanager
def _watch() -> Iterator[dict[str, Any]]:
    """Record the integers to which releases add noise; do not sample noise for small tables."""
    record: dict[str, Any] = {}

    def moment(exact: IntArray, noise: Any, n: int, bits: int) -> Any:
        record.update(moment=exact.copy(), bits=bits)
        return np.eye(len(exact))

    def total(exact: IntArray, noise: Any, n: int, bits: int) -> Any:
        record["total"] = exact.copy()
        return np.zeros(len(exact))

    def count(exact: int, noise: Any, n: int, bits: int) -> int:
        record["count"] = exact
        return n

    stand_ins = {"released": moment, "released_mean": total, "released_count": count}
    with mock.patch.multiple(making, **stand_ins):
        yield record


def outcome(data: bytes, case: Pair, folder: Path) -> Outcome:
    """Return the command's result for a file, with a folder and a ledger of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        table, schema = place / f"table{case.ending}", place / "schema.json"
        out, ledger = place / "out.json", place / "ledger"
        table.write_bytes(data)
        case.schema.write(schema)
        relation = ["--relation", str(case.relation)]
        unit = ["--unit", str(case.schema.unit)]
        making_it = ["ledger", "new", str(ledger), "--limit", "9,1e-3", *relation, *unit]
        words = ["release", str(table), "--schema", str(schema), "--k", "1", *relation]
        words += ["--rows", case.rows, "--delta", case.delta, "--center", case.center]
        words += ["--row-bound", ROW_BOUND] if case.rows == "bound" else []
        words += ["--ledger", str(ledger), "--out", str(out)]
        output = io.StringIO()
        parsing = mock.patch.object(cli, "build_parser", _parser)
        with parsing, _watch() as record, redirect_stdout(output), redirect_stderr(output):
            code = cli.main(making_it) or cli.main(words)
        shape = json.dumps(_shape(json.loads(out.read_text()))) if out.exists() else ""
    record = {"moment": None, "bits": 0} | record
    return Outcome(code, output.getvalue().replace(name, ""), shape, **record)


def shares(
    first: Outcome, second: Outcome, relation: Relation, rows: int = 1
) -> tuple[float, float]:
    """Return the change of the released values over the stated sensitivity, in l2 and in l1.

    A ratio is shown above 1 only if it is above 1 in exact arithmetic. The ratio for a sum of rows,
    or for the number that count, is in both norms.
    """
    assert first.moment is not None
    assert second.moment is not None
    d = len(first.moment)
    upper = np.triu_indices(d)
    differences = [
        int(a) - int(b) for a, b in zip(first.moment[upper], second.moment[upper], strict=True)
    ]
    weights = np.where(upper[0] == upper[1], DIAGONAL_WEIGHT, OTHER_WEIGHT).tolist()
    square = sum((w * value) ** 2 for w, value in zip(weights, differences, strict=True))
    l2 = Fraction(square, (rows * sensitivity_l2(relation, first.bits)) ** 2)
    l1 = Fraction(sum(map(abs, differences)), rows * sensitivity_l1(relation, d, first.bits))
    beside = []
    if first.count is not None and second.count is not None:
        beside.append(Fraction((first.count - second.count) ** 2, rows**2))
    if first.total is not None and second.total is not None:
        length = (rows << first.bits) * (2 if relation is Relation.REPLACE else 1)
        away = (first.total - second.total).tolist()
        beside.append(Fraction(sum(value**2 for value in away), length**2))
    both = max(_above(one, float(one) ** 0.5) for one in (*beside, Fraction(0)))
    return max(_above(l2, float(l2) ** 0.5), both), max(_above(l1, float(l1)), both)


def _above(exact: Fraction, shown: float) -> float:
    return max(shown, 1.0 + 1e-12) if exact > 1 else min(shown, 1.0)


@dataclass
class Found:
    """Summary of the results of many pairs."""

    pairs: int = 0
    released: int = 0
    l2: float = 0.0
    l1: float = 0.0
    differences: Counter[str] | None = None
    examples: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether no pair reveals one person's line."""
        return max(self.l2, self.l1) <= 1 and not self.differences and self.released > 0


def compare_people(
    seed: int,
    pairs: int,
    show: Callable[[int], None] | None = None,
    first: int = 0,
    kinds: Sequence[str] = PEOPLE,
) -> Found:
    """Return the summary of pairs of files that differ in one person."""

    def person(seed: int, number: int) -> Pair:
        rng = generator(seed, "persons of a release", number)
        return _people(rng, kinds[number % len(kinds)])

    return compare(seed, pairs, show, first, person)


def compare(
    seed: int,
    pairs: int,
    show: Callable[[int], None] | None = None,
    first: int = 0,
    of: Callable[[int, int], Pair] = pair,
) -> Found:
    """Return the summary of many pairs of files."""
    summary = Found(differences=Counter())
    assert summary.differences is not None
    memory = "/dev/shm"  # Use a folder in memory: a ledger writes to disk five times an entry.
    with tempfile.TemporaryDirectory(dir=memory if Path(memory).is_dir() else None) as place:
        for number in range(first, first + pairs):
            case = of(seed, number)
            ends = [outcome(data, case, Path(place)) for data in (case.first, case.second)]
            summary.pairs += 1
            for name in ("code", "said", "shape"):
                if getattr(ends[0], name) != getattr(ends[1], name):
                    summary.differences[name] += 1
                    summary.examples += (f"pair {number}: {name}",)
            if all(end.moment is not None and end.code == 0 for end in ends):
                summary.released += 1
                l2, l1 = shares(*ends, case.relation, case.schema.rows_a_person or 1)
                summary.l2, summary.l1 = max(summary.l2, l2), max(summary.l1, l1)
                if max(l2, l1) > 1:
                    summary.examples += (f"pair {number}: moments",)
            if show is not None:
                show(number)
    return summary


# These entries of the output are random: pictures, and the frames of the Explore figure.
_PICTURED = ("picture", "frames")


def _without_pictures(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item is None if key in _PICTURED else _without_pictures(item)
            for key, item in value.items()
        }
    return [_without_pictures(item) for item in value] if isinstance(value, list) else value


def shown(data: bytes, case: Pair, folder: Path, *, board: bool) -> tuple[Outcome, FloatArray]:
    """Return the output of `published` or `board` for a file, and the table rows behind it."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        table, out = place / f"table{case.ending}", place / "out.html"
        table.write_bytes(data)
        case.schema.write(place / "schema.json")
        words = ["board" if board else "published", str(table)]
        words += ["--schema", str(place / "schema.json"), "--mechanism", "gaussian", "--k", "1"]
        words += ["--relation", str(case.relation), "--epsilon", "9", "--delta", "1e-3"]
        words += ["--out", str(out)] if board else ["--format", "json"]
        output = io.StringIO()
        parsing = mock.patch.object(cli, "build_parser", _parser)
        with parsing, redirect_stdout(output), redirect_stderr(output):
            code = cli.main(words)
        rows = declared_table(table_input(str(table)), case.schema).rows
        text = output.getvalue()
        content: Any = None
        if board and out.exists():
            page, text = out.read_text(), ""
            content = json.loads(
                page.partition('id="payload"')[2].partition(">")[2].partition("<")[0]
            )
        elif code == 0:
            content, text = json.loads(text), ""
    return Outcome(code, text, json.dumps(_without_pictures(content)), None, 0), rows


def compare_shown(
    seed: int, pairs: int, show: Callable[[int], None] | None = None, first: int = 0
) -> Found:
    """Return the summary for pictures and Explore figures of file pairs, under their schemas.

    `Found.l2` is the largest ratio of differing rows to the person's rows. A row may become zeros
    or another row, in any order.
    """
    summary = Found(differences=Counter())
    assert summary.differences is not None
    with tempfile.TemporaryDirectory() as place:
        for number in range(first, first + pairs):
            rng = generator(seed, "persons of a picture", number)
            kind = PEOPLE[number % len(PEOPLE)]
            case = _people(rng, kind) if number % 2 else pair(seed, number)
            ends = [
                shown(data, case, Path(place), board=number % 3 == 0)
                for data in (case.first, case.second)
            ]
            summary.pairs += 1
            (one, rows), (other, others) = ends
            for name in ("code", "said", "shape"):
                if getattr(one, name) != getattr(other, name):
                    summary.differences[name] += 1
                    summary.examples += (f"shown {number}: {name}",)
            counts = [
                Counter(map(bytes, np.ascontiguousarray(each + 0.0))) for each in (rows, others)
            ]
            shift = max((counts[0] - counts[1]).total(), (counts[1] - counts[0]).total())
            summary.l2 = max(summary.l2, shift / (case.schema.rows_a_person or 1))
            summary.released += one.code == other.code == 0
            if show is not None:
                show(number)
    return summary


def main(argv: Sequence[str] | None = None) -> int:
    """Print the results of pairs of files; return 1 if one reveals a person's line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(argv)

    def show(number: int) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{number}", end="", file=sys.stderr, flush=True)

    sound = True
    questions = (("line", compare), ("person", compare_people), ("person, shown", compare_shown))
    for unit, of in questions:
        total = of(options.seed, options.pairs, show, options.first)
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)
        assert total.differences is not None
        print(
            f"{total.pairs:,} pairs of files that differ in one {unit}, {total.released:,} released"
        )
        print(
            "largest change of what noise is drawn for over the stated sensitivity: "
            f"{total.l2:.4f} in l2, {total.l1:.4f} in l1 (at most 1)"
        )
        for name, words in (
            ("shape", "keys and shapes"),
            ("code", "exit codes"),
            ("said", "messages"),
        ):
            print(f"differences of {words}: {total.differences[name]} (at most 0)")
        for example in total.examples[:10]:
            print(example, file=sys.stderr)
        sound = sound and total.sound
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
