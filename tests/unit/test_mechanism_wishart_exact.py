"""The exact one-sided Wishart: least degrees of freedom, smoothness, positivity."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from dpviz.accounting.profiles import WishartNoise
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.wishart_exact import WishartExact

AUTO, UNIT = WishartExact(), WishartExact(scale=1.0)


def problem(relation: Relation = Relation.ZERO_OUT, d: int = 6) -> Problem:
    return Problem(1000, d, 2, relation, Domain.ball(d))


@pytest.mark.parametrize(("epsilon", "nu"), [(2, 22), (1, 34), (0.5, 66), (0.1, 606)])
def test_least_freedom_at_unit_scale(epsilon: float, nu: int) -> None:
    calibration = UNIT.calibrate(problem(), Budget(epsilon, 1e-5))
    assert math.ceil(calibration.values["nu"]) == nu
    assert calibration.scale == 1 / 1000
    assert calibration.values["degrees_of_freedom"] == calibration.values["nu"] + 5


@pytest.mark.parametrize("mechanism", [AUTO, UNIT])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_the_budget_is_met_and_used_up(
    mechanism: WishartExact, relation: Relation, epsilon: float
) -> None:
    budget = Budget(epsilon, 1e-6)
    where = problem(relation)
    loss = mechanism.spent(where, budget)
    assert loss is not None
    assert loss.delta_at_epsilon is not None
    assert loss.delta_at_epsilon <= 1e-6
    assert loss.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert loss.exact
    assert mechanism.status(where, budget).verdict is Verdict.HOLDS
    assert "zeroed" in mechanism.status(where, budget).evidence


def test_no_epsilon_spends_the_floor_of_delta_at_unit_scale() -> None:
    """The chance that a release reveals a row is all of delta; the automatic scale lowers it."""
    budget = Budget(1e4, 1e-6)
    status = UNIT.status(problem(), budget)
    assert status.verdict is Verdict.LOOSE
    assert "reveals a row" in status.evidence
    nu = UNIT.calibrate(problem(), budget).values["nu"]
    assert WishartNoise(nu).delta(Relation.ZERO_OUT, 1e6) > 0.99e-6
    assert AUTO.status(problem(), budget).verdict is Verdict.HOLDS


@pytest.mark.parametrize("d", [10, 61])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0])
def test_the_automatic_scale_is_near_the_smallest_edge(epsilon: float, d: int) -> None:
    budget, where = Budget(epsilon, 1e-6), problem(d=d)

    def edge(mechanism: WishartExact) -> float:
        edges = mechanism.spectrum_edges(mechanism.calibrate(where, budget))
        assert edges is not None
        return edges[1]

    others = [edge(WishartExact(scale=float(c))) for c in np.geomspace(0.002, 20, 30)]
    assert edge(AUTO) < 1.1 * min(others)


def test_the_release_moves_smoothly_with_epsilon_and_stays_positive() -> None:
    data = SecondMoment(np.diag([0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), 1000)
    matrices = []
    for epsilon in (1.0, 1.0001):
        calibration = AUTO.calibrate(problem(), Budget(epsilon, 1e-6))
        release = AUTO.release_many(data, calibration, Draws.trials(0, "w", range(5)))
        assert release.matrix is not None
        assert np.linalg.eigvalsh(release.matrix - data.A).min() > 0
        matrices.append(release.matrix)
    assert np.abs(matrices[0] - matrices[1]).max() < 1e-3 * np.abs(matrices[0]).max()


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [1e-4, 1e6])
@pytest.mark.parametrize("mechanism", [AUTO, UNIT])
def test_the_ends_of_the_range_raise_no_warning(
    mechanism: WishartExact, relation: Relation, epsilon: float
) -> None:
    data = SecondMoment(np.diag([0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), 1000)
    budget = Budget(epsilon, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibration = mechanism.calibrate(problem(relation), budget)
        release = mechanism.release_many(data, calibration, Draws.trials(0, "w", range(3)))
        mechanism.status(problem(relation), budget)
    assert np.isfinite(release.components).all()
