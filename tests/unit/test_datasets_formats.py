"""Office formats: each gives the same table, read in memory and in batches."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyreadstat
import pytest
import xlsxwriter

from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.datasets import read_raw
from dpviz.datasets.batches import FileBatches
from dpviz.datasets.raw import RawTable
from dpviz.datasets.sheet import sheet_text
from dpviz.datasets.table import ReadOptions
from dpviz.releasing.records import open_records
from dpviz.releasing.schema import Column, Schema
from tests.hostile import old_workbook

ROWS = [(1.5, 70.25, "ja"), (2.0, 81.0, "nein"), (-999.0, 64.5, "ja"), (4.0, 90.0, "nein")]
NAMES = ("Größe", "Gewicht", "raucht")
NUMBERS = np.array([row[:2] for row in ROWS])


def workbook(sheets: dict[str, list[list[object]]]) -> bytes:
    """Return an xlsx file of sheets, written directly from ECMA-376 without a library."""

    def cell(j: int, i: int, value: object) -> str:
        place = f"{chr(65 + j)}{i + 1}"
        if value is None:
            return ""
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c r="{place}"><v>{value!r}</v></c>'

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    items = "".join(
        f'<sheet name="{escape(name)}" sheetId="{j}" r:id="rId{j}"/>'
        for j, name in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="rId{j}" Type="{office}/worksheet" Target="worksheets/sheet{j}.xml"/>'
        for j in range(1, len(sheets) + 1)
    )
    files = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="r" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{items}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{links}</Relationships>',
    }
    for j, rows in enumerate(sheets.values(), 1):
        lines = "".join(
            f'<row r="{i + 1}">{"".join(cell(k, i, value) for k, value in enumerate(row))}</row>'
            for i, row in enumerate(rows)
        )
        files[f"xl/worksheets/sheet{j}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
        )
    return zipped({name: text.encode() for name, text in files.items()})


def zipped(members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


TEXT = "\n".join([";".join(NAMES), *(f"{a};{b};{c}" for a, b, c in ROWS)])
FRAME = pd.DataFrame(ROWS, columns=list(NAMES))
SHEET: list[list[object]] = [list(NAMES), *(list(row) for row in ROWS)]
BOOK = workbook({"Legende": [["Laborwerte"]], "Labor": SHEET, "alt": SHEET[:3]})


def stata() -> bytes:
    codes = FRAME.assign(raucht=[1, 0, 1, 0])
    sink = io.BytesIO()
    codes.to_stata(
        sink, write_index=False, version=118, value_labels={"raucht": {0: "nein", 1: "ja"}}
    )
    return sink.getvalue()


def spss(tmp_path: Path) -> bytes:
    path = tmp_path / "t.sav"
    codes = FRAME.assign(raucht=[1, 0, 1, 0])
    pyreadstat.write_sav(codes, path, variable_value_labels={"raucht": {0: "nein", 1: "ja"}})
    return path.read_bytes()


def open_document() -> bytes:
    """Return a sheet in LibreOffice's form, written directly from OpenDocument 1.3."""
    urn = "urn:oasis:names:tc:opendocument:xmlns"

    def cell(value: object) -> str:
        if isinstance(value, str):
            return (
                '<table:table-cell office:value-type="string">'
                f"<text:p>{escape(value)}</text:p></table:table-cell>"
            )
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'

    rows = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in SHEET)
    content = (
        f'<office:document-content xmlns:office="{urn}:office:1.0" xmlns:table="{urn}:table:1.0" '
        f'xmlns:text="{urn}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Labor">{rows}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    manifest = b'<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    members = {"META-INF/manifest.xml": manifest, "settings.xml": b"<a/>", "styles.xml": b"<a/>"}
    members["content.xml"] = content.encode()
    return zipped({"mimetype": kind, **members}, zipfile.ZIP_STORED)


MADE: dict[str, Callable[[Path], bytes]] = {
    "t.ods": lambda _: open_document(),
    "t.xlsx": lambda _: BOOK,
    "t.zip": lambda _: zipped({"daten/t.csv": TEXT.encode(), "__MACOSX/daten/._t.csv": b"x"}),
    "workbook.zip": lambda _: zipped({"t.xlsx": BOOK}),
    "t.dta": lambda _: stata(),
    "t.sav": spss,
    "t.json": lambda _: FRAME.to_json(orient="records").encode(),
    "t.jsonl": lambda _: FRAME.to_json(orient="records", lines=True).encode(),
}


def same(raw: RawTable) -> None:
    table = raw.to_table(ReadOptions(label="raucht"))
    assert table.columns == NAMES[:2]
    np.testing.assert_array_equal(table.rows, NUMBERS)
    assert table.labels is not None
    assert table.labels.tolist() == [row[2] for row in ROWS]


@pytest.mark.parametrize("name", MADE)
def test_each_format_is_the_same_table(name: str, tmp_path: Path) -> None:
    data = MADE[name](tmp_path)
    same(read_raw(data, name=name))
    path = tmp_path / f"x{name}"
    path.write_bytes(data)
    batches = FileBatches(path, ReadOptions(label="raucht"))
    assert batches.columns == NAMES[:2]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in batches.blocks()]), NUMBERS)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_an_encoding_is_offered_and_then_read(encoding: str) -> None:
    data = TEXT.encode(encoding)
    with pytest.raises(InvalidTable, match=f"--encoding {encoding}") as error:
        read_raw(data, name="t.csv")
    assert ("'Größe'" in str(error.value)) == (encoding == "cp1252")
    assert not {"ja", "70.25", "-999"} & set(str(error.value).replace(",", " ").split())
    same(read_raw(data, name="t.csv", reading=ReadOptions(encoding=encoding)))
    odd = TEXT.encode()[:-1] + b"x" * (len(TEXT.encode()) % 2)
    with pytest.raises(InvalidTable, match="not UTF-16 text"):
        read_raw(odd, name="t", reading=ReadOptions(encoding="utf-16"))


