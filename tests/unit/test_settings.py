"""`Settings`: every option once, and the same in links, commands, JSON and messages."""

from __future__ import annotations

import argparse
import math
import shlex
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpviz.cli import build_parser
from dpviz.cli.options import add_settings, settings_from
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import Param, number, params_of
from dpviz.core.problem import default_delta, exposure
from dpviz.core.settings import MOST_SHARED, Settings

PARAMS = params_of(Settings)


def _passes(param: Param, value: float) -> bool:
    try:
        param.clean(value)
    except InvalidSetting:
        return False
    return True


def values_of(param: Param) -> st.SearchStrategy[Any]:
    """Return legal values of any declared option, including new options."""
    if param.kind == "number":
        legal: st.SearchStrategy[Any] = st.floats(param.low, param.high).filter(
            lambda value: param.check is None or _passes(param, value)
        )
    elif param.kind == "integer":
        legal = st.integers(int(param.low), int(param.high))
    elif param.kind == "choice":
        legal = st.sampled_from(list(param.choices))
    else:
        legal = st.sampled_from([param.default, *param.examples])
    return st.none() | legal if param.optional else legal


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    values = {name: draw(values_of(param)) for name, param in PARAMS.items()}
    if values["domain"] == "box":  # A box domain has no private preparation.
        values |= {"center": None, "row_bound": "max", "count": "public", "bounds": "max"}
        values["scale"] = draw(st.sampled_from(["none", "standardize"]))
    shares = ["picture", *(name for name in PARAMS if name.endswith("_share"))]
    most = sum(values[name] for name in shares)
    if most > MOST_SHARED:
        values |= {name: max(PARAMS[name].low, 0.9 * values[name] / most) for name in shares}
    return Settings(**values)


def for_links(one: Settings, base: Settings) -> Settings:
    """Return settings that take the base's values for parts that never travel in a link."""
    hidden = {name: getattr(base, name) for name, param in PARAMS.items() if param.url is None}
    return replace(one, **hidden)


@given(settings(), settings())
@example(Settings(center="mean"), Settings(domain="box"))  # Both are legal together in any order.
def test_links_round_trip(one: Settings, base: Settings) -> None:
    one = for_links(one, base)
    query = one.to_query(base)
    assert Settings.from_query(query, base) == (one, [])
    assert all(isinstance(value, str) for value in query.values())


@given(settings())
def test_links_carry_no_names_of_files_or_columns(one: Settings) -> None:
    secret = replace(one, bounds="secret.csv", label="secret column")
    assert "secret" not in str(secret.to_query(Settings()))


@pytest.mark.parametrize("path", ["secret.csv", "/etc/secret.csv", "../secret.parquet"])
def test_a_link_reads_no_file_of_bounds(path: str) -> None:
    state, (notice,) = Settings.from_query({"bounds": path}, Settings())
    assert state == Settings()
    assert "secret" not in notice


@given(st.dictionaries(st.sampled_from(sorted(Settings.url_keys())), st.text(max_size=20)))
@example({"domain": "box", "center": "mean"})
@example({"epsilon": "nan", "k": "1e999", "delta": "-0", "row_bound": "quantile:2"})
def test_nonsense_links_never_raise(query: dict[str, str]) -> None:
    state, notices = Settings.from_query(query, Settings())
    assert isinstance(state, Settings)
    for notice in notices:
        assert notice.startswith("In the link, ")
        assert ". Showing " in notice


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"epsilon": "1e9"}, {}),
        ({"epsilon": "0"}, {}),
        ({"epsilon": "banana"}, {}),
        ({"delta": "2"}, {}),
        ({"k": "-4"}, {}),
        ({"trials": "99999999"}, {}),
        ({"relation": "add-remove"}, {}),
        ({"row_bound": "0"}, {}),
        ({"domain": "box", "center": "mean"}, {"center": "mean"}),
    ],
)
def test_a_wrong_value_of_a_link_gets_the_default_and_it_is_said(
    query: dict[str, str], expected: dict[str, Any]
) -> None:
    state, notices = Settings.from_query(query, Settings())
    assert state == Settings(**expected)
    assert len(notices) == 1


def test_unknown_link_keys_are_left_alone() -> None:
    assert Settings.from_query({"utm_source": "x", "embed": "true"}, Settings()) == (Settings(), [])


def parse_command(command: str) -> Settings:
    program, *words = shlex.split(command)
    assert [program, *words[:3]] == ["python", "-m", "dpviz", "compare"]
    return settings_from(build_parser().parse_args(words[2:]))


@given(settings())
@example(Settings(label="-5"))
@example(Settings(label="a 'quoted' name", bounds="my bounds.csv", table="my table.csv"))
def test_the_printed_command_gives_equal_settings(one: Settings) -> None:
    assert parse_command(one.command()) == one


@dataclass(frozen=True)
class Extended(Settings):
    """`Settings` with one more option."""

    contrast: float = number(
        1.0, 0.0, 5.0, label="Contrast", help="How strong.", examples=(2.0,), group="Table"
    )


def test_an_added_field_appears_everywhere() -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser, Extended)
    assert "--contrast" in parser.format_help()
    assert "How strong. Default: 1." in " ".join(parser.format_help().split())
    state = settings_from(parser.parse_args(["iris", "--contrast", "2.5"]), Extended())
    assert state == Extended(table="iris", contrast=2.5)
    query = state.to_query(Extended())
    assert query == {"table": "iris", "contrast": "2.5"}
    assert Extended.from_query(query, Extended()) == (state, [])
    assert Extended.from_query({"contrast": "9"}, Extended())[0].contrast == 1.0
    assert state.to_json()["contrast"] == 2.5
    assert state.command() == "python -m dpviz compare iris --contrast 2.5"
    with pytest.raises(InvalidSetting) as caught:
        Extended(contrast=6)
    assert caught.value.as_option() == "--contrast must be a number from 0 to 5; got '6'."
    assert len({state, Extended(table="iris"), Extended(table="iris", contrast=2.5)}) == 2


@pytest.mark.parametrize(
    ("n", "delta"),
    [(2, 1e-6), (1000, 1e-6), (1001, 9e-7), (1797, 3e-7), (10**5, 1e-10), (10**6, 1e-12)],
)
def test_default_delta(n: int, delta: float) -> None:
    assert default_delta(n) == delta


@given(st.integers(2, 10**9))
def test_default_delta_is_one_digit_rounded_down(n: int) -> None:
    delta = default_delta(n)
    assert delta == float(f"{delta:.0e}")
    exact = Fraction(f"{delta:.0e}")
    limit = min(Fraction(1, 10**6), Fraction(1, n * n))
    step = Fraction(f"1e{math.floor(math.log10(delta) + 1e-9)}")
    assert exact <= limit < exact + step


@given(st.integers(2, 10**6), st.floats(1e-15, 0.5))
def test_a_delta_exposes_somebody_as_often_as_rows_are_published(n: int, delta: float) -> None:
    assert exposure(delta, 2) == pytest.approx(float(1 - (1 - Fraction(delta)) ** 2), rel=1e-12)
    assert exposure(delta, n) <= n * delta * (1 + 1e-12)
    assert exposure(default_delta(n), n) <= 1 / n


def test_the_stated_exposure() -> None:
    """Theory 12.2: with n 1797 and delta 2e-4, exposure is 30 %."""
    assert exposure(2e-4, 1797) == pytest.approx(0.302, abs=5e-4)
