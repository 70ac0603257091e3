"""Links from anywhere: read fast, said in sentences, and never live on a page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pages.ui import link as parser
from pages.ui.texts import plain
from tests.hostile import link
from tests.links import drawn_problems, known_keys, markdown_of, parser_problems
from tests.ui.driver import PAGES, each_part, errors, go, start, upload

PICTURE = "![](http://host/p.png)"
TAG = "<img src=http://host/p.png>"


def test_a_thousand_hostile_links_are_read() -> None:
    keys = known_keys()
    found = [
        problem for number in range(1_000) for problem in parser_problems(link(0, number, keys))
    ]
    assert not found, found[:5]


@pytest.mark.parametrize("page", PAGES)
def test_a_hostile_link_draws_every_page(page: str) -> None:
    query = {key: PICTURE for key in known_keys() if key not in ("table", "trials", "m")}
    query |= {PICTURE: PICTURE, "m": f"gaussian,{PICTURE},nonsense,mvg[theorem=9]", "v": TAG}
    assert not drawn_problems(page, query)


@pytest.mark.parametrize("page", PAGES)
def test_a_link_that_broke_a_page_once_does_not(page: str) -> None:
    query = {"label": "\u00b2", "delta": "1e-320", "epsilon": "1e-4", "m": "gaussian,mvg,nonsense"}
    assert not drawn_problems(page, query)


def test_names_of_columns_are_text_on_every_page() -> None:
    names = [PICTURE, TAG, "[x](http://host/)", "$x$", "http://host/", "www.host.org", "`a`", "*b*"]
    rows = np.random.default_rng(0).normal(size=(40, len(names)))
    at = start(trials="5", m="gaussian")
    content = pd.DataFrame(rows, columns=names).to_csv(index=False).encode()
    upload(at, "![](http://host/q.png).csv", content)
    for page in PAGES:
        go(at, page)
        for _ in each_part(at, page):
            assert errors(at) == []
            for text in markdown_of(at):
                assert "://host" not in text, (page, text)
                assert "![](" not in text
                assert "<img" not in text


def test_long_values_are_not_looked_at() -> None:
    read = parser.read({"m": "[" * 100_000, "allocation": "custom:" + "1," * 9_000, "k": "3"})
    assert read.settings.k == 3
    assert len(read.notices) == 2
    assert all("at most 2000 letters" in said for said in read.notices)


@pytest.mark.parametrize("written", ["\u00b2", "\u0661", "-1", "1.0", "999999", ""])
def test_the_label_of_a_link_is_a_plain_number(written: str) -> None:
    read = parser.read({"label": written})
    assert read.label_index is None
    assert "label must be a column number" in read.notices[0]


@pytest.mark.parametrize(
    "text",
    [PICTURE, TAG, "[x](http://host)", "http://host", "a@host.org", "www.host.org", "$x$",
     ":red[x]", ":material/home:", "`x`", "**x**", "# x", "1. x", "- x", "a_b_c", "&lt;", "a\nb"],
)  # fmt: skip
def test_plain_loses_nothing_but_line_ends(text: str) -> None:
    seen = plain(text).replace("\u2060", "")
    assert "".join(letter for letter in seen if letter != "\\") == text.replace("\n", " ")
    assert plain("a sentence, with 1.5 and wishart_difference (k = 2).") == (
        "a sentence, with 1.5 and wishart_difference (k = 2)."
    )
