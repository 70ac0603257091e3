"""The Mechanisms page: filter, sort, open a row, change a parameter, compare the variant."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import dpviz.mechanisms
from dpviz.core.number_text import decimals
from dpviz.core.params import params_of
from dpviz.mechanisms import all_mechanisms, featured, parse_variant
from dpviz.report.sentences.cards import CANNOT_RUN, FILTERS, SORTS
from dpviz.report.tables.portrait import portrait
from tests.contract.test_mechanisms import THROW_AWAY
from tests.ui.driver import (
    QUICK,
    change,
    errors,
    found,
    go,
    held,
    keys,
    one_sentence,
    press,
    results,
    start,
)

PARAMETERS = {key: cls for key, cls in all_mechanisms().items() if params_of(cls)}


def shown(at: AppTest) -> list[str]:
    """Return the keys of the rows, from the top."""
    keys = {cls.info.label: key for key, cls in all_mechanisms().items()}
    heads = [box.label for box in at.main.expander if box.label.startswith("**")]
    return [keys[text.split("**")[1]] for text in heads]


def open_card(at: AppTest, key: str) -> AppTest:
    at.session_state[f"mechanisms.{key}.open"] = True
    return at.run()


def test_every_mechanism_has_a_row_with_a_picture_on_one_scale() -> None:
    at = start("mechanisms", **QUICK)
    assert errors(at) == []
    assert shown(at) == list(all_mechanisms())
    rows = [box.label for box in at.main.expander]
    for cls, text in zip(all_mechanisms().values(), rows, strict=True):
        seen = portrait(cls())
        if seen is None:
            assert "cannot run on the example" in text
            continue
        assert (
            f"![median {decimals(seen.median, 0)}° from the true direction](data:image/svg" in text
        )
        coded = re.search(r"base64,([^)]+)", text)
        assert coded is not None
        svg = base64.b64decode(coded[1]).decode()
        # the median stands at its share of the same 90 degrees in every row
        line = re.search(r"M([\d.]+) 0V30", svg)
        assert line is not None
        assert float(line[1]) == pytest.approx(240 * seen.median / 90, abs=0.05)
    # what a row says is sent when it is opened
    assert not at.main.latex
    assert cls.info.summary not in "".join(box.value for box in at.main.markdown)


def test_filters_narrow_and_combine() -> None:
    at = start("mechanisms", **QUICK)
    change(at, "mechanisms.filter.guarantee", "pure epsilon")
    pure = {key for key, cls in all_mechanisms().items() if cls.info.guarantee == "pure"}
    assert set(shown(at)) == pure
    change(at, "mechanisms.filter.release", "subspace")
    assert set(shown(at)) == {
        key for key in pure if all_mechanisms()[key].info.release == "subspace"
    }
    change(at, "mechanisms.filter.guarantee", "any")
    change(at, "mechanisms.filter.release", "any")
    change(at, "mechanisms.filter.status", "claim is false")
    assert "wishart" in shown(at)
    assert "gaussian" not in shown(at)
    none = "No mechanism is all of that"
    assert none not in "".join(box.value for box in at.main.markdown)
    change(at, "mechanisms.filter.guarantee", "no guarantee")
    assert shown(at) == []
    assert none in "".join(box.value for box in at.main.markdown)
    assert errors(at) == []


def test_every_filter_value_and_sort_renders() -> None:
    at = start("mechanisms", **QUICK)
    for name, values in FILTERS.items():
        for value in (*values, "any"):
            change(at, f"mechanisms.filter.{name}", value)
            assert errors(at) == [], (name, value)
    for order in SORTS:
        change(at, "mechanisms.sort", order)
        assert errors(at) == [], order
        assert len(shown(at)) == len(all_mechanisms())


def test_sorting_by_what_is_spent_puts_the_loosest_first() -> None:
    at = start("mechanisms", **QUICK)
    change(at, "mechanisms.sort", "spent epsilon")
    assert shown(at)[0] in {"mvg", "mvg_data", "jl_transform", "random_projection", "mod_sulq"}


def test_no_delta_is_said_on_the_cards_and_is_no_crash() -> None:
    at = start("mechanisms", **QUICK, delta="0")
    assert errors(at) == []
    assert sorted(shown(at)) == sorted(all_mechanisms())
    change(at, "mechanisms.filter.status", CANNOT_RUN)
    assert "gaussian" in shown(at)
    assert "wishart_difference" not in shown(at)


def test_an_open_card_shows_law_cost_and_parameters() -> None:
    at = start("mechanisms", **QUICK)
    assert not at.main.latex
    open_card(at, "mvg")
    assert errors(at) == []
    drawn = "\n".join(box.value for box in at.main.latex)
    assert all_mechanisms()["mvg"].info.law in drawn
    for name in params_of(all_mechanisms()["mvg"]):
        assert f"mechanisms.mvg.{name}" in keys(at)
    assert "mechanisms.gaussian.add" not in keys(at)


def test_a_variant_is_compared_on_explore() -> None:
    at = open_card(start("mechanisms", **QUICK), "mvg")
    choices = params_of(all_mechanisms()["mvg"])["theorem"].choices
    change(at, "mechanisms.mvg.theorem", choices["3"])
    press(at, "mechanisms.mvg.add")
    assert errors(at) == []
    assert held(at, "mechanisms") == (*featured(), "mvg[theorem=3]")
    assert found(at, "mechanisms.mvg.add").disabled
    go(at, "explore")
    assert errors(at) == []
    assert parse_variant("mvg[theorem=3]").label in list(results(at)["mechanism"])
    assert "mvg[theorem=3]" in at.query_params["m"]


def test_a_bad_parameter_is_one_sentence_and_offers_no_variant() -> None:
    at = open_card(start("mechanisms", **QUICK), "noisy_power")
    name = next(
        name for name, p in params_of(all_mechanisms()["noisy_power"]).items() if p.kind != "choice"
    )
    for text in ("many", "-3", ""):
        change(at, f"mechanisms.noisy_power.{name}", text)
        if text == "" and not errors(at):
            continue  # a blank may mean the default
        (said,) = errors(at)
        assert one_sentence(said)
        assert "mechanisms.noisy_power.add" not in keys(at)
    assert held(at, "mechanisms") == featured()


@pytest.mark.parametrize("key", PARAMETERS)
def test_each_parameter_has_a_widget_that_takes_its_examples(key: str) -> None:
    at = open_card(start("mechanisms", **QUICK), key)
    for name, param in params_of(PARAMETERS[key]).items():
        widget = f"mechanisms.{key}.{name}"
        assert widget in keys(at)
        for example in param.examples:
            text = param.format(example)
            change(at, widget, param.choices[text] if param.kind == "choice" else text)
            assert errors(at) == [], (key, name, text)


@pytest.fixture
def throw_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Drop one more file beside the mechanisms."""
    key = "throw_away_page"
    source = THROW_AWAY.replace("FACTOR", "1.000001")
    (tmp_path / f"{key}.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(dpviz.mechanisms, "__path__", [*dpviz.mechanisms.__path__, str(tmp_path)])
    all_mechanisms.cache_clear()
    yield key
    sys.modules.pop(f"dpviz.mechanisms.{key}", None)
    monkeypatch.undo()
    all_mechanisms.cache_clear()


def test_a_new_file_appears_on_the_pages_without_another_edit(throw_away: str) -> None:
    at = start("mechanisms", **QUICK)
    assert errors(at) == []
    assert throw_away in shown(at)
    open_card(at, throw_away)
    change(at, f"mechanisms.{throw_away}.margin", "2")
    press(at, f"mechanisms.{throw_away}.add")
    assert errors(at) == []
    go(at, "explore")
    assert errors(at) == []
    variant = parse_variant(f"{throw_away}[margin=2]")
    assert variant.label in list(results(at)["mechanism"])
    press(at, "mechanisms.all")
    assert errors(at) == []
    assert "Throw-away" in list(results(at)["mechanism"])


def test_the_new_file_is_gone_afterwards() -> None:
    assert "throw_away_page" not in all_mechanisms()


def test_a_row_says_what_its_mechanism_aims_at() -> None:
    """With the recovery that it leads to on the table at hand, and for no row that aims at A."""
    at = open_card(open_card(start("mechanisms", **QUICK), "spherical"), "analyze_gauss")
    classes = all_mechanisms()
    told = {
        key: " ".join(
            box.value
            for box in at.main.caption
            if box.value.startswith(f"{classes[key].info.paper} · releases")
        )
        for key in ("spherical", "analyze_gauss")
    }
    assert "aims at the directions of rows" in told["spherical"]
    assert "releases a matrix" in told["analyze_gauss"]
    assert "aims at" not in told["analyze_gauss"]
