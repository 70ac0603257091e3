"""How long a comparison will take is said from its first draws, which are not drawn again."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.cli.terminal import tell_ahead
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import Table, load
from dpviz.preparation.bounding import prepare
from dpviz.simulation.compare import compare
from dpviz.simulation.sweep import sweep


def test_the_results_are_those_without_a_forecast() -> None:
    settings = Settings(table="digits", trials=300, mechanisms=("gaussian", "ppca"))
    prepared = prepare(load("digits"), settings)
    told: list[float] = []
    ahead = compare(prepared, settings, on_estimate=told.append)
    plain = compare(prepared, settings)
    assert len(told) == 1
    assert told[0] > 0
    for one, two in zip(ahead.results, plain.results, strict=True):
        assert one.metrics.keys() == two.metrics.keys()
        for name, values in one.metrics.items():
            assert values.tobytes() == two.metrics[name].tobytes()
        assert one.components.tobytes() == two.components.tobytes()


def test_large_tables_are_told_from_one_draw() -> None:
    rows = generator(0, "foretell").standard_normal((400, 160))
    settings = Settings(table="wide", trials=45, mechanisms=("gaussian",))
    prepared = prepare(Table("wide", rows, tuple(f"x{i}" for i in range(160))), settings)
    told: list[float] = []
    found = compare(prepared, settings, on_estimate=told.append)
    assert len(told) == 1
    assert len(found.results[0].metrics["captured_share"]) == 45
    assert np.isfinite(found.results[0].angles).all()


def test_short_runs_tell_nothing() -> None:
    settings = Settings(table="iris", trials=50, mechanisms=("gaussian",))
    told: list[float] = []
    compare(prepare(load("iris"), settings), settings, on_estimate=told.append)
    assert told == []


def test_only_long_runs_are_announced(capsys: pytest.CaptureFixture[str]) -> None:
    for seconds in (0.5, 10.0, 31.0, 400.0):
        tell_ahead(seconds)
    assert capsys.readouterr().err.splitlines() == [
        "this will take about 31 s",
        "this will take about 7 min",
    ]


def test_a_sweep_is_told_before_it_starts_and_has_the_same_numbers() -> None:
    settings = Settings(table="digits", trials=70, mechanisms=("gaussian", "wishart"))
    prepared = prepare(load("digits"), settings)
    over = {"epsilon": [0.5, 1.0, 2.0, 4.0]}
    told: list[float] = []
    order: list[str] = []

    def tell(seconds: float) -> None:
        told.append(seconds)
        order.append("told")

    found = sweep(
        prepared,
        over,
        settings,
        on_estimate=tell,
        progress=lambda progress: order.append(str(progress.done)),
    )
    plain = sweep(prepared, over, settings)
    assert order[:2] == ["told", "0"]
    assert len(told) == 1
    assert told[0] > 0
    pd.testing.assert_frame_equal(found.table, plain.table)
    few: list[float] = []
    sweep("iris", over, replace(settings, table="iris", trials=5), on_estimate=few.append)
    assert few == []


def test_a_search_tells_how_long_it_takes_by_the_draws_that_its_goal_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=count(step=32).__next__)  # 32 draws take 32 s
    monkeypatch.setattr("dpviz.simulation.least.time", clock)
    told: list[float] = []

    def stop(seconds: float) -> None:
        told.append(seconds)
        raise KeyboardInterrupt

    for goal in (0.9, 0.9999):
        with pytest.raises(KeyboardInterrupt):
            dpviz.least("iris", recovery=goal, k=1, mechanisms="gaussian", on_estimate=stop)
    assert told[0] == 16 * 256  # draws at each value tried, if no more are needed
    assert told[1] > 100 * told[0]
    found = dpviz.least("iris", recovery=0.9, k=1, mechanisms="gaussian", on_estimate=told.append)
    plain = dpviz.least("iris", recovery=0.9, k=1, mechanisms="gaussian")
    assert len(told) == 3
    assert found.to_json() == plain.to_json()
