"""Funnel: two looks at rows of length one, in one exact account."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import _funnel
from dpviz.mechanisms._clipped import unit_moment, unit_rows
from dpviz.mechanisms._funnel import dimensions, looked_again
from dpviz.mechanisms.funnel import Funnel
from dpviz.mechanisms.spherical import Spherical

BUDGET = Budget(1.0, 1e-6)


def problem_of(n: int, d: int, k: int, relation: Relation = Relation.REPLACE) -> Problem:
    return Problem(n, d, k, relation, Domain.ball(d))


def moves(unit: FloatArray, base: FloatArray | None) -> FloatArray:
    """Return each row's part of a look, which is all of the statistic that it touches."""
    seen = unit_rows(unit if base is None else unit @ base)
    return np.asarray(seen[:, :, None] * seen[:, None, :])


@pytest.mark.parametrize("sizes", [0.0, 0.1])
@pytest.mark.parametrize("relation", Relation)
def test_the_steps_cost_together_what_is_asked(relation: Relation, sizes: float) -> None:
    """By dp-accounting: the composed Gaussians, at the claimed epsilon, have the claimed delta."""
    problem = problem_of(500, 20, 2, relation)
    mechanism = Funnel(sizes=sizes)
    calibration = mechanism.calibrate(problem, BUDGET)
    parts = [part for part in calibration.parts if isinstance(part, GaussianPart)]
    assert len(parts) == len(calibration.parts) == (3 if sizes else 2)
    reach = {Relation.REPLACE: math.sqrt(2), Relation.ZERO_OUT: 1.0}[relation] / 500
    assert all(part.sensitivity == pytest.approx(reach) for part in parts)
    mu = math.sqrt(sum(part.mu**2 for part in parts))
    one = pld.from_gaussian_mechanism(1 / mu)
    assert one.get_epsilon_for_delta(BUDGET.delta) == pytest.approx(BUDGET.epsilon, rel=1e-3)
    spent = mechanism.spent(problem, BUDGET)
    assert spent is not None
    assert 1 - 1e-9 < spent.epsilon <= 1.0
    alone = Spherical().calibrate(problem, BUDGET).scale
    assert calibration.scale == pytest.approx(alone * math.sqrt(2 / (1 - sizes)))


@pytest.mark.parametrize("relation", Relation)
def test_no_neighbours_move_a_look_or_the_sizes_by_more(relation: Relation) -> None:
    """Rows of any length, zero rows and rows outside a basis; the bound is nearly reached."""
    rng = generator(1, "funnel")
    d, m = 6, 3
    rows = rng.standard_normal((400, d)) * 10.0 ** rng.uniform(-200, 100, (400, 1))
    rows = np.concatenate([rows, np.zeros((2, d)), np.eye(d), -np.eye(d)])
    unit = unit_rows(rows)
    base = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :m]
    reach = {Relation.REPLACE: math.sqrt(2), Relation.ZERO_OUT: 1.0}[relation]
    aligned = unit_rows(np.concatenate([base.T, -base.T]))  # rows that lie inside the basis
    for seen in (None, base):
        parts = moves(np.concatenate([unit, aligned]), seen)
        others = parts if relation is Relation.REPLACE else np.zeros_like(parts[:1])
        worst = max(float(np.linalg.norm(parts - one, axis=(1, 2)).max()) for one in others)
        assert 0.99 * reach < worst <= reach
    sizes = np.abs(unit)
    others = sizes if relation is Relation.REPLACE else np.zeros_like(sizes[:1])
    worst = max(float(np.linalg.norm(sizes - one, axis=1).max()) for one in others)
    assert 0.99 * reach < worst <= reach


def test_rows_that_are_not_brought_to_length_one_again_would_break_it() -> None:
    """The control: without the second scaling a long row moves the look beyond the bound."""
    rows = np.array([[30.0, 0.0, 0.0], [0.0, 40.0, 0.0]])
    base = np.eye(3)[:, :2]
    raw = (rows @ base)[:, :, None] * (rows @ base)[:, None, :]
    assert np.linalg.norm(raw[0] - raw[1]) > math.sqrt(2)
    kept = moves(unit_rows(rows), base)
    assert np.linalg.norm(kept[0] - kept[1]) <= math.sqrt(2)


def test_dimensions_are_public_and_within_their_limits() -> None:
    assert dimensions(problem_of(100, 60, 2), 3.4) == 6
    assert dimensions(problem_of(100, 60, 2), 17.5) == 18
    assert dimensions(problem_of(100, 60, 2), 1e9) == 30
    assert dimensions(problem_of(100, 5, 2), 1e9) == 4
    small, large = (
        Funnel().calibrate(problem_of(n, 60, 2), BUDGET).values["dimensions"] for n in (50, 10**6)
    )
    assert small == 6
    assert large == 30


def test_the_second_look_sees_the_rows_inside_what_the_first_found() -> None:
    """Without noise the components are those of the rows' directions; their order is kept."""
    rng = generator(2, "funnel")
    rows = rng.standard_normal((300, 7)) * np.array([5, 3, 1, 1, 1, 1, 1])
    unit, moment = unit_rows(rows), unit_moment(rows)
    found = looked_again(unit, moment[None], np.zeros((1, 4, 4)), (1e-9, 1e-9), 2, None)[0]
    exact = _funnel.top(moment, 2)
    # the basis of four holds the two leading directions; normalising inside it turns them little
    np.testing.assert_allclose(np.abs(np.diag(found.T @ exact)), 1, atol=5e-3)


def test_many_features_at_a_small_epsilon_gain() -> None:
    """Captured variance over 80 draws, six standard errors of the paired difference."""
    rng = generator(3, "funnel")
    d, n = 40, 2_000
    spread = np.concatenate([[4.0, 3.0], np.ones(d - 2)])
    rows = rng.standard_normal((n, d)) * spread
    rows = rows @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    rows /= np.linalg.norm(rows, axis=1).max()
    data, problem = SecondMoment(rows.T @ rows / n, n, rows), problem_of(n, d, 2)
    budget = Budget(0.15, 1e-6)
    captured = []
    for mechanism in (Spherical(), Funnel()):
        release = mechanism.release_many(
            data, mechanism.calibrate(problem, budget), Draws.trials(4, "gain", range(80))
        )
        V = release.components
        captured.append(np.einsum("sik,ij,sjk->s", V, data.A, V))
    gain = captured[1] - captured[0]
    assert gain.mean() > 4 * gain.std() / math.sqrt(len(gain))
