"""The exact Gaussian profile agrees with 80-digit arithmetic, dp-accounting and itself."""

from __future__ import annotations

import itertools
import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given
from hypothesis import strategies as st

from dpviz.accounting.gaussian import (
    classical_std,
    delta_of,
    epsilon_of,
    log_delta,
    loss_beyond,
    mu_of,
    noise_std,
    rounding_room,
    trade_off,
)
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget

EPSILONS = (1e-4, 1e-2, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4, 1e6)
MUS = (1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.99, 1.01, 2.0, 5.0, 20.0, 100.0, 1414.0, 1e4, 1e6)
DELTAS = (5e-324, 1e-300, 1e-100, 1e-20, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-12)
PAIRS = tuple(itertools.product((0.0, *EPSILONS), MUS))
BUDGETS = tuple(Budget(*pair) for pair in itertools.product(EPSILONS, DELTAS))


def exact_log_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """Return Balle and Wang's formula as printed, with digits enough to survive cancellation."""
    a = epsilon / mu - mu / 2
    # The two terms nearly cancel, to mu * max(1, a) relative: 120 digits leave 60 or more.
    with mpmath.workdps(120):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        first = mpmath.erfc((e / m - m / 2) / mpmath.sqrt(2)) / 2
        second = mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / mpmath.sqrt(2)) / 2
        if a < 0:
            rest = mpmath.erfc(-(e / m - m / 2) / mpmath.sqrt(2)) / 2 + second
            return mpmath.log1p(-rest)
        return mpmath.log(first - second)


@pytest.mark.parametrize(("epsilon", "mu"), PAIRS)
def test_log_delta_is_right_to_rounding(epsilon: float, mu: float) -> None:
    value = log_delta(epsilon, mu)
    if value < -1e8:  # Use the leading term, log delta = -a^2/2 (1 + o(1)).
        assert value == pytest.approx(-((epsilon / mu - mu / 2) ** 2) / 2, rel=1e-6)
        return
    error = abs(mpmath.mpf(value) - exact_log_delta(epsilon, mu))
    # rounding_room allows 4 roundings for a and for b, and a few more for the rest of the formula.
    assert error <= rounding_room(epsilon, mu, value, 8) + 1e-300


def test_the_naive_formula_would_not_pass() -> None:
    epsilon, mu = 0.01, 1e-3
    naive = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
    naive -= math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
    truth = exact_log_delta(epsilon, mu)
    assert abs(mpmath.log(naive) - truth) > 100 * rounding_room(epsilon, mu, float(truth), 8)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_mu_of_is_safe_and_wastes_nothing(budget: Budget) -> None:
    mu = mu_of(budget)
    target = mpmath.log(mpmath.mpf(budget.delta))
    assert exact_log_delta(budget.epsilon, mu) <= target
    # Allowing for some tens of roundings raises the noise by less than one part in 1e11.
    assert exact_log_delta(budget.epsilon, mu * (1 + 1e-11)) > target


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_noise_std_rounds_up(budget: Budget) -> None:
    std = noise_std(budget)
    mu = mpmath.mpf(1) / mpmath.mpf(std)
    assert mu <= mu_of(budget) * (1 + mpmath.mpf(2) ** -52)
    assert exact_log_delta(budget.epsilon, 1 / std) <= mpmath.log(mpmath.mpf(budget.delta))


@pytest.mark.parametrize("factor", [math.sqrt(2), 1 / 3, 1e-7, 12345.678])
@pytest.mark.parametrize("budget", BUDGETS[::5], ids=str)
def test_a_scaled_query_never_spends_more_than_it_claimed(budget: Budget, factor: float) -> None:
    std = factor * noise_std(budget)
    epsilon = epsilon_of(budget.delta, factor / std)
    assert epsilon <= budget.epsilon
    if budget.delta <= 0.1:
        # The slope d log delta / d epsilon is at most -m(b)/(m(a) - m(b)), at worst about -1/(1 + b
        # mu). So an allowance of 48 roundings moves epsilon by less than 1e-9 of its value.
        assert epsilon == pytest.approx(budget.epsilon, rel=1e-9)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_of_is_safe_and_tight(mu: float, delta: float) -> None:
    epsilon = epsilon_of(delta, mu)
    target = mpmath.log(mpmath.mpf(delta))
    assert exact_log_delta(epsilon, mu) <= target
    if epsilon > 0 and delta <= 0.9:
        # epsilon = mu (a + mu/2), so its error is the error of a, times the size of both terms.
        step = 1e-11 * (epsilon + mu * mu / 2 + mu)
        assert epsilon - step <= 0 or exact_log_delta(epsilon - step, mu) > target


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4, 1e-2])
def test_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    sigma = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
    # dp-accounting finds sigma and epsilon with an absolute error of at most 1e-12.
    assert noise_std(budget) == pytest.approx(sigma, rel=1e-9, abs=4e-12)
    back = gaussian_mechanism.get_epsilon_gaussian(1.7, delta)
    assert epsilon_of(delta, 1 / 1.7) == pytest.approx(back, rel=1e-9, abs=4e-12)


def test_agrees_with_a_privacy_loss_distribution() -> None:
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    # dp-accounting's epsilon is too large, by at most about one step of its grid of losses.
    for delta in (1e-9, 1e-5, 1e-2):
        above = accountant.get_epsilon(delta) - epsilon_of(delta, 0.5)
        assert -1e-9 <= above <= 2e-4


def test_classical_noise_is_enough_below_one_and_not_at_ten() -> None:
    for epsilon, delta in itertools.product((0.01, 0.1, 0.5, 0.99), (1e-9, 1e-5, 1e-2)):
        budget = Budget(epsilon, delta)
        assert classical_std(budget) > noise_std(budget)
    assert classical_std(Budget(10, 1e-5)) < noise_std(Budget(10, 1e-5))
    assert classical_std(Budget(0.5, 1e-5)) == pytest.approx(2 * math.sqrt(2 * math.log(1.25e5)))


