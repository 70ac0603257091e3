"""Releases of the subspace and Wishart mechanisms follow their laws.

Means must lie within 6.1 standard errors and Kolmogorov-Smirnov p-values above 1e-9, which is one
false alarm in 1e9 per figure. Each check must fail on a planted fault.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from dpviz.accounting.profiles import WishartNoise
from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.eigenvector_sampling import EigenvectorSampling
from dpviz.mechanisms.jl_transform import JlTransform
from dpviz.mechanisms.kapralov_talwar import KapralovTalwar
from dpviz.mechanisms.sulq import Sulq
from dpviz.mechanisms.wishart_approx import WishartApprox
from dpviz.mechanisms.wishart_exact import WishartExact
from dpviz.sampling.deflation import bingham_each
from dpviz.sampling.ensembles import wishart

Z = 6.1
ALARM = 1e-9
N = 400


def within(sample: FloatArray, mean: FloatArray | float, sd: FloatArray | float) -> bool:
    """Return whether the sample's mean over axis 0 is within Z standard errors of the mean."""
    return bool(np.all(np.abs(sample.mean(axis=0) - mean) <= Z * sd / np.sqrt(len(sample))))


def table(d: int) -> SecondMoment:
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.standard_normal((d, d))).Q
    return SecondMoment((basis * np.geomspace(0.5, 0.01, d)) @ basis.T, N)


def drawn(
    mechanism: Mechanism, d: int, k: int, budget: Budget, size: int
) -> tuple[SecondMoment, Calibration, Release]:
    data = table(d)
    problem = Problem(N, d, k, Relation.ZERO_OUT, Domain.ball(d))
    calibration = mechanism.calibrate(problem, budget)
    draws = Draws.batch(generator(0, mechanism.text), size)
    return data, calibration, mechanism.release_many(data, calibration, draws)


def test_sulq_noise_is_independent_in_every_entry() -> None:
    data, calibration, release = drawn(Sulq(), 3, 2, Budget(1.0, 1e-6), 40_000)
    noise = (release.raw - data.A) / calibration.scale
    assert within(noise, 0.0, 1.0)
    # For a standard normal z, Var z^2 = 2. Mirrored entries of the noise are uncorrelated.
    assert within(noise**2, 1.0, math.sqrt(2))
    assert within(noise[:, 0, 1] * noise[:, 1, 0], 0.0, 1.0)
    assert not within((1.05 * noise) ** 2, 1.0, math.sqrt(2))


@pytest.mark.parametrize(
    "mechanism", [WishartExact(), WishartExact(scale=1.0), WishartApprox()], ids=str
)
def test_the_privacy_statistic_of_wishart_noise_is_the_chi_square_of_its_profile(
    mechanism: Mechanism,
) -> None:
    d = 4
    data, calibration, release = drawn(mechanism, d, 2, Budget(0.9, 1e-6), 20_000)
    nu = calibration.values["degrees_of_freedom"] - d + 1
    v = np.full(d, 1 / math.sqrt(d))
    solutions = np.linalg.solve(release.raw - data.A, v[:, None])[:, :, 0]
    statistic = 1 / (solutions @ v) / calibration.scale
    assert stats.kstest(statistic, stats.chi2(nu).cdf).pvalue > ALARM
    # Control: the test detects a tenth fewer degrees of freedom.
    assert stats.kstest(statistic, stats.chi2(0.9 * nu).cdf).pvalue < ALARM


def test_two_zero_out_steps_cover_a_replaced_row() -> None:
    """Simulated losses between tables that differ in one row stay within the stated loss."""
    d, nu, epsilon, size = 2, 20.0, 1.0, 400_000
    df, p = nu + d - 1, nu / 2 - 1
    W = wishart(Draws.batch(generator(1, "replace"), size), d, df)
    v, w = np.eye(d)

    def log_f(M: FloatArray) -> FloatArray:
        sign, log_det = np.linalg.slogdet(M)
        inside = (sign > 0) & (M[:, 0, 0] > 0)
        value = p * log_det - 0.5 * np.trace(M, axis1=1, axis2=2)
        return np.where(inside, value, -np.inf)

    shift = np.outer(v, v) - np.outer(w, w)
    with np.errstate(divide="ignore"):
        # Use gains of P on samples from P, and gains of Q on samples from Q.
        loss = log_f(W) - log_f(W + shift)
        gain = np.maximum(-np.expm1(epsilon - loss), 0)
    bound = WishartNoise(nu).delta(Relation.REPLACE, epsilon)
    slack = Z * 0.5 / math.sqrt(size)  # A gain lies in [0, 1], so its std is at most 1/2.
    assert float(gain.mean()) <= bound + slack
    # Control: a bound for half of the required privacy loss fails.
    assert float(np.maximum(-np.expm1(0.2 - loss), 0).mean()) > bound + slack


