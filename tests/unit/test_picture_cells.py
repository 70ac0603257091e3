"""2-D maps on the shared data path: results, tables, sweeps and the least epsilon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpviz.core.errors import InvalidSetting
from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.datasets.table import Table
from dpviz.mechanisms import parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.report.tables.projection import labels_of
from dpviz.simulation.cells import cell_at, picture_of
from dpviz.simulation.compare import Comparison, compare
from dpviz.simulation.picture.counting import exact_answers, places
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


def test_a_broken_claim_and_a_baseline_publish_nothing(found: Comparison) -> None:
    for result in found.results[1:]:
        assert result.pictures == ()
        assert "fidelity" not in result.metrics


def test_labels_are_published_where_their_categories_are_public() -> None:
    table = load("breast_cancer")
    mine = Table("mine", table.rows, table.columns, table.labels, table.label_name, public=False)
    with_names = replace(SETTINGS, categories="malignant, unclear")
    for each, settings, kinds in ((table, SETTINGS, 2), (mine, SETTINGS, 1), (mine, with_names, 3)):
        ready = prepare(each, settings)
        options = picture_of(ready, SETTINGS)
        assert options is not None
        assert options.kinds == kinds
        cell = cell_at(ready, SETTINGS, parse_variant("spherical"), range(1))
        assert isinstance(cell, Cell)
        assert Keys(ready).key(cell, ()) != Keys(ready).key(replace(cell, picture=None), ())
    assert ready.labels is not None
    assert ready.labels.kinds == ("malignant", "unclear", "other")
    expected = np.where(np.asarray(mine.labels) == "malignant", 0, 2)
    assert np.array_equal(ready.labels.codes, expected)  # benign is not listed: it counts as other.
    assert labels_of(ready, np.arange(3))["kinds"] == list(ready.labels.kinds)
    assert any("list of categories" in said for said in ready.assumed_public)
    with pytest.raises(InvalidSetting, match="left out without a label column"):
        prepare(replace(mine, labels=None), with_names)
    with pytest.raises(InvalidSetting, match="at most 50 different texts"):
        replace(SETTINGS, categories=",".join(map(str, range(51))))


def test_each_mechanism_has_noise_of_its_own_for_its_picture() -> None:
    """Two maps with equal noise would reveal the counts in places where their axes agree."""
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
