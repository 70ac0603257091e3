"""The schema of a release: what is declared of the table before it is read."""

from __future__ import annotations

from typing import BinaryIO

import streamlit as st

from dpviz.datasets import Table, builtin_tables
from dpviz.releasing.schema import Schema, public_schema
from pages.ui import state, table_cache
from pages.ui.guard import guard


def given() -> Table | BinaryIO | None:
    """Return the table to release from: a built-in one, or the bytes that were uploaded."""
    chosen = state.get("table")
    if chosen in builtin_tables():
        return table_cache.builtin(chosen)
    file: BinaryIO | None = st.session_state.get("file")
    return file


def ask(table: Table | BinaryIO) -> Schema | None:
    """Draw what declares the table; return the schema once there is one."""
    file = st.file_uploader(
        "Schema",
        key="release.schema",
        help="A schema file: names, bounds and typical values of the columns, agreed before "
        "anybody looked at the table. dpviz schema writes a first one.",
    )
    if file is not None:
        with guard():
            return Schema.from_text(file.getvalue(), "the schema file")
    return public_schema(table) if isinstance(table, Table) else None
