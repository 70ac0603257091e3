"""What theorems state about the people needed, beside what the draws show."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpviz.core.number_text import numeral, per_cent
from dpviz.simulation.bounds import needs
from dpviz.simulation.growth import growth_table
from dpviz.simulation.least import measured_need
from pages.ui.ask import ask
from pages.ui.loading import Current

RHO, ETA = 0.9, 0.05


def section(about: Current) -> None:
    """Set the papers' theorems beside what the draws show."""
    st.header("What the papers state, and what is measured", anchor="stated")
    settings = about.settings
    said = needs(about.prepared, settings, RHO, ETA)
    measured = {}
    if st.toggle(
        "Measure the need",
        key="stated.measure",
        persist_state="session",
        help="Searches the least n by drawing releases: some seconds.",
    ):
        for one in dict.fromkeys(need.mechanism for need in said if need.mechanism):
            found = ask(
                measured_need,
                {"settings": settings, "mechanism": one, "rho": RHO, "eta": ETA},
                about,
                saying=f"Searching: {one.label}, people",
            )
            measured[one.text] = found.high
    table = pd.DataFrame(
        {
            "mechanism": [n.mechanism.label if n.mechanism else "every pure one" for n in said],
            "statement": [need.statement for need in said],
            "kind": [need.kind for need in said],
            "stated": [need.people for need in said],
            "measured": [
                measured.get(need.mechanism.text) if need.mechanism else None for need in said
            ],
        }
    )
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        key="stated.needs",
        placeholder="–",
        column_config={
            "mechanism": "Mechanism",
            "statement": st.column_config.TextColumn("Statement", width="large"),
            "kind": "Kind",
            "stated": number("People stated", format="localized"),
            "measured": number("People enough, measured", format="localized"),
        },
        alt="Sample sizes that theorems state, beside the measured need",
    )
    st.caption(
        "People needed to find the first component (k = 1) with |cosine| at least "
        f"{numeral(RHO, 6)} in "
        f"{per_cent(numeral(100 * (1 - ETA), 6))} of releases, "
        f"at epsilon {numeral(settings.epsilon, 6)}, "
        "for this "
        "table's spectrum. Proved: enough whatever the data, constants included. Our reading: the "
        "line is garbled in print. Scaling only: an order of growth, not a number to be met. A "
        "dash: not measured, or the theorem is silent here."
    )
    if st.toggle(
        "Measure how the noise grows with d", key="stated.growth", persist_state="session"
    ):
        st.dataframe(
            ask(growth_table, {}, saying="Measuring the noise at d from 10 to 160"),
            hide_index=True,
            key="stated.exponents",
            placeholder="–",
            column_config={
                "mechanism": "Mechanism",
                "measured": number("Measured power of d", format="%.2f"),
                "error": number("Standard error", format="%.2f"),
                "exponent": number("Stated power of d", format="%.1f"),
                "stated": "As stated",
            },
            alt="Exponents of the noise's growth in d, measured and stated",
        )
        st.caption(
            "Spectral norm of the noise for d from 10 to 160, a power fitted. Stated: Jiang et "
            "al. 2016, Table 1, scaling only; logarithms hardly show over this range."
        )
