"""The discrete noise that OpenDP samples, tested by its moments over 2,000 releases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.mechanisms import parse_variant
from dpviz.preparation.transform import Transform
from dpviz.releasing.grid import quantised, second_moment
from dpviz.releasing.noise import Law, Noise, calibrated, released

RELEASES = 2_000
BITS = 20


def _unit_rows() -> np.ndarray:
    """Return digits, centred, with a row-norm bound of 1 and without constant columns."""
    rows = load_digits().data
    rows = rows[:, rows.std(axis=0) > 0]
    rows = rows - rows.mean(axis=0)
    return rows / np.linalg.norm(rows, axis=1).max()


def _declared(d: int) -> Transform:
    never = np.full(d, math.inf)
    return Transform(-never, never, np.zeros(d), np.ones(d))


def _drawn(noise: Noise, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised noise of 2,000 releases, on the diagonal and off it.

    The block has 8 features, so that 2,000 releases take seconds: entries are independent, and the
    noise does not depend on the table.
    """
    rows = _unit_rows()[:300, :d]
    whole = quantised(rows, _declared(d), BITS)
    moment = second_moment(whole, BITS)
    n = len(rows)
    exact = moment / (n * 4.0**BITS)
    weights = (70, 99) if noise.law is Law.NORMAL else (1, 1)
    unit = n * 4.0**BITS / noise.scale
    errors = np.array([released(moment, noise, n, BITS) - exact for _ in range(RELEASES)])
    upper = np.triu_indices(d, 1)
    inside = errors[:, *upper] * weights[1] * unit
    diagonal = np.diagonal(errors, axis1=1, axis2=2) * weights[0] * unit
    return diagonal, inside


@pytest.mark.parametrize("law", list(Law))
def test_moments_are_those_of_the_discrete_law(law: Law) -> None:
    """At scales from 1e13 the discrete laws' moments equal the continuous laws' to 1e-20.

    The system supplies the entropy, so no run repeats. Each bound is 6 standard errors, which a
    correct sampler exceeds in 2e-9 of runs.
    """
    d = 8
    budget = Budget(1.0, 1e-6 if law is Law.NORMAL else 0.0)
    noise = calibrated(law, budget, Relation.REPLACE, d, BITS)
    second, fourth = (1.0, 3.0) if law is Law.NORMAL else (2.0, 24.0)
    eighth = {Law.NORMAL: 105.0, Law.LAPLACE: 40320.0}[law]
    for values in _drawn(noise, d):
        size = values.size
        assert abs(values.mean()) < 6 * math.sqrt(second / size)
        assert abs((values**2).mean() - second) < 6 * math.sqrt((fourth - second**2) / size)
        assert abs((values**4).mean() - fourth) < 6 * math.sqrt((eighth - fourth**2) / size)
        flat = values.reshape(len(values), -1)
        correlation = np.corrcoef(flat.T) - np.eye(flat.shape[1])
        # 36 entries form at most 630 pairs; each correlation is within 6/sqrt(2000).
        assert np.abs(correlation).max() < 6 / math.sqrt(len(values))
    # Control: the test detects noise that is a tenth larger.
    wrong = 1.1**2 * second
    assert abs(wrong - second) > 6 * math.sqrt((fourth - second**2) / (RELEASES * d))


def test_digits_keep_what_the_same_account_allows() -> None:
    """Over 20 releases, the captured share is within .02 of continuous noise's at the same rho.

    Shares have a std of about .01 at epsilon 1. So the mean of 20 shares has a standard error of
    .0025 and the difference of two means .0035: .02 is more than five standard errors of the
    difference.
    """
    rows = _unit_rows()
    n, d = rows.shape
    noise = calibrated(Law.NORMAL, Budget(1.0, 1e-6), Relation.REPLACE, d, BITS)
    mu = noise.sensitivity / noise.scale
    assert noise.rho == pytest.approx(mu * mu / 2, rel=1e-9)
    A = rows.T @ rows / n
    best = np.linalg.eigvalsh(A)[-2:].sum()

    def share(frame: np.ndarray) -> float:
        return float(np.einsum("ij,ij->", frame, A @ frame) / best)

    moment = second_moment(quantised(rows, _declared(d), BITS), BITS)
    ours = []
    for _ in range(20):
        vectors = np.linalg.eigh(released(moment, noise, n, BITS))[1]
        ours.append(share(vectors[:, ::-1][:, :2]))
    mechanism = parse_variant("gaussian")
    problem = Problem(n, d, 2, Relation.REPLACE, Domain.ball(d))
    calibration = mechanism.calibrate(problem, noise.proved)
    release = mechanism.release_many(
        SecondMoment(A, n), calibration, Draws.trials(0, mechanism.key, range(20))
    )
    theirs = [share(frame) for frame in release.components]
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.02
