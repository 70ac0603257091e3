"""Composed losses, zCDP and Renyi accounting agree with dp-accounting and closed forms."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.accounting.accounting import composition_of
from dpviz.accounting.composition import (
    composed,
    epsilon_of_rho,
    gdp_of,
    renyi_of,
    renyi_of_laplace,
    renyi_of_pure,
    rho_meeting,
    rho_of,
    rho_of_laplace,
    rho_of_pure,
    rho_of_range,
)
from dpviz.accounting.gaussian import delta_of, epsilon_of, trade_off
from dpviz.core.errors import InvalidSetting
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, PurePart


@pytest.mark.parametrize(("epsilon", "releases"), [(1.0, 1), (1.0, 10), (0.1, 50), (2.0, 5)])
def test_laplace_noise_composes_as_dp_accounting_says(epsilon: float, releases: int) -> None:
    other = pld.from_laplace_mechanism(
        1 / epsilon, value_discretization_interval=1e-4
    ).self_compose(releases)
    ours = composed([LaplacePart(epsilon, 1.0)], releases)
    for at in (0.3, 0.5, 1.0, 2.0):
        assert ours.delta(at) == pytest.approx(other.get_delta_for_epsilon(at), rel=1e-4, abs=1e-9)
    assert ours.epsilon(1e-6) == pytest.approx(other.get_epsilon_for_delta(1e-6), rel=1e-4)


def test_a_laplace_and_a_gaussian_part_compose_as_dp_accounting_says() -> None:
    other = (
        pld.from_laplace_mechanism(1 / 0.3)
        .self_compose(7)
        .compose(pld.from_gaussian_mechanism(2 / math.sqrt(7)))
    )
    ours = composed([LaplacePart(0.3, 1.0), GaussianPart(0.5, 1.0)], 7)
    assert ours.delta(1.0) == pytest.approx(other.get_delta_for_epsilon(1.0), rel=1e-4)
    assert ours.epsilon(1e-6) == pytest.approx(other.get_epsilon_for_delta(1e-6), rel=1e-4)


def test_repeated_randomised_response_is_a_binomial() -> None:
    """For k losses of +e or -e, delta is a sum over the number of +e, computed term by term."""
    e, k, at = 0.4, 12, 1.1
    p = 1 / (1 + math.exp(-e))
    exact = sum(
        math.comb(k, i) * p**i * (1 - p) ** (k - i) * max(0.0, 1 - math.exp(at - (2 * i - k) * e))
        for i in range(k + 1)
    )
    ours = composed([PurePart(e, "x")], k).delta(at)
    assert exact <= ours <= exact * (1 + 1e-9) + 2e-12


def test_laplace_noise_in_many_coordinates_is_never_worse_than_in_one() -> None:
    whole = composed([LaplacePart(1.0, 1.0)])
    for split in ((0.5, 0.5), (0.8, 0.2), (0.25,) * 4):  # All shares lie on one grid of losses.
        parts = [LaplacePart(share, 1.0) for share in split]
        for at in np.linspace(0.0, 1.0, 11):
            assert composed(parts).delta(float(at)) <= whole.delta(float(at)) + 3e-12
    # Control: a sensitivity that is 5 % larger gives a larger delta.
    assert composed([LaplacePart(1.05, 1.0)]).delta(0.5) > whole.delta(0.5) * 1.01


def test_gaussian_parts_stay_in_closed_form() -> None:
    loss = composed([GaussianPart(0.3, 1.0), GaussianPart(0.4, 1.0)], 4)
    assert loss.delta(1.0) == pytest.approx(delta_of(1.0, 1.0), rel=1e-9)
    assert composition_of([GaussianPart(0.5, 1.0)], 4).epsilon(1e-6) == pytest.approx(
        epsilon_of(1e-6, 1.0), rel=1e-14
    )


def test_a_part_that_may_fail_fails_in_each_release() -> None:
    loss = composed([ApproximatePart(0.5, 1e-3, "x")], 3)
    assert loss.failing == pytest.approx(1 - (1 - 1e-3) ** 3, rel=1e-9)
    assert loss.epsilon(1e-3) == math.inf
    assert rho_of([ApproximatePart(0.5, 1e-3, "x")]) is None
    assert gdp_of([ApproximatePart(0.5, 1e-3, "x")]) is None


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.01, 2.0), min_size=1, max_size=4),
    st.integers(1, 20),
    st.floats(1e-8, 1e-2),
)
def test_composition_lies_between_one_release_and_basic(
    epsilons: list[float], releases: int, delta: float
) -> None:
    parts = [PurePart(epsilon, "x") for epsilon in epsilons]
    basic = releases * sum(epsilons)
    composite = composition_of(parts, releases).epsilon(delta)
    # Privacy losses are rounded up to a grid, so allow one grid step for each part and release.
    step = max(epsilons) / max(1, int(2**17 * max(epsilons) / (2 * releases * sum(epsilons))))
    assert composite <= basic + releases * len(parts) * min(step, max(epsilons))
    assert composite >= composition_of(parts).epsilon(delta) * (1 - 1e-9) - 1e-9


def test_zcdp_to_epsilon_against_dp_accounting() -> None:
    # The zCDP theory gives epsilon 3.19, and the exact Gaussian profile gives epsilon 2.94.
    assert epsilon_of_rho(0.25, 1e-5) == pytest.approx(3.19, abs=0.005)
    assert epsilon_of(1e-5, math.sqrt(0.5)) == pytest.approx(2.94, abs=0.005)
    for rho in (1e-4, 0.02, 0.5, 3.0):
        for delta in (1e-9, 1e-6, 1e-3):
            accountant = rdp.RdpAccountant(orders=list(1 + np.geomspace(1e-3, 1e4, 4000)))
            accountant.compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
            other = accountant.get_epsilon(delta)
            assert epsilon_of_rho(rho, delta) == pytest.approx(other, rel=1e-3, abs=1e-6)
            assert epsilon_of_rho(rho, delta) >= epsilon_of(delta, math.sqrt(2 * rho))


def test_rho_meeting_lands_on_the_safe_side() -> None:
    for epsilon in (1e-3, 0.1, 1.0, 10.0, 300.0):
        for delta in (1e-10, 1e-6, 1e-2):
            rho = rho_meeting(epsilon, delta)
            assert epsilon_of_rho(rho, delta) <= epsilon
            assert epsilon_of_rho(rho * (1 + 1e-6), delta) > epsilon
    with pytest.raises(InvalidSetting, match="delta must be above 0"):
        epsilon_of_rho(1.0, 0.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 20.0])
def test_rho_bounds_the_renyi_divergence_at_every_order(epsilon: float) -> None:
    orders = 1 + np.geomspace(1e-3, 1e3, 300)
    for rho, divergence in (
        (rho_of_laplace(epsilon), renyi_of_laplace),
        (rho_of_pure(epsilon), renyi_of_pure),
    ):
        ratios = np.array([divergence(epsilon, float(order)) / order for order in orders])
        # Allow 1e-12/(order - 1) for the rounding error of a Renyi divergence.
        assert (ratios <= rho * (1 + 1e-9) + 1e-12 / (orders - 1)).all()
        assert ratios[0] > 0.99 * rho  # No smaller rho is valid at order 1.


def test_renyi_of_laplace_as_dp_accounting_has_it() -> None:
    accountant = rdp.RdpAccountant(orders=[2, 4, 16])
    accountant.compose(dp_accounting.LaplaceDpEvent(1 / 0.7))
    values = [renyi_of([LaplacePart(0.7, 1.0)], order) for order in (2, 4, 16)]
    assert values == pytest.approx(list(accountant._rdp), rel=1e-9)


def _range_pair(width: float, top: float) -> tuple[float, float]:
    """Return P and Q of the output with loss top, for losses top and top - width."""
    share = (math.exp(width - top) - 1) / (math.exp(width - top) - math.exp(-top))
    return share, share * math.exp(-top)


@pytest.mark.parametrize("width", [0.1, 1.0, 3.0])
def test_a_bounded_range_is_an_eighth_of_its_square(width: float) -> None:
    """Every two-point loss with this range has a divergence of at most order width^2/8."""
    rho = rho_of_range(width)
    assert rho <= width**2 / 8
    closest = 0.0
    for top in np.linspace(0.02, 0.98, 49) * width:
        p, q = _range_pair(width, float(top))
        for order in (1.0001, 1.5, 2.0, 5.0, 20.0):
            divergence = math.log(
                p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
            )
            ratio = divergence / (order - 1) / order
            assert ratio <= rho * (1 + 1e-6)
            closest = max(closest, ratio / rho)
    assert closest > 0.85  # Half of this rho would not be valid.
    pure, by_range = PurePart(width, "x"), PurePart(width, "x", width=width)
    assert rho_of([by_range]) == rho < rho_of([pure])
    assert renyi_of([by_range], 2.0) <= renyi_of([pure], 2.0)


def test_gdp_of_a_pure_bound_touches_its_trade_off_function() -> None:
    mu = gdp_of([PurePart(1.0, "x")])
    assert mu is not None
    # The trade-off curve's fixed point: Phi(-mu/2) for a Gaussian, 1/(1 + e) for pure privacy.
    assert 0.5 * math.erfc(mu / 2 / math.sqrt(2)) == pytest.approx(1 / (1 + math.e), rel=1e-12)
    for epsilon in np.linspace(0.0, 1.0, 21):
        pure = max(0.0, (math.e - math.exp(epsilon)) / (1 + math.e))
        assert delta_of(float(epsilon), mu) >= pure * (1 - 1e-12)
    assert gdp_of([GaussianPart(0.6, 1.0), GaussianPart(0.8, 1.0)]) == pytest.approx(1.0)


@pytest.mark.parametrize("width", [0.05, 0.7, 3.0, 12.0])
def test_gdp_of_a_bounded_range_lies_below_it_wherever_it_lies(width: float) -> None:
    """Gaussian noise of this mu has at least each two-point law's delta, and attains one."""
    mu = gdp_of([PurePart(width, "x", width=width)])
    assert mu is not None
    assert mu < gdp_of([PurePart(width, "x")])  # type: ignore[operator]
    touch = 0.0
    for top in np.linspace(0.01, 0.99, 99) * width:
        p, q = _range_pair(width, float(top))
        # The trade-off curve of the two-point law has a corner: false alarms q, misses 1 - p.
        miss = float(trade_off(q, mu))
        assert miss <= (1 - p) * (1 + 1e-9)
        touch = max(touch, miss / (1 - p))
    assert touch > 1 - 1e-9


def test_too_many_releases_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="whole number from 1 to 100,000"):
        composed([PurePart(1.0, "x")], 0)
