"""The joint loss of a private preparation's steps agrees with brute force and dp-accounting."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.accounting.composition import composed
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, PurePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms import parse_variant
from dpviz.preparation import account
from dpviz.preparation.account import prepared_mechanism
from dpviz.preparation.steps import (
    BOUND,
    MEAN,
    RANGE,
    SCALE,
    PrivateSteps,
    joint_gaussian,
    joint_laplace,
    preparation,
)

GRID = np.linspace(-1, 1, 401)


@pytest.mark.parametrize(("mean", "scale"), [(1.0, 1.0), (2.0, 1.0), (5.0, 0.7), (0.3, 2.0)])
def test_mean_and_scale_as_one_query_cost_what_brute_force_finds(mean: float, scale: float) -> None:
    u, v = GRID[:, None], GRID[None]
    squares = ((u - v) / mean) ** 2 + ((u * u - v * v) / scale) ** 2
    sizes = np.abs(u - v) / mean + np.abs(u * u - v * v) / scale
    d = 3
    # On a grid of step 0.005, a smooth function's maximum is too low by less than 1e-4 of itself.
    assert joint_gaussian(mean, scale, d).mu == pytest.approx(
        math.sqrt(d * squares.max()), rel=1e-4
    )
    assert joint_laplace(mean, scale, d).epsilon == pytest.approx(d * sizes.max(), rel=1e-4)
    assert joint_gaussian(mean, scale, d).mu >= math.sqrt(d * squares.max())
    assert joint_laplace(mean, scale, d).epsilon >= d * sizes.max()
    apart = math.hypot(2 * math.sqrt(d) / mean, math.sqrt(d) / scale)
    assert joint_gaussian(mean, scale, d).mu < apart


@pytest.mark.parametrize("pure", [True, False])
def test_one_query_under_replace_two_under_zero_out(pure: bool) -> None:
    steps = PrivateSteps((MEAN, SCALE))
    budget = Budget(1.0, 0.0 if pure else 1e-6)
    parts = {
        relation: preparation(steps, 100, 4, relation, budget, pure=pure).parts
        for relation in Relation
    }
    # Removing a row at a corner of the box changes both sums by the largest amount.
    assert {relation: len(found) for relation, found in parts.items()} == {
        Relation.REPLACE: 1,
        Relation.ZERO_OUT: 2,
    }


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("relation", list(Relation))
def test_no_row_of_the_cube_moves_a_noisy_mean_further_than_its_part_says(
    relation: Relation, pure: bool
) -> None:
    d, order = 4, 1 if pure else 2
    budget = Budget(1.0, 0.0 if pure else 1e-6)
    (part,) = preparation(PrivateSteps((MEAN,)), 100, d, relation, budget, pure=pure).parts
    assert isinstance(part, GaussianPart | LaplacePart)
    corners = np.array(list(product((-1.0, 0.0, 1.0), repeat=d)))
    others = corners if relation is Relation.REPLACE else np.zeros((1, d))
    change = max(np.linalg.norm(v - w, ord=order) for v in corners for w in others)
    assert change <= part.sensitivity
    assert change == pytest.approx(part.sensitivity)  # Some row attains the sensitivity.


def _sparse_vector(counts: FloatArray, epsilon: float, threshold: float) -> FloatArray:
    """Return the law of the place of the first answer above the threshold, by quadrature."""
    scale = 2 / epsilon
    rho = scale * np.linspace(-40, 40, 16_001)
    weight = np.exp(-np.abs(rho) / scale)
    weight /= weight.sum()
    gap = (counts[:, None] - threshold - rho) / scale
    above = np.where(gap > 0, 1 - 0.5 * np.exp(-np.abs(gap)), 0.5 * np.exp(-np.abs(gap)))
    before = np.cumprod(np.vstack([np.ones_like(rho), 1 - above]), axis=0)
    return np.append((before[:-1] * above) @ weight, before[-1] @ weight)


def _range(first: FloatArray, second: FloatArray, epsilon: float) -> tuple[float, float]:
    """Return the extremes of the log ratio over several thresholds."""
    ratios = np.concatenate(
        [
            np.log(_sparse_vector(first, epsilon, level) / _sparse_vector(second, epsilon, level))
            for level in (-30.0, 0.0, 40.0)
        ]
    )
    return float(ratios.min()), float(ratios.max())


def test_a_sparse_vector_on_counts_that_move_together_ranges_over_three_halves() -> None:
    epsilon, counts = 0.6, np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    widest = [0.0, 0.0]
    for change in np.ndindex(2, 2, 2, 2, 2):
        low, high = _range(counts, counts + np.array(change), epsilon)
        # If a row grows, the log ratio rises by at most epsilon, and falls by at most half of it.
        assert high <= epsilon + 1e-9
        assert low >= -epsilon / 2 - 1e-9
        widest = [min(widest[0], low), max(widest[1], high)]
    assert widest[0] < -0.49 * epsilon  # attained
    assert widest[1] > 0.75 * epsilon
    # Control: counts that may move in both directions lose more privacy than epsilon.
    ranges = [_range(np.array([1.0] * 30 + [0.0]), np.array([0.0] * 30 + [1.0]), epsilon)]
    assert max(abs(end) for ends in ranges for end in ends) > 1.2 * epsilon


@pytest.mark.parametrize("wider", [1.0, 1.5])
def test_a_bounded_range_composes_above_every_law_on_its_ends(wider: float) -> None:
    """For each law on t and t - w with noise, the computed delta is just above dp-accounting's."""
    epsilon, mu = 0.5, 0.4
    width = wider * epsilon
    ours = composed((GaussianPart(mu, 1.0), PurePart(epsilon, "x", width=width)))
    noise = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    at = [0.2, 0.8, 1.4]
    most = np.zeros(3)
    for t in np.linspace(width - epsilon, epsilon, 7)[1:-1]:
        p = (math.exp(width) - math.exp(t)) / math.expm1(width)
        q = p * math.exp(-t)
        law = pld.from_two_probability_mass_functions(
            {0: math.log(q), 1: math.log1p(-q)},
            {0: math.log(p), 1: math.log1p(-p)},
            value_discretization_interval=1e-4,
        )
        both = noise.compose(law)
        most = np.maximum(most, [both.get_delta_for_epsilon(one) for one in at])
    deltas = np.array([ours.delta(one) for one in at])
    assert (deltas >= most * (1 - 1e-3)).all()  # dp-accounting's grid of 1e-4 rounds up.
    assert (deltas <= most * 1.5).all()  # One envelope for all t adds a little to delta.
    loss = composed((GaussianPart(mu, 1.0), PurePart(epsilon, "x")))
    loose = np.array([loss.delta(one) for one in at])
    assert (deltas < 0.9 * loose).all()  # Control: plain randomised response is far above.


