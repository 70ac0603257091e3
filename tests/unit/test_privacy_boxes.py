"""The exact accounting of shaped noise on a box agrees with a search over pairs of rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpviz.accounting.boxes import (
    BoxReach,
    frobenius_of,
    frobenius_reach,
    least_imbalance,
    nuclear_of,
    nuclear_reach,
)
from dpviz.core.arrays import FloatArray

PUBLISHED = [  # Each row: weights, squared Frobenius value and value of the bound sqrt(2) M.
    ((1, 1, 1), 16, 18),
    ((1, 1, 1, 1), 32, 32),
    ((5, 1, 1, 1), 120, 128),
    ((10, 1, 1), 160, 288),
    ((3, 2, 1, 1, 0.5), 112, 112.5),
]


def norms_of_pair(weights: FloatArray, v: FloatArray, w: FloatArray) -> tuple[float, float]:
    """Return both norms of the matrix from its singular values."""
    root = np.sqrt(weights)
    change = root[:, None] * (np.outer(v, v) - np.outer(w, w)) * root
    values = np.linalg.svd(change, compute_uv=False)
    return float(np.linalg.norm(values)), float(values.sum())


def searched(weights: FloatArray, which: int, seed: int, starts: int = 40) -> float:
    """Return the largest norm over all pairs of corners, and of local searches in the cube."""
    rng, d = np.random.default_rng(seed), len(weights)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    inner = (corners * weights) @ corners.T
    apart, total = float(np.abs(inner).min()), float(weights.sum())
    best = math.sqrt(2 * (total**2 - apart**2)) * (1.0 if which == 0 else math.sqrt(2))

    def minus_square(x: FloatArray) -> tuple[float, FloatArray]:
        v, w = x[:d], x[d:]
        a, b, c = weights @ v**2, weights @ w**2, weights @ (v * w)
        if which == 0:
            square, of_v, of_w, of_both = a * a + b * b - 2 * c * c, 4 * a, 4 * b, -4 * c
        else:
            square, of_v, of_w, of_both = (a + b) ** 2 - 4 * c * c, 4 * (a + b), 4 * (a + b), -8 * c
        gradient = [weights * (of_v * v + of_both * w), weights * (of_w * w + of_both * v)]
        return -float(square), -np.concatenate(gradient)

    for _ in range(starts):
        start = rng.uniform(-1, 1, 2 * d)
        if rng.random() < 0.5:
            start = np.sign(start)
        optimum = optimize.minimize(minus_square, start, jac=True, bounds=[(-1, 1)] * (2 * d))
        best = max(best, norms_of_pair(weights, optimum.x[:d], optimum.x[d:])[which])
    return best


@pytest.mark.parametrize(("weights", "square", "bound"), PUBLISHED)
def test_the_published_values(weights: tuple[float, ...], square: float, bound: float) -> None:
    reach = frobenius_reach(np.array(weights, dtype=float))
    assert reach.value**2 == pytest.approx(square, rel=1e-11)
    assert reach.attained
    assert 2 * sum(weights) ** 2 == bound


def test_odd_cubes() -> None:
    assert nuclear_reach(np.ones(3)).value == pytest.approx(4 * math.sqrt(2))
    for d in (3, 5, 9):
        short = math.sqrt(1 - 1 / d**2)
        assert frobenius_reach(np.ones(d)).value == pytest.approx(math.sqrt(2) * d * short)
        assert nuclear_reach(np.ones(d)).value == pytest.approx(2 * d * short)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("seed", range(12))
def test_no_pair_lies_above_the_account_and_one_lies_at_it(seed: int, which: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 8))
    weights = rng.gamma(0.4, size=d) + 1e-3  # Sometimes one weight dominates.
    reach = (frobenius_reach, nuclear_reach)[which](weights)
    best = searched(weights, which, seed)
    assert best <= reach.value * (1 + 1e-12)
    assert best >= reach.value * (1 - 1e-6)  # This long search attains the bound.
    pair = norms_of_pair(weights, np.ones(d), reach.row)[which]
    assert pair == pytest.approx(reach.reached, rel=1e-9)
    assert reach.attained


@pytest.mark.parametrize("weights", [(50.0, 1, 1), (100.0, 3, 2, 2), (9.0, 1.0), (8.0, 1.1)])
def test_a_weight_that_dominates_has_its_row_inside_the_box(weights: tuple[float, ...]) -> None:
    p = np.array(weights)
    reach = frobenius_reach(p)
    assert 0 < -reach.row[0] < 1
    assert (reach.row[1:] == 1).all()
    corners = max(
        frobenius_of(p, np.array(u)) for u in itertools.product((-1.0, 1.0), repeat=len(p))
    )
    assert reach.value > corners
    assert searched(p, 0, 0) == pytest.approx(reach.value, rel=1e-7)


@given(
    st.lists(st.one_of(st.integers(1, 9).map(float), st.floats(1e-3, 10)), min_size=1, max_size=11)
)
def test_the_least_imbalance_is_the_least_of_all_signs(numbers: list[float]) -> None:
    weights = np.array(numbers)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(weights))))
    least = float(np.abs(signs @ weights).min())
    imbalance = least_imbalance(weights)
    assert imbalance.least <= least + 1e-15
    assert imbalance.least >= least - 1e-11 * weights.sum()
    assert abs(float(imbalance.signs @ weights)) == pytest.approx(imbalance.reached)
    assert imbalance.reached == pytest.approx(least, abs=1e-11 * weights.sum())


def test_weights_too_many_to_enumerate_have_a_certificate() -> None:
    weights = np.random.default_rng(0).uniform(1, 2, 300)
    imbalance = least_imbalance(weights)
    assert 0 <= imbalance.least <= imbalance.reached
    reach = frobenius_reach(weights)
    assert reach.attained
    assert reach.value <= math.sqrt(2) * weights.sum() * (1 + 1e-12)
    # If the weights have only two distinct values, an exact answer exists for any number of each.
    share = np.array([0.31] + 200 * [0.69 / 200])
    least = min(abs(0.31 - 0.69 / 200 * (200 - 2 * i)) for i in range(201))
    assert least_imbalance(share).least == pytest.approx(least, abs=1e-10)


def test_a_bound_that_no_pair_reaches_says_so() -> None:
    reach = BoxReach(1.0, np.ones(2), 0.999)
    assert not reach.attained
    assert BoxReach(1.0, np.ones(2), 1.0).attained


def test_norms_of_a_row_against_ones_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(3)
    weights, row = rng.random(5), rng.uniform(-1, 1, 5)
    both = norms_of_pair(weights, np.ones(5), row)
    assert (frobenius_of(weights, row), nuclear_of(weights, row)) == pytest.approx(both)
