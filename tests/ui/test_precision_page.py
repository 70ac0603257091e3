"""The Precision page: favour, shape, edit, lock, upload, and never lose the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.core.allocation import parse_allocation
from dpviz.mechanisms import parse_variant
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.precision import EXAMPLES, precision_variants, shares_file
from dpviz.simulation import compare as running
from dpviz.simulation.compare import Result
from dpviz.simulation.simulate import Cell
from tests.links import markdown_of
from tests.ui.driver import (
    QUICK,
    as_seen,
    change,
    commands,
    errors,
    found,
    go,
    held,
    keys,
    nodes,
    notices,
    one_sentence,
    opening,
    press,
    start,
    upload,
)

PLANTED = {"table": "planted", "domain": "box", "bounds": "known", "epsilon": "0.1", "trials": "8"}
BOX = QUICK | {"domain": "box"}


# A column that only this read-only table has: AppTest knows no keys of those.
MARKS = {"gains": "overlap", "spend": "epsilon_directions"}


def frames(at: AppTest, name: str) -> list[pd.DataFrame]:
    """Return the tables of that name that are drawn: none or one."""
    return [node.value for node in at.dataframe if MARKS[name] in node.value.columns]


def frame(at: AppTest, name: str) -> pd.DataFrame:
    """Return a table: a read-only one by its name, or one to edit by its key, before any edit."""
    if name in MARKS:
        (table,) = frames(at, name)
        return table
    return next(node.value for node in at.data_editor if node.key == name)


def editor_key(at: AppTest, prefix: str) -> str:
    (key,) = [node.key for node in at.data_editor if node.key and node.key.startswith(prefix)]
    return str(key)


def edit(at: AppTest, prefix: str, rows: dict[int, dict[str, Any]]) -> AppTest:
    """Return the dashboard after a user edited cells of a table."""
    at.session_state[editor_key(at, prefix)] = {
        "edited_rows": rows,
        "added_rows": [],
        "deleted_rows": [],
    }
    return at.run()


def thetas(at: AppTest) -> list[float]:
    """Return the shares of the custom allocation in force."""
    kind, _, rest = held(at, "allocation").partition(":")
    assert kind == "custom"
    return [float(text) for text in rest.split(",")]


def verdict(at: AppTest) -> str:
    """Return the sentence on top."""
    return opening(at)


def captions(at: AppTest) -> str:
    return "\n".join(as_seen(box.value) for box in at.main.caption)


def send_shares(at: AppTest, text: str) -> AppTest:
    found(at, "shares.upload").set_value(("allocation.csv", text.encode(), "text/csv"))
    return at.run()


def table_of(d: int, n: int = 60) -> bytes:
    """Return a CSV file of d features whose scales differ."""
    rows = np.random.default_rng(0).standard_normal((n, d)) * np.linspace(2, 0.2, d)
    lines = [",".join(f"f{j + 1}" for j in range(d))]
    return "\n".join([*lines, *(",".join(f"{v:.4f}" for v in row) for row in rows)]).encode()


# Examples -------------------------------------------------------------------------------------


def recovered(at: AppTest) -> float:
    """Return what the directional Gaussian recovers with these shares."""
    gains = frame(at, "gains").set_index("mechanism")
    return float(gains.loc["directional_gaussian", "recovery"])


def back(at: AppTest) -> None:
    """Ask for what was set before the example."""
    found(at, "examples.now").set_value("own")
    at.run()


def test_the_page_opens_on_an_example_where_directions_pay_and_gives_the_settings_back() -> None:
    at = start("precision")
    assert errors(at) == []
    assert (held(at, "table"), held(at, "domain"), held(at, "epsilon")) == ("planted", "box", 0.1)
    assert "it pays here" in verdict(at)
    assert recovered(at) > 0.9
    # Link and command say all of it, and the same link shows the same.
    assert at.query_params["allocation"] == "binary:1,2:0.8"
    words = " ".join(commands(at))
    for part in ("planted", "--domain box", "--bounds known", "--allocation binary:1,2:0.8"):
        assert part in words
    again = start("precision", **dict(at.query_params))
    assert verdict(again) == verdict(at)
    # Nobody chose it: the other pages keep what they showed.
    go(at, "explore")
    assert (held(at, "table"), held(at, "domain")) == ("digits", "ball")
    go(at, "precision")
    assert held(at, "table") == "planted"


def test_each_example_shows_what_its_belief_is_worth() -> None:
    at = start("precision")
    found_by: dict[str, float] = {}
    for key, example in EXAMPLES.items():
        found(at, "examples.now").set_value(key)
        at.run()
        assert errors(at) == []
        assert held(at, "allocation") == example.allocation
        found_by[key] = recovered(at)
    # Means of 20 draws; docs/precision.md has 200: .995, .60, -.05 and .99.
    assert found_by["right"] > 0.9
    assert 0.4 < found_by["half"] < 0.8
    assert found_by["wrong"] < 0.1
    assert found_by["ball"] > 0.9
    assert "no shape of noise beats the isotropic one" in captions(at)
    # An example that was asked for stays, and the way back is one click.
    go(at, "explore")
    assert held(at, "table") == "planted"
    go(at, "precision")
    back(at)
    assert errors(at) == []
    assert held(at, "table") == "digits"
    assert "shared equally" in verdict(at)


def test_settings_of_ones_own_are_not_replaced() -> None:
    at = start("precision", **BOX)
    assert held(at, "table") == "iris"
    assert found(at, "examples.now").value == "own"
    found(at, "examples.now").set_value("half")
    at.run()
    assert held(at, "table") == "planted"
    back(at)
    assert (held(at, "table"), held(at, "domain")) == ("iris", "box")


def test_equal_shares_draw_no_flat_lines() -> None:
    at = start("precision", **BOX)
    assert "All directions have the same noise" in captions(at)
    assert not any("-stds" in n.proto.id for n in nodes(at) if n.type == "plotly_chart")
    change(at, "view.allocation.kind", "favour some")
    assert any("-stds" in n.proto.id for n in nodes(at) if n.type == "plotly_chart")


# Favouring directions -------------------------------------------------------------------------


def test_the_right_features_pay_on_the_box() -> None:
    at = start("precision", **PLANTED)
    assert "shared equally" in verdict(at)
    change(at, "view.allocation.kind", "favour some")
    assert held(at, "allocation") == "binary:1:0.8"
    found(at, "view.allocation.chosen").set_value([1, 2])
    at.run()
    assert errors(at) == []
    assert held(at, "allocation") == "binary:1,2:0.8"
    assert "it pays here" in verdict(at)
    gains = frame(at, "gains").set_index("name")
    for key in ("directional_gaussian", "directional_wishart_difference"):
        row = gains.loc[parse_variant(key).label]
        assert row["recovery"] > 0.9  # the planted example: measured .995 and .996
        assert row["uniform"] < 0.3


def test_tau_moves_the_noise() -> None:
    at = start("precision", **PLANTED, allocation="binary:1,2:0.8")
    assert "divided by 8" in captions(at)
    change(at, "view.allocation.tau", 50)
    assert held(at, "allocation") == "binary:1,2:0.5"
    assert "divided by 5" in captions(at)
    change(at, "view.allocation.tau", 5)
    assert "theirs multiplied by 0.947" in captions(at)  # 18/(20 * 0.95)


def test_moving_tau_draws_only_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at = start("precision", **BOX, seed="7", allocation="binary:1,2:0.8")
    drawn: list[Cell] = []
    run_cell = running.run_cell

    def watched(cell: Cell, prepared: Measured) -> Result:
        drawn.append(cell)
        return run_cell(cell, prepared)

    monkeypatch.setattr(running, "run_cell", watched)
    change(at, "view.allocation.tau", 57)
    follows = {parse_variant(text).follows_allocation for text in precision_variants()}
    assert follows == {True, False}
    assert drawn
    assert all(cell.mechanism.follows_allocation for cell in drawn)
    assert {cell.problem.allocation.tau for cell in drawn} == {0.57}
    change(at, "view.seed", 8)
    assert {cell.mechanism.follows_allocation for cell in drawn} == {True, False}


def test_leaving_nobody_favoured_is_refused() -> None:
    at = start("precision", **BOX, allocation="binary:2:0.8")
    found(at, "view.allocation.chosen").set_value([])
    at.run()
    (said,) = errors(at)
    assert "at least one" in said
    assert held(at, "allocation") == "binary:2:0.8"


def test_favouring_all_features_is_one_sentence() -> None:
    at = start("precision", **BOX, allocation="binary:2:0.8")
    found(at, "view.allocation.chosen").set_value([1, 2, 3, 4])
    at.run()
    assert errors(at) == []
    (said,) = notices(at)
    assert "fewer than all 4 directions" in said


@pytest.mark.parametrize("kind", ["the features", "private components"])
def test_every_strategy_runs_with_features_and_private_directions(kind: str) -> None:
    at = start("precision", **BOX)
    change(at, "view.directions.kind", kind)
    for strategy in ("favour some", "custom table", "equal shares"):
        change(at, "view.allocation.kind", strategy)
        assert errors(at) == [], strategy
        assert notices(at) == [], strategy
        assert len(frame(at, "gains")) == len(precision_variants()), strategy


def test_shares_by_variance_need_directions_that_have_some() -> None:
    at = start("precision", **BOX)
    change(at, "view.allocation.kind", "by variance (max-PNR)")
    assert errors(at) == []
    assert "directions must be private:SHARE or true" in captions(at)
    change(at, "view.directions.kind", "private components")
    assert len(frame(at, "gains")) == len(precision_variants())


def test_private_directions_show_a_spend_that_adds_up() -> None:
    at = start("precision", **BOX, delta="1e-5")
    assert frames(at, "spend") == []
    change(at, "view.directions.kind", "private components")
    for percent in (20, 35):
        change(at, "view.directions.share", percent)
        table = frame(at, "spend")
        assert len(table) >= 5
        assert np.allclose(table["epsilon_directions"], percent / 100)
        assert np.allclose(table["epsilon_directions"] + table["epsilon_release"], 1)
        parts = [table[name].astype(float) for name in ("delta_directions", "delta_release")]
        assert np.allclose(sum(parts), table["delta"].astype(float), atol=1e-9)
        assert set(table["delta"]) == {"0", "1e-5"}  # the pure one buys without delta
        # Together they spend no more than the budget.
        assert (table["spent"] <= 1 + 1e-9).all()
        assert table["spent"].max() > 0.999


def test_any_mechanism_may_supply_the_directions() -> None:
    at = start("precision", **BOX, delta="1e-5", allocation="binary:1:0.8")
    assert "view.directions.supplier" not in keys(at)
    change(at, "view.directions.kind", "private components")
    everybody = len(frame(at, "gains"))
    change(at, "view.directions.supplier", "PPCA")
    assert errors(at) == []
    assert held(at, "directions") == "private:0.2:ppca"
    assert at.query_params["directions"] == "private:0.2:ppca"
    assert set(frame(at, "spend")["supplier"]) == {"PPCA"}
    assert "the first 2 directions" in captions(at)
    assert "approximate" in " ".join(frame(at, "gains")["status"])
    assert any("private:0.2:ppca" in text for text in commands(at))
    # The share moves and the supplier stays.
    change(at, "view.directions.share", 30)
    assert held(at, "directions") == "private:0.3:ppca"
    # One that needs delta cannot supply the pure mechanism, which says so; the others go on.
    change(at, "view.directions.supplier", "Gaussian, exact")
    assert len(frame(at, "gains")) == everybody - 1
    assert "a pure mechanism buys from pure ones only" in captions(at)
    # Nobody buys from a mechanism whose claim is false, and the page stands.
    change(at, "view.directions.supplier", "Wishart")
    assert errors(at) == []
    assert "its claim does not hold here" in captions(at)
    assert frames(at, "spend") == []
    change(at, "view.directions.supplier", "Gaussian or Wishart noise (default)")
    assert held(at, "directions") == "private:0.3"
    assert len(frame(at, "gains")) == everybody


def test_a_link_may_name_a_variant_that_supplies_or_one_that_cannot() -> None:
    at = start("precision", **BOX, directions="private:0.2:ppca[sweeps=5]")
    assert errors(at) == []
    assert notices(at) == []
    assert held(at, "directions") == "private:0.2:ppca[sweeps=5]"
    change(at, "view.allocation.kind", "by variance (max-PNR)")
    assert errors(at) == []
    assert "releases a matrix, or variances beside its subspace" in captions(at)
    bad = start("precision", **BOX, directions="private:0.2:non_private")
    assert errors(bad) == []
    (said,) = notices(bad)
    assert "it makes no claim" in said
    assert held(bad, "directions") == "features"


def test_true_directions_are_marked_as_not_private() -> None:
    at = start("precision", **BOX)
    change(at, "view.directions.kind", "true components (not private)")
    assert errors(at) == []
    (said,) = [as_seen(box.value) for box in at.warning]
    assert said.startswith("Not private.")
    gains = frame(at, "gains").set_index("name")
    label = parse_variant("directional_gaussian").label
    assert gains.loc[label, "status"] == "baseline"
    assert pd.isna(gains.loc[label, "spent"])


# Custom shares --------------------------------------------------------------------------------


def test_a_bad_sum_is_one_sentence_and_rebalancing_mends_it() -> None:
    at = start("precision", **BOX)
    edit(at, "shares.", {0: {"theta": 0.7}})
    assert "sum to 1.45" in captions(at)
    press(at, "shares.use")
    (said,) = errors(at)
    assert one_sentence(said)
    assert said == "allocation must be shares that sum to 1; got '4 shares that sum to 1.45'."
    assert held(at, "allocation") == "uniform"
    press(at, "shares.balance")
    assert errors(at) == []
    shares = thetas(at)
    assert sum(shares) == pytest.approx(1, abs=1e-9)
    assert shares[0] == pytest.approx(0.7 / 1.45, rel=1e-4)
    assert shares[1] == shares[2] == shares[3]


def test_locked_shares_stay() -> None:
    at = start("precision", **BOX)
    edit(at, "shares.", {0: {"theta": 0.7, "locked": True}})
    press(at, "shares.balance")
    assert errors(at) == []
    assert thetas(at) == pytest.approx([0.7, 0.1, 0.1, 0.1])
    # The lock is still there for the next step.
    assert frame(at, editor_key(at, "shares."))["locked"].tolist() == [True, False, False, False]
    edit(at, "shares.", {1: {"theta": 0.2, "locked": True}})
    press(at, "shares.balance")
    assert thetas(at) == pytest.approx([0.7, 0.2, 0.05, 0.05])
    edit(at, "shares.", {1: {"theta": 0.9, "locked": True}})
    press(at, "shares.balance")
    (said,) = errors(at)
    assert one_sentence(said)
    assert "locked shares that leave at least" in said
    assert thetas(at) == pytest.approx([0.7, 0.2, 0.05, 0.05])


def test_a_blank_share_is_one_sentence() -> None:
    at = start("precision", **BOX)
    edit(at, "shares.", {0: {"theta": None}})
    for button in ("shares.use", "shares.balance"):
        press(at, button)
        (said,) = errors(at)
        assert one_sentence(said)
        assert "a blank" in said


def test_what_was_refused_is_forgotten_with_the_next_allocation() -> None:
    at = start("precision", **BOX)
    edit(at, "shares.", {0: {"theta": 0.7}})
    press(at, "shares.use")
    assert len(errors(at)) == 1
    change(at, "view.allocation.kind", "favour some")
    assert errors(at) == []


@pytest.mark.parametrize("directions", ["features", "private:0.2"])
def test_a_share_file_comes_back_as_it_went(directions: str) -> None:
    text = "custom:0.4,0.3,0.2,0.1"
    first = start("precision", **BOX, allocation=text, directions=directions)
    names = frame(first, editor_key(first, "shares."))["direction"].tolist()
    written = shares_file(parse_allocation(text, directions), names, [0.4, 0.3, 0.2, 0.1])
    at = send_shares(start("precision", **BOX, directions=directions), written)
    assert errors(at) == []
    assert held(at, "allocation") == text


def test_a_bad_share_file_is_one_sentence() -> None:
    at = start("precision", **BOX)
    for text, words in (
        ("feature,theta\n1,0.5\n2,0.5\n", "is missing"),
        ("direction,theta\n1,0.5\n2,0.2\n3,0.1\n4,0.1\n", "sum to 1"),
        ("a,b\n1,2\n3,4\n", "must have the columns"),
        ("direction,theta\n1,.25\n2,.25\n3,.25\n9,.25\n", "are each"),
    ):
        send_shares(at, text)
        (said,) = errors(at)
        assert words in said
        assert "\n" not in said
        assert held(at, "allocation") == "uniform"


# Ball and box, and bounds ---------------------------------------------------------------------


def test_ball_and_box_say_different_things() -> None:
    at = start("precision", **QUICK, allocation="binary:1:0.8")
    assert "no shape of noise beats the isotropic one" in captions(at)
    # one word for one thing: --allocation is the option's name, and the page says shares
    assert [text for text in markdown_of(at) if "allocation" in text.lower()] == []
    assert "bounds.use" not in keys(at)
    change(at, "view.domain", "box (bounded features)")
    assert errors(at) == []
    assert "On the box precision is a budget" in captions(at)
    assert "bounds.use" in keys(at)
    change(at, "view.domain", "ball (bounded row norm)")
    assert "no shape of noise beats the isotropic one" in captions(at)


def test_bounds_known_taken_and_edited() -> None:
    at = start("precision", **PLANTED)
    table = frame(at, editor_key(at, "bounds.editor"))
    assert (table["low"] == -1).all()
    assert (table["high"] == 1).all()
    change(at, "view.bounds", "smallest and largest value (taken from the data)")
    table = frame(at, editor_key(at, "bounds.editor"))
    assert table["high"].max() < 0.5
    change(at, "view.bounds", "known for this table")
    assert found(at, "bounds.use").proto.disabled
    assert found(at, "bounds.use").proto.help == "To edit them, choose 'edited below' above."
    change(at, "view.bounds", "edited below")
    assert errors(at) == []
    assert not found(at, "bounds.use").proto.help
    noise = facts(at)
    edit(at, "bounds.editor", {0: {"low": -2.0, "high": 2.0}})
    press(at, "bounds.use")
    assert errors(at) == []
    table = frame(at, editor_key(at, "bounds.editor"))
    assert (table.loc[0, "low"], table.loc[0, "high"]) == (-2, 2)
    # A wider bound maps the feature to a smaller part of [-1, 1]: less of the variance is kept.
    assert facts(at) != noise
    # Names and numbers of the table stay out of the link.
    assert "bounds" not in at.query_params


def facts(at: AppTest) -> list[float]:
    return list(frame(at, "gains")["recovery"])


def test_bounds_out_of_order_are_one_sentence_beside_the_table() -> None:
    at = start("precision", **BOX)
    change(at, "view.bounds", "edited below")
    before = facts(at)
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"low": 9.0, "high": 2.0}, "low at or above high"),
        ({"low": 9.0, "high": 9.0}, "low at or above high"),
        ({"low": None}, "a blank"),
    )
    for cells, words in wrong:
        edit(at, "bounds.editor", {1: cells})
        press(at, "bounds.use")
        (said,) = errors(at)
        assert one_sentence(said)
        assert words in said
        assert "9" not in said  # an edited table starts from the data's own numbers
        assert facts(at) == before
    edit(at, "bounds.editor", {1: {"low": 0.0, "high": 9.0}})
    press(at, "bounds.use")
    assert errors(at) == []
    assert facts(at) != before


def test_bounds_that_do_not_suit_the_next_table_give_way_and_say_so() -> None:
    at = start("precision", **PLANTED)
    change(at, "view.table", "Wine")
    assert errors(at) == []
    assert any("no bounds are known" in said for said in notices(at))
    assert held(at, "bounds") == "max"
    change(at, "view.bounds", "edited below")
    change(at, "view.table", "Iris")
    assert errors(at) == []
    assert any("those of other features" in said for said in notices(at))
    assert held(at, "bounds") == "max"


def test_edited_bounds_of_a_table_with_constant_columns_stay() -> None:
    at = start("precision", table="digits", domain="box", trials="5")
    change(at, "view.bounds", "edited below")
    assert held(at, "bounds") == "bounds.csv"
    assert errors(at) == []
    at.run()
    assert held(at, "bounds") == "bounds.csv"
    assert notices(at) == []


# Tables, links, sizes -------------------------------------------------------------------------


def test_an_allocation_that_does_not_suit_the_next_table_gives_way_and_says_so() -> None:
    at = start("precision", table="wine", trials="5", domain="box", allocation="binary:9:0.8")
    change(at, "view.table", "Iris")
    assert errors(at) == []
    (said,) = notices(at)
    assert "Using equal shares instead" in said
    assert held(at, "allocation") == "uniform"


def test_the_ellipse_survives_a_smaller_table() -> None:
    at = start("precision", table="wine", trials="5", domain="box", allocation="binary:1:0.8")
    change(at, "precision.pair", True)
    found(at, "precision.first").set_value(12)
    at.run()
    change(at, "view.table", "Iris")
    assert errors(at) == []
    assert "precision.first" in keys(at)


def test_a_link_carries_a_small_allocation_and_restores_it() -> None:
    at = start("precision", **BOX)
    edit(at, "shares.", {0: {"theta": 0.7, "locked": True}})
    press(at, "shares.balance")
    change(at, "view.directions.kind", "private components")
    link = dict(at.query_params)
    assert link["allocation"].startswith("custom:0.7,")
    assert link["directions"] == "private:0.2"
    again = start("precision", **link)
    assert notices(again) == []
    assert facts(again) == facts(at)
    assert dict(again.query_params) == link


def test_a_link_names_no_feature_and_no_long_table() -> None:
    at = upload(start(**QUICK), "people.csv", table_of(24))
    go(at, "precision")
    change(at, "view.domain", "box (bounded features)")
    change(at, "view.allocation.kind", "favour some")
    assert at.query_params["allocation"] == "binary:1:0.8"
    change(at, "view.allocation.kind", "custom table")
    assert held(at, "allocation").startswith("custom:")
    assert "allocation" not in at.query_params
    assert not any(
        "f1" in str(value) or "people" in str(value) for value in at.query_params.values()
    )


@pytest.mark.parametrize("link", ["binary:petal width:0.8", "shares.csv", "custom:0.5,0.6"])
def test_a_bad_allocation_in_a_link_is_replaced_and_said(link: str) -> None:
    at = start("precision", **BOX, allocation=link)
    assert errors(at) == []
    assert len(notices(at)) == 1
    assert held(at, "allocation") == "uniform"


@pytest.mark.parametrize("d", [4, 20, 61, 120])
def test_small_and_large_tables_stay_usable(d: int) -> None:
    at = upload(start(**QUICK), f"table{d}.csv", table_of(d))
    go(at, "precision")
    change(at, "view.domain", "box (bounded features)")
    change(at, "view.allocation.kind", "favour some")
    assert errors(at) == []
    change(at, "view.allocation.tau", 60)
    assert errors(at) == []
    assert len(frame(at, editor_key(at, "shares."))) == d
    assert len(frame(at, "gains")) == len(precision_variants())


def test_no_delta_leaves_the_pure_mechanisms() -> None:
    at = start("precision", **BOX, delta="0", allocation="binary:1:0.8")
    assert errors(at) == []
    assert len(frame(at, "gains")) >= 2


def test_charts_have_names() -> None:
    at = start("precision", **BOX, allocation="binary:1:0.8")
    first = {"payoff", "stds", "accounts", "prices"}
    asked = {"ellipses", "spectrum", "distance", "projection"}
    kinds = ("plotly_chart", "echarts_chart", "bidi_component")

    def drawn() -> set[str]:
        return {node.key for node in nodes(at) if node.type in kinds}

    assert first <= drawn()
    assert not asked & drawn()
    change(at, "precision.pair", True)
    change(at, "precision.more", True)
    assert first | asked <= drawn()
