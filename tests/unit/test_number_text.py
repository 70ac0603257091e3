"""One program writes the numbers that a person reads."""

import ast
import math
from pathlib import Path

import pandas as pd
import pytest

from dpviz.core.number_text import decimals, numeral, parseable, percent, rows_words, thousands
from dpviz.core.params import format_number
from pages.ui import parts

ROOT = Path(__file__).parents[2]
WRITES = "number_text.py"
# Coordinates in pictures and style sheets, and cells of a CSV; no sentence stands in these formats.
DRAWN = {
    "svg.py", "shelves.py", "drawing.py", "glossary_html.py", "card.py", "example.py", "reading.py",
    "reproduction.py",
}  # fmt: skip
# What papers print is repeated as they print it.
PRINTED = {"reproduce", "papers"}
_RAW = {"epsilon", "delta"}


def _spec(node: ast.FormattedValue) -> str:
    if node.format_spec is None:
        return ""
    assert isinstance(node.format_spec, ast.JoinedStr)
    parts = node.format_spec.values
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in parts)


def _last_name(node: ast.expr) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", None) or ""


def formats_of_its_own(source: str, *, drawn: bool = False) -> list[str]:
    """Return what a file writes numbers by other than the one program."""
    nodes, found = list(ast.walk(ast.parse(source))), []
    rounded = {  # float(f"{x:.3g}") rounds, and writes nothing
        id(value)
        for call in nodes
        if isinstance(call, ast.Call) and _last_name(call.func) == "float"
        for argument in call.args
        for value in ast.walk(argument)
    }
    for node in nodes:
        if id(node) in rounded:
            continue
        if isinstance(node, ast.FormattedValue):
            spec = _spec(node)
            kind = spec[-1:] or "s"
            if kind in "gGeEn%" or (kind in "fF" and not drawn):
                found.append(f"line {node.lineno}: {{...:{spec}}}")
            if not spec and _last_name(node.value) in _RAW:
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"str", "format"}
            and node.args
            and _last_name(node.args[0]) in _RAW
        ):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if _plotly(text) or "%g" in text or _percent_format(text) or _brace_format(text):
                found.append(f"line {node.lineno}: {text!r}")
    return found


def _plotly(text: str) -> bool:
    """Return whether Plotly is told to write a number: ``%{x:.3g}``."""
    return any(":" in part.partition("}")[0] for part in text.split("%{")[1:])


def _percent_format(text: str) -> bool:
    """Return whether it holds ``%.3g``."""
    starts = (part.lstrip("0123456789") for part in text.split("%.")[1:])
    return any(start[:1] in ("g", "e") for start in starts)


def _brace_format(text: str) -> bool:
    """Return whether it holds ``{:.4g}``."""
    starts = (part.partition("}")[0] for part in text.split("{:")[1:])
    return any(start[-1:] in ("g", "e", "f", "%") for start in starts)


def _files() -> list[Path]:
    found = [*(ROOT / "dpviz").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    return [path for path in found if path.name != WRITES and not PRINTED & set(path.parts[:-1])]


@pytest.mark.slow
def test_no_sentence_page_or_picture_has_a_format_of_its_own() -> None:
    wrong = {
        str(path.relative_to(ROOT)): formats
        for path in _files()
        if (formats := formats_of_its_own(path.read_text("utf-8"), drawn=path.name in DRAWN))
    }
    assert wrong == {}


def test_no_script_has_one_either() -> None:
    methods = ("toFixed", "toPrecision", "toExponential", "toLocaleString", "NumberFormat")
    scripts = [*(ROOT / "dpviz").rglob("*.js"), *(ROOT / "pages").rglob("*.js")]
    assert len(scripts) > 5
    for path in scripts:
        used = [name for name in methods if name in path.read_text("utf-8")]
        assert path.stem == Path(WRITES).stem or used == [], path


@pytest.mark.parametrize(
    "line",
    ['f"{x:g}"', 'f"{x:.3g}"', 'f"{x:.{d}g}"', 'f"{x:.1%}"', 'f"{x:.2f}"', 'f"{x:,.0f}"',
     'f"{epsilon}"', 'f"{settings.epsilon}"', "str(epsilon)", 'format(budget.delta, "3")',
     'f"{x:e}"', '"epsilon %{x:.3g}"', '"%.4g" % x', '"{:.4g}".format',
     'f"%{{x:.3g}}{label}"'],
)  # fmt: skip
def test_each_way_to_write_a_number_is_seen(line: str) -> None:
    assert formats_of_its_own(line)


@pytest.mark.parametrize(
    "line",
    ['f"{numeral(epsilon)}"', 'float(f"{x:.3g}")', 'f"{n:,}"', 'f"{name:>8}"', '"{%{x}}"',
     'f"{text}: {a.text}"', 'f"%.{digits}g"'],
)  # fmt: skip
def test_what_writes_no_number_is_left_alone(line: str) -> None:
    assert formats_of_its_own(line) == []


def test_numbers_in_sentences() -> None:
    assert [numeral(x, 3) for x in (0.0006, 6e-5, 1e-7, 123456.0, 1.5, 0.0, -2.345)] == [
        "0.0006", "6e-5", "1e-7", "123,000", "1.5", "0", "-2.35",
    ]  # fmt: skip
    assert [numeral(x, 6) for x in (9999.0, 9999.96, -18000.5, 999999.7, math.inf)] == [
        "9999", "9999.96", "-18,000.5", "1e6", "inf",
    ]  # fmt: skip
    assert parseable(-18000.5, 6) == "-18000.5"
    assert (rows_words(1), rows_words(12345)) == ("one row", "12,345 rows")
    assert (decimals(0.4, 2), decimals(0.125, 2), decimals(-0.001, 2)) == ("0.40", "0.13", "0.00")
    assert decimals(math.inf, 2) == "inf"
    assert (thousands(1797), thousands(1234567.6), thousands(math.inf)) == (
        "1,797", "1,234,568", "inf",
    )  # fmt: skip
    assert (percent(0.5), percent(0.9999)) == ("50\u00a0%", "> 99.9\u00a0%")


@pytest.mark.parametrize("value", [1e-6, 0.1 + 0.2, 1e22, -99999999.0, 6.123456789e-5, 1 / 3])
def test_a_value_in_a_command_reads_back_and_looks_like_one_in_a_sentence(value: float) -> None:
    assert float(format_number(value)) == value
    assert "e-0" not in format_number(value)
    assert "e+" not in format_number(value)


def test_a_grid_writes_numbers_as_sentences_do() -> None:
    table = pd.DataFrame({"epsilon": [0.5, 2.0], "delta": [1e-7, None], "n": [0.0, 99999.0]})
    shown, columns = parts.numerals(
        table, {"epsilon": ("Epsilon", 3), "delta": ("Delta", 2), "n": ("People", 3)}
    )
    assert shown["delta"].dropna().tolist() == ["1e-7"]
    assert shown["epsilon"].tolist() == [0.5, 2.0]
    assert columns["delta"]["type_config"]["type"] == "text"
    assert columns["epsilon"]["type_config"]["format"] == "%.3g"
