"""K-norm noise follows its laws; each test has a control that must fail."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms._clipped import unit_moment
from dpviz.mechanisms.knorm import KNorm
from dpviz.mechanisms.spherical_knorm import SphericalKNorm
from dpviz.sampling.ensembles import wishart
from dpviz.sampling.nuclear import nuclear_noise, square_means

Z = 6.1  # At 6.1 standard errors, one false alarm occurs in about 1e9 tests.
TINY = 1e-9


@cache
def noise(d: int, size: int) -> FloatArray:
    return nuclear_noise(Draws.batch(generator(31, "nuclear", d), size), d)


@pytest.mark.parametrize(
    ("d", "size"), [(2, 40_000), (5, 8_000), pytest.param(40, 150, marks=pytest.mark.long)]
)
def test_the_nuclear_norm_follows_its_gamma_law(d: int, size: int) -> None:
    """For a density exp(-norm) in D = d (d + 1)/2 dimensions, the radius is Gamma(D).

    The radius's mean has the relative standard error 1/sqrt(D size): .29 % for each d. The control,
    noise 3 % too small, is 10 standard errors away and must be detected at 6.1.
    """
    norms = np.abs(np.linalg.eigvalsh(noise(d, size))).sum(axis=1)
    law = stats.gamma(d * (d + 1) / 2)
    assert stats.kstest(norms, law.cdf).pvalue > TINY
    error = law.std() / math.sqrt(size)
    assert abs(norms.mean() - law.mean()) < Z * error
    assert abs(0.97 * norms.mean() - law.mean()) > Z * error


def test_it_agrees_with_rejection_from_wishart_differences() -> None:
    """Accept M = W1 - W2 if W2 less the negative part of M is semi-definite. Given M, the chance is
    proportional to exp(-||M||_nuc/2)/density of M, so accepted M follow the law of scale 2.

    Acceptance is 3/4 at d = 2 and 28/64 at d = 3. A Kolmogorov-Smirnov test compares the largest
    eigenvalue; the control accepts every M.
    """
    for d, chance in ((2, 3 / 4), (3, 28 / 64)):
        size = 30_000
        draws = Draws.batch(generator(32, "wishart", d), size)
        first, second = wishart(draws, d, d + 1), wishart(draws, d, d + 1)
        values, vectors = np.linalg.eigh(first - second)
        negative = (vectors * np.maximum(-values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        passes = np.linalg.eigvalsh(second - negative)[:, 0] >= 0
        spread = math.sqrt(chance * (1 - chance) / size)
        assert abs(passes.mean() - chance) < Z * spread
        matrices = noise(d, 40_000) if d == 2 else noise(d, size)  # An earlier call sampled d = 2.
        ours = np.linalg.eigvalsh(matrices[:size])[:, -1]
        assert stats.ks_2samp(ours, values[passes, -1] / 2).pvalue > TINY
        assert stats.ks_2samp(ours, values[:, -1] / 2).pvalue < TINY


def test_its_entries_have_the_stated_spread_and_no_direction() -> None:
    """w'Nw has one variance for every unit w. At d = 4, 40,000 samples and kurtosis below 5, the
    sample variance errs by at most 2 % at 6.1 standard errors of sqrt(4/40,000); the control is 7 %
    wrong."""
    d, size = 4, 40_000
    matrices = noise(d, size)
    problem = Problem(100, d, 1, Relation.REPLACE, Domain.ball(d))
    std = KNorm().diagonal_std(problem)
    assert std is not None
    for w in (np.eye(d)[0], np.full(d, 0.5), np.array([0.6, 0.0, -0.8, 0.0])):
        along = np.einsum("i,sij,j->s", w, matrices, w)
        kurtosis = float(np.mean(along**4) / np.mean(along**2) ** 2)
        assert kurtosis < 5
        room = Z * math.sqrt(4 / size)
        assert abs(np.mean(along**2) / std**2 - 1) < room
        assert abs(1.07**2 * np.mean(along**2) / std**2 - 1) > room
        assert abs(np.mean(along)) < Z * std / math.sqrt(size)
    square, trace = square_means(d)
    assert np.square(matrices).sum(axis=(1, 2)).mean() == pytest.approx(square, rel=0.02)
    assert np.square(np.trace(matrices, axis1=1, axis2=2)).mean() == pytest.approx(trace, rel=0.06)


@pytest.mark.parametrize("relation", Relation)
def test_both_mechanisms_release_the_moment_plus_that_noise(relation: Relation) -> None:
    rows = generator(33, "rows").standard_normal((50, 3))
    rows /= 2 * np.abs(rows).max()
    data = SecondMoment(rows.T @ rows / 50, 50, rows)
    problem = Problem(50, 3, 1, relation, Domain.ball(3))
    reach = {Relation.REPLACE: 2, Relation.ZERO_OUT: 1}[relation]
    for mechanism, target in ((KNorm(), data.A), (SphericalKNorm(), unit_moment(rows))):
        calibration = mechanism.calibrate(problem, Budget(0.8))
        assert calibration.scale == pytest.approx(reach / 50 / 0.8)
        draws = Draws.batch(generator(34, mechanism.key), 4_000)
        noises = mechanism.release_many(data, calibration, draws).raw - target
        norms = np.abs(np.linalg.eigvalsh(noises / calibration.scale)).sum(axis=1)
        assert stats.kstest(norms, stats.gamma(6).cdf).pvalue > TINY
        assert stats.kstest(0.9 * norms, stats.gamma(6).cdf).pvalue < TINY


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_density_ratio_reaches_epsilon_and_never_passes_it(d: int) -> None:
    """For orthogonal unit rows under replace, 20,000 releases give the ratio known for every d."""
    n, epsilon = 40, 1.3
    problem = Problem(n, d, 1, Relation.REPLACE, Domain.ball(d))
    mechanism = KNorm()
    calibration = mechanism.calibrate(problem, Budget(epsilon))
    tables = []
    for axis in (0, 1):
        rows = np.zeros((n, d))
        rows[0, axis] = 1.0
        tables.append(SecondMoment(rows.T @ rows / n, n, rows))
    release = mechanism.release_many(
        tables[0], calibration, Draws.batch(generator(35, "ratio", d), 20_000)
    )
    ratio = mechanism.log_ratio(calibration, *tables)
    assert ratio is not None
    ratios = ratio(release)
    assert np.abs(ratios).max() <= epsilon * (1 + 1e-9)
    assert np.abs(ratios).max() > (0.999 if d == 2 else 0.8) * epsilon
    # If samples follow the first table, exp(-ratio) of the log-likelihood ratio has mean 1.
    weights = np.exp(-ratios)
    assert abs(weights.mean() - 1) < Z * weights.std() / math.sqrt(len(weights))
