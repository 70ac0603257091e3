"""Declared parameters: one declaration, read in the same way everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpviz.core.errors import InvalidSetting
from dpviz.core.params import (
    Declared,
    Param,
    choice,
    format_number,
    integer,
    number,
    params_of,
    split_outside_brackets,
    text,
    texts,
)


@dataclass(frozen=True)
class Sample(Declared):
    size: float = number(1.0, 0.5, 8.0, label="Size", help="How big.", slider=(1.0, 4.0))
    steps: int | None = integer(None, 1, 9, label="Steps", help="How many.", optional=True)
    seed: int = integer(0, 0, 2**63 - 1, label="Seed", help="Which.")
    mode: str = choice("a", {"a": "first", "b": "second"}, label="Mode", help="Which.")
    note: str = text("x", label="Note", help="Any.", url=None, flag="--remark")
    items: tuple[str, ...] = texts((), label="Items", help="Some.", url="i")


PARAMS = params_of(Sample)


def test_a_list_of_nothing_is_refused_and_no_list_is_the_default() -> None:
    items = PARAMS["items"]
    assert items.parse("") == items.parse("  ") == ()
    for value in (",", " , ,", ",,,"):
        with pytest.raises(InvalidSetting, match=r"items must be .*; got '"):
            items.parse(value)
    assert items.parse("a,,b,") == ("a", "b")


def test_declaration_gives_flags_keys_and_defaults() -> None:
    assert [p.name for p in PARAMS.values()] == ["size", "steps", "seed", "mode", "note", "items"]
    assert [p.flag for p in PARAMS.values()] == [
        "--size", "--steps", "--seed", "--mode", "--remark", "--items",
    ]  # fmt: skip
    assert [p.url for p in PARAMS.values()] == ["size", "steps", "seed", "mode", None, "i"]
    assert Sample.url_keys() == {"size", "steps", "seed", "mode", "i"}
    assert Sample() == Sample(1.0, None, 0, "a", "x", ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", 0.49), ("size", 8.01), ("size", math.nan), ("size", math.inf), ("size", None),
        ("size", "2"), ("size", True), ("size", 10**400), ("size", object()), ("size", 2j),
        ("steps", 0), ("steps", 10), ("steps", 2.5), ("steps", math.inf), ("steps", math.nan),
        ("seed", -1), ("seed", 2**63), ("seed", float(2**63)), ("seed", False),
        ("mode", "c"), ("mode", None), ("note", 3), ("items", "abc"), ("items", 3),
    ],
)  # fmt: skip
def test_values_outside_the_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as caught:
        Sample(**{name: value})
    error = caught.value
    assert error.name == name
    assert error.flag == PARAMS[name].flag
    assert PARAMS[name].allowed in str(error)
    assert "\n" not in str(error)
    assert error.as_option().startswith(f"{PARAMS[name].flag} must be ")


def test_values_are_made_canonical() -> None:
    assert PARAMS["size"].clean(2) == 2.0
    assert isinstance(PARAMS["size"].clean(2), float)
    assert isinstance(PARAMS["steps"].clean(3.0), int)
    assert PARAMS["steps"].parse("auto") is None
    assert PARAMS["steps"].parse(" 3 ") == 3
    assert PARAMS["steps"].parse("3e0") == 3
    assert PARAMS["items"].clean(["a", "b"]) == ("a", "b")
    # Test both ends of the allowed numbers, which a float cannot hold exactly.
    assert PARAMS["seed"].parse(str(2**63 - 1)) == 2**63 - 1
    assert PARAMS["seed"].clean(2**53 + 1) == 2**53 + 1


@given(st.floats(allow_nan=False))
@example(0.1 + 0.2)
@example(-0.0)
@example(5e-324)
def test_format_number_reads_back(value: float) -> None:
    assert float(format_number(value)) == value


VALUES = st.fixed_dictionaries(
    {
        "size": st.floats(0.5, 8.0),
        "steps": st.none() | st.integers(1, 9),
        "seed": st.integers(0, 2**63 - 1),
        "mode": st.sampled_from(["a", "b"]),
        "note": st.sampled_from(["x", "y z", "käse"]),
        "items": st.lists(st.sampled_from(["a", "b[c=1,d=2]", "b"]), max_size=3).map(tuple),
    }
)


@given(VALUES)
def test_texts_round_trip(values: dict[str, Any]) -> None:
    sample = Sample(**values)
    assert Sample.from_texts(sample.texts()) == sample
    assert set(sample.texts()) == {
        name for name, param in PARAMS.items() if values[name] != param.default
    }


@given(VALUES, VALUES)
def test_links_round_trip_from_any_base(values: dict[str, Any], base: dict[str, Any]) -> None:
    sample, start = Sample(**values), Sample(**(base | {"note": values["note"]}))
    assert Sample.from_query(sample.to_query(start), start) == (sample, [])


def test_links_with_bad_values_say_what_is_shown() -> None:
    base = Sample(mode="b", steps=4)
    query = {"size": "99", "steps": "-3", "mode": "zzz", "note": "stolen", "utm": "1", "seed": "x"}
    settings, notices = Sample.from_query(query, base)
    assert settings == base
    assert notices[0] == (
        "In the link, size = 99 is too large: it must be a number from 0.5 to 8. Showing 1."
    )
    hows = ("too large", "too small", "not possible", "not possible")
    for name, how, notice in zip(("size", "steps", "seed", "mode"), hows, notices, strict=True):
        assert notice.startswith(f"In the link, {name} = ")
        assert f" is {how}: it must be " in notice
        assert notice.endswith(f". Showing {PARAMS[name].format(getattr(base, name))}.")


@given(st.dictionaries(st.sampled_from(["size", "steps", "seed", "mode", "i"]), st.text()))
@example({"size": "1e999", "steps": "-inf", "seed": "nan", "mode": "\x00"})
def test_no_link_raises(query: dict[str, str]) -> None:
    settings, notices = Sample.from_query(query, Sample())
    assert isinstance(settings, Sample)
    assert len(notices) <= len(query)


def test_split_outside_brackets() -> None:
    assert split_outside_brackets("a[b=1,c=2], d ,,e") == ("a[b=1,c=2]", "d", "e")
    assert split_outside_brackets("") == ()
    assert split_outside_brackets("a]b,c") == ("a]b,c",)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match=r"one of size, steps, seed, mode, note, items"):
        Sample.from_texts({"sizes": "1"})


def test_check_runs_last_and_may_change_the_value() -> None:
    param = Param("p", "text", "a", "P", "Help.", check=str.upper)
    assert param.parse(" abc ") == "ABC"
