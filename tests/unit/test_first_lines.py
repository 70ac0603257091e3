"""What the first lines of a file are: names, a unit or a person. Nothing shifts, nobody is lost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xlsxwriter

from dpviz.cli import main
from dpviz.core.seeding import generator
from dpviz.datasets import Table, read_raw, read_table

N = 40
ROWS = generator(0, "tests", "first lines").normal([50, 172, 24], [8, 7, 2], (N, 3)).round(1)


def lines(*, before: str = "", after: str = "", mark: str = ",") -> list[str]:
    """Return the rows as lines; braces in what stands around them hold their number."""
    return [
        before.format(i) + mark.join(map(str, row)) + after.format(i)
        for i, row in enumerate(ROWS.tolist(), 1)
    ]


def read(tmp_path: Path, *text: str) -> Table:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    found = read_table(path)
    assert isinstance(found, Table)
    return found


TRAILING = {
    "a comma after each row": ("A,B,C", lines(after=",")),
    "two commas, one of them named": ("A,B,C,", lines(after=",,")),
    "a semicolon after each row": ("A;B;C", lines(after=";", mark=";")),
    "an empty quoted cell after each row": ("A,B,C", lines(after=',""')),
    "a tab after each row": ("A\tB\tC", lines(after="\t", mark="\t")),
    "a blank behind the comma": ("A,B,C", lines(after=", ")),
    "a word for missing after each row": ("A,B,C", lines(after=",NA")),
}


@pytest.mark.parametrize("what", TRAILING)
def test_a_delimiter_that_ends_each_row_shifts_no_name(what: str, tmp_path: Path) -> None:
    names, rows = TRAILING[what]
    found = read(tmp_path, names, *rows)
    assert found.columns == ("A", "B", "C")
    np.testing.assert_array_equal(found.rows, ROWS)


def test_row_names_of_r_are_no_feature_and_said(tmp_path: Path) -> None:
    found = read(tmp_path, '"A" "B" "C"', *lines(before='"r{}" ', mark=" "))
    assert found.columns == ("A", "B", "C")
    np.testing.assert_array_equal(found.rows, ROWS)
    assert any("as R writes it" in note for note in found.notes)


def test_an_unnamed_last_column_of_a_sheet_shifts_no_name(tmp_path: Path) -> None:
    path, out = tmp_path / "t.xlsx", tmp_path / "s.json"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "w", "x", "y"])
        for i, row in enumerate(ROWS.tolist(), 1):
            sheet.write_row(i, 0, [i, *row, 2 * row[0]])
    assert main(["schema", str(path), "--bounds", "data", "--out", str(out)]) == 0
    drafted = {one["name"]: one for one in json.loads(out.read_text())["columns"]}
    assert list(drafted) == ["id", "w", "x", "y", "column 5"]
    for name, values in zip("wxy", ROWS.T, strict=True):
        assert drafted[name]["low"] <= values.min() < values.max() <= drafted[name]["high"]
    assert read_raw(path, name="t").columns[1].name == "w"


SPECTRUM = generator(1, "tests", "first lines").normal(0.3, 0.05, (N, 4)).round(4).tolist()
COUNTS = generator(2, "tests", "first lines").integers(1_000, 30_000, (N, 3)).tolist()


def table(first: str, rows: list[list[float]], key: str = "", mark: str = ",") -> list[str]:
    return [first, *(key.format(i) + mark.join(map(str, row)) for i, row in enumerate(rows))]


NUMERIC = {
    "wavenumbers": table("sample,1043.94,1045.87,1047.8,1049.73", SPECTRUM, "s{},"),
    "wavelengths in uneven steps": table("400,410.5,433,512", SPECTRUM),
    "wavenumbers that fall": table("4000,3998.5,3997,3990", SPECTRUM),
    "doses with a decimal comma": [
        line.replace(".", ",") for line in table("dish;0.5;1;10;100", SPECTRUM, "d{};", ";")
    ],
    "years over counts that reach them": table("district,2021,2022,2023", COUNTS, "d{},"),
    "years under no name": table(",1990,1995,2000", COUNTS, "place {},"),
    "a word beside years": table("age,2021,2022,2023", COUNTS, "4{},"),
    "masses in mixed steps": table("100.0762,150.1,151.3,900", SPECTRUM),
}


@pytest.mark.parametrize("what", NUMERIC)
def test_numbers_that_name_columns_are_no_person(what: str, tmp_path: Path) -> None:
    first, *rows = NUMERIC[what]
    found = read(tmp_path, first, *rows)
    assert len(found.rows) == N
    names = [name for name in first.replace(",", ".").replace(";", ".").split(".") if name]
    assert found.columns[-1].endswith(names[-1])
    assert any("read as column names" in note for note in found.notes)


HEADLESS = {
    "numbers that rise by chance": table(
        "Anna,1,2,3", [[3, 1, 2], [2, 5, 9], [7, 2, 1]] * 5, "B{},"
    ),
    "rows in order": [f"{i},{i + 0.5},{2 * i},{3 * i}" for i in range(1, 40)],
    "a person far from all": table("9,80,7", ROWS.tolist()),
    "years of birth and of death": table(
        "1901,1950,2", [[1900 + i % 60, 1960, i] for i in range(40)]
    ),
}


@pytest.mark.parametrize("what", HEADLESS)
def test_a_first_person_of_numbers_stays_one(what: str, tmp_path: Path) -> None:
    rows = HEADLESS[what]
    assert read_raw("\n".join(rows).encode(), name="t").shape[0] == len(rows)


WITHHELD = {
    "stars": "Northfield,**,**,**",
    "a word": "Northfield,suppressed,suppressed,suppressed",
    "not detected": "Northfield,ND,ND,ND",
    "a letter": "Northfield,x,x,x",
    "dots": "Northfield,..,..,..",
    "spreadsheet errors": "Northfield,#DIV/0!,#REF!,#VALUE!",
    "several words": "Northfield,withheld,n/k,unknown",
}


@pytest.mark.parametrize("what", WITHHELD)
def test_a_first_person_whose_values_are_withheld_is_no_line_of_units(what: str) -> None:
    rows = [WITHHELD[what], *lines(before="Town{},")]
    raw = read_raw("\n".join(["area,staff,wage,quotient", *rows]).encode(), name="t")
    assert raw.shape == (N + 1, 4)
    assert [column.missing for column in raw.columns] == [0, 1, 1, 1]
    assert [column.is_feature for column in raw.columns] == [False, True, True, True]
    assert any("counts as missing" in note for note in raw.notes)


UNKNOWN = ("Northfield,zz,zz,zz", "Northfield,<5,<5,<2", "Northfield,left,died,moved")


@pytest.mark.parametrize("first", UNKNOWN)
def test_a_first_person_of_other_words_is_kept_and_said(first: str) -> None:
    rows = [first, *lines(before="Town{},")]
    raw = read_raw("\n".join(["area,staff,wage,quotient", *rows]).encode(), name="t")
    assert raw.shape[0] == N + 1
    assert sum("cannot be read as a number" in note for note in raw.notes) == 3


UNITS = ("s,degC,hPa", "kg,cm,kg/m2", "[mm],(kg),%", "years,mmHg,mg/dl", "float,float,float")


@pytest.mark.parametrize("units", UNITS)
def test_units_under_the_names_are_left_out_and_said(units: str) -> None:
    raw = read_raw("\n".join(["a,b,c", units, *lines()]).encode(), name="t")
    assert raw.shape == (N, 3)
    assert all(column.is_feature for column in raw.columns)
    assert any("as units" in note for note in raw.notes)


def test_a_word_among_texts_is_a_text() -> None:
    rows = [f"{state},{i},{i * i}" for i, state in enumerate(["ND", "SD", "NY", "x"] * 10)]
    raw = read_raw("\n".join(["state,a,b", *rows]).encode(), name="t")
    assert (raw.columns[0].missing, raw.columns[0].categories) == (0, 4)


def test_two_lines_of_names_are_put_together() -> None:
    above = [",Before,,After", "Team,Asia,Total,Asia"]
    raw = read_raw("\n".join([*above, *lines(before="T{},")]).encode(), name="t")
    assert [column.name for column in raw.columns] == [
        "Team", "Before: Asia", "Before: Total", "After: Asia",
    ]  # fmt: skip
    assert raw.shape[0] == N


def test_a_name_that_is_also_a_value_costs_no_name() -> None:
    rows = [f"{line},{('Treatment', 'Control')[i % 2]}" for i, line in enumerate(lines())]
    raw = read_raw("\n".join(["age,height,bmi,Treatment", *rows]).encode(), name="t")
    assert [column.name for column in raw.columns] == ["age", "height", "bmi", "Treatment"]
