"""Every chart and table on a page has a text that states what it shows."""

from __future__ import annotations

import ast
from pathlib import Path

from dpviz.core.files import app_path

OURS = {"sections", "printed", "parts"}  # These dpviz objects have methods of such a name.
DRAWN = (
    "plotly_chart", "echarts_chart", "dataframe", "data_editor", "table", "image", "pyplot",
    "altair_chart", "plot",
)  # fmt: skip


def wordless(source: str) -> list[str]:
    """Return the calls that render a chart or table without alternative text."""
    calls = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keywords = {word.arg for word in node.keywords}
            # None stands for **options, which may contain the required keyword.
            is_ours = isinstance(node.func.value, ast.Name) and node.func.value.id in OURS
            is_ours = is_ours and node.func.attr != "plot"  # A plot needs alternative text too.
            # A call without arguments draws nothing: it only returns the answer's table.
            draws = node.func.attr in DRAWN and bool(node.args or keywords) and not is_ours
            if draws and not keywords & {"alt", None}:
                calls.append(f"{node.func.attr} in line {node.lineno}")
    return calls


def test_every_chart_has_words() -> None:
    pages = sorted((app_path().parent / "pages").rglob("*.py"))
    silent = {path.name: wordless(path.read_text(encoding="utf-8")) for path in pages}
    assert sum("parts.plot(" in Path(path).read_text(encoding="utf-8") for path in pages) > 3
    assert {name: calls for name, calls in silent.items() if calls} == {}


def test_one_without_would_be_found() -> None:
    assert wordless("st.plotly_chart(figure, key='x')") == ["plotly_chart in line 1"]
    assert wordless("st.plotly_chart(figure, alt='A rise.')") == []
    assert wordless("st.data_editor(frame, key='x')") == ["data_editor in line 1"]
