"""The chi-square profiles agree with quadrature of the densities and with matrix densities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from dpviz.accounting.gaussian import delta_of
from dpviz.accounting.profiles import (
    GaussianSketch,
    RowProfile,
    WishartNoise,
    _lower_tail,
    _upper_tail,
    least_freedom,
    least_lift,
    least_scale,
)
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget, Relation

ZERO_OUT, REPLACE = Relation.ZERO_OUT, Relation.REPLACE
Density = Callable[[FloatArray], FloatArray]


def hockey_stick(one: Density, other: Density, epsilon: float, low: float, high: float) -> float:
    """Return the integral of max(one - e^epsilon other, 0) over (low, high), split at its kinks."""

    def gain(x: FloatArray) -> FloatArray:
        return one(x) - math.exp(epsilon) * other(x)

    grid = np.linspace(low, high, 4002)[1:-1]
    positive = gain(grid) > 0
    kinks = [
        optimize.brentq(lambda x: float(gain(np.array(x))), grid[i], grid[i + 1], xtol=1e-14)
        for i in np.flatnonzero(positive[1:] != positive[:-1])
    ]
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for low_end, right in itertools.pairwise([low, *kinks, high]):
        edges = np.linspace(low_end, right, 201)
        half = 0.5 * np.diff(edges)[:, None]
        x = edges[:-1, None] + half * (nodes + 1)
        total += float((half * np.maximum(gain(x), 0) * weights).sum())
    return total


# ---- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "nu"), [(2, 22), (1, 34), (0.5, 66), (0.1, 606)])
def test_least_whole_freedom_at_unit_scale(epsilon: float, nu: int) -> None:
    budget = Budget(epsilon, 1e-5)
    assert math.ceil(least_freedom(ZERO_OUT, budget, 1.0)) == nu
    assert (
        WishartNoise(nu).delta(ZERO_OUT, epsilon)
        <= 1e-5
        < WishartNoise(nu - 1).delta(ZERO_OUT, epsilon)
    )


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(5, 7.3e-6), (6, 1.5e-4), (8, 1.5e-2), (10, 9.0e-2)]
)
def test_the_published_freedom_fails_at_large_epsilon(epsilon: float, delta: float) -> None:
    nu = math.floor(28 * math.log(4e5) / epsilon**2) + 1
    # The paper gives this delta with only two digits.
    assert WishartNoise(nu).delta(ZERO_OUT, epsilon) == pytest.approx(delta, rel=0.05)


def test_large_degrees_of_freedom_approach_the_gaussian_profile() -> None:
    """A chi-square of many degrees is nearly normal with std sqrt(2 nu)."""
    nu, scale = 4e6, 1 / 400
    assert WishartNoise(nu, scale).delta(ZERO_OUT, 1.0) == pytest.approx(
        delta_of(1.0, 400 / math.sqrt(2 * nu)), rel=5e-3
    )


# ---- against densities ------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.2, 3.0])
@pytest.mark.parametrize("nu", [2.0, 5.5, 34.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0])
def test_wishart_sides_are_the_hockey_stick_of_two_chi_squares(
    epsilon: float, nu: float, scale: float
) -> None:
    h = 1 / scale
    with_row, without = stats.chi2(nu).pdf, stats.chi2(nu, loc=-h).pdf
    high = nu + 20 * math.sqrt(2 * nu) + 60
    profile = WishartNoise(nu, scale)
    at = np.array([epsilon])
    # Split the integral where the densities start, because x^(nu/2 - 1) makes it inaccurate there.
    assert profile.without_row(at)[0] == pytest.approx(
        hockey_stick(without, with_row, epsilon, -h, 0)
        + hockey_stick(without, with_row, epsilon, 0, high),
        abs=1e-8,
    )
    assert profile.with_row(at)[0] == pytest.approx(
        hockey_stick(with_row, without, epsilon, 0, high), abs=1e-8
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 119])
@pytest.mark.parametrize("lift", [0.3, 5.0, 60.0])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_sketch_sides_are_the_hockey_stick_of_two_chi_squares(
    epsilon: float, lift: float, rows: int
) -> None:
    rho = 1 + 1 / lift
    with_row, without = stats.chi2(rows, scale=rho), stats.chi2(rows)
    # Compute by distribution functions: the best event is a half-line, found by trying many.
    grid = np.concatenate([[0.0], np.geomspace(1e-9, rho * (rows + 60 * math.sqrt(rows)), 200_001)])
    above = with_row.sf(grid) - math.exp(epsilon) * without.sf(grid)
    below = without.cdf(grid) - math.exp(epsilon) * with_row.cdf(grid)
    profile = GaussianSketch(rows, lift)
    at = np.array([epsilon])
    assert profile.with_row(at)[0] == pytest.approx(max(above.max(), 0), rel=1e-6, abs=1e-12)
    assert profile.without_row(at)[0] == pytest.approx(max(below.max(), 0), rel=1e-6, abs=1e-12)


def test_the_wishart_ratio_depends_on_one_number_only() -> None:
    rng = np.random.default_rng(0)
    d, k, scale = 3, 9.4, 0.7
    law = stats.wishart(k, scale * np.eye(d))
    nu, h = k - d + 1, 1 / scale
    p = nu / 2 - 1
    for _ in range(20):
        v = rng.standard_normal(d)
        v /= np.linalg.norm(v)
        W = rng.standard_normal((d, 12))
        W = W @ W.T
        T = 1 / (v @ np.linalg.solve(W, v)) / scale
        without_over_with = law.logpdf(W + np.outer(v, v)) - law.logpdf(W)
        assert without_over_with == pytest.approx(p * math.log1p(h / T) - h / 2, abs=1e-9)


def test_replacing_a_row_of_a_sketch_is_a_double_integral() -> None:
    """For orthogonal rows, delta is a double integral."""
    rows, lift, epsilon = 20, 30.0, 1.0
    rho = 1 + 1 / lift
    chi = stats.chi2(rows)
    c = 2 * epsilon * rho / (rho - 1)  # Density p exceeds e^epsilon q where T1 - T2 > c.

    def slice_(t2: float) -> float:
        p = chi.pdf(t2) * chi.sf((t2 + c) / rho)
        q = chi.pdf(t2 / rho) / rho * chi.sf(t2 + c)
        return float(p - math.exp(epsilon) * q)

    truth = integrate.quad(slice_, 0, 200, limit=400)[0]
    delta = GaussianSketch(rows, lift).delta(REPLACE, epsilon)
    assert delta == pytest.approx(truth, rel=1e-6)
    assert GaussianSketch(rows, lift).delta(ZERO_OUT, epsilon) < truth


@pytest.mark.parametrize(
    ("shape", "z", "tail"),
    [  # mpmath integrated the densities with 60 digits.
        (2e5, -12, 4.7728179506344064e-34),
        (2e5, -7, 9.8838142060061754e-13),
        (1e6, -4.2, 1.3021766636409547e-05),
        (1e6, 4.0001, 3.233183377033771e-05),
        (1e9, -7, 1.2751982701578847e-12),
        (1e9, 7, 1.2844419721025815e-12),
        (1e9, 12, 1.809122712747889e-33),
        (1e12, -7, 1.2796663959363175e-12),
    ],
)
def test_far_tails_at_large_shapes(shape: float, z: float, tail: float) -> None:
    """Far tails are exact where the library's series stops too early, up to the rounding of x."""
    x = np.array([shape + z * math.sqrt(shape)])
    ours = (_lower_tail if z < 0 else _upper_tail)(shape, x)
    assert ours[0] == pytest.approx(tail, rel=1e-12 + 64 * 2.3e-16 * math.sqrt(shape))
    # The far tails continue the library's values without a jump.
    joint = shape + math.copysign(4, z) * math.sqrt(shape) * np.array([1 - 1e-9, 1 + 1e-9])
    one, two = (_lower_tail if z < 0 else _upper_tail)(shape, joint)
    assert one == pytest.approx(two, rel=1e-7)


