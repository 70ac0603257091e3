"""A page in a lecture hall: half as large again, nothing around it, Escape leaves."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui import state

TIMES = 1.5
"""How much larger type and pictures are."""

# Streamlit measures in rem. Components of ours measure in pixels and are enlarged as a whole;
# charts get larger type where they are drawn.
_STYLE = f"""
html {{ font-size: {16 * TIMES}px !important; }}
[data-testid="stHeader"], [data-testid="stSidebar"], .st-key-bar,
.st-key-glossary-page, [data-testid="stExpandSidebarButton"] {{ display: none !important; }}
[data-testid="stMainBlockContainer"] {{ padding: 1rem 1.4rem !important; max-width: none; }}
[class*="st-key-guide-board"], [class*="st-key-guide-person"] {{ zoom: {TIMES}; }}
[class*="st-key-guide-board"] {{ --dpv-lesson: 220px; }}
@media (max-width: 640px) {{
  html {{ font-size: 20px !important; }}
  [class*="st-key-guide-board"], [class*="st-key-guide-person"] {{ zoom: 1; }}
}}
"""


def on() -> bool:
    """Return whether the Guide is presented."""
    return bool(state.get("present", "guide") == "yes")


def style() -> None:
    """Enlarge the page if it is presented."""
    if on():
        st.html(f"<style>{_STYLE}</style>")


def larger() -> float:
    """Return how many times as large as usual charts are drawn."""
    return TIMES if on() else 1.0


def button(place: DeltaGenerator) -> None:
    """Draw the way in, or out."""
    now = on()

    def turn() -> None:
        state.put("present", "no" if now else "yes", "guide")

    place.button(
        "Leave" if now else "Present",
        key="guide.leave_large" if now else "guide.present",
        shortcut="Escape" if now else "P",
        on_click=state.on_change(turn),
    )
