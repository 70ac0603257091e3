"""Shaped noise and noisy rows follow their laws.

Every tolerance is 6.1 standard errors, which is one false alarm in 1e9 per figure. Each law has a
control, a scale 5 % wrong, that must fail.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpviz.core.allocation import Allocation
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.mechanisms._directional import DirectionalMechanism, Directions, directions_of
from dpviz.mechanisms._rows import RowNoise, noisy_moments

Z = 6.1
ALARM = 1e-9
BUDGET = Budget(1.0, 1e-4)
SHARES = Allocation("custom", theta=(0.5, 0.3, 0.15, 0.05))


def within(sample: FloatArray, mean: FloatArray, sd: FloatArray) -> bool:
    """Return whether the sample's mean over axis 0 is within Z standard errors of the mean."""
    return bool(np.all(np.abs(sample.mean(axis=0) - mean) <= Z * sd / np.sqrt(len(sample))))


def moment(n: int, d: int) -> tuple[FloatArray, SecondMoment]:
    rng = generator(3, "rows", n, d)
    rows = rng.uniform(-1, 1, (n, d)) * np.linspace(1, 0.3, d)
    rows = rows @ np.linalg.qr(rng.standard_normal((d, d)))[0] / d
    A = rows.T @ rows / n
    return rows, SecondMoment((A + A.T) / 2, n, rows)


def rotation(d: int) -> FloatArray:
    return np.linalg.qr(generator(4, "basis", d).standard_normal((d, d)))[0]


def released(
    mechanism: Mechanism, problem: Problem, data: SecondMoment, size: int
) -> tuple[Calibration, Release]:
    calibration = mechanism.calibrate(problem, BUDGET)
    draws = Draws.batch(generator(5, mechanism.key), size)
    return calibration, mechanism.release_many(data, calibration, draws)


# Noise on the matrix --------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [Domain.ball(4), Domain("box", 4, (1.0, 0.5, 2.0, 1.0))])
@pytest.mark.parametrize("directions", ["features", "true"])
@pytest.mark.parametrize(
    ("text", "kurtosis"),
    # W1 - W2 has m = 5 degrees of freedom. A diagonal entry is a difference of chi-squares with
    # kurtosis 3 + 6/m = 4.2; any other is a sum of 2 m products of normals with 3 + 3/m.
    [
        ("directional_gaussian[estimate=plain]", 3.0),
        ("directional_wishart_difference[estimate=plain]", 4.2),
        ("mvg[theorem=3,tail=tight]", 3.0),
    ],
)
def test_noise_has_the_shape_that_the_allocation_asks_for(
    text: str, kurtosis: float, directions: str, domain: Domain
) -> None:
    _, data = moment(200, 4)
    problem = Problem(200, 4, 2, Relation.REPLACE, domain, replace(SHARES, directions=directions))
    mechanism = parse_variant(text)
    assert isinstance(mechanism, DirectionalMechanism)
    calibration, release = released(mechanism, problem, data, 40_000)
    axes = directions_of(
        data, calibration, Draws.batch(generator(0, "unused"), 1), pure=mechanism.pure
    )
    stds = mechanism.direction_stds(calibration, axes)[0]
    basis = axes.basis(0, 4)
    noise = basis.T @ (release.matrix - data.A) @ basis
    variance = np.outer(stds, stds) * np.where(np.eye(4) > 0, 1.0, 0.5)
    spread = np.sqrt(kurtosis - 1) * variance
    assert within(noise, np.zeros((4, 4)), np.sqrt(variance))
    assert within(noise**2, variance, spread)
    assert not within((1.05 * noise) ** 2, variance, spread)
    if kurtosis == 3.0:
        for i, j in ((0, 0), (0, 3), (3, 3)):
            entry = noise[:, i, j] / np.sqrt(variance[i, j])
            assert stats.kstest(entry, "norm").pvalue > ALARM
            assert stats.kstest(1.05 * entry, "norm").pvalue < 1e-4
    # Different entries are uncorrelated; Var(xy) is at most kurtosis * the product of variances.
    rows, columns = np.triu_indices(4)
    units = noise[:, rows, columns] / np.sqrt(variance[rows, columns])
    for i in range(1, len(rows)):
        products = units[:, i:] * units[:, :-i]
        assert within(products, np.zeros(products.shape[1]), np.array(np.sqrt(kurtosis)))


