"""Sheffet's Wishart noise: published numbers, range and loss."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpviz.accounting.profiles import WishartNoise
from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.wishart_approx import WishartApprox

MECHANISM = WishartApprox()


def problem(relation: Relation = Relation.ZERO_OUT, d: int = 10) -> Problem:
    return Problem(1000, d, 2, relation, Domain.ball(d))


@pytest.mark.parametrize(("epsilon", "nu"), [(1, 362), (0.5, 1445), (0.1, 36118)])
@pytest.mark.parametrize("d", [2, 10, 61])
def test_published_degrees_of_freedom(epsilon: float, nu: int, d: int) -> None:
    values = MECHANISM.calibrate(problem(d=d), Budget(epsilon, 1e-5)).values
    assert values["degrees_of_freedom"] - d + 1 == nu


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 0.5, 0.999])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.36])
def test_the_constant_is_enough_as_proved(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    nu = MECHANISM.calibrate(problem(), budget).values["degrees_of_freedom"] - 9
    assert nu >= 28 * np.log(4 / delta) / epsilon**2
    x = np.log(1 / delta)
    least, most = nu - 2 * np.sqrt(nu * x), nu + 2 * np.sqrt(nu * x) + 2 * x
    assert stats.chi2.cdf(least, nu) <= delta
    assert stats.chi2.sf(most, nu) <= delta
    T = np.linspace(least, most, 101)  # These are the losses of all other releases.
    without = (nu / 2 - 1) * np.log1p(1 / (T - 1)) - 0.5
    assert (without <= (nu - 1 - T) / (2 * (T - 1)) + 1e-12).all()
    assert without.max() <= epsilon
    beside = 0.5 - (nu / 2 - 1) * np.log1p(1 / T)
    assert (beside <= (T + 3 - nu) / (2 * (T + 1)) + 1e-12).all()
    assert beside.max() <= epsilon
    loss = MECHANISM.spent(problem(), budget)
    assert loss is not None
    assert loss.epsilon <= epsilon


def test_it_runs_in_its_published_range_only() -> None:
    for budget, reason in (
        (Budget(1.0, 1e-6), "it is stated for epsilon below 1; got 1"),
        (Budget(0.5, 0.4), "it is stated for delta below 1/e = 0.367; got 0.4"),
        (Budget(0.5), "it needs a delta above 0; got 0"),
    ):
        with pytest.raises(CannotRun, match=reason):
            MECHANISM.check(problem(), budget)
    MECHANISM.check(problem(), Budget(0.999, 0.36))


@pytest.mark.parametrize("relation", Relation)
def test_the_account_is_the_exact_profile_of_its_own_numbers(relation: Relation) -> None:
    budget = Budget(0.5, 1e-5)
    loss = MECHANISM.spent(problem(relation), budget)
    assert loss is not None
    profile = WishartNoise(1445)
    assert profile.delta(relation, loss.epsilon) <= 1e-5
    assert profile.delta(relation, loss.epsilon * (1 - 1e-6)) > 1e-5
    assert loss.exact
    assert loss.epsilon < 0.2
    status = MECHANISM.status(problem(relation), budget)
    assert status.verdict is Verdict.LOOSE
    assert "against 0.5 claimed" in status.evidence


def test_outside_its_range_the_status_says_so_and_what_the_formula_would_spend() -> None:
    status = MECHANISM.status(problem(), Budget(1.0, 1e-6))
    assert status.evidence.startswith("Not run here")
    assert MECHANISM.status(problem(), Budget(8.0, 1e-5)).verdict is Verdict.OUT_OF_SCOPE


def test_the_release_is_positive_definite_and_above_a() -> None:
    data = SecondMoment(np.diag([0.4] + 9 * [0.0]), 1000)
    calibration = MECHANISM.calibrate(problem(), Budget(0.5, 1e-5))
    release = MECHANISM.release_many(data, calibration, Draws.trials(0, "w", range(3)))
    assert release.matrix is not None
    assert np.linalg.eigvalsh(release.matrix - data.A).min() > 0
