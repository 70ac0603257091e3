"""A balanced guesser's success agrees with trade-off curves computed by other code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpviz.accounting.accounting import Spent, spent
from dpviz.accounting.gaussian import mu_of, trade_off
from dpviz.accounting.profiles import GaussianSketch, WishartNoise
from dpviz.auditing.attack import both_worlds
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.quantity import Kind
from dpviz.mechanisms import all_mechanisms


def gaussian(mu: float) -> Spent:
    return spent([GaussianPart(mu, 1.0)], Budget(1.0, 1e-6))


@pytest.mark.parametrize("mu", [1e-3, 0.268, 1.0, 6.0])
def test_gaussian_noise_is_where_the_trade_off_curve_meets_the_diagonal(mu: float) -> None:
    fixed_point = optimize.brentq(lambda a: float(trade_off(a, mu)) - a, 1e-12, 0.5)
    worlds = both_worlds(gaussian(mu))
    assert worlds.rest.value == pytest.approx(fixed_point, abs=1e-11)
    assert worlds.rest.value == pytest.approx(float(stats.norm.cdf(-mu / 2)), abs=1e-14)
    assert worlds.value == 1 - worlds.rest.value


def test_the_stated_numbers() -> None:
    """Theory 12.6: at pure epsilon 1, 27 and 73 of 100; at (1, 1e-5), 45 and 55 of 100."""
    pure = both_worlds(spent([LaplacePart(1.0, 1.0)], Budget(1.0)))
    assert pure.rest.value == pytest.approx(1 / (1 + math.e))
    assert (pure.rest.of_hundred(), pure.of_hundred()) == ("26", "74")
    assert pure.kind is Kind.UPPER_BOUND
    mu = mu_of(Budget(1.0, 1e-5))
    assert mu == pytest.approx(0.268, abs=5e-4)
    mild = both_worlds(gaussian(mu))
    assert (mild.rest.of_hundred(), mild.of_hundred()) == ("45", "55")
    assert mild.kind is Kind.MEASUREMENT


def test_what_composes_is_told_apart_no_better_than_its_parts_allow() -> None:
    budget = Budget(2.0, 1e-3)
    parts = [GaussianPart(0.3, 1.0), PurePart(0.5, "because")]
    both = both_worlds(spent(parts, budget))
    alone = [both_worlds(spent([part], budget)) for part in parts]
    assert both.rest.value < min(one.rest.value for one in alone)
    # The total variation of two releases together is at most the sum of both total variations.
    assert 2 * both.value - 1 <= sum(2 * one.value - 1 for one in alone) + 1e-12
    failing = both_worlds(spent([*parts, ApproximatePart(0.0, 0.01, "because")], Budget(2.0, 0.1)))
    assert both.rest.value - 0.01 <= failing.rest.value < both.rest.value


@pytest.mark.parametrize("relation", Relation)
def test_a_profile_is_read_at_epsilon_zero(relation: Relation) -> None:
    for profile in (WishartNoise(40.0), GaussianSketch(50, 20.0)):
        assert profile.delta(relation, 0.0) > 0
    # Under zero-out, compute the total variation from the densities of both chi-squares.
    x = np.linspace(-1, 400, 2_000_001)
    gap = np.abs(stats.chi2(40).pdf(x) - stats.chi2(40, loc=-1).pdf(x))
    apart = 0.5 * float(gap.sum()) * (x[1] - x[0])
    assert WishartNoise(40.0).delta(Relation.ZERO_OUT, 0.0) == pytest.approx(apart, rel=1e-4)


def test_a_mere_epsilon_and_delta_bound_the_guess() -> None:
    worlds = both_worlds(Spent(1.0, 0.1, False, "said so"))
    assert worlds.rest.value == pytest.approx(0.9 / (1 + math.e))
    # The result is the equal-error point on the trade-off curve of Kairouz, Oh & Viswanath.
    assert max(
        1 - 0.1 - math.e * worlds.rest.value, (1 - 0.1 - worlds.rest.value) / math.e
    ) == pytest.approx(worlds.rest.value)


def test_every_mechanism_has_a_guess_no_better_than_its_own_epsilon_allows() -> None:
    problem, budget = Problem(500, 5, 2, Relation.REPLACE, Domain.ball(5)), Budget(0.9, 1e-6)
    for cls in all_mechanisms().values():
        mechanism = cls()
        if mechanism.why_not(problem, budget) is not None:
            continue
        account = mechanism.spent(problem, budget)
        worlds = both_worlds(account)
        assert 0.5 <= worlds.value <= 1
        if account is not None and math.isfinite(account.epsilon):
            least = (1 - account.delta) / (1 + math.exp(account.epsilon))
            assert worlds.rest.value >= least * (1 - 1e-12), mechanism.key