def test_a_sheet_is_chosen_and_the_others_are_named() -> None:
    raw = read_raw(BOOK, name="t.xlsx")
    assert raw.sheets == ("Legende", "Labor", "alt")
    assert raw.sheet == "Labor"
    assert raw.notes[0] == "Sheet 'Labor' was read; there are also 'Legende' and 'alt'."
    assert read_raw(BOOK, name="t.xlsx", reading=ReadOptions(sheet="alt")).shape == (2, 3)
    headless = read_raw(BOOK, name="t.xlsx", reading=ReadOptions(header="no", sheet="alt"))
    assert headless.shape == (3, 3)
    with pytest.raises(InvalidSetting, match="delimiter must be auto for t"):
        read_raw(BOOK, name="t.xlsx", reading=ReadOptions(delimiter="comma"))
    with pytest.raises(InvalidTable, match="sheet must be one of"):
        read_raw(BOOK, name="t.xlsx", reading=ReadOptions(sheet="neu"))
    with pytest.raises(InvalidTable, match="not a workbook"):
        read_raw(TEXT.encode(), name="t.csv", reading=ReadOptions(sheet="Labor"))


SMALL = {(row, column): row + column / 4 for row in range(3) for column in range(2)}


def test_an_old_workbook_is_read() -> None:
    raw = read_raw(old_workbook(SMALL), name="t.xls")
    assert (raw.sheet, raw.shape) == ("Labor", (3, 2))
    assert raw.data["column 2"].to_pylist() == [0.25, 1.25, 2.25]
    with pytest.raises(InvalidTable, match=r"^t\.xls is protected by a password; save it without"):
        read_raw(old_workbook(SMALL, called="EncryptedPackage"), name="t.xls")


def test_a_code_without_a_label_stays_a_number() -> None:
    sink = io.BytesIO()
    pd.DataFrame({"a": [1.0, 2, 3], "b": [1, 5, 9]}).to_stata(
        sink, write_index=False, value_labels={"b": {9: "refused"}}
    )
    raw = read_raw(sink.getvalue(), name="t.dta")
    assert raw.data["b"].to_pylist() == [1, 5, 9]
    assert raw.notes[0].startswith("Some numbers have no value label in 'b'")


