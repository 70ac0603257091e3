"""Clipped Gaussian: its sensitivities, the accounting of eleven steps, the search for a radius."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.accounting import accounting
from dpviz.accounting.gaussian import mu_of
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of, shortened_moment
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._clipped import beyond, longer, unit_rows
from dpviz.mechanisms.clipped_gaussian import ClippedGaussian, radii_of
from dpviz.mechanisms.spherical import Spherical

MECHANISM = ClippedGaussian()


def moment(rows: FloatArray) -> SecondMoment:
    A = rows.T @ rows / len(rows)
    return SecondMoment((A + A.T) / 2, len(rows), rows)


def problem(n: int, d: int, relation: Relation = Relation.REPLACE, k: int = 1) -> Problem:
    return Problem(n, d, k, relation, Domain.unbounded(d))


def hard_rows(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Rows of any length, including zero rows, ties in length and exact repeats."""
    rows = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-12, 12, (n, 1))
    rows[: n // 5] = 0.0
    ties = slice(n // 5, 2 * n // 5)
    rows[ties] /= np.linalg.norm(rows[ties], axis=1, keepdims=True)
    rows[2 * n // 5 : n // 2] = rows[-1]
    return rows


# --- what one row moves ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", Relation)
def test_no_neighbours_move_a_count_or_the_clipped_moment_further_than_stated(
    relation: Relation,
) -> None:
    """A search over tables, rows and radii attains the stated sensitivities up to rounding."""
    rng = generator(0, "clipped", str(relation))
    n, d = 10, 3
    most = {"count": 1.0, "frobenius": math.sqrt(2), "nuclear": 2.0}
    if relation is Relation.ZERO_OUT:
        most = dict.fromkeys(most, 1.0)
    worst = dict.fromkeys(most, 0.0)
    for _ in range(3_000):
        first = hard_rows(rng, n, d)
        second = first.copy()
        row = int(rng.integers(n))
        kinds = [np.zeros(d), second[row - 1], -first[row] * 1e3, rng.standard_normal(d)]
        kinds += [float(10 ** rng.uniform(-12, 12)) * np.eye(d)[rng.integers(d)], np.full(d, 1e170)]
        zeroes = relation is Relation.ZERO_OUT
        second[row] = 0.0 if zeroes else kinds[int(rng.integers(len(kinds)))]
        lengths = [np.sort(lengths_of(rows)) for rows in (first, second)]
        # Test radii at which the counts of longer rows change: the row lengths and random values.
        radii = np.concatenate((lengths[0], lengths[1], 10.0 ** rng.uniform(-13, 13, 4)))
        radii = radii[(radii > 0) & np.isfinite(radii)]
        counts = longer(lengths[0], radii) - longer(lengths[1], radii)
        worst["count"] = max(worst["count"], float(np.abs(counts).max()))
        for radius in rng.choice(radii, 3):
            moments = [shortened_moment(rows, float(radius)) for rows in (first, second)]
            change = n * (moments[0] - moments[1])
            values = np.abs(np.linalg.eigvalsh(change))
            worst["frobenius"] = max(worst["frobenius"], float(np.linalg.norm(change)))
            worst["nuclear"] = max(worst["nuclear"], float(values.sum()))
    for name, ratio in worst.items():
        assert 0.99 * most[name] < ratio <= most[name] * (1 + 1e-14), name


def test_a_moment_of_rows_that_are_not_clipped_moves_further() -> None:
    """Control: rows in units of r without clipping move the moment beyond the bound."""
    long, others = np.array([[3.0, 0.0]]), np.ones((9, 2))
    change = 10 * (moment(np.vstack([long, others])).A - moment(np.vstack([0 * long, others])).A)
    assert np.linalg.norm(change) > math.sqrt(2)


def test_a_clipped_moment_is_that_of_clipped_rows() -> None:
    rng = generator(1, "clipped")
    rows = rng.standard_normal((50, 4)) * rng.uniform(0, 3, (50, 1))
    rows[0] = 0
    radius = 1.7
    lengths = np.linalg.norm(rows, axis=1)
    short = rows * np.minimum(1, radius / np.where(lengths > 0, lengths, 1))[:, None]
    expected = short.T @ short / 50
    own_moment = shortened_moment(rows, radius) * radius**2
    np.testing.assert_allclose(own_moment, expected, rtol=1e-12, atol=1e-14)
    # Row lengths and directions stay correct near the largest and smallest floats.
    extreme = np.array([[3e200, 4e200], [3e-200, 4e-200], [1.7e308, 1.7e308]])
    np.testing.assert_allclose(lengths_of(extreme), [5e200, 5e-200, np.inf])
    np.testing.assert_allclose(unit_rows(extreme)[:2], [[0.6, 0.8], [0.6, 0.8]], rtol=1e-14)
    assert np.isfinite(shortened_moment(extreme, 1.0)).all()


# --- the account ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("relation", Relation)
def test_ten_counts_cost_exactly_their_share_and_all_of_it_the_budget(
    relation: Relation, epsilon: float
) -> None:
    budget = Budget(epsilon, 1e-6)
    where = problem(4_000, 6, relation)
    parts = MECHANISM.calibrate(where, budget).parts
    assert len(parts) == 11
    assert all(isinstance(part, GaussianPart) for part in parts)
    counts = parts[:10]
    assert {part.sensitivity for part in counts} == {1.0}
    mu2 = mu_of(budget) ** 2
    assert sum(part.mu**2 for part in counts) == pytest.approx(0.05 * mu2, rel=1e-12)
    assert sum(part.mu**2 for part in counts[:6]) == pytest.approx(0.015 * mu2, rel=1e-12)
    reach = math.sqrt(2) if relation is Relation.REPLACE else 1.0
    assert parts[10].sensitivity == pytest.approx(reach / 4_000, rel=1e-14)
    assert parts[10].mu ** 2 == pytest.approx(0.95 * mu2, rel=1e-9)
    assert sum(part.mu**2 for part in parts) <= mu2
    loss = accounting.spent(parts, budget)
    assert epsilon * (1 - 1e-9) <= loss.epsilon <= epsilon
    assert not loss.exact  # The counts are not released; only the radius is.


def test_the_account_is_that_of_other_code() -> None:
    """The loss agrees with eleven mechanisms composed by dp-accounting, which rounds up."""
    budget = Budget(1.0, 1e-5)
    parts = MECHANISM.calibrate(problem(4_000, 6), budget).parts
    whole = pld.identity(1e-4)
    for part in parts:
        assert isinstance(part, GaussianPart)
        whole = whole.compose(
            pld.from_gaussian_mechanism(
                part.std, sensitivity=part.sensitivity, value_discretization_interval=1e-4
            )
        )
    assert whole.get_epsilon_for_delta(1e-5) == pytest.approx(1.0, abs=2e-3)
    # Control: the counts alone use a twentieth of the budget's mu^2.
    assert accounting.spent(parts[:10], budget).epsilon < 0.25


def test_the_branch_is_public_and_exact() -> None:
    """The method changes at tau .04, and at n/2 three standard deviations of a first count."""
    budget = Budget(1.0, 1e-6)
    mu = mu_of(budget)
    for relation, reach in ((Relation.REPLACE, math.sqrt(2)), (Relation.ZERO_OUT, 1.0)):
        for d in (2, 200):
            loud = reach * math.sqrt(d) / (0.04 * mu)
            few = 6 * math.sqrt(6 / (0.3 * 0.05)) / mu
            least = math.ceil(max(loud, few))
            assert MECHANISM.releases(problem(least, d, relation), budget) == "matrix"
            below = problem(least - 1, d, relation)
            assert MECHANISM.releases(below, budget) == "subspace"
            plain, mine = Spherical().calibrate(below, budget), MECHANISM.calibrate(below, budget)
            assert (mine.scale, mine.parts) == (plain.scale, plain.parts)


def test_where_noise_is_large_it_is_spherical_to_the_byte() -> None:
    rng = generator(2, "clipped")
    data, where, budget = moment(hard_rows(rng, 40, 3)), problem(40, 3), Budget(0.5, 1e-6)
    ours, plain = (
        m.release_many(data, m.calibrate(where, budget), Draws.trials(0, "same", range(4)))
        for m in (MECHANISM, Spherical())
    )
    np.testing.assert_array_equal(ours.raw, plain.raw)
    assert ours.matrix is None
    assert ours.radius is None
    assert "length one" in MECHANISM.evidence(where, budget, None)


def test_without_a_row_bound_the_claim_holds_under_both_relations() -> None:
    for relation in Relation:
        status = MECHANISM.status(problem(5_000, 5, relation), Budget(1.0, 1e-6))
        assert status.verdict is Verdict.HOLDS


# --- the radius -----------------------------------------------------------------------------------


def test_the_rank_follows_the_public_rule() -> None:
    budget = Budget(2.0, 1e-6)
    values = MECHANISM.calibrate(problem(8_000, 9, Relation.ZERO_OUT), budget).values
    mu = mu_of(budget)
    tau = 3 / (8_000 * mu)
    std = math.sqrt(4 / (0.7 * 0.05)) / mu
    assert values["tau"] == pytest.approx(tau, rel=1e-12)
    assert values["fine_std"] == pytest.approx(std, rel=1e-12)
    assert values["octave_std"] == pytest.approx(math.sqrt(6 / (0.3 * 0.05)) / mu, rel=1e-12)
    rank = 8_000 * 0.7 * 9 * tau * (1 + 25 * tau) + 1.5 * std
    assert values["rank"] == pytest.approx(rank, rel=1e-12)
    assert beyond(0.01, 10) == pytest.approx(0.0875)
    assert beyond(0.01, 500) == beyond(0.01, 80) == 0.5
    assert beyond(0.0, 10) == 0


def test_the_radius_is_the_quantile_where_counts_are_clear() -> None:
    rng = generator(4, "clipped")
    where, budget = problem(100_000, 30), Budget(1.0, 1e-6)
    lengths = np.sort(np.exp(0.7 * rng.standard_normal(100_000)))
    calibration = MECHANISM.calibrate(where, budget)
    rank, std = calibration.values["rank"], calibration.values["fine_std"]
    assert calibration.values["per_octave"] == 4
    for unit in (1.0, 1e-6, 3e5):
        radii = radii_of(unit * lengths, calibration, Draws.trials(0, "radius", range(50)))
        # The radius is the least on a grid of quarter octaves with at most `rank` longer rows.
        assert (longer(unit * lengths, radii) <= rank + 5 * std).all()
        assert (longer(unit * lengths, radii / 2**0.25) >= rank - 5 * std).all()


def test_with_little_noise_the_release_is_the_full_second_moment() -> None:
    """With little noise, even a row a thousand times longer than the median is not clipped."""
    rng = generator(5, "clipped")
    rows = rng.standard_normal((3_000, 3)) * [1.0, 0.5, 0.2]
    rows[7] = [0.0, 0.0, 2_000.0]
    data, budget = moment(rows), Budget(1e6, 1e-6)
    where = problem(3_000, 3)
    draws = Draws.batch(rng, 5)
    release = MECHANISM.release_many(data, MECHANISM.calibrate(where, budget), draws)
    assert release.matrix is not None
    assert release.radius is not None
    assert (release.radius >= 2_000).all()
    np.testing.assert_allclose(release.matrix, np.tile(data.A, (5, 1, 1)), rtol=0, atol=5)
    assert np.abs(release.components[:, 2, 0]).min() > 0.99
    # Control: at epsilon 1, many rows are clipped, and this row is one of them.
    releases = MECHANISM.release_many(data, MECHANISM.calibrate(where, Budget(1.0, 1e-6)), draws)
    assert releases.radius is not None
    assert (releases.radius < 100).all()
    assert np.abs(releases.components[:, 0, 0]).min() > 0.95


def test_rows_of_one_length_are_found() -> None:
    rows = np.tile(np.eye(4), (1_000, 1))
    where = problem(4_000, 4)
    calibration = MECHANISM.calibrate(where, Budget(1.0, 1e-6))
    radii = radii_of(np.ones(4_000), calibration, Draws.trials(0, "one", range(200)))
    assert radii.min() == 1
    # With no longer row, the radius takes a step up only if noise exceeds 1.5 deviations: 6.7 %.
    assert (radii == 1).mean() > 0.7
    release = MECHANISM.release_many(moment(rows), calibration, Draws.trials(0, "one", range(3)))
    assert release.matrix is not None
    assert np.trace(release.matrix, axis1=1, axis2=2) == pytest.approx([1.0] * 3, abs=0.01)
