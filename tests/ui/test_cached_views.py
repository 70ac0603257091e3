"""A page shows the core's results: no cache mixes variants, tables or settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpviz import datasets
from dpviz.core.files import app_path
from dpviz.core.metrics import offered
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import prepare
from dpviz.report.tables.scrub import frame_epsilons
from dpviz.simulation import compare as running
from dpviz.simulation.compare import compare
from pages.ui import board
from tests.ui.driver import PATIENCE, change, errors, results, start

PREDICT, DRAW = board.predicted, board.steps
SUMMARISE = running.summarise
BASE = Settings(
    table="wine",
    mechanisms=("gaussian", "laplace", "ppca[sweeps=3]", "directional_gaussian"),
    trials=6,
    epsilon=3.0,  # At this epsilon, ppca runs a Markov chain, so sweeps matter.
)
PAID: dict[str, Any] = {
    "center": "private",
    "scale": "private",
    "row_bound": "private:0.9",
    "count": "private",
    "bounds": "private",
    "relation": "zero-out",
}
SHARES = ("range_share", "mean_share", "scale_share", "bound_share", "count_share")
# Change one setting at a time, with the same session cache; every change alters the numbers.
CHANGES: dict[str, dict[str, Any]] = {
    "post": {"post": "free"},
    "nothing": {},
    "epsilon": {"epsilon": 1.1},
    "delta": {"delta": 1e-9},
    "k": {"k": 3},
    "relation": {"relation": "zero-out"},
    "trials": {"trials": 7},
    "seed": {"seed": 1},
    "parameter": {"mechanisms": ("gaussian", "laplace", "ppca[sweeps=2]", "directional_gaussian")},
    "center": {"center": "none"},
    "scale": {"scale": "standardize"},
    "row bound": {"row_bound": "quantile:0.9"},
    "row bound, a number": {"row_bound": "100"},
    "domain": {"domain": "box"},
    "table": {"table": "iris"},
    "allocation": {"allocation": "binary:1:0.8"},
    "directions": {"directions": "private:0.3"},
    "supplier": {"directions": "private:0.3:wishart_exact"},
    "paid": PAID,
    **{share: PAID | {share: 0.15} for share in SHARES},
    "picture": {"picture": 0.4},
    "form of the picture": {"picture": 0.4, "picture_form": "ellipses"},
}
# These options are not tested here: no page sets them, or test_uploads.py tests them.
ELSEWHERE = {
    "label", "categories", "categorical", "missing", "decimal", "encoding", "delimiter", "header",
    "sheet", "codes", "read_as", "levels", "rows_a_person", "person", "leave_out", "name",
}  # fmt: skip


def shown(settings: Settings) -> pd.DataFrame:
    """Return the page's numbers, in a new session on the shared caches."""
    query = {params_of(Settings)[name].url: text for name, text in settings.texts().items()}
    at = AppTest.from_file(str(app_path()), default_timeout=PATIENCE)
    at.query_params.update({key: text for key, text in query.items() if key})
    at.session_state["results.open"] = True  # Without this line, the page would run twice.
    at.run()
    assert errors(at) == []
    numbers: pd.DataFrame = results(at)[offered(picture=settings.picture > 0)].astype(float)
    return numbers


def direct(settings: Settings) -> pd.DataFrame:
    """Return the same numbers from the core, without any cache."""
    comparison = compare(prepare(datasets.load(settings.table), settings), settings)
    keys = offered(picture=settings.picture > 0)
    rows = [
        {key: found.summaries[key].mean if key in found.summaries else np.nan for key in keys}
        for found in comparison.results
    ]
    return pd.DataFrame(rows, columns=keys)


def same(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    """Return whether two tables agree to rounding: chunks may be added in different orders."""
    if left.shape != right.shape:
        return False
    return bool(np.allclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True))


def test_no_option_is_forgotten() -> None:
    names = {name for change in CHANGES.values() for name in change}
    assert names | ELSEWHERE == set(params_of(Settings))


def test_each_setting_shows_its_own_numbers() -> None:
    pages = {what: shown(replace(BASE, **made)) for what, made in CHANGES.items()}
    for what, way in CHANGES.items():
        assert same(pages[what], direct(replace(BASE, **way))), what
    # Control: any two changes give different numbers, so the test would detect confused caches.
    for first, second in combinations(CHANGES, 2):
        assert not same(pages[first], pages[second]), (first, second)
    # Repeat all changes in reverse order, now that every cache is full.
    for what, way in reversed(CHANGES.items()):
        assert same(shown(replace(BASE, **way)), pages[what]), what


def test_a_move_of_epsilon_predicts_and_draws_nothing_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A move of the slider of epsilon computes only the new epsilon, not all epsilons again."""
    predictions: list[float] = []
    draws: list[float] = []

    def predict(ready: Any, settings: Settings, epsilons: Sequence[float]) -> Any:
        predictions.extend(epsilons)
        return PREDICT(ready, settings, epsilons)

    def draw(ready: Any, settings: Settings, epsilons: Sequence[float], **how: Any) -> Any:
        draws.extend(epsilons)
        return DRAW(ready, settings, epsilons, **how)

    monkeypatch.setattr(board, "predicted", predict)
    monkeypatch.setattr(board, "steps", draw)
    at = start(table="iris", m="gaussian,laplace", trials="5")
    at.session_state["board.wanted"] = True
    at.run()
    assert errors(at) == []
    path = frame_epsilons(None, 1.0)
    # Control: the first run predicts every epsilon of the slider, together with the page's own.
    assert sorted(predictions) == path
    assert sorted([*draws, 1.0]) == path
    change(at, "view.epsilon.box", "0.37")
    assert errors(at) == []
    assert predictions[len(path) :] == [0.37]
    assert len(draws) == len(path) - 1


def test_the_next_visitor_has_no_draw_summarised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    summaries: list[int] = []

    def count(values: Any) -> Any:
        summaries.append(len(values))
        return SUMMARISE(values)

    monkeypatch.setattr(running, "summarise", count)
    for visitor in (1, 2):
        summaries.clear()
        assert errors(start(table="wine", m="gaussian,laplace", trials="9")) == []
        # Control: only the first visitor causes measurements, one per mechanism.
        assert bool(summaries) == (visitor == 1)
