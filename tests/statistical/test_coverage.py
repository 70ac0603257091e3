"""Every interval that is printed of a release, or of a plan of one, holds what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from benchmarks import coverage
from benchmarks.coverage import LOADINGS, PLANNED, SHAPE, SURVIVE, VARIANCES
from dpviz.core.seeding import generator
from dpviz.datasets import load
from dpviz.preparation.transform import Transform
from dpviz.releasing.chain import CONFIDENCE, Size
from dpviz.releasing.making import make
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.reading import read
from dpviz.releasing.schema import Column, Schema

pytestmark = pytest.mark.long

SETTINGS = tuple(coverage.settings(("iris", "breast_cancer"), epsilons=(2.0, 20.0), picture=0.0))


def test_every_interval_is_met_within_three_points() -> None:
    """Numbers of one release fail together, so releases count.

    A share of .95 of 480 has a standard error of at most .01, of 180 (those with a component that
    can be read) of .016: .03 are 3 of the one and 1.9 of the other, and the seed is fixed.
    """
    found = coverage.pooled([coverage.covered(setting, 5) for setting in SETTINGS])
    assert len(found[PLANNED]) == len(found[SURVIVE]) == 480
    assert len(found[LOADINGS]) > 180
    for name in (LOADINGS, VARIANCES, PLANNED, SURVIVE):
        assert np.mean(found[name]) == pytest.approx(CONFIDENCE, abs=coverage.ALLOWED), name


def test_noise_puts_a_picture_off_by_no_more_than_is_said() -> None:
    """64 releases: .03 and 2 standard errors of .027 each. The control: a third is said."""
    settings = coverage.settings(
        ("iris", "wine"), ("unit",), ("typical",), people=(1,), epsilons=(1.0, 5.0)
    )
    found, thirds = [], []
    for setting in settings:
        found += coverage.covered(setting, 8)[SHAPE]
        with mock.patch.object(coverage, "picture_off", lambda *given: 3 * _OFF(*given)):
            thirds += coverage.covered(setting, 8)[SHAPE]
    assert len(found) == 64
    assert np.mean(found) > CONFIDENCE - coverage.ALLOWED - 2 * 0.027
    assert np.mean(thirds) < 0.7


def _of_matrix_alone(release: Mapping[str, Any]) -> Size:
    return replace(_WHOLE(release), mean=0.0, count=0.0)


def _edge_of_matrix(size: Size, d: int, people: int, how: Transform | None) -> float:
    return _EDGE(size, d, people, None)


_WHOLE, _EDGE, _OFF = Size.of_release, Size.edge, coverage.picture_off


def test_bars_that_know_the_noise_of_the_matrix_alone_are_found_out() -> None:
    """The control: the same releases around a private mean, read as if it had no error."""
    private = [one for one in SETTINGS if one.options.center == "private"]
    with (
        mock.patch.object(Size, "of_release", staticmethod(_of_matrix_alone)),
        mock.patch.object(Size, "edge", _edge_of_matrix),
    ):
        found = coverage.pooled([coverage.covered(setting, 4) for setting in private])
    assert np.mean(found[LOADINGS]) < CONFIDENCE - 3 * coverage.ALLOWED


def test_the_error_of_a_released_mean_is_no_component_that_may_be_read() -> None:
    """Component 1 is that error, and a column of which no cell was read has a part in it."""
    table = load("iris")
    columns = (*(Column(name, -100, 100) for name in table.columns), Column("unread", -100, 100))
    options = ReleaseOptions(
        rows="unit", scale="limits", center="private", epsilon=1.0, delta=1e-6, k=1
    )
    lines = [",".join([*map(str, row), "no number"]) for row in table.rows.tolist()]
    text = "\n".join([",".join([*table.columns, "unread"]), *lines, ""]).encode()
    found, mean = 0, np.append(table.rows.mean(0), 0.0)
    with coverage.seeded(generator(0, "an error that is a component")):
        for _ in range(30):
            made = make(options, text, Schema(columns))
            error = np.array(made.declared.center.value) - mean
            cosine = abs(made.components[:, 0] @ error) / np.linalg.norm(error)
            found += cosine > 0.95
            seen = read(made.to_json())
            assert (seen.readable, seen.turned, seen.recovery) == (0, True, None)
            assert np.isnan(seen.bars).all()
            with (
                mock.patch.object(Size, "of_release", staticmethod(_of_matrix_alone)),
                mock.patch.object(Size, "edge", _edge_of_matrix),
            ):
                assert read(made.to_json()).readable == 1  # the control
    assert found == 30
