"""Public bounds of features, in a table to edit and download."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.files import csv_text
from dpviz.datasets import Table
from dpviz.preparation.bounding import Prepared
from dpviz.studies.precision import bounds_of_rows
from pages.ui import controls, parts, state
from pages.ui.guard import say_error

# Commands use this file name for bounds that were edited on a page.
BOUNDS_FILE = "bounds.csv"


def in_force() -> dict[str, tuple[float, float]] | None:
    """Return the bounds edited in this session, if they are used."""
    if state.get("bounds") != BOUNDS_FILE:
        return None
    table: dict[str, tuple[float, float]] | None = st.session_state.get("bounds.table")
    return table


def fit(table: Table) -> bool:
    """Return whether the bounds fit the table; if not, use the table's own, with a notice."""
    word, entries = state.get("bounds"), in_force()
    if word == BOUNDS_FILE:
        if entries is None:  # A new session has no edited bounds any more.
            state.put("bounds", "max")
            return False
        columns: tuple[str, ...] = st.session_state["bounds.columns"]
        missing = not set(entries) <= set(table.columns)
        if len(table.columns) <= state.MAX_FEATURES:  # A page uses only part of a wider table.
            missing = missing or not set(table.columns) <= set(columns)
        why = "the edited bounds belong to other features"
    else:
        missing = word == "known" and table.bounds is None
        why = "no bounds of this table are known"
    if not missing:
        return True
    if state.get("domain") == "box" or state.settings().private_shares:
        state.notice(f"The feature bounds changed: {why}. dpviz takes bounds from the data.")
    state.put("bounds", "max")
    return False


def editor(prepared: Prepared) -> None:
    """Offer the public bounds of each feature, if rows are bounded by feature."""
    if prepared.domain.kind != "box":
        return
    with st.expander("Public bounds of the features", icon=":material/straighten:"):
        kinds = {"max": "smallest and largest value (taken from the data)"}
        if prepared.table.bounds is not None:
            kinds["known"] = "known bounds of this table"
        kinds[BOUNDS_FILE] = "edited below"
        kinds.setdefault(state.get("bounds"), state.get("bounds"))

        def picked(choice: str) -> None:
            st.session_state.complaints.pop("bounds.table", None)
            if choice == BOUNDS_FILE:
                st.session_state["bounds.table"] = _current(prepared)
                st.session_state["bounds.columns"] = prepared.table.columns
            state.put("bounds", choice)

        controls.control(
            st.selectbox,
            "Source of the bounds",
            "view.bounds",
            state.get("bounds"),
            picked,
            options=list(kinds),
            format_func=kinds.__getitem__,
            help="Bounds must be known without looking at the data. Bounds that are taken from the "
            "data leak information.",
        )
        now, own = _current(prepared), state.get("bounds") == BOUNDS_FILE
        entries = st.data_editor(
            {
                "feature": list(now),
                "low": [low for low, _ in now.values()],
                "high": [high for _, high in now.values()],
            },
            disabled=["feature"] if own else True,
            key=f"bounds.editor.{hash(tuple(now.items()))}",
            hide_index=True,
            alt="Lowest and highest value of each feature",
        )

        def use() -> None:
            rows = zip(entries["feature"], entries["low"], entries["high"], strict=True)
            try:
                st.session_state["bounds.table"] = bounds_of_rows(rows)
            except InvalidSetting as error:
                st.session_state.complaints["bounds.table"] = str(error)
                return
            st.session_state.complaints.pop("bounds.table", None)

        left, right = st.columns(2)
        left.button(
            "Use these bounds",
            key="bounds.use",
            disabled=not own,
            help=None if own else f"To edit bounds, choose '{kinds[BOUNDS_FILE]}' above.",
            on_click=state.on_change(use),
        )
        file = (lambda: _csv(now)), BOUNDS_FILE, "bounds.download"
        parts.download("Download (CSV)", *file, place=right)
        complaint = state.complaint("bounds.table")
        if complaint is not None:
            say_error(complaint)


def _current(prepared: Prepared) -> dict[str, tuple[float, float]]:
    """Return the bounds in use, in units of the table."""
    transform = prepared.transform
    low, high = transform.center - transform.scale, transform.center + transform.scale
    entries = in_force()
    if entries is not None:
        return {name: entries[name] for name in prepared.columns}
    pairs = np.column_stack([low, high])
    return {
        name: (float(lower), float(upper))
        for name, (lower, upper) in zip(prepared.columns, pairs, strict=True)
    }


def _csv(bounds: dict[str, tuple[float, float]]) -> str:
    low, high = zip(*bounds.values(), strict=True)
    return csv_text(pd.DataFrame({"feature": list(bounds), "low": low, "high": high}))
