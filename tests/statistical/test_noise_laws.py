"""Additive mechanisms: their actual noise follows the law that they state.

Tolerances. A second moment of N independent entries with kurtosis kappa has the relative standard
error sqrt((kappa - 1)/N); chance exceeds 6.1 standard errors once in 1e9. Kolmogorov-Smirnov alarms
at p < 1e-9. With N >= 300,000, second moments detect a scale that is 2 % off, and
Kolmogorov-Smirnov a scale that is 5 % off. Both detections are tested on every law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import integrate, special, stats

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws, generator
from dpviz.mechanisms import all_mechanisms, parse_variant
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism

Z = 6.1
ALARM = 1e-9
D, N, DRAWS = 10, 1_000, 60_000
FEW = 2_000  # Take 2,000 samples if a mechanism states no law of its entries.
M = D + 1  # The Wishart noises have D + 1 degrees of freedom.

ADDITIVE = {
    key: cls() for key, cls in all_mechanisms().items() if issubclass(cls, AdditiveMechanism)
}


@dataclass(frozen=True)
class Law:
    """Law of one entry of (matrix - A)/scale."""

    mean: float
    variance: float
    kurtosis: float
    cdf: Callable[[FloatArray], FloatArray]


def normal(variance: float) -> Law:
    return Law(0.0, variance, 3.0, stats.norm(scale=math.sqrt(variance)).cdf)


LAPLACE = Law(0.0, 2.0, 6.0, stats.laplace().cdf)


def gamma_difference(shape: float, scale: float = 1.0) -> Law:
    """Law of scale (G - G') with independent Gamma(shape, 1) variables G and G'.

    The density is |x|^(a - 1/2) K_(a - 1/2)(|x|) / (sqrt(pi) Gamma(a) 2^(a - 1/2)), with a = shape.
    The cumulants of order 2 and 4 are 2a and 12a, so the kurtosis is 3 + 3/a.
    """
    order = shape - 0.5
    grid = np.linspace(1e-9, 60 + 4 * shape, 40_001)
    density = (
        grid**order
        * special.kv(order, grid)
        / (math.sqrt(math.pi) * special.gamma(shape) * 2**order)
    )
    above = integrate.cumulative_simpson(density, x=grid, initial=0.0)
    assert abs(above[-1] - 0.5) < 1e-7  # The KS test resolves only 1/sqrt(N) = 1.8e-3.

    def cdf(x: FloatArray) -> FloatArray:
        y = np.asarray(x) / scale
        return 0.5 + np.sign(y) * np.interp(np.abs(y), grid, above)

    return Law(0.0, 2 * shape * scale**2, 3 + 3 / shape, cdf)


def wishart_laws() -> tuple[Law, Law]:
    """Laws of W_d(m, I): on the diagonal, chi-square with m degrees of freedom.

    An entry off the diagonal is a sum of m products xy = ((x+y)^2 - (x-y)^2)/4 of normals: the
    difference of two independent Gamma(m/2, 1). So Var W_ij = m (C_ii C_jj + C_ij^2) at C = I.
    """
    chi2 = Law(float(M), 2.0 * M, 3 + 12 / M, stats.chi2(M).cdf)
    return chi2, gamma_difference(M / 2)


def wishart_difference_laws() -> tuple[Law, Law]:
    """Law on the diagonal: difference of two chi-squares; off it: 2m products, a symmetric law."""
    return gamma_difference(M / 2, 2.0), gamma_difference(float(M))


STATED: dict[str, Callable[[], tuple[Law, Law]]] = {
    "laplace": lambda: (LAPLACE, LAPLACE),
    "laplace_tight": lambda: (LAPLACE, LAPLACE),
    "gaussian": lambda: (normal(1.0), normal(0.5)),
    "analyze_gauss": lambda: (normal(1.0), normal(1.0)),
    "mod_sulq": lambda: (normal(1.0), normal(1.0)),
    "wishart": wishart_laws,
    "wishart_difference": wishart_difference_laws,
}


def test_every_stated_law_belongs_to_a_mechanism() -> None:
    assert set(STATED) <= set(ADDITIVE)


@cache
def entries(key: str) -> tuple[FloatArray, FloatArray]:
    """Return independent diagonal and off-diagonal entries of (matrix - A)/scale.

    Off the diagonal, use only the pairs (0, 1), (2, 3), ..., which are independent for the Wishart
    laws too.
    """
    mechanism = ADDITIVE[key]
    rng = generator(21, "table")
    factor = rng.standard_normal((D, D))
    A = factor @ factor.T / (D * D)
    problem = Problem(N, D, 2, Relation.REPLACE, Domain.ball(D))
    calibration = mechanism.calibrate(problem, Budget(0.7, 1e-6))
    has_law = key in STATED or any(
        isinstance(p, GaussianPart | LaplacePart) for p in calibration.parts
    )
    draws = Draws.batch(generator(22, "noise", key), DRAWS if has_law else FEW)
    matrix = mechanism.release_many(SecondMoment(A, N), calibration, draws).matrix
    assert matrix is not None
    z = (matrix - A) / calibration.scale
    np.testing.assert_array_equal(z, z.transpose(0, 2, 1))
    diagonal = np.diagonal(z, axis1=1, axis2=2).ravel()
    pairs = z[:, np.arange(0, D, 2), np.arange(1, D, 2)].ravel()
    return diagonal, pairs


def second_moment_agrees(sample: FloatArray, law: Law) -> bool:
    relative = np.mean((sample - law.mean) ** 2) / law.variance - 1
    return bool(abs(relative) <= Z * math.sqrt((law.kurtosis - 1) / len(sample)))


def mean_agrees(sample: FloatArray, law: Law) -> bool:
    return bool(abs(sample.mean() - law.mean) <= Z * math.sqrt(law.variance / len(sample)))


def p_value(sample: FloatArray, cdf: Callable[[FloatArray], FloatArray]) -> float:
    """Return the p-value of a Kolmogorov-Smirnov statistic, by its limit law."""
    heights = cdf(np.sort(sample))
    steps = np.arange(len(sample) + 1) / len(sample)
    statistic = max((steps[1:] - heights).max(), (heights - steps[:-1]).max())
    return float(special.kolmogorov(math.sqrt(len(sample)) * statistic))


def shape_agrees(sample: FloatArray, law: Law) -> bool:
    return p_value(sample, law.cdf) > ALARM


@pytest.mark.parametrize("where", ["diagonal", "off-diagonal"])
@pytest.mark.parametrize("key", STATED)
def test_entries_follow_the_stated_law(key: str, where: str) -> None:
    index = 0 if where == "diagonal" else 1
    sample, law = entries(key)[index], STATED[key]()[index]
    assert len(sample) >= 300_000
    assert mean_agrees(sample, law)
    assert second_moment_agrees(sample, law)
    assert shape_agrees(sample, law)
    # Control: the tests detect a scale 2 % off by the second moment, and 5 % off by the shape.
    deviations = sample - law.mean
    for wrong in (0.98, 1.02):
        assert not second_moment_agrees(law.mean + wrong * deviations, law)
    for wrong in (0.95, 1.05):
        assert not shape_agrees(wrong * sample, law)


@pytest.mark.parametrize("key", ADDITIVE)
def test_noise_has_the_shape_its_account_says(key: str) -> None:
    """Mechanisms without a stated law of entries are covered too: their part gives the family."""
    mechanism = ADDITIVE[key]
    problem = Problem(N, D, 2, Relation.REPLACE, Domain.ball(D))
    parts = mechanism.calibrate(problem, Budget(0.7, 1e-6)).parts
    for sample in entries(key):
        assert np.isfinite(sample).all()
        if any(isinstance(part, GaussianPart) for part in parts):
            assert shape_agrees(sample / sample.std(), normal(1.0))
        elif any(isinstance(part, LaplacePart) for part in parts):
            assert shape_agrees(sample, LAPLACE)
    stds = mechanism.diagonal_std(problem)
    if stds is not None:
        # Entries of one sample depend on each other, so its mean square counts as one number. FEW
        # numbers have a standard error of at most 2 %; a scale 10 % off is 21 % in squares.
        diagonal = entries(key)[0]
        squares = np.square(diagonal - diagonal.mean()).reshape(-1, D).mean(axis=1)
        error = squares.std() / math.sqrt(len(squares)) / stds**2
        assert error < 0.02
        assert abs(squares.mean() / stds**2 - 1) <= Z * error
        for wrong in (0.9, 1.1):
            assert abs(wrong**2 * squares.mean() / stds**2 - 1) > Z * error


def test_wishart_difference_covariances() -> None:
    """Cov(W_ij, W_kl) = m (C_ik C_jl + C_il C_jk) per Wishart; distinct entries have none."""
    rng = generator(23, "covariance")
    problem = Problem(N, 4, 1, Relation.REPLACE, Domain.ball(4))
    noises = ADDITIVE["wishart_difference"].standard_noise(problem, Draws.batch(rng, 200_000))
    rows, columns = np.triu_indices(4)
    entries_of = noises[:, rows, columns]
    variance = np.where(rows == columns, 4.0, 2.0) * 5  # Both Wishart matrices have m = 5.
    for i in range(len(rows)):
        for j in range(i + 1):
            product = entries_of[:, i] * entries_of[:, j]
            expected = variance[i] if i == j else 0.0
            # The sample estimates its own standard error to a few per cent, so allow 10 % extra.
            error = 1.1 * product.std() / math.sqrt(len(product))
            assert abs(product.mean() - expected) <= Z * error


# The published Wishart -----------------------------------------------------------------------


def wishart_noise(d: int, epsilon: float, size: int) -> FloatArray:
    """Return n times the noise of the released matrix."""
    mechanism = ADDITIVE["wishart"]
    problem = Problem(N, d, 1, Relation.REPLACE, Domain.ball(d))
    calibration = mechanism.calibrate(problem, Budget(epsilon))
    draws = Draws.batch(generator(24, "support", d, str(epsilon)), size)
    return N * calibration.scale * mechanism.standard_noise(problem, draws)


def agrees(hits: FloatArray, probability: float) -> bool:
    error = math.sqrt(probability * (1 - probability) / len(hits))
    return bool(abs(hits.mean() - probability) <= Z * error)


@pytest.mark.parametrize("d", [2, 5, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_wishart_leaves_the_support_as_often_as_predicted(d: int, epsilon: float) -> None:
    noise = wishart_noise(d, epsilon, 30_000)
    rng = generator(25, "rows", d)
    v, w = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    # If row v becomes zero, the smaller table's release minus the larger table's A is W - vv'.
    outside = np.linalg.eigvalsh(noise - np.outer(v, v)).min(axis=1) < 0
    assert agrees(outside, -math.expm1(-epsilon / 3))
    # The row v is replaced by a row w that is orthogonal to v.
    outside_both = np.linalg.eigvalsh(noise - np.outer(v, v) + np.outer(w, w)).min(axis=1) < 0
    expected, _ = integrate.quad(lambda u: u * special.k1(u), 0, epsilon / 3)
    assert agrees(outside_both, 2 / math.pi * expected)
    # Control: the test detects the probability for a budget that is 30 % larger.
    assert not agrees(outside, -math.expm1(-1.3 * epsilon / 3))


# The exponential mechanism -------------------------------------------------------------------


def first_coordinate_cdf(a: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the cdf of x_1^2 for density exp(sum a_i x_i^2) on the circle or the sphere.

    On the circle, integrate over the angle. On the sphere, integrate over the height: the circle
    around it gives exp((1 - x^2)(a_2 + a_3)/2) I_0((1 - x^2)(a_2 - a_3)/2).
    """
    if len(a) == 2:
        angle = np.linspace(0, math.pi / 2, 20_001)
        square, density = np.sin(angle) ** 2, np.exp((a[0] - a[1]) * (np.sin(angle) ** 2 - 1))
        mass = integrate.cumulative_simpson(density, x=angle, initial=0.0)
    else:
        height = np.linspace(0, 1, 20_001)
        square, rest = height**2, 1 - height**2
        half = rest * (a[1] - a[2]) / 2
        exponent = (a[0] - (a[1] + a[2]) / 2) * square + np.abs(half)
        density = np.exp(exponent - exponent.max()) * special.i0e(half)
        mass = integrate.cumulative_simpson(density, x=height, initial=0.0)
    total = mass / mass[-1]
    return lambda x: np.interp(x, square, total)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("eigenvalues", [(0.5, 0.2), (0.4, 0.39), (0.5, 0.2, 0.1), (0.3, 0.3, 0.1)])
@pytest.mark.parametrize("n", [10, 200])
def test_ppca_vector_follows_its_density(
    n: int, eigenvalues: tuple[float, ...], relation: Relation
) -> None:
    d, epsilon = len(eigenvalues), 1.0
    turn = np.linalg.qr(generator(26, "turn", d).standard_normal((d, d)))[0]
    A = turn @ np.diag(eigenvalues) @ turn.T
    problem = Problem(n, d, 1, relation, Domain.ball(d))
    mechanism: Mechanism = parse_variant("ppca")
    calibration = mechanism.calibrate(problem, Budget(epsilon))
    draws = Draws.batch(generator(27, "ppca", d, n, str(relation)), 60_000)
    data = SecondMoment((A + A.T) / 2, n)
    along = mechanism.release_many(data, calibration, draws).components[:, :, 0] @ turn
    # The strength is n epsilon/2 under replace, and n epsilon under zero-out (a monotone score).
    strength = n * epsilon / (2 if relation is Relation.REPLACE else 1)
    squares = along[:, 0] ** 2
    exact = first_coordinate_cdf(strength * np.asarray(eigenvalues))
    assert p_value(squares, exact) > ALARM
    # Control: the test detects twice the concentration, if the eigenvalues differ enough.
    if strength * (eigenvalues[0] - eigenvalues[-1]) > 1:
        wrong = first_coordinate_cdf(2 * strength * np.asarray(eigenvalues))
        assert p_value(squares, wrong) < ALARM


# Edges of the noise spectrum -----------------------------------------------------------------


EDGE_PROBLEM = Problem(N, 200, 2, Relation.REPLACE, Domain.ball(200))
EDGES = {
    key: edges
    for key, mechanism in ADDITIVE.items()
    if (edges := mechanism.spectrum_edges(mechanism.calibrate(EDGE_PROBLEM, Budget(0.5, 1e-6))))
}


@pytest.mark.parametrize("key", EDGES)
def test_noise_edges_at_200_dimensions(key: str) -> None:
    """The largest eigenvalue is near the edge for large d.

    For these ensembles the largest eigenvalue is edge (1 + s d^(-2/3) T) with T of Tracy-Widom
    (mean -1.2, standard deviation 1.27) and s between 0.5 (semicircle) and about 0.8 (difference of
    Wisharts). At d = 200 this is a shift of 2 to 3 % and a spread of at most 3 % per sample, 1.1 %
    for the mean of 8. So 9 % covers the shift and more than 5 spreads, and the test detects an edge
    that is wrong by a quarter. Noise available only up to 100 features is sampled at 100, with a
    shift of at most 4.5 % and a spread of 1.7 % for the mean.
    """
    mechanism, budget = ADDITIVE[key], Budget(0.5, 1e-6)
    problem = EDGE_PROBLEM
    if mechanism.limits(problem, budget) is not None:
        problem = Problem(N, 100, 2, Relation.REPLACE, Domain.ball(100))
    calibration = mechanism.calibrate(problem, budget)
    draws = Draws.trials(28, key, range(8))
    noise = calibration.scale * mechanism.standard_noise(problem, draws)
    largest = float(np.abs(np.linalg.eigvalsh(noise)).max(axis=1).mean())
    edges = mechanism.spectrum_edges(calibration)
    assert edges is not None
    edge = max(abs(side) for side in edges)
    assert abs(largest / edge - 1) < 0.09
    for wrong in (0.75, 1.25):
        assert abs(largest / (wrong * edge) - 1) > 0.09
