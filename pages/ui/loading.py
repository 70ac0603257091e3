"""The table of a page, read and prepared, and the settings limited to that table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpviz.core.allocation import parse_allocation
from dpviz.core.errors import DpvizError, InvalidSetting, printable
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.settings import Settings
from dpviz.datasets import RawTable, ReadOptions, Table, builtin_tables
from dpviz.preparation.bounding import Prepared
from pages.ui import (
    bounds,
    check,
    limits,
    state,
    table_cache,
)
from pages.ui.state import UPLOAD


@dataclass(frozen=True)
class Current:
    """Settings and table of the page that is being drawn.

    The field ``prepared`` is None while a file is missing or cannot be used; ``problem`` then
    states the reason.
    """

    settings: Settings
    prepared: Prepared | None
    data_key: tuple[str, ...]
    problem: str | None


def problem_and_budget(current: Current) -> tuple[Problem, Budget]:
    """Return the table's problem and budget, or a stated stand-in's without a table."""
    if current.prepared is not None:
        return current.prepared.problem(current.settings), current.prepared.budget(current.settings)
    relation = Relation(current.settings.relation)
    delta = 1e-6 if current.settings.delta is None else current.settings.delta
    return (
        Problem(
            1_000,
            10,
            min(current.settings.k, 9),
            relation,
            Domain.ball(10),
            rows_a_person=current.settings.rows_a_person,
        ),
        Budget(current.settings.epsilon, delta),
    )


def uploaded_raw() -> RawTable | None:
    """Return the parsed upload, or None if there is no upload."""
    file = st.session_state.get("file")
    if file is None:
        return None
    return table_cache.raw_table(file.file_id, file.name, file, state.settings())


def load() -> Current:
    """Return the current prepared table, or the reason why there is none."""
    settings = state.settings()
    try:
        table, key = _table(settings)
        if table is None:
            what = (
                "This link shows an uploaded table. Upload the file above to see its charts; the "
                "link's settings already apply."
            )
            return Current(settings, None, (), what)
        if not bounds.fit(table):
            return load()
        return _prepare(settings, table, key)
    except DpvizError as error:
        return Current(settings, None, (), str(error))


def _prepare(settings: Settings, table: Table, key: str) -> Current:
    """Return a table prepared by the settings."""
    columns: tuple[str, ...] = ()
    if len(table.columns) > state.MAX_FEATURES:
        columns = tuple(st.session_state.get("columns") or table.columns[: state.MAX_FEATURES])[
            : state.MAX_FEATURES
        ]
    entries = tuple((bounds.in_force() or {}).items())
    return Current(settings, *table_cache.prepared(key, table, settings, columns, entries), None)


def pinned() -> Current | None:
    """Return the pinned setting with its table, or None if no setting is pinned.

    Raises
    ------
    DpvizError
        If the pinned setting does not fit the table any more.
    """
    settings = state.pinned()
    if settings is None:
        return None
    table, key = _table(settings)
    return None if table is None else _prepare(settings, table, key)


def _table(settings: Settings) -> tuple[Table | None, str]:
    """Return the table that the settings name, and its cache key."""
    if settings.table != UPLOAD or not limits.caps().uploads:
        if settings.table not in builtin_tables():
            state.put("table", "digits")
            own = f" or {UPLOAD}" * limits.caps().uploads
            state.notice(
                f"In the link, table must be one of {', '.join(builtin_tables())}{own}; "
                f"got {settings.table[:40]!r}. Showing digits."
            )
            settings = state.settings()
        check.leave()
        return table_cache.builtin(settings.table), settings.table
    raw = uploaded_raw()
    if raw is None:
        return None, ""
    file_id = st.session_state["file"].file_id
    check.arrive(raw, file_id)
    settings = state.settings()
    label = _label(raw)
    name = printable(st.session_state.get("upload.name", "")) or "table"
    options = ReadOptions.of(settings)
    options = replace(options, label=label, leave_out=options.leave_out or ())
    how = (options, check.coded(raw, label), name)
    return table_cache.uploaded(file_id, *how, raw), f"{file_id}/{how!r}"


def _label(raw: RawTable) -> str | None:
    """Return the label column in this file for the session's index."""
    index = st.session_state.label_index
    choices = raw.label_choices
    if index is None:
        return None
    if index >= len(choices):
        st.session_state.label_index = None
        state.notice(
            f"The label must be one of the file's {len(choices)} possible columns; got number "
            f"{index}. Showing none."
        )
        return None
    return choices[index]


def clamp(current: Current) -> None:
    """Limit k to the table, and the shown release to the simulated releases, with a notice.

    If a new file has exactly k features, k is first reduced by one.
    """
    most = limits.caps().trials
    if state.get("trials") > most:
        state.notice(
            f"draws = {state.get('trials')} is too large: this server simulates at most {most} "
            f"releases. Showing {most}."
        )
        state.put("trials", most)
    draw, trials = state.get("draw", "explore"), state.get("trials")
    if draw > trials:
        state.notice(
            f"The release shown = {draw} is too large: {trials} releases are simulated. "
            f"Showing {trials}."
        )
        state.put("draw", trials, "explore")
    if current.prepared is None:
        return
    most = current.prepared.d
    if state.get("k") > most:
        state.notice(
            f"k = {state.get('k')} is too large: this table has {most} features. Showing "
            f"{most - 1}, because {most} components would keep everything."
        )
        state.put("k", most - 1)
    if check.arrived() and state.get("k") == most > 1:
        state.notice(
            f"With k = {most} all {most} features are kept, whatever the noise. Showing {most - 1}."
        )
        state.put("k", most - 1)
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    try:
        allocation.check_dimension(most)
    except InvalidSetting as error:
        state.notice(f"For this table, {error} Showing equal shares.")
        state.put("allocation", "uniform")
