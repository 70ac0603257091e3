"""Laplace noise on rows: the calibration, and blocks of rows that leave no seam."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import _rows
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
    spent = mechanism.spent(problem, Budget(0.5))
    assert spent is not None
    assert spent.epsilon <= 0.5


def test_moments_of_noise_are_those_of_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the blocks: the sums are X'L + L'X and L'L for the L that was drawn."""
    rows = generator(0, "rows").standard_normal((23, 3))
    monkeypatch.setattr(_rows, "_BLOCK", 3 * 7)
    cross, square = _rows.laplace_moments(rows, Draws.trials(1, "l", range(2)))
    for trial in range(2):
        rng = generator(1, "l", trial)
        parts = [rng.standard_exponential((2, min(7, 23 - start), 3)) for start in range(0, 23, 7)]
        noise = np.concatenate([part[0] - part[1] for part in parts])
        np.testing.assert_allclose(cross[trial], rows.T @ noise + noise.T @ rows, atol=1e-12)
        np.testing.assert_allclose(square[trial], noise.T @ noise, atol=1e-12)
        # 69 Laplace entries: E L^2 = 2, Var L^2 = 20; 6.1 standard errors
        assert abs((noise**2).mean() - 2) < 6.1 * math.sqrt(20 / 69)
