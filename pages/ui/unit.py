"""The unit of privacy: at most how many rows one person has, asked once for every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from dpviz.core.number_text import rows_words
from dpviz.core.problem import Unit, protects
from dpviz.core.settings import MOST_ROWS_A_PERSON
from dpviz.releasing.schema import Schema
from pages.ui import controls, state
from pages.ui.texts import plain

UNKNOWN = "unit.unknown"
"""What the session holds where somebody said that nobody knows."""
_ANSWERS = {
    "one": "each row is another person",
    "some": "a person has several rows",
    "column": "a column is the person",
    "open": "not known: one ROW is protected",
}


def answered() -> bool:
    """Return whether the question was answered, be it that nobody knows."""
    return state.get("rows_a_person") is not None or UNKNOWN in st.session_state


def protected() -> Unit:
    """Return who a ledger would count by the answer."""
    return Unit.ROW if state.get("rows_a_person") is None else Unit.PERSON


def stated(schema: Schema) -> Schema:
    """Return a schema with the answer in it; the column of the person takes no part."""
    rows, person = state.get("rows_a_person"), state.get("person") or ""
    columns = (replace(c, use=c.use and c.name != person) for c in schema.columns)
    return replace(schema, columns=tuple(columns), rows_a_person=rows, person=person)


def take(schema: Schema) -> None:
    """Take the answer that a schema holds, where it holds one."""
    if schema.rows_a_person is not None:
        state.put("rows_a_person", schema.rows_a_person)
        state.put("person", schema.person or None)


def _answer() -> str:
    """Return the answer in a few words."""
    rows, column = state.get("rows_a_person"), state.get("person")
    if column is not None:
        return f"'{column}' is the person, at most {rows_words(rows)} each"
    unknown = _ANSWERS["open"] if answered() else "rows of one person: not said"
    return {None: unknown, 1: _ANSWERS["one"]}.get(rows, f"at most {rows} rows a person")


def ask(place: str, columns: Sequence[str], likely: str = "", hint: str = "") -> None:
    """Say how many rows one person has; a click asks, and says what is protected.

    Parameters
    ----------
    place : str
        Begins the keys of the widgets.
    columns : sequence of str
        Each may be the person.
    likely : str
        The one that is offered first.
    hint : str
        Why it is.
    """
    with st.popover(plain(_answer()), key=f"{place}-unit"):
        _question(place, columns, likely)
        if hint and state.get("person") is None:
            st.caption(plain(hint))


def _question(place: str, columns: Sequence[str], likely: str) -> None:
    rows, column = state.get("rows_a_person"), state.get("person")
    unknown = "open" if UNKNOWN in st.session_state else None
    now = "column" if column is not None else {None: unknown, 1: "one"}.get(rows, "some")

    def picked(answer: str) -> None:
        st.session_state.pop(UNKNOWN, None)
        if answer == "open":
            st.session_state[UNKNOWN] = True
        state.put("person", (likely or columns[0]) if answer == "column" else None)
        state.put("rows_a_person", {"open": None, None: None, "some": 3}.get(answer, 1))
        st.session_state.pop("release.new.unit", None)  # what a new ledger counts follows

    controls.control(
        st.radio,
        "At most how many rows has one person?",
        f"{place}.person",
        now,
        picked,
        options=list(_ANSWERS),
        format_func=_ANSWERS.__getitem__,
    )
    if now == "column":
        controls.control(
            st.selectbox,
            "Which column is the person?",
            f"{place}.person.name",
            column,
            lambda name: state.put("person", name),
            options=list(dict.fromkeys([*columns, column])),
            help="It is no feature. Of each person the first rows count.",
        )
    if now in ("some", "column"):
        controls.control(
            st.number_input,
            "Rows of one person, at most",
            f"{place}.rows_a_person",
            rows,
            lambda number: state.put("rows_a_person", number),
            min_value=1 if column is not None else 2,
            max_value=MOST_ROWS_A_PERSON,
        )
    more = f" The noise is {rows} times as large." if rows is not None and rows > 1 else ""
    st.markdown(
        f":material/{'help' if rows is None else 'check'}: **This {protects(rows)}.**{more}"
    )
