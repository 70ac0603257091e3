"""The frame around every page: navigation, the shared sidebar, the table in use."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.core.errors import DpvizError, OtherEncoding
from dpviz.core.platform import NO_OPENDP, can_release, in_browser
from dpviz.report.sentences.explore import delta_note, epsilon_note, too_few_rows
from pages.ui import (
    bar,
    board,
    check,
    copying,
    examples,
    glossary,
    hearing,
    limits,
    loading,
    looks,
    sidebar,
    state,
)
from pages.ui.guard import guard, say_error
from pages.ui.loading import Current
from pages.ui.menu import PageInfo, info_of, infos
from pages.ui.state import UPLOAD
from pages.ui.texts import plain

# A letter of the reader's own fonts: browsers would fetch a Material icon from another host.
TAB_ICON = "🔍"


# Runs a page again that was open while its server was restarted; the link says what was set. And
# a page that adds its settings to the menu's address makes no step of history of it. And a button
# beside a command copies it.
_WINDOW = st.components.v2.component(
    "dpviz_window",
    js="".join(
        (Path(__file__).parent / name).read_text(encoding="utf-8")
        for name in ("history.js", "copying.js", "window.js")
    ),
)
_CURRENT: ContextVar[Current | None] = ContextVar("current", default=None)
_FOLLOWING: ContextVar[list[Callable[[], None]]] = ContextVar("following")


def menu() -> dict[str, list[StreamlitPage]]:
    """Return every page under its heading, in the order of the menu."""
    found: dict[str, list[StreamlitPage]] = {}
    for info in infos():
        if not info.releases or no_releases() is None:
            found.setdefault(info.group, []).append(_page(info))
    return found


def _page(info: PageInfo) -> StreamlitPage:
    return st.Page(info.path, title=info.title, icon=info.icon, default=info.first)


def no_releases() -> str | None:
    """Return why no real release can be made here, if none can."""
    if not limits.caps().release:
        return "Releases are switched off here."
    # a browser has its own sentence, on the page
    return None if can_release() or in_browser() else f"{NO_OPENDP[:1].upper()}{NO_OPENDP[1:]}."


def page(title: str) -> StreamlitPage:
    """Return the page with a title."""
    return _page(info_of(title))


def run() -> None:
    """Draw the whole app: called by app.py and by nothing else."""
    state.start()
    hearing.taken()
    with limits.turn():
        _run()


def _run() -> None:
    page = st.navigation(menu(), position="top")
    info = info_of(page.title)
    st.html(f"<style>{looks.FRAME}</style>")
    limits.enter()
    st.session_state[state.PAGE] = page.title
    examples.visit(page.title)
    # A page of its own settings is not held up by a table that it does not show.
    current = Current(state.settings(), None, (), None) if info.own_settings else loading.load()
    loading.clamp(current)
    if not info.own_settings:
        bar.draw(
            current.prepared,
            scrubbed=info.first and current.prepared is not None,
            note=_delta_note(current)[0],
            table=sidebar.table_choice,
            upload=lambda: sidebar.upload(current, own_reading=info.own_reading),
            unused=info.unread,
        )
        if not info.own_reading:  # a release has all its settings on its page
            with st.sidebar:
                sidebar.draw()
    token = _CURRENT.set(
        Current(state.settings(), current.prepared, current.data_key, current.problem)
    )
    following: list[Callable[[], None]] = []
    _FOLLOWING.set(following)
    try:
        st.html(looks.STYLE + copying.STYLE)
        # in a box of their own: what comes and goes here must not close what is open below
        with st.container():
            _notices(current, info)
        _notes(current, info)
        if not (info.own_settings or info.own_reading):
            _check(current, info)
        with limits.looking_up():
            page.run()
        with st.container(key="window", height="content", gap=None):
            _WINDOW(key="window.back", on_back_change=lambda: None, height=1)
        if info.term:
            glossary.info(info.term, "page")
            glossary.marks()
    finally:
        _CURRENT.reset(token)
    state.write_link()
    # What a page sends after itself, such as frames to scrub through, holds up nothing of it.
    with guard(), limits.looking_up():
        for act in following:
            act()


def follow(act: Callable[[], None]) -> None:
    """Let a page do something once all of it is drawn."""
    _FOLLOWING.get().append(act)


def through_entry() -> Current:
    """Return what this page is about; enter through app.py first if need be.

    On a fresh server Streamlit runs a page's file by itself until
    ``st.navigation`` has run once in the process.
    """
    current = _CURRENT.get()
    if current is None:
        # Else the tab shows the page's own icon, which browsers fetch from another host.
        st.set_page_config(page_icon=TAB_ICON)
        st.navigation(menu())
        st.rerun()
    return current


def _check(current: Current, page: PageInfo) -> None:
    """Draw the check of an uploaded table, or the way on from a file that cannot be used."""
    if state.get("table") != UPLOAD:
        return
    raw, encoding = None, ""
    try:
        raw = loading.uploaded_raw()
    except OtherEncoding as error:
        encoding = error.encoding
    except DpvizError:
        pass
    if raw is not None:
        few = None
        if current.prepared is not None:
            delta = current.prepared.budget(state.settings()).delta
            few = too_few_rows(delta, current.prepared.n)
        shown = current.prepared
        quiet = page.first and shown is not None and board.publishable(shown)
        check.step(raw, current.problem, few, quiet=quiet, folded=page.answers_first)
    if current.problem is not None:
        check.unusable(encoding)


def _notices(current: Current, page: PageInfo) -> None:
    for sentence in state.take_notices():
        st.warning(plain(sentence), icon=":material/info:")
    if current.problem is not None and not (page.own_settings or page.own_reading):
        say_error(current.problem)


def _notes(current: Current, page: PageInfo) -> None:
    """Say what the epsilon and the delta mean where they stand; the board says it itself."""
    note, said = epsilon_note(state.get("epsilon")), delta_warning(current)
    with st.container(key="notes"):
        if not (page.first or page.own_settings):
            if note is not None:
                st.info(note, icon=":material/shield:")
            if said is not None:
                st.warning(said, icon=":material/shield:")


def delta_warning(current: Current) -> str | None:
    """Return what is to be warned of in the delta in use, if anything is."""
    said, warns = _delta_note(current)
    return said if warns else None


def _delta_note(current: Current) -> tuple[str, bool]:
    """Return what delta means for the table, and whether that is a warning."""
    if current.prepared is None:
        return "", False
    return delta_note(current.prepared.budget(state.settings()).delta, current.prepared.n)
