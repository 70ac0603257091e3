"""A mechanism under the pointer is highlighted in every panel of its chart, in the browser."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_COMPONENT = st.components.v2.component(
    "dpviz_highlight", js=(Path(__file__).parent / "highlight.js").read_text(encoding="utf-8")
)


def watch() -> None:
    """Follow the pointer over those charts of this page whose layout requests it."""
    with st.container(key="highlight", height="content", gap=None):
        _COMPONENT(key="highlight.charts", height=1)
