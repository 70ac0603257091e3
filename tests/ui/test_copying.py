"""Text offered for copying is shown literally, even if it contains markup."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.driver import commands


def _page(text: str) -> None:
    from pages.ui.copying import copyable

    copyable(text)


@pytest.mark.parametrize(
    "text",
    [
        "python -m dpviz compare iris --delta 1e-6",
        "two  blanks and  a 'quoted one'",
        "<script>alert(1)</script> & <b>bold</b> </code></pre>",
        "http://127.0.0.1/?v=1&table=iris&amp;x=%3Cb%3E",
    ],
)
def test_a_text_comes_back_as_it_is(text: str) -> None:
    at = AppTest.from_function(_page, args=(text,)).run()
    assert not at.exception
    assert commands(at) == [text]


def test_nothing_else_is_taken_for_it() -> None:
    def other() -> None:
        import streamlit as st

        st.html("<code>no command</code>")

    assert commands(AppTest.from_function(other).run()) == []
