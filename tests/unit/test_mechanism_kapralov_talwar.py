"""Kapralov and Talwar: the split of the budget, and the loss computed from the densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import LaplacePart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.kapralov_talwar import KapralovTalwar

MECHANISM = KapralovTalwar()


def log_draw(A: FloatArray, beta: float, v: FloatArray) -> float:
    """Return the log density of a direction on the unit circle, against the uniform law."""
    a, b, c = beta * float(A[0, 0]), beta * float(A[0, 1]), beta * float(A[1, 1])
    half = math.hypot(0.5 * (a - c), b)  # The variable is half the eigenvalues' difference.
    return float(beta * v @ A @ v) - 0.5 * (a + c) - half - math.log(special.ive(0, half))


def log_density(
    A: FloatArray, calibration: Calibration, outputs: tuple[FloatArray, float, FloatArray]
) -> float:
    """Return the log density of two rounds in two dimensions."""
    v, value, last = outputs
    scale = calibration.values["values_scale"]
    rest = A - value * np.outer(v, v)
    return (
        log_draw(A, calibration.scale, v)
        - abs(value - v @ A @ v) / scale
        + log_draw(rest, calibration.values["last_concentration"], last)
    )


def worst_loss(relation: Relation, noise: float = 1.0, n: int = 400) -> float:
    """Return the largest loss found at epsilon 1 for d = k = 2 rounds."""
    # With k = d there is no subspace to release, but this test needs only two sampling rounds.
    problem = Problem(n, 2, 2, relation, Domain.ball(2))
    calibration = MECHANISM.calibrate(problem, Budget(1.0))
    calibration = Calibration(
        problem,
        calibration.budget,
        calibration.scale,
        values=dict(calibration.values)
        | {"values_scale": noise * calibration.values["values_scale"]},
    )
    worst = 0.0
    directions = [np.array([math.cos(t), math.sin(t)]) for t in np.linspace(0, math.pi, 13)]
    for heavy in ((1.0, 0.0), (0.5, 0.5), (0.8, 0.2), (0.0, 0.0)):
        weights = np.array(heavy) * (n - 1)
        for row, other in ((0, 1), (1, 0)):
            first, second = np.diag(weights.copy()), np.diag(weights.copy())
            first[row, row] += 1
            if relation is Relation.REPLACE:
                second[other, other] += 1
            first, second = first / n, second / n
            for v in directions:
                at = float(v @ first @ v)
                for value in (at, float(v @ second @ v), at + 1, at - 1):
                    for last in directions:
                        output = (v, value, last)
                        loss = log_density(first, calibration, output) - log_density(
                            second, calibration, output
                        )
                        worst = max(worst, abs(loss))
    return worst


@pytest.mark.parametrize("relation", Relation)
def test_no_output_loses_more_than_epsilon(relation: Relation) -> None:
    loss = worst_loss(relation)
    assert 0.7 < loss <= 1 + 1e-9
    # Control: a fifth of the noise on the eigenvalue exceeds the privacy claim.
    assert worst_loss(relation, 0.2) > 1


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("k", [1, 2, 10])
def test_the_rounds_add_up_to_the_claim(relation: Relation, k: int) -> None:
    problem = Problem(100, 11, k, relation, Domain.box(11))
    for epsilon in (1e-4, 1.0, 1e6):
        parts = MECHANISM.calibrate(problem, Budget(epsilon)).parts
        assert sum(isinstance(part, PurePart) for part in parts) == k
        assert sum(isinstance(part, LaplacePart) for part in parts) == k - 1
        loss = MECHANISM.spent(problem, Budget(epsilon))
        assert loss is not None
        assert epsilon * (1 - 1e-12) < loss.epsilon <= epsilon
        assert MECHANISM.status(problem, Budget(epsilon)).verdict is Verdict.HOLDS


def test_each_round_is_split_as_asked_and_the_last_needs_no_value() -> None:
    problem = Problem(100, 5, 4, Relation.REPLACE, Domain.ball(5))
    calibration = KapralovTalwar(value_share=0.5).calibrate(problem, Budget(2.0))
    assert calibration.scale == pytest.approx(100 * 0.25 / 2)
    assert calibration.values["last_concentration"] == pytest.approx(100 * 0.5 / 2)
    assert calibration.values["values_scale"] == pytest.approx(1 / (100 * 0.25))


def test_one_round_is_the_exponential_mechanism() -> None:
    problem = Problem(100, 5, 1, Relation.ZERO_OUT, Domain.ball(5))
    calibration = MECHANISM.calibrate(problem, Budget(2.0))
    assert calibration.scale == pytest.approx(200)


def test_a_release_carries_directions_and_values() -> None:
    d, k = 6, 3
    data = SecondMoment(np.diag([0.4, 0.3, 0.15, 0.1, 0.04, 0.01]), 500)
    problem = Problem(500, d, k, Relation.REPLACE, Domain.ball(d))
    for epsilon in (0.1, 1e6):
        calibration = MECHANISM.calibrate(problem, Budget(epsilon))
        release = MECHANISM.release_many(data, calibration, Draws.trials(0, "kt", range(6)))
        V = release.components
        assert np.allclose(V.transpose(0, 2, 1) @ V, np.eye(k), rtol=0, atol=1e-12)
        assert release.raw.shape == (6, d * k + k - 1)
    assert np.allclose(V, np.eye(d)[:, :k], rtol=0, atol=5e-3)
    assert np.allclose(release.raw[:, -2:], [0.4, 0.3], rtol=0, atol=1e-4)
