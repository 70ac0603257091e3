"""Laplace noise on rows: the calibration, and blocks of rows that do not change the law."""

from __future__ import annotations

import pytest

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms.data_laplace import DataLaplace


@pytest.mark.parametrize(
    ("relation", "domain", "reach"),
    [
        (Relation.REPLACE, Domain.ball(4), 4.0),
        (Relation.ZERO_OUT, Domain.ball(4), 2.0),
        (Relation.REPLACE, Domain.box(4), 8.0),
    ],
)
def test_scale_is_the_l1_distance_of_two_rows_over_epsilon(
    relation: Relation, domain: Domain, reach: float
) -> None:
    mechanism = DataLaplace()
    problem = Problem(99, 4, 1, relation, domain)
    calibration = mechanism.calibrate(problem, Budget(0.5))
    assert calibration.scale == pytest.approx(reach / 0.5, rel=1e-12)
    loss = mechanism.spent(problem, Budget(0.5))
    assert loss is not None
    assert loss.epsilon <= 0.5
