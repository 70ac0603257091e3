"""A schema: a file that a person edits, complete or refused, and a first draft from a table."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.cli import main
from dpviz.core.errors import DpvizError, InvalidSetting, InvalidTable
from dpviz.core.files import PACKAGE
from dpviz.datasets import Table, builtin_tables, load_builtin
from dpviz.releasing.drafting import draft
from dpviz.releasing.records import open_records
from dpviz.releasing.schema import (
    DECIMALS,
    DELIMITERS,
    ENCODINGS,
    FROM_DATA,
    PACKINGS,
    THOUSANDS,
    Column,
    Schema,
    SchemaError,
    public_schema,
)

PUBLISHED = jsonschema.Draft202012Validator(
    json.loads((PACKAGE.parent / "docs" / "schema.json").read_text(encoding="utf-8"))
)
TWO = (Column("a", 0, 1), Column("b", -1, 1, 0.5, (-999.0,)))

numbers = st.floats(-1e100, 1e100)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    name = draw(st.text(min_size=1, max_size=70))
    low, high = sorted(draw(st.lists(numbers, min_size=2, max_size=2, unique=True)))
    typical = draw(st.none() | st.floats(low, high))
    missing = tuple(draw(st.lists(numbers, max_size=3)))
    try:
        if draw(st.booleans()):
            return Column(name, low, high, typical, missing)
        return Column(name, draw(st.sampled_from([None, low])), use=draw(st.booleans()))
    except InvalidSetting:  # A name needs a visible letter.
        return Column("plain", low, high, typical, missing)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    schema_columns = draw(st.lists(columns(), min_size=1, max_size=6, unique_by=lambda c: c.name))
    decimal = draw(st.sampled_from(list(DECIMALS)))
    return Schema(
        tuple(schema_columns),
        draw(st.booleans()),
        draw(st.integers(0, 1000)),
        draw(st.sampled_from(list(DELIMITERS))),
        decimal,
        draw(st.sampled_from([mark for mark in THOUSANDS if mark != decimal])),
        draw(st.sampled_from(ENCODINGS)),
        draw(st.sampled_from(list(PACKINGS))),
        *draw(st.sampled_from([(None, ""), (1, ""), (1_000, "who is\tmeant")])),
        from_data=draw(st.booleans()),
    )


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(schemas())
def test_a_schema_comes_back_from_its_file_as_it_was(schema: Schema) -> None:
    text = schema.to_text()
    again = Schema.from_text(text)
    assert again == schema
    assert again.from_data is schema.from_data
    assert again.to_text() == text
    assert Schema.from_text(text.encode()).digest == schema.digest
    PUBLISHED.validate(json.loads(text))
    count = (schema.rows_a_person is not None) + bool(schema.person)
    assert text.count("\n") == 13 + count + len(schema.columns)  # Each column has one line.


def test_the_digest_is_of_what_is_read_and_not_of_who_declared_it() -> None:
    schema = Schema(TWO)
    assert replace(schema, from_data=True).digest == schema.digest
    assert Schema((TWO[0], replace(TWO[1], typical=0.25))).digest != schema.digest
    # Stating the default typical value, the middle, does not change the schema.
    assert Schema((replace(TWO[0], typical=0.5), TWO[1])).digest == schema.digest
    for change in ({"header": False}, {"skip": 1}, {"delimiter": ";"}, {"decimal": ","},
                    {"thousands": ","}, {"encoding": "cp1252"}, {"packing": "text"}):  # fmt: skip
        assert replace(schema, **change).digest != schema.digest


def _written(**changed: object) -> str:
    return json.dumps({"dpviz_schema": 1, "columns": [{"name": "a"}], **changed})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a schema: it is not JSON"),
        ("[" * 200_000, "it is not JSON"),
        ("[]", "dpviz_schema must be 1"),
        (_written(dpviz_schema=2), "dpviz_schema must be 1"),
        (_written(columns=[]), "columns must be from 1 to 20,000"),
        (_written(columns=[{"name": ""}]), "the name of a column must be"),
        (_written(columns=[{"nam": "a"}]), "an entry of a column must be one of name, low"),
        (_written(columns=[{"name": "a"}, {"name": " a"}]), "columns must be different names"),
        (_written(columns=[{"name": "a", "low": "0"}]), "low of column 'a' must be a number"),
        (_written(columns=[{"name": "a", "low": 2, "high": 1}]), "must be below high, which is 1"),
        (_written(columns=[{"name": "a", "low": 1e101}]), "a number between -1e"),
        (_written().replace('"a"', '"a", "low": 1' + "0" * 5_000), "it is not JSON"),
        (_written().replace('"a"', '"a", "low": 1' + "0" * 400), "a number between -1e"),
        (_written().replace('"a"', '"a", "low": NaN'), "it is not JSON"),
        (_written().replace('"a"', '"a", "low": 0, "low": 1'), "it names 'low' twice"),
        (_written(columns=[{"name": "a", "low": 0, "high": 1, "typical": 2}]), "within its bounds"),
        (_written(columns=[{"name": "a", "missing": ["-9"]}]), "missing of column 'a' must be a"),
        (_written(columns=[{"name": "a", "missing": -9}]), "missing must be a list of numbers"),
        (_written(columns=[{"name": "a", "use": 1}]), "use of column 'a' must be true or false"),
        (_written(header="yes"), "header must be true or false"),
        (_written(skip=-1), "skip must be from 0 to 1,000 lines"),
        (_written(skip=True), "skip must be a whole number"),
        (_written(delimiter="::"), "delimiter must be one of"),
        (_written(decimal=[1]), "decimal must be one of"),
        (_written(thousands="."), "thousands must be a mark other"),
        (_written(encoding="utf-16"), "encoding must be one of 'utf-8', 'cp1252', 'latin-1'"),
        (_written(status="fine"), "status must be 'public' or 'taken from the data, not private'"),
        (_written(more=1), "an entry of a schema must be one of"),
    ],
)
def test_a_wrong_schema_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as error:
        Schema.from_text(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_the_published_format_refuses_what_the_reader_refuses() -> None:
    for text in (_written(dpviz_schema=2), _written(columns=[]), _written(more=1),
                 _written(columns=[{"name": "a", "low": "0"}]), _written(header="yes"),
                 _written(columns=[{"nam": "a"}]), _written(skip=-1), _written(status="fine"),
                 _written(encoding="utf-16")):  # fmt: skip
        with pytest.raises(jsonschema.ValidationError):
            PUBLISHED.validate(json.loads(text))
        with pytest.raises(SchemaError):
            Schema.from_text(text)


def test_words_in_order_are_declared_and_drafted() -> None:
    scale = ("never", "sometimes", "often")
    likert = Column("b", levels=scale)
    assert (likert.low, likert.high, likert.stand_in) == (1, 3, 2)
    schema = Schema((TWO[0], likert))
    assert Schema.from_text(schema.to_text()) == schema
    PUBLISHED.validate(json.loads(schema.to_text()))
    assert schema.digest != Schema((TWO[0], Column("b", 1, 3))).digest
    for wrong in (["one", "two"], ["a", "A", "b"], ["a", "", "b"], "often", [1, 2, 3]):
        with pytest.raises(SchemaError, match="levels"):
            Schema.from_text(schema.to_text().replace(json.dumps(list(scale)), json.dumps(wrong)))
    words = ["Never", "often", "never", " sometimes", "NA", "often"]
    text = "a,b,c\n" + "".join(f"{i}.5,{word},{word}?\n" for i, word in enumerate(words))
    for bounds in ("data", "none"):
        draft_of = draft(text.encode(), "t", bounds, levels=[scale])
        assert {c.name: c.levels for c in draft_of.used if c.levels} == {"b": scale}
        assert [(c.low, c.high) for c in draft_of.used if c.name == "b"] == [(1, 3)]
        assert not any(c.levels for c in draft(text.encode(), "t", bounds).columns)


def test_an_open_schema_says_what_is_to_be_filled_in() -> None:
    with pytest.raises(SchemaError, match="high of 'b' is missing"):
        Schema((TWO[0], Column("b", 0))).require()
    with pytest.raises(SchemaError, match="at least 2 columns; it uses 1"):
        Schema((TWO[0], Column("b", use=False))).require()
    Schema(TWO).require()


def test_what_is_no_number_becomes_the_typical_value_and_all_is_cut() -> None:
    schema = Schema(TWO)
    cells = [np.nan, np.inf, -np.inf, 5.0, -5.0, 0.25, -999.0]
    filled_cells = schema.filled(np.array([cells, cells]).T)
    assert filled_cells[:, 0].tolist() == [0.5, 0.5, 0.5, 1.0, 0.0, 0.25, 0.0]
    assert filled_cells[:, 1].tolist() == [0.5, 0.5, 0.5, 1.0, -1.0, 0.25, 0.5]


def test_a_table_with_public_bounds_has_a_public_schema() -> None:
    for key in builtin_tables():
        table = load_builtin(key)
        schema = public_schema(table)
        assert (schema is None) == (table.bounds is None)
        if schema is not None:
            assert not draft(table, key).from_data
            assert [(c.low, c.high) for c in schema.used] == list(map(tuple, table.bounds))
        else:
            first = draft(table, key)
            assert first.from_data
            rows = np.concatenate(list(open_records(table, first).blocks()))
            assert (first.filled(rows) == table.rows).all()


DRAFTS = {
    "plain": (b"a,b\n1,2\n3,4.5\n", {"a": (1, 3), "b": (2, 4.5)}, {}),
    "semicolons": (b"a;b\n1;0,5\n3;4,5\n", {"a": (1, 3), "b": (0.5, 4.5)},
                   {"delimiter": ";", "decimal": ","}),
    "thousands": (b"a;b\n1;1.234,5\n3;2.345,5\n", {"a": (1, 3), "b": (1200, 2400)},
                  {"delimiter": ";", "decimal": ",", "thousands": "."}),
    "no names": (b"1 2.5 x\n3 4.5 y\n2 2.0 z\n", {"column 1": (1, 3), "column 2": (2, 4.5)},
                 {"delimiter": " ", "header": False}),
    "told": (b"sep=;\r\nid;a;b\r\n1;4;2\r\n2;3;5\r\n3;9;2\r\n4;1;1\r\n", {"a": (1, 9), "b": (1, 5)},
             {"delimiter": ";", "skip": 1}),
    "row names": (b"a,b\nx1,1,5\nx2,2,7\n", {"a": (1, 2), "b": (5, 7)},
                  {"header": False, "skip": 1}),
    "gaps": (b"a,b\n1,2\n,NA\n3,-999\n4,3\n6,5\n", {"a": (1, 6), "b": (2, 5)}, {}),
    "latin": ("gr\u00f6\u00dfe,b\n1,2\n3,4\n".encode("cp1252"),
              {"gr\u00f6\u00dfe": (1, 3), "b": (2, 4)}, {"encoding": "cp1252"}),
    "mark": (b"\xef\xbb\xbfa,b\n1,2\n3,4\n", {"a": (1, 3), "b": (2, 4)}, {}),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", DRAFTS)
def test_a_first_schema_says_how_the_file_is_written(name: str, packed: bool) -> None:
    text, bounds, dialect = DRAFTS[name]
    data = gzip.compress(text, mtime=0) if packed else text
    schema = draft(data, "t.csv")
    assert schema.from_data
    assert {column.name: (column.low, column.high) for column in schema.used} == bounds
    plain = {"delimiter": ",", "decimal": ".", "thousands": "", "header": True, "skip": 0,
             "encoding": "utf-8", "packing": "auto", **dialect}  # fmt: skip
    if packed and not (schema.header or schema.skip):
        plain["packing"] = "gzip"
    assert {key: getattr(schema, key) for key in plain} == plain
    rows = np.concatenate(list(open_records(data, schema).blocks()))
    assert np.isfinite(rows[0]).all()  # The draft schema can read its own table.
    if name == "gaps":
        assert schema.used[1].missing == (-999.0,)
    open_one = draft(data, "t.csv", "none")
    assert [(c.low, c.high) for c in open_one.used] == [(None, None)] * len(bounds)
    assert {(c.low, c.high) for c in draft(data, "t.csv", (0.0, 9.0)).used} == {(0.0, 9.0)}


@pytest.mark.parametrize("text", [b'[{"age": 3, "bmi": 4}]', b'{"age": 3, "bmi": 4}\n' * 3])
def test_json_has_no_first_schema_whose_names_are_its_cells(text: bytes) -> None:
    with pytest.raises(InvalidTable, match=r"^t is JSON, and a release does not read JSON. Save"):
        draft(text, "t")


def test_parquet_and_a_csv_called_parquet_have_a_first_schema(tmp_path: Path) -> None:
    sink = io.BytesIO()
    table = {"a": [1.5, None, 3.0], "b": [True, False, True], "c": ["1", "x", "3"],
             "d": [b"1", b"2", b"3"], "e": [[1], [2], [3]]}  # fmt: skip
    parquet.write_table(pa.table(table), sink)
    schema = draft(sink.getvalue(), "t.csv")
    assert [(c.name, c.low, c.high) for c in schema.used] == [
        ("a", 1.5, 3.0), ("b", 0.0, 1.0),
    ]  # fmt: skip
    path = tmp_path / "t.parquet"
    path.write_bytes(b"a,b\n1,2\n3,4\n")
    assert [column.name for column in draft(path, path.name).used] == ["a", "b"]


def test_the_command_writes_a_first_schema_and_a_release_asks_for_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "s.json"
    table.write_text("a,b\n1,2\n3,4\n2,2\n")
    assert main(["schema", str(table), "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert "2 of 2 columns are used" in output.out
    assert FROM_DATA in output.err
    assert main(["schema", str(table), "--out", str(out)]) == 2
    assert "must name a new file" in capsys.readouterr().err
    assert main(["schema", str(table)]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert main(["schema", str(table), "--bounds", "private"]) == 2
    assert "--bounds must be data, none or LOW:HIGH" in capsys.readouterr().err
    words = ["release", str(table), "--row-bound", "2", "--schema", str(out)]
    words += ["--delta", "1e-7", "--ledger", str(tmp_path / "l")]
    words += ["--out", str(tmp_path / "r.json")]
    assert main(["ledger", "new", str(tmp_path / "l"), "--limit", "3,1e-5"]) == 0
    assert main(words) == 2
    assert f"still marked '{FROM_DATA}'" in capsys.readouterr().err
    assert main([*words, "--schema-from-data"]) == 0
    facts = json.loads((tmp_path / "r.json").read_text())["assumed_public"]
    assert any("TAKEN FROM THE TABLE" in words for words in facts)
    (tmp_path / "r.json").unlink()
    out.write_text(out.read_text().replace(FROM_DATA, "public"))
    assert main(words) == 0
    facts = json.loads((tmp_path / "r.json").read_text())["assumed_public"]
    assert any("agreed before the table was read" in words for words in facts)
    words = [word.replace("r.json", "r2.json").replace("s.json", "none.json") for word in words]
    assert main(words) == 2
    assert "the schema 'none.json' cannot be opened" in capsys.readouterr().err


def test_a_table_in_memory_is_read_under_its_schema() -> None:
    table = Table("made", np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.inf]]), ("c", "b", "a"))
    schema = Schema((Column("a", 0, 9, 1), Column("c", 0, 9, 2), Column("b", use=False)))
    records = open_records(table, schema)
    assert records.n == 2
    assert schema.filled(next(iter(records.blocks()))).tolist() == [[3.0, 1.0], [1.0, 4.0]]
    with pytest.raises(DpvizError, match="none of its 3 columns has the name 'd'"):
        open_records(table, Schema((Column("d", 0, 1), Column("a", 0, 1))))


def test_only_so_much_of_a_packed_text_is_read_for_its_bounds() -> None:
    bomb = gzip.compress(b"a,b\n1,2\n" + b"3,4\n" * (1 << 20), mtime=0)
    with pytest.raises(DpvizError, match="t holds more than 1 MiB of text"):
        draft(bomb, "t", most_bytes=1 << 20)
