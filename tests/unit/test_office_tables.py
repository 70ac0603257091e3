"""What offices write around and inside numbers: read right, or said; nothing goes silently."""

from __future__ import annotations

import datetime
import io
from pathlib import Path
from typing import Any

import pytest

from dpviz.core.errors import InvalidSetting, InvalidTable, OtherEncoding
from dpviz.core.settings import Settings, names_listed
from dpviz.datasets import Kind, RawTable, ReadOptions, check_columns, read_raw
from dpviz.datasets.batches import FileBatches
from tests.unit.test_datasets_formats import workbook

N = 40


def with_first(cells: list[str], delimiter: str = ",", mark: str = ".") -> RawTable:
    """Return a table whose first column is written so, between two of plain numbers."""
    rows = [
        delimiter.join([cell, f"{j % 7}.5".replace(".", mark), f"{j % 5}.25".replace(".", mark)])
        for j, cell in enumerate(cells)
    ]
    return read_raw("\n".join([delimiter.join("abc"), *rows, ""]).encode(), name="t.csv")


@pytest.mark.parametrize(
    ("written", "delimiter", "mark"),
    [
        ("{:.2f}D+01", ",", "."),
        ("{:.3f}d-02", " ", "."),
        ("${:.2f}", ",", "."),
        ("{:.1f} €", ";", ","),
        ("£ {:.0f}", ",", "."),
        ("-{:.1f}€", ";", "."),
        ("{:.0f} ¥", "\t", "."),
    ],
)
def test_currencies_and_exponents_of_fortran_are_numbers(
    written: str, delimiter: str, mark: str
) -> None:
    numbers = [1.5 + j for j in range(N)]
    raw = with_first([written.format(x).replace(".", mark) for x in numbers], delimiter, mark)
    assert raw.columns[0].kind is Kind.NUMERIC
    digits = {"D": 10.0, "d": 0.01}
    scale = next((factor for letter, factor in digits.items() if letter in written), 1.0)
    places = int(written[written.index(":.") + 2])
    sign = -1 if written.startswith("-") else 1
    expected = [sign * scale * float(f"{x:.{places}f}") for x in numbers]
    assert raw.data["a"].to_pylist() == pytest.approx(expected, rel=1e-12)


def test_a_letter_that_is_no_currency_makes_a_text() -> None:
    assert with_first([f"{j}.5 X" for j in range(N)]).columns[0].kind is Kind.CATEGORICAL


@pytest.mark.parametrize("written", ["<{}.5", "> {}", "{}±2", "{}:30", "{} q", "{} - 9", "{}/4"])
def test_a_column_of_numbers_with_something_beside_them_is_said(written: str) -> None:
    raw = with_first([written.format(j % 9) for j in range(N)])
    assert not raw.columns[0].is_feature
    assert any(note.startswith("'a' counts as text") for note in raw.notes) or (
        raw.columns[0].kind is Kind.DATE
    )


def test_below_a_limit_of_detection_is_said() -> None:
    raw = with_first([f"<{j}.5" if j % 4 == 0 else f"{j}.25" for j in range(N)])
    (note,) = [note for note in raw.notes if "detection" in note]
    assert "10 cells" in note
    assert "<0.5" not in note


def test_points_that_may_be_thousands_beside_decimal_points_are_said() -> None:
    raw = with_first([f"{j + 1}.{500 + j}" for j in range(N)], ";")
    assert any("'a'" in note and "thousands" in note for note in raw.notes)
    assert not any("thousands" in note for note in with_first(["1.5"] * N, ";").notes)


@pytest.mark.parametrize("under", ["Source: own survey 2020\n", "\nSource: own survey\nn = 40\n"])
def test_lines_under_a_table_are_left_out_and_said(under: str) -> None:
    rows = [f"{j}.5,{j % 7},{j % 5}" for j in range(N)]
    raw = read_raw(("a,b,c\n" + "\n".join(rows) + "\n" + under).encode(), name="t.csv")
    assert raw.shape == (N, 3)
    assert any("under the table" in note for note in raw.notes)


def test_lines_of_delimiters_alone_are_nobody() -> None:
    rows = [f"{j}.5,{j % 7},{j % 5}" if j % 9 else ",," for j in range(N)]
    raw = read_raw(("a,b,c\n" + "\n".join(rows) + "\n").encode(), name="t.csv")
    assert raw.shape == (N - 5, 3)
    assert "5 empty lines were left out." in raw.notes


