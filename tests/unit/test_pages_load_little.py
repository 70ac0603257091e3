"""No page draws what makes a browser load and run Streamlit's highlighter, 1.5 MB of script.

Commands and links are shown by `pages.ui.copying`.
"""

from __future__ import annotations

import ast

from dpviz.core.files import app_path

HIGHLIGHTED = {"code", "echo"}


def heavy(source: str) -> list[str]:
    """Return the calls and the texts that are drawn by the highlighter."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in HIGHLIGHTED:
                found.append(f"{node.func.attr} in line {node.lineno}")
        elif isinstance(node, ast.Constant) and "```" in str(node.value):
            found.append(f"a block of code in line {node.lineno}")
    return found


def test_no_page_loads_the_highlighter() -> None:
    pages = sorted((app_path().parent / "pages").rglob("*.py"))
    sources = {path.name: path.read_text(encoding="utf-8") for path in pages}
    assert sum("copyable(" in source for source in sources.values()) > 3
    assert {name: heavy(source) for name, source in sources.items() if heavy(source)} == {}


def test_one_that_does_would_be_found() -> None:
    assert heavy("st.code('ls', language=None)") == ["code in line 1"]
    assert heavy("with st.echo():\n    pass") == ["echo in line 1"]
    assert heavy("st.markdown('```\\nls\\n```')") == ["a block of code in line 1"]
    assert heavy("st.markdown('`ls`')") == []
