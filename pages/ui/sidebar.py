"""The sidebar: advanced settings, the choice of a table, and an upload's questions."""

from __future__ import annotations

import streamlit as st

from dpviz.core.errors import DpvizError
from dpviz.core.params import params_of
from dpviz.core.platform import UPLOADS_STAY, in_browser
from dpviz.core.settings import Settings
from dpviz.datasets import builtin_tables
from dpviz.datasets.sheet import is_workbook
from dpviz.preparation.steps import STEPS
from pages.ui import (
    limits,
    loading,
    state,
)
from pages.ui.controls import control, row_bound, setting
from pages.ui.loading import Current
from pages.ui.state import UPLOAD
from pages.ui.texts import plain

# These options need a special widget; every other option gets the usual widget of its type.
_DRAWN_APART = {
    "table", "label", "bounds", "mechanisms", "row_bound", "allocation", "directions", "epsilon",
    "delta", "k",
}  # fmt: skip


# Each heading of the sidebar, with the group of options that is shown below it.
_GROUPS = {
    "Neighbours": "Privacy", "Draws": "Mechanisms", "Shares": "Precision",
    "Preparation": "Preparation",
}  # fmt: skip


_WHERE_IT_STAYS = (
    UPLOADS_STAY
    if in_browser()
    else "The file stays in this session's memory on the server that runs dpviz and is deleted "
    "when the session ends. A large upload may pass through a temporary file there."
)


def draw() -> None:
    """Draw advanced settings in closed groups; shares only for steps that use budget."""
    private = state.settings().private_shares
    public_shares = {f"{step}_share" for step in STEPS if step not in private}
    for heading, group in _GROUPS.items():
        names = [
            name
            for name, param in params_of(Settings).items()
            if param.group == group and name not in _DRAWN_APART and name not in public_shares
        ]
        if names:
            with st.expander(heading):
                for name in names:
                    setting(name)
                if group == "Preparation":
                    row_bound()
    st.button(
        "Reset to defaults",
        icon=":material/restart_alt:",
        on_click=state.reset,
        key="reset",
        help="Resets every setting except the table.",
    )


def table_choice() -> None:
    """Draw the choice of table."""
    tables = builtin_tables()
    options = [*tables, UPLOAD] if limits.caps().uploads else list(tables)

    control(
        st.selectbox,
        "Table",
        "view.table",
        state.get("table"),
        lambda key: state.put("table", key),
        options=options,
        format_func=lambda key: "Your file" if key == UPLOAD else tables[key].label,
    )


def upload(current: Current, *, own_reading: bool = False) -> None:
    """Draw the upload of a table, and its questions.

    Parameters
    ----------
    current : Current
    own_reading : bool
        Whether the page reads the file itself, and asks its own questions.
    """

    def arrived() -> None:
        # Store the file separately from its upload widget, which only some pages show.
        before, file = st.session_state.get("file"), state.file_of("upload")
        st.session_state["file"] = file
        # The widget reports the same file again when another page shows it; ignore this report.
        if file is not None and (before is None or before.file_id != file.file_id):
            state.put("table", UPLOAD)
            st.session_state["uploads"] = st.session_state.get("uploads", 0) + 1
            for name, plain_value in (
                ("delimiter", "auto"), ("header", "auto"), ("sheet", ""), ("codes", ""),
                ("read_as", ""), ("levels", ""), ("rows_a_person", None), ("person", None),
            ):  # fmt: skip
                state.put(name, plain_value)

    if not limits.caps().uploads:
        st.caption("This server does not accept uploads.")
        return
    st.file_uploader(
        "Upload a table",
        key="upload",
        on_change=state.on_change(arrived),
        help="A CSV, Excel, Parquet, SPSS, Stata or JSON file, or a zip with one such file. "
        f"{_WHERE_IT_STAYS} Pages write 1,234.5 in sentences, 1234.5 in tables and files, and "
        "dates as 2024-01-31.",
    )
    file = st.session_state.get("file")
    if state.get("table") != UPLOAD or file is None:
        return
    if state.file_of("upload") is None:
        st.caption(plain(f"In use: {file.name}"))
    if own_reading and not is_workbook(file.name):
        return
    try:
        raw = loading.uploaded_raw()
    except DpvizError:  # The page shows the error; these options may fix it.
        for name in ("header", "delimiter", "decimal", "encoding"):
            setting(name)
        if state.get("sheet"):
            setting("sheet")
        return
    assert raw is not None
    if len(raw.sheets) > 1:
        control(
            st.selectbox, "Sheet", "upload.sheet", raw.sheet,
            lambda name: state.put("sheet", name), options=raw.sheets,
        )  # fmt: skip
    if own_reading:
        return
    st.text_input(
        "Name of the table in pages and files",
        key="upload.name",
        placeholder="table",
        persist_state="session",
        help="Boards, reports and cards use this name, never your file's name.",
    )
    if current.prepared is not None and len(current.prepared.table.columns) >= state.MAX_FEATURES:
        st.caption(
            f"Pages show at most {state.MAX_FEATURES} features; the command line has no limit."
        )
