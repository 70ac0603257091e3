"""The glossary, which opens at a term from the "i" beside the term, on every page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dpviz.lessons.glossary import TERMS, term
from dpviz.lessons.glossary_html import term_picture
from pages.ui.ask import ask

_MARKS = st.components.v2.component(
    "dpviz_terms", js=(Path(__file__).parent / "glossary.js").read_text(encoding="utf-8")
)
_KEY = "glossary.terms"


def _picture(key: str) -> str:
    return term_picture(term(key))


@st.dialog("Glossary", width="medium")
def _open(key: str) -> None:
    words = {one.key: one.word for one in TERMS}
    key_of_choice = st.pills(
        "Term",
        list(words),
        default=key,
        format_func=words.__getitem__,
        key=f"glossary.term.{key}",
        label_visibility="collapsed",
    )
    entry = term(key_of_choice or key)
    st.markdown(f"**{entry.word}**: {entry.said}")
    st.html(ask(_picture, {"key": entry.key}))
    st.caption(f"{entry.shows[0].upper()}{entry.shows[1:]}.")


def info(key: str, place: str) -> None:
    """Draw an "i" that opens the glossary at a term.

    Parameters
    ----------
    key : str
        Key of the glossary term.
    place : str
        Unique name of the term's place on the page.
    """
    click = st.button(
        "Glossary",
        icon=":material/info:",
        key=f"glossary.{place}",
        type="tertiary",
        help=f"Explains the terms of this page, beginning with {term(key).word}.",
    )
    if click:
        _open(key)


@st.fragment
def marks() -> None:
    """Add a small "i" beside the first occurrence of every term on the page.

    A press runs only this fragment again, so the rest of the page is not recomputed.
    """

    def asked() -> None:
        st.session_state["glossary.asked"] = getattr(st.session_state[_KEY], "asked", None)

    terms = [{"key": one.key, "word": one.word, "spelled": [one.word, *one.also]} for one in TERMS]
    with st.container(key="glossary-marks", height="content", gap=None):
        _MARKS(key=_KEY, data={"terms": terms}, on_asked_change=asked, height=1)
    key = st.session_state.pop("glossary.asked", None)
    if key is not None:
        _open(term(key).key)
