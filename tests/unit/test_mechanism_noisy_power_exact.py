"""The exactly accounted power method: composition by other code, shape of the release."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from dpviz.core.errors import CannotRun
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.noisy_power_exact import NoisyPowerExact


def problem(relation: Relation = Relation.REPLACE, d: int = 8, k: int = 2) -> Problem:
    return Problem(1000, d, k, relation, Domain.ball(d))


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("steps", "columns"), [(1, 1), (5, 1), (5, 3), (40, 8)])
def test_the_composition_agrees_with_an_accountant(
    relation: Relation, steps: int, columns: int
) -> None:
    mechanism = NoisyPowerExact(steps=steps, columns=columns)
    where = problem(relation, k=1)
    std = mechanism.calibrate(where, Budget(1.0, 1e-5)).scale
    row = math.sqrt(min(columns, 2)) if relation is Relation.REPLACE else 1.0
    accountant = PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(std * 1000 / row), steps)
    # dp-accounting's grid of step 1e-4 rounds the loss of each step up by at most this amount.
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.0, abs=2e-4 * math.sqrt(steps) + 1e-3)
    loss = mechanism.spent(where, Budget(1.0, 1e-5))
    assert loss is not None
    assert 1 - 1e-9 < loss.epsilon <= 1
    assert not loss.exact


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 100.0, 1e6])
def test_the_claim_holds_over_the_whole_range(relation: Relation, epsilon: float) -> None:
    for mechanism in (NoisyPowerExact(), NoisyPowerExact(steps=37)):
        loss = mechanism.spent(problem(relation), Budget(epsilon, 1e-6))
        assert loss is not None
        assert epsilon * (1 - 1e-9) < loss.epsilon <= epsilon
        status = mechanism.status(problem(relation), Budget(epsilon, 1e-6))
        assert status.verdict is Verdict.HOLDS


def test_columns_are_free_from_the_second_on() -> None:
    stds = [
        NoisyPowerExact(steps=3, columns=p).calibrate(problem(k=1), Budget(1.0, 1e-5)).scale
        for p in (1, 2, 8)
    ]
    assert stds[1] == pytest.approx(math.sqrt(2) * stds[0])
    assert stds[2] == stds[1]


def test_columns_must_hold_the_components() -> None:
    for columns in (1, 9):
        with pytest.raises(CannotRun, match=rf"from k = 2 to d = 8; got {columns}"):
            NoisyPowerExact(columns=columns).check(problem(), Budget(1.0, 1e-5))


def test_automatic_steps_grow_with_the_budget() -> None:
    steps = [
        NoisyPowerExact().calibrate(problem(), Budget(e, 1e-6)).values["steps"]
        for e in (1e-4, 0.1, 10, 1e3, 1e6)
    ]
    assert steps[0] == 2
    assert steps == sorted(steps)
    assert steps[-1] <= 200


def test_without_noise_to_speak_of_it_finds_the_components() -> None:
    data = SecondMoment(np.diag([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.0]), 1000)
    calibration = NoisyPowerExact().calibrate(problem(), Budget(1e6, 1e-6))
    release = NoisyPowerExact().release_many(data, calibration, Draws.trials(0, "p", range(5)))
    assert np.allclose(release.components, np.eye(8)[:, :2], rtol=0, atol=1e-4)
    raw = release.raw
    assert np.allclose(raw.transpose(0, 2, 1) @ raw, np.eye(8), rtol=0, atol=1e-12)
