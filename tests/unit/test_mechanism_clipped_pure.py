"""Clipped rows under pure privacy: the odds of radii, the sum of epsilons, equal lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpviz.accounting import accounting
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._base import Mechanism
from dpviz.mechanisms._clipped import beyond, drawn, log_odds
from dpviz.mechanisms._pure import PureLaw
from dpviz.mechanisms.clipped_pure import ClippedPure
from dpviz.mechanisms.spherical_knorm import SphericalKNorm
from dpviz.mechanisms.spherical_wishart_difference import SphericalWishartDifference
from dpviz.sampling.nuclear import LARGEST_D

MECHANISM = ClippedPure()
WISHART = ClippedPure(noise=PureLaw.WISHART)
RADII = 2.0 ** (np.arange(-40, 40) / 4)


def moment(rows: FloatArray) -> SecondMoment:
    A = rows.T @ rows / len(rows)
    return SecondMoment((A + A.T) / 2, len(rows), rows)


def problem(n: int, d: int, relation: Relation = Relation.REPLACE, k: int = 1) -> Problem:
    return Problem(n, d, k, relation, Domain.unbounded(d))


@pytest.mark.parametrize("against", [0.0, 3.0])
@pytest.mark.parametrize("relation", Relation)
def test_no_row_changes_the_odds_of_a_radius_by_more_than_the_epsilon(
    relation: Relation, against: float
) -> None:
    """With ties, zero rows, heavy tails and any rank, log odds change by at most epsilon."""
    rng = generator(0, "odds", str(relation))
    worst = 0.0
    for _ in range(2_000):
        lengths = 10.0 ** rng.uniform(-3, 3, 30)
        lengths[: rng.integers(20)] = rng.choice([0.0, 1.0, RADII[40]])
        other = lengths.copy()
        row = int(rng.integers(30))
        other[row] = 0.0 if relation is Relation.ZERO_OUT else rng.choice([0.0, 1.0, 1e9, 0.3])
        rank = float(rng.uniform(0, 30))
        one, two = (
            log_odds(np.sort(table), RADII, rank, 0.8, against) for table in (lengths, other)
        )
        worst = max(worst, float(np.abs(one - two).max()))
    assert 0.5 * 0.8 < worst <= 0.8 * (1 + 1e-12)
    # Control: changing two rows at once exceeds the privacy limit.
    other = np.where(np.arange(30) < 15, 0.0, 2.0)
    move = np.abs(log_odds(np.full(30, 2.0), RADII, 10.0, 0.8) - log_odds(other, RADII, 10.0, 0.8))
    assert move.max() > 0.8


def test_radii_are_drawn_with_their_odds() -> None:
    """40,000 sampled radii agree with their odds (Bernstein, 6.1 standard errors)."""
    lengths = np.sort(np.exp(generator(1, "odds").standard_normal(200)))
    size = 40_000
    chances = generator(2, "odds").uniform(size=size)
    hits = drawn(lengths, RADII, 60.0, 0.05, chances)
    counts = np.array([(hits == radius).sum() for radius in RADII])
    odds = np.exp(log_odds(lengths, RADII, 60.0, 0.05))
    assert odds.sum() == pytest.approx(1.0)

    def apart(probability: FloatArray) -> bool:
        expected = size * probability
        room = 6.1 * np.sqrt(np.maximum(expected, 1.0)) + 6.1**2 / 3
        return bool((np.abs(counts - expected) > room).any())

    assert not apart(odds)
    assert apart(odds**1.2 / (odds**1.2).sum())


def test_the_score_sees_a_rank_that_the_counts_jump_over() -> None:
    """If all rows have one length, the score finds the step that contains this length."""
    odds = np.exp(log_odds(np.full(100, 1.1), RADII, 50.0, 1.0))
    best = int(np.argmax(odds))
    assert RADII[best - 1] < 1.1 <= RADII[best]
    assert odds[best] > 0.999
    # Control: if only the count at the radius itself were used, all radii would be equally likely.
    ratio = np.exp(-0.5 * np.abs(np.where(RADII < 1.1, 100, 0) - 50.0))
    assert np.ptp(ratio) == 0


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("mechanism", [MECHANISM, WISHART])
def test_three_epsilons_add_to_the_budget(
    mechanism: ClippedPure, relation: Relation, epsilon: float
) -> None:
    where, budget = problem(20_000, 5, relation), Budget(epsilon)
    parts = mechanism.calibrate(where, budget).parts
    assert len(parts) == 3
    assert all(isinstance(part, PurePart) for part in parts)
    first, second, noise = (part.epsilon for part in parts)
    choosing = 0.15 * epsilon * min(1.0, math.sqrt(1_600 / (20_000 * epsilon)))
    assert first == pytest.approx(min(0.4 * choosing, 60 / 20_000), rel=1e-12)
    assert first + second == pytest.approx(choosing, rel=1e-12)
    assert noise == pytest.approx(epsilon - choosing, rel=1e-12)
    assert epsilon * (1 - 1e-9) <= accounting.spent(parts, budget).epsilon
    assert math.fsum((first, second, noise)) <= epsilon * (1 + 1e-15)
    assert mechanism.status(where, budget).verdict is Verdict.HOLDS


def test_the_scale_is_the_nuclear_sensitivity_over_what_is_left() -> None:
    n, epsilon = 20_000, 2.0
    choosing = 0.15 * math.sqrt(1_600 / (n * epsilon)) * epsilon
    second = choosing - 60 / n
    edges = {MECHANISM: math.pi / 2, WISHART: math.sqrt((11 + 5 * math.sqrt(5)) / 2) / 2}
    for relation, nuclear in ((Relation.REPLACE, 2.0), (Relation.ZERO_OUT, 1.0)):
        for mechanism, edge in edges.items():
            calibration = mechanism.calibrate(problem(n, 5, relation), Budget(epsilon))
            assert calibration.scale == pytest.approx(nuclear / (n * (epsilon - choosing)))
            tau = edge * 5 * nuclear / (n * epsilon) / math.sqrt(2)
            assert calibration.values["tau"] == pytest.approx(tau, rel=1e-9)
            rank = beyond(tau, 5) * n + math.log(24) / second
            assert calibration.values["rank"] == pytest.approx(rank, rel=1e-9)


def test_the_branch_is_public_and_exact() -> None:
    """The method changes at tau .02 for large d and at e1 n/4 = 8 for small d."""
    for d in (2, 60, 100):
        law, plain = (
            (math.pi / 2, SphericalKNorm())
            if d <= 64
            else (math.sqrt((11 + 5 * math.sqrt(5)) / 2) / 2, SphericalWishartDifference())
        )
        least = math.ceil(max(2 * law * d / math.sqrt(2) / 0.02, 8 * 4 / 0.06))
        assert MECHANISM.releases(problem(least, d), Budget(1.0)) == "matrix"
        below = problem(least - 1, d)
        assert MECHANISM.releases(below, Budget(1.0)) == "subspace"
        mine, spherical = (one.calibrate(below, Budget(1.0)) for one in (MECHANISM, plain))
        reaches = [part.epsilon for part in (*mine.parts, *spherical.parts)]
        np.testing.assert_allclose(reaches, 1.0, rtol=1e-15)


@pytest.mark.parametrize(
    ("mechanism", "plain"),
    [(MECHANISM, SphericalKNorm()), (WISHART, SphericalWishartDifference())],
)
def test_where_noise_is_large_it_is_spherical(mechanism: ClippedPure, plain: Mechanism) -> None:
    """With large noise the releases agree up to rounding: one scale is twice the other scale."""
    rows = generator(3, "pure").standard_normal((40, 3))
    where, budget = problem(40, 3), Budget(0.5)
    ours, theirs = (
        m.release_many(moment(rows), m.calibrate(where, budget), Draws.trials(0, "s", range(4)))
        for m in (mechanism, plain)
    )
    np.testing.assert_allclose(ours.raw, theirs.raw, rtol=1e-14)
    assert ours.matrix is None
    assert "length one" in mechanism.evidence(where, budget, None)


def test_k_norm_noise_has_a_limit_of_features() -> None:
    d = LARGEST_D + 1
    with pytest.raises(CannotRun, match=f"takes at most {LARGEST_D} features; got {d}"):
        ClippedPure(noise=PureLaw.KNORM).check(problem(5_000, d), Budget(1.0))
    MECHANISM.check(problem(5_000, d), Budget(1.0))


def test_rows_of_one_length_and_little_noise_give_the_second_moment() -> None:
    rows = np.tile(np.eye(4) * [[1.0], [1.0], [-1.0], [1.0]], (300, 1))
    rows[0] = [0.0, 0.0, 0.0, 50.0]
    data, where = moment(rows), problem(1_200, 4)
    release = MECHANISM.release_many(
        data, MECHANISM.calibrate(where, Budget(1e6)), Draws.trials(0, "loud", range(5))
    )
    assert release.matrix is not None
    assert release.radius is not None
    assert (release.radius >= 50).all()
    np.testing.assert_allclose(release.matrix, np.tile(data.A, (5, 1, 1)), rtol=0, atol=0.1)