def test_tails_end_where_the_law_does() -> None:
    for shape in (3.0, 1e6):
        assert _lower_tail(shape, np.array([0.0, 1e-300]))[0] == 0
        assert _upper_tail(shape, np.array([0.0, np.inf])).tolist() == [1, 0]


# ---- what follows -----------------------------------------------------------------------------

PROFILES = st.one_of(
    st.builds(WishartNoise, st.floats(2, 1e6), st.floats(0.01, 100)),
    st.builds(GaussianSketch, st.integers(1, 10_000), st.floats(1e-3, 1e6)),
)


@given(PROFILES, st.sampled_from(Relation), st.floats(1e-4, 1e3), st.floats(1.01, 10))
def test_delta_is_a_probability_that_falls_with_epsilon(
    profile: RowProfile, relation: Relation, epsilon: float, factor: float
) -> None:
    one, two = profile.delta(relation, epsilon), profile.delta(relation, epsilon * factor)
    assert 0 <= two <= one * (1 + 1e-9) + 1e-12
    assert one <= 1
    assert profile.delta(ZERO_OUT, epsilon) <= profile.delta(REPLACE, epsilon) * (1 + 1e-9)


@given(PROFILES, st.sampled_from(Relation), st.floats(1e-9, 0.3))
def test_epsilon_inverts_delta_on_the_safe_side(
    profile: RowProfile, relation: Relation, delta: float
) -> None:
    epsilon = profile.epsilon(relation, delta)
    if math.isinf(epsilon):
        assert profile.delta(relation, 1e6) > delta
    else:
        assert profile.delta(relation, epsilon) <= delta


