"""The published power method: its scale, and the privacy loss of a whole row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, stats

from dpviz.accounting.gaussian import epsilon_of
from dpviz.auditing import audit
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.noisy_power import NoisyPower


def problem(relation: Relation = Relation.REPLACE, d: int = 8, k: int = 2) -> Problem:
    return Problem(1000, d, k, relation, Domain.ball(d))


def test_the_published_scale() -> None:
    calibration = NoisyPower(steps=5, columns=3).calibrate(problem(), Budget(0.5, 1e-6))
    assert calibration.values["s"] == pytest.approx(math.sqrt(4 * 3 * 5 * math.log(1e6)) / 0.5)
    assert calibration.scale == pytest.approx(calibration.values["s"] / 1000)
    assert NoisyPower().calibrate(problem(), Budget(0.5, 1e-6)).values["columns"] == 2


def test_an_entry_costs_what_the_paper_says_at_most() -> None:
    """mu = epsilon/sqrt(2 ln(1/delta)) for any number of steps and columns."""
    for steps, columns in ((1, 2), (9, 5)):
        value = NoisyPower(steps=steps, columns=columns).entry_epsilon(problem(), Budget(0.5, 1e-6))
        assert value == pytest.approx(epsilon_of(1e-6, 0.5 / math.sqrt(2 * math.log(1e6))))
        assert value < 0.5


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 1 / math.e])
def test_the_constant_is_enough_for_an_entry_as_proved(epsilon: float, delta: float) -> None:
    t = math.sqrt(-2 * math.log(delta))
    mu = epsilon / t
    a, b = t - mu / 2, t + mu / 2
    exact = float(stats.norm.sf(a) - math.exp(epsilon) * stats.norm.sf(b))
    factor = math.exp(epsilon / 2 - mu**2 / 8) * mu / ((1 + a**2) * math.sqrt(2 * math.pi))
    assert exact <= delta * factor * (1 + 1e-6)
    assert factor < 0.8
    assert NoisyPower().entry_epsilon(problem(), Budget(epsilon, delta)) <= epsilon


def test_the_constant_is_not_proved_where_it_is_too_small() -> None:
    """From epsilon 5 on, with a large delta, one entry has more privacy loss than the claim."""
    assert NoisyPower().entry_epsilon(problem(), Budget(5.0, 0.24)) > 5


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("p", [1, 2, 4])
def test_the_bound_on_a_row_covers_every_frame_and_flat_ones_attain_it(
    relation: Relation, p: int
) -> None:
    d, rng = 8, np.random.default_rng(0)
    mechanism = NoisyPower(steps=1, columns=p)
    calibration = mechanism.calibrate(problem(relation, k=1), Budget(1.0, 1e-6))
    bound = calibration.parts[0].mu  # type: ignore[union-attr]
    flat = linalg.hadamard(d)[:, :p] / math.sqrt(d)
    best = 0.0
    for frame in [flat, *(np.linalg.qr(rng.standard_normal((d, p))).Q for _ in range(200))]:
        rows = np.linalg.qr(np.concatenate([frame, rng.standard_normal((d, 2))], axis=1)).Q
        for v, w in ((rows[:, 0], rows[:, 1]), (rows[:, 0], rows[:, -1]), tuple(rows[:, -2:].T)):
            D = np.outer(v, v)
            if relation is Relation.REPLACE:
                D = D - np.outer(w, w)
            std = calibration.scale * 1000 * np.abs(frame).max()
            mu = np.linalg.norm(D @ frame) / std
            assert mu <= bound * (1 + 1e-12)
            best = max(best, mu)
    assert best == pytest.approx(bound)


@pytest.mark.parametrize(
    ("relation", "d", "k", "verdict"),
    [
        (Relation.REPLACE, 64, 2, Verdict.UNPROVEN),
        (Relation.ZERO_OUT, 64, 2, Verdict.UNPROVEN),
        (Relation.REPLACE, 3, 2, Verdict.LOOSE),
        (Relation.ZERO_OUT, 5, 4, Verdict.LOOSE),
    ],
)
def test_the_promise_for_entries_is_judged_for_rows(
    relation: Relation, d: int, k: int, verdict: Verdict
) -> None:
    budget = Budget(1.0, 1e-6)
    mechanism = NoisyPower(steps=6)
    status = mechanism.status(problem(relation, d, k), budget)
    loss = mechanism.spent(problem(relation, d, k), budget)
    assert loss is not None
    assert not loss.exact
    assert status.verdict is verdict
    assert "one entry of X'X" in status.evidence
    for alone in (True, False):
        most = mechanism.reached_epsilon(problem(relation, d, k), budget, last_alone=alone)
        assert most < loss.epsilon
    assert ("this frame alone reaches" in status.evidence) is (verdict is Verdict.UNPROVEN)


@pytest.mark.parametrize(
    ("relation", "last", "every"),
    [(Relation.ZERO_OUT, 0.70, 1.52), (Relation.REPLACE, 1.52, 2.27)],
)
def test_what_each_observer_reaches_at_the_readme_setting(
    relation: Relation, last: float, every: float
) -> None:
    """Theory 12.5: only the last frame is released; the larger losses need every step."""
    where, budget = Problem(1797, 61, 2, relation, Domain.ball(61)), Budget(1.0, 1e-4)
    mechanism = NoisyPower()
    assert mechanism.reached_epsilon(where, budget, last_alone=True) == pytest.approx(
        last, abs=6e-3
    )
    assert mechanism.reached_epsilon(where, budget, last_alone=False) == pytest.approx(
        every, abs=6e-3
    )
    status = mechanism.status(where, budget)
    assert status.marked == "? not proved for this release"
    assert "only this frame is released" in status.evidence


def test_a_bound_above_the_claim_calls_nothing_false() -> None:
    budget, verdicts = Budget(1.0, 1e-6), set()
    for d in (3, 5, 8, 10, 16, 30, 64):
        for steps in (1, 2, 4, 8):
            where, mechanism = problem(d=d, k=1), NoisyPower(steps=steps)
            loss = mechanism.spent(where, budget)
            assert loss is not None
            verdict = mechanism.status(where, budget).verdict
            verdicts.add(verdict)
            assert (verdict is Verdict.UNPROVEN) is (loss.epsilon > 1)
    assert verdicts == {Verdict.UNPROVEN, Verdict.LOOSE}


def test_an_audit_does_not_take_the_bound_for_an_attack() -> None:
    where, mechanism = problem(d=4, k=1), NoisyPower(steps=1)
    loss = mechanism.spent(where, Budget(1.0, 1e-5))
    assert loss is not None
    assert loss.epsilon > 1.05  # The bound alone would seem to exceed the claim.
    result = audit(mechanism, Budget(1.0, 1e-5), d=4, k=1, trials=1_000)
    assert result.exact is None
    assert result.verdict == "consistent"


def test_one_step_shows_no_lower_bound() -> None:
    for alone in (True, False):
        one = NoisyPower(steps=1)
        assert one.reached_epsilon(problem(d=64), Budget(1.0, 1e-6), last_alone=alone) == 0


def test_a_release_follows_the_iteration_step_by_step() -> None:
    d, p, steps = 5, 3, 4
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, d)) / 5
    data = SecondMoment(X.T @ X / 50, 50)
    where = Problem(50, d, 2, Relation.REPLACE, Domain.ball(d))
    mechanism = NoisyPower(steps=steps, columns=p)
    calibration = mechanism.calibrate(where, Budget(50.0, 1e-6))
    release = mechanism.release_many(data, calibration, Draws.trials(7, "p", range(3)))
    s = math.sqrt(4 * p * steps * math.log(1e6)) / 50.0
    for trial in range(3):
        stream = Draws.trials(7, "p", [trial])
        Q = np.linalg.qr(stream.normal(d, p)[0]).Q
        for _ in range(steps):
            Y = data.A @ Q + stream.normal(d, p)[0] * s * np.abs(Q).max() / 50
            Q = np.linalg.qr(Y).Q
        frame = release.raw[trial]
        assert np.allclose(frame @ frame.T, Q @ Q.T, rtol=0, atol=1e-10)
        # The columns are ordered by the variance that the last power step finds.
        lengths = np.linalg.norm(frame.T @ Y, axis=1)
        assert (np.diff(lengths) <= 1e-12).all()