def test_mvg_as_released_has_independent_entries_on_both_sides_of_the_diagonal() -> None:
    _, data = moment(200, 4)
    problem = Problem(200, 4, 2, Relation.REPLACE, Domain.box(4), SHARES)
    mechanism = parse_variant("mvg")
    assert isinstance(mechanism, DirectionalMechanism)
    calibration, release = released(mechanism, problem, data, 40_000)
    root = np.sqrt(mechanism.direction_stds(calibration)[0])
    standard = (release.raw - data.A) / np.outer(root, root)
    ones = np.ones((4, 4))
    assert within(standard**2, ones, np.sqrt(2) * ones)
    assert not within((1.05 * standard) ** 2, ones, np.sqrt(2) * ones)
    products = standard[:, 0, 1:] * standard[:, 1:, 0]
    assert within(products, np.zeros(3), np.ones(3))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("kind", ["ball", "box"])
def test_no_neighbours_found_exceed_the_account(kind: str, relation: Relation) -> None:
    """The largest shaped difference that a search finds stays below the calibrated difference.

    On the box, the search tries all corners and their halves; on the ball, random rows and pairs of
    directions. The largest difference found is also close to the calibrated value, so the
    calibration is not too loose.
    """
    d, n = 4, 100
    domain = Domain.ball(d) if kind == "ball" else Domain("box", d, (1.0, 0.5, 2.0, 1.0))
    problem = Problem(n, d, 1, relation, domain, SHARES)
    rng = generator(6, "neighbours", kind)
    if kind == "box":
        signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * d), axis=-1).reshape(-1, d)
        rows = np.concatenate([signs, signs[:, ::-1] / 2]) * np.array(domain.half_widths)
    else:
        rows = rng.standard_normal((300, d))
        rows = np.concatenate([rows / np.linalg.norm(rows, axis=1, keepdims=True), np.eye(d)])
    others = rows if relation is Relation.REPLACE else np.zeros((1, d))
    outer = np.einsum("ri,rj->rij", rows, rows)
    changes = outer[:, None] - np.einsum("ri,rj->rij", others, others)[None]
    for text, order in (
        ("directional_gaussian", "fro"),
        ("directional_wishart_difference", "nuc"),
    ):
        mechanism = parse_variant(text)
        assert isinstance(mechanism, DirectionalMechanism)
        calibration = mechanism.calibrate(problem, BUDGET)
        variances, _ = mechanism.shape(calibration, np.eye(d), None)
        root = 1 / np.sqrt(variances)
        noise_units = changes * np.outer(root, root) / n
        most = float(np.linalg.norm(noise_units, ord=order, axis=(2, 3)).max())
        bound = calibration.values["mu"] if order == "fro" else 2 * BUDGET.epsilon
        assert most <= bound * (1 + 1e-12)
        assert most >= 0.7 * bound
        assert 1.5 * most > bound  # Control: the test detects two thirds of the noise.


# Noise on the rows ----------------------------------------------------------------------------


def rotated_noise(n: int, d: int) -> tuple[Directions, FloatArray, FloatArray]:
    """Return directions, variances and the noise covariance on a row."""
    basis = rotation(d)
    variances = np.linspace(0.02, 0.2, d)
    return Directions(basis[None]), variances, basis * variances @ basis.T


def spread_of(A: FloatArray, S: FloatArray, n: int) -> FloatArray:
    """Return the variance of each entry of (X + E)'(X + E)/n for rows of E i.i.d. N(0, S)."""
    a, s = np.diag(A), np.diag(S)
    total = np.outer(a, s) + np.outer(s, a) + 2 * A * S + np.outer(s, s) + S * S
    return total / n


