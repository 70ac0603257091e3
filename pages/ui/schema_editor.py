"""The schema of a release: the declarations about a table before it is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Any, BinaryIO

import pandas as pd
import streamlit as st

from dpviz.core.errors import DpvizError
from dpviz.core.settings import codes_in, codes_listed, levels_in, names_in, names_listed
from dpviz.datasets import Table, builtin_tables
from dpviz.datasets.columns import counted
from dpviz.datasets.files import TEXT_BYTES
from dpviz.datasets.sheet import SheetText, is_workbook
from dpviz.releasing.drafting import draft
from dpviz.releasing.schema import (
    DECIMALS,
    DELIMITERS,
    ENCODINGS,
    MOST_SKIPPED,
    THOUSANDS,
    Column,
    Schema,
    SchemaError,
    public_schema,
)
from dpviz.studies.decide import schema_of
from pages.ui import limits, loading, parts, state, table_cache, unit
from pages.ui.guard import say_error
from pages.ui.texts import plain

KNOWN, TAKEN = "known", "taken"
ORIGINS = {
    KNOWN: "known before anyone looked at the data",
    TAKEN: "taken from this table: not private, and the release says so",
}
_READING = ("delimiter", "decimal", "thousands", "header", "skip", "encoding")
_KINDS = {
    "use": "boolean", "name": object, "low": "Float64", "high": "Float64", "typical": "Float64",
    "missing": object, "log": "boolean", "levels": object, "decimal": object,
}  # fmt: skip
"""Columns of the list, with their value types."""
_HEIGHT = 320  # At 320 pixels, the list shows about eight columns of the table.


def given() -> Table | BinaryIO | None:
    """Return the table of the release: a built-in table, or the uploaded bytes.

    For a workbook, the bytes are the text of the chosen sheet.

    Raises
    ------
    InvalidTable
        If a workbook cannot be read, or a Parquet file exceeds the limit of a page.
    """
    name = state.get("table")
    if name in builtin_tables():
        return table_cache.builtin(name)
    file = st.session_state.get("file")
    if file is not None and is_workbook(file.name):
        return table_cache.sheet(file.file_id, _sheet(), file)
    return None if file is None else file


def _sheet() -> str:
    """Return the sheet that Explore shows, or else the sheet in the settings."""
    with suppress(DpvizError):
        raw = loading.uploaded_raw()
        return "" if raw is None else raw.sheet
    name: str = state.get("sheet")
    return name


def named(table: Table | BinaryIO) -> str:
    """Return a name that is unique to a table in a session."""
    if isinstance(table, Table):
        return table.name
    sheet = f" {_sheet()}" if isinstance(table, SheetText) else ""
    return f"{st.session_state['file'].file_id}{sheet}"


def known(table: Table | BinaryIO) -> Schema:
    """Return a table's declared schema, or a first schema derived from the table."""
    if named(table) == st.session_state.get("schema.table") and st.session_state.get(
        "schema.origin"
    ):
        with suppress(DpvizError):
            schema = _typed_schema()
            schema.require()
            return schema
    return unit.stated(_from_data(table))


def _from_data(table: Table | BinaryIO) -> Schema:
    """Return a schema derived from the table, without the columns that its check leaves out."""
    own = replace(state.settings(), rows_a_person=None, person=None)
    return schema_of(table, own, most_bytes=TEXT_BYTES)


def draw(table: Table | BinaryIO) -> None:
    """Draw the schema of the table, which visitors can fill in, load and save."""
    _follow(table)
    frame: pd.DataFrame = st.session_state.get("schema.now", st.session_state["schema.base"])
    unit.ask("schema", [name for name in frame["name"] if isinstance(name, str)])
    _untick(frame, state.get("person"))
    public = isinstance(table, Table) and public_schema(table) is not None
    with st.expander("Schema", expanded=not public, icon=":material/rule:"):
        st.caption(
            "The schema says how each cell is read and which values it may have. Agree on the "
            "schema before anybody looks at the data. A cell that is not a number becomes the "
            "typical value; every value is clipped to low and high."
        )
        if isinstance(table, SheetText):
            _workbook(table)
        if not isinstance(table, Table):
            _reading()
        _columns()
        if not isinstance(table, Table):
            _labels()
        _files(table)
        if "schema.problem" in st.session_state:
            say_error(st.session_state["schema.problem"])
        st.radio(
            "The ranges in the schema were", list(ORIGINS), index=None, key="schema.origin",
            format_func=ORIGINS.__getitem__, persist_state="session",
        )  # fmt: skip


def declared() -> Schema:
    """Return the declared schema; raise `DpvizError` if it is not complete yet."""
    schema = _typed_schema()
    if st.session_state["schema.origin"] is None:
        raise SchemaError(
            "The schema must say whether it was known before anybody looked at the table "
            "or was taken from it. Nothing was spent."
        )
    if not unit.answered():
        raise SchemaError(
            "State how many rows one person can have, or that this is not known. Nothing was spent."
        )
    return schema


