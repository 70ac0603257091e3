"""Pictures on the one way of data: cells, results, tables, sweeps and the least epsilon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.datasets.table import Table
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.report.tables.projection import labels_of
from dpviz.simulation import goal as search
from dpviz.simulation.cells import cell_at, picture_of
from dpviz.simulation.compare import Comparison, compare
from dpviz.simulation.picture.counting import exact_answers, places
from dpviz.simulation.picture.quality import expected, right_share, shape_error
from dpviz.simulation.picture.shown import points, steady
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
    declared = replace(SETTINGS, categories="malignant, unclear")
    for each, settings, kinds in ((table, SETTINGS, 2), (own, SETTINGS, 1), (own, declared, 3)):
        ready = prepare(each, settings)
        options = picture_of(ready, SETTINGS)
        assert options is not None
        assert options.kinds == kinds
        cell = cell_at(ready, SETTINGS, parse_variant("spherical"), range(1))
        assert isinstance(cell, Cell)
        assert Keys(ready).key(cell, ()) != Keys(ready).key(replace(cell, picture=None), ())
    assert ready.labels is not None
    assert ready.labels.kinds == ("malignant", "unclear", "other")
    expected = np.where(np.asarray(own.labels) == "malignant", 0, 2)
    assert np.array_equal(ready.labels.codes, expected)  # benign is on no list: other
    assert labels_of(ready, np.arange(3))["kinds"] == list(ready.labels.kinds)
    assert any("list of categories" in said for said in ready.assumed_public)
    with pytest.raises(InvalidSetting, match="left out without a label column"):
        prepare(replace(own, labels=None), declared)
    with pytest.raises(InvalidSetting, match="at most 50 different texts"):
        replace(SETTINGS, categories=",".join(map(str, range(51))))


def test_a_sweep_and_a_search_follow_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = dpviz.sweep(
        "iris", over={"epsilon": [1.0, 30.0]}, picture=0.65, mechanisms="spherical", trials=3
    )
    table = swept.table()
    means = table[table["metric"] == "fidelity"].groupby("epsilon")["value"].mean()
    assert means[1.0] < means[30.0]
    # few, and no more of them near the crossing: within a factor of 60 any will do
    monkeypatch.setattr(search, "_NARROWINGS", 0)
    least = dpviz.least("iris", fidelity=0.8, picture=0.65, mechanisms="spherical", most_draws=32)
    assert 0.5 < least.targets[0].estimate < 30
    without = dpviz.least("iris", fidelity=0.8, mechanisms="spherical")
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


def test_each_mechanism_has_noise_of_its_own_for_its_picture() -> None:
    """Two with one noise would give away between them what is counted where their axes agree."""
    settings = replace(SETTINGS, mechanisms=("spherical", "gaussian"), trials=1)
    ready = prepare(load("breast_cancer"), settings)
    rows, labels = ready.moment_with_rows.rows, ready.labels
    assert rows is not None
    assert labels is not None
    noise = []
    for result in compare(ready, settings).results:
        (picture,) = result.pictures
        along = places(rows, result.components[0], disk=picture.disk)
        here = rows.any(axis=1)
        exact = exact_answers(along, labels.codes, here, picture.frame, picture.plan)
        noise.append((picture.noisy - exact) / picture.plan.noise)
    assert noise[0].shape == noise[1].shape
    assert not np.isclose(noise[0], noise[1]).any()


WORTH = (("digits", "none", 0.3), ("digits", "none", 1.0), ("breast_cancer", "standardize", 1.0))


def of_draws(name: str, scale: str, epsilon: float, *, loud: float = 1.0) -> np.ndarray:
    """Return what each of eight pictures is worth and is expected to be.

    Columns: share of labels told and the two ends expected of it, error and its two ends.
    """
    settings = replace(SETTINGS, table=name, scale=scale, epsilon=epsilon, trials=8,
                       mechanisms=("spherical",))  # fmt: skip
    ready = prepare(load(name), settings)
    (result,) = compare(ready, settings).results
    rows, labels = ready.moment_with_rows.rows, ready.labels
    assert rows is not None
    assert labels is not None
    found = []
    for draw, picture in enumerate(result.pictures):
        true = places(rows, result.components[draw], disk=picture.disk)
        shown = points(picture, steady(len(true)))
        told = right_share(shown.places, shown.kinds, true, labels.codes, len(labels.kinds))
        plan = replace(picture.plan, noise=loud * picture.plan.noise)
        foretold = expected(replace(picture, plan=plan), generator(draw, "expected"))
        assert foretold is not None
        assert foretold.right is not None
        found.append((told, *foretold.right, shape_error(shown.places, true), *foretold.error))
    return np.array(found)


def beyond(found: np.ndarray) -> np.ndarray:
    """Return by how much the true mean lies beyond the ends expected, less what is allowed.

    Allowed are three standard errors of the difference over the draws, and the distance of the ends
    once more: what cells hide is known to a factor and no better.
    """
    over = []
    for true, low, high in (found[:, :3].T, found[:, 3:].T):
        se = max(np.std(true - end, ddof=1) for end in (low, high)) / np.sqrt(len(found))
        wide = float(np.mean(high - low))
        over.append(max(np.mean(low - true), np.mean(true - high)) - wide - 3 * se)
    return np.array(over)


@pytest.mark.parametrize(("name", "scale", "epsilon"), WORTH)
def test_what_is_released_tells_what_a_picture_is_worth(
    name: str, scale: str, epsilon: float
) -> None:
    assert (beyond(of_draws(name, scale, epsilon)) < 0).all()


def test_worth_by_the_wrong_noise_is_noticed() -> None:
    """The control: the same released numbers, their noise taken for ten times as large."""
    assert (beyond(of_draws("digits", "none", 1.0, loud=10.0)) > 0).all()


def test_a_picture_to_be_shown_is_drawn_once_and_compares_with_nothing() -> None:
    asked: Any = {"epsilon": 3.0, "scale": "standardize", "mechanisms": ["spherical", "wishart"]}
    rows = pd.DataFrame(load("breast_cancer").rows).add_prefix("f")
    first, second = (dpviz.published(rows, **asked).data() for _ in range(2))
    made = [one["results"][0]["picture"]["counts"] for one in (first, second)]
    assert made[0] != made[1]  # nobody draws the noise of a table that is not public again
    found = dpviz.published("breast_cancer", **asked)
    assert found.to_json() == dpviz.published("breast_cancer", **asked).to_json()
    assert [one["picture"] is None for one in found.data()["results"]] == [False, True]
    assert found.data()["results"][0]["spent"]["epsilon"] == pytest.approx(3.0, rel=1e-6)
    assert "costs epsilon 3 in all" in found.summary()
    assert found.figure("scree").data == ()  # noise hides the total of so few people
    many = dpviz.published("digits", epsilon=3.0, mechanisms="spherical")
    scree = many.data()["results"][0]["picture"]["scree"]
    assert len(scree["variances"]) == len(scree["noise_std"]) == 2
    (bars,) = many.figure("scree").data
    np.testing.assert_allclose(bars.y, np.array(scree["variances"]) / scree["total"])
    assert "of the variance" in many.summary()
    for answer in (found, dpviz.compare("breast_cancer", trials=2, **asked)):
        figure = answer.figure("published")
        titles = " ".join(note.text for note in figure.layout.annotations)
        assert "Spherical" in titles
        assert "Wishart" not in titles  # a broken claim publishes nothing
        assert "none is a person" in titles
        assert sum(len(trace.x) for trace in figure.data) == 300
    batched = dpviz.compare("plan:n=1e4,spectrum=0.3,0.1,0.01", k=1, mechanisms="gaussian")
    with pytest.raises(InvalidSetting, match="not in memory"):
        batched.figure("published")