@pytest.mark.parametrize("n", [3, 4, 6, 12])
def test_moments_of_noisy_rows_follow_the_law_of_rows(n: int) -> None:
    """The shortcut through X'X has the law of noise added to every row.

    Of the sizes, n = 3 has fewer rows than features, 4 as many, 6 fewer than twice as many.
    """
    d, size = 4, 40_000
    rows, data = moment(n, d)
    directions, variances, S = rotated_noise(n, d)
    noise = RowNoise.draw(Draws.batch(generator(7, "short", n), size), n, d)
    short = directions.leave(noisy_moments(data, n, noise, directions, variances[None]))
    full_rows = (
        rows
        + generator(7, "full", n).standard_normal((size, n, d))
        @ (directions.basis(0, d) * np.sqrt(variances)).T
    )
    full = full_rows.transpose(0, 2, 1) @ full_rows / n
    spread = spread_of(data.A, S, n)
    for sample in (short, full):
        assert within(sample, data.A + S, np.sqrt(spread))
        # Allow 10 % extra: the estimate of the fourth moment has an error of a few per cent.
        square = (sample - data.A - S) ** 2
        assert within(square, spread, 1.1 * square.std(axis=0))
        assert not within((1.05**2) * square, spread, 1.1 * square.std(axis=0))
    # Compare nonlinear statistics, too: the largest eigenvalue, and the share along a data row.
    along = rows[0] / np.linalg.norm(rows[0])
    for measure in (
        lambda m: np.linalg.eigvalsh(m)[:, -1],
        lambda m: np.linalg.eigvalsh(m)[:, 1],  # At n = 3 the smallest is 0: use the second.
        lambda m: m @ along @ along,
    ):
        assert stats.ks_2samp(measure(short), measure(full)).pvalue > ALARM
    # Control: the test detects noise that is 5 % too large.
    loud = noisy_moments(data, n, noise, directions, 1.05**2 * variances[None])
    assert (
        stats.ks_2samp(np.linalg.eigvalsh(loud)[:, -1], np.linalg.eigvalsh(full)[:, -1]).pvalue
        < ALARM
    )


@pytest.mark.parametrize("text", ["data_gaussian", "data_laplace", "mvg_data[tail=tight]"])
def test_estimates_from_noisy_rows_are_unbiased(text: str) -> None:
    _, data = moment(50, 4)
    problem = Problem(50, 4, 2, Relation.REPLACE, Domain.ball(4), SHARES)
    mechanism = parse_variant(text)
    _, release = released(mechanism, problem, data, 20_000)
    assert release.matrix is not None
    estimate = release.matrix
    # Allow 10 % extra: the estimate of the standard error has an error of about a per cent.
    assert within(estimate, data.A, 1.1 * estimate.std(axis=0))
    # Control: without debiasing, the diagonal is too large by the variance of the noise.
    assert not within(release.raw, data.A, 1.1 * estimate.std(axis=0))


# MovementAAL ----------------------------------------------------------------------------------


@pytest.mark.skipif("DPVIZ_DATA" not in os.environ, reason="DPVIZ_DATA names no folder")
@pytest.mark.parametrize(
    ("text", "bound", "expected"),
    [
        ("mvg", 1.159, 0.393),
        ("mvg[theorem=3]", 1.159, 0.301),
        ("mvg[theorem=3,tail=tight]", 1.159, 0.210),
        ("mvg", 1.0, 0.39),
        ("mvg[theorem=3]", 1.0, 0.262),
        ("mvg[theorem=3,tail=tight]", 1.0, 0.149),
        ("directional_gaussian", 1.159, 0.0),
    ],
)
def test_first_component_of_movement_data(text: str, bound: float, expected: float) -> None:
    """Delta-rho of Chanyaswad et al.'s experiment II, recomputed; the paper reports .214 and .143.

    The data are 13,197 centred rows of 4 features in a box of half width ``bound`` (1 does not hold
    the centred rows and gives no privacy), with epsilon 1, delta 1/n, uniform allocation and the
    symmetrised release. Units are the file's, squared. The expected figures come from an earlier
    simulation that took the best of several allocations, which lowers its Theorem 2 by up to 0.004.
    A release has a standard deviation of at most 0.16, so the mean of 10,000 has a standard error
    of 0.0016.
    """
    folder = Path(os.environ["DPVIZ_DATA"]) / "movementaal" / "dataset"
    files = sorted(folder.glob("MovementAAL_RSS_*.csv"))
    rows = np.concatenate([np.loadtxt(file, delimiter=",", comments="#") for file in files])
    n = len(rows)
    assert rows.shape == (13_197, 4)
    rows = rows - rows.mean(axis=0)
    if bound > 1:
        bound = float(np.abs(rows).max())
        assert round(bound, 3) == 1.159
    A = rows.T @ rows / n / bound**2
    data = SecondMoment((A + A.T) / 2, n)
    problem = Problem(n, 4, 1, Relation.REPLACE, Domain.box(4))
    mechanism = parse_variant(text)
    calibration = mechanism.calibrate(problem, Budget(1.0, 1 / n))
    release = mechanism.release_many(
        data, calibration, Draws.batch(generator(8, "movement"), 10_000)
    )
    first = release.components[:, :, 0]
    shares = np.einsum("ti,ij,tj->t", first, data.A, first)
    lost = float((data.eigenvalues[0] - shares).mean() * bound**2)
    assert abs(lost - expected) < Z * 0.0016
