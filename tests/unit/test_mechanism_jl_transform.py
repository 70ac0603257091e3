"""The JL transform: published numbers, exact lift, singular sketches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpviz.accounting.profiles import GaussianSketch
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.jl_transform import JlTransform

PUBLISHED, EXACT = JlTransform(), JlTransform(lift="exact")


def problem(relation: Relation = Relation.ZERO_OUT, d: int = 6, n: int = 1000) -> Problem:
    return Problem(n, d, 2, relation, Domain.ball(d))


def test_published_numbers() -> None:
    values = PUBLISHED.calibrate(problem(), Budget(1.0, 1e-5)).values
    assert values["sketch_rows"] == 119
    assert round(values["w"]) == 11625
    # Test one value of the published formula itself.
    assert values["w"] == pytest.approx(
        16 * math.sqrt(119 * math.log(2e5)) * math.log(16 * 119 * 1e5)
    )


def bound_on_loss(q: float, rows: int, delta: float) -> float:
    """Return a loss that a sketch exceeds with probability delta at most (`JlTransform`, Notes)."""
    x = math.log(2 / delta)
    return q / (1 - q) * (rows * q / 2 + math.sqrt(rows * x) + x)


@pytest.mark.parametrize("eta", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("nu", [1e-6, 0.05, 0.5])
def test_the_constants_are_enough_as_proved(eta: float, nu: float) -> None:
    mechanism = JlTransform(eta=eta, nu=nu)
    rows = mechanism.sketch_rows()
    miss = stats.chi2.cdf(rows * (1 - eta), rows) + stats.chi2.sf(rows * (1 + eta), rows)
    assert miss <= nu
    for epsilon in (0.01, 1.0, 10.0):
        for delta in (1e-12, 1e-5, 0.4):
            w = math.sqrt(mechanism.unit_lift(problem(), Budget(epsilon, delta)))
            assert bound_on_loss(2 / w + 1 / w**2, rows, delta) < epsilon / 10


def test_the_loss_of_rows_of_any_length_stays_below_its_bound() -> None:
    """The loss stays below its bound at a small lift, but exceeds half of the bound more often."""
    rng, rows, delta, w = np.random.default_rng(0), 20, 0.01, 12.0
    q = 2 / w + 1 / w**2
    most = []
    for length in (0.0, 1.0, 100.0):
        u, v = rng.standard_normal((2, 4))
        u, v = length * u / np.linalg.norm(u), v / np.linalg.norm(v)
        others = rng.standard_normal((3, 4))
        S = others.T @ others + np.outer(u, u) + w**2 * np.eye(4)
        root = np.linalg.inv(np.linalg.cholesky(S))
        change = root @ (np.outer(u, v) + np.outer(v, u) + np.outer(v, v)) @ root.T
        moves = np.linalg.eigvalsh(change)
        assert np.abs(moves).sum() <= q * (1 + 1e-12)
        squares = rng.chisquare(rows, (100_000, 4))
        loss = rows / 2 * np.log1p(moves).sum() - squares @ (moves / (2 + 2 * moves))
        assert (loss > bound_on_loss(q, rows, delta)).mean() <= delta
        most.append((loss > bound_on_loss(q, rows, delta) / 8).mean())
    assert max(most) > delta


def test_the_scale_is_the_lift_in_units_of_a() -> None:
    calibration = PUBLISHED.calibrate(problem(), Budget(1.0, 1e-5))
    assert calibration.scale == pytest.approx(calibration.values["w"] ** 2 / 1000)


@pytest.mark.parametrize("relation", Relation)
def test_on_bounded_rows_the_published_lift_spends_next_to_nothing(relation: Relation) -> None:
    budget = Budget(1.0, 1e-5)
    loss = PUBLISHED.spent(problem(relation), budget)
    assert loss is not None
    assert loss.epsilon == 0
    # The bound is the total variation of two chi-squares (119 degrees), one larger by 1/w^2.
    bound = math.sqrt(119) / 11625**2
    assert GaussianSketch(119, 11625.0**2).delta(relation, 0.0) < bound
    assert PUBLISHED.status(problem(relation), budget).verdict is Verdict.LOOSE


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_exact_lift_uses_the_budget_up(relation: Relation, epsilon: float) -> None:
    budget = Budget(epsilon, 1e-5)
    loss = EXACT.spent(problem(relation), budget)
    assert loss is not None
    assert loss.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert loss.exact
    assert EXACT.status(problem(relation), budget).verdict is Verdict.HOLDS


@pytest.mark.parametrize(("eta", "rows"), [(0.5, 119), (1.0, 30)])
@pytest.mark.parametrize("d", [6, 50])
def test_the_gram_has_the_rank_of_the_sketch(eta: float, rows: int, d: int) -> None:
    data = SecondMoment(np.diag(np.linspace(0.5, 0, d) / d), 1000)
    mechanism = JlTransform(eta=eta, lift="exact")
    calibration = mechanism.calibrate(problem(d=d), Budget(1.0, 1e-5))
    release = mechanism.release_many(data, calibration, Draws.trials(0, "jl", range(3)))
    assert calibration.values["sketch_rows"] == rows
    ranks = np.linalg.matrix_rank(release.raw, tol=1e-10)
    assert (ranks == min(rows, d)).all()
    assert release.matrix is not None
    lift = calibration.scale * np.eye(d)
    assert np.array_equal(release.matrix, release.raw - lift)


def test_leaving_the_lift_in_changes_no_component() -> None:
    data = SecondMoment(np.diag([0.4, 0.2, 0.1, 0.05, 0.0, 0.0]), 1000)
    releases = []
    for mechanism in (EXACT, JlTransform(lift="exact", debias="no")):
        calibration = mechanism.calibrate(problem(), Budget(1.0, 1e-5))
        releases.append(mechanism.release_many(data, calibration, Draws.trials(0, "jl", range(5))))
    assert np.array_equal(releases[0].raw, releases[1].raw)
    assert np.allclose(releases[0].components, releases[1].components, rtol=0, atol=1e-9)


def test_it_needs_as_many_rows_as_features_and_legal_parameters() -> None:
    with pytest.raises(CannotRun, match="it lifts 6 singular values and needs as many rows; got 5"):
        PUBLISHED.check(problem(n=5), Budget(1.0, 1e-5))
    with pytest.raises(InvalidSetting, match=r"eta must be a number from 0\.01 to 1"):
        JlTransform(eta=0.0)