@pytest.mark.parametrize(("eta", "d"), [(1.0, 3), (1.0, 40), (0.5, 3)])
def test_the_sketch_is_a_wishart_of_the_lifted_moment(eta: float, d: int) -> None:
    mechanism = JlTransform(eta=eta, lift="exact")
    size = 20_000 if d < 10 else 4_000
    data, calibration, release = drawn(mechanism, d, 2, Budget(1.0, 1e-6), size)
    rows = calibration.values["sketch_rows"]
    S = data.A + calibration.scale * np.eye(d)
    v = np.full(d, 1 / math.sqrt(d))
    form = rows * np.einsum("i,sij,j->s", v, release.raw, v) / (v @ S @ v)
    assert stats.kstest(form, stats.chi2(rows).cdf).pvalue > ALARM
    assert stats.kstest(1.1 * form, stats.chi2(rows).cdf).pvalue < ALARM
    # Every entry of the noise has the variance (S_ij^2 + S_ii S_jj)/r.
    sd = np.sqrt((S**2 + np.outer(np.diag(S), np.diag(S))) / rows)
    assert within(release.raw, S, sd)
    assert not within(1.05 * release.raw, S, sd)


def test_bingham_each_has_the_moments_of_each_law() -> None:
    """E x_1^2 is 0.86207 for diag(8, 0, 0), and on a circle a ratio of Bessel functions."""
    size = 40_000
    rng = Draws.batch(generator(2, "each"), size)
    strength = np.where(np.arange(size) % 2 == 0, 8.0, 0.0)
    x = bingham_each(strength[:, None] * np.array([1.0, 0.0, 0.0]), rng)[:, 0] ** 2
    # Squared coordinates lie between 0 and 1, so their std is at most 1/2.
    assert within(x[::2], 0.86207, 0.5)
    assert within(x[1::2], 1 / 3, 0.5)
    assert not within(x[::2], 0.967, 0.5)
    b = 20 * rng.uniform()
    circle = bingham_each(np.stack([b, np.zeros(size)], axis=1), rng)[:, 0] ** 2
    expected = 0.5 * (1 + special.ive(1, b / 2) / special.ive(0, b / 2))
    assert within(circle - expected, 0.0, 0.5)
    # Control: the test detects the moment of a law with twice the strength.
    assert not within(circle - 0.5 * (1 + special.ive(1, b) / special.ive(0, b)), 0.0, 0.5)


def test_the_second_direction_follows_its_law_in_the_complement_of_the_first() -> None:
    """In three dimensions the free angle is von Mises about the complement's best axis."""
    mechanism = EigenvectorSampling()
    data, calibration, release = drawn(mechanism, 3, 2, Budget(0.3), 20_000)
    first, second = release.raw[:, :, 0], release.raw[:, :, 1]
    complement = np.linalg.qr(first[:, :, None], mode="complete").Q[:, :, 1:]
    matrix = calibration.scale * complement.transpose(0, 2, 1) @ data.A @ complement
    values, vectors = np.linalg.eigh(matrix)
    along = (second[:, None, :] @ complement @ vectors)[:, 0, :]
    angle = 2 * np.arctan2(along[:, 0], along[:, 1])  # The larger eigenvalue has the angle 0.
    kappa = 0.5 * (values[:, 1] - values[:, 0])
    # Compare with the expected cosine of a von Mises angle; a cosine has a variance of at most 1.
    expected = special.ive(1, kappa) / special.ive(0, kappa)
    assert within(np.cos(angle) - expected, 0.0, 1.0)
    assert within(np.sin(angle), 0.0, 1.0)
    # Control: the test detects twice the concentration.
    twice = special.ive(1, 2 * kappa) / special.ive(0, 2 * kappa)
    assert not within(np.cos(angle) - twice, 0.0, 1.0)


def test_the_values_of_kapralov_talwar_carry_laplace_noise() -> None:
    data, calibration, release = drawn(KapralovTalwar(), 3, 2, Budget(1.0), 20_000)
    v, value = release.raw[:, 0:6:2], release.raw[:, 6]  # Components come first, then eigenvalues.
    assert np.allclose(np.linalg.norm(v, axis=1), 1)
    noise = (value - np.einsum("si,ij,sj->s", v, data.A, v)) / calibration.values["values_scale"]
    assert stats.kstest(noise, "laplace").pvalue > ALARM
    assert stats.kstest(1.2 * noise, "laplace").pvalue < ALARM
