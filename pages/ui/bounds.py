"""Public bounds of features and shares of precision: tables to edit, download, upload."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dpviz.allocation import Allocation, of_mapping
from dpviz.datasets import read_thetas
from dpviz.errors import DpvizError
from dpviz.prepare import Prepared
from pages.ui import state

# What the command line calls the bounds that a page edits.
BOUNDS_FILE = "bounds.csv"


def in_force() -> dict[str, tuple[float, float]] | None:
    """Return the bounds edited in this session, if they are in use."""
    if state.get("bounds") != BOUNDS_FILE:
        return None
    found: dict[str, tuple[float, float]] | None = st.session_state.get("bounds.table")
    return found


def editor(prepared: Prepared) -> None:
    """Offer the public bounds of each feature, where the domain is a box."""
    if prepared.domain.kind != "box":
        return
    with st.expander("Public bounds of the features", icon=":material/straighten:"):
        kinds = {"max": "smallest and largest value (taken from the data)"}
        if prepared.table.bounds is not None:
            kinds["known"] = "known for this table"
        kinds[BOUNDS_FILE] = "edited below"

        def picked() -> None:
            choice = st.session_state["view.bounds"]
            if choice == BOUNDS_FILE:
                st.session_state["bounds.table"] = _current(prepared)
            state.put("bounds", choice)

        if st.session_state.get("view.bounds") != state.get("bounds"):
            st.session_state["view.bounds"] = state.get("bounds")
        st.selectbox(
            "Where they come from",
            list(kinds),
            format_func=kinds.__getitem__,
            key="view.bounds",
            on_change=state.on_change(picked),
            help="Bounds must be known without looking at the data; taken from it they leak.",
        )
        now = _current(prepared)
        edited = st.data_editor(
            {
                "feature": list(now),
                "low": [low for low, _ in now.values()],
                "high": [high for _, high in now.values()],
            },
            disabled=["feature"] if state.get("bounds") == BOUNDS_FILE else True,
            key=f"bounds.editor.{hash(tuple(now.items()))}",
            hide_index=True,
        )

        def use() -> None:
            rows = zip(edited["feature"], edited["low"], edited["high"], strict=True)
            st.session_state["bounds.table"] = {
                name: (float(low), float(high)) for name, low, high in rows
            }

        left, right = st.columns(2)
        left.button(
            "Use these bounds",
            key="bounds.use",
            disabled=state.get("bounds") != BOUNDS_FILE,
            on_click=state.on_change(use),
        )
        right.download_button(
            "Download (CSV)",
            lambda: _csv(now),
            file_name=BOUNDS_FILE,
            on_click="ignore",
            key="bounds.download",
        )


def _current(prepared: Prepared) -> dict[str, tuple[float, float]]:
    """Return the bounds in force, in units of the table."""
    transform = prepared.transform
    low, high = transform.center - transform.scale, transform.center + transform.scale
    edited = in_force()
    if edited is not None:
        return {name: edited[name] for name in prepared.columns}
    pairs = np.column_stack([low, high])
    return {
        name: (float(lower), float(upper))
        for name, (lower, upper) in zip(prepared.columns, pairs, strict=True)
    }


def _csv(bounds: dict[str, tuple[float, float]]) -> str:
    lines = ["feature,low,high"]
    for name, (low, high) in bounds.items():
        quoted = '"' + name.replace('"', '""') + '"'
        lines.append(f"{quoted},{low!r},{high!r}")
    return "\n".join(lines) + "\n"


def upload_shares(prepared: Prepared, allocation: Allocation) -> None:
    """Offer to read shares from a file that was downloaded here or written by hand."""

    def arrived() -> None:
        file = st.session_state["shares.upload"]
        if file is None:
            return
        try:
            thetas = read_thetas(file, name=file.name)
            text = of_mapping(thetas, prepared.columns, allocation.directions)
        except DpvizError as error:
            st.session_state.complaints["allocation"] = str(error)
            return
        state.put("allocation", text)

    st.file_uploader(
        "Shares from a file (columns feature or direction, and theta)",
        key="shares.upload",
        on_change=state.on_change(arrived),
    )
