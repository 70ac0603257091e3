"""Input errors become one sentence on the page; program errors stay visible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dpviz.core.errors import DpvizError
from pages.ui.texts import plain


@contextmanager
def guard() -> Iterator[None]:
    """Show a `DpvizError` as one sentence; do not handle other errors."""
    try:
        yield
    except DpvizError as error:
        say_error(error)


def say_error(sentence: object) -> None:
    """Show why something cannot be done; quoted text is shown unchanged."""
    st.error(plain(sentence), icon=":material/error:")
