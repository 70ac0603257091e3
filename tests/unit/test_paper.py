"""What an answer writes for a paper: files that a typesetter takes as they are."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dpviz
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import percent
from dpviz.report.figures.drawing import COLUMN, Drawing
from dpviz.report.paper import latex, with_error

MECHANISMS = ["gaussian", "wishart", "ppca", "laplace"]


def checked_pdf(content: bytes) -> str:
    """Return the drawing of a PDF whose table names the place of every object."""
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", content)[1])  # type: ignore[index]
    places = re.findall(rb"(\d{10}) 00000 n ", content[start:])
    assert len(places) == 5
    for number, place in enumerate(places, 1):
        assert content[int(place) :].startswith(f"{number} 0 obj\n".encode())
    length, drawn = re.search(  # type: ignore[misc]
        rb"/Length (\d+) >>\nstream\n(.*)\nendstream", content, re.DOTALL
    ).groups()
    assert len(drawn) == int(length)
    return str(drawn.decode("cp1252"))


@pytest.mark.parametrize("kind", ["compare", "sweep"])
def test_a_paper_is_made_of_an_answer(tmp_path: Path, kind: str) -> None:
    options = {"k": 2, "trials": 5, "mechanisms": MECHANISMS}
    found = (
        dpviz.compare("wine", **options)
        if kind == "compare"
        else dpviz.sweep("wine", over="epsilon", values="0.1,1,10", **options)
    )
    files = {path.name: path.read_bytes() for path in found.paper(tmp_path / "paper")}
    assert set(files) >= {"recovery.svg", "recovery.pdf", "table.tex", "references.bib"}
    command = f"% The same again: {found.made.command}\n"
    table, methods = files["table.tex"].decode(), files["methods.tex"].decode()
    assert table.startswith(command)
    assert methods.startswith(command)
    # a row of each mechanism, with as many cells as the head and an error in each number
    body = table.partition("\\midrule\n")[2].partition("\\bottomrule")[0].strip().splitlines()
    head = table.partition("\\toprule\n")[2].partition("\n")[0]
    assert {row.count("&") for row in body} == {head.count("&")}
    assert len(body) == len(MECHANISMS)
    assert all("\\pm" in row for row in body)
    for words in ("one row is replaced", "Without protection we took", "claim is false"):
        assert words in methods
    # what is cited is listed
    cited = {key for keys in re.findall(r"\\cite\{([^}]*)\}", table) for key in keys.split(",")}
    assert cited == set(re.findall(r"@\w+\{(\w+),", files["references.bib"].decode()))
    assert {"balle2018", "jiang2016", "chaudhuri2012"} <= cited
    # one drawing, twice: the same texts, in black alone
    svg = ElementTree.fromstring(files["recovery.svg"])
    drawn = checked_pdf(files["recovery.pdf"])
    texts = [one.text for one in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert re.findall(r"\((.*?)\) Tj", drawn) == texts
    assert {one.get("font-size") for one in svg.iter("{http://www.w3.org/2000/svg}text")} == {"8"}
    assert set(re.findall(r"(\S+ \S+ \S+) RG", drawn)) == {"0.000 0.000 0.000"}
    if kind == "sweep":  # no two lines have dash and mark alike
        keys = re.findall(r"\[([\d. ]*)\] 0 d \S+ \S+ m \S+ \S+ l \S+ \S+ l S", drawn)
        assert len(set(keys[1:])) == len(MECHANISMS)


def test_texts_stand_where_helvetica_ends_them() -> None:
    picture = Drawing(COLUMN, "words", 20.0)
    picture.text(100, 10, "(a\\b) Wi 1", "end")
    drawn = checked_pdf(picture.pdf())
    assert "(\\(a\\\\b\\) Wi 1) Tj" in drawn
    # 333+556+278+556+333+278+944+222+278+556 thousandths of 8 pt, by the metrics of the font
    assert f"{100 - 8 * 4.334:.2f} 10.00 Td" in drawn


def test_words_and_numbers_are_latex(tmp_path: Path) -> None:
    assert latex("50 % of a_b & ε") == r"50 \% of a\_b \& $\varepsilon$"
    assert with_error(0.91274, 0.01234) == r"$0.913 \pm 0.012$"
    assert with_error(12.0, 3.4) == r"$12.0 \pm 3.4$"
    assert with_error(1.0, 0.0) == "$1$"
    found = dpviz.compare("wine", trials=2, mechanisms="gaussian")
    with pytest.raises(InvalidSetting, match="folder must be a folder, or a new one"):
        found.paper(tmp_path / "nowhere" / "paper")


def test_a_share_is_written_in_a_picture_of_pixels_too() -> None:
    """Its font has no space that breaks no line, and would draw an empty box for one."""

    def drawn(words: str) -> bytes:
        picture = Drawing(COLUMN, "words", 20.0)
        picture.text(2, 12, words)
        return picture.png()

    assert drawn(percent(0.85)) == drawn("85 %") != drawn("85%")
