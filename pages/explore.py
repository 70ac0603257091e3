"""Explore: every chosen mechanism side by side at one setting."""

import json

import streamlit as st

from dpviz.narrative import explore as explore_words
from dpviz.run.compare import Comparison
from pages.ui import cached, parts, shell, take
from pages.ui import sections as views
from pages.ui.guard import guard
from pages.ui.texts import plain

current = shell.through_entry()


def take_away(comparison: Comparison) -> None:
    """Draw what can be taken along: the numbers and the command."""
    st.subheader("Take it along", anchor="take")
    left, middle, right = st.columns(3)
    left.download_button(
        "Summary (CSV)",
        lambda: comparison.summary_table().to_csv(index=False),
        file_name="dpviz-summary.csv",
        icon=":material/download:",
        on_click="ignore",
        key="download.summary",
    )
    middle.download_button(
        "Every draw (CSV)",
        lambda: comparison.table().to_csv(index=False),
        file_name="dpviz-draws.csv",
        icon=":material/download:",
        on_click="ignore",
        key="download.draws",
    )
    right.download_button(
        "All as JSON",
        lambda: json.dumps(comparison.to_json(), indent=1),
        file_name="dpviz.json",
        icon=":material/download:",
        on_click="ignore",
        key="download.json",
    )
    if current.prepared is not None:
        take.along(comparison, current.prepared)
    parts.command(current.settings)
    st.caption("Each figure has a save button in its lower or upper right corner.")


st.title("What does privacy cost this PCA?", anchor=False)
parts.newcomers()
with guard():
    if current.prepared is not None:
        found = cached.comparison(current.data_key, current.prepared, current.settings)
        st.markdown(f"**{explore_words.verdict(found)}**")
        st.caption(plain(explore_words.facts(found)))
        st.page_link(
            shell.page("Guide"),
            label="New here? The Guide shows what privacy does in short lessons.",
            icon=":material/route:",
        )
        parts.table_notes(current.prepared)
        parts.fresh_draw()
        if found.results:
            views.spectrum(found, current.data_key)
            views.distance(found)
            views.projection(found)
            views.table(found)
            take_away(found)
        views.not_run(found)
        parts.assumed_public(current.prepared)
