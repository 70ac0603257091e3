"""Eigenvector sampling: its accounting, and its loss computed from the densities."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import special

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.eigenvector_sampling import EigenvectorSampling

MECHANISM = EigenvectorSampling()
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(2000)


def log_circle(matrix: FloatArray) -> float:
    """Return the log of the mean of exp(u'Bu) over the unit circle."""
    a, b, c = float(matrix[0, 0]), float(matrix[0, 1]), float(matrix[1, 1])
    half = math.hypot(0.5 * (a - c), b)  # The variable is half the eigenvalues' difference.
    return 0.5 * (a + c) + half + math.log(special.ive(0, half))


def log_sphere(matrix: FloatArray) -> float:
    """Return the log of the mean of exp(u'Bu) over the unit sphere in three dimensions."""
    values = np.linalg.eigvalsh(matrix)
    rest = 1 - _NODES**2
    half = 0.5 * rest * (values[1] - values[0])
    log_f = values[2] * _NODES**2 + 0.5 * rest * (values[0] + values[1])
    log_f = log_f + half + np.log(special.ive(0, half))
    top = float(log_f.max())
    return top + math.log(0.5 * float(_WEIGHTS @ np.exp(log_f - top)))


def log_densities(B: FloatArray, outputs: Sequence[FloatArray]) -> list[float]:
    """Return the log density of each output u of shape (d, k), d = 2 or 3, k = d - 1."""
    whole = log_circle(B) if len(B) == 2 else log_sphere(B)
    return [log_density(B, whole, u) for u in outputs]


def log_density(B: FloatArray, whole: float, u: FloatArray) -> float:
    total = float(u[:, 0] @ B @ u[:, 0]) - whole
    if u.shape[1] == 2:
        complement = np.linalg.qr(u[:, :1], mode="complete").Q[:, 1:]
        total += float(u[:, 1] @ B @ u[:, 1]) - log_circle(complement.T @ B @ complement)
    return total


def worst_loss(d: int, relation: Relation, strength: float = 1.0, n: int = 400) -> float:
    """Return the largest loss found at epsilon 1 over concentrated tables and many outputs."""
    problem = Problem(n, d, d - 1, relation, Domain.ball(d))
    beta = strength * MECHANISM.calibrate(problem, Budget(1.0)).scale
    rng = np.random.default_rng(0)
    worst = 0.0
    for heavy in ([1, 0, 0], [0.5, 0.5, 0], [0.4, 0.35, 0.25], [0, 0, 0], [0.8, 0.1, 0.1]):
        weights = np.array(heavy[:d]) * (n - 1)
        for v, w in ((0, 1), (1, 0), (d - 1, 0)):
            first, second = np.diag(weights.copy()), np.diag(weights.copy())
            first[v, v] += 1
            if relation is Relation.REPLACE:
                second[w, w] += 1
            outputs = [np.eye(d)[:, list(order)] for order in _orders(d)]
            outputs += [np.linalg.qr(rng.standard_normal((d, d - 1))).Q for _ in range(40)]
            scales = (beta * (first / n), beta * (second / n))
            losses = np.subtract(*(log_densities(B, outputs) for B in scales))
            worst = max(worst, float(np.abs(losses).max()))
    return worst


def _orders(d: int) -> list[tuple[int, ...]]:
    if d == 2:
        return [(0,), (1,)]
    return [(i, j) for i in range(3) for j in range(3) if i != j]


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("relation", Relation)
def test_no_output_loses_more_than_epsilon(d: int, relation: Relation) -> None:
    loss = worst_loss(d, relation)
    assert loss <= 1 + 1e-9
    # The privacy loss nearly reaches the claim: one vector can reach its share, but not both.
    assert loss > 0.7
    # Control: a concentration larger by a half exceeds the privacy claim.
    assert worst_loss(d, relation, 1.5) > 1


def test_the_published_concentration_is_a_quarter() -> None:
    mechanism = EigenvectorSampling(concentration="published")
    for relation, share in ((Relation.REPLACE, 0.5), (Relation.ZERO_OUT, 0.25)):
        problem = Problem(100, 5, 2, relation, Domain.ball(5))
        assert mechanism.calibrate(problem, Budget(1.0)).scale == pytest.approx(100 / 2 / 4)
        status = mechanism.status(problem, Budget(1.0))
        loss = mechanism.spent(problem, Budget(1.0))
        assert status.verdict is Verdict.LOOSE
        assert loss is not None
        assert loss.epsilon == pytest.approx(share)


@pytest.mark.parametrize("k", [1, 2, 7, 10])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("relation", Relation)
def test_the_parts_add_up_to_the_claim(k: int, share: float, relation: Relation) -> None:
    mechanism = EigenvectorSampling(values_share=share)
    problem = Problem(100, 11, k, relation, Domain.box(11))
    for epsilon in (1e-4, 0.1, 1.0, 1e6):
        loss = mechanism.spent(problem, Budget(epsilon))
        assert loss is not None
        assert epsilon * (1 - 1e-12) < loss.epsilon <= epsilon
        assert mechanism.status(problem, Budget(epsilon)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_release_is_orthonormal_and_huge_budgets_recover_the_components(share: float) -> None:
    d, k = 6, 5
    data = SecondMoment(np.diag([0.4, 0.3, 0.15, 0.1, 0.04, 0.01]), 500)
    problem = Problem(500, d, k, Relation.REPLACE, Domain.ball(d))
    mechanism = EigenvectorSampling(values_share=share)
    for epsilon in (0.1, 1e6):
        calibration = mechanism.calibrate(problem, Budget(epsilon))
        release = mechanism.release_many(data, calibration, Draws.trials(0, "e", range(6)))
        V = release.components
        assert np.allclose(V.transpose(0, 2, 1) @ V, np.eye(k), rtol=0, atol=1e-12)
    assert np.allclose(V, np.eye(d)[:, :k], rtol=0, atol=5e-3)
    assert release.eigenvalues is None
    if share:
        assert release.raw.shape == (6, d, k + 1)
        values = release.raw[:, :, k]
        assert (np.diff(values) <= 0).all()
        assert np.allclose(values, data.eigenvalues, rtol=0, atol=1e-6)