PROBLEM = Problem(500, 8, 2, Relation.REPLACE, Domain.ball(8))
BUDGET = Budget(1.0, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["wishart_exact", "jl_transform"])
def test_a_profile_under_replace_is_composed_as_dp_accounting_does(key: str) -> None:
    chain = prepared_mechanism(parse_variant(key), PROBLEM, BUDGET, PrivateSteps((MEAN, SCALE)))
    assert chain.spent is not None
    assert chain.spent.epsilon <= BUDGET.epsilon
    profile = chain.mechanism.row_profile(PROBLEM, chain.rest)
    assert profile is not None
    step = 1e-3
    points = np.unique(np.rint(np.geomspace(1, 8_000, 250)).astype(int))
    points = np.concatenate([[0], points])
    deltas = [profile.delta(Relation.REPLACE, step * float(point)) for point in points]
    whole = pld.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(step, points, np.array(deltas))
    )
    for part in chain.preparation.parts:
        assert isinstance(part, GaussianPart)
        whole = whole.compose(
            pld.from_gaussian_mechanism(
                part.std, sensitivity=part.sensitivity, value_discretization_interval=step
            )
        )
    assert chain.spent.epsilon == pytest.approx(whole.get_epsilon_for_delta(BUDGET.delta), abs=1e-3)
    # Control: composing only the claim of PCA gives a larger epsilon.
    parts = (*chain.preparation.parts, ApproximatePart(chain.rest.epsilon, BUDGET.delta / 2, "x"))
    assert composed(parts).epsilon(BUDGET.delta) > chain.spent.epsilon * 1.2


def test_bought_bounds_are_a_sparse_vector_and_a_quantile_an_exponential_mechanism() -> None:
    steps = preparation(PrivateSteps((RANGE, BOUND)), 500, 8, Relation.REPLACE, BUDGET, pure=False)
    widths = [part.width / part.epsilon for part in steps.parts if isinstance(part, PurePart)]
    assert widths == pytest.approx([1.5, 1.0])


@pytest.mark.parametrize("key", ["gaussian", "laplace", "funnel", "data_gaussian"])
def test_whether_anything_is_left_is_told_without_finding_what(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(100, 5, 2, Relation.REPLACE, Domain.ball(5))
    mechanism, steps = parse_variant(key), PrivateSteps((BOUND,))
    looks, excess = [], account._excess
    monkeypatch.setattr(account, "_excess", lambda *given: looks.append(1) or excess(*given))
    for epsilon in (1e-4, 1.02e-4, 1.2e-4, 1.0, 1e4):
        budget = Budget(epsilon, 1e-6)
        looks.clear()
        nothing = account.leaves_nothing(mechanism, problem, budget, steps)
        assert nothing or len(looks) == 1
        try:
            prepared_mechanism(mechanism, problem, budget, steps)
        except CannotRun:
            assert nothing
        else:
            assert not nothing
