"""Every chart and table that a page draws says in words what it shows."""

from __future__ import annotations

import ast
from pathlib import Path

from dpviz.core.files import app_path

OURS = {"sections", "printed", "parts"}  # of our own, with a method or a function named alike
DRAWN = (
    "plotly_chart", "echarts_chart", "dataframe", "data_editor", "table", "image", "pyplot",
    "altair_chart",
)  # fmt: skip


def wordless(source: str) -> list[str]:
    """Return the calls that draw something without alternative text."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = {word.arg for word in node.keywords}
            # None stands for ** and may bring it along
            own = isinstance(node.func.value, ast.Name) and node.func.value.id in OURS
            # a call that is given nothing draws nothing: the table of an answer
            draws = node.func.attr in DRAWN and bool(node.args or named) and not own
            if draws and not named & {"alt", None}:
                found.append(f"{node.func.attr} in line {node.lineno}")
    return found


def test_every_chart_has_words() -> None:
    pages = sorted((app_path().parent / "pages").rglob("*.py"))
    found = {path.name: wordless(path.read_text(encoding="utf-8")) for path in pages}
    assert sum("plotly_chart" in Path(path).read_text(encoding="utf-8") for path in pages) > 3
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_one_without_would_be_found() -> None:
    assert wordless("st.plotly_chart(figure, key='x')") == ["plotly_chart in line 1"]
    assert wordless("st.plotly_chart(figure, alt='A rise.')") == []
    assert wordless("st.data_editor(frame, key='x')") == ["data_editor in line 1"]
