"""Xu, Yang and Bai 2019: the ratios by formula and by rows, and the figures' lines."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from dpviz.core.problem import Budget
from dpviz.core.seeding import Draws, generator
from dpviz.datasets.table import Table
from dpviz.mechanisms import parse_variant
from dpviz.papers.experiment import Effort, Experiment
from dpviz.papers.measurements import Found, Measurements
from dpviz.papers.said import ClaimAnswer, View, answer
from dpviz.papers.xu import _shared as _xu
from dpviz.papers.xu import statements, theorems
from dpviz.papers.xu.figure1 import XuFigure1
from dpviz.papers.xu.figure2 import XuFigure2
from dpviz.papers.xu.statements import XuStatements
from dpviz.papers.xu.theorems import XuTheorems
from dpviz.preparation.prepared import Measured
from dpviz.simulation.simulate import Cell
from tests.papers.conftest import draws_along, draws_at

Z = 6.0  # At six standard errors, one false alarm occurs in about 5e8 tests.
needs_data = pytest.mark.skipif(
    not os.environ.get("DPVIZ_DATA"), reason="DPVIZ_DATA does not name the raw data sets"
)
AT_HAND = ("musk", "semeion", "waveform")


def synthetic(key: str, n: int, d: int) -> Table:
    """Return a table with labels and features of decreasing size."""
    rng = generator(0, "synthetic", key)
    rows = rng.standard_normal((n, d)) * 0.9 ** np.arange(d)
    labels = np.where(rows[:, 0] > 0, "up", "down")
    return Table(key, rows, tuple(f"x{j}" for j in range(d)), labels, "class")


@pytest.fixture
def measured() -> Measured:
    return _xu.prepared(synthetic("small", 60, 7))


# The noise ----------------------------------------------------------------------


def mean_square(norms: np.ndarray, expected: float, variance: float) -> float:
    """Return the number of standard errors between a mean of squared norms and its expectation."""
    return abs(float(np.mean(norms**2)) - expected) / math.sqrt(variance / len(norms))


def test_norms_have_the_second_moments_behind_the_closed_form() -> None:
    """The square of a Lap(1) entry has mean 2 and variance 24 - 4 = 20.

    E1 has d entries on the diagonal and d(d-1)/2 above it that count twice, so the variance of
    ||E1||^2 is 20 (d + 2 d(d-1)). E2 has n k entries.
    """
    d, n, k, runs = 9, 30, 4, range(3_000)
    inside = _xu.input_norms(d, 0, runs)
    outside = _xu.output_norms("any", n, k, 0, runs)
    spread = 20 * (d + 2 * d * (d - 1))
    assert mean_square(inside, 2 * d**2, spread) < Z
    assert mean_square(outside, 2 * n * k, 20 * n * k) < Z
    # Control: the test detects if the upper triangle counts once, or one column is missing.
    assert mean_square(inside, d * (d + 1), spread) > Z
    assert mean_square(outside, 2 * n * (k - 1), 20 * n * k) > Z


def test_blocks_of_noise_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _xu.output_norms("any", 50, 3, 0, range(4))
    monkeypatch.setattr(_xu, "_ENTRIES", 64)
    np.testing.assert_allclose(_xu.output_norms("any", 50, 3, 0, range(4)), whole, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_closed_form_is_that_of_the_mechanisms_scales(measured: Measured, epsilon: float) -> None:
    problem, budget = _xu.problem_of(measured, 3), Budget(epsilon)
    n, d, k = problem.n, problem.d, problem.k
    inside = _xu.LIP.calibrate(problem, budget).scale * math.sqrt(2 * d**2)
    outside = _xu.LOP.calibrate(problem, budget).scale * math.sqrt(2 * n * k)
    assert math.isclose(inside / outside, _xu.closed_form(n, d, k), rel_tol=1e-12)
    # The paper's d^2/(n^3 k) is the square of the ratio of the two noise norms.
    assert math.isclose((inside / outside) ** 2, d**2 / (n**3 * k), rel_tol=1e-12)


# The errors ---------------------------------------------------------------------


def bounded(measured: Measured) -> np.ndarray:
    rows = measured.moment_with_rows.rows
    assert rows is not None
    return rows


def test_error_of_lop_splits_into_noise_and_rest(measured: Measured) -> None:
    """The identity holds with the noise that the mechanism itself samples."""
    X, k, scale = bounded(measured), 3, 0.7
    V = measured.moment.eigenvectors[:, :k]
    pair = generator(0, _xu.LOP.key, 0).standard_exponential((2, *X.shape))[:, :, :k]
    E2 = scale * (pair[0] - pair[1])
    direct = np.linalg.norm((X @ V + E2) @ V.T - X)
    rest = measured.n * measured.moment.eigenvalues[k:].sum()
    assert math.isclose(direct, math.hypot(np.linalg.norm(E2), math.sqrt(rest)), rel_tol=1e-12)
    # With almost no noise, the residual remains; 2d/epsilon sqrt(2 n k) is 3e-4 of the residual.
    little = _xu.lop_errors(measured, "any", k, 1e6, 0, range(3))
    np.testing.assert_allclose(little, np.linalg.norm(X @ V @ V.T - X), rtol=1e-6)


def test_error_of_lop_has_the_mechanisms_law(measured: Measured) -> None:
    """LOP's released moment satisfies n tr M = ||XV + E2||^2.

    The mean of n tr M exceeds ||XV||^2 by E||E2||^2 = 2 b^2 n k. Its variance is 8 b^2 ||XV||^2 +
    20 b^4 n k, because odd moments of Laplace entries are zero.
    """
    n, k, epsilon, runs = measured.n, 3, 20.0, range(400)
    problem = _xu.problem_of(measured, k)
    calibration = _xu.LOP.calibrate(problem, Budget(epsilon))
    draws = Draws.trials(0, _xu.LOP.key, runs)
    release = _xu.LOP.release_many(measured.moment_with_rows, calibration, draws)
    assert release.matrix is not None
    part = n * measured.moment.eigenvalues[:k].sum()
    loss = n * np.trace(release.matrix, axis1=1, axis2=2) - part
    rest = n * measured.moment.eigenvalues[k:].sum()
    errors = _xu.lop_errors(measured, "any", k, epsilon, 0, runs)
    b = calibration.scale
    spread = (8 * b**2 * part + 2 * 20 * b**4 * n * k) / len(runs)
    gap = abs(np.mean(loss) - np.mean(errors**2 - rest))
    assert gap < Z * math.sqrt(spread)
    wrong = _xu.lop_errors(measured, "any", k, 1.1 * epsilon, 0, runs)
    assert abs(np.mean(loss) - np.mean(wrong**2 - rest)) > Z * math.sqrt(spread)


@pytest.mark.parametrize("key", ["laplace", "random_projection", "non_private"])
def test_error_of_lip_is_that_of_projected_rows(measured: Measured, key: str) -> None:
    X, mechanism, ks = bounded(measured), parse_variant(key), [1, 3, 5]
    ours = _xu.projected_errors(measured, mechanism, ks, 30.0, 0, range(4))
    for k, errors in zip(ks, ours, strict=True):
        budget = Budget(30.0, _xu.DELTA)
        cell = Cell(mechanism, _xu.problem_of(measured, max(ks)), budget, 0, range(4))
        frames = _xu.evaluate(cell, measured).release.components[:, :, :k]
        direct = [np.linalg.norm(X @ W @ W.T - X) for W in frames]
        np.testing.assert_allclose(errors, direct, rtol=1e-9)


def test_exact_components_have_the_least_error(measured: Measured) -> None:
    ks = [1, 2, 4]
    least, lip = (
        _xu.projected_errors(measured, mechanism, ks, 5.0, 0, range(6))
        for mechanism in (_xu.EXACT, _xu.LIP)
    )
    assert (lip >= least * (1 - 1e-12)).all()
    rest = [measured.moment.eigenvalues[k:].sum() for k in ks]
    np.testing.assert_allclose(least[:, 0], np.sqrt(measured.n * np.array(rest)), rtol=1e-9)


# k, and contents of a run -------------------------------------------------------


def test_k_is_the_least_with_85_per_cent() -> None:
    assert _xu.least_k(np.array([0.5, 0.3, 0.1, 0.1])) == 3
    assert _xu.least_k(np.array([0.9, 0.05, 0.05])) == 1
    assert _xu.least_k(np.ones(4)) == 3  # Three of four equal values reach 85 per cent.
    for d, k in ((21, 13), (256, 79), (54, 2), (590, 5), (3, 2)):
        values = _xu.k_values(d, k)
        assert values == sorted(set(values))
        assert k in values
        assert values[0] == 1
        assert values[-1] < d


# The figures --------------------------------------------------------------------


def measure(
    experiment: Experiment, load: Callable[[str], object], keys: Iterable[str]
) -> list[Measurements]:
    """Return the measurements of each part of a quick run, with seed 0."""
    data = {key: load(key) for key in keys}
    return [
        experiment.run(part, data[part.data], 0)
        for part in experiment.parts(Effort.QUICK)
        if part.data in data
    ]


def joined(found: Iterable[Measurements]) -> Measurements:
    together = Measurements()
    for part in found:
        together.add(part)
    return together


@pytest.mark.parametrize("along", ["k", "epsilon"])
def test_eta_is_the_ratio_of_the_errors(along: str, measured: Measured) -> None:
    ks, epsilons = ((1, 2, 4), (3.0,)) if along == "k" else ((3,), (0.5, 5.0))
    part = _xu.Runs("musk", "laplace", 0, 4)
    points = _xu.eta_draws(part, measured, 0, ks, epsilons, 10.0)
    for x in ks if along == "k" else epsilons:
        lip, lop, eta, limit = (
            draws_at(points, "Musk", *point, float(x))
            for point in (
                (_xu.LIP.label, _xu.ERROR),
                (_xu.LOP.label, _xu.ERROR),
                (_xu.LIP.label, _xu.ETA),
                (_xu.LIMIT, _xu.ETA),
            )
        )
        np.testing.assert_allclose(eta, lip / lop, rtol=1e-12)
        np.testing.assert_allclose(limit, 0.1)
        assert (lip < 1).all()  # A projection is at most as long as its row.


@needs_data
@pytest.mark.parametrize(("cls", "along"), [(XuFigure1, "k"), (XuFigure2, "n")])
def test_theta_is_the_closed_form(cls: type[Experiment], along: str) -> None:
    experiment = cls()
    points = joined(measure(experiment, experiment.shared, ("", *AT_HAND)))
    view = View(Found.of(points.table()), "")
    for key, k in zip(AT_HAND, (12, 79, 13), strict=True):
        label = _xu.BY_KEY[key].label
        facts = _xu.facts(view.on(label))
        assert facts.k == k
        for x, theta in draws_along(points, label, _xu.SIMULATED, _xu.THETA).items():
            n, at = (facts.n, int(x)) if along == "k" else (int(x), facts.k)
            expected = _xu.closed_form(n, facts.d, at)
            # The relative variance of ||E||^2 is 20 (d + 2 d(d-1))/(2 d^2)^2 < 10/d^2 for E1 and
            # 5/(n k) for E2. The std of theta is half of the root of their sum, here over 5 runs.
            # To second order, the mean moves by less than half of the relative variance.
            relative = 10 / facts.d**2 + 5 / (n * at)
            room = Z * math.sqrt(relative / 4 / len(theta)) + relative / 2
            assert abs(theta.mean() / expected - 1) < room


def test_lemmas_are_searched_up_to_what_is_proved() -> None:
    points = joined(measure(XuTheorems(), lambda key: None, ("",)))
    # A change of one row in 1,001 rotates the top component, which moves every row's projection.
    moves = draws_at(points, "Lemma 2", "", theorems.MOVED)
    assert moves[0] == 1_000
    for d in theorems.SEARCH_D:
        entries = draws_at(points, "Lemma 1", f"d = {d}", theorems.ALL_ENTRIES)
        assert entries[0] == pytest.approx(math.sqrt(2) * d)


def test_a_wrong_exponent_is_caught() -> None:
    """The test detects a ratio of norms, which has half the slope of a ratio of variances."""
    points = joined(measure(XuTheorems(), lambda key: None, ("",)))
    (claim,) = (one for one in XuTheorems().said if one.key == "theta-order")
    assert answer(claim, Found.of(points.table())).answer is ClaimAnswer.REPRODUCED
    norms = Measurements({point: np.sqrt(values) for point, values in points.draws.items()})
    assert answer(claim, Found.of(norms.table())).answer is ClaimAnswer.NOT_REPRODUCED


def test_published_tables_tell_neighbours_apart_and_a_fair_coin_would_not() -> None:
    points = joined(measure(XuStatements(), lambda key: None, ("",)))
    for name in ("Z1", "Z2"):
        advantage = draws_at(points, statements.EPSILON_PANEL, name, statements.ADVANTAGE)
        assert advantage.mean() * math.tanh(0.5) == pytest.approx(1.0)
    one, right = (draws_at(points, "wine", side, statements.SIDE) for side in ("left", "right"))
    np.testing.assert_allclose(one, right, rtol=1e-9)
