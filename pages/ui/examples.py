"""The examples of the Precision page, and the way back to the earlier settings.

If the visitor has set nothing yet, the page opens with the first example instead of flat lines.
Leaving the page restores the settings that the example replaced.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dpviz.studies.precision import EXAMPLES, shown
from pages.ui import controls, state
from pages.ui.page_options import page_defaults

PAGE, OWN = "Precision", "own"
_BEFORE, _OPENED, _OWN = "examples.before", "examples.opened", "examples.own"


def visit(title: str) -> None:
    """Open the first example on this page if the visitor has set nothing; close it elsewhere."""
    first = next(iter(EXAMPLES))
    if title == PAGE:
        if state.settings() == page_defaults() and not st.session_state.get(_OWN):
            take(first)
            st.session_state[_OPENED] = True
    elif st.session_state.pop(_OPENED, False) and shown(state.settings()) == first:
        _back()


def take(key: str) -> None:
    """Apply an example's settings, and remember the earlier settings."""
    settings = state.settings()
    if shown(settings) is None:
        st.session_state[_BEFORE] = dict(st.session_state.view)
    st.session_state.pop(_OPENED, None)
    state.put_all(EXAMPLES[key].changes)


def following() -> tuple[str, Callable[[], None]]:
    """Return the words of a button for the example after the shown one, and what it does."""
    keys, now = list(EXAMPLES), shown(state.settings())
    after = keys[(keys.index(now) + 1) % len(keys)] if now else keys[0]
    return f"Next example: {EXAMPLES[after].label}", state.on_change(lambda: take(after))


def _back() -> None:
    before = st.session_state.pop(_BEFORE, None)
    state.put_all(state.held(page_defaults()) if before is None else before)


def draw() -> None:
    """Draw one button for each example, and one for the earlier settings."""
    words = {OWN: "My settings", **{key: example.label for key, example in EXAMPLES.items()}}

    def picked(key: str) -> None:
        if key != OWN:
            take(key)
        elif shown(state.settings()) is not None:
            st.session_state.pop(_OPENED, None)
            st.session_state[_OWN] = True
            _back()

    controls.control(
        st.segmented_control,
        "Examples: two of twenty features vary. Which two features get less noise?",
        "examples.now",
        shown(state.settings()) or OWN,
        picked,
        options=list(words),
        format_func=words.__getitem__,
        required=True,
    )
