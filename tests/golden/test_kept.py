"""Answers and links are what they were, to the byte: what is tidied inside changes neither."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tools import kept


def same(was: Any, now: Any) -> bool:
    """Return whether JSON data is equal, numbers to the nine digits that every kernel agrees on."""
    if isinstance(was, dict) and isinstance(now, dict):
        return list(was) == list(now) and all(same(was[key], now[key]) for key in was)
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(same, was, now))
    if type(was) is float and type(now) in (int, float):
        return math.isclose(was, now, rel_tol=1e-9, abs_tol=1e-12)
    return type(was) is type(now) and bool(was == now)


@pytest.mark.parametrize("name", kept.QUESTIONS)
def test_answers_are_what_they_were(name: str) -> None:
    was = (kept.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    now = kept.answer_text(name)
    if json.loads(kept.MADE_BY.read_text(encoding="utf-8")) == kept.numbers_by():
        assert now == was
    # other versions, or another processor, move the last digits (python -m benchmarks.kernels)
    assert same(json.loads(was), json.loads(now))


def test_links_are_read_as_they_were() -> None:
    assert kept.links_text() == kept.LINKS.read_text(encoding="utf-8")


def test_what_the_address_bar_says_means_the_same() -> None:
    for address, found in json.loads(kept.LINKS.read_text(encoding="utf-8")).items():
        again = kept.read_link(found["query"])
        assert again["settings"] == found["settings"], address
        assert again["notices"] == [], address


def test_nothing_is_kept_that_is_not_asked() -> None:
    files = {path.name for path in kept.FOLDER.iterdir()}
    assert files == {f"{name}.json" for name in kept.QUESTIONS} | {"links.json", "versions.json"}


@pytest.mark.parametrize(
    ("was", "now"),
    [({"a": 1.0}, {"a": 1.00000001}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([1.0], [1.0, 2.0])],
)
def test_a_difference_is_seen(was: Any, now: Any) -> None:
    assert not same(was, now)
