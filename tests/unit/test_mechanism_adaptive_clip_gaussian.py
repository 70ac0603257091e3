"""Adaptive clipping: the odds of the radius, the accounting, and the effect of clipping."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.accounting import accounting
from dpviz.core.parts import GaussianPart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._rows import moment_of
from dpviz.mechanisms.adaptive_clip_gaussian import AdaptiveClipGaussian, _clipped, log_odds
from dpviz.mechanisms.gaussian import Gaussian

MECHANISM = AdaptiveClipGaussian()


@pytest.mark.parametrize("relation", Relation)
def test_no_row_changes_the_odds_of_a_radius_by_more_than_its_epsilon(relation: Relation) -> None:
    """Over random tables with a replaced or zeroed row, log odds change by at most epsilon."""
    rng = generator(0, "radius")
    problem = Problem(30, 3, 1, relation, Domain.ball(3))
    calibration = MECHANISM.calibrate(problem, Budget(1.0, 1e-6))
    most = calibration.values["radius_epsilon"]
    worst = widest = 0.0
    for _ in range(400):
        lengths = 10.0 ** rng.uniform(-5, 0, 30)
        other = lengths.copy()
        other[0] = 0.0 if relation is Relation.ZERO_OUT else 10.0 ** rng.uniform(-5, 0)
        loss = log_odds(np.sort(lengths), calibration) - log_odds(np.sort(other), calibration)
        worst = max(worst, float(np.abs(loss).max()))
        widest = max(widest, float(np.ptp(loss)))
    assert 0.3 * most < worst <= most * (1 + 1e-12)
    # A changed row moves the log odds of all radii within an interval of one epsilon, not of two.
    assert 0.9 * most < widest <= most * (1 + 1e-12)
    (choice, _) = calibration.parts
    assert choice == PurePart(most, choice.reason, width=most)
    # Control: changing two rows at once may exceed the privacy limit.
    other[:15] = 0.0
    loss = log_odds(np.sort(lengths), calibration) - log_odds(np.sort(other), calibration)
    assert np.abs(loss).max() > most


def test_the_parts_meet_the_budget_and_leave_little() -> None:
    for epsilon in (0.01, 1.0, 100.0):
        problem = Problem(500, 9, 2, Relation.REPLACE, Domain.ball(9))
        budget = Budget(epsilon, 1e-6)
        parts = MECHANISM.calibrate(problem, budget).parts
        assert [type(part) for part in parts] == [PurePart, GaussianPart]
        assert parts[0] == PurePart(0.15 * epsilon, parts[0].reason, width=0.15 * epsilon)
        loss = accounting.spent(parts, budget)
        assert epsilon * (1 - 1e-6) <= loss.epsilon <= epsilon


def test_its_bounded_range_leaves_more_to_the_noise_than_randomised_response() -> None:
    """With the same epsilon for the radius, its known law leaves a 15th less noise."""
    for epsilon, delta in ((0.1, 3e-7), (1.0, 3e-7), (1.0, 1e-5), (10.0, 1e-5)):
        problem = Problem(500, 9, 2, Relation.REPLACE, Domain.ball(9))
        budget = Budget(epsilon, delta)
        scale = MECHANISM.calibrate(problem, budget).scale
        unknown = accounting.greatest_mu_beside((PurePart(0.15 * epsilon, "x"),), budget)
        before = math.sqrt(2) / 500 / unknown
        assert 0.925 < scale / before < 0.945


def test_clipping_shortens_long_rows_only() -> None:
    rows = np.array([[0.9, 0.0], [0.0, 0.1], [0.3, 0.4], [0.0, 0.0]])
    expected = np.array([[0.5, 0.0], [0.0, 0.1], [0.3, 0.4], [0.0, 0.0]])
    data, problem = moment_of(rows), Problem(4, 2, 1, Relation.REPLACE, Domain.ball(2))
    np.testing.assert_allclose(_clipped(data, problem, 4), expected.T @ expected / 4, atol=1e-15)
    assert _clipped(data, problem, 0) is data.A


def test_rows_at_the_corners_of_a_box_stay_as_they_are() -> None:
    """R is among the radii, whether or not it is on the grid of the sums by length."""
    problem, budget = Problem(90_000, 3, 1, Relation.REPLACE, Domain.box(3)), Budget(1.0, 1e-6)
    data = moment_of(generator(2, "corners").choice([-1.0, 1.0], (problem.n, 3)))
    release = MECHANISM.release_many(
        data, MECHANISM.calibrate(problem, budget), Draws.trials(0, "a", range(5))
    )
    assert release.matrix is not None
    assert np.abs(release.matrix - data.A).max() < 0.01


def test_a_loose_row_bound_costs_little() -> None:
    """If rows are thirty times shorter than the bound, noise shrinks by nearly 30 squared."""
    rng = generator(1, "loose")
    rows = rng.standard_normal((20_000, 6)) * [1, 0.5, 0.5, 0.5, 0.5, 0.5]
    rows /= np.linalg.norm(rows, axis=1).max() * 30
    data = moment_of(rows)
    problem, budget = Problem(20_000, 6, 1, Relation.REPLACE, Domain.ball(6)), Budget(1.0, 1e-6)
    overlaps = []
    for mechanism in (MECHANISM, Gaussian()):
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, budget), Draws.trials(0, "a", range(30))
        )
        overlaps.append(np.square(release.components[:, 0, 0]).mean())
    assert overlaps[0] > 0.9
    assert overlaps[1] < 0.5  # Control: without clipping, the direction is lost.


def test_the_rank_aimed_at_is_the_edge_of_the_noise() -> None:
    problem, budget = Problem(10_000, 8, 2, Relation.ZERO_OUT, Domain.ball(8)), Budget(1.0, 1e-6)
    values = MECHANISM.calibrate(problem, budget).values
    assert values["rank"] == pytest.approx(math.sqrt(16) / values["mu"] + 2 * math.log(61) / 0.15)
    few = Problem(20, 8, 2, Relation.ZERO_OUT, Domain.ball(8))
    assert MECHANISM.calibrate(few, budget).values["rank"] == 10
