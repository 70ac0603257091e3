"""Makes tables that people and attackers upload: seeded, so that every find can be made again.

`files` yields bytes by their number: sound tables in odd dress (delimiters, marks, titles, units,
totals, gaps, encodings), Parquet of every type, and mutations of all of these: bytes flipped, cut,
doubled, spliced. Every cell that a message must never show carries `SECRET` or `NUMBER`.
`links` yields queries for the pages in the same spirit.
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

# cells that are no plain number, each with something that broke a reader somewhere
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
        Which one: with the seed, enough to make it again.
    kind : str
        How it was made.
    name : str
        What it is called.
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
    """Return a delimited text in some dress."""
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
    """Return a column of some Arrow type."""
    numbers = rng.normal(size=n)
    mask = rng.random(n) < rng.choice([0, 0.2, 1.0], p=[0.7, 0.25, 0.05])
    day = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    offsets = pa.py_buffer(np.arange(0, 2 * n + 2, 2, dtype=np.int32))
    not_utf8 = pa.py_buffer(b"\xff\xfe" * n)
    made: dict[str, Callable[[], pa.Array]] = {
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
    weights = np.array([4.0 if kind in ("float", "int") else 1.0 for kind in made])
    return made[str(rng.choice(list(made), p=weights / weights.sum()))]()


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
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if not changed:
            break
        at = int(rng.integers(len(changed)))
        how = rng.integers(6)
        if how == 0:
            changed[at] ^= 1 << int(rng.integers(8))
        elif how == 1:
            del changed[at : at + int(rng.integers(1, 9))]
        elif how == 2:
            changed[at:at] = changed[at : at + int(rng.integers(1, 40))]
        elif how == 3:
            changed[at:at] = str(
                rng.choice([",", '"', "\n", "\r", "\x00", ";", "\ufeff", "\u2028"])
            ).encode()
        elif how == 4:
            changed[at : at + 4] = rng.bytes(4)
        else:
            del changed[at:]
    return bytes(changed)


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
    """One generated table of plain numbers, and how it is written.

    Parameters
    ----------
    data : bytes
    delimiter, mark : str
        Between cells, and in numbers.
    """

    data: bytes
    delimiter: str
    mark: str


def clean(seed: int, number: int) -> Clean:
    """Return one generated table of numbers alone, in a dialect that people's programs write.

    Three digits after a mark are left out: they may be thousands, which a reader has to guess.
    """
    rng = generator(seed, "hostile", "clean", number)
    delimiter, mark = ([",", "."], [";", "."], [";", ","], ["\t", "."], ["\t", ","], ["|", "."],
                       ["|", ","], [",", ","])[rng.integers(8)]  # fmt: skip
    width, rows = int(rng.integers(2, 7)), int(rng.integers(2, 60))
    columns = []
    for j in range(width):
        values = rng.standard_normal(rows) * 10.0 ** rng.integers(-8, 9)
        written = str(rng.choice([".1f", ".2f", ".6f", ".9f", ".4e", ".15E", ".16e", "d", "r"]))
        if written == "d":
            cells = [str(int(value)) for value in rng.integers(-(10**6), 10**6, rows)]
        elif written == "r":
            cells = [
                f"{float(value)!r}0" if "e" not in repr(value) else repr(value)
                for value in values.tolist()
            ]
        else:
            cells = [format(value, written) for value in values]
        columns.append([f"x{j}", *(cell.replace(".", mark) for cell in cells)])
    # a comma that is both needs quotes
    quoted = delimiter == mark or rng.random() < 0.2
    sink = io.StringIO(newline="")
    end = str(rng.choice(["\n", "\r\n"]))
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(sink, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(
        zip(*columns, strict=True)
    )
    text = sink.getvalue()
    if rng.random() < 0.3:
        text = text.removesuffix(end)
    return Clean(text.encode("utf-8-sig" if rng.random() < 0.2 else "utf-8"), delimiter, mark)


def readers_disagree(given: Clean, folder: Path) -> list[str]:
    """Return whose numbers are others than both our readers', to the last bit.

    pandas and polars are told the dialect; ours find it by themselves.
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
    found = []
    for whose, other_names, numbers in (
        ("batches", columns, batches),
        ("pandas", tuple(frame.columns), frame.to_numpy(dtype=np.float64)),
        ("polars", tuple(polars.columns), polars.to_numpy()),
    ):
        if names != other_names:
            found.append(f"{whose}: other columns: {names} {other_names}")
        elif not np.array_equal(rows, numbers):
            found.append(f"{whose}: other numbers")
    return found


def files(seed: int, count: int, first: int = 0) -> Iterator[Hostile]:
    """Yield generated files by their number."""
    for number in range(first, first + count):
        yield file(seed, number)


# what links carry: legal values, near misses and worse
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
    chosen = [str(key) for key in rng.choice(keys, int(rng.integers(1, 6)))]
    if rng.random() < 0.1:
        chosen.append(str(rng.choice(["![](http://host/p.png)", "x" * 300, "\u202e", "v"])))
    query = {}
    for key in chosen:
        value = str(rng.choice(_VALUES))
        if rng.random() < 0.15:
            value += str(rng.choice(_VALUES))
        query[key] = value
    return query


def printable(text: str) -> bool:
    """Return whether a text is one line with nothing hidden but what holds a share together."""
    return text.replace(PER_CENT, " %").isprintable()


