"""Script and style of a Streamlit component with bars to drag, for shares of the precision."""

from __future__ import annotations

from pathlib import Path

from dpviz.core import number_text
from dpviz.report.figures import board

_FOLDER = Path(__file__).parent


def assets() -> board.Assets:
    """Return the script, as a module that a Streamlit component mounts, and the style."""
    modules = [number_text.script(), *board.in_one_scope(_FOLDER / "shares.js")]
    return board.Assets("\n".join(modules), (_FOLDER / "shares.css").read_text(encoding="utf-8"))
