"""The examples of the Precision page, and the way back to what was set before.

Nobody who has set nothing yet is shown flat lines: the page then opens on the first example, and
leaving it brings the settings back that it took the place of.
"""

from __future__ import annotations

import streamlit as st

from dpviz.tidy.planted import EXAMPLES, shown
from pages.ui import controls, state
from pages.ui.page_options import page_defaults

PAGE = "Precision"
_BEFORE, _OPENED, _OWN = "examples.before", "examples.opened", "examples.own"


def visit(title: str) -> None:
    """Open the first example on the page where nothing has been set, and close it elsewhere."""
    first = next(iter(EXAMPLES))
    if title == PAGE:
        if state.settings() == page_defaults() and not st.session_state.get(_OWN):
            take(first)
            st.session_state[_OPENED] = True
    elif st.session_state.pop(_OPENED, False) and shown(state.settings()) == first:
        _back()


def take(key: str) -> None:
    """Set what an example says, and remember what was set."""
    settings = state.settings()
    if shown(settings) is None:
        st.session_state[_BEFORE] = dict(st.session_state.view)
    st.session_state.pop(_OPENED, None)
    state.put_all(EXAMPLES[key].changes)


def _back() -> None:
    before = st.session_state.pop(_BEFORE, None)
    if before is not None:
        state.put_all(before)


def draw() -> None:
    """Draw one button for each example, and the way back."""
    now = shown(state.settings())

    def picked() -> None:
        key = st.session_state["examples.now"]
        if key is not None:
            take(key)

    def back() -> None:
        st.session_state.pop(_OPENED, None)
        st.session_state[_OWN] = True
        _back()

    controls.fill("examples.now", now)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Example: twenty features, two of which vary; which are favoured?",
            list(EXAMPLES),
            format_func=lambda key: EXAMPLES[key].label,
            key="examples.now",
            on_change=state.on_change(picked),
        )
        if now is not None and _BEFORE in st.session_state:
            st.button(
                "Back to my settings",
                icon=":material/undo:",
                key="examples.back",
                on_click=state.on_change(back),
                help="The table and the settings from before the example.",
            )
