"""Directional Wishart difference: pure privacy shaped by an allocation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.accounting.sensitivity import reaches
from dpviz.core.allocation import Allocation
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.mechanisms.directional_wishart_difference import DirectionalWishartDifference
from dpviz.mechanisms.wishart_difference import WishartDifference

BUDGET = Budget(0.8)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("domain", [Domain.ball(5), Domain.box(5)])
def test_uniform_allocation_is_the_wishart_difference(relation: Relation, domain: Domain) -> None:
    problem = Problem(300, 5, 2, relation, domain)
    mechanism = DirectionalWishartDifference()
    calibration = mechanism.calibrate(problem, BUDGET)
    scales, _ = mechanism.shape(calibration, np.eye(5), None)
    plain = WishartDifference()
    isotropic = plain.calibrate(problem, BUDGET)
    np.testing.assert_allclose(scales, isotropic.scale, rtol=1e-12)
    # W1 - W2 has diagonal variance 4 (d + 1) c^2, as two chi-squares of d + 1 degrees of freedom.
    np.testing.assert_allclose(
        mechanism.direction_stds(calibration), math.sqrt(24) * isotropic.scale, rtol=1e-12
    )
    edges, same = mechanism.spectrum_edges(calibration), plain.spectrum_edges(isotropic)
    np.testing.assert_allclose(edges, same, rtol=1e-9)


@pytest.mark.parametrize(("relation", "sides"), [(Relation.REPLACE, 1), (Relation.ZERO_OUT, 0.5)])
def test_on_the_box_epsilon_is_a_linear_budget(relation: Relation, sides: float) -> None:
    """Per-feature bounds and any basis: epsilon = (1/n) sum reach_j^2/c_j, half under zero-out."""
    domain = Domain("box", 4, (1.0, 0.5, 2.0, 1.0))
    allocation = Allocation("custom", theta=(0.4, 0.3, 0.2, 0.1))
    problem = Problem(300, 4, 1, relation, domain, allocation)
    mechanism = DirectionalWishartDifference()
    calibration = mechanism.calibrate(problem, BUDGET)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        basis = np.eye(4) if seed == 0 else np.linalg.qr(rng.standard_normal((4, 4)))[0]
        scales, shares = mechanism.shape(calibration, basis, None)
        terms = reaches(domain, basis) ** 2 / scales / problem.n * sides
        # The sum may exceed the linear budget: the ball around the box may allow less noise.
        assert math.fsum(terms) >= BUDGET.epsilon * (1 - 1e-9)
        np.testing.assert_allclose(terms / terms.sum(), shares, rtol=1e-9)


def test_on_the_ball_the_smallest_scales_decide() -> None:
    allocation = Allocation("custom", theta=(0.5, 0.3, 0.2))
    for relation, sides in ((Relation.REPLACE, 1), (Relation.ZERO_OUT, 0.5)):
        problem = Problem(300, 3, 1, relation, Domain.ball(3), allocation)
        mechanism = DirectionalWishartDifference()
        scales, _ = mechanism.shape(mechanism.calibrate(problem, BUDGET), np.eye(3), None)
        first, second = 1 / np.sort(scales)[:2]
        loss = (first + second) / 2 if relation is Relation.REPLACE else first * sides
        assert loss / problem.n == pytest.approx(BUDGET.epsilon, rel=1e-9)
        status = mechanism.status(problem, BUDGET)
        assert status.verdict is Verdict.HOLDS
        assert "do not help" in status.evidence
