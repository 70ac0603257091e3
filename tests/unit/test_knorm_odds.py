"""Upper limits on K-norm noise's leakage agree with exact integrals and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.knorm_odds import upper_limit
from dpviz.accounting.knorm import EPSILONS, most_apart
from dpviz.auditing.attack import both_worlds, curve
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.quantity import Kind
from dpviz.core.seeding import Draws
from dpviz.mechanisms.knorm import KNorm

N = 50


def problem_of(d: int, relation: Relation = Relation.REPLACE, m: int | None = None) -> Problem:
    return Problem(N, d, 1, relation, Domain.ball(d), rows_a_person=m)


def right_guesses(d: int, relation: Relation, epsilon: float, size: int) -> tuple[float, float]:
    """Return the share of right guesses on worst neighbours, and its standard error.

    The result uses the mechanism's releases and density ratio, E (1 - e^-L)+, but no accounting.
    """
    tables = [np.zeros((d, d)), np.zeros((d, d))]
    tables[0][0, 0] = 1 / N
    if relation is Relation.REPLACE:
        tables[1][1, 1] = 1 / N
    first, second = (SecondMoment(A, N) for A in tables)
    mechanism = KNorm()
    calibration = mechanism.calibrate(problem_of(d, relation), Budget(epsilon))
    release = mechanism.release_many(first, calibration, Draws.trials(11, "odds", range(size)))
    ratio = mechanism.log_ratio(calibration, first, second)
    assert ratio is not None
    won = np.maximum(-np.expm1(-ratio(release)), 0.0)
    return 0.5 + won.mean() / 2, float(won.std()) / math.sqrt(size) / 2


def exact_of_two(relation: Relation, epsilon: float) -> float:
    """Return the total variation at d = 2 by midpoints over both eigenvalues and the angle."""
    points = (np.arange(240) + 0.5) / 240 * 24 - 12
    high, low = np.meshgrid(points, points, indexing="ij")
    weight = np.where(high > low, high - low, 0.0) * np.exp(-np.abs(high) - np.abs(low))
    weight /= weight.sum()
    norm = np.abs(high) + np.abs(low)
    total = 0.0
    for angle in (np.arange(48) + 0.5) / 48 * math.pi:
        c, s = math.cos(angle), math.sin(angle)
        p, q = (epsilon / 2, -epsilon / 2) if relation is Relation.REPLACE else (epsilon, 0.0)
        a = high - p * c * c - q * s * s
        b = low - p * s * s - q * c * c
        off = (q - p) * c * s
        middle, half = (a + b) / 2, np.sqrt(((a - b) / 2) ** 2 + off * off)
        loss = np.abs(middle + half) + np.abs(middle - half) - norm
        total += float((weight * np.maximum(-np.expm1(-loss), 0.0)).sum()) / 48
    return total


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 1.6, 3.0])
def test_limits_lie_just_above_the_exact_total_variation(
    relation: Relation, epsilon: float
) -> None:
    exact, limit = exact_of_two(relation, epsilon), most_apart(2, epsilon, relation)
    assert exact < limit < exact + 0.025  # Between the computed epsilons, lines exceed the curve.
    assert limit < math.tanh(epsilon / 2)
    assert most_apart(10, epsilon, relation) < exact  # Control: 10 features have a lower limit.


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    ("d", "size"),
    [
        (2, 20_000),
        (10, 6_000),
        pytest.param(30, 1_200, marks=pytest.mark.long),
        pytest.param(61, 400, marks=pytest.mark.long),
    ],
)
def test_right_guesses_are_those_of_a_simulation(relation: Relation, d: int, size: int) -> None:
    """The limit is at most 1 in 100 above the simulation, and never below, up to its error."""
    guesses, error = right_guesses(d, relation, 1.0, size)
    loss = KNorm().spent(problem_of(d, relation), Budget(1.0))
    worlds = both_worlds(loss)
    assert worlds.kind is Kind.UPPER_BOUND
    assert guesses - 4 * error < worlds.value < guesses + 0.01 + 4 * error
    assert worlds.value < 1 / (1 + math.exp(-1.0)) - 0.02  # Epsilon alone would allow more.


def test_between_neighbours_that_are_not_the_worst_less_is_told() -> None:
    """Shorter or non-orthogonal rows reveal less, by the mechanism's own ratio."""
    limit = most_apart(4, 2.0, Relation.REPLACE)
    mechanism = KNorm()
    calibration = mechanism.calibrate(problem_of(4), Budget(2.0))
    rng = np.random.default_rng(3)
    for _ in range(6):
        rows = rng.standard_normal((2, 4))
        rows *= (rng.uniform(0.2, 1, 2) / np.linalg.norm(rows, axis=1))[:, None]
        first, second = (SecondMoment(np.outer(row, row) / N, N) for row in rows)
        release = mechanism.release_many(first, calibration, Draws.trials(5, "odds", range(3_000)))
        ratio = mechanism.log_ratio(calibration, first, second)
        assert ratio is not None
        assert np.maximum(-np.expm1(-ratio(release)), 0.0).mean() < limit


def test_a_person_with_several_rows_is_told_apart_by_no_more_than_the_sum() -> None:
    for m in (1, 3, 1_000):
        loss = KNorm().spent(problem_of(4, m=m), Budget(1.0))
        assert loss is not None
        assert loss.total_variation is not None
        row = most_apart(4, 1.0 / m, Relation.REPLACE)
        assert loss.total_variation == pytest.approx(m * row, rel=1e-6)


def test_what_was_not_simulated_says_what_its_epsilon_says() -> None:
    assert most_apart(99, 1.0, Relation.REPLACE) == math.tanh(0.5)
    assert most_apart(4, 2 * EPSILONS[-1], Relation.ZERO_OUT) == math.tanh(EPSILONS[-1])
    box = Problem(N, 4, 1, Relation.REPLACE, Domain.box(4))
    loss = KNorm().spent(box, Budget(1.0))
    assert loss is not None
    assert loss.total_variation is None


def test_misses_are_no_fewer_than_the_total_variation_allows() -> None:
    alpha: FloatArray = np.linspace(0, 1, 101)
    trade_off = curve(KNorm(), problem_of(10), Budget(1.0), alpha)
    apart = most_apart(10, 1.0, Relation.REPLACE)
    assert (trade_off.beta >= 1 - alpha - apart - 1e-12).all()
    assert (1 - alpha - trade_off.beta).max() == pytest.approx(apart)


def test_a_limit_of_a_mean_fails_as_seldom_as_it_says() -> None:
    """Of 400 limits that each fail at most one time in ten, no more fail than chance allows."""
    rng = np.random.default_rng(4)
    failures = 0
    for _ in range(400):
        values = rng.beta(0.5, 4.0, 300)
        limit = upper_limit(values, 1.0, 0.1)
        failures += limit < 1 / 9
        assert values.mean() <= limit < values.mean() + 0.03
    assert failures <= 40 + 4 * 6
