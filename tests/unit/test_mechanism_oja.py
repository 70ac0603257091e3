"""Oja: one pass has the loss of one step, other code confirms private SGD, steps are as stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._rows import moment_of
from dpviz.mechanisms.oja import ORDERS, Oja, epsilon_of_steps, least_multiplier, renyi


def problem(relation: Relation = Relation.REPLACE, n: int = 1_000, k: int = 1) -> Problem:
    return Problem(n, 6, k, relation, Domain.ball(6))


def table(n: int = 1_000) -> SecondMoment:
    rows = generator(0, "oja").standard_normal((n, 6)) * [1, 0.3, 0.3, 0.3, 0.3, 0.3]
    rows /= np.linalg.norm(rows, axis=1).max()
    return moment_of(rows)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_pair_moves_a_batch_further_than_stated(relation: Relation, k: int) -> None:
    """Over searched rows and frames, a batch's mean gradient moves by at most the stated amount."""
    rng = generator(1, "gradient", k, str(relation))
    largest = 0.0
    for _ in range(4_000):
        W = np.linalg.qr(rng.standard_normal((6, k))).Q
        v, w = (row / np.linalg.norm(row) for row in rng.standard_normal((2, 6)))
        if rng.random() < 0.5:  # Some rows lie in the frame's span, some at an angle.
            v = W[:, 0] + rng.uniform(0, 1) * v
            w = (W[:, -1] if k > 1 else -W[:, 0] * rng.uniform(0, 1)) + rng.uniform(0, 1) * w
            v, w = v / np.linalg.norm(v), w / np.linalg.norm(w)
        w = w if relation is Relation.REPLACE else 0 * w
        largest = max(largest, float(np.linalg.norm(np.outer(v, v @ W) - np.outer(w, w @ W))))
    reach = math.sqrt(min(k, 2)) if relation is Relation.REPLACE else 1.0
    assert 0.9 * reach < largest <= reach * (1 + 1e-12)


def test_one_pass_spends_what_one_step_does() -> None:
    for steps in (1, 7, 40):
        mechanism = Oja(steps=steps)
        loss = mechanism.spent(problem(), Budget(1.0, 1e-6))
        assert loss is not None
        assert 1 - 1e-9 < loss.epsilon <= 1
        assert not loss.exact  # Only the last frame is released.
        calibration = mechanism.calibrate(problem(), Budget(1.0, 1e-6))
        assert calibration.values["step_std"] == pytest.approx(steps * calibration.scale)
        assert mechanism.status(problem(), Budget(1.0, 1e-6)).verdict is Verdict.HOLDS


def test_the_steps_are_those_of_the_formula() -> None:
    """A plain loop takes the same steps as the mechanism."""
    data = table(50)
    mechanism = Oja(steps=4)
    calibration = mechanism.calibrate(problem(n=50), Budget(5.0, 1e-3))
    release = mechanism.release_many(data, calibration, Draws.trials(3, "oja", [2]))
    again = Draws.trials(3, "oja", [2])
    W = np.linalg.qr(again.normal(6, 1)[0]).Q
    order = np.argsort(again.uniform(50)[0])
    assert data.rows is not None
    rate = min(1 / (calibration.values["step_std"] * math.sqrt(6)), 100)
    start = 0
    for number, size in enumerate((13, 13, 12, 12)):
        batch = data.rows[order[start : start + size]]
        start += size
        noise = calibration.scale * 50 / size * again.normal(6, 1)[0]
        step = sum(np.outer(x, x) for x in batch) @ W / size
        step_by_hand = W + rate / (1 + 3 * number / 4) * (step + noise)
        W = step_by_hand / np.linalg.norm(step_by_hand)
    np.testing.assert_allclose(np.abs(W[:, 0]), np.abs(release.raw[0, :, 0]), atol=1e-10)