def test_mod_sulq_spends_a_small_part_of_its_claim() -> None:
    n, d, epsilon, delta = 1797, 61, 1.0, 1e-4
    log = math.log((d * d + d) / (2 * delta * math.sqrt(2 * math.pi)))
    std = (d + 1) / (n * epsilon) * math.sqrt(2 * log) + 1 / (math.sqrt(epsilon) * n)
    assert epsilon_of(delta, math.sqrt(2) / n / std) == pytest.approx(0.0064, abs=5e-5)


def test_limits() -> None:
    assert log_delta(1.0, 0.0) == -math.inf
    assert delta_of(1.0, math.inf) == 1.0
    assert epsilon_of(0.0, 0.5) == math.inf
    assert epsilon_of(1e-6, math.inf) == math.inf
    assert epsilon_of(0.0, 0.0) == 0.0
    assert epsilon_of(0.5, 0.1) == 0.0  # Even at epsilon 0, delta is only 0.04.
    # At epsilon 0, delta is the total variation distance, erf(mu / (2 sqrt 2)).
    assert delta_of(0.0, 0.7) == pytest.approx(math.erf(0.7 / (2 * math.sqrt(2))), rel=1e-14)
    assert log_delta(1e6, 1e-300) < -1e290  # Squared numbers would overflow here.


@given(st.floats(-4, 6), st.floats(-4, 6), st.floats(-12, 6), st.floats(-12, 6))
def test_delta_falls_with_epsilon_and_rises_with_mu(
    e1: float, e2: float, m1: float, m2: float
) -> None:
    small, large = sorted((10**e1, 10**e2))
    weak, strong = sorted((10**m1, 10**m2))

    def room(epsilon: float, mu: float) -> float:
        return rounding_room(epsilon, mu, log_delta(epsilon, mu), 8) + 1e-300

    for mu in (weak, strong):
        slack = room(small, mu) + room(large, mu)
        assert log_delta(large, mu) <= log_delta(small, mu) + slack
    for epsilon in (small, large):
        slack = room(epsilon, weak) + room(epsilon, strong)
        assert log_delta(epsilon, weak) <= log_delta(epsilon, strong) + slack


@given(st.floats(-4, 6), st.floats(-4, 6), st.floats(-300, -0.001), st.floats(-300, -0.001))
def test_a_larger_budget_never_needs_more_noise(e1: float, e2: float, d1: float, d2: float) -> None:
    e1, e2 = sorted((e1, e2))
    d1, d2 = sorted((d1, d2))
    tight = Budget(max(10**e1, 1e-4), 10**d1)
    loose = Budget(min(10**e2, 1e6), 10**d2)
    if loose.epsilon >= tight.epsilon:
        assert noise_std(loose) <= noise_std(tight) * (1 + 1e-11)


@given(st.floats(0, 1), st.floats(0, 30))
def test_trade_off_is_its_own_inverse_and_below_guessing(alpha: float, mu: float) -> None:
    beta = trade_off(alpha, mu)
    assert 0 <= beta <= 1 - alpha + 1e-15
    if 1e-12 < alpha < 1 - 1e-4 and 1e-12 < beta < 1 - 1e-4:
        # Phi^-1 magnifies the rounding of a beta near 1 by 1/phi, here by at most 1e4.
        assert trade_off(beta, mu) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_trade_off_and_profile_are_dual(mu: float, epsilon: float) -> None:
    # Among all tests, delta(epsilon) is the largest value of power - e^epsilon * false alarms. The
    # best test has alpha = Phi(-b), b = epsilon/mu + mu/2; any other alpha gives less.
    best = math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
    value = 1 - trade_off(best, mu) - math.exp(epsilon) * best
    assert value == pytest.approx(delta_of(epsilon, mu), rel=1e-9, abs=1e-15)
    alphas = np.linspace(0, 1, 2001)
    others = 1 - np.asarray(trade_off(alphas, mu)) - math.exp(epsilon) * alphas
    assert others.max() <= delta_of(epsilon, mu) + 1e-12


@pytest.mark.parametrize("function", [mu_of, noise_std, classical_std])
def test_gaussian_noise_needs_delta(function: object) -> None:
    assert callable(function)
    with pytest.raises(
        InvalidSetting, match=r"^delta must be above 0 and below 1 .*; got '0.0'\.$"
    ):
        function(Budget(1.0, 0.0))


@pytest.mark.parametrize(
    ("epsilon", "delta", "times"),
    [(1.0, 1e-4, 12.3), (1.0, 1e-5, 16.1), (0.5, 1e-5, 28.6), (0.1, 1e-5, 111)],
)
def test_losses_beyond_epsilon_are_many_times_delta(
    epsilon: float, delta: float, times: float
) -> None:
    """Theory 12.2 holds to the printed digits."""
    mu = mu_of(Budget(epsilon, delta))
    assert loss_beyond(epsilon, mu) / delta == pytest.approx(times, rel=5e-3)
    # The privacy loss is N(mu^2/2, mu^2), and delta is the mean of (1 - e^(epsilon - loss))_+.
    x = np.linspace(epsilon, mu**2 / 2 + 12 * mu, 200_001)
    gains = -np.expm1(epsilon - x) * np.exp(-((x - mu**2 / 2) ** 2) / (2 * mu**2))
    mean = gains.sum() * (x[1] - x[0]) / (mu * math.sqrt(2 * math.pi))
    assert mean == pytest.approx(delta, rel=1e-4)
