from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import mu_of
from dpviz.auditing import attack
from dpviz.core.allocation import parse_allocation
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import generator
from dpviz.mechanisms import parse_variant
from dpviz.report.sentences.claims import beyond_words, sentence

PROBLEM = Problem(100, 4, 2, Relation.REPLACE, Domain.ball(4))
PROBABILITIES = st.floats(0, 1)


def test_the_gaussian_curve() -> None:
    curve = attack.gaussian_curve(1.5, np.array([0.0, 0.05, 0.5, 1.0]))
    expected = norm.cdf(norm.ppf(1 - curve.alpha) - 1.5)
    np.testing.assert_allclose(curve.beta, expected, atol=1e-14)
    assert curve.exact


def test_the_pure_region_is_that_of_randomised_response() -> None:
    epsilon = 1.2
    corner = 1 / (1 + math.exp(epsilon))
    curve = attack.bounded_curve(Budget(epsilon), np.array([0.0, corner, 1.0]))
    np.testing.assert_allclose(curve.beta, [1.0, corner, 0.0], atol=1e-15)


@given(epsilon=st.floats(1e-3, 20), delta=st.floats(0, 0.5), alpha=PROBABILITIES)
def test_no_test_beats_guessing_by_more_than_the_guarantee(
    epsilon: float, delta: float, alpha: float
) -> None:
    (beta,) = attack.bounded_curve(Budget(epsilon, delta), np.array([alpha])).beta
    assert 0 <= beta <= 1 - alpha + 1e-12
    assert alpha * math.exp(epsilon) + beta >= 1 - delta - 1e-9
    assert math.exp(epsilon) * beta + alpha >= 1 - delta - 1e-9


def test_curves_of_mechanisms() -> None:
    gaussian = attack.curve(parse_variant("gaussian"), PROBLEM, Budget(1.0, 1e-5))
    assert gaussian.exact
    # The exact trade-off curve lies above the bound that (epsilon, delta) alone gives.
    region = attack.bounded_curve(Budget(1.0, 1e-5))
    assert (gaussian.beta >= region.beta - 1e-12).all()
    pure = attack.curve(parse_variant("wishart_difference"), PROBLEM, Budget(1.0))
    assert not pure.exact
    np.testing.assert_allclose(pure.beta, attack.bounded_curve(Budget(1.0)).beta, atol=1e-12)
    broken = attack.curve(parse_variant("wishart"), PROBLEM, Budget(1.0))
    assert not broken.beta.any()
    blind = attack.curve(parse_variant("random_projection"), PROBLEM, Budget(1.0))
    np.testing.assert_allclose(blind.beta, 1 - blind.alpha)


def test_a_bounded_sensitivity_gives_a_bound_on_the_attacker() -> None:
    """With rotated directions on a box, the curve is Gaussian and reported as a bound."""
    problem = replace(PROBLEM, domain=Domain.box(PROBLEM.d))
    problem = replace(problem, allocation=parse_allocation("uniform", "private:0.2"))
    curve = attack.curve(parse_variant("directional_gaussian"), problem, Budget(1.0, 1e-5))
    assert not curve.exact
    assert "at most" in curve.source
    claim = attack.gaussian_curve(mu_of(Budget(1.0, 1e-5)))
    np.testing.assert_allclose(curve.beta, claim.beta, atol=1e-9)


def test_what_exceeds_epsilon_is_not_said_to_be_delta() -> None:
    budget = Budget(1.0, 1e-5)
    one = parse_variant("gaussian").spent(PROBLEM, budget)
    assert one is not None
    assert "probability 0.00016, 16 times delta" in beyond_words(one)
    text = sentence(budget, one)
    assert "0.00016" in text
    assert "of the order of" not in text
    loss = Spent(1.0, 1e-5, False, "said so")
    assert "+ t with probability at most 1e-5/(1 - e^-t)" in beyond_words(loss)
    assert "1.6e-5 for t = 1" in beyond_words(loss)


@given(prior=PROBABILITIES, epsilon=st.floats(1e-3, 10))
def test_pure_privacy_caps_the_posterior_at_every_level(prior: float, epsilon: float) -> None:
    curve = attack.bounded_curve(Budget(epsilon))
    after = attack.posterior_curve(prior, curve)
    assert (after <= attack.posterior_bound(prior, epsilon) + 1e-9).all()


def test_a_gaussian_alarm_can_convince_where_pure_privacy_cannot() -> None:
    curve = attack.gaussian_curve(1.0, np.array([1e-6, 0.1, 1.0]))
    after = attack.posterior_curve(0.5, curve)
    assert after[0] > after[1] > after[2] == 0.5
    power = 1 - norm.cdf(norm.ppf(0.9) - 1.0)
    assert after[1] == pytest.approx(power / (power + 0.1))
    assert attack.posterior(0.2, 0.0, 1.0) == 0.2


def test_how_often_the_bound_of_a_delta_can_be_exceeded() -> None:
    assert attack.excess_probability(1.0, 0.0, 0.5) == 0
    assert attack.excess_probability(1.0, 1e-5, math.log(2)) == pytest.approx(2e-5)
    assert attack.excess_probability(1.0, 0.5, 0.1) == 1
    with pytest.raises(InvalidSetting):
        attack.excess_probability(1.0, 1e-5, 0.0)
    # Gaussian noise has loss ~ N(mu^2/2, mu^2); its tail P(loss > epsilon + x) is below the bound.
    mu, epsilon = 1.0, 1.0
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.e * norm.cdf(-mu / 2 - epsilon / mu)
    for beyond in (0.1, 0.5, 1.0):
        share = norm.sf((epsilon + beyond - mu**2 / 2) / mu)
        assert share <= attack.excess_probability(epsilon, delta, beyond)


@pytest.mark.parametrize("simultaneous", [True, False])
def test_the_empirical_band_holds_the_truth(simultaneous: bool) -> None:
    """The band of scores N(1, 1) and N(0, 1) holds the true Gaussian curve with mu = 1.

    At confidence 1 - 1e-9 the simultaneous band fails with probability 1e-9. The pointwise band,
    tested at 9 levels, fails with 9e-9.
    """
    rng = generator(0, "test")
    inside, outside = rng.standard_normal(5_000) + 1, rng.standard_normal(4_000)
    levels = np.linspace(0.1, 0.9, 9)
    curve = attack.empirical_curve(
        inside, outside, levels, confidence=1 - 1e-9, simultaneous=simultaneous
    )
    truth = attack.gaussian_curve(1.0, levels).beta
    assert (curve.low <= truth).all()
    assert (truth <= curve.high).all()
    assert (curve.low <= curve.beta).all()
    assert (curve.beta <= curve.high).all()
    assert (curve.high - curve.low).max() < 0.4
    # Control: the band detects a curve of twice the signal, because this curve leaves the band.
    assert (attack.gaussian_curve(2.0, levels).beta < curve.low).any()


def test_an_empirical_curve_at_the_ends() -> None:
    curve = attack.empirical_curve(np.full(1_000, 1.0), np.zeros(1_000), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(curve.beta, 0)
    assert curve.high[0] == 1  # No threshold surely avoids all false alarms.
    assert curve.high[1] < 0.1
    nothing = attack.empirical_curve(np.zeros(1_000), np.zeros(1_000), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(nothing.beta, [1, 1, 0])
    with pytest.raises(InvalidSetting):
        attack.empirical_curve(np.zeros(0), np.zeros(3))
    with pytest.raises(InvalidSetting):
        attack.empirical_curve(np.zeros(3), np.zeros(3), confidence=1.0)