def _typed_schema() -> Schema:
    frame: pd.DataFrame = st.session_state["schema.now"]
    columns = []
    for row in frame.to_dict("records"):
        name = row["name"]
        if not isinstance(name, str) or not name.strip():  # The user left this added line empty.
            continue
        low, high, typical = (
            None if pd.isna(row[key]) else float(row[key]) for key in ("low", "high", "typical")
        )
        missing = _codes(row["missing"])
        in_use = bool(pd.isna(row["use"]) or row["use"])
        log = not pd.isna(row["log"]) and bool(row["log"])
        words = row["levels"].split("<") if isinstance(row["levels"], str) else []
        levels = tuple(word for word in words if len(words) > 1 or word.strip())
        mark = row["decimal"] if isinstance(row["decimal"], str) else ""
        columns.append(Column(name, low, high, typical, missing, in_use, log, levels, mark.strip()))
    schema = Schema(
        tuple(columns),
        packing=st.session_state["schema.packing"],
        from_data=st.session_state["schema.origin"] != KNOWN,
        label=label(),
        categories=_categories() if label() else (),
        **{name: st.session_state[f"schema.{name}"] for name in _READING},
    )
    return unit.stated(schema)


def label() -> str:
    """Return the column whose categories are declared public, or an empty text."""
    name: str = st.session_state["schema.label"]
    return name if name and _categories() else ""


def _categories() -> tuple[str, ...]:
    return names_in(st.session_state["schema.categories"], "categories", "names")


def _codes(text: object) -> tuple[float | str, ...]:
    """Return the comma-separated numbers and words that mean "missing"."""
    return codes_in(text.replace(";", ",")) if isinstance(text, str) else ()


def _follow(table: Table | BinaryIO) -> None:
    """Start again if the table has changed; continue if the visitor comes back to the page."""
    own = named(table)
    if st.session_state.get("schema.table") != own:
        st.session_state["schema.table"] = own
        _begin(table)
    elif _key() not in st.session_state and "schema.now" in st.session_state:
        st.session_state["schema.base"] = st.session_state["schema.now"]


def _begin(table: Table | BinaryIO) -> None:
    """Show the public schema of a built-in table, or column names with empty bounds."""
    public = public_schema(table) if isinstance(table, Table) else None
    if public is not None:
        _show(public, KNOWN)
        return
    try:
        schema = draft(table, "the table", "none", levels=levels_in(state.get("levels")))
        _show(schema, None)
    except DpvizError as error:
        _show(None, None)
        st.session_state["schema.problem"] = (
            f"{error} Declare the columns by hand, or load a schema file."
        )


def _show(schema: Schema | None, origin: str | None) -> None:
    """Show another schema instead of the present schema; None shows an empty schema."""
    store = st.session_state
    columns = () if schema is None else schema.columns
    writers: dict[str, Callable[[Column], object]] = {
        "missing": lambda column: codes_listed(column.missing),
        "levels": lambda column: " < ".join(column.levels),
    }
    store["schema.base"] = pd.DataFrame(
        {
            name: pd.Series(
                [writers.get(name, attrgetter(name))(column) for column in columns], dtype=kind
            )
            for name, kind in _KINDS.items()
        }
    )
    store["schema.version"] = store.get("schema.version", 0) + 1
    reading = schema or Schema((Column("x"),))
    for name in (*_READING, "packing", "label"):
        store[f"schema.{name}"] = getattr(reading, name)
    store["schema.categories"] = names_listed(reading.categories)
    store["schema.origin"] = origin
    for name in ("now", "problem", "unticked"):
        store.pop(f"schema.{name}", None)


def _key() -> str:
    return f"schema.editor~{st.session_state['schema.version']}"


def _reading() -> None:
    """Draw the options of the format of the file."""
    how: dict[str, Any] = {"persist_state": "session", "width": 165}
    # A row holds as many fields as have space for their labels.
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, label, words in (
            ("delimiter", "Separator of cells", DELIMITERS),
            ("decimal", "Decimal mark", DECIMALS),
            ("thousands", "Separator of thousands", THOUSANDS),
            ("encoding", "Encoding", dict(zip(ENCODINGS, ENCODINGS, strict=True))),
        ):
            key = f"schema.{name}"
            st.selectbox(label, list(words), format_func=words.__getitem__, key=key, **how)
        above = "Number of lines to skip above the header row, or above the first row."
        st.number_input("Lines above", 0, MOST_SKIPPED, key="schema.skip", help=above, **how)
        below = "If the file has no header row, list every column below, in order."
        st.toggle("Header row", key="schema.header", help=below, **how)


def _workbook(text: SheetText) -> None:
    """State which sheet is read, and how its formulas were read."""
    note = (
        f"Sheet **{plain(_sheet())}**: each cell is read by itself. Dates, texts and errors "
        "count as missing."
    )
    if text.formulas:
        note += (
            f" Formulas also count as missing ({counted(text.formulas, 'formula')}): a formula may "
            "read other people's rows. Replace a formula that reads only its own row by its value."
        )
    st.markdown(note)


