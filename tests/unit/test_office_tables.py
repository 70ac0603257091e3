"""Marks that offices write in and around numbers are read right or reported."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from dpviz.core.errors import InvalidSetting, InvalidTable
from dpviz.core.settings import Settings, names_listed
from dpviz.datasets import Kind, RawTable, ReadOptions, check_columns, read_raw
from dpviz.datasets.batches import FileBatches
from tests.unit.test_datasets_formats import workbook

N = 40


def with_first(cells: list[str], delimiter: str = ",", mark: str = ".") -> RawTable:
    """Return a table with these texts as its first column, before two columns of numbers."""
    rows = [
        delimiter.join([cell, f"{j % 7}.5".replace(".", mark), f"{j % 5}.25".replace(".", mark)])
        for j, cell in enumerate(cells)
    ]
    return read_raw("\n".join([delimiter.join("abc"), *rows, ""]).encode(), name="t.csv")


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
    # The unit is not removed from a column with two units, or with the unit in some cells only.
    for other in (" g", ""):
        texts = [cell.replace(unit, other) if j % 3 else cell for j, cell in enumerate(cells)]
        assert not with_first(texts, delimiter, mark).columns[0].is_feature
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
    # No note may show a cell, because only the table's owner may read the data.
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
    # The cells without this code may be numbers.
    cells = ["refused" if j % 5 == 0 else f"{j}.5" for j in range(N)]
    assert stated(cells, codes="REFUSED").columns[0].kind is Kind.NUMERIC


@pytest.mark.parametrize("wrong", ["a", "a=text", "=number", '"a=number'])
def test_what_columns_are_read_as_is_number_or_category(wrong: str) -> None:
    with pytest.raises(InvalidSetting, match="COLUMN=number"):
        Settings(read_as=wrong)
    with pytest.raises(InvalidTable, match="must be a column"):
        stated(["1", "2"] * 20, read_as="z=number")


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
    # Several blanks count as one delimiter, and blanks at the end of a line count as none.
    assert any("more delimiters" in note for note in raw.notes) or delimiter == "\t"
    (tmp_path / "t.csv").write_bytes(data)
    assert next(iter(FileBatches(tmp_path / "t.csv").blocks()))[0].shape == (N, 3)
    # A non-blank cell at the end of a line must not be dropped.
    with pytest.raises(InvalidTable, match="the same number of cells on every line"):
        read_raw(data.replace(b"\n2.5", f"\n2.5{delimiter}8".encode()), name="t.csv")


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
