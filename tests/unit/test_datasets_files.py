"""Files: each format is read, each bad input gives one sentence, no message shows a cell."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpviz.core.errors import DpvizError, InvalidSetting, InvalidTable
from dpviz.datasets import Kind, Table, files, load, read_raw, read_table
from dpviz.datasets.batches import FileBatches
from dpviz.datasets.columns import MAX_CATEGORIES, clean_names, distinct
from dpviz.datasets.raw import unit_words
from dpviz.datasets.table import ReadOptions

PLANTED_NUMBER = "31337.25"
PLANTED_TEXT = "SECRETCELL"
NUMBERS = np.array([[1.5, 2.0], [3.0, 4.0], [5.0, 6.5]])


def table_of(text: str | bytes, name: str = "t.csv", **options: Any) -> Table:
    data = text.encode() if isinstance(text, str) else text
    reading = ReadOptions(**options)
    return read_raw(data, name=name, reading=reading).to_table(reading)


def sentence_of(text: str | bytes, name: str = "t.csv", **options: Any) -> str:
    """Return the message of the error that the text must cause."""
    with pytest.raises(DpvizError) as caught:
        table_of(text, name, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert ". " not in message.rstrip(".")  # The message must be one sentence.
    assert len(message) < 400
    for secret in (PLANTED_NUMBER, "31337", PLANTED_TEXT):
        assert secret not in message
    return message


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


# Formats


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", [True, False])
def test_delimiter_header_and_line_end_are_found(delimiter: str, end: str, header: bool) -> None:
    lines = [delimiter.join(["a", "b"])] if header else []
    lines += [delimiter.join(map(str, row)) for row in NUMBERS]
    table = table_of(end.join(lines) + end)
    raw = read_raw(end.join(lines).encode(), name="t", reading=ReadOptions(header="no"))
    assert raw.shape == (3 + header, 2)
    assert (table.rows == NUMBERS).all()
    assert table.columns == (("a", "b") if header else ("column 1", "column 2"))
    assert any("no line of column names" in note for note in table.notes) == (not header)


def test_last_line_needs_no_end_and_blank_lines_are_skipped() -> None:
    assert (table_of("a,b\n1.5,2\n\n3,4\n5,6.5").rows == NUMBERS).all()


def test_runs_of_spaces_are_one_delimiter_also_across_read_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpviz.datasets.process.apart", lambda: False)
    monkeypatch.setattr("dpviz.datasets.reader._CHUNK", 7)
    table = table_of(" a   b  c \n 1  2   3\n4 5 6  \n  7 8 9\r\n")
    assert table.columns == ("a", "b", "c")
    assert (table.rows == np.arange(1.0, 10).reshape(3, 3)).all()


def test_quoted_cells_may_hold_delimiters_and_line_breaks() -> None:
    raw = read_raw(b'a,b,t\n1,2,"x, y"\n3,4,"x\ny"\n5,6,"x, y"\n', name="t.csv")
    assert [column.kind for column in raw.columns] == [Kind.NUMERIC] * 2 + [Kind.CATEGORICAL]
    assert raw.columns[2].categories == 2
    assert any("line breaks" in note for note in raw.notes)


def test_gzip_is_known_by_its_bytes() -> None:
    table = table_of(gzip.compress(b"a,b\n1.5,2\n3,4\n5,6.5\n", mtime=0), name="t.csv")
    assert (table.rows == NUMBERS).all()
    packet = gzip.compress(b"a b\n1.5  2\n3 4\n", mtime=0) + gzip.compress(b"5   6.5\n", mtime=0)
    assert (table_of(packet).rows == NUMBERS).all()


def test_parquet_types() -> None:
    n = 4
    day = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    frame = pa.table(
        {
            "whole": pa.array([1, 2, None, 4], pa.uint64()),
            "half": pa.array(np.arange(4, dtype=np.float16)),
            "exact": pa.array([decimal.Decimal("1.25")] * n, pa.decimal128(6, 2)),
            "truth": pa.array([True, False, True, True]),
            "gap": pa.array([1.0, np.nan, 3.0, 4.0]),
            "text": pa.array(["u", "v", "u", "u"]).dictionary_encode(),
            "coded": pa.array([7, 8, 7, 7]).dictionary_encode(),
            "when": pa.array([day] * n, pa.timestamp("us", "Europe/Paris")),
            "nested": pa.array([[1], [2], [3], [4]]),
            "void": pa.nulls(n),
            "bytes": pa.array([b"x"] * n),
            "__index_level_0__": pa.array([3, 2, 1, 0]),
        }
    )
    raw = read_raw(parquet_bytes(frame), name="t.parquet")
    kinds = [column.kind for column in raw.columns]
    numbers = [column.name for column in raw.columns if column.kind is Kind.NUMERIC]
    assert numbers == ["whole", "half", "exact", "gap", "coded"]
    assert [kinds[j] for j in (3, 5)] == [Kind.BOOLEAN, Kind.CATEGORICAL]
    assert kinds[7:] == [Kind.DATE, Kind.EMPTY]
    assert raw.missing == 1 + 1 + n
    assert any("'nested' and 'bytes'" in note for note in raw.notes)
    table = raw.to_table(ReadOptions(label="text"))
    assert table.columns == ("whole", "half", "exact", "truth", "gap", "coded")
    assert table.rows.tolist() == [[1, 0, 1.25, 1, 1, 7], [4, 3, 1.25, 1, 4, 7]]
    assert table.labels.tolist() == ["u", "u"]


@pytest.mark.parametrize("how", ["path", "text", "bytes", "view", "memory", "disk"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_kind_of_source(how: str, packed: bool, tmp_path: Path) -> None:
    data = b"a,b\n1.5,2\n3,4\n5,6.5\n"
    data = gzip.compress(data, mtime=0) if packed else data
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with path.open("rb") as disk:
        sources: dict[str, Any] = {
            "path": path,
            "text": str(path),
            "bytes": data,
            "view": memoryview(data),
            "memory": io.BytesIO(data),
            "disk": disk,
        }
        given_source = sources[how]
        for _ in range(2):  # A second reading must give the same result.
            assert (read_raw(given_source, name="t").to_table().rows == NUMBERS).all()
        if how in ("memory", "disk"):
            assert not given_source.closed


@settings(max_examples=60, deadline=None)
@given(
    rows=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(2, 6)),
        elements=st.floats(-1e100, 1e100, allow_nan=False),
    ),
    delimiter=st.sampled_from([",", ";", "\t", "|", " "]),
    header=st.booleans(),
    packed=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_numbers_survive_the_round_trip(
    rows: np.ndarray, delimiter: str, header: bool, packed: bool, end: str
) -> None:
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, delimiter=delimiter, lineterminator=end)
    if header:
        writer.writerow([f"f{j}" for j in range(rows.shape[1])])
    writer.writerows([[repr(float(cell)) for cell in row] for row in rows])
    data = sink.getvalue().encode()
    table = table_of(gzip.compress(data, 1) if packed else data)
    assert table.rows.shape == rows.shape
    assert (table.rows == rows).all()
    assert table.rows.flags.c_contiguous


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=70), min_size=1, max_size=8))
def test_names_become_distinct_and_usable(names: list[str]) -> None:
    tidy, _ = clean_names(names)
    assert len(tidy) == len(names)
    assert len(set(tidy)) == len(tidy)
    assert all(name and "\n" not in name for name in tidy)


def test_distinct_never_takes_a_name_in_use() -> None:
    assert distinct(["a", "a", "a (2)"])[0] == ("a", "a (3)", "a (2)")


# Columns


def test_names_are_repaired_with_notes() -> None:
    table = table_of("#a, a,,a\n1,2,3,4\n5,6,7,9\n")
    assert table.columns == ("a", "a (2)", "column 3", "a (3)")
    assert any(note.endswith("were made distinct: 'a (2)' and 'a (3)'.") for note in table.notes)
    assert "1 column without a name was named 'column 3'." in table.notes
    long = "x" * 90
    notes = " ".join(table_of(f"{long}1,{long}2\n1,2\n3,5\n").notes)
    assert "begin alike for 60 letters, were made distinct" in notes


def test_counted_header_and_row_numbers() -> None:
    table = table_of(",0,1,2\n0,.1,.2,.3\n1,.4,.5,.6\n2,.7,.8,.9\n")
    assert table.columns == ("0", "1", "2")
    assert table.rows.shape == (3, 3)
    assert any("counts the rows: it was left out" in note for note in table.notes)
    sheet = table_of("id,a\n1,5\n2,5\n3,7\n")
    assert sheet.columns == ("id", "a")
    assert any(note.startswith("'id' counts the rows") for note in sheet.notes)


@pytest.mark.parametrize(
    "marker", ["", "NA", "NaN", "null", "?", " ?", "   ? ", "N/A", "-", "None"]
)
def test_missing_markers_in_numbers_and_texts(marker: str) -> None:
    raw = read_raw(f"a,b,t\n1,2,u\n3,{marker},{marker}\n5,6,v\n7,8,u\n".encode(), name="t.csv")
    assert [column.kind for column in raw.columns] == [Kind.NUMERIC] * 2 + [Kind.CATEGORICAL]
    assert [column.missing for column in raw.columns] == [0, 1, 1]
    complete = raw.to_table()
    assert complete.rows.tolist() == [[1, 2], [5, 6], [7, 8]]
    assert "1 cell is missing in 'b'." in complete.notes
    assert "1 row of 4 without a value was left out." in complete.notes
    assert complete.assumed_public == (unit_words(None),)
    with_medians = raw.to_table(ReadOptions(missing="median", categorical="onehot"))
    assert with_medians.columns == ("a", "b", "t=u", "t=v")
    assert with_medians.rows[1].tolist() == [3, 6, 0, 0]  # The median of 2, 6 and 8 is 6.
    assert any("medians" in item and "'b'" in item for item in with_medians.assumed_public)
    assert any("categories in 't'" in item for item in with_medians.assumed_public)


def test_one_hot_is_exact_and_skips_wide_columns() -> None:
    lines = ["x,y,colour,code,town"]
    for i in range(3 * (MAX_CATEGORIES + 1)):
        town = f"town{i % (MAX_CATEGORIES + 1)}"
        lines.append(f"{i}.5,{-i},{'red' if i % 3 else ' green '},id{i}z,{town}")
    raw = read_raw("\n".join(lines).encode(), name="t.csv")
    assert [column.kind for column in raw.columns[2:]] == [
        Kind.CATEGORICAL,
        Kind.IDENTIFIER,
        Kind.CATEGORICAL,
    ]
    assert raw.label_choices == ("colour", "town", "x", "y")
    table = raw.to_table(ReadOptions(categorical="onehot"))
    assert table.columns == ("x", "y", "colour=green", "colour=red")
    red = np.arange(len(table.rows)) % 3 > 0
    assert (table.rows[:, 3] == red).all()
    assert (table.rows[:, 2] == ~red).all()
    assert any("differs in every row: 'code'" in note for note in table.notes)
    assert any("Left out as text: 'town' (only columns of 2 to 50" in note for note in table.notes)
    assert any("'colour', " in note or "'colour' and" in note for note in raw.to_table().notes)


def test_labels_keep_their_kind_and_leave_the_features() -> None:
    raw = read_raw(b"a,b,c,t\n1,2,7,u\n3,4,8,v\n5,6,7,\n9,8,9,u\n", name="t.csv")
    words = raw.to_table(ReadOptions(label="t"))
    assert words.labels.tolist() == ["u", "v", "u"]
    assert words.columns == ("a", "b", "c")
    assert "1 row of 4 without a label was left out." in words.notes
    numbers = raw.to_table(ReadOptions(label="c", missing="median"))
    assert numbers.labels.tolist() == [7, 8, 7, 9]
    assert numbers.labels.dtype == np.int64
    assert numbers.label_name == "c"
    assert numbers.columns == ("a", "b")


def test_numeric_labels_stay_with_their_rows_where_others_are_dropped() -> None:
    text = b"a,b,group\n1,5,10\n,6,20\n3,7,30\n4,8,40\n"
    table = read_raw(text, name="t.csv").to_table(ReadOptions(label="group"))
    assert table.rows.tolist() == [[1, 5], [3, 7], [4, 8]]
    assert table.labels is not None
    assert table.labels.tolist() == [10, 30, 40]


def test_booleans_and_dates() -> None:
    raw = read_raw(
        b"ok,x,when\ntrue,1.5,2024-01-31\nFalse,2,2024-02-01\n TRUE,3,2024-02-01\n", name="t"
    )
    assert [column.kind for column in raw.columns] == [Kind.BOOLEAN, Kind.NUMERIC, Kind.DATE]
    table = raw.to_table(ReadOptions(label="when"))
    assert table.rows[:, 0].tolist() == [1, 0, 1]
    assert table.labels.tolist() == ["2024-01-31", "2024-02-01", "2024-02-01"]
    assert "Dates in 'when' are treated as text." in table.notes


def test_a_stray_text_among_numbers_is_explained_without_showing_it() -> None:
    lines = ["a,b,c"] + [f"{i},{i * i},{i}" for i in range(40)]
    lines[13] = f"12,{PLANTED_TEXT},12"
    table = table_of("\n".join(lines))
    assert table.columns == ("a", "c")
    (note,) = [note for note in table.notes if note.startswith("'b' counts as text")]
    assert "1 cell of 40" in note
    assert "first in row 13 " in note


# Bad input


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "t.csv is empty."),
        (b" \n\n \n", "t.csv is empty: it holds only blanks."),
        (gzip.compress(b"", mtime=0), "t.csv is empty."),
        (b"a,b\n", "only a line of column names"),
        (b"a,b\n31337.25,2\n", "must have at least 2 rows of data; it has one row."),
        (b"31337.25,2\n", "must have at least 2 rows"),
        (b"a\n31337.25\n5\n", "shows one column only"),
        (b"a,b\n1,SECRETCELL\n2,SECRETCELL\n", "at least 2 numeric columns; it has only 'a'"),
        (b"a,b\nSECRETCELL,x\nu,x\n", "at least 2 numeric columns; it has none"),
        (b"a,b\n1,2\n\n31337.25\n", "line 4 has 1 and the first line has 2"),
        (b"a,b\n1,2\n31337.25,SECRETCELL,4\n", "line 3 has 3 and the first line has 2"),
        (b"a b\n1 2\n31337.25\n", "delimiter space, line 3 has 1"),
        (b"a,b\n1,2\n31337.25,inf\n", "column 'b' of t.csv holds an infinite number"),
        (b"a,b\n1,2\n-Infinity,31337.25\n", "column 'a' of t.csv holds an infinite number"),
        (b"a,b\n1,2\n31337.25,3\n1,1e308\n", "beyond 1e100 in row 3, not counting"),
        (b"a,b\n1,2\n-1.1e100,1\n", "column 'a' of t.csv holds an infinite number or one beyond"),
        (b"a,b\n1,2\n1e999,31337.25\n", "column 'a' of t.csv holds"),
        (b"a,b\n1,SECRETCELL\xff\n31337.25,2\n", "t.csv is not UTF-8 text"),
        ("a,b\n31337.25,2\n3,4\n".encode("utf-16"), "or save it as UTF-8."),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "is a PNG image"),
        (b"PK\x03\x04" + bytes(50), "starts like a zip archive or workbook"),
        (bytes(range(1, 256)), "not UTF-8 text"),
        (b"abc,\0\0\0d\n1,2\n", "neither CSV text nor Parquet"),
        (b"PAR1SECRETCELL", "starts like a Parquet file"),
        (gzip.compress(b"a,b\n31337.25,2\n3,4\n", mtime=0)[:-9], "damaged or incomplete gzip"),
        (b"\x1f\x8bSECRETCELL", "damaged or incomplete gzip"),
        (b"a,b\n31337.25,\n,2\n", "it has 0 among 2 rows"),
    ],
)
def test_bad_input_is_one_sentence(data: bytes, says: str) -> None:
    assert says in sentence_of(data)


def test_bytes_that_are_not_utf8_far_from_the_start() -> None:
    good = b"1.5,2.5,abcdefgh\n" * 60_000  # The layout is decided before the wrong bytes appear.
    message = sentence_of(b"a,b,t\n" + good + b"1,2,SECRETCELL\xff\n")
    assert "t.csv is not UTF-8 text" in message


def test_a_ragged_line_far_from_the_start_is_named() -> None:
    good = b"1.5,2.5\n" * 200_000
    message = sentence_of(b"a,b\n" + good + b"31337.25\n" + good)
    assert "line 200002 has 1" in message


@pytest.mark.parametrize("lines", [2, 1_000, 900_000, 2_000_000])
def test_an_open_quote(lines: int) -> None:
    # The open quote is found in the first lines, in one parser block, or in too long a line.
    message = sentence_of(b'a,b\n1,"SECRETCELL\n' + b"31337.25,4\n" * lines)
    assert "quote is opened and never closed" in message


def test_a_closed_quote_in_the_last_row_is_fine() -> None:
    assert table_of('a,b,t\n1,2,x\n3,4,"x\ny"\n').rows.shape == (2, 2)


@pytest.mark.parametrize(
    ("text", "label", "says"),
    [
        ("a,b,c\n31337.25,2,3\n3,4,5\n", "nothing", "label must be a column of t.csv, one of"),
        ("a,b,c\n31337.25,2,\n3,4,\n", "c", "label column 'c' of t.csv has no values."),
        ("a,b\n31337.25,2\n3,4\n", "b", "at least 2 numeric columns besides the label 'b'"),
        ("a,b,c\n1,2,SECRETCELL\n3,4,\n", "c", "it has 1 among 2 rows"),
        ("a,b,c\n1,2," + "SECRETCELL" * 20 + "\n3,4,x\n", "c", "too long for labels"),
        (
            "a,b,c\n" + "".join(f"{i},{i % 7},SECRETCELL{i}\n" for i in range(60)),
            "c",
            "different text in every row",
        ),
    ],
)
def test_bad_labels(text: str, label: str, says: str) -> None:
    assert says in sentence_of(text, label=label)


def test_bad_options_name_the_allowed_ones() -> None:
    words = {"missing": "drop, median", "categorical": "drop, onehot", "header": "auto"}
    for option, allowed in words.items():
        with pytest.raises(InvalidSetting, match=f"{option} must be one of {allowed}"):
            ReadOptions(**{option: "ordinal"})


@pytest.mark.parametrize("name", ["t.parquet", "T.PQ"])
def test_the_bytes_decide_and_not_the_name(name: str, tmp_path: Path) -> None:
    text = "a,b\n1,2\n3,4\n5,7\n"
    plain, other = table_of(text), table_of(text, name=name)
    np.testing.assert_array_equal(other.rows, plain.rows)
    assert other.columns == plain.columns
    note = f"{name} is named Parquet and holds text: it was read as text."
    assert [said for said in other.notes if said not in plain.notes] == [note]
    (tmp_path / name).write_text(text, encoding="utf-8")
    batches = FileBatches(tmp_path / name)  # Reading in batches gives the same rows.
    np.testing.assert_array_equal(batches.first(), plain.rows)
    assert note in batches.notes
    # A Parquet file with another extension is read as Parquet.
    data = parquet_bytes(pa.table({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}))
    assert table_of(data, name="t.csv").columns == ("a", "b")


def test_a_truncated_parquet() -> None:
    data = parquet_bytes(pa.table({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}))
    assert "damaged, incomplete" in sentence_of(data[:-20])


def test_a_parquet_that_claims_too_many_rows_is_refused_unread() -> None:
    # Equal values are compressed to almost no bytes, so a small file can hold so many rows.
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int8)), pa.array([1.0]))
    sink = io.BytesIO()
    block = pa.table({f"x{j}": column for j in range(2)})
    with parquet.ParquetWriter(sink, block.schema) as writer:
        writer.write_table(block)
    assert table_of(sink.getvalue()).rows.shape == (1000, 2)
    with pytest.raises(InvalidTable, match="more than the 1,999 cells"):
        read_raw(sink.getvalue(), name="t", cells=1999)


def test_a_gzip_of_many_short_lines_is_refused_while_it_unpacks() -> None:
    bomb = gzip.compress(b"1,2\n" * (1 << 20), 1)
    with pytest.raises(InvalidTable, match="has more than the 1,048,576 cells"):
        read_raw(bomb, name="t", cells=1 << 20)


@pytest.mark.parametrize("pack", [bytes, partial(gzip.compress, mtime=0)])
def test_long_text_is_refused_packed_or_not(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "TEXT_BYTES", 10)
    with pytest.raises(InvalidTable, match="the most that is read into memory"):
        read_raw(pack(b"a,b\n1,2\n3,4\n"), name="t")


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(InvalidTable, match="at most 20,000 columns; it has 20,001"):
        read_raw((b"," * 20_000 + b"\n") * 3, name="t")


def test_no_note_shows_a_cell() -> None:
    rows = [f"{i},{PLANTED_NUMBER},{PLANTED_TEXT}{i % 2},{PLANTED_TEXT}{i},{i}" for i in range(60)]
    rows[7] = f"7,,{PLANTED_TEXT},{PLANTED_TEXT}7,{PLANTED_TEXT}"
    text = "id,x,t,key,y\n" + "\n".join(rows)
    for options in ({}, {"label": "t"}, {"missing": "median", "categorical": "onehot"}):
        table = table_of(text, **options)
        notes = " ".join((*table.notes, *table.assumed_public))
        assert notes
        assert PLANTED_TEXT not in notes
        assert PLANTED_NUMBER not in notes


# load


def test_load_reads_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("a,b,t\n1,2,u\n3,4,v\n")
    table = load(str(path), ReadOptions(label="t"))
    assert table.name == "table"  # No result may contain the file's name.
    assert table.labels.tolist() == ["u", "v"]


def test_load_names_the_built_in_tables_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidTable, match=r"one of digits, .* file; 'nothing' is no file\.$"):
        load(str(tmp_path / "nothing"))
    with pytest.raises(InvalidTable, match=r"is a folder\.$"):
        load(str(tmp_path))
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InvalidTable, match=r"is a pipe or device; a table from a pipe is named -"):
        load(str(tmp_path / "pipe.csv"))


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read")
def test_a_disk_that_fails_is_a_sentence() -> None:
    with pytest.raises(InvalidTable, match=r"^mem cannot be read: the disk, share or device"):
        read_table("/proc/self/mem")


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidTable, match="cannot be opened: there is no such file"):
        read_raw(tmp_path / "none.csv", name="none.csv")


# Published files: these tests run only if the files are available.

PUBLISHED = [
    ("adult/adult.data", "column 15", (32561, 6)),
    ("semeion/semeion.data", None, (1593, 266)),
    ("coil2000/ticdata2000.txt", "column 86", (5822, 85)),
    ("waveform/waveform-+noise.data", "column 41", (5000, 40)),
    ("liver-disorders/bupa.data", "column 7", (345, 6)),
    ("movementaal/dataset/MovementAAL_RSS_1.csv", None, (27, 4)),
    ("kddcup99/kddcup.data_10_percent.gz", "column 42", (494021, 38)),
]


@pytest.mark.slow
@pytest.mark.skipif("DPVIZ_DATA" not in os.environ, reason="DPVIZ_DATA names no folder")
@pytest.mark.parametrize(("file", "label", "shape"), PUBLISHED)
def test_published_files(file: str, label: str | None, shape: tuple[int, int]) -> None:
    table = load(str(Path(os.environ["DPVIZ_DATA"]) / file), ReadOptions(label=label))
    assert table.rows.shape == shape
    assert np.isfinite(table.rows).all()


@pytest.mark.skipif("DPVIZ_DATA" not in os.environ, reason="DPVIZ_DATA names no folder")
def test_adults_missing_cells_are_counted() -> None:
    raw = read_raw(Path(os.environ["DPVIZ_DATA"]) / "adult" / "adult.data", name="adult.data")
    # The publisher counts these unknown values: 1836 workclass, 1843 occupation, 583 country.
    missing = {column.name: column.missing for column in raw.columns if column.missing}
    assert missing == {"column 2": 1836, "column 7": 1843, "column 14": 583}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name of a file is text")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_name_that_is_no_text_is_read_too(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]})
    path = tmp_path / os.fsdecode(b"t\xff." + ending.encode())
    content = io.BytesIO()
    if ending == "parquet":
        frame.to_parquet(content)
    else:
        frame.to_csv(content, index=False, compression="gzip" if ending == "csv.gz" else None)
    path.write_bytes(content.getvalue())
    table = load(path)
    assert table.rows.tolist() == frame.to_numpy().tolist()
    assert table.name.isprintable()