NAMELESS = "damaged" if sys.version_info < (3, 13) else "one column only"
"""Python 3.13 and later reads a member with an empty name."""
REFUSED = {
    "two tables": (zipped({"a.csv": b"a,b\n1,2\n", "b.csv": b"a,b\n"}), "must hold one table"),
    "zip in zip": (zipped({"a.zip": zipped({"a.csv": b"a"})}), "a zip inside a zip"),
    "damaged LZMA": (zipped({"a.csv": b"secret"}, zipfile.ZIP_LZMA).replace(b"]", b"x"), "damaged"),
    "a member without a name": (zipped({"q": b"secret"}).replace(b"q", b"\0"), NAMELESS),
    "document": (zipped({"[Content_Types].xml": b"", "word/document.xml": b""}), "xlsx or CSV"),
    "half a workbook": (BOOK[: len(BOOK) // 2], "damaged"),
    "not a workbook": (b"\xd0\xcf\x11\xe0" + b"secret" * 200, "save it as CSV"),
    "half an SPSS file": (b"$FL2@(#) secret" + b"\0" * 50, "starts like an SPSS file"),
    "half a Stata file": (stata()[:300], "starts like a Stata file"),
    "JSON of one": (b'{"a": {"secret": 1}}\n3', "JSON records"),
    "a name twice": (b'[{"secret": 1, "secret": 2}]', "a name occurs twice"),
    "a name twice in a line": (b'{"a": 1}\n{"secret": 1, "secret": 2}', "a name occurs twice"),
    "no JSON": (b'[{"secret', "starts like JSON"),
    "deep JSON": (b'[{"a":' + b"[" * 100_000, "starts like JSON"),
    "a short line": (b"a,b,c\n1,2,secret\n4,5\n", "line 3 has 2"),
    "one column": (b"a\nsecret\n1\n", "one column only"),
    "an R object": (b"X\n\0\0\0\3", "write.csv"),
    "a database": (b"SQLite format 3\0", "export one table"),
    "an Access database": (b"\0\1\0\0Standard ACE DB\0", "export one table"),
    "SAS": (bytes(12) + b"\xc2\xea\x81\x60" + bytes(20), "proc export"),
    "an online sheet": (b"<!DOCTYPE html><secret>", "File, Download, CSV"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_sentence(case: str) -> None:
    data, words = REFUSED[case]
    with pytest.raises(InvalidTable) as error:
        read_raw(data, name="t")
    message = str(error.value)
    assert words in message
    assert "\n" not in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "held", ["[]", '"secret"', "{secret", "secret\n1\n2\n", "[1,2,3]", '[[1,2],\n[3,"secret"]]']
)
def test_what_is_called_json_and_has_no_records_is_told_so(held: str) -> None:
    """A file named JSON without records is reported as such, not as a text of one column."""
    with pytest.raises(InvalidTable, match="is named JSON and holds no records, ") as error:
        read_raw(held.encode(), name="t.JSON")
    assert "secret" not in str(error.value)


def test_json_is_read_by_its_records() -> None:
    records = [{"a": 1, "b": True, "c": [1]}, {"b": False, "a": 2.5}, {"a": None, "b": True}]
    raw = read_raw(json.dumps(records).encode(), name="t.json")
    assert raw.data["a"].to_pylist() == [1, 2.5, None]
    assert raw.notes[0] == "Left out, lists or records inside records: 'c'."


def test_each_cell_of_a_sheet_becomes_text_by_itself(tmp_path: Path) -> None:
    """Other rows, empty rows and formats do not change a cell's text."""
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("Labor")
        of = {what: book.add_format({"num_format": what}) for what in ("dd.mm.yyyy", "0 %", "0.0")}
        sheet.write_row("B2", ["a", "b", "c"])
        sheet.write_row("B3", [1234.5, 0.1 + 0.2, -0.0], of["0.0"])
        sheet.write_number("B4", 0.123, of["0 %"])
        sheet.write_datetime("C4", datetime(2024, 1, 31), of["dd.mm.yyyy"])
        sheet.write_boolean("D4", True)
        sheet.merge_range("B5:B6", 7.0)
        sheet.write_formula("C5", "=AVERAGE(B:B)", None, 0.5)
        sheet.write_formula("D5", "=1/0", None, "#DIV/0!")
        sheet.write_array_formula("C6:C7", "{=B3:B4*2}", None, 2.0)
        sheet.write_string("D7", ' 1,5\r\n"x"')
        sheet.write_row("B9", [1e22, 3])
    text = sheet_text(path, "t.xlsx")
    assert text.getvalue().decode().splitlines() == [
        "", ",a,b,c", ",1234.5,0.3,0", ",0.123,2024-01-31,true", ",7", "", ',,,"1,5 ""x"""', "",
        ",1e+22,3",
    ]  # fmt: skip
    assert text.formulas == 4
    with pytest.raises(InvalidTable, match=r"'Legende', 'Labor' and 'alt' \(--sheet"):
        sheet_text(BOOK, "t.xlsx")
    with pytest.raises(InvalidTable, match="sheet must be one of"):
        sheet_text(BOOK, "t.xlsx", "Blatt")
    with pytest.raises(InvalidTable, match="not an xlsx workbook"):
        sheet_text(TEXT.encode(), "t.xlsx", "Labor")
    with pytest.raises(InvalidTable, match="cannot be read as one"):
        sheet_text(zipped({"xl/workbook.xml": b"<"}), "t.xlsx", "Labor")


@pytest.mark.parametrize("name", [name for name in MADE if "json" not in name])
def test_a_release_takes_none_of_them_and_says_what_to_save(name: str, tmp_path: Path) -> None:
    schema = Schema(tuple(Column(column, 0.0, 1.0) for column in NAMES[:2]))
    with pytest.raises(InvalidTable, match=r"which dpviz cannot read; save the table as CSV"):
        open_records(MADE[name](tmp_path), schema)
