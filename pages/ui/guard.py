"""Input errors become one sentence on the page; bugs stay loud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dpviz.errors import DpvizError


@contextmanager
def guard() -> Iterator[None]:
    """Show a `DpvizError` as one sentence; let everything else through."""
    try:
        yield
    except DpvizError as error:
        st.error(str(error), icon=":material/error:")
