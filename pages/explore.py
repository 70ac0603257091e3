"""Explore: the board, and behind it every chart and number of one setting."""

PAGE = {
    "title": "Explore",
    "icon": ":material/scatter_plot:",
    "place": 20,
    "first": True,
    "term": "recovery",
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

DRAWN = "explore.table"


def take_away(comparison: Comparison) -> None:
    """Draw what can be taken along: the numbers and the command."""

    def answer() -> "Compared":
        from dpviz.studies.compare import Compared  # not before a file is asked for

        return Compared.of(comparison)

    st.header("Take it along", anchor="take")
    row = st.container(horizontal=True, key="take.numbers")
    for label, make, name, key in (
        ("Summary (CSV)", lambda: csv_text(answer().table()), "dpviz-summary.csv", "summary"),
        ("Every draw (CSV)", lambda: csv_text(comparison.table()), "dpviz-draws.csv", "draws"),
        ("All as JSON", lambda: answer().to_json(), "dpviz.json", "json"),
    ):
        parts.download(label, make, name, f"download.{key}", place=row)
    if current.prepared is not None:
        take.along(comparison, current.prepared)
    parts.command(current.settings)
    st.caption(
        "A picture is saved by a right click on it, the distances by a button in their upper right "
        "corner."
    )


def published(comparison: Comparison, prepared: Prepared, warning: str | None) -> None:
    """Draw what is said of an upload in its view without rows."""
    st.caption(plain(narrative.published(comparison)))
    notes(comparison, warning)
    st.header("Take it along", anchor="take")
    take.along(comparison, prepared, publishable=True)
    parts.command(comparison.settings)
    parts.assumed_public(prepared, comparison.assumed_public)


def more(comparison: Comparison) -> None:
    """Draw every chart with its caption and numbers, where it is asked for."""
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
    """Draw what compares with the truth, and with it all that is said of a public table."""
    opened = board.opened(comparison)
    if opened is not None:
        sections.one(opened)
    hint = narrative.scaling_hint(comparison)
    if hint is not None:
        row = st.container(horizontal=True, vertical_alignment="center", key="scaling")
        row.markdown(hint)
        row.button("Scale every feature", on_click=state.on_change(scaled), key="scaling.do")
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
    """Draw what follows from the setting alone."""
    settings = comparison.settings
    free = narrative.free_lunch(settings)
    for note in (free, narrative.epsilon_note(settings.epsilon), warning):
        if note is not None:
            st.caption(note)
    sections.not_run(comparison)


def scaled() -> None:
    """Give every feature the same spread."""
    state.put("scale", "standardize")


def pin() -> dict[str, Any] | None:
    """Return what the board shows of the pinned setting."""
    with guard():
        held = loading.pinned()
        if held is not None and held.prepared is not None:
            return board.pinned(held)
    return None


asked = board.asked_page()
if asked is not None:
    st.switch_page(shell.page(asked), query_params={})
with st.container(key="unseen"):  # for screen readers: the board needs the room
    st.title("How small can epsilon be before the structure disappears?", anchor=False)
before, st.session_state[DRAWN] = st.session_state.get(DRAWN), current.data_key[:1]
# what was drawn of another table goes at once, while this one computes
place = st if before == current.data_key[:1] else st.empty()
with place.container(), guard():
    if current.prepared is not None:
        prepared = current.prepared
        publishable = board.publishable(prepared)
        warning = shell.delta_warning(current)
        opening = board.open_(current, early=not publishable)
        follow = board.draw(opening, current, pin(), warning)
        if opening.comparison is None:  # all that follows ships: it need not wait for the page
            follow()
        comparison = opening.comparison or board.comparison_of(current)
        if publishable:
            published(comparison, prepared, warning)
        else:
            working(comparison, prepared, warning)
        if opening.comparison is not None:
            shell.follow(follow)