def _untick(frame: pd.DataFrame, person: str | None) -> None:
    """Untick the column of the person, and tick the previous column again."""
    store = st.session_state
    names, use, before = frame["name"], frame["use"].fillna(True), store.get("schema.unticked")
    ticks = use if before == person else use.mask(names == before, True)
    ticks = ticks.mask(names == person, False)
    if not ticks.equals(use):
        store["schema.unticked"] = person if use[names == person].any() else None
        store["schema.base"] = frame.assign(use=ticks)  # Do not lose the text that the user typed.
        store["schema.version"] += 1


def _columns() -> None:
    """Draw the list of the table's columns, with rarely used options on request."""

    def wider() -> None:
        st.session_state["schema.base"] = st.session_state["schema.now"]
        st.session_state["schema.version"] += 1

    words = "Codes, logarithms, answers in order, decimal marks"
    more = st.toggle(words, key="schema.more", persist_state="session", on_change=wider)
    number = st.column_config.NumberColumn
    st.session_state["schema.now"] = st.data_editor(
        st.session_state["schema.base"],
        key=_key(),
        num_rows="dynamic",
        hide_index=True,
        column_order=list(_KINDS) if more else list(_KINDS)[:5],
        height=min(_HEIGHT, 35 * (len(st.session_state["schema.base"]) + 2) + 3),
        placeholder=" ",
        alt="Columns with use, bounds, typical value and codes for missing values",
        column_config={
            "use": st.column_config.CheckboxColumn("Use", default=True, width="small"),
            "name": st.column_config.TextColumn("Column", required=True),
            "low": number("Low"),
            "high": number("High"),
            "typical": number("Typical", help="An empty cell means the middle of the bounds."),
            "missing": st.column_config.TextColumn(
                "Codes for missing values",
                help="Such as -999, 9999. Words count as missing anyway.",
            ),
            "log": st.column_config.CheckboxColumn(
                "Logarithm",
                default=False,
                width=105,
                help="For values with a long tail, such as CRP: the analysis uses logarithms, so "
                "limits may be wide. Low must be above 0.",
            ),
            "levels": st.column_config.TextColumn(
                "Answers in order",
                help="Answers in order, which count as 1, 2, 3, such as never < sometimes < often.",
            ),
            "decimal": st.column_config.SelectboxColumn(
                "Decimal mark",
                options=["", *DECIMALS],
                help="An empty cell means the table's decimal mark.",
            ),
        },
    )


def _labels() -> None:
    """Ask which column may colour a chart, and for its public categories."""
    frame: pd.DataFrame = st.session_state["schema.now"]
    rows, person = frame.to_dict("records"), state.get("person")
    free = [str(row["name"]) for row in rows if row["use"] is False and row["name"] != person]
    if st.session_state["schema.label"] not in free:
        st.session_state["schema.label"] = ""
    left, right = st.columns([1, 2])
    left.selectbox(
        "Which column colours the chart?", ["", *free], key="schema.label",
        format_func=lambda name: name or "none", persist_state="session",
        help="Choose a column that the analysis does not use.",
    )  # fmt: skip
    right.text_input(
        "Public categories of this column", key="schema.categories", persist_state="session",
        placeholder="such as yes, no", disabled=not st.session_state["schema.label"],
        help="Enter a list that was known before anybody looked at the data. Every other label is "
        "shown as other. A list taken from the table would reveal that somebody has each label.",
    )  # fmt: skip


def _files(table: Table | BinaryIO) -> None:
    """Draw the sources of a schema, and the download of the schema."""

    def filled() -> None:
        _try(lambda: _from_data(table))

    def loaded() -> None:
        file = state.file_of("schema.file")
        if file is not None:
            _try(lambda: Schema.from_text(file.getvalue(), "the schema file"))

    text = ""
    try:
        text = _typed_schema().to_text()
    except DpvizError as error:
        if len(st.session_state["schema.now"]):
            say_error(error)
    with st.container(horizontal=True, key="schema.files"):
        st.button(
            "Fill the schema from this table (not private)",
            key="schema.fill",
            icon=":material/table_view:",
            on_click=filled,
            help="Enters each column's smallest and largest number. Replace these numbers by "
            "limits that were known without the table.",
        )
        if limits.caps().uploads:
            with st.popover("Load a schema", icon=":material/upload:"):
                st.file_uploader(
                    "Schema file",
                    key="schema.file",
                    on_change=loaded,
                    help="python -m dpviz schema TABLE writes a first schema.",
                )
        parts.download("Save the schema", text, "schema.json", "schema.save", disabled=not text)


def _try(act: Callable[[], Schema]) -> None:
    """Show a new schema, or an error; after an error the shown schema stays."""
    try:
        schema = act()
    except DpvizError as error:
        st.session_state["schema.problem"] = str(error)
        return
    unit.take(schema)
    _show(schema, TAKEN if schema.from_data else KNOWN)
