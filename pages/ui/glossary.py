"""The glossary: opened at a term from the "i" beside it, on every page."""

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
    chosen = st.pills(
        "Term",
        list(words),
        default=key,
        format_func=words.__getitem__,
        key=f"glossary.term.{key}",
        label_visibility="collapsed",
    )
    found = term(chosen or key)
    st.markdown(f"**{found.word}**: {found.said}")
    st.html(ask(_picture, {"key": found.key}))
    st.caption(f"{found.shows[0].upper()}{found.shows[1:]}.")


def info(key: str, place: str) -> None:
    """Draw an "i" that opens the glossary at a term.

    Parameters
    ----------
    key : str
        Of the term.
    place : str
        Where on the page it stands, to tell two of them apart.
    """
    pressed = st.button(
        "Glossary",
        icon=":material/info:",
        key=f"glossary.{place}",
        type="tertiary",
        help=f"The terms of this page in a sentence each; opens at {term(key).word}.",
    )
    if pressed:
        _open(key)


@st.fragment
def marks() -> None:
    """Set a quiet "i" beside every term where it first stands on the page.

    Only this part runs again when one is pressed: nothing on the page is computed anew.
    """

    def asked() -> None:
        st.session_state["glossary.asked"] = getattr(st.session_state[_KEY], "asked", None)

    terms = [{"key": one.key, "word": one.word, "spelled": [one.word, *one.also]} for one in TERMS]
    with st.container(key="glossary-marks", height="content", gap=None):
        _MARKS(key=_KEY, data={"terms": terms}, on_asked_change=asked, height=1)
    key = st.session_state.pop("glossary.asked", None)
    if key is not None:
        _open(term(key).key)
