"""Files of an answer for a paper, ready for a typesetter."""

from __future__ import annotations

import contextlib
import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pandas as pd
import pytest

import dpviz
from dpviz.core.number_text import percent
from dpviz.report import print as printed
from dpviz.report.figures.theme import Panel

MECHANISMS = ["gaussian", "wishart", "ppca", "laplace"]


SVG = "{http://www.w3.org/2000/svg}"


def drawn_of(content: bytes) -> str:
    """Return the drawing commands of a PDF's pages."""
    streams = re.findall(rb"/Length (\d+) [^>]*>>\nstream\n", content)
    starts = [found.end() for found in re.finditer(rb">>\nstream\n", content)]
    assert len(starts) >= len(streams) > 0
    pages = []
    for start in starts:
        with contextlib.suppress(zlib.error):
            pages.append(zlib.decompressobj().decompress(content[start:]).decode("latin-1"))
    return "\n".join(one for one in pages if " Tf" in one)


def texts_of(svg: bytes) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("kind", ["compare", "sweep"])
def test_a_paper_is_made_of_an_answer(tmp_path: Path, kind: str) -> None:
    options = {"k": 2, "trials": 5, "mechanisms": MECHANISMS}
    answer = (
        dpviz.compare("wine", **options)
        if kind == "compare"
        else dpviz.sweep("wine", over="epsilon", values="0.1,1,10", **options)
    )
    files = {path.name: path.read_bytes() for path in answer.paper(tmp_path / "paper")}
    assert set(files) >= {"recovery.svg", "recovery.pdf", "table.tex", "references.bib"}
    command = f"% To repeat it: {answer.made.command}\n"
    table, methods = files["table.tex"].decode(), files["methods.tex"].decode()
    assert table.startswith(command)
    assert methods.startswith(command)
    # Each mechanism has a table row with as many cells as the header, and an error for each number.
    body = table.partition("\\midrule\n")[2].partition("\\bottomrule")[0].strip().splitlines()
    head = table.partition("\\toprule\n")[2].partition("\n")[0]
    assert {row.count("&") for row in body} == {head.count("&")}
    assert len(body) == len(MECHANISMS)
    assert all("\\pm" in row for row in body)
    for words in (
        "one row is replaced",
        "We took these values from the data without protection:",
        "claim is false",
    ):
        assert words in methods
    # The paper's bibliography lists exactly the works that its text cites.
    citations = re.findall(r"\\cite\{([^}]*)\}", table + methods)
    cites = {key for keys in citations for key in keys.split(",")}
    assert cites == set(re.findall(r"@\w+\{(\w+),", files["references.bib"].decode()))
    assert {"balle2018", "jiang2016", "chaudhuri2012", "dpviz"} <= cites
    # The chart is one column wide, with black 8 pt text; text stays text, and fonts are included.
    svg, pdf = ElementTree.fromstring(files["recovery.svg"]), drawn_of(files["recovery.pdf"])
    assert svg.get("width") == "240pt"
    texts = texts_of(files["recovery.svg"])
    assert {"Gaussian, exact", "Wishart", "PPCA", "Laplace"} <= set(texts)
    sizes = re.findall(r"font(?:-size)?: (\S+)px", files["recovery.svg"].decode())
    assert set(sizes) == {"8"}
    assert b"/FontFile2" in files["recovery.pdf"]
    assert b"/ToUnicode" in files["recovery.pdf"]
    assert set(re.findall(r" (\S+) Tf", pdf)) == {"8"}
    inks = set(re.findall(r"(?:[\d.]+ ){2}[\d.]+ (?:RG|rg)|[\d.]+ [Gg]\b", pdf))
    assert inks <= {"0 g", "0 G", "1 g", "1 G"}
    if kind == "sweep":  # Each line has its own dash pattern and mark.
        dashes = {dash for dash in re.findall(r"\[([\d. ]*)\] \S+ d", pdf)}
        assert len(dashes) == len(MECHANISMS)


def test_a_picture_is_the_same_bytes_whatever_a_user_set() -> None:
    table = pd.DataFrame([("a", 0.1, 0.5, 0.9)], columns=["mechanism", "low", "mean", "high"])
    panels = [Panel("a", "First", "", "#0072B2", "circle", "solid")]

    def files() -> list[bytes]:
        picture = printed.ranges(table, panels, percent(0.85))
        return [printed.to_bytes(kind, picture) for kind in ("svg", "pdf", "png")]

    first = files()
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert files() == first
        assert matplotlib.rcParams["font.size"] == 30
    assert percent(0.85) in texts_of(first[0])
