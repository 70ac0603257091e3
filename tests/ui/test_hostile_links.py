"""Links from anywhere: read fast, reported in plain sentences, never active on a page."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.params import Param, params_of
from dpviz.core.settings import Settings
from pages.ui import link as parser
from pages.ui.page_options import VIEWS, page_defaults
from pages.ui.texts import plain
from tests.hostile import link
from tests.links import drawn_problems, known_keys, markdown_of, parser_problems
from tests.ui.driver import PAGES, each_part, errors, go, start, upload

PICTURE = "![](http://host/p.png)"
TAG = "<img src=http://host/p.png>"


def test_hundreds_of_hostile_links_are_read() -> None:
    keys = known_keys()
    bad = [problem for number in range(300) for problem in parser_problems(link(0, number, keys))]
    assert not bad, bad[:5]


@pytest.mark.parametrize("page", PAGES)
def test_a_hostile_link_draws_every_page(page: str) -> None:
    query = {key: PICTURE for key in known_keys() if key not in ("table", "trials", "m")}
    query |= {PICTURE: PICTURE, "m": f"gaussian,{PICTURE},nonsense,mvg[theorem=9]", "v": TAG}
    assert not drawn_problems(page, query)


@pytest.mark.parametrize("page", ["explore", "claims"])
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


DECLARED = [
    (store, name, param)
    for store, cls in {"settings": Settings, **VIEWS}.items()
    for name, param in params_of(cls).items()
    if param.url is not None and name != "directions"  # Any mechanism may supply directions.
]


@given(st.sampled_from(DECLARED), st.floats().map(str) | st.integers().map(str) | st.text())
@example(next(one for one in DECLARED if one[1] == "delta"), "2")
@example(next(one for one in DECLARED if one[1] == "epsilon"), "-3")
def test_a_wrong_value_of_a_link_gets_the_default_and_one_line_why(
    option: tuple[str, str, Param], written: str
) -> None:
    store, name, param = option
    parse = parser.read({param.url or "": written})
    values = parse.settings if store == "settings" else parse.views[store]
    default = page_defaults() if store == "settings" else VIEWS[store]()
    try:
        replace(default, **{name: param.parse(written)})
    except InvalidSetting:
        assert values == default
        (notice,) = parse.notices
        assert notice.startswith("In the link, ")
        assert notice.endswith(f". Showing {param.format(getattr(default, name))}.")
        assert re.search(r" is (too small|too large|not possible): it must be ", notice)


def test_long_values_are_not_looked_at() -> None:
    query = parser.read({"m": "[" * 100_000, "allocation": "custom:" + "1," * 9_000, "k": "3"})
    assert query.settings.k == 3
    assert len(query.notices) == 2
    assert all("at most 2000 letters" in said for said in query.notices)


@pytest.mark.parametrize("written", ["\u00b2", "\u0661", "-1", "1.0", "999999", ""])
def test_the_label_of_a_link_is_a_plain_number(written: str) -> None:
    query = parser.read({"label": written})
    assert query.label_index is None
    assert "label must be a column number" in query.notices[0]


@pytest.mark.parametrize(
    "text",
    [PICTURE, TAG, "[x](http://host)", "http://host", "a@host.org", "www.host.org", "$x$",
     ":red[x]", ":material/home:", "`x`", "**x**", "# x", "1. x", "- x", "a_b_c", "&lt;", "a\nb"],
)  # fmt: skip
def test_plain_loses_nothing_but_line_ends(text: str) -> None:
    text_plain = plain(text).replace("\u2060", "")
    assert "".join(letter for letter in text_plain if letter != "\\") == text.replace("\n", " ")
    assert plain("a sentence, with 1.5 and wishart_difference (k = 2).") == (
        "a sentence, with 1.5 and wishart_difference (k = 2)."
    )
