"""The picture that stands until Streamlit has started: for which links, and from what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from pages.ui import first_picture, first_sight
from pages.ui.page_options import page_defaults

SETTINGS = replace(page_defaults(), table="iris")
BOARD = {
    "token": "t", "shape": "s", "now": ["t", 1.0, 20], "parts": {"0/2": [1.0, 2.0]},
    "payload": {"frames": []},
}  # fmt: skip
FRAMES = {("t", 1.0, 20): b'{"whole": 1}', ("t", 1.0): b'{"at": 1}', ("t", 2.0): b'{"at": 2}'}
EXPECTED = {"token": "t", "part": "expected/1,2", "least": "about 1"}


@pytest.fixture
def ships(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Any, Any]]:
    """Return what stands in for the boards that ship: of one table."""
    key = first_sight.board_key(SETTINGS)
    boards: dict[Any, Any] = {key: BOARD, (*key, "expected"): EXPECTED}
    monkeypatch.setattr(
        first_picture.BOARDS, "get", lambda what: json.loads(json.dumps(boards.get(what)))
    )
    monkeypatch.setattr(first_picture.FRAMES, "get", FRAMES.get)
    cached = (first_picture.told, first_picture.followed)
    for one in cached:
        one.cache_clear()
    yield boards
    for one in cached:
        one.cache_clear()


def answer_to(path: str) -> Response:
    """Return what is answered to a browser that asks for a path."""
    (route,) = first_picture.ROUTES
    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    match, more = route.matches(scope)
    assert match is Match.FULL
    return first_picture._answer(Request(scope | more))


@pytest.mark.usefixtures("ships")
@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("", "digits"),
        ("v=1", "digits"),
        ("v=1&table=iris", "iris"),
        ("table=iris&epsilon=1", "iris"),
        ("table=iris&epsilon=0.5", None),
        ("table=iris&k=3", None),
        ("table=iris&seed=1", None),
        ("table=iris&charts=all", None),
        ("table=iris&stage=yes", None),
        ("table=iris&pin=v%3D1", None),
        ("table=iris&v=2", None),
        ("table=iris&embed=true", None),
        ("table=upload", None),
        ("table=nothing", None),
        (f"table=iris&{'x' * 3_000}", None),
    ],
)
def test_a_link_that_asks_for_anything_else_has_no_picture(query: str, table: str | None) -> None:
    assert first_picture.table_asked_for(query.encode()) == table
    # of the tables only one has a board here
    assert (first_picture.page(query.encode()) is not None) is (table == "iris")


@pytest.mark.usefixtures("ships")
def test_where_fewer_draws_are_allowed_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    caps = first_picture.limits.caps()
    for most, table in ((SETTINGS.trials, "iris"), (SETTINGS.trials - 1, None)):
        fewer = replace(caps, trials=most)
        monkeypatch.setattr(first_picture.limits, "caps", lambda fewer=fewer: fewer)
        assert first_picture.table_asked_for(b"table=iris") == table


@pytest.mark.usefixtures("ships")
def test_the_page_is_streamlits_with_what_a_browser_finds_here() -> None:
    index = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    found = first_picture.page(b"table=iris")
    assert found is not None
    assert found.headers["cache-control"] == "no-cache"
    text, rest = bytes(found.body).decode(), index
    own = []
    for end in ("</head>", "</body>"):  # before which something was put, and nothing else is new
        kept, _, rest = rest.partition(end)
        assert kept in text
        text = text.partition(kept)[2]
        own.append(text.partition(end)[0])
        text = text.partition(end)[2]
    assert text == rest
    named = set(re.findall(r'"[.](/first/[^"]+)"', "\n".join(own)))
    assert len(named) == 3
    # what the picture waits for is asked for first of all
    asked = re.findall(r"<[.](/first/[^>]+)>; rel=(?:modulepreload|preload; as=fetch; crossorigin)",
                       found.headers["link"])  # fmt: skip
    assert set(asked) == {path for path in named if not path.endswith(".frames")}
    said = {path.rpartition(".")[2]: answer_to(path) for path in named}
    assert {answer.status_code for answer in said.values()} == {200}
    assert all("immutable" in answer.headers["cache-control"] for answer in said.values())
    assert said["js"].headers["content-type"].startswith("text/javascript")
    assert bytes(said["js"].body) == first_picture.script()
    assert json.loads(said["json"].body) == {
        "token": "t", "shape": "s", "now": ["t", 1.0, 20], "payload": {"frames": [{"whole": 1}]},
    }  # fmt: skip
    parts = {"expected/1,2": EXPECTED, "0/2": {"frames": [{"at": 1}, {"at": 2}]}}
    assert json.loads(said["frames"].body) == {"token": "t", "parts": parts}
    for path in named:  # of another day's code, of another table, of no kind
        for old, new in ((path.split(".")[1], "0" * 24), ("iris", "wine"), ("iris", "never")):
            if old in path:
                assert answer_to(path.replace(old, new)).status_code == 404
        assert answer_to(f"{path}x").status_code == 404
    # the themes are the ones of .streamlit/config.toml, where they are read
    colour = st.get_option("theme.dark.backgroundColor")
    assert (f"--st-background-color: {colour};" in own[0]) is (colour is not None)


def test_without_what_ships_the_page_is_streamlits(ships: dict[Any, Any]) -> None:
    ships.clear()
    assert first_picture.page(b"table=iris") is None
