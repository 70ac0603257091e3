"""A built-in table's results are kept for all sessions; an upload's stay in their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpviz.datasets import builtin_tables
from pages.ui.shelves import Kept, apart


def _shelf(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return lambda function: lambda *args, **named: (options, function(*args, **named))


@apart(_shelf, own=1, max_entries=2)
def _found(key: str | tuple[str, ...], more: int) -> int:
    return more + 1


@pytest.mark.parametrize("table", builtin_tables())
def test_a_built_in_table_is_for_all(table: str) -> None:
    assert _found(table, 1) == ({"max_entries": 2}, 2)
    assert _found((table, "none", "{}"), more=1) == ({"max_entries": 2}, 2)


@pytest.mark.parametrize("key", ["f1/('digits',)", "digits/('age',)", "digits/", "", "upload"])
def test_anything_else_stays_in_its_session(key: str) -> None:
    assert _found(key, 1)[0] == {"max_entries": 1, "scope": "session"}
    assert _found((key, "digits"), 1)[0] == {"max_entries": 1, "scope": "session"}


def test_what_is_unused_for_longest_goes_first() -> None:
    kept = Kept[str](5, len)
    for what in ("ab", "cd"):
        kept.keep(what, what)
    assert kept.get("ab") == "ab"  # asked for again
    kept.keep("ab", "twice")  # another session made it too
    kept.keep("ef", "ef")
    assert [kept.get(what) for what in ("ab", "cd", "ef")] == ["ab", None, "ef"]
