"""The accounting of release steps agrees with dp-accounting, and has the right limits."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent, greatest_mu_beside, spent
from dpviz.accounting.gaussian import delta_of, epsilon_of, noise_std
from dpviz.core.errors import InvalidSetting
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, Part, PurePart
from dpviz.core.problem import Budget

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0)
DELTAS = (1e-9, 1e-6, 1e-4, 1e-2)
GRID = tuple(Budget(*pair) for pair in itertools.product(EPSILONS, DELTAS))
INTERVAL = 1e-4  # INTERVAL is the grid step of privacy losses in dp-accounting.


@pytest.mark.parametrize("budget", GRID, ids=str)
def test_gaussian_part_against_dp_accounting(budget: Budget) -> None:
    std = 3.5 * noise_std(budget)
    result = spent([GaussianPart(3.5, std)], budget)
    assert result.exact
    assert result.delta == budget.delta
    # Calibration and accounting differ in method; the result is at most 1e-9 below the claim.
    assert budget.epsilon * (1 - 1e-9) <= result.epsilon <= budget.epsilon
    assert result.delta_at_epsilon is not None
    assert budget.delta * (1 - 1e-9) <= result.delta_at_epsilon <= budget.delta
    theirs = gaussian_mechanism.get_epsilon_gaussian(std / 3.5, budget.delta)
    assert result.epsilon == pytest.approx(theirs, rel=1e-9, abs=4e-12)


@pytest.mark.parametrize("budget", GRID, ids=str)
def test_too_little_noise_is_seen(budget: Budget) -> None:
    result = spent([GaussianPart(1.0, 0.99 * noise_std(budget))], budget)
    assert result.epsilon > budget.epsilon
    assert result.delta_at_epsilon is not None
    assert result.delta_at_epsilon > budget.delta


def test_adaptive_gaussian_steps_compose_exactly() -> None:
    parts = [GaussianPart(1.0, 2.0), GaussianPart(3.0, 10.0), GaussianPart(0.5, 5.0)]
    mu = math.sqrt(0.25 + 0.09 + 0.01)
    for budget in GRID:
        result = spent(parts, budget)
        assert not result.exact  # The worst neighbours of two queries may differ.
        assert spent(parts[:1], budget).exact
        assert result.epsilon == pytest.approx(epsilon_of(budget.delta, mu), rel=1e-12)
        assert result.delta_at_epsilon == pytest.approx(delta_of(budget.epsilon, mu), rel=1e-12)
    assert "3 adaptive steps" in result.source
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        2.0, value_discretization_interval=INTERVAL
    ).compose(
        privacy_loss_distribution.from_gaussian_mechanism(
            10 / 3, value_discretization_interval=INTERVAL
        )
    )
    two = spent(parts[:2], Budget(1.0, 1e-6))
    # dp-accounting rounds losses up: its epsilon is too large by at most one grid step per part.
    above = theirs.get_epsilon_for_delta(1e-6) - two.epsilon
    assert -1e-9 <= above <= 2 * INTERVAL


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_part_against_dp_accounting(epsilon: float) -> None:
    part = LaplacePart(2.5, 2.5 / epsilon)
    result = spent([part], Budget(epsilon, 1e-6))
    assert result.exact
    assert result.delta == 0
    assert result.epsilon == pytest.approx(epsilon, rel=1e-15)
    theirs = privacy_loss_distribution.from_laplace_mechanism(
        1 / epsilon, value_discretization_interval=INTERVAL
    )
    # The exact Laplace epsilon at delta 1e-9 is epsilon + 2 ln(1 - 1e-9). dp-accounting gives at
    # most one grid step more. At delta 0 it gives infinity, because it cuts the tails.
    above = theirs.get_epsilon_for_delta(1e-9) - result.epsilon
    assert -3e-9 <= above <= INTERVAL
    # At a smaller epsilon, the delta bound holds for any mechanism with this pure epsilon.
    half = spent([part], Budget(epsilon / 2, 1e-6)).delta_at_epsilon
    assert half is not None
    assert half >= theirs.get_delta_for_epsilon(epsilon / 2 + INTERVAL)


@pytest.mark.parametrize("pure", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_pure_with_gaussian_against_dp_accounting(pure: float, mu: float) -> None:
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=INTERVAL
    ).compose(
        privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(pure, 0), value_discretization_interval=INTERVAL
        )
    )
    parts = [PurePart(pure, "exponential mechanism"), GaussianPart(mu, 1.0)]
    for delta in (1e-9, 1e-6, 1e-3):
        result = spent(parts, Budget(1.0, delta))
        assert not result.exact
        assert -1e-9 <= theirs.get_epsilon_for_delta(delta) - result.epsilon <= 2 * INTERVAL
        # Adding all epsilons is an upper bound; leaving out the pure part is a lower bound.
        assert result.epsilon <= pure + epsilon_of(delta, mu)
        assert result.epsilon >= epsilon_of(delta, mu)
    for epsilon in (pure / 3, pure, 3 * pure):
        at = spent(parts, Budget(epsilon, 1e-6)).delta_at_epsilon
        assert at is not None
        # The grid can change dp-accounting's result as much as moving epsilon by 2 grid steps. It
        # also adds 1e-15 for each tail that it cuts, and rounds sums of numbers up to 1.
        assert theirs.get_delta_for_epsilon(epsilon + 2 * INTERVAL) - 1e-13 <= at
        assert at <= theirs.get_delta_for_epsilon(epsilon) * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("epsilon", [0.02, 0.4, 0.5, 1.0, 5.0])
def test_mixture_against_the_expectation_it_stands_for(epsilon: float) -> None:
    # delta is E max(0, 1 - exp(epsilon - loss)); the loss is +-pure plus N(mu^2/2, mu^2).
    pure, mu = 0.5, 0.7
    with mpmath.workdps(40):
        heads = mpmath.exp(pure) / (1 + mpmath.exp(pure))
        total = mpmath.mpf(0)
        for probability, shift in ((heads, pure), (1 - heads, -pure)):
            start = mpmath.mpf(epsilon) - shift

            def gain(loss: mpmath.mpf, start: mpmath.mpf = start) -> mpmath.mpf:
                density = mpmath.npdf(loss, mpmath.mpf(mu) ** 2 / 2, mu)
                return density * -mpmath.expm1(start - loss)

            points = [start + step * mu for step in (0, 1, 2, 4, 8, 16, 32)]
            total += probability * mpmath.quad(gain, points)
    at = spent([PurePart(pure, "x"), GaussianPart(mu, 1.0)], Budget(epsilon, 1e-6))
    # The delta is rounded up, to allow for 16 roundings of numbers of at most 20 each.
    assert at.delta_at_epsilon == pytest.approx(float(total), rel=1e-13)
    assert at.delta_at_epsilon is not None
    assert at.delta_at_epsilon >= float(total)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "failing"), [(0.3, 1e-7), (1.0, 1e-4), (0.0, 1e-3)])
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.5])
def test_a_part_that_may_fail_against_dp_accounting(
    epsilon: float, failing: float, mu: float
) -> None:
    theirs = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, failing),
        value_discretization_interval=INTERVAL,
    )
    parts: list[Part] = [ApproximatePart(epsilon, failing, "a black box")]
    if mu > 0:
        theirs = theirs.compose(
            privacy_loss_distribution.from_gaussian_mechanism(
                1 / mu, value_discretization_interval=INTERVAL
            )
        )
        parts.append(GaussianPart(mu, 1.0))
    for delta in (2 * failing, 30 * failing):
        result = spent(parts, Budget(1.0, delta))
        assert not result.exact
        assert result.delta == delta
        # dp-accounting's epsilon is too large, by at most one grid step for each distribution.
        assert -1e-9 <= theirs.get_epsilon_for_delta(delta) - result.epsilon <= 2 * INTERVAL
    for at in (0.05, 0.5, 2.0):
        ours = spent(parts, Budget(at, 0.5)).delta_at_epsilon
        assert ours is not None
        assert theirs.get_delta_for_epsilon(at + 2 * INTERVAL) - 1e-13 <= ours
        assert ours <= theirs.get_delta_for_epsilon(at) * (1 + 1e-9) + 1e-13
        assert ours >= failing
    # No epsilon has a delta below the failure probability. Without noise, no epsilon is enough.
    assert spent(parts, Budget(1.0, 0.99 * failing)).epsilon == math.inf
    assert spent([*parts, GaussianPart(1.0, 0.0)], Budget(1.0, 0.5)).epsilon == math.inf


def test_failures_add_up_and_zero_of_them_is_pure() -> None:
    twice = spent([ApproximatePart(0.2, 1e-3, "x"), ApproximatePart(0.3, 2e-3, "y")], Budget(9, 0))
    together = 0.002998  # The failure probability is 1 - 0.999 * 0.998.
    assert twice.delta_at_epsilon == pytest.approx(together, rel=1e-12)
    assert twice.delta_at_epsilon is not None
    assert twice.delta_at_epsilon >= together
    assert twice.source == "x + y"
    never = spent([ApproximatePart(0.5, 0.0, "x")], Budget(1.0, 0.0))
    assert never.epsilon == spent([PurePart(0.5, "x")], Budget(1.0)).epsilon


PARTS: tuple[tuple[Part, ...], ...] = (
    (),
    (GaussianPart(0.1, 1.0), GaussianPart(0.05, 1.0)),
    (PurePart(0.0, "x"),),
    (PurePart(0.2, "x"),),
    (LaplacePart(1.0, 10.0), GaussianPart(0.1, 1.0)),
    (ApproximatePart(0.2, 1e-7, "x"),),
    (ApproximatePart(0.2, 1e-7, "x"), PurePart(0.1, "y"), GaussianPart(0.1, 1.0)),
)


@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_one_more_gaussian_part_uses_what_is_left_and_no_more(parts: tuple[Part, ...]) -> None:
    for budget in (Budget(1.0, 1e-6), Budget(1.5, 1e-5), Budget(8.0, 1e-3)):
        mu = greatest_mu_beside(parts, budget)
        assert mu > 0
        result = spent((*parts, GaussianPart(mu, 1.0)), budget)
        assert result.epsilon <= budget.epsilon
        assert result.delta_at_epsilon is not None
        assert result.delta_at_epsilon <= budget.delta
        # Control: a mu that is larger by a millionth exceeds the privacy budget.
        more = spent((*parts, GaussianPart(mu * (1 + 1e-6), 1.0)), budget)
        assert more.epsilon > budget.epsilon


def test_pure_parts_add() -> None:
    parts = [
        PurePart(0.25, "matrix Laplace"),
        LaplacePart(1.0, 2.0),
        PurePart(0.5, "matrix Laplace"),
    ]
    result = spent(parts, Budget(1.0, 1e-6))
    assert result.epsilon == pytest.approx(1.25, rel=1e-15)
    assert result.epsilon >= 1.25
    assert result.delta == 0
    assert not result.exact
    assert result.source == "matrix Laplace + Laplace noise"
    # At epsilon 1, the pure bound of 1.25 has the delta of randomised response with epsilon 1.25.
    p = math.exp(1.25) / (1 + math.exp(1.25))
    assert result.delta_at_epsilon == pytest.approx(p - math.e * (1 - p), rel=1e-12)
    assert spent(parts, Budget(1.3)).delta_at_epsilon == 0


def test_one_pure_part_is_reported_as_stated() -> None:
    bound = spent([PurePart(0.3, "exponential mechanism")], Budget(0.3))
    assert bound == Spent(0.3, 0.0, False, "exponential mechanism", 0.0)
    assert spent([PurePart(0.3, "matrix Laplace", attained=True)], Budget(0.3)).exact


def test_nothing_costs_nothing_and_no_noise_costs_everything() -> None:
    budget = Budget(1.0, 1e-6)
    nothing = spent([], budget)
    assert (nothing.epsilon, nothing.delta, nothing.exact) == (0.0, 0.0, True)
    assert spent([GaussianPart(0.0, 1.0), LaplacePart(0.0, 0.0)], budget).epsilon == 0
    for part in (GaussianPart(1.0, 0.0), LaplacePart(1.0, 0.0), PurePart(math.inf, "no noise")):
        result = spent([part], budget)
        assert result.epsilon == math.inf
        assert result.delta_at_epsilon == 1.0
        mix = spent([part, GaussianPart(1.0, 1.0), PurePart(1.0, "exponential")], budget)
        assert mix.epsilon == math.inf
        assert mix.delta_at_epsilon == 1.0


def test_gaussian_noise_at_delta_zero_has_no_epsilon() -> None:
    assert spent([GaussianPart(1.0, 10.0)], Budget(1.0)).epsilon == math.inf
    assert spent([GaussianPart(1.0, 10.0), PurePart(1.0, "x")], Budget(1.0)).epsilon == math.inf


@given(st.floats(-3, 2), st.floats(-3, 2), st.floats(-12, -0.5))
def test_mixture_stays_between_its_bounds(log_pure: float, log_mu: float, log_delta: float) -> None:
    pure, mu, delta = 10**log_pure, 10**log_mu, 10**log_delta
    parts = [PurePart(pure, "x"), GaussianPart(mu, 1.0)]
    result = spent(parts, Budget(1.0, delta))
    gaussian = epsilon_of(delta, mu)
    assert gaussian * (1 - 1e-9) <= result.epsilon <= (pure + gaussian) * (1 + 1e-15)
    if 1e-4 <= result.epsilon <= 1e6:
        again = spent(parts, Budget(result.epsilon, delta)).delta_at_epsilon
        assert again is not None
        assert again <= delta * (1 + 1e-12)  # Here delta comes from a rounded logarithm.


def test_parts_are_frozen_and_refuse_nonsense() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PurePart(1.0, "x").epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(InvalidSetting, match=r"^sensitivity must be"):
        GaussianPart(math.inf, 1.0)
    with pytest.raises(InvalidSetting, match=r"^std must be"):
        GaussianPart(1.0, math.nan)
    with pytest.raises(InvalidSetting, match=r"^scale must be"):
        LaplacePart(1.0, -1.0)
    with pytest.raises(InvalidSetting, match=r"^epsilon of a noise part must be"):
        PurePart(math.nan, "x")
    with pytest.raises(InvalidSetting, match=r"^epsilon of a noise part must be"):
        ApproximatePart(-1.0, 0.1, "x")
    with pytest.raises(InvalidSetting, match=r"^delta of a noise part must be"):
        ApproximatePart(1.0, 1.0, "x")
    with pytest.raises(InvalidSetting, match=r"^budget must be above the loss of other noise part"):
        greatest_mu_beside([PurePart(2.0, "x")], Budget(1.0, 1e-6))


# --- a bounded range beside Gaussian noise --------------------------------------------------------


def _two_outputs(width: float, top: float) -> privacy_loss_distribution.PrivacyLossDistribution:
    """Return dp-accounting's law of an exponential mechanism on two outputs.

    The losses of the two outputs are ``top`` and ``top - width``.
    """
    likely = -math.expm1(top - width) / -math.expm1(-width)
    upper = {"top": math.log(likely), "low": math.log1p(-likely)}
    lower = {"top": math.log(likely) - top, "low": math.log1p(-likely) + width - top}
    assert math.fsum(math.exp(value) for value in lower.values()) == pytest.approx(1.0, rel=1e-12)
    return privacy_loss_distribution.from_two_probability_mass_functions(
        lower, upper, value_discretization_interval=INTERVAL, symmetric=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(("width", "mu"), [(0.15, 0.2), (0.6, 0.2), (1.5, 0.5), (1.0, 2.0)])
def test_a_range_before_gaussian_noise_is_the_worst_of_dp_accounting(
    width: float, mu: float
) -> None:
    """By other code, delta is the largest over positions of the range, and below response's."""
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=INTERVAL
    )
    laws = [
        gaussian.compose(_two_outputs(width, share * width))
        for share in (*np.linspace(0.05, 0.95, 19), 0.99)
    ]
    parts = [PurePart(width, "exponential mechanism", width=width), GaussianPart(mu, 1.0)]
    response = [PurePart(width, "a black box"), GaussianPart(mu, 1.0)]
    for epsilon in (0.3, 1.0, 2.5):
        delta = spent(parts, Budget(epsilon, 1e-6)).delta_at_epsilon
        assert delta is not None
        # dp-accounting's epsilon exceeds the truth by at most one grid step for each of two laws.
        below = max(law.get_delta_for_epsilon(epsilon + 2 * INTERVAL) for law in laws)
        above = max(law.get_delta_for_epsilon(epsilon) for law in laws)
        assert below - 1e-13 <= delta
        # Both searches, at 20 positions and on 2,048 grid cells, come close to the maximum delta.
        assert delta <= above * 1.02 + 1e-13
        unknown = spent(response, Budget(epsilon, 1e-6)).delta_at_epsilon
        assert unknown is not None
        assert delta < 0.97 * unknown
    result = spent(parts, Budget(1.0, 1e-6))
    assert not result.exact
    assert result.epsilon >= max(law.get_epsilon_for_delta(1e-6) for law in laws) - 2 * INTERVAL
    assert result.epsilon < spent(response, Budget(1.0, 1e-6)).epsilon


