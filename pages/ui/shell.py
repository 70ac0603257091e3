"""The frame around every page: navigation, the shared sidebar, the table in use."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from dpviz.base.here import UPLOADS_STAY, in_browser
from dpviz.base.params import params_of
from dpviz.datasets import RawTable, Table, builtin_tables
from dpviz.errors import DpvizError, InvalidSetting
from dpviz.narrative.explore import delta_note, epsilon_note, too_few_rows
from dpviz.paid.steps import STEPS
from dpviz.prepare.bounding import Prepared
from dpviz.settings import Settings, names_in
from dpviz.values.allocation_text import parse_allocation
from dpviz.values.problem import Budget, Domain, Problem, Relation
from pages.ui import (
    bar,
    bounds,
    cached,
    check,
    controls,
    examples,
    glossary,
    limits,
    looks,
    printing,
    reconnect,
    state,
)
from pages.ui.guard import guard, say_error
from pages.ui.state import UPLOAD
from pages.ui.texts import plain

# Options with a widget of their own; every other declared one is drawn by kind.
_DRAWN_APART = {
    "table", "label", "bounds", "mechanisms", "row_bound", "allocation", "directions", "epsilon",
    "delta", "k",
}  # fmt: skip

# Headings of the sidebar, and the group of options under each.
_GROUPS = {
    "Neighbours": "Privacy", "Draws": "Mechanisms", "Shares": "Precision",
    "Preparation": "Preparation",
}  # fmt: skip


@dataclass(frozen=True)
class Current:
    """What the page being drawn is about.

    ``prepared`` is None while a file is missing or cannot be used;
    ``problem`` then says why.
    """

    settings: Settings
    prepared: Prepared | None
    data_key: tuple[str, ...]
    problem: str | None


# A letter of the reader's own fonts: browsers would fetch a Material icon from another host.
TAB_ICON = "🔍"

# Streamlit keeps 8 rem of air above a page and 5 rem beside it: a third of a laptop's screen.
_STYLE = """
[data-testid="stMainBlockContainer"] { padding: 3.9rem 1.4rem 2rem; }
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: .6rem; }
.st-key-unseen {
  position: absolute; left: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
}
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"] { padding: 3.9rem 12px 5rem; }
}
@media (max-width: 1000px) { /* a phone, and a laptop at 200 % */
  /* One row to be swiped, not nine rows above everything. */
  .st-key-bar [data-testid="stHorizontalBlock"] { flex-wrap: nowrap; overflow-x: auto; }
  .st-key-bar [data-testid="stColumn"] { flex: 0 0 auto; min-width: 8.5rem; }
}
"""

_CURRENT: ContextVar[Current | None] = ContextVar("current", default=None)
_FOLLOWING: ContextVar[list[Callable[[], None]]] = ContextVar("following")


_WHERE_IT_STAYS = (
    UPLOADS_STAY
    if in_browser()
    else "The file stays in this session's memory on the server that runs dpviz (a large upload "
    "may pass through a temporary file there) and goes when the session ends."
)

FIRST = "Explore"
OWN_SETTINGS = {"Guide", "Papers"}
"""Pages that ignore the shared settings and so do not show them."""


def menu() -> dict[str, list[StreamlitPage]]:
    """Return every page under its heading, in the order of the menu."""
    return {
        "": [
            st.Page("pages/guide.py", title="Guide", icon=":material/route:"),
            st.Page("pages/explore.py", title=FIRST, icon=":material/scatter_plot:", default=True),
            st.Page("pages/tradeoffs.py", title="Trade-offs", icon=":material/show_chart:"),
            st.Page("pages/precision.py", title="Precision", icon=":material/tune:"),
            st.Page("pages/claims.py", title="Claims", icon=":material/gavel:"),
            st.Page("pages/decide.py", title="Decide", icon=":material/approval_delegation:"),
        ],
        "Reference": [
            st.Page("pages/mechanisms.py", title="Mechanisms", icon=":material/category:"),
            st.Page("pages/papers.py", title="Papers", icon=":material/menu_book:"),
            st.Page("pages/tasks.py", title="Tasks", icon=":material/school:"),
        ],
        "Release": [
            st.Page("pages/preparation.py", title="Preparation", icon=":material/receipt_long:"),
            *_release(),
        ],
    }


def pages() -> list[StreamlitPage]:
    """Return every page, in the order of the menu."""
    return [page for group in menu().values() for page in group]


def releases() -> bool:
    """Return whether real releases may be made: not by strangers, nor with DPVIZ_RELEASE=off."""
    return os.environ.get("DPVIZ_RELEASE", "on") != "off" and not limits.caps().public


def _release() -> list[StreamlitPage]:
    if not releases():
        return []
    return [st.Page("pages/release.py", title="Release", icon=":material/output:")]


def page(title: str) -> StreamlitPage:
    """Return the page with a title."""
    return next(page for page in pages() if page.title == title)


def run() -> None:
    """Draw the whole app: called by app.py and by nothing else."""
    page = st.navigation(menu(), position="top")
    st.html(f"<style>{_STYLE}</style>")
    limits.enter()
    state.start()
    examples.visit(page.title)
    # A page of its own settings is not held up by a table that it does not show.
    current = Current(state.settings(), None, (), None) if page.title in OWN_SETTINGS else _load()
    _clamp(current)
    if page.title not in OWN_SETTINGS:
        bar.draw(
            current.prepared,
            scrubbed=page.title == FIRST and current.prepared is not None,
            note=_delta_note(current)[0],
            table=_table_choice,
            upload=lambda: _upload(current),
        )
        with st.sidebar:
            _sidebar()
    token = _CURRENT.set(
        Current(state.settings(), current.prepared, current.data_key, current.problem)
    )
    following: list[Callable[[], None]] = []
    _FOLLOWING.set(following)
    try:
        st.html(looks.STYLE + printing.STYLE)
        _notices(current, page.title)
        if page.title not in OWN_SETTINGS:
            _check(current)
        with limits.looking_up():
            page.run()
        reconnect.watch()
        glossary.info(glossary.FIRST.get(page.title, "epsilon"), "page")
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


def problem_and_budget(current: Current) -> tuple[Problem, Budget]:
    """Return what mechanisms calibrate to: the table's, or a stated stand-in without one."""
    if current.prepared is not None:
        return current.prepared.problem(current.settings), current.prepared.budget(current.settings)
    relation = Relation(current.settings.relation)
    delta = 1e-6 if current.settings.delta is None else current.settings.delta
    return (
        Problem(1_000, 10, min(current.settings.k, 9), relation, Domain.ball(10)),
        Budget(current.settings.epsilon, delta),
    )


