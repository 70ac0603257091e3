"""Adaptive clipping: the odds of the radius, the account, and what clipping shortens."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.accounting import accounting
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms.adaptive_clip_gaussian import AdaptiveClipGaussian, clipped_moment, log_odds
from dpviz.mechanisms.gaussian import Gaussian

MECHANISM = AdaptiveClipGaussian()


def moment(rows: np.ndarray) -> SecondMoment:
    A = rows.T @ rows / len(rows)
    return SecondMoment((A + A.T) / 2, len(rows), rows)


@pytest.mark.parametrize("relation", Relation)
def test_no_row_changes_the_odds_of_a_radius_by_more_than_its_epsilon(relation: Relation) -> None:
    """The normalised log odds themselves, over random tables and replaced or zeroed rows."""
    rng = generator(0, "radius")
    problem = Problem(30, 3, 1, relation, Domain.ball(3))
    calibration = MECHANISM.calibrate(problem, Budget(1.0, 1e-6))
    most = calibration.values["radius_epsilon"]
    worst = widest = 0.0
    for _ in range(400):
        lengths = 10.0 ** rng.uniform(-5, 0, 30)
        other = lengths.copy()
        other[0] = 0.0 if relation is Relation.ZERO_OUT else 10.0 ** rng.uniform(-5, 0)
        loss = log_odds(lengths, calibration) - log_odds(other, calibration)
        worst = max(worst, float(np.abs(loss).max()))
        widest = max(widest, float(np.ptp(loss)))
    assert 0.3 * most < worst <= most * (1 + 1e-12)
    # the width of its part: all radii's odds change within an interval of one epsilon, not of two
    assert 0.9 * most < widest <= most * (1 + 1e-12)
    (choice, _) = calibration.parts
    assert choice == PurePart(most, choice.reason, width=most)
    # negative control: two rows at once may exceed it
    other[:15] = 0.0
    assert np.abs(log_odds(lengths, calibration) - log_odds(other, calibration)).max() > most


def test_the_parts_meet_the_budget_and_leave_little() -> None:
    for epsilon in (0.01, 1.0, 100.0):
        problem, budget = (
            Problem(500, 9, 2, Relation.REPLACE, Domain.ball(9)),
            Budget(epsilon, 1e-6),
        )
        parts = MECHANISM.calibrate(problem, budget).parts
        assert [type(part) for part in parts] == [PurePart, GaussianPart]
        assert parts[0] == PurePart(0.15 * epsilon, parts[0].reason, width=0.15 * epsilon)
        spent = accounting.spent(parts, budget)
        assert epsilon * (1 - 1e-6) <= spent.epsilon <= epsilon


def test_its_bounded_range_leaves_more_to_the_noise_than_randomised_response() -> None:
    """The same epsilon for the radius, its law known or not: a 15th less noise."""
    for epsilon, delta in ((0.1, 3e-7), (1.0, 3e-7), (1.0, 1e-5), (10.0, 1e-5)):
        problem = Problem(500, 9, 2, Relation.REPLACE, Domain.ball(9))
        budget = Budget(epsilon, delta)
        scale = MECHANISM.calibrate(problem, budget).scale
        unknown = accounting.greatest_mu_beside((PurePart(0.15 * epsilon, "x"),), budget)
        before = math.sqrt(2) / 500 / unknown
        assert 0.925 < scale / before < 0.945


def test_clipping_shortens_long_rows_only() -> None:
    rows = np.array([[0.9, 0.0], [0.0, 0.1], [0.3, 0.4], [0.0, 0.0]])
    lengths = np.linalg.norm(rows, axis=1)
    expected = np.array([[0.5, 0.0], [0.0, 0.1], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(
        clipped_moment(moment(rows), lengths, 0.5), expected.T @ expected / 4, atol=1e-15
    )
    data = moment(rows)
    assert clipped_moment(data, lengths, 0.9) is data.A


def test_a_loose_row_bound_costs_little() -> None:
    """Rows thirty times shorter than the bound: noise shrinks by nearly that squared."""
    rng = generator(1, "loose")
    rows = rng.standard_normal((20_000, 6)) * [1, 0.5, 0.5, 0.5, 0.5, 0.5]
    rows /= np.linalg.norm(rows, axis=1).max() * 30
    data = moment(rows)
    problem, budget = Problem(20_000, 6, 1, Relation.REPLACE, Domain.ball(6)), Budget(1.0, 1e-6)
    overlaps = []
    for mechanism in (MECHANISM, Gaussian()):
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, budget), Draws.trials(0, "a", range(30))
        )
        overlaps.append(np.square(release.components[:, 0, 0]).mean())
    assert overlaps[0] > 0.9
    assert overlaps[1] < 0.5  # control: without clipping the direction is lost


def test_the_rank_aimed_at_is_the_edge_of_the_noise() -> None:
    problem, budget = Problem(10_000, 8, 2, Relation.ZERO_OUT, Domain.ball(8)), Budget(1.0, 1e-6)
    values = MECHANISM.calibrate(problem, budget).values
    assert values["rank"] == pytest.approx(math.sqrt(16) / values["mu"] + 2 * math.log(61) / 0.15)
    few = Problem(20, 8, 2, Relation.ZERO_OUT, Domain.ball(8))
    assert MECHANISM.calibrate(few, budget).values["rank"] == 10