@pytest.mark.parametrize(
    ("unit", "delimiter", "mark"),
    [
        (" kg", ",", "."),
        ("mmHg", ",", "."),
        (" °C", ";", ","),
        (" mg/dl", "\t", "."),
        ("h", "|", ","),
    ],
)
def test_one_unit_behind_every_number_is_left_out(
    unit: str, delimiter: str, mark: str, tmp_path: Path
) -> None:
    cells = [f"{j}.5{unit}".replace(".", mark, 1) for j in range(N)]
    raw = with_first(cells, delimiter, mark)
    assert raw.data["a"].to_pylist() == [j + 0.5 for j in range(N)]
    assert any("unit behind each number" in note for note in raw.notes)
    # of two units neither is dropped, and no unit that only some cells have
    for other in (" g", ""):
        mixed = [cell.replace(unit, other) if j % 3 else cell for j, cell in enumerate(cells)]
        assert not with_first(mixed, delimiter, mark).columns[0].is_feature
    lines = [delimiter.join([cell, "1", str(j)]) for j, cell in enumerate(cells)]
    (tmp_path / "t.csv").write_text("\n".join([delimiter.join("abc"), *lines, ""]))
    block = next(iter(FileBatches(tmp_path / "t.csv").blocks()))[0]
    assert block[:, 0].tolist() == [j + 0.5 for j in range(N)]


def stated(cells: list[str], **reading: Any) -> RawTable:
    return with_first(cells).stated(ReadOptions.of(Settings(**reading)))


def test_what_was_guessed_is_one_line_a_column_and_each_can_be_changed() -> None:
    cells = [f"<{j}.5" if j % 4 == 0 else f"{j}.25" for j in range(N)]
    column = with_first(cells).columns[0]
    assert (column.read_as, column.numbers) == ("categorical", 30)
    assert column.first == ("<0.5", "1.25", "2.25")
    raw = stated(cells, read_as="a=number")
    assert raw.columns[0].kind is Kind.NUMERIC
    assert raw.columns[0].missing == 10
    assert "without 10 cells that hold none" in raw.columns[0].read_as
    assert raw.data["a"].to_pylist()[:4] == [None, 1.25, 2.25, 3.25]
    # a cell is nobody's to read but the holder's
    assert "<0.5" not in " ".join([*raw.notes, repr(raw), repr(column)])


def test_a_number_is_read_as_a_category_where_asked() -> None:
    raw = stated([str(1 + j % 3) for j in range(N)], read_as="a=category")
    assert (raw.columns[0].kind, raw.columns[0].categories) == (Kind.CATEGORICAL, 3)
    table = raw.to_table(ReadOptions(categorical="onehot"))
    assert table.columns == ("b", "c", "a=1", "a=2", "a=3")


@pytest.mark.parametrize("word", ["Unknown", "not asked", "k, A", "9 - no answer"])
def test_a_word_counts_as_missing_where_it_is_stated(word: str) -> None:
    cells = [f'"{word}"' if j % 5 == 0 else "AB"[j % 2] for j in range(N)]
    raw = stated(cells, codes=names_listed([word]))
    assert (raw.columns[0].categories, raw.columns[0].missing) == (2, 8)
    assert raw.columns[0].words == (word,)
    # what is left may be numbers
    cells = ["refused" if j % 5 == 0 else f"{j}.5" for j in range(N)]
    assert stated(cells, codes="REFUSED").columns[0].kind is Kind.NUMERIC


@pytest.mark.parametrize("wrong", ["a", "a=text", "=number", '"a=number'])
def test_what_columns_are_read_as_is_number_or_category(wrong: str) -> None:
    with pytest.raises(InvalidSetting, match="COLUMN=number"):
        Settings(read_as=wrong)
    with pytest.raises(InvalidTable, match="must be a column"):
        stated(["1", "2"] * 20, read_as="z=number")


ROWS: list[list[object]] = [[j + 0.5, float(j % 7), float(j % 5)] for j in range(N)]


def test_a_report_s_title_offset_and_footer_are_no_part_of_its_table() -> None:
    sheet: list[list[object]] = [
        ["Clinic report 2020"],
        ["For internal use"],
        [None],
        [None, "age", "height", "bmi"],
    ]
    sheet += [[None, *row] for row in ROWS] + [
        [None],
        [None, "Source: the register"],
        ["* preliminary"],
    ]
    raw = read_raw(workbook({"Report": sheet}), name="t.xlsx")
    assert [column.name for column in raw.columns] == ["age", "height", "bmi"]
    assert raw.shape == (N, 3)


def test_a_table_beside_the_table_costs_no_rows() -> None:
    sheet: list[list[object]] = [["age", "height", "bmi", None, "Summary", None]]
    beside: list[list[object]] = [["mean", 3.5], ["sd", 1.5]]
    sheet += [[*row, None, *(beside[j] if j < 2 else [])] for j, row in enumerate(ROWS)]
    raw = read_raw(workbook({"Data": sheet}), name="t.xlsx")
    assert [column.name for column in raw.columns] == ["age", "height", "bmi"]
    assert any("beside the table" in note for note in raw.notes)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("shift_jis", "体重"), ("gbk", "城市"), ("cp1251", "город"), ("cp1250", "věk")],
)
def test_other_encodings_are_read_where_they_are_chosen(encoding: str, name: str) -> None:
    rows = "\n".join(f"{j}.5,{j % 7}" for j in range(N))
    data = f"{name},b\n{rows}\n".encode(encoding)
    with pytest.raises(OtherEncoding, match=encoding):
        read_raw(data, name="t.csv")
    assert read_raw(data, name="t.csv", encoding=encoding).columns[0].name == name