def old_workbook(cells: dict[tuple[int, int], float], called: str = "Workbook") -> bytes:
    """Return an xls of one sheet of numbers by row and column, by hand after [MS-XLS], [MS-CFB]."""

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
    stream = (stream + end).ljust(4096, b"\0")  # shorter ones lie elsewhere in the container
    # the sectors: this table, the directory, eight of the stream
    chain = (-3, -2, *range(3, 10), -2)
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<5H6x9i", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, -2, 0, -2, 0)
    table = struct.pack("<128i", *chain, *[-1] * 118)
    folder = entry("Root Entry", 5, 1, -2, 0) + entry(called, 2, -1, 2, 4096)
    folder += 2 * entry("", 0, -1, 0, 0)
    return head + struct.pack("<109i", 0, *[-1] * 108) + table + folder + stream


def killing_workbook() -> bytes:
    """Return an xls whose cells claim a rectangle of 137 GB: its reader aborts."""
    return old_workbook({(0, 0): 1.0, (1, 1): 2.0, (65_535, 65_535): 3.0})


def lying_parquet() -> bytes:
    """Return two columns of 131,072 zeros, of which the footer says that they take nothing."""
    zeros, sink = np.zeros(1 << 17), io.BytesIO()
    table = pa.table({"a": zeros, "b": zeros})
    parquet.write_table(table, sink, compression="zstd", use_dictionary=False)
    data = sink.getvalue()
    group = parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    for held in (group.total_byte_size, group.column(0).total_uncompressed_size):
        # whole numbers are written seven bits at a time, and doubled: here as many bytes of zeros
        written = bytes((2 * held >> at & 127) | 128 for at in range(0, 21, 7))
        written += bytes([2 * held >> 21])
        assert written in data
        data = data.replace(written, b"\x80\x80\x80\0")
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
    """Return small Parquet files that take gigabytes where they are read as they say."""
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(70_000, np.int32)), ["x" * 1_000_000])
    letters = np.full((400, 1_500_000), ord("x"), np.uint8)
    letters[:, 0], letters[:, 1] = divmod(np.arange(400), 20)
    offsets = np.arange(0, letters.size + 1, letters.shape[1], dtype=np.int32)
    many = pa.StringArray.from_buffers(400, pa.py_buffer(offsets), pa.py_buffer(letters))
    again = pa.repeat("x" * 1_000_000, 600)
    numbers = np.arange(70_000.0)
    named = {len(each): {"a": numbers[: len(each)], "b": each, "c": numbers[: len(each)]}
             for each in (one, many, again)}  # fmt: skip
    found = {
        "one text in every row": _packed(named[len(one)]),
        "long texts": _packed(named[len(many)], use_dictionary=False, write_batch_size=1),
        "texts that repeat the one before": _packed(
            named[len(again)], use_dictionary=False, column_encoding={"b": "DELTA_BYTE_ARRAY"}
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
    # blocks of 128 in 4 parts, 1,000 in all; then one of 2^31 - 128 lengths, all of them 0
    said, claimed = b"\x80\x01\x04\xe8\x07", b"\x80\xff\xff\xff\x07\x01\x80\xff\xff\xff\x07\0\0\0"
    assert data.count(said) == 1
    at = data.index(said)
    found["more lengths than rows"] = data[:at] + claimed + data[at + len(claimed) :]
    return found


def problems_of_message(message: str, shows_names: bool) -> list[str]:
    """Return what is wrong with an error or a note."""
    found = []
    if not printable(message) or len(message) > 600:
        found.append(f"not one short printable line: {message!r}")
    if STORED in message:
        found.append(f"calls the file what nobody called it: {message!r}")
    if not shows_names and (SECRET in message or NUMBER in message):
        found.append(f"shows a cell: {message!r}")
    return found


def _in_memory(given: Hostile) -> tuple[tuple[str, ...], NDArray[np.float64], list[str]] | str:
    raw = read_raw(given.data, name=given.name)
    said = list(raw.notes)
    for options in ({"categorical": "onehot"}, {"missing": "median"}):
        try:
            said += raw.to_table(ReadOptions(**options)).notes  # type: ignore[arg-type]
        except DpvizError as error:
            said.append(str(error))
    said += [warning for row in check_columns(raw) for warning in row.warnings]
    reading, advice = advised(raw, ReadOptions())
    said += advice
    table = raw.to_table(reading)
    return table.columns, table.rows, said


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
    """Return what is wrong when a file goes through both readers; empty when nothing is.

    Warnings count as errors. An exception that is no `DpvizError` is caught here only to say
    which file caused it.
    """
    found: list[str] = []
    said: list[str] = []
    ends: list[tuple[tuple[str, ...], NDArray[np.float64]] | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for read in ("memory", "batches"):
            try:
                if read == "memory":
                    columns, rows, notes = _in_memory(given)
                    said += notes
                else:
                    columns, rows = _in_batches(given, folder)
                ends.append((columns, rows))
            except DpvizError as error:
                said.append(str(error))
                ends.append(None)
            except Exception as error:
                found.append(f"{read}: {type(error).__name__}: {error}")
                ends.append(None)
        gc.collect(0)  # an unclosed file warns when it goes
    # a mutation may join a row to the line of names, whose cells are names then
    start = gzip.decompress(given.data) if given.kind == "gzip" else given.data
    names_hold_cells = SECRET.encode() in start[:3000].split(b"\n")[0] or "mutated" in given.kind
    for message in said:
        found += problems_of_message(message, names_hold_cells)
    if not found:
        first, second = ends
        if (first is None) != (second is None):
            found.append(f"one reader refuses: {said[-2:]}")
        elif first is not None and second is not None:
            if first[0] != second[0]:
                found.append(f"other columns: {first[0]} {second[0]}")
            elif not np.array_equal(first[1], second[1]):
                found.append("other numbers")
    return [f"{given.kind} {given.number}: {problem}" for problem in found]
