"""LOP: its output spans the exact components at every epsilon."""

from __future__ import annotations

import numpy as np
import pytest

from dpviz.core.arrays import fix_signs
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._rows import moment_of
from dpviz.mechanisms.laplace_output import LaplaceOutput


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
def test_components_are_exact_at_every_epsilon(epsilon: float) -> None:
    rows = generator(0, "rows").standard_normal((60, 5)) * [0.4, 0.3, 0.1, 0.1, 0.1]
    data = moment_of(rows)
    problem = Problem(60, 5, 2, Relation.REPLACE, Domain.ball(5))
    mechanism = LaplaceOutput()
    budget = Budget(epsilon)
    calibration = mechanism.calibrate(problem, budget)
    assert calibration.scale == 2 * 5 / epsilon
    release = mechanism.release_many(data, calibration, Draws.trials(0, "lop", range(5)))
    V = data.eigenvectors[:, :2]
    leak = release.components - V @ (V.T @ release.components)
    assert np.abs(leak).max() < 1e-6
    status = mechanism.status(problem, budget)
    assert status.verdict is Verdict.REFUTED
    assert mechanism.spent(problem, budget) is None


def test_one_row_turns_the_published_component_by_a_right_angle() -> None:
    """One row can make the releases of neighbours always distinguishable."""
    pairs = np.repeat(np.eye(2), 5, axis=0)
    first, second = pairs.copy(), pairs.copy()
    first[0], second[0] = [1.0, 0.0], [0.0, 1.0]  # One person's row is replaced.
    first[5] = second[5] = 0.0
    problem = Problem(10, 2, 1, Relation.REPLACE, Domain.ball(2))
    mechanism = LaplaceOutput()
    calibration = mechanism.calibrate(problem, Budget(0.01))
    releases = [
        mechanism.release_many(moment_of(rows), calibration, Draws.trials(0, "lop", range(20)))
        for rows in (first, second)
    ]
    for release, axis in zip(releases, np.eye(2), strict=True):
        np.testing.assert_allclose(release.components[..., 0], np.tile(axis, (20, 1)), atol=1e-12)


def test_published_moment_is_that_of_noisy_scores() -> None:
    rows = generator(0, "rows").standard_normal((40, 4)) / 4
    data = moment_of(rows)
    problem = Problem(40, 4, 3, Relation.REPLACE, Domain.ball(4))
    mechanism = LaplaceOutput()
    calibration = mechanism.calibrate(problem, Budget(5.0))
    release = mechanism.release_many(data, calibration, Draws.trials(2, "lop", range(1)))
    V = data.eigenvectors[:, :3]
    pair = generator(2, "lop", 0).standard_exponential((2, 40, 3))
    noisy = (rows @ V + calibration.scale * (pair[0] - pair[1])) @ V.T
    assert release.matrix is not None
    np.testing.assert_allclose(release.matrix[0], noisy.T @ noisy / 40, rtol=1e-10, atol=1e-10)
    top = fix_signs(np.linalg.svd(noisy)[2][:3].T)
    np.testing.assert_allclose(release.components[0], top, atol=1e-8)
