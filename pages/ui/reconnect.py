"""A page that was open while its server was restarted says hello to the new one by itself."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_COMPONENT = st.components.v2.component(
    "dpviz_reconnect", js=(Path(__file__).parent / "reconnect.js").read_text(encoding="utf-8")
)


def watch() -> None:
    """Run the page again when the connection is back; the link says what was set."""
    with st.container(key="reconnect", height="content", gap=None):
        _COMPONENT(key="reconnect.back", on_back_change=lambda: None, height=1)
