"""Files as people save them: each kind is read correctly, or its reading is reported.

A case is a small text of one kind with its right answer. No cell shifts, no person is lost, and no
identifier becomes a feature without a note.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xlsxwriter

from dpviz.cli import main
from dpviz.core.errors import OtherEncoding
from dpviz.core.seeding import generator
from dpviz.datasets import check_columns, read_raw
from dpviz.datasets.check import advised
from dpviz.datasets.table import ReadOptions
from tests.unit.test_datasets_formats import workbook

N = 40
ABC = ("A", "B", "C")
ROWS = generator(0, "tests", "cases").normal([50, 172, 24], [8, 7, 2], (N, 3)).round(1)
SPECTRUM = generator(1, "tests", "cases").normal(0.3, 0.05, (N, 4)).round(4)
COUNTS = generator(2, "tests", "cases").integers(1_000, 30_000, (N, 3))
TAIL = ROWS[:, 1:]


def lines(
    first: str = "A,B,C", rows: Any = ROWS, *, before: str = "", after: str = "", mark: str = ","
) -> list[str]:
    """Return names and rows as lines; braces in the text around a row stand for its number."""
    texts = (mark.join(map(str, row)) for row in rows.tolist())
    body = [f"{before.format(i)}{row}{after.format(i)}" for i, row in enumerate(texts, 1)]
    return [first, *body] if first else body


def comma(text: list[str]) -> list[str]:
    """Return lines with decimal commas."""
    return [line.replace(".", ",") for line in text]


def cells(written: list[str], names: str = "a,B,C", mark: str = ",") -> list[str]:
    """Return a table with these texts as its first column, before two columns of numbers."""
    rows = [
        mark.join([cell, *map(str, two)]) for cell, two in zip(written, TAIL.tolist(), strict=True)
    ]
    return [names.replace(",", mark), *rows]


@dataclass(frozen=True)
class Case:
    """A file and its expected reading: features, rows and the required note."""

    text: list[str] | bytes
    features: tuple[str, ...] = ABC
    rows: int = N
    said: str = ""
    missing: Mapping[str, int] = field(default_factory=dict)
    values: Any = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)


def number(written: list[str], said: str = "", mark: str = ",", **more: Any) -> Case:
    """Return a case whose first column holds numbers as text."""
    return Case(cells(written, mark=mark), ("a", "B", "C"), said=said, **more)


def text(written: list[str], said: str, kind: str = "categorical") -> Case:
    """Return a case whose first column stays text, with a word of its note."""
    return Case(cells(written), ("B", "C"), said=said, kinds={"a": kind})


def one_in(every: int, word: str) -> list[str]:
    """Return numbers with a word at regular intervals."""
    return [word if j % every == 1 else f"{j}.5" for j in range(N)]


def book(name: str = "Data", *, rows: Any = ROWS, **options: Any) -> bytes:
    """Return a workbook with one sheet, cell by cell as xlsxwriter writes it."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, options.pop("how", {})) as sheets_of:
        if hidden := options.pop("hidden_sheet", None):
            sheets_of.add_worksheet(hidden).write_column(0, 0, ["old", 1, 2])
            sheets_of.worksheets()[0].hide()
        sheet = sheets_of.add_worksheet(name)
        sheet.activate()
        sheet.set_first_sheet()
        style = sheets_of.add_format({"num_format": "dd.mm.yyyy"})
        for i, row in enumerate([ABC, *rows]):
            for j, cell in enumerate(row):
                if isinstance(cell, date):
                    sheet.write_datetime(i, j, cell, style)
                elif isinstance(cell, str) and cell.startswith("="):
                    sheet.write_formula(i, j, cell, None, cell[1:])
                else:
                    sheet.write(i, j, cell if isinstance(cell, str) else float(cell))
        for i in options.pop("hidden", ()):
            sheet.set_row(i, None, None, {"hidden": True})
    return out.getvalue()


