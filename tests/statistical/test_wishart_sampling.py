"""Laws of the symmetric and Wishart noise.

Every tolerance is 6.1 standard errors: a false alarm once in 1e9 per figure.
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
    """Say whether the sample's mean over axis 0 is within Z standard errors of the mean."""
    return bool(np.all(np.abs(sample.mean(axis=0) - mean) <= Z * sd / np.sqrt(len(sample))))


@pytest.mark.parametrize(
    ("sampler", "diagonal", "off", "kurtosis"),
    [(symmetric, 1.0, 1.0, 3.0), (goe, 1.0, 0.5, 3.0), (symmetric_laplace, 2.0, 2.0, 6.0)],
)
def test_symmetric_noise_second_moments(
    sampler: Callable[[Draws, int], FloatArray], diagonal: float, off: float, kurtosis: float
) -> None:
    d = 4
    drawn = sampler(Draws.batch(generator(0, "noise"), 40_000), d)
    variance = np.where(np.eye(d) > 0, diagonal, off)
    assert within(drawn, 0.0, np.sqrt(variance))
    # Var x^2 = (kurtosis - 1) variance^2.
    spread = np.sqrt(kurtosis - 1) * variance
    assert within(drawn**2, variance, spread)
    # Distinct entries are uncorrelated: Var(xy) is the product of the variances.
    rows, columns = np.triu_indices(d)
    packed = drawn[:, rows, columns]
    sd = np.sqrt(variance[rows, columns])
    for i in range(1, len(rows)):
        assert within(packed[:, i:] * packed[:, :-i], 0.0, sd[i:] * sd[:-i])
    # Negative control: a scale 5 % too large.
    assert not within((1.05 * drawn) ** 2, variance, spread)


def test_laplace_entries_follow_the_laplace_law() -> None:
    drawn = symmetric_laplace(Draws.batch(generator(1, "noise"), 40_000), 2)[:, 0, 1]
    assert stats.kstest(drawn, "laplace").pvalue > ALARM
    assert stats.kstest(1.15 * drawn, "laplace").pvalue < ALARM


@pytest.mark.parametrize("sampler", [wishart, wishart_from_uniforms])
@pytest.mark.parametrize(("d", "df"), [(1, 2.0), (4, 5.0), (4, 7.3), (6, 60.5)])
def test_wishart_moments_and_inverse(
    sampler: Callable[[Draws, int, float], FloatArray], d: int, df: float
) -> None:
    drawn = sampler(Draws.batch(generator(0, "wishart", d), 30_000), d, df)
    # E W = df I; Var W_ij = df (1 + [i = j]).
    identity = np.eye(d)
    assert within(drawn, df * identity, np.sqrt(df * (1 + identity)))
    # E W^2 = df (df + d + 1) I; the standard error is the sample's own, whose relative error at
    # 30,000 draws is a few per cent, hence the 10 % allowance.
    square = drawn @ drawn
    assert within(square, df * (df + d + 1) * identity, 1.1 * square.std(axis=0))
    # 1/(v'W^-1 v) ~ chi^2 with df - d + 1 degrees of freedom, for every unit v.
    v = np.linspace(1, 2, d)
    v /= np.linalg.norm(v)
    solved = np.linalg.solve(drawn, np.broadcast_to(v[:, None], (len(drawn), d, 1)))[:, :, 0]
    least = 1 / (solved @ v)
    assert stats.kstest(least, stats.chi2(df - d + 1).cdf).pvalue > ALARM
    # v'Wv ~ chi^2 with df degrees of freedom.
    along = np.einsum("i,cij,j->c", v, drawn, v)
    assert stats.kstest(along, stats.chi2(df).cdf).pvalue > ALARM
    # Negative control: half a degree of freedom too many.
    wrong = sampler(Draws.batch(generator(0, "wishart", d), 30_000), d, df + 0.5)
    assert not within(wrong, df * identity, np.sqrt(df * (1 + identity)))
