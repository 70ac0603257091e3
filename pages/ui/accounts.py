"""An account on a page: delta along epsilon, and what repeating a release costs."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpviz.report.figures.account import curve_figure, repeated_figure
from pages.ui.texts import plain


def draw(found: tuple[str, pd.DataFrame, pd.DataFrame] | str, name: str) -> None:
    """Draw what `account_cache.account` found; ``name`` tells the charts of a page apart."""
    if isinstance(found, str):
        st.caption(plain(found))
        return
    words, curve, repeated = found
    if words:
        st.caption(f"{words}.")
    st.plotly_chart(
        curve_figure(curve), key=f"{name}.curve", alt="Delta against epsilon of one release"
    )
    st.plotly_chart(
        repeated_figure(repeated),
        key=f"{name}.repeated",
        alt="Epsilon of several releases together, added up in up to three ways",
    )