@given(st.floats(2, 1e4), st.floats(0.05, 20), st.floats(0, 5), st.floats(1.01, 3))
def test_larger_scales_and_more_freedom_are_easier(
    nu: float, scale: float, epsilon: float, factor: float
) -> None:
    here = WishartNoise(nu, scale).delta(ZERO_OUT, epsilon) * (1 + 1e-8) + 1e-12
    # A larger noise scale has the same effect as a shorter row.
    assert WishartNoise(nu, scale * factor).delta(ZERO_OUT, epsilon) <= here
    assert WishartNoise(nu * factor, scale).delta(ZERO_OUT, epsilon) <= here


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 100.0, 1e6])
def test_calibrations_meet_the_budget_and_leave_nothing(
    epsilon: float, delta: float, relation: Relation
) -> None:
    budget = Budget(epsilon, delta)
    freedom = least_freedom(relation, budget, 1.0)
    scale = least_scale(relation, budget, 150.0)
    lift = least_lift(relation, budget, 119)
    assert WishartNoise(freedom).delta(relation, epsilon) <= delta
    assert WishartNoise(150.0, scale).delta(relation, epsilon) <= delta
    assert GaussianSketch(119, lift).delta(relation, epsilon) <= delta
    less = 1 - 1e-6
    assert freedom == 2 or WishartNoise(freedom * less).delta(relation, epsilon) > delta
    assert WishartNoise(150.0, scale * less).delta(relation, epsilon) > delta
    assert GaussianSketch(119, lift * less).delta(relation, epsilon) > delta


def test_impossible_arguments_are_named() -> None:
    for search in (least_freedom, least_scale):
        with pytest.raises(InvalidSetting, match="delta must be above 0"):
            search(ZERO_OUT, Budget(1.0), 10.0)
    with pytest.raises(InvalidSetting, match="delta must be above 0"):
        least_lift(ZERO_OUT, Budget(1.0), 10)
    with pytest.raises(InvalidSetting, match="freedom"):
        WishartNoise(1.5)
    with pytest.raises(InvalidSetting, match="scale"):
        WishartNoise(3, 0)
    with pytest.raises(InvalidSetting, match="rows of the sketch"):
        GaussianSketch(0, 1.0)
    with pytest.raises(InvalidSetting, match="lift"):
        GaussianSketch(1, 0.0)