@pytest.mark.parametrize(
    ("at", "more"), [([0], ","), ([3, 7], ",,"), ([39], ", ,"), ([1, 2, 3], ',""'), ([20], ",")]
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_lines_that_end_in_more_delimiters_are_whole_rows(
    at: list[int], more: str, delimiter: str, tmp_path: Path
) -> None:
    rows = [f'{j}.5,"{j % 7}",{j % 5}' + (more if j in at else "") for j in range(N)]
    data = "\n".join(["a,b,c", *rows, ""]).replace(",", delimiter).encode()
    raw = read_raw(data, name="t.csv")
    assert raw.data.to_pydict() == {
        "a": [j + 0.5 for j in range(N)],
        "b": [j % 7 for j in range(N)],
        "c": [j % 5 for j in range(N)],
    }
    # runs of blanks are one delimiter, and none at the end of a line
    assert any("more delimiters" in note for note in raw.notes) or delimiter == "\t"
    (tmp_path / "t.csv").write_bytes(data)
    assert next(iter(FileBatches(tmp_path / "t.csv").blocks()))[0].shape == (N, 3)
    # a cell that is not blank is nobody's to drop
    with pytest.raises(InvalidTable, match="the same number of cells on every line"):
        read_raw(data.replace(b"\n2.5", f"\n2.5{delimiter}8".encode()), name="t.csv")


@pytest.mark.parametrize(
    ("encoding", "stray"),
    [("cp1252", b"\x81"), ("cp1250", b"\x83"), ("cp1251", b"\x98"), ("shift_jis", b"\xfd"),
     ("gbk", b"\xff"), ("cp1252", b"\x8d\xc3\xa9")],
)  # fmt: skip
def test_a_stray_byte_costs_a_letter_and_not_the_table(encoding: str, stray: bytes) -> None:
    rows = [f"{j}.5,{j % 7},w".encode() + (stray if j % 9 == 0 else b"") for j in range(N)]
    raw = read_raw(b"\n".join([b"a,b,c", *rows, b""]), name="t.csv", encoding=encoding)
    assert raw.data["a"].to_pylist() == [j + 0.5 for j in range(N)]
    assert raw.data["b"].to_pylist() == [j % 7 for j in range(N)]
    assert any("5 bytes that mean no letter" in note for note in raw.notes)


def test_a_hospital_s_workbook_is_read_right_at_the_first_try() -> None:
    sheet: list[list[object]] = [
        ["Clinic, laboratory 2024"],
        [None],
        [None, None, "Admission", None, "Discharge", None, None],
        ["Patient Nr", "Admitted", "Weight", "Lead", "Weight", "Lead", "Remarks"],
        [None, None, "kg", "mg/dl", "kg", "mg/dl", None],
    ]
    remarks = ["in pain since Monday, on the left", "none", "again in two weeks, very restless"]
    for j in range(60):
        comma = f"{1 + j / 50:.2f}".replace(".", ",")
        day = str(datetime.date(2024, 1, 1) + datetime.timedelta(days=3 * j))
        weight = -999.0 if j % 11 == 3 else 70.5 + j % 13
        sheet.append(
            [70_000 + 137 * (j // 3), day, 60.5 + j % 17, comma, weight, 1 + j / 40, remarks[j % 3]]
        )
    raw = read_raw(workbook({"Labor": sheet, "Legend": [["Lead: serum"]]}), name="t.xlsx")
    kinds = {column.name: column.kind.value for column in raw.columns}
    assert kinds == {
        "Patient Nr": "numeric", "Admitted": "date", "Admission: Weight": "numeric",
        "Admission: Lead": "numeric", "Discharge: Weight": "numeric", "Discharge: Lead": "numeric",
        "Remarks": "free text",
    }  # fmt: skip
    assert raw.shape[0] == 60
    assert raw.data["Admission: Lead"].to_pylist()[:2] == [1.0, 1.02]
    checks = {check.name: check for check in check_columns(raw)}
    assert checks["Discharge: Weight"].code == -999
    assert [name for name, check in checks.items() if check.use == "drop"] == [
        "Patient Nr", "Admitted", "Remarks"
    ]  # fmt: skip


def test_hidden_rows_are_read_and_said() -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra dpviz[excel]")
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet = book.add_worksheet("Data")
        for i, row in enumerate([["a", "b", "c"], *ROWS]):
            sheet.write_row(i, 0, row)
        for i in (5, 6, 7):
            sheet.set_row(i, None, None, {"hidden": True})
    raw = read_raw(out.getvalue(), name="t.xlsx")
    assert raw.shape[0] == N
    assert "3 hidden rows were read like all others." in raw.notes
