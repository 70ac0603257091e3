"""Explore: the comparison figure, and below it every chart and number of one setting."""

PAGE = {
    "title": "Explore",
    "icon": ":material/scatter_plot:",
    "place": 20,
    "first": True,
    "term": "recovery",
    "about": "Each column is one mechanism, simulated many times on the same table. Move epsilon "
    "to the left: the small eigenvalues are lost below the noise edge, then the released space "
    "turns away. At very small epsilons the chart shows only chance. The line under each name says "
    "whether the claim of its paper is true in this setting. Click a column to enlarge it.",
}

from typing import TYPE_CHECKING, Any

import streamlit as st

from dpviz.core.files import csv_text
from dpviz.preparation.bounding import Prepared
from dpviz.report.sentences import explore as narrative
from dpviz.simulation.compare import Comparison
from pages.ui import board, controls, loading, parts, sections, shell, state, take
from pages.ui.guard import guard
from pages.ui.texts import plain

if TYPE_CHECKING:
    from dpviz.studies.compare import Compared

current = shell.through_entry()


def take_away(comparison: Comparison) -> None:
    """Draw the downloads: the numbers and the command."""

    def answer() -> "Compared":
        from dpviz.studies.compare import Compared  # Load this only for a download.

        return Compared.of(comparison)

    st.header("Download the results", anchor="take")
    row = st.container(horizontal=True, key="take.numbers")
    for label, make, name, key in (
        ("Summary (CSV)", lambda: csv_text(answer().table()), "dpviz-summary.csv", "summary"),
        ("Every release (CSV)", lambda: csv_text(comparison.table()), "dpviz-draws.csv", "draws"),
        ("All results (JSON)", lambda: answer().to_json(), "dpviz.json", "json"),
    ):
        parts.download(label, make, name, f"download.{key}", place=row)
    if current.prepared is not None:
        take.along(comparison, current.prepared)
    parts.command(current.settings)


def published(comparison: Comparison, prepared: Prepared, warning: str | None) -> None:
    """Draw the texts for a view of an upload that shows no rows."""
    st.caption(plain(narrative.published(comparison)))
    notes(comparison, warning)
    st.header("Download the results", anchor="take")
    take.along(comparison, prepared, publishable=True)
    parts.command(comparison.settings)
    parts.assumed_public(prepared, comparison.assumed_public)


def more(comparison: Comparison) -> None:
    """Draw every chart with its caption and numbers, if requested."""
    if controls.control(
        st.toggle,
        "All charts, with captions and numbers",
        "explore.charts",
        state.get("charts", "explore") == "all",
        lambda on: state.put("charts", "all" if on else "board", "explore"),
        keeps=True,
    ):
        sections.spectrum(comparison)
        sections.distance(comparison)
        if current.prepared is not None:
            sections.projection(comparison, current.prepared)


def working(comparison: Comparison, prepared: Prepared, warning: str | None) -> None:
    """Draw the view that compares with exact PCA, and the view of a public table."""
    section = board.opened(comparison)
    if section is not None:
        sections.one(section)
    st.markdown(f"**{narrative.verdict(comparison)}**")
    st.caption(plain(narrative.facts(comparison)))
    st.page_link(
        shell.page("Guide"),
        label="New here? The Guide shows what privacy does.",
        icon=":material/route:",
    )
    parts.table_notes(prepared)
    notes(comparison, warning)
    if comparison.results:
        sections.table(comparison)
        more(comparison)
        take_away(comparison)
    parts.assumed_public(prepared, comparison.assumed_public)


def notes(comparison: Comparison, warning: str | None) -> None:
    """Draw the notes that follow from the setting alone."""
    settings = comparison.settings
    free = narrative.free_lunch(settings)
    for note in (free, narrative.epsilon_note(settings.epsilon), warning):
        if note is not None:
            st.caption(note)
    sections.not_run(comparison)


def scaled() -> None:
    """Standardise the table, so that every feature has the same spread."""
    state.put("scale", "standardize")


def pin() -> dict[str, Any] | None:
    """Return the payload of the pinned setting."""
    with guard():
        pinned = loading.pinned()
        if pinned is not None and pinned.prepared is not None:
            return board.pinned(pinned)
    return None


page = board.asked_page()
if page is not None:
    st.switch_page(shell.page(page), query_params={})
with st.container(key="unseen"):  # Only screen readers read this title out.
    st.title("How small can epsilon be before the structure disappears?", anchor=False)
with guard():
    if current.prepared is not None:
        prepared = current.prepared
        publishable = board.publishable(prepared)
        warning = shell.delta_warning(current)
        hint = None if publishable else narrative.scaling_hint(prepared, current.settings)
        if hint is not None:
            row = st.container(horizontal=True, vertical_alignment="center", key="scaling")
            row.markdown(hint)
            scale = "**Scale every feature**"  # A button without a frame fits in the same line.
            row.button(scale, type="tertiary", on_click=state.on_change(scaled), key="scaling.do")
        opening = board.open_(current, early=not publishable)
        follow = board.draw(opening, current, pin(), warning)
        if opening.comparison is None:  # Shipped data needs no wait, so draw all at once.
            follow()
        comparison = opening.comparison or board.comparison_of(current)
        if publishable:
            published(comparison, prepared, warning)
        else:
            working(comparison, prepared, warning)
        if opening.comparison is not None:
            shell.follow(follow)
