"""Numbers in texts are read right, refused, or left as text with a note; never something else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpviz.core.errors import InvalidTable
from dpviz.core.seeding import generator
from dpviz.datasets import Kind, read_raw
from dpviz.datasets.batches import FileBatches
from dpviz.datasets.columns import numerals_of, parse
from dpviz.datasets.table import ReadOptions


def rows_of(text: str, **options: str) -> list[list[float]]:
    raw = read_raw(text.encode(), name="t.csv", reading=ReadOptions(**options))
    rows: list[list[float]] = raw.to_table().rows.tolist()
    return rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # The cell 70,5 proves that a comma marks decimals, so points separate thousands.
        ("einkommen;gewicht;x\n1.234;70,5;1\n2.345;60,25;2\n", [[1234, 70.5, 1], [2345, 60.25, 2]]),
        # A number with two commas proves that commas separate thousands; one comma does not.
        ("a\tb\n1,234\t1\n1,234,567\t2\n", [[1234, 1], [1234567, 2]]),
        ('a,b\n"1,234.5",1\n"1,234",2\n', [[1234.5, 1], [1234, 2]]),
        ("a;b\n1.234,5;1\n1.234.567,8;2\n", [[1234.5, 1], [1234567.8, 2]]),
        ("a;b\n1.5;1,234\n2.25;2,345\n", [[1.5, 1234], [2.25, 2345]]),
        ("a,b\n1.234,1\n2.345,2\n", [[1.234, 1], [2.345, 2]]),
        ("a;b\n0.123;1\n4.567;2\n", [[0.123, 1], [4.567, 2]]),
        ("a;b\n12 %;1\n3,5 %;2\n", [[12, 1], [3.5, 2]]),
        ("a;b\n(1,5);1\n3;2\n", [[-1.5, 1], [3, 2]]),
        ("a;b\n1'234.5;1\n12'000;2\n", [[1234.5, 1], [12000, 2]]),
        ("a;b\n\u22125;1\n+3;2\n", [[-5, 1], [3, 2]]),
        ("sep=;\na;b\n1,5;2\n3;4\n", [[1.5, 2], [3, 4]]),
        ("Report 2024\n\na;b;c\n1;2;3\n4;5;6\n", [[1, 2, 3], [4, 5, 6]]),
        ("Report,,\na,b,c\n1,2,3\n4,5,6\n", [[1, 2, 3], [4, 5, 6]]),
        ("a,b\n(kg),(cm)\n1,2\n3,4\n5,6\n", [[1, 2], [3, 4], [5, 6]]),
        ("who,a,b\nx,1,2\ny,3,4\nz,5,6\nTotal,9,12\n", [[1, 2], [3, 4], [5, 6]]),
        ("who;a;b\nx;1;2\ny;3;4\nz;5;6\nSumme:;9;12\n\n", [[1, 2], [3, 4], [5, 6]]),
        ("a b\nr1 1 2\nr2 3 4\nr3 5 6\n", [[1, 2], [3, 4], [5, 6]]),
    ],
)
def test_each_is_read_right_by_both_readers(
    text: str, rows: list[list[float]], tmp_path: Path
) -> None:
    assert rows_of(text) == rows
    (tmp_path / "t.csv").write_bytes(text.encode())
    batches = FileBatches(tmp_path / "t.csv")
    assert np.concatenate([block.copy() for block, _ in batches.blocks()]).tolist() == rows


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1.234;1\n2.345;2\n",  # With semicolons, a point may be thousands or decimals.
        "a\tb\n1,234\t1\n2,345\t2\n",
        "a\tb\n1.234\t1\n345\t2\n",
        'a,b\n"1,234",1\n"2,345",2\n',
        "a;b;c\n1.234;1,5;0.5\n2.345;2,5;0.25\n",  # Other columns prove what each mark means.
    ],
)
def test_what_nothing_decides_is_asked(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidTable, match=r"decimals or thousands\. Choose a point or a comma"):
        read_raw(text.encode(), name="t.csv")
    (tmp_path / "t.csv").write_bytes(text.encode())
    with pytest.raises(InvalidTable, match=r"decimals or thousands\. Choose a point or a comma"):
        FileBatches(tmp_path / "t.csv")
    point, comma = (rows_of(text, decimal=word)[0][0] for word in ("point", "comma"))
    assert {point, comma} == {1.234, 1234}


@pytest.mark.parametrize(
    ("text", "kind", "note"),
    [
        ("zip,a,b\n00123,1,2\n04567,3,4\n", Kind.CATEGORICAL, "leading zeros"),
        ("zip,a,b\n01.04.2020,1,2\n31.12.2021,3,4\n", Kind.DATE, "Dates in 'zip'"),
        ("zip,a,b\n01.04,1,2\n31.12,3,4\n", Kind.DATE, "Dates in 'zip'"),
        ("zip;a;b\n1.5;1;2\n2,5;3;4\n", Kind.CATEGORICAL, "decimal point in some rows"),
        ("zip,a,b\n0x1F,1,2\n31,3,4\n", Kind.CATEGORICAL, ""),
        ("zip,a,b\n1_000,1,2\n31,3,4\n", Kind.CATEGORICAL, ""),
        ("zip,a,b\n\u00b2,1,2\n31,3,4\n", Kind.CATEGORICAL, ""),
    ],
)
def test_what_is_no_number_stays_text(text: str, kind: Kind, note: str) -> None:
    raw = read_raw(text.encode(), name="t.csv")
    assert raw.columns[0].kind is kind
    assert note in " ".join(raw.notes)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("Anna,34,1.7\nBert,40,1.8\nAnna,20,1.6\n", False),
        ("m,unknown,1\nf,34,2\nm,35,3\nf,36,4\n", False),  # m occurs twice, so it names nobody.
        ("Anna,34,\nBert,40,1.8\nCleo,20,1.6\n", False),
        ("sex,age,size\nm,34,1\nf,35,2\nm,36,4\n", True),
        ("land,1990,1991,1992\nA,1,2,3\nB,2,3,5\n", True),
        ("a,b\n1,2\n3,4\n", True),
    ],
)
def test_a_first_person_is_not_taken_for_names(text: str, header: bool) -> None:
    raw = read_raw(text.encode(), name="t.csv")
    assert raw.shape[0] == text.count("\n") - header
    if not header:
        assert [column.name for column in raw.columns][:2] == ["column 1", "column 2"]
        assert any("no line of column names" in note for note in raw.notes)


def written(rng: np.random.Generator, value: float, style: str, digits: int) -> str:
    """Return a number in one style, as programs of some country write it."""
    text = f"{value:,.{digits}f}"
    separator, mark = {
        "us": (",", "."), "de": (".", ","), "plain": ("", "."), "plain comma": ("", ","),
        "swiss": ("'", "."), "french": ("\u202f", ","),
    }[style]  # fmt: skip
    return text.replace(",", "\0").replace(".", mark).replace("\0", separator)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["us", "de", "plain", "plain comma", "swiss", "french"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_no_generated_number_is_misread(style: str, delimiter: str) -> None:
    """Each column is read as meant in every number, or not at all: refused or text."""
    rng = generator(0, "tests", "numerals", style, delimiter)
    for trial in range(60):
        digits = int(rng.integers(0, 4))
        size = 10.0 ** rng.integers(0, 7)
        truth = np.round(rng.uniform(-size, size, (6, 2)), digits)
        lines = ["a" + delimiter + "b"]
        lines += [
            delimiter.join(f'"{written(rng, float(cell), style, digits)}"' for cell in row)
            for row in truth
        ]
        try:
            raw = read_raw("\n".join(lines).encode(), name="t.csv")
        except InvalidTable:
            continue
        for column, meant in zip(raw.columns, truth.T, strict=True):
            if column.kind is Kind.NUMERIC:
                values = raw.data[column.name].to_numpy()
                assert read_as_meant(values, meant, style, delimiter), (trial, lines)


def read_as_meant(
    found: Sequence[float], meant: Sequence[float], style: str, delimiter: str
) -> bool:
    """Return whether numbers are right; a lone point of thousands beside commas is unknowable.

    In a file separated by commas, tabs or bars, a column such as 1.234, 5.678 is read with decimal
    points. Every program writes three decimals in this way, and hardly any program writes points
    between thousands in such a file. ``--decimal comma`` changes this reading.
    """
    if np.allclose(found, meant, rtol=1e-12, atol=0):
        return True
    always = all(number % 1 for number in found) or delimiter == ","
    thousands = np.allclose(np.multiply(found, 1000), meant) if always else False
    partly = delimiter == "," and all(
        number in (one, one / 1000) for number, one in zip(found, meant, strict=True)
    )
    return style == "de" and delimiter != ";" and (thousands or partly)


def test_parse_is_exact_and_knows_its_mark() -> None:
    texts = pa.array(["1.5", "1,234.5", "(2)", "12%", None])
    assert numerals_of(texts.drop_null()).fits == {"."}
    values = parse(texts, ".")
    assert values[:4].tolist() == [1.5, 1234.5, -2, 12]
    assert np.isnan(values[4])
    assert np.isnan(parse(texts, ",")[1])
