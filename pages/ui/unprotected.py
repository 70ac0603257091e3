"""What a guarantee does not cover, with two leaks computed."""

from __future__ import annotations

import streamlit as st

from dpviz.auditing import exhibits
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences import claims as claims_words
from pages.ui import parts


def draw(prepared: Prepared | None) -> None:
    """Explain what a guarantee does not cover, with two leaks computed."""
    st.header("What exploring does not protect", anchor="exploring")
    st.markdown(
        "A guarantee covers the release and nothing that was fixed before it. The mean, the row "
        "bound, the scales and k are assumed known; taken from the data and published, they leak "
        "with certainty, whatever epsilon is. Two examples with an invented class of thirty, of "
        "whom the attacker knows all but the last:"
    )
    left, right = st.columns(2)
    mean, bound = exhibits.mean_leak_table(), exhibits.bound_leak_table()
    with left:
        st.markdown("**The mean gives the last row away**")
        columns = {
            "feature": "Feature",
            "sum_of_known": ("Sum of the known", 4),
            "published_mean": ("Published mean", 6),
            "recovered": ("Recovered", 4),
            "true": ("True", 4),
        }
        parts.table(mean, columns, "claims.mean", "Row recovered from the mean")
        st.caption(claims_words.mean_leak_caption(mean))
    with right:
        st.markdown("**The row bound tells whether they are in**")
        columns = {
            "table": "Table",
            "largest_known": ("Longest known row", 4),
            "published_bound": ("Published bound", 4),
        }
        parts.table(bound, columns, "claims.bound", "Row bound of both tables")
        st.caption(claims_words.bound_leak_caption(bound))
    st.caption(
        "Looking at exact components, comparing mechanisms on the real table, and moving sliders "
        "until a picture pleases are not covered either: choose on public or synthetic data."
    )
    if prepared is not None:
        parts.assumed_public(prepared)
