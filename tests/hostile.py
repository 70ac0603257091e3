"""Generate tables as users and attackers upload them, seeded to reproduce every failure.

`files` yields numbered files: valid tables in odd formats (delimiters, marks, titles, units,
totals, missing values, encodings), Parquet of every type, and mutations of all these files: bytes
flipped, cut, doubled, spliced. Every cell that a message must never show carries `SECRET` or
`NUMBER`. `links` yields similar queries for the pages.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gc
import gzip
import io
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from dpviz.core.errors import DpvizError, InvalidTable
from dpviz.core.number_text import PER_CENT
from dpviz.core.seeding import generator
from dpviz.datasets import read_raw
from dpviz.datasets.batches import FileBatches
from dpviz.datasets.check import advised, check_columns
from dpviz.datasets.table import ReadOptions

SECRET = "SECRETCELL"
NUMBER = "31337"
Rng = np.random.Generator

# These cells are not plain numbers: each contains something that some reader misread.
_ODD = (
    "", "NA", "?", "-999", "1e999", "-inf", "nan", "0x1F", "1.234", "1,234", "1.234,5", "1,234.5",
    "(5)", "12%", "007", "01.02.2024", "2024-02-30", "True", "\u00b2", "\u0661", "1_000", "1 000",
    "=1+1", "\u202e" + SECRET, "a\x00b", "\t", "x" * 300, "[x](http://host/p.png)", "$a_1$",
)  # fmt: skip
_NAMES = (
    "a", "a", "", " ", "x.y", "\u202eevil", "line\nbreak", "<b>bold</b>", "![](http://host/p.png)",
    "$x$", "n" * 90, "\x1b[31m", "\u00e9", "0", "label",
)  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """One generated file.

    Parameters
    ----------
    number : int
        Index of the file, which reproduces the file together with the seed.
    kind : str
        Way in which the file was made.
    name : str
        File name.
    data : bytes
    """

    number: int
    kind: str
    name: str
    data: bytes


def _number(rng: Rng, mark: str, digits: int) -> str:
    text = f"{rng.normal(0, 10.0 ** rng.integers(0, 5)):.{digits}f}"
    return text.replace(".", mark)


def _text_table(rng: Rng) -> bytes:
    """Return delimited text in a random format."""
    delimiter = str(rng.choice([",", ";", "\t", "|", " "]))
    mark = str(rng.choice([".", ",", "."]))
    width, rows = int(rng.integers(1, 7)), int(rng.integers(0, 30))
    names = [str(name) for name in rng.choice(_NAMES, width)]
    kinds = rng.choice(["number", "text", "odd", "code", "date", "grouped", "empty"], width,
                       p=[0.55, 0.1, 0.1, 0.06, 0.06, 0.08, 0.05])  # fmt: skip
    digits = int(rng.integers(0, 4))

    def cell(kind: str) -> str:
        if rng.random() < 0.03:
            return str(rng.choice(_ODD))
        if kind == "number":
            return _number(rng, mark, digits)
        if kind == "text":
            return f"{SECRET}{rng.integers(3)}"
        if kind == "odd":
            return str(rng.choice(_ODD))
        if kind == "code":
            return f"{rng.integers(1000):05d}"
        if kind == "date":
            return f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.2024"
        if kind == "grouped":
            whole = f"{rng.integers(1, 10**7):,}"
            return whole if mark == "." else whole.replace(",", ".")
        return ""

    sink = io.StringIO(newline="")
    writer = csv.writer(
        sink,
        delimiter=delimiter,
        lineterminator=str(rng.choice(["\n", "\r\n"])),
        quoting=csv.QUOTE_ALL if rng.random() < 0.15 else csv.QUOTE_MINIMAL,
    )
    if rng.random() < 0.05:
        sink.write(f"sep={delimiter}\n")
    for _ in range(int(rng.integers(1, 3)) if rng.random() < 0.1 else 0):
        sink.write("Report of the year\n")
    if rng.random() < 0.8:
        writer.writerow(names)
    if rng.random() < 0.08:
        writer.writerow(["(kg)"] * width)
    for _ in range(rows):
        row = [cell(str(kind)) for kind in kinds]
        if rng.random() < 0.01:
            row = row[:-1]
        writer.writerow(row)
    if rng.random() < 0.08:
        writer.writerow(["Total", *[_number(rng, mark, digits)] * (width - 1)])
    encoding = str(
        rng.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"], p=[0.85, 0.08, 0.05, 0.02])
    )
    return sink.getvalue().encode(encoding, "replace")


def _parquet_column(rng: Rng, n: int) -> pa.Array:
    """Return a column of a random Arrow type."""
    numbers = rng.normal(size=n)
    mask = rng.random(n) < rng.choice([0, 0.2, 1.0], p=[0.7, 0.25, 0.05])
    day = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    offsets = pa.py_buffer(np.arange(0, 2 * n + 2, 2, dtype=np.int32))
    not_utf8 = pa.py_buffer(b"\xff\xfe" * n)
    columns: dict[str, Callable[[], pa.Array]] = {
        "float": lambda: pa.array(numbers, mask=mask),
        "allnan": lambda: pa.array(np.full(n, np.nan)),
        "half": lambda: pa.array(numbers.astype(np.float16)),
        "int": lambda: pa.array(rng.integers(-5, 5, n).astype(np.int16), mask=mask),
        "big": lambda: pa.array(rng.integers(0, 2**63, n).astype(np.uint64)),
        "bool": lambda: pa.array(numbers > 0, mask=mask),
        "decimal": lambda: pa.array([decimal.Decimal("1.25")] * n, pa.decimal128(9, 2)),
        "decimal256": lambda: pa.array([decimal.Decimal("2.5")] * n, pa.decimal256(50, 3)),
        "text": lambda: pa.array([f"{SECRET}{j % 3}" for j in range(n)], mask=mask),
        "numbers": lambda: pa.array([f"{x:.3f}" for x in numbers], mask=mask),
        "commas": lambda: pa.array([f"{x:.1f}".replace(".", ",") for x in numbers]),
        "coded": lambda: pa.array(rng.integers(0, 3, n)).dictionary_encode(),
        "category": lambda: pa.array([str(rng.choice(["u", "v", "?"])) for _ in range(n)])
        .dictionary_encode(),
        "when": lambda: pa.array([day] * n, pa.timestamp("us", "Europe/Paris")),
        "date": lambda: pa.array([day.date()] * n, pa.date32()),
        "time": lambda: pa.array([1] * n, pa.time64("us")),
        "span": lambda: pa.array([1] * n, pa.duration("s")),
        "list": lambda: pa.array([[1, 2]] * n),
        "struct": lambda: pa.array([{"p": 1, "q": SECRET}] * n),
        "map": lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        "bytes": lambda: pa.array([b"\xff" + SECRET.encode()] * n),
        "null": lambda: pa.nulls(n),
        "invalid": lambda: pa.Array.from_buffers(pa.string(), n, [None, offsets, not_utf8]),
    }  # fmt: skip
    weights = np.array([4.0 if kind in ("float", "int") else 1.0 for kind in columns])
    return columns[str(rng.choice(list(columns), p=weights / weights.sum()))]()


def _parquet_table(rng: Rng) -> bytes:
    n, width = int(rng.integers(0, 40)), int(rng.integers(1, 7))
    names = [str(name) for name in rng.choice([*_NAMES, "__index_level_0__"], width)]
    table = pa.Table.from_arrays([_parquet_column(rng, n) for _ in range(width)], names=names)
    sink = io.BytesIO()
    parquet.write_table(
        table,
        sink,
        compression=str(rng.choice(["snappy", "none", "zstd"])),
        use_dictionary=bool(rng.random() < 0.5),
        row_group_size=max(1, n // int(rng.integers(1, 4))) if n else None,
        write_statistics=bool(rng.random() < 0.7),
    )
    return sink.getvalue()


def _mutated(rng: Rng, data: bytes) -> bytes:
    """Return bytes flipped, cut, doubled, spliced or replaced at a few places."""
    content = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if not content:
            break
        at = int(rng.integers(len(content)))
        how = rng.integers(6)
        if how == 0:
            content[at] ^= 1 << int(rng.integers(8))
        elif how == 1:
            del content[at : at + int(rng.integers(1, 9))]
        elif how == 2:
            content[at:at] = content[at : at + int(rng.integers(1, 40))]
        elif how == 3:
            content[at:at] = str(
                rng.choice([",", '"', "\n", "\r", "\x00", ";", "\ufeff", "\u2028"])
            ).encode()
        elif how == 4:
            content[at : at + 4] = rng.bytes(4)
        else:
            del content[at:]
    return bytes(content)


def file(seed: int, number: int) -> Hostile:
    """Return one generated file."""
    rng = generator(seed, "hostile", "file", number)
    flat = rng.random() < 0.6
    data = _text_table(rng) if flat else _parquet_table(rng)
    kind = "text" if flat else "parquet"
    if flat and rng.random() < 0.15:
        data, kind = gzip.compress(data, 1, mtime=0), "gzip"
    if rng.random() < 0.5:
        data, kind = _mutated(rng, data), f"mutated {kind}"
    titles = ["t.csv", "t\nSecond line: .csv", "\u202egnp.csv", "x" * 200 + ".csv", "t.parquet"]
    name = str(rng.choice(titles, p=[0.8, 0.06, 0.05, 0.05, 0.04]))
    return Hostile(number, kind, name, data)


@dataclass(frozen=True)
class Clean:
    """One generated table of plain numbers, and its dialect.

    Parameters
    ----------
    data : bytes
    delimiter, mark : str
        Marks between cells, and within numbers.
    """

    data: bytes
    delimiter: str
    mark: str


def clean(seed: int, number: int) -> Clean:
    """Return one generated table of numbers only, in a dialect that common programs write.

    No number has three digits after a mark, because readers would have to guess its role.
    """
    rng = generator(seed, "hostile", "clean", number)
    delimiter, mark = ([",", "."], [";", "."], [";", ","], ["\t", "."], ["\t", ","], ["|", "."],
                       ["|", ","], [",", ","])[rng.integers(8)]  # fmt: skip
    width, rows = int(rng.integers(2, 7)), int(rng.integers(2, 60))
    columns = []
    for j in range(width):
        values = rng.standard_normal(rows) * 10.0 ** rng.integers(-8, 9)
        style = str(rng.choice([".1f", ".2f", ".6f", ".9f", ".4e", ".15E", ".16e", "d", "r"]))
        if style == "d":
            cells = [str(int(value)) for value in rng.integers(-(10**6), 10**6, rows)]
        elif style == "r":
            cells = [
                f"{float(value)!r}0" if "e" not in repr(value) else repr(value)
                for value in values.tolist()
            ]
        else:
            cells = [format(value, style) for value in values]
        columns.append([f"x{j}", *(cell.replace(".", mark) for cell in cells)])
    # If a comma is both the delimiter and the decimal mark, cells need quotes.
    has_quotes = delimiter == mark or rng.random() < 0.2
    sink = io.StringIO(newline="")
    end = str(rng.choice(["\n", "\r\n"]))
    quoting = csv.QUOTE_ALL if has_quotes else csv.QUOTE_MINIMAL
    csv.writer(sink, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(
        zip(*columns, strict=True)
    )
    text = sink.getvalue()
    if rng.random() < 0.3:
        text = text.removesuffix(end)
    return Clean(text.encode("utf-8-sig" if rng.random() < 0.2 else "utf-8"), delimiter, mark)


def readers_disagree(given: Clean, folder: Path) -> list[str]:
    """Return the programs whose numbers differ from our two readers' in any bit.

    pandas and polars receive the dialect; our readers detect it.
    """
    import pandas as pd
    import polars as pl

    names, rows, _ = _in_memory(Hostile(0, "clean", "t.csv", given.data))
    columns, batches = _in_batches(Hostile(0, "clean", "t.csv", given.data), folder)
    frame = pd.read_csv(
        io.BytesIO(given.data), sep=given.delimiter, decimal=given.mark, encoding="utf-8-sig"
    )
    polars = pl.read_csv(
        given.data, separator=given.delimiter, decimal_comma=given.mark == ",",
        schema_overrides=dict.fromkeys(frame.columns, pl.Float64),
    )  # fmt: skip
    problems = []
    for whose, other_names, numbers in (
        ("batches", columns, batches),
        ("pandas", tuple(frame.columns), frame.to_numpy(dtype=np.float64)),
        ("polars", tuple(polars.columns), polars.to_numpy()),
    ):
        if names != other_names:
            problems.append(f"{whose}: other columns: {names} {other_names}")
        elif not np.array_equal(rows, numbers):
            problems.append(f"{whose}: other numbers")
    return problems


def files(seed: int, count: int, first: int = 0) -> Iterator[Hostile]:
    """Yield generated files by their number."""
    for number in range(first, first + count):
        yield file(seed, number)


# Put these values into links: some are legal, some nearly legal, some far from legal.
_VALUES = (
    "", "0", "1", "2", "-1", "0.5", "1e-320", "1e308", "1e-4", "1e6", "inf", "nan", "\u00b2",
    "\u0661", "1_0", "99999999999999999999", "true", "auto", "=auto", "digits", "iris", "wine",
    "upload", "nonsense", "box", "ball", "zero-out", "standardize", "known", "midpoint", "none",
    "quantile:0.5", "quantile:2", "binary:1:0.8", "binary:1,2:0.999999", "binary:0:0.5",
    "custom:1,1", "max-pnr", "private:0.3", "private:0.999:ppca", "private:0.2:nonsense",
    "true,true", "../../etc/passwd", "/dev/zero", "http://host/x.csv", "![](http://host/p.png)",
    "[x](http://host)", "<img src=http://host/p.png>", "$\\href{http://host}{x}$",
    ":material/home:", "`x`", "a\nb", "\u202eabc", "\x00", "x" * 5000, "," * 4000, "[" * 3000,
    "mvg[theorem=3]", "mvg[theorem=9]", "mvg[theorem=3", "ppca[sweeps=100000]",
    "gaussian,gaussian", "mvg[tail=tight],nonsense", "{}", "%s%n", "'; drop table",
)  # fmt: skip


def link(seed: int, number: int, keys: list[str]) -> dict[str, str]:
    """Return the query of one generated link.

    Parameters
    ----------
    seed, number : int
    keys : list of str
        Every key that a link may have.
    """
    rng = generator(seed, "hostile", "link", number)
    names = [str(key) for key in rng.choice(keys, int(rng.integers(1, 6)))]
    if rng.random() < 0.1:
        names.append(str(rng.choice(["![](http://host/p.png)", "x" * 300, "\u202e", "v"])))
    query = {}
    for key in names:
        value = str(rng.choice(_VALUES))
        if rng.random() < 0.15:
            value += str(rng.choice(_VALUES))
        query[key] = value
    return query


def printable(text: str) -> bool:
    """Return whether a text is one printable line; a special space may precede a % sign."""
    return text.replace(PER_CENT, " %").isprintable()


def old_workbook(cells: dict[tuple[int, int], float], called: str = "Workbook") -> bytes:
    """Return an xls with one sheet of numbers, written directly from [MS-XLS] and [MS-CFB]."""

    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    def start(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 6))

    def entry(name: str, kind: int, child: int, first: int, size: int) -> bytes:
        head = struct.pack(
            "<64sHBBiii", name.encode("utf-16-le"), 2 * len(name) + 2, kind, 1, -1, -1, child
        )
        return head + bytes(36) + struct.pack("<iQ", first, size)

    end = record(0x0A, b"")
    name = struct.pack("<BB", 5, 0) + b"Labor"
    ahead = len(start(5) + end) + 4 + 6 + len(name)
    stream = start(5) + record(0x85, struct.pack("<IBB", ahead, 0, 0) + name) + end + start(16)
    for (row, column), value in cells.items():
        stream += record(0x203, struct.pack("<HHHd", row, column, 0, value))
    stream = (stream + end).ljust(4096, b"\0")  # XLS stores shorter streams elsewhere.
    # Number the sectors of an XLS file: this table, the directory, eight sectors of the stream.
    chain = (-3, -2, *range(3, 10), -2)
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<5H6x9i", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, -2, 0, -2, 0)
    table = struct.pack("<128i", *chain, *[-1] * 118)
    folder = entry("Root Entry", 5, 1, -2, 0) + entry(called, 2, -1, 2, 4096)
    folder += 2 * entry("", 0, -1, 0, 0)
    return head + struct.pack("<109i", 0, *[-1] * 108) + table + folder + stream


def killing_workbook() -> bytes:
    """Return an xls whose cells claim a rectangle of 137 GB, at which its reader aborts."""
    return old_workbook({(0, 0): 1.0, (1, 1): 2.0, (65_535, 65_535): 3.0})


def lying_parquet() -> bytes:
    """Return Parquet with two columns of 131,072 zeros that, by its footer, take no bytes."""
    zeros, sink = np.zeros(1 << 17), io.BytesIO()
    table = pa.table({"a": zeros, "b": zeros})
    parquet.write_table(table, sink, compression="zstd", use_dictionary=False)
    data = sink.getvalue()
    group = parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    for size in (group.total_byte_size, group.column(0).total_uncompressed_size):
        # The format stores sizes doubled, with seven bits per byte. Replace them by bytes of zeros.
        size_bytes = bytes((2 * size >> at & 127) | 128 for at in range(0, 21, 7))
        size_bytes += bytes([2 * size >> 21])
        assert size_bytes in data
        data = data.replace(size_bytes, b"\x80\x80\x80\0")
    assert parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0).total_byte_size == 0
    return data


def _packed(columns: dict[str, pa.Array], **options: object) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(
        pa.table(columns),
        sink,
        compression="zstd",
        store_schema=False,
        write_statistics=False,
        **options,
    )
    return sink.getvalue()


def growing_parquet() -> dict[str, bytes]:
    """Return small Parquet files that would take gigabytes if read as their headers declare."""
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(70_000, np.int32)), ["x" * 1_000_000])
    letters = np.full((400, 1_500_000), ord("x"), np.uint8)
    letters[:, 0], letters[:, 1] = divmod(np.arange(400), 20)
    offsets = np.arange(0, letters.size + 1, letters.shape[1], dtype=np.int32)
    many = pa.StringArray.from_buffers(400, pa.py_buffer(offsets), pa.py_buffer(letters))
    again = pa.repeat("x" * 1_000_000, 600)
    numbers = np.arange(70_000.0)
    tables = {len(each): {"a": numbers[: len(each)], "b": each, "c": numbers[: len(each)]}
             for each in (one, many, again)}  # fmt: skip
    contents = {
        "one text in every row": _packed(tables[len(one)]),
        "long texts": _packed(tables[len(many)], use_dictionary=False, write_batch_size=1),
        "texts that repeat the one before": _packed(
            tables[len(again)], use_dictionary=False, column_encoding={"b": "DELTA_BYTE_ARRAY"}
        ),
    }
    few = pa.Table.from_arrays(
        [numbers[:1_000], [f"{j:05}" for j in range(1_000)], numbers[:1_000]],
        schema=pa.schema(
            [("a", pa.float64()), pa.field("b", pa.string(), False), ("c", pa.float64())]
        ),
    )
    sink = io.BytesIO()
    parquet.write_table(
        few,
        sink,
        compression="none",
        use_dictionary=False,
        column_encoding={"b": "DELTA_LENGTH_BYTE_ARRAY"},
    )
    data = sink.getvalue()
    # Instead of blocks of 128 in 4 parts, 1,000 in all, claim a block of 2^31 - 128 zero lengths.
    old, new = b"\x80\x01\x04\xe8\x07", b"\x80\xff\xff\xff\x07\x01\x80\xff\xff\xff\x07\0\0\0"
    assert data.count(old) == 1
    at = data.index(old)
    contents["more lengths than rows"] = data[:at] + new + data[at + len(new) :]
    return contents


def problems_of_message(message: str, shows_names: bool) -> list[str]:
    """Return the faults of an error message or note."""
    problems = []
    if not printable(message) or len(message) > 600:
        problems.append(f"not one short printable line: {message!r}")
    if STORED in message:
        problems.append(f"calls the file what nobody called it: {message!r}")
    if not shows_names and (SECRET in message or NUMBER in message):
        problems.append(f"shows a cell: {message!r}")
    return problems


def _in_memory(given: Hostile) -> tuple[tuple[str, ...], NDArray[np.float64], list[str]] | str:
    raw = read_raw(given.data, name=given.name)
    notes = list(raw.notes)
    for options in ({"categorical": "onehot"}, {"missing": "median"}):
        try:
            notes += raw.to_table(ReadOptions(**options)).notes  # type: ignore[arg-type]
        except DpvizError as error:
            notes.append(str(error))
    notes += [warning for row in check_columns(raw) for warning in row.warnings]
    reading, advice = advised(raw, ReadOptions())
    notes += advice
    table = raw.to_table(reading)
    return table.columns, table.rows, notes


STORED = "stored-under-another-name"


def _in_batches(given: Hostile, folder: Path) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    path = folder / STORED
    path.write_bytes(given.data)
    batches = FileBatches(path, name=given.name)
    blocks = [block.copy() for block, _ in batches.blocks()]
    rows = np.concatenate([np.zeros((0, len(batches.columns))), *blocks])
    if len(rows) < 2 or len(batches.columns) < 2:
        raise InvalidTable("too few rows or columns")
    return batches.columns, rows


def both_readers(given: Hostile, folder: Path) -> list[str]:
    """Return the faults seen when both readers read a file; empty if there are none.

    Warnings count as errors. This function catches any exception other than `DpvizError` only to
    report which file caused it.
    """
    problems: list[str] = []
    messages: list[str] = []
    ends: list[tuple[tuple[str, ...], NDArray[np.float64]] | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for way in ("memory", "batches"):
            try:
                if way == "memory":
                    columns, rows, notes = _in_memory(given)
                    messages += notes
                else:
                    columns, rows = _in_batches(given, folder)
                ends.append((columns, rows))
            except DpvizError as error:
                messages.append(str(error))
                ends.append(None)
            except Exception as error:
                problems.append(f"{way}: {type(error).__name__}: {error}")
                ends.append(None)
        gc.collect(0)  # Python warns of an unclosed file when it is freed.
    # A mutation may join a data row to the header row; then the row's cells count as names.
    start = gzip.decompress(given.data) if given.kind == "gzip" else given.data
    names_hold_cells = SECRET.encode() in start[:3000].split(b"\n")[0] or "mutated" in given.kind
    for message in messages:
        problems += problems_of_message(message, names_hold_cells)
    if not problems:
        first, second = ends
        if (first is None) != (second is None):
            problems.append(f"one reader refuses: {messages[-2:]}")
        elif first is not None and second is not None:
            if first[0] != second[0]:
                problems.append(f"other columns: {first[0]} {second[0]}")
            elif not np.array_equal(first[1], second[1]):
                problems.append("other numbers")
    return [f"{given.kind} {given.number}: {problem}" for problem in problems]
