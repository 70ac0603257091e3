"""The Precision page: favour, shape, edit, lock and upload, always with a way back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz.core.allocation import parse_allocation
from dpviz.core.number_text import percent
from dpviz.mechanisms import parse_variant
from dpviz.preparation.prepared import Measured
from dpviz.simulation import compare as running
from dpviz.simulation.compare import Metric, Result
from dpviz.simulation.simulate import Cell
from dpviz.studies.precision import precision_variants, shares_file
from tests.ui.driver import (
    QUICK,
    as_seen,
    change,
    errors,
    found,
    held,
    notices,
    one_sentence,
    press,
    start,
)

pytestmark = pytest.mark.long

BOX = QUICK | {"domain": "box"}


# AppTest gives read-only tables no keys, so identify a table by a column that only it has.
MARKS = {"gains": "overlap", "spend": "epsilon_directions"}


def frames(at: AppTest, name: str) -> list[pd.DataFrame]:
    """Return the displayed tables of this name: none or one."""
    return [node.value for node in at.dataframe if MARKS[name] in node.value.columns]


def frame(at: AppTest, name: str) -> pd.DataFrame:
    """Return a read-only table by name, or an editable table, before edits, by its key."""
    if name in MARKS:
        (table,) = frames(at, name)
        return table
    return next(node.value for node in at.data_editor if node.key == name)


def editor_key(at: AppTest, prefix: str) -> str:
    (key,) = [node.key for node in at.data_editor if node.key and node.key.startswith(prefix)]
    return str(key)


def edit(at: AppTest, prefix: str, rows: dict[int, dict[str, Any]]) -> AppTest:
    """Return the dashboard after a user edited cells of a table."""
    changes = {"edited_rows": rows, "added_rows": [], "deleted_rows": []}
    at.session_state[editor_key(at, prefix)] = changes
    return at.run()


def thetas(at: AppTest) -> list[float]:
    """Return the shares of the active custom allocation."""
    kind, _, rest = held(at, "allocation").partition(":")
    assert kind == "custom"
    return [float(text) for text in rest.split(",")]


def captions(at: AppTest) -> str:
    return "\n".join(as_seen(box.value) for box in at.main.caption)


def send_shares(at: AppTest, text: str) -> AppTest:
    found(at, "shares.upload").set_value(("allocation.csv", text.encode(), "text/csv"))
    return at.run()


# Examples -------------------------------------------------------------------------------------


def back(at: AppTest) -> None:
    """Return to the settings from before the example."""
    found(at, "examples.now").set_value("own")
    at.run()


def test_settings_of_ones_own_are_not_replaced() -> None:
    at = start("precision", **BOX)
    assert held(at, "table") == "iris"
    assert found(at, "examples.now").value == "own"
    press(at, "page.next")
    assert (held(at, "table"), found(at, "examples.now").value) == ("planted", "right")
    said = " ".join(box.value for box in at.markdown)
    best = frame(at, "gains").sort_values("recovery").iloc[-1]  # One mechanism with both shares.
    assert f"**Yes.** With these shares, {best['name']} keeps **{percent(best.recovery)}**" in said
    assert f"; with equal shares it keeps **{percent(best.uniform)}**." in said
    back(at)
    assert (held(at, "table"), held(at, "domain")) == ("iris", "box")


# Favouring directions -------------------------------------------------------------------------


def test_moving_tau_draws_only_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at = start("precision", **BOX, seed="7", allocation="binary:1,2:0.8")
    cells: list[Cell] = []
    run_cell = running.run_cell

    def watched(cell: Cell, prepared: Measured, metrics: Iterable[str | Metric]) -> Result:
        cells.append(cell)
        return run_cell(cell, prepared, metrics)

    monkeypatch.setattr(running, "run_cell", watched)
    change(at, "view.allocation.tau", 57)
    follows = {parse_variant(text).follows_allocation for text in precision_variants()}
    assert follows == {True, False}
    assert cells
    assert all(cell.mechanism.follows_allocation for cell in cells)
    assert {cell.problem.allocation.tau for cell in cells} == {0.57}
    change(at, "view.seed", 8)
    assert {cell.mechanism.follows_allocation for cell in cells} == {True, False}


@pytest.mark.parametrize("kind", ["the features", "private components"])
def test_every_strategy_runs_with_features_and_private_directions(kind: str) -> None:
    at = start("precision", **BOX)
    change(at, "view.directions.kind", kind)
    for strategy in ("more for some directions", "custom table", "equal shares"):
        change(at, "view.allocation.kind", strategy)
        assert errors(at) == [], strategy
        assert notices(at) == [], strategy
        assert len(frame(at, "gains")) == len(precision_variants()), strategy


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
    (message,) = notices(bad)
    assert "it makes no claim" in message
    assert held(bad, "directions") == "features"


# Custom shares --------------------------------------------------------------------------------


def test_a_bad_sum_is_one_sentence_and_rebalancing_mends_it() -> None:
    at = start("precision", **BOX)
    edit(at, "shares.", {0: {"theta": 0.7}})
    assert "sum to 1.45" in captions(at)
    press(at, "shares.use")
    (message,) = errors(at)
    assert one_sentence(message)
    assert message == "allocation must be shares that sum to 1; got '4 shares that sum to 1.45'."
    assert held(at, "allocation") == "uniform"
    press(at, "shares.balance")
    assert errors(at) == []
    shares = thetas(at)
    assert sum(shares) == pytest.approx(1, abs=1e-9)
    assert shares[0] == pytest.approx(0.7 / 1.45, rel=1e-4)
    assert shares[1] == shares[2] == shares[3]


@pytest.mark.parametrize("directions", ["features", "private:0.2"])
def test_a_share_file_comes_back_as_it_went(directions: str) -> None:
    text = "custom:0.4,0.3,0.2,0.1"
    first = start("precision", **BOX, allocation=text, directions=directions)
    names = frame(first, editor_key(first, "shares."))["direction"].tolist()
    content = shares_file(parse_allocation(text, directions), names, [0.4, 0.3, 0.2, 0.1])
    at = send_shares(start("precision", **BOX, directions=directions), content)
    assert errors(at) == []
    assert held(at, "allocation") == text


# Ball and box, and bounds ---------------------------------------------------------------------


def facts(at: AppTest) -> list[float]:
    return list(frame(at, "gains")["recovery"])


# Tables, links, sizes -------------------------------------------------------------------------


def test_an_allocation_that_does_not_suit_the_next_table_gives_way_and_says_so() -> None:
    at = start("precision", table="wine", trials="5", domain="box", allocation="binary:9:0.8")
    change(at, "view.table", "Iris")
    assert errors(at) == []
    (message,) = notices(at)
    assert "Showing equal shares" in message
    assert held(at, "allocation") == "uniform"


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
