"""The audit of a function as a black box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import binom

import dpviz
from dpviz.auditing.bounds import hidden_rows_bound, least_seen, lower_limit, upper_limit
from dpviz.core.problem import Budget

Rng = np.random.Generator


def exact(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
    """A function that publishes the exact components."""
    return np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :k]


def laplace(rows: Any, epsilon: float, delta: float, k: int, rng: Rng, share: float = 1.0) -> Any:
    """Add Laplace noise to the upper triangle, scaled by the l1 sensitivity to one row."""
    n, d = rows.shape
    # Replacing one row moves the entries of vv' by at most 2 d, summed over absolute values.
    noise = np.triu(rng.laplace(scale=share * 2 * d / (n * epsilon), size=(d, d)))
    return rows.T @ rows / n + noise + np.triu(noise, 1).T


def quiet(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
    """A function that adds only a hundredth of the noise."""
    return laplace(rows, epsilon, delta, k, rng, share=0.01)


def test_guesses_that_are_all_right_take_the_epsilon_of_their_power() -> None:
    # If all r guesses are right, the lower limit q of the success rate solves q^r = alpha.
    for r in (5, 50):
        bound = logit(1e-3 ** (1 / r))
        assert hidden_rows_bound(r, r, r, 0.0, 1e-3) == pytest.approx(max(0, bound), abs=1e-9)
    assert hidden_rows_bound(100, 100, 50, 0.0, 1e-3) == 0.0
    assert hidden_rows_bound(100, 100, 99, 1e-3, 1e-3) < hidden_rows_bound(100, 100, 99, 0.0, 1e-3)
    # With a delta close to 1, any number of right guesses is possible, so the bound is 0.
    assert hidden_rows_bound(100, 100, 100, 0.9, 1e-3) == 0.0


def test_the_bound_from_hidden_rows_holds_for_randomised_response() -> None:
    """For guesses with the assumed accuracy, the bound exceeds the truth in at most 1 run of 20.

    Of 400 bounds at most Binomial(400, 0.05) are too high: mean 20, standard deviation 4.4; 40 is
    4.6 standard deviations above the mean. With twice the epsilon in the guesses nearly all bounds
    are too high.
    """
    rng = np.random.default_rng(1)
    for epsilon, low, high in ((1.0, 0, 40), (2.0, 380, 400)):
        right = rng.binomial(300, 1 / (1 + math.exp(-epsilon)), size=400)
        bounds = {int(r): hidden_rows_bound(300, 300, int(r), 0.0, 0.05) for r in set(right)}
        above = sum(bounds[int(r)] > 1.0 for r in right)
        assert low <= above <= high


@pytest.mark.parametrize(("draws", "alpha"), [(2_000, 1e-4), (80_000, 1e-4)])
def test_what_is_seen_is_seen_nine_times_in_ten_by_the_best_event(draws: int, alpha: float) -> None:
    """By the binomial law, the limits refute in nine of ten runs at the stated epsilon."""
    claim = Budget(1.0)
    sees = least_seen(claim, draws, alpha)
    assert 1.0 < sees < 2.0

    def chance(epsilon: float) -> float:
        q = 1 / (1 + math.exp(-epsilon))
        hits = np.arange(draws + 1)
        low, high = lower_limit(hits, draws, alpha), upper_limit(draws - hits, draws, alpha)
        with np.errstate(divide="ignore"):
            refutes = np.log(low / high) > claim.epsilon
        return float(binom.pmf(hits, draws, q)[refutes].sum())

    assert chance(sees) == pytest.approx(0.9, abs=0.02)
    assert chance(1.0) < 1e-3
    assert least_seen(claim, 100 * draws, alpha) < sees
    assert least_seen(claim, 2, alpha) == math.inf


def test_a_planted_fault_is_refuted_and_sound_noise_is_not() -> None:
    options: dict[str, Any] = {"claim": (1, 0), "trials": 1_000, "dimension": 3}
    assert str(dpviz.audit(exact, **options).verdict) == "refuted"
    result = dpviz.audit(quiet, **options)
    assert str(result.verdict) == "refuted"
    assert result.epsilon_lower > 1
    sound = dpviz.audit(laplace, **options)
    assert str(sound.verdict) == "consistent"
    assert sound.epsilon_lower < 1 < sound.sees < 2


def test_the_most_telling_of_several_dimensions_is_audited() -> None:
    def leaks_in_many(rows: Any, epsilon: float, delta: float, k: int, rng: Rng) -> Any:
        """A function that publishes the components only if there are many features."""
        if rows.shape[1] > 20:
            return exact(rows, epsilon, delta, k, rng)
        return np.linalg.qr(rng.standard_normal((rows.shape[1], k)))[0]

    result = dpviz.audit(leaks_in_many, claim=(1, 0), trials=400)
    assert result.data()["dimensions"] == [3, 10, 30]
    assert result.data()["dimension"] == 30
    assert str(result.verdict) == "refuted"
    blind = dpviz.audit(leaks_in_many, claim=(1, 0), trials=400, dimension=10)
    assert str(blind.verdict) == "consistent"