def _raw() -> RawTable | None:
    file = st.session_state.get("file")
    return (
        None
        if file is None
        else cached.raw_table(file.file_id, file.name, file, state.get("decimal"))
    )


def _load() -> Current:
    """Return the table in use, prepared, or why there is none."""
    settings = state.settings()
    try:
        table, key = _table(settings)
        if table is None:
            what = (
                "This view is of an uploaded table. Upload the file above to see it; "
                "all settings are in place."
            )
            return Current(settings, None, (), what)
        if not bounds.fit(table):
            return _load()
        return _prepared(settings, table, key)
    except DpvizError as error:
        return Current(settings, None, (), str(error))


def _prepared(settings: Settings, table: Table, key: str) -> Current:
    """Return a table as settings prepare it."""
    columns: tuple[str, ...] = ()
    if len(table.columns) > state.MAX_FEATURES:
        columns = tuple(st.session_state.get("columns") or table.columns[: state.MAX_FEATURES])[
            : state.MAX_FEATURES
        ]
    preparation = cached.preparation_of(settings)
    edited = bounds.in_force()
    limits = () if edited is None else tuple(edited.items())
    ready = cached.prepared(key, columns, preparation, limits, table, settings)
    data_key = (key, *columns, *(value for _, value in preparation), repr(limits))
    return Current(settings, ready, data_key, None)


def pinned() -> Current | None:
    """Return what the pinned setting is about, or None where nothing is pinned.

    Raises
    ------
    DpvizError
        If the pinned setting does not suit the table any more.
    """
    settings = state.pinned()
    if settings is None:
        return None
    table, key = _table(settings)
    return None if table is None else _prepared(settings, table, key)


def _table(settings: Settings) -> tuple[Table | None, str]:
    """Return the table that settings name and its cache key."""
    if settings.table != UPLOAD or not limits.caps().uploads:
        if settings.table not in builtin_tables():
            state.put("table", "digits")
            state.notice(
                f"In the link, table must be one of {', '.join(builtin_tables())} or {UPLOAD}; "
                f"got {settings.table[:40]!r}. Using digits instead."
            )
            settings = state.settings()
        check.leave()
        return cached.builtin(settings.table), settings.table
    raw = _raw()
    if raw is None:
        return None, ""
    file_id = st.session_state["file"].file_id
    check.arrive(raw, file_id)
    settings = state.settings()
    label = _label(raw)
    left = names_in(settings.leave_out)
    options = (label, settings.categorical, settings.missing, settings.decimal, left)
    return cached.uploaded(file_id, *options, raw), f"{file_id}/{options!r}"


def _label(raw: RawTable) -> str | None:
    """Return the label column that the session's index means in this file."""
    index = st.session_state.label_index
    choices = raw.label_choices
    if index is None:
        return None
    if index >= len(choices):
        st.session_state.label_index = None
        state.notice(
            f"The label must be one of the file's {len(choices)} possible columns; got number "
            f"{index}. Using none instead."
        )
        return None
    return choices[index]


def _clamp(current: Current) -> None:
    """Keep k within the table and the draw shown within the draws, and say so."""
    most = limits.caps().trials
    if state.get("trials") > most:
        state.notice(
            f"draws must be a whole number from 1 to {most} on this server; got "
            f"{state.get('trials')}. Using {most} instead."
        )
        state.put("trials", most)
    draw, trials = state.get("draw", "explore"), state.get("trials")
    if draw > trials:
        state.notice(
            f"The draw shown must be a whole number from 1 to {trials}, the number of draws; got "
            f"{draw}. Using {trials} instead."
        )
        state.put("draw", trials, "explore")
    if current.prepared is None:
        return
    most = current.prepared.d
    if state.get("k") > most:
        state.notice(
            f"k must be a whole number from 1 to {most} for this table; got {state.get('k')}. "
            f"Using {most - 1} instead."
        )
        state.put("k", most - 1)
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    try:
        allocation.check_dimension(most)
    except InvalidSetting as error:
        state.notice(f"For this table, {error} Using equal shares instead.")
        state.put("allocation", "uniform")


