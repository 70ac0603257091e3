"""The frame around every page: navigation, the shared sidebar, the current table."""

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

# Use a letter from the reader's fonts: a Material icon would be fetched from another host.
TAB_ICON = "🔍"


# This component runs an open page again after its server restarts; the link holds the settings. It
# prevents a history step when a page adds settings to an address, and makes copy buttons work.
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
    groups: dict[str, list[StreamlitPage]] = {}
    for info in infos():
        if not info.releases or no_releases() is None:
            groups.setdefault(info.group, []).append(_page(info))
    return groups


def _page(info: PageInfo) -> StreamlitPage:
    return st.Page(info.path, title=info.title, icon=info.icon, default=info.first)


def no_releases() -> str | None:
    """Return why no real release can be made here, or None."""
    if not limits.caps().release:
        return "Releases are switched off on this server."
    # Give no reason in the browser edition, because its page already explains the reason.
    return None if can_release() or in_browser() else f"{NO_OPENDP[:1].upper()}{NO_OPENDP[1:]}."


def page(title: str) -> StreamlitPage:
    """Return the page with the given title."""
    return _page(info_of(title))


def run() -> None:
    """Draw the whole app; only app.py calls this function."""
    state.start()
    hearing.taken()
    with limits.turn():
        _run()


def _run() -> None:
    pages = menu()
    page = st.navigation(pages, position="top")
    info = info_of(page.title)
    heading = len(pages[""]) + [*pages].index(info.group)
    here = f'[data-testid="stTopNav"] > :nth-child({heading}) > [data-testid="stTopNavSection"]'
    name = f':root {{ --dp-page: "{page.title}"; }}'  # A phone has no room for the whole menu.
    table = state.get("table"), getattr(st.session_state.get("file"), "file_id", "")
    gone = "" if st.session_state.get("shell.table", table) == table else looks.GONE
    st.html(f"<style>{looks.FRAME}{name}{here} {{ {looks.HERE} }}{gone}</style>")
    limits.enter()
    st.session_state[state.PAGE] = page.title
    examples.visit(page.title)
    # A page with its own settings does not show the loaded table, so it must not wait for it.
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
            about=info.about,
        )
        if not info.own_reading:  # The Release page has its own settings for reading a table.
            with st.sidebar:
                sidebar.draw()
    token = _CURRENT.set(
        Current(state.settings(), current.prepared, current.data_key, current.problem)
    )
    following: list[Callable[[], None]] = []
    _FOLLOWING.set(following)
    try:
        st.html(looks.STYLE + copying.STYLE)
        # Show notices in their own container: if they change, open elements below must not close.
        with st.container():
            _notices(current, info)
        _notes(current, info)
        if not (info.own_settings or info.own_reading):
            _check(current, info)
        with limits.looking_up():
            page.run()
        st.session_state["shell.table"] = table
        with st.container(key="window", height="content", gap=None):
            _WINDOW(key="window.back", on_back_change=lambda: None, height=1)
        if info.term:
            glossary.info(info.term, "page")
            glossary.marks()
    finally:
        _CURRENT.reset(token)
    state.write_link()
    # Run these functions after the page is drawn, so that they do not delay it.
    with guard(), limits.looking_up():
        for act in following:
            act()


def follow(act: Callable[[], None]) -> None:
    """Let a page run a function after the whole page is drawn."""
    _FOLLOWING.get().append(act)


def through_entry() -> Current:
    """Return the settings and table of this page; run app.py first if necessary.

    On a fresh server Streamlit runs a page's file by itself until
    ``st.navigation`` has run once in the process.
    """
    current = _CURRENT.get()
    if current is None:
        # Without this icon, the tab shows Streamlit's icon, which browsers fetch from another host.
        st.set_page_config(page_icon=TAB_ICON)
        st.navigation(menu())
        st.rerun()
    return current


def _check(current: Current, page: PageInfo) -> None:
    """Draw the check of an uploaded table, or other ways to read an unusable file."""
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
        rows = current.prepared
        quiet = page.first and rows is not None and board.publishable(rows)
        check.step(raw, current.problem, few, quiet=quiet, folded=page.answers_first)
    if current.problem is not None:
        check.unusable(encoding)


def _notices(current: Current, page: PageInfo) -> None:
    for sentence in state.take_notices():
        st.warning(plain(sentence), icon=":material/info:")
    if current.problem is not None and not (page.own_settings or page.own_reading):
        say_error(current.problem)


def _notes(current: Current, page: PageInfo) -> None:
    """Explain the current epsilon and delta; the page with the comparison figure does so itself."""
    note, warning = epsilon_note(state.get("epsilon")), delta_warning(current)
    with st.container(key="notes"):
        if not (page.first or page.own_settings):
            if note is not None:
                st.info(note, icon=":material/shield:")
            if warning is not None:
                st.warning(warning, icon=":material/shield:")


def delta_warning(current: Current) -> str | None:
    """Return the warning about the current delta, or None."""
    text, warns = _delta_note(current)
    return text if warns else None


def _delta_note(current: Current) -> tuple[str, bool]:
    """Return the meaning of delta for the table, and whether this is a warning."""
    if current.prepared is None:
        return "", False
    return delta_note(current.prepared.budget(state.settings()).delta, current.prepared.n)
