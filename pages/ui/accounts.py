"""Privacy accounting on a page: delta against epsilon, and the cost of repeated releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dpviz.core.errors import DpvizError
from dpviz.studies.account import account
from pages.ui import parts
from pages.ui.ask import ask
from pages.ui.texts import plain


def draw(options: Mapping[str, Any], name: str) -> None:
    """Draw the answer of ``dpviz account``; ``name`` makes the charts' keys unique."""
    try:
        answer = ask(account, options)
    except DpvizError as error:  # If the mechanism cannot run here, show only the reason.
        st.caption(plain(error))
        return
    st.caption(plain("; ".join(answer.summary().splitlines())))
    for kind, alt in (
        ("curve", "Delta against epsilon of one release"),
        ("repeated", "Total epsilon of several releases, by up to three methods"),
    ):
        parts.plot(answer.figure(kind), key=f"{name}.{kind}", alt=alt)
