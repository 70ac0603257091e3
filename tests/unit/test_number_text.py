"""A single program writes the numbers that people read."""

import ast
from pathlib import Path

import numpy as np
import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings, codes_in
from dpviz.datasets import read_raw
from dpviz.releasing.options import LedgerOptions
from dpviz.releasing.records import open_records
from dpviz.releasing.schema import Column, Schema

ROOT = Path(__file__).parents[2]
WRITES = "number_text.py"
# These files write numbers into pictures, style sheets or CSV cells, not into sentences.
DRAWN = {
    "svg.py", "shelves.py", "glossary_html.py", "card.py", "example.py", "reading.py",
    "reproduction.py",
}  # fmt: skip
# These commands repeat numbers from papers as printed there.
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
    """Return a file's number formats that bypass the shared formatting."""
    nodes, places = list(ast.walk(ast.parse(source))), []
    roundings = {  # This call only rounds the number; it shows no text.
        id(value)
        for call in nodes
        if isinstance(call, ast.Call) and _last_name(call.func) == "float"
        for argument in call.args
        for value in ast.walk(argument)
    }
    for node in nodes:
        if id(node) in roundings:
            continue
        if isinstance(node, ast.FormattedValue):
            spec = _spec(node)
            kind = spec[-1:] or "s"
            if kind in "gGeEn%" or (kind in "fF" and not drawn):
                places.append(f"line {node.lineno}: {{...:{spec}}}")
            if not spec and _last_name(node.value) in _RAW:
                places.append(f"line {node.lineno}: {ast.unparse(node)}")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"str", "format"}
            and node.args
            and _last_name(node.args[0]) in _RAW
        ):
            places.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if _plotly(text) or "%g" in text or _percent_format(text) or _brace_format(text):
                places.append(f"line {node.lineno}: {text!r}")
    return places


def _plotly(text: str) -> bool:
    """Return whether a text makes Plotly write a number: ``%{x:.3g}``."""
    return any(":" in part.partition("}")[0] for part in text.split("%{")[1:])


def _percent_format(text: str) -> bool:
    """Return whether a text contains ``%.3g``."""
    starts = (part.lstrip("0123456789") for part in text.split("%.")[1:])
    return any(start[:1] in ("g", "e") for start in starts)


def _brace_format(text: str) -> bool:
    """Return whether a text contains ``{:.4g}``."""
    starts = (part.partition("}")[0] for part in text.split("{:")[1:])
    return any(start[-1:] in ("g", "e", "f", "%") for start in starts)


def _files() -> list[Path]:
    files = [*(ROOT / "dpviz").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
    return [path for path in files if path.name != WRITES and not PRINTED & set(path.parts[:-1])]


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
        uses = [name for name in methods if name in path.read_text("utf-8")]
        assert path.stem == Path(WRITES).stem or uses == [], path


@pytest.mark.parametrize(
    "line",
    ['f"{x:g}"', 'f"{x:.3g}"', 'f"{x:.{d}g}"', 'f"{x:.1%}"', 'f"{x:.2f}"', 'f"{x:,.0f}"',
     'f"{epsilon}"', 'f"{settings.epsilon}"', "str(epsilon)", 'format(budget.delta, "3")',
     'f"{x:e}"', '"epsilon %{x:.3g}"', '"%.4g" % x', '"{:.4g}".format',
     'f"%{{x:.3g}}{label}"'],
)  # fmt: skip
def test_each_way_to_write_a_number_is_seen(line: str) -> None:
    assert formats_of_its_own(line)


@pytest.mark.parametrize("text", ["1_0", "1_0.5", "1e1_0", "\u0661\u0662", "\u00b2"])
def test_digits_with_underscores_or_of_other_scripts_are_no_number_to_anybody(text: str) -> None:
    """Python reads 1_0 as 10; a table, a schema, an option and a link do not."""
    raw = read_raw(f"a,b\n{text},1\n2,3\n4,5\n".encode(), name="t.csv")
    assert not raw.columns[0].is_feature
    schema = Schema((Column("a", 0, 20, 7), Column("b", 0, 20)))
    (block,) = open_records(f"a,b\n{text},1\n2,3\n".encode(), schema).blocks()
    assert np.isnan(block[0, 0])
    options = {"epsilon": text, "trials": text, "row_bound": text, "bounds": f"0:{text}"}
    for name, value in options.items():
        assert Settings.from_query({name: value}, Settings())[1], name
    with pytest.raises(InvalidSetting):
        LedgerOptions(limit=f"{text},1e-6")
    assert codes_in(text) == (text,), "a word"
