"""Symmetric noise and Wishart noise follow their laws.

Every tolerance is 6.1 standard errors, which is one false alarm in 1e9 per figure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.ensembles import (
    goe,
    symmetric,
    symmetric_laplace,
    wishart,
    wishart_from_uniforms,
)

Z = 6.1
ALARM = 1e-9


def within(sample: FloatArray, mean: FloatArray | float, sd: FloatArray | float) -> bool:
    """Return whether the sample's mean over axis 0 is within Z standard errors of the mean."""
    return bool(np.all(np.abs(sample.mean(axis=0) - mean) <= Z * sd / np.sqrt(len(sample))))


@pytest.mark.parametrize(
    ("sampler", "diagonal", "off", "kurtosis"),
    [(symmetric, 1.0, 1.0, 3.0), (goe, 1.0, 0.5, 3.0), (symmetric_laplace, 2.0, 2.0, 6.0)],
)
def test_symmetric_noise_second_moments(
    sampler: Callable[[Draws, int], FloatArray], diagonal: float, off: float, kurtosis: float
) -> None:
    d = 4
    noises = sampler(Draws.batch(generator(0, "noise"), 40_000), d)
    variance = np.where(np.eye(d) > 0, diagonal, off)
    assert within(noises, 0.0, np.sqrt(variance))
    # If x has this kurtosis, x^2 has the variance (kurtosis - 1) variance^2.
    spread = np.sqrt(kurtosis - 1) * variance
    assert within(noises**2, variance, spread)
    # Different entries are uncorrelated, so Var(xy) is the product of their variances.
    rows, columns = np.triu_indices(d)
    entries = noises[:, rows, columns]
    sd = np.sqrt(variance[rows, columns])
    for i in range(1, len(rows)):
        assert within(entries[:, i:] * entries[:, :-i], 0.0, sd[i:] * sd[:-i])
    # Control: the test detects a scale that is 5 % too large.
    assert not within((1.05 * noises) ** 2, variance, spread)


def test_laplace_entries_follow_the_laplace_law() -> None:
    entries = symmetric_laplace(Draws.batch(generator(1, "noise"), 40_000), 2)[:, 0, 1]
    assert stats.kstest(entries, "laplace").pvalue > ALARM
    assert stats.kstest(1.15 * entries, "laplace").pvalue < ALARM


@pytest.mark.parametrize("sampler", [wishart, wishart_from_uniforms])
@pytest.mark.parametrize(("d", "df"), [(1, 2.0), (4, 5.0), (4, 7.3), (6, 60.5)])
def test_wishart_moments_and_inverse(
    sampler: Callable[[Draws, int, float], FloatArray], d: int, df: float
) -> None:
    matrices = sampler(Draws.batch(generator(0, "wishart", d), 30_000), d, df)
    # A Wishart matrix W has the mean df I and the variances Var W_ij = df (1 + [i = j]).
    identity = np.eye(d)
    assert within(matrices, df * identity, np.sqrt(df * (1 + identity)))
    # A Wishart matrix W has E W^2 = df (df + d + 1) I. From 30,000 samples, the standard error is
    # known only to a few per cent, so allow 10 % extra.
    square = matrices @ matrices
    assert within(square, df * (df + d + 1) * identity, 1.1 * square.std(axis=0))
    # For a Wishart W and a unit v, 1/(v'W^-1 v) is chi^2 with df - d + 1 degrees of freedom.
    v = np.linspace(1, 2, d)
    v /= np.linalg.norm(v)
    weights = np.linalg.solve(matrices, np.broadcast_to(v[:, None], (len(matrices), d, 1)))[:, :, 0]
    least = 1 / (weights @ v)
    assert stats.kstest(least, stats.chi2(df - d + 1).cdf).pvalue > ALARM
    # For a Wishart matrix W and a unit vector v, v'Wv is chi^2 with df degrees of freedom.
    along = np.einsum("i,cij,j->c", v, matrices, v)
    assert stats.kstest(along, stats.chi2(df).cdf).pvalue > ALARM
    # Control: the test detects half a degree of freedom too many.
    wrong = sampler(Draws.batch(generator(0, "wishart", d), 30_000), d, df + 0.5)
    assert not within(wrong, df * identity, np.sqrt(df * (1 + identity)))