@pytest.mark.parametrize("wider", [1.0, 1.4, 1.9])
@pytest.mark.parametrize("mu", [0.02, 0.3, 2.0])
def test_the_worst_of_all_cells_of_a_range_is_found(wider: float, mu: float) -> None:
    """The result is the maximum over all grid cells, although most cells are skipped."""
    for width, epsilon in ((0.02, 0.1), (0.2, 0.0), (0.2, 1.0), (1.5, 3.0)):
        part = PurePart(width, "x", width=wider * width)
        ends = np.linspace(part.width - width, width, 2049)
        tops, lows = ends[1:], ends[:-1] - part.width
        noise = accounting._log_profiles(epsilon, tops, lows, mu)
        each = accounting._log_delta_within(lows, tops, *noise)
        assert accounting._log_delta_of_range(epsilon, part, mu) == min(0.0, each.max())


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(0.3, 1e-6), Budget(1.0, 3e-7), Budget(5.0, 1e-5)])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_noise_beside_a_range_meets_the_budget_by_dp_accounting(
    budget: Budget, share: float
) -> None:
    width = share * budget.epsilon
    mu = greatest_mu_beside([PurePart(width, "x", width=width)], budget)

    def deltas(mu: float, at: float) -> Iterator[float]:
        gaussian = privacy_loss_distribution.from_gaussian_mechanism(
            1 / mu, value_discretization_interval=INTERVAL
        )
        for top in np.linspace(0.98, 0.3, 18) * width:
            law = gaussian.compose(_two_outputs(width, top))
            yield float(law.get_delta_for_epsilon(at))

    assert max(deltas(mu, budget.epsilon + 2 * INTERVAL)) <= budget.delta
    # Control: with 2 % more signal, dp-accounting computes a delta above the claim.
    assert any(one > budget.delta for one in deltas(1.02 * mu, budget.epsilon + 2 * INTERVAL))


