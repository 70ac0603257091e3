"""The picture shown before Streamlit has started: the links that have one, and its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pages.ui import first_picture, first_sight
from pages.ui.page_options import page_defaults

SETTINGS = replace(page_defaults(), table="iris")
BOARD = {"texts": ["</script><b>"]}


@pytest.fixture
def ships(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the first picture available for one table."""
    boards: dict[Any, Any] = {first_sight.board_key(SETTINGS): BOARD}
    monkeypatch.setattr(first_picture.BOARDS, "get", boards.get)
    first_picture._page.cache_clear()
    yield
    first_picture._page.cache_clear()


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
    # In this test only iris has a stored first picture.
    picture = first_picture.page(query.encode())
    assert (picture is not None) is (table == "iris")
    assert picture is None or b'["\\u003c/script>\\u003cb>"]' in bytes(picture.body)
