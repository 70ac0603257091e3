"""Profiles of a replaced row agree with other integrals and samples; no other pair is worse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpviz.accounting.profiles import (
    GaussianSketch,
    WishartNoise,
    least_scale,
    sketch_pair,
    wishart_pair,
)
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Relation

ZERO_OUT, REPLACE = Relation.ZERO_OUT, Relation.REPLACE


def at(pair: Callable[[Any, float, tuple[float, ...]], FloatArray], *given: float) -> float:
    """Return the profile of a pair at one epsilon, which is the last argument."""
    return float(pair(given[0], given[1], (given[2],))[0])


def by_bartlett(nu: float, h: float, epsilon: float) -> tuple[float, float]:
    """Return delta and the best event's probability from Bartlett's factors of B ~ W_2(nu + 1).

    With B = [[A, Z sqrt A], [., Z^2 + V]] the event is V (1 + k A/h) < A - Z^2 +- h, integrated
    over A and Z by Gauss and Legendre.
    """
    p = nu / 2 - 1
    nodes, weights = np.polynomial.legendre.leggauss(400)
    low, high = stats.chi2.ppf(1e-40, nu + 1), stats.chi2.isf(1e-40, nu + 1)
    a = (high - low) / 2 * nodes + (high + low) / 2
    of_a = (high - low) / 2 * weights * stats.chi2.pdf(a, nu + 1)
    z = 13 * (nodes + 1) / 2
    of_z = 13 * weights * stats.norm.pdf(z)

    def chance(k: float, sign: int) -> float:
        room = np.maximum((a[:, None] - z**2 + sign * h) / (1 + k * a[:, None] / h), 0)
        return float(of_a @ stats.chi2.cdf(room, nu) @ of_z)

    first = chance(-math.expm1(-epsilon / p), 1)
    return first - math.exp(epsilon) * chance(math.expm1(epsilon / p), -1), first


@pytest.mark.parametrize(
    ("nu", "scale", "epsilon"),
    [(30, 1, 1), (100, 0.5, 0.5), (10, 1, 3), (244, 0.14, 1), (22, 1, 2), (600, 1, 0.1)],
)
def test_the_wishart_pair_by_another_integral(nu: float, scale: float, epsilon: float) -> None:
    truth, event = by_bartlett(nu, 1 / scale, epsilon)
    delta = at(wishart_pair, nu, scale, epsilon)
    assert truth <= delta <= truth + 1e-10 * event
    # Control: the test detects noise with two degrees of freedom more or fewer.
    assert at(wishart_pair, nu + 2, scale, epsilon) < truth * (1 - 1e-4)


def loss_of_shift(d: int, nu: float, shift: FloatArray, draws: int, seed: int) -> FloatArray:
    """Sample ln f(W + shift - shift)/f(W + shift), with W + shift the release.

    The function uses the densities in dimension d directly, without the 2 x 2 reduction.
    """
    k = nu + d - 1
    W = stats.wishart(k, np.eye(d)).rvs(draws, random_state=np.random.default_rng(seed))
    sum_of = W + shift
    sign, log_det = np.linalg.slogdet(sum_of)
    inside = (np.linalg.eigvalsh(sum_of) > 0).all(axis=1)
    ratio = (k - d - 1) / 2 * (np.linalg.slogdet(W)[1] - log_det) + np.trace(shift) / 2
    return np.where(inside & (sign > 0), ratio, np.inf)


def hockey_stick(loss: FloatArray, epsilon: float) -> tuple[float, float]:
    gains = np.maximum(-np.expm1(epsilon - loss), 0)
    return float(gains.mean()), float(gains.std() / math.sqrt(len(gains)))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "nu"), [(2, 20.0), (5, 20.0), (5, 9.5)])
def test_the_wishart_pair_by_draws_in_any_dimension(d: int, nu: float) -> None:
    v, w = np.zeros(d), np.zeros(d)
    v[0], w[-1] = 1, 1
    shift = np.outer(v, v) - np.outer(w, w)
    loss = loss_of_shift(d, nu, shift, 200_000, 7)
    for epsilon in (0.1, 0.5):
        mean, error = hockey_stick(loss, epsilon)
        # Allow six standard errors: a false alarm has a chance of about one in a billion.
        assert mean == pytest.approx(at(wishart_pair, nu, 1.0, epsilon), abs=6 * error)
        # Control: the test detects one more degree of freedom, the number for the plain block.
        assert abs(mean - at(wishart_pair, nu + 1, 1.0, epsilon)) > 6 * error


def grid_profile(nu: float, h: float, s: float, t: float, epsilon: float) -> float:
    """Return the profile of the shift h diag(s, -t) of W_2(nu + 1, I) on a grid of its factors."""
    nodes, weights = np.polynomial.legendre.leggauss(90)

    def on(low: float, high: float) -> tuple[FloatArray, FloatArray]:
        return (high - low) / 2 * nodes + (high + low) / 2, (high - low) / 2 * weights

    a, of_a = on(*(stats.chi2.ppf(1e-9, nu + 1), stats.chi2.isf(1e-9, nu + 1)))
    v, of_v = on(*(stats.chi2.ppf(1e-9, nu), stats.chi2.isf(1e-9, nu)))
    z, of_z = on(0, 6)
    of_z = 2 * of_z  # The density is symmetric in z.
    mass = np.einsum(
        "i,j,k->ijk",
        of_a * stats.chi2.pdf(a, nu + 1),
        of_v * stats.chi2.pdf(v, nu),
        of_z * stats.norm.pdf(z),
    )
    A, V, Z = a[:, None, None], v[:, None], z
    first, second, off = A + h * s, Z**2 + V - h * t, Z * np.sqrt(A)
    det = first * second - off**2
    inside = (det > 0) & (first > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (nu / 2 - 1) * np.log(A * V / det) + h * (s - t) / 2
    loss = np.where(inside, ratio, np.inf)
    return float((mass * np.maximum(-np.expm1(epsilon - loss), 0)).sum())


@pytest.mark.parametrize(
    ("nu", "h", "epsilon"), [(30.0, 1.0, 0.3), (12.0, 2.0, 0.5), (20.0, 1.5, 1.0)]
)
def test_no_pair_in_the_ball_is_worse_than_the_vertices(
    nu: float, h: float, epsilon: float
) -> None:
    """No shift s pp' - t qq' is worse, by a three-dimensional grid of the densities."""
    worst = WishartNoise(nu, 1 / h).delta(REPLACE, epsilon)
    grid = np.linspace(0, 1, 4)
    profile = {(s, t): grid_profile(nu, h, s, t, epsilon) for s in grid for t in grid}
    # The integrand has a kink, so the grid is accurate only to about one part in a thousand.
    assert max(profile.values()) <= worst * (1 + 2e-3)
    assert max(profile[1, 1], profile[1, 0], profile[0, 1]) >= worst * (1 - 2e-3)
    # The set {H <= c} is convex, so H at a midpoint is at most the larger H of both ends.
    rng = np.random.default_rng(0)
    points = list(profile)
    for _ in range(10):
        one, two = points[rng.integers(len(points))], points[rng.integers(len(points))]
        middle = grid_profile(nu, h, (one[0] + two[0]) / 2, (one[1] + two[1]) / 2, epsilon)
        assert middle <= max(profile[one], profile[two]) * (1 + 2e-3) + 1e-9


def test_a_row_taken_out_can_be_worse_than_a_row_replaced() -> None:
    """At unit scale and epsilon 2, the moving edge makes a removed row worse."""
    alone = WishartNoise(22.0).delta(ZERO_OUT, 2.0)
    assert at(wishart_pair, 22.0, 1.0, 2.0) < alone
    assert WishartNoise(22.0).delta(REPLACE, 2.0) == alone


@pytest.mark.parametrize("delta", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_two_step_bound_asked_for_up_to_a_half_more(epsilon: float, delta: float) -> None:
    """The triangle inequality needs up to a half more scale than the exact profile."""
    nu = 3 * 61 + 60 + epsilon
    exact = least_scale(REPLACE, Budget(epsilon, delta), nu)

    def two_steps(scale: float) -> float:
        first = np.linspace(0, epsilon, 400)
        profile = WishartNoise(nu, scale)
        second = np.exp(first) * profile.without_row(epsilon - first)
        return float((profile.with_row(first) + second).min())

    assert two_steps(exact) > delta
    assert two_steps(1.2 * exact) > delta
    assert two_steps(1.55 * exact) < delta


def test_the_sketch_pair_by_draws() -> None:
    rows, lift, epsilon = 20, 30.0, 0.2
    rng = np.random.default_rng(5)
    rho = 1 + 1 / lift
    first, second = rng.chisquare(rows, 400_000), rng.chisquare(rows, 400_000)
    loss = (1 - 1 / rho) / 2 * (rho * first - second)
    mean, error = hockey_stick(loss, epsilon)
    assert mean == pytest.approx(at(sketch_pair, rows, lift, epsilon), abs=6 * error)
    assert abs(mean - at(sketch_pair, rows, 1.05 * lift, epsilon)) > 6 * error


def test_no_smaller_ratios_are_worse_for_a_sketch() -> None:
    """For random covariances C + vv' and C + ww', simulated ratios are never worse."""
    rng = np.random.default_rng(1)
    rows, lift, epsilon, d = 20, 4.0, 0.5, 4
    worst = GaussianSketch(rows, lift).delta(REPLACE, epsilon)
    for trial in range(12):
        others = rng.standard_normal((trial % 3, d))
        base = lift * np.eye(d) + others.T @ others
        v, w = (x / np.linalg.norm(x) * rng.random() ** 0.1 for x in rng.standard_normal((2, d)))
        one, two = base + np.outer(v, v), base + np.outer(w, w)
        draws = rng.multivariate_normal(np.zeros(d), one, size=(20_000, rows))
        gap = np.linalg.inv(two) - np.linalg.inv(one)
        loss = 0.5 * np.einsum("mri,ij,mrj->m", draws, gap, draws)
        loss += rows / 2 * (np.linalg.slogdet(two)[1] - np.linalg.slogdet(one)[1])
        mean, error = hockey_stick(loss, epsilon)
        assert mean <= worst + 6 * error


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 1.0, 50.0])
@pytest.mark.parametrize("nu", [2.0, 3.0, 30.0, 1e5])
def test_the_pair_is_a_probability_at_the_ends_of_the_range(nu: float, epsilon: float) -> None:
    for scale in (1e-3, 1.0, 1e3):
        assert 0 <= at(wishart_pair, nu, scale, epsilon) <= 1
    assert 0 <= at(sketch_pair, 7, nu, epsilon) <= 1
    # In the limit of a huge noise scale, one row has no effect on the release.
    assert at(wishart_pair, nu, 1e12, 1.0) < 1e-9