def test_a_range_that_runs_later_is_granted_what_came_before() -> None:
    """A range's position may depend on earlier releases, so parts are in the order they run."""
    choice, noise = PurePart(0.4, "x", width=0.4), GaussianPart(0.3, 1.0)
    first, later, response = (
        spent(parts, Budget(1.0, 1e-6)).epsilon
        for parts in ([choice, noise], [noise, choice], [noise, PurePart(0.4, "x")])
    )
    assert first < later < response
    # A part whose losses span 0.4 costs epsilon 0.4, alone or beside a Gaussian part without loss.
    assert spent([choice], Budget(1.0, 1e-6)).epsilon == 0.4
    assert spent([choice, GaussianPart(0.0, 1.0)], Budget(1.0, 1e-6)).epsilon == 0.4


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 3.0), st.floats(1.0, 2.0), st.floats(0.05, 2.0), st.floats(1e-9, 1e-2))
def test_a_narrower_range_never_costs_more(
    epsilon: float, wider: float, mu: float, delta: float
) -> None:
    noise = GaussianPart(mu, 1.0)
    epsilons = [
        spent([PurePart(epsilon, "x", width=width), noise], Budget(1.0, delta)).epsilon
        for width in (epsilon, wider * epsilon, 2 * epsilon)
    ]
    # Splitting an interval of losses into grid cells raises delta by the width of a cell.
    assert epsilons[0] <= epsilons[1] * (1 + 2e-3) + 1e-12
    assert epsilons[1] <= epsilons[2] * (1 + 2e-3) + 1e-12
    assert epsilons[0] >= epsilon_of(delta, mu) * (1 - 1e-9)


def test_laplace_noise_beside_gaussian_noise_counts_by_its_own_law() -> None:
    theirs = privacy_loss_distribution.from_laplace_mechanism(
        1 / 0.5, value_discretization_interval=INTERVAL
    ).compose(
        privacy_loss_distribution.from_gaussian_mechanism(
            1 / 0.2, value_discretization_interval=INTERVAL
        )
    )
    loss = spent([LaplacePart(0.5, 1.0), GaussianPart(0.2, 1.0)], Budget(1.0, 1e-6))
    assert loss.epsilon == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-3)
    black_box = spent([PurePart(0.5, "x"), GaussianPart(0.2, 1.0)], Budget(1.0, 1e-6))
    assert loss.epsilon < black_box.epsilon
