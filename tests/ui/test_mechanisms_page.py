"""The Mechanisms page: choose properties, open a row, change a parameter, compare the variant."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

import dpviz
from dpviz.core.number_text import percent
from dpviz.core.params import params_of
from dpviz.mechanisms import all_mechanisms, featured, parse_variant
from dpviz.report.sentences.cards import GROUPS
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

pytestmark = pytest.mark.long

PARAMETERS = {key: cls for key, cls in all_mechanisms().items() if params_of(cls)}


def shown(at: AppTest) -> list[str]:
    """Return the keys of the mechanisms' rows, from top to bottom."""
    keys = {cls.info.label: key for key, cls in all_mechanisms().items()}
    heads = [box.label for box in at.main.expander if "**" in box.label]
    return [keys[text.split("**")[1]] for text in heads]


def said(at: AppTest) -> str:
    return " ".join(box.value for box in at.main.markdown)


def open_card(at: AppTest, key: str) -> AppTest:
    for name in GROUPS:  # A closed group hides its rows, so open all groups.
        at.session_state[f"mechanisms.all.{name}"] = True
    at.session_state[f"mechanisms.{key}.open"] = True
    return at.run()


def test_rows_stand_by_what_they_keep_among_those_that_hold() -> None:
    """The page shows the comparison's numbers, and the answer is the first row."""
    at = start("mechanisms", **QUICK)
    assert errors(at) == []
    change(at, "mechanisms.asked", ["Promise holds"])
    labels = {cls.info.label: key for key, cls in all_mechanisms().items()}
    rows = [box.label for box in at.main.expander if "**" in box.label]
    order = {labels[text.split("**")[1]]: text.split("*")[-2] for text in rows}
    comparison = dpviz.compare(QUICK["table"], trials=2, mechanisms=list(order))
    means = {r.mechanism.key: r.summaries["recovery"].mean for r in comparison.comparison.results}
    assert order == {key: percent(means[key]) for key in order}
    assert (shares := [means[key] for key in order]) == sorted(shares, reverse=True)
    assert f" promises, {len(rows)} hold, " in said(at)
    assert len(rows) > 20
    best = all_mechanisms()[next(iter(order))].info.label
    assert f"**{best}** keeps the most structure" in said(at)
    # The page sends the content of a row only after a user opens the row.
    assert not at.main.latex


def test_questions_narrow_combine_and_unfold() -> None:
    at = start("mechanisms", **QUICK)
    assert len(shown(at)) < 15  # Each group shows only its first rows.
    change(at, "mechanisms.asked", ["No delta"])
    pure = {key for key, cls in all_mechanisms().items() if cls.info.guarantee == "pure"}
    assert set(shown(at)) == pure
    change(at, "mechanisms.asked", ["No delta", "Releases directions"])
    both = {key for key in pure if all_mechanisms()[key].info.release == "subspace"}
    assert set(shown(at)) == both
    change(at, "mechanisms.asked", ["Releases a matrix", "Releases a table"])
    assert shown(at) == []
    assert "No mechanism meets all selected needs" in said(at)
    assert errors(at) == []


def test_the_next_step_compares_the_best_on_explore() -> None:
    at = start("mechanisms", **QUICK)
    best = shown(at)[0]
    press(at, "page.go")
    assert errors(at) == []
    assert best in held(at, "mechanisms")


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
            continue  # A blank field may mean the default value.
        (message,) = errors(at)
        assert one_sentence(message)
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
