"""SULQ: its scale, its release and its loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from dpviz.accounting.gaussian import delta_of
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.mechanisms.sulq import Sulq


def problem(relation: Relation, d: int = 5, n: int = 100) -> Problem:
    return Problem(n, d, 2, relation, Domain.ball(d))


def test_the_variance_is_the_quoted_one() -> None:
    scale = Sulq().calibrate(problem(Relation.REPLACE), Budget(0.5, 1e-6)).scale
    assert scale**2 == pytest.approx(8 * 5**2 * math.log(5 / 1e-6) ** 2 / (100**2 * 0.5**2))
    box = Problem(100, 5, 2, Relation.REPLACE, Domain.box(5))
    assert Sulq().calibrate(box, Budget(0.5, 1e-6)).scale == pytest.approx(5 * scale)


@pytest.mark.parametrize(("relation", "row"), [(Relation.REPLACE, math.sqrt(2)), ("zero-out", 1.0)])
def test_what_it_spends_is_the_gaussian_profile(relation: Relation, row: float) -> None:
    where, budget = problem(Relation(relation)), Budget(1.0, 1e-6)
    mu = row / (100 * Sulq().calibrate(where, budget).scale)
    loss = Sulq().spent(where, budget)
    assert loss is not None
    assert loss.exact
    # This is the profile's textbook formula. Its terms nearly cancel: allow an absolute error.
    phi = special.ndtr(mu / 2 - loss.epsilon / mu)
    assert phi - math.exp(loss.epsilon) * special.ndtr(
        -mu / 2 - loss.epsilon / mu
    ) == pytest.approx(1e-6, rel=1e-6)
    assert loss.delta_at_epsilon == delta_of(1.0, mu)
    status = Sulq().status(where, budget)
    assert status.verdict is Verdict.LOOSE
    assert "against 1 claimed" in status.evidence


def test_the_release_is_lopsided_and_the_estimate_is_its_symmetric_part() -> None:
    data = SecondMoment(np.diag([0.4, 0.3, 0.1, 0.05, 0.0]), 100)
    calibration = Sulq().calibrate(problem(Relation.REPLACE), Budget(1.0, 1e-6))
    release = Sulq().release_many(data, calibration, Draws.trials(0, "sulq", range(4)))
    raw, matrix = release.raw, release.matrix
    assert matrix is not None
    assert not np.allclose(raw, raw.transpose(0, 2, 1))
    assert np.array_equal(matrix, matrix.transpose(0, 2, 1))
    assert np.array_equal(matrix, (raw + raw.transpose(0, 2, 1)) / 2)
