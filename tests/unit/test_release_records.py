"""A release reads each line by itself: no line changes how other lines are read."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import release_neighbours
from benchmarks.release_neighbours import HOSTILE, Pair, outcome, shares
from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.problem import Relation
from dpviz.datasets import files, read_raw, source
from dpviz.releasing import making, records
from dpviz.releasing.drafting import draft
from dpviz.releasing.grid import quantised
from dpviz.releasing.records import (
    LONGEST_LINE,
    cell_parser,
    line_parser,
    number_parser,
    open_records,
    split,
)
from dpviz.releasing.schema import Column, Schema

ABC = Schema((Column("a", 0, 1), Column("b", -10, 10, 2), Column("c", 0, 5)))
WORDS = Column("b", levels=("nie", "selten", "häufig"))
LIKERT = replace(ABC, columns=(ABC.columns[0], WORDS, ABC.columns[2]))
DIALECTS = [
    ABC,
    LIKERT,
    replace(ABC, header=False),
    replace(ABC, header=False, delimiter=";", decimal=","),
    replace(ABC, delimiter="\t", decimal=",", thousands="."),
    replace(ABC, delimiter=" ", skip=2),
    replace(ABC, decimal=",", thousands=" ", encoding="latin-1"),
    replace(
        ABC, columns=(*ABC.columns[:1], Column("d", use=False), *ABC.columns[1:]), delimiter="|"
    ),
]

# A line of a file may contain any bytes except a line end.
lines = st.one_of(
    st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"")),
    st.lists(
        st.one_of(
            st.sampled_from([*HOSTILE[:-1], b"nie", b" H\xc3\x84UFIG", b"selten  "]),
            st.from_regex(rb"[+-]?[0-9]{0,3}[.,]?[0-9]{0,3}(e-?[0-9])?", fullmatch=True),
        ),
        max_size=5,
    ).flatmap(lambda cells: st.sampled_from(b",;\t| ").map(lambda d: bytes([d]).join(cells))),
).map(lambda line: line.replace(b"\n", b""))


def _text(schema: Schema, found: Sequence[bytes]) -> bytes:
    above = [b"x"] * schema.skip
    if schema.header:
        above.append(schema.delimiter.join(c.name for c in schema.columns).encode())
    return b"".join(line + b"\n" for line in [*above, *found])


def _rows(data: bytes, schema: Schema) -> np.ndarray:
    stream = open_records(data, schema)
    blocks = list(stream.blocks())
    whole = np.concatenate(blocks) if blocks else np.empty((0, len(schema.used)))
    assert whole.shape == (stream.n, len(schema.used))
    return schema.filled(whole)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(DIALECTS), st.lists(lines, min_size=1, max_size=8), lines, st.integers(0, 7))
def test_a_changed_line_changes_its_own_row_alone(
    schema: Schema, found: list[bytes], other: bytes, at: int
) -> None:
    at %= len(found)
    lines_after = [*found]
    lines_after[at] = other
    first, second = (_rows(_text(schema, each), schema) for each in (found, lines_after))
    assert first.shape == second.shape == (len(found), 3)
    assert np.isfinite(first).all()
    low, high, _ = schema.limits.T
    assert ((first >= low) & (first <= high)).all()
    rest = np.arange(len(found)) != at
    assert (first[rest] == second[rest]).all()
    # Each row equals the row that results from reading its line alone.
    assert (_rows(_text(schema, [other]), schema)[0] == second[at]).all()


@pytest.mark.parametrize("kind", ["text", "cp1252"])
def test_words_of_a_scale_count_from_1_each_cell_by_itself(kind: str) -> None:
    """Words of a scale count from 1; other words are missing, and numbers keep their value."""
    words = ["nie", " SELTEN ", "häufig", "oft", "", "2", "nie nie", "9"]
    want = [1, 2, 3, 2, 2, 2, 2, 3]  # A missing value becomes the typical one; 9 is clipped.
    schema = replace(LIKERT, encoding="cp1252") if kind == "cp1252" else LIKERT
    encoding = "utf-8" if kind == "text" else kind
    table = "".join(["a,b,c\n", *(f"1,{word},5\n" for word in words)]).encode(encoding)
    (rows,) = open_records(table, schema).blocks()
    assert schema.filled(rows)[:, 1].tolist() == want
    (rows,) = open_records(table, replace(ABC, encoding=schema.encoding)).blocks()
    assert np.isnan(rows[:5, 1]).all()


NUMBER_LIKE = st.text("0123456789+-.eE,_ \t\"infaxNA'\x00", max_size=12).map(str.encode)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(DIALECTS), st.lists(NUMBER_LIKE, max_size=5))
def test_the_quick_way_reads_what_the_slow_one_reads(schema: Schema, cells: list[bytes]) -> None:
    line = schema.delimiter.encode().join(cells)
    places = [j for j, column in enumerate(schema.columns) if column.use]
    fields = split(line, schema.delimiter.encode(), 9)
    parsers = [cell_parser(schema, column, schema.encoding) for column in schema.used]
    slow = [
        one(fields[j]) if j < len(fields) else np.nan
        for j, one in zip(places, parsers, strict=True)
    ]
    quick = line_parser(schema, places)(line)
    assert np.array_equal(quick, slow, equal_nan=True)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(DIALECTS))
def test_a_written_number_comes_back(value: float, schema: Schema) -> None:
    """A number written by repr reads back, as `float` promises."""
    text = repr(value).replace(".", schema.decimal).encode()
    assert number_parser(schema)(b"  " + text + b" ") == value


POINT, COMMA = ABC, replace(ABC, decimal=",", delimiter=";")
GROUPED = replace(ABC, decimal=",", thousands=".", delimiter=";")


@pytest.mark.parametrize(
    ("schema", "cell", "value"),
    [
        (POINT, b"1.5", 1.5), (POINT, b"+.5", 0.5), (POINT, b"-5.", -5), (POINT, b"1E+2", 100),
        (POINT, b"007", 7), (POINT, b"\t 1 \x0b", 1), (POINT, b"1e400", np.inf),
        (POINT, b"1" * 1_000, np.inf), (COMMA, b"1,5", 1.5), (COMMA, b",5", 0.5),
        (GROUPED, b"1.234.567,5", 1234567.5), (GROUPED, b"1234,5", 1234.5),
    ],
)  # fmt: skip
def test_what_is_a_number(schema: Schema, cell: bytes, value: float) -> None:
    assert number_parser(schema)(cell) == value


@pytest.mark.parametrize(
    ("schema", "cell"),
    [
        *((POINT, cell) for cell in (
            b"", b" ", b".", b"-", b"+-1", b"1,5", b"1_0", b"0x1F", b"nan", b"inf", b"Infinity",
            b"1e", b"e5", b"1e1.5", b"1 2", b"12%", b"(5)", b"$5", b"yes", b"true", b"1\x00",
            b"1\xa0", "\u0661".encode(), "\u00b2".encode(), "\u22121".encode(), b"2024-01-31",
            b"1" * 1_001, b"0." + b"0" * 1_000 + b"1", b"1j", b"1L", b"1f",
        )),
        (COMMA, b"1.5"), (COMMA, b"1.234,5"), (GROUPED, b"1.23,5"), (GROUPED, b"1.2345"),
        (GROUPED, b".234"), (GROUPED, b"1..234"), (GROUPED, b"1,234.5"),
    ],
)  # fmt: skip
def test_what_is_none(schema: Schema, cell: bytes) -> None:
    assert np.isnan(number_parser(schema)(cell))


@pytest.mark.parametrize(
    ("line", "delimiter", "cells"),
    [
        (b"a,b,", b",", [b"a", b"b", b""]),
        (b"", b",", [b""]),
        (b'"a,b",c', b",", [b"a,b", b"c"]),
        (b'"a""b",c', b",", [b'a"b', b"c"]),
        (b'"a,b', b",", [b"a,b"]),
        (b'"a"x,b', b",", [b"ax", b"b"]),
        (b'a"b,c', b",", [b'a"b', b"c"]),
        (b'"",', b",", [b"", b""]),
        (b'"', b",", [b""]),
        (b"  1 \t 2  ", b" ", [b"1", b"2"]),
        (b' "1 2"  3 ', b" ", [b"1 2", b"3"]),
        (b"1,2,3,4,5,6,7,8,9,10,11", b",", [str(j).encode() for j in range(1, 10)]),
        (b'1,2,3,4,5,6,7,8,"9",10', b",", [str(j).encode() for j in range(1, 10)]),
    ],
)
def test_how_a_line_is_cut(line: bytes, delimiter: bytes, cells: list[bytes]) -> None:
    assert split(line, delimiter, 9) == cells


def test_every_line_is_a_record_and_the_last_end_is_none() -> None:
    plain = replace(ABC, header=False)
    for text, n in ((b"1,2,3\n\n\n", 3), (b"1,2,3", 1), (b"\n", 1), (b"", 0), (b"\r\n\r\n", 2),
                    (b'"1\n2,3\n', 2), (b"1,2,3\r4,5,6\n", 1)):  # fmt: skip
        assert len(_rows(text, plain)) == n
    assert _rows(b"", plain).shape == (0, 3)
    assert _rows(b"1,9,3\r\n", plain).tolist() == [[1, 9, 3]]
    assert _rows(b"\xef\xbb\xbf1,9,3\n", plain).tolist() == [[1, 9, 3]]
    assert _rows(b"1\n1,9,3,4,5\n", plain).tolist() == [[1, 2, 2.5], [1, 9, 3]]
    for text in (b"", b"x\nx"):
        with pytest.raises(InvalidTable, match="has no header row"):
            _rows(text, replace(ABC, skip=2))


def test_names_are_matched_and_what_is_not_declared_is_ignored() -> None:
    text = b'id, c ,"b",a,b\n7,1,2,3,4\n'
    assert _rows(text, ABC).tolist() == [[1, 2, 1]]
    twice = Schema((Column("b (2)", 0, 9), Column("a", 0, 9)))
    assert _rows(text, twice).tolist() == [[4, 3]]
    with pytest.raises(InvalidTable, match="none of its 2 columns has the name 'c'"):
        _rows(b"a,b\n1,2\n", ABC)
    umlaut = Schema((Column("gr\u00f6\u00dfe", 0, 9), Column("b", 0, 9)), encoding="cp1252")
    assert _rows("gr\u00f6\u00dfe,b\n1,2\n".encode("cp1252"), umlaut).tolist() == [[1, 2]]


def test_the_first_bytes_decide_where_they_are_nobodys(tmp_path: Path) -> None:
    text = _text(ABC, [b"1,2,3", b"0,1,2"])
    rows = _rows(text, ABC)
    assert (_rows(gzip.compress(text), ABC) == rows).all()
    path = tmp_path / "t.parquet"
    path.write_bytes(text)
    assert (np.concatenate(list(open_records(path, ABC).blocks())) == rows).all()
    for magic, what in (
        (b"\x89PNG", "a PNG image"),
        (b"PK\x03\x04", "a zip"),
        (b"a\x00", "binary"),
    ):
        with pytest.raises(InvalidTable, match=what):
            open_records(magic + text, ABC)
    # The first line may be a person's data, so only the schema decides, and no line is an error.
    plain = replace(ABC, header=False)
    for line in (b"PAR1", b"\x1f\x8b\x08", b"\x89PNG", b"a\x00", b"\xff\xfe"):
        assert _rows(line + b"\n1,2,3\n", plain)[1].tolist() == [1, 2, 3]
    gzip_bytes = gzip.compress(b"1,2,3\n0,1,2\n")
    assert (_rows(gzip_bytes, replace(plain, packing="gzip")) == rows).all()
    with pytest.raises(InvalidTable, match="damaged or incomplete gzip"):
        open_records(gzip_bytes[:-9], replace(plain, packing="gzip"))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_lines_do_not_depend_on_how_the_bytes_arrive(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [b"1,2,3", b"", b"0.5,1,2\r", b'"1",2', b"\xef\xbb\xbf1,1,1"]
    whole = _rows(_text(ABC, pieces), ABC)
    monkeypatch.setattr(source, "_CHUNK", size)
    monkeypatch.setattr(records, "_CELLS", size)
    assert (_rows(_text(ABC, pieces), ABC) == whole).all()
    assert (_rows(_text(ABC, pieces)[:-1], ABC) == whole).all()


def test_a_file_that_changes_while_it_is_read_keeps_its_shape(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for content, rows in ((b"a,b,c\n1,2,3\n", [[1, 2, 3], [0.5, 2, 2.5]]),
                       (b"a,b,c\n1,2,3\n0,1,2\n9,9,9\n", [[1, 2, 3], [0, 1, 2]])):  # fmt: skip
        path.write_bytes(b"a,b,c\n1,2,3\n0,1,2\n")
        stream = open_records(path, ABC)
        path.write_bytes(content)
        assert ABC.filled(np.concatenate(list(stream.blocks()))).tolist() == rows


class _Endless(io.RawIOBase):
    """A file of two short lines around a long line, which is never in memory as a whole."""

    LONG = 400 << 20

    def __init__(self) -> None:
        self.at, self.head = 0, b"1,2,3\n"

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset if whence == 0 else self.LONG
        return self.at

    def tell(self) -> int:
        return self.at

    def read(self, size: int = -1) -> bytes:
        start, self.at = self.at, self.at + size
        if start == 0:
            return self.head + b"9" * (size - len(self.head))
        if start < self.LONG:
            return b"9," * (size // 2)
        return b"\n0,1,2\n" if start < self.LONG + size else b""


def test_a_line_of_400_megabytes_is_one_record_in_little_memory() -> None:
    tracemalloc.start()
    try:
        stream = open_records(_Endless(), replace(ABC, header=False))  # type: ignore[arg-type]
        rows = ABC.filled(np.concatenate(list(stream.blocks())))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows.tolist() == [[1, 2, 3], [0.5, 9, 5], [0, 1, 2]]
    assert peak < 12 * LONGEST_LINE  # Memory holds the line, a chunk, and copies of both.


def _parquet(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, row_group_size=2)
    return sink.getvalue()


def test_typed_columns_of_every_kind_are_numbers_or_missing() -> None:
    gone = [None, 3.0, -999.0]
    day = datetime.date(2024, 1, 1)
    kinds: dict[str, tuple[pa.Array, list[float]]] = {
        "double": (pa.array([np.nan, np.inf, 2.5]), [np.nan, np.inf, 2.5]),
        "float": (pa.array([None, 1.5, 2], pa.float32()), [np.nan, 1.5, 2]),
        "half": (pa.array(np.array([1, 2.5, np.nan], np.float16)), [1, 2.5, np.nan]),
        "int": (pa.array([1, None, -3], pa.int8()), [1, np.nan, -3]),
        "big": (pa.array([2**64 - 1, 0, None], pa.uint64()), [2.0**64, 0, np.nan]),
        "bool": (pa.array([True, None, False]), [1, np.nan, 0]),
        "decimal": (pa.array([decimal.Decimal("1.25"), None, 3], pa.decimal128(9, 2)),
                    [1.25, np.nan, 3]),
        "codes": (pa.array([4, None, 4]).dictionary_encode(), [4, np.nan, 4]),
        "null": (pa.nulls(3), [np.nan] * 3),
        "gone": (pa.array(gone), [np.nan, 3, -999]),
    }  # fmt: skip
    data = _parquet(**{name: array for name, (array, _) in kinds.items()}, day=pa.array([day] * 3))
    schema = Schema(tuple(Column(name, -1, 3, missing=(-999.0,)) for name in kinds))
    numbers = np.concatenate(list(open_records(data, schema).blocks()))
    for j, (name, (_, values)) in enumerate(kinds.items()):
        assert np.array_equal(numbers[:, j], values, equal_nan=True), name
    assert schema.filled(numbers)[:, -1].tolist() == [1, 3, 1]
    arrays = [pa.array([[0], [0]]), pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])]
    twice = pa.Table.from_arrays(arrays, ["nested", "a", "b", "a"])
    sink = io.BytesIO()
    parquet.write_table(twice, sink)
    again = Schema((Column("a (2)", 0, 9), Column("b", 0, 9)))
    assert _rows(sink.getvalue(), again).tolist() == [[5, 3], [6, 4]]
    one = replace(schema, columns=schema.columns[5:6])
    assert np.concatenate(list(open_records(data, one).blocks())).shape == (3, 1)
    with pytest.raises(InvalidTable, match="column 'day' of the table must hold numbers or truth"):
        open_records(data, Schema((Column("day", 0, 1), Column("int", 0, 1))))
    with pytest.raises(InvalidTable, match="cannot be read as one"):
        open_records(b"PAR1" + bytes(60) + b"PAR1", ABC)


def _said(table: bytes, schema: Schema) -> str:
    try:
        return f"{sum(len(block) for block in open_records(table, schema).blocks())} rows"
    except InvalidTable as error:
        return str(error)


@pytest.mark.parametrize("kind", ["beside", "text", "coded", "label", "person", "twin", "within"])
def test_no_cell_of_parquet_decides_whether_it_is_read(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet cell that needs more memory than the reader may use changes no answer."""
    monkeypatch.setattr("dpviz.datasets.process.MEMORY_BYTES", 1 << 27)
    used_columns = (Column("a", 0, 9), Column("b", 0, 9))
    schema = {
        "text": Schema((*used_columns, Column("c", 0, 9))),
        "coded": Schema((*used_columns, Column("c", 0, 9))),
        "label": Schema(used_columns, label="c", categories=("x", "y")),
        "person": Schema((*used_columns, Column("c", use=False)), person="c", rows_a_person=1),
    }.get(kind, Schema(used_columns))
    sentences = []
    for cell in ("x", "x" * (1 << 28)):
        texts = pa.array(["y", cell, "z"], pa.large_string())
        c = texts.dictionary_encode() if kind == "coded" else texts
        c = pa.StructArray.from_arrays([texts], ["b"]) if kind == "within" else c
        names = ["a", "b", {"twin": "b", "within": "b"}.get(kind, "c")]
        table = pa.Table.from_arrays([pa.array([1, 2, 3]), pa.array([0.5, 1, 2]), c], names)
        sink = io.BytesIO()
        parquet.write_table(table, sink, compression="zstd", write_statistics=False)
        sentences.append(_said(sink.getvalue(), schema))
    assert sentences[0] == sentences[1]
    assert (sentences[0] == "3 rows") == (kind == "beside")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, so that a ledger does not wait for a disk."""
    mount = Path("/dev/shm")
    if not mount.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=mount) as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize(  # Two pairs suffice: reading and noise are independent.
    ("dialect", "relation"), [(0, Relation.REPLACE), (2, Relation.ZERO_OUT)]
)
def test_no_hostile_cell_is_seen_in_a_release(
    dialect: int, relation: Relation, memory: Path
) -> None:
    """Each value is in one line of one of two files; the other file has an empty line there."""
    schema = DIALECTS[dialect]
    delimiter, other = schema.delimiter.encode(), [b"0", b"1", b"2"]
    rows = [delimiter.join([str(j % 2).encode(), *other[1:]]) for j in range(6)]
    blank = outcome(
        _text(schema, [b"", *rows]), Pair(b"", b"", schema, relation, "1e-6", ".csv"), memory
    )
    assert blank.code == 0
    assert len(HOSTILE) >= 40
    for cell in HOSTILE:
        line = delimiter.join([cell, *other[1:]])
        pair = Pair(b"", b"", schema, relation, "1e-6", ".csv")
        result = outcome(_text(schema, [line, *rows]), pair, memory)
        assert (result.code, result.said, result.shape) == (0, blank.said, blank.shape), cell
        assert max(shares(blank, result, relation)) <= 1, cell


def test_a_reader_that_guesses_is_caught(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Explore's reader, in which one person's cell changes all rows, is detected.

    Releases of the same pairs are right in tests/process/test_release_neighbours.py.
    """

    def guessing(given: Path, schema: Schema) -> records.Records:
        return open_records(read_raw(given, name="t").to_table(), schema)

    monkeypatch.setattr(making, "open_records", guessing)
    assert release_neighbours.main(["--pairs", "30", "--seed", "1"]) == 1
    text, _, _ = capsys.readouterr().out.partition("one person")
    assert "differences of exit codes: 0 " not in text
    assert "differences of messages: 0 " not in text


