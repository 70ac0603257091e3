"""Facts that a guarantee does not cover, with two computed leaks."""

from __future__ import annotations

import streamlit as st

from dpviz.auditing import exhibits
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences import claims as claims_words
from pages.ui import parts


def draw(prepared: Prepared | None) -> None:
    """Explain which facts a guarantee does not cover, with two computed leaks."""
    st.header("What exploring does not protect", anchor="exploring")
    st.markdown(
        "A guarantee covers the release and nothing that was fixed before the release. The mean, "
        "the row-norm bound, the scales and k are assumed to be known. Values that are taken from "
        "the data and published leak with certainty, whatever epsilon is. Two examples use a "
        "synthetic class of thirty; the attacker knows all pupils but the last:"
    )
    left, right = st.columns(2)
    mean, bound = exhibits.mean_leak_table(), exhibits.bound_leak_table()
    with left:
        st.markdown("**The mean reveals the last row**")
        columns = {
            "feature": "Feature",
            "sum_of_known": ("Sum of the known rows", 4),
            "published_mean": ("Published mean", 6),
            "recovered": ("Recovered", 4),
            "true": ("True", 4),
        }
        parts.table(mean, columns, "claims.mean", "Row recovered from the mean")
        st.caption(claims_words.mean_leak_caption(mean))
    with right:
        st.markdown("**The row-norm bound reveals the last pupil's presence**")
        columns = {
            "table": "Table",
            "largest_known": ("Longest known row", 4),
            "published_bound": ("Published bound", 4),
        }
        parts.table(bound, columns, "claims.bound", "Row-norm bound of both tables")
        st.caption(claims_words.bound_leak_caption(bound))
    st.caption(
        "No guarantee covers looking at exact components, comparing mechanisms on real data, or "
        "moving sliders until a chart looks good. Make such choices on public or synthetic data."
    )
    if prepared is not None:
        parts.assumed_public(prepared)