# --- private SGD ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "z"), [(0.1, 1.0), (0.01, 0.7), (0.5, 3.0), (1.0, 2.0)])
def test_the_renyi_orders_agree_with_dp_accounting(rate: float, z: float) -> None:
    accountant = RdpAccountant(orders=ORDERS[:30])
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(z))
    accountant.compose(event, 1)
    ours = [renyi(order, rate, z) for order in ORDERS[:30]]
    np.testing.assert_allclose(ours, accountant._rdp, rtol=1e-8, atol=1e-14)
    full = RdpAccountant(orders=ORDERS)
    full.compose(event, 30)
    assert epsilon_of_steps(1e-6, rate, z, 30) == pytest.approx(full.get_epsilon(1e-6), rel=1e-6)


@pytest.mark.parametrize(("steps", "epsilon"), [(4, 1.0), (20, 0.5), (20, 8.0)])
def test_private_sgd_never_spends_more_by_the_exact_account(steps: int, epsilon: float) -> None:
    """By dp-accounting, a row against the zero row never loses more than the claim.

    dp-accounting rounds losses up to a grid. A grid ten times as coarse raises epsilon here by less
    than 1e-4 and takes a seventh of the work.
    """
    budget = Budget(epsilon, 1e-6)
    where = problem(Relation.ZERO_OUT)
    mechanism = Oja(sampling="poisson", steps=steps)
    z = mechanism.calibrate(where, budget).values["multiplier"]
    assert z == least_multiplier(budget, 1 / steps, steps)

    def exact(multiplier: float) -> float:
        accountant = PLDAccountant(NeighboringRelation.REPLACE_SPECIAL, 1e-3)
        event = dp_event.GaussianDpEvent(multiplier)
        accountant.compose(dp_event.PoissonSampledDpEvent(1 / steps, event), steps)
        return float(accountant.get_epsilon(1e-6))

    assert 0.7 * epsilon < exact(z) <= epsilon
    # Control: with half the noise, the exact privacy loss exceeds the claim.
    assert exact(z / 2) > epsilon
    loss = mechanism.spent(where, budget)
    assert loss is not None
    assert epsilon * (1 - 1e-6) < loss.epsilon <= epsilon


def test_private_sgd_refuses_what_it_cannot_account_for() -> None:
    mechanism = Oja(sampling="poisson")
    with pytest.raises(CannotRun, match="zero-out only; got replace"):
        mechanism.check(problem(), Budget(1.0, 1e-6))
    with pytest.raises(CannotRun, match="needs epsilon above"):
        mechanism.check(problem(Relation.ZERO_OUT), Budget(1e-4, 1e-6))
    with pytest.raises(CannotRun, match="at most n = 999; got 1000"):
        Oja(steps=1_000).check(problem(n=999), Budget(1.0, 1e-6))


def test_private_sgd_needs_less_noise_than_one_pass() -> None:
    where, budget = problem(Relation.ZERO_OUT, n=10_000), Budget(1.0, 1e-6)
    stds = [
        Oja(sampling=sampling, steps=16).calibrate(where, budget).values["step_std"]
        for sampling in ("pass", "poisson")
    ]
    assert stds[1] < 0.5 * stds[0]  # With Poisson sampling, noise grows by sqrt(16), not 16.


def test_it_finds_a_strong_direction_in_a_long_table() -> None:
    data = table(40_000)
    for sampling in ("pass", "poisson"):
        mechanism = Oja(sampling=sampling)
        where = problem(Relation.ZERO_OUT, n=40_000)
        calibration = mechanism.calibrate(where, Budget(1.0, 1e-6))
        release = mechanism.release_many(data, calibration, Draws.trials(0, "oja", range(4)))
        assert np.square(release.components[:, 0, 0]).min() > 0.95


def test_what_private_sgd_spends_is_said_to_be_a_bound() -> None:
    """The loss is a bound: it treats every frame as released, but only the last frame is."""
    where = problem(Relation.ZERO_OUT)
    loss = Oja(sampling="poisson").spent(where, Budget(1.0, 1e-6))
    assert loss is not None
    assert not loss.exact