def test_a_sheet_that_is_read_as_explore_reads_it_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reader that omits empty rows is detected: one more empty row changes the number of rows."""
    sheets = [number for number in range(9, 200, 10)]

    def differences() -> int:
        searches = [release_neighbours.compare(1, 1, first=number) for number in sheets]
        assert sum(one.released for one in searches) == len(sheets)
        return sum(not one.sound for one in searches)

    assert differences() == 0
    monkeypatch.setattr(
        making, "sheet_text", lambda path, name, _: BytesIO(as_explored(path, name))
    )
    assert differences() > 3


def as_explored(path: Path, name: str) -> bytes:
    with files.open_file(path, name) as file:
        return str(file.about["head"]).encode("latin-1")


def test_a_row_that_is_not_cut_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows twice as long as certified are detected: four times the sensitivity."""
    monkeypatch.setattr(making, "quantised", lambda *given: 2 * quantised(*given))
    search = release_neighbours.compare(1, 20)
    assert 1 < max(search.l2, search.l1) <= 4
    assert not search.sound


def test_a_column_may_have_a_decimal_mark_of_its_own() -> None:
    """Each column may have a decimal mark of its own; otherwise its numbers would be missing."""
    text = b"a;b;c\n" + b"".join(b"%d.25;%d,5;1,234\n" % (j, j) for j in range(1, 30))
    schema = draft(text, "t.csv")
    assert (schema.columns[0].decimal or schema.decimal) == "."
    assert (schema.columns[1].decimal or schema.decimal) == ","
    assert Schema.from_text(schema.to_text()) == schema
    (block,) = open_records(text, schema).blocks()
    assert np.array_equal(block[:, 0], np.arange(1, 30) + 0.25)
    assert np.array_equal(block[:, 1], np.arange(1, 30) + 0.5)
    alone = Schema((Column("a", 0, 9, decimal="."), Column("b", 0, 9)), delimiter=";", decimal=",")
    (again,) = open_records(text, alone).blocks()
    assert np.array_equal(again, block[:, :2])
    assert alone.digest != replace(alone, columns=(Column("a", 0, 9), Column("b", 0, 9))).digest
    with pytest.raises(InvalidSetting, match="decimal of column 'a'"):
        Column("a", decimal=";")
