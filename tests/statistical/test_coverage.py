"""Every interval printed for a release, or for a release plan, has its stated coverage."""

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
    """Coverage holds per release, because the numbers of one release fail together.

    A share of .95 of 480 releases has a standard error of at most .01; of 180 (releases with a
    readable component), .016. So .03 is 3 standard errors of the first share and 1.9 of the second.
    The seed is fixed.
    """
    coverages = coverage.pooled([coverage.covered(setting, 5) for setting in SETTINGS])
    assert len(coverages[PLANNED]) == len(coverages[SURVIVE]) == 480
    assert len(coverages[LOADINGS]) > 180
    for name in (LOADINGS, VARIANCES, PLANNED, SURVIVE):
        assert np.mean(coverages[name]) == pytest.approx(CONFIDENCE, abs=coverage.ALLOWED), name


def test_noise_puts_a_picture_off_by_no_more_than_is_said() -> None:
    """With 64 releases, allow .03 and 2 standard errors of .027. Control: a third of the range."""
    settings = coverage.settings(
        ("iris", "wine"), ("unit",), ("typical",), people=(1,), epsilons=(1.0, 5.0)
    )
    errors, thirds = [], []
    for setting in settings:
        errors += coverage.covered(setting, 8)[SHAPE]
        with mock.patch.object(coverage, "picture_off", lambda *given: 3 * _OFF(*given)):
            thirds += coverage.covered(setting, 8)[SHAPE]
    assert len(errors) == 64
    assert np.mean(errors) > CONFIDENCE - coverage.ALLOWED - 2 * 0.027
    assert np.mean(thirds) < 0.7


def _of_matrix_alone(release: Mapping[str, Any]) -> Size:
    return replace(_WHOLE(release), mean=0.0, count=0.0)


def _edge_of_matrix(size: Size, d: int, people: int, how: Transform | None) -> float:
    return _EDGE(size, d, people, None)


_WHOLE, _EDGE, _OFF = Size.of_release, Size.edge, coverage.picture_off


def test_bars_that_know_the_noise_of_the_matrix_alone_are_found_out() -> None:
    """Control: coverage fails if a private mean is read as if it had no error."""
    private = [one for one in SETTINGS if one.options.center == "private"]
    with (
        mock.patch.object(Size, "of_release", staticmethod(_of_matrix_alone)),
        mock.patch.object(Size, "edge", _edge_of_matrix),
    ):
        coverages = coverage.pooled([coverage.covered(setting, 4) for setting in private])
    assert np.mean(coverages[LOADINGS]) < CONFIDENCE - 3 * coverage.ALLOWED


def test_the_error_of_a_released_mean_is_no_component_that_may_be_read() -> None:
    """Component 1, the mean's error, is not readable; a column without a read cell has a part."""
    table = load("iris")
    columns = (*(Column(name, -100, 100) for name in table.columns), Column("unread", -100, 100))
    options = ReleaseOptions(
        rows="unit", scale="limits", center="private", epsilon=1.0, delta=1e-6, k=1
    )
    lines = [",".join([*map(str, row), "no number"]) for row in table.rows.tolist()]
    text = "\n".join([",".join([*table.columns, "unread"]), *lines, ""]).encode()
    count, mean = 0, np.append(table.rows.mean(0), 0.0)
    with coverage.seeded(generator(0, "an error that is a component")):
        for _ in range(30):
            release = make(options, text, Schema(columns))
            error = np.array(release.declared.center.value) - mean
            cosine = abs(release.components[:, 0] @ error) / np.linalg.norm(error)
            count += cosine > 0.95
            reading = read(release.to_json())
            assert (reading.readable, reading.turned, reading.recovery) == (0, True, None)
            assert np.isnan(reading.bars).all()
            with (
                mock.patch.object(Size, "of_release", staticmethod(_of_matrix_alone)),
                mock.patch.object(Size, "edge", _edge_of_matrix),
            ):
                assert read(release.to_json()).readable == 1  # Control: component 1 is readable.
    assert count == 30
