"""Discrete Gaussian noise by the exact profile: the constant, and delta by other code."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.accounting.composition import rho_meeting
from dpviz.accounting.gaussian import (
    delta_of,
    least_scale,
    log_excess,
    mu_of,
    proved_epsilon,
    rounding_distance,
)
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Budget


def apart(scale: float) -> float:
    """Return the total variation between discrete and rounded Gaussian noise, by direct sums."""
    with mpmath.workdps(50):
        s = mpmath.mpf(scale)
        far = int(30 * scale) + 2  # Terms beyond this add less than 1e-190.
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s * s)) for k in range(far)]
        total = 2 * mpmath.fsum(weights[1:]) + weights[0]
        tails = [
            mpmath.erfc((mpmath.mpf(2 * k + 1) / 2) / (s * mpmath.sqrt(2))) / 2 for k in range(far)
        ]
        masses = [1 - 2 * tails[0]] + [tails[k - 1] - tails[k] for k in range(1, far)]
        gaps = [abs(w / total - r) for w, r in zip(weights, masses, strict=True)]
        return float((2 * mpmath.fsum(gaps[1:]) + gaps[0]) / 2)


@pytest.mark.parametrize("scale", [1.0, 1.3, 1.5, 2.0, 2.7, 4.0, 8.5, 16.0, 33.3])
def test_the_constant_holds_and_could_hardly_be_smaller(scale: float) -> None:
    true = apart(scale)
    assert true <= rounding_distance(scale)
    # The leading term of the distance is 4 phi(1)/48 = .020164, so no smaller constant is valid.
    assert rounding_distance(scale) <= (1.02 if scale >= 8 else 1.65) * true
    # Control: from scale 8 on, a constant 1 % below the leading term is not a valid bound.
    if scale >= 8:
        assert true > 0.99 * 0.0201643 / scale**2


def test_the_numbers_of_the_proof() -> None:
    """Each step of the proof holds by quadrature or high precision, to detect slips."""
    phi = mpmath.npdf
    assert mpmath.quad(lambda v: (mpmath.mpf(1) / 2 - abs(v)) ** 2 / 2, [-0.5, 0, 0.5]) * 24 == (
        pytest.approx(1)
    )
    second = mpmath.quad(lambda u: abs(u * u - 1) * phi(u), [-mpmath.inf, -1, 1, mpmath.inf])
    assert float(second) == pytest.approx(float(4 * phi(1)), rel=1e-12)
    assert 4 * phi(1) / 48 <= 0.0201643
    # For scale 1, compute the total variation of |f''|' from a fine grid and by the exact formula.
    u = np.linspace(-12, 12, 2_400_001)
    g = (3 * u - u**3) * np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    rotation = np.where(np.abs(u) < 1, -g, g)
    grid = float(np.abs(np.diff(rotation)).sum())
    a, b = math.sqrt(3 - math.sqrt(6)), math.sqrt(3 + math.sqrt(6))
    extreme = [abs((3 * x - x**3) * float(phi(x))) for x in (a, b)]
    closed_form = 4 * sum(extreme) + 8 * float(phi(1))
    assert grid == pytest.approx(closed_form, rel=1e-4)
    assert closed_form <= 4.737
    assert 4.737 / 16 / 48 <= 0.00617
    # The difference between both constants also covers the error of the normalising constant.
    for s in (1.0, 1.5, 3.0):
        assert (0.02017 - 0.0201643) / s**2 > 1.001 * math.exp(-2 * math.pi**2 * s * s)
    # Poisson's summation formula gives the sum of the normal density over all whole numbers.
    s = mpmath.mpf("1.2")
    total = mpmath.nsum(lambda k: mpmath.npdf(k, 0, s), [-mpmath.inf, mpmath.inf])
    dual = 1 + 2 * mpmath.nsum(
        lambda m: mpmath.exp(-2 * mpmath.pi**2 * s * s * m * m), [1, mpmath.inf]
    )
    assert float(total - dual) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize(
    ("scale", "moves"),
    [(2.0, (1,)), (3.0, (1, 1)), (4.0, (2, 1, 1)), (6.0, (3, 2)), (9.0, (4,))],
)
def test_delta_of_discrete_noise_is_below_the_theorem(scale: float, moves: tuple[int, ...]) -> None:
    """At small scales dp-accounting's discrete Gaussian, by coordinates, is below the theorem."""
    interval = 1e-4
    law = None
    for move in moves:
        one = pld.from_discrete_gaussian_mechanism(
            scale, sensitivity=move, value_discretization_interval=interval
        )
        law = one if law is None else law.compose(one)
    assert law is not None
    mu = math.sqrt(sum(move * move for move in moves)) / scale
    beyond = False
    for epsilon in (0.1, 0.3, 0.6, 1.0, 1.7, 2.5):
        # dp-accounting's epsilon exceeds the truth by at most one grid step for each coordinate.
        theirs = law.get_delta_for_epsilon(epsilon + len(moves) * interval)
        exact = delta_of(epsilon, mu)
        assert theirs <= exact + math.exp(log_excess(epsilon, scale, len(moves)))
        beyond |= theirs > exact * (1 + 1e-6)
    # Control: without the correction for discrete noise, the continuous profile is wrong somewhere.
    assert beyond


def test_the_scale_meets_the_budget_and_is_the_exact_gaussians() -> None:
    for epsilon, delta, sensitivity, entries in (
        (1.0, 1e-6, 99 << 40, 1891),
        (0.1, 1e-9, 99 << 24, 3),
        (8.0, 1e-5, 99 << 32, 500_000),
    ):
        budget = Budget(epsilon, delta)
        scale = least_scale(budget, sensitivity, entries)
        assert scale is not None
        mu = sensitivity / scale
        whole = delta_of(epsilon, mu) + math.exp(log_excess(epsilon, scale, entries))
        assert whole <= delta
        assert scale < sensitivity / mu_of(budget) * (1 + 1e-4)
        assert scale < 0.95 * sensitivity / math.sqrt(2 * rho_meeting(epsilon, delta))
        bound = proved_epsilon(budget, scale, sensitivity, entries)
        assert bound is not None
        assert epsilon * (1 - 1e-4) < bound <= epsilon
        # Control: the claim is not proved for 0.1 % less noise.
        assert proved_epsilon(budget, 0.999 * scale, sensitivity, entries) is None


def test_at_the_release_of_digits_the_correction_is_nothing() -> None:
    scale = least_scale(Budget(1.0, 1e-6), 99 << 40, 1891)
    assert scale == pytest.approx(4.7e14, rel=0.1)
    assert math.exp(log_excess(1.0, scale, 1891)) < 1e-27


def test_where_the_correction_is_large_nothing_is_proved() -> None:
    assert least_scale(Budget(60.0, 1e-6), 99 << 40, 1891) is None
    assert least_scale(Budget(1.0, 1e-12), 99 << 8, 1891) is None
    assert least_scale(Budget(1e4, 0.1), 3, 1) is None  # The noise scale would be below 1.
    assert proved_epsilon(Budget(1.0, 1e-6), 0.5, 1, 1) is None
    assert proved_epsilon(Budget(60.0, 1e-6), 1e14, 99 << 40, 1891) is None
    with pytest.raises(InvalidSetting, match="at least 1"):
        rounding_distance(0.9)
