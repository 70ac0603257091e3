"""An account on a page: delta along epsilon, and what repeating a release costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dpviz.core.errors import DpvizError
from dpviz.studies.account import account
from pages.ui.ask import ask
from pages.ui.texts import plain


def draw(options: Mapping[str, Any], name: str) -> None:
    """Draw what ``dpviz account`` answers; ``name`` tells the charts of a page apart."""
    try:
        found = ask(account, options)
    except DpvizError as error:  # it cannot run here, and why is all there is to say
        st.caption(plain(error))
        return
    st.caption(plain("; ".join(found.summary().splitlines())))
    for kind, alt in (
        ("curve", "Delta against epsilon of one release"),
        ("repeated", "Epsilon of several releases together, added up in up to three ways"),
    ):
        st.plotly_chart(found.figure(kind), key=f"{name}.{kind}", alt=alt)