SAME = {"values": ROWS}
GROUPS = ("Before: Asia", "Before: Total", "After: Asia")
VISITS = ("Visit 1: age", "Visit 1: bmi", "Visit 2: age")
SHEET: list[list[object]] = [[*ABC], *ROWS.tolist()]
DAYS = [date(2020, 1, 1) + timedelta(days=5 * j) for j in range(N)]
REPEATED = [1_000_000 + 977 * (j - j % 16 // 15) for j in range(N)]
GENES = generator(3, "tests", "cases").normal(5, 1, (60, 4)).round(2)
CITIES = {"shift_jis": "体重", "gbk": "城市", "cp1251": "город", "cp1250": "věk", "cp1252": "Größe"}

CASES: dict[str, Case] = {
    # These cases test first lines: a line of column names, of units, or of a person's values.
    "a delimiter after each row": Case(lines(after=","), **SAME),
    "two delimiters, one of them named": Case(lines("A,B,C,", after=",,"), **SAME),
    "a semicolon after each row": Case(lines("A;B;C", after=";", mark=";"), **SAME),
    "an empty quoted cell after each row": Case(lines(after=',""'), **SAME),
    "a tab after each row": Case(lines("A\tB\tC", after="\t", mark="\t"), **SAME),
    "a blank behind the last comma": Case(lines(after=", "), **SAME),
    "a word for missing after each row": Case(lines(after=",NA"), **SAME),
    "one row with a delimiter more": Case(
        [row + "," * (i == 5) for i, row in enumerate(lines())], said="more delimiters", **SAME
    ),
    "row names of R": Case(lines('"A" "B" "C"', before='"r{}" ', mark=" "), said="as R", **SAME),
    "row numbers of R": Case(lines('"A" "B" "C"', before='"{}" ', mark=" "), said="as R", **SAME),
    "a name that is a value too": Case(
        [f"{row},{'Treatment' if j % 2 == 0 else 'Control'}" for j, row in enumerate(lines())],
        kinds={"Treatment": "categorical"},
        **SAME,
    ),
    "two lines of names": Case(
        [",Before,,After", *lines("Team,Asia,Total,Asia", before="T{},")], GROUPS, said="two lines"
    ),
    "merged heads of a workbook": Case(
        workbook({"D": [["Visit 1", None, "Visit 2"], ["age", "bmi", "age"], *SHEET[1:]]}), VISITS
    ),
    "a mark and quotes around all": Case(
        [
            mark + f'"{row}"'.replace(",", '","')
            for mark, row in zip(["\ufeff", *[""] * N], lines(), strict=True)
        ],
        **SAME,
    ),
    "the same name three times": Case(lines("x,x,x"), ("x", "x (2)", "x (3)"), said="distinct"),
    "comments, the last one the names": Case(["# a logger", "# station 4", *lines("#A,B,C")]),
    "an empty line after ten rows": Case([*lines()[:11], "", "", *lines()[11:]], said="", **SAME),
    "rows of delimiters alone": Case([*lines()[:9], ",,", *lines()[9:]], said="1 empty line"),
    "a source under the table": Case([*lines(), "Source: own survey"], said="under the table"),
    "a sum under the table": Case(
        [*lines("who,B,C", TAIL, before="n{},"), "Total,6880.0,960.0"], ("B", "C"), said="sums up"
    ),
    # These cases have several lines above or below the table.
    **{
        f"lines above: {lines_above[0]}": Case([*lines_above, *lines()], said="title", **SAME)
        for lines_above in (
            ["Instrument:,Logger 7", "Serial:,12345", ""],
            ["Operator:,Miller,", "Serial:,12345,", ",,"],
            ['"Report, made in May, by the clinic"'],
            ["Report by the clinic, made in May", ""],
            ["// exported, today", "// by hand"],
            ["% by a program", "% of 2 files"],
            ["# a, b, c, made by me", "# units: m, kg, s"],
        )
    },
    "questions under the names": Case(
        ["A,B,C", "How old?,How tall?,How heavy?", "id 1,id 2,id 3", *lines("")], said="2 lines"
    ),
    "heads that repeat": Case(
        ["Before,Before,After", "Asia,Total,Asia", *lines("")], GROUPS, said="two lines", **SAME
    ),
    **{
        f"a line of dashes: {dashes}": Case([names, dashes, *lines("", mark=mark)], **SAME)
        for names, dashes, mark in (
            ("A | B | C", "---+---+---", " | "),
            ("A|B|C", ":--|--:|---", "|"),
            ("A  B  C", "----- ----- -----", "  "),
        )
    },
    "the names once more inside": Case(
        [*lines()[:11], "A,B,C", *lines()[11:]], said="once more", **SAME
    ),
    **{
        f"{under[0].split(',')[0]} under the table": Case(
            [*lines("who,B,C", TAIL, before="n{},"), *under], ("B", "C"), said=said
        )
        for under, said in (
            (["Mean,171.9,24.0", "SD,7.1,2.0"], "2 lines sum up"),
            (["", "Min,150.9,20.0", "Max,180,27", "Mean,170.1,24.0"], "3 lines sum up"),
            (["Moyenne,171.9,24.0"], "sums up"),
            (["Итого,171.9,24.0"], "sums up"),
            (["合計,171.9,24.0"], "sums up"),
            ([f",{TAIL[:, 0].sum():.1f},{TAIL[:, 1].sum():.1f}"], "sums up"),
            (["Legend: 1 = male, 2 = female", "* p < 0.05"], "2 lines under"),
            ([f"({N} rows)"], "1 line under"),
        )
    },
    "a last person called SD": Case(
        [*lines("who,B,C", TAIL, before="SD{},")[:-1], "SD,1.5,2.5"],
        ("B", "C"),
    ),
    **{
        f"blanks before a quote: {names}": Case(
            [names, *lines("", TAIL, before=before)], ("B", "C"), kinds={"A": "categorical"}
        )
        for names, before in (
            ('n, "A", B, C', 'k{0}, "Smith, J{0}", '),
            ('"n", "A", "B", "C"', '"k{0}", "Smith, J{0}", '),
        )
    },
    # These cases test a first line of numbers: some are column names, some are a person's values.
    "wavenumbers": Case(
        lines("sample,1043.94,1045.87,1047.8,1049.73", SPECTRUM, before="s{},"),
        ("1043.94", "1045.87", "1047.8", "1049.73"),
        said="read as column names",
    ),
    "wavelengths in uneven steps": Case(
        lines("400,410.5,433,512", SPECTRUM), ("400", "410.5", "433", "512"), said="column names"
    ),
    "wavenumbers that fall": Case(
        lines("4000,3998.5,3997,3990", SPECTRUM), ("4000", "3998.5", "3997", "3990")
    ),
    "doses with a decimal comma": Case(
        comma(lines("dish;0.5;1;10;100", SPECTRUM, before="d{};", mark=";")),
        ("0,5", "1", "10", "100"),
    ),
    "years over counts that reach them": Case(
        lines("district,2021,2022,2023", COUNTS, before="d{},"), ("2021", "2022", "2023")
    ),
    "years under no name": Case(
        lines(",1990,1995,2000", COUNTS, before="place {},"), ("1990", "1995", "2000")
    ),
    "rows in order without names": Case(
        [f"{i},{i + 0.5},{i * 1.25},{i / 8}" for i in range(1, N + 1)],
        ("column 2", "column 3", "column 4"),
        said="no line of column names",
    ),
    "a person far from all, without names": Case(
        ["9,80,7", *lines("")], ("column 1", "column 2", "column 3"), N + 1
    ),
    "years of birth and of death": Case(
        ["1901,1950,2", *(f"{1900 + i % 60},1960,{i % 9}" for i in range(N))],
        ("column 1", "column 2", "column 3"),
        N + 1,
    ),
    # In these cases the first person has no values.
    **{
        f"a first person with {word}": Case(
            ["area,A,B,C", f"Northfield,{word},{word},{word}", *lines("", before="Town{},")],
            ABC,
            N + 1,
            said="counts as missing",
            missing=dict.fromkeys(ABC, 1),
        )
        for word in ("**", "suppressed", "ND", "x", "..", "#DIV/0!", "n/k")
    },
    **{
        f"a first person with {word}": Case(
            ["area,A,B,C", f"Northfield,{word}", *lines("", before="Town{},")],
            (),
            N + 1,
            said="cannot be read as a number",
        )
        for word in ("zz,zz,zz", "<5,<5,<2", "left,died,moved")
    },
    **{
        f"units {units}": Case([*lines()[:1], units, *lines("")], said="as units", **SAME)
        for units in (
            "s,degC,hPa",
            "kg,cm,kg/m2",
            "[mm],(kg),%",
            "years,mmHg,mg/dl",
            "float,float,float",
        )
    },
    # These cases test different ways of writing numbers.
    "exponents of Fortran": number(
        [f"{j}.25D+01" for j in range(N)], values=10 * np.arange(N) + 2.5
    ),
    "exponents": number([f"{j}.5e-3" for j in range(N)], values=(np.arange(N) + 0.5) / 1000),
    **{
        f"less than nothing as {form.format(2)}": number(
            [form.format(j) for j in range(N)], values=-np.arange(N) - 0.5
        )
        for form in ("\u2212{}.5", "\u2013{}.5", "{}.50-", "-${}.5", "$-{}.5", "$({}.5)", "(${}.5)")
    },
    **{
        f"money as {form.format(2)}": number(
            [form.format(j) for j in range(N)], "currency", values=np.arange(N) + 0.5
        )
        for form in (
            "CHF {}.5",
            "US${}.5",
            "Rs. {}.50",
            "₹{}.50",
            "{}.5 kr",
            "{}.5\u00a0zł",
            "{}.5円",
        )
    },
    "thousands of India": number(
        [f'"{j + 1},23,456.5"' for j in range(N)], values=1e5 * np.arange(N) + 123456.5
    ),
    "per cent behind a narrow blank": number(
        [f"{j},5\u202f%" for j in range(N)], "percent signs", ";", values=np.arange(N) + 0.5
    ),
    "decimal commas": Case(comma(lines("A;B;C", mark=";")), said="decimal marks", **SAME),
    "blanks between thousands": number(
        [f"{j + 1}\u00a0850.5" for j in range(N)],
        "between thousands",
        ";",
        values=1000.0 * np.arange(N) + 1850.5,
    ),
    "dollars and thousands": number(
        [f'"${j + 1},850.50"' for j in range(N)], "currency", values=1000 * np.arange(N) + 1850.5
    ),
    "euros behind the number": number([f"{j}.5 €" for j in range(N)], "currency", ";"),
    "pounds": number([f"£ {j % 9}" for j in range(N)], "currency", values=np.arange(N) % 9),
    "brackets for less than nothing": number(
        [f"({j}.5)" for j in range(N)], "brackets", values=-np.arange(N) - 0.5
    ),
    "per cent": number([f"{j}.5%" for j in range(N)], "percent signs"),
    "a unit behind each number": number([f"{j}.5 mg/dl" for j in range(N)], "the unit behind"),
    "tabs and blanks": Case(lines("A\tB\tC", after=" ", mark="\t "), **SAME),
    **{
        f"{word} among numbers": number(one_in(20, word), missing={"a": 2})
        for word in (
            *("Unknown", "#DIV/0!", "#N/A", "n.d.", "missing", "", "NA", "-"),
            *("keine Angabe", "k. A.", "manquant", "sin dato", "нет данных", "未知", "brak"),
            *("#WERT!", "#NV", "(null)", "\\N", ".a", "not done", "---", "-/-", "NaT"),
        )
    },
    **{
        f"{code} for missing": number(
            [code if j % 20 == 1 else f"{j % 9}.5" for j in range(N)], "may stand for missing"
        )
        for code in ("-999", "-99.9", "-999.9", "9999.99", "1e20")
    },
    "points that may stand for thousands": number(
        [f"{j + 10}.{550 + j}" for j in range(N)], "not as a mark between thousands", ";"
    ),
    # In these cases a column must remain text, each for a stated reason.
    **{
        f"below a limit, {word}": text(one_in(8, word), "limit of detection")
        for word in ("<0.5", "< LOD", "BDL", "≤0.5", "nd (<0.5)", ">250")
    },
    "a mean with its deviation": text([f"{j}.5±2.1" for j in range(N)], "plus-minus"),
    "minutes and seconds": text([f"{j % 9}0:{j + 10}" for j in range(N)], "begins with a number"),
    "two decimal marks in a column": Case(
        cells([f"{j},5" if j % 2 else f"{j}.5" for j in range(N)], mark=";"),
        ("B", "C"),
        said="decimal comma in others",
    ),
    "two units in a column": text([f"{j} {'kg' if j % 2 else 'g'}" for j in range(N)], "a unit"),
    "a postcode": text([f"0{1000 + 7 * j}" for j in range(N)], "leading zeros"),
    "yes and no": text(["yes" if j % 3 else "no" for j in range(N)], ""),
    "answers on a scale": text(["Agree", "Neutral", "Disagree", "Agree"] * 10, ""),
    "states": text(["ND", "SD", "NY", "x"] * 10, ""),
    "cells of two lines": text([f'"line one\n{j % 3}"' for j in range(N)], "line breaks"),
    **{
        f"dates as {DAYS[2]:{form}}": text(
            [f'"{d:{form}}"' for d in DAYS], "Dates find people", "date"
        )
        for form in (
            *("%d.%m.%Y", "%m/%d/%y", "%Y-%m-%d", "%d%b%Y", "%d-%b-%y", "%B %d, %Y", "%d. %B %Y"),
            *("%Y-%m-%dT%H:%M:%SZ", "%m/%d/%Y %I:%M:%S %p", "%a, %d %b %Y", "%Y-%m", "%b %Y"),
            *("%G-W%V", "%Y年%m月%d日", "%d%b%Y:%H:%M:%S"),
        )
    },
    "dates of which some are unknown": Case(
        cells(["unknown" if j % 9 == 1 else f"{d}" for j, d in enumerate(DAYS)]),
        ("B", "C"),
        missing={"a": 5},
        kinds={"a": "date"},
    ),
    "dates that are each one number": Case(
        cells([f"{d:%Y%m%d}" for d in DAYS[:20] * 2]), ("a", "B", "C"), said="Could be dates"
    ),
    # These cases test columns of identifiers, and columns that only look like identifiers.
    "numbers of persons that repeat": Case(
        cells([*map(str, REPEATED)]), ("B", "C"), said="identif"
    ),
    "a hospital's numbers": Case(
        cells([*map(str, REPEATED)], "Hospital Number,B,C"), ("B", "C"), said="identif"
    ),
    "numbers beyond a double": Case(
        cells([str(2**53 + 1_000_003 * j) for j in range(N)], "tweet,B,C"),
        ("B", "C"),
        said="identif",
    ),
    "numbers of 64 bits": Case(
        cells([str(2**64 - 1 - 98_765_432_100 * j) for j in range(N)]), ("B", "C"), said="identif"
    ),
    "names with a prefix": text([f"P{j:04}" for j in range(N)], "40 different"),
    "incomes": number([*map(str, 40_000 + (COUNTS[:, 0] * 7919) % 50_000)]),
    "altitudes": number([*map(str, 100 + COUNTS[:, 0] % 2_900)]),
    "counts of reads": Case(lines("sample,g1,g2,g3", COUNTS, before="s{},"), ("g1", "g2", "g3")),
    "days as a spreadsheet counts them": Case(
        cells([str(43_831 + 3 * (j % 25)) for j in range(N)], "admission_date,B,C"),
        ("admission_date", "B", "C"),
        said="days that a spreadsheet counts",
    ),
    # In these cases a row, such as a total, is not a person's row.
    **{
        f"{name} in rows": Case(
            lines(f"{name},s1,s2,s3,s4", GENES, before="x{},"),
            ("s1", "s2", "s3", "s4"),
            60,
            said="transpose",
        )
        for name in ("gene", "Gene ID", "probe_id", "metabolite", "OTU", "protein")
    },
    "samples in columns": Case(
        lines(",GSM101,GSM102,GSM103,GSM104", GENES, before="x{},"),
        ("GSM101", "GSM102", "GSM103", "GSM104"),
        60,
        said="transpose",
    ),
    # encodings
    **{
        encoding: Case(
            "\n".join(lines(f"{name},B,C")).encode(encoding),
            (name, "B", "C"),
            reading={"encoding": encoding},
        )
        for encoding, name in CITIES.items()
    },
    "two encodings in one file": Case(
        "\n".join(lines("A,B,C,town", after=",é")).encode() + b"\n" + b"1,2,3,Orl\x8dans",
        ABC,
        N + 1,
        said="mean no letter",
        reading={"encoding": "cp1252"},
    ),
    # workbooks
    "a title, an offset and a footer": Case(
        workbook(
            {
                "Report": [
                    ["Clinic 2020"],
                    [None],
                    *([None, *row] for row in SHEET),
                    [None],
                    [None, "Source: the register"],
                    ["* preliminary"],
                ]
            }
        ),
        said="under the table",
        **SAME,
    ),
    **{
        f"a codebook of {len(book)} lines first": Case(
            workbook({"README": book, "Data": SHEET}), said="'Data' was read", **SAME
        )
        for book in ([["see Data"]], [["Version", 1.2], ["Author", "Miller"], ["Date", 2020]])
    },
    "a small table beside it": Case(
        workbook(
            {
                "Data": [
                    [*row, None, *(["mean", 3.5] if 0 < j < 4 else [])]
                    for j, row in enumerate(SHEET)
                ]
            }
        ),
        said="beside the table",
        **SAME,
    ),
    "hidden rows": Case(book(hidden=(5, 6, 7)), said="3 hidden rows", **SAME),
    "a hidden sheet first": Case(book("New", hidden_sheet="Old"), **SAME),
    "dates since 1904": Case(
        book(
            rows=[(day, *row) for day, row in zip(DAYS, TAIL, strict=True)], how={"date_1904": True}
        ),
        ("B", "C"),
        kinds={"A": "date"},
    ),
    "numbers stored as text": Case(
        book(rows=[(str(a), b, c) for a, b, c in ROWS], how={"strings_to_numbers": False}),
        **SAME,
    ),
    "errors in cells": Case(
        book(rows=[("=#DIV/0!" if i % 15 == 3 else a, b, c) for i, (a, b, c) in enumerate(ROWS)]),
        missing={"A": 3},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_file_is_read_right_or_said(name: str) -> None:
    case = CASES[name]
    data = case.text if isinstance(case.text, bytes) else "\n".join([*case.text, ""]).encode()
    if "encoding" in case.reading:
        with pytest.raises(OtherEncoding):
            read_raw(data, name="t")
    raw = read_raw(data, name="t", reading=ReadOptions(**case.reading))
    checks = check_columns(raw)
    reading, notes = advised(raw, ReadOptions())
    out = reading.leave_out or ()
    features = [c.name for c in raw.columns if c.is_feature and c.name not in out]
    assert tuple(features) == case.features
    assert raw.shape[0] == case.rows
    words = " ".join([*raw.notes, *notes, *(w for check in checks for w in check.warnings)])
    assert case.said in words
    assert {c.name: c.missing for c in raw.columns if c.missing} == dict(case.missing)
    kinds = {column.name: column.kind.value for column in raw.columns}
    assert kinds == kinds | dict(case.kinds)
    if case.values is not None:
        columns = features[: np.atleast_2d(np.asarray(case.values).T).shape[0]]
        values = np.column_stack([raw.data[column].to_numpy() for column in columns])
        expected = np.asarray(case.values, float).reshape(N, -1)
        np.testing.assert_allclose(values, expected, rtol=1e-15)
    # Both ways of reading a table find the same identifier columns.
    drops = {c.name for c in checks if c.use == "drop" and c.identifies and c.kind == "numeric"}
    assert drops == {*out}


def test_an_unnamed_last_column_of_a_sheet_shifts_no_name(tmp_path: Path) -> None:
    path, out = tmp_path / "t.xlsx", tmp_path / "s.json"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "w", "x", "y"])
        for i, row in enumerate(ROWS.tolist(), 1):
            sheet.write_row(i, 0, [i, *row, 2 * row[0]])
    assert main(["schema", str(path), "--bounds", "data", "--out", str(out)]) == 0
    draft = {one["name"]: one for one in json.loads(out.read_text())["columns"]}
    assert list(draft) == ["id", "w", "x", "y", "column 5"]
    for name, values in zip("wxy", ROWS.T, strict=True):
        assert draft[name]["low"] <= values.min() < values.max() <= draft[name]["high"]
    assert read_raw(path, name="t").columns[1].name == "w"