def _check(current: Current) -> None:
    """Draw the check of an uploaded table, or the way on from a file that cannot be used."""
    if state.get("table") != UPLOAD:
        return
    try:
        raw = _raw()
    except DpvizError:
        raw = None
    if raw is not None:
        few = None
        if current.prepared is not None:
            delta = current.prepared.budget(state.settings()).delta
            few = too_few_rows(delta, current.prepared.n)
        check.step(raw, current.problem, few)
    if current.problem is not None:
        check.unusable()


def _notices(current: Current, title: str) -> None:
    for sentence in state.take_notices():
        st.warning(plain(sentence), icon=":material/info:")
    note = epsilon_note(state.get("epsilon"))
    # Where epsilon is scrubbed a note that comes and goes would push the page up and down.
    if note is not None and title != FIRST and title not in OWN_SETTINGS:
        st.info(note, icon=":material/shield:")
    said = delta_warning(current)
    if said is not None and title != FIRST and title not in OWN_SETTINGS:
        st.warning(said, icon=":material/shield:")
    if current.problem is not None and title not in OWN_SETTINGS:
        say_error(current.problem)


def delta_warning(current: Current) -> str | None:
    """Return what is to be warned of in the delta in use, if anything is."""
    said, warns = _delta_note(current)
    return said if warns else None


def _delta_note(current: Current) -> tuple[str, bool]:
    """Return what delta means for the table, and whether that is a warning."""
    if current.prepared is None:
        return "", False
    return delta_note(current.prepared.budget(state.settings()).delta, current.prepared.n)


def _sidebar() -> None:
    """Draw what is advanced, grouped and closed; shares only of what is paid for."""
    paid = state.settings().paid_shares
    unpaid = {f"{step}_share" for step in STEPS if step not in paid}
    for heading, group in _GROUPS.items():
        names = [
            name
            for name, param in params_of(Settings).items()
            if param.group == group and name not in _DRAWN_APART and name not in unpaid
        ]
        if names:
            with st.expander(heading):
                for name in names:
                    controls.setting(name)
                if group == "Preparation":
                    controls.row_bound()
    st.button(
        "Reset to defaults",
        icon=":material/restart_alt:",
        on_click=state.reset,
        key="reset",
        help="Every setting but the table.",
    )


def _table_choice() -> None:
    """Draw the choice of table."""
    tables = builtin_tables()
    options = [*tables, UPLOAD] if limits.caps().uploads else list(tables)

    def picked() -> None:
        state.put("table", st.session_state["view.table"])

    controls.fill("view.table", state.get("table"))
    st.selectbox(
        "Table",
        options,
        format_func=lambda key: "Your file" if key == UPLOAD else tables[key].label,
        key="view.table",
        on_change=state.on_change(picked),
    )


def _upload(current: Current) -> None:
    """Draw the upload, and what an upload asks."""

    def arrived() -> None:
        # Kept apart from the widget, which is gone on pages that do not draw it.
        st.session_state["file"] = st.session_state["upload"]
        if st.session_state["upload"] is not None:
            state.put("table", UPLOAD)

    if not limits.caps().uploads:
        st.caption("This server takes no uploads.")
        return
    st.file_uploader(
        "Upload CSV or Parquet",
        key="upload",
        on_change=state.on_change(arrived),
        help=f"CSV (also gzipped) or Parquet, one row per person. {_WHERE_IT_STAYS} Pages "
        "write 1,234.5 in sentences, 1234.5 in tables and files, and dates as 2024-01-31.",
    )
    file = st.session_state.get("file")
    if state.get("table") != UPLOAD or file is None:
        return
    if st.session_state.get("upload") is None:
        st.caption(plain(f"In use: {file.name}"))
    try:
        raw = _raw()
    except DpvizError:  # said on the page; the decimal mark may be what it asks for
        controls.setting("decimal")
        return
    assert raw is not None
    choices = raw.label_choices

    def labelled() -> None:
        st.session_state.label_index = st.session_state["upload.label"]

    controls.fill("upload.label", st.session_state.label_index)
    st.selectbox(
        "Label column",
        [None, *range(len(choices))],
        format_func=lambda index: "none" if index is None else choices[index],
        key="upload.label",
        help="Colours the picture; it is left out of the analysis.",
        on_change=state.on_change(labelled),
    )
    controls.setting("categorical")
    controls.setting("missing")
    controls.setting("decimal")
    if current.prepared is not None and len(current.prepared.table.columns) >= state.MAX_FEATURES:
        st.caption(
            f"Pages show at most {state.MAX_FEATURES} features; the command line has no limit."
        )
