"""The table that a page is about: read, prepared, and the settings kept within it."""

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
    """What the page being drawn is about.

    ``prepared`` is None while a file is missing or cannot be used;
    ``problem`` then says why.
    """

    settings: Settings
    prepared: Prepared | None
    data_key: tuple[str, ...]
    problem: str | None


def problem_and_budget(current: Current) -> tuple[Problem, Budget]:
    """Return what mechanisms calibrate to: the table's, or a stated stand-in without one."""
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
    """Return the parsed upload, or None where there is none."""
    file = st.session_state.get("file")
    if file is None:
        return None
    return table_cache.raw_table(file.file_id, file.name, file, state.settings())


def load() -> Current:
    """Return the table in use, prepared, or why there is none."""
    settings = state.settings()
    try:
        table, key = _table(settings)
        if table is None:
            what = (
                "This view is of an uploaded table. Upload the file above to see it; "
                "the settings in its link are in place."
            )
            return Current(settings, None, (), what)
        if not bounds.fit(table):
            return load()
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
    edited = tuple((bounds.in_force() or {}).items())
    return Current(settings, *table_cache.prepared(key, table, settings, columns, edited), None)


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
    """Return the label column that the session's index means in this file."""
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
    """Keep k within the table and the draw shown within the draws, and say so.

    A file that has as many features as components are shown begins with one less.
    """
    most = limits.caps().trials
    if state.get("trials") > most:
        state.notice(
            f"draws = {state.get('trials')} is too large: this server makes at most {most}. "
            f"Showing {most}."
        )
        state.put("trials", most)
    draw, trials = state.get("draw", "explore"), state.get("trials")
    if draw > trials:
        state.notice(
            f"The draw shown = {draw} is too large: there are {trials} draws. Showing {trials}."
        )
        state.put("draw", trials, "explore")
    if current.prepared is None:
        return
    most = current.prepared.d
    if state.get("k") > most:
        state.notice(
            f"k = {state.get('k')} is too large: this table has {most} features. Showing "
            f"{most - 1}, because {most} would keep everything."
        )
        state.put("k", most - 1)
    if check.arrived() and state.get("k") == most > 1:
        state.notice(
            f"With k = {most} nothing of these {most} features is left out, whatever the noise. "
            f"Showing {most - 1}."
        )
        state.put("k", most - 1)
    allocation = parse_allocation(state.get("allocation"), state.get("directions"))
    try:
        allocation.check_dimension(most)
    except InvalidSetting as error:
        state.notice(f"For this table, {error} Showing equal shares.")
        state.put("allocation", "uniform")
