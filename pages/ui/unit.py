"""The unit of privacy: the maximum number of rows of one person, asked once for all pages."""

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
"""Session key that is set if a visitor answered "not known"."""
_ANSWERS = {
    "one": "each row is a different person",
    "some": "a person has several rows",
    "column": "a column identifies the person",
    "open": "not known: one ROW is protected",
}


def answered() -> bool:
    """Return whether the question was answered, even if by "not known"."""
    return state.get("rows_a_person") is not None or UNKNOWN in st.session_state


def protected() -> Unit:
    """Return the unit that a ledger would count, according to the answer."""
    return Unit.ROW if state.get("rows_a_person") is None else Unit.PERSON


def stated(schema: Schema) -> Schema:
    """Return a schema with the answer; the column of the person is then unused."""
    rows, person = state.get("rows_a_person"), state.get("person") or ""
    columns = (replace(c, use=c.use and c.name != person) for c in schema.columns)
    return replace(schema, columns=tuple(columns), rows_a_person=rows, person=person)


def take(schema: Schema) -> None:
    """Take the answer from a schema, if the schema states it."""
    if schema.rows_a_person is not None:
        state.put("rows_a_person", schema.rows_a_person)
        state.put("person", schema.person or None)


def _answer() -> str:
    """Return the answer to the question of the unit, in a few words."""
    rows, column = state.get("rows_a_person"), state.get("person")
    if column is not None:
        return f"'{column}' identifies the person; each has at most {rows_words(rows)}"
    unknown = _ANSWERS["open"] if answered() else "rows of one person: not stated"
    return {None: unknown, 1: _ANSWERS["one"]}.get(rows, f"at most {rows} rows for each person")


def ask(
    place: str, columns: Sequence[str], likely: str = "", hint: str = "", step: str = ""
) -> None:
    """Show the number of rows per person; a click asks for it, and explains what is protected.

    Parameters
    ----------
    place : str
        Prefix of the keys of the widgets.
    columns : sequence of str
        Columns that may identify persons.
    likely : str
        Column that is suggested first.
    hint : str
        Reason for this suggestion.
    step : str
        Text of the button if the question is the page's next step.
    """
    with st.popover(
        plain(step or _answer()), key=f"{place}-unit", type="primary" if step else "secondary"
    ):
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
        st.session_state.pop("release.new.unit", None)  # A new ledger then proposes the same unit.

    controls.control(
        st.radio,
        "How many rows can one person have?",
        f"{place}.person",
        now,
        picked,
        options=list(_ANSWERS),
        format_func=_ANSWERS.__getitem__,
    )
    if now == "column":
        controls.control(
            st.selectbox,
            "Which column identifies the person?",
            f"{place}.person.name",
            column,
            lambda name: state.put("person", name),
            options=list(dict.fromkeys([*columns, column])),
            help="This column is not a feature. Only the first rows of each person count.",
        )
    if now in ("some", "column"):
        controls.control(
            st.number_input,
            "Largest number of rows of one person",
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
