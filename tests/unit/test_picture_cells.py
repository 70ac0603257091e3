"""Pictures on the one way of data: cells, results, tables, sweeps and the least epsilon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.datasets.table import Table
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.simulation.cells import cell_at, picture_of
from dpviz.simulation.compare import Comparison, compare
from dpviz.simulation.simulate import Cell
from dpviz.simulation.store import Keys

SETTINGS = Settings(
    table="breast_cancer", epsilon=2.0, picture=0.65, trials=4, scale="standardize",
    mechanisms=("spherical", "wishart", "non_private"),
)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(prepare(load("breast_cancer"), SETTINGS), SETTINGS)


def test_a_picture_and_its_directions_share_one_budget(found: Comparison) -> None:
    spherical = found.results[0]
    assert spherical.spent is not None
    assert spherical.spent.epsilon == pytest.approx(2.0, rel=1e-6)
    assert "picture together" in spherical.status.evidence
    assert len(spherical.pictures) == 4
    whole = compare(found.prepared, replace(SETTINGS, picture=0.0)).results[0]
    assert whole.pictures == ()
    assert whole.metrics["recovery"].mean() > spherical.metrics["recovery"].mean()


def test_fidelity_is_between_a_point_and_the_truth(found: Comparison) -> None:
    metrics = found.results[0].metrics
    assert ((metrics["fidelity"] > 0.5) & (metrics["fidelity"] < 1)).all()
    assert ((metrics["class_picture"] > 0.5) & (metrics["class_picture"] <= 1)).all()
    (spherical, *_) = found.to_json()["results"]
    assert {"fidelity", "class_picture"} <= set(spherical["metrics"])
    assert set(found.table()["metric"]) >= {"fidelity", "class_picture"}


def test_a_broken_claim_and_a_baseline_publish_nothing(found: Comparison) -> None:
    for result in found.results[1:]:
        assert result.pictures == ()
        assert "fidelity" not in result.metrics


def test_labels_are_published_where_their_categories_are_public() -> None:
    table = load("breast_cancer")
    own = Table("mine", table.rows, table.columns, table.labels, table.label_name, public=False)
    for each, kinds in ((table, 2), (own, 1)):
        ready = prepare(each, SETTINGS)
        options = picture_of(ready, SETTINGS)
        assert options is not None
        assert options.kinds == kinds
        cell = cell_at(ready, SETTINGS, parse_variant("spherical"), range(1))
        assert isinstance(cell, Cell)
        assert Keys(ready).key(cell, ()) != Keys(ready).key(replace(cell, picture=None), ())


def test_a_sweep_and_a_search_follow_the_picture() -> None:
    swept = dpviz.sweep(
        "iris", over={"epsilon": [1.0, 30.0]}, picture=0.65, mechanisms="spherical", trials=3
    )
    table = swept.table()
    means = table[table["metric"] == "fidelity"].groupby("epsilon")["value"].mean()
    assert means[1.0] < means[30.0]
    least = dpviz.least("iris", fidelity=0.7, picture=0.65, mechanisms="spherical")
    assert 0.5 < least.targets[0].estimate < 30
    without = dpviz.least("iris", fidelity=0.7, mechanisms="spherical")
    assert without.targets[0].reason == "no picture is paid for"


def test_fewer_rows_keep_their_own_labels() -> None:
    ready = prepare(load("iris"), SETTINGS)
    some = ready.with_n(60, 0, with_rows=True)
    assert some.labels is not None
    rows = some.moment_with_rows.rows
    every = ready.moment_with_rows.rows
    assert rows is not None
    assert every is not None
    assert ready.labels is not None
    assert len(some.labels.codes) == 60
    for row, code in zip(rows[:20], some.labels.codes, strict=False):
        same = (np.abs(every - row) < 1e-12).all(axis=1)
        assert code in ready.labels.codes[same]
