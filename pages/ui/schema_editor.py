"""The schema of a release: what is declared of the table before it is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import BinaryIO

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
"""The columns of the list, and the kind of each."""
_HEIGHT = 320  # of the list of columns: some eight of them


def given() -> Table | BinaryIO | None:
    """Return the table to release from: a built-in one, or the bytes that were uploaded.

    Of a workbook these are the text of the sheet that was picked.

    Raises
    ------
    InvalidTable
        If a workbook cannot be read, or a Parquet file not within what a page takes.
    """
    chosen = state.get("table")
    if chosen in builtin_tables():
        return table_cache.builtin(chosen)
    file = st.session_state.get("file")
    if file is not None and is_workbook(file.name):
        return table_cache.sheet(file.file_id, _sheet(), file)
    return None if file is None else file


def _sheet() -> str:
    """Return the sheet that Explore shows; where it shows none, the one that was said."""
    with suppress(DpvizError):
        raw = loading.uploaded_raw()
        return "" if raw is None else raw.sheet
    said: str = state.get("sheet")
    return said


def named(table: Table | BinaryIO) -> str:
    """Return what tells a table from the others of a session."""
    if isinstance(table, Table):
        return table.name
    sheet = f" {_sheet()}" if isinstance(table, SheetText) else ""
    return f"{st.session_state['file'].file_id}{sheet}"


def known(table: Table | BinaryIO) -> Schema:
    """Return what is declared of a table, or a first schema taken from it where nothing is."""
    if named(table) == st.session_state.get("schema.table") and st.session_state.get(
        "schema.origin"
    ):
        with suppress(DpvizError):
            found = _written()
            found.require()
            return found
    return unit.stated(_from_data(table))


def _from_data(table: Table | BinaryIO) -> Schema:
    """Return a schema taken from the table; what its check leaves out takes no part."""
    own = replace(state.settings(), rows_a_person=None, person=None)
    return schema_of(table, own, most_bytes=TEXT_BYTES)


def draw(table: Table | BinaryIO) -> None:
    """Draw what declares the table, to be filled in, loaded and kept."""
    _follow(table)
    frame: pd.DataFrame = st.session_state.get("schema.now", st.session_state["schema.base"])
    unit.ask("schema", [name for name in frame["name"] if isinstance(name, str)])
    _untick(frame, state.get("person"))
    public = isinstance(table, Table) and public_schema(table) is not None
    with st.expander("Schema", expanded=not public, icon=":material/rule:"):
        st.caption(
            "How each cell is read and what may stand in it, agreed before anybody looks. What is "
            "no number becomes the typical value; all is cut to low and high."
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
            "These ranges were",
            list(ORIGINS),
            index=None,
            format_func=ORIGINS.__getitem__,
            key="schema.origin",
            persist_state="session",
        )


def declared() -> Schema:
    """Return what is declared now, or raise `DpvizError` where it is no schema yet."""
    found = _written()
    if st.session_state["schema.origin"] is None:
        raise SchemaError(
            "the schema must say whether it was known before anybody looked at the table, or taken "
            "from it; nothing was spent."
        )
    if not unit.answered():
        raise SchemaError(
            "at most how many rows one person has must be answered, be it that nobody knows; "
            "nothing was spent."
        )
    return found


def _written() -> Schema:
    frame: pd.DataFrame = st.session_state["schema.now"]
    columns = []
    for row in frame.to_dict("records"):
        name = row["name"]
        if not isinstance(name, str) or not name.strip():  # a line that was added and left empty
            continue
        low, high, typical = (
            None if pd.isna(row[key]) else float(row[key]) for key in ("low", "high", "typical")
        )
        missing = _codes(row["missing"])
        used = bool(pd.isna(row["use"]) or row["use"])
        log = not pd.isna(row["log"]) and bool(row["log"])
        words = row["levels"].split("<") if isinstance(row["levels"], str) else []
        levels = tuple(word for word in words if len(words) > 1 or word.strip())
        mark = row["decimal"] if isinstance(row["decimal"], str) else ""
        columns.append(Column(name, low, high, typical, missing, used, log, levels, mark.strip()))
    found = Schema(
        tuple(columns),
        packing=st.session_state["schema.packing"],
        from_data=st.session_state["schema.origin"] != KNOWN,
        label=label(),
        categories=_categories() if label() else (),
        **{name: st.session_state[f"schema.{name}"] for name in _READING},
    )
    return unit.stated(found)


def label() -> str:
    """Return the column whose categories are declared public, empty where none is."""
    name: str = st.session_state["schema.label"]
    return name if name and _categories() else ""


def _categories() -> tuple[str, ...]:
    return names_in(st.session_state["schema.categories"], "categories", "names")


def _codes(written: object) -> tuple[float | str, ...]:
    """Return the numbers and words for missing that are written with commas between them."""
    return codes_in(written.replace(";", ",")) if isinstance(written, str) else ()


def _follow(table: Table | BinaryIO) -> None:
    """Begin anew where the table is another one; go on where the page was left and came back."""
    own = named(table)
    if st.session_state.get("schema.table") != own:
        st.session_state["schema.table"] = own
        _begin(table)
    elif _key() not in st.session_state and "schema.now" in st.session_state:
        st.session_state["schema.base"] = st.session_state["schema.now"]


def _begin(table: Table | BinaryIO) -> None:
    """Show the public schema of a built-in table, or names whose bounds are to be filled in."""
    public = public_schema(table) if isinstance(table, Table) else None
    if public is not None:
        _show(public, KNOWN)
        return
    try:
        found = draft(table, "the table", "none", levels=levels_in(state.get("levels")))
        _show(found, None)
    except DpvizError as error:
        _show(None, None)
        st.session_state["schema.problem"] = (
            f"{error} Its columns can be declared by hand, or by a schema file."
        )


def _show(schema: Schema | None, origin: str | None) -> None:
    """Show a schema in place of what is shown; None for an empty one."""
    store = st.session_state
    columns = () if schema is None else schema.columns
    written: dict[str, Callable[[Column], object]] = {
        "missing": lambda column: codes_listed(column.missing),
        "levels": lambda column: " < ".join(column.levels),
    }
    store["schema.base"] = pd.DataFrame(
        {
            name: pd.Series(
                [written.get(name, attrgetter(name))(column) for column in columns], dtype=kind
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
    """Draw how the table is written."""
    delimiter, decimal, thousands, encoding, skip, header = st.columns(
        [2, 2, 2, 2, 2, 3], vertical_alignment="bottom"
    )
    for column, name, label, words in (
        (delimiter, "delimiter", "Between cells", DELIMITERS),
        (decimal, "decimal", "Decimal mark", DECIMALS),
        (thousands, "thousands", "Between thousands", THOUSANDS),
        (encoding, "encoding", "Encoding of names", dict(zip(ENCODINGS, ENCODINGS, strict=True))),
    ):
        column.selectbox(
            label,
            list(words),
            format_func=words.__getitem__,
            key=f"schema.{name}",
            persist_state="session",
        )
    skip.number_input(
        "Lines above",
        0,
        MOST_SKIPPED,
        key="schema.skip",
        persist_state="session",
        help="Lines above the line of names, or above the rows, that are not read.",
    )
    header.toggle(
        "A line of names",
        key="schema.header",
        persist_state="session",
        help="Without one the list below is that of all columns, in order.",
    )


def _workbook(text: SheetText) -> None:
    """Say which sheet is read, and what became of its formulas."""
    said = f"Sheet **{plain(_sheet())}**, each cell by itself: dates, texts and errors are missing."
    if text.formulas:
        said += (
            f" So are {counted(text.formulas, 'formula')}, which may look at other people's rows: "
            "where they look at their own alone, put values in their place."
        )
    st.markdown(said)


def _untick(frame: pd.DataFrame, person: str | None) -> None:
    """Show that the column of the person takes no part, and the one before does again."""
    store = st.session_state
    names, use, before = frame["name"], frame["use"].fillna(True), store.get("schema.unticked")
    found = use if before == person else use.mask(names == before, True)
    found = found.mask(names == person, False)
    if not found.equals(use):
        store["schema.unticked"] = person if use[names == person].any() else None
        store["schema.base"] = frame.assign(use=found)  # with what was typed
        store["schema.version"] += 1


def _columns() -> None:
    """Draw the list of columns."""
    number = st.column_config.NumberColumn
    st.session_state["schema.now"] = st.data_editor(
        st.session_state["schema.base"],
        key=_key(),
        num_rows="dynamic",
        hide_index=True,
        height=min(_HEIGHT, 35 * (len(st.session_state["schema.base"]) + 2) + 3),
        placeholder=" ",
        alt="Each column: whether it is used, its bounds, its typical value and codes for missing",
        column_config={
            "use": st.column_config.CheckboxColumn("Use", default=True, width="small"),
            "name": st.column_config.TextColumn("Column", required=True),
            "low": number("Low"),
            "high": number("High"),
            "typical": number("Typical", help="Empty for the middle of the bounds."),
            "missing": st.column_config.TextColumn(
                "Numbers for missing", help="Such as -999, 9999. Texts need none."
            ),
            "log": st.column_config.CheckboxColumn(
                "Logarithm",
                default=False,
                width=105,
                help="For a long tail, such as CRP: a wide limit, and the logarithm of each cell "
                "counts. Its low must be above 0.",
            ),
            "levels": st.column_config.TextColumn(
                "Words in order",
                help="Answers that count as 1, 2, 3, such as never < sometimes < often.",
            ),
            "decimal": st.column_config.SelectboxColumn(
                "Decimal mark", options=["", *DECIMALS], help="Empty for the mark of the table."
            ),
        },
    )


def _labels() -> None:
    """Ask which column may colour a picture, and by which public categories."""
    frame: pd.DataFrame = st.session_state["schema.now"]
    rows, person = frame.to_dict("records"), state.get("person")
    free = [str(row["name"]) for row in rows if row["use"] is False and row["name"] != person]
    if st.session_state["schema.label"] not in free:
        st.session_state["schema.label"] = ""
    left, right = st.columns([1, 2])
    left.selectbox(
        "Which column colours a picture?",
        ["", *free],
        format_func=lambda name: name or "none",
        key="schema.label",
        persist_state="session",
        help="One that is not used.",
    )
    right.text_input(
        "Its categories, if they are public",
        key="schema.categories",
        persist_state="session",
        placeholder="such as yes, no",
        disabled=not st.session_state["schema.label"],
        help="A list that was known before anybody looked. Any other label counts as other. Taken "
        "from the table it would tell that somebody has each of them.",
    )


def _files(table: Table | BinaryIO) -> None:
    """Draw where a schema can come from, and go to."""

    def filled() -> None:
        _try(lambda: _from_data(table))

    def loaded() -> None:
        file = state.file_of("schema.file")
        if file is not None:
            _try(lambda: Schema.from_text(file.getvalue(), "the schema file"))

    text = ""
    try:
        text = _written().to_text()
    except DpvizError as error:
        if len(st.session_state["schema.now"]):
            say_error(error)
    with st.container(horizontal=True, key="schema.files"):
        st.button(
            "Fill in from this table (not private)",
            key="schema.fill",
            icon=":material/table_view:",
            on_click=filled,
            help="Each column's smallest and largest number: a start, to be replaced by what was "
            "known without the table.",
        )
        if limits.caps().uploads:
            with st.popover("Load a file", icon=":material/upload:"):
                st.file_uploader(
                    "Schema file",
                    key="schema.file",
                    on_change=loaded,
                    help="python -m dpviz schema TABLE writes a first one.",
                )
        parts.download("Save as a file", text, "schema.json", "schema.save", disabled=not text)


def _try(act: Callable[[], Schema]) -> None:
    """Show a schema that is being made, or why there is none; what is shown then stays."""
    try:
        found = act()
    except DpvizError as error:
        st.session_state["schema.problem"] = str(error)
        return
    unit.take(found)
    _show(found, TAKEN if found.from_data else KNOWN)
